//! `top`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ended, Running, on_terminal, run, run_until, taut};

/// Lines within which everybody has been heard.
const LINES: usize = 100;

/// A `pub` that has written its first sample.
fn publisher(domain: u32) -> Running {
    let mut publisher =
        Running::start(taut(domain, "pub shapes --no-wait --reliability best-effort --json --rate 100"));
    assert!(publisher.line().contains("BLUE"));
    publisher
}

#[test]
fn figures_come_from_programs_that_run_already() {
    let domain = 186;
    let publisher = publisher(domain);
    let mut far = taut(domain, "sub shapes --reliability best-effort");
    far.env("TAUT_LOCAL", "false");
    let mut far = Running::start(far);
    assert!(far.line().starts_with("BLUE"));
    let mut silent = taut(domain, "sub shapes --reliability best-effort");
    silent.env("TAUT_REPORT", "false");
    let mut silent = Running::start(silent);
    assert!(silent.line().starts_with("BLUE"));

    let mut top = Running::start(taut(domain, "top --json"));
    let [publisher_pid, far_pid, silent_pid] =
        [&publisher, &far, &silent].map(|running| Value::from(running.pid().to_string()));
    let (mut writes, mut reads, mut silence) = (Value::Null, Value::Null, Value::Null);
    let mut lines = 0;
    while writes.is_null() || reads.is_null() || silence.is_null() {
        let line: Value = serde_json::from_str(&top.line()).unwrap();
        lines += 1;
        assert!(lines < LINES, "after {lines} lines: {writes} {reads} {silence}");
        let figures = &line["steps_per_s"];
        match &line["pid"] {
            pid if *pid == publisher_pid && figures.is_f64() => writes = line,
            pid if *pid == far_pid && figures.is_f64() => reads = line,
            pid if *pid == silent_pid => {
                assert!(figures.is_null() && line["classes"].is_null(), "{line}");
                silence = line["silent_s"].clone();
            }
            _ => {}
        }
    }
    let figure = |line: &Value, name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
    assert!(figure(&writes, "datagrams_out_per_s") > 10.0 && figure(&reads, "datagrams_in_per_s") > 10.0);
    for line in [&writes, &reads] {
        let busy = figure(line, "busy");
        assert!(busy > 0.0 && busy < 1.0 && figure(line, "steps_per_s") > 10.0, "{line}");
        assert!(figure(line, "bound_ns") > 0.0 && figure(line, "longest_ns") > 0.0, "{line}");
        assert_eq!((&line["silent_s"], line["classes"].as_array().unwrap().len()), (&Value::Null, 7));
    }
    top.signal("INT");
    assert_eq!(top.end().code, Some(0));
}

#[test]
fn pictures_are_lines_without_a_terminal() {
    let domain = 187;
    let publisher = publisher(domain);
    let heads = |ended: &Ended| {
        let is_head = |line: &&str| *line == "taut top  domain 187  1 participant of Taut";
        ended.stdout.lines().filter(is_head).count()
    };
    let ended = run_until(|| taut(domain, "top --count 2"), |ended| heads(ended) == 2);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(heads(&ended), 2, "{}", ended.stdout);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[1].starts_with("participant ") && lines[1].ends_with(" refused/s"), "{}", ended.stdout);
    let name = format!("taut pub [{}] ", publisher.pid());
    assert!(lines[2].starts_with(&name), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "nothing for a terminal");

    let mut details = Running::start(taut(domain, &format!("top --participant {}", publisher.pid())));
    let lines: Vec<String> =
        (0..LINES).map(|_| details.line()).take_while(|l| !l.starts_with("longest step: ")).collect();
    assert!(lines.len() < LINES && lines.iter().any(|line| line.starts_with("receive_user ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with(&name)), "{lines:?}");
    let is_nobody = |ended: &Ended| ended.stdout.ends_with("none of them begins with nobody\n");
    let ended = run_until(|| taut(domain, "top --count 1 --participant nobody"), is_nobody);
    assert!(is_nobody(&ended), "{}", ended.stdout);
}

#[test]
fn the_only_picture_has_rates() {
    let domain = 170;
    let publisher = publisher(domain);
    let name = format!("taut pub [{}] ", publisher.pid());
    let is_there = |ended: &Ended| ended.stdout.lines().any(|line| line.starts_with(&name));
    let ended = run_until(|| taut(domain, "top --count 1"), is_there);
    let line = ended.stdout.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
    let cells: Vec<&str> = line.trim_start_matches(&name).split_whitespace().collect();
    assert!(cells.len() >= 9 && !cells[1..].contains(&"-"), "{}", ended.stdout);
}

/// What a terminal of this kind gets.
fn shown(kind: &str) -> String {
    let ended = run(on_terminal(kind, 80, "--domain 170 top --count 1"));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn a_terminal_gets_what_it_can_show() {
    let drawn = shown("xterm");
    assert!(drawn.starts_with("\x1b[?25l") && drawn.trim_end().ends_with("\x1b[?25h"), "{drawn:?}");
    let plain = shown("dumb");
    assert!(plain.starts_with("taut top  domain 170") && !plain.contains('\x1b'), "{plain:?}");
}

#[test]
fn an_empty_domain() {
    let ended = run(taut(188, "top --count 1"));
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.starts_with("taut top  domain 188  0 participants of Taut\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("\nnobody so far: `taut ls` lists"), "{}", ended.stdout);
    let ended = run(taut(188, "top --count 2 --json"));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let told = ended.stderr.strip_prefix("taut: nobody so far: `taut ls` lists").expect(&ended.stderr);
    assert_eq!(told.lines().count(), 1, "it is told once: {told}");
}

/// The lines about one metric of a program.
fn series<'t>(text: &'t str, metric: &str, name: &str) -> Vec<&'t str> {
    let (metric, name) = (format!("{metric}{{participant=\""), format!("\",name=\"{name}\",host=\""));
    text.lines().filter(|line| line.starts_with(&metric) && line.contains(&name)).collect()
}

fn value(lines: &[&str]) -> f64 {
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn prometheus_reads_all_participants_once() {
    let domain = 202;
    let _publisher = publisher(domain);
    let mut silent = taut(domain, "sub shapes --reliability best-effort");
    silent.env("TAUT_REPORT", "false");
    let mut silent = Running::start(silent);
    assert!(silent.line().starts_with("BLUE"));
    let has_both = |ended: &Ended| {
        let reports = |name: &str| series(&ended.stdout, "taut_reports", name);
        reports("taut sub").len() == 1 && reports("taut pub").first().is_some_and(|line| line.ends_with(" 1"))
    };
    let ended = run_until(|| taut(domain, "top --prometheus"), has_both);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let text = ended.stdout;
    assert_eq!(value(&series(&text, "taut_reports", "taut pub")), 1.0, "{text}");
    assert_eq!(value(&series(&text, "taut_reports", "taut sub")), 0.0, "{text}");
    assert_eq!(series(&text, "taut_step_seconds_count", "taut pub").len(), 7, "{text}");
    let buckets = series(&text, "taut_step_seconds_bucket", "taut pub");
    let timers: Vec<_> = buckets.iter().filter(|line| line.contains(",class=\"timers\",le=")).collect();
    assert!(timers.len() == 17 && !timers[16].ends_with(" 0"), "{text}");
    assert!(value(&series(&text, "taut_datagrams_sent_total", "taut pub")) > 0.0, "{text}");
    assert!(series(&text, "taut_datagrams_sent_total", "taut sub").is_empty(), "{text}");
    assert!(!text.contains("name=\"taut top\""), "{text}");
}

/// What one who asks like this gets, until the other side is done.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A connection that is cut off with bytes of ours unread ends by a reset.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn prometheus_asks_by_http() {
    let domain = 204;
    let _publisher = publisher(domain);
    let mut top = Running::start(taut(domain, "top --prometheus --listen 0"));
    let url = top.line();
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{url}");
    // It reports each second: what it has sent grows.
    let mut sent = Vec::new();
    for _ in 0..1_000 {
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{head}");
        let lines = series(text, "taut_datagrams_sent_total", "taut pub");
        if !lines.is_empty() {
            sent.push(value(&lines));
        }
        sent.dedup();
        if sent.len() > 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(sent.len() > 2 && sent.is_sorted(), "{sent:?}");
    assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let refused = ask(address, "POST /metrics HTTP/1.1\r\n\r\n");
    assert!(
        refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nAllow: GET, HEAD\r\n"),
        "{refused}"
    );
    assert!(ask(address, &"x".repeat(9 << 10)).starts_with("HTTP/1.1 431 "));
    // Those that say nothing, or not all, hold up nobody, and are let go of.
    let mut idle: Vec<_> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    idle.iter_mut().step_by(2).for_each(|stream| drop(stream.write(b"GET /metrics")));
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    idle.iter_mut().for_each(|stream| assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0));
    // Parameters of a target, and what a proxy asks for: RFC 9112 §3.2.1, §3.2.2.
    for target in ["/metrics?collect=all", &url, &format!("{url}?"), "HTTP://robot.local/metrics"] {
        let answer = ask(address, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.contains("taut_reports{"),
            "{target}: {answer}"
        );
    }
    for target in ["/metrics/", "/metricsx", "?", "http://robot.local", "metrics"] {
        let answer = ask(address, &format!("GET {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 404 "), "{target}: {answer}");
    }
    // Is it there? RFC 9110 §9.3.2: the head of the answer to GET, and no body.
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
    assert!(head.starts_with("HTTP/1.1 200 ") && length.is_some_and(|length| length > 1_000), "{head}");
    assert!(head.ends_with("\r\n\r\n") && !head.contains("taut_"), "{head}");
    top.signal("INT");
    assert_eq!(top.end().code, Some(0));
}
