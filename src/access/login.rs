//! Logins with a user and a password: AMQP today, other doors later.

use super::accounts::Held;
use super::attempts::Attempts;
use super::password;
use super::peer::{is_loopback, same_secret};
use crate::kernel::rng;
use crate::model::account::{Permission, User};
use crate::model::catalog::{Accounts, Catalog, Entry};
use crate::model::config::{AccessMode, AccessSettings};
use crate::model::identity::{InstanceIdentity, Permissions, Principal};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::topology::DEFAULT_SPACE;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 24;
/// RabbitMQ's default user, which client libraries log in as when nobody says anything.
pub(super) const GUEST: &str = "guest";
/// The tag of those who may do everything at the management doors.
pub(super) const ADMINISTRATOR: &str = "administrator";

/// A user and a password as a SASL mechanism carried them.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// `PLAIN`, `AMQPLAIN`, or `Basic` on the web.
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
    /// Users that only this machine may log in as.
    loopback_users: Vec<String>,
    pub(super) accounts: ArcSwap<Accounts>,
    pub(super) held: Held,
    attempts: Attempts,
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
            loopback_users: settings.loopback_users.clone(),
            accounts: ArcSwap::default(),
            held: Held::default(),
            attempts: Attempts::default(),
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

    /// Admits a user with a password, or says why not. What it may do is asked when it enters a space ([`Access::enter`]).
    pub fn login(&self, login: Login<'_>) -> Result<Principal, Refusal> {
        let result = self.identify(&login).ok_or_else(|| self.refuse(&login));
        self.attempts.count(login.mechanism, result.is_ok());
        result
    }

    /// Admits a user whom a client certificate names. Whether there is such a user is all that is left to ask.
    pub fn login_by_certificate(&self, user: &str, peer: IpAddr) -> Result<Principal, Refusal> {
        let login = Login { mechanism: "EXTERNAL", user, password: "", peer };
        let account = self.accounts.load().users.get(user).cloned();
        let result = match account {
            Some(account) if self.admits_peer(user, peer) => Ok(of_account(&account)),
            Some(_) => Err(self.refuse(&login)),
            None => {
                let what = format!("the certificate of {peer} names the user '{user}', who does not exist");
                Err(Refusal::new(RefusalKind::Forbidden, what).hint("Create that user, or set auth.certificate_login."))
            }
        };
        self.attempts.count(login.mechanism, result.is_ok());
        result
    }

    /// How often somebody tried to log in, and how it went.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    fn identify(&self, login: &Login<'_>) -> Option<Principal> {
        match self.issued(login.user, login.password) {
            Ok(Some(identity)) => return Some(Principal::of_instance(identity)),
            Ok(None) => {}
            Err(()) => return None,
        }
        // The control token opens the bus to any user name from anywhere: the way in for other machines.
        if self.is_token(login.password) && is_free_name(login.user) {
            return Some(all(login.user));
        }
        let account = self.accounts.load().users.get(login.user).cloned()?;
        let opens = password::opens(&account, login.password) && self.admits_peer(login.user, login.peer);
        opens.then(|| of_account(&account))
    }

    /// A loopback user comes from this machine only; in dev mode whatever counts as this machine will do.
    fn admits_peer(&self, user: &str, peer: IpAddr) -> bool {
        let is_here = match self.mode {
            AccessMode::Dev => self.is_trusted(peer),
            AccessMode::Required => is_loopback(peer),
        };
        is_here || !self.loopback_users.iter().any(|held| held == user)
    }

    /// The entries that a catalogue begins with: in dev mode RabbitMQ's default user, so that every client's defaults work.
    pub fn seed(&self) -> Catalog {
        if self.mode == AccessMode::Required {
            return Catalog::default();
        }
        let (name, password_hash) = (GUEST.to_owned(), password::hash(GUEST));
        let guest = User { name, password_hash, tags: vec![ADMINISTRATOR.to_owned()], ..User::default() };
        let every = || ".*".to_owned();
        let (user, vhost) = (GUEST.to_owned(), DEFAULT_SPACE.to_owned());
        let permission = Permission { user, vhost, configure: every(), write: every(), read: every() };
        Catalog::from_iter([Entry::User(guest), Entry::Permission(permission)])
    }

    fn knows(&self, user: &str) -> bool {
        self.accounts.load().users.contains_key(user)
    }

    fn refuse(&self, login: &Login<'_>) -> Refusal {
        let what = format!("login of user '{}' from {} by {} was refused", login.user, login.peer, login.mechanism);
        let next = match self.mode {
            _ if !self.admits_peer(login.user, login.peer) => {
                "this user can only connect from this machine (auth.loopback_users); from elsewhere use the token printed at \
                 start as the password, or another user"
            }
            // Who is here may list the users anyway; others are not told whether there is one.
            AccessMode::Dev if self.is_trusted(login.peer) && self.knows(login.user) => {
                "that is not this user's password; give it another one on the dashboard's Access page, or use the token printed at \
                 start as the password"
            }
            AccessMode::Dev => "from this machine use guest/guest; from elsewhere use the token printed at start as the password",
            AccessMode::Required => "use a user's own password, or the control token as the password",
        };
        Refusal::new(RefusalKind::Forbidden, what).hint(next)
    }
}

/// What it may do depends on the space, which comes next.
fn of_account(user: &User) -> Principal {
    Principal::new(&user.name, Permissions::None).tagged(&user.tags)
}

fn all(user: &str) -> Principal {
    Principal::new(user, Permissions::All).tagged(&[ADMINISTRATOR.to_owned()])
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
        let settings = AccessSettings {
            mode,
            token: Some("secret".into()),
            trusted_peers,
            loopback_users: vec!["guest".into()],
            ..AccessSettings::default()
        };
        let access = Access::new(&settings);
        access.set_accounts(access.seed().accounts());
        access
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
    fn a_wrong_password_is_called_that_only_to_who_may_list_the_users() {
        let access = access(AccessMode::Dev);
        let hint = |user: &str, peer: &str| {
            let login = Login { mechanism: "PLAIN", user, password: "wrong", peer: peer.parse().expect("an address") };
            access.login(login).expect_err("refused").next.expect("a hint")
        };
        assert!(hint("guest", "127.0.0.1").starts_with("that is not this user's password"));
        assert!(hint("eve", "127.0.0.1").starts_with("from this machine use guest/guest"));
        assert_eq!(hint("eve", "172.17.0.1"), hint("eve", "10.0.0.1"));
        assert!(hint("guest", "10.0.0.1").contains("auth.loopback_users"));
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
