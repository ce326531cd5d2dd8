//! `[services.NAME]`: from the file to a [`ServiceSpec`].

use super::reader::{Reading, TableReader};
use super::settings::Raw;
use crate::model::service::ServiceName;
use crate::model::service_spec::{CommandLine, Port, Probe, Ready, RestartPolicy, ServiceSpec};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml_edit::Item;

/// Every service of the section, in the order of the file; what is wrong is in `reading`.
pub fn read(reading: &mut Reading<'_>, section: &Item) -> Vec<ServiceSpec> {
    let Some(table) = section.as_table_like() else {
        reading.problem(section.span(), "services", "must be a section", "Write a service as [services.NAME].");
        return Vec::new();
    };
    let base = base_directory(&reading.file.path);
    let mut specs = Vec::new();
    for (name, item) in table.iter() {
        let path = format!("services.{name}");
        let Some(service) = ServiceName::new(name) else {
            let span = table.key(name).and_then(toml_edit::Key::span);
            let fix = "Use a to z, 0 to 9, - and _, at most 63 characters, not v and digits, not reactor.";
            reading.problem(span, &path, "is no service name", fix);
            continue;
        };
        let before = reading.problems.len();
        let Some(spec) =
            TableReader::open(reading, item, path.clone()).and_then(|table| read_one(reading, table, service, &base))
        else {
            continue;
        };
        if let Err(refusal) = spec.check()
            && reading.problems.len() == before
        {
            let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
            reading.problem(span, &path, refusal.what.clone(), refusal.next.clone().unwrap_or_default());
        }
        specs.push(spec);
    }
    check_names(reading, table);
    specs
}

/// Absolute directory of the file: relative paths in it mean what they say wherever reactor is started.
fn base_directory(file: &Path) -> PathBuf {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf())
}

fn read_one(reading: &mut Reading<'_>, mut table: TableReader<'_>, name: ServiceName, base: &Path) -> Option<ServiceSpec> {
    let command = command(reading, &mut table);
    let mut spec = ServiceSpec::new(name, command.clone().unwrap_or(CommandLine::Text(String::new())), base.to_path_buf());
    if let Some(space) = table.text(reading, "space") {
        spec.space = Arc::from(space);
    }
    if let Some(cwd) = table.text(reading, "cwd") {
        spec.cwd = base.join(cwd);
    }
    spec.env = table.map(reading, "env").unwrap_or_default();
    spec.port = port(reading, &mut table).unwrap_or_default();
    if let Some(replicas) = table.count(reading, "replicas", 0..=u64::from(u32::MAX)) {
        spec.replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
    }
    if let Some(ready) = table.table(reading, "ready") {
        spec.ready = self::ready(reading, ready);
    }
    if let Some(policy) = table.text(reading, "restart") {
        match RestartPolicy::parse(&policy) {
            Some(policy) => spec.restart = policy,
            None => table.refuse(reading, "restart", format!("is \"{policy}\""), "Use \"always\", \"on_failure\" or \"never\"."),
        }
    }
    spec.grace = table.duration(reading, "grace").unwrap_or(spec.grace);
    spec.depends_on = dependencies(reading, &mut table);
    spec.strip_prefix = table.flag(reading, "strip_prefix").unwrap_or(spec.strip_prefix);
    spec.autostart = table.flag(reading, "autostart").unwrap_or(spec.autostart);
    if command.is_none() && table.item("command").is_none() {
        table.refuse(reading, "command", "is missing", "Give the program and its arguments: command = \"python3 greeter.py\".");
    }
    table.finish(reading);
    command.map(|_| spec)
}

fn command(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Option<CommandLine> {
    let (raw, item) = table.verbatim(reading, "command")?;
    match raw {
        Raw::Text(text) => Some(CommandLine::Text(text)),
        Raw::List(words) => Some(CommandLine::Words(words)),
        other => table.wrong(reading, item, "command", "must be text or a list of texts", &other),
    }
}

fn port(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Option<Port> {
    let (raw, item) = table.verbatim(reading, "port")?;
    match &raw {
        Raw::Text(text) if text == "auto" => Some(Port::Auto),
        Raw::Bool(false) => Some(Port::Off),
        Raw::Integer(number) => match u16::try_from(*number) {
            Ok(port) if port > 0 => Some(Port::Fixed(port)),
            _ => table.wrong(reading, item, "port", "must be a port from 1 to 65535, \"auto\", or false", &raw),
        },
        _ => table.wrong(reading, item, "port", "must be a port from 1 to 65535, \"auto\", or false", &raw),
    }
}

fn ready(reading: &mut Reading<'_>, mut table: TableReader<'_>) -> Ready {
    let mut ready = Ready::default();
    let port = table.count(reading, "port", 1..=u64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok());
    let http = table.verbatim(reading, "http");
    let tcp = table.verbatim(reading, "tcp");
    ready.probe = match (http, tcp) {
        (Some(_), Some(_)) => {
            table.refuse(reading, "tcp", "stands beside http", "Ask one of them.");
            Probe::Implied
        }
        (Some((Raw::Text(path), _)), None) if path.starts_with('/') => Probe::Http { path, port },
        (Some((other, item)), None) => {
            table.wrong(reading, item, "http", "must be a path such as \"/healthz\"", &other).unwrap_or(Probe::Implied)
        }
        (None, Some((Raw::Bool(true), _))) => Probe::Tcp { port },
        (None, Some((Raw::Integer(number), _))) if (1..=65_535).contains(&number) => {
            Probe::Tcp { port: u16::try_from(number).ok() }
        }
        (None, Some((other, item))) => {
            table.wrong(reading, item, "tcp", "must be true or a port from 1 to 65535", &other).unwrap_or(Probe::Implied)
        }
        (None, None) => Probe::Implied,
    };
    if table.flag(reading, "attached").unwrap_or(false) {
        if ready.probe != Probe::Implied {
            table.refuse(reading, "attached", "stands beside http or tcp", "Ask one of them.");
        }
        ready.probe = Probe::Attached;
    }
    ready.interval = table.duration(reading, "interval").unwrap_or(ready.interval);
    ready.timeout = table.duration(reading, "timeout").unwrap_or(ready.timeout);
    ready.within = table.duration(reading, "within").unwrap_or(ready.within);
    table.finish(reading);
    ready
}

fn dependencies(reading: &mut Reading<'_>, table: &mut TableReader<'_>) -> Vec<ServiceName> {
    let words = table.words(reading, "depends_on").unwrap_or_default();
    let (good, bad): (Vec<_>, Vec<_>) = words.iter().partition(|word| ServiceName::new(word).is_some());
    if let Some(word) = bad.first() {
        table.refuse(reading, "depends_on", format!("names \"{word}\", which is no service name"), "Name services of this file.");
    }
    good.into_iter().filter_map(|word| ServiceName::new(word)).collect()
}

/// Every dependency names a service of the file.
fn check_names(reading: &mut Reading<'_>, table: &dyn toml_edit::TableLike) {
    let all: Vec<&str> = table.iter().map(|(name, _)| name).collect();
    for (service, item) in table.iter() {
        let Some(wanted) = item.get("depends_on").and_then(Item::as_array) else { continue };
        for value in wanted.iter().filter(|value| value.as_str().is_some_and(|name| ServiceName::new(name).is_some())) {
            let name = value.as_str().unwrap_or_default();
            if !all.contains(&name) {
                let key = format!("services.{service}.depends_on");
                reading.problem(value.span(), &key, format!("names {name}, which is not here"), super::reader::meant(name, &all));
            }
        }
    }
}
