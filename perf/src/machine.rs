//! What a reader needs to know of the machine and the command to get a result again.

use std::path::Path;
use std::time::SystemTime;

use procfs::FromRead;

use crate::namespace::{outer_process, outer_receive_limit};
use crate::record::Run;

/// The facts of this run.
pub fn describe(notes: Vec<String>) -> Run {
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let cpu = procfs::CpuInfo::from_file("/proc/cpuinfo").ok();
    let model = cpu.as_ref().and_then(|cpu| cpu.model_name(0)).unwrap_or("unknown");
    let mut all = machine_notes(cpu.as_ref());
    all.extend(notes);
    Run {
        id: format!("{since}-{}", outer_process()),
        started: humantime::format_rfc3339_seconds(now).to_string(),
        rules: crate::rules::CURRENT,
        counts_ended_threads: true,
        command: command_line(std::env::args()),
        taut: [env!("CARGO_PKG_VERSION")]
            .into_iter()
            .chain(option_env!("TAUT_COMMIT"))
            .collect::<Vec<_>>()
            .join(" "),
        cpu: model.to_string(),
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        kernel: text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_string()),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .unwrap_or_else(|| "none".to_string()),
        notes: all,
    }
}

fn machine_notes(cpu: Option<&procfs::CpuInfo>) -> Vec<String> {
    let mut notes = Vec::new();
    if cpu.and_then(|cpu| cpu.flags(0)).is_some_and(|flags| flags.contains(&"hypervisor")) {
        notes.push("virtual machine".to_string());
    }
    if text("/sys/kernel/realtime").is_some_and(|value| value == "1") {
        notes.push("real-time kernel".to_string());
    }
    if let Some(cores) = text("/sys/devices/system/cpu/isolated").filter(|cores| !cores.is_empty()) {
        notes.push(format!("isolated cores {cores}"));
    }
    notes
}

/// What each DDS of the adapters asks for, where it can be asked.
const RECEIVE_BUFFER: u64 = 4 << 20;

/// What a reader must know where the system gives sockets less than the adapters ask for: Taut and the floor pass the limit
/// as root, and nobody else does.
pub fn unequal_buffers() -> Option<String> {
    // It holds in all networks, and older kernels show it only in that of the host.
    cut_buffers(receive_limit().into_iter().chain(outer_receive_limit()).min())
}

/// The most that the kernel gives a socket for receiving, in bytes, if it can be read here.
pub fn receive_limit() -> Option<u64> {
    text("/proc/sys/net/core/rmem_max")?.parse().ok()
}

fn cut_buffers(limit: Option<u64>) -> Option<String> {
    let (what, have) = match limit {
        Some(RECEIVE_BUFFER..) => return None,
        Some(limit) => (format!("is {limit}"), "have"),
        None => ("cannot be read here".to_string(), "may have"),
    };
    Some(format!(
        "net.core.rmem_max {what}: sockets of Taut and of the floor, which pass it as root, {have} more than those of \
         others; equal terms take sysctl -w net.core.rmem_max={RECEIVE_BUFFER}"
    ))
}

fn text(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(Path::new(path)).ok()?.trim().to_string())
}

/// The words as a shell takes them; the program by its name, for its place is that of this machine.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,.:/+@%".contains(c);
    let mut quoted = words.enumerate().map(|(at, word)| {
        let word = if at == 0 { word.rsplit('/').next().unwrap_or_default().to_string() } else { word };
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    let first = quoted.next().unwrap_or_default();
    quoted.fold(first, |line, word| line + " " + &word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        let words = ["/usr/bin/taut", "perf", "--peer-dir", "my peers", "it's", ""];
        let line = command_line(words.iter().map(ToString::to_string));
        assert_eq!(line, r"taut perf --peer-dir 'my peers' 'it'\''s' ''");
    }

    #[test]
    fn a_limit_that_not_everyone_passes_is_told() {
        assert_eq!(cut_buffers(Some(4_194_304)), None);
        let told = cut_buffers(Some(212_992)).unwrap();
        assert!(told.starts_with("net.core.rmem_max is 212992: "), "{told}");
        let told = cut_buffers(None).unwrap();
        assert!(told.contains(" cannot be read here: ") && told.contains(" may have more "), "{told}");
    }

    #[test]
    fn the_machine_is_known() {
        let run = describe(vec!["extra".to_string()]);
        assert!(run.cores >= 1 && run.kernel != "unknown" && run.started.ends_with('Z'), "{run:?}");
        assert!(run.notes.contains(&"extra".to_string()));
    }
}
