//! `/api/definitions`: everything that is defined, out and in again; of the whole broker or of one space.

use super::answer::{Answer, Failure, done, json};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::Query;
use crate::control::{Document, Scope};
use crate::model::identity::Permissions;
use crate::model::space::RABBITMQ_VERSION;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::{Value, json};

pub async fn export(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    let document = Document::of(&context.control.definitions());
    Ok(download(written(&document), &query))
}

pub async fn export_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    caller.must_administer()?;
    if context.vhost(&space).is_none() {
        return Err(Failure::bad("vhost_not_found"));
    }
    let mut definitions = context.control.definitions();
    definitions.spaces.retain(|name, _| **name == *space);
    definitions.catalog.retain(|key| key.space() == Some(space.as_str()));
    Ok(download(written(&Document::of(&definitions).of_one_space()), &query))
}

fn written(document: &Document) -> Value {
    let mut value = json!(document);
    if let Value::Object(fields) = &mut value {
        fields.insert("product_name".into(), "RabbitMQ".into());
        fields.insert("product_version".into(), RABBITMQ_VERSION.into());
        fields.insert(
            "rabbitmq_definition_format".into(),
            if document.vhosts.is_some() { "cluster" } else { "single_virtual_host" }.into(),
        );
    }
    value
}

/// With `?download=NAME` a browser keeps it as a file.
fn download(value: Value, query: &Query) -> Response {
    let mut response = json(value);
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    if let Some(name) = query.get("download").filter(|name| !name.is_empty()).filter(plain)
        && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename={name}"))
    {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

pub async fn import(State(context): State<ManagementContext>, caller: Caller, fields: Fields) -> Answer {
    caller.must_administer()?;
    apply(&context, &caller, read(fields)?)
}

pub async fn import_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    if context.vhost(&space).is_none() {
        return Err(Failure::bad("vhost_not_found"));
    }
    apply(&context, &caller, read(fields)?.into_space(&space)?)
}

fn read(fields: Fields) -> Result<Document, Failure> {
    serde_json::from_value(Value::Object(fields.0))
        .map_err(|wrong| Failure::bad(format!("the definitions cannot be read: {wrong}")))
}

/// As RabbitMQ imports: what is missing is made; a queue or exchange that exists stays as it is.
fn apply(context: &ManagementContext, caller: &Caller, document: Document) -> Answer {
    let mut wanted = document.definitions()?;
    for (space, things) in &mut wanted.spaces {
        let Some(vhost) = context.vhost(space) else {
            if document.vhosts.iter().flatten().any(|known| *known.name == **space) {
                continue;
            }
            return Err(Failure::bad(vec!["no_such_vhost".to_owned(), space.to_string()]));
        };
        things.queues.retain(|spec| vhost.queue(&spec.name).is_none());
        let known = vhost.exchanges();
        things.exchanges.retain(|spec| !known.iter().any(|exchange| *exchange.name == *spec.name));
    }
    // Administrators define what is in spaces that they have no business in themselves, too.
    let by = caller.principal.clone().with(Permissions::All);
    context.control.apply(&wanted, Scope::Named, &by)?;
    Ok(done())
}
