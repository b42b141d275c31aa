//! Datagrams that come in fragments of IP: others send such what is larger than a frame. RFC 791 §3.2, RFC 8200 §4.5,
//! RFC 815.
//!
//! What is in the making has a bound, in all and for each sender, and the oldest gives way. Fragments that overlap
//! spoil their datagram, as no sender makes such (RFC 5722 says why), and so do too many that are out of order. What is
//! whole is remembered for a moment: the network may double its last fragment, which would begin another datagram.

use std::net::IpAddr;

use taut_base::{Duration, Time};

use crate::layer::Refused;

/// Datagrams in the making. Lower loses those whose fragments come mixed with others, higher takes 64 KiB more each, if
/// so many ever were in the making.
const MOST: usize = 32;
/// The same of one sender, whose oldest gives way to its next.
const MOST_OF_ONE: usize = 8;
/// Pieces of one, one behind the other without a gap counting once. Lower loses what comes out of order, higher takes
/// longer to find a place in.
const PIECES: usize = 32;
/// The longest datagram: a length of 16 bits that counts the header.
const LONGEST: usize = 65_515;
/// The same over IPv6, where it does not.
const LONGEST_V6: usize = 65_535;
/// How long the rest may take. Lower loses what takes its time, higher may mix two datagrams of the same number, of
/// which IPv4 has 65,536: a checksum of UDP finds out.
const PATIENCE: Duration = Duration::from_secs(3);
/// Datagrams that are remembered. Lower forgets sooner where many come, higher takes 64 KiB more each.
const MOST_REMEMBERED: usize = 4;

/// Whose datagram it is: from, to, and the sender's number for it.
pub(crate) type Key = (IpAddr, IpAddr, u32);

/// A part of a datagram, from the byte `start` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub key: Key,
    pub start: usize,
    pub is_last: bool,
    pub bytes: &'a [u8],
}

/// One in the making, or remembered; without a key it is none.
#[derive(Default)]
struct Making {
    key: Option<Key>,
    /// When it was begun, or whole if it is remembered, as a number.
    begun: u64,
    /// Until when it may take; not known until somebody says what time it is.
    until: Option<Time>,
    bytes: Vec<u8>,
    /// What has come, in order and with gaps between.
    pieces: Vec<(usize, usize)>,
    /// The length, once the last fragment has come.
    len: Option<usize>,
    /// The length of one that was whole and is remembered: what has come since then is the same again.
    whole: Option<usize>,
}

/// All that are in the making.
#[derive(Default)]
pub(crate) struct Fragments {
    making: Vec<Making>,
    begun: u64,
    lost: u64,
}

impl Fragments {
    /// Adds a fragment. The datagram, if it is whole now.
    ///
    /// *Errors*: `Malformed` for what no datagram is made of. *Cost*: a copy; 64 KiB for the first datagrams.
    pub fn add(&mut self, fragment: &Fragment<'_>) -> Result<Option<&[u8]>, Refused> {
        let end = fragment.start + fragment.bytes.len();
        let longest = if fragment.key.0.is_ipv4() { LONGEST } else { LONGEST_V6 };
        let is_whole = fragment.bytes.len().is_multiple_of(8) || fragment.is_last;
        if fragment.bytes.is_empty() || !is_whole || end > longest {
            return Err(Refused::Malformed);
        }
        let place = self.place(fragment, end);
        let Some(making) = self.making.get_mut(place) else { return Ok(None) };
        if !making.add(fragment, end) {
            making.key = None;
            self.lost += 1;
            return Err(Refused::Malformed);
        }
        let Some(len) = making.len.filter(|len| making.pieces == [(0, *len)]) else { return Ok(None) };
        (making.whole, making.len, making.until) = (Some(len), None, None);
        making.pieces.clear();
        self.begun += 1;
        making.begun = self.begun;
        self.forget();
        Ok(self.making.get(place).and_then(|making| making.bytes.get(..len)))
    }

    /// Forgets the one that was whole first, if they are too many.
    fn forget(&mut self) {
        let remembered = || self.making.iter().enumerate().filter(|(_, making)| making.is_remembered());
        if remembered().count() <= MOST_REMEMBERED {
            return;
        }
        let first = remembered().min_by_key(|(_, making)| making.begun).map(|(place, _)| place);
        if let Some(making) = first.and_then(|place| self.making.get_mut(place)) {
            making.key = None;
        }
    }

    /// Where this one is made, which ends at the byte `end`. *Cost*: a look at all.
    fn place(&mut self, fragment: &Fragment<'_>, end: usize) -> usize {
        let key = fragment.key;
        if let Some(place) = self.making.iter().position(|making| making.key == Some(key))
            && let Some(making) = self.making.get_mut(place)
        {
            if making.whole.is_none_or(|len| making.has(fragment, end, len)) {
                return place;
            }
            // The sender has come to the same number again.
            making.key = None;
        }
        let of_one = |making: &&Making| making.is_open() && making.key.is_some_and(|of| of.0 == key.0);
        let is_many = self.making.iter().filter(of_one).count() >= MOST_OF_ONE;
        let is_full = self.making.len() >= MOST;
        let remembered = self.making.iter().filter(|making| making.is_remembered());
        let is_forgotten = is_full || remembered.count() >= MOST_REMEMBERED;
        let gives_way = |making: &&Making| match making.key {
            _ if is_many => of_one(making),
            Some(_) if making.is_open() => is_full,
            Some(_) => is_forgotten,
            None => true,
        };
        let all = self.making.iter().enumerate().filter(|(_, making)| gives_way(making));
        let least = all.min_by_key(|(_, making)| (making.is_open(), making.key.is_some(), making.begun));
        let place = least.map(|(place, _)| place).unwrap_or_else(|| {
            self.making.push(Making::default());
            self.making.len() - 1
        });
        self.begun += 1;
        if let Some(making) = self.making.get_mut(place) {
            self.lost += u64::from(making.is_open());
            making.begin(key, self.begun);
        }
        place
    }

    /// Datagrams that were given up.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// When to call [`Fragments::give_up`].
    pub fn next_timeout(&self) -> Time {
        let in_making = self.making.iter().filter(|making| making.key.is_some());
        in_making.map(|making| making.until.unwrap_or(Time(0))).min().unwrap_or(Time::NEVER)
    }

    /// Gives up those that take too long, and forgets those that were whole.
    pub fn give_up(&mut self, now: Time) {
        for making in self.making.iter_mut().filter(|making| making.key.is_some()) {
            if *making.until.get_or_insert(now + PATIENCE) <= now {
                self.lost += u64::from(making.is_open());
                making.key = None;
            }
        }
    }
}

impl Making {
    fn begin(&mut self, key: Key, begun: u64) {
        (self.key, self.begun, self.until, self.len) = (Some(key), begun, None, None);
        self.whole = None;
        self.pieces.clear();
        self.bytes.resize(LONGEST_V6, 0);
    }

    /// Is it in the making, so that it would be lost?
    fn is_open(&self) -> bool {
        self.key.is_some() && self.whole.is_none()
    }

    fn is_remembered(&self) -> bool {
        self.key.is_some() && self.whole.is_some()
    }

    /// Was this a fragment of it, when it was whole and had `len` bytes?
    fn has(&self, fragment: &Fragment<'_>, end: usize, len: usize) -> bool {
        end <= len
            && fragment.is_last == (end == len)
            && self.bytes.get(fragment.start..end) == Some(fragment.bytes)
    }

    /// `false`: it is spoiled.
    fn add(&mut self, fragment: &Fragment<'_>, end: usize) -> bool {
        let start = fragment.start;
        let last = self.pieces.last().map_or(0, |(_, end)| *end);
        if self.len.is_some_and(|len| end > len || fragment.is_last && end < len)
            || fragment.is_last && end < last
        {
            return false;
        }
        let place = self.pieces.partition_point(|(_, before)| *before < start);
        // The network may double a frame.
        if self.pieces.get(place).is_some_and(|(from, to)| *from <= start && end <= *to) {
            return true;
        }
        let behind = self.pieces.get(place).is_some_and(|(_, to)| *to == start);
        let next = place + usize::from(behind);
        if self.pieces.get(next).is_some_and(|(from, _)| *from < end) {
            return false;
        }
        let before = self.pieces.get(next).is_some_and(|(from, _)| *from == end);
        if fragment.is_last {
            self.len = Some(end);
        }
        if let Some(to) = self.bytes.get_mut(start..end) {
            to.copy_from_slice(fragment.bytes);
        }
        match (behind, before) {
            (true, true) => {
                let (_, to) = self.pieces.remove(next);
                self.pieces.get_mut(place).into_iter().for_each(|piece| piece.1 = to);
            }
            (true, false) => self.pieces.get_mut(place).into_iter().for_each(|piece| piece.1 = end),
            (false, true) => self.pieces.get_mut(next).into_iter().for_each(|piece| piece.0 = start),
            (false, false) => self.pieces.insert(place, (start, end)),
        }
        self.pieces.len() <= PIECES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const US: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn whole(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    /// The pieces of a datagram, of 1,480 bytes each.
    fn pieces(key: Key, datagram: &[u8]) -> Vec<Fragment<'_>> {
        let count = datagram.len().div_ceil(1_480);
        let piece = |(at, bytes)| Fragment { key, start: at * 1_480, is_last: at + 1 == count, bytes };
        datagram.chunks(1_480).enumerate().map(piece).collect()
    }

    fn key(number: u32) -> Key {
        (A, US, number)
    }

    #[test]
    fn a_datagram_is_made_of_its_pieces_in_any_order() {
        let mut fragments = Fragments::default();
        for (number, len) in [1_481, 2_960, 3_000, 20_000, LONGEST].into_iter().enumerate() {
            let datagram = whole(len);
            for turn in 0..4 {
                let mut pieces = pieces(key(number as u32), &datagram);
                match turn {
                    1 => pieces.reverse(),
                    2 => pieces.sort_by_key(|piece| piece.start / 1_480 * 7 % 11),
                    3 => pieces = pieces.iter().flat_map(|piece| [*piece, *piece]).collect(),
                    _ => {}
                }
                let end = pieces.len() - if turn == 3 { 2 } else { 1 };
                for piece in &pieces[..end] {
                    assert_eq!(fragments.add(piece), Ok(None), "{len} bytes, {turn}");
                }
                assert_eq!(fragments.add(&pieces[end]), Ok(Some(&datagram[..])), "{len} bytes, {turn}");
                fragments.give_up(Time(0));
                fragments.give_up(Time(0) + PATIENCE);
            }
        }
        assert_eq!(fragments.next_timeout(), Time::NEVER);
    }

    #[test]
    fn the_longest_of_ipv6_is_longer() {
        let (own, mut fragments) = (IpAddr::from([0xfd; 16]), Fragments::default());
        let datagram = whole(LONGEST_V6);
        for (key, is_whole) in [((own, own, 1), true), (key(1), false)] {
            let made: Vec<_> =
                pieces(key, &datagram).iter().map(|piece| fragments.add(piece).is_ok()).collect();
            assert_eq!(made.iter().all(|made| *made), is_whole);
        }
    }

    #[test]
    fn what_is_doubled_is_not_lost() {
        let (datagram, mut fragments) = (whole(4_000), Fragments::default());
        let all = pieces(key(1), &datagram);
        for piece in &all[..2] {
            assert_eq!(fragments.add(piece), Ok(None));
        }
        assert_eq!(fragments.add(&all[2]), Ok(Some(&datagram[..])));
        for piece in [&all[2], &all[0], &all[2]] {
            assert_eq!(fragments.add(piece), Ok(None));
        }
        fragments.give_up(Time(0));
        fragments.give_up(Time(0) + PATIENCE);
        assert_eq!((fragments.lost(), fragments.next_timeout()), (0, Time::NEVER), "all that came was whole");
    }

    #[test]
    fn a_number_that_is_used_again_is_of_another_datagram() {
        let (datagram, mut fragments) = (whole(4_000), Fragments::default());
        for (number, len) in [1_500, 4_000, 9_000].into_iter().enumerate() {
            let mut other = whole(len);
            other[0] ^= 1;
            for datagram in [&datagram, &other] {
                let all = pieces(key(number as u32), datagram);
                let (last, before) = all.split_last().unwrap();
                before.iter().for_each(|piece| assert_eq!(fragments.add(piece), Ok(None)));
                assert!(fragments.add(last) == Ok(Some(&datagram[..])), "{len} bytes");
                // Its last fragment is doubled.
                assert_eq!(fragments.add(last), Ok(None));
            }
        }
        assert_eq!(fragments.lost(), 0);
        // What is begun anew and does not end is lost.
        assert_eq!(fragments.add(&pieces(key(1), &datagram)[0]), Ok(None));
        fragments.give_up(Time(0));
        fragments.give_up(Time(0) + PATIENCE);
        assert_eq!((fragments.lost(), fragments.next_timeout()), (1, Time::NEVER));
    }

    #[test]
    fn few_are_remembered() {
        let (datagram, mut fragments) = (whole(2_000), Fragments::default());
        for number in 0..100 {
            let all = pieces(key(number), &datagram);
            assert_eq!(fragments.add(&all[0]), Ok(None));
            assert!(fragments.add(&all[1]) == Ok(Some(&datagram[..])), "{number}");
        }
        assert_eq!((fragments.making.len(), fragments.lost()), (MOST_REMEMBERED, 0));
    }

    /// In the making of one sender, and remembered in all.
    #[test]
    fn what_is_remembered_takes_no_other_place() {
        let (datagram, mut fragments) = (whole(2_000), Fragments::default());
        let open = |fragments: &Fragments| fragments.making.iter().filter(|making| making.is_open()).count();
        let remembered =
            |fragments: &Fragments| fragments.making.iter().filter(|making| making.is_remembered()).count();
        let many = MOST_OF_ONE as u32;
        for half in 0..2 {
            for number in 0..many {
                let wanted = (half == 1).then_some(&datagram[..]);
                assert!(fragments.add(&pieces(key(number), &datagram)[half]) == Ok(wanted), "{number}");
            }
        }
        assert_eq!((open(&fragments), remembered(&fragments)), (0, MOST_REMEMBERED));
        // The last that were whole are remembered, in whatever order they were begun.
        assert_eq!(fragments.add(&pieces(key(many - 1), &datagram)[1]), Ok(None));
        assert_eq!((open(&fragments), fragments.lost()), (0, 0), "its last fragment was doubled");
        // The sender begins others, and then some of the same numbers again.
        let mut other = datagram.clone();
        other[0] ^= 1;
        for number in (100..100 + many).chain(0..many) {
            assert_eq!(fragments.add(&pieces(key(number), &other)[0]), Ok(None));
            assert!(open(&fragments) <= MOST_OF_ONE, "{number}: {}", open(&fragments));
        }
        assert_eq!((open(&fragments), fragments.lost()), (MOST_OF_ONE, u64::from(many)));
    }

    #[test]
    fn what_overlaps_spoils_the_datagram() {
        let bytes = whole(64);
        let piece = |start: usize, len: usize, is_last| Fragment {
            key: key(1),
            start,
            is_last,
            bytes: &bytes[..len],
        };
        let spoils = [
            vec![piece(0, 16, false), piece(8, 16, false)],
            vec![piece(8, 16, false), piece(0, 16, false)],
            vec![piece(8, 16, false), piece(0, 32, false)],
            vec![piece(0, 8, false), piece(24, 8, false), piece(8, 24, false)],
            vec![piece(8, 8, true), piece(16, 8, false)],
            vec![piece(16, 8, false), piece(8, 8, true)],
            vec![piece(16, 8, true), piece(8, 8, true)],
        ];
        for all in spoils {
            let mut fragments = Fragments::default();
            let (last, before) = all.split_last().unwrap();
            before.iter().for_each(|piece| assert_eq!(fragments.add(piece), Ok(None)));
            assert_eq!(fragments.add(last), Err(Refused::Malformed), "{all:?}");
            assert_eq!((fragments.lost(), fragments.next_timeout()), (1, Time::NEVER));
        }
    }

    #[test]
    fn what_is_no_fragment_is_malformed() {
        let bytes = whole(65_535);
        let mut fragments = Fragments::default();
        for (start, len, is_last) in
            [(0, 0, true), (8, 0, false), (0, 9, false), (65_512, 8, true), (0, 65_520, false)]
        {
            let piece = Fragment { key: key(1), start, is_last, bytes: &bytes[..len] };
            assert_eq!(fragments.add(&piece), Err(Refused::Malformed), "{start} and {len}");
        }
        assert_eq!(fragments.next_timeout(), Time::NEVER, "nothing is in the making");
        let in_gaps = |at| Fragment { key: key(2), start: 16 * at, is_last: false, bytes: &bytes[..8] };
        (0..PIECES).for_each(|at| assert_eq!(fragments.add(&in_gaps(at)), Ok(None)));
        assert_eq!(fragments.add(&in_gaps(PIECES)), Err(Refused::Malformed), "gaps have a bound");
    }

    #[test]
    fn a_flood_of_one_sender_leaves_those_of_others() {
        let (ours, mut fragments) = (whole(3_000), Fragments::default());
        let [first, second, third] = pieces(key(7), &ours)[..] else { panic!("three") };
        assert_eq!(fragments.add(&first), Ok(None));
        let junk = whole(8);
        let flood = |number| {
            let key = (Ipv4Addr::new(10, 0, 0, 66).into(), US, number);
            Fragment { key, start: 0, is_last: false, bytes: &junk }
        };
        (0..1_000).for_each(|number| assert_eq!(fragments.add(&flood(number)), Ok(None)));
        assert_eq!(fragments.making.len(), 1 + MOST_OF_ONE);
        assert_eq!(fragments.lost(), 1_000 - MOST_OF_ONE as u64);
        assert_eq!(fragments.add(&second), Ok(None));
        assert_eq!(fragments.add(&third), Ok(Some(&ours[..])));
        // Senders that are made up push out the oldest, and there are no more.
        for number in 0..1_000 {
            let key = (Ipv4Addr::from(0x0a01_0000 + number).into(), US, 1);
            assert_eq!(fragments.add(&Fragment { key, start: 0, is_last: false, bytes: &junk }), Ok(None));
        }
        assert_eq!(fragments.making.len(), MOST);
    }

    #[test]
    fn what_takes_too_long_is_given_up() {
        let (datagram, mut fragments) = (whole(2_000), Fragments::default());
        let pieces = pieces(key(1), &datagram);
        assert_eq!(fragments.add(&pieces[0]), Ok(None));
        assert_eq!(fragments.next_timeout(), Time(0));
        fragments.give_up(Time(5));
        assert_eq!(fragments.next_timeout(), Time(5) + PATIENCE);
        fragments.give_up(Time(5) + PATIENCE);
        assert_eq!((fragments.lost(), fragments.next_timeout()), (1, Time::NEVER));
        assert_eq!(fragments.add(&pieces[1]), Ok(None), "its end alone is none");
    }
}
