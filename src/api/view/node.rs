//! The process itself: what it is, what it holds, where it listens.

use super::Sources;
use super::service::Service;
use crate::model::door::{self, DoorState};
use crate::model::emit;
use crate::model::topology::DEFAULT_SPACE;
use crate::telemetry::view::{Ledger, Tone};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Version {
    pub name: &'static str,
    pub version: &'static str,
    /// `built`, or `fallback` where the binary carries no dashboard.
    pub ui: &'static str,
}

/// A variable of the environment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Variable {
    pub name: &'static str,
    pub value: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Overview {
    pub version: &'static str,
    pub started_us: u64,
    /// The space that is meant where none is named.
    pub space: &'static str,
    pub spaces: Vec<Arc<str>>,
    /// `memory` until the store exists: messages are not on disk.
    pub message_storage: &'static str,
    pub telemetry: Ledger,
    pub memory_bytes: u64,
    /// In cores: 1.0 is one core busy.
    pub cpu_share: f64,
    /// Share of the runtime's own traces kept, 0 to 1.
    pub sample_rate: f64,
    pub services: u64,
    /// Services whose state or numbers are coloured.
    pub services_attention: u64,
    pub queues: u64,
    pub connections: u64,
    /// Services that answer HTTP.
    pub routes: u64,
    /// Error records since the start; the dashboard subtracts what was read.
    pub errors_unread: u64,
    /// `built` or `fallback`.
    pub ui: &'static str,
}

pub fn overview(sources: &Sources, services: &[Service]) -> Overview {
    let rates = sources.board.rates();
    let totals = sources.broker.totals();
    let count = |wanted: &dyn Fn(&Service) -> bool| services.iter().filter(|service| wanted(service)).count() as u64;
    Overview {
        version: env!("CARGO_PKG_VERSION"),
        started_us: sources.started_us(),
        space: DEFAULT_SPACE,
        spaces: sources.broker.vhosts().iter().map(|vhost| vhost.name().clone()).collect(),
        message_storage: "memory",
        telemetry: sources.telemetry.ledger(),
        memory_bytes: rates.memory_bytes,
        cpu_share: rates.cpu_share,
        sample_rate: emit::sample_rate(),
        services: services.len() as u64,
        services_attention: count(&|service| service.tone != Tone::Normal),
        queues: totals.queues,
        connections: totals.connections,
        routes: count(&|service| service.route.is_some()),
        errors_unread: sources.telemetry.errors_seen(),
        ui: sources.ui_kind,
    }
}

/// A port under its name in `[ports]`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Door {
    pub name: &'static str,
    pub speaks: &'static str,
    /// Where it listens, every address; null when it does not.
    pub address: Option<String>,
    /// `off`, `listening`, or why not.
    pub state: String,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// When the last one was accepted.
    pub last_us: Option<u64>,
}

pub fn doors(sources: &Sources) -> Vec<Door> {
    let shape = |door: &Arc<door::Door>| {
        let addresses: Vec<String> = door.addresses.iter().map(ToString::to_string).collect();
        Door {
            name: door.name.as_str(),
            speaks: door.name.speaks(),
            address: (!addresses.is_empty()).then(|| addresses.join(", ")),
            state: match &door.state {
                DoorState::Listening => "listening".to_owned(),
                DoorState::Off => "off".to_owned(),
                DoorState::Unbound(reason) => reason.clone(),
            },
            accepted: door.counts.accepted.get(),
            last_us: door.counts.last_ns().map(|at| at / 1_000),
        }
    };
    sources.doors.iter().map(shape).collect()
}
