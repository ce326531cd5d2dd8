//! Puts the dashboard into `$OUT_DIR/ui`, which `src/api/assets.rs` embeds.
//!
//! `REACTOR_UI` decides how:
//!
//! | value | what happens |
//! |---|---|
//! | `auto` (default) | optimised profiles build `ui/` with Node; debug builds, and machines without Node, get the fallback page |
//! | `require` | build `ui/` in any profile; failing to is an error (CI, the image) |
//! | `skip` | the fallback page |
//! | `prebuilt:DIR` | take DIR as it is |
//!
//! Why not in debug builds: they are made on every `cargo check` and test run of somebody who edits Rust, and `REACTOR_UI_DIR=ui/dist`
//! serves a dashboard from disk to them without a build of ours.
//!
//! Everything is written below `OUT_DIR` only: a read-only checkout works, and two cargo profiles never share one `node_modules`.
//! A stamp (hash of all inputs) makes a second run free; another one (hash of the lock file) saves `npm ci` when only sources changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the dashboard is made of, below `ui/`. Never `node_modules` or `dist`.
const INPUT_DIRS: &[&str] = &["src", "public", "scripts", "plugins"];
const INPUT_FILES_NOT: &[&str] = &["README.md"];
const NODE_MAJOR_MIN: u32 = 20;
const TIME_LIMIT: Duration = Duration::from_secs(300);
const LOG_TAIL_LINES: usize = 15;

fn main() {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env("OUT_DIR"));
    println!("cargo:rerun-if-env-changed=REACTOR_UI");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=assets/ui-fallback");

    let wish = std::env::var("REACTOR_UI").unwrap_or_default();
    let kind = match wish.as_str() {
        "" | "auto" => auto(&root, &out),
        "skip" => fallback(&root, &out),
        "require" => match build(&root, &out) {
            Ok(()) => "built",
            Err(reason) => panic!("REACTOR_UI=require, but the dashboard was not built: {reason}"),
        },
        other => match other.strip_prefix("prebuilt:") {
            Some(dir) => prebuilt(&root.join(dir), &out),
            None => panic!("REACTOR_UI={other} is none of auto, skip, require, prebuilt:DIR"),
        },
    };
    println!("cargo:rustc-env=REACTOR_UI_KIND={kind}");
}

fn auto(root: &Path, out: &Path) -> &'static str {
    let optimised = env("PROFILE") == "release";
    if !optimised || std::env::var_os("DOCS_RS").is_some() || !root.join("ui/package.json").exists() {
        // A dashboard that appears later is noticed by its first source file, not by a scan of `ui/` with its `node_modules`.
        if optimised && root.join("ui/src").exists() {
            println!("cargo:rerun-if-changed=ui/src");
        }
        return fallback(root, out);
    }
    match build(root, out) {
        Ok(()) => "built",
        Err(reason) => {
            warn(&format!("the dashboard was not built, the binary carries a page that says how to get it: {reason}"));
            warn("it is tried again when ui/ changes, or now with REACTOR_UI=require");
            fallback(root, out)
        }
    }
}

fn fallback(root: &Path, out: &Path) -> &'static str {
    let _ = fs::remove_file(out.join("ui.stamp"));
    replace_dir(&root.join("assets/ui-fallback"), &out.join("ui")).expect("assets/ui-fallback is copied to OUT_DIR");
    "fallback"
}

fn prebuilt(dir: &Path, out: &Path) -> &'static str {
    assert!(dir.join("index.html").is_file(), "REACTOR_UI=prebuilt: {} has no index.html", dir.display());
    println!("cargo:rerun-if-changed={}", dir.display());
    let _ = fs::remove_file(out.join("ui.stamp"));
    replace_dir(dir, &out.join("ui")).expect("the prebuilt dashboard is copied to OUT_DIR");
    "built"
}

/// Builds `ui/` unless its stamp says that this very input was built here before.
fn build(root: &Path, out: &Path) -> Result<(), String> {
    let inputs = inputs(&root.join("ui")).map_err(|error| format!("cannot read ui/: {error}"))?;
    for input in &inputs.watched {
        println!("cargo:rerun-if-changed={}", input.display());
    }
    if !root.join("ui/package.json").exists() {
        return Err("ui/package.json is missing".into());
    }
    let stamp = hash(root, &inputs.files).map_err(|error| format!("cannot read ui/: {error}"))?;
    if read(&out.join("ui.stamp")) == stamp && out.join("ui/index.html").exists() {
        return Ok(());
    }
    node_is_new_enough()?;
    let started = Instant::now();
    let source = out.join("ui-src");
    copy_sources(&root.join("ui"), &source, &inputs.files).map_err(|error| format!("cannot copy ui/ to OUT_DIR: {error}"))?;
    install(&source, out, started)?;
    let built = out.join("ui-new");
    let _ = fs::remove_dir_all(&built);
    let to = built.to_str().ok_or("OUT_DIR is not UTF-8")?;
    run("npx", &["--no-install", "vite", "build", "--outDir", to, "--emptyOutDir"], &source, &out.join("vite.log"), started)?;
    replace_dir(&built, &out.join("ui")).map_err(|error| format!("cannot move the built dashboard: {error}"))?;
    let _ = fs::remove_dir_all(&built);
    fs::write(out.join("ui.stamp"), stamp).map_err(|error| format!("cannot write the stamp: {error}"))
}

/// `npm ci`, unless the packages in place came from this very lock file.
fn install(source: &Path, out: &Path, started: Instant) -> Result<(), String> {
    let lock = source.join("package-lock.json");
    if !lock.exists() {
        return Err("ui/package-lock.json is missing".into());
    }
    let wanted =
        hash(source, &[source.join("package.json"), lock]).map_err(|error| format!("cannot read the lock file: {error}"))?;
    let stamp = out.join("npm.stamp");
    if read(&stamp) == wanted && source.join("node_modules").is_dir() {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    run("npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts=false"], source, &out.join("npm.log"), started)?;
    fs::write(&stamp, wanted).map_err(|error| format!("cannot write the stamp: {error}"))
}

fn node_is_new_enough() -> Result<(), String> {
    let output = Command::new("node").arg("--version").output().map_err(|_| "node is not installed".to_owned())?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0);
    if major < NODE_MAJOR_MIN {
        return Err(format!("node {version} is too old, {NODE_MAJOR_MIN} or later is needed"));
    }
    Ok(())
}

/// Runs one step within what is left of the time limit; its output goes to `log`, whose tail is shown when it fails.
fn run(program: &str, arguments: &[&str], dir: &Path, log: &Path, started: Instant) -> Result<(), String> {
    let sink = fs::File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    let errors = sink.try_clone().map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).stdin(Stdio::null()).stdout(sink).stderr(errors);
    // Cargo's own settings must not reach a tool that might call cargo or read CI's npm settings through them.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env("NO_COLOR", "1").env("CI", "1");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| format!("{program} cannot be started: {error}"))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let tail = tail(log);
                return Err(format!(
                    "`{program} {}` ended with {status}, full log in {}\n{tail}",
                    arguments.join(" "),
                    log.display()
                ));
            }
            Ok(None) if started.elapsed() > TIME_LIMIT => {
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
                let _ = child.kill();
                let _ = child.wait();
                let limit = TIME_LIMIT.as_secs();
                return Err(format!("`{program} {}` was stopped after {limit} s\n{}", arguments.join(" "), tail(log)));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(format!("{program} cannot be waited for: {error}")),
        }
    }
}

fn tail(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

struct Inputs {
    files: Vec<PathBuf>,
    /// Directories and top-level files that exist: cargo takes a missing path for a changed one, on every build.
    watched: Vec<PathBuf>,
}

fn inputs(ui: &Path) -> io::Result<Inputs> {
    let (mut files, mut watched) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(ui)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let hidden = name.starts_with('.') && name != ".npmrc";
        if entry.file_type()?.is_file() && !hidden && !INPUT_FILES_NOT.contains(&&*name) {
            files.push(entry.path());
            watched.push(entry.path());
        }
    }
    for dir in INPUT_DIRS.iter().map(|dir| ui.join(dir)).filter(|dir| dir.is_dir()) {
        walk(&dir, &mut files)?;
        watched.push(dir);
    }
    files.sort();
    watched.sort();
    Ok(Inputs { files, watched })
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// SHA-256 over the names (relative to `root`) and contents of `files`, and over this script.
fn hash(root: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(include_bytes!("build.rs"));
    for file in files {
        let bytes = fs::read(file)?;
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        context.update(format!("{name}\0{}\0", bytes.len()).as_bytes());
        context.update(&bytes);
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Makes `to` hold exactly `files`, but leaves `node_modules` in place for the next build.
fn copy_sources(from: &Path, to: &Path, files: &[PathBuf]) -> io::Result<()> {
    if to.exists() {
        for entry in fs::read_dir(to)? {
            let entry = entry?;
            if entry.file_name() == "node_modules" {
                continue;
            }
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
    }
    for file in files {
        copy(file, &to.join(file.strip_prefix(from).expect("inputs lie below ui/")))?;
    }
    Ok(())
}

fn replace_dir(from: &Path, to: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    walk(from, &mut files)?;
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for file in &files {
        copy(file, &to.join(file.strip_prefix(from).expect("walked files lie below their root")))?;
    }
    Ok(())
}

/// Copies contents, not permissions: a read-only checkout must not make a tree that the next build cannot replace.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.parent().expect("a file has a parent"))?;
    fs::write(to, fs::read(from)?)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn warn(text: &str) {
    for line in text.lines() {
        println!("cargo:warning={line}");
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
