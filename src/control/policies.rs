//! Policies and operator policies: which settings they may carry, and the lists as the API sees them.

use super::apply::Control;
use super::check::pattern;
use super::entries::Put;
use crate::model::catalog::{Entry, EntryKey};
use crate::model::identity::Principal;
use crate::model::policy_spec::Policy;
use crate::model::refusal::{Refusal, RefusalKind};
use serde_json::Value;

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// A whole number, at least this.
    Number(i64),
    Text,
    OneOf(&'static [&'static str]),
    /// `7D`, `30m`: a number and a unit.
    Age,
    Any,
}

/// One setting: its name, what it takes, and how RabbitMQ calls the value when it is wrong.
type Row = (&'static str, Takes, &'static str);

/// Settings of policies, as in RabbitMQ 3.13. What mirrors queues over nodes is accepted and, as on any single node, changes nothing.
const SETTINGS: &[Row] = &[
    ("alternate-exchange", Takes::Text, "alternate exchange name"),
    ("consumer-timeout", Takes::Number(1), "consumer timeout"),
    ("dead-letter-exchange", Takes::Text, "dead letter exchange name"),
    ("dead-letter-routing-key", Takes::Text, "dead letter routing key"),
    ("dead-letter-strategy", Takes::OneOf(&["at-most-once", "at-least-once"]), "dead letter strategy"),
    ("delivery-limit", Takes::Number(0), "delivery limit"),
    ("expires", Takes::Number(1), "queue expiry"),
    ("initial-cluster-size", Takes::Number(0), "cluster size"),
    ("max-age", Takes::Age, "max age"),
    ("max-in-memory-bytes", Takes::Number(0), "maximum memory in bytes"),
    ("max-in-memory-length", Takes::Number(0), "maximum memory in bytes"),
    ("max-length", Takes::Number(0), "maximum length"),
    ("max-length-bytes", Takes::Number(0), "maximum length in bytes"),
    ("message-ttl", Takes::Number(0), "message TTL"),
    ("overflow", Takes::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]), "overflow value"),
    (
        "queue-leader-locator",
        Takes::OneOf(&["client-local", "balanced", "random", "least-leaders"]),
        "queue leader locator value",
    ),
    ("queue-master-locator", Takes::OneOf(&["min-masters", "client-local", "random"]), "queue master locator"),
    ("queue-mode", Takes::OneOf(&["default", "lazy"]), "queue-mode value"),
    ("queue-version", Takes::Number(1), "queue-version value"),
    ("stream-filter-size-bytes", Takes::Number(16), "filter size"),
    ("stream-max-segment-size-bytes", Takes::Number(0), "segment size"),
    ("ha-mode", Takes::OneOf(&["all", "exactly", "nodes"]), "ha-mode"),
    ("ha-params", Takes::Any, "ha-params"),
    ("ha-promote-on-failure", Takes::OneOf(&["always", "when-synced"]), "ha-promote-on-failure"),
    ("ha-promote-on-shutdown", Takes::OneOf(&["always", "when-synced"]), "ha-promote-on-shutdown"),
    ("ha-sync-batch-size", Takes::Number(1), "ha-sync-batch-size"),
    ("ha-sync-mode", Takes::OneOf(&["manual", "automatic"]), "ha-sync-mode"),
];

/// Settings that operators may limit.
const OPERATOR_SETTINGS: &[&str] = &[
    "delivery-limit",
    "expires",
    "max-in-memory-bytes",
    "max-in-memory-length",
    "max-length",
    "max-length-bytes",
    "message-ttl",
    "overflow",
    "ha-mode",
    "ha-params",
    "ha-sync-mode",
];

/// Whether a policy may stand as it is written, whatever space it is of.
pub fn check_policy(policy: &Policy, is_operators: bool) -> Result<(), Refusal> {
    if is_operators { check_operator(policy) } else { check(policy) }
}

pub(super) fn check(policy: &Policy) -> Result<(), Refusal> {
    check_by(policy, "policy", |_| true)
}

pub(super) fn check_operator(policy: &Policy) -> Result<(), Refusal> {
    check_by(policy, "operator policy", |name| OPERATOR_SETTINGS.contains(&name))
}

fn check_by(policy: &Policy, kind: &str, takes: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    let of = || format!("{kind} {} in space {}", policy.name, policy.vhost);
    let invalid = |what: String| Err(Refusal::new(RefusalKind::Invalid, format!("{}: {what}", of())));
    pattern(&policy.pattern, || format!("the pattern of {}", of()))?;
    if policy.definition.is_empty() {
        return invalid("no policy provided".into()).map_err(|refusal| refusal.hint("Give its definition at least one setting."));
    }
    let unknown: Vec<&str> =
        policy.definition.keys().map(String::as_str).filter(|name| row(name).is_none() || !takes(name)).collect();
    if !unknown.is_empty() {
        let known: Vec<&str> = SETTINGS.iter().map(|(name, ..)| *name).filter(|name| takes(name)).collect();
        return invalid(format!("[{}] are not recognised policy settings", unknown.join(", ")))
            .map_err(|refusal| refusal.hint(format!("Settings are {}.", known.join(", "))));
    }
    for (name, value) in &policy.definition {
        let Some((_, takes, called)) = row(name) else { continue };
        if !takes.takes(value) {
            return invalid(format!("{value} is not a valid {called}")).map_err(|refusal| refusal.hint(takes.hint(name)));
        }
    }
    Ok(())
}

fn row(name: &str) -> Option<&'static Row> {
    SETTINGS.iter().find(|(known, ..)| *known == name)
}

impl Takes {
    fn takes(self, value: &Value) -> bool {
        match self {
            Takes::Number(least) => value.as_i64().is_some_and(|number| number >= least),
            Takes::Text => value.is_string(),
            Takes::OneOf(choices) => value.as_str().is_some_and(|text| choices.contains(&text)),
            Takes::Age => value.as_str().is_some_and(is_age),
            Takes::Any => true,
        }
    }

    fn hint(self, name: &str) -> String {
        match self {
            Takes::Number(least) => format!("{name} is a whole number, at least {least}."),
            Takes::Text => format!("{name} is a text."),
            Takes::OneOf(choices) => format!("{name} is one of {}.", choices.join(", ")),
            Takes::Age => format!("{name} is a number and a unit of Y, M, D, h, m or s, such as 7D."),
            Takes::Any => format!("{name} is any value."),
        }
    }
}

fn is_age(text: &str) -> bool {
    let digits = text.trim_end_matches(['Y', 'M', 'D', 'h', 'm', 's']);
    digits.len() + 1 == text.len() && !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl Control {
    pub fn policies(&self) -> Vec<Policy> {
        self.catalog().policies().cloned().collect()
    }

    pub fn policy(&self, space: &str, name: &str) -> Option<Policy> {
        match self.catalog().get(&EntryKey::Policy { space: space.to_owned(), name: name.to_owned() }) {
            Some(Entry::Policy(policy)) => Some(policy.clone()),
            _ => None,
        }
    }

    pub fn put_policy(&self, policy: Policy, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(Entry::Policy(policy), by)
    }

    pub fn delete_policy(&self, space: &str, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::Policy { space: space.to_owned(), name: name.to_owned() }, by)
    }

    pub fn operator_policies(&self) -> Vec<Policy> {
        self.catalog().operator_policies().cloned().collect()
    }

    pub fn operator_policy(&self, space: &str, name: &str) -> Option<Policy> {
        match self.catalog().get(&EntryKey::OperatorPolicy { space: space.to_owned(), name: name.to_owned() }) {
            Some(Entry::OperatorPolicy(policy)) => Some(policy.clone()),
            _ => None,
        }
    }

    pub fn put_operator_policy(&self, policy: Policy, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(Entry::OperatorPolicy(policy), by)
    }

    pub fn delete_operator_policy(&self, space: &str, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::OperatorPolicy { space: space.to_owned(), name: name.to_owned() }, by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(definition: Value) -> Policy {
        serde_json::from_value(json!({"vhost": "/", "name": "p", "pattern": ".*", "definition": definition})).expect("a policy")
    }

    #[test]
    fn every_setting_is_checked_and_told_in_rabbitmqs_words() {
        for (definition, part) in [
            (json!({}), "no policy provided"),
            (json!({"max-lenght": 5}), "[max-lenght] are not recognised policy settings"),
            (json!({"max-length": -1}), "-1 is not a valid maximum length"),
            (json!({"max-length": "5"}), "\"5\" is not a valid maximum length"),
            (json!({"message-ttl": 1.5}), "1.5 is not a valid message TTL"),
            (json!({"expires": 0}), "0 is not a valid queue expiry"),
            (json!({"overflow": "drop"}), "\"drop\" is not a valid overflow value"),
            (json!({"alternate-exchange": 1}), "1 is not a valid alternate exchange name"),
            (json!({"max-age": "7"}), "\"7\" is not a valid max age"),
            (json!({"queue-mode": "odd"}), "\"odd\" is not a valid queue-mode value"),
        ] {
            let what = check(&policy(definition.clone())).expect_err("refused").what;
            assert!(what.contains(part), "{definition}: {what}");
        }
        let good = json!({"max-length": 5, "message-ttl": 0, "overflow": "reject-publish", "max-age": "7D", "ha-mode": "all"});
        assert_eq!(check(&policy(good)), Ok(()));
    }

    #[test]
    fn operators_only_limit() {
        assert_eq!(check_operator(&policy(json!({"max-length": 5, "expires": 1000}))), Ok(()));
        assert!(check_operator(&policy(json!({"dead-letter-exchange": "x"}))).is_err());
    }

    #[test]
    fn a_pattern_must_be_one() {
        let wrong = Policy { pattern: "(".into(), ..policy(json!({"max-length": 5})) };
        assert!(check(&wrong).expect_err("refused").what.contains("is no regular expression"));
    }
}
