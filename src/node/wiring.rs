//! The ports between engines: small adapters, each from what one engine says to what another understands.

use super::announce;
use crate::access::Access;
use crate::broker::view::BindingView;
use crate::broker::{Actor, Attachment, AttachmentHow, Attachments, Broker, ConnectionId, DefinitionWatch, DeleteRule, Vhost};
use crate::control;
use crate::kernel::Clock;
use crate::model::catalog::{Accounts, SpaceRules};
use crate::model::change::{Change, EntryChange, Thing, Verb};
use crate::model::config::PortName;
use crate::model::definitions::{Definitions, SpaceDefinitions};
use crate::model::door::Doors;
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::identity::{InstanceIdentity, Principal};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::service::{InstanceState, ServiceName, Source};
use crate::model::service_spec::ServiceSpec;
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeSpec, QueueSpec};
use crate::registry::{InstanceId, NewInstance, Registry};
use crate::supervisor;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Broker → registry: a connection that consumes a call or event queue is an instance of its service.
pub struct BusAttachments {
    registry: Arc<Registry>,
    clock: Clock,
    known: Mutex<HashMap<Key, Known>>,
}

type Key = (ConnectionId, Arc<str>, ServiceName);

/// One connection as one service: listens to calls, to events, or both.
struct Known {
    instance: InstanceId,
    how: Vec<AttachmentHow>,
}

impl BusAttachments {
    pub fn new(registry: Arc<Registry>, clock: Clock) -> Self {
        BusAttachments { registry, clock, known: Mutex::default() }
    }

    fn tell(&self, space: &Arc<str>, what: What) {
        emit::happening(Happening { at_ns: self.clock.unix_nanos(), space: space.clone(), what });
    }
}

impl Attachments for BusAttachments {
    fn attached(&self, attachment: &Attachment) {
        let key = (attachment.connection, attachment.space.clone(), attachment.service.clone());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(already) = known.get_mut(&key) {
            already.how.push(attachment.how);
            return;
        }
        let instance = self.registry.attach(NewInstance {
            space: attachment.space.clone(),
            service: attachment.service.clone(),
            name: attachment.instance.clone(),
            source: Source::Amqp,
            state: InstanceState::Ready,
            http: None,
            keep_prefix: false,
            version: None,
            pid: None,
            language: attachment.language.clone(),
        });
        known.insert(key, Known { instance, how: vec![attachment.how] });
        drop(known);
        let what = What::ServiceAttached {
            service: attachment.service.clone(),
            instance: attachment.instance.clone(),
            how: "AMQP",
            language: attachment.language.clone(),
        };
        self.tell(&attachment.space, what);
    }

    fn detached(&self, attachment: &Attachment, reason: &str) {
        let key = (attachment.connection, attachment.space.clone(), attachment.service.clone());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = known.get_mut(&key) else { return };
        if let Some(at) = entry.how.iter().position(|how| *how == attachment.how) {
            entry.how.swap_remove(at);
        }
        if !entry.how.is_empty() {
            return;
        }
        let instance = entry.instance;
        known.remove(&key);
        drop(known);
        self.registry.detach(instance);
        let what = What::ServiceDetached {
            service: attachment.service.clone(),
            instance: attachment.instance.clone(),
            reason: reason.into(),
        };
        self.tell(&attachment.space, what);
    }
}

/// Supervisor → doors and access: how a process that reactor starts reaches it.
pub struct InstanceDoors {
    pub access: Arc<Access>,
    pub doors: Doors,
}

impl supervisor::Doors for InstanceDoors {
    fn connections(&self) -> supervisor::Connections {
        let address =
            |names: &[PortName]| names.iter().find_map(|name| reach(&self.doors, *name)).map(|address| address.to_string());
        supervisor::Connections {
            amqp: address(&[PortName::Amqp, PortName::Bus]),
            otlp_http: address(&[PortName::OtlpHttp, PortName::Bus]),
            gateway: address(&[PortName::Ingress, PortName::Http]),
            control: address(&[PortName::Control]),
        }
    }

    fn token(&self, identity: &supervisor::Identity) -> String {
        self.access.issue(instance_identity(identity)).to_string()
    }

    fn revoke(&self, identity: &supervisor::Identity) {
        self.access.revoke(&instance_identity(identity));
    }
}

fn instance_identity(identity: &supervisor::Identity) -> InstanceIdentity {
    InstanceIdentity { space: identity.space.clone(), service: identity.service.clone(), instance: identity.instance.clone() }
}

/// The address at which a process on this machine reaches a door.
pub fn reach(doors: &Doors, name: PortName) -> Option<SocketAddr> {
    let door = doors.iter().find(|door| door.name == name)?;
    let local = |address: &SocketAddr| match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()),
        _ => *address,
    };
    let addresses: Vec<SocketAddr> = door.addresses.iter().map(local).collect();
    addresses.iter().find(|address| address.is_ipv4() && address.ip().is_loopback()).or(addresses.first()).copied()
}

/// Control → broker: what exists, and one step at a time.
pub struct BrokerTopology(pub Arc<Broker>);

impl control::TopologyPort for BrokerTopology {
    fn present(&self) -> Definitions {
        let spaces = self.0.vhosts().into_iter().map(|vhost| (vhost.name().clone(), durable_things(&vhost)));
        Definitions { spaces: spaces.collect(), ..Definitions::default() }
    }

    fn apply(&self, change: &Change, by: &Principal) -> Result<(), Refusal> {
        let actor = Actor { principal: by, connection: None };
        let vhost = self.0.vhost(&change.space).ok_or_else(|| {
            Refusal::new(RefusalKind::NotFound, format!("there is no space {}", change.space)).hint("Create the space first.")
        })?;
        match (&change.thing, change.verb) {
            (Thing::Exchange(spec), Verb::Create) => vhost.declare_exchange(spec, actor).map(drop),
            (Thing::Exchange(spec), Verb::Delete) => vhost.delete_exchange(&spec.name, DeleteRule::default(), actor).map(drop),
            (Thing::Queue(spec), Verb::Create) => vhost.declare_queue(spec, actor).map(drop),
            (Thing::Queue(spec), Verb::Delete) => vhost.delete_queue(&spec.name, DeleteRule::default(), actor).map(drop),
            (Thing::Binding(spec), Verb::Create) => vhost.bind(spec, actor).map(drop),
            (Thing::Binding(spec), Verb::Delete) => vhost.unbind(spec, actor).map(drop),
            // Nothing of these is changed in place, and the catalogue is control's.
            (Thing::Exchange(_) | Thing::Queue(_) | Thing::Binding(_), Verb::Update) | (Thing::Entry(_), _) => Ok(()),
        }
        .map_err(Refusal::from)
    }

    fn open_space(&self, name: &str) {
        self.0.create_vhost(name);
    }

    fn close_space(&self, name: &str) {
        self.0.delete_vhost(name);
    }

    fn rule_space(&self, rules: SpaceRules, policies: Arc<control::PolicySet>) {
        if let Some(vhost) = self.0.vhost(&rules.space.name) {
            vhost.rule(rules);
            vhost.set_policies(policies);
        }
    }

    fn name_cluster(&self, name: &str) {
        self.0.name_cluster(name);
    }

    fn announce(&self, change: &EntryChange, by: &Principal) {
        for (key, headers) in announce::events(change, &by.user) {
            self.0.announce(key, || headers);
        }
    }
}

/// Broker → control: what clients define is kept account of like what anybody defines.
pub struct ClientDefinitions(pub Weak<control::Control>);

impl DefinitionWatch for ClientDefinitions {
    fn changed(&self, change: &Change, by: &Principal) {
        if let Some(control) = self.0.upgrade() {
            control.note(change, by);
        }
    }
}

/// Control → access, and → the broker, whose connections hold what access found allowed.
pub struct GuardedAccounts {
    pub access: Arc<Access>,
    pub broker: Arc<Broker>,
}

impl control::AccountsPort for GuardedAccounts {
    fn set(&self, accounts: Accounts) {
        self.access.set_accounts(accounts);
        self.broker.permissions_changed();
    }

    fn dismiss(&self, user: &str) {
        self.broker.close_connections_of_user(user, &format!("user '{user}' is deleted"));
    }
}

fn durable_things(vhost: &Vhost) -> SpaceDefinitions {
    let exchanges: Vec<ExchangeSpec> = vhost
        .exchanges()
        .into_iter()
        .filter(|view| view.durable && !view.auto_delete)
        .map(|view| ExchangeSpec {
            name: view.name.to_string(),
            kind: view.kind,
            durable: true,
            auto_delete: false,
            internal: view.internal,
            arguments: view.arguments,
        })
        .collect();
    let queues: Vec<QueueSpec> = vhost
        .queues()
        .into_iter()
        .filter(|view| view.durable && !view.exclusive && !view.auto_delete)
        .map(|view| QueueSpec {
            name: view.name.to_string(),
            durable: true,
            exclusive: false,
            auto_delete: false,
            arguments: view.arguments,
        })
        .collect();
    let exchange = |name: &str| exchanges.iter().any(|spec| spec.name == name);
    let is_durable = |view: &BindingView| {
        exchange(&view.source)
            && match view.destination_kind {
                DestinationKind::Queue => queues.iter().any(|spec| *spec.name == *view.destination),
                DestinationKind::Exchange => exchange(&view.destination),
            }
    };
    let bindings = vhost.bindings().into_iter().filter(is_durable);
    let bindings = bindings.map(|view| BindingSpec {
        source: view.source.to_string(),
        destination: view.destination.to_string(),
        destination_kind: view.destination_kind,
        routing_key: view.routing_key.to_string(),
        arguments: view.arguments,
    });
    SpaceDefinitions { bindings: bindings.collect(), exchanges, queues }
}

/// Control → supervisor.
pub struct SupervisedServices(pub Arc<supervisor::Supervisor>);

impl control::ServicePort for SupervisedServices {
    fn apply(&self, specs: Vec<ServiceSpec>) -> Result<(), Refusal> {
        self.0.apply(specs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(how: AttachmentHow) -> Attachment {
        Attachment {
            space: "/".into(),
            service: ServiceName::new("greeter").expect("a valid name"),
            instance: "greeter@127.0.0.1".into(),
            connection: ConnectionId(7),
            supervised: false,
            how,
            language: Some("python".into()),
        }
    }

    #[test]
    fn a_connection_is_one_instance_until_its_last_queue_is_left() {
        let clock = Clock::manual(0);
        let registry = Arc::new(Registry::new(clock.clone()));
        let bus = BusAttachments::new(registry.clone(), clock);
        bus.attached(&attachment(AttachmentHow::Calls));
        bus.attached(&attachment(AttachmentHow::Events));
        assert_eq!(registry.snapshot().instances().count(), 1);
        bus.detached(&attachment(AttachmentHow::Calls), "cancelled");
        assert_eq!(registry.snapshot().instances().count(), 1);
        bus.detached(&attachment(AttachmentHow::Events), "closed");
        assert_eq!(registry.snapshot().instances().count(), 0);
    }
}
