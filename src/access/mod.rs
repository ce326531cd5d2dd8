//! Engine: who may come in. Turns a login or a web request into a [`Principal`], or says why not.
//!
//! In `dev` mode nobody logs in who is on this machine; everybody else needs the token. In `required` mode the token (or a user
//! issued by the supervisor) is needed everywhere. Knows nothing of sockets and frames: doors hand in names and addresses.
//!
//! Invariants: a token is compared in constant time and never printed by this module; an issued user dies with
//! [`Access::revoke`].

mod login;
mod peer;
mod web;

pub use login::{Access, Login};
pub use web::{WebRefusal, WebRequest};
