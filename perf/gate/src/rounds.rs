//! The function below which instructions count. The runner knows it by its name.

/// Rounds before the first that counts: pools, tables and histories have grown by then, and the port
/// has settled how it reads. Fewer count growth, more only take time.
pub const WARM_UP: u64 = 200;

/// Does `round` so often. All that happens in here counts, and nothing else does.
#[inline(never)]
pub fn counted_rounds(rounds: u64, round: &mut dyn FnMut(u64)) {
    for n in 0..rounds {
        round(n);
    }
}

/// Warms up, then counts. `round` gets its number, warm-up included.
pub fn warm_and_count(rounds: u64, mut round: impl FnMut(u64)) {
    (0..WARM_UP).for_each(&mut round);
    counted_rounds(rounds, &mut |n| round(WARM_UP + n));
}

/// The same with a pause after each round, which does not count: what the clock makes due happens there.
pub fn count_with_pauses(rounds: u64, mut round: impl FnMut(u64), pause: impl Fn()) {
    (0..WARM_UP).for_each(&mut round);
    for n in WARM_UP..WARM_UP + rounds {
        pause();
        counted_rounds(1, &mut |_| round(n));
    }
}
