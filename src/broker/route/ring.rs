//! `x-consistent-hash`: a message goes to one binding, chosen by a hash of its routing key, of a header or of a property. A binding's
//! key is its weight: how many places it has on the ring.
//!
//! The place is found by jump consistent hashing (Lamping and Veach, 2014): a new binding at the end of the ring takes its share from
//! all others and moves nothing between them. Two runs of the program agree.

use super::super::refused::Refused;
use super::{Bound, Found, Looked, Target};
use crate::model::table::{Field, Table};
use crate::model::topology::DestinationKind;
use crate::wire::amqp::{RawField, RawTable, table};
use std::borrow::Cow;
use std::collections::HashSet;

#[derive(Debug)]
pub(in crate::broker) struct Ring {
    on: HashOn,
    places: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq)]
enum HashOn {
    Key,
    Header(String),
    CorrelationId,
    MessageId,
    Timestamp,
}

#[derive(Debug)]
struct Place {
    bound: Bound,
    weight: u64,
    /// Places of the ring up to and with this binding's.
    until: u64,
}

const HASH_HEADER: &str = "hash-header";
const HASH_PROPERTY: &str = "hash-property";
/// Places of one binding; the ring's arithmetic has room for every binding of a space with so many.
const WEIGHT_MAX: u64 = u32::MAX as u64;

fn hash_on(arguments: &Table) -> Result<HashOn, Refused> {
    let text = |name: &'static str| match arguments.get(name) {
        None => Ok(None),
        Some(field) => match field.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(Refused::Precondition(format!("argument {name} must be a string"))),
        },
    };
    match (text(HASH_HEADER)?, text(HASH_PROPERTY)?) {
        (None, None) => Ok(HashOn::Key),
        (Some(header), None) => Ok(HashOn::Header(header.to_owned())),
        (None, Some("correlation_id")) => Ok(HashOn::CorrelationId),
        (None, Some("message_id")) => Ok(HashOn::MessageId),
        (None, Some("timestamp")) => Ok(HashOn::Timestamp),
        (None, Some(other)) => Err(Refused::Precondition(format!("Unsupported property: {other}"))),
        (Some(_), Some(_)) => Err(Refused::Precondition("hash-header and hash-property are mutually exclusive".into())),
    }
}

pub(super) fn check_exchange(arguments: &Table) -> Result<(), Refused> {
    hash_on(arguments).map(drop)
}

pub(super) fn check(key: &str) -> Result<(), Refused> {
    weight(key).map(drop)
}

fn weight(key: &str) -> Result<u64, Refused> {
    let refuse = |text: String| Err(Refused::Precondition(text));
    match key.parse::<i128>() {
        Err(_) => refuse(format!("The binding key must be an integer: <<\"{key}\">>")),
        Ok(weight) if weight < 1 => refuse("The binding key must be greater than 0".into()),
        Ok(weight) => match u64::try_from(weight) {
            Ok(weight) if weight <= WEIGHT_MAX => Ok(weight),
            _ => refuse(format!("The binding key must not exceed {WEIGHT_MAX}")),
        },
    }
}

impl Ring {
    pub fn new(arguments: &Table) -> Self {
        Ring { on: hash_on(arguments).unwrap_or(HashOn::Key), places: Vec::new() }
    }

    pub fn looks_at_key(&self) -> bool {
        self.on == HashOn::Key
    }

    /// A second binding to the same place counts only once the first is gone, as in RabbitMQ.
    pub fn insert(&mut self, key: &str, bound: Bound) {
        let Ok(weight) = weight(key) else { return };
        self.places.push(Place { bound, weight, until: 0 });
        self.number();
    }

    pub fn remove(&mut self, id: u64) {
        self.places.retain(|place| place.bound.id != id);
        self.number();
    }

    /// One pass: exchanges have up to as many bindings as a space.
    fn number(&mut self) {
        let mut until = 0;
        let mut known = HashSet::with_capacity(self.places.len());
        for place in &mut self.places {
            if known.insert(name_of(&place.bound.to)) {
                until += place.weight;
            }
            place.until = until;
        }
    }

    pub fn route(&self, looked: Looked<'_>, found: &mut Found) {
        let Some(buckets) = self.places.last().map(|place| place.until) else { return };
        let at = jump(hash(&self.value(looked)), buckets);
        let place = self.places.partition_point(|place| place.until <= at);
        found.add(&self.places[place].bound);
    }

    /// What is hashed; a message without it hashes as nothing, so all of those go the same way.
    fn value<'a>(&self, looked: Looked<'a>) -> Cow<'a, [u8]> {
        let text = |text: Option<&'a str>| Cow::Borrowed(text.unwrap_or_default().as_bytes());
        match &self.on {
            HashOn::Key => text(Some(looked.key)),
            HashOn::CorrelationId => text(looked.properties.correlation_id()),
            HashOn::MessageId => text(looked.properties.message_id()),
            HashOn::Timestamp => {
                looked.properties.timestamp().map_or_else(Cow::default, |time| time.to_string().into_bytes().into())
            }
            HashOn::Header(name) => looked.properties.headers().map_or_else(Cow::default, |headers| header(headers, name)),
        }
    }
}

fn header<'a>(headers: RawTable<'a>, name: &str) -> Cow<'a, [u8]> {
    match headers.get(name) {
        None => Cow::default(),
        Some(RawField::Text(bytes) | RawField::Bytes(bytes)) => Cow::Borrowed(bytes),
        Some(other) => match other.as_integer() {
            // The same number hashes alike, whatever its width.
            Some(number) => number.to_string().into_bytes().into(),
            None => table::encoded(&Table(vec![(String::new(), Field::Array(vec![other.to_field()]))])).into(),
        },
    }
}

/// A queue and an exchange may share a name.
fn name_of(target: &Target) -> (DestinationKind, &str) {
    match target {
        Target::Queue(queue) => (DestinationKind::Queue, &queue.name),
        Target::Exchange(name) => (DestinationKind::Exchange, name),
    }
}

/// FNV-1a with a final mix: stable, and good enough to spread keys that differ in their last byte.
fn hash(bytes: &[u8]) -> u64 {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (sum ^ (sum >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// The bucket of `key` among `buckets`, of which there is at least one. Buckets stay below 2^53, where the floats are exact.
fn jump(mut key: u64, buckets: u64) -> u64 {
    let (mut bucket, mut next) = (0, 0);
    while next < buckets {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let stretch = (1u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((bucket + 1) as f64 * stretch) as u64;
    }
    bucket
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::super::testing::{bound, names, queue};
    use super::*;
    use crate::model::topology::ExchangeKind;
    use crate::wire::amqp::{Properties, PropertyList};
    use std::collections::BTreeMap;

    fn ring(arguments: Table, weights: &[(&str, &str)]) -> Routes {
        let mut routes = Routes::new(ExchangeKind::ConsistentHash, &arguments);
        for (id, (name, weight)) in weights.iter().enumerate() {
            routes.check(weight, &Table::new()).expect("a good weight");
            routes.insert(weight, &Table::new(), bound(id as u64, &queue(name)));
        }
        routes
    }

    fn spread(routes: &Routes) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for key in 0..10_000 {
            *counts.entry(names(routes, &format!("key-{key}"), Properties::NONE)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn each_key_goes_to_one_queue_and_shares_follow_the_weights() {
        let counts = spread(&ring(Table::new(), &[("a", "1"), ("b", "2"), ("c", "1")]));
        assert_eq!(counts.values().sum::<usize>(), 10_000);
        assert!((4_700..5_300).contains(&counts["b"]) && (2_300..2_700).contains(&counts["a"]), "{counts:?}");
    }

    #[test]
    fn a_new_queue_takes_from_the_others_and_moves_nothing_between_them() {
        let before = ring(Table::new(), &[("a", "10"), ("b", "10")]);
        let after = ring(Table::new(), &[("a", "10"), ("b", "10"), ("c", "10")]);
        let mut moved = 0;
        for key in (0..3_000).map(|key| format!("key-{key}")) {
            let (was, is) = (names(&before, &key, Properties::NONE), names(&after, &key, Properties::NONE));
            assert!(is == was || is == "c", "{key}: {was} to {is}");
            moved += usize::from(is == "c");
        }
        assert!((850..1_150).contains(&moved), "{moved}");
    }

    #[test]
    fn a_second_binding_of_a_queue_counts_when_the_first_is_gone() {
        let mut routes = ring(Table::new(), &[("a", "1"), ("b", "1"), ("a", "1000")]);
        assert!(spread(&routes)["b"] > 4_500);
        routes.remove("1", 0);
        assert!(spread(&routes)["b"] < 50);
        routes.remove("1000", 2);
        routes.remove("1", 1);
        assert_eq!(names(&routes, "k", Properties::NONE), "");
    }

    #[test]
    fn an_exchange_of_a_queues_name_has_places_of_its_own() {
        let (to_queue, to_exchange) = (|name| Target::Queue(queue(name)), |name: &str| Target::Exchange(name.into()));
        let to = [to_queue("a"), to_exchange("a"), to_queue("a"), to_exchange("a"), to_queue("b")];
        let mut ring = Ring::new(&Table::new());
        for (id, to) in to.into_iter().enumerate() {
            ring.insert("2", Bound { id: id as u64, to });
        }
        let until = |ring: &Ring| ring.places.iter().map(|place| place.until).collect::<Vec<_>>();
        assert_eq!(until(&ring), [2, 4, 4, 4, 6]);
        ring.remove(0);
        assert_eq!(until(&ring), [2, 4, 4, 6]);
    }

    #[test]
    fn a_header_or_a_property_decides_if_the_exchange_says_so() {
        let of = |arguments: Table, properties: PropertyList<'_>| {
            let routes = ring(arguments, &[("a", "5"), ("b", "5"), ("c", "5"), ("d", "5")]);
            let bytes = properties.to_bytes();
            let met: Vec<String> =
                (0..20).map(|key| names(&routes, &format!("k{key}"), Properties::check(&bytes).expect("good"))).collect();
            assert!(met.iter().all(|name| *name == met[0]), "the key must not matter: {met:?}");
            met[0].clone()
        };
        let on = |name: &str, value: &str| Table::new().with(name, Field::text(value));
        let headers = |field: Field| table::encoded(&Table::new().with("tenant", field));
        let (narrow, wide) = (headers(Field::I32(7)), headers(Field::I64(7)));
        let with = |bytes: &'_ [u8]| RawTable::check(bytes).ok().map(|table| table.as_bytes().to_vec()).expect("good");
        let (narrow, wide) = (with(&narrow), with(&wide));
        let list = |bytes| PropertyList { headers: RawTable::check(bytes).ok(), ..PropertyList::default() };
        assert_eq!(of(on(HASH_HEADER, "tenant"), list(&narrow)), of(on(HASH_HEADER, "tenant"), list(&wide)));
        of(on(HASH_HEADER, "absent"), list(&narrow));
        of(on(HASH_PROPERTY, "message_id"), PropertyList { message_id: Some("m"), ..PropertyList::default() });
        of(on(HASH_PROPERTY, "correlation_id"), PropertyList { correlation_id: Some("c"), ..PropertyList::default() });
        of(on(HASH_PROPERTY, "timestamp"), PropertyList { timestamp: Some(5), ..PropertyList::default() });
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_rabbitmqs_words() {
        let text = |result: Result<(), Refused>| result.unwrap_err().text().to_owned();
        assert_eq!(text(check("abc")), "The binding key must be an integer: <<\"abc\">>");
        assert_eq!(text(check("")), "The binding key must be an integer: <<\"\">>");
        assert_eq!(text(check("0")), "The binding key must be greater than 0");
        assert_eq!(text(check("-3")), "The binding key must be greater than 0");
        assert_eq!(text(check("99999999999999999999")), "The binding key must not exceed 4294967295");
        let arguments = Table::new().with(HASH_PROPERTY, Field::text("app_id"));
        assert_eq!(text(check_exchange(&arguments)), "Unsupported property: app_id");
        let both = Table::new().with(HASH_PROPERTY, Field::text("message_id")).with(HASH_HEADER, Field::text("h"));
        assert_eq!(text(check_exchange(&both)), "hash-header and hash-property are mutually exclusive");
    }
}
