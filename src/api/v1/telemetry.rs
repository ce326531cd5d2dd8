//! What was observed: log records, traces, metrics, happenings, the map and the tape.

use crate::api::ApiContext;
use crate::api::params::{Params, PathParts};
use crate::api::problem::Problem;
use crate::model::signal::TraceId;
use crate::telemetry::query::{LogQuery, QueryError, ROWS_MAX, SeriesQuery, TraceQuery, TraceStatus};
use crate::telemetry::view::{
    HappeningRow, Histogram, Instrument, LogRow, Page, Scatter, SeriesAnswer, Tape, Trace, TraceRow, TrafficMap,
};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

const LIMIT_DEFAULT: usize = 200;
const BUCKETS_DEFAULT: usize = 120;
const BUCKETS_MAX: usize = 1_000;
const SCATTER_DEFAULT: usize = 1_000;
const SCATTER_MAX: usize = 5_000;
/// A week; nothing older is kept in memory.
const TAPE_RANGE_S_MAX: u64 = 7 * 24 * 3_600;

/// Which log records.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct LogParams {
    /// Free text, `field:value`, `-` or `NOT` before either, `severity>=warn`; juxtaposed parts must all match.
    query: String,
    space: Option<String>,
    from_us: Option<u64>,
    to_us: Option<u64>,
    /// Only rows with a smaller sequence number: the `before` of the last page.
    before: Option<u64>,
    /// 200 unless given, at most 5,000.
    limit: Option<usize>,
}

impl LogParams {
    fn query(self) -> Result<LogQuery, Problem> {
        range(self.from_us, self.to_us)?;
        Ok(LogQuery {
            query: self.query,
            space: self.space,
            from_us: self.from_us,
            to_us: self.to_us,
            before: self.before,
            limit: limit(self.limit)?,
        })
    }
}

/// Log records, newest page first, oldest first within a page.
#[utoipa::path(get, path = "/api/v1/logs", tag = "telemetry", params(LogParams), responses(
    (status = 200, body = Page<LogRow>), (status = 400, body = Problem)))]
pub async fn logs(State(context): State<ApiContext>, Params(params): Params<LogParams>) -> Result<Json<Page<LogRow>>, Problem> {
    let query = params.query()?;
    ask(context, move |context| context.sources.telemetry.logs(&query)).await
}

/// Which log records, in how many buckets.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct HistogramParams {
    query: String,
    space: Option<String>,
    from_us: Option<u64>,
    to_us: Option<u64>,
    /// 120 unless given, at most 1,000.
    buckets: Option<usize>,
}

/// How many matching records there were over time, by severity; the last 15 minutes unless a range is given.
#[utoipa::path(get, path = "/api/v1/logs/histogram", tag = "telemetry", params(HistogramParams), responses(
    (status = 200, body = Histogram), (status = 400, body = Problem)))]
pub async fn histogram(
    State(context): State<ApiContext>,
    Params(params): Params<HistogramParams>,
) -> Result<Json<Histogram>, Problem> {
    let buckets = count("buckets", params.buckets, BUCKETS_DEFAULT, BUCKETS_MAX)?;
    let HistogramParams { query, space, from_us, to_us, .. } = params;
    let query = LogParams { query, space, from_us, to_us, ..LogParams::default() }.query()?;
    ask(context, move |context| context.sources.telemetry.log_histogram(&query, buckets)).await
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Error,
    Open,
}

/// Which traces.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct TraceParams {
    query: String,
    space: Option<String>,
    from_us: Option<u64>,
    to_us: Option<u64>,
    /// Only rows with a smaller sequence number: the `before` of the last page.
    before: Option<u64>,
    /// 200 unless given, at most 5,000.
    limit: Option<usize>,
    min_duration_ns: Option<u64>,
    max_duration_ns: Option<u64>,
    #[param(inline)]
    status: Option<Status>,
}

impl TraceParams {
    fn query(self) -> Result<TraceQuery, Problem> {
        range(self.from_us, self.to_us)?;
        Ok(TraceQuery {
            query: self.query,
            space: self.space,
            from_us: self.from_us,
            to_us: self.to_us,
            before: self.before,
            limit: limit(self.limit)?,
            min_duration_ns: self.min_duration_ns,
            max_duration_ns: self.max_duration_ns,
            status: self.status.map(|status| match status {
                Status::Ok => TraceStatus::Ok,
                Status::Error => TraceStatus::Error,
                Status::Open => TraceStatus::Open,
            }),
        })
    }
}

/// Traces, newest page first, oldest first within a page.
#[utoipa::path(get, path = "/api/v1/traces", tag = "telemetry", params(TraceParams), responses(
    (status = 200, body = Page<TraceRow>), (status = 400, body = Problem)))]
pub async fn traces(
    State(context): State<ApiContext>,
    Params(params): Params<TraceParams>,
) -> Result<Json<Page<TraceRow>>, Problem> {
    let query = params.query()?;
    ask(context, move |context| context.sources.telemetry.traces(&query)).await
}

/// Which traces, thinned to how many points.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ScatterParams {
    query: String,
    space: Option<String>,
    from_us: Option<u64>,
    to_us: Option<u64>,
    min_duration_ns: Option<u64>,
    max_duration_ns: Option<u64>,
    #[param(inline)]
    status: Option<Status>,
    /// 1,000 unless given, at most 5,000.
    points: Option<usize>,
}

/// Duration over time of the matching traces; failed ones are thinned last.
#[utoipa::path(get, path = "/api/v1/traces/scatter", tag = "telemetry", params(ScatterParams), responses(
    (status = 200, body = Scatter), (status = 400, body = Problem)))]
pub async fn scatter(State(context): State<ApiContext>, Params(params): Params<ScatterParams>) -> Result<Json<Scatter>, Problem> {
    let points = count("points", params.points, SCATTER_DEFAULT, SCATTER_MAX)?;
    let ScatterParams { query, space, from_us, to_us, min_duration_ns, max_duration_ns, status, .. } = params;
    let params =
        TraceParams { query, space, from_us, to_us, min_duration_ns, max_duration_ns, status, before: None, limit: None };
    let query = params.query()?;
    ask(context, move |context| context.sources.telemetry.trace_scatter(&query, points)).await
}

/// One trace with everything that belongs to it.
#[utoipa::path(get, path = "/api/v1/traces/{trace_id}", tag = "telemetry", params(
    ("trace_id" = String, Path, description = "32 hex digits")
), responses((status = 200, body = Trace), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub async fn trace(State(context): State<ApiContext>, PathParts(id): PathParts<String>) -> Result<Json<Trace>, Problem> {
    let parsed =
        TraceId::parse(&id).ok_or_else(|| Problem::invalid(format!("{id} is no trace id")).next("give 32 hex digits"))?;
    let found = blocking(context, move |context| context.sources.telemetry.trace(parsed)).await?;
    found.map(Json).ok_or_else(|| {
        Problem::not_found(format!("trace {id} is not kept"))
            .next("it was never received, was sampled out, or made room for newer ones")
    })
}

/// Every instrument that sent points.
#[utoipa::path(get, path = "/api/v1/metrics", tag = "telemetry", responses((status = 200, body = [Instrument])))]
pub async fn metrics(State(context): State<ApiContext>) -> Result<Json<Vec<Instrument>>, Problem> {
    blocking(context, |context| context.sources.telemetry.instruments()).await.map(Json)
}

/// Which series of one instrument.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SeriesParams {
    name: String,
    service: Option<String>,
    /// Attribute keys (or `service`, `instance`), separated by commas, whose values make the series; all attributes if absent.
    #[serde(default)]
    group: String,
    /// Only series whose labels match: `field:value`.
    #[serde(default)]
    query: String,
    from_us: Option<u64>,
    to_us: Option<u64>,
    /// Buckets wanted: 120 unless given, at most 1,000.
    points: Option<usize>,
}

/// An instrument's series: rates of counters, values of gauges, percentiles of histograms.
#[utoipa::path(get, path = "/api/v1/metrics/query", tag = "telemetry", params(SeriesParams), responses(
    (status = 200, body = SeriesAnswer), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub async fn series(
    State(context): State<ApiContext>,
    Params(params): Params<SeriesParams>,
) -> Result<Json<SeriesAnswer>, Problem> {
    range(params.from_us, params.to_us)?;
    let group = params.group.split(',').map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned).collect();
    let query = SeriesQuery {
        name: params.name.clone(),
        service: params.service,
        group,
        query: params.query,
        from_us: params.from_us,
        to_us: params.to_us,
        points: count("points", params.points, BUCKETS_DEFAULT, BUCKETS_MAX)?,
    };
    let Json(answer) = ask(context, move |context| context.sources.telemetry.series(&query)).await?;
    answer.map(Json).ok_or_else(|| {
        Problem::not_found(format!("no instrument {} sent points", params.name)).next("GET /api/v1/metrics lists the instruments")
    })
}

/// Which happenings.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct HappeningParams {
    /// Only rows with a smaller sequence number: the `before` of the last page.
    before: Option<u64>,
    /// 200 unless given, at most 5,000.
    limit: Option<usize>,
}

/// What an operator may want to see, newest page first, oldest first within a page.
#[utoipa::path(get, path = "/api/v1/happenings", tag = "telemetry", params(HappeningParams), responses(
    (status = 200, body = Page<HappeningRow>), (status = 400, body = Problem)))]
pub async fn happenings(
    State(context): State<ApiContext>,
    Params(params): Params<HappeningParams>,
) -> Result<Json<Page<HappeningRow>>, Problem> {
    Ok(Json(context.sources.telemetry.happenings(params.before, limit(params.limit)?)))
}

/// Who talks to whom: topology from the traffic of the last 10 s.
#[utoipa::path(get, path = "/api/v1/map", tag = "telemetry", responses((status = 200, body = TrafficMap)))]
pub async fn map(State(context): State<ApiContext>) -> Json<TrafficMap> {
    Json(context.sources.telemetry.map())
}

/// Which range.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct TapeParams {
    /// The end; now unless given.
    to_us: Option<u64>,
    /// Seconds before the end: 900 unless given, at most a week.
    range_s: Option<u64>,
}

/// Requests and failures in 180 buckets, with what changed.
#[utoipa::path(get, path = "/api/v1/tape", tag = "telemetry", params(TapeParams), responses(
    (status = 200, body = Tape), (status = 400, body = Problem)))]
pub async fn tape(State(context): State<ApiContext>, Params(params): Params<TapeParams>) -> Result<Json<Tape>, Problem> {
    if params.range_s.is_some_and(|range| range == 0 || range > TAPE_RANGE_S_MAX) {
        return Err(Problem::invalid(format!("range_s is not between 1 and {TAPE_RANGE_S_MAX}")));
    }
    Ok(Json(context.sources.telemetry.tape(params.to_us, params.range_s)))
}

/// Asks off the runtime's workers: a query may walk a hundred megabytes, and the message path runs on those workers.
async fn ask<T: Send + 'static>(
    context: ApiContext,
    question: impl FnOnce(&ApiContext) -> Result<T, QueryError> + Send + 'static,
) -> Result<Json<T>, Problem> {
    let answer = blocking(context, question).await?;
    answer.map(Json).map_err(|error| Problem::invalid(error.what).next(error.next).at(error.position))
}

async fn blocking<T: Send + 'static>(
    context: ApiContext,
    question: impl FnOnce(&ApiContext) -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(move || question(&context)).await.map_err(|error| {
        tracing::error!(%error, "a telemetry query panicked");
        Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "the query failed; reactor's log says why")
    })
}

fn range(from_us: Option<u64>, to_us: Option<u64>) -> Result<(), Problem> {
    match (from_us, to_us) {
        (Some(from), Some(to)) if from > to => Err(Problem::invalid(format!("from_us {from} is later than to_us {to}"))),
        _ => Ok(()),
    }
}

fn limit(wish: Option<usize>) -> Result<usize, Problem> {
    count("limit", wish, LIMIT_DEFAULT, ROWS_MAX)
}

/// A wish beyond the maximum is cut, as the documentation says; none at all is a mistake.
fn count(name: &str, wish: Option<usize>, default: usize, max: usize) -> Result<usize, Problem> {
    match wish {
        Some(0) => Err(Problem::invalid(format!("{name} is 0")).next(format!("give 1 to {max}"))),
        wish => Ok(wish.unwrap_or(default).min(max)),
    }
}
