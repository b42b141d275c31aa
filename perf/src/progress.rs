//! What is going on, and how long it still takes: one line on the terminal, nothing elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// Redrawn four times a second: it lives, and costs no CPU time worth naming beside what is measured.
const REDRAW_HZ: u8 = 4;

/// The line.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    planned_s: f64,
    done_s: f64,
}

impl Progress {
    /// For a run that takes about so long.
    pub fn new(planned_s: f64) -> Progress {
        let target = if terminal::draws(&std::io::stderr()) {
            ProgressDrawTarget::stderr_with_hz(REDRAW_HZ)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1_000), target);
        let style =
            ProgressStyle::with_template("{bar:20} {wide_msg}").unwrap_or(ProgressStyle::default_bar());
        bar.set_style(style);
        Progress { bar, start: Instant::now(), planned_s, done_s: 0.0 }
    }

    /// A round begins.
    pub fn show(&self, what: &str) {
        let left = humantime::format_duration(Duration::from_secs(self.left_s() as u64));
        self.bar.set_position((1_000.0 * self.done_s / self.planned_s.max(1e-9)) as u64);
        self.bar.set_message(format!("{left} left  {what}"));
    }

    /// So much of the plan is over.
    pub fn advance(&mut self, planned_s: f64) {
        self.done_s += planned_s;
    }

    /// What is left of the plan at the speed so far.
    pub fn left_s(&self) -> f64 {
        (self.planned_s - self.done_s).max(0.0) * self.pace()
    }

    /// Seconds that a second of the plan takes. Not judged before a tenth of the plan is over.
    pub fn pace(&self) -> f64 {
        if self.done_s < 0.1 * self.planned_s {
            1.0
        } else {
            self.start.elapsed().as_secs_f64() / self.done_s
        }
    }

    /// Since the start.
    pub fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Prints above the line.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
