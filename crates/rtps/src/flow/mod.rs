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
    due: BTreeSet<(Time, Locator)>,
    next_ticket: u64,
}

impl Flow {
    pub(crate) fn new(max: MaxRate) -> Flow {
        Flow { max, lines: BTreeMap::new(), waiters: BTreeMap::new(), due: BTreeSet::new(), next_ticket: 0 }
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
        if !self.waiters.contains_key(&work) {
            self.next_ticket = self.next_ticket.max(place.1).saturating_add(1);
            for to in route {
                self.line(now, *to).places.insert(place, work);
            }
        }
        self.waiters.insert(work, Waiter { place, route: route.to_vec(), datagram });
        self.line(now, at).asleep.insert(place);
        for to in route {
            self.arm(now, *to);
        }
    }

    /// It has had its turn: what it has left waits behind the others.
    pub(crate) fn leave(&mut self, now: Time, work: Work) {
        let Some(Waiter { place, route, .. }) = self.waiters.remove(&work) else { return };
        for to in route {
            if let Some(line) = self.lines.get_mut(&to) {
                line.places.remove(&place);
                line.asleep.remove(&place);
            }
            self.arm(now, to);
        }
    }

    /// The line of a destination. At the bound those go that nobody would miss; if there are none the destination has no
    /// bucket until there are.
    fn line(&mut self, now: Time, to: Locator) -> &mut Line {
        if self.lines.len() >= limits::PEERS && !self.lines.contains_key(&to) {
            self.lines.retain(|_, line| !line.places.is_empty() || !line.bucket.is_full(now));
            if self.lines.len() >= limits::PEERS {
                // As if all that are beyond the bound were one.
                return self.lines.entry(Locator::INVALID).or_insert(Line::EMPTY);
            }
        }
        self.lines.entry(to).or_insert(Line::EMPTY)
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
        self.line(now, *to).bucket.take(now, bytes, &max);
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
