//! Builds the engines from the configuration and joins them; nothing runs yet.

use super::StartError;
use super::wiring::{BusAttachments, InstanceDoors};
use crate::access::Access;
use crate::api::view::Sources;
use crate::api::{self, ApiContext};
use crate::broker::{Broker, BrokerConfig};
use crate::gateway::{Gateway, GatewayConfig};
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain, rng};
use crate::model::config::{AccessMode, Config, Storage};
use crate::model::door::Doors;
use crate::model::emit;
use crate::model::topology::DEFAULT_SPACE;
use crate::net::amqp::AmqpContext;
use crate::net::otlp;
use crate::net::tls::{self, Alpn, Certificate};
use crate::registry::Registry;
use crate::supervisor::{Supervisor, SupervisorConfig};
use crate::telemetry::{Telemetry, TelemetryConfig};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The hidden subcommand under which this program runs as the guard of a supervised process.
pub const GUARD_COMMAND: &str = "guard";

/// Shutdown in three steps, each begun when the one before has finished.
#[derive(Clone, Debug, Default)]
pub struct Drains {
    /// Accept loops, gateway, API, OTLP: take nothing new, finish what is in flight.
    pub front: Drain,
    /// AMQP connections: they carry the replies that the front still waits for.
    pub bus: Drain,
    /// Telemetry and the sampler: see everything that happened before.
    pub rear: Drain,
}

impl Drains {
    pub fn cut(&self) {
        self.front.cut();
        self.bus.cut();
        self.rear.cut();
    }
}

/// Tasks by the step of the shutdown that ends them.
#[derive(Clone, Default)]
pub struct NodeTasks {
    /// Accept loops and connections of every door.
    pub doors: Tasks,
    pub rear: Tasks,
}

/// Everything that was built, joined.
pub struct Engines {
    pub access: Arc<Access>,
    pub sources: Sources,
    pub telemetry: Arc<Telemetry>,
    pub broker: Arc<Broker>,
    pub gateway: Arc<Gateway>,
    pub supervisor: Arc<Supervisor>,
    pub amqp: Arc<AmqpContext>,
    pub control: axum::Router,
    pub otlp: axum::Router,
    pub ready: api::Ready,
    pub tls_http: TlsAcceptor,
    pub tls_amqp: TlsAcceptor,
}

impl Engines {
    pub fn build(
        config: &Config,
        doors: &Doors,
        clock: &Clock,
        drains: &Drains,
        tasks: &NodeTasks,
    ) -> Result<Engines, StartError> {
        let certificate = certificate(config);
        let acceptor = |alpn| tls::acceptor(&certificate, alpn).map_err(|fault| StartError::Fault(fault.to_string()));
        let (tls_http, tls_amqp) = (acceptor(Alpn::Http)?, acceptor(Alpn::None)?);

        let access = Arc::new(Access::new(&config.access));
        let registry = Arc::new(Registry::new(clock.clone()));
        let telemetry = Telemetry::new(telemetry_config(config), clock.clone());
        // A second node in one process (in-process tests) shares the first one's sink.
        let _ = emit::install(telemetry.sink());
        tasks.rear.spawn("telemetry", telemetry.clone().run(drains.rear.clone()));

        let attachments = Arc::new(BusAttachments::new(registry.clone(), clock.clone()));
        let broker = Broker::new(clock.clone(), broker_config(config), attachments);
        let gateway = Gateway::new(
            gateway_config(config, &access),
            Arc::new(super::wiring::NoBus),
            registry.clone(),
            clock.clone(),
            drains.front.clone(),
        );
        let doors_of_instances = Arc::new(InstanceDoors { access: access.clone(), doors: doors.clone() });
        let guard = vec![own_program()?.into_os_string(), GUARD_COMMAND.into()];
        let supervisor = Supervisor::new(
            SupervisorConfig { guard, doors: doors_of_instances },
            registry.clone(),
            clock.clone(),
            drains.bus.clone(),
        );

        let amqp = Arc::new(AmqpContext { broker: broker.clone(), clock: clock.clone(), drain: drains.bus.clone() });
        let ready = api::Ready::default();
        let ui = ui();
        let sources = Sources {
            clock: clock.clone(),
            registry: registry.clone(),
            broker: broker.clone(),
            gateway: gateway.clone(),
            supervisor: supervisor.clone(),
            telemetry: telemetry.clone(),
            doors: doors.clone(),
            board: Arc::default(),
            ui_kind: ui.kind(),
        };
        let control = api::router(ApiContext {
            clock: clock.clone(),
            drain: drains.front.clone(),
            ready: ready.clone(),
            access: access.clone(),
            sources: sources.clone(),
            ui,
            epoch: rng::token::<9>().into(),
            tasks: tasks.doors.clone(),
            live_sockets: api::LiveSockets::default(),
        });
        let otlp = otlp::router(telemetry.clone());
        Ok(Engines { access, sources, telemetry, broker, gateway, supervisor, amqp, control, otlp, ready, tls_http, tls_amqp })
    }
}

fn telemetry_config(config: &Config) -> TelemetryConfig {
    let settings = &config.telemetry;
    TelemetryConfig {
        spans_bytes_max: settings.spans_bytes_max,
        logs_bytes_max: settings.logs_bytes_max,
        points_bytes_max: settings.metrics_bytes_max,
        own_spans_per_second: u32::try_from(settings.spans_per_second_max).unwrap_or(u32::MAX),
    }
}

fn broker_config(config: &Config) -> BrokerConfig {
    BrokerConfig { queue_bytes_max: config.limits.queue_bytes_max, infer_parents: config.telemetry.infer_parents }
}

fn gateway_config(config: &Config, access: &Arc<Access>) -> GatewayConfig {
    let access = access.clone();
    GatewayConfig {
        space: DEFAULT_SPACE.into(),
        deadline: config.gateway.call_timeout,
        // Waiting for a service that restarts is a convenience of development; elsewhere an error is an error.
        hold: if config.access.mode == AccessMode::Dev { config.gateway.hold } else { std::time::Duration::ZERO },
        call_body_bytes_max: config.limits.call_body_bytes_max,
        call_bodies_bytes_max: config.limits.call_bodies_bytes_max,
        sees_dashboard: Arc::new(move |peer, host| access.sees_dashboard(peer, host)),
        ..GatewayConfig::default()
    }
}

fn certificate(config: &Config) -> Certificate {
    match (&config.gateway.tls, &config.storage) {
        (Some(files), _) => Certificate::Files { chain: files.certificate.clone(), key: files.key.clone() },
        (None, Storage::Directory(directory)) => Certificate::SelfSigned { directory: directory.clone(), names: Vec::new() },
        (None, Storage::Ephemeral) => Certificate::Ephemeral { names: Vec::new() },
    }
}

fn own_program() -> Result<PathBuf, StartError> {
    std::env::current_exe().map_err(|error| StartError::Fault(format!("cannot find its own program: {error}")))
}

/// `REACTOR_UI_DIR` serves the dashboard from disk while somebody works on it.
fn ui() -> api::Ui {
    match std::env::var_os("REACTOR_UI_DIR") {
        Some(directory) => api::Ui::from_dir(PathBuf::from(directory)),
        None => api::Ui::default(),
    }
}
