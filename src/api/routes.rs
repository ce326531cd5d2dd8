//! The list of everything served: one line a route, documented by the same line.

use super::aside::aside;
use super::context::ApiContext;
use super::openapi::Collector;
use super::problem::Problem;
use super::v1::{access, broker, definitions, journeys, lists, messages, node, publish, services, snippets, telemetry, topology};
use super::{guard, health, live, openapi};
use crate::kernel::limit::CONTROL_BODY_BYTES_MAX;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::StatusCode;
use utoipa::openapi::path::HttpMethod;

/// The router of the control port.
pub fn router(context: ApiContext) -> Router {
    api()
        .0
        .fallback(elsewhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(CONTROL_BODY_BYTES_MAX))
        .layer(axum::middleware::from_fn(aside))
        .layer(axum::middleware::from_fn_with_state(context.clone(), guard::check))
        .with_state(context)
}

/// Registers `$handler` under the path and method of its `#[utoipa::path]`.
macro_rules! serve {
    ($router:ident, $collector:ident, $module:ident : $($handler:ident => $document:ident),+ $(,)?) => {$(
        let methods = <$module::$document as utoipa::Path>::methods();
        let path = <$module::$document as utoipa::Path>::path();
        $router = $router.route(&path, on(filter(&methods), $module::$handler));
        $collector.add::<$module::$document>();
    )+};
}

pub(super) fn api() -> (Router<ApiContext>, Collector) {
    let mut router = Router::new();
    let mut collector = Collector::default();
    serve!(router, collector, health: healthz => __path_healthz);
    serve!(router, collector, node: version => __path_version, ports => __path_ports, environment => __path_environment,
        overview => __path_overview, spaces => __path_spaces, create_space => __path_create_space, delete_space => __path_delete_space);
    serve!(router, collector, services:
        list => __path_list, one => __path_one, command => __path_command, console => __path_console);
    serve!(router, collector, telemetry:
        logs => __path_logs, histogram => __path_histogram, traces => __path_traces, scatter => __path_scatter,
        trace => __path_trace, metrics => __path_metrics, series => __path_series, happenings => __path_happenings,
        map => __path_map, tape => __path_tape);
    serve!(router, collector, broker:
        queues => __path_queues, queue => __path_queue, exchanges => __path_exchanges,
        exchange => __path_exchange, bindings => __path_bindings, connections => __path_connections, connection => __path_connection,
        close => __path_close);
    serve!(router, collector, lists:
        queue_page => __path_queue_page, exchange_page => __path_exchange_page, connection_page => __path_connection_page,
        channel_page => __path_channel_page, consumer_page => __path_consumer_page);
    serve!(router, collector, access:
        policies => __path_policies, put_policy => __path_put_policy, delete_policy => __path_delete_policy,
        users => __path_users, put_user => __path_put_user, delete_user => __path_delete_user,
        permissions => __path_permissions, put_permission => __path_put_permission, delete_permission => __path_delete_permission,
        space => __path_space, put_space_limits => __path_put_space_limits, topic_permissions => __path_topic_permissions,
        put_topic_permission => __path_put_topic_permission, delete_topic_permission => __path_delete_topic_permission);
    serve!(router, collector, journeys: journeys => __path_journeys, journey => __path_journey);
    serve!(router, collector, messages:
        messages => __path_messages, message => __path_message, delete_message => __path_delete_message,
        move_messages => __path_move_messages, redrive_plan => __path_redrive_plan, redrive => __path_redrive,
        purge_queue => __path_purge_queue);
    serve!(router, collector, publish: publish => __path_publish, route => __path_route);
    serve!(router, collector, topology:
        declare_queue => __path_declare_queue, delete_queue => __path_delete_queue,
        declare_exchange => __path_declare_exchange, delete_exchange => __path_delete_exchange,
        bind => __path_bind, unbind => __path_unbind);
    serve!(router, collector, definitions:
        export => __path_export, plan => __path_plan, apply => __path_apply, changes => __path_changes);
    serve!(router, collector, snippets: snippets => __path_snippets);
    serve!(router, collector, live: live => __path_live);
    serve!(router, collector, openapi: openapi => __path_openapi);
    (router, collector)
}

/// No route matches: the dashboard's files, except below `/api`.
async fn elsewhere(State(context): State<ApiContext>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/api" || path.starts_with("/api/") {
        return Problem::not_found(format!("no such resource: {path}"))
            .next("/api/v1/openapi.json lists every path")
            .into_response();
    }
    context.ui.answer(request.method(), request.uri(), request.headers()).await
}

async fn wrong_method(request: Request) -> Response {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} does not take {}", request.uri().path(), request.method()))
        .next("/api/v1/openapi.json lists every path with its methods")
        .into_response()
}

fn filter(methods: &[HttpMethod]) -> MethodFilter {
    let filters = methods.iter().map(|method| match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    });
    filters.reduce(MethodFilter::or).expect("an operation has a method")
}
