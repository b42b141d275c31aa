//! What a writer knows of one matched reader: what it has acknowledged and what it is owed.
//! RTPS 2.5 §8.4.9.3 (RTPS ReaderProxy).

use std::collections::VecDeque;

use taut_base::{FragmentNumber, FragmentNumberSet, Guid, Locator, SequenceNumber, SequenceNumberSet, Time};

use super::joiners::Joining;
use super::vain::Vain;
use super::window::{Pace, Place};
use crate::count::Count;
use crate::limits;

/// What a writer keeps about one matched reader in another participant.
pub struct ReaderProxy {
    /// The reader.
    pub guid: Guid,
    /// Does it acknowledge?
    pub reliable: bool,
    /// Where it is reached alone.
    pub unicast: Vec<Locator>,
    /// Where it is reached together with others.
    pub multicast: Vec<Locator>,
    /// Changes before this one do not concern it: they were written before the match, and one of
    /// the two sides is volatile.
    pub first_relevant: SequenceNumber,
    /// All changes up to this one are acknowledged.
    pub acked: SequenceNumber,
    /// From this change on it takes from the lane what goes through it.
    pub lane_from: Option<SequenceNumber>,
    /// It has answered a heartbeat. Until then it may not know the writer, and a volatile reader takes up
    /// the stream where the first heartbeat that it hears ends: that one must not cover what was
    /// written since the match.
    pub greeted: bool,
    /// It wants history and cannot ask for what overtakes that: it is sent all in order, alone, and is left out where
    /// fresh changes go until it has what was sent before.
    pub catches_up: bool,
    /// It wants history and asks for it: how far it is with that.
    pub(super) joining: Option<Joining>,
    /// The change that is kept for it until it has it.
    pub(super) taking: Option<SequenceNumber>,
    /// Since when it is sent one large change after the other, alone, and left out where fresh changes go.
    pub(super) apart: Option<Time>,
    /// How often it has asked for a heartbeat as if it had heard none.
    pub deaf: u32,
    /// It is owed a heartbeat that it must answer.
    pub heartbeat_due: bool,
    /// It is among those that [get a turn](super::turns::Turns).
    pub(super) has_turn: bool,
    /// Changes it is owed whole.
    pub owed: Owed,
    /// Fragments it is owed.
    pub fragments: VecDeque<FragmentJob>,
    /// When its last ACKNACK arrived.
    pub heard: Option<Time>,
    /// When a built-in writer asked it how far it is, and whether for the first time; `None` once it has answered.
    pub(super) asked: Option<(Time, bool)>,
    /// Changes and fragments that were sent to it alone.
    pub sent_again: u64,
    acknack_count: Count,
    /// Since when nothing has come of it but old counts that acknowledge less than it has.
    doubted: Option<Time>,
    repeated_at: Option<Time>,
    vain: Vain,
    nack_frag_count: Count,
    /// Of the first change that is not acknowledged: which, and up to which fragment it is there.
    fragments_acked: (SequenceNumber, FragmentNumber),
    pub(super) pace: Pace,
    /// Of what it has asked for last, how much it misses in a row and how much may still be sent.
    pub(super) missing: usize,
    pub(super) repair_room: usize,
    /// Since when what it is owed waits: until its buffer has room again, or until it asks anew.
    paused: Option<Time>,
    /// Of the last answer, how much it was and up to where; and how much in a row of it is missing again.
    pub(super) answered: usize,
    pub(super) answered_to: Place,
    pub(super) missing_again: usize,
    /// The last fragment that it has asked for as it was offered before it left.
    pub(super) offer_heard: (SequenceNumber, FragmentNumber),
    /// How often in a row it has not answered where the rest of a change waited for that.
    pub(super) silent: u32,
}

/// Changes to be sent (again) to one reader.
#[derive(Default)]
pub enum Owed {
    /// None.
    #[default]
    Nothing,
    /// What its ACKNACKs asked for, as far as it is not acknowledged.
    Requested(SequenceNumberSet),
    /// History, for a reader that has just matched: from the first to the second number.
    Replay(SequenceNumber, SequenceNumber),
}

/// Fragments of one change to be sent to one reader.
pub struct FragmentJob {
    /// The change.
    pub number: SequenceNumber,
    /// The next fragment to send.
    pub next: FragmentNumber,
    /// Only these; all if `None`.
    pub only: Option<FragmentNumberSet>,
}

impl ReaderProxy {
    /// A reader that has just matched.
    pub fn new(guid: Guid, reliable: bool, unicast: Vec<Locator>, multicast: Vec<Locator>) -> ReaderProxy {
        // What is for one that only a group reaches goes there.
        let unicast = if unicast.is_empty() { multicast.clone() } else { unicast };
        ReaderProxy {
            guid,
            reliable,
            unicast,
            multicast,
            first_relevant: SequenceNumber::FIRST,
            acked: SequenceNumber::ZERO,
            lane_from: None,
            greeted: true,
            catches_up: false,
            joining: None,
            taking: None,
            apart: None,
            deaf: 0,
            heartbeat_due: reliable,
            has_turn: false,
            owed: Owed::Nothing,
            fragments: VecDeque::new(),
            heard: None,
            asked: None,
            sent_again: 0,
            acknack_count: Count::default(),
            doubted: None,
            repeated_at: None,
            vain: Vain::default(),
            nack_frag_count: Count::default(),
            fragments_acked: (SequenceNumber::ZERO, 0),
            pace: Pace::new(),
            missing: 0,
            paused: None,
            repair_room: if reliable { limits::WINDOW_BYTES } else { usize::MAX },
            answered: 0,
            answered_to: (SequenceNumber::ZERO, 0),
            missing_again: 0,
            offer_heard: (SequenceNumber::ZERO, 0),
            silent: 0,
        }
    }

    /// An ACKNACK has arrived. Returns whether it is news; `last` is the writer's last number.
    pub fn on_acknack(
        &mut self,
        now: Time,
        set: &SequenceNumberSet,
        count: i32,
        last: SequenceNumber,
    ) -> bool {
        // A base beyond what was written is a lie, whose count is none either. RTPS 2.5 §8.4.15.7 (duplicates).
        if set.base() > last.next() || !self.acknack_count.rises(count) && !self.counts_anew(now, set, count)
        {
            return false;
        }
        // Acknowledgements rise, and the count tells an old one. One that falls is of a reader that has
        // forgotten this writer and found it again (a cut that only it noticed): it starts over.
        self.acked = set.base().max(self.first_relevant).prev();
        let waits = self.waits();
        let mut asked = self.vain.admit(now, set, waits);
        if asked.iter().next().is_some_and(|first| first <= last) {
            self.hear_request();
            // A reader asks once for each: what it has asked for and was not sent yet it is still owed.
            if let Owed::Requested(before) = &self.owed {
                before.iter().filter(|number| *number >= set.base()).for_each(|number| {
                    asked.insert(number);
                });
            }
            self.owed = Owed::Requested(asked);
        }
        if !self.fragments.is_empty() {
            let acked = self.acked;
            self.fragments.retain(|job| job.number > acked);
        }
        true
    }

    /// Is this an ACKNACK of one that has started again under its old name? It counts anew, has less than before, and
    /// has said nothing else for a while: what the network holds back is not that old.
    pub(super) fn has_restarted(&mut self, now: Time, set: &SequenceNumberSet, count: i32) -> bool {
        if self.acknack_count.is_new(count) {
            self.doubted = None;
            return false;
        }
        set.base() <= self.acked && now.since(*self.doubted.get_or_insert(now)) >= limits::RESTART_AFTER
    }

    /// An ACKNACK has an old count. Is it [believed](Count::begins_anew) all the same? One of a built-in writer that has less
    /// than before is of one that [has started again](ReaderProxy::has_restarted), or is old.
    #[cold]
    fn counts_anew(&mut self, now: Time, set: &SequenceNumberSet, count: i32) -> bool {
        let has_less = set.base() <= self.acked;
        !(has_less && self.guid.entity.is_builtin()) && self.acknack_count.begins_anew(now, count)
    }

    /// May a question that changes nothing be answered again? Notes that it is.
    pub fn may_repeat(&mut self, now: Time) -> bool {
        let may = self.repeated_at.is_none_or(|at| now.since(at) >= limits::ANSWER_REPEAT);
        if may {
            self.repeated_at = Some(now);
        }
        may
    }

    /// Has an ACKNACK of it arrived before?
    pub fn has_acknowledged(&self) -> bool {
        self.acknack_count.last.is_some()
    }

    /// A NACK_FRAG has arrived, for a change whose fragments before `next` have left; of the set these are `wanted`.
    /// Returns whether it is news.
    pub(super) fn on_nack_frag(
        &mut self,
        now: Time,
        (number, set, wanted): (SequenceNumber, FragmentNumberSet, FragmentNumberSet),
        count: i32,
        next: FragmentNumber,
    ) -> bool {
        if set.is_empty() || !self.nack_frag_count.is_news(now, count) {
            return false;
        }
        let before = set.base().saturating_sub(1);
        let (known, arrived) = self.fragments_acked;
        self.fragments_acked = (number, if known == number { arrived.max(before) } else { before });
        let mut asked = FragmentNumberSet::new(wanted.base());
        let (mut row, mut next_in_row) = (0_usize, 0);
        for fragment in wanted.iter().take_while(|fragment| *fragment < next) {
            asked.insert(fragment);
            row = if fragment == next_in_row { row.saturating_add(1) } else { 1 };
            next_in_row = fragment.saturating_add(1);
            self.missing = self.missing.max(row);
            if (number, fragment) <= self.answered_to {
                self.missing_again = self.missing_again.max(row);
            }
        }
        if self.missing > 0 {
            self.hear_request();
            self.owe_fragments(number, Some(asked));
        }
        true
    }

    /// So much is sent to it alone, up to here.
    pub(super) fn note_answered(&mut self, to: Place, cost: usize) {
        self.repair_room = self.repair_room.saturating_sub(cost);
        self.answered = self.answered.saturating_add(cost);
        self.answered_to = to;
    }

    /// Up to where it has all.
    pub(super) fn place(&self) -> Place {
        let (number, fragment) = self.fragments_acked;
        (self.acked, if number == self.acked.next() { fragment } else { 0 })
    }

    /// Notes fragments to send; a newer request for the same change takes the older one's place.
    pub fn owe_fragments(&mut self, number: SequenceNumber, only: Option<FragmentNumberSet>) {
        let job = FragmentJob { number, next: only.map_or(1, |set| set.base()), only };
        let has_room = self.fragments.len() < limits::ASSEMBLIES;
        match self.fragments.iter_mut().find(|job| job.number == number) {
            // The whole of it is still on its way: what is missing then is asked for again.
            Some(old) if old.only.is_none() => {}
            Some(old) => *old = job,
            None if has_room => self.fragments.push_back(job),
            None => {}
        }
    }

    /// What it was owed is not sent: it asks again.
    pub(super) fn forget_owed(&mut self) {
        self.owed = Owed::Nothing;
        self.fragments.clear();
    }

    /// As much has been sent as its buffer is believed to hold.
    pub(super) fn pause(&mut self, now: Time) {
        self.paused = Some(now);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Has it had time to empty its buffer, or to say what it misses?
    pub(super) fn may_resume(&self, now: Time) -> bool {
        self.paused.is_some_and(|since| now.since(since) >= limits::HEARTBEAT_FIRST)
    }

    /// It says what it misses: that takes the place of what waited.
    fn hear_request(&mut self) {
        if self.resume() {
            self.forget_owed();
        }
    }

    /// It may be sent as much again. Returns whether that was waited for.
    pub(super) fn resume(&mut self) -> bool {
        self.repair_room = self.pace.limit();
        self.paused.take().is_some()
    }

    /// Is anything to be sent to it alone?
    pub fn is_owed(&self) -> bool {
        self.heartbeat_due || self.waits() && self.paused.is_none()
    }

    /// Has it not been sent all yet that it has asked for, or is to have?
    fn waits(&self) -> bool {
        !matches!(self.owed, Owed::Nothing) || !self.fragments.is_empty()
    }
}

impl FragmentJob {
    /// Is nothing left to send, of `total`?
    pub fn is_done(&self, total: FragmentNumber) -> bool {
        let end = self.only.map_or(total, |set| set.base().saturating_add(set.num_bits()).saturating_sub(1));
        self.next > total.min(end)
    }

    /// The next fragment to send, of `total`; `None` when the job is done.
    pub fn take_next(&mut self, total: FragmentNumber) -> Option<FragmentNumber> {
        while self.next <= total {
            let number = self.next;
            self.next = number.saturating_add(1);
            match &self.only {
                None => return Some(number),
                Some(set) if set.contains(number) => return Some(number),
                Some(set) if number >= set.base().saturating_add(set.num_bits()) => return None,
                Some(_) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::{Duration, EntityId};

    fn proxy() -> ReaderProxy {
        ReaderProxy::new(Guid::UNKNOWN, true, Vec::new(), Vec::new())
    }

    const NOW: Time = Time(1);

    fn acknack(proxy: &mut ReaderProxy, now: Time, base: i64, count: i32) -> bool {
        proxy.on_acknack(now, &SequenceNumberSet::new(SequenceNumber(base)), count, SequenceNumber(9))
    }

    #[test]
    fn an_acknowledgement_counts_once() {
        let mut proxy = proxy();
        assert!(acknack(&mut proxy, NOW, 5, 1));
        assert!(!acknack(&mut proxy, NOW, 7, 1), "a repeated count");
        assert!(!acknack(&mut proxy, NOW, 11, 2), "beyond the last change");
        assert_eq!(proxy.acked, SequenceNumber(4));
        assert!(acknack(&mut proxy, NOW, 3, 3));
        assert_eq!(proxy.acked, SequenceNumber(2), "it has forgotten and starts over");
    }

    #[test]
    fn a_lie_about_what_was_written_leaves_no_count_behind() {
        let mut proxy = proxy();
        assert!(acknack(&mut proxy, NOW, 5, 1));
        assert!(!acknack(&mut proxy, NOW, 11, i32::MAX));
        assert!(acknack(&mut proxy, NOW, 7, 2));
    }

    #[test]
    fn a_count_far_ahead_is_forgotten_once_no_other_follows_it() {
        let mut proxy = proxy();
        let later = |n| NOW + limits::RESTART_AFTER.times(n);
        assert!(acknack(&mut proxy, NOW, 5, 1) && acknack(&mut proxy, NOW, 5, 1 << 30));
        assert!(!acknack(&mut proxy, NOW, 6, 2) && !acknack(&mut proxy, later(1) - Duration(1), 7, 3));
        assert!(acknack(&mut proxy, later(1), 8, 4));
        assert_eq!(proxy.acked, SequenceNumber(7));
        // What is old and comes between new ones is nothing to go by, whenever that is.
        assert!(!acknack(&mut proxy, later(1), 3, 1) && acknack(&mut proxy, later(2), 9, 5));
        assert!(!acknack(&mut proxy, later(3), 3, 1));
        assert_eq!(proxy.acked, SequenceNumber(8));
    }

    #[test]
    fn a_reader_of_a_built_in_writer_that_has_less_is_not_believed_so() {
        let mut proxy = proxy();
        proxy.guid.entity = EntityId::SEDP_PUBLICATIONS_READER;
        let later = NOW + limits::RESTART_AFTER;
        assert!(acknack(&mut proxy, NOW, 5, 1 << 30));
        assert!(
            !acknack(&mut proxy, NOW, 4, 2) && !acknack(&mut proxy, later, 4, 3),
            "another life is found elsewhere"
        );
        assert!(
            !acknack(&mut proxy, later, 6, 4) && acknack(&mut proxy, later + limits::RESTART_AFTER, 6, 5)
        );
    }

    #[test]
    fn a_count_of_fragments_far_ahead_is_forgotten_too() {
        let mut proxy = proxy();
        let mut set = FragmentNumberSet::new(1);
        assert!(set.insert(1));
        let mut asks =
            |now, count| proxy.on_nack_frag(now, (SequenceNumber(1), set, set), count, FragmentNumber::MAX);
        assert!(asks(NOW, 1) && asks(NOW, i32::MAX) && !asks(NOW, 2));
        assert!(asks(NOW + limits::RESTART_AFTER, 3) && asks(NOW + limits::RESTART_AFTER, 4));
    }

    #[test]
    fn jobs_give_what_was_asked_for() {
        let mut set = FragmentNumberSet::new(3);
        [3, 5, 250].into_iter().for_each(|n| assert!(set.insert(n)));
        let mut proxy = proxy();
        assert!(proxy.on_nack_frag(NOW, (SequenceNumber(1), set, set), 1, FragmentNumber::MAX));
        let job = &mut proxy.fragments[0];
        let taken: Vec<_> = std::iter::from_fn(|| job.take_next(100)).collect();
        assert_eq!(taken, [3, 5], "the change has only 100 fragments");
    }
}
