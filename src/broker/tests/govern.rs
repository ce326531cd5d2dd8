//! Limits, default types and the end of spaces.

use super::refused;
use super::world::World;
use crate::broker::{Broker, DefinitionWatch, Refused};
use crate::model::account::UserLimits;
use crate::model::catalog::SpaceRules;
use crate::model::change::Change;
use crate::model::identity::Principal;
use crate::model::policy::{ExchangePolicy, Policies, QueueKind, QueuePolicy};
use crate::model::space::{Space, SpaceLimits};
use crate::model::table::Field;
use crate::model::topology::{ExchangeKind, QueueSpec};
use std::fmt;
use std::sync::{Arc, Mutex};

fn rule(broker: &Broker, limits: SpaceLimits, default_queue_type: Option<&str>) {
    let space = Space { default_queue_type: default_queue_type.map(str::to_owned), ..Space::named("/") };
    broker.vhost("/").expect("the space").rule(SpaceRules { space, limits, ..SpaceRules::default() });
}

#[test]
fn a_space_holds_as_many_queues_and_connections_as_it_may() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("one");
    rule(&world.broker, SpaceLimits { max_queues: Some(1), max_connections: Some(1) }, None);
    peer.declare("one");
    let text = "406 cannot declare queue 'two': queue limit in vhost '/' (1) is reached";
    assert_eq!(refused(peer.try_declare("two", Default::default())), text);
    let limits = UserLimits::default();
    let text = "access to vhost '/' refused for user 'guest': connection limit (1) is reached".to_owned();
    assert_eq!(world.broker.admits_connection("/", "guest", limits), Err(Refused::NotAllowed(text)));
    rule(&world.broker, SpaceLimits { max_queues: Some(-1), max_connections: Some(-1) }, None);
    peer.declare("two");
    assert_eq!(world.broker.admits_connection("/", "guest", limits), Ok(()));
    let limits = UserLimits { max_connections: Some(1), max_channels: Some(0) };
    let text = "connection refused for user 'guest': user connection limit (1) is reached".to_owned();
    assert_eq!(world.broker.admits_connection("/", "guest", limits), Err(Refused::NotAllowed(text)));
    assert_eq!(world.broker.admits_connection("/", "ann", limits), Ok(()));
    assert!(world.broker.admits_channel("guest", limits).is_err() && world.broker.admits_channel("ann", limits).is_ok());
}

#[test]
fn a_queue_without_a_type_gets_the_spaces_where_it_can_have_it() {
    let world = World::new();
    let mut peer = world.connect();
    rule(&world.broker, SpaceLimits::default(), Some("quorum"));
    let durable = |name: &str| QueueSpec {
        name: name.into(),
        durable: true,
        exclusive: false,
        auto_delete: false,
        arguments: Default::default(),
    };
    peer.declare_as(durable("lasting")).expect("declared");
    peer.declare_as(QueueSpec { durable: false, ..durable("passing") }).expect("declared");
    let kind = |name: &str| {
        let view = world.broker.vhost("/").and_then(|vhost| vhost.queue(name)).expect("there");
        view.arguments.get("x-queue-type").and_then(Field::as_str).map(str::to_owned)
    };
    assert_eq!((kind("lasting").as_deref(), kind("passing").as_deref()), (Some("quorum"), None));
    peer.declare_as(durable("lasting")).expect("the same again");
}

#[test]
fn a_deleted_space_takes_its_queues_and_connections_along() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.publish("", "q", "x");
    assert!(world.broker.totals().queue_bytes > 0);
    assert!(world.broker.delete_vhost("/"));
    assert!(!world.broker.delete_vhost("/"));
    assert_eq!(peer.client.link().asked_to_close().map(AsRef::as_ref), Some("vhost '/' is deleted"));
    assert_eq!(world.broker.totals().queue_bytes, 0);
    assert!(world.broker.vhost("/").is_none());
    peer.client.close("closed");
    assert!(world.broker.create_vhost("/"));
    assert_eq!(world.broker.vhost("/").expect("made anew").queue_count(), 0);
}

#[test]
fn connections_of_a_user_can_be_closed_together() {
    let world = World::new();
    let peer = world.connect();
    world.broker.close_connections_of_user("ann", "user 'ann' is deleted");
    assert!(peer.client.link().asked_to_close().is_none());
    world.broker.close_connections_of_user("guest", "user 'guest' is deleted");
    assert!(peer.client.link().asked_to_close().is_some());
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl DefinitionWatch for Told {
    fn changed(&self, change: &Change, by: &Principal) {
        let line = format!("{} {} {} by {}", change.kind(), change.name(), change.verb.done(), by.user);
        self.0.lock().expect("no panic").push(line);
    }
}

#[test]
fn what_clients_define_is_told_if_it_lasts() {
    let world = World::new();
    let told = Arc::new(Told::default());
    world.broker.watch(told.clone());
    let mut peer = world.connect();
    peer.declare("passing");
    let lasting =
        QueueSpec { name: "lasting".into(), durable: true, exclusive: false, auto_delete: false, arguments: Default::default() };
    peer.declare_as(lasting.clone()).expect("declared");
    peer.declare_as(lasting).expect("declared again");
    peer.bind("lasting", "amq.topic", "a.#").expect("bound");
    peer.bind("passing", "amq.topic", "a.#").expect("bound");
    peer.delete("lasting").expect("deleted");
    let told = told.0.lock().expect("no panic").join("\n");
    let lines = "queue lasting created by guest\nbinding amq.topic > lasting with a.# created by guest\n\
                 queue lasting deleted by guest";
    assert_eq!(told, lines);
}

#[test]
fn a_lasting_queue_that_expires_is_told_too() {
    let world = World::new();
    let told = Arc::new(Told::default());
    world.broker.watch(told.clone());
    let mut peer = world.connect();
    let arguments = super::world::arguments_of([("x-expires", crate::model::table::Field::I32(50))]);
    let spec = QueueSpec { name: "brief".into(), durable: true, exclusive: false, auto_delete: false, arguments };
    peer.declare_as(spec).expect("declared");
    world.wait(50);
    let told = told.0.lock().expect("no panic").join("\n");
    assert_eq!(told, "queue brief created by guest\nqueue brief deleted by rmq-internal");
}

/// Policies that others take the place of while they are asked.
struct Passing {
    broker: Arc<Broker>,
    next: Mutex<Option<Arc<dyn Policies>>>,
}

impl Passing {
    fn pass(&self) {
        // Setting policies looks through the whole topology: it would wait for ever for whoever asks under its lock.
        if let Some(next) = self.next.lock().expect("no panic").take() {
            self.broker.vhost("/").expect("the space").set_policies(next);
        }
    }
}

impl fmt::Debug for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("policies that pass")
    }
}

impl Policies for Passing {
    fn of_queue(&self, _: &str, _: QueueKind) -> QueuePolicy {
        self.pass();
        QueuePolicy { policy: Some("before".into()), ..QueuePolicy::default() }
    }

    fn of_exchange(&self, name: &str) -> ExchangePolicy {
        if !name.starts_with("amq.") && !name.starts_with("reactor.") {
            self.pass();
        }
        ExchangePolicy { policy: Some("before".into()), ..ExchangePolicy::default() }
    }
}

#[derive(Debug)]
struct Lasting;

impl Policies for Lasting {
    fn of_queue(&self, _: &str, _: QueueKind) -> QueuePolicy {
        QueuePolicy { policy: Some("after".into()), ..QueuePolicy::default() }
    }

    fn of_exchange(&self, _: &str) -> ExchangePolicy {
        ExchangePolicy { policy: Some("after".into()), ..ExchangePolicy::default() }
    }
}

#[test]
fn policies_are_matched_without_holding_up_others_and_a_change_meanwhile_is_not_missed() {
    let world = World::new();
    let mut peer = world.connect();
    let vhost = world.broker.vhost("/").expect("the space");
    let pass = || {
        let next: Arc<dyn Policies> = Arc::new(Lasting);
        vhost.set_policies(Arc::new(Passing { broker: world.broker.clone(), next: Mutex::new(Some(next)) }));
    };
    pass();
    peer.declare("q");
    assert_eq!(world.view("q").policy.policy.as_deref(), Some("after"));
    peer.delete("q").expect("deleted");
    pass();
    peer.exchange("e", ExchangeKind::Fanout);
    let exchange = vhost.exchanges().into_iter().find(|exchange| &*exchange.name == "e").expect("declared");
    assert_eq!(exchange.policy.as_deref(), Some("after"));
}
