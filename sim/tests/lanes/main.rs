//! Lanes beside a network that loses datagrams: whoever reads them has what was written, once and in order.
//!
//! A seed draws one to three writers and readers of one topic on two participants, with KEEP_ALL or KEEP_LAST, limits,
//! LIFESPAN, TRANSIENT_LOCAL and BEST_EFFORT. Readers begin to read lanes, and leave them, while samples and the ends of
//! instances go through them, past them or nowhere, as lanes of few cells are full and some samples long. What is known
//! of a lane is known to one side before the other, links are cut, and readers take, one by one or all at once, or only
//! pull. Then the network heals, and no writer is full for ever, and each reader has what its QoS owes it.
//!
//! A seed that fails says which it is: `LANES_SEED=4711 cargo test -p taut-sim --test lanes` plays it again, with
//! `LANES_SEEDS=1000` those behind it too.

mod check;
mod outlet;
mod world;

use world::World;

/// How often something happens in a seed.
const ACTS: usize = 400;
/// How many are played.
const SEEDS: u64 = 400;

fn play(seed: u64) {
    let mut world = World::new(seed);
    (0..ACTS).for_each(|_| world.act());
    world.heal();
    world.check_room();
    world.drain();
    world.check_next();
    world.check();
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn whatever_way_a_sample_goes_it_comes_once_and_in_order() {
    let one = setting("LANES_SEED");
    let (first, count) = (one.unwrap_or(0), setting("LANES_SEEDS").unwrap_or(one.map_or(SEEDS, |_| 1)));
    for seed in first..first + count {
        let failed = std::panic::catch_unwind(|| play(seed));
        assert!(failed.is_ok(), "repeat with LANES_SEED={seed}");
    }
}
