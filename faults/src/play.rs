//! A process that plays a part: a participant with a writer or a reader, or both.
//!
//! It is told what to be by its arguments and asked by lines on its standard input, each of which it answers
//! with one line of `name=value`. It ends when its standard input does, or its parent, or where it is struck.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use nix::sys::signal::Signal;
use taut::{Config, DomainParticipant, Duration, Result};
use taut_mem::fail::{self, Point};

use crate::ends;
use crate::scramble;
use crate::seen::{FILLS, RESTS, Seen, WRITES};
use crate::sight::now_ns;

/// What to be.
#[derive(Args, Clone, Debug, Default)]
pub struct Part {
    #[arg(long, default_value_t = 42)]
    pub domain: u32,
    #[arg(long, value_delimiter = ',', default_value = "lo")]
    pub interface: Vec<String>,
    #[arg(long)]
    pub directory: Option<PathBuf>,
    #[arg(long, default_value_t = 10_000)]
    pub lease_ms: i64,
    /// Has a writer, whose samples say this number.
    #[arg(long)]
    pub writer: Option<u64>,
    /// Has a reader.
    #[arg(long)]
    pub reader: bool,
    /// RELIABLE and KEEP_ALL; else BEST_EFFORT and KEEP_LAST.
    #[arg(long)]
    pub reliable: bool,
    /// The writer's RESOURCE_LIMITS.
    #[arg(long)]
    pub max_samples: Option<u32>,
    #[arg(long, default_value_t = 100)]
    pub blocking_ms: i64,
    /// Lengths of payloads, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "16,600,16,600,30000")]
    pub sizes: Vec<usize>,
    /// The time between two writes.
    #[arg(long, default_value_t = 200)]
    pub period_us: u64,
    /// The reader leaves so many samples in its cache before it takes them all.
    #[arg(long, default_value_t = 0)]
    pub hoard: usize,
    /// Makes its endpoint anew after so many samples.
    #[arg(long)]
    pub anew_after: Option<u64>,
    /// Makes its whole participant anew, too.
    #[arg(long)]
    pub turns: bool,
    /// Groups whose processes may share memory with it.
    #[arg(long, value_delimiter = ',')]
    pub group: Vec<u32>,
    /// Another thread waits for samples of a topic that has none, and so drives the participant.
    #[arg(long)]
    pub drives: bool,
    /// Overwrites all that it shares, by this seed, again and again.
    #[arg(long)]
    pub scramble: Option<u64>,
    /// The point where it is struck.
    #[arg(long)]
    pub point: Option<String>,
    /// And when it is passed for which time.
    #[arg(long, default_value_t = 1)]
    pub pass: u64,
}

impl Part {
    pub fn config(&self) -> Config {
        Config {
            domain_id: self.domain,
            interfaces: self.interface.clone(),
            local_directory: self.directory.clone(),
            local_groups: self.group.clone(),
            lease_duration: Duration::from_millis(self.lease_ms),
            announcement_period: Duration::from_millis(self.lease_ms / 4),
            ..Config::default()
        }
    }
}

/// Plays the part until the standard input ends.
pub fn play(part: &Part) -> Result<()> {
    // Whoever ends the parent leaves nobody behind.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    env_logger::init();
    if let Some(point) = part.point.as_deref().and_then(Point::named) {
        fail::arm(point, part.pass, strike);
    }
    let participant = DomainParticipant::with_config(&part.config())?;
    let seen = Arc::new(Seen::default());
    std::thread::scope(|threads| {
        if let Some(id) = part.writer {
            let (seen, participant) = (&seen, &participant);
            threads.spawn(move || ends::write(part, id, participant, seen));
        }
        if part.reader {
            threads.spawn(|| match part.turns {
                true => ends::read_in_turns(part, &seen),
                false => ends::read(part, &participant, &seen),
            });
        }
        if part.drives {
            threads.spawn(|| ends::wait_in_vain(&participant, &seen));
        }
        if let Some(seed) = part.scramble {
            threads.spawn({
                let seen = &seen;
                move || scramble::scramble_own(seed, || seen.stop.load(Ordering::Relaxed))
            });
        }
        answer(&participant, &seen);
        seen.stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// Ends this process where it stands: nothing is dropped, no handler runs.
fn strike() {
    let _ = nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGKILL);
    // The signal is there when the call returns.
    std::process::abort();
}

fn answer(participant: &DomainParticipant, seen: &Seen) {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split(' ').collect();
        let reply = match words[..] {
            ["report"] => report(participant, seen),
            ["passes"] => passes(),
            ["times"] => seen.times(),
            ["rest"] => seen.set_writing(RESTS),
            ["go"] => seen.set_writing(WRITES),
            ["fill"] => seen.set_writing(FILLS),
            ["gap", from, known] => match (from.parse(), known.parse()) {
                (Ok(from), Ok(known)) => seen.gap(from, known),
                _ => "error=numbers".to_owned(),
            },
            _ => "error=unknown".to_owned(),
        };
        if writeln!(out, "{reply}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
}

fn report(participant: &DomainParticipant, seen: &Seen) -> String {
    let matched = participant.matches().iter().filter(|one| one.refused.is_none()).count();
    let refused = participant.stats().refused;
    let count = |name| refused.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    format!(
        "now={} matched={matched} doubts={} broken={} {}",
        now_ns(),
        count("local_doubts"),
        count("broken_lanes"),
        seen.report()
    )
}

fn passes() -> String {
    let all = Point::ALL.into_iter().map(|point| format!("{point:?}={}", fail::passes(point)));
    all.collect::<Vec<_>>().join(" ")
}
