//! Readers, and whole participants, that come and go while the other process lives.

use std::time::Duration;

use crate::actor::{Actor, Reply};
use crate::sight::Holdings;

/// Samples that each reader takes before it goes: enough that it reads them from the lane.
const LIVES_FOR: u64 = 20;
const WRITER: &str = "--writer 1 --reliable --max-samples 64 --period-us 50 --sizes 16,600,5000";
/// How long the wanted number of cycles may take: some milliseconds each.
const LONGEST: Duration = Duration::from_secs(900);
/// RSS may grow by so much: allocators keep what they have.
const RESIDENT_SLACK_KIB: u64 = 2 << 10;

/// Attaches and detaches a reader `cycles` times, and then makes participants, one after the other.
pub fn run(cycles: u64, participants: u64) -> Result<(), String> {
    println!("attach: {cycles} readers, one after the other");
    attach(&format!("--reader --reliable --anew-after {LIVES_FOR}"), cycles, |reader| {
        Ok(reader.ask("passes")?.number("ReadingSent"))
    })?;
    println!("attach: {participants} participants of one process, one after the other");
    let turns = |reader: &mut Actor| reader.ask("report").map(|report| report.number("turns"));
    attach(&format!("--reader --reliable --turns --anew-after {LIVES_FOR}"), participants, turns)
}

fn attach(part: &str, cycles: u64, count: impl Fn(&mut Actor) -> Result<u64, String>) -> Result<(), String> {
    let mut writer = Actor::start(WRITER);
    let mut reader = Actor::start(part);
    let first = cycles / 10;
    reach(&mut reader, first, &count)?;
    let before = held(&mut writer, &mut reader)?;
    reach(&mut reader, cycles, &count)?;
    let after = held(&mut writer, &mut reader)?;
    let done = count(&mut reader)?;
    let report: Reply = reader.ask("report")?;
    println!("  {done} cycles, {} samples, {} doubts", report.number("received"), report.number("doubts"));
    let mut faults = Vec::new();
    for (who, (before, after)) in ["writer", "reader"].iter().zip(before.iter().zip(&after)) {
        println!("  {who} after {first}: {before:?}");
        println!("  {who} after {done}: {after:?}");
        // The turn that is under way may hold a few more or fewer than the one of the look before.
        if after.descriptors > before.descriptors + 4 {
            faults.push(format!("the {who} has more descriptors"));
        }
        if after.shared_maps > before.shared_maps + 2 || after.maps > before.maps + 12 {
            faults.push(format!("the {who} has more mappings"));
        }
        if after.resident_kib > before.resident_kib + before.resident_kib / 10 + RESIDENT_SLACK_KIB {
            faults.push(format!("the {who} has grown"));
        }
    }
    // The count of cycles runs ahead of the samples by the one that has just begun, and by the look.
    if report.number("received") + 3 * LIVES_FOR < done * LIVES_FOR {
        faults.push("readers went without their samples".to_owned());
    }
    writer.end()?;
    reader.end()?;
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

fn reach(
    reader: &mut Actor,
    cycles: u64,
    count: impl Fn(&mut Actor) -> Result<u64, String>,
) -> Result<(), String> {
    let until = std::time::Instant::now() + LONGEST;
    while count(reader)? < cycles {
        if std::time::Instant::now() > until {
            return Err(format!("{cycles} cycles take longer than {LONGEST:?}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What both hold while nothing is written, so that the reader stays.
fn held(writer: &mut Actor, reader: &mut Actor) -> Result<[Holdings; 2], String> {
    writer.ask("rest")?;
    let alone = |report: &Reply| report.number("matched") == 1;
    writer.await_report("one reader is left", Duration::from_secs(20), alone)?;
    // The participant of a turn that has ended is gone when its connection is closed on both sides.
    std::thread::sleep(Duration::from_millis(300));
    let found = [Holdings::of(writer.pid()), Holdings::of(reader.pid())];
    writer.ask("go")?;
    Ok(found)
}
