//! Reply codes and the texts RabbitMQ sends with them. Clients and their tests match on both.

use crate::kernel::limit::SHORT_STRING_BYTES_MAX;
use std::fmt;

macro_rules! reply_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal $reach:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReplyCode {
            $($(#[$doc])* $name = $code),*
        }

        impl ReplyCode {
            /// `NOT_FOUND`
            pub fn name(self) -> &'static str {
                match self {
                    $(ReplyCode::$name => $text,)*
                }
            }

            /// What an error with this code ends.
            pub fn reach(self) -> Reach {
                match self {
                    $(ReplyCode::$name => Reach::$reach,)*
                }
            }

            pub fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(ReplyCode::$name),)*
                    _ => None,
                }
            }
        }
    };
}

/// What an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing: it is only told.
    Nothing,
    Channel,
    Connection,
}

reply_codes! {
    ReplySuccess = 200 "REPLY_SUCCESS" Nothing,
    /// Only ever in `basic.return`, as is `NoConsumers`.
    NoRoute = 312 "NO_ROUTE" Nothing,
    NoConsumers = 313 "NO_CONSUMERS" Nothing,
    ContentTooLarge = 311 "CONTENT_TOO_LARGE" Channel,
    ConnectionForced = 320 "CONNECTION_FORCED" Connection,
    InvalidPath = 402 "INVALID_PATH" Connection,
    AccessRefused = 403 "ACCESS_REFUSED" Channel,
    NotFound = 404 "NOT_FOUND" Channel,
    ResourceLocked = 405 "RESOURCE_LOCKED" Channel,
    PreconditionFailed = 406 "PRECONDITION_FAILED" Channel,
    FrameError = 501 "FRAME_ERROR" Connection,
    SyntaxError = 502 "SYNTAX_ERROR" Connection,
    CommandInvalid = 503 "COMMAND_INVALID" Connection,
    ChannelError = 504 "CHANNEL_ERROR" Connection,
    UnexpectedFrame = 505 "UNEXPECTED_FRAME" Connection,
    ResourceError = 506 "RESOURCE_ERROR" Connection,
    NotAllowed = 530 "NOT_ALLOWED" Connection,
    NotImplemented = 540 "NOT_IMPLEMENTED" Connection,
    InternalError = 541 "INTERNAL_ERROR" Connection,
}

impl ReplyCode {
    pub fn code(self) -> u16 {
        self as u16
    }
}

/// A code with its text, `NOT_FOUND - no queue 'q' in vhost '/'`, never longer than a short string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub code: ReplyCode,
    text: String,
}

impl Reply {
    /// Puts the code's name in front of `what` and cuts the whole at 255 bytes, at a character.
    pub fn new(code: ReplyCode, what: impl fmt::Display) -> Self {
        let mut text = format!("{} - {what}", code.name());
        if text.len() > SHORT_STRING_BYTES_MAX {
            text.truncate(text.floor_char_boundary(SHORT_STRING_BYTES_MAX));
        }
        Reply { code, text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.code(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character_and_fit_a_short_string() {
        let reply = Reply::new(ReplyCode::NotFound, format!("no queue '{}'", "ü".repeat(300)));
        assert!(reply.text().len() <= 255 && reply.text().starts_with("NOT_FOUND - no queue 'ü"));
        assert_eq!(ReplyCode::from_code(404), Some(ReplyCode::NotFound));
        assert_eq!(ReplyCode::NotFound.reach(), Reach::Channel);
    }
}
