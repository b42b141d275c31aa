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
        ("pub shapes --rate -5", "'-5' for '--rate <HZ>': use a number from 0"),
        ("ls --seconds -1", "use a number from 0 to 86400, in seconds"),
        ("sub shapes --timeout -1.5", "use a number from 0, in seconds"),
        ("perf latency --count -1", "use a whole number from 1 to 100000000"),
        ("ls --domain -1", "use a whole number from 0 to 232"),
        ("ls -1", "unexpected argument '-1' found"),
        ("sub shapes --history keep-last:0", "use keep-all or keep-last:N with N from 1"),
        ("sub shapes --reliability perfect", "reliable, best-effort"),
        ("--domain 233 ls", "use a whole number from 0 to 232"),
        ("ls --seconds nan", "use a number from 0"),
        ("ls --seconds 1e99", "use a number from 0 to 86400, in seconds"),
        ("top --prometheus --listen here", "use PORT or ADDRESS:PORT"),
        ("top --prometheus --listen 192.0.2.1:9469", "choose an address of this machine"),
        ("top --listen 9469", "--prometheus"),
        ("top --prometheus --json", "cannot be used with"),
        ("demo --seconds 0", "use a whole number from 1 to 86400"),
        ("--domain abc ls", "'abc' for '--domain <N>': use a whole number from 0 to 232"),
        ("--domain 4294967296 ls", "use a whole number from 0 to 232"),
        ("sub shapes --timeout 5s", "use a number from 0, in seconds, as 2.5"),
        ("sub shapes --count 0", "'0' for '--count <N>': use a whole number from 1"),
        ("pub shapes --count many", "'many' for '--count <N>': use a whole number from 1"),
        ("pub metric --unit 12345678901234567", "for '--unit <UNIT>': use 16 bytes at most, not 17"),
        ("pub metric --value high", "use a number, as 2.5"),
        ("top --count 1.5", "use a whole number from 1"),
        ("top --prometheus --listen 65536", "with a port up to 65535"),
        ("perf latency --count ten", "use a whole number from 1 to 100000000"),
        ("perf latency --sizes 64,big", "'big' for '--sizes <BYTES>': use bytes, or K and M"),
        ("perf latency --nodes 2,65", "'65' for '--nodes <N>': use a whole number from 1 to 64"),
        ("perf latency --duration 1m", "use a number from 0.01 to 1000000, in seconds, as 2.5"),
        ("perf latency --rate nan", "use a number from 0.01 to 10000000, in samples per second"),
        ("perf latency --loss 51", "use a number from 0.1 to 50, in percent"),
        ("perf latency --fifo 100", "use a whole number from 1 to 99"),
        ("perf latency --mtu 68", "use a whole number from 1280 to 65535"),
        ("--domain 3", "which command? Use pub, sub, ls"),
        ("pub --domain 3", "which topic type? Use shapes, string, metric"),
        ("nic --domain 3", "which action? Use plan"),
        ("--config pub list", "unknown command \"list\": use pub, sub, ls"),
        ("--interface=pub list", "unknown command \"list\": use pub, sub, ls"),
        ("list", "unknown command \"list\": use pub, sub, ls, top, demo, perf, doctor, nic, netd, config"),
    ] {
        let line = refusal(bare(arguments));
        assert!(line.contains(says), "{arguments}: {line}");
    }
}

/// What is silently left out would be taken for done.
#[test]
fn options_that_a_command_has_no_use_for() {
    for (arguments, says) in [
        (
            "perf peers --interface lo",
            "perf takes no --interface: its traffic stays in a network of its own; see",
        ),
        ("perf peers --domain 3", "perf takes no --domain: "),
        ("netd --policy /dev/null --domain 3", "netd takes no --domain: the rules of its policy name"),
        ("nic plan lo --interface lo", "nic takes no --interface: its file names the interface"),
        ("nic plan lo --peer 192.0.2.1", "nic takes no --peer: "),
    ] {
        let line = refusal(bare(arguments));
        assert!(line.contains(says), "{arguments}: {line}");
    }
}

#[test]
fn files_that_are_none() {
    let directory = Directory::new("files");
    let file = directory.0.join("a.toml");
    std::fs::write(&file, b"interface = \"lo\"\n# caf\xe9\n").unwrap();
    let shown = file.display().to_string();
    for command in ["nic plan", "nic undo", "netd --policy", "nic plan lo --facts"] {
        let line = refusal(bare(&format!("{command} {shown}")));
        assert!(
            line.ends_with("a.toml line 2: what stands there is no UTF-8: save it as text in UTF-8"),
            "{line}"
        );
        let line = refusal(bare(&format!("{command} /dev/zero")));
        assert!(line.ends_with("/dev/zero is longer than 4 MiB: it is another file than is meant"), "{line}");
        let line = refusal(bare(&format!("{command} {}", directory.0.display())));
        assert!(line.contains("cannot be read: Is a directory"), "{line}");
    }
}

#[test]
fn facts_do_not_reach_the_terminal_as_they_are() {
    let directory = Directory::new("facts");
    let file = directory.0.join("facts.json");
    let facts = include_str!("../../../../crates/nic/facts/i226.json");
    let evil = facts.replacen("\"driver\": \"igc\"", "\"driver\": \"\\u001b[2J\"", 1);
    assert_ne!(evil, facts);
    std::fs::write(&file, evil).unwrap();
    let ended = run(bare(&format!("nic plan enp2s0 --facts {}", file.display())));
    assert!(!ended.stdout.contains('\x1b') && ended.stdout.contains("(\\u{1b}[2J)"), "{}", ended.stdout);
    let line = refusal(bare("nic plan \x1b[2J"));
    assert!(!line.contains('\x1b'), "{line:?}");
}

#[test]
fn a_file_for_a_nic() {
    let directory = Directory::new("nic");
    for (lines, says) in [
        (
            "interface = \"lo\"\npcp = 9\n",
            "nic.toml line 2: pcp = 9 is no priority of a VLAN tag: use 0 to 7",
        ),
        (
            "interface = \"lo\"\nports = [70000]\n",
            "nic.toml line 2: ports = 70000 is no UDP port: use 1 to 65535",
        ),
        ("interface = \"lo\"\ndomains = [-1]\n", "nic.toml line 2: domains = -1 is no domain: use 0 to 232"),
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
    let mut command = bare("ls --domain");
    command.arg(no_text);
    assert_eq!(
        refusal(command),
        "taut: argument \"\u{fffd}\" is no UTF-8: only the name of a file may be any bytes"
    );
    let mut command = bare("pub");
    command.arg(no_text);
    assert!(refusal(command).contains("unknown topic type \"\u{fffd}\": use shapes, string"));
}

#[test]
fn an_unknown_workload_and_an_impossible_size() {
    let line = refusal(bare("perf lag"));
    assert!(
        line.starts_with("taut: unknown workload \"lag\": use latency, throughput, bursts, fanout"),
        "{line}"
    );
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

/// The reader of a help that was cut off must not take it for whole.
#[test]
fn a_help_that_cannot_be_written_is_a_failure() {
    for arguments in ["--help", "perf latency --help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = bare(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        assert!(said.starts_with("taut: the output cannot be written: No space left"), "{arguments}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bare(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn runs_that_are_none() {
    let directory = Directory::new("runs");
    let line = |workload: &str| {
        format!(
            "{{\"workload\":\"{workload}\",\"peer\":\"taut\",\"version\":\"\",\"transport\":\"udp\",\"wait\":\"block\",\
             \"pin\":\"none\",\"size_bytes\":64,\"rate_hz\":0.0,\"qos\":\"\",\"case\":\"\",\"status\":\"ok\",\"rounds\":1,\
             \"samples\":1,\"lost\":0,\"out_of_order\":0,\"duplicates\":0,\"corrupt\":0,\"round_values\":[1.0],\
             \"run\":{{\"id\":\"\",\"started\":\"\",\"command\":\"\",\"taut\":\"\",\"cpu\":\"\",\"cores\":1,\"kernel\":\"\",\
             \"governor\":\"\",\"notes\":[]}}}}\n"
        )
    };
    let write = |name: &str, bytes: &[u8]| {
        let file = directory.0.join(name);
        std::fs::write(&file, bytes).unwrap();
        file.display().to_string()
    };
    let run_of = |workload: &str| write(workload, line(workload).as_bytes());
    let (one, other) = (run_of("latency"), run_of("cdr"));
    let remedy = "; name a file that `taut perf ... --save FILE` has written";
    for (file, says) in [
        (write("empty", b""), "holds no line of a run"),
        (write("foreign", b"hello, world\n"), "line 1: not a line of a run: expected value (column 1)"),
        (write("truncated", &line("cdr").as_bytes()[..40]), "holds no line of a run"),
        (write("packed", b"\x1f\x8b\x08\x00"), "unexpected end of file"),
        ("/nonexistent".to_owned(), "No such file or directory"),
    ] {
        for command in [format!("perf report {file}"), format!("perf compare {one} {file}")] {
            let line = refusal(bare(&command));
            assert!(line.contains(says) && line.contains(&file) && line.ends_with(remedy), "{line}");
        }
    }
    let mut report = bare(&format!("perf report {one} --out"));
    report.arg(&directory.0);
    assert!(refusal(report).contains("cannot be written: Is a directory"));
    let ended = run(bare(&format!("perf compare {one} {other}")));
    let told = format!("no line has run both in {one} and in {other}: compare runs of the same workload");
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    let without = write("without", line("latency").replace("[1.0]", "[0.0]").as_bytes());
    let ended = run(bare(&format!("perf compare {one} {without}")));
    assert_eq!((ended.code, ended.stdout.starts_with("no figure in the new run: ")), (Some(2), true));
    let told = format!("no line has a figure both in {one} and in {without}: run those again");
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    let same = run(bare(&format!("perf compare {one} {one}")));
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert!(same.stdout.contains("1 line with one round on a side"), "{}", same.stdout);
}

#[test]
fn a_peer_whose_port_is_none() {
    for peer in ["1.2.3.4:99999", "1.2.3.4:0", "robot:"] {
        let says = format!(
            "\"{peer}\" has no port from 1 to 65535 behind its host: write HOST:PORT, as 192.168.1.7:7410"
        );
        for command in ["ls", "config", "doctor"] {
            let line = refusal(taut(62, &format!("--peer {peer} {command}")));
            assert!(line.contains(&says), "{command}: {line}");
        }
    }
}

/// Its stack finds no addresses, for their limit or for their number.
#[test]
fn a_driver_without_a_thread_is_told() {
    let ls = |limit: &str, stack: u64| {
        let mut command = std::process::Command::new("sh");
        let line = format!("{limit} exec {} --interface lo --domain 62 ls", env!("CARGO_BIN_EXE_taut"));
        command.args(["-c", &line]).env("RUST_MIN_STACK", stack.to_string());
        run(command).stderr
    };
    let begin = "taut: pthread_create of the thread that drives: Resource temporarily unavailable (os error 11): raise \
                 the limit of ";
    let (bounded, unbounded) = (ls("ulimit -v 1000000;", 16 << 30), ls("", 1 << 47));
    for (text, limit) in
        [(bounded, "addresses, which its stack takes too (`ulimit -v`)"), (unbounded, "threads")]
    {
        assert!(text.starts_with(&format!("{begin}{limit}")), "{text}");
        assert!(text.contains("of threads (`ulimit -u`, ") && text.contains("(Driver::Inline)"), "{text}");
    }
}

/// It would go with the run.
#[test]
fn lines_are_not_saved_where_they_are_lost() {
    let line = refusal(bare("perf latency --save /dev/shm/run.jsonl"));
    assert!(line.contains("the run has a /dev/shm of its own"), "{line}");
}
