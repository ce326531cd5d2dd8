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
