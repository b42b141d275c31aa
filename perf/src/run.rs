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
use crate::plan::{self, Plan};
use crate::progress::Progress;
use crate::record::{Outcome, Record, Run};
use crate::session::Trouble;
use crate::{Failure, Stop, Wrong, machine, print, table};

/// All is measured.
const DONE: u8 = 0;
/// A peer that counts has failed.
const FAILED: u8 = 1;
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
    let (scratch, notes) = match namespace::enter(options.net, stop)? {
        Side::Outside(code) => return Ok(code),
        Side::Inside { scratch, notes } => (scratch, notes),
    };
    let catalog = Catalog::search(&options.peer_dir, stop)?;
    let everyone = ["all".to_string()];
    let wanted = if command == "all" && options.peers.is_empty() { &everyone[..] } else { &options.peers };
    let entries = catalog.choose(wanted)?;
    let plan = plan::make(command, options, &entries);
    let bench = Bench::new(stop, catalog, scratch, options.domain_base)?;
    let mut out = Out::new(options, &entries)?;
    let left_out = (!plan.left_out.is_empty())
        .then(|| format!("left out for lack of time: {}", plan.left_out.join(", ")));
    if let Some(left_out) = &left_out {
        eprintln!("taut perf: {left_out}; a larger --budget has it, --quick never");
    }
    let run = machine::describe(notes.into_iter().chain(left_out).collect());
    measure(&bench, &plan, &entries, &run, &mut out)?;
    out.finish()?;
    Ok(match () {
        () if (stop.requested)() => ENDED,
        () if out.has_failed => FAILED,
        () => DONE,
    })
}

/// Runs all cases.
fn measure(bench: &Bench, plan: &Plan, entries: &[Entry], run: &Run, out: &mut Out) -> Result<(), Failure> {
    let planned_s: f64 = plan.cases.iter().map(|case| plan::case_s(case, entries)).sum();
    let trials: usize =
        plan.cases.iter().map(|case| plan::runnable(case, entries) * case.rounds as usize).sum();
    eprintln!(
        "taut perf: {} cases, {} peers, {trials} trials, about {}",
        plan.cases.len(),
        entries.len(),
        humantime::format_duration(Duration::from_secs(planned_s.ceil() as u64))
    );
    let mut progress = Progress::new(planned_s);
    for case in &plan.cases {
        let rounds = affordable(plan, case, entries, &progress);
        if let Err(trouble) = bench.step_aside(case) {
            return Err(Wrong(trouble).into());
        }
        let records = run_case(bench, case, rounds, entries, run, &mut progress);
        progress.suspend(|| out.add(records))?;
        if (bench.stop.requested)() {
            break;
        }
    }
    Ok(())
}

/// How many rounds of a case the budget allows.
fn affordable(plan: &Plan, case: &Case, entries: &[Entry], progress: &Progress) -> u32 {
    let Some(budget_s) = plan.budget_s else { return case.rounds };
    let left_s = budget_s - progress.elapsed_s();
    let share = left_s / progress.left_s().max(1e-9);
    if share >= 1.0 {
        return case.rounds;
    }
    let round_s = plan::case_s(case, entries) / f64::from(case.rounds) * progress.pace();
    if left_s < TOO_LATE * round_s {
        return 0;
    }
    ((f64::from(case.rounds) * share) as u32).max(1)
}

/// All rounds of a case, the peers in turns.
fn run_case(
    bench: &Bench,
    case: &Case,
    rounds: u32,
    entries: &[Entry],
    run: &Run,
    progress: &mut Progress,
) -> Vec<Record> {
    let mut gathered: Vec<Gathered> = entries.iter().map(|entry| Gathered::new(entry, case)).collect();
    if rounds == 0 {
        for peer in gathered.iter_mut().filter(|peer| peer.goes_on()) {
            peer.add(Err(Trouble::Absent("not run: the budget was over".to_string())));
        }
    }
    for round in 0..rounds {
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
                return records(&gathered, case, run);
            }
            peer.add(result);
            progress.advance(case.estimate_s());
        }
    }
    let left_out = case.rounds - rounds;
    progress.advance(plan::case_s(case, entries) * f64::from(left_out) / f64::from(case.rounds));
    records(&gathered, case, run)
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
    json: bool,
    file: Option<BufWriter<File>>,
    /// Those of a workload that is not printed yet.
    lines: Vec<Record>,
    base: Option<String>,
    /// Whose failure is a failure of the run.
    counted: Vec<String>,
    has_failed: bool,
}

impl Out {
    fn new(options: &Options, entries: &[Entry]) -> Result<Out, Wrong> {
        let file = match &options.save {
            Some(path) => {
                let file =
                    File::create(path).map_err(|error| Wrong(format!("{}: {error}", path.display())))?;
                Some(BufWriter::new(file))
            }
            None => None,
        };
        let first_named = options.peers.iter().find(|name| *name != "all").cloned();
        let floor = entries.iter().find(|entry| entry.name() == FLOOR).or(entries.first());
        let base = first_named.or(floor.map(|entry| entry.name().to_string()));
        Ok(Out {
            json: options.json,
            file,
            lines: Vec::new(),
            base: base.filter(|_| entries.len() > 1),
            counted: if options.peers.is_empty() {
                COUNTED.map(String::from).into()
            } else {
                options.peers.clone()
            },
            has_failed: false,
        })
    }

    fn add(&mut self, records: Vec<Record>) -> Result<(), Failure> {
        for record in records {
            let counts = self.counted.contains(&record.peer);
            let has_failed = matches!(record.outcome, Outcome::Failed(_)) || record.failed_rounds > 0;
            self.has_failed |= counts && has_failed;
            let line = serde_json::to_string(&record).map_err(|error| Wrong(error.to_string()))?;
            if let Some(file) = &mut self.file {
                let written = writeln!(file, "{line}").and_then(|()| file.flush());
                written.map_err(|error| Wrong(format!("--save: {error}; make room")))?;
            }
            if self.json {
                print(&format!("{line}\n"))?;
            } else {
                if self.lines.first().is_some_and(|last| last.workload != record.workload) {
                    self.print_table()?;
                }
                self.lines.push(record);
            }
        }
        Ok(())
    }

    fn print_table(&mut self) -> Result<(), Failure> {
        let lines = std::mem::take(&mut self.lines);
        print(&table::render(&lines, self.base.as_deref()))
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
                    "multicast": info.multicast, "loan": info.loan, "daemon": info.daemon, "note": info.note,
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
    print(&(text.join("\n") + "\n"))?;
    Ok(if has_failed { FAILED } else { DONE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::options;

    /// Is it a failure of the run that this peer has failed?
    fn fails(words: &str, peer: &str) -> bool {
        let mut out = Out::new(&options(words), &[]).unwrap();
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
    }
}
