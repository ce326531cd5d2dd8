//! The list of everything served below `/api`, one line a path.

use super::answer::{Failure, harden, status};
use super::context::ManagementContext;
use super::{
    bindings, channels, connections, definitions, exchanges, features, guard, health, messages, nodes, overview, page, policies,
    queues, users, vhosts,
};
use crate::api::aside::aside;
use crate::kernel::limit::CONTROL_BODY_BYTES_MAX;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::{Method, StatusCode};

/// Registers routes and keeps their list for the page that shows them.
macro_rules! routes {
    ($($path:literal => $first:ident($first_handler:path) $(.$next:ident($next_handler:path))*;)*) => {
        /// Methods and path of everything below `/api`.
        pub const PATHS: &[(&str, &str)] = &[$((concat!(stringify!($first) $(, " ", stringify!($next))*), $path)),*];

        fn api() -> Router<ManagementContext> {
            // A slash at the end changes nothing; Flower sends one.
            Router::new()$(
                .route(concat!("/api", $path), $first($first_handler)$(.$next($next_handler))*)
                .route(concat!("/api", $path, "/"), $first($first_handler)$(.$next($next_handler))*)
            )*
        }
    };
}

routes! {
    "/overview" => get(overview::overview);
    "/cluster-name" => get(overview::cluster_name).put(overview::set_cluster_name);
    "/whoami" => get(overview::whoami);
    "/extensions" => get(overview::extensions);
    "/version" => get(overview::version);
    "/rebalance/queues" => post(overview::rebalance);
    "/auth/attempts/{node}" => get(overview::auth_attempts);
    "/auth/attempts/{node}/source" => get(overview::auth_attempts_by_source);
    "/nodes" => get(nodes::list);
    "/nodes/{node}" => get(nodes::one);
    "/nodes/{node}/memory" => get(nodes::memory);
    "/connections" => get(connections::list);
    "/connections/{name}" => get(connections::one).delete(connections::close);
    "/connections/{name}/channels" => get(channels::of_connection);
    "/connections/username/{user}" => get(connections::of_user).delete(connections::close_of_user);
    "/channels" => get(channels::list);
    "/channels/{name}" => get(channels::one);
    "/consumers" => get(channels::consumers);
    "/consumers/{vhost}" => get(channels::consumers_of_space);
    "/exchanges" => get(exchanges::list);
    "/exchanges/{vhost}" => get(exchanges::of_space);
    "/exchanges/{vhost}/{name}" => get(exchanges::one).put(exchanges::declare).delete(exchanges::delete);
    "/exchanges/{vhost}/{name}/publish" => post(messages::publish);
    "/exchanges/{vhost}/{name}/bindings/source" => get(bindings::from_exchange);
    "/exchanges/{vhost}/{name}/bindings/destination" => get(bindings::to_exchange);
    "/queues" => get(queues::list);
    "/queues/detailed" => get(queues::list);
    "/queues/{vhost}" => get(queues::of_space);
    "/queues/{vhost}/{name}" => get(queues::one).put(queues::declare).delete(queues::delete);
    "/queues/{vhost}/{name}/bindings" => get(bindings::of_queue);
    "/queues/{vhost}/{name}/contents" => delete(queues::purge);
    "/queues/{vhost}/{name}/get" => post(messages::get);
    "/queues/{vhost}/{name}/actions" => post(queues::act);
    "/bindings" => get(bindings::list);
    "/bindings/{vhost}" => get(bindings::of_space);
    "/bindings/{vhost}/e/{source}/{kind}/{destination}" => get(bindings::of_pair).post(bindings::bind);
    "/bindings/{vhost}/e/{source}/{kind}/{destination}/{props}" => get(bindings::one).delete(bindings::unbind);
    "/vhosts" => get(vhosts::list);
    "/vhosts/{vhost}" => get(vhosts::one).put(vhosts::declare).delete(vhosts::delete);
    "/vhosts/{vhost}/start/{node}" => post(vhosts::start);
    "/vhosts/{vhost}/connections" => get(connections::of_space);
    "/vhosts/{vhost}/channels" => get(channels::of_space);
    "/vhosts/{vhost}/permissions" => get(users::permissions_in);
    "/vhosts/{vhost}/topic-permissions" => get(users::topic_permissions_in);
    "/vhosts/{vhost}/deletion/protection" => post(vhosts::protect).delete(vhosts::unprotect);
    "/vhost-limits" => get(vhosts::limits);
    "/vhost-limits/{vhost}" => get(vhosts::limits_of);
    "/vhost-limits/{vhost}/{name}" => put(vhosts::set_limit).delete(vhosts::clear_limit);
    "/users" => get(users::list);
    "/users/without-permissions" => get(users::without_permissions);
    "/users/bulk-delete" => post(users::bulk_delete);
    "/users/{user}" => get(users::one).put(users::declare).delete(users::delete);
    "/users/{user}/permissions" => get(users::permissions_of);
    "/users/{user}/topic-permissions" => get(users::topic_permissions_of);
    "/user-limits" => get(users::limits);
    "/user-limits/{user}" => get(users::limits_of);
    "/user-limits/{user}/{name}" => put(users::set_limit).delete(users::clear_limit);
    "/permissions" => get(users::permissions);
    "/permissions/{vhost}/{user}" => get(users::permission).put(users::set_permission).delete(users::clear_permission);
    "/topic-permissions" => get(users::topic_permissions);
    "/topic-permissions/{vhost}/{user}" => get(users::topic_permission).put(users::set_topic_permission).delete(users::clear_topic_permission);
    "/topic-permissions/{vhost}/{user}/{exchange}" => delete(users::clear_topic_permission_on);
    "/policies" => get(policies::list);
    "/policies/{vhost}" => get(policies::of_space);
    "/policies/{vhost}/{name}" => get(policies::one).put(policies::declare).delete(policies::delete);
    "/operator-policies" => get(policies::operator_list);
    "/operator-policies/{vhost}" => get(policies::operator_of_space);
    "/operator-policies/{vhost}/{name}" => get(policies::operator_one).put(policies::operator_declare).delete(policies::operator_delete);
    "/parameters" => get(policies::parameters);
    "/parameters/{component}" => get(policies::parameters_of);
    "/parameters/{component}/{vhost}" => get(policies::parameters_in);
    "/parameters/{component}/{vhost}/{name}" => get(policies::parameter).put(policies::set_parameter).delete(policies::clear_parameter);
    "/global-parameters" => get(policies::global_parameters);
    "/global-parameters/{name}" => get(policies::global_parameter).put(policies::set_global_parameter).delete(policies::clear_global_parameter);
    "/definitions" => get(definitions::export).post(definitions::import);
    "/definitions/{vhost}" => get(definitions::export_space).post(definitions::import_space);
    "/feature-flags" => get(features::flags);
    "/feature-flags/{name}/enable" => put(features::enable);
    "/deprecated-features" => get(features::deprecated);
    "/deprecated-features/used" => get(features::deprecated_used);
    "/stream/connections" => get(overview::none);
    "/stream/connections/{vhost}" => get(overview::none);
    "/stream/publishers" => get(overview::none);
    "/stream/publishers/{vhost}" => get(overview::none);
    "/stream/publishers/{vhost}/{queue}" => get(overview::none);
    "/stream/consumers" => get(overview::none);
    "/stream/consumers/{vhost}" => get(overview::none);
    "/shovels" => get(overview::none);
    "/shovels/{vhost}" => get(overview::none);
    "/federation-links" => get(overview::none);
    "/federation-links/{vhost}" => get(overview::none);
    "/aliveness-test/{vhost}" => get(health::aliveness);
    "/healthchecks/node" => get(health::local_alarms);
    "/healthchecks/node/{node}" => get(health::local_alarms);
    "/health/checks/alarms" => get(health::alarms);
    "/health/checks/local-alarms" => get(health::local_alarms);
    "/health/checks/port-listener/{port}" => get(health::port_listener);
    "/health/checks/protocol-listener/{protocol}" => get(health::protocol_listener);
    "/health/checks/virtual-hosts" => get(health::virtual_hosts);
    "/health/checks/node-is-quorum-critical" => get(health::quorum);
    "/health/checks/node-is-mirror-sync-critical" => get(health::quorum);
    "/health/checks/certificate-expiration/{within}/{unit}" => get(health::certificates);
    "/health/checks/is-in-service" => get(health::serving);
    "/health/checks/ready-to-serve-clients" => get(health::serving);
    "/health/checks/below-node-connection-limit" => get(health::below_connection_limit);
}

/// The router of the management port.
pub fn router(context: ManagementContext) -> Router {
    let api = api()
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(CONTROL_BODY_BYTES_MAX))
        .layer(axum::middleware::from_fn(aside))
        .layer(axum::middleware::from_fn_with_state(context.clone(), guard::check));
    Router::new()
        .merge(api)
        .route("/", get(page::root))
        .route("/api", get(page::api))
        .route("/api/", get(page::api))
        .route("/api/auth", get(overview::auth))
        .route("/cli", get(page::cli))
        .route("/cli/", get(page::cli))
        .route("/cli/rabbitmqadmin", get(page::cli_script))
        .fallback(elsewhere)
        .with_state(context)
}

async fn elsewhere() -> Response {
    let mut response = Failure::no_object().into_response();
    harden(response.headers_mut());
    response
}

/// Asked for the methods there are, the `Allow` field is the answer.
async fn wrong_method(request: Request) -> Response {
    status(if request.method() == Method::OPTIONS { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED })
}
