//! Conversations of real clients with RabbitMQ, frame by frame: every byte must be understood, said back unchanged and shown as
//! the text beside it. `UPDATE=1` writes that text anew; look at the difference before committing it.
//!
//! A line is `> HEX | TEXT` (client to server) or `< HEX | TEXT` (server to client). `amqp/README.md` says how they were made.

mod mutate;
mod replay;

use reactor::wire::amqp::frame::{ContentHeader, FRAME_BODY, FRAME_END, FRAME_HEAD_BYTES, FRAME_HEADER, FRAME_METHOD, FrameHead};
use reactor::wire::amqp::{Method, Properties, encode, table};
use reactor::wire::trace;
use std::path::{Path, PathBuf};

/// One recorded frame.
pub struct Line {
    pub by_client: bool,
    pub bytes: Vec<u8>,
    text: String,
}

/// Every recorded conversation by file name.
pub fn conversations() -> Vec<(String, Vec<Line>)> {
    files().into_iter().map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), read(&path))).collect()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/amqp");
    let entries = std::fs::read_dir(folder).expect("the folder of recordings").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "frames")).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Vec<Line> {
    let line = |line: &str| {
        let (mark, rest) = line.split_once(' ').expect("a direction");
        let (hex, text) = rest.split_once(" | ").unwrap_or((rest, ""));
        Line { by_client: mark == ">", bytes: from_hex(hex), text: text.to_owned() }
    };
    std::fs::read_to_string(path).expect("a readable recording").lines().map(line).collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half an octet in {hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits")).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_frame_reads_as_the_text_beside_it() {
    let update = std::env::var_os("UPDATE").is_some();
    for path in files() {
        let mut anew = String::new();
        for line in read(&path) {
            let text = trace::line(&line.bytes);
            assert!(!text.contains("broken"), "{}: {text}", path.display());
            assert!(update || text == line.text, "{}:\n expected {}\n      got {text}", path.display(), line.text);
            let mark = if line.by_client { ">" } else { "<" };
            anew.push_str(&format!("{mark} {} | {text}\n", to_hex(&line.bytes)));
        }
        if update {
            std::fs::write(&path, anew).expect("the recording can be written");
        }
    }
}

#[test]
fn every_frame_is_encoded_again_byte_for_byte() {
    let mut methods = std::collections::BTreeSet::new();
    for (name, lines) in conversations() {
        for line in lines.iter().filter(|line| line.bytes[0] != b'A') {
            let head = FrameHead::read(&line.bytes).expect("a whole frame");
            let payload = &line.bytes[FRAME_HEAD_BYTES..line.bytes.len() - 1];
            let mut again = Vec::new();
            match head.kind {
                FRAME_METHOD => {
                    let method = Method::decode(payload).expect("a known method");
                    methods.insert(method.name());
                    encode::method(&mut again, head.channel, &method);
                }
                FRAME_HEADER => {
                    let header = ContentHeader::decode(payload).expect("a content header");
                    let list = Properties::check(header.properties).expect("good properties").to_list();
                    if let Some(headers) = list.headers {
                        assert_eq!(table::encoded(&headers.to_table()), headers.as_bytes(), "{name}");
                    }
                    again.extend_from_slice(&line.bytes[..FRAME_HEAD_BYTES + 12]);
                    list.write(&mut again);
                    again.push(FRAME_END);
                }
                FRAME_BODY => {
                    again.extend_from_slice(&head.to_bytes());
                    again.extend_from_slice(payload);
                    again.push(FRAME_END);
                }
                _ => again.extend_from_slice(&encode::HEARTBEAT),
            }
            assert_eq!(to_hex(&again), to_hex(&line.bytes), "{name}: {}", line.text);
        }
    }
    // Nobody sends these any more, or no client in the recordings does.
    let unseen = ["connection.secure", "connection.secure-ok", "access.request", "access.request-ok", "basic.recover-async"];
    let missing: Vec<_> =
        reactor::wire::amqp::method::METHODS.iter().map(|(_, name)| *name).filter(|name| !methods.contains(name)).collect();
    assert_eq!(missing, unseen, "methods without a recording");
}
