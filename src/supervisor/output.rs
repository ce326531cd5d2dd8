//! Captured output: bytes of a pipe become lines, lines become console entries and log records. Bounded in every direction: a
//! line in bytes, an instance in bytes a second, the console in bytes. The pipe is always read, so a service never waits for it.
//!
//! ```text
//!   pipe ─▶ Splitter (lines, long ones cut) ─▶ Budget (bytes a second) ─▶ console ring, log record
//!                                                └─ over it: dropped, counted, said
//! ```

use super::console::{Console, LineKind};
use super::env::Identity;
use super::line;
use crate::kernel::limit::{OUTPUT_BYTES_PER_SECOND_MAX, OUTPUT_LINE_BYTES_MAX};
use crate::kernel::{Clock, Instant};
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::signal::{LogRecord, Resource, Severity, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const READ_BYTES: usize = 32 * 1024;
/// A line without its end (a prompt, a progress bar) is shown after this.
const UNFINISHED_WAIT: Duration = Duration::from_millis(500);
/// While more comes than is kept: the reader rests this long every so many reads, which bounds what a flood costs reactor and
/// still takes a gigabyte in seconds.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);
const FLOOD_READS: u32 = 16;
/// At most one happening about dropped output in this time; the console says every time.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Where the lines of one instance go.
pub struct Output {
    clock: Clock,
    identity: Identity,
    resource: Arc<Resource>,
    console: Arc<Console>,
    budget: Mutex<Budget>,
}

impl Output {
    pub fn new(clock: Clock, identity: Identity, console: Arc<Console>) -> Self {
        let resource = Arc::new(Resource {
            service: identity.service.shared(),
            instance: identity.instance.clone(),
            attributes: vec![("service.instance.id".into(), Value::Text(identity.instance.clone()))],
        });
        let budget = Mutex::new(Budget::new(clock.now()));
        Output { clock, identity, resource, console, budget }
    }

    /// A step of the instance's life, ruled into its console.
    pub fn lifecycle(&self, text: impl Into<Arc<str>>) {
        self.console.push(self.clock.unix_nanos(), LineKind::Lifecycle, text.into());
    }

    /// Reads one stream until every process that could write to it is gone.
    pub async fn pump(&self, mut stream: impl AsyncRead + Unpin, kind: LineKind) {
        let mut splitter = Splitter::default();
        let mut tone = Tone::default();
        let mut buffer = vec![0; READ_BYTES];
        let mut reads = 0u32;
        loop {
            let read = stream.read(&mut buffer);
            let count = if splitter.is_mid_line() {
                match tokio::time::timeout(UNFINISHED_WAIT, read).await {
                    Ok(count) => count,
                    Err(_) => {
                        splitter.finish(|line| self.line(kind, line, &mut tone));
                        continue;
                    }
                }
            } else {
                read.await
            };
            let Ok(count @ 1..) = count else { break };
            if self.admit(count) {
                splitter.feed(&buffer[..count], |line| self.line(kind, line, &mut tone));
            } else {
                splitter.skip(&buffer[..count]);
                reads += 1;
                if reads.is_multiple_of(FLOOD_READS) {
                    tokio::time::sleep(FLOOD_PAUSE).await;
                }
            }
        }
        splitter.finish(|line| self.line(kind, line, &mut tone));
        let dropped = self.lock_budget().take_dropped(self.clock.now());
        self.say(dropped);
    }

    /// Whether the budget takes what was just read; if not, it is counted as dropped.
    fn admit(&self, count: usize) -> bool {
        let (admitted, dropped) = self.lock_budget().admit(self.clock.now(), count);
        self.say(dropped);
        admitted
    }

    fn line(&self, kind: LineKind, line: Line<'_>, tone: &mut Tone) {
        const LINE_COST: usize = 64;
        self.lock_budget().spend(LINE_COST);
        let at_ns = self.clock.unix_nanos();
        let text = String::from_utf8_lossy(line.bytes);
        let plain = line::without_ansi(&text);
        if !plain.trim().is_empty() && emit::is_installed() {
            let reading = line::read(&plain);
            let mut attributes = reading.attributes;
            attributes.push(("log.iostream".into(), Value::from(stream_name(kind))));
            if line.cut > 0 {
                attributes.push(("reactor.cut_bytes".into(), Value::Int(i64::try_from(line.cut).unwrap_or(i64::MAX))));
            }
            emit::log(LogRecord {
                at_ns,
                severity: tone.of(&plain, reading.severity),
                body: reading.body,
                resource: self.resource.clone(),
                scope: Arc::from(stream_name(kind)),
                trace_id: reading.trace_id,
                span_id: reading.span_id,
                attributes,
            });
        }
        let shown = text.trim_end_matches('\r');
        let shown = match line.cut {
            0 => Arc::from(shown),
            cut => Arc::from(format!("{shown} … {cut} more bytes of this line not kept")),
        };
        self.console.push(at_ns, kind, shown);
    }

    fn say(&self, dropped: Option<Dropped>) {
        let Some(dropped) = dropped else { return };
        let limit = OUTPUT_BYTES_PER_SECOND_MAX / (1024 * 1024);
        self.lifecycle(format!("{} bytes of output not kept: it prints more than {limit} MiB a second", dropped.now));
        if let Some(bytes_dropped) = dropped.since_last_happening {
            emit::happening(Happening {
                at_ns: self.clock.unix_nanos(),
                space: self.identity.space.clone(),
                what: What::OutputTruncated {
                    service: self.identity.service.clone(),
                    instance: self.identity.instance.clone(),
                    bytes_dropped,
                },
            });
        }
    }

    fn lock_budget(&self) -> std::sync::MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stream_name(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Stdout => "stdout",
        LineKind::Stderr => "stderr",
        LineKind::Lifecycle => "lifecycle",
    }
}

/// Severity across lines: the indented rest of a stack trace is as bad as its head.
#[derive(Default)]
struct Tone(Option<Severity>);

impl Tone {
    fn of(&mut self, line: &str, said: Option<Severity>) -> Severity {
        let continues = line.starts_with([' ', '\t']);
        self.0 = said.or(if continues { self.0 } else { None });
        self.0.unwrap_or(Severity::INFO)
    }
}

struct Line<'a> {
    bytes: &'a [u8],
    /// Bytes of the line beyond [`OUTPUT_LINE_BYTES_MAX`], which are not kept.
    cut: u64,
}

/// Bytes to lines. Holds at most one line, at most [`OUTPUT_LINE_BYTES_MAX`] of it.
#[derive(Default)]
struct Splitter {
    partial: Vec<u8>,
    cut: u64,
    /// Within a line whose beginning was skipped: its rest goes too.
    skipping: bool,
}

impl Splitter {
    fn is_mid_line(&self) -> bool {
        !self.partial.is_empty()
    }

    fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        if self.skipping {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return };
            self.skipping = false;
            bytes = &bytes[end + 1..];
        }
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            if self.partial.is_empty() && end <= OUTPUT_LINE_BYTES_MAX {
                take(Line { bytes: &bytes[..end], cut: 0 });
            } else {
                self.hold(&bytes[..end]);
                take(Line { bytes: &self.partial, cut: self.cut });
                self.partial.clear();
                self.cut = 0;
            }
            bytes = &bytes[end + 1..];
        }
        self.hold(bytes);
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = OUTPUT_LINE_BYTES_MAX - self.partial.len();
        let kept = bytes.len().min(room);
        self.partial.extend_from_slice(&bytes[..kept]);
        self.cut += (bytes.len() - kept) as u64;
    }

    /// Leaves out a chunk; what was held of the line it continues is left out with it.
    fn skip(&mut self, bytes: &[u8]) {
        self.partial.clear();
        self.cut = 0;
        self.skipping = bytes.last() != Some(&b'\n');
    }

    /// The stream pauses or ends: what is held counts as a line.
    fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            take(Line { bytes: &self.partial, cut: self.cut });
            self.partial = Vec::new();
            self.cut = 0;
        }
    }
}

/// A token bucket with hysteresis: once empty, nothing is kept until a good part is refilled, so that a flood leaves readable
/// passages instead of single lines.
#[derive(Debug)]
struct Budget {
    tokens: i64,
    at: Instant,
    flooded: bool,
    dropped: u64,
    unsaid: u64,
    said_at: Option<Instant>,
}

struct Dropped {
    now: u64,
    /// To be made known as a happening, if it is time for one.
    since_last_happening: Option<u64>,
}

const BURST: i64 = 4 * OUTPUT_BYTES_PER_SECOND_MAX as i64;
/// Less than a console holds, so that it always shows where something was left out.
const RESUME_AT: i64 = OUTPUT_BYTES_PER_SECOND_MAX as i64 / 4;

impl Budget {
    fn new(now: Instant) -> Self {
        Budget { tokens: BURST, at: now, flooded: false, dropped: 0, unsaid: 0, said_at: None }
    }

    fn admit(&mut self, now: Instant, count: usize) -> (bool, Option<Dropped>) {
        let elapsed_us = i64::try_from(now.since(self.at).as_micros()).unwrap_or(i64::MAX);
        let refill = elapsed_us.saturating_mul(i64::from(OUTPUT_BYTES_PER_SECOND_MAX)) / 1_000_000;
        if refill > 0 {
            self.tokens = self.tokens.saturating_add(refill).min(BURST);
            self.at = now;
        }
        self.flooded = if self.flooded { self.tokens < RESUME_AT } else { self.tokens <= 0 };
        if self.flooded {
            self.dropped += count as u64;
            return (false, None);
        }
        self.spend(count);
        (true, self.take_dropped(now))
    }

    /// May overdraw: what was admitted is kept.
    fn spend(&mut self, cost: usize) {
        self.tokens = self.tokens.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
    }

    fn take_dropped(&mut self, now: Instant) -> Option<Dropped> {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped == 0 {
            return None;
        }
        self.unsaid += dropped;
        let due = self.said_at.is_none_or(|at| now.since(at) >= SAY_EVERY);
        let since_last_happening = due.then(|| {
            self.said_at = Some(now);
            std::mem::take(&mut self.unsaid)
        });
        Some(Dropped { now: dropped, since_last_happening })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::service::ServiceName;

    fn output(clock: &Clock) -> (Output, Arc<Console>) {
        let identity = Identity { space: "/".into(), service: ServiceName::new("a").expect("valid"), instance: Arc::from("a-1") };
        let console = Arc::new(Console::new(64 * 1024 * 1024));
        (Output::new(clock.clone(), identity, console.clone()), console)
    }

    fn lines(chunks: &[&[u8]]) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        let mut splitter = Splitter::default();
        let mut take = |line: Line<'_>| found.push((String::from_utf8_lossy(line.bytes).into_owned(), line.cut));
        for chunk in chunks {
            splitter.feed(chunk, &mut take);
        }
        splitter.finish(&mut take);
        found
    }

    #[test]
    fn lines_are_put_together_across_reads() {
        let whole = |text: &str| (text.to_owned(), 0);
        assert_eq!(lines(&[b"a\nb", b"c\n", b"\nd"]), [whole("a"), whole("bc"), whole(""), whole("d")]);
        assert_eq!(lines(&[]), []);
    }

    #[test]
    fn a_long_line_is_cut_and_says_by_how_much() {
        let long = vec![b'x'; OUTPUT_LINE_BYTES_MAX + 10];
        let found = lines(&[&long, b"yy\nshort\n"]);
        assert_eq!(found[0].0.len(), OUTPUT_LINE_BYTES_MAX);
        assert_eq!(found[0].1, 12);
        assert_eq!(found[1], ("short".to_owned(), 0));
    }

    #[test]
    fn after_a_skip_reading_resumes_at_a_line_start() {
        let mut found = Vec::new();
        let mut splitter = Splitter::default();
        splitter.feed(b"one\ntwo-", |line| found.push(line.bytes.to_vec()));
        splitter.skip(b"two\nthree-");
        splitter.feed(b"three\nfour\n", |line| found.push(line.bytes.to_vec()));
        assert_eq!(found, [b"one".to_vec(), b"four".to_vec()]);
    }

    #[test]
    fn a_flood_is_counted_to_the_byte_and_resumes_when_the_budget_has_refilled() {
        let mut budget = Budget::new(Instant::ZERO);
        let mut now = Instant::ZERO;
        let (mut kept, mut dropped, mut said) = (0u64, 0u64, 0u64);
        const CHUNK: usize = 32 * 1024;
        // A gigabyte in ten seconds.
        for _ in 0..32 * 1024 {
            now = now + Duration::from_micros(305);
            let (admitted, told) = budget.admit(now, CHUNK);
            if admitted {
                kept += CHUNK as u64;
            } else {
                dropped += CHUNK as u64;
            }
            said += told.map_or(0, |told| told.now);
        }
        said += budget.take_dropped(now).map_or(0, |told| told.now);
        assert_eq!(said, dropped);
        let expected = BURST as u64 + 10 * u64::from(OUTPUT_BYTES_PER_SECOND_MAX);
        assert!(kept <= expected + 64 * 1024, "{kept} of at most {expected}");
        assert!(kept >= expected - 2 * RESUME_AT as u64, "{kept} of {expected}");
    }

    #[test]
    fn the_rest_of_a_stack_trace_is_as_bad_as_its_head() {
        let mut tone = Tone::default();
        let said: Vec<&str> = ["Traceback (most recent call last):", "  File \"x.py\", line 1", "fine again"]
            .iter()
            .map(|text| tone.of(text, line::read(text).severity).text())
            .collect();
        assert_eq!(said, ["error", "error", "info"]);
    }

    #[tokio::test]
    async fn a_stream_becomes_console_lines_with_their_colours() {
        let (output, console) = output(&Clock::system());
        output.pump(&b"\x1b[32mgreen\x1b[0m\r\nlast without end"[..], LineKind::Stdout).await;
        let texts: Vec<String> = console.page(0, 10).lines.iter().map(|line| line.text.to_string()).collect();
        assert_eq!(texts, ["\x1b[32mgreen\x1b[0m", "last without end"]);
    }

    #[tokio::test]
    async fn a_prompt_is_shown_although_its_line_does_not_end() {
        let (output, console) = output(&Clock::system());
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut changes = console.changes();
        let pump = tokio::spawn(async move { output.pump(reader, LineKind::Stdout).await });
        tokio::io::AsyncWriteExt::write_all(&mut writer, b"Password: ").await.expect("open");
        changes.changed().await.expect("a line without its end");
        assert_eq!(console.page(0, 10).lines[0].text.as_ref(), "Password: ");
        drop(writer);
        pump.await.expect("ends with the stream");
    }

    #[tokio::test]
    async fn a_gigabyte_is_read_to_its_end_and_what_is_kept_stays_bounded() {
        let (output, console) = output(&Clock::system());
        let flood = tokio::io::repeat(b'\n').take(1 << 29);
        output.pump(flood, LineKind::Stdout).await;
        let endless_line = tokio::io::repeat(b'y').take(1 << 29);
        output.pump(endless_line, LineKind::Stdout).await;
        let page = console.page(0, usize::MAX);
        let said = page.lines.iter().filter(|line| line.kind == LineKind::Lifecycle).count();
        assert!(said > 0, "what was dropped is said");
        let kept: usize = page.lines.iter().map(|line| line.text.len()).sum();
        assert!(kept < 64 * 1024 * 1024, "{kept}");
    }
}
