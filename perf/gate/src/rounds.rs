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

/// Rounds behind a pause before the one that counts. What the clock makes due may come two datagrams at a time, and a
/// port reads bursts then, which cost 237 instructions more, until eight in a row were of one. Fewer let it depend on how
/// busy the machine is whether that counts; more let the clock make something due again.
const SETTLED_BY: u64 = 10;

/// Counts single rounds, each behind a pause and some rounds that do not count: what the clock makes due happens there.
/// Returns how many rounds there were.
pub fn count_with_pauses(rounds: u64, mut round: impl FnMut(u64), pause: impl Fn()) -> u64 {
    (0..WARM_UP).for_each(&mut round);
    let mut n = WARM_UP;
    for _ in 0..rounds {
        pause();
        let counted = n + SETTLED_BY;
        (n..counted).for_each(&mut round);
        counted_rounds(1, &mut |_| round(counted));
        n = counted + 1;
    }
    n
}
