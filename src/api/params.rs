//! Extractors whose refusals are problems: query strings, path parts and JSON bodies.

use super::problem::Problem;
use crate::kernel::limit::CONTROL_BODY_BYTES_MAX;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::request::Parts;
use http::{StatusCode, header};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Time a client has to send the body it announced.
const BODY_LIMIT: Duration = Duration::from_secs(30);

/// The query string as `T`. Unknown parameters are refused where `T` denies them.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Params(value)),
            Err(QueryRejection::FailedToDeserializeQueryString(error)) => {
                // The inner error names the parameter; the outer one only says that there is an error.
                let reason = std::error::Error::source(&error).map_or_else(|| error.body_text(), ToString::to_string);
                Err(Problem::invalid(format!("the query string of {} cannot be read: {reason}", parts.uri.path()))
                    .next("/api/v1/openapi.json lists the parameters of every path"))
            }
            Err(other) => Err(Problem::invalid(other.body_text())),
        }
    }
}

/// Percent-decoded path parts as `T`; a space `/` is written `%2F`.
pub struct PathParts<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(PathParts(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                Err(Problem::invalid(format!("{} cannot be read: {}", parts.uri.path(), error.body_text())))
            }
            Err(other) => Err(Problem::invalid(other.body_text())),
        }
    }
}

/// A JSON body as `T`, at most as long as the router's body limit and sent within [`BODY_LIMIT`].
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        // Said before the first byte is read: a length that lies would otherwise hold the request until its time is up.
        let announced =
            request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > CONTROL_BODY_BYTES_MAX as u64) {
            let what = format!("the body is longer than {CONTROL_BODY_BYTES_MAX} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what).next("send it in parts"));
        }
        let read = tokio::time::timeout(BODY_LIMIT, axum::Json::<T>::from_request(request, state)).await;
        match read {
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {} s", BODY_LIMIT.as_secs()),
            )),
            Ok(Ok(axum::Json(value))) => Ok(Body(value)),
            Ok(Err(JsonRejection::MissingJsonContentType(_))) => {
                Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not declared as JSON")
                    .next("send Content-Type: application/json"))
            }
            Ok(Err(error)) => Err(Problem::new(error.status(), error.body_text())),
        }
    }
}
