//! What neither a match nor its end tells of the pairs with a neighbour: an endpoint that was deleted, and one pair too many.
//!
//! The protocol tells nothing to an endpoint that is deleted, so whoever deletes one calls here, without the token. Owns
//! nothing, and tells the other side only what that hears of by nothing else.

use taut_base::Guid;
use taut_port_shm::Message;

use crate::executor::Inner;
use crate::lanes::local::{NO_ROOM, why_refused};
use crate::lanes::neighbours::Neighbour;
use crate::lanes::pairs::Pair;
use crate::lanes::path::Who;

impl Inner {
    /// A local endpoint was deleted: what it was joined with, or about to be, is not kept. A neighbour may never match it,
    /// and then hears of it by this alone.
    pub fn end_joins_of(&self, endpoint: Guid) {
        self.neighbours.wanted.lock().retain(|_, pairs| {
            pairs.retain(|(writer, _)| *writer != endpoint);
            !pairs.is_empty()
        });
        self.neighbours.reasons.forget_pairs_of(endpoint);
        let known: Vec<_> = self.neighbours.known.lock().values().cloned().collect();
        for neighbour in known {
            for (writer, reader) in neighbour.pairs.take_of(endpoint) {
                self.say(&neighbour, &Message::End { writer, reader }, None);
            }
        }
    }

    /// There is no room for one more pair with a neighbour: our lane is not offered, or its lane not taken. Both sides tell
    /// why.
    pub fn refuse_room(&self, with: &Neighbour, (writer, reader): Pair) {
        self.tell_no_room(with, (writer, reader));
        self.say(with, &Message::Refuse { writer, reader, reason: NO_ROOM }, None);
    }

    /// A neighbour has no room for a pair: it refuses our lane, or says so to our reader in place of an offer.
    pub fn on_no_room(&self, from: &Neighbour, (writer, reader): Pair, was_there: bool) {
        let is_ours = || self.peek(|core| core.participant.core().local_reader(reader).is_some());
        if was_there || from.prefix() == Some(writer.prefix) && is_ours() {
            self.tell_no_room(from, (writer, reader));
        }
    }

    /// The log says so once of all that are too many.
    fn tell_no_room(&self, neighbour: &Neighbour, (writer, reader): Pair) {
        self.neighbours.doubt();
        let why = why_refused(NO_ROOM);
        self.neighbours.complain(neighbour.prefix().map(Who::Participant), &why);
        self.neighbours.reasons.note(Who::Pair(writer, reader), why);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};
    use std::time::Instant;

    use taut_base::{EntityId, GuidPrefix, Time};
    use taut_mem::lane::Lane;
    use taut_qos::ResourceLimits;

    use super::*;
    use crate::executor_tests::own_domain;
    use crate::lanes::neighbours_tests::{LIMIT, Pair as Ends, start_here};
    use crate::lanes::pairs::{PAIRS, Stage};
    use crate::{Executor, SamplePath};

    fn find(at: &Executor, other: &Executor) -> Arc<Neighbour> {
        at.inner.neighbours.find(other.inner.prefix).unwrap()
    }

    fn has(neighbour: &Neighbour, pair: Pair) -> bool {
        neighbour.pairs.is(pair, |_| true)
    }

    /// A pair that is joined, and a second writer whose lane waits at the reader's participant, as that has not heard of the
    /// writer yet.
    struct Waiting {
        pair: Ends,
        /// As the writers' participant sees the other, and the reader's.
        far: Arc<Neighbour>,
        near: Arc<Neighbour>,
        lane: Weak<Lane>,
    }

    impl Waiting {
        fn new() -> Waiting {
            let mut pair = Ends::new();
            pair.drive_into_lane(&mut 0);
            let (far, near) = (find(&pair.near, &pair.far), find(&pair.far, &pair.near));
            pair.add_writer();
            pair.near.run_once(Some(Time(0))).unwrap();
            let mut lane = Weak::new();
            pair.far.inner.listen(&near);
            assert!(near.pairs.is(pair.guids(), |stage| {
                let Stage::Waiting(_, waits) = stage else { return false };
                lane = Arc::downgrade(waits);
                true
            }));
            Waiting { pair, far, near, lane }
        }

        fn is_mapped(&self) -> bool {
            self.lane.strong_count() > 0
        }
    }

    #[test]
    fn a_lane_that_waits_for_a_match_goes_with_its_writer() {
        let waiting = Waiting::new();
        let Waiting { pair, far, near, .. } = &waiting;
        let guids = pair.guids();
        pair.near.delete_writer(pair.writer);
        assert!(!has(far, guids) && has(near, guids));
        pair.far.inner.listen(near);
        assert!(!has(near, guids) && !waiting.is_mapped());
    }

    #[test]
    fn a_lane_that_waits_for_a_match_goes_with_its_reader() {
        let waiting = Waiting::new();
        let Waiting { pair, far, near, .. } = &waiting;
        let guids = pair.guids();
        pair.far.delete_reader(pair.reader);
        assert!(!has(near, guids) && !waiting.is_mapped());
        pair.near.delete_writer(pair.writer);
        assert!(!has(far, guids), "and here, though nobody tells that the reader has gone");
    }

    /// Neither hears of the other's end: an endpoint that has gone loses no match.
    #[test]
    fn a_joined_pair_whose_ends_go_together_leaves_nothing() {
        let mut pair = Ends::new();
        pair.drive_into_lane(&mut 0);
        let (far, near) = (find(&pair.near, &pair.far), find(&pair.far, &pair.near));
        let guids = pair.guids();
        assert!(has(&far, guids) && has(&near, guids));
        pair.near.delete_writer(pair.writer);
        pair.far.delete_reader(pair.reader);
        assert!(!has(&far, guids) && !has(&near, guids));
    }

    #[test]
    fn what_is_offered_while_its_writer_goes_is_taken_back() {
        let Waiting { pair, far, near, .. } = Waiting::new();
        let (writer, reader) = pair.guids();
        let is_offered = || far.pairs.is((writer, reader), |stage| matches!(stage, Stage::Offered(_)));
        assert!(far.pairs.remove((writer, reader)) && near.pairs.remove((writer, reader)));
        let unsent = far.unsent.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| pair.near.inner.offer_there(&far, writer, reader));
            let end = Instant::now() + LIMIT;
            while !is_offered() {
                assert!(Instant::now() < end, "it is about to be offered");
                std::thread::yield_now();
            }
            // As by who deletes the writer, who has told the other side already.
            far.pairs.take_of(writer);
            drop(unsent);
        });
        pair.far.inner.listen(&near);
        assert!(!has(&near, (writer, reader)));
    }

    #[test]
    fn what_comes_while_its_reader_goes_is_not_kept() {
        let Waiting { pair, near, lane, .. } = Waiting::new();
        let guids = pair.guids();
        let offered = lane.upgrade().unwrap();
        pair.far.delete_reader(pair.reader);
        pair.far.inner.on_offer(&near, guids, 1, offered);
        assert!(!has(&near, guids) && lane.strong_count() == 0);
    }

    /// As with a neighbour that never says hello.
    #[test]
    fn who_waits_for_a_hello_waits_no_longer_than_its_writer() {
        let mut pair = Ends::new();
        pair.drive_into_lane(&mut 0);
        let (writer, reader) = pair.guids();
        let neighbours = &pair.near.inner.neighbours;
        pair.near.inner.want(writer, reader);
        neighbours.reasons.note(Who::Pair(writer, reader), "some".into());
        pair.near.delete_writer(pair.writer);
        assert!(neighbours.take_wanted(reader.prefix).is_empty());
        assert_eq!(neighbours.reasons.find(Who::Pair(writer, reader)), None);
    }

    #[test]
    fn both_sides_tell_of_a_pair_that_is_one_too_many() {
        let mut pair = Ends::new();
        pair.drive_into_lane(&mut 0);
        let far = find(&pair.near, &pair.far);
        let of = |number| Guid::new(GuidPrefix([4; 12]), EntityId::user(number, true, false));
        assert!((1..PAIRS as u32).all(|number| far.pairs.offer((of(number), of(number))).is_some()));
        pair.add_writer();
        let (writer, reader) = pair.guids();
        let why = why_refused(NO_ROOM);
        assert!(why.contains(&PAIRS.to_string()), "{why}");
        let is_told =
            |of: &Executor, local, other| of.path(local, other) == (SamplePath::Network, Some(why.clone()));
        pair.drive("both tell", |pair| {
            is_told(&pair.near, writer, reader) && is_told(&pair.far, reader, writer)
        });
    }

    #[test]
    fn who_matches_later_than_a_writer_of_its_process_joins_then() {
        let domain_id = own_domain();
        let [near, far] = [(); 2].map(|()| start_here(domain_id, true));
        let mut pair = Ends::between(near, far, ResourceLimits::default());
        pair.drive_into_lane(&mut 0);
        pair.add_writer();
        pair.near.run_once(Some(Time(0))).unwrap();
        let (writer, reader) = pair.guids();
        let is_joined = |pair: &Ends| pair.near.path(writer, reader).0 == SamplePath::Process;
        assert!(!is_joined(&pair), "the other one has not heard of it");
        pair.drive("it has joined", |pair| is_joined(pair));
    }
}
