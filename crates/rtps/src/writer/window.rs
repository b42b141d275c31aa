//! What is on its way to a writer's readers, and how much of it may be: as much as their receive buffers are
//! believed to hold. Losses say that they hold less.
//!
//! *Source*: the additive increase and multiplicative decrease of TCP (RFC 5681 §3.1). But only many losses in a row
//! count: a buffer that is full loses all until there is room again, a network loses one here and there.

use std::collections::VecDeque;

use taut_base::{FragmentNumber, SequenceNumber, SequenceNumberSet};

use crate::limits;

/// A place in a writer's stream: all changes up to this one, and of the next one the fragments up to this one.
pub(super) type Place = (SequenceNumber, FragmentNumber);

/// What a datagram takes of the window at least: what it costs a receiver's kernel besides its bytes, and its
/// process to handle it. Lower overruns a receive buffer with small datagrams, higher stalls.
pub(super) const DATAGRAM: usize = limits::WINDOW_BYTES / limits::WINDOW_DATAGRAMS;

/// The least that the window becomes, in datagrams. Lower stalls a stream whose losses have another reason, higher
/// overruns the smallest buffers: 212,992 B, Linux's default, hold some 90 full Ethernet frames.
const LEAST: usize = 64;

/// Which part of what is under way has to be lost in a row to count. Lower overruns buffers for longer, higher slows
/// a stream down for what has nothing to do with its rate.
const LOSSES: usize = 16;

/// And how many datagrams at least. Lower takes chance for a sign, higher overlooks small buffers.
const FEW: usize = 8;

/// By which part of itself the window grows when as much as it holds has arrived. Lower finds back to a faster path
/// later, higher loses more often what it tries in vain.
const GROWTH: usize = 16;

/// How many steps' are told apart. Lower tells less well what is under way to one of several readers, higher takes more memory
/// where one acknowledges nothing and nobody waits for it.
const FLIGHTS: usize = 1_024;

/// What is under way. *Units* of all amounts: bytes, of a datagram at least [`DATAGRAM`].
#[derive(Debug)]
pub(super) struct Window {
    /// What has left, in order.
    under_way: VecDeque<Flight>,
    /// How much has left, and how much of it has arrived everywhere.
    sent: u64,
    arrived: u64,
    /// How much may be under way to that reader that takes most.
    pub limit: usize,
}

/// What has left in one step.
#[derive(Debug)]
struct Flight {
    /// From which change on, and up to which place.
    from: SequenceNumber,
    to: Place,
    /// How much that makes with all before.
    total: u64,
}

/// How much may be under way to one reader.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    /// How much had left when the limit was last lowered: losses among that are no news.
    lowered_at: u64,
    /// How much had arrived when the limit was last changed.
    changed_at: u64,
}

impl Window {
    pub fn new() -> Window {
        Window { under_way: VecDeque::new(), sent: 0, arrived: 0, limit: limits::WINDOW_BYTES }
    }

    /// So many datagrams of so many bytes together have left for each reader, from this change on up to here.
    pub fn note_sent(&mut self, from: SequenceNumber, to: Place, datagrams: usize, bytes: usize) {
        let cost = bytes.max(datagrams.saturating_mul(DATAGRAM));
        self.sent = self.sent.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
        if self.under_way.len() >= FLIGHTS {
            self.join_oldest();
        }
        self.under_way.push_back(Flight { from, to, total: self.sent });
    }

    /// The two oldest have left as if in one step.
    #[cold]
    fn join_oldest(&mut self) {
        if let Some(oldest) = self.under_way.pop_front()
            && let Some(next) = self.under_way.front_mut()
        {
            next.from = oldest.from;
        }
    }

    /// All readers have all up to here.
    pub fn note_arrived(&mut self, place: Place) {
        while let Some(flight) = self.under_way.front().filter(|flight| flight.to <= place) {
            self.arrived = flight.total;
            self.under_way.pop_front();
        }
    }

    /// How much is under way beyond a place.
    fn beyond(&self, place: Place) -> usize {
        usize::try_from(self.sent.saturating_sub(self.total(place))).unwrap_or(usize::MAX)
    }

    /// How much had left up to a place.
    fn total(&self, place: Place) -> u64 {
        let after = self.under_way.partition_point(|flight| flight.to <= place);
        let last = after.checked_sub(1).and_then(|at| self.under_way.get(at));
        last.map_or(self.arrived, |flight| flight.total)
    }

    /// How much in a row of what is under way a reader misses that asks for these changes, of which `len` tells the
    /// bytes. Of several that left together it may be one datagram that was lost.
    pub fn lost(&self, set: &SequenceNumberSet, len: impl Fn(SequenceNumber) -> Option<usize>) -> usize {
        let (mut most, mut row, mut next) = (0_usize, 0_usize, SequenceNumber::ZERO);
        let mut asked = set.iter().peekable();
        let mut before = self.arrived;
        for Flight { from, to: (last, _), total } in &self.under_way {
            let mut left = usize::try_from(total.saturating_sub(before)).unwrap_or(usize::MAX);
            while let Some(number) = asked.next_if(|number| number <= last) {
                let cost =
                    len(number).filter(|_| number >= *from).map_or(0, |len| len.max(DATAGRAM).min(left));
                left = left.saturating_sub(cost);
                row = if number == next { row.saturating_add(cost) } else { cost };
                (most, next) = (most.max(row), number.next());
            }
            before = *total;
            if asked.peek().is_none() {
                break;
            }
        }
        most
    }

    /// Is there room for more on the way to all?
    #[inline]
    pub fn has_room(&self) -> bool {
        self.sent.saturating_sub(self.arrived) < self.limit as u64
    }

    /// How much of a change leaves before its readers are asked how far they are. Often enough that the answer is
    /// there before the window is full.
    pub fn part(&self) -> usize {
        self.limit / 4
    }

    /// Nobody says how far he is: what is under way is believed to have arrived.
    pub fn forget(&mut self) {
        self.under_way.clear();
        self.arrived = self.sent;
    }

    /// How many datagrams with `size` bytes of payload are so much; at least one.
    pub fn datagrams(amount: usize, size: usize) -> usize {
        amount.checked_div(size.max(DATAGRAM)).unwrap_or(0).max(1)
    }
}

impl Pace {
    pub fn new() -> Pace {
        Pace { limit: limits::WINDOW_BYTES, lowered_at: 0, changed_at: 0 }
    }

    /// How much may be under way.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Is that less than it could be?
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limit < limits::WINDOW_BYTES
    }

    /// How much more may leave for a reader that has all up to here.
    pub fn room(&self, window: &Window, place: Place) -> usize {
        self.limit.saturating_sub(window.beyond(place))
    }

    /// The reader has all up to here. Returns whether that changes the limit.
    #[inline]
    pub fn note_arrived(&mut self, window: &Window, place: Place) -> bool {
        self.is_limited() && self.grow(window.total(place))
    }

    fn grow(&mut self, arrived: u64) -> bool {
        let enough = arrived.saturating_sub(self.changed_at) >= self.limit as u64;
        if enough {
            self.changed_at = arrived;
            self.limit = self.limit.saturating_add(self.limit / GROWTH).min(limits::WINDOW_BYTES);
        }
        enough
    }

    /// Of an answer to what the reader alone had asked for, it misses so much in a row again. Returns whether that
    /// changes the limit.
    pub fn note_answer_lost(&mut self, window: &Window, answer: usize, lost: usize) -> bool {
        let news = lost >= FEW * DATAGRAM && lost.saturating_mul(LOSSES) >= answer;
        if news {
            self.limit = (self.limit.min(answer) / 2).max(LEAST * DATAGRAM);
            (self.lowered_at, self.changed_at) = (window.sent, window.sent);
        }
        news
    }

    /// The reader, which has all up to `place`, misses so much in a row of what has left: its buffer, or that of the
    /// path, did not hold all that was under way. Returns whether that changes the limit.
    pub fn note_lost(&mut self, window: &Window, place: Place, lost: usize) -> bool {
        let under_way = window.beyond(place);
        let many = lost >= FEW * DATAGRAM && lost.saturating_mul(LOSSES) >= under_way;
        let news = many && window.total(place) >= self.lowered_at;
        if news {
            self.limit = (self.limit.min(under_way) / 2).max(LEAST * DATAGRAM);
            (self.lowered_at, self.changed_at) = (window.sent, window.total(place));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(change: i64, fragment: u32) -> Place {
        (SequenceNumber(change), fragment)
    }

    fn note(window: &mut Window, to: Place, datagrams: usize, bytes: usize) {
        window.note_sent(SequenceNumber(to.0.0), to, datagrams, bytes);
    }

    #[test]
    fn small_datagrams_count_and_so_do_bytes() {
        let (mut window, pace) = (Window::new(), Pace::new());
        note(&mut window, place(1, 0), limits::WINDOW_DATAGRAMS - 1, 100);
        assert!(window.has_room());
        note(&mut window, place(2, 0), 1, 100);
        assert!(!window.has_room());
        window.note_arrived(place(1, 7));
        assert!(window.has_room());
        window.note_arrived(place(2, 0));
        note(&mut window, place(3, 0), 1, limits::WINDOW_BYTES);
        assert!(!window.has_room());
        let room = |change, fragment| pace.room(&window, place(change, fragment));
        assert_eq!((room(2, 9), room(3, 0)), (0, limits::WINDOW_BYTES));
    }

    #[test]
    fn who_acknowledges_nothing_makes_it_no_longer() {
        let (mut window, pace) = (Window::new(), Pace::new());
        (1..=10_000).for_each(|change| note(&mut window, place(change, 0), 1, 100));
        assert!(window.under_way.len() <= FLIGHTS);
        let room = |change| pace.room(&window, place(change, 0));
        assert_eq!((room(0), room(9_999)), (0, limits::WINDOW_BYTES - DATAGRAM));
        window.note_arrived(place(10_000, 0));
        assert!(window.under_way.is_empty() && window.has_room());
    }

    #[test]
    fn many_losses_halve_it_once_and_few_do_not() {
        let (mut window, mut pace) = (Window::new(), Pace::new());
        note(&mut window, place(0, 500), 500, 0);
        note(&mut window, place(0, 1_000), 500, 0);
        assert!(!pace.note_lost(&window, place(0, 0), (FEW - 1) * DATAGRAM), "chance");
        assert!(!pace.note_lost(&window, place(0, 0), (1_000 / LOSSES - 1) * DATAGRAM), "chance");
        assert!(pace.note_lost(&window, place(0, 0), 200 * DATAGRAM));
        assert_eq!(pace.limit(), 500 * DATAGRAM);
        assert!(!pace.note_lost(&window, place(0, 500), 200 * DATAGRAM), "of what was under way then");
        window.note_arrived(place(0, 1_000));
        note(&mut window, place(0, 1_100), 100, 0);
        assert!(pace.note_lost(&window, place(0, 1_000), 50 * DATAGRAM));
        assert_eq!(pace.limit(), LEAST * DATAGRAM, "half of what did not arrive is less");
        for change in 1..10 {
            window.note_arrived(place(change, 0));
            note(&mut window, place(change, 100), 100, 0);
            pace.note_lost(&window, place(change, 0), 90 * DATAGRAM);
        }
        assert_eq!(pace.limit(), LEAST * DATAGRAM);
    }

    #[test]
    fn it_grows_again_with_what_arrives() {
        let (mut window, mut pace) = (Window::new(), Pace::new());
        note(&mut window, place(1, 0), 1_000, 0);
        assert!(pace.note_lost(&window, place(0, 0), 200 * DATAGRAM));
        let mut last = pace.limit();
        for change in 2..10_000 {
            window.note_arrived(place(change - 1, 0));
            let grown = pace.note_arrived(&window, place(change - 1, 0));
            assert_eq!(grown, pace.limit() > last);
            assert!(pace.limit() <= last + last / GROWTH);
            last = pace.limit();
            note(&mut window, place(change, 0), 100, 0);
        }
        assert_eq!(last, limits::WINDOW_BYTES);
    }

    #[test]
    fn what_left_together_is_lost_together_and_history_is_not_lost() {
        let mut window = Window::new();
        note(&mut window, place(100, 0), 1, 50_000);
        window.note_sent(SequenceNumber(101), place(300, 0), 2, 50_000);
        window.note_sent(SequenceNumber(301), place(310, 0), 10, 500);
        let lost = |numbers: std::ops::Range<i64>| {
            let mut set = SequenceNumberSet::new(SequenceNumber(numbers.start));
            numbers.for_each(|number| assert!(set.insert(SequenceNumber(number))));
            window.lost(&set, |number| (number.0 != 305).then_some(100))
        };
        assert_eq!((lost(1..100), lost(1..101)), (0, DATAGRAM));
        assert_eq!((lost(101..102), lost(101..300)), (DATAGRAM, 50_000));
        assert_eq!((lost(299..303), lost(302..306)), (4 * DATAGRAM, 3 * DATAGRAM), "one is no longer held");
        let set: Vec<i64> = (301..304).chain(306..308).collect();
        let mut with_a_gap = SequenceNumberSet::new(SequenceNumber(301));
        set.into_iter().for_each(|number| assert!(with_a_gap.insert(SequenceNumber(number))));
        assert_eq!(window.lost(&with_a_gap, |_| Some(100)), 3 * DATAGRAM);
    }
}
