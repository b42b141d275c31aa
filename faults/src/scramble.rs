//! A process that overwrites all that it shares with random words, beside a pair that keeps to the rules.

use std::fs::{File, OpenOptions, read_to_string};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::actor::{Actor, Reply};
use crate::sight;

/// Bytes of each lane that are overwritten: header, cells and the first slots.
const REACH: u64 = 1 << 20;
/// How long a scrambler lives at most: then another one joins the pair.
const LIFE: Duration = Duration::from_millis(700);
const SOON: Duration = Duration::from_secs(20);
/// For how much longer scramblers go on while nothing that they do is counted: most of what they write nobody looks at.
const LONGER: Duration = Duration::from_secs(30);
/// Writes between two looks at which memory there is.
const WRITES: usize = 2_000;

/// Overwrites words of this process's own shared memory until `stop`.
pub fn scramble_own(seed: u64, stop: impl Fn() -> bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    // Through this file even a mapping whose descriptor is sealed can be written: it is our own.
    let Ok(memory) = OpenOptions::new().write(true).open("/proc/self/mem") else { return };
    while !stop() {
        let maps = own_maps();
        for _ in 0..WRITES {
            let Some((start, len)) = random.choice(&maps).copied() else { break };
            scramble_one(&mut random, &memory, start, len);
        }
        std::thread::sleep(std::time::Duration::from_micros(random.u64(0..500)));
    }
}

/// Half of the words are random, half near to what is likely there: small numbers.
fn scramble_one(random: &mut fastrand::Rng, memory: &File, start: u64, len: u64) {
    let reach = if random.bool() { 4096 } else { len.min(REACH) };
    let at = start + random.u64(0..reach.min(len) / 8) * 8;
    let value = if random.bool() { random.u64(..) } else { random.u64(0..2_000) };
    let _ = memory.write_at(&value.to_ne_bytes(), at);
}

/// Start and length of what this process maps to share and to write.
fn own_maps() -> Vec<(u64, u64)> {
    let maps = read_to_string("/proc/self/maps").unwrap_or_default();
    let ours = maps.lines().filter(|line| line.contains("/memfd:taut-") && line.contains(" rw-s "));
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        Some((start, end - start))
    };
    ours.filter_map(range).collect()
}

/// Starts scramblers one after the other beside a pair that has to go on, for so many seconds, and until something of it
/// is counted.
pub fn run(seconds: u64, seed: u64) -> Result<(), String> {
    println!("scramble: for {seconds} s, seed {seed}");
    let mut writer = Actor::start("--writer 1 --reliable --max-samples 64 --blocking-ms 1000");
    let mut reader = Actor::start("--reader --reliable");
    let healthy = |report: &Reply| report.number("received") > 100;
    reader.await_report("the pair is there", SOON, healthy)?;
    let guid = writer.ask("report")?.text("guid").to_owned();
    let mut until = Instant::now() + Duration::from_secs(seconds);
    let latest = until + LONGER;
    let (mut lives, mut broken, mut seed) = (0_u64, 0, seed);
    while Instant::now() < until {
        // A scrambler of every other life is best effort, so that nothing it says may hold up the writer.
        let reliable = if lives % 2 == 0 { "" } else { "--reliable" };
        let part =
            format!("--writer 9 --reader {reliable} --max-samples 16 --scramble {seed} --lease-ms 1000");
        let mut scrambler = Actor::start(&part);
        let life = Instant::now() + LIFE;
        while Instant::now() < life.min(until) && scrambler.wait(Duration::from_millis(20)).is_none() {}
        drop(scrambler);
        (lives, seed) = (lives + 1, seed + 1);
        let before = reader.ask("report")?.number("last_healthy");
        let goes_on = |report: &Reply| report.number("last_healthy") > before;
        let report = reader.await_report("the pair goes on", SOON, goes_on)?;
        broken = report.number("broken").max(broken);
        if broken + report.number("doubts") == 0 && seconds >= 3 {
            until = until.max(Instant::now() + LIFE).min(latest);
        }
    }
    writer.ask("rest")?;
    let sent = writer.ask("report")?;
    let all = |report: &Reply| report.number("last_healthy") >= sent.number("sent");
    let report = reader.await_report("all of the writer has arrived", SOON, all)?;
    println!(
        "  {lives} lives of scramblers; the pair's reader took {} samples, {} of the healthy writer, {} out of \
         order; the reader broke off {broken} lanes at a time and had {} doubts, the writer {} doubts and {} \
         refused writes",
        report.number("received"),
        sent.number("sent"),
        report.number("disorder"),
        report.number("doubts"),
        sent.number("doubts"),
        sent.number("refused"),
    );
    let right = report.text("healthy") == format!("{guid}:0");
    let lane = sight::reads_foreign_lane(reader.pid());
    writer.end()?;
    reader.end()?;
    match () {
        () if !right => Err("a wrong sample of the healthy writer was taken".to_owned()),
        () if report.number("disorder") > 0 => {
            Err("samples of the healthy writer are out of order".to_owned())
        }
        () if !lane => Err("the pair no longer shares memory".to_owned()),
        () if broken + report.number("doubts") == 0 && seconds >= 3 => Err("nothing was counted".to_owned()),
        () => Ok(()),
    }
}
