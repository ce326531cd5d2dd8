//! The state machine over a connection's bytes: where each request's head and body begin and end.

use super::chunk::{Chunks, ChunksEnd};
use super::head::{self, Framing, HEAD_BYTES_MAX, REQUEST_LINE_BYTES_MAX, Refused};
use memchr::memchr;

/// Empty lines tolerated before a request line (RFC 9112 §2.2).
const EMPTY_LINES_MAX: usize = 2;

#[derive(Debug)]
pub struct Guard {
    state: State,
    passed_count: u64,
}

#[derive(Debug)]
enum State {
    Head(HeadSearch),
    Body { left: u64 },
    Chunks(Chunks),
    Refused,
    Broken,
}

/// What a scan found: the first `pass` bytes may be handed on, and why it stopped there.
#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    pub pass: usize,
    pub stop: Stop,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// Everything presented may pass.
    End,
    /// The rest is the beginning of a head. Present it again, with what follows it.
    Partial,
    /// The request that begins here must not pass; nor may anything behind it.
    Refused(Refused),
    /// The body of the request that passed is malformed here.
    Broken(&'static str),
}

/// What the bytes to come belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expecting {
    /// Nothing of the next request was seen.
    Request,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// Nothing that could pass.
    Nothing,
}

impl Guard {
    pub fn new() -> Self {
        Guard { state: State::Head(HeadSearch::default()), passed_count: 0 }
    }

    /// Heads that passed so far.
    pub fn passed_count(&self) -> u64 {
        self.passed_count
    }

    pub fn expecting(&self) -> Expecting {
        match self.state {
            State::Head(HeadSearch { searched: 0, .. }) => Expecting::Request,
            State::Head(_) => Expecting::Head,
            State::Body { .. } | State::Chunks(_) => Expecting::Body,
            State::Refused | State::Broken => Expecting::Nothing,
        }
    }

    /// Lets nothing pass any more; for a door that refuses by its own rules (time).
    pub fn refuse(&mut self) {
        self.state = State::Refused;
    }

    /// Reads on. `bytes` begins where the last scan's `pass` ended.
    pub fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut pass = 0;
        loop {
            let rest = &bytes[pass..];
            if rest.is_empty() {
                return Scan { pass, stop: Stop::End };
            }
            match &mut self.state {
                State::Head(search) => match search.find(rest) {
                    Ok(Some(length)) => match head::check(&rest[..length]) {
                        Ok(framing) => {
                            self.state = State::after_head(framing);
                            self.passed_count += 1;
                            pass += length;
                        }
                        Err(refused) => return self.stop_refused(pass, refused),
                    },
                    Ok(None) => return Scan { pass, stop: Stop::Partial },
                    Err(refused) => return self.stop_refused(pass, refused),
                },
                State::Body { left } => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= taken as u64;
                    pass += taken;
                    if *left == 0 {
                        self.state = State::Head(HeadSearch::default());
                    }
                }
                State::Chunks(chunks) => {
                    let (taken, end) = chunks.scan(rest);
                    pass += taken;
                    match end {
                        ChunksEnd::NotYet => {}
                        ChunksEnd::Complete => self.state = State::Head(HeadSearch::default()),
                        ChunksEnd::Malformed(why) => {
                            self.state = State::Broken;
                            return Scan { pass, stop: Stop::Broken(why) };
                        }
                    }
                }
                State::Refused | State::Broken => return Scan { pass, stop: Stop::Partial },
            }
        }
    }

    fn stop_refused(&mut self, pass: usize, refused: Refused) -> Scan {
        self.state = State::Refused;
        Scan { pass, stop: Stop::Refused(refused) }
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn after_head(framing: Framing) -> State {
        match framing {
            Framing::Length(0) => State::Head(HeadSearch::default()),
            Framing::Length(left) => State::Body { left },
            Framing::Chunked => State::Chunks(Chunks::new()),
        }
    }
}

/// The search for the end of a head, resumed where it stopped. Every line end is checked here, and not when the head is
/// complete: one that ends with LF alone may never complete it.
#[derive(Debug, Default)]
struct HeadSearch {
    /// Bytes presented so far that hold no end of the head.
    searched: usize,
    /// Where the line that is not complete yet begins.
    line_start: usize,
    empty_lines: usize,
    /// A line that is not empty was seen: the request line.
    begun: bool,
}

impl HeadSearch {
    /// The length of the head at the start of `bytes`, empty lines before it included, if it is complete.
    fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, Refused> {
        while let Some(distance) = memchr(b'\n', &bytes[self.searched..]) {
            let end = self.searched + distance;
            let line = bytes[self.line_start..end].strip_suffix(b"\r");
            let line = line.ok_or_else(|| Refused::bad("a line ends with LF alone; lines of HTTP/1.1 end with CR LF"))?;
            (self.searched, self.line_start) = (end + 1, end + 1);
            if line.is_empty() && self.begun {
                return if end >= HEAD_BYTES_MAX { Err(too_large()) } else { Ok(Some(end + 1)) };
            }
            if line.is_empty() {
                self.empty_lines += 1;
            }
            if self.empty_lines > EMPTY_LINES_MAX {
                return Err(Refused::bad("empty lines where a request line should be"));
            }
            if !self.begun && line.len() > REQUEST_LINE_BYTES_MAX {
                return Err(line_too_long());
            }
            self.begun |= !line.is_empty();
        }
        self.searched = bytes.len();
        if !self.begun && bytes.len() - self.line_start > REQUEST_LINE_BYTES_MAX {
            return Err(line_too_long());
        }
        if bytes.len() > HEAD_BYTES_MAX { Err(too_large()) } else { Ok(None) }
    }
}

fn too_large() -> Refused {
    Refused { status: 431, why: format!("the header section is larger than {HEAD_BYTES_MAX} bytes") }
}

fn line_too_long() -> Refused {
    Refused { status: 414, why: format!("the request line is longer than {REQUEST_LINE_BYTES_MAX} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(bytes: &[u8]) -> Scan {
        Guard::new().scan(bytes)
    }

    /// Status with which the request is refused; 0 if it passes whole.
    fn status(request: &str) -> u16 {
        match scan(request.as_bytes()).stop {
            Stop::End => 0,
            Stop::Refused(refused) => refused.status,
            other => panic!("{other:?} for {request:?}"),
        }
    }

    #[test]
    fn pipelined_requests_with_bodies_pass_whole() {
        let bytes = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /b HTTP/1.1\r\nHost: x\r\n\r\n\
            POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nt: v\r\n\r\nGET /d HTTP/1.0\r\n\r\n";
        assert_eq!(scan(bytes), Scan { pass: bytes.len(), stop: Stop::End });
    }

    #[test]
    fn a_refused_request_stops_behind_the_ones_before_it() {
        let good = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        let bad = b"GET /b HTTP/1.1\nHost: x\r\n\r\n";
        let mut guard = Guard::new();
        let found = guard.scan(&[&good[..], &bad[..]].concat());
        assert_eq!(found.pass, good.len());
        assert!(matches!(found.stop, Stop::Refused(Refused { status: 400, .. })));
        assert_eq!(guard.scan(good).pass, 0, "nothing passes after a refusal");
    }

    #[test]
    fn lines_that_end_with_lf_alone_are_refused_before_the_head_is_complete() {
        for head in ["GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: x\n", "\nGET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\n"]
        {
            assert!(matches!(scan(head.as_bytes()).stop, Stop::Refused(Refused { status: 400, .. })), "{head:?}");
        }
    }

    #[test]
    fn a_few_empty_lines_before_a_request_are_tolerated() {
        assert_eq!(status("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
        assert_eq!(status("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    }

    #[test]
    fn oversized_heads_are_431_and_oversized_request_lines_414() {
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "a".repeat(HEAD_BYTES_MAX))), 431);
        assert_eq!(status(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(REQUEST_LINE_BYTES_MAX))), 414);
        let endless = vec![b'a'; REQUEST_LINE_BYTES_MAX + 1];
        assert!(matches!(scan(&endless).stop, Stop::Refused(Refused { status: 414, .. })));
    }

    #[test]
    fn malformed_chunks_break_the_body_at_the_wrong_byte() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (body, good) in [
            ("0x0\r\n\r\n", 1),
            ("0_2\r\nab\r\n", 1),
            ("fffffffffffffffff\r\n", 16),
            ("3\nabc\r\n", 1),
            ("3;a\nb\r\nabc\r\n", 3),
            ("\r\n", 0),
            ("3\r\nabcd\r\n", 6),
            ("3\r\nabc\n", 6),
            ("-1\r\n", 0),
            ("+1\r\n", 0),
            ("3 \r\nabc\r\n", 2),
        ] {
            let found = scan(format!("{head}{body}").as_bytes());
            assert!(matches!(found.stop, Stop::Broken(_)), "{body:?}: {found:?}");
            assert_eq!(found.pass, head.len() + good, "{body:?}");
        }
    }

    #[test]
    fn what_is_awaited_is_known() {
        let mut guard = Guard::new();
        assert_eq!(guard.expecting(), Expecting::Request);
        guard.scan(b"GET ");
        assert_eq!(guard.expecting(), Expecting::Head);
        guard.scan(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na");
        assert_eq!(guard.expecting(), Expecting::Body);
        guard.scan(b"b");
        assert_eq!(guard.expecting(), Expecting::Request);
    }

    /// Feeds `bytes` in `pieces`, holding back what must be presented again; returns what passed and the last stop.
    fn feed(bytes: &[u8], pieces: &[usize]) -> (Vec<u8>, Stop) {
        let (mut guard, mut passed, mut held, mut at) = (Guard::new(), Vec::new(), Vec::new(), 0);
        let mut sizes = pieces.iter().copied().cycle();
        let mut stop = Stop::End;
        while at < bytes.len() {
            let size = sizes.next().unwrap_or(1).clamp(1, bytes.len() - at);
            held.extend_from_slice(&bytes[at..at + size]);
            at += size;
            let found = guard.scan(&held);
            passed.extend(held.drain(..found.pass));
            stop = found.stop;
            if matches!(stop, Stop::Refused(_) | Stop::Broken(_)) {
                break;
            }
        }
        (passed, stop)
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_verdict(
            pieces in proptest::collection::vec(1usize..40, 1..8),
            parts in proptest::collection::vec(0usize..9, 1..6),
        ) {
            const PARTS: [&str; 9] = [
                "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc\r\n0\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "GET  / HTTP/1.1\r\n\r\n",
                "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nx: \u{e9}\r\n\r\n",
            ];
            let bytes: String = parts.iter().map(|part| PARTS[*part]).collect();
            let (whole, whole_stop) = feed(bytes.as_bytes(), &[usize::MAX]);
            let (pieced, pieced_stop) = feed(bytes.as_bytes(), &pieces);
            prop_assert_eq!(whole, pieced);
            prop_assert_eq!(whole_stop, pieced_stop);
        }

        #[test]
        fn any_bytes_at_all_never_pass_more_than_was_given(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(scan(&bytes).pass <= bytes.len());
        }
    }
}
