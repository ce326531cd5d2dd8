//! A worker's message as the head of an HTTP response (service contract §4). Pure: what cannot be HTTP is a reason in words.

use super::hygiene;
use crate::model::broker_header::is_broker_header;
use crate::model::call::ReplyPart;
use crate::model::table::Field;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

#[derive(Debug)]
pub(super) struct ReplyHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// Lines of one response head; a reply that wants more is refused.
const FIELD_LINES_MAX: usize = 256;

/// Codings of `content_encoding` that are HTTP's; anything else there is a charset or nothing.
const CODINGS: [&str; 4] = ["gzip", "br", "zstd", "deflate"];

/// Reads the first (or only) part.
pub(super) fn head(part: &ReplyPart) -> Result<ReplyHead, String> {
    let mut status = StatusCode::OK;
    let mut headers = HeaderMap::with_capacity(part.headers.0.len().min(FIELD_LINES_MAX));
    for (name, field) in part.headers.iter() {
        match name.strip_prefix(':') {
            Some("status") => status = read_status(field)?,
            Some("more") => {}
            Some(_) => return Err(format!("`{name}` is no reply field; `:status` and `:more` are")),
            None => append(&mut headers, name, field)?,
        }
        if headers.len() > FIELD_LINES_MAX {
            return Err(format!("more than {FIELD_LINES_MAX} header lines"));
        }
    }
    hygiene::strip_hop_by_hop(&mut headers);
    headers.remove(header::CONTENT_LENGTH);
    apply_properties(part, status, &mut headers)?;
    Ok(ReplyHead { status, headers })
}

/// Whether answers of this status have no body, whatever the worker sent.
pub(super) fn forbids_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn read_status(field: &Field) -> Result<StatusCode, String> {
    let number = match field {
        Field::Text(digits) if digits.len() == 3 && digits.iter().all(u8::is_ascii_digit) => {
            digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
        }
        _ => field.as_integer().unwrap_or(0),
    };
    let status = u16::try_from(number).ok().filter(|status| (200..=599).contains(status));
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    status.ok_or_else(|| "`:status` is not an integer or digits from 200 to 599".to_owned())
}

fn append(headers: &mut HeaderMap, name: &str, field: &Field) -> Result<(), String> {
    let lower = name.to_ascii_lowercase();
    if is_broker_header(&lower) {
        return Ok(());
    }
    let field_name = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| format!("`{name}` is not a field name"))?;
    match field {
        Field::Array(items) => {
            for item in items.iter().take(FIELD_LINES_MAX + 1) {
                let Field::Text(_) = item else { return Err(format!("the array `{name}` holds something else than strings")) };
                headers.append(field_name.clone(), value(name, item)?);
            }
        }
        _ => {
            headers.append(field_name, value(name, field)?);
        }
    }
    Ok(())
}

fn value(name: &str, field: &Field) -> Result<HeaderValue, String> {
    match field {
        Field::Text(bytes) => {
            HeaderValue::from_bytes(bytes).map_err(|_| format!("`{name}` holds CR, LF, NUL or another control character"))
        }
        _ => match field.as_integer() {
            Some(number) => Ok(HeaderValue::from(number)),
            None => Err(format!("`{name}` is neither a string nor an integer nor an array of strings")),
        },
    }
}

/// The properties speak where the fields are silent.
fn apply_properties(part: &ReplyPart, status: StatusCode, headers: &mut HeaderMap) -> Result<(), String> {
    if !headers.contains_key(header::CONTENT_TYPE)
        && let Some(kind) = part.content_type.as_deref().filter(|kind| !kind.is_empty())
    {
        let kind = HeaderValue::from_str(kind).map_err(|_| "the property content_type holds control characters".to_owned())?;
        headers.insert(header::CONTENT_TYPE, kind);
    }
    let encoding = part.content_encoding.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
    if CODINGS.contains(&encoding.as_str()) && !headers.contains_key(header::CONTENT_ENCODING) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(&encoding).expect("a coding's name is a field value"));
    }
    if let Some(charset) = charset(&encoding) {
        name_charset(headers, charset);
    }
    if !headers.contains_key(header::CONTENT_TYPE) && !part.body.is_empty() && !forbids_body(status) {
        let encoded = headers.contains_key(header::CONTENT_ENCODING);
        let kind = if !encoded && is_text(part) { "text/plain; charset=utf-8" } else { "application/octet-stream" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    Ok(())
}

/// The charset that some frameworks put where a content coding belongs.
fn charset(encoding: &str) -> Option<&str> {
    const FAMILIES: [&str; 4] = ["iso-8859-", "windows-125", "utf-16", "utf-32"];
    match encoding {
        "utf-8" | "utf8" => Some("utf-8"),
        "us-ascii" | "ascii" => Some("us-ascii"),
        "latin1" | "latin-1" => Some("iso-8859-1"),
        _ if FAMILIES.iter().any(|family| encoding.starts_with(family)) && encoding.len() <= 16 => Some(encoding),
        _ => None,
    }
}

/// Adds `; charset=` to a text type that has none.
fn name_charset(headers: &mut HeaderMap, charset: &str) {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else { return };
    let lower = kind.to_ascii_lowercase();
    if !lower.starts_with("text/") || lower.contains("charset=") {
        return;
    }
    if let Ok(named) = HeaderValue::from_str(&format!("{kind}; charset={charset}")) {
        headers.insert(header::CONTENT_TYPE, named);
    }
}

/// Valid UTF-8, or the beginning of it where more parts follow.
fn is_text(part: &ReplyPart) -> bool {
    match std::str::from_utf8(&part.body) {
        Ok(_) => true,
        Err(error) => !part.last && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::Table;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn part(headers: Table, body: &'static [u8]) -> ReplyPart {
        ReplyPart { headers, content_type: None, content_encoding: None, body: Bytes::from_static(body), last: true }
    }

    fn status_of(field: Field) -> Result<u16, String> {
        head(&part(Table::new().with(":status", field), b"")).map(|head| head.status.as_u16())
    }

    #[test]
    fn a_status_is_an_integer_or_digits_and_200_if_absent() {
        assert_eq!(head(&part(Table::new(), b"")).expect("good").status, StatusCode::OK);
        for field in [Field::I32(404), Field::U8(200), Field::I16(404), Field::I64(404), Field::text("404")] {
            assert!(status_of(field).is_ok());
        }
        for bad in [
            Field::I32(100),
            Field::I32(600),
            Field::I32(-1),
            Field::text("20"),
            Field::text("OK"),
            Field::text("+20"),
            Field::Bool(true),
            Field::F64(200.0),
        ] {
            assert!(status_of(bad.clone()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn fields_are_strings_integers_or_arrays_of_strings() {
        let cookies = Field::Array(vec![Field::text("a=1"), Field::text("b=2")]);
        let table = Table::new().with("Set-Cookie", cookies).with("x-count", Field::I64(7)).with("x-name", Field::text("ann"));
        let headers = head(&part(table, b"")).expect("good").headers;
        assert_eq!(headers.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!((&headers["x-count"], &headers["x-name"]), (&HeaderValue::from(7), &HeaderValue::from_static("ann")));
    }

    #[test]
    fn what_cannot_be_a_field_is_refused_by_name() {
        for (name, field) in [
            ("x", Field::text("a\r\nset-cookie: evil=1")),
            ("x", Field::text("a\nb")),
            ("x", Field::text("a\0b")),
            ("x", Field::Bool(true)),
            ("x", Field::F64(1.5)),
            ("x", Field::Table(Table::new())),
            ("x", Field::Void),
            ("x", Field::Array(vec![Field::I32(1)])),
            ("x y", Field::text("a")),
            ("x\r\n", Field::text("a")),
            ("", Field::text("a")),
            (":path", Field::text("/a")),
            (":", Field::text("/a")),
        ] {
            assert!(head(&part(Table::new().with(name, field.clone()), b"")).is_err(), "{name:?} {field:?}");
        }
    }

    #[test]
    fn fields_of_the_connection_and_of_the_broker_are_dropped() {
        let mut table = Table::new();
        for name in ["connection", "Transfer-Encoding", "keep-alive", "upgrade", "content-length", "x-death", "x-reactor-subject"]
        {
            table = table.with(name, Field::text("x"));
        }
        let table = table.with("x-death", Field::Array(vec![Field::Table(Table::new())]));
        assert!(head(&part(table, b"")).expect("good").headers.is_empty());
    }

    #[test]
    fn fields_win_over_properties() {
        let table = Table::new().with("content-type", Field::text("text/html")).with("content-encoding", Field::text("br"));
        let mut reply = part(table, b"x");
        reply.content_type = Some("application/json".into());
        reply.content_encoding = Some("gzip".into());
        let headers = head(&reply).expect("good").headers;
        assert_eq!(headers["content-type"], "text/html");
        assert_eq!(headers["content-encoding"], "br");
    }

    fn typed(content_type: Option<&str>, content_encoding: Option<&str>, body: &'static [u8]) -> HeaderMap {
        let mut reply = part(Table::new(), body);
        reply.content_type = content_type.map(str::to_owned);
        reply.content_encoding = content_encoding.map(str::to_owned);
        head(&reply).expect("good").headers
    }

    #[test]
    fn content_encoding_is_a_coding_or_a_charset_or_nothing() {
        for coding in ["gzip", "br", "zstd", "deflate", "GZIP"] {
            assert_eq!(typed(Some("text/html"), Some(coding), b"x")["content-encoding"], coding.to_ascii_lowercase());
        }
        let headers = typed(Some("text/html"), Some("utf-8"), b"x");
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert!(!headers.contains_key("content-encoding"));
        assert_eq!(typed(Some("application/json"), Some("utf-8"), b"x")["content-type"], "application/json");
        assert_eq!(typed(Some("text/html; charset=latin1"), Some("utf-8"), b"x")["content-type"], "text/html; charset=latin1");
        assert!(!typed(Some("text/html"), Some("binary"), b"x").contains_key("content-encoding"));
    }

    #[test]
    fn without_a_type_utf8_is_text_and_the_rest_octets_and_neither_is_sniffed() {
        let text = typed(None, None, "grüß".as_bytes());
        assert_eq!(text["content-type"], "text/plain; charset=utf-8");
        assert_eq!(text["x-content-type-options"], "nosniff");
        let octets = typed(None, None, b"\xff\xfe");
        assert_eq!(octets["content-type"], "application/octet-stream");
        assert_eq!(octets["x-content-type-options"], "nosniff");
        assert!(typed(None, None, b"").is_empty());
        assert!(!typed(Some("text/html"), None, b"x").contains_key("x-content-type-options"));
        assert_eq!(typed(None, Some("gzip"), b"x")["content-type"], "application/octet-stream");
    }

    #[test]
    fn a_part_cut_within_a_letter_is_still_text() {
        let mut reply = part(Table::new(), b"caf\xc3");
        reply.last = false;
        assert_eq!(head(&reply).expect("good").headers["content-type"], "text/plain; charset=utf-8");
        reply.last = true;
        assert_eq!(head(&reply).expect("good").headers["content-type"], "application/octet-stream");
    }

    proptest! {
        #[test]
        fn no_reply_can_put_a_line_end_into_the_head(name in ".{0,20}", value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(head) = head(&part(Table::new().with(&name, Field::Text(value.into())), b"")) {
                for (name, value) in &head.headers {
                    prop_assert!(!name.as_str().contains(['\r', '\n']));
                    prop_assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
            }
        }
    }
}
