//! Where reactor's own `tracing` events go: standard error, as text for people or JSON for collectors, and the telemetry store, as
//! log records of the service `reactor`.

use crate::kernel::Clock;
use crate::model::config::{LogFormat, LogSettings};
use crate::telemetry::own_logs;
use std::io::IsTerminal;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Installs the process's subscriber; a second installation changes nothing.
pub fn install(settings: &LogSettings) {
    let filter = EnvFilter::new(&settings.filter);
    let to_stderr: Box<dyn Layer<Registry> + Send + Sync> = match settings.format {
        LogFormat::Text => fmt::layer().with_writer(std::io::stderr).with_ansi(takes_colour()).with_target(true).boxed(),
        LogFormat::Json => fmt::layer().json().flatten_event(true).with_current_span(false).with_writer(std::io::stderr).boxed(),
    };
    let to_store = own_logs::layer(Clock::system());
    let _ = tracing_subscriber::registry().with(to_stderr.with_filter(filter)).with(to_store).try_init();
}

fn takes_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
