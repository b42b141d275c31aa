//! `pub` and `sub`: two processes on the loopback interface, each test in a domain of its own.

use std::time::{Duration, Instant};

use crate::common::{Ended, Running, bare, full_pipe, objects, run, run_longer, taut};

#[test]
fn shapes() {
    let mut sub = Running::start(taut(173, "sub shapes --topic Square --count 20 --timeout 60 --json"));
    let published =
        run(taut(173, "pub shapes --topic Square --color RED --rate 100 --count 20 --wait 60 --json"));
    assert_eq!((published.code, published.stderr.as_str()), (Some(0), "taut: published 20 samples\n"));
    let first: serde_json::Value = serde_json::from_str(&sub.line()).unwrap();
    let ended = sub.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "taut: received 20 samples of Square\n");
    let mut received = vec![first];
    received.extend(objects(&ended.stdout));
    for (number, (received, sent)) in received.iter().zip(objects(&published.stdout)).enumerate() {
        assert_eq!(received["data"], sent["data"]);
        assert_eq!(received["topic"], "Square");
        assert_eq!(received["type"], "ShapeType");
        // The last one may be taken after the writer has left.
        assert!(number == 19 || received["instance_state"] == "ALIVE");
        assert_eq!(received["data"]["color"], "RED");
        assert_eq!(received["data"]["shapesize"], 30);
        assert_eq!(received["sequence_number"], number as u64 + 1);
        assert_eq!(sent["number"], number as u64);
        assert!(received["source_unix_ns"].as_i64().unwrap() > 0);
        assert_eq!(received["writer"].as_str().unwrap().len(), 33);
    }
    assert_eq!(received.len(), 20);
}

#[test]
fn strings_under_a_name_given_at_run_time() {
    let names = "--topic rt/chatter --type std_msgs::msg::dds_::String_";
    let sub = Running::start(taut(174, &format!("sub string {names} --count 3 --timeout 60")));
    let published = run(taut(174, &format!("pub string {names} --text hello --rate 50 --count 3 --wait 60")));
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    let ended = sub.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hello\nhello\nhello\n"));

    // Another name is another type: both sides say so, and nothing arrives.
    let sub = Running::start(taut(174, "sub string --type other::Name"));
    let publish = |wait: &str| taut(174, &format!("pub string --text hello --count 1 --wait {wait}"));
    let names_other = |ended: &Ended| ended.stderr.contains("other::Name");
    let (_, published) = run_longer(publish, names_other);
    assert!(names_other(&published), "{}", published.stderr);
    sub.signal("INT");
    assert_eq!(sub.end().stdout, "");
    let _publisher = Running::start(publish("600"));
    let subscribe =
        |wait: &str| taut(174, &format!("sub string --type other::Name --count 1 --timeout {wait}"));
    let names_ours = |ended: &Ended| ended.stderr.contains("std_msgs::msg::dds_::String_");
    let (_, ended) = run_longer(subscribe, names_ours);
    assert!(names_ours(&ended), "{}", ended.stderr);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""));
}

/// What the command line lets through fits the type, up to the last byte.
#[test]
fn the_longest_texts() {
    for (words, most) in [("pub shapes --color", 128), ("pub metric --name", 64), ("pub metric --unit", 16)] {
        for (len, code) in [(most, 0), (most + 1, 2)] {
            let text = "x".repeat(len);
            let ended = run(taut(171, &format!("{words} {text} --no-wait --count 1")));
            assert_eq!(ended.code, Some(code), "{words} {len}: {}", ended.stderr);
            assert_eq!(code == 2, ended.stderr.contains(&format!("use {most} bytes at most")), "{words}");
        }
    }
}

#[test]
fn a_text_does_not_reach_the_terminal_as_it_is() {
    let sub = Running::start(taut(171, "sub string --count 1 --timeout 60"));
    let mut publish = taut(171, "pub string --count 1 --wait 60");
    publish.args(["--text", "\x1b[2J two\nlines"]);
    assert_eq!(run(publish).code, Some(0));
    assert_eq!(sub.end().stdout, "\\u{1b}[2J two\\nlines\n");
}

#[test]
fn late_readers_get_the_last_value() {
    let mut publisher = Running::start(taut(
        175,
        "pub metric --name power --value -2.5 --unit W --durability transient-local --no-wait --count 100000 --rate 1 --json",
    ));
    assert!(publisher.line().contains("power"));
    let ended = run(taut(175, "sub metric --durability transient-local --count 1 --timeout 60 --json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let data = &objects(&ended.stdout)[0]["data"];
    assert_eq!(
        (&data["name"], &data["value"], &data["unit"]),
        (&"power".into(), &(-2.5).into(), &"W".into())
    );
}

#[test]
fn qos_that_does_not_match_is_told_and_times_out() {
    let publisher =
        Running::start(taut(176, "pub shapes --reliability best-effort --count 100000 --rate 10"));
    let is_told =
        |ended: &Ended| ended.stderr.contains("RELIABILITY: offered BEST_EFFORT, requested RELIABLE");
    let subscribe = |wait: &str| taut(176, &format!("sub shapes --count 1 --timeout {wait}"));
    let (_, ended) = run_longer(subscribe, is_told);
    assert!(is_told(&ended), "{}", ended.stderr);
    assert_eq!(ended.code, Some(3));
    drop(publisher);
}

#[test]
fn who_hears_nothing_is_told_why() {
    let ended = run(taut(192, "sub shapes --topic Nowhere --count 1 --timeout 0.5"));
    assert_eq!(ended.code, Some(3));
    let says = "taut: no sample of Nowhere so far: the reader of topic \"Nowhere\" has 0 of 1 matches; no writer of it is known";
    assert!(ended.stderr.starts_with(says), "{}", ended.stderr);
    let more = "; `taut doctor` says what of this machine keeps others from being found\n";
    assert!(ended.stderr.contains(more), "{}", ended.stderr);
    // Once it has written what is gone by then, it writes nothing for long.
    let mut publisher = Running::start(taut(192, "pub shapes --topic Silent --no-wait --rate 0.001 --json"));
    assert!(publisher.line().contains("Silent"));
    let has_writer = |ended: &Ended| ended.stderr.starts_with("taut: no sample of Silent so far, though");
    let subscribe = |wait: &str| taut(192, &format!("sub shapes --topic Silent --count 1 --timeout {wait}"));
    let (_, ended) = run_longer(subscribe, has_writer);
    assert!(has_writer(&ended), "{}", ended.stderr);
}

#[test]
fn who_is_not_heard_is_told_why() {
    let subscriber = Running::start(taut(80, "sub shapes --partition office --json"));
    let who = format!(" of \"taut sub\" (taut, process {} on ", subscriber.pid());
    let publish = |wait: &str| taut(80, &format!("pub shapes --partition plant --count 1 --wait {wait}"));
    let (wait, ended) = run_longer(publish, |ended| ended.stderr.contains(&who));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let says = format!(
        "taut: no reader of Square after {wait} s, publishing all the same: the writer of topic \"Square\" has 0 of 1 \
         matches; reader "
    );
    assert!(ended.stderr.starts_with(&says), "{}", ended.stderr);
    let why =
        ") does not match: partition: here [\"plant\"], there [\"office\"]; `taut ls` lists what there is\n";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    subscriber.signal("INT");
    assert_eq!(subscriber.end().code, Some(0));
}

#[test]
fn partitions_keep_apart() {
    let sub =
        |partition: &str| taut(177, &format!("sub shapes --count 1 --timeout 60 --partition {partition}"));
    let right = Running::start(sub("plant"));
    let wrong = Running::start(taut(177, "sub shapes --count 1 --timeout 2 --partition office"));
    let published = run(taut(177, "pub shapes --partition pl* --count 5 --rate 50 --wait 60"));
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert_eq!(right.end().code, Some(0));
    assert_eq!(wrong.end().code, Some(3));
}

#[test]
fn a_signal_ends_it_cleanly() {
    for signal in ["INT", "TERM"] {
        let mut publisher = Running::start(taut(178, "pub shapes --no-wait --json --rate 100"));
        assert!(publisher.line().contains("BLUE"));
        let mut subscriber = Running::start(taut(178, "sub shapes"));
        assert!(subscriber.line().starts_with("BLUE"));
        publisher.signal(signal);
        let ended = publisher.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains("published "), "{}", ended.stderr);
        // The writer has disposed of its instance before it left.
        while !subscriber.line().ends_with("NOT_ALIVE_DISPOSED") {}
        subscriber.signal(signal);
        let ended = subscriber.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains("received "), "{}", ended.stderr);
    }
}

#[test]
fn a_reader_of_the_output_may_leave() {
    let mut publisher = Running::start(taut(179, "pub shapes --no-wait --json --rate 1000"));
    assert!(publisher.line().contains("BLUE"));
    publisher.close_stdout();
    let ended = publisher.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

/// More than anything takes that is to end.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_signal_ends_who_publishes_though_nobody_reads_on() {
    let mut sub = Running::start(taut(207, "sub shapes --json"));
    let (_unread, full) = full_pipe();
    let publisher = Running::start_into(taut(207, "pub shapes --json --rate 0 --wait 600"), full);
    // It has written this one, and does nothing else before it has printed it.
    assert!(sub.line().contains("BLUE"));
    publisher.signal("TERM");
    let ended = publisher.ends_within(LONG);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_signal_ends_who_subscribes_though_nobody_reads_on() {
    let (_unread, full) = full_pipe();
    let sub = Running::start_into(taut(208, "sub shapes"), full);
    let mut publisher = Running::start(taut(208, "pub shapes --rate 0 --wait 600"));
    // Of this one there is more to take whenever it looks.
    let told = publisher.error_line();
    assert!(told.starts_with("taut: a sample has waited "), "{told}");
    sub.signal("TERM");
    let ended = sub.ends_within(LONG);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "taut: received 0 samples of Square\n"));
}

#[test]
fn the_time_is_over_though_nobody_reads_on() {
    let (_unread, full) = full_pipe();
    let sub = Running::start_into(taut(209, "sub shapes --count 1 --timeout 5"), full);
    let _publisher = Running::start(taut(209, "pub shapes --rate 0 --wait 600"));
    let ended = sub.ends_within(LONG);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("taut: received 0 samples of Square\n"), "{}", ended.stderr);
}

/// The period is longer than any clock tells.
#[test]
fn a_rate_of_next_to_nothing_is_no_flood() {
    for rate in ["1e-20", "1e-310"] {
        let command = format!("pub shapes --no-wait --count 2 --json --rate {rate}");
        let mut publisher = Running::start(taut(130, &command));
        assert!(publisher.line().contains("BLUE"));
        publisher.signal("INT");
        let ended = publisher.end();
        assert!(ended.stderr.contains("published 1 sample"), "{rate}: {}", ended.stderr);
    }
}

/// Who prints slower than another publishes always finds a sample.
#[test]
fn the_time_is_over_however_much_comes() {
    let publisher = Running::start(taut(91, "pub shapes --rate 0 --wait 60"));
    let mut sub = Running::start(taut(91, "sub shapes --timeout 1"));
    let begun = Instant::now();
    while !sub.line().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it goes on");
        // A slow terminal.
        std::thread::sleep(Duration::from_micros(500));
    }
    assert_eq!(sub.end().code, Some(0));
    drop(publisher);
}

#[test]
fn who_is_too_slow_is_told_how_much_was_lost() {
    let publisher = Running::start(taut(205, "pub shapes --reliability best-effort --rate 0 --wait 60"));
    let mut sub = Running::start(taut(205, "sub shapes --reliability best-effort --json"));
    let mut number = || {
        // A slow terminal.
        std::thread::sleep(Duration::from_micros(500));
        let line: serde_json::Value = serde_json::from_str(&sub.line()).unwrap();
        line["sequence_number"].as_i64().unwrap()
    };
    let (begun, mut last) = (Instant::now(), number());
    while number() == last + 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is lost");
        last += 1;
    }
    sub.signal("INT");
    let said = sub.end().stderr;
    // Overtaken in the ring, or without room behind it.
    let tells = [" lost", " rejected"].iter().any(|what| said.contains(what));
    assert!(said.contains(" samples of Square, ") && tells, "{said}");
    drop(publisher);
}

#[test]
fn the_environment_chooses_the_domain() {
    let mut sub = bare("sub string --count 1 --timeout 60");
    sub.env("TAUT_DOMAIN", "180").env("TAUT_INTERFACE", "lo");
    let sub = Running::start(sub);
    let published = run(taut(180, "pub string --count 1 --wait 60"));
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert_eq!(sub.end().code, Some(0));
}

#[test]
fn who_is_to_outlive_the_terminal_does() {
    let publish = taut(79, "pub string --no-wait --rate 200 --json");
    let mut command = std::process::Command::new("nohup");
    command.arg(publish.get_program()).args(publish.get_args()).stdin(std::process::Stdio::null());
    for (name, value) in publish.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut publisher = Running::start(command);
    assert!(publisher.line().contains("hello"));
    publisher.signal("HUP");
    // More than may have been written before the signal.
    for _ in 0..50 {
        assert!(publisher.line().contains("hello"), "it has ended");
    }
    publisher.signal("INT");
    assert_eq!(publisher.end().code, Some(0));
}
