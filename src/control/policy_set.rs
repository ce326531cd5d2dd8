//! Which policies apply to a queue or an exchange: of each kind the one of highest priority whose pattern matches, alone; an
//! operator's on top of a user's. Compiled once a change, asked per declaration and by views.
//!
//! A policy whose pattern runs away on a name does not apply to it, and after some such names to none that is asked about later:
//! said as happenings that name it.

use crate::kernel::Clock;
use crate::kernel::pattern::{Pattern, RUNAWAYS_MAX, Repeated, Runaways, STEPS_MAX};
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::policy::{DeadLetterStrategy, ExchangePolicy, Overflow, Policies, QueueKind, QueuePolicy};
use crate::model::policy_spec::{ApplyTo, Policy};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::sync::Arc;

/// The policies of one space.
#[derive(Debug, Default)]
pub struct PolicySet {
    /// Highest priority first.
    policies: Vec<Compiled>,
    operator_policies: Vec<Compiled>,
    /// None has no policies.
    clock: Option<Clock>,
}

#[derive(Debug)]
struct Compiled {
    space: Arc<str>,
    name: Arc<str>,
    pattern: Repeated,
    apply_to: ApplyTo,
    priority: i64,
    definition: Map<String, Value>,
}

/// What holds for one queue or exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppliedPolicies {
    pub policy: Option<Arc<str>>,
    pub operator_policy: Option<Arc<str>>,
    /// Both definitions as one.
    pub definition: Map<String, Value>,
}

/// Settings that mean nothing to a type of queue: a policy that has one of them is not for it.
const NOT_OF_CLASSIC: &[&str] = &[
    "max-age",
    "stream-max-segment-size-bytes",
    "stream-filter-size-bytes",
    "initial-cluster-size",
    "delivery-limit",
    "dead-letter-strategy",
    "max-in-memory-length",
    "max-in-memory-bytes",
];
const NOT_OF_QUORUM: &[&str] = &[
    "max-age",
    "stream-max-segment-size-bytes",
    "stream-filter-size-bytes",
    "queue-mode",
    "queue-version",
    "queue-master-locator",
    "ha-mode",
    "ha-params",
    "ha-sync-mode",
    "ha-sync-batch-size",
    "ha-promote-on-shutdown",
    "ha-promote-on-failure",
];
const ONLY_OF_STREAMS: &[&str] = &[
    "max-age",
    "max-length-bytes",
    "stream-max-segment-size-bytes",
    "stream-filter-size-bytes",
    "queue-leader-locator",
    "initial-cluster-size",
];

impl PolicySet {
    pub fn new(policies: &[Policy], operator_policies: &[Policy], clock: &Clock) -> Self {
        let clock = Some(clock.clone());
        PolicySet { policies: compile(policies), operator_policies: compile(operator_policies), clock }
    }

    pub fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.operator_policies.is_empty()
    }

    /// `kind` is the queue's `x-queue-type`.
    pub fn applied_to_queue(&self, name: &str, kind: &str) -> AppliedPolicies {
        let applies = |it: &Compiled| it.apply_to.takes_queues(kind) && it.suits(kind) && self.takes(it, name);
        merge(self.policies.iter().find(|it| applies(it)), self.operator_policies.iter().find(|it| applies(it)))
    }

    pub fn applied_to_exchange(&self, name: &str) -> AppliedPolicies {
        let applies = |it: &Compiled| it.apply_to.takes_exchanges() && self.takes(it, name);
        merge(self.policies.iter().find(|it| applies(it)), self.operator_policies.iter().find(|it| applies(it)))
    }

    fn takes(&self, policy: &Compiled, name: &str) -> bool {
        policy.pattern.try_match(name).unwrap_or_else(|runaways| {
            if let (Some(clock), Some(what)) = (&self.clock, policy.advice(name, runaways)) {
                emit::happening(Happening { at_ns: clock.unix_nanos(), space: policy.space.clone(), what });
            }
            false
        })
    }
}

impl Policies for PolicySet {
    fn of_queue(&self, name: &str, kind: QueueKind) -> QueuePolicy {
        if self.is_empty() {
            return QueuePolicy::default();
        }
        let AppliedPolicies { policy, operator_policy, definition } = self.applied_to_queue(name, kind.as_str());
        let number = |key: &str| definition.get(key).and_then(Value::as_u64);
        let text = |key: &str| definition.get(key).and_then(Value::as_str);
        QueuePolicy {
            policy,
            operator_policy,
            message_ttl_ms: number("message-ttl"),
            expires_ms: number("expires"),
            max_length: number("max-length"),
            max_length_bytes: number("max-length-bytes"),
            delivery_limit: number("delivery-limit"),
            consumer_timeout_ms: number("consumer-timeout"),
            overflow: text("overflow").and_then(Overflow::parse),
            dead_letter_exchange: text("dead-letter-exchange").map(Arc::from),
            dead_letter_routing_key: text("dead-letter-routing-key").map(Arc::from),
            dead_letter_strategy: text("dead-letter-strategy").and_then(DeadLetterStrategy::parse),
        }
    }

    fn of_exchange(&self, name: &str) -> ExchangePolicy {
        let AppliedPolicies { policy, definition, .. } = self.applied_to_exchange(name);
        let alternate_exchange = definition.get("alternate-exchange").and_then(Value::as_str).map(Arc::from);
        ExchangePolicy { policy, alternate_exchange }
    }
}

impl Compiled {
    fn suits(&self, kind: &str) -> bool {
        self.definition.keys().all(|key| match kind {
            "quorum" => !NOT_OF_QUORUM.contains(&key.as_str()),
            "stream" => ONLY_OF_STREAMS.contains(&key.as_str()),
            _ => !NOT_OF_CLASSIC.contains(&key.as_str()),
        })
    }

    /// Said of the first name, and when the policy is given up.
    fn advice(&self, name: &str, Runaways(count): Runaways) -> Option<What> {
        let of = format!("the pattern of policy {} in space {}", self.name, self.space);
        let seen = match count {
            1 => format!("{of} takes more than {STEPS_MAX} steps on the name {name}, so the policy does not apply to it"),
            RUNAWAYS_MAX => {
                format!("{of} took too many steps on {count} names; until policies change it applies to no further name")
            }
            _ => return None,
        };
        Some(What::Advice { seen: seen.into(), fix: "Write the pattern without a repetition inside a repetition".into() })
    }
}

/// Patterns were checked when the policies were put.
fn compile(policies: &[Policy]) -> Vec<Compiled> {
    let compiled = policies.iter().filter_map(|policy| {
        Some(Compiled {
            space: policy.vhost.as_str().into(),
            name: policy.name.as_str().into(),
            pattern: Repeated::new(Pattern::new(&policy.pattern).ok()?),
            apply_to: policy.apply_to,
            priority: policy.priority,
            definition: policy.definition.clone(),
        })
    });
    let mut compiled: Vec<Compiled> = compiled.collect();
    compiled.sort_by(|a, b| (Reverse(a.priority), &a.name).cmp(&(Reverse(b.priority), &b.name)));
    compiled
}

fn merge(policy: Option<&Compiled>, operator: Option<&Compiled>) -> AppliedPolicies {
    let mut definition = policy.map(|policy| policy.definition.clone()).unwrap_or_default();
    for (key, limit) in operator.iter().flat_map(|operator| &operator.definition) {
        let lower = match (definition.get(key).and_then(Value::as_i64), limit.as_i64()) {
            (Some(own), Some(limit)) => own.min(limit).into(),
            _ => limit.clone(),
        };
        definition.insert(key.clone(), lower);
    }
    let name = |it: Option<&Compiled>| it.map(|it| it.name.clone());
    AppliedPolicies { policy: name(policy), operator_policy: name(operator), definition }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(name: &str, pattern: &str, apply_to: &str, priority: i64, definition: Value) -> Policy {
        let value = json!({"vhost": "/", "name": name, "pattern": pattern, "apply-to": apply_to, "priority": priority, "definition": definition});
        serde_json::from_value(value).expect("a policy")
    }

    fn names(applied: &AppliedPolicies) -> (Option<&str>, Option<&str>) {
        (applied.policy.as_deref(), applied.operator_policy.as_deref())
    }

    #[test]
    fn of_those_that_match_the_highest_counts_alone() {
        let set = PolicySet::new(
            &[
                policy("all", ".*", "all", 0, json!({"max-length": 5, "expires": 1000})),
                policy("tmp", "^tmp", "queues", 1, json!({"max-length": 7})),
            ],
            &[],
            &Clock::manual(0),
        );
        assert_eq!(
            set.applied_to_queue("tmp.1", "classic").definition,
            *json!({"max-length": 7}).as_object().expect("an object")
        );
        assert_eq!(names(&set.applied_to_queue("other", "classic")), (Some("all"), None));
        assert_eq!(names(&set.applied_to_exchange("tmp.1")), (Some("all"), None));
    }

    #[test]
    fn types_of_queues_have_their_own() {
        let set = PolicySet::new(
            &[
                policy("limit", ".*", "all", 2, json!({"delivery-limit": 3})),
                policy("lazy", ".*", "classic_queues", 1, json!({"max-length": 1})),
                policy("x", ".*", "exchanges", 3, json!({"alternate-exchange": "ae"})),
            ],
            &[],
            &Clock::manual(0),
        );
        assert_eq!(names(&set.applied_to_queue("q", "quorum")), (Some("limit"), None));
        assert_eq!(
            names(&set.applied_to_queue("q", "classic")),
            (Some("lazy"), None),
            "a setting it does not know is not for it"
        );
        assert_eq!(names(&set.applied_to_queue("q", "stream")), (None, None));
        assert_eq!(names(&set.applied_to_exchange("q")), (Some("x"), None));
    }

    #[test]
    fn operators_lower_numbers_and_have_the_last_word() {
        let set = PolicySet::new(
            &[policy("mine", ".*", "all", 0, json!({"max-length": 10, "message-ttl": 5, "overflow": "drop-head"}))],
            &[policy(
                "theirs",
                "^q",
                "queues",
                0,
                json!({"max-length": 3, "message-ttl": 50, "expires": 7, "overflow": "reject-publish"}),
            )],
            &Clock::manual(0),
        );
        let applied = set.applied_to_queue("q", "classic");
        assert_eq!(names(&applied), (Some("mine"), Some("theirs")));
        let merged = json!({"max-length": 3, "message-ttl": 5, "expires": 7, "overflow": "reject-publish"});
        assert_eq!(Value::Object(applied.definition), merged);
    }

    #[test]
    fn a_policy_that_runs_away_is_named_and_then_given_up_and_the_next_one_holds() {
        let runaway = policy("bad", "^(a|aa)+(?!x)$", "all", 1, json!({"max-length": 5}));
        let set = PolicySet::new(&[runaway, policy("good", "^a", "all", 0, json!({"max-length": 7}))], &[], &Clock::manual(0));
        let long = "a".repeat(200) + "b";
        for _ in 0..20 {
            assert_eq!(names(&set.applied_to_queue(&long, "classic")), (Some("good"), None));
        }
        assert_eq!(set.policies[0].pattern.try_match(&long), Ok(false), "given up");
        let said = |count| set.policies[0].advice("aaa", Runaways(count)).map(|what| what.line());
        assert!(said(1).expect("said").starts_with("the pattern of policy bad in space / takes more than"));
        assert!(said(RUNAWAYS_MAX).expect("said").contains("applies to no further name"));
        assert_eq!(said(2), None);
    }
}
