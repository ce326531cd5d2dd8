//! What the broker refuses, in RabbitMQ's words where clients match them. Doors map the kind to their code once.

use crate::model::refusal::{Refusal, RefusalKind};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// 404 on the channel.
    NotFound(String),
    /// 403 on the channel: permissions, reserved names, exclusive consumers.
    AccessRefused(String),
    /// 405 on the channel: another connection's exclusive queue.
    Locked(String),
    /// 406 on the channel.
    Precondition(String),
    /// 311 on the channel.
    TooLarge(String),
    /// 540 on the connection.
    NotImplemented(String),
    /// 530 on the connection.
    NotAllowed(String),
    /// 503 on the connection.
    CommandInvalid(String),
}

impl Refused {
    /// The words after the code's name (`NOT_FOUND - …`).
    pub fn text(&self) -> &str {
        match self {
            Refused::NotFound(text)
            | Refused::AccessRefused(text)
            | Refused::Locked(text)
            | Refused::Precondition(text)
            | Refused::TooLarge(text)
            | Refused::NotImplemented(text)
            | Refused::NotAllowed(text)
            | Refused::CommandInvalid(text) => text,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        let kind = match refused {
            Refused::NotFound(_) => RefusalKind::NotFound,
            Refused::AccessRefused(_) => RefusalKind::Forbidden,
            Refused::Locked(_) | Refused::Precondition(_) => RefusalKind::Conflict,
            Refused::TooLarge(_) => RefusalKind::TooLarge,
            Refused::NotImplemented(_) => RefusalKind::NotImplemented,
            Refused::NotAllowed(_) | Refused::CommandInvalid(_) => RefusalKind::Invalid,
        };
        Refusal::new(kind, refused.text())
    }
}
