//! Where a message published to a space goes: from exchange to exchange until queues are found.
//!
//! Every exchange is asked once and every queue gets one copy, however bindings lead round. An exchange whose bindings take nothing
//! hands the message to its alternate, if it has one; only what finds no queue at the end of all that is unroutable.

use super::delay::delay_of;
use super::refused::Refused;
use super::route::{Found, Looked, Queues, Resolution, Routes, once_each};
use super::topology::{Exchange, ExchangeStats, Topology};
use super::vhost::{Vhost, must_topic, no_access};
use crate::model::identity::{Action, Principal};
use crate::model::topology::ExchangeKind;
use crate::wire::amqp::Properties;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub exchange: &'a str,
    pub key: &'a str,
    /// Further keys that the sender chose (headers `CC` and `BCC`).
    pub cc: &'a [String],
    pub properties: Properties<'a>,
}

/// Where messages of one exchange and key go.
#[derive(Debug)]
pub(super) struct Route {
    pub queues: Queues,
    pub stats: Arc<ExchangeStats>,
    /// The key to deliver with, if not the one published.
    pub key: Option<String>,
    /// Exchanges on the way that keep the message for a while.
    pub delays: Vec<(Arc<str>, Duration)>,
    /// May be used again for the same exchange and key until the topology changes.
    pub lasting: bool,
}

/// What a permission calls the exchange without a name.
const DEFAULT_EXCHANGE: &str = "amq.default";

impl Vhost {
    /// Where a message goes that `principal` publishes.
    pub(super) fn route(&self, asked: &Asked<'_>, principal: &Principal) -> Result<Route, Refused> {
        let name = if asked.exchange.is_empty() { DEFAULT_EXCHANGE } else { asked.exchange };
        if !principal.may(Action::Write, name) {
            return Err(no_access(principal, Action::Write, "exchange", name, self.name()));
        }
        let topology = self.topology();
        if asked.exchange.is_empty() {
            let (queues, stats) = (topology.route_by_name(asked), topology.default_stats.clone());
            return Ok(Route { queues, stats, key: None, delays: Vec::new(), lasting: asked.cc.is_empty() });
        }
        let exchange = topology.exchanges.get(asked.exchange).ok_or_else(|| self.no_exchange(asked.exchange))?;
        if exchange.spec.internal {
            let text = format!("cannot publish to internal exchange '{name}' in vhost '{}'", self.name());
            return Err(Refused::AccessRefused(text));
        }
        if exchange.spec.kind == ExchangeKind::Topic {
            must_topic(principal, Action::Write, name, asked.key, self.name())?;
        }
        Ok(topology.follow(exchange, asked))
    }

    /// Where a message goes that the broker itself publishes: nobody's permission is asked, and internal exchanges take it. `None` if
    /// there is no such exchange.
    pub(super) fn route_unasked(&self, asked: &Asked<'_>) -> Option<Route> {
        let topology = self.topology();
        if asked.exchange.is_empty() {
            let (queues, stats) = (topology.route_by_name(asked), topology.default_stats.clone());
            return Some(Route { queues, stats, key: None, delays: Vec::new(), lasting: false });
        }
        topology.exchanges.get(asked.exchange).map(|exchange| topology.follow(exchange, asked))
    }
}

impl Topology {
    /// The default exchange: keys are queues' names.
    pub fn route_by_name(&self, asked: &Asked<'_>) -> Queues {
        let keys = std::iter::once(asked.key).chain(asked.cc.iter().map(String::as_str));
        let mut queues: Queues = keys.filter_map(|key| self.queues.get(key).cloned()).collect();
        once_each(&mut queues);
        queues
    }

    /// Follows bindings and alternates from `first`.
    pub fn follow(&self, first: &Exchange, asked: &Asked<'_>) -> Route {
        let (queues, stats, delays) = (Queues::new(), first.stats.clone(), Vec::new());
        let mut route = Route { queues, stats, key: None, delays, lasting: asked.cc.is_empty() };
        let mut waiting: SmallVec<[&Exchange; 4]> = SmallVec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut found = Found::default();
        let mut next = Some(first);
        while let Some(exchange) = next {
            route.lasting &= exchange.routes.is_lasting() && exchange.spec.kind != ExchangeKind::Delayed;
            if exchange.spec.kind == ExchangeKind::Delayed
                && let Some(delay) = delay_of(asked.properties)
            {
                route.delays.push((exchange.name.clone(), delay));
                next = waiting.pop();
                continue;
            }
            let before = found.count();
            exchange.ask(asked, &mut found, std::ptr::eq(exchange, first).then_some(&mut route.key));
            if found.count() == before {
                found.exchanges.extend(exchange.alternate.clone());
            }
            for name in found.exchanges.drain(..) {
                seen.insert(&first.name);
                if let Some(exchange) = self.exchanges.get(&name)
                    && seen.insert(&exchange.name)
                {
                    waiting.push(exchange);
                }
            }
            next = waiting.pop();
        }
        route.queues = found.queues;
        once_each(&mut route.queues);
        route
    }
}

impl Exchange {
    /// `rewritten` is where the key goes that a call is delivered with; a call that came here by a binding keeps its key.
    fn ask(&self, asked: &Asked<'_>, found: &mut Found, rewritten: Option<&mut Option<String>>) {
        if let (Routes::Call(calls), Some(rewritten)) = (&self.routes, rewritten) {
            if let Resolution::To(resolved) = calls.resolve(asked.key, false) {
                found.queues.push(resolved.queue);
                *rewritten = resolved.key;
            }
            return;
        }
        self.routes.route(Looked { key: asked.key, cc: asked.cc, properties: asked.properties }, found);
    }
}
