//! Services: what there is, starting and stopping what reactor owns, consoles.

use crate::api::ApiContext;
use crate::api::params::{Params, PathParts};
use crate::api::problem::Problem;
use crate::api::view::{self, ConsoleLine, Service};
use crate::supervisor::Command;
use crate::telemetry::view::Page;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

const CONSOLE_LINES_DEFAULT: usize = 500;
const CONSOLE_LINES_MAX: usize = 5_000;

/// Which services.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SpaceParams {
    /// Only of this space; all spaces if absent.
    pub space: Option<String>,
}

impl SpaceParams {
    pub fn takes(&self, space: &str) -> bool {
        self.space.as_deref().is_none_or(|wanted| wanted == space)
    }
}

/// Every service, however it is known; the gateway first.
#[utoipa::path(get, path = "/api/v1/services", tag = "services", params(SpaceParams), responses((status = 200, body = [Service])))]
pub async fn list(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Json<Vec<Service>> {
    Json(view::services(&context.sources).into_iter().filter(|service| params.takes(&service.space)).collect())
}

/// One service.
#[utoipa::path(get, path = "/api/v1/services/{name}", tag = "services", params(("name" = String, Path), SpaceParams), responses(
    (status = 200, body = Service), (status = 404, body = Problem)))]
pub async fn one(
    State(context): State<ApiContext>,
    PathParts(name): PathParts<String>,
    Params(params): Params<SpaceParams>,
) -> Result<Json<Service>, Problem> {
    find(&context, &name, &params).map(Json)
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceCommand {
    Start,
    Stop,
    Restart,
}

/// Which instance.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct InstanceParams {
    /// `greeter-1`; every instance if absent.
    instance: Option<String>,
}

/// Starts, stops or restarts a service that reactor runs. Answers at once; the service's state shows the progress.
#[utoipa::path(post, path = "/api/v1/services/{name}/{command}", tag = "services", params(
    ("name" = String, Path), ("command" = inline(ServiceCommand), Path), InstanceParams
), responses((status = 202, description = "on its way"), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn command(
    State(context): State<ApiContext>,
    PathParts((name, command)): PathParts<(String, ServiceCommand)>,
    Params(params): Params<InstanceParams>,
) -> Result<StatusCode, Problem> {
    let service = find(&context, &name, &SpaceParams::default())?;
    if !service.owned {
        return Err(Problem::new(StatusCode::CONFLICT, format!("reactor did not start {name}, so it cannot start or stop it"))
            .next(format!("name its command under [services.{name}] in reactor.toml to have reactor run it")));
    }
    let command = match command {
        ServiceCommand::Start => Command::Start,
        ServiceCommand::Stop => Command::Stop,
        ServiceCommand::Restart => Command::Restart,
    };
    context.sources.supervisor.command(&name, params.instance.as_deref(), command)?;
    Ok(StatusCode::ACCEPTED)
}

/// Which lines of a console.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ConsoleParams {
    /// `greeter-1`; the first instance if absent.
    instance: Option<String>,
    /// Only lines with a smaller sequence number: the `before` of the last page.
    before: Option<u64>,
    /// 500 unless given, at most 5,000.
    limit: Option<usize>,
}

/// What an instance printed, colours and all, across its restarts; newest page first, oldest first within a page.
#[utoipa::path(get, path = "/api/v1/services/{name}/console", tag = "services", params(("name" = String, Path), ConsoleParams), responses(
    (status = 200, body = Page<ConsoleLine>), (status = 404, body = Problem)))]
pub async fn console(
    State(context): State<ApiContext>,
    PathParts(name): PathParts<String>,
    Params(params): Params<ConsoleParams>,
) -> Result<Json<Page<ConsoleLine>>, Problem> {
    let started = context.clock.now();
    let console = view::console(&context.sources, &name, params.instance.as_deref())?;
    let limit = params.limit.unwrap_or(CONSOLE_LINES_DEFAULT).clamp(1, CONSOLE_LINES_MAX);
    let next = *console.changes().borrow();
    let end = params.before.unwrap_or(next).min(next);
    let page = console.page(end.saturating_sub(limit as u64), limit);
    let rows: Vec<ConsoleLine> = page.lines.iter().filter(|line| line.seq < end).map(ConsoleLine::from).collect();
    let oldest = console.page(0, 1);
    let first_seq = rows.first().map_or(end, |row| row.seq);
    Ok(Json(Page {
        before: (first_seq > oldest.first_seq).then_some(first_seq),
        matched: next.saturating_sub(oldest.first_seq),
        outside: 0,
        oldest_us: oldest.lines.first().map(|line| line.at_ns / 1_000),
        took_ns: view::json::nanos(context.clock.now().since(started)),
        rows,
    }))
}

fn find(context: &ApiContext, name: &str, params: &SpaceParams) -> Result<Service, Problem> {
    let mut services = view::services(&context.sources).into_iter();
    services.find(|service| &*service.name == name && params.takes(&service.space)).ok_or_else(|| {
        Problem::not_found(format!("no service {name} is known")).next("GET /api/v1/services lists those that are")
    })
}
