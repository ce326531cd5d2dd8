//! A refusal is the caller's fault, said so that they can mend it: the thing, what is wrong with it, what to do next.
//! Doors map the kind to their wire code once (HTTP status, AMQP reply code).

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// Malformed or contradictory input.
    Invalid,
    NotFound,
    /// Exists already, or is in use, or is in the wrong state for this.
    Conflict,
    Forbidden,
    TooLarge,
    /// A limit or an alarm; the same request may succeed later.
    Exhausted,
    NotImplemented,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub what: String,
    pub next: Option<String>,
}

impl Refusal {
    pub fn new(kind: RefusalKind, what: impl Into<String>) -> Self {
        Refusal { kind, what: what.into(), next: None }
    }

    /// Adds the next step.
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            Some(next) => write!(f, "{}. {next}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Refusal {}
