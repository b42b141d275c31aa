//! What the executor's threads tell each other, under loom: short programs of writers and drivers, run in every
//! order that threads and the memory model allow.
//!
//! `scripts/test-mem.sh loom` runs them; without `--cfg loom` the crate is empty. It is one of its own so that
//! only these few files of crates/exec and crates/lock are built with loom's atomics, [`sync`], in place of the
//! machine's.
#![cfg(all(loom, test))]
#![forbid(unsafe_code)]
// The files have more to them than the models use.
#![allow(unused)]

#[path = "../../src/driver"]
mod driver {
    pub(crate) mod holding;
    pub(crate) mod news;
    pub(crate) mod role;
}
#[path = "../../src/lanes"]
mod lanes {
    pub(crate) mod matched;
    pub(crate) mod quiet;
}
mod sync;
#[path = "../../../lock/src/word.rs"]
mod word;
#[path = "../../src/write"]
mod write {
    pub(crate) mod burst;
    pub(crate) mod left;
}

mod followed_matches;
mod held_samples;
mod inheriting_lock;
mod kernel;
mod left_writes;
mod looks_at_doors;
mod standing_by;

/// How often loom takes the processor from a thread that could go on, if `LOOM_MAX_PREEMPTIONS` does not say.
/// One more multiplies the time by about ten; with fewer, models miss faults that were put in.
const PREEMPTIONS: usize = 4;

fn explore(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 20_000;
    builder.check(program);
}
