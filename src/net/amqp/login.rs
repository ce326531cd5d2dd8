//! From a SASL response to a principal, and from what a client says of itself to a connection's name.

use super::{AmqpContext, dispatch};
use crate::access::Login as Credentials;
use crate::broker::{Client, ConnectionInfo, Negotiated, Refused};
use crate::model::happening::{Happening, What};
use crate::model::identity::Principal;
use crate::model::table::{Field, Table};
use crate::model::topology::DEFAULT_SPACE;
use crate::model::{emit, refusal::Refusal};
use crate::wire::amqp::{Login, Reply, ReplyCode, Session};
use std::net::SocketAddr;

/// The mechanism of clients that show a certificate.
const EXTERNAL: &str = "EXTERNAL";

/// Who came in, before it opened a virtual host.
pub(super) struct Guest {
    pub principal: Principal,
    pub mechanism: Box<str>,
    pub client_properties: Table,
}

/// What an event may be answered by.
#[derive(Clone, Copy)]
pub(super) struct Door<'a> {
    pub context: &'a AmqpContext,
    pub place: &'a Place,
    /// Whom the peer's certificate names.
    pub certificate_user: Option<&'a str>,
}

pub(super) fn admit(door: &Door<'_>, login: &Login<'_>) -> Result<Guest, Reply> {
    let (context, peer) = (door.context, door.place.peer);
    let Login { mechanism, user, password, client_properties } = *login;
    let admitted = match door.certificate_user.filter(|_| mechanism == EXTERNAL) {
        Some(user) => context.access.login_by_certificate(user, peer.ip()),
        None => context.access.login(Credentials { mechanism, user, password, peer: peer.ip() }),
    };
    let outcome = if admitted.is_ok() { "user.authentication.success" } else { "user.authentication.failure" };
    context.broker.announce(outcome, || {
        Table::new()
            .with("name", Field::text(user))
            .with("auth_mechanism", Field::text(mechanism))
            .with("protocol", Field::text("{0,9,1}"))
            .with("peer_host", Field::text(peer.ip().to_string()))
            .with("peer_port", Field::I32(peer.port().into()))
    });
    match admitted {
        Ok(principal) => Ok(Guest { principal, mechanism: mechanism.into(), client_properties: client_properties.to_table() }),
        Err(refusal) => {
            tell(context, peer, &refusal);
            // As RabbitMQ says it: why exactly is for the operator alone.
            let text =
                format!("Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.");
            Err(Reply::new(ReplyCode::AccessRefused, text))
        }
    }
}

fn tell(context: &AmqpContext, peer: SocketAddr, refusal: &Refusal) {
    let what = What::ConnectionRefused { door: "amqp", peer: peer.to_string().into(), reason: refusal.to_string().into() };
    emit::happening(Happening { at_ns: context.clock.unix_nanos(), space: DEFAULT_SPACE.into(), what });
}

/// What the broker is told of a connection that opens a virtual host.
pub(super) fn describe(guest: &Guest, session: &Session, place: &Place) -> ConnectionInfo {
    let (capabilities, tune) = (session.capabilities(), session.tune());
    let named = guest.client_properties.get("connection_name").and_then(|name| name.as_str());
    let name = named.map_or_else(|| place.label(), str::to_owned);
    ConnectionInfo {
        name: name.into(),
        peer: place.peer.to_string().into(),
        protocol: place.protocol,
        client_properties: guest.client_properties.clone(),
        frame_max: session.frame_max(),
        negotiated: Negotiated {
            local: place.local,
            peer: Some(place.peer),
            mechanism: (*guest.mechanism).into(),
            channel_max: tune.channel_max,
            heartbeat: tune.heartbeat,
            tls: place.tls,
        },
        supervised: guest.principal.instance.as_ref().map(|identity| (identity.service.clone(), identity.instance.clone())),
        consumer_cancel_notify: capabilities.consumer_cancel_notify,
        connection_blocked: capabilities.connection_blocked,
    }
}

/// Whether the channel that a client has just opened is within its user's limit.
pub(super) fn admit_channel(context: &AmqpContext, client: &Client) -> Result<(), Refused> {
    let user = &client.link().user;
    let limits = context.access.limits(user);
    context.broker.admits_channel(user, limits)
}

/// Lets a guest into a space: it must exist, have room, and be one the guest may enter.
pub(super) fn enter(context: &AmqpContext, principal: Principal, vhost: &str) -> Result<Principal, Reply> {
    let limits = context.access.limits(&principal.user);
    context.broker.admits_connection(vhost, &principal.user, limits).map_err(|refused| dispatch::reply(&refused))?;
    context.access.enter(principal, vhost).map_err(|refusal| Reply::new(ReplyCode::NotAllowed, refusal.what))
}

/// Where a connection comes from and through which door.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub peer: SocketAddr,
    pub local: Option<SocketAddr>,
    pub protocol: &'static str,
    pub tls: bool,
}

impl Place {
    /// As RabbitMQ names connections.
    fn label(&self) -> String {
        match self.local {
            Some(local) => format!("{} -> {local}", self.peer),
            None => self.peer.to_string(),
        }
    }
}
