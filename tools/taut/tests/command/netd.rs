//! `netd`, in a network of its own, with root's privileges.

use std::process::Command;

use crate::common::{Running, bare};

/// What each thread of a process may do: these lines of its status.
fn privileges(pid: u32) -> Vec<Vec<String>> {
    let names = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:"];
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |status: String| {
        let lines = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        lines.map(|line| line.replace('\t', " ")).collect()
    };
    tasks.map(|task| of(std::fs::read_to_string(task.unwrap().path().join("status")).unwrap())).collect()
}

/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK and CAP_BPF: so much of a queue takes them. It still takes its name away.
#[test]
fn it_keeps_four_capabilities() {
    // Those and CAP_SETPCAP, with which the bounding set is emptied.
    let (kept, needed) = (0x80_0000_7000_u64, 0x80_0000_7100);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let has = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    if u64::from_str_radix(has, 16).unwrap() & needed != needed {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs root");
        return println!("LEFT OUT: it needs root");
    }
    let place = tempfile::tempdir().unwrap();
    let (policy, socket) = (place.path().join("netd.toml"), place.path().join("run/netd.sock"));
    std::fs::write(&policy, "").unwrap();
    let netd = bare(&format!("netd --policy {} --socket {}", policy.display(), socket.display()));
    let mut command = Command::new("unshare");
    command.arg("--net").arg(netd.get_program()).args(netd.get_args());
    let mut netd = Running::start(command);
    assert!(netd.line().starts_with("netd listens at"));
    let found = privileges(netd.pid());
    assert_eq!(found.len(), 1, "one serves, and signals need none");
    let (kept, none) = (format!("{kept:016x}"), format!("{:016x}", 0));
    for of in found {
        let wanted = [
            format!("CapInh: {none}"),
            format!("CapPrm: {kept}"),
            format!("CapEff: {kept}"),
            format!("CapBnd: {none}"),
            format!("CapAmb: {none}"),
            "NoNewPrivs: 1".to_owned(),
        ];
        assert_eq!(of, wanted);
    }
    netd.signal("TERM");
    assert_eq!((netd.end().code, socket.exists()), (Some(0), false));
}
