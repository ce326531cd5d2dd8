//! Holds JSON against the schemas of an OpenAPI document: types, required and unknown fields, items, choices. No formats, no bounds.

use serde_json::Value;

pub struct Document(pub Value);

impl Document {
    /// What is wrong with `value`, each with its place; empty if nothing is.
    pub fn faults(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, "$", &mut faults);
        faults
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().expect("a reference has a name");
            let target = &self.0["components"]["schemas"][name];
            assert!(target.is_object(), "{reference} is not in the document");
            return self.check(target, value, at, faults);
        }
        if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            let fits = choices.iter().any(|choice| self.faults(choice, value).is_empty());
            if !fits {
                let reasons: Vec<String> = choices.iter().flat_map(|choice| self.faults(choice, value)).collect();
                faults.push(format!("{at} fits no choice: {}", reasons.join("; ")));
            }
            return;
        }
        if let Some(parts) = schema["allOf"].as_array() {
            parts.iter().for_each(|part| self.check(part, value, at, faults));
            return;
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            faults.push(format!("{at} is {value}, not one of {allowed:?}"));
        }
        if !schema["type"].is_null() && !names(&schema["type"]).iter().any(|name| is(name, value)) {
            faults.push(format!("{at} is {value}, not {}", schema["type"]));
            return;
        }
        if let Some(items) = value.as_array() {
            for (index, item) in items.iter().enumerate() {
                self.check(&schema["items"], item, &format!("{at}[{index}]"), faults);
            }
        }
        if let Some(object) = value.as_object() {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !object.contains_key(name) {
                    faults.push(format!("{at}.{name} is missing"));
                }
            }
            for (name, inner) in object {
                let known = &schema["properties"][name];
                let rest = &schema["additionalProperties"];
                if known.is_object() {
                    self.check(known, inner, &format!("{at}.{name}"), faults);
                } else if rest.is_object() {
                    self.check(rest, inner, &format!("{at}.{name}"), faults);
                }
            }
        }
    }
}

fn names(kind: &Value) -> Vec<&str> {
    match kind {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the document uses an unknown type {other}"),
    }
}

#[test]
fn the_checker_finds_what_does_not_fit() {
    let document = Document(serde_json::json!({"components": {"schemas": {"Row": {
        "type": "object", "required": ["seq", "body"],
        "properties": {"seq": {"type": "integer"}, "body": {"type": ["string", "null"]}, "more": {"$ref": "#/components/schemas/Row"}},
    }}}}));
    let schema = serde_json::json!({"type": "array", "items": {"$ref": "#/components/schemas/Row"}});
    let good = serde_json::json!([{"seq": 1, "body": null, "more": {"seq": 2, "body": "x"}}]);
    assert_eq!(document.faults(&schema, &good), Vec::<String>::new());
    let bad = serde_json::json!([{"seq": "1", "body": null, "more": {"seq": 2}}]);
    assert_eq!(document.faults(&schema, &bad), ["$[0].more.body is missing", "$[0].seq is \"1\", not \"integer\""]);
}
