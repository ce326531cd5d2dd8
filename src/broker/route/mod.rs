//! From a routing key (or headers) to queues and further exchanges: one table for each type of exchange. Tables know keys, arguments
//! and where bindings lead; names, durability and permissions are the vhost's.

mod call;
mod direct;
mod headers;
mod ring;
mod topic;

pub(super) use call::{Calls, Resolution, Resolved, refuse_key, service_of};

use super::queue::Queue;
use super::refused::Refused;
use super::trace::draw;
use crate::model::table::Table;
use crate::model::topology::ExchangeKind;
use crate::wire::amqp::Properties;
use smallvec::SmallVec;
use std::sync::Arc;

/// Queues a message goes to, each once.
pub(super) type Queues = SmallVec<[Arc<Queue>; 2]>;

/// Where a binding leads.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Queue(Arc<Queue>),
    /// By name: an exchange of the same space.
    Exchange(Arc<str>),
}

/// One binding as a table keeps it; the id names it for removal.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub id: u64,
    pub to: Target,
}

/// What the tables met so far found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub queues: Queues,
    pub exchanges: SmallVec<[Arc<str>; 1]>,
}

impl Found {
    pub fn add(&mut self, bound: &Bound) {
        match &bound.to {
            Target::Queue(queue) => self.queues.push(queue.clone()),
            Target::Exchange(name) => self.exchanges.push(name.clone()),
        }
    }

    pub fn add_all<'b>(&mut self, bound: impl IntoIterator<Item = &'b Bound>) {
        bound.into_iter().for_each(|bound| self.add(bound));
    }

    pub fn count(&self) -> usize {
        self.queues.len() + self.exchanges.len()
    }
}

/// What a table may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked<'a> {
    pub key: &'a str,
    /// Further keys that the sender chose (headers `CC` and `BCC`).
    pub cc: &'a [String],
    pub properties: Properties<'a>,
}

impl<'a> Looked<'a> {
    pub fn keys(self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.key).chain(self.cc.iter().map(String::as_str))
    }
}

#[derive(Debug)]
pub(super) enum Routes {
    Direct(direct::Direct),
    Topic(topic::Topic),
    Fanout(Vec<Bound>),
    Headers(headers::Headers),
    Ring(ring::Ring),
    Random(Vec<Bound>),
    Call(Calls),
}

impl Routes {
    /// The table of an exchange declared so; that of a delaying one is of the type it delays for.
    pub fn new(kind: ExchangeKind, arguments: &Table) -> Self {
        match kind {
            ExchangeKind::Direct => Routes::Direct(direct::Direct::default()),
            ExchangeKind::Topic => Routes::Topic(topic::Topic::default()),
            ExchangeKind::Fanout => Routes::Fanout(Vec::new()),
            ExchangeKind::Headers => Routes::Headers(headers::Headers::default()),
            ExchangeKind::ConsistentHash => Routes::Ring(ring::Ring::new(arguments)),
            ExchangeKind::Random | ExchangeKind::LocalRandom => Routes::Random(Vec::new()),
            ExchangeKind::Delayed => match delayed_kind(arguments) {
                Some(kind) => Routes::new(kind, arguments),
                None => Routes::Direct(direct::Direct::default()),
            },
        }
    }

    /// Whether an exchange can be declared so.
    pub fn check_exchange(kind: ExchangeKind, arguments: &Table) -> Result<(), Refused> {
        match kind {
            ExchangeKind::ConsistentHash => ring::check_exchange(arguments),
            ExchangeKind::Delayed => {
                let wanted = arguments.get(DELAYED_TYPE).and_then(|field| field.as_str());
                let refuse = |what: &str| Err(Refused::Precondition(format!("Invalid argument, {what}")));
                match wanted.and_then(ExchangeKind::parse) {
                    Some(ExchangeKind::Delayed) => refuse("'x-delayed-message' can't be used for 'x-delayed-type'"),
                    Some(kind) => Routes::check_exchange(kind, arguments),
                    None => refuse("'x-delayed-type' must be an existing exchange type"),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a binding with these words can exist.
    pub fn check(&self, key: &str, arguments: &Table) -> Result<(), Refused> {
        match self {
            Routes::Headers(_) => headers::check(arguments),
            Routes::Ring(_) => ring::check(key),
            Routes::Call(_) => refuse_key(key),
            Routes::Direct(_) | Routes::Topic(_) | Routes::Fanout(_) | Routes::Random(_) => Ok(()),
        }
    }

    pub fn insert(&mut self, key: &str, arguments: &Table, bound: Bound) {
        match self {
            Routes::Direct(table) => table.insert(key, bound),
            Routes::Topic(table) => table.insert(key, bound),
            Routes::Fanout(list) | Routes::Random(list) => list.push(bound),
            Routes::Headers(table) => table.insert(arguments, bound),
            Routes::Ring(ring) => ring.insert(key, bound),
            Routes::Call(table) => table.insert(key, arguments, bound),
        }
    }

    pub fn remove(&mut self, key: &str, id: u64) {
        match self {
            Routes::Direct(table) => table.remove(key, id),
            Routes::Topic(table) => table.remove(key, id),
            Routes::Fanout(list) | Routes::Random(list) => list.retain(|bound| bound.id != id),
            Routes::Headers(table) => table.remove(id),
            Routes::Ring(ring) => ring.remove(id),
            Routes::Call(table) => table.remove(key, id),
        }
    }

    /// Whether the key alone decides, so that what was found may be remembered by it.
    pub fn is_lasting(&self) -> bool {
        match self {
            Routes::Direct(_) | Routes::Topic(_) | Routes::Fanout(_) => true,
            Routes::Ring(ring) => ring.looks_at_key(),
            Routes::Headers(_) | Routes::Random(_) | Routes::Call(_) => false,
        }
    }

    /// What is bound for this message; calls go to one queue (see [`Calls::resolve`]).
    pub fn route(&self, looked: Looked<'_>, found: &mut Found) {
        match self {
            Routes::Direct(table) => looked.keys().for_each(|key| table.route(key, found)),
            Routes::Topic(table) => looked.keys().for_each(|key| table.route(key, found)),
            Routes::Fanout(list) => found.add_all(list),
            Routes::Headers(table) => table.route(looked.properties.headers().unwrap_or_default(), found),
            Routes::Ring(ring) => ring.route(looked, found),
            Routes::Random(list) if list.is_empty() => {}
            Routes::Random(list) => found.add(&list[(draw() % list.len() as u64) as usize]),
            Routes::Call(calls) => {
                if let Resolution::To(resolved) = calls.resolve(looked.key, false) {
                    found.queues.push(resolved.queue);
                }
            }
        }
    }
}

const DELAYED_TYPE: &str = "x-delayed-type";

/// The type that a delaying exchange routes by.
fn delayed_kind(arguments: &Table) -> Option<ExchangeKind> {
    let kind = ExchangeKind::parse(arguments.get(DELAYED_TYPE)?.as_str()?)?;
    (kind != ExchangeKind::Delayed).then_some(kind)
}

/// A queue bound twice gets one copy.
pub(super) fn once_each(found: &mut Queues) {
    if found.len() > 16 {
        found.sort_by_key(|queue| Arc::as_ptr(queue) as usize);
        found.dedup_by(|a, b| Arc::ptr_eq(a, b));
        return;
    }
    let mut at = 1;
    while at < found.len() {
        match found[..at].iter().any(|before| Arc::ptr_eq(before, &found[at])) {
            true => _ = found.remove(at),
            false => at += 1,
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::model::topology::QueueSpec;

    pub fn queue(name: &str) -> Arc<Queue> {
        let spec = QueueSpec { name: name.into(), durable: false, exclusive: false, auto_delete: false, arguments: Table::new() };
        Queue::new(spec, None, crate::kernel::Instant::ZERO)
    }

    pub fn bound(id: u64, queue: &Arc<Queue>) -> Bound {
        Bound { id, to: Target::Queue(queue.clone()) }
    }

    /// Names of the queues that `routes` finds, sorted.
    pub fn names(routes: &Routes, key: &str, properties: Properties<'_>) -> String {
        let mut found = Found::default();
        routes.route(Looked { key, cc: &[], properties }, &mut found);
        once_each(&mut found.queues);
        let mut names: Vec<&str> = found.queues.iter().map(|queue| &*queue.name).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{bound, names, queue};
    use super::*;
    use crate::model::table::Field;

    #[test]
    fn a_queue_bound_by_many_keys_gets_one_copy() {
        let mut routes = Routes::new(ExchangeKind::Topic, &Table::new());
        let (a, b) = (queue("a"), queue("b"));
        for (id, (key, queue)) in [("#", &a), ("x.*", &a), ("x.y", &b), ("*.y", &b)].into_iter().enumerate() {
            routes.insert(key, &Table::new(), bound(id as u64, queue));
        }
        assert_eq!(names(&routes, "x.y", Properties::NONE), "a b");
        let mut fanout = Routes::new(ExchangeKind::Fanout, &Table::new());
        for id in 0..40 {
            fanout.insert("", &Table::new(), bound(id, if id % 2 == 0 { &a } else { &b }));
        }
        assert_eq!(names(&fanout, "any", Properties::NONE), "a b");
        (0..40).filter(|id| id % 2 == 0).for_each(|id| fanout.remove("", id));
        assert_eq!(names(&fanout, "any", Properties::NONE), "b");
    }

    #[test]
    fn a_random_exchange_chooses_one_binding_and_in_time_each() {
        let mut routes = Routes::new(ExchangeKind::Random, &Table::new());
        assert_eq!(names(&routes, "k", Properties::NONE), "");
        let queues = ["a", "b", "c"].map(queue);
        for (id, queue) in queues.iter().enumerate() {
            routes.insert("ignored", &Table::new(), bound(id as u64, queue));
        }
        let mut met: Vec<String> = (0..200).map(|_| names(&routes, "k", Properties::NONE)).collect();
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, ["a", "b", "c"]);
    }

    #[test]
    fn a_delaying_exchange_must_say_what_it_routes_as() {
        let says = |kind: Option<&str>| {
            let arguments = kind.map_or_else(Table::new, |kind| Table::new().with(DELAYED_TYPE, Field::text(kind)));
            Routes::check_exchange(ExchangeKind::Delayed, &arguments).map_err(|refused| refused.text().to_owned())
        };
        let no_type = Err("Invalid argument, 'x-delayed-type' must be an existing exchange type".to_owned());
        assert_eq!(says(None), no_type);
        assert_eq!(says(Some("nothing")), no_type);
        let itself = "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'";
        assert_eq!(says(Some("x-delayed-message")), Err(itself.to_owned()));
        assert_eq!(says(Some("topic")), Ok(()));
    }
}
