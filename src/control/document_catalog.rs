//! The catalogue's part of a definitions document: users, permissions, policies and parameters, in RabbitMQ's words.

use super::document::Document;
use super::parameters;
use crate::model::catalog::{Catalog, Entry};
use crate::model::policy_spec::Policy;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::{Parameter, Space};
use crate::model::topology::DEFAULT_SPACE;

/// What RabbitMQ keeps of its own among the global parameters; it means nothing elsewhere.
const INTERNAL_PREFIX: &str = "internal_";

impl Document {
    /// Writes the catalogue down.
    pub(super) fn put_catalog(&mut self, catalog: &Catalog) {
        self.users = Some(catalog.users().cloned().collect());
        self.vhosts = Some(catalog.spaces().map(exported).collect());
        self.permissions = Some(catalog.permissions().cloned().collect());
        self.topic_permissions = Some(catalog.topic_permissions().cloned().collect());
        self.parameters = catalog.parameters().cloned().collect();
        self.parameters.extend(catalog.operator_policies().map(parameters::of_operator_policy));
        self.global_parameters = Some(catalog.global_parameters().cloned().collect());
        self.policies = catalog.policies().cloned().collect();
    }

    pub(super) fn catalog(&self) -> Result<Catalog, Refusal> {
        let mut entries: Vec<Entry> = self.vhosts.iter().flatten().map(|space| Entry::Space(imported(space))).collect();
        entries.extend(self.users.iter().flatten().cloned().map(Entry::User));
        entries.extend(self.permissions.iter().flatten().cloned().map(Entry::Permission));
        entries.extend(self.topic_permissions.iter().flatten().cloned().map(Entry::TopicPermission));
        let global = self.global_parameters.iter().flatten().filter(|parameter| !parameter.name.starts_with(INTERNAL_PREFIX));
        entries.extend(global.cloned().map(Entry::GlobalParameter));
        for parameter in &self.parameters {
            entries.push(parameters::to_entry(&Parameter { vhost: or_default(&parameter.vhost), ..parameter.clone() })?);
        }
        let policies = self.policies.iter().map(|policy| Policy { vhost: or_default(&policy.vhost), ..policy.clone() });
        entries.extend(policies.map(Entry::Policy));
        Ok(Catalog::from_iter(entries))
    }

    /// The document of the one space it is about, as RabbitMQ exports it: nothing says which one, so that it can be imported into
    /// another.
    pub fn of_one_space(self) -> Self {
        let mut document = Document { users: None, vhosts: None, permissions: None, topic_permissions: None, ..self };
        document.global_parameters = None;
        document.name_space("");
        document
    }

    /// The document with everything in it put into `space`, whatever space it names. What belongs to no space is refused.
    pub fn into_space(mut self, space: &str) -> Result<Self, Refusal> {
        let has_users = self.users.as_ref().is_some_and(|users| !users.is_empty());
        let has_global = self.global_parameters.as_ref().is_some_and(|parameters| !parameters.is_empty());
        if let Some((_, what)) = [(has_users, "users"), (has_global, "global_parameters")].into_iter().find(|(has, _)| *has) {
            let what = format!("the definitions have {what}, which belong to no space");
            return Err(Refusal::new(RefusalKind::Invalid, what).hint("Import them without naming a space."));
        }
        self.vhosts = None;
        self.name_space(space);
        Ok(self)
    }

    fn name_space(&mut self, space: &str) {
        let put = |vhost: &mut String| space.clone_into(vhost);
        self.permissions.iter_mut().flatten().for_each(|it| put(&mut it.vhost));
        self.topic_permissions.iter_mut().flatten().for_each(|it| put(&mut it.vhost));
        self.parameters.iter_mut().for_each(|it| put(&mut it.vhost));
        self.policies.iter_mut().for_each(|it| put(&mut it.vhost));
        self.exchanges.iter_mut().for_each(|it| put(&mut it.vhost));
        self.queues.iter_mut().for_each(|it| put(&mut it.vhost));
        self.bindings.iter_mut().for_each(|it| put(&mut it.vhost));
    }

    /// Parts of the catalogue that are kept and change nothing here, for the answer.
    pub(super) fn without_effect(&self) -> impl Iterator<Item = &str> {
        let of_plugins = self.parameters.iter().map(|parameter| parameter.component.as_str());
        of_plugins.filter(|component| !parameters::has_effect(component))
    }
}

fn or_default(space: &str) -> String {
    (if space.is_empty() { DEFAULT_SPACE } else { space }).to_owned()
}

/// RabbitMQ repeats what is said of a space under `metadata`, and reads it there.
fn exported(space: &Space) -> Space {
    let mut space = space.clone();
    let metadata = &mut space.metadata;
    metadata.insert("description".into(), space.description.as_str().into());
    metadata.insert("tags".into(), space.tags.as_slice().into());
    if let Some(kind) = &space.default_queue_type {
        metadata.insert("default_queue_type".into(), kind.as_str().into());
    }
    space
}

fn imported(space: &Space) -> Space {
    let mut space = space.clone();
    let text = |value: Option<serde_json::Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    if let Some(description) = text(space.metadata.remove("description"))
        && space.description.is_empty()
    {
        space.description = description;
    }
    let kind = text(space.metadata.remove("default_queue_type"));
    // RabbitMQ writes out the word where nothing was said.
    space.default_queue_type = space.default_queue_type.or(kind).filter(|kind| kind != "undefined");
    if let Some(serde_json::Value::Array(tags)) = space.metadata.remove("tags")
        && space.tags.is_empty()
    {
        space.tags = tags.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
    }
    space
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::definitions::Definitions;
    use serde_json::json;

    fn document(value: serde_json::Value) -> Document {
        serde_json::from_value(value).expect("a document")
    }

    #[test]
    fn everything_of_an_export_is_read_and_written_again() {
        let given = document(json!({
            "users": [{"name": "ann", "password_hash": "", "tags": "a,b", "limits": {"max-channels": 7}}],
            "vhosts": [{"name": "shop", "metadata": {"description": "d", "tags": ["x"], "default_queue_type": "undefined", "own": 1}}],
            "permissions": [{"user": "ann", "vhost": "shop", "configure": "", "write": ".*", "read": ".*"}],
            "topic_permissions": [{"user": "ann", "vhost": "shop", "exchange": "e", "write": "^a", "read": ".*"}],
            "global_parameters": [{"name": "cluster_name", "value": "shop"}, {"name": "internal_cluster_id", "value": "x"}],
            "parameters": [
                {"component": "vhost-limits", "name": "limits", "vhost": "shop", "value": {"max-queues": 7}},
                {"component": "operator_policy", "name": "op", "vhost": "shop",
                 "value": {"pattern": "^", "definition": {"max-length": 3}, "priority": 1, "apply-to": "queues"}},
                {"component": "shovel", "name": "s", "vhost": "shop", "value": {}}],
            "policies": [{"name": "p", "vhost": "shop", "pattern": ".*", "definition": {"expires": 9}, "priority": 2}],
        }));
        assert_eq!(given.ignored(), ["shovel"]);
        let definitions = given.definitions().expect("definitions");
        let catalog = &definitions.catalog;
        let space = catalog.spaces().next().expect("a space");
        assert_eq!((space.description.as_str(), space.tags.as_slice()), ("d", &["x".to_owned()][..]));
        assert_eq!((&space.default_queue_type, space.metadata.len()), (&None, 1));
        assert_eq!(catalog.limits("shop").max_queues, Some(7));
        assert_eq!(catalog.operator_policies().map(|policy| policy.priority).collect::<Vec<_>>(), [1]);
        assert_eq!(catalog.global_parameters().count(), 1, "RabbitMQ's own are passed over");
        let written = serde_json::to_value(Document::of(&definitions)).expect("JSON");
        assert_eq!(document(written).definitions().expect("definitions"), definitions);
    }

    #[test]
    fn the_document_of_one_space_fits_another() {
        let definitions = document(json!({
            "vhosts": [{"name": "shop"}],
            "queues": [{"name": "q", "vhost": "shop"}],
            "policies": [{"name": "p", "vhost": "shop", "pattern": ".*", "definition": {"expires": 9}}],
        }));
        let one = Document::of(&definitions.definitions().expect("definitions")).of_one_space();
        let text = serde_json::to_string(&one).expect("JSON");
        assert!(!text.contains("vhost") && !text.contains("users"), "{text}");
        let again: Document = serde_json::from_str(&text).expect("a document");
        let there = again.into_space("other").expect("fits").definitions().expect("definitions");
        assert_eq!(there.spaces.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["other"]);
        assert_eq!(there.catalog.policies().map(|policy| policy.vhost.as_str()).collect::<Vec<_>>(), ["other"]);
        let users = document(json!({"users": [{"name": "ann"}]}));
        assert!(users.into_space("other").expect_err("refused").what.contains("users"));
    }

    #[test]
    fn what_is_wrong_in_a_document_is_named() {
        let refusals = |value| {
            let wanted = document(value).definitions().expect("definitions");
            let plan = super::super::plan::plan(&Definitions::default(), &wanted, super::super::Scope::Named);
            plan.refusals.into_iter().map(|refusal| refusal.what).collect::<Vec<_>>().join("; ")
        };
        for (value, part) in [
            (json!({"permissions": [{"user": "ann", "vhost": "/", "configure": "", "write": "", "read": ""}]}), "no user ann"),
            (
                json!({"users": [{"name": "ann"}], "permissions": [{"user": "ann", "vhost": "x", "configure": "", "write": "", "read": ""}]}),
                "no space x",
            ),
            (json!({"users": [{"name": "ann", "password_hash": "nonsense"}]}), "user ann has a password hash"),
            (json!({"users": [{"name": "reactor.gateway"}]}), "reserved"),
            (json!({"vhosts": [{"name": ""}]}), "a space has no name"),
            (
                json!({"vhosts": [{"name": "/"}], "policies": [{"name": "p", "pattern": "(", "definition": {"expires": 1}}]}),
                "pattern of policy p",
            ),
            (
                json!({"vhosts": [{"name": "/"}], "parameters": [{"component": "vhost-limits", "name": "limits", "value": {"max-x": 1}}]}),
                "limits of space / are wrong",
            ),
        ] {
            let told = refusals(value.clone());
            assert!(told.contains(part), "{value}: {told}");
        }
        let policy = document(json!({"parameters": [{"component": "operator_policy", "name": "op", "value": {"pattern": "x"}}]}));
        assert!(policy.definitions().expect_err("refused").what.contains("operator policy op"));
    }
}
