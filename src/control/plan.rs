//! Plan and check: which steps lead from what is to what is wanted, and what stands in the way. No effects.

use super::check;
use crate::kernel::limit::SHORT_STRING_BYTES_MAX;
use crate::model::catalog::{Catalog, Entry};
use crate::model::change::{Change, Thing, Verb};
use crate::model::definitions::{Definitions, SpaceDefinitions, same_arguments};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::Space;
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeSpec, QUEUE_TYPE, QueueSpec, is_built_in};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use utoipa::ToSchema;

/// Steps of one plan; more are refused.
pub const CHANGES_MAX: usize = 100_000;

/// How much of what exists the wanted definitions speak for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// Only what they name: nothing is deleted (as a RabbitMQ import).
    #[default]
    Named,
    /// Everything durable in the spaces they name: what they do not list is deleted, queues only when empty.
    WholeSpaces,
}

/// Steps in order, and why it cannot be applied, if so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub changes: Vec<Change>,
    pub refusals: Vec<Refusal>,
}

/// One step as people see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PlannedChange {
    pub space: Arc<str>,
    /// `space`, `exchange`, `queue`, `binding`, `user`, `permission`, `policy`, ….
    pub kind: &'static str,
    pub name: String,
    /// `create`, `update` or `delete`.
    #[schema(value_type = String)]
    pub change: Verb,
}

impl From<&Change> for PlannedChange {
    fn from(change: &Change) -> Self {
        PlannedChange { space: change.space.clone(), kind: change.kind(), name: change.name(), change: change.verb }
    }
}

/// The steps from `present` to `wanted`: spaces and the rest of the catalogue, exchanges, queues, bindings; then deletions the other way round, last, so that a
/// failure before them costs nothing.
pub fn plan(present: &Definitions, wanted: &Definitions, scope: Scope) -> Plan {
    let mut plan = Plan::default();
    let mut deletions = Vec::new();
    let nothing = SpaceDefinitions::default();
    entries(&mut plan, present, wanted);
    for (space, wanted) in &wanted.spaces {
        let present = present.spaces.get(space).unwrap_or(&nothing);
        creations(&mut plan, space, present, wanted);
        if scope == Scope::WholeSpaces {
            deletions.extend(removals(space, present, wanted));
        }
    }
    plan.changes.append(&mut deletions);
    if plan.changes.len() > CHANGES_MAX {
        let what = format!("the definitions need {} changes, more than {CHANGES_MAX}", plan.changes.len());
        plan.refusals.push(Refusal::new(RefusalKind::TooLarge, what).hint("Apply them in parts."));
    }
    plan
}

/// Entries of the catalogue that are new or different. A space that is only named, by what is in it, needs no words of its own.
fn entries(plan: &mut Plan, present: &Definitions, wanted: &Definitions) {
    let exists = |space: &str| present.catalog.has_space(space) || present.spaces.contains_key(space);
    let named = wanted.spaces.keys().filter(|space| !exists(space) && !wanted.catalog.has_space(space));
    let named: Catalog = named.map(|space| Entry::Space(Space::named(space))).collect();
    let wanted = || named.iter().chain(wanted.catalog.iter());
    let mut after = present.catalog.clone();
    wanted().for_each(|(_, entry)| drop(after.put(entry.clone())));
    for (key, entry) in wanted() {
        let was = present.catalog.get(key);
        if was == Some(entry) {
            continue;
        }
        match check::entry(entry, &after) {
            Ok(()) => plan.changes.extend(Change::entry(was.cloned(), Some(entry.clone()))),
            Err(refusal) => plan.refusals.push(refusal),
        }
    }
}

/// The things of one space by name, so that long lists are compared in one pass.
struct Index<'d> {
    exchanges: HashMap<&'d str, &'d ExchangeSpec>,
    queues: HashMap<&'d str, &'d QueueSpec>,
    /// By source, destination and key.
    bindings: HashMap<(&'d str, &'d str, &'d str), Vec<&'d BindingSpec>>,
}

impl<'d> Index<'d> {
    fn of(things: &'d SpaceDefinitions) -> Self {
        let mut bindings: HashMap<_, Vec<&BindingSpec>> = HashMap::new();
        for spec in &things.bindings {
            bindings.entry(place(spec)).or_default().push(spec);
        }
        Index {
            exchanges: things.exchanges.iter().map(|spec| (spec.name.as_str(), spec)).collect(),
            queues: things.queues.iter().map(|spec| (spec.name.as_str(), spec)).collect(),
            bindings,
        }
    }

    fn has_binding(&self, spec: &BindingSpec) -> bool {
        self.bindings.get(&place(spec)).is_some_and(|those| those.iter().any(|known| same_binding(known, spec)))
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        match kind {
            "queue" => self.queues.contains_key(name),
            _ => is_built_in(name) || self.exchanges.contains_key(name),
        }
    }
}

fn place(spec: &BindingSpec) -> (&str, &str, &str) {
    (&spec.source, &spec.destination, &spec.routing_key)
}

fn creations(plan: &mut Plan, space: &Arc<str>, present: &SpaceDefinitions, wanted: &SpaceDefinitions) {
    let (here, coming) = (Index::of(present), Index::of(wanted));
    for spec in &wanted.exchanges {
        match here.exchanges.get(spec.name.as_str()) {
            Some(known) if same_exchange(known, spec) => {}
            Some(_) => plan.refusals.push(differs("exchange", space, &spec.name)),
            None => plan.add(space, "exchange", &spec.name, Thing::Exchange(spec.clone())),
        }
    }
    for spec in &wanted.queues {
        match here.queues.get(spec.name.as_str()) {
            Some(known) if same_queue(known, spec) => {}
            Some(_) => plan.refusals.push(differs("queue", space, &spec.name)),
            None => plan.add(space, "queue", &spec.name, Thing::Queue(spec.clone())),
        }
    }
    for spec in wanted.bindings.iter().filter(|spec| !here.has_binding(spec)) {
        let known = |name: &str, kind: &str| -> Option<Refusal> {
            (!here.has(kind, name) && !coming.has(kind, name)).then(|| {
                let what = format!("a binding in space {space} names the {kind} {name}, which does not exist");
                Refusal::new(RefusalKind::NotFound, what).hint(format!("Define the {kind} too, or correct its name."))
            })
        };
        match known(&spec.source, "exchange").or_else(|| known(&spec.destination, spec.destination_kind.as_str())) {
            Some(refusal) => plan.refusals.push(refusal),
            None => plan.changes.push(Change::create(space, Thing::Binding(spec.clone()))),
        }
    }
}

fn removals(space: &Arc<str>, present: &SpaceDefinitions, wanted: &SpaceDefinitions) -> Vec<Change> {
    let wanted = Index::of(wanted);
    let goes = |spec: &&QueueSpec| !wanted.queues.contains_key(spec.name.as_str());
    // A binding to a queue that goes is gone with it.
    let going: HashSet<&str> = present.queues.iter().filter(goes).map(|spec| spec.name.as_str()).collect();
    let with_queue =
        |spec: &BindingSpec| spec.destination_kind == DestinationKind::Queue && going.contains(spec.destination.as_str());
    let bindings = present.bindings.iter().filter(|spec| !wanted.has_binding(spec) && !with_queue(spec));
    let exchanges = present.exchanges.iter().filter(|spec| !wanted.has("exchange", &spec.name));
    bindings
        .map(|spec| Thing::Binding(spec.clone()))
        .chain(present.queues.iter().filter(goes).map(|spec| Thing::Queue(spec.clone())))
        .chain(exchanges.map(|spec| Thing::Exchange(spec.clone())))
        .map(|thing| Change::delete(space, thing))
        .collect()
}

impl Plan {
    fn add(&mut self, space: &Arc<str>, kind: &str, name: &str, thing: Thing) {
        match check_name(kind, name) {
            Ok(()) => self.changes.push(Change::create(space, thing)),
            Err(refusal) => self.refusals.push(refusal),
        }
    }
}

/// Names that a person may give to something new.
fn check_name(kind: &str, name: &str) -> Result<(), Refusal> {
    let refuse = |what: String, next: &str| Err(Refusal::new(RefusalKind::Invalid, what).hint(next));
    if name.is_empty() {
        return refuse(format!("a {kind} has no name"), "Give it one.");
    }
    if name.len() > SHORT_STRING_BYTES_MAX {
        return refuse(format!("the {kind} name {name:.40}… has {} bytes", name.len()), "Use at most 255.");
    }
    match ["amq.", "reactor."].iter().find(|prefix| name.starts_with(**prefix)) {
        Some(prefix) => refuse(format!("{kind} {name} begins with {prefix}, which is reserved"), "Choose another name."),
        None => Ok(()),
    }
}

fn differs(kind: &str, space: &str, name: &str) -> Refusal {
    let what = format!("{kind} {name} in space {space} exists with other properties");
    Refusal::new(RefusalKind::Conflict, what).hint(format!("Delete the {kind} first, or make the definition equal to it."))
}

fn same_exchange(known: &ExchangeSpec, wanted: &ExchangeSpec) -> bool {
    (known.kind, known.durable, known.auto_delete, known.internal)
        == (wanted.kind, wanted.durable, wanted.auto_delete, wanted.internal)
        && same_arguments(&known.arguments, &wanted.arguments)
}

/// A queue that names no type may be of any: it got its space's when it was made. One that exists without one is classic.
fn same_queue(known: &QueueSpec, wanted: &QueueSpec) -> bool {
    let kind = known.arguments.get(QUEUE_TYPE).cloned().unwrap_or(Field::text("classic"));
    let typed = |arguments: &Table| match arguments.get(QUEUE_TYPE) {
        Some(_) => arguments.clone(),
        None => arguments.clone().with(QUEUE_TYPE, kind.clone()),
    };
    (known.durable, known.exclusive, known.auto_delete) == (wanted.durable, wanted.exclusive, wanted.auto_delete)
        && same_arguments(&typed(&known.arguments), &typed(&wanted.arguments))
}

fn same_binding(known: &BindingSpec, wanted: &BindingSpec) -> bool {
    (&known.source, &known.destination, known.destination_kind, &known.routing_key)
        == (&wanted.source, &wanted.destination, wanted.destination_kind, &wanted.routing_key)
        && same_arguments(&known.arguments, &wanted.arguments)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::topology::ExchangeKind;

    pub fn queue(name: &str) -> QueueSpec {
        QueueSpec { name: name.into(), durable: true, exclusive: false, auto_delete: false, arguments: Table::new() }
    }

    pub fn exchange(name: &str) -> ExchangeSpec {
        ExchangeSpec {
            name: name.into(),
            kind: ExchangeKind::Topic,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: Table::new(),
        }
    }

    pub fn binding(source: &str, queue: &str) -> BindingSpec {
        BindingSpec {
            source: source.into(),
            destination: queue.into(),
            destination_kind: DestinationKind::Queue,
            routing_key: "#".into(),
            arguments: Table::new(),
        }
    }

    pub fn space(name: &str, exchanges: &[&str], queues: &[&str], bindings: &[(&str, &str)]) -> Definitions {
        let definitions = SpaceDefinitions {
            exchanges: exchanges.iter().map(|name| exchange(name)).collect(),
            queues: queues.iter().map(|name| queue(name)).collect(),
            bindings: bindings.iter().map(|(source, queue)| binding(source, queue)).collect(),
        };
        Definitions { spaces: [(name.into(), definitions)].into(), ..Definitions::default() }
    }

    fn steps(plan: &Plan) -> Vec<String> {
        plan.changes.iter().map(|change| format!("{:?} {} {}", change.verb, change.kind(), change.name())).collect()
    }

    #[test]
    fn what_is_already_there_needs_no_change() {
        let both = space("/", &["prices"], &["work"], &[("prices", "work")]);
        assert_eq!(plan(&both, &both, Scope::WholeSpaces), Plan::default());
    }

    #[test]
    fn a_queue_that_names_no_type_fits_one_of_any_and_one_that_has_none_is_classic() {
        let of = |kind: Option<&str>| {
            let mut definitions = space("/", &[], &["work"], &[]);
            let arguments = kind.map(|kind| Table::new().with(QUEUE_TYPE, Field::text(kind))).unwrap_or_default();
            definitions.spaces.get_mut("/").expect("there").queues[0].arguments = arguments;
            definitions
        };
        let fits = |present, wanted| plan(&of(present), &of(wanted), Scope::WholeSpaces).refusals.is_empty();
        for kind in [None, Some("classic"), Some("quorum")] {
            assert!(fits(kind, None) && fits(kind, kind), "{kind:?}");
        }
        assert!(fits(None, Some("classic")));
        assert!(!fits(None, Some("quorum")) && !fits(Some("classic"), Some("quorum")) && !fits(Some("quorum"), Some("classic")));
    }

    #[test]
    fn things_are_created_before_what_needs_them() {
        let wanted = space("staging", &["prices"], &["work"], &[("prices", "work")]);
        let plan = plan(&Definitions::default(), &wanted, Scope::Named);
        assert_eq!(
            steps(&plan),
            ["Create space staging", "Create exchange prices", "Create queue work", "Create binding prices > work with #"]
        );
        assert!(plan.refusals.is_empty());
    }

    #[test]
    fn nothing_is_deleted_unless_whole_spaces_are_spoken_for() {
        let present =
            space("/", &["amq.topic", "prices", "reactor.call"], &["work", "kept"], &[("prices", "work"), ("prices", "kept")]);
        let wanted = space("/", &[], &["kept"], &[]);
        assert!(plan(&present, &wanted, Scope::Named).changes.is_empty());
        let whole = plan(&present, &wanted, Scope::WholeSpaces);
        assert_eq!(steps(&whole), ["Delete binding prices > kept with #", "Delete queue work", "Delete exchange prices"]);
    }

    #[test]
    fn other_properties_reserved_names_and_dangling_bindings_are_refused() {
        let present = space("/", &[], &["work"], &[]);
        let mut wanted = space("/", &["amq.mine"], &["work", "reactor.x"], &[("nowhere", "work"), ("amq.topic", "gone")]);
        let known = wanted.spaces.get_mut("/").expect("there");
        known.queues[0].arguments = Table::new().with("x-max-length", Field::I32(1));
        let plan = plan(&present, &wanted, Scope::Named);
        assert!(plan.changes.is_empty());
        let said: Vec<String> = plan.refusals.iter().map(Refusal::to_string).collect();
        for part in [
            "amq.mine begins with amq.",
            "work in space / exists with other",
            "reactor.x begins",
            "exchange nowhere",
            "queue gone",
        ] {
            assert!(said.iter().any(|text| text.contains(part)), "{part} not in {said:?}");
        }
    }
}
