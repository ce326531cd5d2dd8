//! Who may come in, through the real doors.

use crate::support::{Reactor, http, run};
use lapin::{Connection, ConnectionProperties};

async fn connects(reactor: &Reactor, user: &str, password: &str) -> Result<(), String> {
    let url = format!("amqp://{user}:{password}@127.0.0.1:{}", reactor.port("amqp"));
    match Connection::connect(&url, ConnectionProperties::default()).await {
        Ok(connection) => {
            let _ = connection.close(200, "done".into()).await;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn guest_comes_in_from_this_machine_in_dev_mode_and_nobody_by_a_wrong_password() {
    let reactor = Reactor::start("");
    assert_eq!(connects(&reactor, "guest", "guest").await, Ok(()));
    let refused = connects(&reactor, "guest", "wrong").await.expect_err("refused");
    assert!(refused.contains("ACCESS_REFUSED") || refused.contains("ACCESS-REFUSED"), "{refused}");
}

#[tokio::test]
async fn where_a_login_is_required_only_the_token_opens_the_bus_and_the_api() {
    let reactor = Reactor::start("auth = \"required\"\n");
    assert!(connects(&reactor, "guest", "guest").await.is_err());
    let shown =
        reactor.start_block().lines().find_map(|line| line.split("?token=").nth(1)).expect("a token in the URL").to_owned();
    assert_eq!(connects(&reactor, "ann", &shown).await, Ok(()));
    let overview = format!("{}/api/v1/overview", reactor.api());
    assert_eq!(http().get(&overview).send().await.expect("an answer").status(), 401);
    assert_eq!(http().get(&overview).bearer_auth(&shown).send().await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn a_foreign_host_and_a_foreign_origin_are_refused_on_the_control_port() {
    let reactor = Reactor::start("");
    let overview = format!("{}/api/v1/overview", reactor.api());
    let status =
        async |name: &str, value: &str| http().get(&overview).header(name, value).send().await.expect("an answer").status();
    assert_eq!(status("host", "evil.example").await, 403);
    assert_eq!(status("origin", "https://evil.example").await, 403);
    assert_eq!(status("accept", "*/*").await, 200);
}

#[tokio::test]
async fn a_supervised_service_logs_in_as_itself() {
    let script = "import os; print('URL', os.environ['AMQP_URL'], flush=True); import time; time.sleep(1000)";
    let reactor = Reactor::start(&format!("[services.greeter]\ncommand = [\"python3\", \"-c\", \"{script}\"]\n"));
    let mut said = String::new();
    crate::support::wait_until_blocking("it printed its URL", crate::support::DEADLINE, || {
        said = run(&["status", "--json", "--url", &reactor.api()]).1;
        said.contains("URL amqp://greeter-1:")
    });
    let url = said.split("URL ").nth(1).and_then(|rest| rest.split('"').next()).expect("a URL").to_owned();
    let connection = Connection::connect(&url, ConnectionProperties::default()).await.expect("its own login is good");
    let _ = connection.close(200, "done".into()).await;
    let other = url.replace("greeter-1:", "greeter-2:");
    assert!(Connection::connect(&other, ConnectionProperties::default()).await.is_err(), "the password is the instance's own");
}
