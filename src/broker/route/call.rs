//! `reactor.call`: each message to exactly one queue (contract §1 and §3).
//!
//! Among the bindings that match: the version is resolved, then the most specific key wins, compared word by word (a literal before
//! `*` before `#`), then queues with a consumer come first, then they take turns.

use super::super::refused::Refused;
use super::topic::words;
use super::{Bound, Queue, Target};
use crate::kernel::name;
use crate::model::table::Table;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Binding argument that hides a key from the gateway.
const HTTP_ARGUMENT: &str = "x-reactor-http";

#[derive(Debug, Default)]
pub(in crate::broker) struct Calls {
    services: BTreeMap<String, Vec<Key>>,
    /// Bindings with the key `#`: the space's default service.
    default: Vec<Key>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Key {
    /// Lower case.
    words: Vec<Word>,
    version: Option<u32>,
    http: bool,
    id: u64,
    queue: Arc<Queue>,
}

/// In the order of how specific they are, with the end of a key between them: `a` before `a.#`, but `a.#.b` before `a.#`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Literal(Box<str>),
    Star,
    Hash,
}

/// Where a call goes.
#[derive(Debug)]
pub(in crate::broker) struct Resolved {
    pub queue: Arc<Queue>,
    pub service: String,
    /// With the version that was resolved, at most 255 bytes, cut at a word; `None` if the key is delivered as it came.
    pub key: Option<String>,
}

#[derive(Debug)]
pub(in crate::broker) enum Resolution {
    To(Resolved),
    Unbound,
    NoSuchVersion { service: String, version: u32, attached: Vec<u32> },
}

/// Refuses keys that would take what is not theirs.
pub(in crate::broker) fn refuse_key(key: &str) -> Result<(), Refused> {
    let lower = key.to_ascii_lowercase();
    let first = lower.split('.').next().unwrap_or_default();
    if lower == "#" || name::is_service(first) {
        return Ok(());
    }
    let next = match first {
        "*" | "#" => "a call reaches one service; to observe calls consume from amq.rabbitmq.trace",
        "" => "begin it with the service's name, or use '#' for the space's default service",
        "reactor" => "the name reactor is reserved",
        _ => "a service name is [a-z0-9][a-z0-9_-]{0,62} and not a version such as v1",
    };
    Err(Refused::Precondition(format!("binding key '{key}' is not for a service on exchange 'reactor.call': {next}")))
}

/// The service that a good key names; `None` for the default service.
pub(in crate::broker) fn service_of(key: &str) -> Option<String> {
    let lower = key.to_ascii_lowercase();
    let first = lower.split('.').next().unwrap_or_default();
    name::is_service(first).then(|| first.to_owned())
}

impl Calls {
    pub fn insert(&mut self, key: &str, arguments: &Table, bound: Bound) {
        // A call is delivered to one queue: such bindings are refused before they come here.
        let Bound { id, to: Target::Queue(queue) } = bound else { return };
        let lower = key.to_ascii_lowercase();
        let parsed = Key {
            words: words(&lower).map(Word::parse).collect(),
            version: words(&lower).nth(1).and_then(name::version),
            http: arguments.get(HTTP_ARGUMENT).and_then(|field| field.as_bool()) != Some(false),
            id,
            queue,
        };
        match service_of(key) {
            Some(service) => self.services.entry(service).or_default().push(parsed),
            None => self.default.push(parsed),
        }
    }

    pub fn remove(&mut self, key: &str, id: u64) {
        let Some(service) = service_of(key) else { return self.default.retain(|key| key.id != id) };
        if let Some(keys) = self.services.get_mut(&service) {
            keys.retain(|key| key.id != id);
            if keys.is_empty() {
                self.services.remove(&service);
            }
        }
    }

    /// Services with at least one binding that the gateway sees.
    pub fn services(&self) -> Vec<String> {
        self.services.iter().filter(|(_, keys)| keys.iter().any(|key| key.http)).map(|(service, _)| service.clone()).collect()
    }

    /// Finds the one queue for `key`. `http`: the gateway asks, to whom hidden keys are absent.
    pub fn resolve(&self, key: &str, http: bool) -> Resolution {
        let lower = key.to_ascii_lowercase();
        let wanted: Vec<&str> = words(&lower).collect();
        let Some((service, keys)) = wanted.first().and_then(|first| self.services.get_key_value(*first)) else {
            return self.to_default(&wanted, http);
        };
        let keys: Vec<&Key> = keys.iter().filter(|key| key.http || !http).collect();
        if keys.iter().all(|key| key.version.is_none()) {
            return match self.choose(keys.iter().copied(), &wanted) {
                Some(queue) => Resolution::To(Resolved { queue, service: service.clone(), key: cut_if_long(&lower, key) }),
                None => self.to_default(&wanted, http),
            };
        }
        self.resolve_version(service, &keys, &wanted, http)
    }

    fn resolve_version(&self, service: &str, keys: &[&Key], wanted: &[&str], http: bool) -> Resolution {
        let mut versions: Vec<Option<u32>> = keys.iter().map(|key| key.version).collect();
        versions.sort_unstable_by(|a, b| b.cmp(a));
        versions.dedup();
        let asked = wanted.get(1).copied();
        let (rest, explicit) = match asked {
            Some("v0") => (&wanted[2..], None),
            Some(word) if name::version(word).is_some() => (&wanted[2..], name::version(word)),
            _ => (&wanted[1..], None),
        };
        if let Some(version) = explicit {
            if !versions.contains(&Some(version)) {
                let attached = versions.iter().rev().flatten().copied().collect();
                return Resolution::NoSuchVersion { service: service.to_owned(), version, attached };
            }
            versions = vec![Some(version)];
        }
        let mut first_found = None;
        for version in versions {
            let spelled = version.map(|version| format!("v{version}"));
            let full: Vec<&str> = [service].into_iter().chain(spelled.as_deref()).chain(rest.iter().copied()).collect();
            let Some(queue) = self.choose(keys.iter().copied().filter(|key| key.version == version), &full) else { continue };
            let consumed = queue.consumer_count() > 0;
            let resolved = Resolved { queue, service: service.to_owned(), key: Some(cut(&full.join("."))) };
            if consumed {
                return Resolution::To(resolved);
            }
            first_found.get_or_insert(resolved);
        }
        first_found.map_or_else(|| self.to_default(wanted, http), Resolution::To)
    }

    fn to_default(&self, wanted: &[&str], http: bool) -> Resolution {
        match self.choose(self.default.iter().filter(|key| key.http || !http), wanted) {
            Some(queue) => {
                let service = queue.name.split('.').next().unwrap_or_default().to_owned();
                let whole = wanted.join(".");
                Resolution::To(Resolved { queue, service, key: (whole.len() > KEY_BYTES_MAX).then(|| cut(&whole)) })
            }
            None => Resolution::Unbound,
        }
    }

    /// The most specific match; among equals one with a consumer, in turns.
    fn choose<'a>(&self, keys: impl Iterator<Item = &'a Key>, wanted: &[&str]) -> Option<Arc<Queue>> {
        let mut best: Vec<&Key> = Vec::new();
        for key in keys.filter(|key| matches(&key.words, wanted)) {
            match best.first().map(|best| compare(&key.words, &best.words)) {
                None | Some(std::cmp::Ordering::Equal) => best.push(key),
                Some(std::cmp::Ordering::Less) => best = vec![key],
                Some(std::cmp::Ordering::Greater) => {}
            }
        }
        if best.len() > 1 && best.iter().any(|key| key.queue.consumer_count() > 0) {
            best.retain(|key| key.queue.consumer_count() > 0);
        }
        let turn = if best.len() > 1 { self.turn.fetch_add(1, Ordering::Relaxed) % best.len() } else { 0 };
        best.get(turn).map(|key| key.queue.clone())
    }
}

impl Word {
    fn parse(word: &str) -> Self {
        match word {
            "*" => Word::Star,
            "#" => Word::Hash,
            word => Word::Literal(word.into()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Word::Literal(_) => 0,
            Word::Star => 1,
            Word::Hash => 3,
        }
    }
}

/// `Less` is more specific.
fn compare(a: &[Word], b: &[Word]) -> std::cmp::Ordering {
    const END: u8 = 2;
    let rank = |words: &[Word], at: usize| words.get(at).map_or(END, Word::rank);
    let length = a.len().max(b.len());
    (0..length).map(|at| rank(a, at).cmp(&rank(b, at))).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

/// Whether the pattern matches all words; one pass over the pattern for each word, however many `#` there are.
fn matches(pattern: &[Word], wanted: &[&str]) -> bool {
    // reached[i]: the first i words of the pattern match what was read so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let close = |reached: &mut Vec<bool>| {
        for (at, word) in pattern.iter().enumerate() {
            reached[at + 1] |= reached[at] && *word == Word::Hash;
        }
    };
    close(&mut reached);
    for read in wanted {
        let mut next = vec![false; pattern.len() + 1];
        for (at, word) in pattern.iter().enumerate() {
            match word {
                Word::Literal(literal) => next[at + 1] |= reached[at] && **literal == **read,
                Word::Star => next[at + 1] |= reached[at],
                Word::Hash => next[at + 1] |= reached[at + 1],
            }
        }
        close(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// Longest routing key that is delivered.
const KEY_BYTES_MAX: usize = 255;

/// Cuts a key at a word border.
fn cut(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let end = key.floor_char_boundary(KEY_BYTES_MAX + 1);
    match key[..end].rfind('.') {
        Some(border) => key[..border].to_owned(),
        None => key[..key.floor_char_boundary(KEY_BYTES_MAX)].to_owned(),
    }
}

/// A key goes on as it came if it is short and in lower case.
fn cut_if_long(lower: &str, key: &str) -> Option<String> {
    (key.len() > KEY_BYTES_MAX || lower != key).then(|| cut(lower))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bound, queue};
    use super::*;
    use crate::model::table::Field;

    fn calls(bindings: &[(&str, &Arc<Queue>)]) -> Calls {
        let mut calls = Calls::default();
        for (id, (key, queue)) in bindings.iter().enumerate() {
            refuse_key(key).expect("a good key");
            calls.insert(key, &Table::new(), bound(id as u64, queue));
        }
        calls
    }

    /// `queue` or `queue(key)` if the key changes; else why not.
    fn resolved(calls: &Calls, key: &str) -> String {
        match calls.resolve(key, true) {
            Resolution::To(Resolved { queue, key: None, .. }) => queue.name.to_string(),
            Resolution::To(Resolved { queue, key: Some(key), .. }) => format!("{}({key})", queue.name),
            Resolution::Unbound => "unbound".into(),
            Resolution::NoSuchVersion { version, attached, .. } => format!("no v{version} of {attached:?}"),
        }
    }

    #[test]
    fn the_most_specific_binding_wins_word_by_word() {
        let names = ["all", "admin", "star", "exact", "tail"].map(queue);
        let [all, admin, star, exact, tail] = &names;
        let calls = calls(&[
            ("greeter.#", all),
            ("greeter.admin.#", admin),
            ("greeter.*.users", star),
            ("greeter.admin.users", exact),
            ("greeter.#.end", tail),
        ]);
        for (key, expected) in [
            ("greeter", "all"),
            ("greeter.say.hello", "all"),
            ("greeter.admin", "admin"),
            ("greeter.admin.users", "exact"),
            ("greeter.admin.users.x", "admin"),
            ("greeter.sales.users", "star"),
            ("greeter.x.y.end", "tail"),
            ("other.x", "unbound"),
            ("", "unbound"),
        ] {
            assert_eq!(resolved(&calls, key), expected, "{key}");
        }
        assert_eq!(resolved(&calls, "Greeter.Say"), "all(greeter.say)");
    }

    #[test]
    fn versions_resolve_to_the_one_asked_or_the_highest_with_a_consumer() {
        let [v1, v2, plain] = ["one", "two", "plain"].map(queue);
        let table = calls(&[("greeter.v1.#", &v1), ("greeter.v2.#", &v2), ("greeter.#", &plain)]);
        assert_eq!(resolved(&table, "greeter.v1.hi"), "one(greeter.v1.hi)");
        assert_eq!(resolved(&table, "greeter.v3.hi"), "no v3 of [1, 2]");
        // Nobody consumes: the highest.
        assert_eq!(resolved(&table, "greeter.hi"), "two(greeter.v2.hi)");
        assert_eq!(resolved(&table, "greeter.v0.hi"), "two(greeter.v2.hi)");
        v1.pretend_consumers(1);
        assert_eq!(resolved(&table, "greeter.hi"), "one(greeter.v1.hi)");
        plain.pretend_consumers(1);
        assert_eq!(resolved(&table, "greeter.hi"), "one(greeter.v1.hi)");
        v1.pretend_consumers(0);
        assert_eq!(resolved(&table, "greeter.v0.hi"), "plain(greeter.hi)");
        let unversioned = calls(&[("greeter.#", &plain)]);
        assert_eq!(resolved(&unversioned, "greeter.v2.hi"), "plain");
        assert_eq!(resolved(&unversioned, "greeter.v0.hi"), "plain");
    }

    #[test]
    fn equals_take_turns_and_those_with_a_consumer_come_first() {
        let [a, b] = ["a", "b"].map(queue);
        let calls = calls(&[("greeter.#", &a), ("greeter.#", &b)]);
        let turns: Vec<String> = (0..4).map(|_| resolved(&calls, "greeter.x")).collect();
        assert_eq!(turns, ["a", "b", "a", "b"]);
        b.pretend_consumers(1);
        assert!((0..3).all(|_| resolved(&calls, "greeter.x") == "b"));
    }

    #[test]
    fn the_default_service_takes_the_root_and_what_nobody_else_takes() {
        let [web, admin] = ["web.calls", "admin"].map(queue);
        let mut calls = calls(&[("#", &web), ("greeter.admin.#", &admin)]);
        for (key, expected) in [("", "web.calls"), ("greeter.x", "web.calls"), ("greeter.admin", "admin"), ("any", "web.calls")] {
            assert_eq!(resolved(&calls, key), expected, "{key}");
        }
        calls.remove("#", 0);
        assert_eq!(resolved(&calls, ""), "unbound");
        assert_eq!(calls.services(), ["greeter"]);
    }

    #[test]
    fn a_hidden_key_is_absent_for_the_gateway_alone() {
        let inner = queue("inner");
        let mut calls = Calls::default();
        let hidden = Table::new().with("x-reactor-http", Field::Bool(false));
        calls.insert("greeter.#", &hidden, bound(1, &inner));
        assert!(matches!(calls.resolve("greeter.x", true), Resolution::Unbound));
        assert!(matches!(calls.resolve("greeter.x", false), Resolution::To(_)));
        assert!(calls.services().is_empty());
    }

    #[test]
    fn keys_that_take_what_is_not_theirs_are_refused_with_a_hint() {
        for (key, hint) in [
            ("*.x", "amq.rabbitmq.trace"),
            ("#.x", "amq.rabbitmq.trace"),
            ("*", "amq.rabbitmq.trace"),
            ("", "default service"),
            ("v1.x", "not a version"),
            ("reactor.x", "reserved"),
            ("über.#", "service name is"),
        ] {
            assert!(refuse_key(key).unwrap_err().text().contains(hint), "{key}");
        }
        for key in ["#", "greeter", "Greeter.#", "a_b-c.v1.*"] {
            assert_eq!(refuse_key(key), Ok(()), "{key}");
        }
    }

    #[test]
    fn a_long_key_is_matched_whole_and_delivered_cut_at_a_word() {
        let all = queue("all");
        let calls = calls(&[("greeter.#.end", &all)]);
        let long = format!("greeter.{}end", "abcdefg.".repeat(40));
        let Resolution::To(Resolved { key: Some(key), .. }) = calls.resolve(&long, true) else { panic!("resolved and cut") };
        assert!(key.len() <= 255 && long.starts_with(&key) && long.as_bytes()[key.len()] == b'.', "{key}");
        assert_eq!(cut(&"x".repeat(300)).len(), 255);
    }
}
