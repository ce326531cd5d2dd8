//! Topic exchanges: words between dots, `*` for exactly one, `#` for any number.
//!
//! Bindings form a trie of words. A key is matched by walking all nodes it can be at, word by word, each node once: the work is
//! bounded by words times nodes, however many `#` the bindings have. The empty key has no word; `a.` has two, the second empty.

use super::{Bound, Found};
use std::collections::{HashMap, HashSet};

const ROOT: u32 = 0;

#[derive(Debug)]
pub(in crate::broker) struct Topic {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Node {
    words: HashMap<Box<str>, u32>,
    star: Option<u32>,
    hash: Option<u32>,
    /// Reached by `#`: it may swallow words.
    is_hash: bool,
    bound: Vec<Bound>,
}

impl Default for Topic {
    fn default() -> Self {
        Topic { nodes: vec![Node::default()], free: Vec::new() }
    }
}

pub(super) fn words(key: &str) -> impl Iterator<Item = &str> {
    (!key.is_empty()).then(|| key.split('.')).into_iter().flatten()
}

/// Nodes a key can be at, each once. Few are looked through, many are looked up.
#[derive(Default)]
struct Places {
    list: Vec<u32>,
    seen: HashSet<u32>,
}

impl Places {
    const FEW: usize = 16;

    /// False if it was there.
    fn add(&mut self, node: u32) -> bool {
        if self.list.len() < Self::FEW {
            if self.list.contains(&node) {
                return false;
            }
        } else {
            if self.seen.is_empty() {
                self.seen.extend(&self.list);
            }
            if !self.seen.insert(node) {
                return false;
            }
        }
        self.list.push(node);
        true
    }
}

impl Topic {
    pub fn insert(&mut self, pattern: &str, bound: Bound) {
        let mut at = ROOT;
        for word in words(pattern) {
            at = match self.child(at, word) {
                Some(child) => child,
                None => self.grow(at, word),
            };
        }
        self.nodes[at as usize].bound.push(bound);
    }

    pub fn remove(&mut self, pattern: &str, id: u64) {
        let mut path = vec![ROOT];
        for word in words(pattern) {
            let Some(child) = self.child(path[path.len() - 1], word) else { return };
            path.push(child);
        }
        self.nodes[path[path.len() - 1] as usize].bound.retain(|bound| bound.id != id);
        let words: Vec<&str> = words(pattern).collect();
        for depth in (1..path.len()).rev() {
            let node = &self.nodes[path[depth] as usize];
            if !(node.bound.is_empty() && node.words.is_empty() && node.star.is_none() && node.hash.is_none()) {
                return;
            }
            self.cut(path[depth - 1], words[depth - 1]);
        }
    }

    fn child(&self, at: u32, word: &str) -> Option<u32> {
        let node = &self.nodes[at as usize];
        match word {
            "*" => node.star,
            "#" => node.hash,
            word => node.words.get(word).copied(),
        }
    }

    fn grow(&mut self, at: u32, word: &str) -> u32 {
        let node = Node { is_hash: word == "#", ..Node::default() };
        let child = match self.free.pop() {
            Some(free) => {
                self.nodes[free as usize] = node;
                free
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer trie nodes than bytes of memory")
            }
        };
        let parent = &mut self.nodes[at as usize];
        match word {
            "*" => parent.star = Some(child),
            "#" => parent.hash = Some(child),
            word => _ = parent.words.insert(word.into(), child),
        }
        child
    }

    fn cut(&mut self, parent: u32, word: &str) {
        let node = &mut self.nodes[parent as usize];
        let child = match word {
            "*" => node.star.take(),
            "#" => node.hash.take(),
            word => node.words.remove(word),
        };
        if let Some(child) = child {
            self.nodes[child as usize] = Node::default();
            self.free.push(child);
        }
    }

    pub fn route(&self, key: &str, found: &mut Found) {
        let mut at = Places::default();
        self.arrive(ROOT, &mut at);
        for word in words(key) {
            let mut next = Places::default();
            for node_id in at.list {
                let node = &self.nodes[node_id as usize];
                let children = [node.words.get(word).copied(), node.star, node.is_hash.then_some(node_id)];
                children.into_iter().flatten().for_each(|child| self.arrive(child, &mut next));
            }
            at = next;
        }
        found.add_all(at.list.into_iter().flat_map(|node| &self.nodes[node as usize].bound));
    }

    /// Adds a node and, since `#` may stand for nothing, the `#` below it.
    fn arrive(&self, node: u32, at: &mut Places) {
        let mut next = Some(node);
        while let Some(node) = next {
            if !at.add(node) {
                return;
            }
            next = self.nodes[node as usize].hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::super::testing::{bound, names, queue};
    use super::words;
    use crate::model::table::Table;
    use crate::model::topology::ExchangeKind;
    use crate::wire::amqp::Properties;
    use proptest::prelude::*;

    fn routes(patterns: &[&str]) -> Routes {
        let mut routes = Routes::new(ExchangeKind::Topic, &Table::new());
        for (id, pattern) in patterns.iter().enumerate() {
            routes.insert(pattern, &Table::new(), bound(id as u64, &queue(pattern)));
        }
        routes
    }

    #[test]
    fn wildcards_match_as_rabbitmq_matches_them() {
        let routes = routes(&["", "#", "*", "a", "a.*", "a.#", "*.b", "a.#.b", "#.b", "a.b.c", "a.", "*.*", "#.#", "#.*"]);
        for (key, expected) in [
            ("", " # #.#"),
            ("a", "# #.# #.* * a a.#"),
            ("a.", "# #.# #.* *.* a. a.# a.*"),
            ("a.b", "# #.# #.* #.b *.* *.b a.# a.#.b a.*"),
            ("a.b.c", "# #.# #.* a.# a.b.c"),
            ("a.x.y.b", "# #.# #.* #.b a.# a.#.b"),
            (".", "# #.# #.* *.*"),
            ("b", "# #.# #.* #.b *"),
        ] {
            assert_eq!(names(&routes, key, Properties::NONE), expected, "key {key:?}");
        }
    }

    #[test]
    fn a_key_is_at_each_place_once_however_many_there_are() {
        let mut places = super::Places::default();
        assert!((0..100).all(|node| places.add(node)));
        assert!((0..100).all(|node| !places.add(node)));
        assert_eq!(places.list.len(), 100);
    }

    #[test]
    fn removing_a_binding_leaves_the_others() {
        let mut routes = routes(&["a.#.b", "a.#", "a.#.b.c"]);
        routes.remove("a.#.b", 0);
        assert_eq!(names(&routes, "a.x.b", Properties::NONE), "a.#");
        routes.remove("a.#.b.c", 2);
        routes.remove("a.#", 1);
        routes.remove("never.there", 9);
        assert_eq!(names(&routes, "a.x.b", Properties::NONE), "");
        let Routes::Topic(topic) = &routes else { panic!("a topic table") };
        assert_eq!(topic.nodes.len(), topic.free.len() + 1, "every node but the root is free again");
    }

    #[test]
    fn many_hashes_do_not_take_for_ever() {
        let pattern = "#.a.".repeat(60) + "z";
        let routes = routes(&[&pattern]);
        assert_eq!(names(&routes, &"a.".repeat(120), Properties::NONE), "");
    }

    /// The definition, written down naively.
    fn matches(pattern: &[&str], key: &[&str]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((&"#", rest)), _) => (0..=key.len()).any(|skip| matches(rest, &key[skip..])),
            (Some((&"*", rest)), Some((_, key))) => matches(rest, key),
            (Some((word, rest)), Some((first, key))) => word == first && matches(rest, key),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn the_trie_agrees_with_the_definition(
            patterns in proptest::collection::btree_set("([ab]|\\*|#)?(\\.([ab]|\\*|#)?){0,4}", 1..12),
            key in "[ab]?(\\.[ab]?){0,5}",
        ) {
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let key_words: Vec<&str> = words(&key).collect();
            let mut expected: Vec<&str> =
                patterns.iter().filter(|pattern| matches(&words(pattern).collect::<Vec<_>>(), &key_words)).copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(names(&routes(&patterns), &key, Properties::NONE), expected.join(" "));
        }
    }
}
