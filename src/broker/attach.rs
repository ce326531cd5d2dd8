//! Which services a connection is an instance of (contract §7): those whose call or event queues it consumes.
//!
//! Recomputed whenever a connection begins or stops consuming such a queue or such a queue's bindings change; only differences are
//! told. The port is called under this part's own lock, so that what is told keeps its order; no other lock is held.

use super::config::{Attachment, AttachmentHow, ConnectionId};
use super::link::Link;
use super::queue::Queue;
use super::vhost::Vhost;
use crate::model::service::{InstanceName, ServiceName};
use crate::model::signal::Resource;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Attached(Mutex<HashMap<ConnectionId, Vec<Attachment>>>);

impl Attached {
    pub fn services_of(&self, connection: ConnectionId) -> Vec<Arc<str>> {
        let attached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attached.get(&connection).into_iter().flatten().map(|attachment| attachment.service.shared()).collect()
    }
}

impl Vhost {
    /// To be called after the bindings of `queue` changed.
    pub(super) fn reattach_consumers_of(&self, queue: &Queue, reason: &str) {
        for connection in queue.consuming_connections() {
            let link = self.shared.links().get(&connection).cloned();
            if let Some(link) = link {
                self.reattach(&link, reason);
            }
        }
    }

    /// To be called after what `link` consumes changed.
    pub(super) fn reattach(&self, link: &Arc<Link>, reason: &str) {
        let mut attached = self.attached.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = wanted(link);
        let before = attached.get(&link.id).cloned().unwrap_or_default();
        let mut after = Vec::new();
        for attachment in before {
            match wanted.get(&attachment.service) {
                Some(how) if *how == attachment.how => after.push(attachment),
                _ => self.shared.attachments.detached(&attachment, reason),
            }
        }
        for (service, how) in wanted {
            if after.iter().any(|attachment| attachment.service == service) {
                continue;
            }
            let instance = instance_name(link, &service, attached.values().flatten().chain(&after));
            let attachment = Attachment {
                space: self.name().clone(),
                supervised: link.info.supervised.as_ref().is_some_and(|(own, _)| *own == service),
                service,
                instance,
                connection: link.id,
                how,
                language: link.info.language(),
            };
            self.shared.attachments.attached(&attachment);
            after.push(attachment);
        }
        name_link(link, after.first());
        match after.is_empty() {
            true => _ = attached.remove(&link.id),
            false => _ = attached.insert(link.id, after),
        }
    }
}

/// The services of all queues that a connection consumes; none once it is gone. Answering calls counts more than listening.
fn wanted(link: &Link) -> BTreeMap<ServiceName, AttachmentHow> {
    let mut wanted = BTreeMap::new();
    for (service, how) in link.consumed_queues().iter().flat_map(|queue| queue.services()) {
        let entry = wanted.entry(service).or_insert(how);
        *entry = (*entry).min(how);
    }
    wanted
}

/// Its own name, or the lowest free `service-n`.
fn instance_name<'a>(link: &Link, service: &ServiceName, others: impl Iterator<Item = &'a Attachment>) -> InstanceName {
    if let Some(name) = link.info.instance() {
        return name;
    }
    let taken: Vec<InstanceName> = others.filter(|other| other.service == *service).map(|other| other.instance.clone()).collect();
    (1..)
        .map(|number| InstanceName::from(format!("{service}-{number}")))
        .find(|name| !taken.contains(name))
        .expect("finitely many names are taken")
}

/// A connection that does not name itself is named by what it attached as.
fn name_link(link: &Link, attachment: Option<&Attachment>) {
    if link.info.own_service().is_some() {
        return;
    }
    let resource = match attachment {
        Some(attachment) => {
            Resource { service: attachment.service.shared(), instance: attachment.instance.clone(), attributes: Vec::new() }
        }
        None => link.unnamed_resource(),
    };
    if *link.resource() != resource {
        link.set_resource(resource);
    }
}
