//! Supervised services of a real `reactor`, as its configuration, its doors and its signals reach them.

use crate::support::{DEADLINE, Reactor, http, wait_until, wait_until_blocking};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn lines(reactor: &Reactor, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(reactor.directory().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn until_lines(reactor: &Reactor, file: &str, count: usize) -> Vec<String> {
    wait_until_blocking(&format!("{count} lines in {file}"), DEADLINE, || lines(reactor, file).len() >= count);
    lines(reactor, file)
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn service(reactor: &Reactor, name: &str) -> Value {
    let response = http().get(format!("{}/api/v1/services", reactor.api())).send().await.expect("an answer");
    let services: Value = response.json().await.expect("JSON");
    let found = services.as_array().expect("a list").iter().find(|service| service["name"] == name);
    found.cloned().unwrap_or(Value::Null)
}

async fn until_state(reactor: &Reactor, name: &str, state: &str) -> Value {
    wait_until(&format!("{name} is {state}"), DEADLINE, || async { service(reactor, name).await["state"] == state }).await;
    service(reactor, name).await
}

const STUBBORN: &str = r#"
[services.stubborn]
command = '''
trap '' TERM
sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1000; done' &
setsid sh -c 'trap "" TERM; echo $$ >> pids; sh -c "echo \$\$ >> pids; exec sleep 1000" & wait' &
echo $$ >> pids
while :; do sleep 1000; done
'''
grace = "300ms"
"#;

#[test]
fn kill_minus_nine_of_reactor_leaves_no_orphan_after_two_seconds() {
    let mut reactor = Reactor::start(STUBBORN);
    let pids = until_lines(&reactor, "pids", 4);
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    reactor.signal("KILL");
    reactor.wait();
    wait_until_blocking("every descendant is gone", Duration::from_secs(2), || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn a_terminated_reactor_ends_its_services_first() {
    let reactor = Reactor::start(STUBBORN);
    let pids = until_lines(&reactor, "pids", 4);
    assert!(reactor.stop().success());
    assert!(!pids.iter().any(|pid| is_alive(pid)), "nothing is left when reactor has ended");
}

#[test]
fn a_service_can_send_its_last_telemetry_while_reactor_stops() {
    let script = "import os, signal, sys, urllib.request
def stop(*_):
    url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/logs'
    request = urllib.request.Request(url, b'{}', {'content-type': 'application/json'})
    print(urllib.request.urlopen(request, timeout=3).status, file=open('answer', 'w'))
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open('listening', 'w').write('yes\\n')
signal.pause()";
    let mut reactor = Reactor::start(&format!("[services.last]\ncommand = ['python3', '-c', '''{script}''']\nport = false\n"));
    until_lines(&reactor, "listening", 1);
    reactor.signal("TERM");
    assert!(reactor.wait().success());
    assert_eq!(lines(&reactor, "answer"), ["200"]);
}

#[tokio::test]
async fn a_service_is_stopped_started_and_restarted_over_the_api() {
    let reactor = Reactor::start("[services.sleeper]\ncommand = 'sleep 1000'\n");
    let first = until_state(&reactor, "sleeper", "ready").await;
    let command = |verb: &'static str| {
        let url = format!("{}/api/v1/services/sleeper/{verb}", reactor.api());
        async move { http().post(url).send().await.expect("an answer").status() }
    };
    assert!(command("stop").await.is_success());
    let stopped = until_state(&reactor, "sleeper", "stopped").await;
    assert_eq!(stopped["instances"][0]["pid"], Value::Null);
    assert!(command("start").await.is_success());
    let second = until_state(&reactor, "sleeper", "ready").await;
    assert_ne!(second["instances"][0]["pid"], first["instances"][0]["pid"]);
    assert!(command("restart").await.is_success());
    wait_until("another process runs", DEADLINE, || async {
        let now = service(&reactor, "sleeper").await;
        now["state"] == "ready" && now["instances"][0]["pid"] != second["instances"][0]["pid"]
    })
    .await;
    assert!(command("explode").await.is_client_error());
}

#[tokio::test]
async fn output_is_in_the_console_and_in_the_logs() {
    let reactor = Reactor::start(
        r#"
[services.talker]
command = '''
printf '\033[33mWARN\033[0m low on tea\n'
echo '{"level":"error","msg":"kettle broke","kettle":7}' >&2
sleep 1000
'''
"#,
    );
    until_state(&reactor, "talker", "ready").await;
    let logs = format!("{}/api/v1/logs?query=service:talker", reactor.api());
    let rows = || async {
        let page: Value = http().get(&logs).send().await.expect("an answer").json().await.expect("JSON");
        page["rows"].as_array().cloned().unwrap_or_default()
    };
    wait_until("both lines are log records", DEADLINE, || async { rows().await.len() >= 2 }).await;
    let rows = rows().await;
    let find =
        |body: &str| rows.iter().find(|row| row["body"] == body).unwrap_or_else(|| panic!("no {body} in {rows:?}")).clone();
    let warning = find("WARN low on tea");
    assert_eq!((&warning["level"], &warning["instance"]), (&Value::from("warn"), &Value::from("talker-1")));
    let error = find("kettle broke");
    assert_eq!((&error["level"], &error["attributes"]["kettle"]), (&Value::from("error"), &Value::from(7)));
    let console = http().get(format!("{}/api/v1/services/talker/console", reactor.api())).send().await.expect("an answer");
    let console = console.text().await.expect("a body");
    assert!(console.contains("\\u001b[33mWARN"), "colours are kept: {console}");
}

#[tokio::test]
async fn a_supervised_http_service_answers_through_the_gateway() {
    let reactor = Reactor::start(
        r#"
[services.files]
command = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "${PORT}"]
port = "auto"
"#,
    );
    std::fs::write(reactor.directory().join("note.txt"), "found").expect("written");
    until_state(&reactor, "files", "ready").await;
    let response = http().get(format!("{}/files/note.txt", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.expect("a body"), "found");
}

#[tokio::test]
async fn a_service_that_prints_a_gigabyte_leaves_reactor_small_and_responsive() {
    let script = "head -c 1000000000 /dev/zero | tr '\\\\0' 'y' | fold -w 199; echo done >> finished; sleep 1000";
    let reactor = Reactor::start(&format!("[services.chatty]\ncommand = \"{script}\"\n"));
    let peak = AtomicU64::new(0);
    wait_until("a gigabyte was printed", Duration::from_secs(120), || async {
        peak.fetch_max(reactor.memory_bytes(), Ordering::Relaxed);
        let healthy = http().get(format!("{}/healthz", reactor.api())).send().await;
        assert!(healthy.is_ok_and(|response| response.status() == 200), "it answers all the while");
        reactor.directory().join("finished").exists()
    })
    .await;
    let peak = peak.into_inner();
    assert!(peak < 400 * 1024 * 1024, "{peak} bytes at most");
    until_state(&reactor, "chatty", "ready").await;
}
