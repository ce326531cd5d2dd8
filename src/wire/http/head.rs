//! One complete request head: is it unambiguous, and how is its body framed?

/// Fields of one request; more are 431.
pub const FIELDS_MAX: usize = 100;
/// A whole head in bytes; a larger one is 431. What a call carries over the bus is bounded more tightly
/// ([`crate::kernel::limit::CALL_HEADERS_BYTES_MAX`]).
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The request line in bytes; a longer one is 414.
pub const REQUEST_LINE_BYTES_MAX: usize = 16 * 1024;

/// Why a request may not pass, and the status to answer with. The connection closes behind the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    pub why: String,
}

impl Refused {
    pub(super) fn bad(why: impl Into<String>) -> Self {
        Refused { status: 400, why: why.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// Fields whose combination decides where the body ends.
#[derive(Default)]
struct FramingFields<'a> {
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
}

/// Checks a head that ends with its empty line and whose lines are known to end with CR LF.
pub(super) fn check(head: &[u8]) -> Result<Framing, Refused> {
    let mut lines = Lines(head).skip_while(|line| line.is_empty());
    let is_http_10 = check_request_line(lines.next().unwrap_or_default())?;
    let (mut fields, mut count) = (FramingFields::default(), 0);
    for line in lines.take_while(|line| !line.is_empty()) {
        count += 1;
        if count > FIELDS_MAX {
            return Err(Refused { status: 431, why: format!("more than {FIELDS_MAX} header fields") });
        }
        check_field(line, &mut fields)?;
    }
    framing(&fields, is_http_10)
}

struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// Whether the request is HTTP/1.0.
fn check_request_line(line: &[u8]) -> Result<bool, Refused> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(Refused::bad("the request line is not `METHOD TARGET VERSION` with single spaces"));
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(Refused::bad("the method is not a token"));
    }
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(Refused::bad("the request target holds control characters or is empty"));
    }
    if target.contains(&b'#') {
        return Err(Refused::bad("the request target holds a fragment; a client keeps `#…` to itself"));
    }
    match version {
        b"HTTP/1.1" => Ok(false),
        b"HTTP/1.0" => Ok(true),
        _ => Err(Refused::bad("the version is neither HTTP/1.1 nor HTTP/1.0")),
    }
}

fn check_field<'a>(line: &'a [u8], fields: &mut FramingFields<'a>) -> Result<(), Refused> {
    if matches!(line[0], b' ' | b'\t') {
        return Err(Refused::bad("a header field is folded over two lines"));
    }
    let Some(colon) = memchr::memchr(b':', line) else { return Err(Refused::bad("a header line without a colon")) };
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(Refused::bad(format!("`{}` is not a field name", printable(name))));
    }
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err(Refused::bad(format!("the field {} holds control characters", printable(name))));
    }
    if name.eq_ignore_ascii_case(b"content-length") && fields.content_length.replace(value).is_some() {
        return Err(Refused::bad("two Content-Length fields"));
    }
    if name.eq_ignore_ascii_case(b"transfer-encoding") && fields.transfer_encoding.replace(value).is_some() {
        return Err(Refused::bad("two Transfer-Encoding fields"));
    }
    Ok(())
}

fn framing(fields: &FramingFields<'_>, is_http_10: bool) -> Result<Framing, Refused> {
    match (fields.content_length, fields.transfer_encoding) {
        (None, None) => Ok(Framing::Length(0)),
        (Some(_), Some(_)) => Err(Refused::bad("Content-Length and Transfer-Encoding together")),
        (Some(length), None) => content_length(length),
        (None, Some(_)) if is_http_10 => Err(Refused::bad("Transfer-Encoding in an HTTP/1.0 request")),
        (None, Some(codings)) => transfer_encoding(codings),
    }
}

fn content_length(value: &[u8]) -> Result<Framing, Refused> {
    let digits = std::str::from_utf8(value).ok().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    // `u64::MAX` and the value below it are how the HTTP library marks chunked and close-delimited bodies.
    let length = digits.and_then(|digits| digits.parse().ok()).filter(|length| *length < u64::MAX - 1);
    length.map(Framing::Length).ok_or_else(|| Refused::bad("the Content-Length is not one number"))
}

fn transfer_encoding(value: &[u8]) -> Result<Framing, Refused> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(Framing::Chunked);
    }
    let codings: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let well_formed = codings.iter().all(|coding| !coding.is_empty());
    if well_formed && codings.last().is_some_and(is_chunked) && codings.iter().filter(|c| is_chunked(c)).count() == 1 {
        let why = format!("the transfer coding `{}`; only `chunked` is understood", printable(value));
        return Err(Refused { status: 501, why });
    }
    Err(Refused::bad(format!("Transfer-Encoding is `{}`: where the body ends cannot be known", printable(value))))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The first bytes of hostile text, fit to be shown.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().take(40).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str) -> Result<Framing, u16> {
        super::check(head.as_bytes()).map_err(|refused| refused.status)
    }

    fn with(fields: &str) -> Result<Framing, u16> {
        check(&format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n"))
    }

    #[test]
    fn plain_requests_are_framed_by_their_fields() {
        assert_eq!(check("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Ok(Framing::Length(0)));
        assert_eq!(with("Content-Length: 12"), Ok(Framing::Length(12)));
        assert_eq!(with("content-length:\t007 "), Ok(Framing::Length(7)));
        assert_eq!(with("Transfer-Encoding: Chunked"), Ok(Framing::Chunked));
    }

    #[test]
    fn content_length_beside_transfer_encoding_is_refused_in_either_order() {
        assert_eq!(with("Content-Length: 3\r\nTransfer-Encoding: chunked"), Err(400));
        assert_eq!(with("Transfer-Encoding: chunked\r\nContent-Length: 3"), Err(400));
    }

    #[test]
    fn content_lengths_that_are_not_one_number_are_refused() {
        for wrong in ["3, 3", "+3", "-3", "", "0x3", "3 3", "18446744073709551615", "99999999999999999999"] {
            assert_eq!(with(&format!("Content-Length: {wrong}")), Err(400), "{wrong}");
        }
        assert_eq!(with("Content-Length: 3\r\nContent-Length: 4"), Err(400));
        assert_eq!(with("Content-Length: 3\r\nContent-Length: 3"), Err(400));
        assert_eq!(with("Content-Length : 3"), Err(400));
    }

    #[test]
    fn transfer_encodings_other_than_chunked_are_refused() {
        for wrong in
            ["xchunked", "chunked, identity", "identity", "gzip", "chunked, chunked", "chunked,", ",chunked", "\"chunked\""]
        {
            assert_eq!(with(&format!("Transfer-Encoding: {wrong}")), Err(400), "{wrong}");
        }
        assert_eq!(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Err(400));
        assert_eq!(check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(400));
        assert_eq!(with("Transfer-Encoding: gzip, chunked"), Err(501));
    }

    #[test]
    fn malformed_heads_are_refused() {
        for wrong in [
            "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\ry: z\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\0\r\n\r\n",
            "G ET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.9\r\nHost: x\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
            "GET /\r\n\r\n",
            "GET /#fragment HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\n: empty\r\n\r\n",
            "GET / HTTP/1.1\r\nna(me: x\r\n\r\n",
        ] {
            assert_eq!(check(wrong), Err(400), "{wrong:?}");
        }
    }

    #[test]
    fn a_hundred_fields_pass_and_more_are_431() {
        let fields = |count: usize| (0..count).map(|n| format!("x-{n}: y\r\n")).collect::<String>();
        assert_eq!(check(&format!("GET / HTTP/1.1\r\n{}\r\n", fields(100))), Ok(Framing::Length(0)));
        assert_eq!(check(&format!("GET / HTTP/1.1\r\n{}\r\n", fields(101))), Err(431));
    }
}
