//! `reactor open`: the dashboard in the browser.

use super::print;
use super::remote::Remote;
use anyhow::bail;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Asks first whether a reactor is there: a browser's error page would say less.
pub async fn run(remote: &Remote) -> anyhow::Result<()> {
    let _: Value = remote.get("/api/v1/version").await?;
    browse(&remote.url())
}

/// Opens `url` with `$BROWSER`, else the desktop's own opener.
pub fn browse(url: &str) -> anyhow::Result<()> {
    let chosen = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let openers: Vec<String> = chosen.into_iter().chain(["xdg-open".to_owned(), "open".to_owned()]).collect();
    for opener in &openers {
        let quiet = Command::new(opener).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if quiet.is_ok() {
            print::line(&format!("opening {url}"));
            return Ok(());
        }
    }
    bail!("no browser could be started. Open {url} yourself, or set BROWSER.")
}
