//! Policies, operator policies, runtime parameters and global parameters.

use super::answer::{Answer, Failure, done, json, put};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query};
use crate::control::Put;
use crate::model::policy_spec::{ApplyTo, Policy};
use crate::model::space::{GlobalParameter, LIMITS_COMPONENT, OPERATOR_POLICY_COMPONENT, Parameter};
use axum::extract::{Path, State};
use serde_json::json;

/// The two kinds of policy differ in where they are kept.
#[derive(Clone, Copy)]
enum Kind {
    Users,
    Operators,
}

impl Kind {
    fn all(self, context: &ManagementContext) -> Vec<Policy> {
        match self {
            Kind::Users => context.control.policies(),
            Kind::Operators => context.control.operator_policies(),
        }
    }

    fn find(self, context: &ManagementContext, space: &str, name: &str) -> Result<Policy, Failure> {
        let found = match self {
            Kind::Users => context.control.policy(space, name),
            Kind::Operators => context.control.operator_policy(space, name),
        };
        found.ok_or_else(Failure::no_object)
    }
}

fn list_of(kind: Kind, context: &ManagementContext, caller: &Caller, query: &Query) -> Answer {
    let seen = kind.all(context).into_iter().filter(|policy| caller.sees(context, &policy.vhost)).collect();
    answer(seen, query)
}

fn list_in(kind: Kind, context: &ManagementContext, caller: &Caller, space: &str, query: &Query) -> Answer {
    caller.enter(context, space)?;
    answer(kind.all(context).into_iter().filter(|policy| policy.vhost == space).collect(), query)
}

fn answer(policies: Vec<Policy>, query: &Query) -> Answer {
    Listing::whole(query).answer(policies, |policy| policy.name.as_str(), |policy, columns: &Columns| columns.pick(json!(policy)))
}

fn declared(kind: Kind, context: &ManagementContext, caller: &Caller, at: (String, String), fields: &Fields) -> Answer {
    let (vhost, name) = at;
    caller.must_make_policies()?;
    if matches!(kind, Kind::Operators) {
        caller.must_administer()?;
    }
    super::exchanges::enter_to_write(context, caller, &vhost)?;
    fields.must_have(&["pattern", "definition"])?;
    let apply_to = match fields.text("apply-to")? {
        None => ApplyTo::All,
        Some(text) => ApplyTo::parse(text).ok_or_else(|| {
            let known = "'queues', 'classic_queues', 'quorum_queues', 'streams', 'exchanges' or 'all'";
            Failure::bad(format!("Validation failed\n\napply-to '{text}' unrecognised; should be {known}\n"))
        })?,
    };
    let policy = Policy {
        vhost,
        name,
        pattern: fields.text("pattern")?.unwrap_or_default().to_owned(),
        apply_to,
        definition: fields.object("definition")?,
        priority: fields.integer("priority")?.unwrap_or(0),
    };
    let result = match kind {
        Kind::Users => context.control.put_policy(policy, &caller.principal),
        Kind::Operators => context.control.put_operator_policy(policy, &caller.principal),
    };
    Ok(put(result.map_err(invalid)? == Put::Updated))
}

/// As RabbitMQ introduces what its checks found.
fn invalid(refusal: crate::model::refusal::Refusal) -> Failure {
    match refusal.kind {
        crate::model::refusal::RefusalKind::Invalid => Failure::bad(format!("Validation failed\n\n{refusal}\n")),
        _ => refusal.into(),
    }
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    list_of(Kind::Users, &context, &caller, &query)
}

pub async fn of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    list_in(Kind::Users, &context, &caller, &space, &query)
}

pub async fn one(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
) -> Answer {
    caller.enter(&context, &space)?;
    Ok(json(Kind::Users.find(&context, &space, &name)?))
}

pub async fn declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(at): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    declared(Kind::Users, &context, &caller, at, &fields)
}

pub async fn delete(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
) -> Answer {
    caller.must_make_policies()?;
    caller.enter(&context, &space)?;
    Kind::Users.find(&context, &space, &name)?;
    context.control.delete_policy(&space, &name, &caller.principal)?;
    Ok(done())
}

pub async fn operator_list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    list_of(Kind::Operators, &context, &caller, &query)
}

pub async fn operator_of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    list_in(Kind::Operators, &context, &caller, &space, &query)
}

pub async fn operator_one(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
) -> Answer {
    caller.enter(&context, &space)?;
    Ok(json(Kind::Operators.find(&context, &space, &name)?))
}

pub async fn operator_declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(at): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    declared(Kind::Operators, &context, &caller, at, &fields)
}

pub async fn operator_delete(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    caller.enter(&context, &space)?;
    Kind::Operators.find(&context, &space, &name)?;
    context.control.delete_operator_policy(&space, &name, &caller.principal)?;
    Ok(done())
}

fn parameters_where(context: &ManagementContext, caller: &Caller, takes: impl Fn(&Parameter) -> bool) -> Answer {
    caller.must_make_policies()?;
    let seen = context.control.parameters().into_iter().filter(|it| caller.sees(context, &it.vhost) && takes(it));
    Ok(json(seen.collect::<Vec<_>>()))
}

pub async fn parameters(State(context): State<ManagementContext>, caller: Caller) -> Answer {
    parameters_where(&context, &caller, |_| true)
}

pub async fn parameters_of(State(context): State<ManagementContext>, caller: Caller, Path(component): Path<String>) -> Answer {
    parameters_where(&context, &caller, |it| it.component == component)
}

pub async fn parameters_in(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((component, space)): Path<(String, String)>,
) -> Answer {
    caller.enter(&context, &space)?;
    parameters_where(&context, &caller, |it| it.component == component && it.vhost == space)
}

/// Component, space and name.
type At = (String, String, String);

pub async fn parameter(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((component, space, name)): Path<At>,
) -> Answer {
    caller.must_make_policies()?;
    caller.enter(&context, &space)?;
    Ok(json(context.control.parameter(&space, &component, &name).ok_or_else(Failure::no_object)?))
}

/// What operators bound others with is theirs, whichever path leads to it.
fn must_change(caller: &Caller, component: &str) -> Result<(), Failure> {
    match component {
        LIMITS_COMPONENT | OPERATOR_POLICY_COMPONENT => caller.must_administer(),
        _ => caller.must_make_policies(),
    }
}

pub async fn set_parameter(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((component, vhost, name)): Path<At>,
    fields: Fields,
) -> Answer {
    must_change(&caller, &component)?;
    super::exchanges::enter_to_write(&context, &caller, &vhost)?;
    fields.must_have(&["value"])?;
    let value = fields.get("value").cloned().unwrap_or_default();
    let put_it = context.control.put_parameter(&Parameter { vhost, component, name, value }, &caller.principal);
    Ok(put(put_it.map_err(invalid)? == Put::Updated))
}

pub async fn clear_parameter(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((component, space, name)): Path<At>,
) -> Answer {
    must_change(&caller, &component)?;
    caller.enter(&context, &space)?;
    context.control.parameter(&space, &component, &name).ok_or_else(Failure::no_object)?;
    context.control.delete_parameter(&space, &component, &name, &caller.principal)?;
    Ok(done())
}

pub async fn global_parameters(State(context): State<ManagementContext>, caller: Caller) -> Answer {
    caller.must_make_policies()?;
    Ok(json(context.control.global_parameters()))
}

pub async fn global_parameter(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_make_policies()?;
    Ok(json(context.control.global_parameter(&name).ok_or_else(Failure::no_object)?))
}

pub async fn set_global_parameter(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    fields.must_have(&["value"])?;
    let value = fields.get("value").cloned().unwrap_or_default();
    Ok(put(context.control.put_global_parameter(GlobalParameter { name, value }, &caller.principal)? == Put::Updated))
}

pub async fn clear_global_parameter(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
) -> Answer {
    caller.must_administer()?;
    context.control.global_parameter(&name).ok_or_else(Failure::no_object)?;
    context.control.delete_global_parameter(&name, &caller.principal)?;
    Ok(done())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::{Permissions, Principal};

    #[test]
    fn limits_and_operator_policies_are_changed_by_administrators_alone() {
        let with = |tag: &str| Caller { principal: Principal::new("ann", Permissions::All).tagged(&[tag.to_owned()]) };
        for component in [LIMITS_COMPONENT, OPERATOR_POLICY_COMPONENT] {
            assert!(must_change(&with("policymaker"), component).is_err(), "{component}");
            assert!(must_change(&with("administrator"), component).is_ok(), "{component}");
        }
        assert!(must_change(&with("policymaker"), "shovel").is_ok());
        assert!(must_change(&with("management"), "shovel").is_err());
    }
}
