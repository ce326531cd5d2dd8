//! TLS for the listeners: rustls with ring, own certificate files or a self-signed certificate.
//!
//! The self-signed one names `localhost`, everything directly under it, the loopback addresses and what the configuration adds. It
//! is kept beside the data, so that an exception once made in a browser lasts, and renewed before it ends:
//!
//! ```text
//!   DATA/tls/self-signed.pem      0600; a line with the last day and the names, then the certificate, then its key
//! ```

use crate::kernel::Clock;
use crate::model::config::CertificateLogin;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::der::asn1::{Any, ObjectIdentifier};
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::name::Name;

/// Days a self-signed certificate is good for; longer ones are refused by some systems even when trusted by hand (825).
const VALID_DAYS: u64 = 397;
/// It is renewed when fewer days are left.
const RENEW_DAYS: u64 = 30;
const DAY_NANOS: u64 = 86_400_000_000_000;

/// The attribute type `CN`.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

const KEPT_NAME: &str = "self-signed.pem";

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files of the certificate chain and its private key.
    Files { chain: PathBuf, key: PathBuf },
    /// Made here for `localhost`, loopback and `names`, and kept in `directory` (0600), so that a browser's exception lasts.
    SelfSigned { directory: PathBuf, names: Vec<String> },
    /// Made here and forgotten at exit.
    Ephemeral { names: Vec<String> },
}

/// Which clients must show a certificate, and whose signatures count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// PEM file of the authorities' certificates.
    pub authorities: PathBuf,
    /// Who shows none is turned away.
    pub required: bool,
}

/// What the listener speaks under TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`, then `http/1.1`.
    Http,
    /// No ALPN: AMQP.
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("cannot read {path}: {cause}. {next}")]
    File { path: PathBuf, cause: String, next: &'static str },
    #[error(
        "cannot use the certificate {path} with its key: {cause}. Give the key that belongs to the first certificate in the file"
    )]
    Mismatch { path: PathBuf, cause: String },
    #[error("cannot make a self-signed certificate: {0}. Check the names under [tls], or give certificate files")]
    Make(String),
    #[error("cannot keep the self-signed certificate in {path}: {cause}. Make the directory writable, or use --ephemeral")]
    Keep { path: PathBuf, cause: io::Error },
}

/// A certificate chain with its key.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Reads or makes the certificate and builds the acceptor for a listener; without `clients` nobody is asked for a certificate.
pub fn acceptor(certificate: &Certificate, alpn: Alpn, clients: Option<&Clients>) -> Result<TlsAcceptor, TlsFault> {
    let (identity, path) = match certificate {
        Certificate::Files { chain, key } => (from_files(chain, key)?, chain.clone()),
        Certificate::SelfSigned { directory, names } => (kept(directory, names, today())?, directory.join(KEPT_NAME)),
        Certificate::Ephemeral { names } => (parse(&make(names, today())?).map_err(TlsFault::Make)?, PathBuf::new()),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match clients {
        Some(clients) => verifier(clients, provider.clone())?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFault::Make(error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain, identity.key)
        .map_err(|error| TlsFault::Mismatch { path, cause: error.to_string() })?;
    config.alpn_protocols = match alpn {
        Alpn::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Alpn::None => Vec::new(),
    };
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Checks clients' certificates against the authorities.
fn verifier(clients: &Clients, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
    let path = &clients.authorities;
    let wrong = |cause: String, next| TlsFault::File { path: path.clone(), cause, next };
    let pem = fs::read(path).map_err(|error| wrong(error.to_string(), "Check the path and its permissions"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let added =
            certificate.map_err(|error| error.to_string()).and_then(|der| roots.add(der).map_err(|error| error.to_string()));
        added.map_err(|cause| wrong(cause, "It must be PEM certificates of authorities (`BEGIN CERTIFICATE`)"))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".to_owned(), "It must be PEM (`BEGIN CERTIFICATE`)"));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| wrong(error.to_string(), "Check the authorities' certificates"))
}

/// The user that a client's certificate (DER) names: its subject, or the common names in it.
pub fn user_of(certificate: &[u8], login: CertificateLogin) -> Option<String> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    let subject = certificate.tbs_certificate().subject();
    let user = match login {
        CertificateLogin::DistinguishedName => subject.to_string(),
        CertificateLogin::CommonName => common_names(subject)?,
    };
    Some(user).filter(|user| !user.is_empty())
}

/// The common names of a subject, in its order; nothing if one is not text. They are taken from the attributes themselves: in the
/// written subject another attribute could look like a common name.
fn common_names(subject: &Name) -> Option<String> {
    let names: Option<Vec<String>> =
        subject.iter().filter(|attribute| attribute.oid == COMMON_NAME).map(|attribute| text_of(&attribute.value)).collect();
    Some(names?.join(","))
}

fn text_of(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => String::from_utf8(value.value().to_vec()).ok(),
        // Latin-1, as everybody reads it.
        Tag::TeletexString => Some(value.value().iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let (units, rest) = value.value().as_chunks::<2>();
            let units: Vec<u16> = units.iter().copied().map(u16::from_be_bytes).collect();
            rest.is_empty().then(|| String::from_utf16(&units).ok())?
        }
        _ => None,
    }
}

/// The handshake, within `limit`.
pub async fn accept<S>(acceptor: &TlsAcceptor, stream: S, limit: Duration) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::time::timeout(limit, acceptor.accept(stream)).await.map_err(|_| io::ErrorKind::TimedOut)?
}

fn from_files(chain: &Path, key: &Path) -> Result<Identity, TlsFault> {
    let wrong = |path: &Path, cause: String, next| TlsFault::File { path: path.to_owned(), cause, next };
    let read = |path: &Path| fs::read(path).map_err(|error| wrong(path, error.to_string(), "Check the path and its permissions"));
    let (chain_pem, key_pem) = (read(chain)?, read(key)?);
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain_pem).collect();
    let certificates = certificates.map_err(|error| wrong(chain, error.to_string(), "It must be PEM (`BEGIN CERTIFICATE`)"))?;
    if certificates.is_empty() {
        return Err(wrong(chain, "it holds no certificate".to_owned(), "It must be PEM (`BEGIN CERTIFICATE`)"));
    }
    let key = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|error| wrong(key, error.to_string(), "It must be an unencrypted PEM key (`BEGIN PRIVATE KEY`)"))?;
    Ok(Identity { chain: certificates, key })
}

/// Days since 1970.
fn today() -> u64 {
    Clock::system().unix_nanos() / DAY_NANOS
}

/// The kept certificate, if it is good for a while and for these names; else a new one, kept from now on.
fn kept(directory: &Path, names: &[String], today: u64) -> Result<Identity, TlsFault> {
    let path = directory.join(KEPT_NAME);
    if let Ok(pem) = fs::read_to_string(&path)
        && pem.lines().next().is_some_and(|line| is_good(line, names, today))
        && let Ok(identity) = parse(&pem)
    {
        return Ok(identity);
    }
    let pem = make(names, today)?;
    write_private(directory, &path, &pem).map_err(|cause| TlsFault::Keep { path, cause })?;
    parse(&pem).map_err(TlsFault::Make)
}

/// The line above the certificate (PEM readers skip it).
fn note(names: &[String], last_day: u64) -> String {
    format!("reactor self-signed until-day={last_day} names={}", names.join(","))
}

fn is_good(line: &str, names: &[String], today: u64) -> bool {
    let last_day = line.split_once("until-day=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    last_day.is_some_and(|last_day: u64| line == note(names, last_day) && last_day > today + RENEW_DAYS)
}

/// A new certificate and key, as kept.
fn make(names: &[String], today: u64) -> Result<String, TlsFault> {
    let wrong = |error: rcgen::Error| TlsFault::Make(error.to_string());
    let mut all: Vec<String> = ["localhost", "*.localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    all.extend(names.iter().filter(|name| !all.contains(name)).cloned().collect::<Vec<_>>());
    let mut params = rcgen::CertificateParams::new(all).map_err(wrong)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "reactor (self-signed)");
    params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
    let date = |day: u64| {
        let (year, month, day) = civil(day);
        rcgen::date_time_ymd(year, month, day)
    };
    params.not_before = date(today.saturating_sub(1));
    params.not_after = date(today + VALID_DAYS);
    let key = rcgen::KeyPair::generate().map_err(wrong)?;
    let certificate = params.self_signed(&key).map_err(wrong)?;
    Ok(format!("{}\n{}{}", note(names, today + VALID_DAYS), certificate.pem(), key.serialize_pem()))
}

fn parse(pem: &str) -> Result<Identity, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    if chain.is_empty() { Err("no certificate".to_owned()) } else { Ok(Identity { chain, key }) }
}

/// Written beside and renamed, so that a crash leaves the old file or the new one; readable by the owner alone from the start.
fn write_private(directory: &Path, path: &Path, pem: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let beside = directory.join(format!("{KEPT_NAME}.{}.new", std::process::id()));
    let _ = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

/// Year, month and day of a day since 1970 in the Gregorian calendar (the era arithmetic of 400-year cycles from 1 March).
fn civil(day: u64) -> (i32, u8, u8) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (i32::try_from(year).unwrap_or(i32::MAX), month as u8, of_month as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_788), (2026, 12, 1));
        assert_eq!(civil(20_819), (2027, 1, 1));
    }

    #[test]
    fn the_self_signed_certificate_is_kept_for_its_owner_alone_and_reused() {
        let directory = tempfile::tempdir().expect("a directory");
        let tls = directory.path().join("tls");
        let first = kept(&tls, &[], 20_000).expect("made");
        let mode = fs::metadata(tls.join(KEPT_NAME)).expect("kept").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = kept(&tls, &[], 20_000 + VALID_DAYS - RENEW_DAYS - 1).expect("read");
        assert_eq!(first.chain, again.chain);
    }

    #[test]
    fn it_is_renewed_before_it_ends_and_when_its_names_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = kept(directory.path(), &[], 20_000).expect("made");
        let renewed = kept(directory.path(), &[], 20_000 + VALID_DAYS - RENEW_DAYS).expect("renewed");
        assert_ne!(first.chain, renewed.chain);
        let named = kept(directory.path(), &["shop.test".to_owned()], 20_400).expect("made anew");
        assert_ne!(renewed.chain, named.chain);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(KEPT_NAME);
        fs::write(&path, note(&[], 90_000)).expect("written");
        kept(directory.path(), &[], 20_000).expect("made anew");
        assert!(fs::read_to_string(&path).expect("kept").contains("PRIVATE KEY"));
    }

    #[test]
    fn wrong_files_are_named_with_the_next_step() {
        let directory = tempfile::tempdir().expect("a directory");
        let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
        let files = Certificate::Files { chain: chain.clone(), key: key.clone() };
        let fault = |certificate: &Certificate| match acceptor(certificate, Alpn::Http, None) {
            Ok(_) => panic!("wrong files were accepted"),
            Err(fault) => fault.to_string(),
        };
        assert!(fault(&files).contains("chain.pem"));
        fs::write(&chain, "nonsense").expect("written");
        fs::write(&key, "nonsense").expect("written");
        assert!(fault(&files).contains("no certificate"), "{}", fault(&files));
        let (one, other) = (make(&[], 20_000).expect("made"), make(&[], 20_000).expect("made"));
        fs::write(&chain, &one).expect("written");
        assert!(fault(&files).contains("key.pem"), "{}", fault(&files));
        fs::write(&key, &other).expect("written");
        assert!(fault(&files).contains("key"), "{}", fault(&files));
        fs::write(&key, &one).expect("written");
        assert!(acceptor(&files, Alpn::Http, None).is_ok());
        let clients = Clients { authorities: directory.path().join("ca.pem"), required: true };
        let fault = acceptor(&files, Alpn::None, Some(&clients)).err().expect("no such file").to_string();
        assert!(fault.contains("ca.pem"), "{fault}");
        fs::write(&clients.authorities, "nonsense").expect("written");
        let fault = acceptor(&files, Alpn::None, Some(&clients)).err().expect("no certificate").to_string();
        assert!(fault.contains("ca.pem: it holds no certificate"), "{fault}");
    }

    #[test]
    fn a_certificate_names_its_user_by_subject_or_common_name() {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Shop");
        params.distinguished_name.push(rcgen::DnType::CommonName, "ann");
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed");
        assert_eq!(user_of(certificate.der(), CertificateLogin::CommonName).as_deref(), Some("ann"));
        assert_eq!(user_of(certificate.der(), CertificateLogin::DistinguishedName).as_deref(), Some("CN=ann,O=Shop"));
        assert_eq!(user_of(b"nonsense", CertificateLogin::CommonName), None);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "x,CN=admin");
        let certificate = params.self_signed(&key).expect("signed");
        assert_eq!(user_of(certificate.der(), CertificateLogin::CommonName).as_deref(), Some("ann"));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "x,CN=admin");
        let certificate = params.self_signed(&key).expect("signed");
        assert_eq!(user_of(certificate.der(), CertificateLogin::CommonName), None);
    }

    #[test]
    fn common_names_are_attributes_whatever_stands_beside_or_in_them() {
        let names = |subject: &str| common_names(&subject.parse().expect("a subject"));
        assert_eq!(names("OU=Sales+CN=ann,O=Shop").as_deref(), Some("ann"));
        assert_eq!(names(r"CN=Smith\, Ann,O=Shop").as_deref(), Some("Smith, Ann"));
        assert_eq!(names(r"O=x\,CN=admin").as_deref(), Some(""));
        assert_eq!(names("2.5.4.3=#020101"), None);
    }
}
