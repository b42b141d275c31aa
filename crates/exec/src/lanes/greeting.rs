//! How a connection to a participant of this host begins: who may greet as whom, until when, and when it is tried again.
//!
//! A connection takes descriptors of this process before it is known which participant it is of. So there are few
//! that have not greeted, they end after a while, and what they cause in the log is told at a rate that nobody can
//! drive. The clock is the driver's, which looks here between two steps, without the token.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taut_base::{Duration, GuidPrefix, Time};
use taut_lock::Mutex;
use taut_port_shm::{Connection, Peer};

use crate::clock::monotonic_now;
use crate::executor::Inner;
use crate::hooks::to_log;
use crate::lanes::neighbours::{MAX_CONNECTIONS, Neighbour, Neighbours};
use crate::lanes::path::Who;

/// How long a connection may go without a greeting. Three leases of the default: discovery has forgotten by then who is
/// not driven. Lower ends those of participants that are only slow, higher keeps the descriptors of who never greets.
const GREETING: Duration = Duration::from_secs(30);

/// Connections of one user that have not greeted; one more is turned away. As many as the kernel keeps for the listener
/// before they are accepted. Lower and participants that start together share no memory, higher and one user takes more
/// of the places of all.
const STRANGERS: usize = 128;

/// Lines of the log in one [`WINDOW`]; others are counted. More and who connects again and again fills the disk, fewer
/// and what explains a failure is missing.
const LINES: u32 = 20;
/// How long until there is room for as many lines again.
const WINDOW: Duration = Duration::from_secs(10);

/// How long until who was to be met and could not, or has parted, is connected to again, and what one of two had no
/// descriptors for is offered again: at first, and at most. Each time takes twice as long as the last, until what came of
/// one lasts for as long as the most. Lower and two that lack descriptors keep each other busy, higher and samples go by
/// UDP for longer than they have to.
const RETURN_FIRST: Duration = Duration::from_millis(250);
const RETURN_MOST: Duration = Duration::from_secs(64);
/// How often in a row. Higher and one that is never let in is asked for longer, lower and a want that lasts for some
/// minutes leaves two with UDP.
const RETURNS: u32 = 16;

/// When the driver is to look at something, if ever.
pub(crate) struct Due(AtomicI64);

impl Default for Due {
    fn default() -> Due {
        Due(AtomicI64::new(Time::NEVER.0))
    }
}

impl Due {
    /// *Cost*: one load. Who sleeps looks once more when it has said so, after which it is kicked.
    #[inline]
    fn get(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }

    fn set(&self, at: Time) {
        self.0.store(at.0, Ordering::SeqCst);
    }
}

/// How long until a message is sent again whose descriptors are too many. Lower and many that wait take more time of the
/// driver, higher and those that start together go by UDP for longer.
const SAY_AGAIN: Duration = Duration::from_millis(100);

/// Participants to connect or to offer to again, how often that was tried, and when it is next. As many as there may be
/// connections: those beyond are not connected to again, while all of these are there.
#[derive(Default)]
pub(crate) struct Returns {
    to: Mutex<BTreeMap<GuidPrefix, Return>>,
    /// When the first of them is due.
    next: Due,
}

struct Return {
    tries: u32,
    /// When it is due, or was last.
    at: Time,
    /// It is still to come.
    waits: bool,
}

impl Returns {
    /// Connects again in a while, if not too often. `since` is when what has ended began, if anything had come of the last
    /// try.
    pub fn add(&self, prefix: GuidPrefix, now: Time, since: Option<Time>) {
        let mut to = self.to.lock();
        if to.len() >= MAX_CONNECTIONS && !to.contains_key(&prefix) {
            return;
        }
        let known = to.entry(prefix).or_insert(Return { tries: 0, at: now, waits: false });
        if since.is_some_and(|since| now.since(since) >= RETURN_MOST) {
            known.tries = 0;
        } else if known.waits {
            return;
        }
        if known.tries < RETURNS {
            let pause = (0..known.tries).fold(RETURN_FIRST, |pause, _| pause.times(2).min(RETURN_MOST));
            let next = now + pause;
            known.at = if known.waits { next.min(known.at) } else { next };
            known.waits = true;
            known.tries += 1;
        }
        self.next.set(first(&to));
    }

    /// When it is due, or was last.
    pub fn last(&self, prefix: GuidPrefix) -> Option<Time> {
        self.to.lock().get(&prefix).map(|one| one.at)
    }

    /// Those that are due.
    fn take(&self, now: Time) -> Vec<GuidPrefix> {
        let mut to = self.to.lock();
        let due = to.iter_mut().filter(|(_, one)| one.waits && one.at <= now);
        let due = due.map(|(prefix, one)| {
            one.waits = false;
            *prefix
        });
        let due = due.collect();
        self.next.set(first(&to));
        due
    }

    /// Those that leave no place for this one.
    fn in_the_way_of(&self, prefix: GuidPrefix) -> Vec<GuidPrefix> {
        let to = self.to.lock();
        let has_place = to.len() < MAX_CONNECTIONS || to.contains_key(&prefix);
        if has_place { Vec::new() } else { to.keys().copied().collect() }
    }

    /// They are there no more.
    fn forget(&self, gone: &[GuidPrefix]) {
        let mut to = self.to.lock();
        gone.iter().for_each(|prefix| _ = to.remove(prefix));
        self.next.set(first(&to));
    }

    pub fn has(&self, prefix: GuidPrefix) -> bool {
        self.to.lock().contains_key(&prefix)
    }
}

fn first(to: &BTreeMap<GuidPrefix, Return>) -> Time {
    to.values().filter(|one| one.waits).map(|one| one.at).min().unwrap_or(Time::NEVER)
}

/// How much was told of neighbours of late.
#[derive(Default)]
pub(crate) struct Complaints(Mutex<Window>);

struct Window {
    end: Time,
    lines: u32,
    /// The last lines that were told, as many as [`LINES`]: what is so again, as with the next participant of a process, is
    /// no news.
    told: VecDeque<String>,
}

impl Default for Window {
    fn default() -> Window {
        Window { end: Time(i64::MIN), lines: 0, told: VecDeque::new() }
    }
}

impl Complaints {
    /// May a line be told? If so, how many before it were not.
    fn admit(&self, now: Time, line: &str) -> Option<u32> {
        let mut window = self.0.lock();
        if window.told.iter().any(|told| told == line) {
            return None;
        }
        let mut untold = 0;
        if now >= window.end {
            untold = window.lines.saturating_sub(LINES);
            (window.end, window.lines) = (now + WINDOW, 0);
        }
        window.lines = window.lines.saturating_add(1);
        if window.lines > LINES {
            return None;
        }
        if window.told.len() >= LINES as usize {
            window.told.pop_front();
        }
        window.told.push_back(line.to_owned());
        Some(untold)
    }
}

impl Neighbours {
    /// Tells the log why memory is not shared, and with whom.
    pub fn complain(&self, who: Option<Who>, why: &str) {
        let who = who.map(|who| format!(" ({who})")).unwrap_or_default();
        let line = format!("no shared memory with a participant of this host{who}: {why}");
        let Some(untold) = self.complaints.admit(monotonic_now(), &line) else { return };
        if untold > 0 {
            to_log(|| log::warn!("{untold} lines on participants of this host were left out"));
        }
        to_log(|| log::warn!("{line}"));
    }

    /// Has this user room for one more connection that has not greeted?
    pub fn admits_stranger(&self, uid: u32) -> bool {
        self.strangers().iter().filter(|one| one.peer.uid == uid).count() < STRANGERS
    }

    /// When the driver is to look at those that have not greeted, to connect again, or to say again. *Cost*: three loads.
    #[inline]
    pub fn next_look(&self) -> Time {
        self.greet_by.get().min(self.returns.next.get()).min(self.say_at.get())
    }

    /// A connection has come, greeted or ended.
    pub fn time_strangers(&self) {
        let known = self.known.lock();
        let since = known.values().filter(|one| one.is_stranger()).map(|one| one.since).min();
        self.greet_by.set(since.map_or(Time::NEVER, |since| since + GREETING));
    }

    fn strangers(&self) -> Vec<Arc<Neighbour>> {
        self.known.lock().values().filter(|one| one.is_stranger()).cloned().collect()
    }
}

impl Inner {
    /// A participant that this side connects to was not reached, or has parted after it was connected at that time, or a
    /// lane that is wanted was refused for what may pass: it is connected to, or offered what is wanted, again in a while.
    pub fn return_to(&self, prefix: GuidPrefix, since: Option<Time>) {
        let mut gone = self.neighbours.returns.in_the_way_of(prefix);
        if !gone.is_empty() {
            // Not all that go have ended a pair.
            self.peek(|core| {
                let known = core.participant.core().database();
                gone.retain(|other| known.peer(*other).is_none());
            });
            self.neighbours.returns.forget(&gone);
        }
        self.neighbours.returns.add(prefix, monotonic_now(), since);
        // Who sleeps has reckoned without it.
        self.kick();
    }

    /// A pair with a participant is no longer matched, maybe as that has gone: it is not connected to again, and one that
    /// comes under its name begins anew.
    pub fn forget_return(&self, prefix: GuidPrefix) {
        if self.neighbours.returns.has(prefix) && !self.is_there(prefix) {
            self.neighbours.returns.forget(&[prefix]);
        }
    }

    /// What could not be said, whatever room the socket has, is said again in a while.
    pub fn say_again(&self) {
        self.neighbours.say_at.set(monotonic_now() + SAY_AGAIN);
        self.kick();
    }

    /// Ends the connections that should have greeted before now, connects again to whom that is due, and says what waits
    /// for the clock. Called without the token.
    pub fn end_overdue(&self, now: Time) {
        if self.neighbours.say_at.get() <= now {
            self.neighbours.say_at.set(Time::NEVER);
            let all: Vec<_> = self.neighbours.known.lock().values().cloned().collect();
            for one in all {
                self.say_unsent(&one);
                self.hear_users_between();
            }
        }
        for prefix in self.neighbours.returns.take(now) {
            if !self.is_there(prefix) {
                self.neighbours.returns.forget(&[prefix]);
            } else if let Some(neighbour) = self.neighbours.find(prefix) {
                self.offer_wanted(&neighbour, prefix);
            } else {
                self.meet(prefix);
            }
            self.hear_users_between();
        }
        for stranger in self.neighbours.strangers() {
            if now.since(stranger.since) >= GREETING {
                self.neighbours.doubt();
                let who = stranger.peer.pid.map(Who::Process);
                self.neighbours.complain(who, "it has connected and not said hello");
                self.part(&stranger);
                self.hear_users_between();
            }
        }
    }

    /// May it greet as this participant? Whom we have connected to has the name that we looked for. Who has connected
    /// to us has a lower one, as those connect; and one of another user must listen under that name, too, which it
    /// alone can while its participant lives.
    pub fn may_greet(&self, from: &Neighbour, prefix: GuidPrefix) -> bool {
        let is_its_own = match from.expected {
            Some(expected) => prefix == expected,
            None => prefix < self.prefix && (from.trusted || self.listens_as(&from.peer, prefix)),
        };
        is_its_own && self.neighbours.find(prefix).is_none()
    }

    /// Does this process listen under the name of the participant? Who does sees a connection that ends at once.
    fn listens_as(&self, peer: &Peer, prefix: GuidPrefix) -> bool {
        let Some(own) = &self.neighbours.own else { return false };
        let connection = Connection::connect(prefix, own.directory.as_deref()).ok();
        connection.and_then(|connection| connection.peer().ok()).is_some_and(|listener| listener.is(peer))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use taut_base::{EntityId, Guid};
    use taut_port_shm::{Memory, Message, Received, Waker, host_id};

    use super::*;
    use crate::executor_tests::own_domain;
    use crate::lanes::neighbours::{FIRST_SOURCE, PAGE};
    use crate::lanes::neighbours_tests::participant;

    /// Below the prefixes of all participants, which begin with their vendor.
    const LOW: GuidPrefix = GuidPrefix([0; 12]);
    const HIGH: GuidPrefix = GuidPrefix([0xff; 12]);

    fn connect(inner: &Inner) -> Connection {
        let connection = Connection::connect(inner.prefix, None).unwrap();
        inner.hear(FIRST_SOURCE);
        connection
    }

    /// Greets, and has it heard.
    fn greet(inner: &Inner, connection: &Connection, prefix: GuidPrefix) {
        let (bell, waker) = (Memory::create("bell", PAGE).unwrap(), Waker::new().unwrap());
        let hello = Message::Hello { host_id: host_id().unwrap(), prefix, hears_end: true };
        connection.send(&hello, &[bell.fd(), waker.fd()]).unwrap();
        inner.neighbours.strangers().iter().for_each(|stranger| inner.listen(stranger));
    }

    /// Has the other side ended it?
    fn is_ended(connection: &Connection) -> bool {
        std::iter::from_fn(|| Some(connection.receive()))
            .find(|received| !matches!(received, Received::Message(..)))
            .is_some_and(|last| matches!(last, Received::Gone))
    }

    #[test]
    fn only_lower_participants_greet_and_each_once() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let high = connect(inner);
        greet(inner, &high, HIGH);
        assert!(is_ended(&high) && inner.neighbours.find(HIGH).is_none());
        let (first, second) = (connect(inner), connect(inner));
        greet(inner, &first, LOW);
        greet(inner, &second, LOW);
        assert!(!is_ended(&first) && is_ended(&second), "it is connected already");
    }

    #[test]
    fn who_listens_under_a_name_is_who_may_have_it() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let mut peer = connect(inner).peer().unwrap();
        assert!(inner.listens_as(&peer, inner.prefix));
        assert!(!inner.listens_as(&peer, LOW), "nobody listens");
        peer.pid = Some(1);
        assert!(!inner.listens_as(&peer, inner.prefix), "another process does");
    }

    #[test]
    fn who_does_not_greet_is_one_of_few_and_not_for_long() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let all: Vec<Connection> = (0..STRANGERS).map(|_| connect(inner)).collect();
        assert!(is_ended(&connect(inner)), "one more is turned away");
        greet(inner, &all[0], LOW);
        let late = connect(inner);
        let now = monotonic_now();
        inner.end_overdue(now);
        assert!(inner.neighbours.next_look() > now && !is_ended(&late), "there is time");
        inner.end_overdue(now + GREETING);
        assert!(all[1..].iter().chain([&late]).all(is_ended));
        assert_eq!(inner.neighbours.next_look(), Time::NEVER);
        assert!(!is_ended(&all[0]) && inner.neighbours.find(LOW).is_some(), "it has greeted");
    }

    #[test]
    fn why_one_is_turned_away_is_known_until_it_greets() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let known = || inner.neighbours.reasons.find(Who::Process(std::process::id()));
        let all: Vec<Connection> = (0..=STRANGERS).map(|_| connect(inner)).collect();
        assert!(known().is_some_and(|why| why.contains("without a greeting")), "{:?}", known());
        let told = inner.neighbours.complaints.0.lock().told.clone();
        let says = format!("of this host (process {}): ", std::process::id());
        assert!(told.len() == 1 && told[0].contains(&says), "{told:?}");
        drop(all);
        inner.neighbours.strangers().iter().for_each(|stranger| inner.listen(stranger));
        let connection = connect(inner);
        greet(inner, &connection, LOW);
        assert_eq!(known(), None);
    }

    #[test]
    fn a_feedback_that_cannot_be_mapped_leaves_the_connection_alone() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let connection = connect(inner);
        greet(inner, &connection, LOW);
        let neighbour = inner.neighbours.find(LOW).unwrap();
        let writer = Guid::new(inner.prefix, EntityId::user(1, true, false));
        let reader = Guid::new(LOW, EntityId::user(1, false, false));
        let number = neighbour.pairs.offer((writer, reader)).unwrap();
        let memory = Memory::create("feedback", PAGE).unwrap();
        // The kernel maps for reading only what was opened for it.
        let path = format!("/proc/self/fd/{}", memory.fd().as_raw_fd());
        let unreadable = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        connection.send(&Message::Accept { writer, reader, number }, &[unreadable.as_fd()]).unwrap();
        inner.listen(&neighbour);
        assert!(inner.neighbours.find(LOW).is_some(), "the connection has ended");
        let said = std::iter::from_fn(|| match connection.receive() {
            Received::Message(message, _) => Some(message),
            _ => None,
        });
        assert_eq!(said.last(), Some(Message::End { writer, reader }));
    }

    #[test]
    fn the_driver_looks_when_the_first_is_due_and_not_before() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        assert_eq!(inner.neighbours.next_look(), Time::NEVER);
        let before = monotonic_now();
        inner.return_to(HIGH, None);
        let first = inner.neighbours.next_look();
        assert!(first >= before + RETURN_FIRST && first <= monotonic_now() + RETURN_FIRST);
        inner.neighbours.returns.add(LOW, first + RETURN_MOST, None);
        assert_eq!(inner.neighbours.next_look(), first);
        assert_eq!(inner.neighbours.returns.take(first), [HIGH]);
        assert_eq!(inner.neighbours.next_look(), first + RETURN_MOST + RETURN_FIRST);
        inner.neighbours.returns.forget(&[LOW]);
        assert_eq!(inner.neighbours.next_look(), Time::NEVER);
        let connection = connect(inner);
        assert!(inner.neighbours.next_look() <= monotonic_now() + GREETING);
        greet(inner, &connection, LOW);
        assert_eq!(inner.neighbours.next_look(), Time::NEVER);
    }

    #[test]
    fn who_was_not_reached_too_often_is_not_tried_again_however_many_there_are() {
        let (returns, mut now) = (Returns::default(), Time(0));
        let prefix = |number: usize| {
            let mut prefix = [0; 12];
            prefix[..8].copy_from_slice(&number.to_ne_bytes());
            GuidPrefix(prefix)
        };
        let tries = (0..2 * RETURNS)
            .map(|_| {
                (0..MAX_CONNECTIONS).for_each(|number| returns.add(prefix(number), now, None));
                now = now + RETURN_MOST;
                returns.take(now).len()
            })
            .sum::<usize>();
        assert_eq!(tries, RETURNS as usize * MAX_CONNECTIONS);
        returns.add(prefix(MAX_CONNECTIONS), now, None);
        returns.add(prefix(0), now, None);
        assert_eq!(returns.take(now + RETURN_MOST), [], "one more, or one again");
        let later = now + RETURN_MOST;
        (0..2).for_each(|_| returns.add(prefix(0), later, Some(now)));
        assert_eq!(returns.take(later + RETURN_FIRST), [prefix(0)], "a connection has lasted");
        returns.forget(&[prefix(0)]);
        returns.add(prefix(MAX_CONNECTIONS), now, None);
        assert_eq!(returns.take(now + RETURN_MOST), [prefix(MAX_CONNECTIONS)]);
    }

    #[test]
    fn who_has_gone_leaves_no_place_taken() {
        let executor = participant(own_domain());
        let inner = &executor.inner;
        let returns = &inner.neighbours.returns;
        for number in 0..=MAX_CONNECTIONS {
            let mut prefix = [0; 12];
            prefix[..8].copy_from_slice(&number.to_ne_bytes());
            inner.return_to(GuidPrefix(prefix), None);
            assert!(returns.has(GuidPrefix(prefix)), "number {number}");
        }
        assert_eq!(returns.to.lock().len(), 1, "nobody else is there");
    }

    #[test]
    fn what_is_offered_again_is_so_however_often_it_was_before() {
        let (returns, mut now) = (Returns::default(), Time(0));
        let again = |now| returns.add(HIGH, now, returns.last(HIGH));
        for tries in 1..=RETURNS + 1 {
            again(now);
            again(now);
            let due = returns.next.get();
            assert_eq!(due == Time::NEVER, tries > RETURNS);
            now = now.max(due.min(now + RETURN_MOST));
            assert_eq!(returns.take(now).len(), usize::from(tries <= RETURNS));
        }
        again(now + RETURN_MOST);
        assert_eq!(returns.next.get(), now + RETURN_MOST + RETURN_FIRST, "what was offered last has lasted");
    }

    #[test]
    fn who_has_parted_is_not_met_later_as_something_is_to_be_offered_to_it() {
        let returns = Returns::default();
        for tries in 0..9 {
            returns.add(HIGH, Time(tries), None);
            returns.take(Time::NEVER);
        }
        let now = Time(9);
        returns.add(HIGH, now, None);
        assert_eq!(returns.next.get(), now + RETURN_MOST);
        let parted = now + RETURN_FIRST;
        returns.add(HIGH, parted, Some(parted));
        assert_eq!(returns.next.get(), now + RETURN_MOST, "it has just begun");
        returns.add(HIGH, parted, Some(Time(0) - RETURN_MOST));
        assert_eq!(returns.next.get(), parted + RETURN_FIRST);
    }

    #[test]
    fn lines_have_a_limit_and_are_counted_beyond_it() {
        let (complaints, now) = (Complaints::default(), Time(0));
        let told = (0..100).filter(|n| complaints.admit(now, &format!("line {n}")).is_some()).count();
        assert_eq!(told, LINES as usize);
        assert_eq!(complaints.admit(now + WINDOW, "one"), Some(100 - LINES));
        assert_eq!(complaints.admit(now + WINDOW, "another"), Some(0));
        assert_eq!(complaints.admit(now + WINDOW, "one"), None, "it was told");
    }
}
