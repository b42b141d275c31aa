//! What is wrong with arguments, configuration and machine: one sentence with the remedy, exit code 2.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::{bare, run, taut};

/// The one line on stderr of a command that ends with 2.
fn refusal(command: std::process::Command) -> String {
    let ended = run(command);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    let line = ended.stderr.strip_suffix('\n').unwrap_or_default().to_owned();
    assert!(line.starts_with("taut: ") && !line.contains('\n'), "{:?}", ended.stderr);
    line
}

#[test]
fn wrong_arguments() {
    for (arguments, says) in [
        ("pub shapes --colour RED", "'--colour' found; a similar argument exists: '--color'"),
        ("pub shapes --rate fast", "use a number from 0"),
        ("pub shapes --rate=-1", "use a number from 0"),
        ("sub shapes --history keep-last:0", "use keep-all or keep-last:N with N from 1"),
        ("sub shapes --reliability perfect", "reliable, best-effort"),
        ("--domain 233 ls", "0..=232"),
        ("ls --seconds nan", "use a number from 0"),
        ("top --prometheus --listen here", "use PORT or ADDRESS:PORT"),
        ("top --prometheus --listen 192.0.2.1:9469", "choose an address of this machine"),
        ("top --listen 9469", "--prometheus"),
        ("top --prometheus --json", "cannot be used with"),
        ("demo --seconds 0", "1..=86400"),
        ("--domain 3", "which command? Use pub, sub, ls"),
        ("pub --domain 3", "which topic type? Use shapes, string, metric"),
        ("nic --domain 3", "which action? Use plan"),
        ("list", "unknown command \"list\": use pub, sub, ls, top, demo, perf, doctor, nic, netd, config"),
    ] {
        let line = refusal(bare(arguments));
        assert!(line.contains(says), "{arguments}: {line}");
    }
}

#[test]
fn a_file_for_a_nic() {
    let directory = Directory::new("nic");
    for (lines, says) in [
        (
            "interface = \"lo\"\npcp = 9\n",
            "nic.toml line 2: pcp = 9 is no priority of a VLAN tag: use 0 to 7",
        ),
        ("interface = \"lo\"\nqueue = [1]\n", "nic.toml line 2: unknown field `queue`, expected one of"),
        ("interface = \"none0\"\n", "there is no network interface none0: `ip link` lists them"),
        ("interface = \"lo\"\nqueues = 9\n", "queues = 9, and lo has 1 at most: ask for fewer"),
    ] {
        let file = directory.0.join("nic.toml");
        std::fs::write(&file, lines).unwrap();
        for action in ["plan", "status"] {
            let line = refusal(bare(&format!("nic {action} {}", file.display())));
            assert!(line.contains(says), "{line}");
        }
    }
    let line = refusal(bare("nic plan none.toml"));
    assert!(line.starts_with("taut: none.toml cannot be read: No such file"), "{line}");
    std::fs::write(directory.0.join("nic.conf"), "interface = \"lo\"\n").unwrap();
    let mut command = bare("nic plan nic.conf");
    command.current_dir(&directory.0);
    let line = refusal(command);
    assert!(line.ends_with("`ip link` lists them; for the file of that name write ./nic.conf"), "{line}");
    let line = refusal(bare("nic plan lo --facts /dev/null"));
    assert!(
        line.contains("/dev/null holds no facts") && line.contains("`taut nic facts INTERFACE`"),
        "{line}"
    );
    assert!(
        refusal(bare("nic change lo")).contains("unknown action \"change\": use plan, apply, undo, status")
    );
}

#[test]
fn a_policy_for_netd() {
    let directory = Directory::new("netd");
    let file = directory.0.join("netd.toml");
    for (lines, says) in [
        ("[[allow]]\nuser = 0\nqueue = [1]\n", "netd.toml line 3: unknown field `queue`, expected one of"),
        (
            "[[allow]]\nuser = \"no-one\"\ninterface = \"lo\"\nqueues = [0]\ndomains = [0]\n",
            "netd.toml line 2: user = \"no-one\" is not known here",
        ),
    ] {
        std::fs::write(&file, lines).unwrap();
        let line = refusal(bare(&format!("netd --policy {}", file.display())));
        assert!(line.contains(says), "{line}");
    }
    let line = refusal(bare("netd --policy none.toml"));
    assert!(line.starts_with("taut: none.toml cannot be read: No such file"), "{line}");
    assert!(refusal(bare("netd")).contains("--policy <FILE>"));
}

#[test]
fn a_log_of_no_level() {
    for level in
        ["WARNING", "warn,verbose", "taut=loud", "taut_exec", "=debug", "1", " ", ",", "/step", "warn/a/b"]
    {
        let mut command = bare("config");
        command.env("TAUT_LOG", level);
        let line = refusal(command);
        let says = format!(
            "taut: TAUT_LOG={level} in the environment is no level: use off, error, warn, info, debug"
        );
        assert!(line.starts_with(&says), "{line}");
    }
    let mut command = bare("config");
    command.env("TAUT_LOG", std::ffi::OsStr::from_bytes(b"\xff"));
    assert!(refusal(command).starts_with("taut: TAUT_LOG=\u{fffd} in the environment is no level"));
}

#[test]
fn a_log_of_some_level() {
    // Some step takes that long, which is a warning of the library.
    for (level, warns) in [
        ("", true),
        ("WARN", true),
        ("info,taut_rtps=off", true),
        ("taut_rtps=off, warn", true),
        (",warn,", true),
        ("warn/ran for longer", true),
        ("warn/no line has this", false),
        ("error", false),
        ("off", false),
    ] {
        let mut command = taut(70, "pub shapes --no-wait --count 1");
        command.env("TAUT_LOG", level).env("TAUT_FLIGHT_RECORDER_STEP", "1us");
        let stderr = run(command).stderr;
        assert_eq!(stderr.contains("taut: warn: "), warns, "{level:?}: {stderr}");
    }
}

#[test]
fn an_unknown_topic_type() {
    for command in ["pub", "sub"] {
        let line = refusal(bare(&format!("{command} circles")));
        assert_eq!(line, "taut: unknown topic type \"circles\": use shapes, string, metric");
    }
}

#[test]
fn words_that_are_no_text() {
    let no_text = std::ffi::OsStr::from_bytes(b"\xff");
    let mut command = bare("--config");
    command.arg(no_text).arg("list");
    assert!(refusal(command).contains("unknown command \"list\": use pub, sub, ls"));
    let mut command = bare("");
    command.arg(no_text);
    assert!(refusal(command).contains("unknown command \"\u{fffd}\": use pub, sub, ls"));
    let mut command = bare("pub");
    command.arg(no_text);
    assert!(refusal(command).contains("unknown topic type \"\u{fffd}\": use shapes, string"));
}

#[test]
fn an_unknown_workload_and_an_impossible_size() {
    let line = refusal(bare("perf lag"));
    assert!(line.starts_with("taut: unknown workload \"lag\": use latency, throughput, fanout"), "{line}");
    let line = refusal(bare("perf latency --sizes 1T"));
    assert!(line.contains("use bytes, or K and M"), "{line}");
}

#[test]
fn names_that_discovery_does_not_carry() {
    let mut command = taut(171, "sub string");
    command.args(["--topic", ""]);
    assert!(refusal(command).contains("use 1 to 255 bytes"));
}

#[test]
fn a_missing_interface() {
    let line = refusal(bare("sub shapes --interface nosuch0"));
    assert!(line.contains("nosuch0") && line.contains("choose of") && line.contains("lo"), "{line}");
}

#[test]
fn bad_configuration() {
    let directory = Directory::new("configuration");
    let file = directory.0.join("taut.toml");
    for (text, says) in [
        ("domian = 1\n", "did you mean domain?"),
        ("domain = 300\n", "it takes a number from 0 to 232"),
        ("domain 1\n", "line 1"),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut with_option = bare("ls --config");
        with_option.arg(&file);
        let mut with_variable = bare("ls");
        with_variable.env("TAUT_CONFIG", &file);
        let mut in_directory = bare("ls");
        in_directory.current_dir(&directory.0);
        for command in [with_option, with_variable, in_directory] {
            let line = refusal(command);
            assert!(line.contains("taut.toml") && line.contains(says), "{line}");
        }
    }
    let line = refusal(bare("ls --config /nonexistent/taut.toml"));
    assert!(line.contains("/nonexistent/taut.toml cannot be read"), "{line}");
}

#[test]
fn bad_environment() {
    for (name, value, says) in [
        ("TAUT_DOMIAN", "1", "did you mean TAUT_DOMAIN?"),
        ("TAUT_MULTICAST", "maybe", "it takes `true` or `false`"),
        ("DEMO_SECONDS", "soon", "soon"),
    ] {
        let mut command = bare("demo");
        command.env(name, value);
        let line = refusal(command);
        assert!(line.contains(says), "{line}");
    }
}

#[test]
fn a_port_in_use() {
    // The port of discovery by multicast, held by a program that does not share it.
    let domain = 172;
    let port = 7400 + 250 * domain;
    let _held = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    let line = refusal(taut(domain.into(), "ls"));
    assert!(line.contains(&port.to_string()), "{line}");
}

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("taut-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_reader_who_has_left_is_no_failure() {
    for arguments in ["perf peers", "config"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bare(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments}: {said}");
    }
}

/// Another process may write to the same place: half a line would have its line in the middle.
#[test]
fn a_remark_is_written_as_a_whole() {
    for (arguments, ends_with) in
        [("list", "config\n"), ("perf peers --peer-dir /nonexistent", "directory\n")]
    {
        // A datagram for each write.
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let status = bare(arguments).stderr(OwnedFd::from(theirs)).status().unwrap();
        assert_eq!(status.code(), Some(2));
        ours.set_nonblocking(true).unwrap();
        let mut bytes = [0; 1_024];
        let first = ours.recv(&mut bytes).unwrap();
        let line = String::from_utf8_lossy(&bytes[..first]).into_owned();
        assert!(line.starts_with("taut: ") && line.ends_with(ends_with), "{line:?}");
        assert!(ours.recv(&mut bytes).is_err(), "a second write");
    }
}
