//! §5: what can go wrong, row by row.

use super::*;
use crate::gateway::testing::{Script, part, status};
use crate::model::call::{CallEvent, CallFailure};
use crate::model::service::InstanceState;
use crate::model::table::Table;
use std::time::Duration;

fn refusing(failure: CallFailure) -> Arc<FakeBus> {
    FakeBus::new(move |_| Script::Refuse(failure.clone()))
}

fn failing(failure: CallFailure) -> Arc<FakeBus> {
    FakeBus::new(move |_| Script::Events(vec![CallEvent::Failed(failure.clone())]))
}

#[tokio::test]
async fn no_binding_is_404_and_lists_what_is_attached() {
    let gateway = plain(&refusing(CallFailure::Unbound { attached: vec!["greeter".into()] }));
    gateway.add("orders", ([127, 0, 0, 1], 9).into(), |_| {});
    let answered = gateway.send(get("/nobody/x"), "").await;
    assert_eq!(answered.status, StatusCode::NOT_FOUND);
    let json = answered.json();
    assert_eq!(json["attached"], serde_json::json!(["greeter", "orders"]));
    assert_eq!(json["trace_id"].as_str().expect("a trace id").len(), 32);
    assert!(json["next"].as_str().expect("text").contains("nobody.#"));
    assert_eq!((json["status"].as_u64(), json["type"].as_str()), (Some(404), Some("/problems/no-service")));
}

#[tokio::test]
async fn strangers_are_not_told_what_is_attached() {
    let gateway = plain(&refusing(CallFailure::Unbound { attached: vec!["greeter".into()] }));
    for (peer, host) in [("192.0.2.1", "localhost"), ("127.0.0.1", "evil.example")] {
        let request = Request::builder().uri("/nobody").header("host", host).body(Full::new(Bytes::new())).expect("a request");
        let answered = Answered::of(gateway.gateway.clone().handle(request, conn(peer)).await).await;
        assert_eq!(answered.status, StatusCode::NOT_FOUND);
        assert!(answered.json().get("attached").is_none(), "{peer} {host}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_404_and_lists_the_known_ones() {
    let failure = CallFailure::NoSuchVersion { service: "greeter".into(), version: 9, attached: vec![1, 2] };
    let answered = plain(&refusing(failure)).send(get("/greeter/v9/x"), "").await;
    assert_eq!(answered.status, StatusCode::NOT_FOUND);
    assert_eq!(answered.json()["attached"], serde_json::json!(["v1", "v2"]));
}

#[tokio::test]
async fn bound_without_consumer_is_503_with_retry_after() {
    let failure = CallFailure::NoConsumer { service: "greeter".into(), last_seen: None };
    let answered = plain(&refusing(failure)).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answered.headers["retry-after"], "1");
    assert_eq!(answered.json()["type"], "/problems/no-consumer");
}

#[tokio::test]
async fn no_reply_by_the_deadline_is_504_whether_or_not_it_was_taken() {
    let gateway = gateway(FakeBus::new(|_| Script::Events(Vec::new())), |config| config.deadline = Duration::from_millis(30));
    let answered = gateway.send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::GATEWAY_TIMEOUT);
    let detail = answered.json()["detail"].as_str().expect("text").to_owned();
    assert!(detail.contains("greeter-1 of greeter took the call"), "{detail}");
}

#[tokio::test]
async fn a_worker_that_goes_away_is_502_at_once() {
    let failure = CallFailure::WorkerGone { service: "greeter".into(), instance: "greeter-1".into() };
    let bus = failing(failure);
    let answered = plain(&bus).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
    assert_eq!(bus.calls.lock().expect("not poisoned").len(), 1, "never repeated");
}

#[tokio::test]
async fn a_rejected_call_is_502() {
    let answered = plain(&failing(CallFailure::Rejected { service: "greeter".into() })).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
    assert_eq!(answered.json()["type"], "/problems/rejected");
}

#[tokio::test]
async fn a_full_queue_is_503_with_retry_after() {
    let answered = plain(&refusing(CallFailure::Full { queue: "greeter".into() })).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answered.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_frame_too_small_is_502_and_names_frame_max() {
    let answered = plain(&refusing(CallFailure::FrameTooSmall { frame_max: 4096 })).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
    assert!(answered.json()["detail"].as_str().expect("text").contains("frame_max of 4096"));
}

#[tokio::test]
async fn a_service_that_left_a_moment_ago_is_waited_for() {
    let mut tries = 0;
    let bus = FakeBus::new(move |_| {
        tries += 1;
        match tries {
            1..=3 => {
                let last_seen = Some(Duration::from_millis(100));
                Script::Refuse(CallFailure::NoConsumer { service: "greeter".into(), last_seen })
            }
            _ => Script::Events(vec![part(status(200), "back", true)]),
        }
    });
    let answered = plain(&bus).send(get("/greeter"), "").await;
    assert_eq!((answered.status, answered.text()), (StatusCode::OK, "back"));
}

#[tokio::test]
async fn a_service_whose_bindings_went_with_it_is_waited_for_too() {
    let mut tries = 0;
    let bus = FakeBus::new(move |_| {
        tries += 1;
        match tries {
            1..=3 => Script::Refuse(CallFailure::Unbound { attached: Vec::new() }),
            _ => Script::Events(vec![part(status(200), "back", true)]),
        }
    });
    let gateway = plain(&bus);
    let id = gateway.attach("greeter");
    gateway.gateway.attached();
    gateway.registry.detach(id);
    assert_eq!(gateway.send(get("/greeter"), "").await.text(), "back");
}

#[tokio::test]
async fn a_service_that_reactor_runs_is_503_and_not_404_while_it_is_not_there() {
    let gateway = plain(&refusing(CallFailure::Unbound { attached: Vec::new() }));
    for (state, words) in [(InstanceState::Failing, "does not stay up"), (InstanceState::Ready, "neither listens")] {
        let id = gateway.add("greeter", ([127, 0, 0, 1], 9).into(), |instance| (instance.http, instance.state) = (None, state));
        let answered = gateway.send(get("/greeter"), "").await;
        assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(answered.text().contains(words), "{}", answered.text());
        gateway.registry.remove(id);
    }
}

#[tokio::test]
async fn waiting_ends_after_the_hold_and_only_recent_absences_are_waited_for() {
    let waits = |last_seen, hold| async move {
        let bus = refusing(CallFailure::NoConsumer { service: "greeter".into(), last_seen: Some(last_seen) });
        let gateway = gateway(bus.clone(), |config| config.hold = hold);
        assert_eq!(gateway.send(get("/greeter"), "").await.status, StatusCode::SERVICE_UNAVAILABLE);
        bus.calls.lock().expect("not poisoned").len()
    };
    assert!(waits(Duration::from_secs(1), Duration::from_millis(60)).await > 1);
    assert_eq!(waits(Duration::from_secs(6), Duration::from_secs(2)).await, 1);
    assert_eq!(waits(Duration::from_secs(1), Duration::ZERO).await, 1);
}

#[tokio::test]
async fn bad_hosts_are_400() {
    let gateway = plain(&FakeBus::replying(Table::new(), "x"));
    let none = Request::builder().uri("/greeter");
    assert_eq!(gateway.send(none, "").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(gateway.send(get("/greeter").header("host", "second"), "").await.status, StatusCode::BAD_REQUEST);
    let bad = Request::builder().uri("/greeter").header("host", "x/y");
    assert_eq!(gateway.send(bad, "").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn failures_are_counted_as_the_services_and_404s_as_nobodys() {
    let gateway = plain(&refusing(CallFailure::NoConsumer { service: "greeter".into(), last_seen: None }));
    gateway.send(get("/greeter"), "").await;
    let stats = gateway.gateway.stats();
    assert_eq!((stats.services[0].counts.failed, stats.total.failed), (1, 1));
    let gateway = plain(&refusing(CallFailure::Unbound { attached: Vec::new() }));
    gateway.send(get("/made-up-name"), "").await;
    let stats = gateway.gateway.stats();
    assert!(stats.services.is_empty());
    assert_eq!((stats.total.requests, stats.total.failed), (1, 0));
}
