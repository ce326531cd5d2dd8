//! Builds the engines from the configuration and joins them; nothing runs yet.

use super::wiring::{BrokerTopology, BusAttachments, ClientDefinitions, GuardedAccounts, InstanceDoors, SupervisedServices};
use super::{StartError, banner};
use crate::access::Access;
use crate::api::management::{self, Facts, ManagementContext, Samples};
use crate::api::view::Sources;
use crate::api::{self, ApiContext};
use crate::broker::{Broker, BrokerConfig};
use crate::control::{Control, Ports};
use crate::gateway::{Gateway, GatewayConfig};
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain, platform, rng};
use crate::model::config::{AccessMode, ClientCertificates, Config, PortName, Storage};
use crate::model::door::Doors;
use crate::model::emit;
use crate::model::topology::DEFAULT_SPACE;
use crate::net::amqp::{AmqpContext, Sessions};
use crate::net::tls::{self, Alpn, Certificate};
use crate::net::{otlp, validity};
use crate::registry::Registry;
use crate::supervisor::{Supervisor, SupervisorConfig};
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::wire::amqp::SessionConfig;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The hidden subcommand under which this program runs as the guard of a supervised process.
pub const GUARD_COMMAND: &str = "guard";

/// Shutdown in three steps, each begun when the one before has finished.
#[derive(Clone, Debug, Default)]
pub struct Drains {
    /// Gateway and API: take nothing new, finish what is in flight.
    pub front: Drain,
    /// AMQP and OTLP: services need them to their end, for the replies that the front still waits for and for their last telemetry.
    pub bus: Drain,
    /// Telemetry and the sampler: see everything that happened before.
    pub rear: Drain,
}

impl Drains {
    /// The step at which a door closes.
    pub fn of(&self, door: PortName) -> &Drain {
        match door {
            PortName::Bus | PortName::Amqp | PortName::Amqps | PortName::OtlpGrpc | PortName::OtlpHttp => &self.bus,
            PortName::Http | PortName::Https | PortName::Ingress | PortName::Control => &self.front,
            PortName::Management | PortName::Prometheus => &self.front,
            // Not served yet.
            PortName::Stream | PortName::StreamTls | PortName::Redis => &self.front,
        }
    }

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
    pub broker: Arc<Broker>,
    pub gateway: Arc<Gateway>,
    pub supervisor: Arc<Supervisor>,
    pub definitions: Arc<Control>,
    pub amqp: Arc<AmqpContext>,
    pub control: axum::Router,
    pub management: axum::Router,
    pub prometheus: axum::Router,
    pub samples: Arc<Samples>,
    pub otlp: axum::Router,
    pub ready: api::Ready,
    pub tls_http: TlsAcceptor,
    pub tls_amqp: TlsAcceptor,
}

/// What every engine is built from.
pub struct Plans<'a> {
    pub config: &'a Config,
    pub doors: &'a Doors,
    /// The limit of open files reached at start.
    pub open_files: Option<u64>,
    pub clock: &'a Clock,
    pub drains: &'a Drains,
    pub tasks: &'a NodeTasks,
}

impl Plans<'_> {
    /// Builds and joins everything. Must be called on a tokio runtime.
    pub fn build(&self) -> Result<Engines, StartError> {
        let clock = self.clock;
        let certificate = certificate(self.config);
        let clients = clients(self.config);
        let acceptor =
            |alpn, clients| tls::acceptor(&certificate, alpn, clients).map_err(|fault| StartError::Fault(fault.to_string()));
        let (tls_http, tls_amqp) = (acceptor(Alpn::Http, None)?, acceptor(Alpn::None, clients.as_ref())?);

        let access = Arc::new(Access::new(&self.config.access));
        let registry = Arc::new(Registry::new(clock.clone()));
        let telemetry = self.telemetry();
        let attachments = Arc::new(BusAttachments::new(registry.clone(), clock.clone()));
        let broker = Broker::new(clock.clone(), broker_config(self.config), attachments);
        let gateway = Gateway::new(
            gateway_config(self.config, &access),
            broker.clone(),
            registry.clone(),
            clock.clone(),
            self.drains.front.clone(),
        );
        let supervisor = self.supervisor(&access, &registry)?;
        let ports = Ports {
            topology: Arc::new(BrokerTopology(broker.clone())),
            accounts: Arc::new(GuardedAccounts { access: access.clone(), broker: broker.clone() }),
            services: Arc::new(SupervisedServices(supervisor.clone())),
        };
        let definitions = Arc::new(Control::new(clock.clone(), ports, access.seed()));
        broker.watch(Arc::new(ClientDefinitions(Arc::downgrade(&definitions))));

        let amqp = Arc::new(AmqpContext {
            broker: broker.clone(),
            access: access.clone(),
            clock: clock.clone(),
            drain: self.drains.bus.clone(),
            sessions: Sessions::new(session_config(self.config)),
            certificate_login: self.config.access.certificate_login,
        });
        let ui = ui();
        let sources = Sources {
            clock: clock.clone(),
            registry,
            broker: broker.clone(),
            gateway: gateway.clone(),
            supervisor: supervisor.clone(),
            telemetry: telemetry.clone(),
            doors: self.doors.clone(),
            board: Arc::default(),
            ui_kind: ui.kind(),
        };
        let ready = api::Ready::default();
        let control = self.control_router(&access, &definitions, &sources, &ready, ui);
        let of_rabbit = self.of_rabbit(&sources, &access, &definitions);
        Ok(Engines {
            access,
            sources,
            broker,
            gateway,
            supervisor,
            definitions,
            amqp,
            control,
            management: management::router(of_rabbit.clone()),
            samples: of_rabbit.samples.clone(),
            prometheus: management::prometheus_router(of_rabbit),
            otlp: otlp::router(telemetry),
            ready,
            tls_http,
            tls_amqp,
        })
    }

    fn telemetry(&self) -> Arc<Telemetry> {
        let telemetry = Telemetry::new(telemetry_config(self.config), self.clock.clone());
        // A second node in one process (in-process tests) shares the first one's sink.
        let _ = emit::install(telemetry.sink());
        self.tasks.rear.spawn("telemetry", telemetry.clone().run(self.drains.rear.clone()));
        telemetry
    }

    fn supervisor(&self, access: &Arc<Access>, registry: &Arc<Registry>) -> Result<Arc<Supervisor>, StartError> {
        let program =
            std::env::current_exe().map_err(|error| StartError::Fault(format!("cannot find its own program: {error}")))?;
        let config = SupervisorConfig {
            guard: vec![program.into_os_string(), GUARD_COMMAND.into()],
            doors: Arc::new(InstanceDoors { access: access.clone(), doors: self.doors.clone() }),
        };
        Ok(Supervisor::new(config, registry.clone(), self.clock.clone(), self.drains.bus.clone()))
    }

    /// What the management API and the metrics stand on.
    fn of_rabbit(&self, sources: &Sources, access: &Arc<Access>, definitions: &Arc<Control>) -> ManagementContext {
        let samples = Arc::new(Samples::new(self.clock.clone(), self.config.storage.directory().cloned()));
        ManagementContext::new(sources, access.clone(), definitions.clone(), samples, self.facts())
    }

    /// What the management API says of this process.
    fn facts(&self) -> Facts {
        let tls = self.config.gateway.tls.as_ref();
        Facts {
            node: node_name(),
            data_dir: self.config.storage.directory().cloned(),
            config_file: self.config.file.clone(),
            connections_max: self.config.limits.connections_max as u64,
            open_files_max: self.open_files,
            heartbeat_s: self.config.limits.amqp_heartbeat.as_secs(),
            // One that reactor made itself is renewed at the start.
            certificate_ends_s: tls.and_then(|files| validity::ends_s(&std::fs::read(&files.certificate).ok()?)),
        }
    }

    fn control_router(
        &self,
        access: &Arc<Access>,
        control: &Arc<Control>,
        sources: &Sources,
        ready: &api::Ready,
        ui: api::Ui,
    ) -> axum::Router {
        api::router(ApiContext {
            clock: self.clock.clone(),
            drain: self.drains.front.clone(),
            ready: ready.clone(),
            access: access.clone(),
            control: control.clone(),
            sources: sources.clone(),
            ui,
            epoch: rng::token::<9>().into(),
            tasks: self.tasks.doors.clone(),
            live_sockets: api::LiveSockets::default(),
            followed: api::Followed::default(),
            variables: banner::client_variables(self.config, self.doors, &access.token()).into(),
        })
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

/// As RabbitMQ's nodes are called, to the management API and in events alike.
fn node_name() -> String {
    format!("rabbit@{}", platform::host_name())
}

fn broker_config(config: &Config) -> BrokerConfig {
    BrokerConfig {
        node: node_name(),
        queue_bytes_max: config.limits.queue_bytes_max,
        consumer_timeout: config.limits.consumer_timeout,
        infer_parents: config.telemetry.infer_parents,
        ..BrokerConfig::default()
    }
}

fn session_config(config: &Config) -> SessionConfig {
    let limits = &config.limits;
    SessionConfig {
        frame_max: limits.amqp_frame_bytes_max,
        channel_max: limits.amqp_channels_max,
        heartbeat: u16::try_from(limits.amqp_heartbeat.as_secs()).unwrap_or(u16::MAX),
        body_bytes_max: limits.message_bytes_max,
        handshake: limits.handshake,
        ..SessionConfig::default()
    }
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

/// What `amqps` asks of its clients.
fn clients(config: &Config) -> Option<tls::Clients> {
    let (authorities, required) = match &config.access.client_certificates {
        ClientCertificates::Ignored => return None,
        ClientCertificates::Optional(authorities) => (authorities.clone(), false),
        ClientCertificates::Required(authorities) => (authorities.clone(), true),
    };
    Some(tls::Clients { authorities, required })
}

/// `REACTOR_UI_DIR` serves the dashboard from disk while somebody works on it.
fn ui() -> api::Ui {
    match std::env::var_os("REACTOR_UI_DIR") {
        Some(directory) => api::Ui::from_dir(PathBuf::from(directory)),
        None => api::Ui::default(),
    }
}
