//! Long lists of the broker, a page at a time: filtered and sorted here, so that a browser that looks at forty of ten thousand
//! queues is sent forty.

use crate::api::ApiContext;
use crate::api::params::Params;
use crate::api::problem::Problem;
use crate::api::view::broker::{self as view, Channel, Connection, Consumer, Exchange, Queue};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use utoipa::{IntoParams, ToSchema};

const ROWS_DEFAULT: usize = 100;
const ROWS_MAX: usize = 500;

/// Which rows.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// Only of this space.
    space: Option<String>,
    /// Only rows with this text in a name; case does not matter.
    q: Option<String>,
    /// A column, with `-` in front from the largest down. By name unless given.
    sort: Option<String>,
    /// Rows skipped.
    from: Option<usize>,
    /// Rows: 100 unless given, at most 500.
    count: Option<usize>,
}

/// A page of queues.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueuePage {
    pub rows: Vec<Queue>,
    /// Rows of the filter, on all pages.
    pub matched: u64,
    /// Rows without the filter.
    pub total: u64,
    /// Messages ready and unacked in the queues of the filter.
    pub ready: u64,
    pub unacked: u64,
}

/// A page of rows.
#[derive(Debug, Serialize, ToSchema)]
pub struct Listed<T: ToSchema> {
    pub rows: Vec<T>,
    /// Rows of the filter, on all pages.
    pub matched: u64,
    /// Rows without the filter.
    pub total: u64,
}

/// What a column sorts by. Unknown values come last, whichever way.
enum Key {
    Text(String),
    Number(f64),
    None,
}

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        Key::Number(number as f64)
    }
}

impl From<f64> for Key {
    fn from(number: f64) -> Self {
        Key::Number(number)
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Key::Text(text.to_lowercase())
    }
}

impl<T: Into<Key>> From<Option<T>> for Key {
    fn from(value: Option<T>) -> Self {
        value.map_or(Key::None, Into::into)
    }
}

impl Key {
    fn order(&self, other: &Key, down: bool) -> Ordering {
        let order = match (self, other) {
            (Key::None, Key::None) => return Ordering::Equal,
            (Key::None, _) => return Ordering::Greater,
            (_, Key::None) => return Ordering::Less,
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
            (Key::Text(_), Key::Number(_)) => Ordering::Greater,
            (Key::Number(_), Key::Text(_)) => Ordering::Less,
        };
        if down { order.reverse() } else { order }
    }
}

/// How one kind of row is filtered and sorted.
struct Columns<T> {
    space: fn(&T) -> &str,
    texts: fn(&T) -> Vec<&str>,
    /// Names of the columns, for the refusal of others.
    names: &'static [&'static str],
    key: fn(&T, &str) -> Key,
}

struct Chosen<T> {
    /// In order.
    rows: Vec<T>,
    total: u64,
}

impl<T> Chosen<T> {
    fn page(self, params: &ListParams) -> Listed<T>
    where
        T: ToSchema,
    {
        let matched = self.rows.len() as u64;
        Listed { rows: page(self.rows, params), matched, total: self.total }
    }
}

fn page<T>(rows: Vec<T>, params: &ListParams) -> Vec<T> {
    let count = params.count.unwrap_or(ROWS_DEFAULT).min(ROWS_MAX);
    rows.into_iter().skip(params.from.unwrap_or(0)).take(count).collect()
}

fn choose<T>(mut rows: Vec<T>, params: &ListParams, columns: &Columns<T>) -> Result<Chosen<T>, Problem> {
    let sort = params.sort.as_deref().unwrap_or("name");
    let (column, down) = sort.strip_prefix('-').map_or((sort, false), |column| (column, true));
    if !columns.names.contains(&column) {
        let names = columns.names.join(", ");
        return Err(Problem::invalid(format!("there is no column {column} to sort by")).next(format!("columns are {names}")));
    }
    rows.retain(|row| params.space.as_deref().is_none_or(|space| (columns.space)(row) == space));
    let total = rows.len() as u64;
    if let Some(text) = params.q.as_deref().map(str::to_lowercase).filter(|text| !text.is_empty()) {
        rows.retain(|row| (columns.texts)(row).iter().any(|one| one.to_lowercase().contains(&text)));
    }
    let mut keyed: Vec<(Key, T)> = rows.into_iter().map(|row| ((columns.key)(&row, column), row)).collect();
    keyed.sort_by(|(a, _), (b, _)| a.order(b, down));
    Ok(Chosen { rows: keyed.into_iter().map(|(_, row)| row).collect(), total })
}

/// Ten thousand rows take a while, and the message path runs on the runtime's workers.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<Json<T>, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map(Json),
        Err(error) => {
            tracing::error!(%error, "a list panicked");
            let status = http::StatusCode::INTERNAL_SERVER_ERROR;
            Err(Problem::new(status, "the list failed; reactor's log says why"))
        }
    }
}

const QUEUES: Columns<Queue> = Columns {
    space: |queue| &queue.space,
    texts: |queue| vec![&queue.name],
    names: &["name", "ready", "unacked", "in", "out", "wait", "oldest", "consumers", "bytes", "redelivered"],
    key: |queue, column| match column {
        "ready" => queue.ready.into(),
        "unacked" => queue.unacked.into(),
        "in" => queue.in_rate.into(),
        "out" => queue.out_rate.into(),
        "wait" => queue.wait_p95_ns.into(),
        "oldest" => queue.oldest_unacked_ns.into(),
        "consumers" => queue.consumers.into(),
        "bytes" => queue.ready_bytes.into(),
        "redelivered" => queue.redelivered.into(),
        _ => (&*queue.name).into(),
    },
};

/// A page of queues, filtered and sorted.
#[utoipa::path(get, path = "/api/v1/queues/page", tag = "broker", params(ListParams), responses(
    (status = 200, body = QueuePage), (status = 400, body = Problem)))]
pub async fn queue_page(
    State(context): State<ApiContext>,
    Params(params): Params<ListParams>,
) -> Result<Json<QueuePage>, Problem> {
    aside(move || {
        let chosen = choose(view::queues(&context.sources), &params, &QUEUES)?;
        let sum = |of: fn(&Queue) -> u64| chosen.rows.iter().map(of).sum();
        let (ready, unacked, matched) = (sum(|queue| queue.ready), sum(|queue| queue.unacked), chosen.rows.len() as u64);
        Ok(QueuePage { matched, total: chosen.total, ready, unacked, rows: page(chosen.rows, &params) })
    })
    .await
}

const EXCHANGES: Columns<Exchange> = Columns {
    space: |exchange| &exchange.space,
    texts: |exchange| vec![&exchange.name, exchange.kind],
    names: &["name", "kind", "bindings", "in", "out"],
    key: |exchange, column| match column {
        "kind" => exchange.kind.into(),
        "bindings" => exchange.bindings.into(),
        "in" => exchange.in_rate.into(),
        "out" => exchange.out_rate.into(),
        _ => (&*exchange.name).into(),
    },
};

/// A page of exchanges, filtered and sorted.
#[utoipa::path(get, path = "/api/v1/exchanges/page", tag = "broker", params(ListParams), responses(
    (status = 200, body = Listed<Exchange>), (status = 400, body = Problem)))]
pub async fn exchange_page(
    State(context): State<ApiContext>,
    Params(params): Params<ListParams>,
) -> Result<Json<Listed<Exchange>>, Problem> {
    aside(move || Ok(choose(view::exchanges(&context.sources), &params, &EXCHANGES)?.page(&params))).await
}

const CONNECTIONS: Columns<Connection> = Columns {
    space: |connection| &connection.space,
    texts: |connection| {
        let service = connection.service.as_deref().unwrap_or_default();
        vec![&connection.name, &connection.user, &connection.peer, &connection.client, service]
    },
    names: &["name", "service", "user", "peer", "client", "channels", "consumers", "in", "out", "since"],
    key: |connection, column| match column {
        "service" => connection.service.as_deref().into(),
        "user" => (&*connection.user).into(),
        "peer" => (&*connection.peer).into(),
        "client" => (&*connection.client).into(),
        "channels" => connection.channels.into(),
        "consumers" => connection.consumers.into(),
        "in" => connection.in_bytes_rate.into(),
        "out" => connection.out_bytes_rate.into(),
        "since" => connection.since_us.into(),
        _ => (&*connection.name).into(),
    },
};

/// A page of connections, filtered and sorted.
#[utoipa::path(get, path = "/api/v1/connections/page", tag = "broker", params(ListParams), responses(
    (status = 200, body = Listed<Connection>), (status = 400, body = Problem)))]
pub async fn connection_page(
    State(context): State<ApiContext>,
    Params(params): Params<ListParams>,
) -> Result<Json<Listed<Connection>>, Problem> {
    aside(move || Ok(choose(view::connections(&context.sources), &params, &CONNECTIONS)?.page(&params))).await
}

const CHANNELS: Columns<Channel> = Columns {
    space: |channel| &channel.space,
    texts: |channel| vec![&channel.connection, &channel.user, channel.service.as_deref().unwrap_or_default()],
    names: &["name", "service", "user", "number", "consumers", "unacked", "prefetch"],
    key: |channel, column| match column {
        "service" => channel.service.as_deref().into(),
        "user" => (&*channel.user).into(),
        "number" => u64::from(channel.number).into(),
        "consumers" => channel.consumers.into(),
        "unacked" => channel.unacked.into(),
        "prefetch" => u64::from(channel.prefetch_global).into(),
        _ => (&*channel.connection).into(),
    },
};

/// A page of channels, filtered and sorted.
#[utoipa::path(get, path = "/api/v1/channels", tag = "broker", params(ListParams), responses(
    (status = 200, body = Listed<Channel>), (status = 400, body = Problem)))]
pub async fn channel_page(
    State(context): State<ApiContext>,
    Params(params): Params<ListParams>,
) -> Result<Json<Listed<Channel>>, Problem> {
    aside(move || Ok(choose(view::channels(&context.sources), &params, &CHANNELS)?.page(&params))).await
}

const CONSUMERS: Columns<Consumer> = Columns {
    space: |consumer| &consumer.space,
    texts: |consumer| {
        let service = consumer.service.as_deref().unwrap_or_default();
        vec![&consumer.queue, &consumer.tag, &consumer.connection, service]
    },
    names: &["name", "queue", "service", "tag", "channel", "unacked", "prefetch", "held"],
    key: |consumer, column| match column {
        "queue" => (&*consumer.queue).into(),
        "service" => consumer.service.as_deref().into(),
        "tag" => (&*consumer.tag).into(),
        "channel" => u64::from(consumer.channel).into(),
        "unacked" => consumer.unacked.into(),
        "prefetch" => u64::from(consumer.prefetch).into(),
        "held" => consumer.oldest_unacked_ns.into(),
        _ => (&*consumer.connection).into(),
    },
};

/// A page of consumers, filtered and sorted.
#[utoipa::path(get, path = "/api/v1/consumers", tag = "broker", params(ListParams), responses(
    (status = 200, body = Listed<Consumer>), (status = 400, body = Problem)))]
pub async fn consumer_page(
    State(context): State<ApiContext>,
    Params(params): Params<ListParams>,
) -> Result<Json<Listed<Consumer>>, Problem> {
    aside(move || {
        let consumers = context.sources.broker.consumers().into_iter().map(view::consumer).collect();
        Ok(choose(consumers, &params, &CONSUMERS)?.page(&params))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: Columns<(String, Option<u64>)> = Columns {
        space: |_| "/",
        texts: |pair| vec![&pair.0],
        names: &["name", "n"],
        key: |pair, column| match column {
            "n" => pair.1.into(),
            _ => pair.0.as_str().into(),
        },
    };

    fn names(q: Option<&str>, sort: Option<&str>) -> String {
        let rows = [("b1", Some(3)), ("A2", None), ("c3", Some(1)), ("a4", Some(2))];
        let rows = rows.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        let params = ListParams { q: q.map(str::to_owned), sort: sort.map(str::to_owned), ..ListParams::default() };
        let chosen = choose(rows, &params, &PAIRS).map_err(|problem| problem.detail.to_string()).expect("a known column");
        chosen.rows.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_are_sorted_with_unknown_values_last_either_way() {
        assert_eq!(names(None, None), "A2 a4 b1 c3");
        assert_eq!(names(None, Some("-name")), "c3 b1 a4 A2");
        assert_eq!(names(None, Some("n")), "c3 a4 b1 A2");
        assert_eq!(names(None, Some("-n")), "b1 a4 c3 A2");
        assert_eq!(names(Some("A"), None), "A2 a4");
    }

    #[test]
    fn an_unknown_column_is_refused_with_those_there_are() {
        let params = ListParams { sort: Some("-colour".into()), ..ListParams::default() };
        let problem = choose(Vec::new(), &params, &PAIRS).err().expect("refused");
        assert_eq!(
            (&*problem.detail, problem.next.as_deref()),
            ("there is no column colour to sort by", Some("columns are name, n"))
        );
    }
}
