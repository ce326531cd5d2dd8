//! `[spaces.NAME]`: exchanges, queues and bindings that should exist, besides what clients declare. What else is said of a space is
//! `space_settings`'s.
//!
//! ```toml
//! [spaces."/".queues."worker.orders"]
//! arguments = { x-max-length = 10000 }
//! [spaces."/".exchanges.prices]
//! type = "topic"
//! [[spaces."/".bindings]]
//! source = "prices"
//! queue = "worker.orders"
//! routing_key = "#"
//! ```

use super::reader::{Reading, TableReader};
use crate::model::definitions::{Definitions, SpaceDefinitions};
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec, QueueSpec};
use toml_edit::{Item, TableLike, Value};

pub fn read(reading: &mut Reading<'_>, section: &Item, definitions: &mut Definitions) {
    let Some(table) = section.as_table_like() else {
        return reading.problem(section.span(), "spaces", "must be a section", "Write a space as [spaces.NAME].");
    };
    for (name, item) in table.iter() {
        let path = format!("spaces.{name}");
        if let Some(mut table) = TableReader::open(reading, item, path.clone()) {
            let space = SpaceDefinitions {
                exchanges: each(reading, table.item("exchanges"), &format!("{path}.exchanges"), exchange),
                queues: each(reading, table.item("queues"), &format!("{path}.queues"), queue),
                bindings: bindings(reading, table.item("bindings"), &format!("{path}.bindings")),
            };
            super::space_settings::read(reading, &mut table, name, &mut definitions.catalog);
            table.finish(reading);
            definitions.spaces.insert(name.into(), space);
        }
    }
}

/// Named things of one kind.
fn each<T>(
    reading: &mut Reading<'_>,
    item: Option<&Item>,
    path: &str,
    read_one: fn(&mut Reading<'_>, &mut TableReader<'_>, &str) -> Option<T>,
) -> Vec<T> {
    let Some(item) = item else { return Vec::new() };
    let Some(table) = item.as_table_like() else {
        reading.problem(item.span(), path, "must be a section", format!("Write each as [{path}.NAME]."));
        return Vec::new();
    };
    let mut things = Vec::new();
    for (name, item) in table.iter() {
        let Some(mut table) = TableReader::open(reading, item, format!("{path}.{name}")) else { continue };
        things.extend(read_one(reading, &mut table, name));
        table.finish(reading);
    }
    things
}

const KINDS: &str = "Use \"direct\", \"topic\", \"fanout\", \"headers\", \"x-consistent-hash\", \"x-random\", \"x-local-random\" or \
                     \"x-delayed-message\".";
const HOW_TO_BIND: &str = "A binding names its exchange as source, and its queue (or the exchange it leads to).";

fn exchange(reading: &mut Reading<'_>, table: &mut TableReader<'_>, name: &str) -> Option<ExchangeSpec> {
    let kind = table.text(reading, "type").unwrap_or_else(|| "topic".to_owned());
    let kind = match ExchangeKind::parse(&kind) {
        Some(kind) => Some(kind),
        None => {
            table.refuse(reading, "type", format!("is \"{kind}\""), KINDS);
            None
        }
    };
    Some(ExchangeSpec {
        name: name.to_owned(),
        internal: table.flag(reading, "internal").unwrap_or(false),
        arguments: arguments(reading, table),
        kind: kind?,
        durable: true,
        auto_delete: false,
    })
}

fn queue(reading: &mut Reading<'_>, table: &mut TableReader<'_>, name: &str) -> Option<QueueSpec> {
    let arguments = arguments(reading, table);
    Some(QueueSpec { name: name.to_owned(), durable: true, exclusive: false, auto_delete: false, arguments })
}

fn bindings(reading: &mut Reading<'_>, item: Option<&Item>, path: &str) -> Vec<BindingSpec> {
    let Some(item) = item else { return Vec::new() };
    let Some(tables) = item.as_array_of_tables() else {
        reading.problem(item.span(), path, "must be a list of sections", format!("Write each as [[{path}]]."));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let item = Item::Table(table.clone());
        let Some(mut table) = TableReader::open(reading, &item, format!("{path}[{at}]")) else { continue };
        let (source, queue) = (table.text(reading, "source"), table.text(reading, "queue"));
        let exchange = table.text(reading, "exchange");
        let routing_key = table.text(reading, "routing_key").unwrap_or_default();
        let arguments = arguments(reading, &mut table);
        let destination = match (queue, exchange) {
            (Some(queue), None) => Some((queue, DestinationKind::Queue)),
            (None, Some(exchange)) => Some((exchange, DestinationKind::Exchange)),
            (Some(_), Some(_)) => {
                table.refuse(reading, "exchange", "stands beside queue", "A binding leads to one queue or to one exchange.");
                None
            }
            (None, None) => None,
        };
        if source.is_none() && table.item("source").is_none() {
            table.refuse(reading, "source", "is missing", HOW_TO_BIND);
        }
        if destination.is_none() && table.item("queue").is_none() && table.item("exchange").is_none() {
            table.refuse(reading, "queue", "is missing", HOW_TO_BIND);
        }
        table.finish(reading);
        if let (Some(source), Some((destination, destination_kind))) = (source, destination) {
            found.push(BindingSpec { source, destination, destination_kind, routing_key, arguments });
        }
    }
    found
}

fn arguments(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Table {
    let Some(item) = table.item("arguments") else { return Table::new() };
    match item.as_table_like() {
        Some(values) => field_table(values),
        None => {
            table.refuse(reading, "arguments", "must be a table", "Write arguments = { x-max-length = 10000 }.");
            Table::new()
        }
    }
}

fn field_table(values: &dyn TableLike) -> Table {
    let fields = values.iter().filter_map(|(key, item)| match (item.as_value(), item.as_table_like()) {
        (Some(value), _) => Some((key.to_owned(), field(value))),
        (None, Some(inner)) => Some((key.to_owned(), Field::Table(field_table(inner)))),
        (None, None) => None,
    });
    Table(fields.collect())
}

fn field(value: &Value) -> Field {
    match value {
        Value::String(text) => Field::text(text.value().clone()),
        Value::Integer(number) => Field::I64(*number.value()),
        Value::Float(number) => Field::F64(*number.value()),
        Value::Boolean(flag) => Field::Bool(*flag.value()),
        Value::Datetime(date) => Field::text(date.value().to_string()),
        Value::Array(items) => Field::Array(items.iter().map(field).collect()),
        Value::InlineTable(inner) => Field::Table(field_table(inner)),
    }
}
