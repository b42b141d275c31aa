//! The pairs of a writer and a reader that are joined with one neighbour, or about to be, and how far they have come.
//!
//! An answer counts for the offer whose number it repeats, at its turn and once: what is late, comes again or was
//! never asked for changes nothing. Owns what an offer has brought until it is of use.

use std::collections::BTreeMap;
use std::sync::Arc;

use taut_base::Guid;
use taut_lock::Mutex;
use taut_mem::lane::{Feedback, Lane};

/// A writer and a reader.
pub(crate) type Pair = (Guid, Guid);

/// Pairs with one neighbour; those beyond take their samples by UDP. Lower and two participants of many topics share
/// less, higher and a neighbour takes more of the 65,530 mappings that a process has (vm.max_map_count).
pub(crate) const PAIRS: usize = 1_024;

/// How far a pair has come.
pub(crate) enum Stage {
    /// Our writer's lane was offered, by this number.
    Offered(u64),
    /// The feedback of its reader is looked at.
    Begun,
    /// Its writer's lane, offered by this number, waits for our reader's match.
    Waiting(u64, Arc<Lane>),
    /// Our reader attaches when the offer of this number begins.
    Accepted(u64, Arc<Lane>, Arc<Feedback>),
    /// Our reader reads the lane.
    Reading,
}

/// All of one neighbour.
#[derive(Default)]
pub(crate) struct Pairs(Mutex<Table>);

#[derive(Default)]
struct Table {
    stages: BTreeMap<Pair, Stage>,
    last_offer: u64,
}

impl Table {
    /// `false`: there is no room for one more.
    fn set(&mut self, pair: Pair, stage: Stage) -> bool {
        let has_room = self.stages.len() < PAIRS || self.stages.contains_key(&pair);
        if has_room {
            self.stages.insert(pair, stage);
        }
        has_room
    }
}

impl Pairs {
    /// Our lane is about to be offered: returns by which number, unless there is no room.
    pub fn offer(&self, pair: Pair) -> Option<u64> {
        let mut table = self.0.lock();
        table.last_offer += 1;
        let number = table.last_offer;
        table.set(pair, Stage::Offered(number)).then_some(number)
    }

    /// Our offer was accepted. Is it the current one, and for the first time?
    pub fn begin(&self, pair: Pair, number: u64) -> bool {
        let mut table = self.0.lock();
        let stage = table.stages.get_mut(&pair);
        let due = stage.filter(|stage| matches!(stage, Stage::Offered(offered) if *offered == number));
        due.map(|stage| *stage = Stage::Begun).is_some()
    }

    /// A lane was offered, which waits for the match. `false`: there is no room.
    pub fn note_offer(&self, pair: Pair, number: u64, lane: Arc<Lane>) -> bool {
        self.0.lock().set(pair, Stage::Waiting(number, lane))
    }

    /// Our reader has matched: returns the number of the offer that has waited for it, if one has.
    pub fn accept(&self, pair: Pair, feedback: Arc<Feedback>) -> Option<u64> {
        let mut table = self.0.lock();
        let stage = table.stages.get_mut(&pair)?;
        let Stage::Waiting(number, lane) = stage else { return None };
        let (number, lane) = (*number, Arc::clone(lane));
        *stage = Stage::Accepted(number, lane, feedback);
        Some(number)
    }

    /// What we accepted begins: what our reader attaches to, if that is the current offer, and for the first time.
    pub fn attach(&self, pair: Pair, number: u64) -> Option<(Arc<Lane>, Arc<Feedback>)> {
        let mut table = self.0.lock();
        let stage = table.stages.get_mut(&pair)?;
        if !matches!(stage, Stage::Accepted(accepted, ..) if *accepted == number) {
            return None;
        }
        match std::mem::replace(stage, Stage::Reading) {
            Stage::Accepted(_, lane, feedback) => Some((lane, feedback)),
            _ => None,
        }
    }

    /// Is the pair there, and so far?
    pub fn is(&self, pair: Pair, so_far: impl FnOnce(&Stage) -> bool) -> bool {
        self.0.lock().stages.get(&pair).is_some_and(so_far)
    }

    /// The pair is no longer joined. Returns whether it was, or was about to be.
    pub fn remove(&self, pair: Pair) -> bool {
        let removed = self.0.lock().stages.remove(&pair);
        removed.is_some()
    }

    /// None of an endpoint is joined any more, which was deleted here. Returns those of which the other side is to be told:
    /// whose lane waits there, or whose reader is waited for. Where both have matched discovery tells of the end.
    pub fn take_of(&self, endpoint: Guid) -> Vec<Pair> {
        let mut told = Vec::new();
        self.0.lock().stages.retain(|pair, stage| {
            let is_of = pair.0 == endpoint || pair.1 == endpoint;
            if is_of && matches!(stage, Stage::Offered(..) | Stage::Accepted(..)) {
                told.push(*pair);
            }
            !is_of
        });
        told
    }

    /// None is any more.
    pub fn take_all(&self) -> impl Iterator<Item = Pair> + use<> {
        std::mem::take(&mut self.0.lock().stages).into_keys()
    }
}

#[cfg(test)]
mod tests {
    use taut_base::{EntityId, GuidPrefix};
    use taut_mem::Region;
    use taut_mem::lane::FEEDBACK_LEN;

    use super::*;

    fn pair(number: u32) -> Pair {
        let prefix = GuidPrefix([4; 12]);
        let writer = Guid::new(prefix, EntityId::user(number, true, false));
        (writer, Guid::new(prefix, EntityId::user(number, false, false)))
    }

    fn lane() -> Arc<Lane> {
        Arc::new(Lane::create(Region::heap(Lane::size(2, 0)), 2))
    }

    fn feedback() -> Arc<Feedback> {
        Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap())
    }

    #[test]
    fn an_accept_counts_for_the_current_offer_and_once() {
        let pairs = Pairs::default();
        let earlier = pairs.offer(pair(1)).unwrap();
        assert!(pairs.remove(pair(1)));
        assert!(!pairs.begin(pair(1), earlier), "nothing is offered");
        let current = pairs.offer(pair(1)).unwrap();
        assert!(!pairs.begin(pair(1), earlier) && !pairs.begin(pair(2), current));
        assert!(pairs.begin(pair(1), current));
        assert!(!pairs.begin(pair(1), current), "it has begun");
    }

    #[test]
    fn a_begin_counts_for_what_was_accepted_last_and_once() {
        let pairs = Pairs::default();
        assert_eq!(pairs.accept(pair(1), feedback()), None, "nothing is offered");
        for number in [1, 2] {
            assert!(pairs.note_offer(pair(1), number, lane()));
            assert_eq!(pairs.accept(pair(1), feedback()), Some(number));
            assert_eq!(pairs.accept(pair(1), feedback()), None, "it is accepted");
        }
        assert!(pairs.attach(pair(1), 1).is_none());
        assert!(pairs.attach(pair(1), 2).is_some());
        assert!(pairs.attach(pair(1), 2).is_none(), "it is attached");
    }

    #[test]
    fn of_an_endpoint_that_is_deleted_the_other_side_is_told_what_it_keeps_or_waits_for() {
        let pairs = Pairs::default();
        let [offered, begun, waiting, accepted, reading, other] = [1, 2, 3, 4, 5, 6].map(pair);
        let number = [offered, begun].map(|pair| pairs.offer(pair).unwrap())[1];
        assert!(pairs.begin(begun, number));
        for pair in [waiting, accepted, reading, other] {
            assert!(pairs.note_offer(pair, 1, lane()));
        }
        assert!([accepted, reading].iter().all(|pair| pairs.accept(*pair, feedback()).is_some()));
        assert!(pairs.attach(reading, 1).is_some());
        for pair in [offered, begun, waiting, accepted, reading] {
            let is_told = [offered, accepted].contains(&pair);
            assert_eq!(
                pairs.take_of(if is_told { pair.0 } else { pair.1 }),
                Vec::from_iter(is_told.then_some(pair))
            );
        }
        assert!(pairs.take_all().eq([other]));
    }

    #[test]
    fn a_neighbour_has_so_many_pairs_and_no_more() {
        let (pairs, lane, all) = (Pairs::default(), lane(), PAIRS as u32);
        assert!((0..all).all(|number| pairs.note_offer(pair(number), 1, Arc::clone(&lane))));
        assert!(!pairs.note_offer(pair(all), 1, Arc::clone(&lane)) && pairs.offer(pair(all)).is_none());
        assert!(pairs.note_offer(pair(0), 2, Arc::clone(&lane)), "one in place of an earlier one");
        assert!(pairs.remove(pair(0)) && pairs.offer(pair(all)).is_some());
        assert_eq!(pairs.take_all().count(), PAIRS);
        drop(pairs);
        assert_eq!(Arc::strong_count(&lane), 1);
    }
}
