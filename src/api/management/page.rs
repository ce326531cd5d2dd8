//! The few pages: what this port is, the list of its paths, and where the command line tool is found.

use super::answer::harden;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fff}code{background:#f2f2f2;padding:0 .25em;border-radius:3px}td{padding:.1rem 1rem .1rem 0;vertical-align:top}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code{background:#2a2a2a}}";

fn page(title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}</html>\n"
    );
    let mut response = Html(html).into_response();
    harden(response.headers_mut());
    response
}

pub async fn root() -> Response {
    page(
        "RabbitMQ management API of reactor",
        "<p>Programs that manage RabbitMQ work with this port: the paths are below <a href=\"/api/\"><code>/api</code></a>, with HTTP \
         Basic authentication (<code>guest</code>/<code>guest</code> from this machine).</p><p>To look at things yourself, open the \
         dashboard: port 15000 unless moved.</p>",
    )
}

pub async fn api() -> Response {
    let rows: String = super::routes::PATHS
        .iter()
        .map(|(methods, path)| format!("<tr><td><code>{methods}</code></td><td><code>/api{path}</code></td></tr>"))
        .collect();
    page(
        "RabbitMQ management HTTP API",
        &format!(
            "<p>As RabbitMQ 3.13 answers it. A virtual host <code>/</code> is written <code>%2F</code>; lists take \
             <code>columns</code>, <code>sort</code>, <code>sort_reverse</code> and, where there may be many, <code>page</code>, \
             <code>page_size</code>, <code>name</code> and <code>use_regex</code>.</p><table>{rows}</table>"
        ),
    )
}

pub async fn cli() -> Response {
    page(
        "rabbitmqadmin",
        "<p>The classic <code>rabbitmqadmin</code> is RabbitMQ's own program and is not part of reactor. Every RabbitMQ serves it (<code>\
         http://HOST:15672/cli/rabbitmqadmin</code>) and Debian's package <code>rabbitmq-server</code> brings it; it works with this \
         port unchanged: <code>rabbitmqadmin -H localhost -P 15672 list queues</code>. So does the newer <code>rabbitmqadmin</code> \
         of the crate <code>rabbitmqadmin</code>.</p>",
    )
}

/// The script itself is not ours to give.
pub async fn cli_script() -> Response {
    let text = "rabbitmqadmin is RabbitMQ's own program and is not part of reactor.\n\
        Take it from any RabbitMQ (http://HOST:15672/cli/rabbitmqadmin), from Debian's package rabbitmq-server, or\n\
        install the newer one: cargo install rabbitmqadmin. Both work with this port unchanged.\n";
    let mut response = (StatusCode::NOT_FOUND, text).into_response();
    harden(response.headers_mut());
    response
}
