//! The driver against an adapter that breaks the contract in every way: each is reported as what it is,
//! in time, and nothing is left behind.
//!
//! Needs namespaces, as the driver does; says so and passes where the system makes none, unless CI is set.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use taut_perf::record::{Outcome, Pace, Record};

/// Beside the test programs, where `cargo test` puts the examples of the package.
fn examples() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let examples = test.parent().unwrap().parent().unwrap().join("examples");
    assert!(examples.join("perf-peer-fake").exists(), "cargo build -p taut-perf --examples first");
    examples
}

fn has_namespaces() -> bool {
    let mut unshare = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let status = unshare.args(["--net", "--pid", "--fork", "--mount-proc", "true"]).status();
    let has = status.is_ok_and(|status| status.success());
    assert!(has || std::env::var_os("CI").is_none(), "this system makes no namespaces");
    if !has {
        eprintln!("left out: this system makes no namespaces");
    }
    has
}

fn driver(words: &str) -> Command {
    let mut command = Command::new(examples().join("taut-perf"));
    command.args(words.split_whitespace()).arg("--peer-dir").arg(examples());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it, and fails if it does not end within this time. Lines go to a file: a pipe would fill up.
fn run_within(limit_s: u64, words: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stdout");
    let mut child = driver(words).stdout(std::fs::File::create(&file).unwrap()).spawn().unwrap();
    await_or_kill(&mut child, limit_s, words);
    let output = child.wait_with_output().unwrap();
    Output { stdout: std::fs::read(&file).unwrap(), ..output }
}

fn await_or_kill(child: &mut Child, limit_s: u64, what: &str) {
    if !within(Duration::from_secs(limit_s), || child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        panic!("{what}: still there after {limit_s} s");
    }
}

fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn records(output: &Output) -> Vec<Record> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Runs it with a file in which the adapters note their starts: the records, the exit code, and `(role, variant, cores)`.
fn with_starts(command: &mut Command, directory: &Path) -> (Vec<Record>, Option<i32>, Vec<[String; 3]>) {
    let file = directory.join("starts");
    command.env("FAKE_STARTS_FILE", &file).stdin(Stdio::null());
    let output = command.output().unwrap();
    let starts = std::fs::read_to_string(&file).unwrap_or_default();
    let start = |line: &str| -> [String; 3] {
        let words: Vec<String> = line.split(' ').map(|word| word.trim_matches('"').to_string()).collect();
        words.try_into().unwrap_or_else(|_| panic!("{line}"))
    };
    (records(&output), output.status.code(), starts.lines().map(start).collect())
}

/// The variants of the pings, in the order of their starts.
fn turns(starts: &[[String; 3]]) -> Vec<&str> {
    starts.iter().filter(|[role, ..]| role == "ping").map(|[_, variant, _]| variant.as_str()).collect()
}

#[test]
fn rounds_begin_with_another_peer_each() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = "latency --peers fake,fake:pid,fake:chatter --sizes 64 --count 10 --rounds 4 --json";
    let (_, code, starts) = with_starts(&mut driver(words), directory.path());
    assert_eq!(code, Some(0));
    let [first, second, third] = ["", "pid", "chatter"];
    assert_eq!(
        turns(&starts),
        [[first, second, third], [second, third, first], [third, first, second], [first, second, third]]
            .concat()
    );
}

#[test]
fn processes_run_on_the_cores_that_the_run_was_given() {
    if !has_namespaces() {
        return;
    }
    // The last one: of the first, nobody could tell whether it was given or taken.
    let own = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let count = nix::sched::CpuSet::count();
    let cores: Vec<usize> = (0..count).filter(|core| own.is_set(*core).unwrap_or(false)).collect();
    let last = cores[cores.len() - 1].to_string();
    for pin in ["same", "split", "none"] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("taskset");
        let words = format!("latency --peers fake --sizes 64 --count 10 --rounds 1 --json --pin {pin}");
        command.args(["-c", &last]).arg(examples().join("taut-perf")).args(words.split(' '));
        command.arg("--peer-dir").arg(examples());
        let (records, code, starts) = with_starts(&mut command, directory.path());
        assert_eq!((code, records.len(), starts.len()), (Some(0), 1, 2), "{pin}");
        assert!(starts.iter().all(|[_, _, cores]| *cores == last), "{pin}, given {last}: {starts:?}");
    }
}

#[test]
fn both_ends_share_a_core_or_have_one_each() {
    if !has_namespaces() {
        return;
    }
    // Of those it may have a part of the time only, which Rust counts as fewer.
    let may_run = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cores = (0..nix::sched::CpuSet::count()).filter(|cpu| may_run.is_set(*cpu) == Ok(true)).count();
    for (pin, are_apart) in [("same", false), ("split", cores > 1)] {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("latency --peers fake --sizes 64 --count 10 --rounds 1 --json --pin {pin}");
        let (_, _, starts) = with_starts(&mut driver(&words), directory.path());
        let [one, other] = [&starts[0][2], &starts[1][2]];
        assert!(!one.contains(',') && !other.contains(','), "{pin}: {starts:?}");
        assert_eq!(one != other, are_apart, "{pin}: {starts:?}");
    }
}

#[test]
fn a_failed_round_leaves_the_good_ones() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = "latency --peers fake,fake:sometimes --sizes 64 --count 10 --rounds 4 --json";
    let (records, code, _) = with_starts(&mut driver(words), directory.path());
    let some = records.iter().find(|record| record.peer == "fake:sometimes").unwrap();
    assert_eq!((some.outcome.clone(), some.rounds, some.failed_rounds), (Outcome::Ok, 2, 2));
    assert!(some.failure.as_deref().unwrap().contains("not this time"), "{:?}", some.failure);
    assert_eq!(
        some.round_values.iter().map(|value| *value > 0.0).collect::<Vec<_>>(),
        [true, false, true, false]
    );
    assert!(some.samples == 20 && !some.ratio.is_empty());
    assert_eq!(code, Some(1), "a round of one that was named has failed");
}

#[test]
fn who_fails_at_first_has_one_more_try() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = "latency --peers fake:at-first --sizes 64 --count 10 --rounds 3 --json";
    let (records, code, _) = with_starts(&mut driver(words), directory.path());
    let line = &records[0];
    assert_eq!((line.outcome.clone(), line.rounds, line.failed_rounds), (Outcome::Ok, 2, 1));
    assert_eq!(line.round_values.iter().map(|value| *value > 0.0).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(code, Some(1), "it is told all the same");
}

fn latency(variant: &str) -> (Record, Option<i32>) {
    let words =
        format!("latency --peers fake:{variant} --sizes 64 --count 100 --duration 5 --rounds 2 --json");
    let output = run_within(60, &words);
    let mut records = records(&output);
    assert_eq!(records.len(), 1, "{variant}: {}", String::from_utf8_lossy(&output.stderr));
    (records.remove(0), output.status.code())
}

fn failure(variant: &str) -> String {
    let (record, code) = latency(variant);
    assert_eq!(code, Some(1), "{variant}: a peer that was named has failed");
    match record.outcome {
        Outcome::Failed(reason) => reason,
        other => panic!("{variant} is {other:?}"),
    }
}

#[test]
fn who_keeps_the_contract_is_measured() {
    if !has_namespaces() {
        return;
    }
    let output = run_within(60, "latency --peers fake,fake:pid --sizes 64,1K --count 100 --rounds 3 --json");
    let records = records(&output);
    assert_eq!((output.status.code(), records.len()), (Some(0), 4));
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{}", record.peer);
        assert_eq!((record.rounds, record.samples, record.lost, record.out_of_order), (3, 300, 0, 0));
        let (rtt, one_way) = (record.rtt_ns.unwrap(), record.one_way_ns.unwrap());
        assert!(rtt.min > 0 && rtt.p50 <= rtt.p99 && rtt.p99 <= rtt.max && one_way.p50 < rtt.p50);
        assert!(record.cpu_ns_per_sample.unwrap() > 100.0 && record.context_switches.unwrap() > 0);
        assert_eq!(record.allocations_per_sample, Some(3.0));
        let other = if record.peer == "fake" { "fake:pid" } else { "fake" };
        assert_eq!(record.ratio.iter().map(|ratio| ratio.to.as_str()).collect::<Vec<_>>(), [other]);
        assert!(record.ratio[0].low.unwrap() <= record.ratio[0].p50);
        assert_eq!((record.wait.as_str(), record.version.as_str()), ("waitset", "1"));
    }
}

#[test]
fn an_open_loop_tells_what_the_machine_overslept() {
    if !has_namespaces() {
        return;
    }
    let output = run_within(
        60,
        "latency --peers fake,fake:older --sizes 64 --rate 1000 --count 100 --rounds 2 --json",
    );
    let records = records(&output);
    // A bare sleep is never on time.
    let overslept = records[0].overslept_ns.unwrap();
    assert!(overslept.min > 0 && overslept.p50 <= overslept.p99, "{overslept:?}");
    assert_eq!(records[0].run.rules, taut_perf::rules::CURRENT);
    // Who times by older rules is not measured by these.
    assert!(
        matches!(&records[1].outcome, Outcome::Failed(why) if why.contains("older rules") && why.contains("make peers")),
        "{:?}",
        records[1].outcome
    );
}

#[test]
fn every_workload_has_its_figures() {
    if !has_namespaces() {
        return;
    }
    let one = |words: &str| {
        let output = run_within(60, &format!("{words} --peers fake --rounds 1 --json"));
        let records = records(&output);
        let ran: Vec<Record> = records.into_iter().filter(|r| r.outcome == Outcome::Ok).collect();
        assert!(!ran.is_empty(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        ran[0].clone()
    };
    assert!(one("throughput --sizes 64 --quick").samples_per_s.unwrap() > 100.0);
    let lines = records(&run_within(60, "throughput --sizes 64 --duration 0.05 --peers fake --json"));
    let table = lines.iter().find(|line| line.case == "best of 12 bursts").expect("the table");
    // What it does not pause for is no rate of its own: none is above what was asked for.
    let within = |pace: &Pace| pace.asked_per_s().is_none_or(|asked| pace.samples_per_s <= 1.001 * asked);
    assert!(table.paces.len() == 12 && table.paces.iter().all(within), "{:?}", table.paces);
    assert!(
        table.paces.iter().all(|pace| pace.samples_per_s > 0.0 && pace.expected > 0),
        "{:?}",
        table.paces
    );
    let best = table.paces.iter().map(|pace| pace.samples_per_s).fold(0.0, f64::max);
    assert_eq!(table.samples_per_s, Some(best));
    assert!(one("fanout --nodes 4 --wait waitset").bytes_per_s.unwrap() > 1e5);
    let calls = records(&run_within(60, "calls --peers fake --rounds 2 --json")).remove(0);
    let has_perf = Command::new("perf").arg("version").stdout(Stdio::null()).status().is_ok();
    if has_perf && nix::unistd::geteuid().is_root() {
        // A datagram is a call of each side, and so is the writer's sleep after it.
        let per_burst = |side: &str, pick| calls.calls_per_burst(side, pick).expect("counted");
        let sends = per_burst("writer", |calls| calls.send);
        let receives = per_burst("reader", |calls| calls.receive);
        assert!((1.0..1.1).contains(&sends) && receives >= 1.0, "{:?} of {}", calls.calls, calls.samples);
        assert!(per_burst("writer", |calls| calls.all) >= sends + 1.0, "{:?}", calls.calls);
    } else {
        assert!(matches!(calls.outcome, Outcome::Absent(_)), "{:?}", calls.outcome);
    }
    assert_eq!(one("types --sizes 64 --count 100").case, "simple");
    assert!(one("local --sizes 64 --count 100").rtt_ns.is_some());
    assert!(one("write --sizes 64").write_ns.is_some());
    let cdr = one("cdr --sizes 64");
    assert_eq!((cdr.encode_ns.unwrap().p50, cdr.decode_ns.unwrap().p50), (50, 40));
    assert!(cdr.encode_round_values.iter().all(|ns| *ns == 50.0) && cdr.decode_round_values[0] == 40.0);
    let memory = one("memory").memory;
    let writer = memory.iter().find(|entry| entry.entity == "writer").unwrap();
    assert!(writer.count == 100 && (15_000..30_000).contains(&writer.bytes_each), "{writer:?}");
    let discovery = one("discovery --nodes 5 --endpoints 1");
    assert!(discovery.matched_ns.is_some());
    // Each node sends a datagram of 100 bytes in a frame of 142.
    assert!((710..2_000).contains(&discovery.network_bytes.unwrap()), "{:?}", discovery.network_bytes);
    assert!((5..15).contains(&discovery.network_packets.unwrap()), "{:?}", discovery.network_packets);
    let records = records(&run_within(60, "discovery --peers fake --rounds 1 --json"));
    let late = records.iter().find(|r| r.case == "first sample of a late reader").unwrap();
    // It is there when its socket is: the publisher writes every 100 us.
    assert!((100_000..500_000_000).contains(&late.matched_ns.unwrap().p50), "{:?}", late.outcome);
    assert!(one("soak --duration 2.5").memory.len() >= 2);
}

#[test]
fn a_burst_takes_until_its_latest_sample_is_there() {
    if !has_namespaces() {
        return;
    }
    let lines = records(&run_within(60, "bursts --peers fake --rounds 2 --json"));
    let cases: Vec<(&str, u64)> = lines.iter().map(|line| (line.case.as_str(), line.samples)).collect();
    assert_eq!(cases, [("1 each 1 ms", 1_000), ("20 each 1 ms", 1_000), ("100 each 10 ms", 1_000)]);
    for (line, demand) in lines.iter().zip([1, 20, 100]) {
        let (sample, burst) = (line.one_way_ns.unwrap(), line.burst_ns.unwrap());
        assert_eq!(
            (line.outcome.clone(), line.lost, line.qos.as_str()),
            (Outcome::Ok, 0, "reliable keep-all volatile")
        );
        // The fake writes a sample each 100 us, whatever it is asked for.
        let all_but_the_last_ns = (demand - 1) * 100_000;
        assert!(burst.min >= all_but_the_last_ns, "{}: {burst:?}", line.case);
        assert_eq!(burst == sample, demand == 1, "{}: {burst:?}, {sample:?}", line.case);
        // Gains are of the whole.
        let rounds = &line.round_values;
        assert!(rounds.len() == 2 && rounds.iter().all(|ns| *ns >= all_but_the_last_ns as f64), "{rounds:?}");
    }
}

#[test]
fn bursts_of_who_does_not_note_or_bring_them() {
    if !has_namespaces() {
        return;
    }
    let mut command = driver("bursts --peers fake:no-file,fake:older,fake:lose --rounds 1 --json");
    let lines = records(&command.args(["--lines", "20 each 1 ms"]).output().unwrap());
    let absent = |line: &Record, says: &str| {
        assert!(matches!(&line.outcome, Outcome::Absent(why) if why.contains(says)), "{:?}", line.outcome);
    };
    absent(&lines[0], "writes no file of samples");
    absent(&lines[1], "`make peers` builds it anew");
    // A tenth of the samples is lost, two of each twenty.
    assert!(
        matches!(&lines[2].outcome, Outcome::Failed(why) if why.contains("no burst arrived whole: 50 of 500")),
        "{:?}",
        lines[2].outcome
    );
}

#[test]
fn who_fails_at_the_first_bursts_is_not_asked_for_the_others() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let words = "throughput --peers fake:failed --sizes 64 --duration 0.05 --rounds 1 --json";
    let (records, _, starts) = with_starts(&mut driver(words), directory.path());
    let fails = |record: &Record| matches!(&record.outcome, Outcome::Failed(_));
    assert!(records.iter().all(|record| fails(record) || record.case.ends_with(" threads")), "{records:?}");
    // Once without a limit, and three of twelve bursts; of several threads it has no role.
    assert_eq!(starts.iter().filter(|[role, ..]| role == "sub").count(), 1 + 3, "{starts:?}");
}

#[test]
fn who_fails_is_reported_with_the_reason() {
    if !has_namespaces() {
        return;
    }
    for (variant, told) in [
        ("crash", ["SIGABRT", "assertion failed: seq < 5"]),
        ("crash-early", ["SIGABRT", "cannot open the device"]),
        ("failed", ["pong", "out of tokens"]),
        ("garbage", ["not in the contract", "pong"]),
        ("loud", ["not in the contract", "without end"]),
        ("exit-1", ["exited with code 1 after done", "teardown went wrong"]),
        ("backwards", ["before it starts", "sample"]),
    ] {
        let reason = failure(variant);
        assert!(told.iter().all(|part| reason.contains(part)), "{variant}: {reason}");
    }
}

#[test]
fn writes_that_are_refused_are_told() {
    if !has_namespaces() {
        return;
    }
    let words =
        "throughput --peers fake:refuse --sizes 64 --count 100 --rounds 2 --reliability reliable --json";
    let stream = records(&run_within(60, words)).remove(0);
    assert_eq!((stream.outcome, stream.refused), (Outcome::Ok, 2));
}

#[test]
fn who_crashes_before_calls_are_counted_has_failed() {
    if !has_namespaces() {
        return;
    }
    let calls = records(&run_within(60, "calls --peers fake:crash-idle --rounds 1 --json")).remove(0);
    assert!(
        matches!(&calls.outcome, Outcome::Failed(reason) if reason.contains("nobody has asked")),
        "{calls:?}"
    );
}

#[test]
fn who_hangs_is_given_up() {
    if !has_namespaces() {
        return;
    }
    let hanging = ["never-ready", "hang", "deaf"];
    let lines = std::thread::scope(|scope| {
        hanging.map(|variant| scope.spawn(move || latency(variant).0)).map(|thread| thread.join().unwrap())
    });
    for (line, told) in lines.iter().zip(["no ready within", "no stop within", "no done within"]) {
        assert!(matches!(&line.outcome, Outcome::Failed(reason) if reason.contains(told)), "{line:?}");
        assert_eq!(line.failed_rounds, 1, "each more would take as long: {told}");
    }
}

#[test]
fn absent_is_no_failure() {
    if !has_namespaces() {
        return;
    }
    let (record, code) = latency("absent");
    assert_eq!((record.outcome, code), (Outcome::Absent("no such path today".to_string()), Some(2)));
    assert!(record.rtt_ns.is_none() && record.round_values.is_empty());
    let words = "--sizes 64 --count 10 --rounds 1 --json";
    let output = run_within(60, &format!("latency --peers fake,opendds --transport udp,xdp {words}"));
    let outcomes: Vec<Outcome> = records(&output).into_iter().map(|record| record.outcome).collect();
    assert_eq!((outcomes.len(), &outcomes[0]), (4, &Outcome::Ok));
    assert_eq!(outcomes[2], Outcome::Absent("no transport xdp".to_string()));
    for at in [1, 3] {
        assert!(matches!(&outcomes[at], Outcome::Absent(reason) if reason.starts_with("not built")));
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_run_of_which_all_is_absent_says_that_nothing_was_measured() {
    if !has_namespaces() {
        return;
    }
    let output = run_within(60, "latency --peers fake,opendds --transport xdp --sizes 64 --json");
    assert!(records(&output).iter().all(|record| matches!(record.outcome, Outcome::Absent(_))));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("nothing was measured: ") && output.status.code() == Some(2), "{told}");
}

#[test]
fn who_may_not_have_a_priority_is_told_what_allows_it() {
    if !has_namespaces() {
        return;
    }
    let mut command = Command::new("prlimit");
    command.arg("--rtprio=0:0");
    if nix::unistd::geteuid().is_root() {
        command.args(["setpriv", "--bounding-set=-sys_nice"]);
    }
    let words = "latency --fifo 50 --peers fake --sizes 64 --count 10 --rounds 1 --json --peer-dir";
    command.arg(examples().join("taut-perf")).args(words.split(' ')).arg(examples());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let lines = records(&output);
    let Some(Outcome::Absent(reason)) = lines.first().map(|line| &line.outcome) else { panic!("{output:?}") };
    assert!(reason.starts_with("no SCHED_FIFO here: ") && reason.contains("run it as root"), "{reason}");
    assert!(reason.contains("`ulimit -r 50` (LimitRTPRIO=50 "), "{reason}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn loss_order_and_content_are_seen() {
    if !has_namespaces() {
        return;
    }
    let (lossy, _) = latency("lose");
    assert_eq!((lossy.lost, lossy.samples), (20, 180), "every tenth of 2 x 100");
    assert_eq!(latency("reorder").0.out_of_order, 2);
    assert_eq!(latency("corrupt").0.corrupt, 2);
    let output =
        run_within(60, "throughput --peers fake:lose --sizes 1K --rounds 1 --reliability reliable --json");
    let stream = &records(&output)[0];
    assert!(stream.lost == 50 && stream.samples == 450, "{} of {}", stream.lost, stream.samples);
}

#[test]
fn wrong_use_is_told() {
    for (words, told) in [
        ("latency --peers nobody", "unknown peer"),
        ("latency --peers opendds", "make peers"),
        ("latency --peers fake:foo", "fake:foo: no variant foo: there are crash, "),
        ("latency --peers fake --peer-dir /nowhere", "no such directory"),
        ("latency --peers fake --save /nowhere/file", "/nowhere/file"),
        ("latency --peers fake --transport thread --loss 5", "thread has no use for --loss"),
        ("interference --peers fake --transport thread", "has no use for --transport thread"),
    ] {
        if !has_namespaces() {
            return;
        }
        let output = run_within(30, words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(told), "{words}: {text}");
    }
}

/// Whoever reads its output has stopped doing so.
#[test]
fn a_signal_ends_it_though_nobody_reads_on() {
    let (_unread, full) = std::io::pipe().unwrap();
    fcntl(&full, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while (&full).write(b"\n").is_ok() {}
    fcntl(&full, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.jsonl");
    let line = serde_json::json!({
        "workload": "latency", "peer": "fake", "version": "", "transport": "udp", "wait": "block", "pin": "none",
        "size_bytes": 64, "rate_hz": 0.0, "qos": "", "case": "", "status": "failed", "reason": "it broke",
        "rounds": 0, "samples": 0, "lost": 0, "out_of_order": 0, "duplicates": 0, "corrupt": 0, "round_values": [],
        "run": {"id": "", "started": "", "command": "", "taut": "", "cpu": "", "cores": 1, "kernel": "",
                "governor": "", "notes": []}
    });
    std::fs::write(&cut, format!("{line}\n{{")).unwrap();
    let mut command = Command::new(examples().join("taut-perf"));
    let mut child =
        command.arg("compare").args([&cut; 2]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // Behind what it says of the second file it prints, whatever it is asked.
    assert!(lines.by_ref().take(2).all(|line| line.contains("ends in the middle")));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    await_or_kill(&mut child, 30, "compare");
    let told = lines.next().unwrap();
    assert!(told.contains("the output cannot be written"), "{told}");
}

#[test]
fn one_is_told_as_one() {
    if !has_namespaces() {
        return;
    }
    let output = run_within(30, "latency --peers fake --sizes 64 --count 10 --rounds 1");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("taut perf: 1 case, 1 peer, 1 trial, about "), "{text}");
}

/// One that wraps would leave its first part behind each time that it is drawn again.
#[test]
fn the_line_of_progress_fits_a_narrow_terminal() {
    if !has_namespaces() {
        return;
    }
    let (width, examples) = (40, examples());
    let words = "latency --peers fake:pid --sizes 64 --count 10 --rounds 1";
    let command = format!(
        "stty cols {width} rows 24; '{0}/taut-perf' {words} --peer-dir '{0}' 2>/dev/tty > /dev/null",
        examples.display()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    let shown = String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned();
    let lines = shown.split(['\r', '\n', '\x1b']).map(|line| line.trim_start_matches("[2K"));
    let lines: Vec<&str> = lines.filter(|line| line.contains(" left  ")).collect();
    assert!(!lines.is_empty(), "{shown:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
}

/// The system has failed it, and what was measured before is printed.
#[test]
fn lines_that_cannot_be_saved_are_printed() {
    if !has_namespaces() {
        return;
    }
    let output = run_within(30, "latency --peers fake --sizes 64 --count 10 --rounds 1 --save /dev/full");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("udp 64 B"), "{text}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("--save: No space left on device"), "{told}");
}

#[test]
fn a_run_is_measured_though_its_remarks_reach_nobody() {
    if !has_namespaces() {
        return;
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let words = "latency --peers fake --sizes 64 --count 10 --rounds 1";
    let mut child = driver(words).arg("--json").stderr(full).spawn().unwrap();
    await_or_kill(&mut child, 30, words);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), records(&output).is_empty()), (Some(0), false));
}

/// A run in which a deaf pong has said where it is, outside of its process namespace.
fn started(file: &Path) -> Child {
    let mut command = driver("latency --peers fake:deaf --sizes 64 --rate 100 --duration 60 --json");
    command.env("FAKE_PID_FILE", file);
    let child = command.spawn().unwrap();
    let marker = file.to_string_lossy().into_owned();
    assert!(within(Duration::from_secs(20), || !adapters(&marker).is_empty()), "no adapter was started");
    child
}

/// The adapters that have this in their environment.
fn adapters(marker: &str) -> Vec<i32> {
    let processes = procfs::process::all_processes().unwrap().flatten();
    let own = processes.filter(|process| {
        let words = process.cmdline().unwrap_or_default();
        let is_adapter = words.first().is_some_and(|word| word.ends_with("perf-peer-fake"));
        let environment = process.environ().unwrap_or_default();
        is_adapter && environment.values().any(|value| value.to_string_lossy() == marker)
    });
    own.map(|process| process.pid).collect()
}

#[test]
fn nothing_is_left_behind() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let marker = directory.path().join(signal.as_str());
        let mut child = started(&marker);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        await_or_kill(&mut child, 20, signal.as_str());
        let marker = marker.to_string_lossy().into_owned();
        let all_gone = within(Duration::from_secs(20), || adapters(&marker).is_empty());
        assert!(all_gone, "after {signal} these are left: {:?}", adapters(&marker));
    }
}

#[test]
fn an_interrupted_run_keeps_what_is_finished() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    let words = "latency --peers fake --sizes 64,128,256 --count 300 --rate 100 --rounds 1";
    let mut command = driver(words);
    let mut child = command.arg("--save").arg(&file).spawn().unwrap();
    let saved = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    assert!(within(Duration::from_secs(30), || saved() == 1), "the first line is written at once");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    await_or_kill(&mut child, 20, words);
    let output = child.wait_with_output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{table}");
    assert!(table.contains("udp 64 B") && !table.contains("256 B"), "{table}");
    assert_eq!(saved(), 1);
}
