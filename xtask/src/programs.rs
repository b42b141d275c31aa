//! Programs that are built and run: cargo's, Valgrind, what they print.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Builds the only program of a package as it is shipped, by the profile `release`.
pub fn build(root: &Path, package: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--release", "--quiet", "--package", package]);
    cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = text_of(&mut cargo)?;
    let program = output.lines().rev().find_map(executable);
    program.ok_or_else(|| format!("cargo built no program of {package}"))
}

/// Valgrind, which tells what runs.
pub fn valgrind() -> Result<PathBuf, String> {
    let directories = env::var_os("PATH").unwrap_or_default();
    let mut found = env::split_paths(&directories).map(|directory| directory.join("valgrind"));
    found.find(|path| path.is_file()).ok_or_else(|| {
        "there is no valgrind. Install it: sudo apt-get install valgrind, or sudo scripts/setup.sh test"
            .to_string()
    })
}

/// What a command prints, or why it failed.
pub fn text_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let mut last: Vec<&str> = said.lines().filter(|line| !is_valgrinds(line)).rev().take(20).collect();
        last.reverse();
        return Err(format!("{name}: {status}\n{}", last.join("\n")));
    }
    String::from_utf8(stdout).map_err(|error| format!("{name}: {error}"))
}

/// The program in one of cargo's messages.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message.get("executable").and_then(Value::as_str).map(PathBuf::from)
}

/// Valgrind's own lines, which bear the process id: it says much about system calls that it does not know.
fn is_valgrinds(line: &str) -> bool {
    ["==", "--"].iter().any(|mark| {
        let id = line.strip_prefix(mark).and_then(|rest| rest.split_once(mark)).map(|(id, _)| id);
        id.is_some_and(|id| id.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_between_the_lines_of_valgrind() {
        let said = ["--12-- WARNING: unhandled amd64-linux syscall: 441", "==12== I refs: 7", "==12== "];
        assert!(said.iter().all(|line| is_valgrinds(line)));
        assert!(!["  left: 1", "== 12", "-- note: --", ""].iter().any(|line| is_valgrinds(line)));
    }

    #[test]
    fn the_program_is_found_in_the_messages_of_cargo() {
        let message = r#"{"reason":"x","target":{"name":"taut-gate"},"executable":"/t/release/taut-gate"}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/t/release/taut-gate")));
        assert_eq!(executable(r#"{"reason":"x","target":{"name":"taut_mem"},"executable":null}"#), None);
        assert_eq!(executable("no json"), None);
    }
}
