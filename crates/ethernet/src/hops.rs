//! Which station each next hop is: a table that asks, doubts and forgets. RFC 826, RFC 1122 §2.3.2, RFC 4861 §7.2, §7.3.
//!
//! Who is on the network can write any message of ARP or about neighbours. So a station is believed when it answers a question of ours, or
//! asks for us; one that is known stays until it no longer answers, whatever others say meanwhile; and the table has a
//! bound, within which nobody who is sent to gives way to one who is not.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use taut_base::{Duration, Time};

use crate::header::Mac;

/// Hops that are remembered. Lower than the hosts of a domain and some are asked for again and again; higher takes
/// longer to look through when it is time.
const MOST: usize = 1_024;
/// The time between two questions for one hop: RFC 1122 §2.3.2.1 has no more than one in a second,
/// and so has RFC 4861 §7.2.2 (RETRANS_TIMER).
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// So often a station that is known is asked whether it is still there. Lower asks more often, higher sends for longer
/// to one that is not.
const CONFIRM: Duration = Duration::from_secs(30);
/// So many questions without an answer, and a station is not known any more (RFC 4861 §10, MAX_UNICAST_SOLICIT).
const TRIES: u32 = 3;

/// What is known of a hop.
struct Hop {
    ip: IpAddr,
    mac: Option<Mac>,
    /// Have we sent to it?
    wanted: bool,
    /// And since it was last looked after?
    used: bool,
    /// Questions since it last answered.
    asked: u32,
    /// When to look after it.
    due: Time,
    /// It has said who it is since it was last looked after.
    heard: bool,
}

impl Hop {
    /// Who gives way to whom when the table is full: first who is not sent to, then who does not answer, most questions
    /// first, then who was not sent to of late. Who is live gives way to nobody.
    fn worth(&self) -> Option<(u8, Reverse<u32>, Time)> {
        let rank = match (self.wanted, self.mac) {
            (false, _) => 0,
            (true, None) => 1,
            (true, Some(_)) if !self.used => 2,
            _ => return None,
        };
        Some((rank, Reverse(self.asked), self.due))
    }
}

/// What a hop is found by.
#[inline]
fn key(of: IpAddr) -> u128 {
    match of {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The hops.
pub(crate) struct Hops {
    /// By the bits of their addresses, which are of one kind.
    known: BTreeMap<u128, Hop>,
    /// When the first of them is to be looked after.
    due: Time,
}

impl Hops {
    pub fn new() -> Hops {
        Hops { known: BTreeMap::new(), due: Time::NEVER }
    }

    /// The station of a hop that is sent to. Who is not known is asked for when it is next looked after them.
    #[inline]
    pub fn station(&mut self, of: IpAddr) -> Option<Mac> {
        match self.known.get_mut(&key(of)) {
            Some(hop) => {
                (hop.wanted, hop.used) = (true, true);
                hop.mac
            }
            None => {
                self.add(of, None);
                None
            }
        }
    }

    /// Is its station known?
    pub fn is_known(&self, of: IpAddr) -> bool {
        self.known.get(&key(of)).is_some_and(|hop| hop.mac.is_some())
    }

    /// A host has asked for us.
    pub fn heard(&mut self, of: IpAddr, mac: Mac) {
        match self.known.get_mut(&key(of)) {
            Some(hop) if hop.mac.is_none() => hop.believe(mac),
            Some(hop) if hop.mac == Some(mac) && hop.asked > 0 => hop.believe(mac),
            Some(_) => return self.doubted(of, mac),
            None => return self.add(of, Some(mac)),
        }
        self.due = Time(0);
    }

    /// A host has answered. `false` if it was not asked: by us, and if its station is known, that one.
    pub fn answered(&mut self, of: IpAddr, mac: Mac) -> bool {
        let hop = self.known.get_mut(&key(of)).filter(|hop| hop.asked > 0);
        let Some(hop) = hop.filter(|hop| hop.mac.is_none_or(|known| known == mac)) else {
            self.doubted(of, mac);
            return false;
        };
        hop.believe(mac);
        self.due = Time(0);
        true
    }

    /// Somebody says of a host, without being asked, that it is this station. If another one is known, that is asked
    /// whether it is still there.
    pub fn doubted(&mut self, of: IpAddr, mac: Mac) {
        let hop = self.known.get_mut(&key(of)).filter(|hop| hop.mac.is_some_and(|known| known != mac));
        // A question that is open, or an answer that was just heard, is as good as another.
        if let Some(hop) = hop.filter(|hop| hop.asked == 0 && !hop.heard) {
            hop.due = Time(0);
            self.due = Time(0);
        }
    }

    /// *Cost*: a look at all, if the table is full.
    #[cold]
    fn add(&mut self, of: IpAddr, mac: Option<Mac>) {
        let wanted = mac.is_none();
        if self.known.len() >= MOST {
            let worth = |(key, hop): (&u128, &Hop)| Some((hop.worth()?, *key));
            let least = self.known.iter().filter_map(worth).min();
            // Who has only asked for us takes the place of such only.
            let Some((_, least)) = least.filter(|((rank, ..), _)| wanted || *rank == 0) else { return };
            self.known.remove(&least);
        }
        let heard = mac.is_some();
        let hop = Hop { ip: of, mac, wanted, used: wanted, asked: 0, due: Time(0), heard };
        self.known.insert(key(of), hop);
        self.due = Time(0);
    }

    /// When to call [`Hops::look_after`].
    pub fn next_timeout(&self) -> Time {
        self.due
    }

    /// Asks for those who are not known or were not heard of for long, and forgets those nobody sends to who are not
    /// there. `ask` takes a question, to that station or to all, or says that it cannot yet.
    pub fn look_after(&mut self, now: Time, mut ask: impl FnMut(IpAddr, Option<Mac>) -> bool) {
        if now < self.due {
            return;
        }
        self.known.retain(|_, hop| {
            let ip = hop.ip;
            hop.due > now || hop.look_after(now, |mac| ask(ip, mac))
        });
        self.due = self.known.values().map(|hop| hop.due).min().unwrap_or(Time::NEVER);
    }
}

impl Hop {
    fn believe(&mut self, mac: Mac) {
        (self.mac, self.asked, self.heard, self.due) = (Some(mac), 0, true, Time(0));
    }

    /// It is due. `false`: it can be forgotten.
    fn look_after(&mut self, now: Time, ask: impl FnOnce(Option<Mac>) -> bool) -> bool {
        if std::mem::take(&mut self.heard) {
            self.due = now + CONFIRM;
            return true;
        }
        let is_silent = self.asked >= TRIES;
        if !self.used && (!self.wanted || is_silent) {
            return false;
        }
        if is_silent && self.mac.take().is_some() {
            self.asked = 0;
        }
        if ask(self.mac) {
            (self.asked, self.used) = (self.asked.saturating_add(1), false);
            self.due = now + ASK_AGAIN;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const ONE: Mac = [2, 0, 0, 0, 0, 1];
    const TWO: Mac = [2, 0, 0, 0, 0, 2];

    /// The table with a clock, and the questions that it asked.
    struct Bench {
        hops: Hops,
        now: Time,
        asked: Vec<(IpAddr, Option<Mac>)>,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { hops: Hops::new(), now: Time(1), asked: Vec::new() }
        }

        fn look_after(&mut self) -> usize {
            self.asked.clear();
            self.hops.look_after(self.now, |ip, mac| {
                self.asked.push((ip, mac));
                true
            });
            self.asked.len()
        }

        fn pass(&mut self, time: Duration) -> usize {
            self.now = self.now + time;
            self.look_after()
        }

        /// A hop that is sent to and has answered.
        fn with_known(mac: Mac) -> Bench {
            let mut bench = Bench::new();
            assert_eq!(bench.hops.station(A), None);
            assert_eq!((bench.look_after(), &bench.asked[..]), (1, &[(A, None)][..]));
            assert!(bench.hops.answered(A, mac));
            bench.look_after();
            assert_eq!(bench.hops.station(A), Some(mac));
            bench
        }
    }

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0a01_0000 + number).into()
    }

    #[test]
    fn who_is_not_known_is_asked_for_once_in_a_second() {
        let mut bench = Bench::new();
        let mut questions = 0;
        for _ in 0..100 {
            assert_eq!(bench.hops.station(A), None);
            questions += bench.pass(Duration::from_millis(100));
        }
        assert_eq!(questions, 10);
    }

    #[test]
    fn who_is_not_sent_to_is_not_asked_for_for_ever() {
        let mut bench = Bench::new();
        bench.hops.station(A);
        let questions: usize = (0..20).map(|_| bench.pass(ASK_AGAIN)).sum();
        assert_eq!((questions, bench.hops.known.len()), (TRIES as usize, 0));
        assert_eq!(bench.hops.next_timeout(), Time::NEVER);
    }

    #[test]
    fn a_question_that_found_no_room_is_asked_again() {
        let mut bench = Bench::new();
        bench.hops.station(A);
        bench.hops.look_after(bench.now, |_, _| false);
        assert!(bench.hops.next_timeout() <= bench.now);
        assert_eq!(bench.look_after(), 1);
    }

    #[test]
    fn only_who_was_asked_is_believed() {
        let mut bench = Bench::new();
        assert!(!bench.hops.answered(A, ONE), "nobody has asked");
        assert!(bench.hops.known.is_empty());
        bench.hops.station(A);
        assert!(!bench.hops.answered(A, ONE), "it was not asked yet");
        bench.look_after();
        assert!(bench.hops.answered(A, ONE));
        assert!(!bench.hops.answered(A, TWO), "it has answered already");
        assert_eq!(bench.hops.station(A), Some(ONE));
    }

    #[test]
    fn one_who_asks_for_us_is_known_then() {
        let mut bench = Bench::new();
        bench.hops.heard(A, ONE);
        assert_eq!((bench.look_after(), bench.hops.station(A)), (0, Some(ONE)));
        assert_eq!(bench.pass(CONFIRM), 1, "and asked later whether that is so");
        assert_eq!(bench.asked, [(A, Some(ONE))]);
        let mut bench = Bench::new();
        bench.hops.heard(A, ONE);
        bench.look_after();
        bench.pass(CONFIRM);
        assert!(bench.hops.known.is_empty(), "nobody has sent to it");
    }

    #[test]
    fn a_known_station_stays_while_it_answers() {
        let answered = |hops: &mut Hops, of, mac| assert!(!hops.answered(of, mac));
        for say in [Hops::doubted, Hops::heard, answered] {
            let mut bench = Bench::with_known(ONE);
            for _ in 0..10 {
                say(&mut bench.hops, A, TWO);
                assert_eq!(bench.look_after(), 1, "the one who is known is asked, by itself");
                assert_eq!(bench.asked, [(A, Some(ONE))]);
                say(&mut bench.hops, A, TWO);
                assert_eq!(bench.look_after(), 0, "once");
                assert!(bench.hops.answered(A, ONE));
                bench.look_after();
                assert_eq!(bench.hops.station(A), Some(ONE));
            }
        }
    }

    #[test]
    fn a_station_that_does_not_answer_any_more_is_replaced() {
        let mut bench = Bench::with_known(ONE);
        for number in 0..TRIES {
            bench.pass(if number == 0 { CONFIRM } else { ASK_AGAIN });
            assert_eq!(bench.asked, [(A, Some(ONE))]);
            assert_eq!(bench.hops.station(A), Some(ONE), "until then it is sent to");
        }
        bench.pass(ASK_AGAIN);
        assert_eq!(bench.asked, [(A, None)], "all are asked");
        assert_eq!(bench.hops.station(A), None);
        assert!(bench.hops.answered(A, TWO));
        assert_eq!(bench.hops.station(A), Some(TWO));
    }

    #[test]
    fn one_who_answers_is_known_though_nothing_was_sent_for_an_hour() {
        let mut bench = Bench::with_known(ONE);
        for _ in 0..120 {
            assert_eq!(bench.pass(CONFIRM), 1);
            assert!(bench.hops.answered(A, ONE));
            bench.look_after();
        }
        assert_eq!(bench.hops.station(A), Some(ONE));
    }

    #[test]
    fn a_flood_pushes_nobody_out_who_is_sent_to() {
        let mut bench = Bench::with_known(ONE);
        let wanted = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
        bench.hops.station(wanted);
        for number in 0..10_000 {
            bench.hops.heard(address(number), TWO);
            bench.hops.answered(address(number), TWO);
        }
        assert_eq!(bench.hops.known.len(), MOST);
        assert_eq!(bench.hops.station(A), Some(ONE));
        bench.look_after();
        assert!(bench.asked.contains(&(wanted, None)), "who is asked for stays, too");
        // Addresses that are made up, and announced as those of peers, take each other's places.
        let mut bench = Bench::with_known(ONE);
        (0..10_000).for_each(|number| assert_eq!(bench.hops.station(address(number)), None));
        assert_eq!((bench.hops.known.len(), bench.hops.station(A)), (MOST, Some(ONE)));
        bench.hops.heard(wanted, TWO);
        assert!(!bench.hops.known.contains_key(&key(wanted)), "and not those of one who only asks for us");
        bench.look_after();
        bench.hops.station(wanted);
        assert!(bench.pass(ASK_AGAIN) > 0 && bench.asked.contains(&(wanted, None)), "they make room");
    }
}
