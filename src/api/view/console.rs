//! Consoles of supervised instances.

use super::Sources;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::supervisor;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConsoleLine {
    pub seq: u64,
    pub at_us: u64,
    /// `stdout`, `stderr`, or `lifecycle` for what reactor itself rules in.
    pub kind: &'static str,
    /// ANSI escape sequences are kept.
    pub text: Arc<str>,
}

impl From<&supervisor::ConsoleLine> for ConsoleLine {
    fn from(line: &supervisor::ConsoleLine) -> Self {
        let kind = match line.kind {
            supervisor::LineKind::Stdout => "stdout",
            supervisor::LineKind::Stderr => "stderr",
            supervisor::LineKind::Lifecycle => "lifecycle",
        };
        ConsoleLine { seq: line.seq, at_us: line.at_ns / 1_000, kind, text: line.text.clone() }
    }
}

/// The console of an instance of `service`: the one named, or the first.
pub fn console(sources: &Sources, service: &str, instance: Option<&str>) -> Result<Arc<supervisor::Console>, Refusal> {
    let services = sources.supervisor.services();
    let Some(known) = services.iter().find(|known| known.name.as_str() == service) else {
        let refusal = Refusal::new(RefusalKind::NotFound, format!("reactor does not run {service}, so it has no console"));
        return Err(
            refusal.hint("the output of services that others start is in their own terminal, and in the logs if they send it")
        );
    };
    let first = known.instances.first().map(|instance| instance.name.clone());
    let name = instance.map(Arc::from).or(first);
    name.as_ref().and_then(|name| sources.supervisor.console(service, name)).ok_or_else(|| {
        let names: Vec<&str> = known.instances.iter().map(|instance| &*instance.name).collect();
        let wanted = name.as_deref().unwrap_or("any");
        Refusal::new(RefusalKind::NotFound, format!("{service} has no instance {wanted}"))
            .hint(format!("its instances are: {}", names.join(", ")))
    })
}
