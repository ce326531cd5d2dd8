//! One space: its exchanges, queues and bindings, and every way to change them.

use super::config::ConnectionId;
use super::refused::Refused;
use super::view::{BindingView, ExchangeView, PeekedMessage, QueueView};
use crate::model::identity::Principal;
use crate::model::topology::{BindingSpec, ExchangeSpec, QueueSpec};
use std::sync::Arc;

/// Who asks: permissions, and the connection that exclusive queues belong to.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    pub principal: &'a Principal,
    /// `None` for the API and definitions.
    pub connection: Option<ConnectionId>,
}

/// What a declaration of a queue answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: Arc<str>,
    pub created: bool,
    pub ready: u64,
    pub consumers: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRule {
    pub if_unused: bool,
    pub if_empty: bool,
}

#[derive(Debug)]
pub struct Vhost {
    name: Arc<str>,
}

impl Vhost {
    pub(super) fn new(name: &str) -> Self {
        Vhost { name: name.into() }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Creates, or checks that what exists is equivalent. An empty name asks for a generated one.
    pub fn declare_queue(&self, spec: &QueueSpec, _actor: Actor<'_>) -> Result<Declared, Refused> {
        Err(Refused::NotImplemented(format!("queue '{}'", spec.name)))
    }

    /// True if it was created.
    pub fn declare_exchange(&self, spec: &ExchangeSpec, _actor: Actor<'_>) -> Result<bool, Refused> {
        Err(Refused::NotImplemented(format!("exchange '{}'", spec.name)))
    }

    /// True if it was created; binding twice is one binding.
    pub fn bind(&self, spec: &BindingSpec, _actor: Actor<'_>) -> Result<bool, Refused> {
        Err(Refused::NotImplemented(format!("binding to '{}'", spec.queue)))
    }

    /// True if it existed.
    pub fn unbind(&self, spec: &BindingSpec, _actor: Actor<'_>) -> Result<bool, Refused> {
        Err(Refused::NotImplemented(format!("binding to '{}'", spec.queue)))
    }

    /// Messages that went with it; `None` if there was none, which is no error.
    pub fn delete_queue(&self, name: &str, _rule: DeleteRule, _actor: Actor<'_>) -> Result<Option<u64>, Refused> {
        Err(Refused::NotImplemented(format!("queue '{name}'")))
    }

    /// True if it existed.
    pub fn delete_exchange(&self, name: &str, _rule: DeleteRule, _actor: Actor<'_>) -> Result<bool, Refused> {
        Err(Refused::NotImplemented(format!("exchange '{name}'")))
    }

    /// Ready messages removed.
    pub fn purge_queue(&self, name: &str, _actor: Actor<'_>) -> Result<u64, Refused> {
        Err(Refused::NotImplemented(format!("queue '{name}'")))
    }

    pub fn queues(&self) -> Vec<QueueView> {
        Vec::new()
    }

    pub fn queue(&self, _name: &str) -> Option<QueueView> {
        None
    }

    pub fn exchanges(&self) -> Vec<ExchangeView> {
        Vec::new()
    }

    pub fn bindings(&self) -> Vec<BindingView> {
        Vec::new()
    }

    /// Up to `count` ready messages from the head; at most `body_bytes_max` of each body is copied.
    pub fn peek(&self, name: &str, _count: usize, _body_bytes_max: usize) -> Result<Vec<PeekedMessage>, Refused> {
        Err(Refused::NotImplemented(format!("queue '{name}'")))
    }
}
