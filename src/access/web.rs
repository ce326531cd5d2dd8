//! Web requests to the control port: Host against DNS rebinding, Origin against foreign sites, the token against other machines.

use super::login::{ADMINISTRATOR, Access, GUEST, Login};
use super::peer::is_loopback_host;
use crate::model::config::AccessMode;
use crate::model::identity::{Permissions, Principal};
use std::net::IpAddr;

/// What of a request decides. The door fills it from header fields; absent ones are `None`.
#[derive(Clone, Copy, Debug)]
pub struct WebRequest<'a> {
    pub peer: IpAddr,
    /// `Host`, or `:authority`.
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
    /// A page load or a link followed (`Sec-Fetch-Mode: navigate` with GET): a foreign site may link here.
    pub navigates: bool,
    /// The token as `Authorization: Bearer`, as cookie or as `?token=` of the address.
    pub token: Option<&'a str>,
    /// User and password of `Authorization: Basic`.
    pub login: Option<(&'a str, &'a str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebRefusal {
    /// `Host` names something else than this machine: 403.
    ForeignHost,
    /// Sent by a page of another site: 403.
    ForeignOrigin,
    /// 401: the token is missing or wrong.
    NoToken,
    /// 401: no such user, another password, or no administrator.
    NoLogin,
}

impl WebRefusal {
    pub fn what(self) -> &'static str {
        match self {
            WebRefusal::ForeignHost => "the Host of this request does not name this machine",
            WebRefusal::ForeignOrigin => "this request was sent by a page of another site",
            WebRefusal::NoToken => "this request carries no valid token",
            WebRefusal::NoLogin => "this login is refused",
        }
    }

    pub fn next(self) -> &'static str {
        match self {
            WebRefusal::ForeignHost => "Open the dashboard as http://localhost, or show the token printed at start.",
            WebRefusal::ForeignOrigin => "Call the API from the dashboard's own address, or from a program that sends no Origin.",
            WebRefusal::NoLogin => "Log in as a user with the tag administrator, with its own password.",
            WebRefusal::NoToken => "Use the dashboard address printed at start, or send Authorization: Bearer with its token.",
        }
    }
}

impl Access {
    /// Admits a request to the control port, or says what is wrong with it.
    pub fn admit(&self, request: &WebRequest<'_>) -> Result<Principal, WebRefusal> {
        if is_foreign(request) {
            return Err(WebRefusal::ForeignOrigin);
        }
        if request.token.is_some_and(|token| self.is_token(token)) {
            return Ok(operator());
        }
        if let Some((user, password)) = request.login {
            let principal = self.login_by_web(user, password, request.peer, request.host)?;
            return match principal.has_tag(ADMINISTRATOR) {
                true => Ok(principal.with(Permissions::All)),
                false => Err(WebRefusal::NoLogin),
            };
        }
        if self.mode() == AccessMode::Required || !self.is_trusted(request.peer) {
            return Err(WebRefusal::NoToken);
        }
        if !request.host.is_some_and(is_loopback_host) {
            return Err(WebRefusal::ForeignHost);
        }
        Ok(operator())
    }

    /// Whether a page of another site sent this.
    pub fn is_foreign(&self, request: &WebRequest<'_>) -> bool {
        is_foreign(request)
    }

    /// A login by `Authorization: Basic`. What everybody knows (guest/guest) is good under this machine's own names only: a page whose
    /// host name was rebound to this machine knows it too.
    pub fn login_by_web(&self, user: &str, password: &str, peer: IpAddr, host: Option<&str>) -> Result<Principal, WebRefusal> {
        let login = Login { mechanism: "Basic", user, password, peer };
        let principal = self.login(login).map_err(|_| WebRefusal::NoLogin)?;
        let everybody_knows = user == GUEST && password == GUEST && self.mode() == AccessMode::Dev;
        match everybody_knows && !host.is_some_and(is_loopback_host) {
            true => Err(WebRefusal::ForeignHost),
            false => Ok(principal),
        }
    }

    /// Whether a caller of another port could open the dashboard without a token, and so may read what exists.
    pub fn sees_dashboard(&self, peer: IpAddr, host: &str) -> bool {
        self.mode() == AccessMode::Dev && self.is_trusted(peer) && is_loopback_host(host)
    }
}

fn operator() -> Principal {
    Principal::new("operator", Permissions::All).tagged(&[ADMINISTRATOR.to_owned()])
}

/// A page of another site sent this. A page of another *port* of this machine is another site too: cookies would be sent along.
fn is_foreign(request: &WebRequest<'_>) -> bool {
    if let Some(origin) = request.origin {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        return match (authority, request.host) {
            (Some(authority), Some(host)) => !authority.eq_ignore_ascii_case(host),
            _ => true,
        };
    }
    matches!(request.fetch_site, Some("cross-site" | "same-site")) && !request.navigates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password;
    use crate::model::account::User;
    use crate::model::catalog::Accounts;
    use crate::model::config::AccessSettings;

    fn access(mode: AccessMode) -> Access {
        Access::new(&AccessSettings { mode, token: Some("secret".into()), ..AccessSettings::default() })
    }

    fn local() -> WebRequest<'static> {
        WebRequest {
            peer: "127.0.0.1".parse().expect("an address"),
            host: Some("localhost:15000"),
            origin: None,
            fetch_site: None,
            navigates: false,
            token: None,
            login: None,
        }
    }

    fn refusal(mode: AccessMode, request: WebRequest<'_>) -> Option<WebRefusal> {
        access(mode).admit(&request).err()
    }

    #[test]
    fn this_machine_needs_no_login_in_dev_mode() {
        assert_eq!(refusal(AccessMode::Dev, local()), None);
        assert_eq!(refusal(AccessMode::Required, local()), Some(WebRefusal::NoToken));
    }

    #[test]
    fn an_administrator_may_log_in_instead() {
        let access = access(AccessMode::Required);
        let user = |name: &str, tags: &[&str]| User {
            name: name.into(),
            password_hash: password::hash("pass"),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..User::default()
        };
        let users = [("ann".into(), user("ann", &["administrator"])), ("bob".into(), user("bob", &["monitoring"]))].into();
        access.set_accounts(Accounts { users, ..Accounts::default() });
        let admitted = |user: &'static str, password: &'static str| {
            access.admit(&WebRequest { login: Some((user, password)), ..local() }).map(|principal| principal.user.to_string())
        };
        assert_eq!(admitted("ann", "pass"), Ok("ann".into()));
        for (user, password) in [("ann", "wrong"), ("bob", "pass"), ("eve", "pass")] {
            assert_eq!(admitted(user, password), Err(WebRefusal::NoLogin), "{user}");
        }
    }

    #[test]
    fn a_foreign_host_is_dns_rebinding() {
        let request = WebRequest { host: Some("evil.example:15000"), ..local() };
        assert_eq!(refusal(AccessMode::Dev, request), Some(WebRefusal::ForeignHost));
        assert_eq!(refusal(AccessMode::Dev, WebRequest { host: None, ..local() }), Some(WebRefusal::ForeignHost));
    }

    #[test]
    fn a_rebound_host_is_not_opened_by_the_password_everybody_knows() {
        let access = access(AccessMode::Dev);
        let guest = User {
            name: GUEST.into(),
            password_hash: password::hash(GUEST),
            tags: vec![ADMINISTRATOR.to_owned()],
            ..User::default()
        };
        access.set_accounts(Accounts { users: [(GUEST.into(), guest)].into(), ..Accounts::default() });
        let refusal = |request: WebRequest<'_>| access.admit(&request).err();
        let login = Some((GUEST, GUEST));
        let foreign =
            WebRequest { host: Some("evil.example:15000"), origin: Some("http://evil.example:15000"), login, ..local() };
        assert_eq!(refusal(foreign), Some(WebRefusal::ForeignHost));
        assert_eq!(refusal(WebRequest { host: None, origin: None, ..foreign }), Some(WebRefusal::ForeignHost));
        assert_eq!(refusal(WebRequest { login, ..local() }), None);
    }

    #[test]
    fn another_machine_needs_the_token_whatever_host_it_claims() {
        let request = WebRequest { peer: "10.0.0.1".parse().expect("an address"), ..local() };
        assert_eq!(refusal(AccessMode::Dev, request), Some(WebRefusal::NoToken));
        let with_token = WebRequest { token: Some("secret"), host: Some("box.lan:15000"), ..request };
        assert_eq!(refusal(AccessMode::Dev, with_token), None);
    }

    #[test]
    fn pages_of_other_sites_and_other_ports_are_refused_even_with_a_token() {
        for origin in ["https://evil.example", "null", "http://localhost:3000", "http://localhost"] {
            let request = WebRequest { origin: Some(origin), token: Some("secret"), ..local() };
            assert_eq!(refusal(AccessMode::Dev, request), Some(WebRefusal::ForeignOrigin), "{origin}");
        }
        assert_eq!(refusal(AccessMode::Dev, WebRequest { origin: Some("http://localhost:15000"), ..local() }), None);
        assert_eq!(
            refusal(AccessMode::Dev, WebRequest { fetch_site: Some("cross-site"), ..local() }),
            Some(WebRefusal::ForeignOrigin)
        );
        assert_eq!(refusal(AccessMode::Dev, WebRequest { fetch_site: Some("cross-site"), navigates: true, ..local() }), None);
    }
}
