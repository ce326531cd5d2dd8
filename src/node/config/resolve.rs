//! The pure part: inputs in, a configuration or the whole list of problems out.

use super::problem::{Origin, Problem, nearest};
use super::reader::{FileText, Reading, meant};
use super::settings::{Kind, Parsed, Raw, SETTINGS, Setting, port_path};
use crate::model::config::{
    AccessMode, AccessSettings, Bind, CertificateLogin, ClientCertificates, Config, GatewaySettings, Limits, LogFormat,
    LogSettings, Network, PortName, PortSetting, ProxySettings, Storage, TelemetrySettings, TlsFiles,
};
use crate::model::definitions::Definitions;
use crate::model::service_spec::ServiceSpec;
use crate::wire::trace;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml_edit::{Document, Item};
use tracing_subscriber::filter::EnvFilter;

/// Everything the answer depends on.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub file: Option<FileText>,
    pub variables: BTreeMap<String, String>,
    pub flags: Flags,
    pub place: Place,
}

/// What the command line may say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    pub data_dir: Option<PathBuf>,
    pub ephemeral: bool,
    pub port_offset: Option<u16>,
    pub log_format: Option<String>,
}

/// Where the process runs.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The user's data directory for reactor, where there is one.
    pub user_data: Option<PathBuf>,
    /// Inside the image: `/data` decides about storage and the default gateway is trusted like loopback.
    pub in_image: bool,
    /// A volume is mounted at `/data`.
    pub data_mounted: bool,
    pub container_gateway: Option<IpAddr>,
}

#[derive(Clone, Debug)]
pub struct Resolved {
    pub config: Config,
    /// `[services.NAME]`, in the order of the file.
    pub services: Vec<ServiceSpec>,
    /// `[spaces.NAME]`.
    pub definitions: Definitions,
    /// Not wrong, but worth a line.
    pub warnings: Vec<String>,
}

/// Sections of the file that hold definitions rather than settings.
pub const DEFINITION_SECTIONS: &[&str] = &["services", "spaces", "users"];

/// What the file says should exist.
#[derive(Default)]
struct Wanted {
    services: Vec<ServiceSpec>,
    definitions: Definitions,
}

type Values = BTreeMap<&'static str, (Parsed, Origin)>;

pub fn resolve(inputs: &Inputs) -> Result<Resolved, Vec<Problem>> {
    let mut values: Values = SETTINGS.iter().map(|row| (row.path, (row.default_value(), Origin::Default))).collect();
    let (mut problems, mut wanted) = (Vec::new(), Wanted::default());
    if let Some(file) = &inputs.file {
        let mut reading = Reading { file, variables: &inputs.variables, problems: Vec::new() };
        wanted = from_file(&mut reading, &mut values);
        problems.append(&mut reading.problems);
    }
    from_variables(&inputs.variables, &mut values, &mut problems);
    from_flags(&inputs.flags, &mut values, &mut problems);
    let config = build(inputs, &values, &mut problems);
    check_filter(&values, &mut problems);
    if problems.is_empty() {
        Ok(Resolved {
            warnings: warnings(&config, &inputs.place),
            config,
            services: wanted.services,
            definitions: wanted.definitions,
        })
    } else {
        Err(problems)
    }
}

fn from_file(reading: &mut Reading<'_>, values: &mut Values) -> Wanted {
    let document = match Document::parse(reading.file.text.clone()) {
        Ok(document) => document,
        Err(error) => {
            let what = format!("this is not TOML: {}", error.message().trim().replace('\n', ", "));
            let origin = reading.origin(error.span());
            reading.problems.push(Problem::new(origin, "", what));
            return Wanted::default();
        }
    };
    let mut wanted = Wanted::default();
    for (name, item) in document.iter() {
        match name {
            "services" => wanted.services = super::services::read(reading, item),
            "spaces" => super::spaces::read(reading, item, &mut wanted.definitions),
            "users" => super::users::read(reading, item, &mut wanted.definitions.catalog),
            name => from_top(reading, values, &document, name, item),
        }
    }
    // To give somebody permissions in a space is to name it.
    let Definitions { catalog, spaces } = &mut wanted.definitions;
    let named = catalog.permissions().map(|it| &it.vhost).chain(catalog.topic_permissions().map(|it| &it.vhost));
    for space in named {
        spaces.entry(space.as_str().into()).or_default();
    }
    wanted
}

/// One setting or section at the top of the file.
fn from_top(reading: &mut Reading<'_>, values: &mut Values, document: &Document<String>, name: &str, item: &Item) {
    let span = document.as_table().key(name).and_then(toml_edit::Key::span);
    let is_section = SETTINGS.iter().any(|row| row.path.split_once('.').is_some_and(|(section, _)| section == name));
    match (Setting::find(name), item.as_table_like()) {
        (Some(setting), _) => from_item(reading, values, setting, item),
        // `auth = "dev"` is short for `auth.mode = "dev"`.
        (None, None) if name == "auth" => {
            let mode = Setting::find("auth.mode").expect("a row of the table");
            from_item(reading, values, mode, item);
        }
        (None, Some(table)) if is_section => from_section(reading, values, name, table),
        (None, None) if is_section => {
            reading.problem(span, name, "must be a section", format!("Write it as [{name}] with its keys below."));
        }
        (None, _) => {
            let mut known: Vec<&str> = SETTINGS.iter().map(|row| row.path.split('.').next().unwrap_or(row.path)).collect();
            known.extend(DEFINITION_SECTIONS);
            reading.problem(span, name, "is not a known key", meant(name, &known));
        }
    }
}

fn from_section(reading: &mut Reading<'_>, values: &mut Values, section: &str, table: &dyn toml_edit::TableLike) {
    for (key, item) in table.iter() {
        let path = format!("{section}.{key}");
        match Setting::find(&path) {
            Some(setting) => from_item(reading, values, setting, item),
            None => {
                let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
                let known: Vec<&str> = keys_of(section).collect();
                reading.problem(span, &path, "is not a known key", meant(key, &known));
            }
        }
    }
}

fn keys_of(section: &str) -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter_map(move |row| row.path.split_once('.').filter(|(name, _)| *name == section).map(|(_, key)| key))
}

fn from_item(reading: &mut Reading<'_>, values: &mut Values, setting: &'static Setting, item: &Item) {
    let raw = reading.raw(item, setting.path);
    let origin = reading.origin(item.span());
    put(values, &mut reading.problems, setting, &raw, origin);
}

fn put(values: &mut Values, problems: &mut Vec<Problem>, setting: &'static Setting, raw: &Raw, origin: Origin) {
    match setting.read(raw) {
        Ok(parsed) => {
            values.insert(setting.path, (parsed, origin));
        }
        Err(what) => {
            let example = if setting.default.is_empty() { String::new() } else { format!("The default is {}.", setting.default) };
            let problem = Problem::new(origin, setting.path, what);
            problems.push(if example.is_empty() { problem } else { problem.fix(example) });
        }
    }
}

/// `REACTOR_PORTS_AMQP=25672`. Only names under a known section can be mistyped settings; others belong to somebody else
/// (Kubernetes sets `REACTOR_PORT` for a service called reactor).
fn from_variables(variables: &BTreeMap<String, String>, values: &mut Values, problems: &mut Vec<Problem>) {
    for (name, value) in variables.range("REACTOR_".to_owned()..) {
        if !name.starts_with("REACTOR_") {
            break;
        }
        let wanted = match name.as_str() {
            "REACTOR_AUTH" => "REACTOR_AUTH_MODE",
            "REACTOR_LOG" => "REACTOR_LOG_FILTER",
            "REACTOR_TRACE" => "REACTOR_LOG_TRACE",
            other => other,
        };
        if let Some(setting) = SETTINGS.iter().find(|row| row.variable() == wanted) {
            // An empty variable is an unset one, except where empty is a value.
            if !value.is_empty() || setting.kind == Kind::Text {
                put(values, problems, setting, &Raw::Text(value.clone()), Origin::Variable(name.clone()));
            }
            continue;
        }
        let section = SETTINGS.iter().filter_map(|row| row.path.split_once('.')).map(|(section, _)| section).find(|section| {
            name["REACTOR_".len()..].to_ascii_lowercase().strip_prefix(section).is_some_and(|rest| rest.starts_with('_'))
        });
        if section.is_some() {
            let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
            let problem = Problem::new(Origin::Variable(name.clone()), "", "is not a known setting");
            problems.push(match nearest(name, known.iter().map(String::as_str)) {
                Some(candidate) => problem.fix(format!("Did you mean {candidate}?")),
                None => problem.fix("`reactor init` writes a file with every setting."),
            });
        }
    }
}

fn from_flags(flags: &Flags, values: &mut Values, problems: &mut Vec<Problem>) {
    let mut flag = |path: &str, name: &'static str, text: String| {
        let setting = Setting::find(path).expect("a flag sets a row of the table");
        put(values, problems, setting, &Raw::Text(text), Origin::Flag(name));
    };
    if let Some(dir) = &flags.data_dir {
        flag("data.dir", "--data-dir", dir.display().to_string());
        if !flags.ephemeral {
            flag("data.ephemeral", "--data-dir", "false".into());
        }
    }
    if flags.ephemeral {
        flag("data.ephemeral", "--ephemeral", "true".into());
    }
    if let Some(offset) = flags.port_offset {
        flag("port_offset", "--port-offset", offset.to_string());
    }
    if let Some(format) = &flags.log_format {
        flag("log.format", "--log", format.clone());
    }
}

fn build(inputs: &Inputs, values: &Values, problems: &mut Vec<Problem>) -> Config {
    let view = View(values);
    Config {
        bind: view.bind(),
        ports: ports(&view, problems),
        storage: storage(&view, &inputs.place),
        limits: limits(&view),
        gateway: gateway(&view, problems),
        telemetry: TelemetrySettings {
            spans_bytes_max: view.size("telemetry.spans_bytes_max"),
            logs_bytes_max: view.size("telemetry.logs_bytes_max"),
            metrics_bytes_max: view.size("telemetry.metrics_bytes_max"),
            spans_per_second_max: view.number("telemetry.spans_per_second_max"),
            infer_parents: view.flag("telemetry.infer_parents"),
        },
        log: LogSettings {
            format: if view.text("log.format") == "json" { LogFormat::Json } else { LogFormat::Text },
            filter: match view.text("log.trace").as_str() {
                "amqp" => format!("{},{}=trace", view.text("log.filter"), trace::AMQP_TARGET),
                _ => view.text("log.filter"),
            },
        },
        proxy: proxy(&view, problems),
        access: AccessSettings {
            mode: if view.text("auth.mode") == "required" { AccessMode::Required } else { AccessMode::Dev },
            token: Some(view.text("auth.token")).filter(|token| !token.is_empty()),
            trusted_peers: inputs.place.container_gateway.filter(|_| inputs.place.in_image).into_iter().collect(),
            loopback_users: view.words("auth.loopback_users"),
            client_certificates: client_certificates(&view, problems),
            certificate_login: match view.text("auth.certificate_login").as_str() {
                "common_name" => CertificateLogin::CommonName,
                _ => CertificateLogin::DistinguishedName,
            },
        },
        file: inputs.file.as_ref().map(|file| file.path.clone()),
    }
}

/// Typed access to the values; that a path exists with its type is the table's promise.
struct View<'v>(&'v Values);

impl View<'_> {
    fn get(&self, path: &str) -> &(Parsed, Origin) {
        self.0.get(path).expect("every row of the table has a value")
    }
    fn origin(&self, path: &str) -> Origin {
        self.get(path).1.clone()
    }
    fn text(&self, path: &str) -> String {
        match &self.get(path).0 {
            Parsed::Text(text) => text.clone(),
            other => unreachable!("{path} is text by its row, not {other:?}"),
        }
    }
    /// Words with commas between them.
    fn words(&self, path: &str) -> Vec<String> {
        self.text(path).split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
    fn flag(&self, path: &str) -> bool {
        matches!(self.get(path).0, Parsed::Flag(true))
    }
    fn number(&self, path: &str) -> u64 {
        match self.get(path).0 {
            Parsed::Number(number) => number,
            ref other => unreachable!("{path} is a number by its row, not {other:?}"),
        }
    }
    fn size(&self, path: &str) -> usize {
        usize::try_from(self.number(path)).unwrap_or(usize::MAX)
    }
    fn duration(&self, path: &str) -> Duration {
        match self.get(path).0 {
            Parsed::Duration(duration) => duration,
            ref other => unreachable!("{path} is a duration by its row, not {other:?}"),
        }
    }
    fn bind(&self) -> Bind {
        match &self.get("bind").0 {
            Parsed::Addresses(None) => Bind::Localhost,
            Parsed::Addresses(Some(addresses)) if addresses.is_empty() => Bind::All,
            Parsed::Addresses(Some(addresses)) => Bind::Addresses(addresses.clone()),
            other => unreachable!("bind is addresses by its row, not {other:?}"),
        }
    }
}

fn ports(view: &View<'_>, problems: &mut Vec<Problem>) -> Vec<(PortName, PortSetting)> {
    let offset = view.number("port_offset");
    let mut taken: BTreeMap<u16, PortName> = BTreeMap::new();
    let mut ports = Vec::new();
    for name in PortName::ALL {
        let path = port_path(name);
        let (Parsed::Port(setting), origin) = view.get(&path) else { unreachable!("{path} is a port by its row") };
        let shifted = match *setting {
            PortSetting::Fixed(port) => match u16::try_from(u64::from(port) + offset) {
                Ok(port) => PortSetting::Fixed(port),
                Err(_) => {
                    let what = format!("is {port}, which port_offset = {offset} moves beyond 65535");
                    let at = if *origin == Origin::Default { view.origin("port_offset") } else { origin.clone() };
                    problems.push(Problem::new(at, path, what).fix("Lower port_offset, or set this port to 0 or false."));
                    continue;
                }
            },
            other => other,
        };
        if let PortSetting::Fixed(port) = shifted
            && name.is_served()
            && let Some(other) = taken.insert(port, name)
        {
            let what = format!("and {} are both {port}", port_path(other));
            problems.push(Problem::new(origin.clone(), path, what).fix("Give one of them another port, 0 or false."));
        }
        ports.push((name, shifted));
    }
    ports
}

fn client_certificates(view: &View<'_>, problems: &mut Vec<Problem>) -> ClientCertificates {
    let (path, authorities) = ("auth.client_authorities", view.text("auth.client_authorities"));
    let mode = view.text("auth.client_certificates");
    if mode != "none" && authorities.is_empty() {
        let what = format!("is empty, but auth.client_certificates = \"{mode}\" checks certificates against it");
        problems
            .push(Problem::new(view.origin("auth.client_certificates"), path, what).fix("Name the PEM file of your authority."));
    }
    match mode.as_str() {
        "optional" => ClientCertificates::Optional(authorities.into()),
        "required" => ClientCertificates::Required(authorities.into()),
        _ => ClientCertificates::Ignored,
    }
}

fn proxy(view: &View<'_>, problems: &mut Vec<Problem>) -> ProxySettings {
    let mut proxy = ProxySettings::default();
    for word in view.words("proxy.ports") {
        match PortName::parse(&word) {
            Some(name) => proxy.ports.push(name),
            None => {
                let names: Vec<&str> = PortName::ALL.iter().map(|name| name.as_str()).collect();
                let problem = Problem::new(view.origin("proxy.ports"), "proxy.ports", format!("names the port {word}"));
                problems.push(problem.fix(super::reader::meant(&word, &names)));
            }
        }
    }
    for word in view.words("proxy.trusted") {
        match Network::parse(&word) {
            Some(network) => proxy.trusted.push(network),
            None => {
                let problem = Problem::new(view.origin("proxy.trusted"), "proxy.trusted", format!("has the network {word}"));
                problems.push(problem.fix("Write an address, or a network such as 10.0.0.0/8."));
            }
        }
    }
    if !proxy.ports.is_empty() && proxy.trusted.is_empty() {
        let problem = Problem::new(view.origin("proxy.ports"), "proxy.trusted", "is empty, so no PROXY header would count");
        problems.push(problem.fix("Name your load balancer's address or network."));
    }
    proxy
}

fn storage(view: &View<'_>, place: &Place) -> Storage {
    let dir = view.text("data.dir");
    if view.flag("data.ephemeral") {
        Storage::Ephemeral
    } else if !dir.is_empty() {
        Storage::Directory(PathBuf::from(dir))
    } else if place.in_image {
        if place.data_mounted { Storage::Directory(PathBuf::from("/data")) } else { Storage::Ephemeral }
    } else {
        place.user_data.clone().map_or(Storage::Ephemeral, Storage::Directory)
    }
}

fn limits(view: &View<'_>) -> Limits {
    let u32_of = |path: &str| u32::try_from(view.number(path)).unwrap_or(u32::MAX);
    Limits {
        connections_max: view.size("limits.connections_max"),
        handshake: view.duration("limits.handshake"),
        amqp_frame_bytes_max: u32_of("limits.amqp_frame_bytes_max"),
        amqp_channels_max: u16::try_from(view.number("limits.amqp_channels_max")).unwrap_or(u16::MAX),
        amqp_heartbeat: view.duration("limits.amqp_heartbeat"),
        message_bytes_max: view.number("limits.message_bytes_max"),
        queue_bytes_max: view.number("limits.queue_bytes_max"),
        consumer_timeout: view.duration("limits.consumer_timeout"),
        call_body_bytes_max: view.size("limits.call_body_bytes_max"),
        call_bodies_bytes_max: view.size("limits.call_bodies_bytes_max"),
        drain: view.duration("limits.drain"),
    }
}

fn gateway(view: &View<'_>, problems: &mut Vec<Problem>) -> GatewaySettings {
    let (certificate, key) = (view.text("gateway.tls_certificate"), view.text("gateway.tls_key"));
    let tls = match (certificate.is_empty(), key.is_empty()) {
        (true, true) => None,
        (false, false) => Some(TlsFiles { certificate: certificate.into(), key: key.into() }),
        (false, true) => {
            let problem =
                Problem::new(view.origin("gateway.tls_certificate"), "gateway.tls_certificate", "stands without its key");
            problems.push(problem.fix("Set gateway.tls_key to the PEM file of its private key."));
            None
        }
        (true, false) => {
            let problem = Problem::new(view.origin("gateway.tls_key"), "gateway.tls_key", "stands without its certificate");
            problems.push(problem.fix("Set gateway.tls_certificate to the PEM file of the chain."));
            None
        }
    };
    GatewaySettings {
        hold: Duration::from_millis(view.number("gateway.hold_ms")),
        call_timeout: view.duration("gateway.call_timeout"),
        tls,
    }
}

fn check_filter(values: &Values, problems: &mut Vec<Problem>) {
    let view = View(values);
    if let Err(error) = EnvFilter::try_new(view.text("log.filter")) {
        let problem = Problem::new(view.origin("log.filter"), "log.filter", format!("is no filter: {error}"));
        problems.push(problem.fix("Use a level such as \"info\", or \"target=level\" with commas between."));
    }
}

fn warnings(config: &Config, place: &Place) -> Vec<String> {
    if config.bind.is_loopback() || config.access.mode == AccessMode::Required {
        return Vec::new();
    }
    // In a container the bind must be wide; who gets in is decided by how the ports are published.
    let text = if place.in_image {
        "in a container with auth = \"dev\": who comes through ports that the host publishes may count as this machine, so publish them on \
         127.0.0.1 (-p 127.0.0.1:15000:15000). Other containers need the token for the dashboard and AMQP, but the gateway and OpenTelemetry \
         are open to them. Set REACTOR_AUTH_MODE=required to publish more widely."
    } else {
        "bind reaches beyond this machine with auth = \"dev\": other machines need the token for the dashboard and AMQP, but the gateway \
         and OpenTelemetry are open to them. Set auth = \"required\" or bind = \"localhost\" if that is not meant."
    };
    vec![text.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(toml: &str, variables: &[(&str, &str)], flags: Flags) -> Inputs {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let file = Some(FileText { path: "reactor.toml".into(), text: toml.into() });
        Inputs { file, variables, flags, place: Place::default() }
    }

    fn problems(toml: &str, variables: &[(&str, &str)]) -> Vec<String> {
        resolve(&inputs(toml, variables, Flags::default())).expect_err("refused").iter().map(Problem::to_string).collect()
    }

    #[test]
    fn defaults_give_way_to_the_file_the_file_to_the_environment_and_that_to_flags() {
        let toml = "port_offset = 1\n[ports]\namqp = 1000\nbus = 2000\n[log]\nformat = \"json\"";
        let flags = Flags { port_offset: Some(3), ..Flags::default() };
        let resolved =
            resolve(&inputs(toml, &[("REACTOR_PORTS_BUS", "3000"), ("REACTOR_PORT_OFFSET", "2")], flags)).expect("fine");
        let config = resolved.config;
        assert_eq!(config.port(PortName::Control), PortSetting::Fixed(15_003));
        assert_eq!(config.port(PortName::Amqp), PortSetting::Fixed(1_003));
        assert_eq!(config.port(PortName::Bus), PortSetting::Fixed(3_003));
        assert_eq!(config.log.format, LogFormat::Json);
    }

    #[test]
    fn off_and_any_are_not_shifted() {
        let config =
            resolve(&inputs("port_offset = 100\n[ports]\namqp = 0\nbus = false", &[], Flags::default())).expect("fine").config;
        assert_eq!(config.port(PortName::Amqp), PortSetting::Ephemeral);
        assert_eq!(config.port(PortName::Bus), PortSetting::Off);
    }

    #[test]
    fn two_doors_on_one_port_and_ports_beyond_the_last_are_refused() {
        assert_eq!(
            problems("[ports]\nbus = 7000\namqp = 7000", &[]),
            ["reactor.toml:3: ports.amqp and ports.bus are both 7000\n  Give one of them another port, 0 or false."]
        );
        let beyond = problems("port_offset = 50000", &[]);
        assert!(beyond.iter().any(|problem| problem.starts_with("reactor.toml:1: ports.ingress is 16000")), "{beyond:?}");
    }

    #[test]
    fn variables_that_look_like_settings_must_be_settings_and_others_are_left_alone() {
        assert_eq!(
            problems("", &[("REACTOR_PORTS_AMPQ", "1")]),
            ["environment variable REACTOR_PORTS_AMPQ: is not a known setting\n  Did you mean REACTOR_PORTS_AMQP?"]
        );
        assert!(
            resolve(&inputs("", &[("REACTOR_PORT", "tcp://10.0.0.1:80"), ("REACTOR_UI_DIR", "x")], Flags::default())).is_ok()
        );
    }

    #[test]
    fn variables_expand_in_settings_and_stay_in_service_environments() {
        let toml = "[data]\ndir = \"${BASE:-/tmp}/r\"\n[services.a]\ncommand = \"run ${PORT}\"\nenv = { URL = \"x${PORT}\" }";
        let resolved = resolve(&inputs(toml, &[], Flags::default())).expect("fine");
        assert_eq!(resolved.config.storage, Storage::Directory("/tmp/r".into()));
        assert_eq!(resolved.services[0].env["URL"], "x${PORT}");
        assert_eq!(
            problems("[data]\ndir = \"${BASE}\"", &[]),
            ["reactor.toml:2: data.dir uses ${BASE}, which is not set\n  Set BASE, or give a default: ${BASE:-value}."]
        );
    }

    #[test]
    fn in_the_image_data_is_kept_only_where_a_volume_is_mounted() {
        let with = |data_mounted| {
            let place = Place { in_image: true, data_mounted, user_data: Some("/home/x".into()), ..Place::default() };
            resolve(&Inputs { place, ..Inputs::default() }).expect("fine").config.storage
        };
        assert_eq!(with(true), Storage::Directory("/data".into()));
        assert_eq!(with(false), Storage::Ephemeral);
    }

    #[test]
    fn a_wide_bind_in_dev_mode_is_one_plain_warning() {
        let warnings = |toml: &str| resolve(&inputs(toml, &[], Flags::default())).expect("fine").warnings.len();
        assert_eq!(warnings("bind = \"all\""), 1);
        assert_eq!(warnings("bind = \"all\"\nauth = \"required\""), 0);
        assert_eq!(warnings("bind = [\"127.0.0.1\"]"), 0);
    }

    #[test]
    fn in_the_image_the_warning_is_about_published_ports() {
        let place = Place { in_image: true, ..Place::default() };
        let inputs = Inputs { place, ..inputs("bind = \"all\"", &[], Flags::default()) };
        let warnings = resolve(&inputs).expect("fine").warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("-p 127.0.0.1:"), "{warnings:?}");
    }

    #[test]
    fn the_annotated_file_is_the_defaults_as_it_is_and_with_every_line_taken_in() {
        let defaults = resolve(&Inputs { file: None, ..inputs("", &[], Flags::default()) }).expect("fine").config;
        let annotated = include_str!("../../../assets/reactor.toml");
        let is_setting = |line: &str| {
            let key = line.split(" = ").next().unwrap_or_default();
            line.starts_with('[') || (line.contains(" = ") && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        };
        let taken_in: Vec<&str> =
            annotated.lines().map(|line| line.strip_prefix("# ").filter(|line| is_setting(line)).unwrap_or(line)).collect();
        for text in [annotated.to_owned(), taken_in.join("\n")] {
            let resolved = resolve(&inputs(&text, &[], Flags::default())).unwrap_or_else(|problems| panic!("{problems:#?}"));
            assert_eq!(Config { file: None, ..resolved.config }, defaults);
            assert_eq!(resolved.services.len(), 1);
        }
    }

    #[test]
    fn spaces_hold_exchanges_queues_and_bindings() {
        let toml = "[spaces.staging]\n[spaces.\"/\".queues.work]\narguments = { x-max-length = 5 }\n[spaces.\"/\".exchanges.prices]\n\
            type = \"fanout\"\n[[spaces.\"/\".bindings]]\nsource = \"prices\"\nqueue = \"work\"";
        let definitions = resolve(&inputs(toml, &[], Flags::default())).expect("fine").definitions;
        let default = &definitions.spaces["/"];
        assert_eq!((default.queues.len(), default.exchanges.len(), default.bindings.len()), (1, 1, 1));
        assert!(definitions.spaces.contains_key("staging"));
        let wrong = problems("[spaces.a.exchanges.x]\ntype = \"odd\"\n[[spaces.a.bindings]]\nsorce = \"x\"", &[]);
        for part in
            ["spaces.a.exchanges.x.type is \"odd\"", "spaces.a.bindings[0].sorce is not a known key", "[0].source is missing"]
        {
            assert!(wrong.iter().any(|problem| problem.contains(part)), "{part} not in {wrong:#?}");
        }
    }

    #[test]
    fn users_spaces_and_policies_become_entries_that_are_the_same_each_time() {
        let toml = "[users.ann]\npassword = \"${PASS:-secret}\"\ntags = [\"administrator\"]\nmax_channels = 5\n\
            [users.ann.permissions.\"/\"]\nwrite = \"^a\"\n[[users.ann.topic_permissions]]\nexchange = \"e\"\n\
            [spaces.shop]\ndescription = \"d\"\nmax_queues = 7\n[spaces.shop.policies.p]\ndefinition = { max-length = 5 }\n\
            [spaces.shop.operator_policies.o]\napply_to = \"queues\"\ndefinition = { expires = 5 }";
        let catalog = || resolve(&inputs(toml, &[], Flags::default())).expect("fine").definitions.catalog;
        assert_eq!(catalog(), catalog());
        let catalog = catalog();
        let user = catalog.users().next().expect("a user");
        assert!(crate::access::password::opens(user, "secret") && user.has_tag("administrator"));
        let permission = catalog.permissions().next().expect("a permission");
        assert_eq!((permission.configure.as_str(), permission.write.as_str()), (".*", "^a"));
        assert_eq!(
            (catalog.topic_permissions().count(), catalog.policies().count(), catalog.operator_policies().count()),
            (1, 1, 1)
        );
        assert_eq!(catalog.limits("shop").max_queues, Some(7));
    }

    #[test]
    fn mistakes_about_users_and_policies_are_all_found() {
        let toml = "[users.ann]\npasword = \"x\"\ntags = \"administrator\"\n[users.ann.permissions.\"/\"]\nread = \"(\"\n\
            [users.bob]\npassword_hash = \"x\"\n[spaces.\"/\".policies.p]\ndefinition = { max-lenght = 1 }\n\
            [spaces.\"/\".policies.q]\napply_to = \"odd\"\n[proxy]\nports = \"ampq\"\n[auth]\nclient_certificates = \"required\"";
        let found = problems(toml, &[]);
        for start in [
            "reactor.toml:2: users.ann.pasword is not a known key\n  Did you mean password?",
            "reactor.toml:3: users.ann.tags must be a list of texts",
            "reactor.toml:5: users.ann.permissions.\"/\".read is no regular expression",
            "reactor.toml:7: users.bob.password_hash is no hash",
            "reactor.toml:8: spaces./.policies.p policy p in space /: [max-lenght] are not recognised policy settings",
            "reactor.toml:11: spaces./.policies.q.apply_to is \"odd\"",
            "reactor.toml:13: proxy.ports names the port ampq\n  Did you mean amqp?",
            "reactor.toml:15: auth.client_authorities is empty",
        ] {
            assert!(found.iter().any(|problem| problem.starts_with(start)), "{start}\nnot in {found:#?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}") {
            let _ = resolve(&inputs(&text, &[], Flags::default()));
        }

        #[test]
        fn no_value_under_any_key_makes_it_panic(
            at in 0..SETTINGS.len(),
            value in proptest::sample::select(&["1", "-1", "99999999999", "1.5", "true", "\"\"", "\"x\"", "\"${\"", "\"${A:-1s}\"", "[]", "[1]",
                "[\"all\", \"x\"]", "{}", "{ a = 1 }", "1979-05-27", "\"9999999h\"", "\"18446744073709551615GiB\"", "inf"][..]),
        ) {
            let toml = match SETTINGS[at].path.split_once('.') {
                Some((section, key)) => format!("[{section}]\n{key} = {value}"),
                None => format!("{} = {value}", SETTINGS[at].path),
            };
            if let Err(problems) = resolve(&inputs(&toml, &[], Flags::default())) {
                proptest::prop_assert!(problems.iter().all(|problem| !problem.what.is_empty()));
            }
        }

        #[test]
        fn no_service_makes_it_panic(
            key in proptest::sample::select(&["command", "cwd", "env", "port", "replicas", "ready", "restart", "grace", "depends_on",
                "strip_prefix", "autostart", "space", "other"][..]),
            value in proptest::sample::select(&["1", "-1", "1e9", "true", "\"\"", "\"x\"", "\"${\"", "[]", "[1]", "[\"x\"]", "{}", "{ http = 1 }",
                "{ tcp = 70000 }", "{ tcp = true, http = \"/\" }", "1979-05-27"][..]),
        ) {
            let _ = resolve(&inputs(&format!("[services.a]\n{key} = {value}"), &[], Flags::default()));
        }
    }

    #[test]
    fn every_mistake_in_a_service_is_found() {
        let toml = "[services.a]\ncommand = 5\nport = 70000\nready = { http = \"x\", tpc = 1 }\ngrace = 3\n[services.v1]\ncommand = \"x\"";
        let found = problems(toml, &[]);
        for start in [
            "reactor.toml:2: services.a.command must be text or a list of texts, not 5",
            "reactor.toml:3: services.a.port must be a port from 1 to 65535, \"auto\", or false, not 70000",
            "reactor.toml:4: services.a.ready.http must be a path such as \"/healthz\", not \"x\"",
            "reactor.toml:4: services.a.ready.tpc is not a known key\n  Did you mean tcp?",
            "reactor.toml:5: services.a.grace must be a duration",
            "reactor.toml:6: services.v1 is no service name",
        ] {
            assert!(found.iter().any(|problem| problem.starts_with(start)), "{start}\nnot in {found:#?}");
        }
    }
}
