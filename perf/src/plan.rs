//! What is to be run, in which order, and for how long.
//!
//! Cases come one after the other; in a case the peers take turns, round by round, so that a machine that
//! drifts hits all alike.

mod all;
mod bypass;

use crate::args::Options;
use crate::case::{Case, Need};
use crate::catalog::Entry;
use crate::{words, workload};

/// `all` is through within an hour, its end and a slow start included. Lines that turn out to be absent when they are
/// tried, a third of those of all peers, are in the plan and take no time.
const ALL_BUDGET_S: f64 = 3_480.0;

/// `smoke` is through within four minutes.
const SMOKE_BUDGET_S: f64 = 220.0;

/// Steps to a shorter run: the share of each round's amount, and the most rounds.
const STEPS: [(f64, u32); 10] = [
    (1.0, 1_000),
    (1.0, 5),
    (0.6, 5),
    (0.4, 5),
    (0.25, 5),
    (0.25, 4),
    (0.25, 3),
    (0.2, 3),
    (0.2, 2),
    (0.2, 1),
];

/// With fewer rounds than this of all else, what can be spared is: an interval of three rounds is the least that says
/// something.
const SPARE_ROUNDS: u32 = 3;

/// What `--quick` leaves of an amount.
const QUICK: f64 = 0.2;

/// The cases of a run.
pub struct Plan {
    /// In their order.
    pub cases: Vec<Case>,
    /// For what there is no time, as `soak 64 B (4 cases)`.
    pub left_out: Vec<String>,
    /// The time that must suffice, if there is one.
    pub budget_s: Option<f64>,
}

/// The plan of a command, fitted into its budget.
pub fn make(command: &str, options: &Options, entries: &[Entry]) -> Plan {
    let budget_s = options.budget.or(match command {
        "all" => Some(ALL_BUDGET_S),
        "smoke" => Some(SMOKE_BUDGET_S),
        _ => None,
    });
    let is_quick = options.quick || command == "smoke";
    let full = if is_quick { QUICK } else { 1.0 };
    let with_spares = STEPS.iter().filter(|(_, rounds)| !is_quick && *rounds >= SPARE_ROUNDS);
    let steps = with_spares.map(|step| (true, step)).chain(STEPS.iter().map(|step| (false, step)));
    let mut plan = Plan { cases: Vec::new(), left_out: Vec::new(), budget_s };
    for (has_spares, (scale, rounds)) in steps {
        let mut all = cases(command, options, full * scale, entries);
        keep_named(&mut all, &options.lines);
        let (kept, spared): (Vec<Case>, Vec<Case>) =
            all.into_iter().partition(|case| has_spares || !matches!(case.need, Need::Spare | Need::Whole));
        (plan.cases, plan.left_out) = (kept, counted(&spared));
        for case in plan.cases.iter_mut().filter(|_| options.rounds.is_none()) {
            let most = match case.need {
                Need::Full => *rounds,
                Need::Brief if full * scale < 1.0 => 1,
                Need::Brief | Need::Spare => *rounds,
                Need::Whole => case.rounds,
            };
            case.rounds = case.rounds.min(most);
        }
        let time_s: f64 = plan.cases.iter().map(|case| case_s(case, entries)).sum();
        if budget_s.is_none_or(|budget_s| time_s <= budget_s) {
            break;
        }
    }
    plan
}

/// Keeps what is called so; without names all. Who took turns with a case that goes takes them with no other one's.
fn keep_named(cases: &mut Vec<Case>, lines: &[String]) {
    let mut is_begun = false;
    cases.retain_mut(|case| {
        let is_kept = lines.is_empty() || lines.iter().any(|line| case.is_called(line));
        // The first of its group that is kept begins it.
        case.in_turns &= is_begun;
        is_begun = is_kept || case.in_turns;
        is_kept
    });
}

/// Why the lines that are named are none of a command's.
pub fn no_line(command: &str, options: &Options, entries: &[Entry]) -> String {
    let names = |options: &Options| lines(command, options, entries).join(", ");
    let any = Options { sizes: Vec::new(), rate: None, ..options.clone() };
    match (names(options).as_str(), names(&any).as_str()) {
        ("", "") => format!("no line of {command} has a name with these options: leave --lines out"),
        ("", there) => {
            format!(
                "no line of {command} with these --sizes or this --rate has a name; without them there are: {there}"
            )
        }
        (here, _) => format!("no line of {command} is called so; name some of: {here}"),
    }
}

/// What the lines of a command are called, each once.
fn lines(command: &str, options: &Options, entries: &[Entry]) -> Vec<String> {
    let all = Options { lines: Vec::new(), ..options.clone() };
    let mut lines: Vec<String> = Vec::new();
    for case in cases(command, &all, 1.0, entries) {
        if !case.label.is_empty() && !lines.iter().any(|line| case.is_called(line)) {
            lines.push(case.label);
        }
    }
    lines
}

/// How many cases there are of a workload and size.
fn counted(cases: &[Case]) -> Vec<String> {
    let is_like = |a: &Case, b: &Case| (a.workload, a.size) == (b.workload, b.size);
    let first = cases.iter().enumerate().filter(|(at, case)| !cases[..*at].iter().any(|c| is_like(c, case)));
    first
        .map(|(_, case)| {
            let count = cases.iter().filter(|other| is_like(other, case)).count();
            format!("{} {} B ({})", case.workload, case.size, words::counted(count, "case"))
        })
        .collect()
}

/// The time that all rounds of a case take, roughly.
pub fn case_s(case: &Case, entries: &[Entry]) -> f64 {
    runnable(case, entries) as f64 * f64::from(case.rounds) * case.estimate_s()
}

/// How many peers have this case.
pub fn runnable(case: &Case, entries: &[Entry]) -> usize {
    entries
        .iter()
        .filter(|entry| matches!(entry, Entry::Found(peer) if case.obstacle(peer).is_none()))
        .count()
}

fn cases(command: &str, options: &Options, scale: f64, entries: &[Entry]) -> Vec<Case> {
    match command {
        "all" => all::cases(options, scale),
        "bypass" => bypass::cases(options, scale, entries),
        "smoke" => {
            let quick = Options { quick: true, ..options.clone() };
            workload::NAMES.iter().flat_map(|name| few(name, &quick, scale)).collect()
        }
        name => workload::cases(name, options, scale),
    }
}

/// A little of a workload.
fn few(name: &'static str, options: &Options, scale: f64) -> Vec<Case> {
    let mut options = options.clone();
    let sizes: &[u64] = match name {
        "latency" | "bursts" | "types" | "write" | "calls" | "interference" | "soak" => &[64],
        "throughput" | "cdr" => &[1_024],
        _ => &[],
    };
    if options.sizes.is_empty() {
        options.sizes.extend(sizes);
    }
    if name == "soak" {
        options.duration = options.duration.or(Some(3.0));
    }
    let mut cases = workload::cases(name, &options, scale);
    for case in &mut cases {
        case.rounds = options.rounds.unwrap_or(case.rounds.min(3));
    }
    match name {
        // Of each kind one: that it runs, not how it scales.
        "interference" => cases.retain(|case| ["quiet", "flood", "flood all"].contains(&case.label.as_str())),
        "fanout" => {
            cases.retain(|case| case.label.contains("subscribers=4") && case.label.contains("listener"))
        }
        "discovery" => cases.truncate(1),
        _ => {}
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Transport, Wait, options};
    use crate::catalog::{NEAR, Peer, not_asked};
    use crate::contract::Info;

    /// A peer that has everything.
    fn peers(count: usize) -> Vec<Entry> {
        let list = |words: &str| words.split(' ').map(str::to_string).collect();
        let info = Info {
            transports: list("thread intra shm udp"),
            roles: list("ping pong pub sub local cdr entities node"),
            types: list("bytes plain simple complex"),
            waits: list("listener waitset spin"),
            multicast: true,
            loan: true,
            ..Info::default()
        };
        let peer = |n: usize| Peer {
            name: NEAR.get(n).map_or_else(|| n.to_string(), ToString::to_string),
            variant: String::new(),
            program: "/".into(),
            info: info.clone(),
        };
        (0..count).map(|n| Entry::Found(Box::new(peer(n)))).collect()
    }

    fn time_s(plan: &Plan, entries: &[Entry]) -> f64 {
        plan.cases.iter().map(|case| case_s(case, entries)).sum()
    }

    #[test]
    fn all_and_smoke_fit_their_time_with_every_workload() {
        for (command, count, most_s) in [("all", 17, ALL_BUDGET_S), ("smoke", 4, SMOKE_BUDGET_S)] {
            let entries = peers(count);
            let plan = make(command, &options(""), &entries);
            assert!(time_s(&plan, &entries) <= most_s, "{command}: {} s", time_s(&plan, &entries));
            for name in workload::NAMES {
                assert!(plan.cases.iter().any(|case| case.workload == name), "{command} has no {name}");
            }
        }
    }

    #[test]
    fn all_has_every_size_of_the_studies_and_says_who_is_asked() {
        let entries = peers(17);
        let sizes =
            |plan: &Plan, workload: &str, transport: Transport, label: &str, asked: usize| -> Vec<u64> {
                let is = |case: &&Case| {
                    (case.workload, case.transport) == (workload, Some(transport))
                        && (case.label.as_str(), case.period_ns, case.reliable) == (label, 0, true)
                        && case.pin == crate::args::Pin::None
                        && runnable(case, &entries) >= asked
                };
                let mut all: Vec<u64> = plan.cases.iter().filter(is).map(|case| case.size).collect();
                all.sort_unstable();
                all
            };
        let eprosima = [64, 512, 1_024, 4_096, 8_192, 16_384, 65_536, 1 << 20, 2 << 20, 4 << 20, 8 << 20];
        let simple: Vec<u64> = (2..=14).map(|power| 1 << power).collect();
        let plan = make("all", &options("--peers all"), &entries);
        for transport in [Transport::Udp, Transport::Intra, Transport::Shm] {
            assert_eq!(sizes(&plan, "latency", transport, "", NEAR.len()), eprosima, "{transport:?}");
        }
        assert_eq!(sizes(&plan, "throughput", Transport::Udp, "", NEAR.len())[1..], eprosima, "and A's 32 B");
        assert_eq!(sizes(&plan, "throughput", Transport::Shm, "", NEAR.len()), eprosima);
        assert_eq!(sizes(&plan, "throughput", Transport::Shm, "loan", NEAR.len()), eprosima);
        assert_eq!(sizes(&plan, "types", Transport::Udp, "simple", NEAR.len()), simple);
        assert_eq!(sizes(&plan, "types", Transport::Udp, "complex", NEAR.len()), simple[2..]);
        // Everyone at a few of them; who was not asked is told.
        assert_eq!(sizes(&plan, "types", Transport::Udp, "simple", 17), [64, 1_024, 16_384]);
        let Entry::Found(last) = &entries[16] else { panic!("it is there") };
        let told = plan.cases.iter().filter_map(|case| case.obstacle(last)).filter(|why| *why == not_asked());
        assert_eq!(
            not_asked(),
            "`taut perf all` asks only Taut, floor, Cyclone DDS, Cyclone DDS 11, Fast DDS for it"
        );
        assert_eq!(told.count(), plan.cases.iter().filter(|case| case.is_near).count());
        // But whom the user names.
        let named = make("all", &options("--peers taut,16"), &entries);
        assert_eq!(sizes(&named, "types", Transport::Udp, "simple", 17), simple);
        assert!(named.cases.iter().all(|case| case.obstacle(last) != Some(not_asked())));
    }

    /// As many as there are adapters and variants, with the transports that most of them have.
    #[test]
    fn all_has_three_rounds_of_everyone_within_the_hour() {
        let mut entries = peers(25);
        for entry in &mut entries[9..] {
            let Entry::Found(peer) = entry else { panic!("it is there") };
            peer.info.transports = vec!["udp".to_string()];
        }
        let plan = make("all", &options("--peers all"), &entries);
        let rounds =
            plan.cases.iter().filter(|case| case.workload == "latency").map(|case| case.rounds).min();
        assert_eq!(rounds, Some(3), "{} s", time_s(&plan, &entries));
    }

    #[test]
    fn a_budget_shortens_and_a_users_word_stays() {
        let entries = peers(2);
        let long = make("latency", &options(""), &entries);
        let short = make("latency", &options("--budget 30"), &entries);
        assert!(time_s(&short, &entries) <= 30.0 && time_s(&long, &entries) > 30.0);
        assert_eq!(long.cases.len(), short.cases.len());
        let fixed = make("latency", &options("--budget 1 --count 77 --rounds 5 --sizes 64"), &entries);
        assert_eq!((fixed.cases[0].count, fixed.cases[0].rounds), (77, 5));
    }

    #[test]
    fn rounds_of_closed_loops_last_as_long_for_each_peer_however_short_the_plan_is() {
        let entries = peers(17);
        for command in ["all", "latency", "types", "local"] {
            let plan = make(command, &options(""), &entries);
            let loops = ["latency", "types", "local"];
            let closed =
                plan.cases.iter().filter(|case| loops.contains(&case.workload) && case.period_ns == 0);
            for case in closed {
                let name = format!("{command}: {} {} {} B", case.workload, case.transport_name(), case.size);
                // Within a thread an exchange takes 100 ns: there a table that is as long would not fit.
                let within = case.transport == Some(Transport::Thread);
                let by_memory = matches!(case.transport, Some(Transport::Intra | Transport::Shm));
                let least_ms = match case.workload {
                    "latency" if by_memory => 250,
                    "latency" => 500,
                    _ if within => 100,
                    _ => 200,
                };
                assert!(case.duration_ms >= least_ms, "{name}: {} ms", case.duration_ms);
                let fastest_ns = if by_memory { 200 } else { 2_000 };
                let fastest_ns = if within { 80 } else { fastest_ns };
                assert!(case.count * fastest_ns >= case.duration_ms * 1_000_000, "{name} ends by its count");
                assert!(case.count * 24 <= 250 << 20, "{name}: the table of {} samples", case.count);
            }
        }
        let counted = make("latency", &options("--count 100 --sizes 64"), &entries);
        assert_eq!(counted.cases[0].count, 100, "unless the user says a count");
    }

    #[test]
    fn who_has_no_inline_mode_is_compared_by_its_best_blocking_way() {
        let plan = make("latency", &options("--wait inline --fifo 9 --sizes 64"), &peers(1));
        let case = &plan.cases[0];
        // What sets its lines apart from those of other priorities and waits.
        assert_eq!((case.label.as_str(), case.fifo), ("fifo inline", Some(9)));
        let Entry::Found(mut peer) = peers(1).remove(0) else { panic!("it is there") };
        assert_eq!((case.wait_of(&peer), case.obstacle(&peer)), (Wait::Block, None));
        peer.info.waits.push("inline".to_string());
        assert_eq!(case.wait_of(&peer), Wait::Inline);
    }

    #[test]
    fn the_bound_is_asked_for_beside_each_open_loop_and_flood() {
        for (command, label) in [
            ("latency", "every 1 ms fifo inline"),
            ("interference", "flood fifo inline"),
            ("all", "flood all"),
        ] {
            let plan = make(command, &options(""), &peers(2));
            let case =
                plan.cases.iter().find(|case| case.label == label).unwrap_or_else(|| panic!("{label}"));
            assert_eq!((case.wait, case.fifo), (Wait::Inline, Some(99)), "{label}");
        }
    }

    #[test]
    fn every_burst_is_asked_for_and_named_so_and_shared_memory_with_loans() {
        let plan = make("throughput", &options("--sizes 64 --full --duration 1"), &peers(1));
        let case = plan.cases.iter().find(|case| case.label == "best of all bursts").expect("--full");
        assert!(case.estimate_s() > 66.0, "6 demands, 11 intervals: {} s", case.estimate_s());
        // By itself a table of a peer is through within a minute, and its longest interval has five bursts.
        let plan = make("throughput", &options("--sizes 64 --full"), &peers(1));
        let case = plan.cases.iter().find(|case| case.label == "best of all bursts").expect("--full");
        assert!(
            case.estimate_s() < 60.0 && (case.rounds, case.duration_ms) == (1, 500),
            "{} s",
            case.estimate_s()
        );
        let plan = make("all", &options(""), &peers(1));
        let loans: Vec<u64> = plan
            .cases
            .iter()
            .filter(|c| c.label == "loan" && c.workload == "throughput")
            .map(|c| c.size)
            .collect();
        assert_eq!(loans.len(), 11);
    }

    #[test]
    fn dpdk_is_compared_where_a_peer_was_built_with_it() {
        let by_dpdk = |entries: &[Entry]| {
            let plan = make("bypass", &options(""), entries);
            let by_dpdk = plan.cases.iter().filter(|case| case.transport == Some(Transport::Dpdk));
            by_dpdk.inspect(|case| assert_eq!(case.fifo, None, "{}", case.label)).count()
        };
        let mut entries = peers(2);
        assert_eq!(by_dpdk(&entries), 0);
        if let Entry::Found(peer) = &mut entries[1] {
            peer.info.transports.push("dpdk".to_string());
        }
        assert!(by_dpdk(&entries) > 0);
    }

    /// Four as `make perf-bypass` has them: two with every way, two by the kernel.
    fn of_bypass() -> Vec<Entry> {
        let mut entries = peers(4);
        for entry in &mut entries[..2] {
            let Entry::Found(peer) = entry else { panic!("it is there") };
            peer.info.transports.extend(["xdp", "xdp-l2", "dpdk"].map(String::from));
        }
        entries
    }

    #[test]
    fn bypass_fits_eight_minutes_with_each_size_and_leaves_out_what_it_says() {
        let entries = of_bypass();
        let short = make("bypass", &options("--budget 480"), &entries);
        assert!(time_s(&short, &entries) <= 480.0, "{} s", time_s(&short, &entries));
        let of = |plan: &Plan, label: &str, size: u64| -> Vec<u32> {
            let is =
                |case: &&Case| case.workload == "interference" && case.size == size && case.label == label;
            plan.cases.iter().filter(is).map(|case| case.rounds).collect()
        };
        // An interval where each mitigation is told; one round of what is at other sizes.
        assert_eq!(of(&short, "flood pin link", 64), [2; 4]);
        for size in [512, 1_024] {
            assert_eq!(of(&short, "flood all link", size), [1; 3]);
            assert_eq!(of(&short, "flood all but fifo link", size), [1]);
            assert!(of(&short, "flood pin link", size).is_empty());
        }
        let told = |size: u64| format!("interference {size} B (33 cases)");
        assert!(
            short.left_out.contains(&told(512)) && short.left_out.contains(&told(1_024)),
            "{:?}",
            short.left_out
        );
        assert!(short.left_out.contains(&"soak 64 B (4 cases)".to_string()), "{:?}", short.left_out);
        assert!(short.left_out.contains(&"interference 64 B (8 cases)".to_string()), "{:?}", short.left_out);
        let long = make("bypass", &options(""), &entries);
        assert_eq!((of(&long, "flood pin link", 512), &long.left_out), (vec![3; 4], &Vec::new()));
        let chosen = make("bypass", &options("--budget 480 --sizes 512"), &entries);
        assert!(!of(&chosen, "flood pin link", 512).is_empty(), "what a user chose stays");
    }

    #[test]
    fn rare_times_are_of_a_hundred_thousand_samples_measured_by_turns() {
        let entries = of_bypass();
        for budget in ["", "--budget 3600"] {
            let plan = make("bypass", &options(budget), &entries);
            assert!(budget.is_empty() || time_s(&plan, &entries) <= 3_600.0, "{} s", time_s(&plan, &entries));
            let groups: Vec<&[Case]> = plan.cases.chunk_by(|_, next| next.in_turns).collect();
            let long: Vec<&&[Case]> = groups.iter().filter(|group| group.len() > 1).collect();
            // Soaks by each way; quiet and flooded by each way.
            assert_eq!(long.iter().map(|group| group.len()).collect::<Vec<_>>(), [4, 8]);
            for case in long.into_iter().flat_map(|group| group.iter()) {
                assert!(case.count * u64::from(case.rounds) > 100_000, "{} {}", case.workload, case.label);
                assert!(case.rounds > 1 && case.duration_ms * 1_000_000 >= case.count * case.period_ns);
            }
            let soaks = plan.cases.iter().filter(|case| case.workload == "soak");
            assert!(soaks.map(|case| case.wait).eq([Wait::Spin; 4]));
        }
    }

    #[test]
    fn all_mitigations_have_a_pair_over_each_way_and_each_stands_alone() {
        let plan = make("bypass", &options(""), &of_bypass());
        for transport in [Transport::Udp, Transport::Xdp, Transport::XdpL2, Transport::Dpdk] {
            let of = |label: &str| {
                let is = |case: &&Case| {
                    case.workload == "interference"
                        && case.transport == Some(transport)
                        && case.label == format!("{label} link")
                        && case.size == 64
                };
                plan.cases.iter().find(is)
            };
            let all = if transport == Transport::Dpdk { "all but fifo" } else { "all" };
            let [quiet, flood] = ["quiet", "flood"].map(|word| of(&format!("{word} {all}")).expect(all));
            assert_eq!((quiet.pin, quiet.wait, quiet.fifo), (flood.pin, flood.wait, flood.fifo));
            assert_eq!((flood.pin, flood.wait), (crate::args::Pin::Same, Wait::Inline));
            assert_eq!(flood.fifo.is_none(), transport == Transport::Dpdk);
            assert_eq!((flood.queues, of("flood pin").expect("alone").queues), (2, 1));
            let inline = of("flood inline").expect("alone");
            assert_eq!((inline.wait, inline.fifo, inline.pin), (Wait::Inline, None, crate::args::Pin::None));
            for alone in ["pin", "pin queue", "qdisc", "dma_latency", "spin"] {
                assert!(of(&format!("flood {alone}")).is_some(), "{alone}");
            }
            assert_eq!(of("flood fifo").is_none(), transport == Transport::Dpdk);
            let long =
                ["quiet", "flood"].map(|word| of(&format!("{word} {all} long")).expect("the long pair"));
            assert!(
                long.iter()
                    .all(|case| (case.fifo, case.pin, case.wait) == (flood.fifo, flood.pin, flood.wait))
            );
        }
    }

    #[test]
    fn lines_that_are_named_are_all_there_is() {
        let named = |words: &str, lines: &[&str]| Options {
            lines: lines.iter().map(ToString::to_string).collect(),
            ..options(words)
        };
        let labels = |plan: &Plan| plan.cases.iter().map(|case| case.label.clone()).collect::<Vec<_>>();
        let chosen = make("interference", &named("--sizes 64", &["quiet all", "flood"]), &peers(2));
        assert_eq!(labels(&chosen), ["quiet all", "flood"]);
        let long = make("bypass", &named("--transport xdp", &["flood all long"]), &of_bypass());
        assert_eq!(labels(&long), ["flood all long link"]);
        let known = lines("interference", &named("", &["nothing"]), &peers(2));
        assert!(known.contains(&"flood pin queue".into()) && known.contains(&"quiet".into()), "{known:?}");
        let told = |command, words| no_line(command, &named(words, &["nothing"]), &peers(2));
        for words in ["--sizes 64", "--rate 1000"] {
            let text = told("latency", words);
            assert!(text.contains("without them there are: every 1 ms, "), "{words}: {text}");
        }
        assert!(told("memory", "").contains("leave --lines out"), "it has none: {}", told("memory", ""));
        let text = told("interference", "");
        assert!(text.contains("is called so; name some of: ") && text.contains("flood pin queue"), "{text}");
    }

    #[test]
    fn what_is_named_after_its_rate_has_no_other() {
        for command in ["all", "bypass", "latency"] {
            let named = |words: &str| {
                let plan = make(command, &options(words), &of_bypass());
                plan.cases.iter().filter(|case| case.label.starts_with("every ")).count()
            };
            assert!(named("") > 0 && named("--rate 500") == 0, "{command}");
        }
    }

    #[test]
    fn what_is_left_of_a_group_joins_no_other() {
        let entries = of_bypass();
        let of = |lines: &[&str]| {
            let lines = lines.iter().map(ToString::to_string).collect();
            make("bypass", &Options { lines, ..options("") }, &entries)
        };
        let groups = |plan: &Plan| -> Vec<(String, usize, Vec<u32>)> {
            let told = |group: &[Case]| {
                let rounds = group.iter().map(|case| case.rounds).collect();
                (group[0].label.clone(), group.len(), rounds)
            };
            plan.cases.chunk_by(|_, next| next.in_turns).map(told).filter(|(_, len, _)| *len > 1).collect()
        };
        let flood = ("flood all long link".to_string(), 3, vec![11; 3]);
        assert_eq!(groups(&of(&["flood", "flood all long"])), std::slice::from_ref(&flood));
        assert_eq!(groups(&of(&["flood all long"])), [flood]);
        let both = of(&["flood", "quiet all long", "flood all long"]);
        assert_eq!(groups(&both), [("quiet all long link".to_string(), 6, vec![11; 6])]);
    }

    #[test]
    fn the_options_reach_the_case() {
        let wanted =
            "--transport shm,udp --sizes 64,1K --rate 1000 --duration 2 --wait spin --pin split --fifo 9";
        let plan = make("latency", &options(wanted), &peers(1));
        assert_eq!(plan.cases.len(), 4);
        let last = &plan.cases[3];
        assert_eq!((last.transport, last.size, last.period_ns), (Some(Transport::Udp), 1_024, 1_000_000));
        assert_eq!((last.count, last.duration_ms, last.fifo), (2_000, 2_000, Some(9)));
        assert_eq!(last.history, "keep-all", "a sample that is replaced is no answer");
        let told = last.options();
        for pair in [("wait", "spin"), ("size", "1024"), ("period-ns", "1000000"), ("transport", "udp")] {
            assert!(told.contains(&(pair.0, pair.1.to_string())), "{pair:?}");
        }
    }
}
