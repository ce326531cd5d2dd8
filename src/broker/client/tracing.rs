//! Which trace a publish belongs to (contract §8): its own `traceparent`; else the oldest open delivery on its connection while that
//! settles in order; else the only open one; else a new trace.

use super::Client;
use crate::broker::outbox::Outbox;
use crate::broker::trace::{self, Beside, Parent, Published};
use crate::kernel::Instant;
use crate::model::trace_context::TraceContext;
use crate::wire::amqp::{Properties, Publish};

impl Client {
    /// What stands beside the message, if its trace is recorded. `low`: bits drawn in case it starts one.
    #[cold]
    pub(super) fn trace_beside(&mut self, message: &Publish<'_>, properties: Properties<'_>, low: u64) -> Option<Beside> {
        let parent = self.parent(properties, low)?;
        let what =
            Published { exchange: message.exchange, routing_key: message.routing_key, properties, body_len: message.body.len() };
        let epoch_ns = self.vhost.shared.epoch_ns;
        Some(trace::published(parent, what, self.link.resource(), epoch_ns, &mut self.effects))
    }

    fn parent(&mut self, properties: Properties<'_>, low: u64) -> Option<Parent> {
        if let Some(given) = given(properties) {
            return trace::is_kept(&given).then(|| Parent::Given(given.into()));
        }
        if self.consumes && self.vhost.shared.config.infer_parents {
            // Acks said before this publish decide what is still open.
            self.settle_pending();
            match worked_on(&self.link.outbox()) {
                WorkedOn::Recorded(beside) => return Some(Parent::Inferred(beside)),
                WorkedOn::Unrecorded => return None,
                WorkedOn::Nothing => {}
            }
        }
        crate::model::emit::keep_low(low).then_some(Parent::Root(low))
    }
}

/// A message's own context.
fn given(properties: Properties<'_>) -> Option<TraceContext> {
    // Cheap for the many messages whose headers have none.
    memchr::memmem::find(properties.as_bytes(), b"traceparent")?;
    TraceContext::parse(properties.headers()?.get("traceparent")?.as_str()?)
}

enum WorkedOn {
    Nothing,
    /// A delivery whose trace is not recorded: what follows from it is not either.
    Unrecorded,
    Recorded(Beside),
}

fn worked_on(outbox: &Outbox) -> WorkedOn {
    let mut open = 0;
    let mut oldest: Option<(u64, WorkedOn)> = None;
    let mut consider = |started_ms: u64, found: WorkedOn| {
        if oldest.as_ref().is_none_or(|(before, _)| started_ms < *before) {
            oldest = Some((started_ms, found));
        }
    };
    let ms = |at: Instant| at.as_nanos() / 1_000_000;
    for (_, lane) in outbox.channels.iter() {
        open += lane.live as usize;
        if let Some(first) = lane.unsettled().next() {
            let process = lane.open.get(&first.tag).and_then(|open| open.process.as_ref());
            consider(first.at_ms.into(), process.map_or(WorkedOn::Unrecorded, |process| WorkedOn::Recorded(process.beside())));
        }
        for process in lane.open.values().filter(|open| open.auto_acked).filter_map(|open| open.process.as_ref()) {
            open += 1;
            consider(ms(process.started), WorkedOn::Recorded(process.beside()));
        }
    }
    match oldest {
        Some((_, found)) if outbox.settles_in_order || open == 1 => found,
        _ => WorkedOn::Nothing,
    }
}
