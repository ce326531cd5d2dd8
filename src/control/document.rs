//! Definitions as a document: the JSON that RabbitMQ exports and imports, so that what is defined here moves there and back.
//!
//! Parts that reactor has no use for are said so: parameters of plugins are kept without effect, unknown parts are ignored.

use crate::model::account::{Permission, TopicPermission, User};
use crate::model::definitions::{Definitions, SpaceDefinitions};
use crate::model::policy_spec::Policy;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::{GlobalParameter, Parameter, RABBITMQ_VERSION, Space};
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DEFAULT_SPACE, DestinationKind, ExchangeKind, ExchangeSpec, QueueSpec, is_built_in};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// Nesting of arguments; deeper ones are refused.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Document {
    /// What RabbitMQ checks an import against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rabbit_version: Option<String>,
    /// As `rabbit_version`, by its newer name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rabbitmq_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<User>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhosts: Option<Vec<Space>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<Permission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_permissions: Option<Vec<TopicPermission>>,
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_parameters: Option<Vec<GlobalParameter>>,
    #[serde(default)]
    pub policies: Vec<Policy>,
    #[serde(default)]
    pub exchanges: Vec<ExchangeDocument>,
    #[serde(default)]
    pub queues: Vec<QueueDocument>,
    #[serde(default)]
    pub bindings: Vec<BindingDocument>,
    /// Everything else of the document.
    #[serde(flatten)]
    #[schema(ignore)]
    pub rest: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExchangeDocument {
    pub name: String,
    #[serde(default = "default_space", skip_serializing_if = "String::is_empty")]
    pub vhost: String,
    /// `direct`, `topic`, `fanout`, `headers`, `x-consistent-hash`, `x-random`, `x-local-random` or `x-delayed-message`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default = "yes")]
    pub durable: bool,
    #[serde(default)]
    pub auto_delete: bool,
    #[serde(default)]
    pub internal: bool,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueueDocument {
    pub name: String,
    #[serde(default = "default_space", skip_serializing_if = "String::is_empty")]
    pub vhost: String,
    #[serde(default = "yes")]
    pub durable: bool,
    #[serde(default)]
    pub auto_delete: bool,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BindingDocument {
    pub source: String,
    #[serde(default = "default_space", skip_serializing_if = "String::is_empty")]
    pub vhost: String,
    /// The queue or exchange.
    pub destination: String,
    /// `queue` or `exchange`.
    #[serde(default = "queue")]
    pub destination_type: String,
    #[serde(default)]
    pub routing_key: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

fn default_space() -> String {
    DEFAULT_SPACE.to_owned()
}
fn yes() -> bool {
    true
}
fn queue() -> String {
    "queue".to_owned()
}

impl Document {
    /// What exists, as a document. Built-in exchanges that every broker has (`amq.…`) are left out, `reactor.…` is in: RabbitMQ
    /// needs it for the bindings.
    pub fn of(definitions: &Definitions) -> Self {
        let mut document = Document {
            rabbit_version: Some(RABBITMQ_VERSION.to_owned()),
            rabbitmq_version: Some(RABBITMQ_VERSION.to_owned()),
            ..Document::default()
        };
        document.put_catalog(&definitions.catalog);
        for (space, things) in &definitions.spaces {
            let vhost = || space.to_string();
            let exchanges = things.exchanges.iter().filter(|spec| !spec.name.is_empty() && !spec.name.starts_with("amq."));
            document.exchanges.extend(exchanges.map(|spec| ExchangeDocument {
                name: spec.name.clone(),
                vhost: vhost(),
                kind: spec.kind.as_str().to_owned(),
                durable: spec.durable,
                auto_delete: spec.auto_delete,
                internal: spec.internal,
                arguments: to_json(&spec.arguments),
            }));
            document.queues.extend(things.queues.iter().map(|spec| QueueDocument {
                name: spec.name.clone(),
                vhost: vhost(),
                durable: spec.durable,
                auto_delete: spec.auto_delete,
                arguments: to_json(&spec.arguments),
            }));
            // Every queue is bound to the default exchange by its name; that is not a definition.
            let bindings = things.bindings.iter().filter(|spec| !spec.source.is_empty());
            document.bindings.extend(bindings.map(|spec| BindingDocument {
                source: spec.source.clone(),
                vhost: vhost(),
                destination: spec.destination.clone(),
                destination_type: spec.destination_kind.as_str().to_owned(),
                routing_key: spec.routing_key.clone(),
                arguments: to_json(&spec.arguments),
            }));
        }
        document
    }

    /// What is wanted. `reactor.call` and `reactor.event` exist anyway and are passed over.
    pub fn definitions(&self) -> Result<Definitions, Refusal> {
        let mut definitions = Definitions { catalog: self.catalog()?, ..Definitions::default() };
        for space in self.vhosts.iter().flatten() {
            definitions.spaces.entry(space.name.as_str().into()).or_default();
        }
        for exchange in self.exchanges.iter().filter(|exchange| !is_built_in(&exchange.name)) {
            let spec = exchange.spec()?;
            space(&mut definitions, &exchange.vhost).exchanges.push(spec);
        }
        for queue in &self.queues {
            let spec = queue.spec()?;
            space(&mut definitions, &queue.vhost).queues.push(spec);
        }
        for binding in &self.bindings {
            let spec = binding.spec()?;
            space(&mut definitions, &binding.vhost).bindings.push(spec);
        }
        Ok(definitions)
    }

    /// Parts that are not used, for the answer.
    pub fn ignored(&self) -> Vec<&str> {
        let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.is_null();
        let told = ["product_name", "product_version", "rabbitmq_definition_format", "original_cluster_name"];
        self.rest
            .iter()
            .filter(|(name, value)| !told.contains(&name.as_str()) && !empty(value))
            .map(|(name, _)| name.as_str())
            .chain(self.without_effect())
            .collect::<BTreeSet<&str>>()
            .into_iter()
            .collect()
    }
}

fn space<'d>(definitions: &'d mut Definitions, name: &str) -> &'d mut SpaceDefinitions {
    definitions.spaces.entry(name.into()).or_default()
}

impl ExchangeDocument {
    pub fn spec(&self) -> Result<ExchangeSpec, Refusal> {
        let Some(kind) = ExchangeKind::parse(&self.kind) else {
            let what = format!("exchange {} has the type {}", self.name, self.kind);
            return Err(Refusal::new(RefusalKind::Invalid, what)
                .hint("Use direct, topic, fanout, headers, x-consistent-hash, x-random, x-local-random or x-delayed-message."));
        };
        Ok(ExchangeSpec {
            name: self.name.clone(),
            kind,
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: arguments(&self.arguments, &self.name)?,
        })
    }
}

impl QueueDocument {
    pub fn spec(&self) -> Result<QueueSpec, Refusal> {
        Ok(QueueSpec {
            name: self.name.clone(),
            durable: self.durable,
            exclusive: false,
            auto_delete: self.auto_delete,
            arguments: arguments(&self.arguments, &self.name)?,
        })
    }
}

impl BindingDocument {
    pub fn spec(&self) -> Result<BindingSpec, Refusal> {
        let Some(destination_kind) = DestinationKind::parse(&self.destination_type) else {
            let what = format!("a binding of {} goes to the {} {}", self.source, self.destination_type, self.destination);
            return Err(Refusal::new(RefusalKind::Invalid, what).hint("Use queue or exchange as destination_type."));
        };
        Ok(BindingSpec {
            source: self.source.clone(),
            destination: self.destination.clone(),
            destination_kind,
            routing_key: self.routing_key.clone(),
            arguments: arguments(&self.arguments, &self.destination)?,
        })
    }
}

fn to_json(table: &Table) -> Map<String, Value> {
    table.iter().map(|(key, field)| (key.to_owned(), field_to_json(field))).collect()
}

fn field_to_json(field: &Field) -> Value {
    match field {
        Field::Bool(flag) => Value::Bool(*flag),
        Field::F32(number) => f64::from(*number).into(),
        Field::F64(number) => (*number).into(),
        Field::Decimal { scale, value } => (f64::from(*value) / 10_f64.powi(i32::from(*scale))).into(),
        Field::Text(bytes) | Field::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        Field::Array(items) => items.iter().map(field_to_json).collect(),
        Field::Timestamp(seconds) => (*seconds).into(),
        Field::Table(table) => Value::Object(to_json(table)),
        Field::Void => Value::Null,
        integer => integer.as_integer().into(),
    }
}

/// Arguments or headers as people write them in JSON; `of` names the thing they belong to.
pub fn arguments(arguments: &Map<String, Value>, of: &str) -> Result<Table, Refusal> {
    table_from_json(arguments, of, DEPTH_MAX)
}

fn table_from_json(arguments: &Map<String, Value>, of: &str, depth: usize) -> Result<Table, Refusal> {
    arguments
        .iter()
        .map(|(key, value)| Ok((key.clone(), field_from_json(value, of, depth)?)))
        .collect::<Result<_, _>>()
        .map(Table)
}

fn field_from_json(value: &Value, of: &str, depth: usize) -> Result<Field, Refusal> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Refusal::new(RefusalKind::TooLarge, format!("arguments of {of} are nested deeper than {DEPTH_MAX}")));
    };
    Ok(match value {
        Value::Null => Field::Void,
        Value::Bool(flag) => Field::Bool(*flag),
        Value::String(text) => Field::text(text.clone()),
        Value::Array(items) => Field::Array(items.iter().map(|item| field_from_json(item, of, depth)).collect::<Result<_, _>>()?),
        Value::Object(inner) => Field::Table(table_from_json(inner, of, depth)?),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Field::I64(integer),
            (None, Some(float)) if number.is_f64() => Field::F64(float),
            _ => return Err(Refusal::new(RefusalKind::Invalid, format!("argument {number} of {of} is too large for AMQP"))),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::Verb;

    #[test]
    fn a_rabbitmq_export_is_read_and_written_again() {
        let text = r##"{
            "rabbit_version": "3.13.7", "rabbitmq_version": "3.13.7", "bells": [1], "policies": [],
            "vhosts": [{"name": "/"}, {"name": "staging", "description": "x", "limits": []}],
            "queues": [{"name": "work", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-max-length": 5}}],
            "exchanges": [{"name": "prices", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}},
                          {"name": "reactor.call", "vhost": "/", "type": "topic"}],
            "bindings": [{"source": "prices", "vhost": "/", "destination": "work", "destination_type": "queue", "routing_key": "#", "arguments": {}}]
        }"##;
        let document: Document = serde_json::from_str(text).expect("a document");
        assert_eq!(document.ignored(), ["bells"]);
        let definitions = document.definitions().expect("definitions");
        assert_eq!(definitions.spaces.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["/", "staging"]);
        let again = Document::of(&definitions).definitions().expect("definitions");
        assert_eq!(again, definitions);
        let plan = super::super::plan::plan(&Definitions::default(), &definitions, super::super::Scope::Named);
        assert!(plan.refusals.is_empty() && plan.changes.iter().all(|change| change.verb == Verb::Create));
    }

    #[test]
    fn what_cannot_be_defined_is_refused_by_name() {
        let exchange = r#"{"exchanges": [{"name": "x", "type": "x-odd"}]}"#;
        let document: Document = serde_json::from_str(exchange).expect("a document");
        assert_eq!(document.definitions().expect_err("refused").what, "exchange x has the type x-odd");
        let binding = r#"{"bindings": [{"source": "a", "destination": "b", "destination_type": "world"}]}"#;
        let document: Document = serde_json::from_str(binding).expect("a document");
        assert_eq!(document.definitions().expect_err("refused").kind, RefusalKind::Invalid);
        let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
        let queue = format!(r#"{{"queues": [{{"name": "q", "arguments": {{"x": {nested}}}}}]}}"#);
        let document: Document = serde_json::from_str(&queue).expect("a document");
        assert!(document.definitions().expect_err("refused").what.contains("nested"));
    }
}
