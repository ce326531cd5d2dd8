//! `[users.NAME]`: who may log in on the bus, and what each may do in which space.
//!
//! ```toml
//! [users.ann]
//! password = "${ANN_PASSWORD}"
//! tags = ["management"]
//! [users.ann.permissions."/"]
//! configure = "^ann\\."
//! [[users.ann.topic_permissions]]
//! exchange = "events"
//! write = "^ann\\."
//! ```

use super::reader::{Reading, TableReader};
use crate::access::password;
use crate::kernel::pattern::Pattern;
use crate::model::account::{HashingAlgorithm, Permission, TopicPermission, User, UserLimits};
use crate::model::catalog::{Catalog, Entry};
use crate::model::topology::DEFAULT_SPACE;
use toml_edit::Item;

/// Matches every name: what a permission is when it is not written.
const EVERYTHING: &str = ".*";
const LIMIT_MAX: u64 = 1_000_000_000;

pub fn read(reading: &mut Reading<'_>, section: &Item, catalog: &mut Catalog) {
    let Some(table) = section.as_table_like() else {
        return reading.problem(section.span(), "users", "must be a section", "Write a user as [users.NAME].");
    };
    for (name, item) in table.iter() {
        if let Some(table) = TableReader::open(reading, item, format!("users.{name}")) {
            user(reading, table, name, catalog);
        }
    }
}

fn user(reading: &mut Reading<'_>, mut table: TableReader<'_>, name: &str, catalog: &mut Catalog) {
    let (password_hash, hashing_algorithm) = secret(reading, &mut table, name);
    let limits = UserLimits {
        max_connections: limit(reading, &mut table, "max_connections"),
        max_channels: limit(reading, &mut table, "max_channels"),
    };
    let tags = table.words(reading, "tags").unwrap_or_default();
    catalog.put(Entry::User(User { name: name.to_owned(), password_hash, hashing_algorithm, tags, limits }));
    permissions(reading, &mut table, name, catalog);
    topic_permissions(reading, &mut table, name, catalog);
    table.finish(reading);
}

pub fn limit(reading: &mut Reading<'_>, table: &mut TableReader<'_>, key: &'static str) -> Option<i64> {
    table.count(reading, key, 0..=LIMIT_MAX).and_then(|count| i64::try_from(count).ok())
}

fn secret(reading: &mut Reading<'_>, table: &mut TableReader<'_>, name: &str) -> (String, HashingAlgorithm) {
    let given = table.text(reading, "password").filter(|text| !text.is_empty());
    let hash = table.text(reading, "password_hash");
    let algorithm = match table.text(reading, "hashing_algorithm").as_deref() {
        None | Some("sha256") => HashingAlgorithm::Sha256,
        Some("sha512") => HashingAlgorithm::Sha512,
        Some("md5") => HashingAlgorithm::Md5,
        Some(other) => {
            table.refuse(reading, "hashing_algorithm", format!("is \"{other}\""), "Use \"sha256\", \"sha512\" or \"md5\".");
            HashingAlgorithm::Sha256
        }
    };
    match (given, hash) {
        (Some(_), Some(_)) => {
            table.refuse(reading, "password_hash", "stands beside password", "Give one of them.");
            Default::default()
        }
        (Some(password), None) => (password::steady_hash(name, &password), HashingAlgorithm::default()),
        (None, Some(hash)) if password::is_hash(&hash, algorithm) => (hash, algorithm),
        (None, Some(_)) => {
            let fix = "It is base64 of 4 bytes of salt and the hash of salt and password, as RabbitMQ exports it.";
            table.refuse(reading, "password_hash", "is no hash of its hashing_algorithm", fix);
            Default::default()
        }
        (None, None) => Default::default(),
    }
}

fn permissions(reading: &mut Reading<'_>, table: &mut TableReader<'_>, user: &str, catalog: &mut Catalog) {
    let Some(item) = table.item("permissions") else { return };
    let path = table.path_of("permissions");
    let Some(spaces) = item.as_table_like() else {
        return reading.problem(item.span(), &path, "must be a section", format!("Write each as [{path}.\"SPACE\"]."));
    };
    for (space, item) in spaces.iter() {
        let Some(mut table) = TableReader::open(reading, item, format!("{path}.\"{space}\"")) else { continue };
        let (user, vhost) = (user.to_owned(), space.to_owned());
        let configure = pattern(reading, &mut table, "configure");
        let (write, read) = (pattern(reading, &mut table, "write"), pattern(reading, &mut table, "read"));
        table.finish(reading);
        catalog.put(Entry::Permission(Permission { user, vhost, configure, write, read }));
    }
}

fn topic_permissions(reading: &mut Reading<'_>, table: &mut TableReader<'_>, user: &str, catalog: &mut Catalog) {
    let Some(item) = table.item("topic_permissions") else { return };
    let path = table.path_of("topic_permissions");
    let Some(tables) = item.as_array_of_tables() else {
        return reading.problem(item.span(), &path, "must be a list of sections", format!("Write each as [[{path}]]."));
    };
    for (at, each) in tables.iter().enumerate() {
        let item = Item::Table(each.clone());
        let Some(mut table) = TableReader::open(reading, &item, format!("{path}[{at}]")) else { continue };
        let vhost = table.text(reading, "space").unwrap_or_else(|| DEFAULT_SPACE.to_owned());
        let exchange = table.text(reading, "exchange");
        if exchange.is_none() && table.item("exchange").is_none() {
            table.refuse(reading, "exchange", "is missing", "Name the topic exchange.");
        }
        let (write, read) = (pattern(reading, &mut table, "write"), pattern(reading, &mut table, "read"));
        table.finish(reading);
        if let Some(exchange) = exchange {
            catalog.put(Entry::TopicPermission(TopicPermission { user: user.to_owned(), vhost, exchange, write, read }));
        }
    }
}

/// A regular expression; everything when it is not written.
fn pattern(reading: &mut Reading<'_>, table: &mut TableReader<'_>, key: &'static str) -> String {
    let Some(text) = table.text(reading, key) else { return EVERYTHING.to_owned() };
    if let Err(wrong) = Pattern::new(&text) {
        let fix = "\".*\" matches every name, \"^$\" none; single quotes keep backslashes as they are.";
        table.refuse(reading, key, format!("is no regular expression: {}", wrong.trim().replace('\n', " ")), fix);
    }
    text
}
