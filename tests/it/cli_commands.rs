//! The commands besides `up`: init, check, status, logs, open.

use crate::support::{DEADLINE, Reactor, command, run, wait_until_blocking};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn init_writes_a_file_that_is_fine_and_never_overwrites() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("project");
    let project = path.to_str().expect("a path");
    let (code, stdout, stderr) = run(&["init", project]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("reactor.toml") && stdout.contains("hello.py"), "{stdout}");
    let file = path.join("reactor.toml");
    assert_eq!(run(&["check", file.to_str().expect("a path")]).0, 0);
    std::fs::write(&file, "# mine").expect("written");
    let (code, _, stderr) = run(&["init", project]);
    assert_eq!(code, 1);
    assert!(stderr.contains("is not overwritten"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "# mine");
}

#[test]
fn asking_where_nobody_is_says_so_and_exits_with_3() {
    for arguments in [&["status"][..], &["logs"], &["logs", "-f"], &["open"], &["status", "--watch"]] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let url = format!("http://{free}");
        let (code, _, stderr) = run(&[arguments, &["--url", &url]].concat());
        assert_eq!(code, 3, "{arguments:?}: {stderr}");
        assert!(stderr.contains(&format!("no reactor answers at {url}")), "{stderr}");
    }
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [&["frobnicate"][..], &["up", "--port-offset", "many"], &["status", "--watch", "--json"]] {
        assert_eq!(run(arguments).0, 2, "{arguments:?}");
    }
}

#[test]
fn status_shows_the_gateway_and_speaks_json_on_request() {
    let reactor = Reactor::start("");
    let (code, stdout, stderr) = run(&["status", "--url", &reactor.api()]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("SERVICE") && stdout.contains("not on disk"), "{stdout}");
    let (_, stdout, _) = run(&["status", "--json", "--url", &reactor.api()]);
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(json["services"].is_array() && json["overview"]["version"].is_string(), "{json}");
}

#[test]
fn a_health_check_needs_no_token_where_everything_else_does() {
    let reactor = Reactor::start("[auth]\nmode = \"required\"\ntoken = \"let-me-in\"\n");
    assert_eq!(run(&["status", "--health", "--url", &reactor.api()]), (0, String::new(), String::new()));
    let (code, _, stderr) = run(&["status", "--url", &reactor.api()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("token"), "{stderr}");
    let with_token = format!("{}/?token=let-me-in", reactor.api());
    assert_eq!(run(&["status", "--url", &with_token]).0, 0);
    assert!(reactor.start_block().contains("/?token=let-me-in"), "{}", reactor.start_block());
}

#[test]
fn open_starts_the_browser_with_the_dashboards_address() {
    let reactor = Reactor::start("");
    let seen = reactor.directory().join("seen");
    let browser = reactor.directory().join("browser");
    std::fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", seen.display())).expect("written");
    let made = std::process::Command::new("chmod").arg("+x").arg(&browser).status().expect("chmod runs");
    assert!(made.success());
    let output = command().args(["open", "--url", &reactor.api()]).env("BROWSER", &browser).output().expect("reactor runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    wait_until_blocking("the browser was started", DEADLINE, || {
        std::fs::read_to_string(&seen).is_ok_and(|url| url == reactor.api())
    });
}

#[test]
fn logs_of_a_service_that_nobody_knows_say_who_is_known() {
    let reactor = Reactor::start("[services.talker]\ncommand = \"sleep 1000\"\n");
    let (code, _, told) = run(&["logs", "nosuch", "--url", &reactor.api()]);
    assert_eq!(code, 1, "{told}");
    assert_eq!(told, "no service 'nosuch' is known here; known are gateway, reactor, talker.\n");
    assert_eq!(run(&["logs", "talker", "--url", &reactor.api()]).0, 0, "it has said nothing yet");
}

#[test]
fn followed_logs_end_when_reactor_stops() {
    let reactor = Reactor::start("");
    let mut follower = command()
        .args(["logs", "-f", "--url", &reactor.api()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("reactor runs");
    let mut stderr = BufReader::new(follower.stderr.take().expect("piped"));
    // The feed is open once the door counts the socket.
    wait_until_blocking("the feed is open", DEADLINE, || run(&["status", "--json", "--url", &reactor.api()]).0 == 0);
    assert!(reactor.stop().success());
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert!(line.contains("reactor has stopped") || line.contains("no reactor answers"), "{line}");
    follower.wait().expect("ended");
}

#[test]
fn logs_show_what_a_service_printed_and_follow_what_it_prints_next() {
    let command_line = "['sh', '-c', 'echo first; read line; echo second; sleep 1000']";
    let reactor = Reactor::start(&format!("[services.talker]\ncommand = {command_line}\n"));
    wait_until_blocking("the first line is kept", DEADLINE, || {
        run(&["logs", "talker", "--url", &reactor.api()]).1.contains("first")
    });
    let (_, json, _) = run(&["logs", "talker", "--json", "-n", "1", "--url", &reactor.api()]);
    let row: serde_json::Value = serde_json::from_str(json.lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["service"], "talker");
    let mut follower = command()
        .args(["logs", "-f", "talker", "--url", &reactor.api()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("reactor runs");
    let lines = BufReader::new(follower.stdout.take().expect("piped")).lines().map_while(Result::ok);
    // Standard input of a service is empty, so `read` ends at once and the second line follows.
    assert!(lines.into_iter().any(|line| line.contains("talker-1") && line.contains("second")));
    let _ = follower.kill();
    let _ = follower.wait();
}

#[test]
fn reactors_own_log_lines_are_kept_beside_those_of_services() {
    let reactor = Reactor::start("");
    reactor.signal("HUP");
    wait_until_blocking("its own line is kept", DEADLINE, || {
        run(&["logs", "reactor", "--url", &reactor.api()]).1.contains("the configuration was read again")
    });
}
