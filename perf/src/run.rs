//! A run from its command to its exit code.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use crate::args::{Options, Workload};
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::{Catalog, Entry, FLOOR, KNOWN, ask};
use crate::gather::{Gathered, set_ratios};
use crate::namespace::{self, Side};
use crate::output::{note, print};
use crate::plan::{self, Plan};
use crate::progress::Progress;
use crate::record::{Outcome, Record, Run};
use crate::session::Trouble;
use crate::words::counted;
use crate::{Failure, Stop, Wrong, machine, table};

/// All is measured.
const DONE: u8 = 0;
/// A peer that counts has failed.
const FAILED: u8 = 1;
/// Nothing was measured, as all is absent: the user has to change something.
const NOTHING: u8 = 2;
/// It was ended before its time.
const ENDED: u8 = 3;

/// Who counts if nobody is asked for by name: what we answer for. Others are reported.
const COUNTED: [&str; 2] = ["taut", FLOOR];

/// A case is not begun when less than this share of its time is left of the budget.
const TOO_LATE: f64 = 0.5;

/// Does what the command says; the exit code.
pub fn run(workload: &Workload, stop: Stop) -> Result<u8, Failure> {
    let (command, options) = workload.parts();
    if command == "peers" {
        return list(options, stop);
    }
    let options = &options.once();
    if let Some(unused) = options.unused(command) {
        return Err(Wrong(unused).into());
    }
    if let Some(path) = options.save.as_deref().filter(|path| namespace::is_replaced(path)) {
        return Err(Wrong(format!(
            "--save {}: the run has a /dev/shm of its own, which goes with it: choose another place",
            path.display()
        ))
        .into());
    }
    let (scratch, notes) = match namespace::enter(options.net, stop)? {
        Side::Outside(code) => return Ok(code),
        Side::Inside { scratch, notes } => (scratch, notes),
    };
    let catalog = Catalog::search(&options.peer_dir, stop)?;
    let everyone = ["all".to_string()];
    let wanted = if command == "all" && options.peers.is_empty() { &everyone[..] } else { &options.peers };
    let entries = catalog.choose(wanted)?;
    let plan = plan::make(command, options, &entries);
    if plan.cases.is_empty() && !options.lines.is_empty() {
        return Err(Wrong(plan::no_line(command, options, &entries)).into());
    }
    let bench = Bench::new(stop, catalog, scratch, options.domain_base)?;
    let mut out = Out::new(options, &entries, stop)?;
    let left_out = (!plan.left_out.is_empty())
        .then(|| format!("left out for lack of time: {}", plan.left_out.join(", ")));
    if let Some(left_out) = &left_out {
        note(&format!("{left_out}; a larger --budget has it, --quick never"), stop);
    }
    let unequal = machine::unequal_buffers();
    if let Some(unequal) = &unequal {
        note(unequal, stop);
    }
    let run = machine::describe(notes.into_iter().chain(left_out).chain(unequal).collect());
    let measured = measure(&bench, &plan, &entries, &run, &mut out);
    // What was measured before is printed all the same.
    let finished = out.finish();
    measured.and(finished)?;
    Ok(match () {
        () if (stop.requested)() => ENDED,
        () if out.has_failed => FAILED,
        () if !out.has_run => {
            note("nothing was measured: all that was asked for is absent or left out, as said above", stop);
            NOTHING
        }
        () => DONE,
    })
}

/// Runs all cases.
fn measure(bench: &Bench, plan: &Plan, entries: &[Entry], run: &Run, out: &mut Out) -> Result<(), Failure> {
    let planned_s: f64 = plan.cases.iter().map(|case| plan::case_s(case, entries)).sum();
    let trials: usize =
        plan.cases.iter().map(|case| plan::runnable(case, entries) * case.rounds as usize).sum();
    note(
        &format!(
            "{}, {}, {}, about {}",
            counted(plan.cases.len(), "case"),
            counted(entries.len(), "peer"),
            counted(trials, "trial"),
            humantime::format_duration(Duration::from_secs(planned_s.ceil() as u64))
        ),
        bench.stop,
    );
    let mut progress = Progress::new(planned_s);
    for cases in plan.cases.chunk_by(|_, next| next.in_turns) {
        let rounds = affordable(plan, cases, entries, &progress);
        let records = run_cases(bench, cases, rounds, entries, run, &mut progress)?;
        progress.suspend(|| out.add(records))?;
        if (bench.stop.requested)() {
            break;
        }
    }
    Ok(())
}

/// How many rounds of cases that take turns the budget allows.
fn affordable(plan: &Plan, cases: &[Case], entries: &[Entry], progress: &Progress) -> u32 {
    let rounds = cases.iter().map(|case| case.rounds).max().unwrap_or(0);
    let Some(budget_s) = plan.budget_s else { return rounds };
    let left_s = budget_s - progress.elapsed_s();
    let share = left_s / progress.left_s().max(1e-9);
    if share >= 1.0 {
        return rounds;
    }
    let all_s: f64 = cases.iter().map(|case| plan::case_s(case, entries)).sum();
    let round_s = all_s / f64::from(rounds.max(1)) * progress.pace();
    if left_s < TOO_LATE * round_s {
        return 0;
    }
    ((f64::from(rounds) * share) as u32).max(1)
}

/// All rounds of cases that take turns; in each the peers do.
fn run_cases(
    bench: &Bench,
    cases: &[Case],
    rounds: u32,
    entries: &[Entry],
    run: &Run,
    progress: &mut Progress,
) -> Result<Vec<Record>, Wrong> {
    let of_case = |case| entries.iter().map(|entry| Gathered::new(entry, case)).collect();
    let mut gathered: Vec<Vec<Gathered>> = cases.iter().map(of_case).collect();
    if rounds == 0 {
        for peer in gathered.iter_mut().flatten().filter(|peer| peer.goes_on()) {
            peer.add(Err(Trouble::Absent("not run: the budget was over".to_string())));
        }
    }
    for round in 0..rounds {
        for (case, peers) in cases.iter().zip(&mut gathered) {
            if (bench.stop.requested)() {
                continue;
            }
            bench.step_aside(case).map_err(Wrong)?;
            run_round(bench, case, (round, rounds), entries, peers, progress);
        }
    }
    if !(bench.stop.requested)() {
        for case in cases {
            let left_out = case.rounds.saturating_sub(rounds);
            let round_s = plan::case_s(case, entries) / f64::from(case.rounds.max(1));
            progress.advance(round_s * f64::from(left_out));
        }
    }
    Ok(cases.iter().zip(&gathered).flat_map(|(case, peers)| records(peers, case, run)).collect())
}

/// A round of a case; what is under way when the user ends it counts as not begun.
fn run_round(
    bench: &Bench,
    case: &Case,
    (round, rounds): (u32, u32),
    entries: &[Entry],
    gathered: &mut [Gathered],
    progress: &mut Progress,
) {
    // Another one begins each round: what one leaves behind does not always meet the same one.
    for at in (0..entries.len()).map(|at| (at + round as usize) % entries.len()) {
        let (Some(Entry::Found(found)), Some(peer)) = (entries.get(at), gathered.get_mut(at)) else {
            continue;
        };
        let planned = case.obstacle(found).is_none();
        if !peer.goes_on() {
            if planned {
                peer.skip();
                progress.advance(case.estimate_s());
            }
            continue;
        }
        progress.show(&format!(
            "{} {} {} B {}  {}  round {} of {rounds}",
            case.workload,
            case.transport_name(),
            case.size,
            case.label,
            found.name,
            round + 1
        ));
        let result = case.work.round(bench, found, case);
        if (bench.stop.requested)() {
            return;
        }
        peer.add(result);
        progress.advance(case.estimate_s());
    }
}

fn records(gathered: &[Gathered], case: &Case, run: &Run) -> Vec<Record> {
    let mut lines: Vec<_> = gathered
        .iter()
        .flat_map(|peer| peer.records(case, run).into_iter().map(|record| (record, peer.compared())))
        .collect();
    set_ratios(&mut lines);
    // Of each peer the case's own line, then those that go with it.
    lines.sort_by_key(|(record, _)| record.case != case.label);
    lines.into_iter().map(|(record, _)| record).collect()
}

/// Where lines go.
struct Out {
    stop: Stop,
    json: bool,
    file: Option<BufWriter<File>>,
    /// Those of a workload that is not printed yet.
    lines: Vec<Record>,
    base: Option<String>,
    /// Whose failure is a failure of the run.
    counted: Vec<String>,
    has_failed: bool,
    /// Has anybody run, well or not?
    has_run: bool,
}

impl Out {
    fn new(options: &Options, entries: &[Entry], stop: Stop) -> Result<Out, Wrong> {
        let file = match &options.save {
            Some(path) => {
                let refused =
                    |error| Wrong(format!("--save {}: {error}; choose another place", path.display()));
                Some(BufWriter::new(File::create(path).map_err(refused)?))
            }
            None => None,
        };
        // `all` names nobody.
        let named: Vec<String> = options.peers.iter().filter(|name| *name != "all").cloned().collect();
        let floor = entries.iter().find(|entry| entry.name() == FLOOR).or(entries.first());
        let base = named.first().cloned().or(floor.map(|entry| entry.name().to_string()));
        Ok(Out {
            stop,
            json: options.json,
            file,
            lines: Vec::new(),
            base: base.filter(|_| entries.len() > 1),
            counted: if named.is_empty() { COUNTED.map(String::from).into() } else { named },
            has_failed: false,
            has_run: false,
        })
    }

    fn add(&mut self, records: Vec<Record>) -> Result<(), Failure> {
        for record in records {
            let counts = self.counted.contains(&record.peer);
            let has_failed = matches!(record.outcome, Outcome::Failed(_)) || record.failed_rounds > 0;
            self.has_failed |= counts && has_failed;
            self.has_run |= !matches!(record.outcome, Outcome::Absent(_));
            let line = serde_json::to_string(&record).map_err(|error| Wrong(error.to_string()))?;
            let saved = match &mut self.file {
                Some(file) => writeln!(file, "{line}").and_then(|()| file.flush()),
                None => Ok(()),
            };
            if self.json {
                print(&format!("{line}\n"), self.stop)?;
            } else {
                if self.lines.first().is_some_and(|last| last.workload != record.workload) {
                    self.print_table()?;
                }
                self.lines.push(record);
            }
            // Of another kind than that of an output whose reader has left, which is no failure.
            let told = |error| Failure::Output(std::io::Error::other(format!("--save: {error}")));
            saved.map_err(told)?;
        }
        Ok(())
    }

    fn print_table(&mut self) -> Result<(), Failure> {
        let lines = std::mem::take(&mut self.lines);
        print(&table::render(&lines, self.base.as_deref()), self.stop)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.print_table()
    }
}

/// The adapters that are found, and those that are known and not built.
fn list(options: &Options, stop: Stop) -> Result<u8, Failure> {
    let catalog = Catalog::search(&options.peer_dir, stop)?;
    let mut has_failed = false;
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for name in catalog.names() {
        let Some(program) = catalog.program(name) else { continue };
        match ask(program, stop) {
            Ok(info) => {
                lines.push(format!("{name} {}", info.version));
                lines.push(format!(
                    "    transports {}   waits {}",
                    info.transports.join(" "),
                    info.waits.join(" ")
                ));
                lines.push(format!("    roles {}   types {}", info.roles.join(" "), info.types.join(" ")));
                if !info.variants.is_empty() {
                    lines.push(format!("    variants {}", info.variants.join(" ")));
                }
                objects.push(serde_json::json!({
                    "peer": name, "status": "ok", "version": info.version, "transports": info.transports,
                    "roles": info.roles, "types": info.types, "waits": info.waits, "variants": info.variants,
                    "multicast": info.multicast, "loan": info.loan, "daemon": info.daemon,
                    "built_with": info.built_with, "note": info.note,
                }));
            }
            Err(reason) => {
                has_failed = true;
                lines.push(format!("{name} failed: {reason}"));
                objects.push(serde_json::json!({"peer": name, "status": "failed", "reason": reason}));
            }
        }
    }
    for name in KNOWN.iter().filter(|name| catalog.program(name).is_none()) {
        lines.push(format!("{name} not built"));
        objects.push(serde_json::json!({"peer": name, "status": "absent", "reason": "not built"}));
    }
    let text: Vec<String> =
        if options.json { objects.iter().map(ToString::to_string).collect() } else { lines };
    print(&(text.join("\n") + "\n"), stop)?;
    Ok(if has_failed { FAILED } else { DONE })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::args::options;
    use crate::catalog::Peer;
    use crate::workload::{Round, Work};

    const NO_STOP: Stop = Stop { requested: || false, request: || () };

    /// Notes each round that it runs.
    struct Noted(&'static str, Rc<RefCell<Vec<String>>>);

    impl Work for Noted {
        fn roles(&self) -> &'static [&'static str] {
            &[]
        }

        fn has_type(&self) -> bool {
            false
        }

        fn round(&self, _: &Bench, peer: &Peer, _: &Case) -> Result<Round, Trouble> {
            self.1.borrow_mut().push(format!("{} {}", self.0, peer.name));
            Ok(Round { samples: 1, ..Round::default() })
        }
    }

    #[test]
    fn cases_in_turns_have_each_round_beside_each_other_and_their_lines_apart() {
        let catalog = Catalog::search(&[], NO_STOP).unwrap();
        let bench = Bench::new(NO_STOP, catalog, std::env::temp_dir(), 1).unwrap();
        let notes = Rc::default();
        let case = |name, size| Case::new("soak", None, size, Box::new(Noted(name, Rc::clone(&notes))));
        let mut cases = [case("first", 1), case("second", 2)];
        cases[1].in_turns = true;
        let peer = |name: &str| Peer {
            name: name.into(),
            variant: String::new(),
            program: "/".into(),
            info: crate::contract::Info::default(),
        };
        let entries = ["a", "b"].map(|name| Entry::Found(Box::new(peer(name))));
        let mut progress = Progress::new(1.0);
        let lines = run_cases(&bench, &cases, 2, &entries, &Run::default(), &mut progress).unwrap();
        let took =
            ["first a", "first b", "second a", "second b", "first b", "first a", "second b", "second a"];
        assert_eq!(*notes.borrow(), took);
        let of: Vec<(&str, u64, u32)> =
            lines.iter().map(|line| (line.peer.as_str(), line.size_bytes, line.rounds)).collect();
        assert_eq!(of, [("a", 1, 2), ("b", 1, 2), ("a", 2, 2), ("b", 2, 2)]);
        let none = run_cases(&bench, &cases, 0, &entries, &Run::default(), &mut progress).unwrap();
        assert!(none.iter().all(|line| matches!(line.outcome, Outcome::Absent(_))) && none.len() == 4);
    }

    /// Is it a failure of the run that this peer has failed?
    fn fails(words: &str, peer: &str) -> bool {
        let mut out = Out::new(&options(words), &[], NO_STOP).unwrap();
        let record = serde_json::json!({
            "workload": "latency", "peer": peer, "version": "", "transport": "udp", "wait": "block",
            "pin": "none", "size_bytes": 64, "rate_hz": 0.0, "qos": "", "case": "", "status": "failed",
            "reason": "it broke", "rounds": 0, "samples": 0, "lost": 0, "out_of_order": 0, "duplicates": 0,
            "corrupt": 0, "round_values": [],
            "run": {"id": "", "started": "", "command": "", "taut": "", "cpu": "", "cores": 1, "kernel": "",
                    "governor": "", "notes": []}
        });
        out.add(vec![serde_json::from_value(record).unwrap()]).unwrap();
        out.has_failed
    }

    #[test]
    fn who_was_named_counts_or_else_what_we_answer_for() {
        assert!(fails("", "taut") && fails("", "floor") && !fails("", "hdds"));
        assert!(fails("--peers hdds", "hdds") && !fails("--peers hdds", "taut"));
        assert!(
            fails("--peers all", "taut") && fails("--peers all", "floor") && !fails("--peers all", "hdds")
        );
        assert!(fails("--peers all,hdds", "hdds") && !fails("--peers all,hdds", "taut"));
    }
}
