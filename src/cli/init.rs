//! `reactor init`: an annotated reactor.toml and a service that runs.

use super::{Outcome, print};
use std::io::Write;
use std::path::{Path, PathBuf};

const FILES: [(&str, &str); 2] =
    [("reactor.toml", include_str!("../../assets/reactor.toml")), ("hello.py", include_str!("../../assets/init/hello.py"))];

pub fn run(directory: &Path) -> Outcome {
    let there: Vec<String> = FILES
        .iter()
        .map(|(name, _)| directory.join(name))
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    if !there.is_empty() {
        print::error(&format!(
            "{} is here already and is not overwritten. Move it away, or name another directory.",
            there.join(" and ")
        ));
        return Outcome::Failed;
    }
    if let Err(error) = std::fs::create_dir_all(directory) {
        print::error(&format!("cannot make the directory {}: {error}", directory.display()));
        return Outcome::Failed;
    }
    for (name, text) in FILES {
        let path = place(directory, name);
        // `create_new`: what appeared since the look above is not overwritten either.
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            print::error(&format!("cannot write {}: {error}", path.display()));
            return Outcome::Failed;
        }
        print::line(&format!("wrote {}", path.display()));
    }
    let enter = if is_here(directory) { String::new() } else { format!("cd {} && ", directory.display()) };
    print::line(&format!("\nStart it:  {enter}reactor\nThen:      curl http://localhost:16000/hello/world"));
    Outcome::Done
}

fn is_here(directory: &Path) -> bool {
    directory == Path::new(".")
}

/// As people would write it: `reactor.toml`, not `./reactor.toml`.
fn place(directory: &Path, name: &str) -> PathBuf {
    if is_here(directory) { PathBuf::from(name) } else { directory.join(name) }
}
