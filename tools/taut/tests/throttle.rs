//! `taut doctor --measure`: a loop under SCHED_FIFO that the kernel stops, as its files say, is seen to stop. A binary of its
//! own: whatever else needed the last processor would wait for the loop.

use std::process::{Command, Stdio};

use serde_json::Value;

/// A time that only who is stopped takes. *Units*: ms.
const STOP_MS: f64 = 20.0;
/// What is kept for others is to be well above that. *Units*: ms of each second.
const KEPT_MS: f64 = 40.0;
/// What begins right before the loop does may end right behind it.
const TRIES: usize = 3;

/// What `taut doctor --measure` has seen, by the name of the finding.
fn measure() -> impl Fn(&str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taut"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TAUT_")) {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    command.args(["--interface", "lo", "--domain", "187", "doctor", "--json", "--measure"]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    move |name| {
        let mut findings = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = findings.find(|finding| finding["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {text}"))["seen"].as_str().unwrap().to_owned()
    }
}

/// The number in front of the unit.
fn ms(text: &str) -> f64 {
    text.split_once(" ms").and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Does the kernel stop such a loop within a second of its begin? It does by its fair server. The older limit counts beside that
/// in some kernels only, and without it counts by a second that may begin while the loop runs.
fn is_stopped(throttle: &str) -> bool {
    throttle.strip_prefix("the fair server takes ").is_some_and(|rest| ms(rest) >= KEPT_MS)
}

#[test]
fn a_loop_that_the_kernel_stops_is_seen_to_stop() {
    let mut told = Vec::new();
    while told.len() < TRIES {
        let seen = measure();
        let throttle = seen("real-time throttle");
        let Some((_, measured)) = throttle.split_once("measured here: ") else {
            let priority = seen("real-time priority");
            assert!(!priority.ends_with("is granted"), "{priority}, but {throttle}");
            return println!("LEFT OUT: {throttle}");
        };
        if !is_stopped(&throttle) {
            return println!("not known to be stopped here: {throttle}");
        }
        if ms(measured) >= STOP_MS {
            return;
        }
        told.push(throttle);
    }
    panic!("{told:#?}");
}
