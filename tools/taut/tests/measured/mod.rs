//! What `taut doctor --measure` says.

use std::process::{Command, Stdio};

use serde_json::Value;

/// What `taut doctor --measure` has seen, by the name of the finding.
pub fn measure() -> impl Fn(&str) -> String {
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
