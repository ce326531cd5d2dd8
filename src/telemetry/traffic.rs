//! What the one-second sampler hands in: exact counts that spans, which are sampled, cannot give. All counters are cumulative
//! since start; telemetry takes the differences.

use super::view::Tone;
use crate::model::service::InstanceState;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct TrafficSample {
    pub services: Vec<ServiceSample>,
    pub gateway: Option<GatewaySample>,
    pub queues: Vec<QueueSample>,
}

/// A service as the registry has it, with its colour slot.
#[derive(Clone, Debug)]
pub struct ServiceSample {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub slot: u16,
    pub state: InstanceState,
    pub instances: Vec<InstanceState>,
}

#[derive(Clone, Debug, Default)]
pub struct GatewaySample {
    pub requests: u64,
    /// Answered with 5xx.
    pub failed: u64,
    pub latency: Latency,
    pub services: Vec<CallSample>,
}

/// Upper bound of each bucket in milliseconds, the last one infinite, and how many took that long.
pub type Latency = Vec<(f64, u64)>;

/// Requests that the gateway sent to one service.
#[derive(Clone, Debug)]
pub struct CallSample {
    pub space: Arc<str>,
    pub service: Arc<str>,
    pub requests: u64,
    pub failed: u64,
    pub latency: Latency,
}

#[derive(Clone, Debug)]
pub struct QueueSample {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub ready: u64,
    pub unacked: u64,
    pub limit: Option<u64>,
    pub wait_p95_ns: Option<u64>,
    /// As the queue list shows it.
    pub tone: Tone,
    /// Messages ever published into it.
    pub published: u64,
    /// Messages ever delivered out of it.
    pub delivered: u64,
    /// Services that consume it now.
    pub consumers: Vec<Arc<str>>,
}
