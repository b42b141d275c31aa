//! A reader that asks again and again for what it was sent. RTPS 2.5 §8.4.9.2.
//!
//! One that is full throws away what it gets, and some ask for it with each heartbeat, of which one follows each answer: the
//! two would go on as fast as the network does. So who asks only for what has left since it last had more is answered
//! twice, as a repair may be lost, and then ever more rarely.

use taut_base::{Duration, SequenceNumber, SequenceNumberSet, Time};

use crate::limits;

/// What a reader was sent in vain.
#[derive(Default)]
pub(super) struct Vain {
    /// It had all before this.
    base: SequenceNumber,
    /// Since then it has asked for what is up to here.
    asked_to: SequenceNumber,
    /// And so often for that again.
    times: u32,
    /// What is asked for again before this is not answered.
    rests_until: Option<Time>,
}

impl Vain {
    /// A reader asks. Returns what is to be sent. `waits`: it has not been sent all yet that it asked for before.
    pub fn admit(&mut self, now: Time, set: &SequenceNumberSet, waits: bool) -> SequenceNumberSet {
        if set.base() != self.base {
            *self = Vain { base: set.base(), ..Vain::default() };
        }
        let is_again = set.iter().next().is_some_and(|first| first <= self.asked_to);
        let mut admitted = *set;
        if is_again && !waits {
            admitted = self.admit_again(now, set);
        }
        self.asked_to = set.iter().last().unwrap_or(SequenceNumber::ZERO).max(self.asked_to);
        admitted
    }

    #[cold]
    fn admit_again(&mut self, now: Time, set: &SequenceNumberSet) -> SequenceNumberSet {
        if self.rests_until > Some(now) {
            let mut new = SequenceNumberSet::new(set.base());
            set.iter().filter(|number| *number > self.asked_to).for_each(|number| _ = new.insert(number));
            return new;
        }
        self.times = self.times.saturating_add(1);
        let rests = self.times.checked_sub(limits::VAIN_ANSWERS).map(|more| {
            let factor = 1_i64.checked_shl(more).unwrap_or(i64::MAX);
            Duration(limits::VAIN_REST.0.saturating_mul(factor)).min(limits::ANSWER_REPEAT)
        });
        self.rests_until = rests.map(|rest| now + rest);
        *set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(base: i64, numbers: impl IntoIterator<Item = i64>) -> SequenceNumberSet {
        let mut set = SequenceNumberSet::new(SequenceNumber(base));
        numbers.into_iter().for_each(|number| assert!(set.insert(SequenceNumber(number))));
        set
    }

    fn at(ms: i64) -> Time {
        Time(0) + Duration::from_millis(ms)
    }

    #[test]
    fn who_throws_away_what_it_gets_is_answered_ever_more_rarely() {
        let (mut vain, asked) = (Vain::default(), set(5, 5..8));
        let mut answered = Vec::new();
        for ms in 0..500 {
            if vain.admit(at(ms), &asked, false) == asked {
                answered.push(ms);
            }
        }
        assert_eq!(answered, [0, 1, 2, 12, 32, 72, 152, 252, 352, 452]);
        // What it has not been sent is sent at once, and so is all once it has more.
        assert_eq!(vain.admit(at(500), &set(5, 5..10), false), set(5, 8..10));
        assert_eq!(vain.admit(at(501), &set(6, 6..10), false), set(6, 6..10));
        assert_eq!(vain.admit(at(502), &set(6, 6..10), false), set(6, 6..10));
    }

    #[test]
    fn what_is_asked_for_again_while_it_waits_to_be_sent_is_not_in_vain() {
        let (mut vain, asked) = (Vain::default(), set(5, 5..8));
        (0..100).for_each(|ms| assert_eq!(vain.admit(at(ms), &asked, true), asked));
        (100..103).for_each(|ms| assert_eq!(vain.admit(at(ms), &asked, ms == 100), asked));
        assert_eq!(vain.admit(at(103), &asked, false), set(5, []));
    }
}
