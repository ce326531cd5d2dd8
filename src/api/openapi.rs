//! The OpenAPI document, made from the very registrations that serve it.

use axum::response::IntoResponse;
use http::header;
use std::sync::LazyLock;
use utoipa::openapi::path::{HttpMethod, Operation, PathsBuilder};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder, RefOr, Schema};

/// Collects operations while routes are registered.
#[derive(Default)]
pub struct Collector {
    operations: Vec<(String, Vec<HttpMethod>, Operation)>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Collector {
    pub fn add<P: utoipa::Path + utoipa::__dev::SchemaReferences + for<'t> utoipa::__dev::Tags<'t>>(&mut self) {
        self.operations.push((P::path(), P::methods(), P::operation()));
        P::schemas(&mut self.schemas);
    }

    pub fn document(self) -> OpenApi {
        let mut paths = PathsBuilder::new();
        for (path, methods, operation) in self.operations {
            paths = paths.path(path, utoipa::openapi::PathItem::from_http_methods(methods, operation));
        }
        let info = InfoBuilder::new()
            .title("reactor")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(DESCRIPTION))
            .license(Some(License::new("Apache-2.0")))
            .build();
        OpenApiBuilder::new()
            .info(info)
            .paths(paths.build())
            .components(Some(ComponentsBuilder::new().schemas_from_iter(self.schemas).build()))
            .build()
    }
}

const DESCRIPTION: &str = "What the control port answers. Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per \
     second. A space `/` is written `%2F` in paths. Refusals are `application/problem+json` (RFC 9457).";

/// The document as it is served.
pub fn document() -> OpenApi {
    super::routes::api().1.document()
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "node", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn openapi() -> impl IntoResponse {
    static TEXT: LazyLock<String> = LazyLock::new(|| document().to_json().expect("the document is plain data"));
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// `units` and `live` hold no answers.
    const TYPES: [&str; 6] = [
        include_str!("../../ui/src/api/types/access.ts"),
        include_str!("../../ui/src/api/types/broker.ts"),
        include_str!("../../ui/src/api/types/messages.ts"),
        include_str!("../../ui/src/api/types/node.ts"),
        include_str!("../../ui/src/api/types/services.ts"),
        include_str!("../../ui/src/api/types/telemetry.ts"),
    ];
    /// Interfaces whose schema has another name, and those that are no answer of the API.
    const RENAMED: &[(&str, &str)] = &[("Happening", "HappeningRow")];
    const NOT_ANSWERS: &[&str] = &["Page", "Listed"];

    /// Field name to whether it may be null, of every interface of the browser's reading.
    fn interfaces() -> BTreeMap<String, BTreeMap<String, bool>> {
        let mut found: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
        let mut current: Option<String> = None;
        for line in TYPES.iter().flat_map(|file| file.lines()).map(str::trim) {
            if let Some(head) = line.strip_prefix("export interface ") {
                let name = head.split([' ', '<', '{']).next().expect("a name").to_owned();
                let parent = head.split_once("extends ").and_then(|(_, rest)| rest.split([' ', '{']).next());
                let inherited = parent.and_then(|parent| found.get(parent)).cloned().unwrap_or_default();
                found.insert(name.clone(), inherited);
                current = Some(name);
            } else if line == "}" {
                current = None;
            } else if let (Some(name), Some((field, kind))) = (&current, line.split_once(':'))
                && !line.starts_with(['/', '*'])
            {
                let (field, optional) = (field.trim_end_matches('?'), field.ends_with('?'));
                // Only the field's own type: `(number | null)[]` is an array that is always there.
                let own = kind.trim().trim_end_matches(';');
                let nullable = optional || own.ends_with("| null");
                found.get_mut(name).expect("it was opened").insert(field.to_owned(), nullable);
            }
        }
        found
    }

    /// The same of a schema, `allOf` merged.
    fn properties(schema: &Value, all: &Value) -> BTreeMap<String, bool> {
        let mut found = BTreeMap::new();
        if let Some(parts) = schema["allOf"].as_array() {
            parts.iter().for_each(|part| found.extend(properties(part, all)));
        }
        if let Some(reference) = schema["$ref"].as_str() {
            found.extend(properties(&all[reference.rsplit('/').next().expect("a name")], all));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let types = property["type"].as_array().is_some_and(|types| types.iter().any(|one| one == "null"));
            let choices =
                property["oneOf"].as_array().is_some_and(|choices| choices.iter().any(|choice| choice["type"] == "null"));
            found.insert(name.clone(), types || choices);
        }
        found
    }

    #[test]
    fn the_browser_reads_the_fields_that_the_document_promises() {
        let document = serde_json::to_value(document()).expect("plain data");
        let schemas = &document["components"]["schemas"];
        let mut wrong = Vec::new();
        for (interface, fields) in interfaces() {
            if NOT_ANSWERS.contains(&interface.as_str()) {
                continue;
            }
            let name = RENAMED.iter().find(|(ours, _)| *ours == interface).map_or(interface.as_str(), |(_, theirs)| theirs);
            if schemas[name].is_null() {
                wrong.push(format!("{interface} has no schema"));
                continue;
            }
            let promised = properties(&schemas[name], schemas);
            for (field, nullable) in &fields {
                match promised.get(field) {
                    None if interface == "Problem" => {}
                    None => wrong.push(format!("{interface}.{field} is not in the document")),
                    Some(may) if may != nullable => {
                        wrong.push(format!("{interface}.{field}: null allowed {may}, read as {nullable}"))
                    }
                    Some(_) => {}
                }
            }
            wrong.extend(
                promised
                    .keys()
                    .filter(|field| !fields.contains_key(*field))
                    .map(|field| format!("{name}.{field} is not in ui/src/api/types")),
            );
        }
        assert!(wrong.is_empty(), "ui/src/api/types and the OpenAPI document differ:\n  {}", wrong.join("\n  "));
    }

    #[test]
    fn operations_have_a_summary_and_their_own_name() {
        let document = serde_json::to_value(document()).expect("plain data");
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                assert!(operation["summary"].is_string(), "{method} {path} has no summary");
                let name = operation["operationId"].as_str().expect("a name");
                assert!(names.insert(name.to_owned()), "{method} {path}: the operation id {name} is taken");
            }
        }
    }
}
