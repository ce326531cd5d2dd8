//! What a test can hold of `src/ARCHITECTURE.md`: the floors, the banned calls with their replacement, files nobody declares, and
//! a ratchet on size. It reads tokens, not text, so that comments and strings never count; test modules are exempt from all but the
//! floors' direction.

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Floor of each top-level module. A module imports only lower floors and itself.
const FLOORS: &[(&str, u8)] = &[
    ("kernel", 0),
    ("model", 1),
    ("wire", 2),
    ("registry", 2),
    ("access", 3),
    ("broker", 3),
    ("gateway", 3),
    ("supervisor", 3),
    ("telemetry", 3),
    ("control", 4),
    ("net", 5),
    ("api", 5),
    ("node", 6),
    ("cli", 7),
    ("main", 8),
    ("lib", 7),
];

struct Ban {
    /// Ending of a path as written in code, `::`-joined.
    path: &'static str,
    instead: &'static str,
    allowed_in: &'static [&'static str],
}

const BANS: &[Ban] = &[
    Ban { path: "Instant::now", instead: "kernel::Clock::now", allowed_in: &["kernel/clock.rs"] },
    Ban { path: "SystemTime::now", instead: "kernel::Clock::unix_nanos", allowed_in: &["kernel/clock.rs"] },
    Ban { path: "TcpStream::connect", instead: "kernel::dial::tcp", allowed_in: &["kernel/dial.rs"] },
    Ban { path: "thread::sleep", instead: "a timer of tokio, or a deadline handed to the core", allowed_in: &["cli/bench/"] },
    Ban { path: "process::exit", instead: "an exit code returned to main", allowed_in: &["cli/", "supervisor/"] },
    Ban { path: "process::Command::new", instead: "supervisor::process", allowed_in: &["supervisor/", "cli/open.rs"] },
    Ban {
        path: "thread_rng",
        instead: "kernel::rng::Rng, seeded where behaviour must repeat, kernel::rng::secure for secrets",
        allowed_in: &[],
    },
];

/// Files that may touch the file system, besides tests.
const FILE_ACCESS: &[&str] = &["api/ui.rs", "cli/", "net/tls.rs", "node/", "supervisor/", "kernel/platform.rs"];

/// Longest file, in lines outside test modules, and the ones that were longer when the rule came (they may only shrink).
const FILE_LINES_MAX: usize = 600;
const LONG_FILES: &[(&str, usize)] = &[];

/// Longest function, in lines from its signature to its closing brace, and old ones that may only shrink.
const FUNCTION_LINES_MAX: usize = 70;
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

#[test]
fn arrows_between_floors_point_down() {
    let mut wrong = Vec::new();
    for source in sources() {
        let own = source.module();
        let own_floor = floor(&own).unwrap_or_else(|| panic!("{own} has no floor: add it to FLOORS and to ARCHITECTURE.md"));
        for (line, target) in source.crate_paths() {
            let Some(target_floor) = floor(&target) else { continue };
            if target != own && target_floor >= own_floor {
                wrong.push(format!("{}:{line}: {own} (floor {own_floor}) imports {target} (floor {target_floor})", source.name));
            }
        }
    }
    report("Arrows must point down; meet in node/wiring.rs through a port in model instead", wrong);
}

#[test]
fn banned_calls_stay_behind_their_door() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (line, path) in source.code_paths() {
            for ban in BANS {
                let hit = path == ban.path || path.ends_with(&format!("::{}", ban.path));
                if hit && !source.is_in(ban.allowed_in) {
                    wrong.push(format!("{}:{line}: {path}; use {}", source.name, ban.instead));
                }
            }
            let touches_files = path.starts_with("std::fs") || path.starts_with("tokio::fs") || path.starts_with("fs::");
            if touches_files && !source.is_in(FILE_ACCESS) {
                wrong.push(format!("{}:{line}: {path}; files are read and written only in {FILE_ACCESS:?}", source.name));
            }
        }
    }
    report("Banned calls", wrong);
}

#[test]
fn unsafe_code_stands_only_where_it_is_named() {
    let wrong = sources()
        .into_iter()
        .filter(|source| source.text.contains("allow(unsafe_code)") && source.name != "supervisor/platform.rs")
        .map(|source| source.name)
        .collect();
    report("unsafe code outside supervisor/platform.rs", wrong);
}

#[test]
fn every_source_file_is_declared_by_its_parent() {
    let mut declared: BTreeSet<String> = ["main.rs".into(), "lib.rs".into()].into();
    for source in sources() {
        let folder = match source.name.rsplit_once('/') {
            _ if source.name == "lib.rs" || source.name == "main.rs" => String::new(),
            Some((folder, "mod.rs")) => format!("{folder}/"),
            Some((folder, file)) => format!("{folder}/{}/", file.trim_end_matches(".rs")),
            None => format!("{}/", source.name.trim_end_matches(".rs")),
        };
        for words in source.tokens.windows(3) {
            if words[0].text == "mod" && words[2].text == ";" {
                declared.insert(format!("{folder}{}.rs", words[1].text));
                declared.insert(format!("{folder}{}/mod.rs", words[1].text));
            }
        }
    }
    let dead = sources().into_iter().map(|source| source.name).filter(|name| !declared.contains(name)).collect();
    report("Files no `mod` declares: delete or declare them", dead);
}

#[test]
fn files_and_functions_fit_their_size() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.lines_outside_tests();
        let allowed = LONG_FILES.iter().find(|(name, _)| *name == source.name).map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if lines > allowed {
            wrong.push(format!("{}: {lines} lines, at most {allowed}: two jobs in one room?", source.name));
        }
        for (name, line, lines) in source.functions() {
            let key = format!("{}::{name}", source.name);
            let allowed = LONG_FUNCTIONS.iter().find(|(name, _)| *name == key).map_or(FUNCTION_LINES_MAX, |(_, lines)| *lines);
            if lines > allowed {
                wrong.push(format!("{}:{line}: {name} has {lines} lines, at most {allowed}", source.name));
            }
        }
    }
    report("Too long", wrong);
}

#[test]
fn tests_wait_for_conditions_and_are_never_skipped() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files(&root().join("tests")).into_iter().chain(rust_files(&root().join("src"))) {
        if name.ends_with("tidy.rs") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            for (banned, instead) in [
                ("#[ignore", "delete or mend the test"),
                ("thread::sleep(", "wait_until(condition, deadline)"),
                ("assert!(true)", "assert something"),
            ] {
                if line.contains(banned)
                    && !name.ends_with("support.rs")
                    && !name.starts_with("bench/")
                    && !name.starts_with("cli/bench/")
                {
                    wrong.push(format!("{name}:{}: {banned}; {instead}", at + 1));
                }
            }
        }
    }
    report("Tests that wait blindly, are skipped or cannot fail", wrong);
}

#[test]
fn work_left_for_later_is_not_in_the_code() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (at, line) in source.text.lines().enumerate() {
            if ["TODO", "FIXME", "XXX"].iter().any(|mark| line.contains(mark)) {
                wrong.push(format!("{}:{}: {}", source.name, at + 1, line.trim()));
            }
        }
    }
    report("Marks of unfinished work", wrong);
}

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

fn report(rule: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{rule}:\n  {}\n", wrong.join("\n  "));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

struct Source {
    /// Path below `src`.
    name: String,
    text: String,
    tokens: Vec<Token>,
    /// Token ranges of test modules, opening to closing brace.
    tests: Vec<std::ops::Range<usize>>,
}

struct Token {
    line: usize,
    /// The identifier or the punctuation; `"` for any literal, so that its content never counts.
    text: String,
}

fn sources() -> Vec<Source> {
    rust_files(&root().join("src"))
        .into_iter()
        .map(|(name, text)| {
            let tokens = lex(&text);
            let tests = test_modules(&tokens);
            Source { name, text, tokens, tests }
        })
        .collect()
}

fn lex(text: &str) -> Vec<Token> {
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    for token in tokenize(text, FrontmatterAllowed::No) {
        let piece = &text[at..at + token.len as usize];
        let word = match token.kind {
            TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => None,
            TokenKind::Literal { .. } => Some("\""),
            _ => Some(piece),
        };
        if let Some(word) = word {
            tokens.push(Token { line, text: word.to_owned() });
        }
        line += piece.matches('\n').count();
        at += token.len as usize;
    }
    tokens
}

fn test_modules(tokens: &[Token]) -> Vec<std::ops::Range<usize>> {
    let is =
        |at: usize, words: &[&str]| words.iter().enumerate().all(|(n, word)| tokens.get(at + n).is_some_and(|t| t.text == *word));
    let starts = (0..tokens.len()).filter(|at| is(*at, &["#", "[", "cfg", "(", "test", ")", "]", "mod"]));
    starts.filter_map(|at| block(tokens, at).map(|end| at..end)).collect()
}

/// The index just behind the block that the first `{` after `start` opens; `None` if a `;` comes first.
fn block(tokens: &[Token], start: usize) -> Option<usize> {
    let (mut depth, mut brackets) = (0, 0);
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            ";" if depth == 0 && brackets == 0 => return None,
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Every Rust file below `folder`, by its path relative to it, in order.
fn rust_files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display())) {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(&path).expect("readable"));
            }
        }
    }
    found
}

impl Source {
    fn module(&self) -> String {
        self.name.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned()
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.name == *place || (place.ends_with('/') && self.name.starts_with(place)))
    }

    fn is_test(&self, token: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&token))
    }

    /// First segment after `crate::` of every import and path, test modules included, with its line.
    fn crate_paths(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, path) in self.paths() {
            if let Some(rest) = path.strip_prefix("crate::").or_else(|| path.strip_prefix("reactor::")) {
                found.push((self.tokens[at].line, rest.split("::").next().unwrap_or_default().to_owned()));
            }
        }
        found
    }

    fn code_paths(&self) -> Vec<(usize, String)> {
        self.paths().into_iter().filter(|(at, _)| !self.is_test(*at)).map(|(at, path)| (self.tokens[at].line, path)).collect()
    }

    /// Every path in the code, `::`-joined, imports spread out (`a::{b, c::d}` is `a::b` and `a::c::d`), with its first token.
    fn paths(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            at = if is_word(&self.tokens[at].text) { self.path(at, "", &mut found) } else { at + 1 };
        }
        found
    }

    /// Reads one path from `at` and returns the index behind it.
    fn path(&self, start: usize, before: &str, found: &mut Vec<(usize, String)>) -> usize {
        let text = |at: usize| self.tokens.get(at).map_or("", |token| token.text.as_str());
        let mut path = format!("{before}{}", text(start));
        let mut at = start + 1;
        while text(at) == ":" && text(at + 1) == ":" {
            at += 2;
            if text(at) == "{" {
                at += 1;
                while at < self.tokens.len() && text(at) != "}" {
                    at = if is_word(text(at)) { self.path(at, &format!("{path}::"), found) } else { at + 1 };
                }
                return at + 1;
            }
            if !is_word(text(at)) {
                break;
            }
            path = format!("{path}::{}", text(at));
            at += 1;
        }
        found.push((start, path));
        at
    }

    fn lines_outside_tests(&self) -> usize {
        let in_tests = |range: &std::ops::Range<usize>| self.tokens[range.end - 1].line - self.tokens[range.start].line + 1;
        self.text.lines().count() - self.tests.iter().map(in_tests).sum::<usize>()
    }

    /// Name, line and length of every function outside tests.
    fn functions(&self) -> Vec<(String, usize, usize)> {
        let starts = (0..self.tokens.len()).filter(|at| self.tokens[*at].text == "fn" && !self.is_test(*at));
        starts
            .filter_map(|at| {
                let name = self.tokens.get(at + 1).filter(|token| is_word(&token.text))?;
                let (first, last) = (self.tokens[at].line, self.tokens[block(&self.tokens, at)? - 1].line);
                Some((name.text.clone(), first, last - first + 1))
            })
            .collect()
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[test]
fn the_scanner_reads_imports_and_skips_strings_and_tests() {
    let text = r#"
        use crate::{model::{call, emit as out}, kernel::*};
        fn long() { let s = "crate::api::x"; /* crate::cli */ std::fs::read(s); }
        #[cfg(test)]
        mod tests { fn t() { crate::node::start(); } }
    "#;
    let tokens = lex(text);
    let tests = test_modules(&tokens);
    let source = Source { name: "wire/x.rs".into(), text: text.into(), tokens, tests };
    let targets: BTreeSet<_> = source.crate_paths().into_iter().map(|(_, target)| target).collect();
    assert_eq!(targets.into_iter().collect::<Vec<_>>(), ["kernel", "model", "node"]);
    assert!(source.code_paths().iter().any(|(_, path)| path == "std::fs::read"));
    assert!(!source.code_paths().iter().any(|(_, path)| path.contains("node")));
    assert_eq!(source.functions().iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["long"]);
    assert_eq!(source.lines_outside_tests(), 4);
}
