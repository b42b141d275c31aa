//! `netd`, in a network of its own, with root's privileges.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::common::{Running, bare};

/// What each thread of a process may do: these lines of its status. One that has ended may be listed for a while, and does
/// nothing any more: who waits for its end is told before that, and after the kernel has set its `PF_EXITING`.
fn privileges(pid: u32) -> Vec<Vec<String>> {
    const PF_EXITING: u64 = 4;
    let names = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:"];
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |status: String| {
        let lines = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        lines.map(|line| line.replace('\t', " ")).collect()
    };
    let of_thread = |task: &Path| {
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        // The ninth field: proc_pid_stat(5).
        let stat = std::fs::read_to_string(task.join("stat")).ok()?;
        let flags: u64 = stat.rsplit_once(") ")?.1.split(' ').nth(6)?.parse().ok()?;
        (flags & PF_EXITING == 0).then(|| of(status))
    };
    tasks.filter_map(|task| of_thread(&task.unwrap().path())).collect()
}

/// Has this process what netd keeps, and CAP_SETPCAP, with which the bounding set is emptied?
fn may_serve() -> bool {
    let needed = 0x80_0000_7100_u64;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let has = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    let may = u64::from_str_radix(has, 16).unwrap() & needed == needed;
    if !may {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs root");
        println!("LEFT OUT: it needs root");
    }
    may
}

/// A netd that listens, in a network of its own.
fn serving(policy: &Path, socket: &Path) -> Running {
    let netd = bare(&format!("netd --policy {} --socket {}", policy.display(), socket.display()));
    let mut command = Command::new("unshare");
    command.arg("--net").arg(netd.get_program()).args(netd.get_args());
    let mut netd = Running::start(command);
    assert!(netd.line().starts_with("netd listens at"));
    netd
}

/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK and CAP_BPF: so much of a queue takes them. It still takes its name away.
#[test]
fn it_keeps_four_capabilities() {
    if !may_serve() {
        return;
    }
    let kept = 0x80_0000_7000_u64;
    let place = tempfile::tempdir().unwrap();
    let (policy, socket) = (place.path().join("netd.toml"), place.path().join("run/netd.sock"));
    std::fs::write(&policy, "").unwrap();
    let netd = serving(&policy, &socket);
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

/// By SIGHUP; what cannot be read changes nothing. Of root's files it can read those that root alone can, and of others'
/// those that all can.
#[test]
fn it_reads_its_rules_again() {
    if !may_serve() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (policy, socket) = (place.path().join("netd.toml"), place.path().join("netd.sock"));
    let rule = "[[allow]]\nuser = 0\ninterface = \"eth0\"\nqueues = [0]\ndomains = [0]\n";
    let write = |text: &str, owner: u32, mode: u32| {
        std::fs::write(&policy, text).unwrap();
        chown(&policy, Some(owner), None).unwrap();
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("", 65_534, 0o600);
    let mut netd = serving(&policy, &socket);
    let line = netd.error_line();
    assert!(
        line.starts_with("taut: warn: netd: ") && line.contains("has no rule, so that all are refused"),
        "{line}"
    );
    write(rule, 0, 0o600);
    netd.signal("HUP");
    assert_eq!(netd.line(), "netd has read its rules again; rules: 1");
    let line = netd.error_line();
    assert!(line.contains("rules for interface eth0, which is not there"), "{line}");
    let wrong = rule.replace("queues", "queue");
    for (text, owner, mode, part) in [
        (wrong.as_str(), 0, 0o600, "netd.toml line 4: unknown field `queue`"),
        (rule, 65_534, 0o600, "cannot be read: Permission denied"),
    ] {
        write(text, owner, mode);
        netd.signal("HUP");
        let line = netd.error_line();
        assert!(
            line.starts_with("taut: warn: netd: the rules stay as they are: ") && line.contains(part),
            "{line}"
        );
    }
    write(&rule.repeat(2), 65_534, 0o644);
    netd.signal("HUP");
    assert_eq!(netd.line(), "netd has read its rules again; rules: 2");
    netd.signal("TERM");
    let ended = netd.end();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "0 connected, 0 granted, 0 revoked, 0 refused, 0 dropped\n")
    );
}
