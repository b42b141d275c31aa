//! `ls`, `config` and `demo`.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ended, Running, bare, objects, on_terminal, run, run_until, taut};

#[test]
fn a_domain_is_listed() {
    let domain = 181;
    let mut publisher =
        Running::start(taut(domain, "pub shapes --no-wait --reliability best-effort --json --rate 100"));
    assert!(publisher.line().contains("BLUE"));
    let mut fitting = Running::start(taut(domain, "sub shapes --reliability best-effort"));
    assert!(fitting.line().starts_with("BLUE"));
    let mut wrong = taut(domain, "sub shapes --partition elsewhere");
    wrong.args(["--partition", "b, c"]);
    let wrong = Running::start(wrong);
    // The last one announces itself when it likes.
    let has_pairs =
        |ended: &Ended| objects(&ended.stdout).iter().filter(|line| line["kind"] == "match").count() == 2;
    let ended = run_until(|| taut(domain, "ls --json --seconds 1"), has_pairs);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = objects(&ended.stdout);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("participant").len(), 3);
    let pids = [&publisher, &fitting, &wrong].map(|running| running.pid().to_string());
    for participant in of("participant") {
        assert!(participant["vendor"].as_str().unwrap().starts_with("Taut "));
        assert!(pids.iter().any(|pid| participant["pid"] == *pid));
        assert!(participant["unicast"][0].as_str().unwrap().starts_with("udp/127.0.0.1:"));
    }
    let [topic] = of("topic")[..] else { panic!("{lines:?}") };
    assert_eq!((&topic["name"], &topic["type"]), (&"Square".into(), &"ShapeType".into()));
    assert_eq!((&topic["writers"], &topic["readers"]), (&1.into(), &2.into()));
    assert_eq!(of("writer")[0]["qos"]["RELIABILITY"], "BEST_EFFORT");
    let elsewhere = serde_json::json!(["elsewhere", "b, c"]);
    assert!(of("reader").iter().any(|reader| reader["qos"]["PARTITION"] == elsewhere), "{lines:?}");
    let (matched, refused): (Vec<_>, Vec<_>) =
        of("match").into_iter().partition(|pair| pair["matched"] == true);
    assert_eq!((matched.len(), refused.len()), (1, 1));
    assert!(refused[0]["why_not"].as_str().unwrap().contains("PARTITION"), "{refused:?}");
    assert_eq!((&matched[0]["path"], &matched[0]["path_why"]), (&"shared_memory".into(), &Value::Null));
    assert_eq!(refused[0]["path"], Value::Null);

    let has_pairs = |ended: &Ended| ended.stdout.contains(" of 2 pairs matched");
    let page = run_until(|| taut(domain, "ls --seconds 1"), has_pairs).stdout;
    assert!(page.starts_with("Domain 181: 3 participants, 1 topic, 3 endpoints\n"), "{page}");
    assert!(page.contains(&format!("Participant taut pub [{}]", pids[0])), "{page}");
    assert!(page.contains("1 of 2 pairs matched\n  1 by shared memory, if their users may\n"), "{page}");
    assert!(page.contains("PARTITION [\"elsewhere\",\"b, c\"]"), "{page}");
}

#[test]
fn a_narrow_terminal_breaks_no_word() {
    let mut publisher = Running::start(taut(189, "pub shapes --no-wait --json --rate 100"));
    assert!(publisher.line().contains("BLUE"));
    let has_program = |ended: &Ended| ended.stdout.contains("program taut");
    let ended = run_until(|| on_terminal("xterm", 60, "--domain 189 ls --seconds 1"), has_program);
    assert!(has_program(&ended), "{}", ended.stdout);
    for line in ended.stdout.lines() {
        assert!(line.trim_end().chars().count() <= 60, "{line}");
    }
}

#[test]
fn an_empty_domain() {
    let ended = run(taut(182, "ls --seconds 0.2"));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Domain 182: 0 participants, 0 topics, 0 endpoints\n")
    );
    let why = "`taut doctor` says what of this machine keeps others from being found";
    assert_eq!(ended.stderr, format!("taut: nobody was found in 0.2 s; {why}\n"));
}

/// What is told is how long it has looked.
#[test]
fn a_look_that_is_stopped() {
    let begin = Instant::now();
    let list = Running::start(taut(190, "ls --seconds 500"));
    // Handlers are there before the participant is, and its sockets show that.
    let fds = format!("/proc/{}/fd", list.pid());
    let is_socket = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_link(entry.unwrap().path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    while !std::fs::read_dir(&fds).unwrap().any(is_socket) {
        std::thread::sleep(Duration::from_millis(10));
    }
    list.signal("INT");
    let ended = list.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = ended.stderr.strip_prefix("taut: nobody was found in ").expect(&ended.stderr);
    let seconds: f64 = told.split_once(" s; ").unwrap().0.parse().unwrap();
    assert!(seconds <= begin.elapsed().as_secs_f64() + 0.1, "{told}");
}

#[test]
fn settings_in_force() {
    let mut command = bare("config --domain 5");
    command.env("TAUT_NAME", "rover").env("TAUT_DOMAIN", "4");
    let ended = run(command);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stdout.contains("domain = 5\n") && ended.stdout.contains("name = \"rover\"\n"),
        "{}",
        ended.stdout
    );
    let names: Vec<_> =
        objects(&run(bare("config --json")).stdout).iter().map(|line| line["variable"].clone()).collect();
    assert!(names.contains(&"TAUT_DOMAIN".into()));
}

#[test]
fn help_is_no_failure() {
    for arguments in ["--help", "pub shapes --help", "sub --help", "ls --help", "demo --help", "--version"] {
        let ended = run(bare(arguments));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments}");
        assert!(!ended.stdout.is_empty());
    }
}

#[test]
fn help_names_no_option_that_is_refused() {
    for (arguments, is_taken) in
        [("ls", true), ("nic plan", true), ("perf", false), ("perf latency", false), ("netd", false)]
    {
        let help = run(bare(&format!("{arguments} --help"))).stdout;
        assert_eq!(
            help.contains("\nNetwork (") && help.contains("--peer <HOST"),
            is_taken,
            "{arguments}: {help}"
        );
        assert!(is_taken || !help.contains("Network ("), "{help}");
    }
}

/// The numbers of the demo's last line.
fn counts(stdout: &str) -> [u64; 3] {
    let last = stdout.lines().last().unwrap_or_default();
    let numbers: Vec<u64> = last
        .strip_prefix("demo: sent ")
        .into_iter()
        .flat_map(|rest| rest.split([',', ' ']))
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{stdout}"))
}

#[test]
fn the_demo_loses_nothing() {
    let mut command = taut(183, "demo");
    command.env("DEMO_SECONDS", "3");
    let begin = Instant::now();
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(begin.elapsed() >= Duration::from_secs(2), "it lasts as long as it was asked to");
    let [sent, received, lost] = counts(&ended.stdout);
    // CPU, one core, memory, load and network at the very least, at 100 Hz.
    assert!(sent >= 3 * 100 * 6, "{sent}");
    assert_eq!((received, lost), (sent, 0));
    assert!(ended.stdout.contains("latency   Taut to Taut"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "no escape sequences where no terminal is");
}

#[test]
fn an_interrupted_demo_counts_what_it_has() {
    let mut demo = Running::start(taut(184, "demo --seconds 600"));
    assert!(demo.line().contains("received"));
    demo.signal("INT");
    let ended = demo.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let [sent, received, lost] = counts(&ended.stdout);
    assert_eq!((received, lost), (sent, 0));
}

#[test]
fn nothing_stays_of_a_demo_that_was_killed() {
    let mut demo = Running::start(taut(185, "demo --seconds 600"));
    assert!(demo.line().contains("received"));
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", demo.pid())).unwrap();
    let children: Vec<&str> = children.split_whitespace().collect();
    assert_eq!(children.len(), 1);
    for child in &children {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        assert!(status.contains("\nSigBlk:\t0000000000000000\n"), "signals end it, too: {status}");
    }
    demo.kill();
    // Its output ends when the last process that writes it does.
    while !demo.line().is_empty() {}
    let lives = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    };
    let end = Instant::now() + Duration::from_secs(20);
    while children.iter().any(lives) {
        assert!(Instant::now() < end, "{children:?} live");
        std::thread::yield_now();
    }
}

#[test]
fn a_demo_that_nobody_reads_any_more_ends() {
    let mut demo = Running::start(taut(171, "demo --seconds 600"));
    assert!(demo.line().contains("received"));
    demo.close_stdout();
    let ended = demo.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("ended before"), "{}", ended.stderr);
}

#[test]
fn a_demo_without_its_subscriber_says_so() {
    let demo = Running::start(taut(186, "demo --seconds 600"));
    let children = format!("/proc/{0}/task/{0}/children", demo.pid());
    let child = loop {
        let children = std::fs::read_to_string(&children).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            break child.to_owned();
        }
    };
    assert!(std::process::Command::new("kill").args(["-s", "KILL", &child]).status().unwrap().success());
    let ended = demo.end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("the subscriber has ended before the demo did"), "{}", ended.stderr);
}
