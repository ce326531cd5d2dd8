//! Lists as RabbitMQ answers them: filtered by name, sorted by any field, in pages, with chosen columns.
//!
//! What a row holds is made by the page's caller, and only for the fields that are asked for: sorting ten thousand queues by one
//! number makes ten thousand small rows and one page of whole ones.

use super::answer::{Answer, Failure, json};
use crate::kernel::pattern::{Pattern, RanAway};
use axum::extract::FromRequestParts;
use http::StatusCode;
use http::request::Parts;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

const PAGE_SIZE_DEFAULT: usize = 100;
const PAGE_SIZE_MAX: usize = 500;
/// Parts of a column's path that count; values are less deep.
const PATH_DEPTH_MAX: usize = 16;

/// The query string; of a repeated parameter the first counts.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(pairs)| Query(pairs)).map_err(|error| Failure::bad(error.body_text()))
    }
}

impl Query {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a repeated parameter.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    pub fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        let text = self.get("columns").unwrap_or_default();
        text.split(',').map(str::trim).filter(|path| !path.is_empty()).for_each(|path| columns.add(path));
        columns
    }
}

/// The fields wanted, as a tree of the paths given, so that a row costs the same however many those are. A branch without branches
/// is wanted with all that is in it; so is the whole row if nothing is named.
#[derive(Clone, Debug, Default)]
pub struct Columns(BTreeMap<String, Columns>);

impl Columns {
    pub fn only(path: &str) -> Self {
        let mut columns = Columns::default();
        columns.add(path);
        columns
    }

    /// `path` is dot-joined.
    fn add(&mut self, path: &str) {
        let mut at = self;
        let mut parts = path.split('.').take(PATH_DEPTH_MAX).peekable();
        while let Some(part) = parts.next() {
            match at.0.get(part) {
                // All of it is wanted already.
                Some(known) if known.0.is_empty() => return,
                Some(_) if parts.peek().is_none() => {
                    at.0.insert(part.to_owned(), Columns::default());
                    return;
                }
                _ => at = at.0.entry(part.to_owned()).or_default(),
            }
        }
    }

    /// Whether a row needs its field `name`.
    pub fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.contains_key(name)
    }

    /// Only what is wanted of the row `value`.
    pub fn pick(&self, value: Value) -> Value {
        self.narrow(value).unwrap_or_else(|| Value::Object(Map::new()))
    }

    /// What is wanted of `value`, each in its place; `None` if nothing of it is there.
    fn narrow(&self, value: Value) -> Option<Value> {
        if self.0.is_empty() {
            return Some(value);
        }
        match value {
            Value::Object(fields) => {
                let inner = |(name, value): (String, Value)| Some((self.0.get(&name)?.narrow(value)?, name));
                let picked: Map<String, Value> =
                    fields.into_iter().filter_map(inner).map(|(value, name)| (name, value)).collect();
                (!picked.is_empty()).then_some(Value::Object(picked))
            }
            Value::Array(items) => Some(items.into_iter().filter_map(|item| self.narrow(item)).collect()),
            _ => None,
        }
    }
}

/// A row in the making: fields that nobody asked for are not made.
pub struct Row<'c> {
    columns: &'c Columns,
    fields: Map<String, Value>,
}

impl<'c> Row<'c> {
    pub fn new(columns: &'c Columns) -> Self {
        Row { columns, fields: Map::new() }
    }

    pub fn put(&mut self, name: &str, value: impl Into<Value>) {
        if self.columns.wants(name) {
            self.fields.insert(name.to_owned(), value.into());
        }
    }

    pub fn put_with(&mut self, name: &str, value: impl FnOnce() -> Value) {
        if self.columns.wants(name) {
            self.fields.insert(name.to_owned(), value());
        }
    }

    pub fn wants(&self, name: &str) -> bool {
        self.columns.wants(name)
    }

    pub fn into_value(self) -> Value {
        self.columns.pick(Value::Object(self.fields))
    }
}

/// Filter, order and page of a list.
#[derive(Debug)]
pub struct Listing {
    columns: Columns,
    sort: Option<String>,
    reverse: bool,
    page: Option<Page>,
}

#[derive(Debug)]
struct Page {
    number: usize,
    size: usize,
    name: NameFilter,
}

#[derive(Debug)]
enum NameFilter {
    Any,
    Contains(String),
    Matches(Pattern),
}

impl NameFilter {
    fn takes(&self, name: &str) -> Result<bool, Failure> {
        match self {
            NameFilter::Any => Ok(true),
            NameFilter::Contains(part) => Ok(name.to_lowercase().contains(part)),
            NameFilter::Matches(pattern) => pattern.try_match(name).map_err(|RanAway| {
                let next = "write it without a repetition inside a repetition";
                Failure::bad(format!("the regular expression takes too many steps on the name {name}: {next}"))
            }),
        }
    }
}

impl Listing {
    /// Of a kind of list that RabbitMQ pages.
    pub fn of(query: &Query) -> Result<Self, Failure> {
        Ok(Listing { page: page(query)?, ..Listing::whole(query) })
    }

    /// Of a kind of list that it never pages.
    pub fn whole(query: &Query) -> Self {
        let sort = query.get("sort").filter(|path| !path.is_empty()).map(str::to_owned);
        Listing { columns: query.columns(), sort, reverse: query.is_true("sort_reverse"), page: None }
    }

    /// Answers with `items`, which are in their usual order. `name` is what a page's filter looks at; `row` makes the JSON of one.
    pub fn answer<T>(&self, items: Vec<T>, name: impl Fn(&T) -> &str, row: impl Fn(&T, &Columns) -> Value) -> Answer {
        let total = items.len();
        let mut items: Vec<T> = match &self.page {
            Some(page) => {
                let taken = items.into_iter().map(|item| Ok(page.name.takes(name(&item))?.then_some(item)));
                taken.filter_map(Result::transpose).collect::<Result<_, Failure>>()?
            }
            None => items,
        };
        if let Some(path) = &self.sort {
            sort(&mut items, path, &row);
        }
        if self.reverse {
            items.reverse();
        }
        let filtered = items.len();
        let Some(Page { number, size, .. }) = &self.page else {
            return Ok(json(items.iter().map(|item| row(item, &self.columns)).collect::<Vec<_>>()));
        };
        let first = (number - 1).saturating_mul(*size);
        if first >= filtered && *number > 1 {
            let reason = format!("Page out of range, page: {number} page size: {size}, len: {filtered}");
            return Err(Failure::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason));
        }
        let rows: Vec<Value> = items.iter().skip(first).take(*size).map(|item| row(item, &self.columns)).collect();
        Ok(json(json!({
            "filtered_count": filtered,
            "item_count": rows.len(),
            "items": rows,
            "page": number,
            "page_count": filtered.div_ceil(*size).max(1),
            "page_size": size,
            "total_count": total,
        })))
    }
}

fn sort<T>(items: &mut Vec<T>, path: &str, row: &impl Fn(&T, &Columns) -> Value) {
    let (only, parts) = (Columns::only(path), path.split('.').collect::<Vec<_>>());
    let key = |item: &T| parts.iter().try_fold(row(item, &only), |mut value, part| value.get_mut(*part).map(Value::take));
    let mut keyed: Vec<(Option<Value>, T)> = std::mem::take(items).into_iter().map(|item| (key(&item), item)).collect();
    keyed.sort_by(|(left, _), (right, _)| order(left.as_ref(), right.as_ref()));
    items.extend(keyed.into_iter().map(|(_, item)| item));
}

/// What is absent comes first, then numbers, then the rest.
fn order(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    let rank = |value: Option<&Value>| match value {
        None => 0,
        Some(Value::Number(_)) => 1,
        Some(Value::Null) => 2,
        Some(Value::Bool(_)) => 3,
        Some(Value::Object(_) | Value::Array(_)) => 4,
        Some(Value::String(_)) => 5,
    };
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            left.as_f64().unwrap_or(0.0).total_cmp(&right.as_f64().unwrap_or(0.0))
        }
        (Some(Value::Bool(left)), Some(Value::Bool(right))) => left.cmp(right),
        (Some(Value::String(left)), Some(Value::String(right))) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn page(query: &Query) -> Result<Option<Page>, Failure> {
    let Some(number) = query.get("page") else { return Ok(None) };
    let invalid = || Failure::bad("Pagination parameters are invalid");
    let number: i64 = number.parse().map_err(|_| invalid())?;
    let size: Option<i64> = query.get("page_size").map(|text| text.parse().map_err(|_| invalid())).transpose()?;
    let given = usize::try_from(size.unwrap_or(PAGE_SIZE_DEFAULT as i64)).ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size));
    let (Some(page), Some(given)) = (usize::try_from(number).ok().filter(|number| *number > 0), given) else {
        let size = size.map_or_else(|| "undefined".to_owned(), |size| size.to_string());
        let reason = format!("Invalid pagination parameters: page number {number}, page size {size}");
        return Err(Failure::new(StatusCode::BAD_REQUEST, "invalid_pagination_parameters", reason));
    };
    let name = match query.get("name").filter(|name| !name.is_empty()) {
        None => NameFilter::Any,
        Some(pattern) if query.is_true("use_regex") => NameFilter::Matches(Pattern::caseless(pattern).map_err(|_| invalid())?),
        Some(part) => NameFilter::Contains(part.to_lowercase()),
    };
    Ok(Some(Page { number: page, size: given, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Query(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn row(item: &(&'static str, u64), columns: &Columns) -> Value {
        let mut row = Row::new(columns);
        row.put("name", item.0);
        row.put_with("stats", || json!({ "publish": item.1, "rates": { "rate": item.1 as f64 / 2.0 } }));
        row.into_value()
    }

    async fn ask(text: &str) -> Result<Value, Failure> {
        let response = Listing::of(&query(text))?.answer(vec![("a", 3), ("B", 1), ("ab", 2)], |item| item.0, row)?;
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        Ok(serde_json::from_slice(&bytes).expect("JSON"))
    }

    #[tokio::test]
    async fn a_list_is_sorted_by_any_path_and_shows_only_its_columns() {
        let names = |value: &Value| value.as_array().expect("a list").iter().map(|row| row["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&ask("sort=stats.publish").await.expect("a list")), ["B", "ab", "a"]);
        assert_eq!(names(&ask("sort=stats.rates.rate&sort_reverse=true").await.expect("a list")), ["a", "ab", "B"]);
        let picked = ask("columns=stats.rates.rate,nothing").await.expect("a list");
        assert_eq!(picked[0], json!({ "stats": { "rates": { "rate": 1.5 } } }));
    }

    #[test]
    fn however_many_columns_are_named_a_row_has_each_once() {
        let value = json!({ "a": { "b": 1, "c": { "d": 2 } }, "list": [{ "x": 1, "y": 2 }, { "y": 3 }, 4], "e": 5 });
        let picked = |columns: &str| query(&format!("columns={columns}")).columns().pick(value.clone());
        assert_eq!(picked("a.b,a,a.c"), json!({ "a": value["a"] }), "the whole and parts of it are the whole");
        assert_eq!(picked("a.c.d,a.b,a.b"), json!({ "a": value["a"] }));
        assert_eq!(picked("list.y,list.x"), json!({ "list": [{ "x": 1, "y": 2 }, { "y": 3 }] }));
        assert_eq!(picked("e.f,nothing"), json!({}));
        assert_eq!(picked(&"z.".repeat(30_000)), json!({}));
        let many: Vec<String> = (0..20_000).map(|number| format!("e{number},a.b")).collect();
        let columns = query(&format!("columns={}", many.join(","))).columns();
        let rows = (0..20_000).map(|_| columns.pick(value.clone())).filter(|row| *row == json!({ "a": { "b": 1 } })).count();
        assert_eq!(rows, 20_000);
    }

    #[tokio::test]
    async fn a_pattern_that_runs_away_is_refused() {
        let pairs = [("page", "1"), ("name", "^(a|aa)+(?!x)$"), ("use_regex", "true")];
        let filter = Query(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec());
        let long = "a".repeat(200) + "b";
        let answer = Listing::of(&filter).expect("a pattern").answer(vec![long], |name| name, |_, _| Value::Null);
        let failure = answer.expect_err("refused");
        assert_eq!(failure.status, StatusCode::BAD_REQUEST);
        assert!(failure.body["reason"].as_str().is_some_and(|reason| reason.contains("too many steps")), "{}", failure.body);
    }

    #[tokio::test]
    async fn a_page_counts_what_there_is_and_what_the_filter_leaves() {
        let page = ask("page=1&page_size=1&name=A").await.expect("a page");
        assert_eq!((&page["total_count"], &page["filtered_count"], &page["page_count"]), (&json!(3), &json!(2), &json!(2)));
        assert_eq!(page["items"][0]["name"], "a");
        let matched = ask("page=1&name=^b$&use_regex=true").await.expect("a page");
        assert_eq!(matched["filtered_count"], 1);
        let without = ask("page=1&name=^(?!a)&use_regex=true").await.expect("PCRE has look-around");
        assert_eq!(without["items"][0]["name"], "B");
        let beyond = format!("page={}&page_size=500", i64::MAX);
        let reasons = ["page=9&page_size=2", "page=0", "page=1&page_size=501", "page=x", "page=1&name=[&use_regex=true", &beyond];
        for bad in reasons {
            assert_eq!(ask(bad).await.expect_err("refused").status, StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
