//! Request paths: normalised before anything is decided by them, then read as a call key or as service, version and rest
//! (service contract §2, §3, §6).
//!
//! ```text
//!   /Greeter/v2/Say%2E/../Hello        as received
//!   /Greeter/v2/Hello                  normalised (RFC 3986 §6.2.2): what upstreams see
//!   greeter.v2.hello                   the key a call is routed by
//!   └─ prefix ──┘└ rest ┘              what is taken off for an HTTP service
//! ```

use crate::kernel::name;
use std::borrow::Cow;

/// Why a path is refused with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathRefused {
    #[error("the path does not begin with `/`")]
    NotAbsolute,
    #[error("`%` in the path is not followed by two hexadecimal digits")]
    BadEncoding,
    #[error("the path holds an encoded dot segment, which readers on the way may resolve differently")]
    EncodedDotSegment,
}

/// Percent-decodes what needs no encoding, encodes what does, writes the rest of the triplets in upper case and resolves dot
/// segments. A path already in that form is borrowed.
pub(super) fn normalise(path: &str) -> Result<Cow<'_, str>, PathRefused> {
    if !path.starts_with('/') {
        return if path.is_empty() { Ok(Cow::Borrowed("/")) } else { Err(PathRefused::NotAbsolute) };
    }
    if !path.contains('%') && !path.contains("/.") && path.is_ascii() {
        return Ok(Cow::Borrowed(path));
    }
    let mut kept: Vec<Cow<'_, str>> = Vec::new();
    let mut segments = path[1..].split('/').peekable();
    while let Some(raw) = segments.next() {
        let segment = decode_unreserved(raw)?;
        if raw.contains('%') && hides_dot_segment(&segment) {
            return Err(PathRefused::EncodedDotSegment);
        }
        let is_last = segments.peek().is_none();
        match segment.as_ref() {
            "." if is_last => kept.push(Cow::Borrowed("")),
            "." => {}
            ".." => {
                kept.pop();
                if is_last {
                    kept.push(Cow::Borrowed(""));
                }
            }
            _ => kept.push(segment),
        }
    }
    let mut normal = String::with_capacity(path.len());
    for segment in &kept {
        normal.push('/');
        normal.push_str(segment);
    }
    if normal.is_empty() {
        normal.push('/');
    }
    Ok(Cow::Owned(normal))
}

fn decode_unreserved(segment: &str) -> Result<Cow<'_, str>, PathRefused> {
    if !segment.contains('%') && segment.is_ascii() {
        return Ok(Cow::Borrowed(segment));
    }
    let mut decoded = String::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            if byte.is_ascii() {
                decoded.push(byte as char)
            } else {
                push_encoded(&mut decoded, byte)
            }
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| (byte as char).to_digit(16)).ok_or(PathRefused::BadEncoding);
        let byte = (digit()? * 16 + digit()?) as u8;
        if is_unreserved(byte) { decoded.push(byte as char) } else { push_encoded(&mut decoded, byte) }
    }
    Ok(Cow::Owned(decoded))
}

fn push_encoded(text: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(HEX[usize::from(byte >> 4)] as char);
    text.push(HEX[usize::from(byte & 15)] as char);
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a segment is a dot segment, or would be one for a reader that also decodes `%2F` and `%5C`.
fn hides_dot_segment(segment: &str) -> bool {
    let is_dots = |part: &str| matches!(part, "." | "..");
    is_dots(segment) || segment.replace("%5C", "%2F").split("%2F").any(is_dots)
}

/// The key of a normalised path: `/Greeter/Say/Hello` is `greeter.say.hello`, `/` is empty.
pub(super) fn key(path: &str) -> String {
    let mut key = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        if !key.is_empty() {
            key.push('.');
        }
        for letter in segment.chars() {
            match letter {
                '.' => key.push_str("%2e"),
                '*' => key.push_str("%2a"),
                '#' => key.push_str("%23"),
                _ => key.push(letter.to_ascii_lowercase()),
            }
        }
    }
    key
}

/// The version a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// No version, or `v0`: the highest that is ready.
    Highest,
    Exactly(u32),
}

/// A normalised path seen as one of a service's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServicePath<'a> {
    path: &'a str,
    /// The first segment in lower case, whether or not such a service exists.
    pub(super) service: Cow<'a, str>,
    service_end: usize,
    /// The second segment, if it reads as a version, and where it ends.
    version: Option<(Wanted, usize)>,
}

impl<'a> ServicePath<'a> {
    /// `None` if the first segment cannot name a service.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        let (service, service_end) = segment_at(path, 0)?;
        let service = if service.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(service.to_ascii_lowercase())
        } else {
            Cow::Borrowed(service)
        };
        if !name::is_service(&service) {
            return None;
        }
        let version = segment_at(path, service_end).and_then(|(word, end)| Some((wanted(word)?, end)));
        Some(ServicePath { path, service, service_end, version })
    }

    /// What a service that declares versions is asked for.
    pub(super) fn wanted(&self) -> Wanted {
        self.version.map_or(Wanted::Highest, |(wanted, _)| wanted)
    }

    /// `/{service}`, with `/vN` if the service declares versions and the path has one; as received.
    pub(super) fn prefix(&self, declares_versions: bool) -> &'a str {
        &self.path[..self.prefix_end(declares_versions)]
    }

    /// What is left for the service: it begins with exactly one `/`, since `//host` would read as an authority in a redirect.
    pub(super) fn rest(&self, declares_versions: bool) -> &'a str {
        let rest = &self.path[self.prefix_end(declares_versions)..];
        let slashes = rest.len() - rest.trim_start_matches('/').len();
        if slashes == 0 { "/" } else { &rest[slashes - 1..] }
    }

    fn prefix_end(&self, declares_versions: bool) -> usize {
        match self.version {
            Some((_, end)) if declares_versions => end,
            _ => self.service_end,
        }
    }
}

/// The first segment at or after `from` that is not empty, and where it ends.
fn segment_at(path: &str, from: usize) -> Option<(&str, usize)> {
    let rest = &path[from..];
    let start = from + (rest.len() - rest.trim_start_matches('/').len());
    let end = path[start..].find('/').map_or(path.len(), |length| start + length);
    (start < end).then(|| (&path[start..end], end))
}

fn wanted(word: &str) -> Option<Wanted> {
    let word = word.to_ascii_lowercase();
    if word == "v0" {
        return Some(Wanted::Highest);
    }
    name::version(&word).map(Wanted::Exactly)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key_of(path: &str) -> String {
        key(&normalise(path).expect("a good path"))
    }

    #[test]
    fn the_contracts_example_becomes_its_key() {
        assert_eq!(key_of("/Greeter/Say/Hello"), "greeter.say.hello");
        assert_eq!(key_of("/"), "");
        assert_eq!(key_of(""), "");
    }

    #[test]
    fn empty_segments_are_dropped_from_keys() {
        assert_eq!(key_of("//greeter///hello/"), "greeter.hello");
    }

    #[test]
    fn letters_that_mean_something_in_keys_are_escaped() {
        assert_eq!(key_of("/a/b.c/d*/%23x"), "a.b%2ec.d%2a.%23x");
        assert_eq!(key_of("/a/%2A"), "a.%2a");
        assert_eq!(key_of("/a/caf%C3%A9"), "a.caf%c3%a9");
        assert_eq!(key_of("/a/café"), "a.caf%c3%a9");
        assert_eq!(key_of("/a/x%2Fy"), "a.x%2fy");
    }

    #[test]
    fn unreserved_letters_are_decoded_and_the_rest_kept() {
        assert_eq!(normalise("/%67reeter/%7Eann/%3a%20").expect("good"), "/greeter/~ann/%3A%20");
        assert!(matches!(normalise("/greeter/hello").expect("good"), Cow::Borrowed(_)));
    }

    #[test]
    fn dot_segments_are_resolved() {
        for (path, normal) in [
            ("/a/./b/../c", "/a/c"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/../../a", "/a"),
            ("/..", "/"),
            ("/.", "/"),
            ("/a/.b/..c", "/a/.b/..c"),
            ("/a//../b", "/a/b"),
        ] {
            assert_eq!(normalise(path).expect("good"), normal, "{path}");
        }
    }

    #[test]
    fn encoded_dot_segments_are_refused() {
        for path in ["/a/%2e%2e/b", "/a/%2E", "/a/.%2e/b", "/a/..%2fb", "/a/x%2f..%2fb", "/a/..%5Cb", "/%2e"] {
            assert_eq!(normalise(path), Err(PathRefused::EncodedDotSegment), "{path}");
        }
        assert!(normalise("/a/%2ehidden/b%2e").is_ok(), "dots inside a name are no dot segment");
    }

    #[test]
    fn broken_encodings_and_relative_paths_are_refused() {
        for path in ["/a/%", "/a/%2", "/a/%zz", "/a/%+1"] {
            assert_eq!(normalise(path), Err(PathRefused::BadEncoding), "{path}");
        }
        assert_eq!(normalise("a/b"), Err(PathRefused::NotAbsolute));
    }

    #[test]
    fn a_service_path_gives_prefix_and_rest() {
        let path = ServicePath::of("/Orders/v2/items/7").expect("a service");
        assert_eq!((path.service.as_ref(), path.wanted()), ("orders", Wanted::Exactly(2)));
        assert_eq!((path.prefix(true), path.rest(true)), ("/Orders/v2", "/items/7"));
        assert_eq!((path.prefix(false), path.rest(false)), ("/Orders", "/v2/items/7"));
        let bare = ServicePath::of("/orders").expect("a service");
        assert_eq!((bare.prefix(true), bare.rest(true), bare.wanted()), ("/orders", "/", Wanted::Highest));
        assert_eq!(ServicePath::of("/orders/v0/x").expect("a service").wanted(), Wanted::Highest);
        assert_eq!(ServicePath::of("/orders/v01/x").expect("a service").version, None);
    }

    #[test]
    fn the_rest_never_begins_with_two_slashes() {
        assert_eq!(ServicePath::of("/orders//evil.example/x").expect("a service").rest(false), "/evil.example/x");
        assert_eq!(ServicePath::of("//orders/a//b/").expect("a service").rest(false), "/a//b/");
    }

    #[test]
    fn first_segments_that_name_no_service_are_none() {
        for path in ["/", "/.reactor/x", "/v2/x", "/reactor/x", "/a.b/c", "/caf%C3%A9"] {
            assert_eq!(ServicePath::of(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(path in "/[a-zA-Z0-9./%é~ -]{0,40}") {
            if let Ok(once) = normalise(&path) {
                let twice = normalise(&once).expect("a normal path is good");
                prop_assert_eq!(once.as_ref(), twice.as_ref());
                prop_assert!(once.starts_with('/'));
                prop_assert!(!once.split('/').any(|segment| matches!(segment, "." | "..")));
            }
        }

        #[test]
        fn keys_hold_no_empty_words_and_no_wildcards(path in "/[a-zA-Z0-9./%*é~#-]{0,40}") {
            if let Ok(normal) = normalise(&path) {
                let key = key(&normal);
                prop_assert!(key.is_empty() || key.split('.').all(|word| !word.is_empty()));
                prop_assert!(!key.contains(['*', '#']) && !key.bytes().any(|byte| byte.is_ascii_uppercase()));
            }
        }
    }
}
