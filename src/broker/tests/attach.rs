//! Which services a connection is an instance of (contract §7).

use super::world::World;
use crate::broker::config::{Attachment, Attachments, BrokerConfig};
use crate::broker::core::Broker;
use crate::kernel::Clock;
use crate::model::table::{Field, Table};
use crate::model::topology::{CALL_EXCHANGE, EVENT_EXCHANGE};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Attachments for Noted {
    fn attached(&self, attachment: &Attachment) {
        let language = attachment.language.as_deref().unwrap_or("-");
        self.0
            .lock()
            .expect("free")
            .push(format!("+{} {} {:?} {language}", attachment.service, attachment.instance, attachment.how));
    }
    fn detached(&self, attachment: &Attachment, reason: &str) {
        self.0.lock().expect("free").push(format!("-{} {} {reason}", attachment.service, attachment.instance));
    }
}

#[test]
fn a_connection_is_an_instance_of_each_service_whose_queue_it_consumes() {
    let noted = Arc::new(Noted::default());
    let clock = Clock::manual(0);
    let broker = Broker::new(clock.clone(), BrokerConfig::default(), noted.clone());
    let world = World { clock, broker };
    let told = || std::mem::take(&mut *noted.0.lock().expect("free"));
    let mut named = world.connect_as(
        Table::new().with("connection_name", Field::text("web:1")).with("product", Field::text("Pika Python Client Library")),
        131_072,
    );
    named.declare("greeter.calls");
    named.consume("greeter.calls", "c", 0, true).expect("consuming");
    assert!(told().is_empty());
    named.bind("greeter.calls", CALL_EXCHANGE, "greeter.#").expect("bound");
    assert_eq!(told(), ["+greeter web:1 Calls python"]);
    named.declare("mailer.event");
    named.bind("mailer.event", EVENT_EXCHANGE, "order.*").expect("bound");
    named.consume("mailer.event", "e", 0, true).expect("consuming");
    assert_eq!(told(), ["+mailer web:1 Events python"]);
    let mut plain = world.connect();
    plain.consume("greeter.calls", "c", 0, true).expect("consuming");
    assert_eq!(told(), ["+greeter greeter-1 Calls -"]);
    named.client.cancel(1, "c").expect("cancelled");
    assert_eq!(told(), ["-greeter web:1 it stopped consuming"]);
    plain.client.close("it said goodbye");
    assert_eq!(told(), ["-greeter greeter-1 it said goodbye"]);
    named.client.close("it was lost");
    assert_eq!(told(), ["-mailer web:1 it was lost"]);
}
