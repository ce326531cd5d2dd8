//! What views count of channels, queues and spaces.

use super::world::World;
use crate::broker::Flow;
use crate::broker::client::Verdict;

#[test]
fn every_way_through_a_queue_is_counted_by_channel_and_by_space() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.client.select_confirms(1).expect("an open channel");
    for body in ["a", "b", "c", "d"] {
        peer.publish("", "q", body);
    }
    peer.publish("", "nowhere", "lost");
    peer.consume("q", "one", 2, false).expect("consuming");
    peer.ack(1);
    peer.client.cancel(1, "one").expect("cancelled");
    peer.settle(0, true, Verdict::Requeue).expect("known");
    assert!(peer.get("q").is_some());
    peer.settle(0, true, Verdict::Ack).expect("known");
    let mut other = world.connect();
    other.consume("q", "two", 0, true).expect("consuming");
    assert!(other.get("q").is_none());

    let vhost = world.broker.vhost("/").expect("the default space");
    let queue = vhost.queue("q").expect("declared").counts;
    let ways = (queue.published, queue.delivered, queue.delivered_no_ack, queue.got, queue.got_no_ack, queue.got_empty);
    assert_eq!(ways, (4, 6, 2, 1, 0, 1));
    let whole = Flow {
        publish: 5,
        confirm: 5,
        return_unroutable: 0,
        drop_unroutable: 1,
        deliver: 3,
        deliver_no_ack: 2,
        get: 1,
        get_no_ack: 0,
        get_empty: 1,
        ack: 2,
        redeliver: 2,
    };
    assert_eq!(world.broker.flows()["/"], whole);
    assert_eq!(whole.deliver_get(), queue.delivered);
    drop((peer, other));
    assert_eq!(world.broker.flows()["/"], whole, "channels that ended count on");
    let churn = world.broker.churn();
    assert_eq!((churn.channels_opened, churn.channels_closed, churn.queues_created), (2, 2, 1));
}
