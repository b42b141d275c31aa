//! How long answers take, and so how long to wait for one before it counts as lost. RTPS 2.5 §8.4.
//!
//! Knows only how long answers took: who asked, and what, its owner knows.

use taut_base::Duration;

use crate::limits;

/// How long answers take at present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers(Duration);

impl Answers {
    /// None has come; the first are believed to take this long.
    pub const fn taking(time: Duration) -> Answers {
        Answers(time)
    }

    /// One has come, so long after it was first asked for. A longer one counts soon, but not at once, as the first
    /// answer may be lost; shorter ones as they go on.
    pub fn note(&mut self, took: Duration) {
        let before = self.0;
        let soon = before.0.saturating_mul(2).saturating_add(limits::NACK_REPEAT.0);
        let took = took.0.min(soon);
        self.0 = Duration(took.max(before.0.saturating_mul(7).saturating_add(took) / 8));
    }

    /// The same for one that was asked for once, where others are asked for again. As these make it longer with each that is
    /// lost, by up to twice, this one makes it shorter by as much.
    pub fn note_once(&mut self, took: Duration) {
        let before = self.0;
        self.note(took);
        let half = before.0.saturating_add(took.0) / 2;
        self.0 = self.0.min(Duration(half.max(took.0)));
    }

    /// How long one may take. What was asked for is not asked for again before.
    pub fn patience(&self) -> Duration {
        self.0.times(2).max(limits::NACK_REPEAT).min(limits::NACK_REPEAT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_soon_and_falls_as_answers_come() {
        let mut answers = Answers::taking(Duration::ZERO);
        assert_eq!(answers.patience(), limits::NACK_REPEAT);
        answers.note(Duration::from_secs(9));
        assert_eq!(answers.patience(), limits::NACK_REPEAT.times(2), "one may have been lost");
        for _ in 0..10 {
            answers.note(Duration::from_millis(80));
        }
        assert_eq!(answers.patience(), Duration::from_millis(160));
        let mut sooner = answers;
        for _ in 0..40 {
            answers.note(Duration::from_micros(100));
        }
        assert_eq!(answers.patience(), limits::NACK_REPEAT);
        for _ in 0..5 {
            sooner.note_once(Duration::from_micros(100));
        }
        assert_eq!(sooner.patience(), limits::NACK_REPEAT);
        sooner.note_once(Duration::from_secs(9));
        assert!(sooner.patience() > limits::NACK_REPEAT.times(2));
    }
}
