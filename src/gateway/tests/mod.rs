//! The service contract, sentence by sentence, through [`Gateway::handle`] with a scripted bus.

mod bus;
mod failures;
mod http_services;

use super::testing::{FakeBus, TestGateway, gateway};
use super::{ClientConn, GatewayBody, Scheme};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use std::sync::Arc;

fn get(target: &str) -> request::Builder {
    Request::builder().uri(target).header("host", "localhost:16000")
}

fn conn(peer: &str) -> Arc<ClientConn> {
    ClientConn::new(format!("{peer}:40000").parse().expect("an address"), Scheme::Http)
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answered {
    async fn of(response: Response<GatewayBody>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Answered { status: parts.status, headers: parts.headers, body }
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl TestGateway {
    async fn start(&self, request: request::Builder, body: &str) -> Response<GatewayBody> {
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request");
        self.gateway.clone().handle(request, conn("127.0.0.1")).await
    }

    async fn send(&self, request: request::Builder, body: &str) -> Answered {
        Answered::of(self.start(request, body).await).await
    }
}

fn plain(bus: &Arc<FakeBus>) -> TestGateway {
    gateway(bus.clone(), |_| {})
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}
