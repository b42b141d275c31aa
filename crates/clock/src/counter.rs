//! The processor's counter, and what each thread knows of it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::anchor::{Anchor, Rate, Reading};
use crate::kernel_ns;

/// Says by what the kernel tells the time, "tsc" if by this counter.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The counter and the kernel's clock are read together if that takes no more ticks. Lower and it often does, higher and
/// one is known less exactly by the other.
const TOGETHER: u64 = 2_000;

/// How often that is tried. A thread may have been stopped in between.
const TRIES: usize = 3;

thread_local! {
    static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor::NONE) };
}

/// What is known of the counter's rate, and the rate itself, which is 0 while it is not known.
static RATE: Mutex<Rate> = Mutex::new(Rate::UNKNOWN);
static SCALE: AtomicU64 = AtomicU64::new(0);

/// What time it is. *Units*: ns.
#[inline]
pub(crate) fn now_ns() -> i64 {
    let anchor = ANCHOR.get();
    if anchor.is_any()
        && let Some(ns) = anchor.at(ticks())
    {
        return ns;
    }
    ask_kernel()
}

/// The same by the kernel, to go on from there by the counter.
#[cold]
#[inline(never)]
fn ask_kernel() -> i64 {
    static IS_USABLE: OnceLock<bool> = OnceLock::new();
    if !IS_USABLE.get_or_init(is_usable) {
        return kernel_ns();
    }
    let last = ANCHOR.get();
    let Some(now) = read_both() else { return kernel_ns().max(last.latest()) };
    // Who finds others at it learns from what they do.
    if let Ok(mut rate) = RATE.try_lock() {
        SCALE.store(rate.learn(now), Ordering::Relaxed);
    }
    let next = last.renewed(now, SCALE.load(Ordering::Relaxed));
    ANCHOR.set(next);
    next.begin()
}

/// Both clocks at once. The counter first: so no time of it is before the kernel's, whose timers are not over too early.
fn read_both() -> Option<Reading> {
    (0..TRIES).find_map(|_| {
        let (ticks, ns, after) = (ticks(), kernel_ns(), ticks());
        (after.wrapping_sub(ticks) <= TOGETHER).then_some(Reading { ticks, ns })
    })
}

/// Does the kernel go by the counter, too? Then it is the same for all processors, and steady.
fn is_usable() -> bool {
    cfg!(target_arch = "x86_64") && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// How far it may be from the kernel's clock: what both are read within, and what the kernel's is slewed by. *Units*: ns.
    const SLACK: i64 = 2_000;

    /// Compares it to the kernel's for so long.
    fn compare(time: Duration) {
        let (end, mut last) = (Instant::now() + time, i64::MIN);
        while Instant::now() < end {
            let (before, now, after) = (kernel_ns(), now_ns(), kernel_ns());
            assert!(now + SLACK >= before && now <= after + SLACK, "{before} {now} {after}");
            assert!(now >= last, "back by {} ns", last - now);
            last = now;
        }
    }

    #[test]
    fn it_is_the_kernels_clock() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| compare(Duration::from_millis(300)));
            }
        });
        assert!(!ANCHOR.get().is_any(), "this thread has not asked yet");
        compare(Duration::from_millis(50));
        assert_eq!(ANCHOR.get().is_any(), is_usable());
    }

    #[test]
    fn a_thread_that_sleeps_is_never_before_the_kernels_timer() {
        for us in [100, 900, 1_100, 5_000] {
            let until = kernel_ns() + us * 1_000;
            compare(Duration::from_micros(50));
            std::thread::sleep(Duration::from_nanos((until - kernel_ns()).max(0) as u64));
            let (kernel, now) = (kernel_ns(), now_ns());
            assert!(now >= kernel - SLACK, "{} ns before", kernel - now);
        }
    }
}
