//! Targets for a fuzzer: each plays bytes of others into what reads them, one for each parser and one for a pair that is
//! matched.
//!
//! A target panics where something is wrong, and is silent else. `scripts/fuzz.sh` has libFuzzer look for such bytes;
//! `cargo test` plays the seeds, and all that was found once (`finds/`).
#![forbid(unsafe_code)]

mod cdr;
mod discovery;
mod frames;
mod pair;
mod texts;
mod wire;

/// What reads bytes of others.
pub struct Target {
    /// Its name, as `scripts/fuzz.sh` and `finds/` have it.
    pub name: &'static str,
    /// Plays them.
    pub play: fn(&[u8]),
    /// Bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "wire", play: wire::play, seeds: wire::seeds },
    Target { name: "discovery", play: discovery::play, seeds: discovery::seeds },
    Target { name: "cdr", play: cdr::play, seeds: cdr::seeds },
    Target { name: "filter", play: cdr::play_filter, seeds: cdr::filter_seeds },
    Target { name: "texts", play: texts::play, seeds: texts::seeds },
    Target { name: "frames", play: frames::play, seeds: frames::seeds },
    Target { name: "pair", play: pair::play, seeds: pair::seeds },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Takes the first byte away; 0 where there is none.
fn byte(bytes: &mut &[u8]) -> u8 {
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    *first
}

/// Takes so many bytes away, or all there are.
fn some<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    taken
}

/// The lines that came over a simulated network while two participants found each other and one wrote.
fn captured() -> Vec<taut_sim::Captured> {
    let mut pair = taut_sim::Pair::new(1).with_loss(0.1);
    pair.network.capturing = 200;
    pair.reader(taut_qos::Qos::default().reliable().keep_all());
    pair.writer(taut_qos::Qos::default().reliable().keep_all());
    pair.run_until_matched();
    for len in [10, 1_000, 100_000] {
        pair.write(1, len).expect("there is room");
    }
    pair.run_for(taut_base::Duration::from_secs(2));
    std::mem::take(&mut pair.network.captured)
}
