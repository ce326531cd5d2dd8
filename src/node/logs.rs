//! Where reactor's own `tracing` events go: standard error, as text for people or JSON for collectors, and the dashboard.

use crate::kernel::Clock;
use crate::model::config::{LogFormat, LogSettings};
use crate::telemetry::own_logs;
use std::io::IsTerminal;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Installs the process's subscriber; a second installation changes nothing.
pub fn install(settings: &LogSettings, clock: &Clock) {
    let filter = EnvFilter::new(&settings.filter);
    let to_stderr: Box<dyn Layer<Registry> + Send + Sync> = match settings.format {
        LogFormat::Text => fmt::layer().with_writer(std::io::stderr).with_ansi(takes_colour()).with_target(true).boxed(),
        LogFormat::Json => fmt::layer().json().flatten_event(true).with_current_span(false).with_writer(std::io::stderr).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(to_stderr.with_filter(filter)).with(own_logs::layer(clock.clone()));
    if subscriber.try_init().is_ok() {
        tell_panics();
    }
}

/// A task that panics is a bug that must be seen where people look, not only where the process was started.
fn tell_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let said = info.payload_as_str().unwrap_or("no words");
        tracing::error!(target: "reactor::panic", at, "a task of reactor panicked, which is a bug: {said}");
    }));
}

fn takes_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
