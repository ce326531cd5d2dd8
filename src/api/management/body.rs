//! Request bodies: JSON as RabbitMQ takes it, whatever type it is declared as. No body is an empty object.

use super::answer::Failure;
use crate::kernel::limit::CONTROL_BODY_BYTES_MAX;
use axum::extract::{FromRequest, Request};
use http::{StatusCode, header};
use serde_json::{Map, Value};
use std::time::Duration;

/// Time a client has to send the body it announced.
const BODY_LIMIT: Duration = Duration::from_secs(30);

/// A body that is a JSON object.
#[derive(Clone, Debug, Default)]
pub struct Fields(pub Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let too_large = || {
            let reason = format!("the body is longer than {CONTROL_BODY_BYTES_MAX} bytes");
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", reason)
        };
        let announced =
            request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > CONTROL_BODY_BYTES_MAX as u64) {
            return Err(too_large());
        }
        let read = tokio::time::timeout(BODY_LIMIT, bytes::Bytes::from_request(request, state)).await;
        let Ok(read) = read else {
            let reason = format!("the body did not arrive within {} s", BODY_LIMIT.as_secs());
            return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "timeout", reason));
        };
        let bytes = read.map_err(|_| too_large())?;
        if bytes.is_empty() {
            return Ok(Fields::default());
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) | Err(_) => Err(Failure::bad("not_json")),
        }
    }
}

impl Fields {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Fails naming every one of `names` that is missing.
    pub fn must_have(&self, names: &[&str]) -> Result<(), Failure> {
        let missing: Vec<String> =
            names.iter().filter(|name| self.get(name).is_none()).map(|name| format!("{{key_missing,{name}}}")).collect();
        if missing.is_empty() { Ok(()) } else { Err(Failure::bad(format!("[{}]", missing.join(",")))) }
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::bad(vec!["not_string", name])),
        }
    }

    /// Also as text, which command lines send.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" || text.is_empty() => Ok(Some(false)),
            Some(Value::String(text)) => Err(Failure::bad(vec!["not_boolean".to_owned(), text.clone()])),
            Some(_) => Err(Failure::bad(vec!["not_boolean", name])),
        }
    }

    /// Also as text.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) if number.as_i64().is_some() => Ok(number.as_i64()),
            Some(Value::String(text)) if text.trim().parse::<i64>().is_ok() => Ok(text.trim().parse().ok()),
            Some(_) => Err(Failure::bad(vec!["not_int", name])),
        }
    }

    /// An object; an empty list, which some languages write for an empty object, is one.
    pub fn object(&self, name: &str) -> Result<Map<String, Value>, Failure> {
        match self.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields.clone()),
            Some(Value::Array(items)) if items.is_empty() => Ok(Map::new()),
            Some(Value::String(text)) if text.is_empty() => Ok(Map::new()),
            Some(_) => Err(Failure::bad(format!("{name} is not an object"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_taken_as_clients_of_every_language_write_them() {
        let Value::Object(fields) = json!({ "t": "true", "f": false, "n": "12", "list": [], "none": null, "odd": "maybe" })
        else {
            unreachable!("an object was written")
        };
        let fields = Fields(fields);
        assert_eq!((fields.flag("t"), fields.flag("f"), fields.flag("none")), (Ok(Some(true)), Ok(Some(false)), Ok(None)));
        assert_eq!(fields.integer("n"), Ok(Some(12)));
        assert_eq!(fields.object("list"), Ok(Map::new()));
        assert_eq!(fields.flag("odd").expect_err("refused").body["reason"], json!(["not_boolean", "maybe"]));
        let missing = fields.must_have(&["t", "write", "read"]).expect_err("refused");
        assert_eq!(missing.body["reason"], "[{key_missing,write},{key_missing,read}]");
    }
}
