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
