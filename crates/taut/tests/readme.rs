//! The programs that the README shows are the examples, and they run.

use std::path::PathBuf;
use std::process::{Command, Stdio};

const README: &str = include_str!("../../../README.md");
const PUBLISHER: &str = include_str!("../examples/hello_publisher.rs");
const SUBSCRIBER: &str = include_str!("../examples/hello_subscriber.rs");

/// Cargo builds examples before it runs the tests, beside them.
fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    let mut command = Command::new(path.join(name));
    command.env("TAUT_INTERFACE", "lo");
    command
}

#[test]
fn the_readme_shows_the_examples() {
    for (program, most) in [(PUBLISHER, 12), (SUBSCRIBER, 13)] {
        let (_, program) = program.split_once("\n\n").unwrap();
        assert!(README.contains(program.trim()), "not in the README:\n{program}");
        let lines = program.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= most, "the shortest program has {lines} lines");
    }
}

#[test]
fn hello_world() {
    let subscriber = example("hello_subscriber").stdout(Stdio::piped()).spawn().unwrap();
    let publisher = example("hello_publisher").status().unwrap();
    let heard = subscriber.wait_with_output().unwrap();
    assert!(publisher.success() && heard.status.success());
    assert_eq!(String::from_utf8(heard.stdout).unwrap(), "hello, world\n");
}
