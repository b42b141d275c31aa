//! `taut doctor --measure`: a loop under SCHED_FIFO that the kernel stops, as its files say, is seen to stop. A binary of its
//! own: whatever else needed the last processor would wait for the loop.

mod measured;

use measured::measure;

/// A time that only who is stopped takes. *Units*: ms.
const STOP_MS: f64 = 20.0;
/// What is kept for others is to be well above that. *Units*: ms of each second.
const KEPT_MS: f64 = 40.0;
/// What begins right before the loop does may end right behind it.
const TRIES: usize = 3;

/// The number in front of the unit.
fn ms(text: &str) -> f64 {
    text.split_once(" ms").and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Does the kernel stop such a loop within a second of its begin? It does by its fair server. The older limit counts beside that
/// in some kernels only, and without it counts by a second that may begin while the loop runs.
fn is_stopped(throttle: &str) -> bool {
    throttle.strip_prefix("the fair server takes ").is_some_and(|rest| ms(rest) >= KEPT_MS)
}

#[test]
fn a_loop_that_the_kernel_stops_is_seen_to_stop() {
    let mut told = Vec::new();
    while told.len() < TRIES {
        let seen = measure();
        let throttle = seen("real-time throttle");
        let Some((_, measured)) = throttle.split_once("measured here: ") else {
            let priority = seen("real-time priority");
            assert!(!priority.ends_with("is granted"), "{priority}, but {throttle}");
            return println!("LEFT OUT: {throttle}");
        };
        if !is_stopped(&throttle) {
            return println!("not known to be stopped here: {throttle}");
        }
        if ms(measured) >= STOP_MS {
            return;
        }
        told.push(throttle);
    }
    panic!("{told:#?}");
}
