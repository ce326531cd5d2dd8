//! The environment of an instance: what reactor injects, what the definition adds, `${NAME}` expansion, the command as program
//! and arguments, and the view in which secrets are masked.
//!
//! ```text
//!   reactor's own (without REACTOR_…)  <  injected (PORT, AMQP_URL, OTEL_…, REACTOR_…)  <  env of the definition
//! ```

use super::view::{Origin, Variable};
use crate::model::service::{InstanceName, ServiceName};
use crate::model::service_spec::{CommandLine, ServiceSpec};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// Which instance of which service, as its connections and telemetry are named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub space: Arc<str>,
    pub service: ServiceName,
    /// `greeter-1`: also the user in its `AMQP_URL`.
    pub instance: InstanceName,
}

/// How a process reaches this reactor. Given by wiring, asked at every start, when the listeners are bound.
pub trait Doors: Send + Sync {
    fn connections(&self) -> Connections;
    /// The password of the user `identity.instance` in `AMQP_URL`, valid in its space until [`Doors::revoke`]. Asked at every
    /// start; the same answer each time is fine.
    fn token(&self, identity: &Identity) -> String;
    /// The instance is gone for good (removed or scaled down).
    fn revoke(&self, identity: &Identity);
}

/// Addresses as `host:port`; `None` where the door is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    pub amqp: Option<String>,
    pub otlp_http: Option<String>,
    pub gateway: Option<String>,
    pub control: Option<String>,
}

/// RFC 3986 unreserved characters stay as they are.
const USER_INFO: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The variables that let a program find everything without configuration.
pub fn injected(identity: &Identity, port: Option<u16>, connections: &Connections, token: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    if let Some(port) = port {
        set("PORT", port.to_string());
    }
    if let Some(amqp) = &connections.amqp {
        let encode = |text| utf8_percent_encode(text, USER_INFO);
        let (user, token, space) = (encode(&identity.instance), encode(token), encode(&identity.space));
        set("AMQP_URL", format!("amqp://{user}:{token}@{amqp}/{space}"));
    }
    if let Some(otlp) = &connections.otlp_http {
        set("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{otlp}"));
        set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".into());
    }
    set("OTEL_SERVICE_NAME", identity.service.to_string());
    set("OTEL_RESOURCE_ATTRIBUTES", format!("service.instance.id={}", identity.instance));
    if let Some(gateway) = &connections.gateway {
        set("REACTOR_GATEWAY_URL", format!("http://{gateway}"));
    }
    if let Some(control) = &connections.control {
        set("REACTOR_CONTROL_URL", format!("http://{control}"));
    }
    set("REACTOR_SPACE", identity.space.to_string());
    set("REACTOR_SERVICE", identity.service.to_string());
    set("REACTOR_INSTANCE", identity.instance.to_string());
    // Python holds back what it prints to a pipe; its lines would come in lumps of 8 KiB.
    set("PYTHONUNBUFFERED", "1".into());
    variables
}

/// A definition and an environment, ready to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub shown: Vec<Variable>,
}

/// Joins everything for one start. `inherited` is reactor's own environment. Errors say which line of the definition to mend.
pub fn prepare(
    spec: &ServiceSpec,
    inherited: impl Iterator<Item = (OsString, OsString)>,
    injected: BTreeMap<String, String>,
) -> Result<Prepared, Arc<str>> {
    let mut env: BTreeMap<OsString, OsString> =
        inherited.filter(|(name, _)| !name.to_string_lossy().starts_with("REACTOR_")).collect();
    let mut shown: BTreeMap<String, Variable> = BTreeMap::new();
    let variable = |name: &str, value: &str, origin| Variable { name: name.into(), value: mask(name, value), origin };
    for (name, value) in &injected {
        shown.insert(name.clone(), variable(name, value, Origin::Injected));
        env.insert(name.into(), value.into());
    }
    let known = env.clone();
    let look_up = |name: &str| known.get(&OsString::from(name)).map(|value| value.to_string_lossy().into_owned());
    for (name, text) in &spec.env {
        let value = expand(text, look_up).map_err(|error| format!("env.{name} = \"{text}\": {error}"))?;
        shown.insert(name.clone(), variable(name, &value, Origin::Definition));
        env.insert(name.into(), value.into());
    }
    let look_up = |name: &str| env.get(&OsString::from(name)).map(|value| value.to_string_lossy().into_owned());
    let mut words = command_words(&spec.command, look_up)?.into_iter().map(OsString::from);
    let program = words.next().ok_or("its command is empty")?;
    let arguments = words.collect();
    Ok(Prepared { program, arguments, env: env.into_iter().collect(), shown: shown.into_values().collect() })
}

/// A text that only needs splitting is split here, so that the program is the process itself and no shell has to exist; one that
/// uses a shell's language goes to the shell as it is, `${NAME}` included, which the shell reads the same way.
fn command_words(command: &CommandLine, look_up: impl Fn(&str) -> Option<String> + Copy) -> Result<Vec<String>, Arc<str>> {
    let words: Vec<&str> = match command {
        CommandLine::Words(words) => words.iter().map(String::as_str).collect(),
        CommandLine::Text(text) if needs_shell(text) => return Ok(vec!["sh".into(), "-c".into(), text.clone()]),
        CommandLine::Text(text) => text.split_whitespace().collect(),
    };
    words.into_iter().map(|word| expand(word, look_up).map_err(|error| format!("command: {word}: {error}").into())).collect()
}

fn needs_shell(text: &str) -> bool {
    const SHELL_ONLY: &[char] = &['|', '&', ';', '<', '>', '(', ')', '`', '\\', '"', '\'', '*', '?', '[', ']', '#', '~', '\n'];
    let assigns_first = text.split_whitespace().next().is_some_and(|word| word.contains('='));
    let bare_dollar = text.replace("$$", "").match_indices('$').any(|(at, _)| !text.replace("$$", "")[at + 1..].starts_with('{'));
    text.contains(SHELL_ONLY) || assigns_first || bare_dollar
}

/// `${NAME}`, `${NAME:-instead}` when it is unset or empty, and `$$` for a dollar sign. Other dollars stay as they are.
pub fn expand(text: &str, look_up: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some(tail) = after.strip_prefix('{') {
            let (inner, tail) = tail.split_once('}').ok_or("a ${ has no closing }")?;
            let (name, instead) = match inner.split_once(":-") {
                Some((name, instead)) => (name, Some(instead)),
                None => (inner, None),
            };
            let value = look_up(name).filter(|value| !value.is_empty() || instead.is_none());
            match (value, instead) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(instead)) => out.push_str(instead),
                (None, None) => return Err(format!("{name} is not set; set it, or write ${{{name}:-a default}}")),
            }
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

const MASK: &str = "••••••••";

/// What people see of a value: nothing of a secret, and of a URL everything but its password.
fn mask(name: &str, value: &str) -> String {
    const SECRET_WORDS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "API_KEY", "PRIVATE_KEY", "CREDENTIAL"];
    let upper = name.to_ascii_uppercase();
    if SECRET_WORDS.iter().any(|word| upper.contains(word)) || upper.ends_with("_KEY") {
        return MASK.into();
    }
    let Some((scheme, rest)) = value.split_once("://") else { return value.into() };
    let authority_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((user_info, host)) = rest[..authority_ends].rsplit_once('@') else { return value.into() };
    let Some((user, _)) = user_info.split_once(':') else { return value.into() };
    format!("{scheme}://{user}:{MASK}@{host}{}", &rest[authority_ends..])
}

/// The language of a program, by how it is started; views show it until a connection says more. Named as the
/// broker names those of its clients.
pub fn language(prepared: &Prepared) -> Option<&'static str> {
    let program = prepared.program.to_string_lossy();
    let script = (program == "sh").then(|| prepared.arguments.get(1)).flatten().map(|script| script.to_string_lossy());
    let first = script.as_deref().and_then(|script| script.split_whitespace().next()).unwrap_or(&program);
    let base = first.rsplit('/').next()?;
    let starts = |prefix: &str| base.starts_with(prefix);
    Some(match base {
        _ if starts("python") => "python",
        "uv" | "uvicorn" | "gunicorn" | "flask" | "poetry" => "python",
        "node" | "npm" | "npx" | "pnpm" | "yarn" | "tsx" => "node",
        "deno" => "deno",
        "bun" | "bunx" => "bun",
        "java" | "mvn" | "gradle" | "gradlew" => "java",
        "dotnet" => "dotnet",
        "go" => "go",
        "cargo" => "rust",
        "php" => "php",
        "perl" => "perl",
        "mix" | "elixir" | "iex" => "elixir",
        _ if starts("ruby") || base == "bundle" => "ruby",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { space: "/".into(), service: ServiceName::new("greeter").expect("a valid name"), instance: "greeter-1".into() }
    }

    fn spec(command: CommandLine) -> ServiceSpec {
        ServiceSpec::new(identity().service, command, "/".into())
    }

    fn prepared(spec: &ServiceSpec) -> Result<Prepared, Arc<str>> {
        let doors = Connections { amqp: Some("127.0.0.1:5672".into()), ..Connections::default() };
        let inherited = [("HOME", "/home/ann"), ("REACTOR_PORTS_AMQP", "1"), ("NAME", "Ann B")];
        let inherited = inherited.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        prepare(spec, inherited.into_iter(), injected(&identity(), Some(4100), &doors, "to/ken"))
    }

    fn value<'a>(prepared: &'a Prepared, name: &str) -> Option<&'a str> {
        prepared.env.iter().find(|(known, _)| known == name)?.1.to_str()
    }

    fn text(command: &str) -> CommandLine {
        CommandLine::Text(command.into())
    }

    #[test]
    fn a_program_finds_the_bus_under_its_own_name() {
        let prepared = prepared(&spec(text("python3 greeter.py"))).expect("fine");
        assert_eq!(value(&prepared, "AMQP_URL"), Some("amqp://greeter-1:to%2Fken@127.0.0.1:5672/%2F"));
        assert_eq!(value(&prepared, "PORT"), Some("4100"));
        assert_eq!(value(&prepared, "OTEL_SERVICE_NAME"), Some("greeter"));
        assert_eq!(value(&prepared, "HOME"), Some("/home/ann"));
        assert_eq!(value(&prepared, "REACTOR_PORTS_AMQP"), None, "reactor's settings are not its services'");
        assert_eq!(value(&prepared, "OTEL_EXPORTER_OTLP_ENDPOINT"), None, "that door is off");
    }

    #[test]
    fn the_definition_wins_and_may_use_what_is_known() {
        let mut spec = spec(text("serve --port ${PORT} --name ${NAME} --mode ${MODE:-dev}"));
        spec.env.insert("AMQP_URL".into(), "amqp://elsewhere".into());
        spec.env.insert("BASE".into(), "http://localhost:${PORT}/$$x".into());
        let prepared = prepared(&spec).expect("fine");
        assert_eq!(value(&prepared, "AMQP_URL"), Some("amqp://elsewhere"));
        assert_eq!(value(&prepared, "BASE"), Some("http://localhost:4100/$x"));
        assert_eq!(prepared.program, "serve");
        assert_eq!(prepared.arguments, ["--port", "4100", "--name", "Ann B", "--mode", "dev"], "a value is never split");
    }

    #[test]
    fn a_missing_variable_is_an_error_that_says_where() {
        let mut spec = spec(text("serve"));
        spec.env.insert("KEY".into(), "${NOWHERE}".into());
        let error = prepared(&spec).expect_err("unset");
        assert!(error.contains("env.KEY") && error.contains("NOWHERE is not set"), "{error}");
        assert!(expand("${OPEN", |_| None).is_err());
    }

    #[test]
    fn only_a_command_in_a_shells_language_gets_a_shell() {
        for direct in ["python3 greeter.py", "node a.js --x=1", "./run ${PORT} ${A:-b}", "echo $$5"] {
            assert!(!needs_shell(direct), "{direct}");
        }
        for shell in ["a && b", "A=1 node x", "python3 -c 'print(1)'", "echo $HOME", "ls *.py", "cat < x"] {
            assert!(needs_shell(shell), "{shell}");
        }
        let words = CommandLine::Words(vec!["printf".into(), "%s|".into(), "a b".into()]);
        let prepared = prepared(&spec(words)).expect("fine");
        assert_eq!(prepared.arguments, ["%s|", "a b"]);
    }

    #[test]
    fn secrets_are_masked_in_views() {
        let mut spec = spec(text("x"));
        spec.env.insert("DB_PASSWORD".into(), "hunter2".into());
        spec.env.insert("DATABASE".into(), "postgres://app:hunter2@db:5432/x?y=1".into());
        spec.env.insert("MODE".into(), "dev".into());
        let prepared = prepared(&spec).expect("fine");
        let shown = |name: &str| prepared.shown.iter().find(|variable| variable.name == name).expect("shown").clone();
        assert_eq!(shown("DB_PASSWORD").value, MASK);
        assert_eq!(shown("DATABASE").value, format!("postgres://app:{MASK}@db:5432/x?y=1"));
        assert_eq!((shown("MODE").value.as_str(), shown("MODE").origin), ("dev", Origin::Definition));
        assert_eq!(shown("AMQP_URL").value, format!("amqp://greeter-1:{MASK}@127.0.0.1:5672/%2F"));
        assert!(!prepared.shown.iter().any(|variable| variable.value.contains("hunter2") || variable.value.contains("to%2Fken")));
    }

    #[test]
    fn the_language_is_read_off_the_command() {
        let of = |command: &str| language(&prepared(&spec(text(command))).expect("fine"));
        assert_eq!(of("${PYTHON:-.venv/bin/python} x.py"), Some("python"));
        assert_eq!(of("/usr/bin/node x.js && true"), Some("node"));
        assert_eq!(of("./server"), None);
    }
}
