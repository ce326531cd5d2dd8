//! Logins with a user and a password: AMQP today, other doors later.

use super::peer::{is_loopback, same_secret};
use crate::kernel::rng;
use crate::model::config::{AccessMode, AccessSettings};
use crate::model::identity::{InstanceIdentity, Permissions, Principal};
use crate::model::refusal::{Refusal, RefusalKind};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 24;
/// RabbitMQ's default user, which client libraries log in as when nobody says anything.
const GUEST: &str = "guest";

/// A user and a password as a SASL mechanism carried them.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// `PLAIN` or `AMQPLAIN`.
    pub mechanism: &'a str,
    pub user: &'a str,
    pub password: &'a str,
    pub peer: IpAddr,
}

#[derive(Debug)]
pub struct Access {
    mode: AccessMode,
    token: Arc<str>,
    trusted_peers: Vec<IpAddr>,
    /// Users made for supervised instances. One name may stand for an instance in each space; their passwords differ.
    issued: RwLock<HashMap<Arc<str>, Vec<Issued>>>,
}

#[derive(Debug)]
struct Issued {
    identity: Arc<InstanceIdentity>,
    password: Arc<str>,
}

impl Access {
    pub fn new(settings: &AccessSettings) -> Self {
        let token = settings.token.clone().unwrap_or_else(rng::token::<TOKEN_BYTES>);
        Access {
            mode: settings.mode,
            token: token.into(),
            trusted_peers: settings.trusted_peers.clone(),
            issued: RwLock::default(),
        }
    }

    pub fn mode(&self) -> AccessMode {
        self.mode
    }

    /// What a peer that is not this machine must show.
    pub fn token(&self) -> Arc<str> {
        self.token.clone()
    }

    pub fn is_token(&self, text: &str) -> bool {
        same_secret(&self.token, text)
    }

    /// Whether a peer counts as this machine.
    pub fn is_trusted(&self, peer: IpAddr) -> bool {
        is_loopback(peer) || self.trusted_peers.contains(&peer.to_canonical())
    }

    /// Makes the user that one supervised instance logs in as, and returns its password. An older one of the same instance is
    /// replaced.
    pub fn issue(&self, identity: InstanceIdentity) -> Arc<str> {
        let password: Arc<str> = rng::token::<TOKEN_BYTES>().into();
        let mut issued = self.issued.write().unwrap_or_else(PoisonError::into_inner);
        let users = issued.entry(identity.instance.clone()).or_default();
        users.retain(|user| *user.identity != identity);
        users.push(Issued { identity: Arc::new(identity), password: password.clone() });
        password
    }

    pub fn revoke(&self, identity: &InstanceIdentity) {
        let mut issued = self.issued.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(users) = issued.get_mut(&identity.instance) {
            users.retain(|user| *user.identity != *identity);
            if users.is_empty() {
                issued.remove(&identity.instance);
            }
        }
    }

    /// The instance that `user` with `password` is, if it was issued; `Err` when the name was issued with another password.
    fn issued(&self, user: &str, password: &str) -> Result<Option<Arc<InstanceIdentity>>, ()> {
        let issued = self.issued.read().unwrap_or_else(PoisonError::into_inner);
        let Some(users) = issued.get(user) else { return Ok(None) };
        users.iter().find(|user| same_secret(&user.password, password)).map(|user| Some(user.identity.clone())).ok_or(())
    }

    pub fn login(&self, login: Login<'_>) -> Result<Principal, Refusal> {
        match self.issued(login.user, login.password) {
            Ok(Some(identity)) => return Ok(Principal::of_instance(identity)),
            Ok(None) => {}
            Err(()) => return Err(self.refuse(&login)),
        }
        // The control token opens the bus to any user name from anywhere: the way in for other machines.
        if self.is_token(login.password) && is_free_name(login.user) {
            return Ok(all(login.user));
        }
        let guest = login.user == GUEST && login.password == GUEST;
        if guest && self.mode == AccessMode::Dev && self.is_trusted(login.peer) {
            return Ok(all(GUEST));
        }
        Err(self.refuse(&login))
    }

    fn refuse(&self, login: &Login<'_>) -> Refusal {
        let what = format!("login of user '{}' from {} by {} was refused", login.user, login.peer, login.mechanism);
        let next = match self.mode {
            AccessMode::Dev if login.user == GUEST && !self.is_trusted(login.peer) => {
                "guest/guest is for this machine only; from elsewhere use the token printed at start as the password"
            }
            AccessMode::Dev => "from this machine use guest/guest; from elsewhere use the token printed at start as the password",
            AccessMode::Required => "use the control token as the password",
        };
        Refusal::new(RefusalKind::Forbidden, what).hint(next)
    }
}

fn all(user: &str) -> Principal {
    Principal::new(user, Permissions::All)
}

/// Names below `reactor.` are the runtime's own.
fn is_free_name(user: &str) -> bool {
    !user.is_empty() && !user.starts_with("reactor.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::service::ServiceName;

    fn access(mode: AccessMode) -> Access {
        let trusted_peers = vec!["172.17.0.1".parse().expect("an address")];
        Access::new(&AccessSettings { mode, token: Some("secret".into()), trusted_peers })
    }

    fn attempt(access: &Access, user: &str, password: &str, peer: &str) -> bool {
        let peer = peer.parse().expect("an address");
        access.login(Login { mechanism: "PLAIN", user, password, peer }).is_ok()
    }

    #[test]
    fn guest_is_held_to_this_machine_and_the_container_gateway() {
        let access = access(AccessMode::Dev);
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "172.17.0.1", "::ffff:172.17.0.1"] {
            assert!(attempt(&access, "guest", "guest", peer), "{peer}");
        }
        for peer in ["10.0.0.1", "172.17.0.2", "::2"] {
            assert!(!attempt(&access, "guest", "guest", peer), "{peer}");
        }
        assert!(!attempt(&access, "guest", "wrong", "127.0.0.1"));
    }

    #[test]
    fn the_token_opens_the_bus_from_anywhere_in_every_mode() {
        for mode in [AccessMode::Dev, AccessMode::Required] {
            assert!(attempt(&access(mode), "ann", "secret", "10.0.0.1"));
            assert!(!attempt(&access(mode), "ann", "secrets", "10.0.0.1"));
            assert!(!attempt(&access(mode), "reactor.gateway", "secret", "127.0.0.1"));
        }
    }

    #[test]
    fn guest_does_not_get_in_where_a_login_is_required() {
        assert!(!attempt(&access(AccessMode::Required), "guest", "guest", "127.0.0.1"));
    }

    #[test]
    fn an_issued_user_logs_in_as_its_instance_until_revoked() {
        let access = access(AccessMode::Required);
        let identity = |space: &str| InstanceIdentity {
            space: space.into(),
            service: ServiceName::new("greeter").expect("a valid name"),
            instance: "greeter-1".into(),
        };
        let (here, there) = (access.issue(identity("/")), access.issue(identity("staging")));
        let peer = "127.0.0.1".parse().expect("an address");
        let principal = access.login(Login { mechanism: "PLAIN", user: "greeter-1", password: &there, peer }).expect("admitted");
        assert_eq!(principal.instance.as_deref(), Some(&identity("staging")));
        assert!(!attempt(&access, "greeter-1", "secret", "127.0.0.1"), "the token is not an issued user's password");
        access.revoke(&identity("/"));
        assert!(!attempt(&access, "greeter-1", &here, "127.0.0.1"));
        assert!(attempt(&access, "greeter-1", &there, "127.0.0.1"));
    }
}
