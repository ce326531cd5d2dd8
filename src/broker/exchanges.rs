//! Declaring and deleting exchanges and bindings: what RabbitMQ checks, in its words.

use super::config::AttachmentHow;
use super::declare::{DeleteRule, must_equal, must_equal_argument};
use super::queue::Queue;
use super::refused::Refused;
use super::route::{Routes, Target, service_of};
use super::topology::{ALTERNATE, Binding, Exchange, Removed, Topology, reserved_prefix};
use super::vhost::{Actor, Vhost};
use crate::kernel::limit;
use crate::model::identity::Action;
use crate::model::policy::{ExchangePolicy, Policies};
use crate::model::service::ServiceName;
use crate::model::table::Field;
use crate::model::topology::{BindingSpec, CALL_EXCHANGE, DestinationKind, EVENT_EXCHANGE, ExchangeKind, ExchangeSpec};
use std::sync::Arc;

impl Vhost {
    /// True if it was created.
    pub fn declare_exchange(&self, spec: &ExchangeSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        let (space, name) = (self.name(), &spec.name);
        must_not_be_default(name)?;
        actor.must(Action::Configure, "exchange", name, space)?;
        loop {
            if let Some(known) = self.exchange_spec(name) {
                must_be_equivalent(&known, spec, space)?;
                return Ok(false);
            }
            if let Some(prefix) = reserved_prefix(name) {
                return Err(Refused::AccessRefused(format!("exchange name '{name}' contains reserved prefix '{prefix}*'")));
            }
            check_alternate(spec, actor, space)?;
            Routes::check_exchange(spec.kind, &spec.arguments)?;
            if self.add_exchange(spec)? {
                break;
            }
        }
        self.changed();
        let user = &actor.principal.user;
        self.shared.announce("exchange.created", || {
            self.event_of(name, user)
                .with("type", Field::text(spec.kind.as_str()))
                .with("durable", Field::Bool(spec.durable))
                .with("auto_delete", Field::Bool(spec.auto_delete))
                .with("internal", Field::Bool(spec.internal))
                .with("arguments", Field::Table(spec.arguments.clone()))
        });
        Ok(true)
    }

    /// False if there is one of that name by now, or other policies hold: it is to be declared again.
    fn add_exchange(&self, spec: &ExchangeSpec) -> Result<bool, Refused> {
        // Asked without the lock, under which everybody would wait for a slow pattern.
        let policies = self.policies();
        let mut exchange = Exchange::new(spec.clone());
        exchange.apply(policies.of_exchange(&exchange.name));
        let mut topology = self.topology_mut();
        if topology.exchanges.contains_key(&exchange.name) || !self.still_rule(&policies) {
            return Ok(false);
        }
        if topology.exchanges.len() >= limit::EXCHANGES_MAX {
            let (name, space, max) = (&exchange.name, self.name(), limit::EXCHANGES_MAX);
            let text = format!("cannot declare exchange '{name}': exchange limit in vhost '{space}' ({max}) is reached");
            return Err(Refused::Precondition(text));
        }
        topology.exchanges.insert(exchange.name.clone(), exchange);
        Ok(true)
    }

    /// Asks for an exchange without creating it.
    pub fn declare_exchange_passively(&self, name: &str) -> Result<(), Refused> {
        must_not_be_default(name)?;
        self.topology().exchanges.get(name).map(drop).ok_or_else(|| self.no_exchange(name))
    }

    /// True if it existed.
    pub fn delete_exchange(&self, name: &str, rule: DeleteRule, actor: Actor<'_>) -> Result<bool, Refused> {
        let space = self.name();
        must_not_be_default(name)?;
        if reserved_prefix(name).is_some() {
            let text = format!("deletion of system exchange '{name}' in vhost '{space}' not allowed");
            return Err(Refused::AccessRefused(text));
        }
        actor.must(Action::Configure, "exchange", name, space)?;
        let removed = {
            let mut topology = self.topology_mut();
            let Some(exchange) = topology.exchanges.get(name) else { return Ok(false) };
            if rule.if_unused && !exchange.bindings.is_empty() {
                return Err(Refused::Precondition(format!("exchange '{name}' in vhost '{space}' in use")));
            }
            topology.remove_exchange(name)
        };
        self.removed(&removed, "its exchange was deleted", &actor.principal.user);
        Ok(true)
    }

    /// True if it was created; binding twice is one binding.
    pub fn bind(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        self.check_binding(spec, actor)?;
        let to = self.destination(spec, actor)?;
        let created = {
            let mut topology = self.topology_mut();
            let exchange = topology.exchanges.get(spec.source.as_str()).ok_or_else(|| self.no_exchange(&spec.source))?;
            if !topology.has(&to) {
                return Err(self.nothing_there(&to));
            }
            check_words(exchange, spec)?;
            exchange.must_read(&spec.routing_key, actor, self.name())?;
            if topology.binding_count() >= limit::BINDINGS_MAX {
                let text = format!("binding limit in vhost '{}' ({}) is reached", self.name(), limit::BINDINGS_MAX);
                return Err(Refused::Precondition(text));
            }
            let created = topology.bind(&spec.source, &to, &spec.routing_key, &spec.arguments);
            if let Target::Queue(queue) = &to
                && names_services(&spec.source)
            {
                queue.set_services(services_of(&topology, queue));
            }
            created
        };
        if created {
            self.changed();
            self.attach_anew(&spec.source, &to, "it was bound");
            self.bindings_of_events_changed(&spec.source);
            let binding = Binding { to, key: spec.routing_key.as_str().into(), arguments: spec.arguments.clone() };
            self.announce_binding("binding.created", &spec.source, &binding, &actor.principal.user);
        }
        Ok(created)
    }

    /// True if it existed. What is not there, or not bound so, is no error, as in RabbitMQ.
    pub fn unbind(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        self.check_binding(spec, actor)?;
        if let (DestinationKind::Queue, Some(queue)) = (spec.destination_kind, self.find_queue(&spec.destination)) {
            self.must_own(&queue, actor)?;
        }
        let place = (spec.destination_kind, spec.destination.as_str().into());
        let mut topology = self.topology_mut();
        if let Some(exchange) = topology.exchanges.get(spec.source.as_str()) {
            exchange.must_read(&spec.routing_key, actor, self.name())?;
        }
        let removed = topology.unbind(&spec.source, place, &spec.routing_key, &spec.arguments);
        drop(topology);
        let Some(removed) = removed else { return Ok(false) };
        self.removed(&removed, "its binding was removed", &actor.principal.user);
        Ok(true)
    }

    /// To be called when bindings went, without the topology's lock.
    pub(super) fn removed(&self, removed: &Removed, reason: &str, user: &str) {
        self.changed();
        for (source, binding) in &removed.bindings {
            if let Target::Queue(queue) = &binding.to
                && names_services(source)
            {
                queue.set_services(services_of(&self.topology(), queue));
            }
            self.attach_anew(source, &binding.to, reason);
            self.bindings_of_events_changed(source);
            self.announce_binding("binding.deleted", source, binding, user);
        }
        for exchange in &removed.exchanges {
            self.cancel_delayed(exchange);
            self.shared.announce("exchange.deleted", || self.event_of(exchange, user));
        }
    }

    fn check_binding(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<(), Refused> {
        let space = self.name();
        actor.must(Action::Write, spec.destination_kind.as_str(), &spec.destination, space)?;
        if spec.destination_kind == DestinationKind::Exchange {
            must_not_be_default(&spec.destination)?;
        }
        must_not_be_default(&spec.source)?;
        actor.must(Action::Read, "exchange", &spec.source, space)
    }

    fn destination(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<Target, Refused> {
        match spec.destination_kind {
            DestinationKind::Queue => self.queue_for(&spec.destination, actor).map(Target::Queue),
            DestinationKind::Exchange => Ok(Target::Exchange(spec.destination.as_str().into())),
        }
    }

    fn nothing_there(&self, to: &Target) -> Refused {
        match to {
            Target::Queue(queue) => self.no_queue(&queue.name),
            Target::Exchange(name) => self.no_exchange(name),
        }
    }

    fn attach_anew(&self, exchange: &str, to: &Target, reason: &str) {
        if let Target::Queue(queue) = to
            && names_services(exchange)
        {
            self.reattach_consumers_of(queue, reason);
        }
    }

    /// Lets policies decide anew what every exchange's alternate is. To be called when they changed.
    pub fn apply_exchange_policies(&self, policies: &dyn Policies) {
        // Asked without the lock, under which everybody would wait for the patterns.
        let names: Vec<Arc<str>> = self.topology().exchanges.values().map(|exchange| exchange.name.clone()).collect();
        let found: Vec<_> = names.into_iter().map(|name| (policies.of_exchange(&name), name)).collect();
        let mut topology = self.topology_mut();
        for (policy, name) in found {
            if let Some(exchange) = topology.exchanges.get_mut(&*name) {
                exchange.apply(policy);
            }
        }
        drop(topology);
        self.changed();
    }
}

impl Exchange {
    /// An argument counts more than a policy.
    pub(super) fn apply(&mut self, policy: ExchangePolicy) {
        let own = self.spec.arguments.get(ALTERNATE).and_then(|field| field.as_str()).map(Arc::from);
        self.alternate = own.or(policy.alternate_exchange);
        self.policy = policy.policy;
    }
}

/// Who declares an alternate must be able to read here and to write there.
fn check_alternate(spec: &ExchangeSpec, actor: Actor<'_>, space: &str) -> Result<(), Refused> {
    let Some(field) = spec.arguments.get(ALTERNATE) else { return Ok(()) };
    let Some(alternate) = field.as_str() else {
        let (_, kind) = field.spelled();
        let text = format!("invalid type '{kind}' for arg '{ALTERNATE}' in exchange '{}' in vhost '{space}'", spec.name);
        return Err(Refused::Precondition(text));
    };
    actor.must(Action::Read, "exchange", &spec.name, space)?;
    actor.must(Action::Write, "exchange", alternate, space)
}

fn check_words(source: &Exchange, spec: &BindingSpec) -> Result<(), Refused> {
    source.routes.check(&spec.routing_key, &spec.arguments)?;
    let only_queues = match source.spec.kind {
        _ if *source.name == *CALL_EXCHANGE => "it delivers each call to one queue",
        ExchangeKind::LocalRandom => "its type is x-local-random",
        _ => return Ok(()),
    };
    match spec.destination_kind {
        DestinationKind::Queue => Ok(()),
        DestinationKind::Exchange => {
            let text = format!("exchange '{}' cannot be bound to an exchange, since {only_queues}; bind a queue", source.name);
            Err(Refused::Precondition(text))
        }
    }
}

fn must_not_be_default(exchange: &str) -> Result<(), Refused> {
    match exchange.is_empty() {
        true => Err(Refused::AccessRefused("operation not permitted on the default exchange".into())),
        false => Ok(()),
    }
}

fn must_be_equivalent(current: &ExchangeSpec, received: &ExchangeSpec, space: &str) -> Result<(), Refused> {
    let thing = format!("exchange '{}' in vhost '{space}'", current.name);
    must_equal("type", &thing, received.kind.as_str(), current.kind.as_str())?;
    must_equal("durable", &thing, received.durable, current.durable)?;
    must_equal("auto_delete", &thing, received.auto_delete, current.auto_delete)?;
    must_equal("internal", &thing, received.internal, current.internal)?;
    must_equal_argument(ALTERNATE, &thing, received.arguments.get(ALTERNATE), current.arguments.get(ALTERNATE))
}

/// Whether what is bound to it makes a queue a service's.
fn names_services(exchange: &str) -> bool {
    exchange == CALL_EXCHANGE || exchange == EVENT_EXCHANGE
}

/// The services whose calls or events a queue takes (contract §1): for calls the key's first word, for events the first dotted
/// word of a shared queue's name; so too for the default service, which names none.
fn services_of(topology: &Topology, queue: &Queue) -> Vec<(ServiceName, AttachmentHow)> {
    let own = ServiceName::new(queue.name.split('.').next().unwrap_or_default());
    let mut found: Vec<(ServiceName, AttachmentHow)> = Vec::new();
    for (exchange, binding) in topology.bindings_of(&queue.name) {
        let service = match &*exchange.name {
            CALL_EXCHANGE => match service_of(&binding.key) {
                Some(service) => ServiceName::new(&service).map(|service| (service, AttachmentHow::Calls)),
                None => own.clone().map(|service| (service, AttachmentHow::Calls)),
            },
            EVENT_EXCHANGE if queue.owner.is_none() && !queue.name.starts_with("amq.") => {
                own.clone().map(|service| (service, AttachmentHow::Events))
            }
            _ => None,
        };
        found.extend(service);
    }
    found.sort_unstable();
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    found
}
