//! A writer or a reader is killed at each point, round after round, beside a pair that goes on.
//!
//! The pair is one writer and one reader, each a process, that live from the first round to the last. In
//! each round a third process joins one of them: as a reader it takes the healthy writer's samples, as a
//! writer it writes to the healthy reader. It is struck at a point, at one of its first passes.

use std::collections::BTreeMap;
use std::time::Duration;

use taut_mem::fail::Point;

use crate::actor::{Actor, was_struck};
use crate::sight::{self, Holdings, now_ns};
use crate::still::Still;

/// The pair. The writer has so little room that a dead reader holds it up within a few milliseconds.
const WRITER: &str = "--writer 1 --reliable --max-samples 16 --blocking-ms 5000";
const READER: &str = "--reader --reliable";
/// The victims pass every point: they make their endpoints anew, keep more samples than they may hold in
/// place, write faster than is read. Their lease is short, so that a death which no connection tells of, as
/// there is none yet, is known soon too.
const VICTIMS: [(&str, &str); 2] = [
    (
        "writer",
        "--writer 2 --reliable --max-samples 16 --blocking-ms 5000 --period-us 0 --anew-after 400 --lease-ms 500",
    ),
    ("reader", "--reader --reliable --hoard 420 --anew-after 421 --lease-ms 500"),
];
/// How long a victim may take to its point; some need a full hoard.
const TO_THE_POINT: Duration = Duration::from_secs(8);
/// Longest until a death is known: the lease, and time for a machine that is busy.
const KNOWN: Duration = Duration::from_secs(5);
/// Growth of the writer's arena that is no leak, and of the machine's shared memory: others use it too.
const ARENA_SLACK: u64 = 2 << 20;
const SHMEM_SLACK_KIB: u64 = 128 << 10;

/// The pair goes on so soon after a death is known. Lower and the scheduler of a busy machine fails a run,
/// higher and a lock with a timeout of its own would pass.
const LIMIT_US: u64 = 10_000;
/// The writer may know of a death before it is seen that the process has ended.
const AT_ONCE_NS: u64 = 50_000_000;
/// So often a round is played in all while the machine stands still in each. Lower and a machine that does so often fails a
/// run, higher and such a run takes longer.
const PLAYS: usize = 5;
/// Gaps from here on are told with what may be the reason.
const SLOW_US: u64 = 50_000;

/// One role at one point.
type Case = (&'static str, &'static str, Point, u64);

/// What the rounds of all cases have shown.
#[derive(Default)]
struct Found {
    rounds: usize,
    missed: usize,
    gap_us: Vec<u64>,
    next_us: Vec<u64>,
    known_us: Vec<u64>,
    control_gap_us: Vec<u64>,
    write_us: Vec<u64>,
    slow: Vec<String>,
    /// Rounds in which the next sample came later than that, though the threads of the pair ran.
    late: usize,
    /// Rounds that were played again, as the machine stood still.
    again: usize,
    by_point: BTreeMap<String, [u64; 4]>,
}

/// How soon the pair went on.
enum Pace {
    InTime,
    Late,
    /// Late, but for half of the time it could not run.
    StoodStill,
}

/// Kills `rounds` times at each point, or only at the point of this name.
pub fn run(rounds: usize, only: Option<&str>, seed: u64) -> Result<(), String> {
    println!("kill: {rounds} rounds for each point and role, seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let sockets = sight::meeting_points();
    let shmem_before = sight::shmem_kib();
    let mut writer = Actor::start(WRITER);
    let mut reader = Actor::start(READER);
    let still = Still::watch();
    reader.await_report("the pair is there", KNOWN, |report| report.number("received") > 100)?;
    let cases = cases(&mut writer, &mut reader)?;
    let mut found = Found::default();
    // One round of all, then what is held is what is always held.
    let wanted = |case: &&Case| only.is_none_or(|only| format!("{:?}", case.2) == only);
    for case in cases.iter().filter(wanted) {
        round(&mut writer, &mut reader, case, &still, &mut random, &mut Found::default())?;
    }
    settle(&mut writer, &mut reader)?;
    let before = [Holdings::of(writer.pid()), Holdings::of(reader.pid())];
    for _ in 0..rounds {
        for case in cases.iter().filter(wanted) {
            round(&mut writer, &mut reader, case, &still, &mut random, &mut found)?;
        }
        control(&mut writer, &mut reader, &mut found)?;
    }
    settle(&mut writer, &mut reader)?;
    let after = [Holdings::of(writer.pid()), Holdings::of(reader.pid())];
    found.print();
    let report = reader.ask("report")?;
    println!("  survivors before {before:?}");
    println!("  survivors after  {after:?}");
    println!("  shared memory of the machine {shmem_before} KiB before, {} KiB after", sight::shmem_kib());
    let mut faults = found.faults();
    faults.extend(leaks(&before, &after));
    check(&mut faults, report.text("wrong") == "0", "samples with a wrong CRC were taken");
    check(&mut faults, sight::meeting_points() == sockets + 2, "sockets of the dead are left");
    writer.end()?;
    reader.end()?;
    check(&mut faults, sight::shm_files() == 0, "there are files in /dev/shm");
    let grown = sight::shmem_kib().saturating_sub(shmem_before);
    check(&mut faults, grown < SHMEM_SLACK_KIB, "shared memory is left on the machine");
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

fn check(faults: &mut Vec<String>, holds: bool, what: &str) {
    if !holds {
        faults.push(what.to_owned());
    }
}

/// A reader rings a writer that waits just then, which is rare: a victim that was seen to may never do so again.
fn is_by_chance(role: &str, point: Point) -> bool {
    role == "reader" && matches!(point, Point::BeforeRing | Point::Rung)
}

/// Runs both victims to the end in peace: which of them passes which point how often.
fn cases(writer: &mut Actor, reader: &mut Actor) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (role, part) in VICTIMS {
        let mut victim = Actor::start(part);
        // Its second endpoint has been joined, so all that the first does has been done; but for what only a
        // full lane or a full hoard brings.
        let has =
            |passes: &BTreeMap<String, u64>, name: &str, count| passes.get(name).is_some_and(|n| *n >= count);
        let fit = |passes: &BTreeMap<String, u64>| match role {
            "writer" => has(passes, "ReaderLaneSet", 2) && has(passes, "ReadersAwaited", 1),
            _ => has(passes, "ReadingSent", 2) && has(passes, "CopyNamed", 1),
        };
        let until = std::time::Instant::now() + TO_THE_POINT;
        let passes = loop {
            let reply = victim.ask("passes")?;
            let passes: BTreeMap<String, u64> = reply.pairs().map(|(name, n)| (name.to_owned(), n)).collect();
            if fit(&passes) || std::time::Instant::now() > until {
                break passes;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        victim.end()?;
        settle(writer, reader)?;
        let passed = Point::ALL.into_iter().map(|point| (point, passes.get(&format!("{point:?}")).copied()));
        cases.extend(
            passed.filter_map(|(point, passes)| Some((role, part, point, passes.filter(|n| *n > 0)?))),
        );
    }
    let never: Vec<_> =
        Point::ALL.into_iter().filter(|point| !cases.iter().any(|(_, _, one, _)| one == point)).collect();
    println!("  {} points of {}, {} cases", Point::ALL.len() - never.len(), Point::ALL.len(), cases.len());
    if never.is_empty() { Ok(cases) } else { Err(format!("points that nobody passes: {never:?}")) }
}

/// Waits until the pair is alone.
fn settle(writer: &mut Actor, reader: &mut Actor) -> Result<u64, String> {
    let alone = |report: &crate::actor::Reply| report.number("matched") == 1;
    let known = writer.await_report("the writer is alone with its reader", KNOWN, alone)?.number("known");
    reader.await_report("the reader is alone with its writer", KNOWN, alone)?;
    Ok(known)
}

/// One round, which is played again if the machine stood still in it.
fn round(
    writer: &mut Actor,
    reader: &mut Actor,
    case: &Case,
    still: &Still,
    random: &mut fastrand::Rng,
    found: &mut Found,
) -> Result<(), String> {
    let (.., passes) = case;
    // A point that is passed once in a life is struck then, one of a sample at any of the first forty.
    let pass = 1 + random.u64(0..(*passes / 4).clamp(1, 40));
    found.rounds += 1;
    for _ in 0..PLAYS {
        match play(writer, reader, case, pass, still, found)? {
            Pace::InTime => return Ok(()),
            Pace::Late => break,
            Pace::StoodStill => found.again += 1,
        }
    }
    found.late += 1;
    Ok(())
}

fn play(
    writer: &mut Actor,
    reader: &mut Actor,
    (role, part, point, _): &Case,
    pass: u64,
    still: &Still,
    found: &mut Found,
) -> Result<Pace, String> {
    writer.ask("times")?;
    let start = now_ns();
    let mut victim = Actor::start(&format!("{part} --point {point:?} --pass {pass}"));
    let status = victim.wait(TO_THE_POINT);
    let died = now_ns();
    still.longest_us();
    match status {
        Some(status) if was_struck(status) => {}
        Some(status) => return Err(format!("{role} at {point:?}: ended by {status}: {}", victim.log())),
        None if is_by_chance(role, *point) => {}
        None => found.missed += 1,
    }
    drop(victim);
    let known = settle(writer, reader).map_err(|why| format!("{role} at {point:?}, pass {pass}: {why}"))?;
    // A reader's death is known when the writer has lost it; of a writer's death the pair needs no news.
    // What was lost long before its end was a victim that did not run for its lease.
    let known = if *role == "reader" { known.max(died.saturating_sub(AT_ONCE_NS)) } else { died };
    let gap = await_next(reader, start, known)?;
    let (gap_us, next_us) = (gap.number("gap_us"), gap.number("next_us"));
    found.gap_us.push(gap_us);
    found.next_us.push(next_us);
    let (wrote, read) = (writer.ask("times")?, reader.ask("times")?);
    let write_us = wrote.number("most") / 1_000;
    let pauses_us = [wrote.number("pause") / 1_000, read.number("pause") / 1_000];
    // A thread of the pair, or a processor, that did not run for half of the time is no fault of the pair.
    let still_us = still.longest_us();
    let paused_us = pauses_us.into_iter().fold(still_us, u64::max);
    let pace = match next_us > LIMIT_US {
        true if paused_us < next_us / 2 => Pace::Late,
        true => Pace::StoodStill,
        false => Pace::InTime,
    };
    let known_us = known.saturating_sub(died) / 1_000;
    let report = reader.ask("report")?;
    if report.number("out_of_order") > 0 {
        let strange = report.text("strange");
        return Err(format!(
            "{role} at {point:?}, pass {pass}: a sample was lost, late or came twice: {strange}"
        ));
    }
    if gap_us > SLOW_US {
        found.slow.push(format!(
            "{role} {point:?}, pass {pass}: gap {gap_us} us, longest write {write_us} us, threads of writer and \
             reader paused for {pauses_us:?} us, the machine for {still_us} us, death known after {known_us} us"
        ));
    }
    found.known_us.push(known_us);
    found.write_us.push(write_us);
    let [rounds, gap, next, write] = found.by_point.entry(format!("{role} {point:?}")).or_default();
    *rounds += 1;
    (*gap, *next, *write) = (gap_us.max(*gap), next_us.max(*next), write_us.max(*write));
    Ok(pace)
}

/// Waits for the pair's next sample after the death.
fn await_next(reader: &mut Actor, start: u64, known: u64) -> Result<crate::actor::Reply, String> {
    let until = std::time::Instant::now() + KNOWN;
    loop {
        let gap = reader.ask(&format!("gap {start} {known}"))?;
        if gap.number("next_us") > 0 {
            return Ok(gap);
        }
        if std::time::Instant::now() > until {
            return Err("the pair does not go on".to_owned());
        }
    }
}

/// The same look at the pair while nobody dies, for as long as a round takes.
fn control(writer: &mut Actor, reader: &mut Actor, found: &mut Found) -> Result<(), String> {
    let start = now_ns();
    std::thread::sleep(Duration::from_millis(60));
    settle(writer, reader)?;
    found.control_gap_us.push(await_next(reader, start, now_ns())?.number("gap_us"));
    Ok(())
}

fn leaks(before: &[Holdings; 2], after: &[Holdings; 2]) -> Vec<String> {
    let mut faults = Vec::new();
    for (who, (before, after)) in ["writer", "reader"].iter().zip(before.iter().zip(after)) {
        let arena = after.lane_bytes <= before.lane_bytes + before.lane_bytes / 4 + ARENA_SLACK;
        check(&mut faults, arena, &format!("the arena of the {who} grew"));
        check(
            &mut faults,
            after.descriptors <= before.descriptors,
            &format!("the {who} has more descriptors"),
        );
        check(
            &mut faults,
            after.shared_maps <= before.shared_maps,
            &format!("the {who} maps more shared memory"),
        );
        check(&mut faults, after.maps <= before.maps + 8, &format!("the {who} has more mappings"));
    }
    faults
}

impl Found {
    fn print(&mut self) {
        let Found { rounds, missed, .. } = *self;
        println!("  {rounds} rounds; in {missed} the point was not reached");
        for (what, values) in [
            ("longest gap of the pair in a round", &mut self.gap_us),
            ("its longest write in a round", &mut self.write_us),
            ("the same while nobody dies", &mut self.control_gap_us),
            ("next sample after the death is known", &mut self.next_us),
            ("from death to its being known", &mut self.known_us),
        ] {
            values.sort_unstable();
            let part =
                |permille: usize| values.get(values.len().saturating_sub(1) * permille / 1_000).copied();
            let [median, p99, most] = [500, 990, 1_000].map(|permille| part(permille).unwrap_or(0));
            println!("  {what}: median {median} us, p99 {p99} us, longest {most} us");
        }
        println!(
            "  rounds in which the pair went on after more than {LIMIT_US} us, though it could run: {}",
            self.late
        );
        println!("  rounds that were played again, as the machine stood still: {}", self.again);
        println!("  rounds with a gap above {SLOW_US} us: {}", self.slow.len());
        self.slow.iter().take(20).for_each(|line| println!("    {line}"));
        for (case, [rounds, gap_us, next_us, write_us]) in &self.by_point {
            println!(
                "    {case}: {rounds} rounds, longest gap {gap_us} us, next sample within {next_us} us, longest \
                 write {write_us} us"
            );
        }
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let late = self.late;
        check(&mut faults, late * 100 <= self.rounds, &format!("in {late} rounds the pair went on late"));
        check(&mut faults, self.missed * 50 <= self.rounds, "too many victims did not reach their point");
        faults
    }
}
