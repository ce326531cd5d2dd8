//! What an operator does with the messages of a queue: moves them, drops some, sends dead letters back where they died; and asks
//! where a message would go.
//!
//! Ready messages only: what is unacked belongs to its consumer. A message keeps its properties, headers, expiry and trace, and,
//! but for a redrive, the exchange and key it was published with. Work is done in slices, each under one short lock, up to what
//! was ready when it began, so that it ends however fast others publish. Calls of the gateway stay: their callers wait for the
//! consumers of this very queue.

use super::client::chosen;
use super::effects::{Effects, Overflowed};
use super::message::{Meta, Run};
use super::queue::{Queue, Seen, Taken};
use super::record::{self, SEGMENT_BYTES};
use super::refused::Refused;
use super::routing::Asked;
use super::vhost::{Actor, Vhost};
use crate::model::identity::Action;
use crate::wire::amqp::Properties;
use crate::wire::amqp::table::RawField;
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Messages taken under one lock of their queue.
const SLICE: usize = 256;
/// Dead letters a plan looks at.
const PLAN_MAX: usize = 100_000;
/// Messages that may be named in one request.
pub const NAMED_MAX: u64 = 1_000_000;

/// Which ready messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// So many from the head.
    First(u64),
    /// Stretches of [`PeekedMessage::id`](super::view::PeekedMessage::id), first and last.
    These(Vec<(u64, u64)>),
}

impl Which {
    pub fn one(id: u64) -> Self {
        Which::These(vec![(id, id)])
    }

    /// The messages meant as they stand now, in their order; refused if too many are named.
    /// A queue's order changes while letters come back to it, so nobody may count places meanwhile.
    fn ids(&self, of: &Queue, at_most: u64) -> Result<Vec<u64>, Refused> {
        match self {
            Which::First(_) => Ok(of.movable(usize::try_from(at_most).unwrap_or(usize::MAX))),
            Which::These(stretches) => {
                let count = |(first, last): &(u64, u64)| last.saturating_sub(*first).saturating_add(1);
                let named = stretches.iter().fold(0u64, |sum, stretch| sum.saturating_add(count(stretch)));
                if named > NAMED_MAX {
                    let text = format!("{named} messages are named, at most {NAMED_MAX} can be in one request");
                    return Err(Refused::TooLarge(text));
                }
                Ok(stretches.iter().flat_map(|(first, last)| *first..=*last).collect())
            }
        }
    }

    fn most(&self) -> u64 {
        match self {
            Which::First(count) => *count,
            Which::These(_) => u64::MAX,
        }
    }
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub moved: u64,
    /// Named, or counted on, but not moved: gone meanwhile, calls, dead letters without a way back, or refused by a full queue (which
    /// may have made a dead letter of them).
    pub left: u64,
    /// Their ids in the queue they are in now, first and last of each stretch, in order; to move them back.
    pub placed: Vec<(Arc<str>, u64, u64)>,
}

/// Where dead letters came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedrivePlan {
    /// Looked at, of `ready`.
    pub looked_at: u64,
    pub ready: u64,
    pub origins: Vec<Origin>,
    /// Without a record of where they died.
    pub without: u64,
}

/// Messages that died in one queue for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub queue: Arc<str>,
    pub reason: Arc<str>,
    pub messages: u64,
    /// The queue is there to take them back.
    pub exists: bool,
}

/// Where a message would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldRoute {
    pub queues: Vec<Arc<str>>,
    /// The key it would be delivered with, if not the one given.
    pub key: Option<String>,
}

impl Vhost {
    /// Moves ready messages to the back of another queue, or of the same one.
    pub fn move_messages(&self, from: &str, to: &str, which: &Which, actor: Actor<'_>) -> Result<Moved, Refused> {
        actor.must(Action::Read, "queue", from, self.name())?;
        actor.must(Action::Write, "queue", to, self.name())?;
        let (source, target) = (self.queue_for(from, actor)?, self.queue_for(to, actor)?);
        let counted = which.most().min(source.ready_count());
        let ids = which.ids(&source, counted)?;
        let mut moved = Moved::default();
        for slice in ids.chunks(SLICE) {
            let mut effects = Effects::new(self.shared.clock.now());
            let taken = source.take_these(slice, &mut effects);
            moved.left += (slice.len() - taken.len()) as u64;
            let letters = taken.into_iter().map(|taken| Letter { to: target.clone(), key: None, taken }).collect();
            put(&source, letters, &mut moved, &mut effects);
            effects.run(&self.shared);
        }
        if matches!(which, Which::First(_)) {
            // Calls were counted on, but stay.
            moved.left += counted - ids.len() as u64;
        }
        Ok(moved)
    }

    /// Drops one ready message. False if there is none of that id.
    pub fn delete_message(&self, name: &str, id: u64, actor: Actor<'_>) -> Result<bool, Refused> {
        actor.must(Action::Read, "queue", name, self.name())?;
        let queue = self.queue_for(name, actor)?;
        let mut effects = Effects::new(self.shared.clock.now());
        let found = queue.discard(id, &mut effects);
        effects.run(&self.shared);
        Ok(found)
    }

    /// Drops the `count` ready messages at the head. Returns how many went.
    pub fn purge_oldest(&self, name: &str, count: u64, actor: Actor<'_>) -> Result<u64, Refused> {
        actor.must(Action::Read, "queue", name, self.name())?;
        let queue = self.queue_for(name, actor)?;
        let mut left = count.min(queue.ready_count());
        let mut purged = 0;
        while left > 0 {
            let mut effects = Effects::new(self.shared.clock.now());
            let went = queue.purge_first(SLICE.min(left as usize), &mut effects) as u64;
            effects.run(&self.shared);
            (purged, left) = (purged + went, left - went);
            if went == 0 {
                break;
            }
        }
        Ok(purged)
    }

    /// Counts where the dead letters in a queue came from. Changes nothing.
    pub fn redrive_plan(&self, name: &str) -> Result<RedrivePlan, Refused> {
        let queue = self.find_queue(name).ok_or_else(|| self.no_queue(name))?;
        let mut plan = RedrivePlan::default();
        let mut origins: BTreeMap<(String, String), u64> = BTreeMap::new();
        while (plan.looked_at as usize) < PLAN_MAX {
            let slice = queue.look(plan.looked_at as usize, SLICE);
            for seen in &slice {
                match death_of(seen, name) {
                    Some(death) => *origins.entry((death.queue.to_owned(), death.reason.to_owned())).or_default() += 1,
                    None => plan.without += 1,
                }
            }
            plan.looked_at += slice.len() as u64;
            if slice.len() < SLICE {
                break;
            }
        }
        plan.ready = queue.ready_count();
        let shape = |((queue, reason), messages): ((String, String), u64)| Origin {
            exists: self.find_queue(&queue).is_some(),
            queue: queue.into(),
            reason: reason.into(),
            messages,
        };
        plan.origins = origins.into_iter().map(shape).collect();
        Ok(plan)
    }

    /// Sends dead letters back into the queues they died in, under the exchange and key they had there, oldest first. Straight into
    /// the queue and not through the exchange: other subscribers have had their copy. `only` keeps it to one of those queues.
    pub fn redrive(&self, name: &str, only: Option<&str>, which: &Which, actor: Actor<'_>) -> Result<Moved, Refused> {
        actor.must(Action::Read, "queue", name, self.name())?;
        let source = self.queue_for(name, actor)?;
        let mut origins = Origins { only, known: BTreeMap::new() };
        let mut moved = Moved::default();
        let ids = which.ids(&source, u64::MAX)?;
        let mut rest = &ids[..];
        while !rest.is_empty() && moved.moved < which.most() {
            let wanted = usize::try_from(which.most() - moved.moved).unwrap_or(usize::MAX);
            let (next, later) = rest.split_at(rest.len().min(SLICE).min(wanted));
            let slice = source.look_at_these(next);
            moved.left += (next.len() - slice.len()) as u64;
            self.send_back(&source, &slice, &mut origins, &mut moved, actor)?;
            rest = later;
        }
        Ok(moved)
    }

    fn send_back(
        &self,
        source: &Arc<Queue>,
        slice: &[Seen],
        origins: &mut Origins<'_>,
        moved: &mut Moved,
        actor: Actor<'_>,
    ) -> Result<(), Refused> {
        let mut ways = BTreeMap::new();
        for seen in slice {
            let Some(death) = death_of(seen, &source.name) else { continue };
            if let Some(to) = origins.find(self, death.queue, actor)? {
                ways.insert(seen.seq, (to, (death.exchange.to_owned(), death.key.to_owned())));
            }
        }
        let ids: Vec<u64> = slice.iter().map(|seen| seen.seq).filter(|seq| ways.contains_key(seq)).collect();
        let mut effects = Effects::new(self.shared.clock.now());
        let taken = source.take_these(&ids, &mut effects);
        let letters = taken.into_iter().filter_map(|taken| {
            let (to, key) = ways.remove(&taken.seen.seq)?;
            Some(Letter { to, key: Some(key), taken })
        });
        let letters: Vec<Letter> = letters.collect();
        moved.left += (slice.len() - letters.len()) as u64;
        put(source, letters, moved, &mut effects);
        effects.run(&self.shared);
        Ok(())
    }

    /// Where a message would go, without publishing it.
    pub fn would_route(
        &self,
        exchange: &str,
        key: &str,
        properties: Properties<'_>,
        actor: Actor<'_>,
    ) -> Result<WouldRoute, Refused> {
        let cc = properties.headers().map(chosen).transpose()?.unwrap_or_default().keys;
        let asked = Asked { exchange, key, cc: &cc, properties };
        let route = self.route(&asked, actor.principal)?;
        let mut queues: Vec<Arc<str>> = route.queues.iter().map(|queue| queue.name.clone()).collect();
        queues.sort_unstable();
        Ok(WouldRoute { queues, key: route.key })
    }
}

/// The queues that take dead letters back, asked for once.
struct Origins<'a> {
    only: Option<&'a str>,
    known: BTreeMap<String, Option<Arc<Queue>>>,
}

impl Origins<'_> {
    fn find(&mut self, vhost: &Vhost, name: &str, actor: Actor<'_>) -> Result<Option<Arc<Queue>>, Refused> {
        if self.only.is_some_and(|only| only != name) {
            return Ok(None);
        }
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        let found = vhost.find_queue(name);
        if let Some(queue) = &found {
            actor.must(Action::Write, "queue", name, vhost.name())?;
            vhost.must_own(queue, actor)?;
        }
        self.known.insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

/// A message on its way from one queue to another.
struct Letter {
    to: Arc<Queue>,
    /// Exchange and key to go by from now on; as published if `None`.
    key: Option<(String, String)>,
    taken: Taken,
}

/// Puts letters into their queues in order, as many at once as share a queue and fit a segment. What a full queue refuses goes to
/// the back of the queue it came from, unless it is a dead letter now; so does all if the queue was deleted a moment ago.
fn put(source: &Arc<Queue>, letters: Vec<Letter>, moved: &mut Moved, effects: &mut Effects) {
    let mut letters = letters.into_iter().peekable();
    while let Some(first) = letters.next() {
        let to = first.to.clone();
        let mut batch = Batch::default();
        batch.add(first);
        while batch.segment.len() < SEGMENT_BYTES
            && let Some(next) = letters.next_if(|next| Arc::ptr_eq(&next.to, &to))
        {
            batch.add(next);
        }
        let Batch { segment, metas, extras } = batch;
        let segment = segment.freeze();
        let run = Run { segment: &segment, metas: &metas, extras: &extras, first: 0, now: effects.now };
        let placed = to.offer(&run, effects);
        let refused = effects.take_refused();
        let count = metas.len() as u64;
        if placed.is_none() && refused.is_empty() {
            moved.left += count;
            source.take_again(&run, effects);
            continue;
        }
        moved.moved += count - refused.len() as u64;
        moved.left += refused.len() as u64;
        for overflowed in refused.iter().filter(|overflowed| !overflowed.buried) {
            source.take_again(&run.one(overflowed.at as usize), effects);
        }
        if let Some(seq) = placed {
            moved.place(&to.name, seq, metas.len() as u32, &refused);
        }
    }
}

impl Moved {
    /// Notes where the messages of a run are that were not refused; the first of them is at `seq`.
    fn place(&mut self, queue: &Arc<str>, mut seq: u64, count: u32, refused: &[Overflowed]) {
        let mut refused = refused.iter().peekable();
        let mut begun = false;
        for at in 0..count {
            if let Some(overflowed) = refused.next_if(|overflowed| overflowed.at == at) {
                // A dead letter had a place, too.
                seq += u64::from(begun && overflowed.buried);
                continue;
            }
            begun = true;
            match self.placed.last_mut().filter(|(name, _, last)| name == queue && last + 1 == seq) {
                Some((_, _, last)) => *last = seq,
                None => self.placed.push((queue.clone(), seq, seq)),
            }
            seq += 1;
        }
    }
}

#[derive(Default)]
struct Batch {
    segment: BytesMut,
    metas: Vec<Meta>,
    extras: Vec<(u32, super::message::Extra)>,
}

impl Batch {
    fn add(&mut self, letter: Letter) {
        let Letter { key, taken: Taken { seen, extra }, .. } = letter;
        let at = self.segment.len();
        let key_len = match &key {
            Some((exchange, key)) => record::write_key(&mut self.segment, exchange, key),
            None => record::write_key(&mut self.segment, seen.record().exchange(), seen.record().routing_key()),
        };
        self.segment.extend_from_slice(seen.content());
        let has_extra = extra.is_something();
        if has_extra {
            self.extras.push((self.metas.len() as u32, extra));
        }
        self.metas.push(Meta { at: at as u32, len: (self.segment.len() - at) as u32, key_len, extra: has_extra });
    }
}

/// What the newest entry of `x-death` says of a dead letter.
struct Death<'a> {
    queue: &'a str,
    exchange: &'a str,
    key: &'a str,
    reason: &'a str,
}

/// Where a message died last, other than in `here`. What the header says is the publisher's word where it was not a broker's:
/// names that are no names count as none.
fn death_of<'a>(seen: &'a Seen, here: &str) -> Option<Death<'a>> {
    let headers = Properties::trusted(seen.record().properties()).headers()?;
    let Some(RawField::Array(deaths)) = headers.get("x-death") else { return None };
    deaths.iter().find_map(|death| {
        let RawField::Table(death) = death else { return None };
        let text = |name: &str| death.get(name).and_then(|field| field.as_str()).filter(|text| text.len() <= 255);
        let key = match death.get("routing-keys") {
            Some(RawField::Array(keys)) => keys.iter().next().and_then(|key| key.as_str()).filter(|key| key.len() <= 255),
            _ => None,
        };
        let queue = text("queue").filter(|queue| *queue != here)?;
        Some(Death { queue, exchange: text("exchange")?, key: key?, reason: text("reason").unwrap_or("unknown") })
    })
}
