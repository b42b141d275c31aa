//! How DPDK starts by what a participant's settings say. Once in each process, so in children.

use std::process::Command;

use taut::{Config, DomainParticipant};

/// How the child is told what DPDK starts with.
const ARGUMENTS: &str = "TAUT_DPDK_ARGUMENTS";
const HUGE_PAGES: &str = "TAUT_DPDK_HUGE_PAGES";

/// A child of the tests below, which prints what a participant with these settings is told; nothing when it is run alone.
#[test]
fn starts() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    let config = Config {
        dpdk_device: "net_null0".into(),
        dpdk_arguments: arguments.split_whitespace().map(String::from).collect(),
        dpdk_huge_pages: std::env::var(HUGE_PAGES).is_ok(),
        report: false,
        ..Config::default()
    };
    match DomainParticipant::with_config(&config) {
        Ok(_) => println!("\nstarted"),
        Err(error) => println!("\nrefused: {error}"),
    }
}

/// The line that the child prints.
fn told(arguments: &str, huge_pages: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["start::starts", "--exact", "--nocapture"]).env(ARGUMENTS, arguments);
    if huge_pages {
        command.env(HUGE_PAGES, "1");
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().find(|line| *line == "started" || line.starts_with("refused: "));
    told.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn arguments_of_the_settings_reach_it() {
    assert_eq!(told("-n 4", false), "started");
    let told = told("--nonsense", false);
    assert!(told.contains("--nonsense") && told.contains("correct those that are yours"), "{told}");
}

/// More of them than any machine has.
#[test]
fn huge_pages_of_the_settings_are_what_it_asks_for() {
    let told = told("-m 1073741824", true);
    assert!(told.starts_with("refused: ") && told.contains("vm.nr_hugepages"), "{told}");
}
