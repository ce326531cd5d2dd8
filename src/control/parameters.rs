//! Runtime parameters of spaces and of the whole broker, as the API sees them.
//!
//! `vhost-limits` and `operator_policy` mean something here; parameters of other components (RabbitMQ's plugins keep theirs so)
//! are kept and listed, so that definitions go through unharmed, and do nothing.

use super::apply::Control;
use super::entries::Put;
use crate::model::catalog::{Entry, EntryKey};
use crate::model::identity::Principal;
use crate::model::policy_spec::Policy;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::{GlobalParameter, LIMITS_COMPONENT, LIMITS_NAME, OPERATOR_POLICY_COMPONENT, Parameter, SpaceLimits};
use serde_json::{Map, Value};

const POLICY: &str = "policy";

pub(super) fn check(parameter: &Parameter) -> Result<(), Refusal> {
    let invalid = |what: String, next: &str| Err(Refusal::new(RefusalKind::Invalid, what).hint(next));
    match parameter.component.as_str() {
        "" => invalid(format!("parameter {} has no component", parameter.name), "Name one."),
        POLICY | OPERATOR_POLICY_COMPONENT => {
            invalid("policies may not be set using this method".into(), "Put them as policies.")
        }
        LIMITS_COMPONENT if parameter.name != LIMITS_NAME => {
            invalid(format!("{LIMITS_COMPONENT} has the parameter {}", parameter.name), "It is called limits.")
        }
        LIMITS_COMPONENT => match serde_json::from_value::<SpaceLimits>(parameter.value.clone()) {
            Ok(_) => Ok(()),
            Err(wrong) => {
                let what = format!("the limits of space {} are wrong: {wrong}", parameter.vhost);
                invalid(what, "Write {\"max-connections\": 100, \"max-queues\": 50}.")
            }
        },
        _ => Ok(()),
    }
}

/// Whether parameters of this component mean something here.
pub(super) fn has_effect(component: &str) -> bool {
    matches!(component, LIMITS_COMPONENT | OPERATOR_POLICY_COMPONENT)
}

/// An operator policy as RabbitMQ's definitions carry it.
pub(super) fn of_operator_policy(policy: &Policy) -> Parameter {
    let mut value = Map::new();
    value.insert("apply-to".into(), policy.apply_to.as_str().into());
    value.insert("definition".into(), Value::Object(policy.definition.clone()));
    value.insert("pattern".into(), policy.pattern.as_str().into());
    value.insert("priority".into(), policy.priority.into());
    let (vhost, name) = (policy.vhost.clone(), policy.name.clone());
    Parameter { vhost, component: OPERATOR_POLICY_COMPONENT.to_owned(), name, value: Value::Object(value) }
}

/// The entry that a parameter of a definitions document stands for.
pub(super) fn to_entry(parameter: &Parameter) -> Result<Entry, Refusal> {
    if parameter.component != OPERATOR_POLICY_COMPONENT {
        return Ok(Entry::Parameter(parameter.clone()));
    }
    let policy: Result<Policy, _> = serde_json::from_value(parameter.value.clone());
    match policy {
        Ok(policy) => {
            let (vhost, name) = (parameter.vhost.clone(), parameter.name.clone());
            Ok(Entry::OperatorPolicy(Policy { vhost, name, ..policy }))
        }
        Err(wrong) => {
            let what = format!("operator policy {} in space {} is wrong: {wrong}", parameter.name, parameter.vhost);
            Err(Refusal::new(RefusalKind::Invalid, what).hint("It has a pattern and a definition."))
        }
    }
}

fn key_of(space: &str, component: &str, name: &str) -> EntryKey {
    let (space, name) = (space.to_owned(), name.to_owned());
    match component {
        OPERATOR_POLICY_COMPONENT => EntryKey::OperatorPolicy { space, name },
        _ => EntryKey::Parameter { space, component: component.to_owned(), name },
    }
}

impl Control {
    /// Operator policies among them, as RabbitMQ lists them; policies have their own list.
    pub fn parameters(&self) -> Vec<Parameter> {
        let catalog = self.catalog();
        catalog.parameters().cloned().chain(catalog.operator_policies().map(of_operator_policy)).collect()
    }

    pub fn parameter(&self, space: &str, component: &str, name: &str) -> Option<Parameter> {
        match self.catalog().get(&key_of(space, component, name))? {
            Entry::Parameter(parameter) => Some(parameter.clone()),
            Entry::OperatorPolicy(policy) => Some(of_operator_policy(policy)),
            _ => None,
        }
    }

    pub fn put_parameter(&self, parameter: &Parameter, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(to_entry(parameter)?, by)
    }

    pub fn delete_parameter(&self, space: &str, component: &str, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&key_of(space, component, name), by)
    }

    pub fn global_parameters(&self) -> Vec<GlobalParameter> {
        self.catalog().global_parameters().cloned().collect()
    }

    /// `cluster_name` is one: [`CLUSTER_NAME`](crate::model::space::CLUSTER_NAME).
    pub fn global_parameter(&self, name: &str) -> Option<GlobalParameter> {
        match self.catalog().get(&EntryKey::GlobalParameter(name.to_owned())) {
            Some(Entry::GlobalParameter(parameter)) => Some(parameter.clone()),
            _ => None,
        }
    }

    pub fn put_global_parameter(&self, parameter: GlobalParameter, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(Entry::GlobalParameter(parameter), by)
    }

    pub fn delete_global_parameter(&self, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::GlobalParameter(name.to_owned()), by)
    }
}
