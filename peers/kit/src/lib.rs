//! What the adapters of `taut perf` that are written in Rust share: `peers/README.md` as code.
//!
//! Owns the command line, the lines to and from the driver, the clock, the pacing, the table of times and
//! the loops of the roles. An adapter brings a [`Line`] (how to send a sample and how to wait for one) and
//! gets all roles of two processes from [`roles`]; who is called back instead gets them from [`called`].
//! [`fields`] makes samples of structs that carry the middleware's own attributes, [`packed`] of bytes.
#![forbid(unsafe_code)]

pub mod called;
pub mod clock;
pub mod coding;
pub mod control;
pub mod fields;
pub mod line;
pub mod local;
pub mod options;
pub mod packed;
pub mod ping;
pub mod roles;
pub mod schedule;
pub mod table;
pub mod tally;

pub use control::{Control, Stop};
pub use line::{Ack, Line, Payload, Stamp};
pub use options::{Options, Role};

/// The whole `main` of an adapter: `info` is printed for the role `info`, all else goes to `play`, whose
/// answer is the `done` line or why there is none.
pub fn adapter(
    info: &serde_json::Value,
    play: impl FnOnce(&Options, &Control) -> Result<serde_json::Value, Stop>,
) -> std::process::ExitCode {
    let begin_ns = clock::now_ns();
    let options = options::parse(info);
    if options.role == Role::Info {
        // It asks nothing of the driver: stdin may have ended already.
        println!("{info}");
        return std::process::ExitCode::SUCCESS;
    }
    // By default the kernel lets a sleep be 50 us late, which an open loop would show as a late send.
    // Threads that are made later take it over. Refused, the pace is that much coarser.
    let _ = nix::sys::prctl::set_timerslack(1);
    let control = Control::start(begin_ns);
    control.end(caught(|| play(&options, &control)))
}

/// A middleware that panics has failed: that is said as everything else is.
fn caught(play: impl FnOnce() -> Result<serde_json::Value, Stop>) -> Result<serde_json::Value, Stop> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(Stop::Failed(format!("panicked: {text}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_with_its_reason() {
        let number = 8;
        let ended = caught(|| panic!("the index is {number}"));
        assert!(matches!(ended, Err(Stop::Failed(reason)) if reason == "panicked: the index is 8"));
        let ended = caught(|| panic!("fixed"));
        assert!(matches!(ended, Err(Stop::Failed(reason)) if reason == "panicked: fixed"));
    }
}
