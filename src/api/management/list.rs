//! Lists as RabbitMQ answers them: filtered by name, sorted by any field, in pages, with chosen columns.
//!
//! What a row holds is made by the page's caller, and only for the fields that are asked for: sorting ten thousand queues by one
//! number makes ten thousand small rows and one page of whole ones.

use super::answer::{Answer, Failure, json};
use axum::extract::FromRequestParts;
use http::StatusCode;
use http::request::Parts;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

const PAGE_SIZE_DEFAULT: usize = 100;
const PAGE_SIZE_MAX: usize = 500;

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
        let text = self.get("columns").unwrap_or_default();
        Columns(text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }
}

/// Paths of the fields wanted, dot-joined; none is all.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<String>);

impl Columns {
    pub fn only(path: &str) -> Self {
        Columns(vec![path.to_owned()])
    }

    /// Whether a row needs its field `name`.
    pub fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|path| path.split('.').next() == Some(name))
    }

    /// Only what is wanted of `value`.
    pub fn pick(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        let mut picked = Value::Object(Map::new());
        for path in &self.0 {
            let parts: Vec<&str> = path.split('.').collect();
            merge(&mut picked, narrow(&value, &parts));
        }
        picked
    }
}

/// The part of `value` at `path`, in its place; `None` if it is not there.
fn narrow(value: &Value, path: &[&str]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Value::Object(fields) => {
            let inner = narrow(fields.get(*first)?, rest)?;
            Some(Value::Object(Map::from_iter([((*first).to_owned(), inner)])))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| narrow(item, path)).collect()),
        _ => None,
    }
}

fn merge(into: &mut Value, from: Option<Value>) {
    match (into, from) {
        (Value::Object(into), Some(Value::Object(from))) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(known) => merge(known, Some(value)),
                    None => _ = into.insert(key, value),
                }
            }
        }
        (Value::Array(into), Some(Value::Array(from))) => {
            into.iter_mut().zip(from).for_each(|(known, value)| merge(known, Some(value)));
        }
        _ => {}
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
    Matches(Regex),
}

impl NameFilter {
    fn takes(&self, name: &str) -> bool {
        match self {
            NameFilter::Any => true,
            NameFilter::Contains(part) => name.to_lowercase().contains(part),
            NameFilter::Matches(pattern) => pattern.is_match(name),
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
            Some(page) => items.into_iter().filter(|item| page.name.takes(name(item))).collect(),
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
        Some(pattern) if query.is_true("use_regex") => {
            NameFilter::Matches(RegexBuilder::new(pattern).case_insensitive(true).build().map_err(|_| invalid())?)
        }
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

    #[tokio::test]
    async fn a_page_counts_what_there_is_and_what_the_filter_leaves() {
        let page = ask("page=1&page_size=1&name=A").await.expect("a page");
        assert_eq!((&page["total_count"], &page["filtered_count"], &page["page_count"]), (&json!(3), &json!(2), &json!(2)));
        assert_eq!(page["items"][0]["name"], "a");
        let matched = ask("page=1&name=^b$&use_regex=true").await.expect("a page");
        assert_eq!(matched["filtered_count"], 1);
        let beyond = format!("page={}&page_size=500", i64::MAX);
        let reasons = ["page=9&page_size=2", "page=0", "page=1&page_size=501", "page=x", "page=1&name=[&use_regex=true", &beyond];
        for bad in reasons {
            assert_eq!(ask(bad).await.expect_err("refused").status, StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
