//! Definitions move from a real RabbitMQ (Debian's, where it is installed) to reactor and back, unharmed.

use crate::support::{DEADLINE, Reactor, http, wait_until, wait_until_blocking};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// An Erlang node on a busy machine takes its time.
const START: Duration = Duration::from_secs(120);

struct RabbitMq {
    child: Child,
    url: String,
    epmd: u16,
    _directory: tempfile::TempDir,
}

impl RabbitMq {
    /// With its management API; `None` where it is not installed.
    async fn start() -> Option<RabbitMq> {
        let script = Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
        if !script.exists() {
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let [amqp, management, epmd, dist] = [(); 4].map(|()| free_port());
        std::fs::write(path("plugins"), "[rabbitmq_management].\n").expect("written");
        let config =
            format!("listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {management}\n");
        std::fs::write(path("rabbitmq.conf"), config).expect("written");
        let mut command = Command::new(script);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).env("HOME", directory.path());
        for (name, value) in [
            ("RABBITMQ_NODENAME", format!("definitions{amqp}@localhost")),
            ("RABBITMQ_DIST_PORT", dist.to_string()),
            ("ERL_EPMD_PORT", epmd.to_string()),
            ("RABBITMQ_MNESIA_BASE", path("data")),
            ("RABBITMQ_LOG_BASE", path("log")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins")),
            ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
            ("RABBITMQ_PID_FILE", path("pid")),
        ] {
            command.env(name, value);
        }
        let child = command.spawn().expect("it starts");
        let rabbit = RabbitMq { child, url: format!("http://127.0.0.1:{management}/api"), epmd, _directory: directory };
        let definitions = format!("{}/definitions", rabbit.url);
        wait_until("RabbitMQ answers", START, async || {
            http().get(&definitions).basic_auth("guest", Some("guest")).send().await.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
        Some(rabbit)
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: Option<&Value>) -> Value {
        let mut request = http().request(method, format!("{}/{path}", self.url)).basic_auth("guest", Some("guest"));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    async fn export(&self) -> Value {
        self.ask(reqwest::Method::GET, "definitions", None).await
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.child.id())]).status();
        let _ = self.child.wait();
        // Its port mapper runs on its own, and lets itself be ended once it has noticed that the node is gone.
        wait_until_blocking("epmd is gone", DEADLINE, || {
            let said = Command::new("epmd").args(["-port", &self.epmd.to_string(), "-kill"]).output();
            said.map_or(true, |said| !String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).contains("not allowed"))
        });
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn wanted() -> Value {
    json!({
        "vhosts": [{"name": "/"}, {"name": "shop"}],
        "users": [
            {"name": "ann", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
             "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["management", "buyer"], "limits": {"max-channels": 7}},
            {"name": "cert", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": [], "limits": {}},
        ],
        "permissions": [
            {"user": "ann", "vhost": "shop", "configure": "^ann", "write": ".*", "read": ""},
            {"user": "guest", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"},
        ],
        "topic_permissions": [{"user": "ann", "vhost": "shop", "exchange": "events", "write": "^{username}", "read": ".*"}],
        "parameters": [
            {"vhost": "shop", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 9, "max-connections": 100}},
            {"vhost": "shop", "component": "operator_policy", "name": "most",
             "value": {"pattern": "^tmp", "definition": {"max-length": 3}, "priority": 1, "apply-to": "queues"}},
        ],
        "global_parameters": [{"name": "cluster_name", "value": "shop"}, {"name": "mine", "value": {"a": [1, "two"]}}],
        "policies": [{"vhost": "shop", "name": "short", "pattern": "^(?!amq\\.)", "apply-to": "queues",
                      "definition": {"max-length": 5, "overflow": "reject-publish"}, "priority": 2}],
        "queues": [
            {"name": "tmp.orders", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-mode": "lazy"}},
            {"name": "mails", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}},
        ],
        "exchanges": [
            {"name": "events", "vhost": "shop", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}},
            {"name": "inner", "vhost": "shop", "type": "headers", "durable": true, "auto_delete": false, "internal": true, "arguments": {}},
        ],
        "bindings": [
            {"source": "events", "vhost": "shop", "destination": "mails", "destination_type": "queue", "routing_key": "mail.#", "arguments": {}},
            {"source": "events", "vhost": "shop", "destination": "inner", "destination_type": "exchange", "routing_key": "#", "arguments": {}},
            {"source": "inner", "vhost": "shop", "destination": "tmp.orders", "destination_type": "queue", "routing_key": "",
             "arguments": {"x-match": "all", "kind": "order", "size": 3}},
        ],
    })
}

/// What both brokers speak of: without what each has of its own, in one order.
fn comparable(definitions: &Value) -> Value {
    let mut lists = serde_json::Map::new();
    for (name, list) in definitions.as_object().expect("an object") {
        let Some(list) = list.as_array() else { continue };
        let own = |it: &Value| {
            ["name", "source"].iter().any(|key| it[*key].as_str().is_some_and(|name| name.starts_with("reactor.")))
                || it["name"].as_str().is_some_and(|name| name.starts_with("internal_"))
        };
        let mut list: Vec<Value> = list.iter().filter(|it| !own(it)).cloned().collect();
        if name == "vhosts" {
            list = list.iter().map(|space| json!({"name": space["name"]})).collect();
        }
        list.sort_by_key(ordered);
        lists.insert(name.clone(), Value::Array(list));
    }
    Value::Object(lists)
}

/// The same text for the same value, in whatever order its keys came.
fn ordered(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}={}", ordered(value))).collect();
            fields.sort();
            fields.join(";")
        }
        other => other.to_string(),
    }
}

#[tokio::test]
async fn definitions_go_from_rabbitmq_to_reactor_and_back_unharmed() {
    let (Some(rabbit), reactor) = (RabbitMq::start().await, Reactor::start("")) else { return };
    use reqwest::Method;
    rabbit.ask(Method::POST, "definitions", Some(&wanted())).await;
    let first = rabbit.export().await;

    let post = async |what: &str, document: &Value| -> Value {
        let url = format!("{}/api/v1/definitions/{what}", reactor.api());
        let answer = http().post(url).json(document).send().await.expect("an answer");
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        assert!(status.is_success(), "{what}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    };
    let applied = post("apply", &first).await;
    assert_eq!(applied["ignored"], json!([]));
    assert_eq!(post("plan", &first).await["changes"], json!([]), "importing again changes nothing");
    let export = http().get(format!("{}/api/v1/definitions", reactor.api())).send().await.expect("an answer");
    let export: Value = export.json().await.expect("JSON");
    assert_eq!(comparable(&export), comparable(&first));

    for path in ["vhosts/shop", "users/ann", "users/cert", "global-parameters/mine"] {
        rabbit.ask(Method::DELETE, path, None).await;
    }
    wait_until("the vhost is gone", DEADLINE, async || !rabbit.export().await.to_string().contains("tmp.orders")).await;
    rabbit.ask(Method::POST, "definitions", Some(&export)).await;
    assert_eq!(comparable(&rabbit.export().await), comparable(&first));
}
