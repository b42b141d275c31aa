//! The page, the comparison and the document, made from a made-up run of everything.

mod synthetic;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use taut_perf::args::ReportArguments;
use taut_perf::compare::{Verdict, compare};
use taut_perf::record::{Outcome, Record, Times};
use taut_perf::{performance, report, run_file};

const SEED: u64 = 11;

/// Where a person can look at it.
fn keep(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_page_needs_nothing_else_and_is_small() {
    let page = report::page(&synthetic::run(SEED));
    let path = keep("report.html", &page);
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    // The namespace of SVG is a name; nothing is fetched from it.
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for fetched in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!without_names.contains(fetched), "{fetched} in {}", path.display());
    }
    // A study's title has the letters, too.
    let without_titles = page.replace("real-time information management", "");
    assert!(!page.contains("NaN") && !without_titles.contains("inf"), "a place is no number");
}

#[test]
fn a_larger_run_shows_less_over_time() {
    let mut run = synthetic::run(SEED);
    let more: Vec<Record> = run.iter().filter(|record| record.peer == "zenoh").cloned().collect();
    for peer in ["nats", "amqp", "opendds"] {
        run.extend(more.iter().cloned().map(|record| Record { peer: peer.into(), ..record }));
    }
    let page = report::page(&run);
    assert!(page.len() < 2 << 20 && page.contains("<section id=\"time\">"), "{} bytes", page.len());
}

#[test]
fn the_page_has_every_section_and_names_what_failed() {
    let page = report::page(&synthetic::run(SEED));
    for id in [
        "behind",
        "published",
        "latency",
        "tails",
        "time",
        "throughput",
        "bursts",
        "fanout",
        "gains",
        "interference",
        "types",
        "local",
        "write",
        "cdr",
        "discovery",
        "memory",
        "soak",
        "missing",
        "ratios",
        "figures",
        "run",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("a sample of 8 MiB does not fit the segment of 4 MiB"));
    let behind = page.find("id=\"behind\"").unwrap();
    assert!(behind < page.find("id=\"latency\"").unwrap(), "where it is not ahead comes first");
    assert!(page[behind..].find("iceoryx2").unwrap() < 2_000, "and names who is ahead");
}

#[test]
fn the_page_has_each_table_of_the_documentation() {
    let run = synthetic::run(SEED);
    let titles = |text: &str, begin: &str, end: &str| -> Vec<String> {
        text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).map(str::to_string).collect()
    };
    let [(_, document), _] = performance::pages(&run);
    let begin = document.find("## Beside what others have published").expect("the section");
    let document = &document[begin..];
    let page = report::page(&run).replace("&#39;", "'");
    let section =
        page.split("<section id=\"published\">").nth(1).and_then(|rest| rest.split("</section>").next());
    let section = section.expect("the section");
    let of_document = titles(document, "\n### ", "\n");
    assert_eq!(titles(section, "<summary>", "</summary>"), of_document);
    assert!(of_document.len() > 4, "{of_document:?}");
    assert_eq!(
        section.matches("<tr>").count(),
        document.lines().filter(|line| line.starts_with("| ")).count()
    );
    assert!(section.contains("<th>half a round trip, UDP, 64 B: least, mean</th>") && !section.contains('`'));
}

#[test]
fn a_page_of_little_or_nothing_is_a_page() {
    let run = synthetic::run(SEED);
    let few = |keep: &dyn Fn(&Record) -> bool| {
        report::page(&run.iter().filter(|r| keep(r)).cloned().collect::<Vec<_>>())
    };
    for page in [
        report::page(&[]),
        few(&|record| record.peer == "zenoh"),
        few(&|record| record.peer == "floor"),
        few(&|record| record.outcome != Outcome::Ok),
        few(&|record| record.workload == "memory"),
    ] {
        assert!(page.ends_with("</html>") && !page.contains("NaN"), "{page}");
    }
}

#[test]
fn markup_in_a_reason_is_text() {
    let mut run = synthetic::run(SEED);
    let line = run.iter_mut().find(|record| record.workload == "memory").unwrap();
    line.outcome = Outcome::Failed("<script>alert(1)</script>".into());
    assert!(!report::page(&run).contains("<script>"));
}

#[test]
fn what_got_worse_is_named_and_what_is_chance_is_not() {
    let (old, mut new) = (synthetic::run(SEED), synthetic::run(SEED + 1));
    let same = compare(&old, &new);
    let named = same.changes.iter().filter(|change| change.verdict < Verdict::Noise).count();
    assert!(same.warnings.is_empty() && same.only_old.is_empty() && same.only_new.is_empty(), "{same}");
    assert!(named * 10 < same.changes.len(), "{named} of {} by chance alone", same.changes.len());
    for record in &mut new {
        record.run.kernel = "6.19.0".into();
        if record.peer == "taut" && record.workload == "throughput" {
            record.round_values.iter_mut().for_each(|rate| *rate *= 0.7);
        }
    }
    let soak = new.iter_mut().find(|record| record.workload == "soak" && record.peer == "taut").unwrap();
    soak.outcome = Outcome::Failed("stopped".into());
    let gone = new.iter().position(|record| record.workload == "write" && record.peer == "taut").unwrap();
    new.remove(gone);
    let worse = compare(&old, &new);
    keep("compare.txt", &worse.to_string());
    let slower = worse.changes.iter().filter(|change| change.line.starts_with("throughput taut"));
    assert!(
        slower.clone().count() > 10 && slower.clone().all(|change| change.verdict == Verdict::Worse),
        "{worse}"
    );
    assert!(slower.clone().all(|change| (0.6..0.8).contains(&change.gain)));
    assert!(worse.is_worse());
    assert_eq!((worse.failing.len(), worse.only_old.len()), (1, 1));
    assert!(worse.to_string().contains("warning: another kernel: 6.19.0, was 6.18.5"), "{worse}");
    assert!(worse.to_string().contains("by chance"), "{worse}");
}

#[test]
fn one_line_that_is_far_worse_is_enough_and_so_is_one_that_mostly_fails() {
    let old = synthetic::run(SEED);
    let is_worse = |change: &dyn Fn(&mut Record)| {
        let mut new = old.clone();
        let is = |record: &&mut Record| record.peer == "taut" && record.workload == "throughput";
        change(new.iter_mut().find(is).expect("it is there"));
        compare(&old, &new).is_worse()
    };
    let slower = |factor: f64| {
        move |record: &mut Record| record.round_values.iter_mut().for_each(|rate| *rate /= factor)
    };
    assert!(!is_worse(&slower(1.4)), "one of hundreds may be by chance");
    assert!(is_worse(&slower(2.0)), "but not this one");
    let failing =
        |failed: u32| move |record: &mut Record| (record.rounds, record.failed_rounds) = (5 - failed, failed);
    assert!(!is_worse(&failing(2)) && is_worse(&failing(3)));
}

#[test]
fn the_runs_say_on_what_and_how_peers_were_set_up() {
    let [_, lines] = pages(|record| {
        if record.peer == "zenoh" {
            record.run.notes.push("found by multicast".into());
        }
    });
    assert!(lines.contains(", governor none, virtual machine, `taut perf` "), "of the run");
    assert!(lines.ends_with("## How they were set up\n\n- Zenoh: found by multicast\n"), "of the peer");
}

#[test]
fn a_line_without_a_figure_is_told_with_the_run_that_has_none() {
    let run = synthetic::run(SEED);
    let old: Vec<Record> = run.into_iter().filter(|record| record.outcome == Outcome::Ok).take(1).collect();
    let mut new = old.clone();
    new[0].round_values.iter_mut().for_each(|value| *value = 0.0);
    for (old, new, says) in [
        (&old, &new, "no figure in the new run: "),
        (&new, &old, "no figure in the old run: "),
        (&new, &new, "no figure in both runs: "),
    ] {
        let result = compare(old, new);
        assert!(result.is_empty() && result.without_figure.len() == 1 && !result.is_worse());
        assert!(result.to_string().contains(says), "{result}");
    }
}

#[test]
fn times_that_fall_are_better() {
    let old = synthetic::run(SEED);
    let mut new = old.clone();
    for record in new.iter_mut().filter(|record| record.workload == "latency") {
        record.round_values.iter_mut().for_each(|ns| *ns /= 4.0);
    }
    let result = compare(&old, &new);
    let better = result.changes.iter().filter(|change| change.verdict == Verdict::Better);
    assert!(better.clone().count() > 50 && better.clone().all(|change| change.line.starts_with("latency")));
    assert!(!result.is_worse());
}

#[test]
fn the_document_has_its_pictures_and_commands() {
    let run = synthetic::run(SEED);
    let docs = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("docs");
    let files = performance::write(&run, &docs).unwrap();
    let read = |name| std::fs::read_to_string(docs.join(name)).unwrap();
    let (page, lines) = (read("performance.md"), read("performance-lines.md"));
    assert_eq!(files.len(), 3 + performance::pictures(&run).len());
    for picture in performance::pictures(&run) {
        assert!(page.contains(&format!("(results/{})", picture.name)));
        assert!(picture.svg.starts_with("<svg") && picture.svg.contains("prefers-color-scheme:dark"));
        assert!(!picture.svg.contains("NaN"));
    }
    let command = ReportArguments::augment_args(clap::Command::new("report"));
    let option = command.get_arguments().find(|argument| argument.get_id() == "docs").unwrap();
    let help = option.get_help().unwrap().to_string();
    for file in files.iter().map(|file| file.strip_prefix(&docs).unwrap()) {
        let is_picture = file.extension().is_some_and(|extension| extension == "svg");
        let name = if is_picture { "results/*.svg" } else { file.to_str().unwrap() };
        assert!(help.contains(name), "{name} is not in: {help}");
    }
    assert!(page.contains("\n## Where Taut is not ahead\n") && page.contains("(performance-lines.md)"));
    // Each table of figures stands below its command.
    let tables = lines.split("\n### ").skip(1);
    assert!(tables.clone().count() > 20);
    assert!(tables.clone().all(|table| table.contains("`taut perf all --peers all --save run.jsonl`")));
}

#[test]
fn the_documentation_is_made_from_its_stored_run() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let results = docs.join("results");
    let run = run_file::read(&[results.join(performance::STORED)]).unwrap().records;
    let kept = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let how = "target/release/taut perf report docs/results/run.jsonl.gz --docs docs";
    for (name, page) in performance::pages(&run) {
        assert!(page == kept(docs.join(name)), "{name}: {how}");
    }
    for picture in performance::pictures(&run) {
        assert!(picture.svg == kept(results.join(&picture.name)), "{}: {how}", picture.name);
    }
}

/// Those that only a table has lines of, too: when, on what and by which build.
#[test]
fn each_run_that_the_documentation_names_is_listed() {
    let (page, lines) =
        (include_str!("../../docs/performance.md"), include_str!("../../docs/performance-lines.md"));
    let listed: HashSet<&str> = lines.lines().collect();
    let named = page
        .lines()
        .chain(lines.lines())
        .filter(|line| line.starts_with('`'))
        .flat_map(|line| line.split('`'));
    let named: HashSet<&str> = named.filter(|text| text.ends_with("--save run.jsonl")).collect();
    assert!(!named.is_empty());
    let missing: Vec<_> = named.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The synthetic run after a change of some of its lines, as the pages.
fn pages(change: impl Fn(&mut Record)) -> [String; 2] {
    let mut run = synthetic::run(SEED);
    run.iter_mut().for_each(change);
    performance::pages(&run).map(|(_, page)| page)
}

/// The same in one piece.
fn document(change: impl Fn(&mut Record)) -> String {
    pages(change).concat()
}

fn as_document(run: &[Record]) -> String {
    performance::pages(run).map(|(_, page)| page).concat()
}

#[test]
fn bursts_have_the_times_of_a_sample_and_of_all_of_it() {
    let timed = |record: &mut Record| {
        if record.workload == "bursts" && record.peer == "taut" && record.outcome == Outcome::Ok {
            let times = |p50| Times { p50, p99: 2 * p50, max: 4 * p50, ..Times::default() };
            (record.samples, record.round_values) = (2_000, vec![80_000.0; 5]);
            (record.one_way_ns, record.burst_ns) = (Some(times(30_000)), Some(times(80_000)));
            record.histogram = vec![(80_000, 90), (320_000, 10)];
        }
    };
    let page = document(timed);
    let table = page.split("\n### ").find(|table| table.starts_with("bursts: UDP · 20 each 1 ms"));
    let rows: Vec<&str> = table.expect("the table").lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows[0], "| size | peer | n | sample p50 | p99 | max | burst p50 | p99 | max | Taut gains |");
    let figures = "| 64 B  | Taut | 2,000 | 30 µs | 60 µs | 120 µs | 80 µs | 160 µs | 320 µs |";
    assert!(rows.iter().any(|row| row.starts_with(figures)), "{rows:#?}");
    let mut run = synthetic::run(SEED);
    run.iter_mut().for_each(timed);
    let page = report::page(&run);
    let cells = "<td>Taut</td><td>100</td><td>30 µs</td><td>60 µs</td><td>120 µs</td><td>80 µs</td><td>160 µs</td><td>320 µs</td>";
    assert!(page.contains(cells));
    // The floor calls the kernel for each sample of a burst, as at rates: no limit of it.
    let row_of =
        |what: &str| page.split("<tr>").find(|row| row.contains(what)).expect("a row of all comparisons");
    assert!(!row_of("<th>bursts · 64 B · 20 each 1 ms</th>").contains("limit"));
    assert!(row_of("<th>write · 64 B · UDP</th>").contains("limit"));
}

#[test]
fn who_decodes_faster_is_behind_where_it_encodes_slower() {
    let slower = |record: &mut Record| {
        if record.workload == "cdr" && record.peer == "taut" {
            record.encode_round_values.iter_mut().for_each(|ns| *ns *= 20.0);
            record.decode_round_values.iter_mut().for_each(|ns| *ns /= 20.0);
        }
    };
    let [page, lines] = pages(slower);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| cdr ")).collect();
    let is_row = |row: &&str| row.starts_with("| cdr encode · ") && row.ends_with(" | behind |");
    assert!(rows.len() > 8 && rows.iter().all(is_row), "{rows:?}");
    let why = page.split("Why it is plainly behind:").nth(1).expect("reasons");
    assert!(why.contains("cdr encode · 64 B · complex (HDDS)"), "{why}");
    let heads = "encode p50 | p99 | Taut gains | decode p50 | p99 | Taut gains |";
    assert!(lines.contains(heads) && !lines.contains('≈'));
}

#[test]
fn a_run_with_rounds_of_both_halves_only_says_what_its_intervals_are() {
    let [page, lines] = pages(|record| {
        record.encode_round_values.clear();
        record.decode_round_values.clear();
    });
    for page in [&page, &lines] {
        assert!(page.contains("have the rounds of both together only: an interval with ≈"));
    }
    assert!(lines.contains("× (≈ "), "{lines}");
}

#[test]
fn runs_are_compared_by_each_half_of_coding_if_both_have_them() {
    let old = synthetic::run(SEED);
    let mut new = old.clone();
    for record in new.iter_mut().filter(|record| record.workload == "cdr") {
        record.encode_round_values.iter_mut().for_each(|ns| *ns *= 2.0);
    }
    let is_coding = |line: &str| line.starts_with("cdr ");
    let result = compare(&old, &new);
    let worse = result.changes.iter().filter(|change| change.verdict == Verdict::Worse);
    assert!(worse.clone().count() > 8 && worse.clone().all(|change| change.line.ends_with(" encode")));
    assert_eq!(result.changes.iter().filter(|change| is_coding(&change.line)).count(), 2 * worse.count());
    new.iter_mut().for_each(|record| record.encode_round_values.clear());
    let result = compare(&old, &new);
    let coding = result.changes.iter().filter(|change| is_coding(&change.line));
    assert!(coding.clone().all(|change| change.verdict == Verdict::Noise && !change.line.ends_with("code")));
}

#[test]
fn who_loses_samples_is_not_ahead_without_their_share() {
    let plain = document(|_| {});
    assert!(!plain.contains("losing more"), "what the subject does not lose is no loss of its own");
    // HDDS loses a quarter of its samples: that stands with the gain over it.
    let [not_ahead, _] = pages(|record| {
        if record.peer == "taut" && record.workload == "throughput" && record.qos.starts_with("best-effort") {
            record.lost = record.samples;
        }
    });
    let rows: Vec<&str> = not_ahead.lines().filter(|line| line.contains("ahead, losing more")).collect();
    assert!(
        rows.iter().any(|line| line.contains("HDDS") && line.contains("50.0 % lost, theirs 25.0 %")),
        "{rows:#?}"
    );
}

#[test]
fn a_failed_round_is_told_beside_the_good_ones() {
    let page = document(|record| {
        if record.peer == "zenoh" && record.workload == "write" && record.size_bytes == 64 {
            record.failed_rounds = 1;
            record.failure = Some("it broke [thread at /a/path]".into());
            record.round_values[1] = 0.0;
        }
    });
    assert!(page.contains("| 64 B  | Zenoh (1 of 5 rounds failed) | "), "its figures are there");
    assert!(page.contains("- Zenoh, write · 64 B · UDP: 1 of 5 rounds: it broke\n"), "and why one is not");
}

#[test]
fn a_mode_that_a_peer_has_not_is_not_said_of_it() {
    let page = document(|record| {
        if record.workload == "latency" && record.case == "every 1 ms" {
            record.case = "every 1 ms fifo inline".into();
            if record.peer == "taut" {
                record.wait = "inline".into();
            }
        }
    });
    assert!(page.contains("every 1 ms fifo (inline where there is such a mode)"), "of the group");
    let table = page.split("\n### ").skip(1).find(|table| table.contains("fifo (inline where")).unwrap();
    assert!(table.contains("| Zenoh (no inline mode, waitset) |") && table.contains("| Taut |"), "{table}");
}

#[test]
fn an_open_loop_says_how_punctual_it_was_and_beside_what() {
    let page = document(|record| {
        if record.workload == "interference" && record.peer == "taut" && record.case == "flood" {
            (record.late, record.behind_ns, record.flood_per_s) = (7, Some(31_400.0), Some(99_870.0));
        }
    });
    assert!(page.contains(", 31.4 µs behind, 7 late, flood of 99.9 k/s |"), "{page}");
    let page = document(|record| {
        if record.workload == "interference" && record.peer == "taut" && record.case == "flood" {
            record.behind_ns = Some(31_400.0);
            record.overslept_ns = Some(Times { p50: 30_000, p99: 80_000, ..Times::default() });
        }
    });
    assert!(page.contains(", 31.4 µs behind, woken 30 µs late (p99 80 µs) |"), "{page}");
}

#[test]
fn lines_of_several_rules_of_timing_are_told() {
    let new = synthetic::run(SEED);
    let mut old = new.clone();
    old.iter_mut().for_each(|line| line.run.rules = 1);
    let told = "times are taken by rules 1 and 3: open loops, cdr and discovery";
    assert!(compare(&old, &new).to_string().contains(&format!("warning: {told}")));
    assert!(!compare(&new, &new).to_string().contains("rules"));
    let is_timed =
        |line: &Record| line.rate_hz > 0.0 || ["cdr", "discovery"].contains(&line.workload.as_str());
    let of_others = |timed: bool| -> Vec<Record> {
        let pairs = old.iter().zip(&new);
        pairs.map(|(old, new)| if is_timed(old) == timed { old } else { new }.clone()).collect()
    };
    assert!(!compare(&of_others(false), &new).to_string().contains("rules"), "streams have no such times");
    old.truncate(old.len() / 2);
    let mixed = [&old[..], &new[old.len()..]].concat();
    let says = |page: &str| page.contains(&format!("Beware: {told}"));
    assert!(says(&as_document(&mixed)) && says(&report::page(&mixed)));
    assert!(!says(&as_document(&new)) && !says(&report::page(&new)));
}

#[test]
fn the_plain_floor_is_no_limit_of_rates() {
    let page = document(|_| {});
    assert!(
        page.contains("of times a limit, not a rival") && page.contains("the limit is the floor that hands")
    );
}

#[test]
fn who_looks_before_it_sleeps_may_pass_the_floor_and_is_told() {
    assert!(document(|_| {}).contains("who looks for a while before it sleeps"));
}

#[test]
fn the_page_says_first_that_taut_looks_before_it_sleeps_and_what_that_costs() {
    let [page, _] = pages(|record| {
        if record.workload == "latency" {
            record.cpu_ns_per_sample = Some(12_345.0);
        }
    });
    let says = page.find("**that is not the same**: Taut looks").expect("it is said");
    assert!(says < page.find("![").expect("a picture"), "before what it is of");
    assert!(page[says..].contains("for each round trip of 64 B by UDP, one upon another: Taut 12.3 µs in "));
    let all = document(|_| {});
    assert!(!all.contains("waiting in the same way") && !all.contains(", asleep"));
}

#[test]
fn lines_of_two_builds_are_told_apart() {
    let mut run = synthetic::run(SEED);
    let is_rest =
        |line: &&Record| line.workload == "latency" && line.transport == "udp" && line.size_bytes == 512;
    let mut others: Vec<Record> = run.iter().filter(is_rest).cloned().collect();
    assert!(!others.is_empty());
    for line in &mut others {
        (line.size_bytes, line.run.id, line.run.taut) = (640, "other".into(), "0.1.0 other".into());
    }
    let label = "Intel Xeon @ 2.80GHz, other";
    run.extend(others);
    let [page, lines] = performance::pages(&run).map(|(_, page)| page);
    assert!(lines.contains(&format!("Measured on: {label}.")), "{label}");
    assert!(page.contains("| measured | against | gain | p99 | max | | measured on |"));
}

/// Workload, peer, transport and size of a line over a link, and what sets it apart.
type Linked<'a> = (&'a str, &'a str, &'a str, u64, &'a dyn Fn(&mut Record));

/// The synthetic run and these lines, each after one of its workload and size.
fn with_linked(lines: &[Linked]) -> Vec<Record> {
    let mut run = synthetic::run(SEED);
    for (workload, peer, transport, size, change) in lines {
        let like = |record: &&Record| {
            record.workload == *workload
                && record.peer == *peer
                && record.transport == "udp"
                && record.size_bytes == *size
                && record.qos.starts_with("reliable")
        };
        let mut line = run.iter().find(like).expect("it is in the synthetic run").clone();
        (line.transport, line.case) = (transport.to_string(), "link".into());
        change(&mut line);
        run.push(line);
    }
    run
}

#[test]
fn gains_are_relative_to_the_kernels_sockets_by_the_same_wait() {
    let periodic = |mean: u64, max: u64, pdv: u64, wait: &'static str| {
        move |line: &mut Record| {
            (line.case, line.wait, line.samples) = ("every 1 ms link".into(), wait.into(), 2_000);
            line.rtt_ns = Some(Times { mean, max, pdv, ..Times::default() });
        }
    };
    let soak = |max: u64, samples: u64| {
        move |line: &mut Record| {
            (line.wait, line.samples) = ("spin".into(), samples);
            line.rtt_ns = Some(Times { max, mean: max / 4, ..Times::default() });
        }
    };
    let rated = |per_s: f64| {
        move |line: &mut Record| {
            (line.samples_per_s, line.bytes_per_s) = (Some(per_s), Some(per_s * line.size_bytes as f64));
        }
    };
    let jumbo = |per_s: f64| {
        move |line: &mut Record| {
            rated(per_s)(line);
            line.case = "link mtu 9000".into();
        }
    };
    let run = with_linked(&[
        ("latency", "cyclonedds", "udp", 32, &periodic(50_000, 4_000_000, 3_000_000, "spin")),
        ("latency", "cyclonedds", "udp", 32, &periodic(36_000, 1_000_000, 800_000, "waitset")),
        ("latency", "taut", "udp", 32, &periodic(10_000, 600_000, 300_000, "spin")),
        ("latency", "taut", "xdp", 32, &periodic(7_500, 200_000, 0, "spin")),
        ("latency", "taut", "xdp-l2", 32, &periodic(18_000, 500_000, 80_000, "waitset")),
        ("soak", "cyclonedds", "udp", 64, &soak(8_000_000, 110_000)),
        ("soak", "taut", "xdp", 64, &soak(400_000, 110_000)),
        ("throughput", "cyclonedds", "udp", 32, &rated(200_000.0)),
        ("throughput", "taut", "udp", 32, &rated(4_000_000.0)),
        ("throughput", "taut", "dpdk", 32, &rated(5_000_000.0)),
        ("throughput", "cyclonedds", "udp", 1_024, &rated(200_000.0)),
        ("throughput", "taut", "xdp", 1_024, &rated(150_000.0)),
        ("throughput", "taut", "udp", 1_024, &jumbo(600_000.0)),
        ("throughput", "taut", "xdp", 1_024, &jumbo(300_000.0)),
    ]);
    let page = as_document(&run);
    let begin = page.find("### What going past the kernel gains").expect("the table");
    let rows: Vec<&str> = page[begin..].lines().skip(1).take_while(|line| !line.starts_with('#')).collect();
    let rows: Vec<&str> = rows.into_iter().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(
        rows,
        [
            "| measured | published | Taut | against Cyclone DDS by the kernel | against Taut by the kernel |",
            "| mean of 2,000 round trips of 32 B, 1,000/s, by the kernel, polling |  | 10 µs | -80.0 % of 50 µs | – |",
            "| maximum of 2,000 round trips of 32 B, 1,000/s, by the kernel, polling |  | 600 µs | -85.0 % of 4 ms | – |",
            "| delay variation of 2,000 round trips of 32 B, 1,000/s, by the kernel, polling |  | 300 µs | -90.0 % of 3 ms | – |",
            "| rate of 32 B by the kernel, as by default |  | 4 M/s | +1900 % of 200 k/s | – |",
            "| mean of 2,000 round trips of 32 B, 1,000/s, by XDP, polling | -18 % | 7.50 µs | -85.0 % of 50 µs | -25.0 % of 10 µs |",
            "| maximum of 2,000 round trips of 32 B, 1,000/s, by XDP, polling | -95 % | 200 µs | -95.0 % of 4 ms | -66.7 % of 600 µs |",
            "| maximum of 110,000 round trips of 64 B, 1,000/s, by XDP, polling | -95 % | 400 µs | -95.0 % of 8 ms | – |",
            "| bandwidth of 1 KiB by XDP, as by default | -24 % | 154 MB/s | -25.0 % of 205 MB/s | – |",
            "| bandwidth of 1 KiB at an MTU of 9,000 by XDP, as by default |  | 307 MB/s | – | -50.0 % of 614 MB/s |",
            "| mean of 2,000 round trips of 32 B, 1,000/s, by XDP without IP, as by default | -18 % | 18 µs | -50.0 % of 36 µs | – |",
            "| maximum of 2,000 round trips of 32 B, 1,000/s, by XDP without IP, as by default | -95 % | 500 µs | -50.0 % of 1 ms | – |",
            "| delay variation of 2,000 round trips of 32 B, 1,000/s, by XDP without IP, as by default | halved | 80 µs | -90.0 % of 800 µs | – |",
            "| rate of 32 B by DPDK's memif, with a driver that polls | +59 % | 5 M/s | +2400 % of 200 k/s | +25.0 % of 4 M/s |",
        ]
    );
    assert!(page.contains("| maximum / mean of a hundred thousand of 64 B, 1,000/s by XDP, polling | 35× without, 2.6× with them | 4.00× |"));
    assert!(page.contains("| bandwidth of 1 KiB by XDP | Cyclone DDS 170 MB/s, DPDK 250 MB/s | 154 MB/s |"));
    assert!(!document(|_| {}).contains("### What going past"), "none of it was over a link");
}

#[test]
fn what_was_measured_in_two_runs_is_no_gain_and_no_pair() {
    let of = |run: &'static str, case: &'static str| {
        move |line: &mut Record| {
            (line.case, line.wait, line.samples, line.run.id) =
                (case.into(), "spin".into(), 110_000, run.into());
            line.rtt_ns = Some(Times { mean: 9_000, max: 90_000, p9999: 60_000, ..Times::default() });
        }
    };
    let titles = ["### What going past the kernel gains", "### What a flood adds to isolated round trips"];
    for (other, are_shown) in [("a", true), ("b", false)] {
        let page = as_document(&with_linked(&[
            ("latency", "taut", "xdp", 32, &of("a", "every 1 ms link")),
            ("latency", "cyclonedds", "udp", 32, &of(other, "every 1 ms link")),
            ("interference", "taut", "xdp", 64, &of("a", "quiet all long link")),
            ("interference", "taut", "xdp", 64, &of(other, "flood all long link")),
        ]));
        assert_eq!(titles.map(|title| page.contains(title)), [are_shown; 2], "run {other}");
    }
}

#[test]
fn each_mitigation_is_shown_there_and_back_and_one_way_at_each_size() {
    let timed = |case: &'static str, base: u64| {
        move |line: &mut Record| {
            let times = |p50| Times { p50, p99: 2 * p50, p999: 3 * p50, max: 4 * p50, ..Times::default() };
            line.case = case.into();
            line.round_values = vec![base as f64];
            (line.rtt_ns, line.one_way_ns) = (Some(times(base)), Some(times(base / 2)));
        }
    };
    let sizes = [64, 1_024];
    let lines =
        ["quiet", "flood", "flood pin", "flood qdisc", "flood dma_latency", "flood spin", "flood all"];
    let cases: Vec<_> = lines.iter().map(|label| timed(format!("{label} link").leak(), 20_000)).collect();
    let every = |line: &mut Record| {
        timed("every 500 us link", 8_000)(line);
        line.rate_hz = 2_000.0;
    };
    let mut linked: Vec<Linked> = vec![("latency", "taut", "xdp", 512, &every)];
    for size in sizes {
        linked.extend(cases.iter().map(|case| -> Linked { ("interference", "taut", "xdp", size, case) }));
    }
    let page = as_document(&with_linked(&linked));
    let table =
        page.split("\n### ").find(|table| table.starts_with("Timing isolation over one link, by XDP\n"));
    let rows: Vec<&str> = table.expect("the table").lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(
        rows[1],
        "| every 500 µs, as by default, 512 B: round trip p50, p99, p99.9, max |  | 8 µs, 16 µs, 24 µs, 32 µs |"
    );
    assert_eq!(
        rows[2],
        "| every 500 µs, as by default, 512 B: one way p50, p99, max |  | 4 µs, 8 µs, 16 µs |"
    );
    let has = |row: &str| assert!(rows.contains(&row), "{row} in {rows:#?}");
    has("| flood, 1 KiB: round trip p50, p99, p99.9, max | max 3,285 µs | 20 µs, 40 µs, 60 µs, 80 µs |");
    for label in lines {
        for size in ["64 B", "1 KiB"] {
            has(&format!("| {label}, {size}: one way p50, p99, max |  | 10 µs, 20 µs, 40 µs |"));
        }
    }
    assert_eq!(rows.len(), 1 + 2 + 2 * 2 * lines.len());
}

#[test]
fn what_a_flood_adds_is_told_of_enough_samples_only() {
    let isolated = |case: &'static str, p9999: u64, samples: u64| {
        move |line: &mut Record| {
            (line.case, line.samples) = (case.into(), samples);
            line.rtt_ns = Some(Times { p9999, max: 2 * p9999, ..Times::default() });
        }
    };
    let (quiet, flood) = ("quiet all long link", "flood all long link");
    let page = as_document(&with_linked(&[
        ("interference", "taut", "xdp", 64, &isolated(quiet, 50_000, 110_000)),
        ("interference", "floor", "xdp", 64, &isolated(quiet, 40_000, 110_000)),
        ("interference", "taut", "xdp", 64, &isolated(flood, 55_000, 109_990)),
        ("interference", "floor", "xdp", 64, &isolated(flood, 30_000, 110_000)),
        ("interference", "taut", "udp", 64, &isolated(quiet, 50_000, 110_000)),
        ("interference", "taut", "udp", 64, &isolated(flood, 55_000, 9_000)),
    ]));
    let table = page.split("\n### ").find(|table| table.starts_with("What a flood adds to isolated"));
    let rows: Vec<&str> =
        table.expect("the table").lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(
        rows,
        [
            "| 109,990 of 64 B by XDP | Taut | 50 µs | 55 µs | 1.10× | 100 µs | 110 µs | 1.10× |",
            "| 110,000 of 64 B by XDP | floor | 40 µs | 30 µs | 0.75× | 80 µs | 60 µs | 0.75× |",
        ]
    );
}
