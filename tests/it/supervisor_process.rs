//! The supervisor with real processes, below real guards (the `reactor` binary), driven through its face.

use crate::support::{DEADLINE, wait_until};
use reactor::kernel::{Clock, Drain};
use reactor::model::service::{InstanceState, ServiceName, Source};
use reactor::model::service_spec::{CommandLine, Port, Probe, Ready, RestartPolicy, ServiceSpec};
use reactor::registry::{NewInstance, Registry};
use reactor::supervisor::{
    Command, Connections, Doors, Identity, InstanceView, LineKind, ServiceView, Supervisor, SupervisorConfig,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct TestDoors;

impl Doors for TestDoors {
    fn connections(&self) -> Connections {
        Connections {
            amqp: Some("127.0.0.1:5672".into()),
            otlp_http: Some("127.0.0.1:4318".into()),
            gateway: Some("127.0.0.1:16000".into()),
            control: Some("127.0.0.1:15000".into()),
        }
    }

    fn token(&self, _: &Identity) -> String {
        "secret-token".into()
    }

    fn revoke(&self, _: &Identity) {}
}

/// A supervisor whose services run in a directory of their own.
struct Fleet {
    supervisor: Arc<Supervisor>,
    registry: Arc<Registry>,
    drain: Drain,
    directory: tempfile::TempDir,
}

impl Fleet {
    fn new() -> Self {
        let registry = Arc::new(Registry::new(Clock::system()));
        let drain = Drain::new();
        let guard = vec![env!("CARGO_BIN_EXE_reactor").into(), "guard".into()];
        let config = SupervisorConfig { guard, doors: Arc::new(TestDoors) };
        let supervisor = Supervisor::new(config, registry.clone(), Clock::system(), drain.clone());
        Fleet { supervisor, registry, drain, directory: tempfile::tempdir().expect("a directory") }
    }

    fn spec(&self, service: &str, command: &str) -> ServiceSpec {
        let command = CommandLine::Text(command.into());
        ServiceSpec::new(name(service), command, self.directory.path().to_owned())
    }

    fn apply(&self, specs: &[ServiceSpec]) {
        self.supervisor.apply(specs.to_vec()).expect("accepted");
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    fn service(&self, service: &str) -> Option<ServiceView> {
        self.supervisor.services().into_iter().find(|view| view.name == name(service))
    }

    fn instance(&self, instance: &str) -> Option<InstanceView> {
        self.supervisor.services().into_iter().flat_map(|view| view.instances).find(|view| *view.name == *instance)
    }

    fn state(&self, instance: &str) -> Option<InstanceState> {
        Some(self.instance(instance)?.state)
    }

    async fn until_state(&self, instance: &str, state: InstanceState) -> InstanceView {
        wait_until(&format!("{instance} is {state:?}"), DEADLINE, || async { self.state(instance) == Some(state) }).await;
        self.instance(instance).expect("it was there a moment ago")
    }

    /// Waits for a file that a service writes, and gives its lines.
    async fn until_lines(&self, file: &str, count: usize) -> Vec<String> {
        wait_until(&format!("{count} lines in {file}"), DEADLINE, || async { self.read(file).lines().count() >= count }).await;
        self.read(file).lines().map(str::to_owned).collect()
    }

    fn console(&self, service: &str, instance: &str) -> Vec<(LineKind, String)> {
        let console = self.supervisor.console(service, instance).expect("it exists");
        console.page(0, usize::MAX).lines.into_iter().map(|line| (line.kind, line.text.to_string())).collect()
    }
}

fn name(service: &str) -> ServiceName {
    ServiceName::new(service).expect("a valid name")
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the name; a zombie is dead.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn until_dead(pids: &[String], deadline: Duration) {
    assert!(!pids.is_empty());
    wait_until("every process is gone", deadline, || async { !pids.iter().any(|pid| is_alive(pid)) }).await;
}

#[tokio::test]
async fn a_program_finds_its_port_the_bus_and_its_name() {
    let fleet = Fleet::new();
    let mut spec = fleet.spec("greeter", "echo $PORT $AMQP_URL $REACTOR_INSTANCE $MOOD; sleep 1000");
    spec.env.insert("MOOD".into(), "at ${PORT}".into());
    fleet.apply(&[spec]);
    let view = fleet.until_state("greeter-1", InstanceState::Ready).await;
    let port = view.port.expect("offered");
    let expected = format!("{port} amqp://greeter-1:secret-token@127.0.0.1:5672/%2F greeter-1 at {port}");
    let console = fleet.console("greeter", "greeter-1");
    assert!(console.contains(&(LineKind::Stdout, expected.clone())), "{console:?}");
    assert_eq!(view.last_line.as_deref(), Some(expected.as_str()));
    let lifecycle: Vec<&str> =
        console.iter().filter(|(kind, _)| *kind == LineKind::Lifecycle).map(|(_, text)| text.as_str()).collect();
    assert!(lifecycle[0].starts_with("starting, pid ") && lifecycle[1].starts_with("ready after "), "{lifecycle:?}");
    let shown = fleet.supervisor.environment("greeter", "greeter-1").expect("it exists");
    assert!(!format!("{shown:?}").contains("secret-token"));
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_stop_ends_children_that_ignore_term_and_daemons_that_left_the_group() {
    let fleet = Fleet::new();
    let script = "sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 1000; done' &
        setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
        echo $$ >> pids; trap 'exit 0' TERM; wait";
    let spec = ServiceSpec { grace: Duration::from_millis(300), ..fleet.spec("stubborn", script) };
    fleet.apply(&[spec]);
    let pids = fleet.until_lines("pids", 3).await;
    fleet.until_state("stubborn-1", InstanceState::Ready).await;
    fleet.supervisor.stop("stubborn").expect("accepted");
    let view = fleet.until_state("stubborn-1", InstanceState::Stopped).await;
    assert!(!pids.iter().any(|pid| is_alive(pid)), "stopped means that nothing is left");
    assert_eq!((view.pid, view.reason.as_ref()), (None, "stopped on request"));
    fleet.supervisor.start("stubborn").expect("accepted");
    fleet.until_lines("pids", 6).await;
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn nothing_outlives_reactor() {
    // Closing every socket at once, without a word, is what kill -9 of reactor looks like from below.
    let (pids, directory) = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let fleet = runtime.block_on(async {
            let fleet = Fleet::new();
            let script =
                "trap '' TERM; echo $$ >> pids; setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 1000' & sleep 1000; wait";
            fleet.apply(&[fleet.spec("stubborn", script)]);
            fleet.until_lines("pids", 2).await;
            fleet
        });
        let pids: Vec<String> = fleet.read("pids").lines().map(str::to_owned).collect();
        assert!(pids.iter().all(|pid| is_alive(pid)));
        runtime.shutdown_background();
        (pids, fleet.directory)
    })
    .join()
    .expect("the fleet ran");
    until_dead(&pids, Duration::from_secs(2)).await;
    drop(directory);
}

#[tokio::test]
async fn a_killed_guard_takes_its_program_along_and_the_service_comes_back() {
    let fleet = Fleet::new();
    fleet.apply(&[fleet.spec("sleeper", "echo $PPID >> guards; echo $$ >> pids; exec sleep 1000")]);
    fleet.until_state("sleeper-1", InstanceState::Ready).await;
    let (guard, pid) = (fleet.read("guards"), fleet.read("pids").trim().to_owned());
    let killed = std::process::Command::new("kill").args(["-KILL", guard.trim()]).status().expect("kill runs");
    assert!(killed.success());
    until_dead(&[pid], DEADLINE).await;
    fleet.until_lines("pids", 2).await;
    let view = fleet.until_state("sleeper-1", InstanceState::Ready).await;
    assert_eq!(view.restart_count, 1);
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn an_exit_is_retried_and_says_how_it_ended() {
    let fleet = Fleet::new();
    fleet.apply(&[fleet.spec("flaky", "echo going down >&2; exit 3")]);
    wait_until("it was tried again", DEADLINE, || async {
        fleet.instance("flaky-1").is_some_and(|view| view.restart_count >= 1)
    })
    .await;
    let view = fleet.until_state("flaky-1", InstanceState::Failing).await;
    assert!(view.reason.starts_with("exited with code 3; next try after "), "{}", view.reason);
    let console = fleet.console("flaky", "flaky-1");
    let texts: Vec<&str> = console.iter().map(|(_, text)| text.as_str()).collect();
    let printed = texts.iter().position(|text| *text == "going down").expect("captured");
    assert!(texts[printed + 1].starts_with("exited with code 3"), "the last lines come before the exit: {texts:?}");
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_definition_that_cannot_run_says_what_to_mend() {
    let fleet = Fleet::new();
    let no_directory = ServiceSpec { cwd: "/nowhere/at/all".into(), ..fleet.spec("lost", "true") };
    let unset = ServiceSpec {
        command: CommandLine::Words(vec!["echo".into(), "${REACTOR_TEST_UNSET}".into()]),
        ..fleet.spec("unset", "true")
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let busy = ServiceSpec { port: Port::Fixed(port), ..fleet.spec("busy", "sleep 1000") };
    fleet.apply(&[fleet.spec("typo", "pyhton3 greeter.py"), no_directory, unset, busy]);
    for (instance, expected) in [
        ("typo-1", "pyhton3 was not found; is it installed, and in PATH?".to_owned()),
        ("lost-1", "/nowhere/at/all does not exist; see cwd".to_owned()),
        ("unset-1", "REACTOR_TEST_UNSET is not set".to_owned()),
        ("busy-1", format!("port {port} is in use by another program")),
    ] {
        let view = fleet.until_state(instance, InstanceState::Failing).await;
        assert!(view.reason.contains(&expected), "{}", view.reason);
    }
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn services_start_in_order_and_stop_in_reverse() {
    let fleet = Fleet::new();
    let service = |service: &str, depends_on: &[&str]| {
        let script =
            format!("echo +{service} >> order; trap 'echo -{service} >> order; exit 0' TERM; while :; do sleep 0.05; done");
        let depends_on = depends_on.iter().map(|dependency| name(dependency)).collect();
        ServiceSpec { depends_on, ..fleet.spec(service, &script) }
    };
    let task = ServiceSpec { restart: RestartPolicy::OnFailure, ..fleet.spec("migrate", "sleep 0.2; echo +migrate >> order") };
    fleet.apply(&[service("web", &["orders"]), service("orders", &["store", "migrate"]), service("store", &[]), task]);
    wait_until("web waits", DEADLINE, || async {
        fleet.instance("web-1").is_some_and(|view| &*view.reason == "waiting for orders")
    })
    .await;
    assert_eq!(fleet.state("web-1"), Some(InstanceState::Starting));
    fleet.until_state("web-1", InstanceState::Ready).await;
    fleet.supervisor.shutdown().await;
    let order = fleet.read("order");
    let position = |entry: &str| order.lines().position(|line| line == entry).unwrap_or_else(|| panic!("no {entry} in {order}"));
    assert!(position("+store") < position("+orders") && position("+migrate") < position("+orders"), "{order}");
    assert!(position("+orders") < position("+web"), "{order}");
    assert!(position("-web") < position("-orders") && position("-orders") < position("-store"), "{order}");
}

#[tokio::test]
async fn an_http_service_is_ready_when_it_answers_and_then_in_the_registry() {
    let fleet = Fleet::new();
    let http = Ready { probe: Probe::Http { path: "/".into(), port: None }, ..Ready::default() };
    let words = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "${PORT}"].map(str::to_owned).to_vec();
    let spec = ServiceSpec { ready: http, command: CommandLine::Words(words), ..fleet.spec("files", "true") };
    fleet.apply(&[spec, fleet.spec("worker", "sleep 1000")]);
    let view = fleet.until_state("files-1", InstanceState::Ready).await;
    let address = view.http.expect("it answered");
    assert_eq!(address.port(), view.port.expect("given"));
    let registered = fleet.registry.snapshot();
    let instance = registered.of_service("/", &name("files")).next().expect("registered").clone();
    assert_eq!((instance.http, instance.pid, instance.language.as_deref()), (Some(address), view.pid, Some("python")));
    fleet.until_state("worker-1", InstanceState::Ready).await;
    assert_eq!(fleet.instance("worker-1").and_then(|view| view.http), None, "nothing listens on the port it was offered");
    fleet.supervisor.shutdown().await;
    assert_eq!(fleet.registry.snapshot().instances().count(), 0);
}

#[tokio::test]
async fn a_bus_service_is_ready_when_it_is_attached_and_degraded_when_it_is_not() {
    let fleet = Fleet::new();
    let attached = Ready { probe: Probe::Attached, interval: Duration::from_millis(50), ..Ready::default() };
    fleet.apply(&[ServiceSpec { ready: attached, port: Port::Off, ..fleet.spec("greeter", "sleep 1000") }]);
    wait_until("it runs", DEADLINE, || async { fleet.instance("greeter-1").is_some_and(|view| view.pid.is_some()) }).await;
    assert_eq!(fleet.state("greeter-1"), Some(InstanceState::Starting));
    let connection = fleet.registry.attach(NewInstance {
        space: "/".into(),
        service: name("greeter"),
        name: "greeter-1".into(),
        source: Source::Amqp,
        state: InstanceState::Ready,
        http: None,
        version: None,
        keep_prefix: false,
        pid: None,
        language: None,
    });
    fleet.until_state("greeter-1", InstanceState::Ready).await;
    fleet.registry.detach(connection);
    let view = fleet.until_state("greeter-1", InstanceState::Degraded).await;
    assert_eq!(view.reason.as_ref(), "not attached to the bus");
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn applying_keeps_what_is_unchanged_and_scales_what_is_not() {
    let fleet = Fleet::new();
    let (same, other) = (fleet.spec("same", "sleep 1000"), fleet.spec("other", "sleep 1000"));
    fleet.apply(&[same.clone(), other.clone(), fleet.spec("gone", "sleep 1000")]);
    let pid = fleet.until_state("same-1", InstanceState::Ready).await.pid;
    let other_pid = fleet.until_state("other-1", InstanceState::Ready).await.pid;
    let changed = ServiceSpec { env: [("A".to_owned(), "1".to_owned())].into(), ..other };
    let scaled = ServiceSpec { replicas: 3, ..same.clone() };
    fleet.apply(&[scaled, changed]);
    fleet.until_state("same-3", InstanceState::Ready).await;
    assert_eq!(fleet.instance("same-1").expect("kept").pid, pid);
    wait_until("other-1 was restarted", DEADLINE, || async {
        fleet.instance("other-1").is_some_and(|view| view.state == InstanceState::Ready && view.pid != other_pid)
    })
    .await;
    wait_until("gone is gone", DEADLINE, || async { fleet.service("gone").is_none() }).await;
    fleet.apply(std::slice::from_ref(&same));
    wait_until("one instance is left", DEADLINE, || async {
        fleet.service("other").is_none() && fleet.service("same").is_some_and(|view| view.instances.len() == 1)
    })
    .await;
    fleet.apply(&[ServiceSpec { replicas: 2, ..same }]);
    fleet.until_state("same-2", InstanceState::Ready).await;
    assert_eq!(fleet.instance("same-1").expect("kept").pid, pid);
    let refusal = fleet.supervisor.command("same", Some("same-9"), Command::Stop).expect_err("unknown");
    assert!(refusal.to_string().contains("same-1, same-2"), "{refusal}");
    assert!(fleet.supervisor.stop("nowhere").expect_err("unknown").to_string().contains("It runs same"));
    fleet.supervisor.shutdown().await;
}

/// Row M-32. A lock held by the whole process tree stands for whatever must not exist twice.
#[tokio::test]
async fn a_thousand_random_commands_never_make_two_processes() {
    let fleet = Fleet::new();
    let script = "flock -n -E 77 lock sleep 1000 || { [ $? = 77 ] && echo twice >> violations; }";
    fleet.apply(&[ServiceSpec { grace: Duration::from_millis(200), ..fleet.spec("single", script) }]);
    let mut rng = reactor::kernel::rng::Rng::seeded(11);
    for _ in 0..1000 {
        let command = [Command::Start, Command::Stop, Command::Restart][rng.below(3) as usize];
        wait_until("the command is accepted", DEADLINE, || async { fleet.supervisor.command("single", None, command).is_ok() })
            .await;
        if rng.below(4) == 0 {
            tokio::task::yield_now().await;
        }
        if rng.below(50) == 0 {
            wait_until("it settled", DEADLINE, || async {
                matches!(fleet.state("single-1"), Some(InstanceState::Ready | InstanceState::Stopped))
            })
            .await;
        }
    }
    fleet.supervisor.start("single").expect("accepted");
    fleet.until_state("single-1", InstanceState::Ready).await;
    assert_eq!(fleet.read("violations"), "");
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_cut_does_not_wait_for_the_grace() {
    let fleet = Fleet::new();
    let spec = fleet.spec("stubborn", "trap '' TERM; echo $$ >> pids; while :; do sleep 1000; done");
    fleet.apply(&[ServiceSpec { grace: Duration::from_secs(600), ..spec }]);
    let pids = fleet.until_lines("pids", 1).await;
    let supervisor = fleet.supervisor.clone();
    let shutdown = tokio::spawn(async move { supervisor.shutdown().await });
    fleet.until_state("stubborn-1", InstanceState::Stopping).await;
    fleet.drain.cut();
    tokio::time::timeout(DEADLINE, shutdown).await.expect("in time").expect("no panic");
    until_dead(&pids, DEADLINE).await;
}

#[tokio::test]
async fn a_service_that_prints_a_gigabyte_is_not_held_up_and_costs_a_bounded_amount() {
    let fleet = Fleet::new();
    let script = "head -c 1000000000 /dev/zero | tr '\\0' 'y' | fold -w 99; echo done >> finished; sleep 1000";
    fleet.apply(&[fleet.spec("chatty", script)]);
    let begun = Instant::now();
    wait_until("a gigabyte was printed", Duration::from_secs(120), || async { fleet.path("finished").exists() }).await;
    let console = fleet.console("chatty", "chatty-1");
    let said = console.iter().filter(|(_, text)| text.contains("bytes of output not kept")).count();
    assert!(said > 0, "what was dropped is said, after {:?}", begun.elapsed());
    let kept: usize = console.iter().map(|(_, text)| text.len()).sum();
    assert!(kept <= 1024 * 1024, "{kept} bytes kept");
    fleet.supervisor.shutdown().await;
}

#[tokio::test]
async fn usage_counts_the_whole_process_tree() {
    let fleet = Fleet::new();
    fleet.apply(&[fleet.spec("busy", "sh -c 'while :; do :; done' & wait"), fleet.spec("idle", "sleep 1000")]);
    wait_until("the child's work is measured", DEADLINE, || async {
        fleet.instance("busy-1").is_some_and(|view| view.cpu_share.is_some_and(|share| share > 0.2) && view.process_count == 2)
    })
    .await;
    wait_until("an idle one is measured too", DEADLINE, || async {
        fleet.instance("idle-1").is_some_and(|view| view.memory_bytes.is_some_and(|bytes| bytes > 0))
    })
    .await;
    assert!(fleet.instance("idle-1").and_then(|view| view.cpu_share).is_some_and(|share| share < 0.1));
    fleet.supervisor.shutdown().await;
}

#[test]
fn the_guard_is_useless_by_hand_and_harmless() {
    assert!(Path::new(env!("CARGO_BIN_EXE_reactor")).exists());
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_reactor"))
        .arg("guard")
        .stdin(std::process::Stdio::null())
        .status()
        .expect("it runs");
    assert_eq!(status.code(), Some(64));
}
