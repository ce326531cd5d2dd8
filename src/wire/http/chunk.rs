//! The chunked coding, strictly as RFC 9112 §7.1 writes it; only its boundaries, never its content.

/// Longest chunk extensions and longest trailer section of one body, in bytes; more is malformed.
const EXTENSION_BYTES_MAX: u32 = 4 * 1024;
const TRAILER_BYTES_MAX: u32 = 16 * 1024;
/// Hex digits of a chunk size; one more could overflow 64 bits.
const SIZE_DIGITS_MAX: u8 = 16;

#[derive(Debug)]
pub(super) struct Chunks {
    state: State,
    extension_bytes: u32,
    trailer_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    /// Whitespace after the size: allowed only before an extension.
    Blank {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    LastLf,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunksEnd {
    NotYet,
    Complete,
    Malformed(&'static str),
}

impl Chunks {
    pub(super) fn new() -> Self {
        Chunks { state: State::Size { value: 0, digits: 0 }, extension_bytes: 0, trailer_bytes: 0 }
    }

    /// Reads on; returns how many bytes are in order and whether the body ended with the last of them.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> (usize, ChunksEnd) {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Data { left } = self.state {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += taken;
                let left = left - taken as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                continue;
            }
            match self.step(bytes[at]) {
                Ok(Some(state)) => self.state = state,
                Ok(None) => return (at + 1, ChunksEnd::Complete),
                Err(why) => return (at, ChunksEnd::Malformed(why)),
            }
            at += 1;
        }
        (at, ChunksEnd::NotYet)
    }

    /// The state after one byte outside chunk data; `None` when the body is complete.
    fn step(&mut self, byte: u8) -> Result<Option<State>, &'static str> {
        Ok(Some(match (self.state, byte) {
            (State::Size { digits: 0, .. }, b'\r' | b'\n' | b';') => return Err("a chunk without a size"),
            (State::Size { value, .. }, b'\r') => State::SizeLf { size: value },
            (State::Size { value, .. }, b';') => State::Extension { size: value },
            (State::Size { value, digits: 1.. }, b' ' | b'\t') => State::Blank { size: value },
            (State::Size { value, digits }, _) => {
                let digit = (byte as char).to_digit(16).ok_or("a chunk size that is not hexadecimal")?;
                if digits == SIZE_DIGITS_MAX {
                    return Err("a chunk size of more than 64 bits");
                }
                State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (State::Blank { size }, b';') => State::Extension { size },
            (State::Blank { size }, b' ' | b'\t') if self.extension_byte()? => State::Blank { size },
            (State::Blank { .. }, _) => return Err("whitespace after a chunk size"),
            (State::Extension { size }, b'\r') => State::SizeLf { size },
            (State::Extension { .. }, b'\n' | 0) => return Err("a chunk extension that ends without CR LF"),
            (State::Extension { size }, _) if self.extension_byte()? => State::Extension { size },
            (State::SizeLf { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLf { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { value: 0, digits: 0 },
            (State::TrailerStart, b'\r') => State::LastLf,
            (State::TrailerStart | State::Trailer, b'\n' | 0) => return Err("a trailer line that ends without CR LF"),
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::TrailerStart | State::Trailer, _) if self.trailer_byte()? => State::Trailer,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::LastLf, b'\n') => return Ok(None),
            (State::DataCr | State::DataLf, _) => return Err("a chunk longer than its size"),
            _ => return Err("a chunk line that ends without CR LF"),
        }))
    }

    fn extension_byte(&mut self) -> Result<bool, &'static str> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES_MAX { Err("chunk extensions that are too long") } else { Ok(true) }
    }

    fn trailer_byte(&mut self) -> Result<bool, &'static str> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > TRAILER_BYTES_MAX { Err("a trailer section that is too long") } else { Ok(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_behind_its_trailers() {
        let mut chunks = Chunks::new();
        let bytes = b"A\r\n0123456789\r\n1 ;e=\"q\"\r\nx\r\n0\r\nx: y\r\n\r\nGET /";
        let (taken, end) = chunks.scan(bytes);
        assert_eq!((&bytes[taken..], end), (&b"GET /"[..], ChunksEnd::Complete));
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let long = "a".repeat(20_000);
        for body in [format!("1;{long}\r\n"), format!("0\r\n{long}\r\n\r\n")] {
            let (_, end) = Chunks::new().scan(body.as_bytes());
            assert!(matches!(end, ChunksEnd::Malformed(_)), "{end:?}");
        }
    }
}
