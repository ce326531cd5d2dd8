//! Declaring and deleting: what RabbitMQ checks, in its words.

use super::config::AttachmentHow;
use super::effects::Effects;
use super::queue::{Consumer, InUse, Queue};
use super::refused::Refused;
use super::reply::{Address, REPLY_QUEUE};
use super::route::service_of;
use super::topology::{Exchange, Topology, reserved_prefix};
use super::vhost::{Actor, Vhost};
use crate::kernel::limit;
use crate::kernel::rng;
use crate::model::identity::Action;
use crate::model::service::ServiceName;
use crate::model::table::Field;
use crate::model::topology::{
    BindingSpec, CALL_EXCHANGE, DestinationKind, EVENT_EXCHANGE, ExchangeKind, ExchangeSpec, QueueSpec,
};
use std::sync::Arc;

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

/// Queue arguments that change nothing here: accepted.
const QUEUE_ARGUMENTS_WITHOUT_EFFECT: &[&str] =
    &["x-queue-mode", "x-queue-version", "x-queue-master-locator", "x-queue-leader-locator"];
/// Queue arguments whose effect does not exist yet: refused, since ignoring them would break a promise.
const QUEUE_ARGUMENTS_NOT_YET: &[&str] = &[
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-priority",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-message-deduplication",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
];
const EXCHANGE_ARGUMENTS_NOT_YET: &[&str] = &["alternate-exchange", "x-delayed-type", "x-message-deduplication"];
const QUEUE_TYPE: &str = "x-queue-type";

impl Vhost {
    /// Creates, or checks that what exists is equivalent. An empty name asks for a generated one.
    pub fn declare_queue(&self, spec: &QueueSpec, actor: Actor<'_>) -> Result<Declared, Refused> {
        let space = self.name();
        let generated = spec.name.is_empty();
        let name = if generated { format!("amq.gen-{}", rng::token::<16>()) } else { spec.name.clone() };
        actor.must(Action::Configure, "queue", &name, space)?;
        let mut topology = self.topology_mut();
        if let Some(queue) = topology.queues.get(name.as_str()).cloned() {
            drop(topology);
            self.must_own(&queue, actor)?;
            must_be_equivalent_queue(&queue.spec, spec, space)?;
            return Ok(self.declared(&queue, false));
        }
        if let Some(prefix) = reserved_prefix(&name).filter(|_| !generated) {
            return Err(Refused::AccessRefused(format!("queue name '{name}' contains reserved prefix '{prefix}*'")));
        }
        check_queue_arguments(&name, spec, space)?;
        if topology.queues.len() >= limit::QUEUES_MAX {
            let text =
                format!("cannot declare queue '{name}': queue limit in vhost '{space}' ({}) is reached", limit::QUEUES_MAX);
            return Err(Refused::Precondition(text));
        }
        self.admits_queue(&name, topology.queues.len())?;
        let owner = actor.connection.filter(|_| spec.exclusive);
        let queue = Queue::new(QueueSpec { name, ..spec.clone() }, owner);
        topology.queues.insert(queue.name.clone(), queue.clone());
        drop(topology);
        self.changed();
        Ok(self.declared(&queue, true))
    }

    /// Asks for a queue without creating it.
    pub fn declare_queue_passively(&self, name: &str, actor: Actor<'_>) -> Result<Declared, Refused> {
        if Address::is_address(name) || name == REPLY_QUEUE {
            let alive = name == REPLY_QUEUE || self.replies.find(name).is_some();
            let declared = || Declared { name: name.into(), created: false, ready: 0, consumers: 1 };
            return alive.then(declared).ok_or_else(|| self.no_queue(name));
        }
        Ok(self.declared(&self.queue_for(name, actor)?, false))
    }

    fn declared(&self, queue: &Arc<Queue>, created: bool) -> Declared {
        let mut effects = Effects::new(self.shared.clock.now());
        queue.expire(&mut effects);
        effects.run_quietly(&self.shared);
        Declared { name: queue.name.clone(), created, ready: queue.ready_count(), consumers: queue.consumer_count().into() }
    }

    /// True if it was created.
    pub fn declare_exchange(&self, spec: &ExchangeSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        let (space, name) = (self.name(), &spec.name);
        must_not_be_default(name)?;
        actor.must(Action::Configure, "exchange", name, space)?;
        let mut topology = self.topology_mut();
        if let Some(exchange) = topology.exchanges.get(name.as_str()) {
            must_be_equivalent_exchange(&exchange.spec, spec, space)?;
            return Ok(false);
        }
        must_not_be_reserved_exchange(name)?;
        use ExchangeKind::{ConsistentHash, Delayed, LocalRandom, Random};
        if matches!(spec.kind, ConsistentHash | Random | LocalRandom | Delayed) {
            return Err(not_yet(&format!("exchange type '{}'", spec.kind.as_str())));
        }
        if let Some(argument) = EXCHANGE_ARGUMENTS_NOT_YET.iter().find(|argument| spec.arguments.get(argument).is_some()) {
            return Err(not_yet(&format!("argument '{argument}' of exchange '{name}'")));
        }
        if topology.exchanges.len() >= limit::EXCHANGES_MAX {
            let text = format!(
                "cannot declare exchange '{name}': exchange limit in vhost '{space}' ({}) is reached",
                limit::EXCHANGES_MAX
            );
            return Err(Refused::Precondition(text));
        }
        let exchange = Exchange::new(spec.clone());
        topology.exchanges.insert(exchange.name.clone(), exchange);
        drop(topology);
        self.changed();
        Ok(true)
    }

    /// Asks for an exchange without creating it.
    pub fn declare_exchange_passively(&self, name: &str) -> Result<(), Refused> {
        must_not_be_default(name)?;
        self.topology().exchanges.get(name).map(drop).ok_or_else(|| self.no_exchange(name))
    }

    /// True if it was created; binding twice is one binding.
    pub fn bind(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        let queue = self.check_binding(spec, actor)?;
        let created = {
            let mut topology = self.topology_mut();
            let exchange = topology.exchanges.get(spec.source.as_str()).ok_or_else(|| self.no_exchange(&spec.source))?;
            exchange.routes.check(&spec.routing_key, &spec.arguments)?;
            exchange.must_read(&spec.routing_key, actor, self.name())?;
            if !topology.queues.get(&queue.name).is_some_and(|found| Arc::ptr_eq(found, &queue)) {
                return Err(self.no_queue(&spec.destination));
            }
            if topology.binding_count() >= limit::BINDINGS_MAX {
                let text = format!("binding limit in vhost '{}' ({}) is reached", self.name(), limit::BINDINGS_MAX);
                return Err(Refused::Precondition(text));
            }
            let created = topology.bind(&spec.source, &queue, &spec.routing_key, &spec.arguments);
            queue.set_services(services_of(&topology, &queue));
            created
        };
        if created {
            self.binding_changed(&spec.source, &queue);
        }
        Ok(created)
    }

    /// True if it existed.
    pub fn unbind(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<bool, Refused> {
        let queue = self.check_binding(spec, actor)?;
        let existed = {
            let mut topology = self.topology_mut();
            let exchange = topology.exchanges.get(spec.source.as_str()).ok_or_else(|| self.no_exchange(&spec.source))?;
            exchange.must_read(&spec.routing_key, actor, self.name())?;
            let existed = topology.unbind(&spec.source, &queue.name, &spec.routing_key, &spec.arguments);
            queue.set_services(services_of(&topology, &queue));
            existed
        };
        if existed {
            self.binding_changed(&spec.source, &queue);
        }
        Ok(existed)
    }

    fn check_binding(&self, spec: &BindingSpec, actor: Actor<'_>) -> Result<Arc<Queue>, Refused> {
        let space = self.name();
        if spec.destination_kind == DestinationKind::Exchange {
            return Err(not_yet("binding an exchange to an exchange"));
        }
        actor.must(Action::Write, "queue", &spec.destination, space)?;
        let queue = self.queue_for(&spec.destination, actor)?;
        must_not_be_default(&spec.source)?;
        actor.must(Action::Read, "exchange", &spec.source, space)?;
        Ok(queue)
    }

    fn binding_changed(&self, exchange: &str, queue: &Arc<Queue>) {
        self.changed();
        if exchange == CALL_EXCHANGE || exchange == EVENT_EXCHANGE {
            self.reattach_consumers_of(queue, "its binding was removed");
        }
    }

    /// Messages that went with it; `None` if there was none, which is no error.
    pub fn delete_queue(&self, name: &str, rule: DeleteRule, actor: Actor<'_>) -> Result<Option<u64>, Refused> {
        let space = self.name();
        actor.must(Action::Configure, "queue", name, space)?;
        let Some(queue) = self.find_queue(name) else { return Ok(None) };
        self.must_own(&queue, actor)?;
        let mut effects = Effects::new(self.shared.clock.now());
        let closed = queue.close(rule.if_unused, rule.if_empty, &mut effects);
        let (count, consumers) = closed.map_err(|in_use| {
            let why = if in_use == InUse::Consumed { "in use" } else { "not empty" };
            Refused::Precondition(format!("queue '{name}' in vhost '{space}' {why}"))
        })?;
        self.forget_queue(&queue, consumers, &mut effects);
        effects.run(&self.shared);
        Ok(Some(count))
    }

    /// Deletes a queue because its time has come: auto-delete, or its connection closed.
    pub(super) fn end_queue(&self, queue: &Arc<Queue>, if_unused: bool, effects: &mut Effects) {
        if let Ok((_, consumers)) = queue.close(if_unused, false, effects) {
            self.forget_queue(queue, consumers, effects);
        }
    }

    /// Takes a closed queue out of the topology and tells its consumers.
    fn forget_queue(&self, queue: &Arc<Queue>, consumers: Vec<Consumer>, effects: &mut Effects) {
        self.topology_mut().remove_queue(queue);
        self.changed();
        for consumer in consumers {
            consumer.link.cancelled_by_broker(&consumer, effects);
            self.reattach(&consumer.link, "its queue was deleted");
        }
    }

    /// True if it existed.
    pub fn delete_exchange(&self, name: &str, rule: DeleteRule, actor: Actor<'_>) -> Result<bool, Refused> {
        let space = self.name();
        must_not_be_default(name)?;
        must_not_be_reserved_exchange(name)?;
        actor.must(Action::Configure, "exchange", name, space)?;
        let queues = {
            let mut topology = self.topology_mut();
            let Some(exchange) = topology.exchanges.get(name) else { return Ok(false) };
            if rule.if_unused && !exchange.bindings.is_empty() {
                return Err(Refused::Precondition(format!("exchange '{name}' in vhost '{space}' in use")));
            }
            topology.remove_exchange(name)
        };
        drop(queues);
        self.changed();
        Ok(true)
    }

    /// Ready messages removed.
    pub fn purge_queue(&self, name: &str, actor: Actor<'_>) -> Result<u64, Refused> {
        actor.must(Action::Read, "queue", name, self.name())?;
        let queue = self.queue_for(name, actor)?;
        let mut effects = Effects::new(self.shared.clock.now());
        let count = queue.purge(&mut effects);
        effects.run(&self.shared);
        Ok(count)
    }
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

fn not_yet(what: &str) -> Refused {
    Refused::NotImplemented(format!("{what} is not available yet in this version of reactor"))
}

fn must_not_be_default(exchange: &str) -> Result<(), Refused> {
    match exchange.is_empty() {
        true => Err(Refused::AccessRefused("operation not permitted on the default exchange".into())),
        false => Ok(()),
    }
}

fn must_not_be_reserved_exchange(name: &str) -> Result<(), Refused> {
    match reserved_prefix(name) {
        Some(prefix) => Err(Refused::AccessRefused(format!("exchange name '{name}' contains reserved prefix '{prefix}*'"))),
        None => Ok(()),
    }
}

/// A quorum queue is taken as a classic one would be: kept in memory, which the views say of every durable queue.
fn check_queue_arguments(name: &str, spec: &QueueSpec, space: &str) -> Result<(), Refused> {
    let arguments = &spec.arguments;
    if let Some(argument) = QUEUE_ARGUMENTS_NOT_YET.iter().find(|argument| arguments.get(argument).is_some()) {
        return Err(not_yet(&format!("argument '{argument}' of queue '{name}' in vhost '{space}'")));
    }
    match arguments.get(QUEUE_TYPE).map(Field::as_str) {
        None | Some(Some("classic")) => Ok(()),
        Some(Some("quorum")) => check_quorum(name, spec, space),
        Some(Some("stream")) => Err(not_yet(&format!("queue type 'stream' of queue '{name}' in vhost '{space}'"))),
        Some(kind) => Err(Refused::Precondition(format!(
            "invalid arg 'x-queue-type' for queue '{name}' in vhost '{space}': unsupported queue type '{}'",
            kind.unwrap_or("not a string")
        ))),
    }
}

/// What RabbitMQ does not let a quorum queue be.
fn check_quorum(name: &str, spec: &QueueSpec, space: &str) -> Result<(), Refused> {
    let wrong = [(!spec.durable, "non-durable"), (spec.auto_delete, "auto-delete"), (spec.exclusive, "exclusive-owner")];
    match wrong.into_iter().find(|(wrong, _)| *wrong) {
        None => Ok(()),
        Some((_, property)) => {
            Err(Refused::Precondition(format!("invalid property '{property}' for queue '{name}' in vhost '{space}'")))
        }
    }
}

fn must_be_equivalent_queue(current: &QueueSpec, received: &QueueSpec, space: &str) -> Result<(), Refused> {
    let thing = format!("queue '{}' in vhost '{space}'", current.name);
    if received.exclusive != current.exclusive {
        return Err(Refused::Locked(format!(
            "cannot obtain exclusive access to locked {thing}. It could be originally declared on another connection or the \
             exclusive property value does not match that of the original declaration."
        )));
    }
    must_equal("durable", &thing, received.durable, current.durable)?;
    must_equal("auto_delete", &thing, received.auto_delete, current.auto_delete)?;
    let mut compared = QUEUE_ARGUMENTS_NOT_YET.iter().chain(QUEUE_ARGUMENTS_WITHOUT_EFFECT);
    compared.try_for_each(|name| must_equal_argument(name, &thing, received.arguments.get(name), current.arguments.get(name)))?;
    let classic = Field::text("classic");
    let kind = |spec: &QueueSpec| spec.arguments.get(QUEUE_TYPE).cloned().unwrap_or_else(|| classic.clone());
    must_equal_argument(QUEUE_TYPE, &thing, Some(&kind(received)), Some(&kind(current)))
}

fn must_be_equivalent_exchange(current: &ExchangeSpec, received: &ExchangeSpec, space: &str) -> Result<(), Refused> {
    let thing = format!("exchange '{}' in vhost '{space}'", current.name);
    must_equal("type", &thing, received.kind.as_str(), current.kind.as_str())?;
    must_equal("durable", &thing, received.durable, current.durable)?;
    must_equal("auto_delete", &thing, received.auto_delete, current.auto_delete)?;
    must_equal("internal", &thing, received.internal, current.internal)?;
    let name = "alternate-exchange";
    must_equal_argument(name, &thing, received.arguments.get(name), current.arguments.get(name))
}

fn must_equal<T: PartialEq + std::fmt::Display>(name: &str, thing: &str, received: T, current: T) -> Result<(), Refused> {
    match received == current {
        true => Ok(()),
        false => {
            let text = format!("inequivalent arg '{name}' for {thing}: received '{received}' but current is '{current}'");
            Err(Refused::Precondition(text))
        }
    }
}

fn must_equal_argument(name: &str, thing: &str, received: Option<&Field>, current: Option<&Field>) -> Result<(), Refused> {
    if received == current {
        return Ok(());
    }
    let (received, current) = (spelled(received), spelled(current));
    let text = format!("inequivalent arg '{name}' for {thing}: received {received} but current is {current}");
    Err(Refused::Precondition(text))
}

/// As RabbitMQ spells a value with its type.
fn spelled(field: Option<&Field>) -> String {
    let Some(field) = field else { return "none".into() };
    let (value, kind) = match field {
        Field::Bool(value) => (value.to_string(), "bool"),
        Field::I8(_) => (integer(field), "byte"),
        Field::U8(_) => (integer(field), "unsignedbyte"),
        Field::I16(_) => (integer(field), "short"),
        Field::U16(_) => (integer(field), "unsignedshort"),
        Field::I32(_) => (integer(field), "signedint"),
        Field::U32(_) => (integer(field), "unsignedint"),
        Field::I64(_) => (integer(field), "long"),
        Field::F32(value) => (value.to_string(), "float"),
        Field::F64(value) => (value.to_string(), "double"),
        Field::Decimal { scale, value } => (format!("{value}e-{scale}"), "decimal"),
        Field::Text(bytes) => (String::from_utf8_lossy(bytes).into_owned(), "longstr"),
        Field::Bytes(bytes) => (format!("{} bytes", bytes.len()), "binary"),
        Field::Array(items) => (format!("{} items", items.len()), "array"),
        Field::Timestamp(seconds) => (seconds.to_string(), "timestamp"),
        Field::Table(table) => (format!("{} fields", table.0.len()), "table"),
        Field::Void => ("undefined".into(), "void"),
    };
    format!("the value '{value}' of type '{kind}'")
}

fn integer(field: &Field) -> String {
    field.as_integer().unwrap_or_default().to_string()
}
