//! Users and what each may do, in the words and the JSON of RabbitMQ, so that definitions move there and back.

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A user of the broker.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct User {
    pub name: String,
    /// Base64 of four bytes of salt and the hash of salt and password. Empty: no password opens it (a certificate may).
    #[serde(default)]
    pub password_hash: String,
    #[serde(default)]
    pub hashing_algorithm: HashingAlgorithm,
    /// `administrator`, `monitoring`, `management`, `policymaker`, `impersonator`, and whatever else people like.
    #[serde(default, deserialize_with = "tags")]
    pub tags: Vec<String>,
    #[serde(default)]
    pub limits: UserLimits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum HashingAlgorithm {
    #[default]
    #[serde(rename = "rabbit_password_hashing_sha256")]
    Sha256,
    #[serde(rename = "rabbit_password_hashing_sha512")]
    Sha512,
    /// Of RabbitMQ before 3.6: read, so that old definitions work; never written for a new password.
    #[serde(rename = "rabbit_password_hashing_md5")]
    Md5,
}

/// What a user may have open at once; nothing is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserLimits {
    #[serde(rename = "max-connections", default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,
    #[serde(rename = "max-channels", default, skip_serializing_if = "Option::is_none")]
    pub max_channels: Option<i64>,
}

/// What a user may do in a space: patterns over names of queues and exchanges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Permission {
    pub user: String,
    pub vhost: String,
    pub configure: String,
    pub write: String,
    pub read: String,
}

/// Which routing keys of a topic exchange a user may publish with (write) and bind with (read). `{username}` and `{vhost}` stand
/// for what they say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopicPermission {
    pub user: String,
    pub vhost: String,
    pub exchange: String,
    pub write: String,
    pub read: String,
}

/// Hides the hash: users are logged, hashes are not.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("tags", &self.tags).finish_non_exhaustive()
    }
}

impl User {
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }
}

/// Reads a list of texts, or one text with commas as RabbitMQ before 3.9 wrote it.
pub fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Tags;

    impl<'de> Visitor<'de> for Tags {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of tags, or one text with commas between them")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect())
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<String>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut tags = Vec::new();
            while let Some(tag) = items.next_element::<String>()? {
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
            }
            Ok(tags)
        }
    }

    deserializer.deserialize_any(Tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_every_rabbitmq_are_read() {
        let read = |text: &str| serde_json::from_str::<User>(text).expect("a user");
        let old = read(
            r#"{"name": "ann", "password_hash": "x", "hashing_algorithm": "rabbit_password_hashing_md5", "tags": "administrator, x"}"#,
        );
        assert_eq!(
            (old.tags.as_slice(), old.hashing_algorithm),
            (&["administrator".to_owned(), "x".to_owned()][..], HashingAlgorithm::Md5)
        );
        let new = read(r#"{"name": "ann", "password_hash": "x", "tags": ["monitoring"], "limits": {"max-connections": 5}}"#);
        assert_eq!(new.limits.max_connections, Some(5));
        assert_eq!(serde_json::to_value(&new).expect("JSON")["hashing_algorithm"], "rabbit_password_hashing_sha256");
        assert!(!format!("{new:?}").contains("password"));
    }
}
