//! Engine: who may come in. Turns a login or a web request into a [`Principal`], or says why not.
//!
//! Over the web, nobody on this machine logs in in `dev` mode and everybody else needs the token; in `required` mode everybody does.
//! On the bus there are accounts: users with passwords and permissions, `guest` among them in `dev` mode, those that the supervisor
//! issued, and the token as everybody's password. Knows nothing of sockets and frames: doors hand in names and addresses.
//!
//! Invariants: secrets are compared in constant time and never printed by this module; an issued user dies with
//! [`Access::revoke`]; what an account may do changes under open connections with [`Access::set_accounts`].

mod accounts;
mod attempts;
mod login;
pub mod password;
mod peer;
mod web;

pub use attempts::{Attempts, AttemptsOfDoor};
pub use login::{Access, Login};
pub use web::{WebRefusal, WebRequest};
