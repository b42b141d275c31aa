//! Pacing in time: how much goes to each destination in a second, and who waits for that.
//!
//! Owns a bucket for each destination and the places of the writers that wait for one. Knows no message and sends
//! nothing: a writer asks before it sends ([`Flow::admit`]), what has left is charged to each of its destinations
//! ([`Flow::charge`]), and `Participant::on_timeout` queues who waits when it is time ([`Flow::wake`]). Heartbeats that go
//! alone, acknowledgements and discovery never ask. See docs/adr/0027-max-rate.md.
//!
//! A writer that is refused has a place in the line of each of its destinations, by TRANSPORT_PRIORITY, then by how long it
//! waits, and sleeps at the one that refused it. Nobody sends before who has a place in front. So the first of all is the
//! first in each of its lines: it is refused by levels alone, for which there is a time.

mod bucket;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use taut_base::{Locator, Time};

use crate::limits;
use crate::schedule::Work;

use bucket::Bucket;
pub use bucket::MaxRate;

/// What a datagram takes of an Ethernet besides its payload: headers of Ethernet, of IPv4 or IPv6, and of UDP.
const HEADERS_V4: i64 = 14 + 20 + 8;
const HEADERS_V6: i64 = 14 + 40 + 8;

/// Which part of a burst only writers with a TRANSPORT_PRIORITY above 0 may use. Lower and such a writer waits for tokens
/// behind bulk of others; higher and bulk goes in smaller pieces.
const RESERVE: i64 = 4;

/// Who waits is called when as much may be sent as in this time, if that is not the most of a burst. Lower calls more often
/// for less, higher sends less evenly. *Units*: ns.
const QUANTUM_NS: i64 = 1_000_000;

/// So many of a line are called at a time, in its order, so that their samples share datagrams. Lower shares less, higher
/// calls more of whom the first leaves nothing.
const CALLED: usize = 64;

/// How a writer stands in a line: the highest priority first, then who came first.
type Place = (Reverse<i32>, u64);

/// A destination.
#[derive(Debug)]
struct Line {
    bucket: Bucket,
    /// Who has a place.
    places: BTreeMap<Place, Work>,
    /// Who of them is to be called for it.
    asleep: BTreeSet<Place>,
    /// When; `NEVER` if nobody is, or somebody in front has been called or sleeps elsewhere.
    due: Time,
}

impl Line {
    const EMPTY: Line =
        Line { bucket: Bucket::FULL, places: BTreeMap::new(), asleep: BTreeSet::new(), due: Time::NEVER };
}

/// A piece of work that has a place.
#[derive(Debug)]
struct Waiter {
    place: Place,
    route: Vec<Locator>,
    /// Of the largest datagram that it sends.
    datagram: usize,
}

/// The buckets of all destinations, and who waits.
#[derive(Debug)]
pub struct Flow {
    max: MaxRate,
    lines: BTreeMap<Locator, Line>,
    waiters: BTreeMap<Work, Waiter>,
    /// The routes of those that have had their turn, empty, for those that wait next.
    unused: Vec<Vec<Locator>>,
    due: BTreeSet<(Time, Locator)>,
    next_ticket: u64,
}

impl Flow {
    pub(crate) fn new(max: MaxRate) -> Flow {
        let (lines, waiters, due) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Flow { max, lines, waiters, unused: Vec::new(), due, next_ticket: 0 }
    }

    /// May a piece of work of this priority send now to each of `route`, in datagrams of at most so many bytes, beside
    /// `pending` bytes that are about to leave for them? Then one datagram, and of others so many bytes. `None`: it waits,
    /// and is called.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        work: Work,
        priority: i32,
        (route, datagram): (&[Locator], usize),
        pending: usize,
    ) -> Option<i64> {
        let known = self.waiters.get(&work);
        let place = known.map_or((Reverse(priority), self.next_ticket), |known| known.place);
        let (need, reserve) = self.need(place, route, datagram);
        let pending = i64::try_from(pending).unwrap_or(i64::MAX);
        let (mut room, mut refused) = (i64::MAX, None);
        for to in route {
            let Some(line) = self.lines.get(to) else {
                room = room.min(self.max.burst().saturating_sub(reserve).saturating_sub(pending));
                continue;
            };
            let level = line.bucket.level(now, &self.max).saturating_sub(pending);
            let is_first = line.places.first_key_value().is_none_or(|(first, _)| *first >= place);
            if !is_first || level < need {
                refused = Some(*to);
                break;
            }
            room = room.min(level.saturating_sub(reserve));
        }
        match refused {
            None => Some(room.saturating_sub(need.saturating_sub(reserve)).max(0)),
            Some(at) => {
                self.wait(now, work, place, (route, datagram), at);
                None
            }
        }
    }

    /// What has to be in a bucket for one datagram, and what has to be left.
    fn need(&self, (Reverse(priority), _): Place, route: &[Locator], datagram: usize) -> (i64, i64) {
        let burst = self.max.burst();
        let reserve = if priority > 0 { 0 } else { burst.saturating_div(RESERVE) };
        let headers = route.iter().map(headers).max().unwrap_or(0);
        let datagram = i64::try_from(datagram).unwrap_or(i64::MAX).saturating_add(headers);
        (datagram.saturating_add(reserve).min(burst), reserve)
    }

    /// Takes a place in the line of each destination, and sleeps at one of them.
    fn wait(
        &mut self,
        now: Time,
        work: Work,
        place: Place,
        (route, datagram): (&[Locator], usize),
        at: Locator,
    ) {
        if self.waiters.get(&work).is_some_and(|known| known.route != route) {
            self.leave(now, work);
        }
        if let Some(known) = self.waiters.get_mut(&work) {
            known.datagram = datagram;
        } else {
            self.next_ticket = self.next_ticket.max(place.1).saturating_add(1);
            for to in route {
                if let Some(line) = self.line(now, *to) {
                    line.places.insert(place, work);
                }
            }
            let mut own = self.unused.pop().unwrap_or_default();
            own.extend_from_slice(route);
            self.waiters.insert(work, Waiter { place, route: own, datagram });
        }
        if let Some(line) = self.line(now, at) {
            line.asleep.insert(place);
        }
        for to in route {
            self.arm(now, *to);
        }
    }

    /// It has had its turn: what it has left waits behind the others.
    pub(crate) fn leave(&mut self, now: Time, work: Work) {
        let Some(Waiter { place, mut route, .. }) = self.waiters.remove(&work) else { return };
        for to in route.drain(..) {
            if let Some(line) = self.lines.get_mut(&to) {
                line.places.remove(&place);
                line.asleep.remove(&place);
            }
            self.arm(now, to);
        }
        self.unused.push(route);
    }

    /// The line of a destination. At the bound those go that nobody would miss; a destination beyond it is not paced until
    /// another one has been silent for a while.
    fn line(&mut self, now: Time, to: Locator) -> Option<&mut Line> {
        if self.lines.len() >= limits::PEERS && !self.lines.contains_key(&to) {
            self.lines.retain(|_, line| !line.places.is_empty() || !line.bucket.is_full(now));
            if self.lines.len() >= limits::PEERS {
                return None;
            }
        }
        Some(self.lines.entry(to).or_insert(Line::EMPTY))
    }

    /// Sets when a destination is due.
    fn arm(&mut self, now: Time, to: Locator) {
        let Flow { max, lines, waiters, due, .. } = self;
        let Some(line) = lines.get_mut(&to) else { return };
        let first = line.places.first_key_value().filter(|(place, _)| line.asleep.contains(place));
        let at = match first {
            None => Time::NEVER,
            Some(((Reverse(priority), _), work)) => {
                let datagram = waiters.get(work).map_or(0, |waiter| waiter.datagram);
                let datagram = i64::try_from(datagram).unwrap_or(i64::MAX).saturating_add(headers(&to));
                let burst = max.burst();
                let need = if *priority > 0 {
                    datagram
                } else {
                    let quantum = max.within(QUANTUM_NS).min(burst / 2);
                    datagram.max(quantum).saturating_add(burst.saturating_div(RESERVE))
                };
                line.bucket.ready_at(need.min(burst), max).max(now)
            }
        };
        if line.due != at {
            due.remove(&(line.due, to));
            line.due = at;
            if at != Time::NEVER {
                due.insert((at, to));
            }
        }
    }

    /// So many datagrams have left for a destination, of so many bytes together.
    pub(crate) fn charge(&mut self, now: Time, to: &Locator, datagrams: usize, bytes: usize) {
        let datagrams = i64::try_from(datagrams).unwrap_or(i64::MAX);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let bytes = bytes.saturating_add(datagrams.saturating_mul(headers(to)));
        let max = self.max;
        if let Some(line) = self.line(now, *to) {
            line.bucket.take(now, bytes, &max);
        }
        self.arm(now, *to);
    }

    /// When [`Flow::wake`] is to be called.
    pub(crate) fn next(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Takes who may send now, with their priorities, in the order of their places at each destination.
    pub(crate) fn wake(&mut self, now: Time, mut queue: impl FnMut(Work, i32)) {
        while let Some((_, to)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            let Some(line) = self.lines.get_mut(&to) else { continue };
            line.due = Time::NEVER;
            for _ in 0..CALLED {
                let Some(place) = line.asleep.pop_first() else { break };
                if let Some(work) = line.places.get(&place) {
                    queue(*work, place.0.0);
                }
            }
        }
    }
}

fn headers(to: &Locator) -> i64 {
    match to.socket_addr() {
        Some(address) if address.is_ipv6() => HEADERS_V6,
        _ => HEADERS_V4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use std::net::Ipv4Addr;

    const MAX: MaxRate = MaxRate { bytes_per_second: 1_000_000, burst: 10_000 };
    const DATAGRAM: usize = 1_000;

    fn to(port: u16) -> Locator {
        Locator::udp_v4(Ipv4Addr::LOCALHOST, port)
    }

    fn writer(index: u32) -> Work {
        Work::Push(WriterIndex(index))
    }

    fn ask(flow: &mut Flow, at: Time, index: u32, priority: i32, route: &[Locator]) -> bool {
        flow.admit(at, writer(index), priority, (route, DATAGRAM), 0).is_some()
    }

    fn called(flow: &mut Flow, at: Time) -> Vec<Work> {
        let mut called = Vec::new();
        flow.wake(at, |work, _| called.push(work));
        called
    }

    /// Takes all but what is kept for priorities.
    fn drain(flow: &mut Flow, at: Time, port: u16) {
        flow.charge(at, &to(port), 1, 7_500 - 42);
    }

    #[test]
    fn nobody_sends_past_who_waits_and_the_highest_is_the_first() {
        let (mut flow, start) = (Flow::new(MAX), Time(1_000_000_000));
        drain(&mut flow, start, 1);
        assert!(!ask(&mut flow, start, 1, 0, &[to(1)]));
        let later = Time(start.0 + 1_500_000);
        assert!(!ask(&mut flow, later, 2, 0, &[to(1)]), "there are tokens, for another one");
        assert!(ask(&mut flow, later, 3, 1, &[to(1)]), "not before a higher one");
        assert_eq!(flow.next(), Time(start.0 + 1_042_000).max(later));
        assert_eq!(called(&mut flow, later), [writer(1), writer(2)]);
        assert_eq!(called(&mut flow, later), []);
        assert!(ask(&mut flow, later, 1, 0, &[to(1)]) && !ask(&mut flow, later, 2, 0, &[to(1)]));
        flow.charge(later, &to(1), 1, DATAGRAM);
        flow.leave(later, writer(1));
        // After its turn it is behind the other one.
        assert!(!ask(&mut flow, later, 1, 0, &[to(1)]) && !ask(&mut flow, later, 2, 0, &[to(1)]));
        let at = flow.next();
        assert_eq!(called(&mut flow, at), [writer(2), writer(1)]);
        [1, 2].into_iter().for_each(|index| flow.leave(at, writer(index)));
        assert_eq!(flow.next(), Time::NEVER);
    }

    /// One for two destinations waits at one of them, and keeps its place at the other.
    #[test]
    fn who_has_several_destinations_is_not_passed_at_any() {
        let (mut flow, start) = (Flow::new(MAX), Time(1_000_000_000));
        drain(&mut flow, start, 1);
        assert!(!ask(&mut flow, start, 1, 0, &[to(1), to(2)]));
        assert!(!ask(&mut flow, start, 2, 0, &[to(2)]), "it is full, and another one is in front");
        let at = flow.next();
        assert!(at > start, "nobody is called for what only another one's turn can give");
        assert_eq!(called(&mut flow, at), [writer(1)]);
        assert!(ask(&mut flow, at, 1, 0, &[to(1), to(2)]));
        flow.leave(at, writer(1));
        assert_eq!(called(&mut flow, at), [writer(2)]);
        assert!(ask(&mut flow, at, 2, 0, &[to(2)]));
        assert!(!flow.waiters.contains_key(&writer(1)));
    }

    #[test]
    fn destinations_are_forgotten_when_they_would_not_be_missed() {
        let mut flow = Flow::new(MAX);
        for port in 0..=u16::MAX {
            flow.charge(Time(i64::from(port) * 10_000_000), &to(port), 1, 500);
        }
        assert!(flow.lines.len() <= limits::PEERS);
        let mut crowd = Flow::new(MAX);
        (0..=u16::MAX).for_each(|port| crowd.charge(Time(0), &to(port), 1, 500));
        assert_eq!(crowd.lines.len(), limits::PEERS);
    }
}
