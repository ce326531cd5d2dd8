//! Apply: the steps of a plan, one after the other; undone in reverse when one fails.

use super::audit::{Audit, AuditEntry, AuditPage};
use super::plan::{Plan, Scope, plan};
use super::policy_set::PolicySet;
use crate::kernel::Clock;
use crate::model::catalog::{Accounts, Catalog, Entry, EntryKey, SpaceRules};
use crate::model::change::{Change, EntryChange, Thing, Verb};
use crate::model::definitions::Definitions;
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::identity::Principal;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::service_spec::ServiceSpec;
use crate::model::space::{CLUSTER_NAME, CLUSTER_NAME_DEFAULT, Space};
use crate::model::topology::{DEFAULT_SPACE, is_built_in};
use arc_swap::ArcSwap;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What control asks of the broker. Implemented in wiring.
pub trait TopologyPort: Send + Sync {
    /// The durable queues, exchanges and bindings that exist now, built-in exchanges included. Its catalogue is empty.
    fn present(&self) -> Definitions;
    /// Makes one step for a queue, an exchange or a binding. Creating what exists equally, and deleting what is gone, is no error.
    fn apply(&self, change: &Change, by: &Principal) -> Result<(), Refusal>;
    /// Makes a space. One that exists stays as it is.
    fn open_space(&self, name: &str);
    /// Closes the connections of a space and deletes it with all it holds.
    fn close_space(&self, name: &str);
    /// What holds in a space from now on.
    fn rule_space(&self, rules: SpaceRules, policies: Arc<PolicySet>);
    /// What the broker is called from now on.
    fn name_cluster(&self, name: &str);
    /// Tells whoever listens on the bus that an entry of the catalogue was changed.
    fn announce(&self, change: &EntryChange, by: &Principal);
}

/// What control asks of the guard of the doors. Implemented in wiring.
pub trait AccountsPort: Send + Sync {
    /// Who may come in and do what from now on, also for those who are in already.
    fn set(&self, accounts: Accounts);
    /// Closes the connections of a user who is no more.
    fn dismiss(&self, user: &str);
}

/// What control asks of the supervisor. Implemented in wiring.
pub trait ServicePort: Send + Sync {
    /// Makes the running services those of `specs`; nothing happens if any of them is refused.
    fn apply(&self, specs: Vec<ServiceSpec>) -> Result<(), Refusal>;
}

/// The engines that control drives.
#[derive(Clone)]
pub struct Ports {
    pub topology: Arc<dyn TopologyPort>,
    pub accounts: Arc<dyn AccountsPort>,
    pub services: Arc<dyn ServicePort>,
}

pub struct Control {
    clock: Clock,
    ports: Ports,
    /// What was applied; also the lock under which changes are made one after the other.
    applied: Mutex<Applied>,
    /// The catalogue as it stood after the last changes.
    pub(super) published: ArcSwap<Catalog>,
    /// Compiled policies by space.
    policies: RwLock<HashMap<String, Arc<PolicySet>>>,
    audit: Audit,
}

#[derive(Default)]
pub(super) struct Applied {
    services: Vec<ServiceSpec>,
    pub catalog: Catalog,
}

/// What the engines must be told after a run of changes.
#[derive(Default)]
struct Untold {
    accounts: bool,
    spaces: BTreeSet<String>,
    cluster_name: bool,
    dismissed: Vec<String>,
}

impl Control {
    /// Begins with the default space and `seed`, whose entries are told to the engines at once.
    pub fn new(clock: Clock, ports: Ports, seed: Catalog) -> Self {
        let mut catalog = seed;
        catalog.put(Entry::Space(Space::named(DEFAULT_SPACE)));
        let control = Control {
            clock,
            ports,
            applied: Mutex::new(Applied { services: Vec::new(), catalog: catalog.clone() }),
            published: ArcSwap::default(),
            policies: RwLock::default(),
            audit: Audit::new(),
        };
        let spaces = catalog.spaces().map(|space| space.name.clone()).collect();
        control.tell_engines(&catalog, Untold { accounts: true, spaces, cluster_name: true, dismissed: Vec::new() });
        control
    }

    pub(super) fn applied(&self) -> MutexGuard<'_, Applied> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything durable that exists.
    pub fn definitions(&self) -> Definitions {
        Definitions { catalog: (*self.catalog()).clone(), ..self.ports.topology.present() }
    }

    /// What applying `wanted` would do. No effect.
    pub fn plan(&self, wanted: &Definitions, scope: Scope) -> Plan {
        plan(&self.definitions(), wanted, scope)
    }

    /// Plans and applies. Refused as a whole where the plan has refusals; undone as a whole where a step fails.
    pub fn apply(&self, wanted: &Definitions, scope: Scope, by: &Principal) -> Result<Vec<Change>, Refusal> {
        let mut applied = self.applied();
        let present = Definitions { catalog: applied.catalog.clone(), ..self.ports.topology.present() };
        let plan = plan(&present, wanted, scope);
        match plan.refusals.len() {
            0 => self.run(&mut applied, plan.changes, by),
            1 => Err(plan.refusals[0].clone()),
            count => {
                let first = &plan.refusals[0];
                let what = format!("{count} definitions are refused; the first: {}", first.what);
                Err(Refusal { kind: first.kind, what, next: first.next.clone() })
            }
        }
    }

    /// Makes single changes, such as one queue from the API. Deletions are wished for by name here, so built-in exchanges are
    /// refused and queues go with what they hold.
    pub fn change(&self, changes: Vec<Change>, by: &Principal) -> Result<Vec<Change>, Refusal> {
        let mut applied = self.applied();
        for change in &changes {
            if let (Verb::Delete, Thing::Exchange(spec)) = (change.verb, &change.thing)
                && is_built_in(&spec.name)
            {
                let what = format!("exchange {} belongs to every space and stays", spec.name);
                return Err(Refusal::new(RefusalKind::Forbidden, what).hint("Delete its bindings instead."));
            }
        }
        self.run(&mut applied, changes, by)
    }

    /// Makes the supervised services those of `specs`.
    pub fn set_services(&self, specs: Vec<ServiceSpec>, by: &Principal) -> Result<(), Refusal> {
        let mut applied = self.applied();
        self.ports.services.apply(specs.clone()).inspect_err(|refusal| {
            self.record(by, DEFAULT_SPACE.into(), "service", "services".into(), format!("refused: {}", refusal.what));
        })?;
        for (spec, outcome) in service_changes(&applied.services, &specs) {
            self.tell_service(by, spec, outcome);
        }
        applied.services = specs;
        Ok(())
    }

    /// Keeps account of a change that a client made itself.
    pub fn note(&self, change: &Change, by: &Principal) {
        self.tell(by, change, change.verb.done());
    }

    pub fn audit(&self, before: Option<u64>, count: usize) -> AuditPage {
        self.audit.page(before, count)
    }

    pub(super) fn run(&self, applied: &mut Applied, mut changes: Vec<Change>, by: &Principal) -> Result<Vec<Change>, Refusal> {
        let mut untold = Untold::default();
        let mut failed = None;
        for at in 0..changes.len() {
            give_type(&applied.catalog, &mut changes[at]);
            let change = &changes[at];
            if let Err(refusal) = self.step(&mut applied.catalog, &mut untold, change, by) {
                let outcome = format!("refused: {}", refusal.what);
                self.record(by, change.space.clone(), change.kind(), change.name(), outcome);
                self.undo(applied, &mut untold, &changes[..at], by);
                failed = Some(refusal);
                break;
            }
            self.tell(by, change, change.verb.done());
        }
        self.tell_engines(&applied.catalog, untold);
        if failed.is_none() {
            let entries = changes.iter().filter_map(|change| match &change.thing {
                Thing::Entry(entry) => Some(entry),
                Thing::Exchange(_) | Thing::Queue(_) | Thing::Binding(_) => None,
            });
            entries.for_each(|entry| self.ports.topology.announce(entry, by));
        }
        match failed {
            Some(refusal) => Err(refusal),
            None => Ok(changes),
        }
    }

    fn step(&self, catalog: &mut Catalog, untold: &mut Untold, change: &Change, by: &Principal) -> Result<(), Refusal> {
        let Thing::Entry(entry) = &change.thing else { return self.ports.topology.apply(change, by) };
        untold.note(&entry.key, entry.is.is_some());
        match (&entry.key, &entry.is) {
            (EntryKey::Space(name), Some(_)) => self.ports.topology.open_space(name),
            (EntryKey::Space(name), None) => self.ports.topology.close_space(name),
            _ => {}
        }
        match &entry.is {
            Some(is) => catalog.put(is.clone()),
            None => catalog.remove(&entry.key),
        };
        Ok(())
    }

    /// The engines take over what changed, once a run.
    fn tell_engines(&self, catalog: &Catalog, untold: Untold) {
        let Untold { accounts, spaces, cluster_name, dismissed } = untold;
        spaces.iter().for_each(|space| self.rule_space(catalog, space));
        if cluster_name {
            let named = catalog.global_parameters().find(|parameter| parameter.name == CLUSTER_NAME);
            let name = named.and_then(|parameter| parameter.value.as_str()).unwrap_or(CLUSTER_NAME_DEFAULT);
            self.ports.topology.name_cluster(name);
        }
        if accounts {
            self.ports.accounts.set(catalog.accounts());
        }
        self.published.store(Arc::new(catalog.clone()));
        dismissed.iter().filter(|user| !catalog.has_user(user)).for_each(|user| self.ports.accounts.dismiss(user));
    }

    fn rule_space(&self, catalog: &Catalog, space: &str) {
        let policies = || self.policies.write().unwrap_or_else(PoisonError::into_inner);
        let Some(rules) = catalog.rules(space) else {
            policies().remove(space);
            return;
        };
        let set = Arc::new(PolicySet::new(&rules.policies, &rules.operator_policies, &self.clock));
        policies().insert(space.to_owned(), set.clone());
        self.ports.topology.rule_space(rules, set);
    }

    /// Which policies apply in a space; none where there is no such space.
    pub fn policies_of(&self, space: &str) -> Arc<PolicySet> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).get(space).cloned().unwrap_or_default()
    }

    /// Newest first. A step that cannot be undone is said and the others are undone all the same.
    fn undo(&self, applied: &mut Applied, untold: &mut Untold, done: &[Change], by: &Principal) {
        for change in done.iter().rev() {
            let inverse = change.inverse();
            let outcome = match self.step(&mut applied.catalog, untold, &inverse, by) {
                Ok(()) => "undone".to_owned(),
                Err(refusal) => format!("not undone: {}", refusal.what),
            };
            self.tell(by, &inverse, &outcome);
        }
    }

    fn tell(&self, by: &Principal, change: &Change, outcome: &str) {
        let queue = change.queue().map(Arc::from);
        self.tell_named(by, &change.space, Named { kind: change.kind(), name: change.name(), queue }, outcome);
    }

    fn tell_service(&self, by: &Principal, spec: &ServiceSpec, outcome: &str) {
        self.tell_named(by, &spec.space, Named { kind: "service", name: spec.name.to_string(), queue: None }, outcome);
    }

    fn tell_named(&self, by: &Principal, space: &Arc<str>, Named { kind, name, queue }: Named, outcome: &str) {
        let (change, by_user) = (outcome.into(), by.user.clone());
        let what = What::DefinitionChanged { kind, name: name.as_str().into(), change, by: by_user, queue };
        emit::happening(Happening { at_ns: self.clock.unix_nanos(), space: space.clone(), what });
        self.record(by, space.clone(), kind, name, outcome.to_owned());
    }

    fn record(&self, by: &Principal, space: Arc<str>, kind: &'static str, name: String, outcome: String) {
        let at_us = self.clock.unix_nanos() / 1_000;
        let (by, name, outcome) = (by.user.clone(), name.into(), outcome.into());
        self.audit.push(AuditEntry { seq: 0, at_us, by, space, kind, name, outcome });
    }
}

/// What a change is told of as.
struct Named {
    kind: &'static str,
    name: String,
    queue: Option<Arc<str>>,
}

impl Untold {
    fn note(&mut self, key: &EntryKey, exists: bool) {
        match key {
            EntryKey::User(user) => {
                self.accounts = true;
                if !exists {
                    self.dismissed.push(user.clone());
                }
            }
            EntryKey::Permission { .. } | EntryKey::TopicPermission { .. } => self.accounts = true,
            EntryKey::GlobalParameter(name) => self.cluster_name |= name == CLUSTER_NAME,
            EntryKey::Space(space)
            | EntryKey::Parameter { space, .. }
            | EntryKey::Policy { space, .. }
            | EntryKey::OperatorPolicy { space, .. } => {
                self.spaces.insert(space.clone());
            }
        }
    }
}

/// A new queue that names no type is of its space's, as the catalogue has it by then.
fn give_type(catalog: &Catalog, change: &mut Change) {
    if let (Verb::Create, Thing::Queue(spec)) = (change.verb, &mut change.thing)
        && let Some(Entry::Space(space)) = catalog.get(&EntryKey::Space(change.space.to_string()))
    {
        space.give_type(spec);
    }
}

/// Services that came, went or changed between two sets.
fn service_changes<'s>(before: &'s [ServiceSpec], after: &'s [ServiceSpec]) -> Vec<(&'s ServiceSpec, &'static str)> {
    let same = |a: &ServiceSpec, b: &ServiceSpec| (&a.space, &a.name) == (&b.space, &b.name);
    let come = after.iter().filter_map(|spec| match before.iter().find(|old| same(old, spec)) {
        None => Some((spec, "created")),
        Some(old) if old != spec => Some((spec, "changed")),
        Some(_) => None,
    });
    let gone = before.iter().filter(|old| !after.iter().any(|spec| same(old, spec))).map(|spec| (spec, "deleted"));
    come.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{queue, space};
    use super::*;
    use crate::model::identity::Permissions;
    use crate::model::service::ServiceName;
    use crate::model::service_spec::CommandLine;
    use crate::model::table::Field;
    use crate::model::topology::QUEUE_TYPE;

    /// A broker that is a list of steps taken, and that refuses one name.
    #[derive(Default)]
    struct Steps(Mutex<Vec<String>>);

    impl TopologyPort for Steps {
        fn present(&self) -> Definitions {
            space("/", &[], &["old"], &[])
        }

        fn apply(&self, change: &Change, _: &Principal) -> Result<(), Refusal> {
            if change.name() == "bad" {
                return Err(Refusal::new(RefusalKind::Invalid, "queue bad is bad"));
            }
            let kind = match &change.thing {
                Thing::Queue(spec) => spec.arguments.get(QUEUE_TYPE).and_then(Field::as_str),
                _ => None,
            };
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            self.0.lock().expect("no panic").push(format!("{:?} {}{kind}", change.verb, change.name()));
            Ok(())
        }

        fn open_space(&self, name: &str) {
            self.0.lock().expect("no panic").push(format!("Open {name}"));
        }

        fn close_space(&self, name: &str) {
            self.0.lock().expect("no panic").push(format!("Close {name}"));
        }

        fn rule_space(&self, rules: SpaceRules, _: Arc<PolicySet>) {
            self.0.lock().expect("no panic").push(format!("Rule {}", rules.space.name));
        }

        fn name_cluster(&self, name: &str) {
            self.0.lock().expect("no panic").push(format!("Name {name}"));
        }

        fn announce(&self, _: &EntryChange, _: &Principal) {}
    }

    impl AccountsPort for Steps {
        fn set(&self, accounts: Accounts) {
            self.0.lock().expect("no panic").push(format!("Admit {} users", accounts.users.len()));
        }

        fn dismiss(&self, user: &str) {
            self.0.lock().expect("no panic").push(format!("Dismiss {user}"));
        }
    }

    impl ServicePort for Steps {
        fn apply(&self, _: Vec<ServiceSpec>) -> Result<(), Refusal> {
            Ok(())
        }
    }

    fn control() -> (Arc<Steps>, Control) {
        let steps = Arc::new(Steps::default());
        let ports = Ports { topology: steps.clone(), accounts: steps.clone(), services: steps.clone() };
        let control = Control::new(Clock::manual(0), ports, Catalog::default());
        steps.0.lock().expect("no panic").clear();
        (steps, control)
    }

    fn ann() -> Principal {
        Principal::new("ann", Permissions::All)
    }

    fn taken(steps: &Steps) -> Vec<String> {
        steps.0.lock().expect("no panic").clone()
    }

    #[test]
    fn a_failing_step_undoes_the_ones_before_it_in_reverse() {
        let (steps, control) = control();
        let wanted = space("/", &[], &["one", "two", "bad", "three"], &[]);
        assert_eq!(control.apply(&wanted, Scope::Named, &ann()).expect_err("refused").what, "queue bad is bad");
        assert_eq!(taken(&steps), ["Create one", "Create two", "Delete two", "Delete one"]);
        let audit = control.audit(None, 10);
        let outcomes: Vec<_> = audit.rows.iter().map(|row| format!("{} {}", row.name, row.outcome)).collect();
        assert_eq!(outcomes, ["one undone", "two undone", "bad refused: queue bad is bad", "two created", "one created"]);
    }

    #[test]
    fn a_new_queue_that_names_no_type_is_of_its_spaces() {
        let (steps, control) = control();
        let mut wanted = space("/", &[], &["work", "passing", "old"], &[]);
        wanted.spaces.get_mut("/").expect("there").queues[1].durable = false;
        let quorum = Space { default_queue_type: Some("quorum".into()), ..Space::named("/") };
        wanted.catalog.put(Entry::Space(quorum));
        control.apply(&wanted, Scope::Named, &ann()).expect("applied");
        assert_eq!(taken(&steps), ["Open /", "Create work, quorum", "Create passing", "Rule /"]);
        control.change(vec![Change::create(&"/".into(), Thing::Queue(queue("one")))], &ann()).expect("applied");
        assert_eq!(taken(&steps).last().map(String::as_str), Some("Create one, quorum"));
    }

    #[test]
    fn a_refused_plan_has_no_effect() {
        let (steps, control) = control();
        let wanted = space("/", &["amq.mine"], &["one"], &[("nowhere", "one")]);
        let refusal = control.apply(&wanted, Scope::Named, &ann()).expect_err("refused");
        assert!(refusal.what.starts_with("2 definitions are refused"), "{refusal}");
        assert!(taken(&steps).is_empty());
    }

    #[test]
    fn whole_spaces_lose_what_is_not_listed() {
        let (steps, control) = control();
        control.apply(&space("/", &[], &["new"], &[]), Scope::WholeSpaces, &ann()).expect("applied");
        assert_eq!(taken(&steps), ["Create new", "Delete old"]);
    }

    #[test]
    fn built_in_exchanges_cannot_be_deleted_by_name() {
        let (steps, control) = control();
        let spec = super::super::plan::tests::exchange("reactor.call");
        let refusal = control.change(vec![Change::delete(&"/".into(), Thing::Exchange(spec))], &ann()).expect_err("refused");
        assert_eq!(refusal.kind, RefusalKind::Forbidden);
        control.change(vec![Change::delete(&"/".into(), Thing::Queue(queue("old")))], &ann()).expect("applied");
        assert_eq!(taken(&steps), ["Delete old"]);
    }

    #[test]
    fn services_that_come_go_and_change_are_told_apart() {
        let spec = |name: &str, command: &str| {
            ServiceSpec::new(ServiceName::new(name).expect("a name"), CommandLine::Text(command.into()), "/".into())
        };
        let before = [spec("a", "one"), spec("b", "one"), spec("c", "one")];
        let after = [spec("a", "one"), spec("b", "two"), spec("d", "one")];
        let told: Vec<_> = service_changes(&before, &after).iter().map(|(spec, what)| format!("{} {what}", spec.name)).collect();
        assert_eq!(told, ["b changed", "d created", "c deleted"]);
    }
}
