//! Connections that leave HTTP behind: after the service agreed, bytes are copied both ways and not looked at.

use super::body::{self, GatewayBody};
use super::exchange::Exchange;
use super::hygiene;
use super::inbound::Switch;
use super::upstream::InFlight;
use crate::kernel::{Drain, rng};
use base64::Engine as _;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// Asks the service to switch.
pub(super) fn ask(headers: &mut HeaderMap, token: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, token);
}

/// A `Sec-WebSocket-Key`, which extended CONNECT has none of (RFC 8441 §5).
pub(super) fn fresh_key() -> HeaderValue {
    let key = base64::engine::general_purpose::STANDARD.encode(rng::secure::<16>());
    HeaderValue::from_str(&key).expect("base64 is a field value")
}

/// The service's agreement, in the form of the client's version.
pub(super) fn agree<B>(response: Response<B>, switch: &Switch) -> Response<GatewayBody> {
    let mut response = response.map(|_| body::empty());
    let token = response.headers().get(header::UPGRADE).cloned();
    hygiene::strip_hop_by_hop(response.headers_mut());
    match switch {
        Switch::Upgrade(asked) => ask(response.headers_mut(), token.unwrap_or_else(|| asked.clone())),
        Switch::Connect => {
            *response.status_mut() = StatusCode::OK;
            response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
        }
    }
    response
}

/// The two halves of an agreed switch.
pub(super) struct Tunnel {
    client: OnUpgrade,
    service: OnUpgrade,
    in_flight: InFlight,
}

impl Tunnel {
    pub(super) fn new(client: OnUpgrade, service: OnUpgrade, in_flight: InFlight) -> Self {
        Tunnel { client, service, in_flight }
    }

    /// Copies until one side closes, or the drain begins: an upgraded connection has no end of its own to wait for. Its exchange
    /// lasts as long.
    pub(super) async fn run(self, exchange: Exchange, drain: Drain) {
        let copy = async {
            let (client, service) = tokio::try_join!(self.client, self.service).map_err(std::io::Error::other)?;
            tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(service)).await
        };
        tokio::select! {
            copied = copy => match copied {
                Ok((to_service, to_client)) => tracing::debug!(to_service, to_client, "upgraded connection closed"),
                Err(error) => tracing::debug!(%error, "upgraded connection broke"),
            },
            () = drain.begun() => {}
        }
        drop((exchange, self.in_flight));
    }
}
