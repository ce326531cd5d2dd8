//! The dashboard's files, embedded by `build.rs` or, while somebody works on them, read from a directory.
//!
//! Paths that name no file and are a page load (the client accepts HTML, the name does not end like a file) get `index.html`: the
//! router in the browser takes it from there. `/api` never falls back. Files whose name carries a content hash may be kept for ever;
//! everything else is revalidated by its ETag.

use super::problem::Problem;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(rust_embed::RustEmbed)]
#[folder = "$OUT_DIR/ui"]
struct Embedded;

/// Where the files come from.
#[derive(Clone, Debug, Default)]
pub enum Ui {
    #[default]
    Embedded,
    /// `REACTOR_UI_DIR`
    Disk(Arc<Path>),
}

const INDEX: &str = "index.html";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// Scripts, styles, fonts and connections from here only; inline styles are what chart and table code sets. No frames, no plug-ins.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Endings of the files a dashboard is made of.
const FILE_SUFFIXES: &[&str] = &[
    "br",
    "css",
    "gz",
    "htm",
    "html",
    "ico",
    "jpg",
    "js",
    "json",
    "map",
    "mjs",
    "png",
    "svg",
    "txt",
    "wasm",
    "webmanifest",
    "webp",
    "woff2",
];

struct File {
    bytes: Cow<'static, [u8]>,
    /// The first half of the content's SHA-256, in hex.
    hash: String,
}

impl Ui {
    /// `built`, or `fallback` where the binary carries only the page that says how to get the dashboard.
    pub fn kind(&self) -> &'static str {
        match self {
            Ui::Embedded => env!("REACTOR_UI_KIND"),
            Ui::Disk(_) => "built",
        }
    }

    pub fn from_dir(dir: PathBuf) -> Self {
        Ui::Disk(dir.into())
    }

    pub(super) async fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
        if method != Method::GET && method != Method::HEAD {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} takes GET and HEAD", uri.path()));
            return ([(header::ALLOW, "GET, HEAD")], problem).into_response();
        }
        let Some(path) = file_path(uri.path()) else {
            return Problem::invalid(format!("{} is not a path of this dashboard", uri.path())).into_response();
        };
        if let Some((file, encoding)) = self.negotiate(&path, headers).await {
            return respond(&path, &file, encoding, headers);
        }
        if is_page(&path, headers)
            && let Some((file, encoding)) = self.negotiate(INDEX, headers).await
        {
            return respond(INDEX, &file, encoding, headers);
        }
        Problem::not_found(format!("nothing is at {}", uri.path()))
            .next("the API is under /api/v1, the dashboard at /")
            .into_response()
    }

    /// The file in the best encoding that both sides have.
    async fn negotiate(&self, path: &str, headers: &HeaderMap) -> Option<(File, Option<&'static str>)> {
        for (encoding, suffix) in [("br", ".br"), ("gzip", ".gz")] {
            if accepts_encoding(headers, encoding)
                && let Some(file) = self.read(&format!("{path}{suffix}")).await
            {
                return Some((file, Some(encoding)));
            }
        }
        self.read(path).await.map(|file| (file, None))
    }

    async fn read(&self, path: &str) -> Option<File> {
        match self {
            Ui::Embedded => {
                let file = Embedded::get(path)?;
                Some(File { hash: hex(&file.metadata.sha256_hash()[..16]), bytes: file.data })
            }
            Ui::Disk(dir) => {
                let bytes = tokio::fs::read(dir.join(path)).await.ok()?;
                let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
                Some(File { hash: hex(&digest.as_ref()[..16]), bytes: bytes.into() })
            }
        }
    }
}

/// The relative file path that a request path names; `None` for anything that could leave the directory.
fn file_path(path: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(path.trim_start_matches('/')).decode_utf8().ok()?;
    let inside = decoded.split('/').all(|part| part != ".." && part != "." && !part.contains(['\\', '\0', ':']));
    let path = if decoded.is_empty() { INDEX } else { decoded.trim_end_matches('/') };
    inside.then(|| path.to_owned())
}

/// A page load: it accepts HTML and does not ask for a file. A dot alone makes no file, queues are called `worker.orders`.
fn is_page(path: &str, headers: &HeaderMap) -> bool {
    let html = headers.get_all(header::ACCEPT).iter().any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")));
    let last = path.rsplit('/').next().unwrap_or_default();
    let file = path.starts_with("assets/") || last.rsplit_once('.').is_some_and(|(_, suffix)| FILE_SUFFIXES.contains(&suffix));
    html && !file
}

/// Whether Accept-Encoding names `wanted` with a quality above zero (RFC 9110 §12.5.3). `*` is not taken: nobody sends it who cannot
/// name what it means.
fn accepts_encoding(headers: &HeaderMap, wanted: &str) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).any(
        |item| {
            let mut parts = item.split(';').map(str::trim);
            let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
            let refused = parts.any(|part| {
                part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")).is_some_and(|quality| quality.parse() == Ok(0.0_f32))
            });
            named && !refused
        },
    )
}

/// Whether the name carries a content hash as Vite writes it: `name-` and eight or more URL-safe base64 characters.
fn is_hashed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let in_assets = path.starts_with("assets/");
    in_assets && stem.len() >= 10 && stem.is_char_boundary(stem.len() - 9) && stem.as_bytes()[stem.len() - 9] == b'-'
}

fn respond(path: &str, file: &File, encoding: Option<&'static str>, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}{}\"", file.hash, encoding.map(|name| format!("-{name}")).unwrap_or_default());
    let cache = if is_hashed(path) { IMMUTABLE } else { "no-cache" };
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let fresh = known.flat_map(|text| text.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if fresh {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let bytes = match &file.bytes {
            Cow::Borrowed(bytes) => bytes::Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes::Bytes::copy_from_slice(bytes),
        };
        ([(header::CONTENT_TYPE, content_type(path))], bytes).into_response()
    };
    let out = response.headers_mut();
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    out.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        out.insert(header::ETAG, tag);
    }
    if let Some(encoding) = encoding
        && !fresh
    {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn content_type(path: &str) -> String {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    match (guess.type_().as_str(), guess.subtype().as_str()) {
        ("text", _) | ("application", "javascript" | "json") => format!("{guess}; charset=utf-8"),
        _ => guess.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a valid value"))).collect()
    }

    async fn get(ui: &Ui, path: &str, pairs: &[(header::HeaderName, &str)]) -> Response {
        ui.answer(&Method::GET, &path.parse().expect("a valid path"), &headers(pairs)).await
    }

    fn sample() -> (tempfile::TempDir, Ui) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("assets")).expect("created");
        for (name, text) in [
            ("index.html", "<!doctype html>"),
            ("assets/index-BsdE3f4x.js", "plain"),
            ("assets/index-BsdE3f4x.js.br", "packed"),
            ("assets/index-BsdE3f4x.js.gz", "zipped"),
            ("logo.svg", "<svg/>"),
        ] {
            std::fs::write(dir.path().join(name), text).expect("written");
        }
        let ui = Ui::from_dir(dir.path().to_owned());
        (dir, ui)
    }

    #[tokio::test]
    async fn pages_fall_back_to_the_index_only_for_browsers_and_never_for_files() {
        let (_dir, ui) = sample();
        let html = [(header::ACCEPT, "text/html,application/xhtml+xml")];
        assert_eq!(get(&ui, "/", &html).await.status(), 200);
        let page = get(&ui, "/traces/4bf92f35", &html).await;
        assert_eq!(page.status(), 200);
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(page.headers()["cache-control"], "no-cache");
        assert!(page.headers()["content-security-policy"].to_str().expect("ascii").contains("frame-ancestors 'none'"));
        assert_eq!(get(&ui, "/queues/%2F/worker.orders", &html).await.status(), 200);
        assert_eq!(get(&ui, "/gone.svg", &html).await.status(), 404);
        assert_eq!(get(&ui, "/traces/4bf92f35", &[(header::ACCEPT, "*/*")]).await.status(), 404);
        assert_eq!(get(&ui, "/assets/gone-12345678.js", &html).await.status(), 404);
    }

    #[tokio::test]
    async fn hashed_files_are_kept_for_ever_in_the_best_encoding() {
        let (_dir, ui) = sample();
        let file = "/assets/index-BsdE3f4x.js";
        let best = get(&ui, file, &[(header::ACCEPT_ENCODING, "gzip, deflate, br")]).await;
        assert_eq!(best.headers()["content-encoding"], "br");
        assert_eq!(best.headers()["cache-control"], IMMUTABLE);
        assert_eq!(best.headers()["content-type"], "text/javascript; charset=utf-8");
        let zipped = get(&ui, file, &[(header::ACCEPT_ENCODING, "gzip, br;q=0")]).await;
        assert_eq!(zipped.headers()["content-encoding"], "gzip");
        let plain = get(&ui, file, &[]).await;
        assert!(plain.headers().get("content-encoding").is_none());
        assert_eq!(get(&ui, "/logo.svg", &[]).await.headers()["cache-control"], "no-cache");
    }

    #[tokio::test]
    async fn an_unchanged_file_is_not_sent_again() {
        let (_dir, ui) = sample();
        let first = get(&ui, "/logo.svg", &[]).await;
        let tag = first.headers()["etag"].to_str().expect("ascii").to_owned();
        assert_eq!(get(&ui, "/logo.svg", &[(header::IF_NONE_MATCH, &tag)]).await.status(), 304);
        assert_eq!(get(&ui, "/logo.svg", &[(header::IF_NONE_MATCH, "\"other\"")]).await.status(), 200);
    }

    #[tokio::test]
    async fn paths_cannot_leave_the_directory() {
        let (_dir, ui) = sample();
        for bad in ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "/assets/..%2f..%2fetc/passwd", "/a%00b", "/c:%5cwindows"] {
            assert_eq!(get(&ui, bad, &[(header::ACCEPT, "text/html")]).await.status(), 400, "{bad}");
        }
    }

    #[tokio::test]
    async fn the_embedded_page_is_there_in_every_build() {
        let page = get(&Ui::Embedded, "/", &[(header::ACCEPT, "text/html")]).await;
        assert_eq!(page.status(), 200);
        assert!(["built", "fallback"].contains(&Ui::Embedded.kind()));
    }
}
