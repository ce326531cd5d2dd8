//! The start block: what is where, printed once when everything listens. People read it; tests read the port table; container
//! harnesses wait for its last line.

use crate::model::config::{AccessMode, Bind, Config, PortName, Storage};
use crate::model::door::{Door, DoorState};
use std::fmt::Write as _;
use std::sync::Arc;

/// The line container test harnesses for RabbitMQ wait for.
pub const STARTED: &str = "Server startup complete";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// ANSI colours, for a terminal.
    Colour,
}

/// Everything the block says.
pub struct StartBlock<'a> {
    pub config: &'a Config,
    pub doors: &'a [Arc<Door>],
    pub token: &'a str,
    pub open_files: Option<u64>,
    pub warnings: &'a [String],
    /// Supervised services, by name.
    pub services: &'a [String],
}

impl StartBlock<'_> {
    pub fn render(&self, style: Style) -> String {
        let paint = Paint(style);
        let mut out = String::new();
        let _ = writeln!(out, "\n{} {}\n", paint.bold("reactor"), env!("CARGO_PKG_VERSION"));
        self.urls(&mut out, paint);
        self.ports(&mut out, paint);
        self.environment(&mut out, paint);
        self.facts(&mut out, paint);
        for warning in self.warnings {
            let _ = writeln!(out, "  {} {warning}", paint.warn("warning"));
        }
        if !self.warnings.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{STARTED}");
        out
    }

    fn port(&self, name: PortName) -> Option<u16> {
        self.doors.iter().find(|door| door.name == name).and_then(|door| door.port())
    }

    fn urls(&self, out: &mut String, paint: Paint) {
        let mut line = |label: &str, text: &str| {
            let _ = writeln!(out, "  {} {text}", paint.dim(&format!("{label:<10}")));
        };
        if let Some(url) = self.dashboard() {
            line("Dashboard", &paint.link(&url));
        }
        let gateway: Vec<String> =
            [("http", PortName::Http, 80), ("http", PortName::Ingress, 0), ("https", PortName::Https, 443)]
                .into_iter()
                .filter_map(|(scheme, name, usual)| Some(web_url(scheme, &host(self.config), self.port(name)?, usual)))
                .map(|url| paint.link(&url))
                .collect();
        if !gateway.is_empty() {
            line("Gateway", &gateway.join("  "));
        }
        if let Some(bus) = self.port(PortName::Bus) {
            line("Bus", &format!("{}  AMQP and OpenTelemetry on one port", paint.link(&format!("{}:{bus}", host(self.config)))));
        }
        if let (true, Some(port)) =
            (self.config.access.mode == AccessMode::Dev && !self.config.bind.is_loopback(), self.port(PortName::Control))
        {
            line("Elsewhere", &paint.link(&format!("http://HOST:{port}/?token={}", self.token)));
        }
        out.push('\n');
    }

    /// The dashboard's address; with the token where this machine needs one too.
    pub fn dashboard(&self) -> Option<String> {
        let url = web_url("http", &host(self.config), self.port(PortName::Control)?, 80);
        Some(match self.config.access.mode {
            AccessMode::Dev => url,
            AccessMode::Required => format!("{url}/?token={}", self.token),
        })
    }

    fn ports(&self, out: &mut String, paint: Paint) {
        let _ = writeln!(out, "  {}", paint.bold("Ports"));
        for door in self.doors.iter().filter(|door| door.name.is_served()) {
            let port = door.port().map_or("-".to_owned(), |port| port.to_string());
            let text = match &door.state {
                DoorState::Listening => paint.dim(door.name.speaks()),
                DoorState::Off => paint.dim("off"),
                DoorState::Unbound(why) => paint.warn(why),
            };
            let _ = writeln!(out, "  {:<10} {port:>5}  {text}", door.name.as_str());
        }
        out.push('\n');
    }

    fn environment(&self, out: &mut String, paint: Paint) {
        let variables = client_variables(self.config, self.doors, self.token);
        if variables.is_empty() {
            return;
        }
        let _ = writeln!(out, "  {}", paint.bold("Environment for services"));
        for (name, value) in variables {
            let _ = writeln!(out, "  {name}={value}");
        }
        out.push('\n');
    }

    fn facts(&self, out: &mut String, paint: Paint) {
        let mut line = |label: &str, text: &str| {
            let _ = writeln!(out, "  {} {text}", paint.dim(&format!("{label:<10}")));
        };
        match &self.config.file {
            Some(file) => line("Config", &file.display().to_string()),
            None => line("Config", "defaults (`reactor init` writes a reactor.toml)"),
        }
        line("Storage", "messages are kept in memory, not on disk");
        match &self.config.storage {
            Storage::Directory(path) => line("Data", &path.display().to_string()),
            Storage::Ephemeral => line("Data", "nothing is kept"),
        }
        if !self.services.is_empty() {
            line("Services", &self.services.join(", "));
        }
        let open_files = self.open_files.map_or("no limit".to_owned(), |limit| limit.to_string());
        line("Open files", &open_files);
        out.push('\n');
    }
}

/// The name this machine is reached by in printed URLs.
pub fn host(config: &Config) -> String {
    match &config.bind {
        Bind::Localhost | Bind::All => "localhost".to_owned(),
        Bind::Addresses(addresses) => match addresses.iter().find(|ip| ip.is_loopback() || ip.is_unspecified()) {
            Some(_) => "localhost".to_owned(),
            None => addresses.first().map_or("localhost".to_owned(), |ip| match ip {
                std::net::IpAddr::V4(ip) => ip.to_string(),
                std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            }),
        },
    }
}

pub fn web_url(scheme: &str, host: &str, port: u16, usual: u16) -> String {
    if port == usual { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") }
}

/// Ready-made variables for a service started by hand on this machine.
pub fn client_variables(config: &Config, doors: &[Arc<Door>], token: &str) -> Vec<(&'static str, String)> {
    let port = |name| doors.iter().find(|door| door.name == name).and_then(|door| door.port());
    let host = host(config);
    let mut variables = Vec::new();
    if let Some(amqp) = port(PortName::Amqp).or_else(|| port(PortName::Bus)) {
        let password = if config.access.mode == AccessMode::Dev { "guest" } else { token };
        variables.push(("AMQP_URL", format!("amqp://guest:{password}@{host}:{amqp}")));
    }
    if let Some(otlp) = port(PortName::OtlpHttp).or_else(|| port(PortName::Bus)) {
        variables.push(("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{host}:{otlp}")));
        variables.push(("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned()));
    }
    variables
}

#[derive(Clone, Copy)]
struct Paint(Style);

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        match self.0 {
            Style::Plain => text.to_owned(),
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
    fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
    fn link(self, text: &str) -> String {
        self.wrap("36", text)
    }
    fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::door::DoorCounts;
    use crate::node::config::{FileText, Inputs, resolve};

    fn block(toml: &str, style: Style) -> String {
        let file = Some(FileText { path: "reactor.toml".into(), text: toml.into() });
        let config = resolve(&Inputs { file, ..Inputs::default() }).expect("fine").config;
        let door = |name: PortName| match name {
            PortName::Https => Door {
                name,
                addresses: vec![],
                state: DoorState::Unbound("needs a privilege".into()),
                counts: DoorCounts::default(),
            },
            _ => Door {
                name,
                addresses: vec![([127, 0, 0, 1], name.default_port()).into()],
                state: DoorState::Listening,
                counts: DoorCounts::default(),
            },
        };
        let doors: Vec<Arc<Door>> = PortName::ALL.into_iter().map(|name| Arc::new(door(name))).collect();
        let warnings = ["something to know".to_owned()];
        let services = ["hello".to_owned()];
        let block = StartBlock {
            config: &config,
            doors: &doors,
            token: "TOKEN",
            open_files: Some(4096),
            warnings: &warnings,
            services: &services,
        };
        block.render(style)
    }

    #[test]
    fn the_block_says_where_everything_is() {
        let text = block("", Style::Plain);
        for line in [
            "  Dashboard  http://localhost:15000\n",
            "  Gateway    http://localhost  http://localhost:16000\n",
            "  amqp        5672  AMQP 0-9-1\n",
            "  https          -  needs a privilege\n",
            "  AMQP_URL=amqp://guest:guest@localhost:5672\n",
            "  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n",
            "  Open files 4096\n",
            "  warning something to know\n",
        ] {
            assert!(text.contains(line), "missing {line:?} in:\n{text}");
        }
        assert!(text.ends_with("Server startup complete\n"));
        assert!(!text.contains("redis") && !text.contains("TOKEN"), "{text}");
    }

    #[test]
    fn the_token_is_shown_where_it_is_needed() {
        assert!(block("bind = \"all\"", Style::Plain).contains("http://HOST:15000/?token=TOKEN"));
        let required = block("auth = \"required\"", Style::Plain);
        assert!(required.contains("http://localhost:15000/?token=TOKEN") && required.contains("guest:TOKEN@"), "{required}");
    }

    #[test]
    fn colours_add_nothing_but_colours() {
        let plain = block("", Style::Plain);
        let mut coloured = block("", Style::Colour);
        assert_ne!(plain, coloured);
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[36m"] {
            coloured = coloured.replace(code, "");
        }
        assert_eq!(plain, coloured);
    }
}
