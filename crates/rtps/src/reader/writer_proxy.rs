//! What a reader knows of one matched writer: what has arrived, what is missing, what it is owed.
//! RTPS 2.5 §8.4.10.4 (RTPS WriterProxy), §8.4.12 (reader behaviour).

mod answered;
mod begun;
mod resumed;

use std::collections::BTreeMap;

use taut_base::{
    Duration, EntityId, FragmentNumber, FragmentNumberSet, Guid, Locator, SequenceNumber, SequenceNumberSet,
    Time,
};
use taut_qos::Liveliness;
use taut_wire::{Gap, Heartbeat};

use super::lost::LostWriter;
use super::reassembly::{Assembly, FragmentInfo};
use super::waiting::Waiting;
use crate::anatomy::Clock;
use crate::answers::Answers;
use crate::count::Count;
use crate::history_cache::CacheChange;
use crate::intervals::IntervalSet;
use crate::limits;

/// A change on its way: who has room for it takes it. It is handed on by reference, as it is large.
pub type Offer = Option<CacheChange>;

/// Where delivered changes go; what is left in the offer has found no room.
type Deliver<'a> = &'a mut dyn FnMut(&mut Offer);

/// What a reader keeps about one matched writer.
pub struct WriterProxy {
    /// The writer.
    pub guid: Guid,
    /// Is what it sends repaired?
    pub reliable: bool,
    /// OWNERSHIP_STRENGTH.
    pub strength: i32,
    /// Where ACKNACKs go.
    pub locators: Vec<Locator>,
    /// It keeps a history for late joiners, which this volatile reader does not want.
    pub skips_history: bool,
    /// This reader is volatile, and has not been told by a heartbeat for it alone where its stream begins.
    pub awaits_greeting: bool,
    /// It was lost without a word, has come back, and has said nothing since: see [`super::lost`].
    resumed: Option<LostWriter>,
    /// It has not said yet where its stream begins, or goes on.
    is_fresh: bool,
    /// It greets such a reader as soon as that can listen: until then nothing of it is delivered, as what comes for all
    /// readers may be older than the match.
    pub held: bool,
    /// It sends this reader, which cannot ask, history before all else, alone: what comes for all readers is not taken
    /// until it says that this is done, or until then.
    pub history_until: Option<Time>,
    /// It is asked for its first heartbeat by a set that begins with 0.
    pub asks_from_zero: bool,
    /// An ACKNACK is due.
    pub ack_due: bool,
    /// It is among those that its reader tells something.
    pub(super) has_turn: bool,
    /// When this writer last showed that it is alive.
    pub heard: Time,
    /// The highest number by which it did.
    pub(crate) newest: SequenceNumber,
    /// When it was last heard with all others of its participant that promise the same.
    pub spoke_at: Time,
    /// What the writer has promised.
    pub liveliness: Liveliness,
    /// Does it keep its promise?
    pub alive: bool,
    /// Its changes also come through a lane: who delivers knows what has.
    pub lane: bool,
    /// The clock of the stamps in its changes, if they are to be read.
    pub clock: Option<Clock>,
    /// Samples in assembly.
    pub assemblies: BTreeMap<SequenceNumber, Assembly>,
    /// The lowest number that is neither delivered nor known to be irrelevant or lost.
    next: SequenceNumber,
    /// What is below it was passed over before anything came: [`WriterProxy::next`] is above it once something has.
    begin: SequenceNumber,
    last_available: SequenceNumber,
    /// Arrived, but an earlier one is missing or the cache is full.
    pending: Waiting,
    /// The last of them that has come another way than the protocol. Its writer may have it no longer.
    last_put_back: SequenceNumber,
    irrelevant: IntervalSet,
    heartbeat_count: Count,
    heartbeat_frag_count: Count,
    asked_until: SequenceNumber,
    asked: u32,
    asked_at: Option<Time>,
    /// When the question was first asked whose answer is to be timed, and whether that was once.
    timed_from: Option<(Time, bool)>,
    /// What was asked for last was gone when the question came: nothing is asked for before then, and one question at a
    /// time from then on.
    rests_until: Option<Time>,
    /// How long answers take.
    answers: Answers,
    /// How long they may take even so, as is known from elsewhere.
    least_patience: Duration,
    /// When the last change or fragment arrived.
    moved_at: Time,
    /// When to look whether what was asked for has come; `NEVER` if nothing was.
    pub repeat_at: Time,
    repeat_interval: Duration,
    /// Since when it has said nothing but that it has written less than has come, and what was next to come then.
    doubted: Option<(Time, SequenceNumber)>,
}

impl WriterProxy {
    /// A writer of which nothing has arrived.
    pub fn new(guid: Guid, reliable: bool, strength: i32, locators: Vec<Locator>) -> WriterProxy {
        WriterProxy {
            guid,
            reliable,
            strength,
            locators,
            skips_history: false,
            awaits_greeting: false,
            resumed: None,
            is_fresh: true,
            held: false,
            history_until: None,
            asks_from_zero: false,
            ack_due: reliable,
            has_turn: false,
            heard: Time(i64::MIN),
            newest: SequenceNumber::ZERO,
            spoke_at: Time(i64::MIN),
            liveliness: Liveliness::default(),
            alive: true,
            lane: false,
            clock: None,
            assemblies: BTreeMap::new(),
            next: SequenceNumber::FIRST,
            begin: SequenceNumber::FIRST,
            last_available: SequenceNumber::ZERO,
            pending: Waiting::default(),
            last_put_back: SequenceNumber::ZERO,
            irrelevant: IntervalSet::new(limits::GAP_INTERVALS),
            heartbeat_count: Count::default(),
            heartbeat_frag_count: Count::default(),
            asked_until: SequenceNumber::ZERO,
            asked: 0,
            asked_at: None,
            timed_from: None,
            rests_until: None,
            answers: Answers::taking(Duration::ZERO),
            least_patience: Duration::ZERO,
            moved_at: Time(i64::MIN),
            repeat_at: Time::NEVER,
            repeat_interval: limits::NACK_REPEAT,
            doubted: None,
        }
    }

    /// Is this a heartbeat of one that has started again under its old name? It has written less than has come, and
    /// has said nothing else for a while: what the network holds back is not that old.
    #[cold]
    pub fn has_restarted(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        if heartbeat.last_sn.next() >= self.next {
            if self.heartbeat_count.is_new(heartbeat.count) {
                self.doubted = None;
            }
            return false;
        }
        let doubted = self.doubted.filter(|(_, next)| *next == self.next);
        let (since, _) = *self.doubted.insert(doubted.unwrap_or((now, self.next)));
        now.since(since) >= limits::RESTART_AFTER
    }

    /// A heartbeat has an old count. Is it [believed](Count::begins_anew) all the same? One of a built-in writer that has
    /// written less than has come is of one that [has started again](WriterProxy::has_restarted), or is old.
    #[cold]
    #[inline(never)]
    fn counts_anew(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        let has_less = heartbeat.last_sn.next() < self.next;
        !(has_less && self.guid.entity.is_builtin()) && self.heartbeat_count.begins_anew(now, heartbeat.count)
    }

    /// Has this number been delivered, refused as lost, or does it wait already?
    #[inline]
    pub fn is_known(&self, number: SequenceNumber) -> bool {
        number < self.next || (self.has_waiting() && self.knows_behind(number))
    }

    #[cold]
    fn knows_behind(&self, number: SequenceNumber) -> bool {
        self.pending.contains(number) || self.irrelevant.contains(number)
    }

    /// Is there something to know of changes that are not next?
    #[inline]
    fn has_waiting(&self) -> bool {
        !self.pending.is_empty() || !self.irrelevant.is_empty()
    }

    /// A change has arrived. Delivers it and what it completes, in order. Returns how many changes
    /// were lost before it (best effort only: a reliable reader waits for them).
    #[inline(always)]
    pub fn on_change(&mut self, offer: &mut Offer, mut deliver: impl FnMut(&mut Offer)) -> u64 {
        let Some((number, time)) = offer.as_ref().map(|change| (change.sequence_number, change.time)) else {
            return 0;
        };
        self.note_arrival(time);
        let had_begun = !self.assemblies.is_empty() && self.end_assembly(number);
        if !self.reliable {
            // Best effort: what finds no place is gone, and the cache has counted it.
            let lost = self.skip_to(number);
            deliver(offer);
            return lost;
        }
        self.last_available = self.last_available.max(number);
        if number <= self.asked_until {
            self.note_answer(time, !had_begun);
        }
        if number != self.next || self.held {
            self.hold(number, offer);
            return 0;
        }
        deliver(offer);
        if offer.is_some() {
            self.put_back(offer);
        } else {
            self.next = number.next();
        }
        self.deliver_pending(deliver);
        0
    }

    /// Had it begun to arrive in parts? It is there as a whole now.
    #[cold]
    fn end_assembly(&mut self, number: SequenceNumber) -> bool {
        self.assemblies.remove(&number).is_some()
    }

    /// A change waits for others. Where there is no room for it, those behind it that can be asked for again go, so that
    /// neither what runs ahead nor made-up numbers keep out what is missing.
    #[cold]
    fn hold(&mut self, number: SequenceNumber, offer: &mut Offer) {
        let bytes = offer.as_ref().map_or(0, |change| change.payload.len());
        let stays = number.max(self.last_put_back);
        while !self.pending.has_room(bytes) {
            if !self.pending.drop_last_behind(stays) {
                return;
            }
        }
        self.put_back(offer);
    }

    /// A change waits for room in the cache, or has been given one here.
    #[cold]
    fn put_back(&mut self, offer: &mut Offer) {
        if let Some(change) = offer.take() {
            self.pending.insert(change);
        }
    }

    /// Changes have come another way, in order, and wait for others, or for room. What the writer has no longer behind the
    /// first of them is known. Returns how many find no place: their writer takes them for acknowledged, and they are lost.
    pub fn put_all_back(&mut self, changes: Vec<CacheChange>) -> u64 {
        if let Some(first) =
            changes.first().map(|change| change.sequence_number).filter(|first| *first < self.next)
        {
            self.irrelevant.insert(first, self.next);
            self.next = first;
        }
        let mut lost = 0_u64;
        for change in changes {
            let number = change.sequence_number;
            self.last_available = self.last_available.max(number);
            self.last_put_back = self.last_put_back.max(number);
            if self.pending.contains(number) {
                continue;
            }
            // Their bytes are held by the lane or here.
            if self.pending.has_place() || self.pending.drop_last_behind(self.last_put_back) {
                self.pending.insert(change);
            } else {
                // Where that cannot be kept it is asked for, and missed as others are.
                lost = lost.saturating_add(u64::from(self.irrelevant.insert(number, number.next())));
            }
        }
        lost
    }

    /// A change has arrived of which this reader gets nothing, as of one for others (RTPS 2.5 §8.7.7): there is nothing to
    /// wait for, and what was behind it is delivered. Returns what [`WriterProxy::on_change`] does.
    #[cold]
    pub fn pass_over(&mut self, now: Time, number: SequenceNumber, deliver: Deliver<'_>) -> u64 {
        self.moved_at = now;
        self.assemblies.remove(&number);
        if !self.reliable {
            return self.skip_to(number);
        }
        self.last_available = self.last_available.max(number);
        self.asked = 0;
        self.irrelevant.insert(number, number.next());
        self.deliver_pending(&mut *deliver);
        0
    }

    /// A change has arrived that what comes before it is not waited for. Returns how many are lost with that.
    #[inline(never)]
    fn skip_to(&mut self, number: SequenceNumber) -> u64 {
        // What was written before this side listened is not lost, nor what history no longer has.
        let listened = self.next > SequenceNumber::FIRST && self.history_until.is_none();
        let lost = if !listened {
            self.begun_before(number)
        } else if number > self.next {
            self.lost_before(number)
        } else {
            0
        };
        self.next = number.next();
        self.assemblies.retain(|assembled, _| *assembled > number);
        lost
    }

    /// How many changes before this one have not come, and are not irrelevant. What is known of those is forgotten.
    #[cold]
    fn lost_before(&mut self, number: SequenceNumber) -> u64 {
        let mut missed = IntervalSet::new(usize::MAX);
        missed.insert(self.next, number);
        self.irrelevant.iter().for_each(|(start, end)| missed.remove(start, end));
        self.irrelevant.remove(SequenceNumber::ZERO, number.next());
        missed.count()
    }

    /// It sends history before all else. Meanwhile all changes count as known, so that nobody asks this of each.
    pub fn await_history(&mut self, until: Time) {
        self.history_until = Some(until);
        self.irrelevant.insert(SequenceNumber::FIRST, SequenceNumber(i64::MAX));
    }

    /// Is a change that counts as known one of the history that is awaited, or what follows it? One for all readers that
    /// does not follow comes once more, as history, for this reader alone.
    pub fn is_of_history(&mut self, now: Time, number: SequenceNumber, reader_id: EntityId) -> bool {
        let Some(until) = self.history_until.filter(|_| number >= self.next) else { return false };
        if reader_id != EntityId::UNKNOWN {
            self.history_until = Some(now + limits::HISTORY_PATIENCE);
            return true;
        }
        let follows = number == self.next || now >= until;
        if follows {
            self.end_history(SequenceNumber::ZERO);
        }
        follows
    }

    /// All that there is of history up to this change has been sent. Returns how many of that are lost: those that have begun
    /// to come, and not all of them has.
    pub fn end_history(&mut self, last: SequenceNumber) -> u64 {
        self.history_until = None;
        self.irrelevant = IntervalSet::new(limits::GAP_INTERVALS);
        let next = self.next.max(last.next());
        let lost = self.begun_before(next);
        self.next = next;
        self.assemblies.retain(|number, _| *number >= next);
        lost
    }

    /// When its lease ends, and whether that is the second time: one that was over before a look that was `late_since` then may
    /// have been kept up by what still lies in a socket. It has as long as its lease again, and no longer than
    /// [`limits::LEASE_GRACE`].
    pub(crate) fn lease_end(&self, late_since: Time) -> (Time, bool) {
        let lease = self.liveliness.lease_duration;
        let end = self.heard + lease;
        let has_second = self.alive && end < late_since;
        (if has_second { late_since + lease.min(limits::LEASE_GRACE) } else { end }, has_second)
    }

    /// A change or a fragment has arrived: the writer is answering.
    pub fn note_arrival(&mut self, now: Time) {
        self.moved_at = now;
        self.repeat_interval = limits::NACK_REPEAT;
    }

    /// Delivers all that is next in order, until something is missing or refused.
    #[inline]
    pub fn deliver_pending(&mut self, deliver: impl FnMut(&mut Offer)) {
        // Most often nothing is missing.
        if self.has_waiting() {
            // Only here does it have to be in memory.
            let mut deliver = deliver;
            self.deliver_waiting(&mut deliver);
        }
    }

    #[cold]
    fn deliver_waiting(&mut self, deliver: Deliver<'_>) {
        loop {
            self.pass_irrelevant();
            if self.pending.is_empty() || self.held {
                return;
            }
            let mut offer = self.pending.remove(self.next);
            if offer.is_none() {
                return;
            }
            deliver(&mut offer);
            if let Some(change) = offer {
                self.pending.insert(change);
                return;
            }
            self.next = self.next.next();
        }
    }

    /// Steps over what will not come. What has come all the same, before its writer had it no longer, is next.
    #[inline]
    fn pass_irrelevant(&mut self) {
        let nothing_came = self.begin == self.next;
        let passed = self.irrelevant.pass(self.next);
        if passed > self.next
            && let Some(arrived) = self.pending.first_in(self.next..passed)
        {
            self.next = arrived;
            self.irrelevant.insert(arrived.next(), passed);
        } else {
            self.next = passed;
        }
        if nothing_came {
            self.begin = self.next;
        }
    }

    /// Does a change wait for room in the cache?
    pub fn is_blocked(&self) -> bool {
        !self.held && self.pending.contains(self.next)
    }

    /// Does a HEARTBEAT only say what is known: that all has come, while nothing is to be answered? It is noted then, and
    /// that is all that [`WriterProxy::on_heartbeat`] would do.
    #[inline]
    pub fn is_abreast(&mut self, heartbeat: &Heartbeat) -> bool {
        let is_new = self.heartbeat_count.last.is_some_and(|last| heartbeat.count.wrapping_sub(last) > 0);
        let asks_nothing = heartbeat.final_flag && self.reliable && !self.ack_due;
        let begins_nothing =
            !self.held && (!self.awaits_greeting || heartbeat.reader_id == EntityId::UNKNOWN);
        let has_all = heartbeat.last_sn < self.next && !self.has_waiting() && self.assemblies.is_empty();
        let is_abreast = is_new && asks_nothing && begins_nothing && has_all;
        if is_abreast {
            self.heartbeat_count.last = Some(heartbeat.count);
            self.last_available = heartbeat.last_sn;
            if heartbeat.reader_id != EntityId::UNKNOWN && self.timed_from.is_none() {
                self.asked = 0;
            }
        }
        is_abreast
    }

    /// A HEARTBEAT has arrived. Returns how many changes can no longer be had.
    pub fn on_heartbeat(&mut self, now: Time, heartbeat: &Heartbeat, deliver: Deliver<'_>) -> u64 {
        // Behind what neighbours are sent again it is about their streams.
        if self.held && heartbeat.reader_id == EntityId::UNKNOWN {
            return 0;
        }
        let is_first = !self.has_heard();
        // RTPS 2.5 §8.4.15.7: a count that does not rise marks a duplicate.
        let is_news = self.heartbeat_count.rises(heartbeat.count) || self.counts_anew(now, heartbeat);
        if !is_news || !self.reliable {
            return 0;
        }
        // The writer knows best what it has: an earlier message that said more was not its own.
        let held = self.pending.last().unwrap_or(SequenceNumber::ZERO);
        self.last_available = heartbeat.last_sn.max(held);
        // What the writer had dropped before this side listened is not lost. One that awaits its greeting has heard of others.
        let has_been_told = !is_first && !self.awaits_greeting;
        let listened = (self.next > SequenceNumber::FIRST || has_been_told) && !self.held;
        // DCPS 1.4 §2.2.3.4: a volatile reader gets nothing that was written before the match.
        let history = if self.is_fresh { self.history_before(now, heartbeat) } else { SequenceNumber::ZERO };
        let first = heartbeat.first_sn.max(history.next());
        // A greeting, the first that is for it alone, says where its stream begins: what others were sent again is not
        // of it, though it came here too. One that has more to say is none: it says what can still be had.
        if heartbeat.reader_id != EntityId::UNKNOWN && std::mem::take(&mut self.awaits_greeting) {
            if heartbeat.last_sn < heartbeat.first_sn {
                self.pending.remove_before(first);
            }
            if std::mem::take(&mut self.held) {
                self.repeat_at = Time::NEVER;
            }
        }
        // History that is not wanted is not lost, either.
        if history > SequenceNumber::ZERO {
            self.give_up_before(history.next(), deliver);
        }
        let missing = self.give_up_before(first, deliver);
        let lost = if listened { missing } else { 0 };
        // It follows what was asked for, as far as the writer sends that: what is still missing is asked for again.
        if heartbeat.reader_id != EntityId::UNKNOWN {
            if self.timed_from.is_none() {
                self.asked = 0;
            }
            self.assemblies.values_mut().for_each(Assembly::end_answer);
        }
        let due = !heartbeat.final_flag || self.may_ask(now);
        self.ack_due |= due;
        lost
    }

    /// The last number that may be history. What a writer has sent that does not greet its readers is of their stream, and so
    /// is all that follows it; what was for others, or is not there, is not.
    fn before_stream(&self) -> SequenceNumber {
        if self.next > self.begin {
            return self.next.prev();
        }
        let waiting = self.pending.first().into_iter().chain(self.assemblies.keys().next().copied());
        let first = waiting.min().filter(|_| !self.held);
        first.map_or(SequenceNumber(i64::MAX), SequenceNumber::prev)
    }

    /// The writer has nothing below `first` any more: delivers what has arrived of it, counts the
    /// rest as lost.
    #[inline]
    fn give_up_before(&mut self, first: SequenceNumber, deliver: Deliver<'_>) -> u64 {
        // Most often all of it has come.
        let has_all = self.next >= first && !self.has_waiting() && self.assemblies.is_empty();
        if has_all { 0 } else { self.give_up_some_before(first, deliver) }
    }

    #[inline(never)]
    fn give_up_some_before(&mut self, first: SequenceNumber, deliver: Deliver<'_>) -> u64 {
        let mut lost = 0_u64;
        while self.next < first {
            self.pass_irrelevant();
            let stop = self.pending.first().map_or(first, |number| number.min(first));
            if self.next < stop {
                lost = lost.saturating_add(u64::try_from(stop.0.saturating_sub(self.next.0)).unwrap_or(0));
                self.next = stop;
            }
            let before = self.next;
            self.deliver_pending(&mut *deliver);
            if self.next == before {
                break;
            }
        }
        if !self.assemblies.is_empty() {
            self.assemblies.retain(|number, _| *number >= first);
        }
        self.deliver_pending(&mut *deliver);
        lost
    }

    /// A GAP has arrived: its numbers will not come.
    pub fn on_gap(&mut self, now: Time, gap: &Gap, deliver: Deliver<'_>) {
        // One that waits for nothing only learns what it has not lost, of the stream that it hears.
        if !self.reliable && (self.next == SequenceNumber::FIRST || self.history_until.is_some()) {
            return;
        }
        let base = gap.gap_list.base();
        if gap.gap_start <= self.asked_until && base > self.next {
            self.rest(now);
        }
        self.irrelevant.insert(gap.gap_start.max(self.next), base);
        for number in gap.gap_list.iter() {
            self.irrelevant.insert(number, number.next());
        }
        let irrelevant = &self.irrelevant;
        self.assemblies.retain(|number, _| !irrelevant.contains(*number));
        self.asked = 0;
        self.deliver_pending(&mut *deliver);
    }

    /// A HEARTBEAT_FRAG has arrived: the fragments up to `last` are there to be had. Is a NACK_FRAG
    /// to be sent?
    pub fn on_heartbeat_frag(
        &mut self,
        now: Time,
        (number, last): (SequenceNumber, FragmentNumber),
        count: i32,
    ) -> bool {
        if !self.heartbeat_frag_count.is_news(now, count) || !self.reliable {
            return false;
        }
        self.assemblies.get_mut(&number).is_some_and(|assembly| assembly.offer(last))
    }

    /// Do fragments contradict those that a sample was begun with? Nobody knows which of the two are a lie: where they
    /// can be asked for again the sample is begun anew, so that it is held up for no longer than the lies go on.
    pub fn contradicts(&mut self, number: SequenceNumber, info: FragmentInfo) -> bool {
        let contradicts = self.assemblies.get(&number).is_some_and(|assembly| !assembly.agrees(info));
        contradicts && self.reliable && self.assemblies.remove(&number).is_some()
    }

    /// May what is missing be asked for now, or is a request under way?
    fn may_ask(&self, now: Time) -> bool {
        let news = self.last_available > self.asked_until && self.rests_until.is_none();
        let may = news || self.asked == 0 || self.is_overdue(now);
        self.next <= self.last_available && !self.is_blocked() && may && self.rests_until <= Some(now)
    }

    /// The state for the ACKNACK that is due: acknowledges all below the base and asks for the
    /// numbers in the set. Whole samples only; for those in assembly see [`WriterProxy::ask_fragments`].
    pub fn acknack(&mut self, now: Time) -> SequenceNumberSet {
        self.ack_due = false;
        if self.asks_from_zero && !self.has_heard() {
            return SequenceNumberSet::new(SequenceNumber::ZERO);
        }
        let mut set = SequenceNumberSet::new(self.next);
        // Before its first heartbeat the writer must not take it for one that has heard it.
        if !self.has_heard() || !self.may_ask(now) {
            if let Some(until) = self.rests_until.filter(|until| *until > now) {
                self.repeat_at = until;
            }
            return set;
        }
        // What was asked for is under way: only what is new is asked for then.
        let anew = self.asked == 0 || self.is_overdue(now);
        let from = if anew { self.next } else { self.asked_until.next() };
        let (mut asked, mut number) = (0_u32, self.next);
        while number <= self.last_available && number.0 < self.next.0.saturating_add(256) {
            let known = number < from || self.is_known(number) || self.is_in_assembly(number);
            if !known && set.insert(number) {
                asked = asked.saturating_add(1);
            }
            number = number.next();
        }
        if asked > 0 {
            self.repeat_at = now + self.repeat_interval.max(self.patience());
            self.asked_until = number.prev();
            if anew {
                (self.asked, self.asked_at) = (asked, Some(now));
                self.timed_from = Some(self.timed_from.map_or((now, true), |(from, _)| (from, false)));
            } else {
                self.asked = self.asked.saturating_add(asked);
            }
        }
        set
    }

    /// Fragments of a change have begun to come: what is before it has been sent. Is some of that in assembly, and to be
    /// asked for? What it was followed by may have found no room, as its end has.
    pub fn is_followed(&mut self, number: SequenceNumber) -> bool {
        if !self.reliable {
            return false;
        }
        // Each of them hears of it.
        let before = self.assemblies.range_mut(..number);
        before.fold(false, |any, (_, assembly)| assembly.offer(FragmentNumber::MAX) | any)
    }

    /// What is missing of the samples in assembly, as far as it may be asked for now. Nothing while the stream has not
    /// begun: what is before its beginning is of no use, and the one timer is for the greeting then.
    pub fn ask_fragments(&mut self, now: Time) -> Vec<(SequenceNumber, FragmentNumberSet)> {
        if self.held {
            return Vec::new();
        }
        let (last, patience) = (self.last_available, self.patience());
        let assemblies = self.assemblies.iter_mut();
        let sets: Vec<_> = assemblies
            .filter_map(|(number, assembly)| Some((*number, assembly.ask(now, *number <= last, patience)?)))
            .collect();
        if !sets.is_empty() {
            self.repeat_at = now + self.repeat_interval.max(patience);
        }
        sets
    }

    /// The writer knows this reader: its greeting is on its way, and waited for no longer than this. Returns until when.
    pub(super) fn await_greeting(&mut self, now: Time) -> Time {
        self.repeat_at = now + limits::GREETING_PATIENCE;
        self.repeat_at
    }

    /// The greeting is overdue: what has arrived begins the stream, and the writer is asked what it has.
    fn end_hold(&mut self) {
        self.held = false;
        self.ack_due = true;
        self.repeat_at = Time::NEVER;
    }

    /// Something was asked for and is still missing, and nothing has arrived for a while: the request,
    /// the answer or the rest of it is lost, or the writer answers in portions. Is it to be asked again?
    pub fn is_repeat_due(&mut self, now: Time) -> bool {
        if self.repeat_at > now {
            return false;
        }
        if self.held {
            self.end_hold();
            return true;
        }
        if self.next > self.last_available || self.is_blocked() {
            self.repeat_at = Time::NEVER;
            return false;
        }
        let quiet_at = (self.moved_at + limits::NACK_REPEAT).max(self.rests_until.unwrap_or(now));
        if quiet_at > now {
            self.repeat_at = quiet_at;
            return false;
        }
        self.repeat_interval = self.repeat_interval.times(2).min(limits::NACK_REPEAT_MAX);
        self.repeat_at = now + self.repeat_interval;
        self.ack_due |=
            !self.asked_range().all(|number| self.is_known(number) || self.is_in_assembly(number));
        true
    }

    /// Has a change begun to come, and is its rest asked for?
    fn is_in_assembly(&self, number: SequenceNumber) -> bool {
        self.assemblies.get(&number).is_some_and(|assembly| !assembly.is_in_vain())
    }

    /// The numbers that one ACKNACK is about.
    fn asked_range(&self) -> impl Iterator<Item = SequenceNumber> + use<> {
        let end = self.last_available.0.min(self.next.0.saturating_add(255));
        (self.next.0..=end).map(SequenceNumber)
    }

    /// Has a HEARTBEAT of it arrived?
    pub fn has_heard(&self) -> bool {
        self.heartbeat_count.last.is_some()
    }

    /// All below `next` has come through the lane.
    pub fn pass(&mut self, next: SequenceNumber) {
        if next > self.next {
            self.next = next;
            self.last_available = self.last_available.max(next.prev());
            self.pending.remove_before(next);
            self.assemblies.retain(|number, _| *number >= next);
        }
    }

    /// What of its stream is known, will come or has come, and has not been delivered. `None` if nothing is waited for, or
    /// where the stream begins is not known.
    pub fn undelivered(&self) -> Option<IntervalSet> {
        if !self.reliable {
            return Some(self.begun());
        }
        if !self.has_heard() || self.held {
            return None;
        }
        // No more than gaps and changes that wait.
        let mut left = IntervalSet::new(usize::MAX);
        left.insert(self.next, self.last_available.next());
        self.irrelevant.iter().for_each(|(start, end)| left.remove(start, end));
        // What has come is there, though its writer had it no longer.
        self.pending.numbers().for_each(|number| _ = left.insert(*number, number.next()));
        Some(left)
    }

    /// The lowest number that has not been delivered.
    pub fn next_expected(&self) -> SequenceNumber {
        self.next
    }
}
