//! `reactor check` and a `reactor.toml` that is wrong: line, key and fix, every problem at once.

use crate::support::run;

fn check(toml: &str) -> (i32, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("reactor.toml");
    std::fs::write(&file, toml).expect("written");
    let (code, stdout, stderr) = run(&["check", file.to_str().expect("a path")]);
    (code, format!("{stdout}{stderr}").replace(directory.path().to_str().expect("a path"), ""))
}

#[test]
fn a_good_file_is_fine() {
    let (code, said) = check("bind = \"localhost\"\n[ports]\namqp = 0\nhttp = false\n[services.hello]\ncommand = \"true\"\n");
    assert_eq!((code, said.as_str()), (0, "/reactor.toml is fine\n"));
}

#[test]
fn every_problem_is_told_with_its_line_key_and_fix() {
    let toml = "\
port_ofset = 1

[ports]
amqp = 70000
contrl = 15001

[limits]
handshake = 5

[services.greeter]
comand = \"python3 greeter.py\"
depends_on = [\"stocks\"]

[services.stock]
command = \"python3 stock.py\"
restart = \"sometimes\"
";
    let (code, said) = check(toml);
    assert_eq!(code, 2);
    for line in [
        "/reactor.toml:1: port_ofset is not a known key\n  Did you mean port_offset?",
        "/reactor.toml:4: ports.amqp must be a port (1 to 65535), 0 for any free one, or false for off, not 70000\n  The default is 5672.",
        "/reactor.toml:5: ports.contrl is not a known key\n  Did you mean control?",
        "/reactor.toml:8: limits.handshake must be a duration such as \"500ms\", \"30s\" or \"5m\", at most 600s, not 5",
        "/reactor.toml:10: services.greeter.command is missing",
        "/reactor.toml:11: services.greeter.comand is not a known key\n  Did you mean command?",
        "/reactor.toml:12: services.greeter.depends_on names stocks, which is not here\n  Did you mean stock?",
        "/reactor.toml:16: services.stock.restart is \"sometimes\"\n  Use \"always\", \"on_failure\" or \"never\".",
    ] {
        assert!(said.contains(line), "missing:\n{line}\nin:\n{said}");
    }
    assert!(said.ends_with("8 problems\n"), "{said}");
}

#[test]
fn broken_toml_names_the_line() {
    let (code, said) = check("[ports]\namqp = 0\nbus = = 1\n");
    assert_eq!(code, 2);
    assert!(said.contains("/reactor.toml:3: this is not TOML"), "{said}");
}

#[test]
fn a_missing_file_and_a_binary_file_are_refused_in_words() {
    let (code, _, stderr) = run(&["check", "/nowhere/reactor.toml"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("/nowhere/reactor.toml: No such file") && stderr.contains("reactor init"), "{stderr}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("reactor.toml");
    std::fs::write(&file, b"a = 1\n\xff\xfe\n").expect("written");
    let (code, _, stderr) = run(&["check", file.to_str().expect("a path")]);
    assert_eq!(code, 2);
    assert!(stderr.contains("line 2 is not UTF-8"), "{stderr}");
}
