//! What `[spaces.NAME]` says besides the things in it: words about the space, its limits and its policies.
//!
//! ```toml
//! [spaces.staging]
//! description = "before it counts"
//! default_queue_type = "quorum"
//! max_queues = 100
//! [spaces.staging.policies.short]
//! pattern = "^tmp"
//! definition = { max-length = 10 }
//! ```

use super::reader::{Reading, TableReader};
use super::users::limit;
use crate::control;
use crate::model::catalog::{Catalog, Entry};
use crate::model::policy_spec::{ApplyTo, Policy};
use crate::model::space::{LIMITS_COMPONENT, LIMITS_NAME, Parameter, Space, SpaceLimits};
use serde_json::{Map, Value};
use toml_edit::{Item, TableLike};

/// Settings of a space are an entry only if there are some: a section that merely names a space takes nothing back.
pub fn read(reading: &mut Reading<'_>, table: &mut TableReader<'_>, name: &str, catalog: &mut Catalog) {
    let space = Space {
        description: table.text(reading, "description").unwrap_or_default(),
        tags: table.words(reading, "tags").unwrap_or_default(),
        default_queue_type: queue_type(reading, table),
        ..Space::named(name)
    };
    if space != Space::named(name) {
        catalog.put(Entry::Space(space));
    }
    let limits = SpaceLimits {
        max_connections: limit(reading, table, "max_connections"),
        max_queues: limit(reading, table, "max_queues"),
    };
    if limits != SpaceLimits::default() {
        let (vhost, value) = (name.to_owned(), serde_json::to_value(limits).expect("numbers are JSON"));
        let (component, name) = (LIMITS_COMPONENT.to_owned(), LIMITS_NAME.to_owned());
        catalog.put(Entry::Parameter(Parameter { vhost, component, name, value }));
    }
    policies(reading, table, "policies", name, |policy| drop(catalog.put(Entry::Policy(policy))));
    policies(reading, table, "operator_policies", name, |policy| drop(catalog.put(Entry::OperatorPolicy(policy))));
}

fn queue_type(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Option<String> {
    let kind = table.text(reading, "default_queue_type")?;
    if !["classic", "quorum", "stream"].contains(&kind.as_str()) {
        let fix = "Use \"classic\", \"quorum\" or \"stream\".";
        table.refuse(reading, "default_queue_type", format!("is \"{kind}\""), fix);
    }
    Some(kind)
}

fn policies(reading: &mut Reading<'_>, table: &mut TableReader<'_>, key: &'static str, space: &str, mut put: impl FnMut(Policy)) {
    let Some(item) = table.item(key) else { return };
    let path = table.path_of(key);
    let Some(named) = item.as_table_like() else {
        return reading.problem(item.span(), &path, "must be a section", format!("Write each as [{path}.NAME]."));
    };
    for (name, item) in named.iter() {
        let Some(mut table) = TableReader::open(reading, item, format!("{path}.{name}")) else { continue };
        let before = reading.problems.len();
        let policy = Policy {
            vhost: space.to_owned(),
            name: name.to_owned(),
            pattern: table.text(reading, "pattern").unwrap_or_else(|| ".*".to_owned()),
            apply_to: apply_to(reading, &mut table),
            priority: limit(reading, &mut table, "priority").unwrap_or(0),
            definition: definition(reading, &mut table),
        };
        table.finish(reading);
        if reading.problems.len() == before
            && let Err(refusal) = control::check_policy(&policy, key == "operator_policies")
        {
            reading.problem(item.span(), &format!("{path}.{name}"), refusal.what, refusal.next.unwrap_or_default());
        }
        put(policy);
    }
}

fn apply_to(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> ApplyTo {
    let Some(text) = table.text(reading, "apply_to") else { return ApplyTo::default() };
    ApplyTo::parse(&text).unwrap_or_else(|| {
        let names = ApplyTo::ALL.map(ApplyTo::as_str).join(", ");
        table.refuse(reading, "apply_to", format!("is \"{text}\""), format!("Use one of {names}."));
        ApplyTo::default()
    })
}

fn definition(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Map<String, Value> {
    let Some(item) = table.item("definition") else {
        table.refuse(reading, "definition", "is missing", "Write definition = { max-length = 10000 }.");
        return Map::new();
    };
    match item.as_table_like() {
        Some(values) => json(values),
        None => {
            table.refuse(reading, "definition", "must be a table", "Write definition = { max-length = 10000 }.");
            Map::new()
        }
    }
}

fn json(values: &dyn TableLike) -> Map<String, Value> {
    let fields = values.iter().filter_map(|(key, item)| {
        let value = match (item, item.as_table_like()) {
            (Item::Value(value), None) => json_value(value)?,
            (_, Some(inner)) => Value::Object(json(inner)),
            _ => return None,
        };
        Some((key.to_owned(), value))
    });
    fields.collect()
}

fn json_value(value: &toml_edit::Value) -> Option<Value> {
    use toml_edit::Value as Toml;
    Some(match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(flag) => (*flag.value()).into(),
        Toml::Datetime(date) => date.value().to_string().into(),
        Toml::Array(items) => items.iter().filter_map(json_value).collect(),
        Toml::InlineTable(inner) => Value::Object(json(inner)),
    })
}
