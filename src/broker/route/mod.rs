//! From a routing key (or headers) to queues: one table for each type of exchange. Tables know keys, arguments and queues;
//! names, durability and permissions are the vhost's.

mod call;
mod direct;
mod headers;
mod topic;

pub(super) use call::{Calls, Resolution, Resolved, refuse_key, service_of};

use super::queue::Queue;
use super::refused::Refused;
use crate::model::table::Table;
use crate::model::topology::ExchangeKind;
use crate::wire::amqp::RawTable;
use smallvec::SmallVec;
use std::sync::Arc;

/// Queues a message goes to, each once.
pub(super) type Found = SmallVec<[Arc<Queue>; 2]>;

/// One binding as a table keeps it; the id names it for removal.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub id: u64,
    pub queue: Arc<Queue>,
}

#[derive(Debug)]
pub(super) enum Routes {
    Direct(direct::Direct),
    Topic(topic::Topic),
    Fanout(Vec<Bound>),
    Headers(headers::Headers),
    Call(Calls),
}

impl Routes {
    pub fn new(kind: ExchangeKind) -> Self {
        match kind {
            // The other types are not declared yet.
            ExchangeKind::ConsistentHash
            | ExchangeKind::Random
            | ExchangeKind::LocalRandom
            | ExchangeKind::Delayed
            | ExchangeKind::Direct => Routes::Direct(direct::Direct::default()),
            ExchangeKind::Topic => Routes::Topic(topic::Topic::default()),
            ExchangeKind::Fanout => Routes::Fanout(Vec::new()),
            ExchangeKind::Headers => Routes::Headers(headers::Headers::default()),
        }
    }

    /// Whether a binding with these words can exist.
    pub fn check(&self, key: &str, arguments: &Table) -> Result<(), Refused> {
        match self {
            Routes::Headers(_) => headers::check(arguments),
            Routes::Call(_) => refuse_key(key),
            Routes::Direct(_) | Routes::Topic(_) | Routes::Fanout(_) => Ok(()),
        }
    }

    pub fn insert(&mut self, key: &str, arguments: &Table, bound: Bound) {
        match self {
            Routes::Direct(table) => table.insert(key, bound),
            Routes::Topic(table) => table.insert(key, bound),
            Routes::Fanout(list) => list.push(bound),
            Routes::Headers(table) => table.insert(arguments, bound),
            Routes::Call(table) => table.insert(key, arguments, bound),
        }
    }

    pub fn remove(&mut self, key: &str, id: u64) {
        match self {
            Routes::Direct(table) => table.remove(key, id),
            Routes::Topic(table) => table.remove(key, id),
            Routes::Fanout(list) => list.retain(|bound| bound.id != id),
            Routes::Headers(table) => table.remove(id),
            Routes::Call(table) => table.remove(key, id),
        }
    }

    /// Whether headers decide, so that a route must not be remembered by its key.
    pub fn looks_at_headers(&self) -> bool {
        matches!(self, Routes::Headers(_))
    }

    /// Queues of an ordinary exchange; calls are resolved by [`Calls::resolve`].
    pub fn route(&self, key: &str, headers: Option<RawTable<'_>>, found: &mut Found) {
        match self {
            Routes::Direct(table) => table.route(key, found),
            Routes::Topic(table) => table.route(key, found),
            Routes::Fanout(list) => found.extend(list.iter().map(|bound| bound.queue.clone())),
            Routes::Headers(table) => table.route(headers.unwrap_or_default(), found),
            Routes::Call(_) => {}
        }
        once_each(found);
    }
}

/// A queue bound twice gets one copy.
fn once_each(found: &mut Found) {
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
        Queue::new(spec, None)
    }

    /// Names of the queues that `routes` finds, sorted.
    pub fn names(routes: &Routes, key: &str, headers: Option<RawTable<'_>>) -> String {
        let mut found = Found::new();
        routes.route(key, headers, &mut found);
        let mut names: Vec<&str> = found.iter().map(|queue| &*queue.name).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{names, queue};
    use super::*;

    #[test]
    fn a_queue_bound_by_many_keys_gets_one_copy() {
        let mut routes = Routes::new(ExchangeKind::Topic);
        let (a, b) = (queue("a"), queue("b"));
        for (id, (key, queue)) in [("#", &a), ("x.*", &a), ("x.y", &b), ("*.y", &b)].into_iter().enumerate() {
            routes.insert(key, &Table::new(), Bound { id: id as u64, queue: queue.clone() });
        }
        assert_eq!(names(&routes, "x.y", None), "a b");
        let mut fanout = Routes::new(ExchangeKind::Fanout);
        for id in 0..40 {
            fanout.insert("", &Table::new(), Bound { id, queue: if id % 2 == 0 { a.clone() } else { b.clone() } });
        }
        assert_eq!(names(&fanout, "any", None), "a b");
        (0..40).filter(|id| id % 2 == 0).for_each(|id| fanout.remove("", id));
        assert_eq!(names(&fanout, "any", None), "b");
    }
}
