//! `GET /api/v1/snippets`: the ten-line service in several languages, from the very files that the tests run.

use axum::Json;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use utoipa::ToSchema;

const LIST: &str = include_str!("../../../assets/snippets/snippets.json");
const TEXTS: &[(&str, &str)] = &[
    ("python.py", include_str!("../../../assets/snippets/python.py")),
    ("node.js", include_str!("../../../assets/snippets/node.js")),
    ("go.go", include_str!("../../../assets/snippets/go.go")),
    ("java.java", include_str!("../../../assets/snippets/java.java")),
    ("dotnet.cs", include_str!("../../../assets/snippets/dotnet.cs")),
    ("rust.rs", include_str!("../../../assets/snippets/rust.rs")),
];

/// A service in one language, ready to paste.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snippet {
    pub language: String,
    pub title: String,
    /// What to run once.
    pub install: String,
    pub run: String,
    /// The name to save it under.
    pub file: String,
    pub text: &'static str,
}

#[derive(Deserialize)]
struct Listed {
    language: String,
    title: String,
    source: String,
    file: String,
    install: String,
    run: String,
}

/// The ten-line service in every language.
#[utoipa::path(get, path = "/api/v1/snippets", tag = "node", responses((status = 200, body = [Snippet])))]
pub async fn snippets() -> Json<&'static [Snippet]> {
    static SNIPPETS: LazyLock<Vec<Snippet>> = LazyLock::new(read);
    Json(&SNIPPETS)
}

fn read() -> Vec<Snippet> {
    let listed: Vec<Listed> = serde_json::from_str(LIST).expect("the list is part of the program");
    let with_text = |listed: Listed| {
        let text = TEXTS.iter().find(|(name, _)| *name == listed.source)?.1;
        let Listed { language, title, install, run, file, .. } = listed;
        Some(Snippet { language, title, install, run, file, text })
    };
    listed.into_iter().filter_map(with_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_snippet_has_its_text_and_every_text_is_listed() {
        let listed: Vec<Listed> = serde_json::from_str(LIST).expect("a list");
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/snippets")).expect("the folder");
        assert_eq!(read().len(), listed.len());
        assert_eq!(listed.len(), TEXTS.len());
        assert_eq!(files.count(), TEXTS.len() + 1, "a file beside the list is not served");
        assert!(read().iter().all(|snippet| snippet.text.contains("reactor.call")));
    }
}
