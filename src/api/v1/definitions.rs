//! Definitions: what should exist, planned before it is applied, and what was changed by whom.

use super::services::SpaceParams;
use crate::api::ApiContext;
use crate::api::params::{Body, Params};
use crate::api::problem::Problem;
use crate::control::{AuditPage, Document, PlannedChange, Scope};
use crate::model::identity::Principal;
use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const CHANGES_DEFAULT: usize = 100;
const CHANGES_MAX: usize = 1_000;

/// Everything durable that exists, in the form RabbitMQ exports and imports.
#[utoipa::path(get, path = "/api/v1/definitions", tag = "control", params(SpaceParams), responses(
    (status = 200, body = Document), (status = 404, body = Problem)))]
pub async fn export(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Result<Json<Document>, Problem> {
    let mut definitions = context.control.definitions();
    definitions.spaces.retain(|space, _| params.takes(space));
    if params.space.is_some() {
        definitions.catalog.retain(|key| key.space().is_some_and(|space| params.takes(space)));
    }
    match params.space {
        Some(space) if definitions.spaces.is_empty() => Err(Problem::not_found(format!("there is no space {space}"))),
        _ => Ok(Json(Document::of(&definitions))),
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeName {
    #[default]
    Named,
    WholeSpaces,
}

/// How far the document speaks.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ScopeParams {
    /// `named` (the default) deletes nothing; `whole_spaces` deletes what the document does not list in the spaces it names.
    #[param(inline)]
    scope: ScopeName,
}

impl ScopeParams {
    fn scope(&self) -> Scope {
        match self.scope {
            ScopeName::Named => Scope::Named,
            ScopeName::WholeSpaces => Scope::WholeSpaces,
        }
    }
}

/// What applying a document would do, or did.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlanAnswer {
    /// In the order in which they are made.
    pub changes: Vec<PlannedChange>,
    /// What stands in the way; with any of them nothing is applied.
    pub refusals: Vec<PlanRefusal>,
    /// Parts of the document that reactor has no use for.
    pub ignored: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PlanRefusal {
    pub what: String,
    pub next: Option<String>,
}

/// The steps from what is to what the document wants. No effect.
#[utoipa::path(post, path = "/api/v1/definitions/plan", tag = "control", params(ScopeParams), request_body = Document, responses(
    (status = 200, body = PlanAnswer), (status = 400, body = Problem)))]
pub async fn plan(
    State(context): State<ApiContext>,
    Params(params): Params<ScopeParams>,
    Body(document): Body<Document>,
) -> Result<Json<PlanAnswer>, Problem> {
    let plan = context.control.plan(&document.definitions()?, params.scope());
    let refusals = plan.refusals.into_iter().map(|refusal| PlanRefusal { what: refusal.what, next: refusal.next });
    Ok(Json(PlanAnswer {
        changes: plan.changes.iter().map(PlannedChange::from).collect(),
        refusals: refusals.collect(),
        ignored: ignored(&document),
    }))
}

/// Plans and applies, as a whole or not at all.
#[utoipa::path(post, path = "/api/v1/definitions/apply", tag = "control", params(ScopeParams), request_body = Document, responses(
    (status = 200, description = "applied; what it changed", body = PlanAnswer),
    (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn apply(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    Params(params): Params<ScopeParams>,
    Body(document): Body<Document>,
) -> Result<Json<PlanAnswer>, Problem> {
    let changes = context.control.apply(&document.definitions()?, params.scope(), &by)?;
    let changes = changes.iter().map(PlannedChange::from).collect();
    Ok(Json(PlanAnswer { changes, refusals: Vec::new(), ignored: ignored(&document) }))
}

fn ignored(document: &Document) -> Vec<String> {
    document.ignored().into_iter().map(str::to_owned).collect()
}

/// Which changes.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ChangeParams {
    /// Only rows with a smaller sequence number: the `before` of the last page.
    before: Option<u64>,
    /// 100 unless given, at most 1,000.
    limit: Option<usize>,
}

/// Who changed what, newest first.
#[utoipa::path(get, path = "/api/v1/changes", tag = "control", params(ChangeParams), responses((status = 200, body = AuditPage)))]
pub async fn changes(State(context): State<ApiContext>, Params(params): Params<ChangeParams>) -> Json<AuditPage> {
    let limit = params.limit.unwrap_or(CHANGES_DEFAULT).clamp(1, CHANGES_MAX);
    Json(context.control.audit(params.before, limit))
}
