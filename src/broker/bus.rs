//! Calls of the gateway: an HTTP-shaped message onto `reactor.call`, to exactly one queue, with an address for its reply
//! (contract §2 to §5).

use super::call::{CallState, Guard};
use super::core::Broker;
use super::effects::Effects;
use super::message::{Extra, Meta, Run};
use super::record;
use super::reply::Target;
use super::route::{Resolution, Resolved, Routes};
use super::trace::{self, Beside};
use super::vhost::Vhost;
use crate::model::call::{Call, CallBus, CallFailure, CallGuard, CallObserver};
use crate::model::topology::CALL_EXCHANGE;
use crate::model::trace_context::TraceContext;
use crate::wire::amqp::PropertyList;
use crate::wire::amqp::primitive::Writer;
use crate::wire::amqp::table::RawTable;
use bytes::BytesMut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The user of every call of the gateway: nobody can log in as it, and brokers check `user_id`.
const GATEWAY_USER: &str = "reactor.gateway";
const DELIVERY_TRANSIENT: u8 = 1;

impl CallBus for Broker {
    fn call(&self, call: Call, observer: Arc<dyn CallObserver>) -> Result<CallGuard, CallFailure> {
        let vhost = self.vhost(&call.space).ok_or(CallFailure::Unbound { attached: Vec::new() })?;
        let resolved = vhost.resolve_call(&call.key)?;
        if self.shared.has_alarm() {
            return Err(CallFailure::Full { queue: resolved.queue.name.to_string() });
        }
        if resolved.queue.consumer_count() == 0 {
            let now_ms = self.shared.clock.now().as_nanos() / 1_000_000;
            let since = resolved.queue.last_consumer_ms().map(|ms| Duration::from_millis(now_ms.saturating_sub(ms)));
            return Err(CallFailure::NoConsumer { service: resolved.service, last_seen: since });
        }
        let state = CallState::new(resolved.service.as_str().into(), observer, &vhost);
        vhost.replies.insert(state.address, Target::Call(state.clone()));
        let guard = Guard(state.clone());
        match vhost.send_call(&call, &resolved, &state) {
            true => Ok(Box::new(guard)),
            false => Err(CallFailure::Full { queue: resolved.queue.name.to_string() }),
        }
    }

    fn attached(&self, space: &str) -> Vec<String> {
        self.vhost(space).map(|vhost| vhost.called_services()).unwrap_or_default()
    }
}

impl Vhost {
    fn called_services(&self) -> Vec<String> {
        match self.topology().exchanges.get(CALL_EXCHANGE).map(|exchange| &exchange.routes) {
            Some(Routes::Call(calls)) => calls.services(),
            _ => Vec::new(),
        }
    }

    fn resolve_call(&self, key: &str) -> Result<Resolved, CallFailure> {
        let resolution = match self.topology().exchanges.get(CALL_EXCHANGE).map(|exchange| &exchange.routes) {
            Some(Routes::Call(calls)) => calls.resolve(key, true),
            _ => Resolution::Unbound,
        };
        match resolution {
            Resolution::To(resolved) => Ok(resolved),
            Resolution::Unbound => Err(CallFailure::Unbound { attached: self.called_services() }),
            Resolution::NoSuchVersion { service, version, attached } => {
                Err(CallFailure::NoSuchVersion { service, version, attached })
            }
        }
    }

    /// False if the queue is full and refused it.
    fn send_call(&self, call: &Call, resolved: &Resolved, state: &Arc<CallState>) -> bool {
        let now = self.shared.clock.now();
        let properties = properties(call, state, self.shared.epoch_ns + now.as_nanos());
        let key = resolved.key.as_deref().unwrap_or(&call.key);
        let mut segment = BytesMut::with_capacity(record::room(CALL_EXCHANGE, key, &properties, &call.body));
        let key_len = record::write_key(&mut segment, CALL_EXCHANGE, key);
        record::write_content(&mut segment, &properties, &call.body);
        let meta = Meta { at: 0, len: segment.len() as u32, key_len, extra: true };
        let extra = Extra {
            body: (call.body.len() >= record::INLINE_BODY_MAX).then(|| call.body.clone()),
            expires_at: Some(now + call.deadline),
            trace: trace_of(call),
            call: Some(state.clone()),
            ..Extra::default()
        };
        let segment = segment.freeze();
        let run = Run { segment: &segment, metas: &[meta], extras: &[(0, extra)], first: 0, now };
        let mut effects = Effects::new(now);
        if self.taps.is_on() {
            self.tap_call(&run, &resolved.queue, &mut effects);
        }
        if let Some(seq) = resolved.queue.offer(&run, &mut effects) {
            state.queued(&resolved.queue, seq);
        }
        let refused = !effects.take_refused().is_empty();
        self.shared.counts.published.add(1);
        self.ended().publish += 1;
        if let Some(exchange) = self.topology().exchanges.get(CALL_EXCHANGE) {
            exchange.stats.published.fetch_add(1, Ordering::Relaxed);
            exchange.stats.routed.fetch_add(1, Ordering::Relaxed);
        }
        effects.run(&self.shared);
        !refused
    }
}

/// The gateway recorded the call's span already; what the broker records hangs on it.
fn trace_of(call: &Call) -> Option<Beside> {
    let (_, value) = call.fields.iter().find(|(name, _)| name == "traceparent")?;
    let context = TraceContext::parse(std::str::from_utf8(value).ok()?)?;
    trace::is_kept(&context).then(|| context.into())
}

fn properties(call: &Call, state: &CallState, unix_ns: u64) -> Vec<u8> {
    let mut headers = Vec::with_capacity(call.fields.iter().map(|(name, value)| name.len() + value.len() + 6).sum());
    for (name, value) in call.fields.iter().filter(|(name, _)| name.len() <= 255) {
        let mut writer = Writer::new(&mut headers);
        writer.short_str(name);
        writer.put(b"S");
        writer.long_bytes(value);
    }
    let address = state.address.text();
    let expiration = call.deadline.as_millis().to_string();
    let short = |text: &Option<String>| text.as_deref().filter(|text| text.len() <= 255).map(str::to_owned);
    let (content_type, content_encoding) = (short(&call.content_type), short(&call.content_encoding));
    PropertyList {
        content_type: content_type.as_deref(),
        content_encoding: content_encoding.as_deref(),
        headers: RawTable::check(&headers).ok(),
        delivery_mode: Some(DELIVERY_TRANSIENT),
        priority: None,
        correlation_id: Some(&state.correlation),
        reply_to: Some(&address),
        expiration: Some(&expiration),
        message_id: Some(&call.request_id).filter(|id| id.len() <= 255).map(String::as_str),
        timestamp: Some(unix_ns / 1_000_000_000),
        kind: Some("http.request"),
        user_id: Some(GATEWAY_USER),
        app_id: Some(GATEWAY_USER),
        cluster_id: None,
    }
    .to_bytes()
}
