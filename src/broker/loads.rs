//! What moves, without what it is: for samplers, which look often.

use super::core::Broker;
use super::flow::Flow;
use super::vhost::Vhost;
use super::view::{ExchangeView, LinkLoad};
use crate::model::topology::is_built_in;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Broker {
    /// Every connection's bytes and what its channels did.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        let load = |link: &Arc<super::link::Link>| LinkLoad {
            id: link.id,
            space: link.space.clone(),
            in_bytes: link.in_bytes.load(Ordering::Relaxed),
            out_bytes: link.out_bytes.load(Ordering::Relaxed),
            channels: link.outbox().channels.iter().map(|(number, lane)| (number, lane.flow())).collect(),
        };
        self.links().iter().map(load).collect()
    }

    /// What all channels of each space did, those that ended included.
    pub fn flows(&self) -> HashMap<Arc<str>, Flow> {
        let mut flows: HashMap<Arc<str>, Flow> =
            self.vhosts().iter().map(|vhost| (vhost.name().clone(), *vhost.ended())).collect();
        for link in self.links() {
            let flow = flows.entry(link.space.clone()).or_default();
            link.outbox().channels.iter().for_each(|(_, lane)| flow.add(&lane.flow()));
        }
        flows
    }

    /// Bytes that wait to be sent, over all connections.
    pub fn waiting_bytes(&self) -> u64 {
        self.links().iter().map(|link| link.waiting() as u64).sum()
    }
}

impl Vhost {
    /// Name, messages published and copies routed of every exchange, the default one included.
    pub fn exchange_loads(&self) -> Vec<(Arc<str>, u64, u64)> {
        let topology = self.topology();
        let named = topology.exchanges.values().map(|exchange| (exchange.name.clone(), &exchange.stats));
        let all = [(Arc::from(""), &topology.default_stats)].into_iter().chain(named);
        all.map(|(name, stats)| (name, stats.published.load(Ordering::Relaxed), stats.routed.load(Ordering::Relaxed))).collect()
    }

    /// Every exchange, the default one first.
    pub fn all_exchanges(&self) -> Vec<ExchangeView> {
        let mut all = vec![self.default_exchange()];
        all.extend(self.exchanges());
        all
    }
}

impl ExchangeView {
    /// Exists in every space without being declared.
    pub fn is_built_in(&self) -> bool {
        is_built_in(&self.name)
    }
}
