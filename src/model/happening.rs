//! What an operator may want to see, once, with its name: the log line, the counter and the live feed derive from one value.

use super::service::{InstanceName, ServiceName};
use super::signal::Severity;
use crate::kernel::size::spelled;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// Unix nanoseconds.
    pub at_ns: u64,
    pub space: Arc<str>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    ServiceAttached {
        service: ServiceName,
        instance: InstanceName,
        how: &'static str,
        language: Option<Arc<str>>,
    },
    ServiceDetached {
        service: ServiceName,
        instance: InstanceName,
        reason: Arc<str>,
    },
    InstanceStarting {
        service: ServiceName,
        instance: InstanceName,
        pid: u32,
    },
    InstanceReady {
        service: ServiceName,
        instance: InstanceName,
        after_ms: u64,
    },
    /// It ended because it was asked to, or its work was done.
    InstanceStopped {
        service: ServiceName,
        instance: InstanceName,
        reason: Arc<str>,
    },
    InstanceExited {
        service: ServiceName,
        instance: InstanceName,
        status: Arc<str>,
        next: Arc<str>,
    },
    /// Runs, but stopped answering its probe.
    InstanceDegraded {
        service: ServiceName,
        instance: InstanceName,
        reason: Arc<str>,
    },
    InstanceFailing {
        service: ServiceName,
        instance: InstanceName,
        reason: Arc<str>,
    },
    DefinitionChanged {
        kind: &'static str,
        name: Arc<str>,
        change: Arc<str>,
        by: Arc<str>,
        /// The queue that its name names, unless the queue is gone with it.
        queue: Option<Arc<str>>,
    },
    ReplyRefused {
        service: Arc<str>,
        reason: Arc<str>,
    },
    ReplyDropped {
        reason: Arc<str>,
    },
    ConnectionRefused {
        door: &'static str,
        peer: Arc<str>,
        reason: Arc<str>,
    },
    QueueFull {
        queue: Arc<str>,
    },
    OutputTruncated {
        service: ServiceName,
        instance: InstanceName,
        bytes_dropped: u64,
    },
    /// A protocol mistake with a known fix: what was seen and what to do.
    Advice {
        seen: Arc<str>,
        fix: Arc<str>,
    },
}

impl What {
    /// Stable identifier, for filters and counters.
    pub fn name(&self) -> &'static str {
        match self {
            What::ServiceAttached { .. } => "service.attached",
            What::ServiceDetached { .. } => "service.detached",
            What::InstanceStarting { .. } => "instance.starting",
            What::InstanceReady { .. } => "instance.ready",
            What::InstanceStopped { .. } => "instance.stopped",
            What::InstanceExited { .. } => "instance.exited",
            What::InstanceDegraded { .. } => "instance.degraded",
            What::InstanceFailing { .. } => "instance.failing",
            What::DefinitionChanged { .. } => "definition.changed",
            What::ReplyRefused { .. } => "reply.refused",
            What::ReplyDropped { .. } => "reply.dropped",
            What::ConnectionRefused { .. } => "connection.refused",
            What::QueueFull { .. } => "queue.full",
            What::OutputTruncated { .. } => "output.truncated",
            What::Advice { .. } => "advice",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            What::InstanceExited { .. } | What::InstanceFailing { .. } => Severity::ERROR,
            What::InstanceDegraded { .. }
            | What::ReplyRefused { .. }
            | What::ReplyDropped { .. }
            | What::ConnectionRefused { .. }
            | What::QueueFull { .. }
            | What::OutputTruncated { .. }
            | What::Advice { .. } => Severity::WARN,
            What::ServiceAttached { .. }
            | What::ServiceDetached { .. }
            | What::InstanceStarting { .. }
            | What::InstanceReady { .. }
            | What::InstanceStopped { .. }
            | What::DefinitionChanged { .. } => Severity::INFO,
        }
    }

    /// The service it concerns, if one.
    pub fn service(&self) -> Option<&str> {
        match self {
            What::ServiceAttached { service, .. }
            | What::ServiceDetached { service, .. }
            | What::InstanceStarting { service, .. }
            | What::InstanceReady { service, .. }
            | What::InstanceStopped { service, .. }
            | What::InstanceExited { service, .. }
            | What::InstanceDegraded { service, .. }
            | What::InstanceFailing { service, .. }
            | What::OutputTruncated { service, .. } => Some(service.as_str()),
            What::ReplyRefused { service, .. } => Some(service),
            What::DefinitionChanged { .. }
            | What::ReplyDropped { .. }
            | What::ConnectionRefused { .. }
            | What::QueueFull { .. }
            | What::Advice { .. } => None,
        }
    }

    /// The queue it concerns, if one.
    pub fn queue(&self) -> Option<&Arc<str>> {
        match self {
            What::QueueFull { queue } => Some(queue),
            What::DefinitionChanged { queue, .. } => queue.as_ref(),
            What::ServiceAttached { .. }
            | What::ServiceDetached { .. }
            | What::InstanceStarting { .. }
            | What::InstanceReady { .. }
            | What::InstanceStopped { .. }
            | What::InstanceExited { .. }
            | What::InstanceDegraded { .. }
            | What::InstanceFailing { .. }
            | What::OutputTruncated { .. }
            | What::ReplyRefused { .. }
            | What::ReplyDropped { .. }
            | What::ConnectionRefused { .. }
            | What::Advice { .. } => None,
        }
    }

    /// One line: the thing first, then what happened, then what to do.
    pub fn line(&self) -> String {
        match self {
            What::ServiceAttached { service, instance, how, language } => match language {
                Some(language) => format!("{service} attached by {how}, {language}, as {instance}"),
                None => format!("{service} attached by {how} as {instance}"),
            },
            What::ServiceDetached { service, instance, reason } => format!("{service} lost {instance}: {reason}"),
            What::InstanceStarting { instance, pid, .. } => format!("{instance} starting, pid {pid}"),
            What::InstanceReady { instance, after_ms, .. } => {
                format!("{instance} ready after {}", spelled(Duration::from_millis(*after_ms)))
            }
            What::InstanceStopped { instance, reason, .. } => format!("{instance} {reason}"),
            What::InstanceExited { instance, status, next, .. } => format!("{instance} exited {status}; {next}"),
            What::InstanceDegraded { instance, reason, .. } => format!("{instance} degraded: {reason}"),
            What::InstanceFailing { instance, reason, .. } => format!("{instance} failing: {reason}"),
            What::DefinitionChanged { kind, name, change, by, .. } => format!("{kind} {name} {change} by {by}"),
            What::ReplyRefused { service, reason } => format!("{service} sent a reply that cannot be HTTP: {reason}"),
            What::ReplyDropped { reason } => format!("reply dropped: {reason}"),
            What::ConnectionRefused { door, peer, reason } => format!("{door} refused {peer}: {reason}"),
            What::QueueFull { queue } => format!("{queue} is full"),
            What::OutputTruncated { instance, bytes_dropped, .. } => {
                format!("{instance} prints faster than it can be kept: {bytes_dropped} bytes dropped")
            }
            What::Advice { seen, fix } => format!("{seen}. {fix}"),
        }
    }
}
