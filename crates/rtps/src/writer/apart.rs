//! Readers that take large changes more slowly than KEEP_LAST overwrites them. RTPS 2.5 §8.4.9 (reliable writer).
//!
//! What such a reader misses of a change would be gone each time that it asks for it, and it would never have one
//! whole. So the change whose repair to it has begun is kept until it is through, beyond what KEEP_LAST keeps. Once the
//! history has it no longer the reader is apart: it gets one change after the other, alone and as it asks, and is left
//! out where fresh changes go, which would take the places of the repair in its buffer. Others do not wait for it.
//! Must never keep more than [`limits::KEPT_CHANGES`] and [`limits::KEPT_BYTES`] beside the history.

use taut_base::{Guid, SequenceNumber, Time};

use super::reader_proxy::FragmentJob;
use super::{Owed, ReaderProxy, Writer};
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;

/// Fragments of a change that a reader misses at least, where it counts as one that does not keep up. Lower takes
/// chance for a sign.
const FEW: usize = 2;

/// And which part of the change. Lower overlooks no slow reader but takes a lossy network for one, and then what is
/// written in the time of an answer is skipped; higher loses more that is nearly there.
const PART: usize = 16;

/// Changes that are kept for readers that take them. *Cost*: a look at each for a search; there are few.
#[derive(Default)]
pub(super) struct Kept(Vec<CacheChange>);

impl Kept {
    /// Is nothing kept?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The change of that number.
    pub fn get(&self, number: SequenceNumber) -> Option<&CacheChange> {
        self.0.iter().find(|change| change.sequence_number == number)
    }

    /// The lowest number from `from` on.
    pub fn next(&self, from: SequenceNumber) -> Option<SequenceNumber> {
        self.0.iter().map(|change| change.sequence_number).filter(|number| *number >= from).min()
    }

    /// Keeps a change. Returns whether there is room for it.
    fn insert(&mut self, change: &CacheChange) -> bool {
        if self.get(change.sequence_number).is_some() {
            return true;
        }
        let bytes =
            self.0.iter().map(|kept| kept.payload.len()).fold(change.payload.len(), usize::saturating_add);
        let fits = self.is_empty() || self.0.len() < limits::KEPT_CHANGES && bytes <= limits::KEPT_BYTES;
        if fits {
            self.0.push(change.clone());
        }
        fits
    }
}

impl Writer {
    /// A change that may be sent again.
    pub(super) fn sendable(&self, number: SequenceNumber) -> Option<&CacheChange> {
        self.history.get(number).or_else(|| self.kept.get(number))
    }

    /// The lowest number that may be sent again.
    pub(super) fn first_held(&self) -> Option<SequenceNumber> {
        let kept = self.kept.next(SequenceNumber::ZERO);
        self.history.first().into_iter().chain(kept).min()
    }

    /// A reader asks for so many fragments of a change. If it does not keep up the change is kept for it; if that is
    /// gone, the next one.
    pub(super) fn keep_for(&mut self, now: Time, reader: Guid, asked: SequenceNumber, missing: usize) {
        if self.keep_all || missing < FEW || asked > self.sent || self.guid.entity.is_builtin() {
            return;
        }
        let is_gone = self.sendable(asked).is_none();
        let next = || self.history.from(asked).next().map(|change| change.sequence_number);
        let Some(number) = (if is_gone { next() } else { Some(asked) }) else { return };
        if !self.is_large(number, missing.saturating_mul(PART)) || !self.keep(reader, number) {
            return;
        }
        let rest = if number > self.sent { self.fragment.1 } else { 0 };
        if is_gone && let Some(proxy) = self.proxies.get_mut(&reader) {
            proxy.apart = Some(now);
            proxy.heartbeat_due = true;
            if rest > 0 {
                proxy.fragments.push_back(FragmentJob { number, next: rest, only: None });
            }
            self.leave_out();
            self.owe(reader);
        }
        self.part_ways(now);
    }

    /// Is this a change in fragments that may be sent again, of `most` fragments?
    fn is_large(&self, number: SequenceNumber, most: usize) -> bool {
        let size = self.sendable(number).and_then(|change| Some((change, self.paths.fragment_size(change)?)));
        size.is_some_and(|(change, size)| change.payload.len().div_ceil(size.max(1)) <= most)
    }

    /// Keeps a change for a reader until it has it, if it has no other one kept and there is room.
    fn keep(&mut self, reader: Guid, number: SequenceNumber) -> bool {
        let Writer { proxies, history, kept, .. } = self;
        let may =
            |proxy: &&mut ReaderProxy| proxy.reliable && proxy.lane_from.is_none() && proxy.taking.is_none();
        let Some(proxy) = proxies.get_mut(&reader).filter(may) else { return false };
        let is_kept =
            kept.get(number).is_some() || history.get(number).is_some_and(|change| kept.insert(change));
        if is_kept {
            proxy.taking = Some(number);
        }
        is_kept
    }

    /// After the history has given something up: who takes a change that it has no longer is apart from now on.
    #[cold]
    pub(super) fn part_ways(&mut self, now: Time) {
        let Writer { proxies, history, .. } = self;
        let mut any = false;
        for proxy in proxies.values_mut().filter(|proxy| proxy.apart.is_none()) {
            if proxy.taking.is_some_and(|number| history.get(number).is_none()) {
                proxy.apart = Some(now);
                any = true;
            }
        }
        if any {
            self.leave_out();
        }
    }

    /// Some readers are apart: if nobody else is there nothing is under way any more.
    fn leave_out(&mut self) {
        self.update_route();
        if self.route.is_empty() {
            self.sent = self.last;
            self.blocked = false;
        }
    }

    /// A reader that is apart and takes nothing takes the first large change of those that it asks for.
    fn take_next(&mut self, reader: Guid) {
        let Some(proxy) = self.proxies.get(&reader) else { return };
        let requested = match &proxy.owed {
            Owed::Requested(set) => Some(set),
            _ => None,
        };
        let (acked, jobs) = (proxy.acked, proxy.fragments.iter().map(|job| job.number));
        let asked =
            requested.into_iter().flat_map(|set| set.iter()).chain(jobs).filter(|number| *number > acked);
        if let Some(first) = asked.filter(|number| self.is_large(*number, usize::MAX)).min() {
            self.keep(reader, first);
        }
    }

    /// A reader has told up to where it has all.
    #[cold]
    pub(super) fn settle(&mut self, now: Time, reader: Guid) {
        let Writer { proxies, owed, sent, .. } = self;
        let Some(proxy) = proxies.get_mut(&reader) else { return };
        let has_taken = proxy.taking.is_some_and(|number| number <= proxy.acked);
        if has_taken {
            proxy.taking = None;
        }
        let Some(since) = proxy.apart.filter(|_| proxy.taking.is_none()) else { return self.release() };
        if proxy.acked >= *sent || now.since(since) >= limits::APART {
            proxy.apart = None;
            self.update_route();
        } else {
            // It is told what there is next.
            proxy.heartbeat_due |= has_taken;
            if proxy.is_owed() {
                owed.add(proxy);
            }
            self.take_next(reader);
        }
        self.release();
    }

    /// While fresh changes go out: who is apart does not hear what rides behind them. It is asked how far it is.
    #[cold]
    pub(super) fn ask_apart(&mut self) {
        let Writer { proxies, owed, .. } = self;
        for proxy in proxies.values_mut().filter(|proxy| proxy.apart.is_some()) {
            proxy.heartbeat_due = true;
            owed.add(proxy);
        }
    }

    /// A reader that says nothing any more is as all others, and nothing is kept for it.
    pub(super) fn settle_silent(&mut self, now: Time) {
        let is_silent = |proxy: &ReaderProxy| proxy.heard.is_none_or(|at| now.since(at) >= limits::APART);
        let is_bound = |proxy: &ReaderProxy| proxy.taking.is_some() || proxy.apart.is_some();
        let silent = self.proxies.values_mut().filter(|proxy| is_bound(proxy) && is_silent(proxy));
        let mut any = false;
        for proxy in silent {
            proxy.come_back();
            any = true;
        }
        if any {
            self.release();
            self.update_route();
        }
    }

    /// Forgets what nobody takes any more.
    #[cold]
    pub(super) fn release(&mut self) {
        let Writer { proxies, kept, .. } = self;
        kept.0.retain(|change| proxies.values().any(|proxy| proxy.taking == Some(change.sequence_number)));
    }

    /// What is too old is not kept.
    #[cold]
    pub(super) fn expire_kept(&mut self, now: Time) {
        let lifespan = self.lifespan;
        self.kept.0.retain(|change| change.kind != ChangeKind::Alive || change.time + lifespan > now);
    }
}

impl ReaderProxy {
    /// It gets what all others get.
    pub(super) fn come_back(&mut self) {
        (self.taking, self.apart) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::message::{Message, Tx};
    use crate::writer::{MulticastChoice, NewChange};
    use std::net::Ipv4Addr;
    use taut_base::{
        EntityId, FragmentNumberSet, GuidPrefix, InstanceHandle, Locator, ProtocolVersion, SequenceNumberSet,
        VendorId,
    };
    use taut_mem::Bytes;
    use taut_port::Loopback;
    use taut_qos::{EndpointQos, History, ReliabilityKind};
    use taut_wire::Header;

    /// Fragments of each change.
    const FRAGMENTS: usize = 20;

    fn locator(n: u8) -> Locator {
        Locator::udp_v4(Ipv4Addr::new(10, 0, 0, n), 7411)
    }

    fn reader(n: u8) -> Guid {
        Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, false))
    }

    /// A writer with two readers that have all.
    struct Pair {
        writer: Writer,
        now: Time,
        count: i32,
    }

    impl Pair {
        fn new(history: History) -> Pair {
            let guid = Guid::new(GuidPrefix([9; 12]), EntityId::user(1, true, true));
            let mut qos = EndpointQos::default_writer();
            qos.reliability.kind = ReliabilityKind::Reliable;
            let mut writer = Writer::new(guid, WriterIndex(0), &qos, history, None, MulticastChoice::Never);
            for n in [1, 2] {
                writer.match_reader(ReaderProxy::new(reader(n), true, vec![locator(n)], Vec::new()), false);
            }
            let mut pair = Pair { writer, now: Time(0), count: 0 };
            [1, 2].into_iter().for_each(|n| pair.acknowledge(n, 0));
            pair
        }

        /// Writes a change and sends all that there is. Returns where datagrams went.
        fn write(&mut self) -> Vec<Locator> {
            self.write_to(InstanceHandle::NIL)
        }

        fn write_to(&mut self, instance: InstanceHandle) -> Vec<Locator> {
            let mut change = NewChange {
                kind: ChangeKind::Alive,
                instance,
                source_timestamp: None,
                payload: Bytes::from(vec![0; FRAGMENTS * limits::FRAGMENT_SIZE]),
                number: None,
                in_lane: false,
                called: Time::default(),
                was_left: false,
            };
            self.writer.write(self.now, &mut change).unwrap();
            self.send()
        }

        fn send(&mut self) -> Vec<Locator> {
            let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
            let mut message = Message::new(Header { version, vendor, prefix: self.writer.guid.prefix });
            let mut port = Loopback::new();
            let mut tx = Tx::new(self.now, &mut port, &mut message, 9_999);
            let repair = |tx: &mut Tx<'_>, writer: &mut Writer| {
                let done = writer.repair(tx);
                tx.send_left();
                done
            };
            while !repair(&mut tx, &mut self.writer) || self.writer.has_fresh() && !self.writer.push(&mut tx)
            {
            }
            std::iter::from_fn(|| port.take()).map(|(to, _)| to).collect()
        }

        fn acknowledge(&mut self, n: u8, last: i64) {
            self.count += 1;
            let set = SequenceNumberSet::new(SequenceNumber(last + 1));
            self.writer.on_acknack(self.now, reader(n), &set, self.count, true);
        }

        /// A reader misses so many fragments of a change.
        fn ask(&mut self, n: u8, number: i64, missing: u32) {
            self.count += 1;
            let mut set = FragmentNumberSet::new(1);
            (1..=missing).for_each(|fragment| assert!(set.insert(fragment)));
            self.writer.on_nack_frag(self.now, reader(n), SequenceNumber(number), set, self.count);
        }

        fn state(&self) -> (Vec<i64>, Vec<Locator>) {
            let kept = self.writer.kept.0.iter().map(|change| change.sequence_number.0).collect();
            (kept, self.writer.route.clone())
        }
    }

    /// The first reader is apart with the first of two changes; the second has both.
    fn apart() -> Pair {
        let mut pair = Pair::new(History::KeepLast(1));
        pair.write();
        pair.acknowledge(2, 1);
        pair.ask(1, 1, 5);
        assert_eq!(
            pair.state(),
            (vec![1], vec![locator(1), locator(2)]),
            "it may be through before the next"
        );
        pair.write();
        pair.acknowledge(2, 2);
        assert_eq!(pair.state(), (vec![1], vec![locator(2)]));
        pair
    }

    #[test]
    fn a_change_is_kept_until_it_is_through() {
        let mut pair = apart();
        pair.ask(1, 1, 3);
        assert_eq!(pair.send(), [locator(1); 4], "and a heartbeat");
        pair.acknowledge(1, 1);
        assert_eq!(pair.state(), (vec![], vec![locator(2)]), "there is another one");
        assert_eq!(pair.send(), [locator(1)], "of which it hears");
        pair.acknowledge(1, 2);
        assert_eq!(pair.state(), (vec![], vec![locator(1), locator(2)]));
    }

    /// It acknowledges what it takes once it has all before that.
    #[test]
    fn what_is_before_the_change_that_is_kept_does_not_wait_for_it() {
        let mut pair = Pair::new(History::KeepLast(1));
        pair.write_to(InstanceHandle([1; 16]));
        (0..2).for_each(|_| drop(pair.write()));
        pair.acknowledge(2, 3);
        pair.ask(1, 2, 5);
        pair.ask(1, 3, 5);
        assert_eq!(pair.state(), (vec![3], vec![locator(2)]));
        pair.send();
        pair.ask(1, 1, 3);
        assert_eq!(pair.send(), [locator(1); 4], "and a heartbeat");
    }

    #[test]
    fn one_that_asks_too_late_takes_what_is_there() {
        let mut pair = Pair::new(History::KeepLast(1));
        (0..3).for_each(|_| drop(pair.write()));
        pair.ask(1, 2, 1);
        assert_eq!(pair.state(), (vec![], vec![locator(1), locator(2)]), "one datagram is chance");
        pair.ask(1, 2, 5);
        assert_eq!(pair.state(), (vec![3], vec![locator(2)]));
    }

    #[test]
    fn one_that_has_been_apart_for_long_is_tried_again() {
        let mut pair = apart();
        pair.now = pair.now + limits::APART;
        pair.acknowledge(1, 1);
        assert_eq!(pair.state(), (vec![], vec![locator(1), locator(2)]));
    }

    #[test]
    fn nothing_is_kept_for_who_has_vanished() {
        let mut pair = apart();
        pair.writer.unmatch_reader(reader(1));
        assert_eq!(pair.state(), (vec![], vec![locator(2)]));
        let mut pair = apart();
        pair.now = pair.now + limits::APART;
        pair.writer.on_heartbeat_timer(pair.now);
        assert_eq!(pair.state(), (vec![], vec![locator(1), locator(2)]), "it is silent");
        let mut pair = apart();
        pair.writer.begin_anew(reader(1), false);
        assert_eq!(pair.state(), (vec![], vec![locator(1), locator(2)]), "it has forgotten all");
    }

    #[test]
    fn while_others_are_sent_fresh_changes_it_is_asked_how_far_it_is() {
        let mut pair = apart();
        pair.send();
        pair.writer.want_heartbeat(pair.now);
        for _ in 0..20 {
            pair.now = pair.now + limits::HEARTBEAT_FIRST;
            pair.write();
            pair.acknowledge(2, pair.writer.last.0);
            assert!(pair.writer.heartbeat_at <= pair.now, "it is not put off");
            pair.writer.on_heartbeat_timer(pair.now);
            assert!(pair.send().contains(&locator(1)));
        }
    }

    #[test]
    fn for_a_write_that_waits_the_silent_are_asked_more_often_for_a_while() {
        let mut pair = Pair::new(History::KeepAll);
        pair.write();
        pair.writer.want_heartbeat(pair.now);
        let until_next = |pair: &mut Pair| {
            pair.now = pair.writer.heartbeat_at;
            pair.writer.on_heartbeat_timer(pair.now);
            pair.writer.heartbeat_at.since(pair.now)
        };
        while until_next(&mut pair) < limits::HEARTBEAT_MAX {}
        let soon = pair.now + limits::HEARTBEAT_FOR_ROOM;
        assert_eq!(pair.writer.ask_for_room(pair.now), Some(soon));
        assert_eq!(pair.writer.ask_for_room(pair.now), None, "once for each change");
        for _ in 0..limits::ASKS_FOR_ROOM {
            assert_eq!(until_next(&mut pair), limits::HEARTBEAT_FOR_ROOM);
        }
        assert_eq!(until_next(&mut pair), limits::HEARTBEAT_MAX);
        // Who answers and has not all makes room when it can.
        pair.write();
        pair.writer.ask_for_room(pair.now);
        (1..=2).for_each(|n| pair.acknowledge(n, 0));
        assert!(until_next(&mut pair) > limits::HEARTBEAT_FOR_ROOM);
    }

    #[test]
    fn what_the_history_holds_is_no_reason_to_leave_a_reader_out_and_keep_all_keeps_all() {
        let both = vec![locator(1), locator(2)];
        let mut pair = Pair::new(History::KeepLast(2));
        (0..2).for_each(|_| drop(pair.write()));
        pair.ask(1, 1, 5);
        assert_eq!(pair.state(), (vec![1], both.clone()));
        pair.write();
        assert_eq!(pair.state(), (vec![1], vec![locator(2)]));
        let mut pair = Pair::new(History::KeepAll);
        pair.write();
        pair.ask(1, 1, 5);
        assert_eq!(pair.state(), (vec![], both));
    }

    #[test]
    fn no_more_is_kept_than_the_bounds_allow() {
        let change = |number, len| CacheChange {
            kind: ChangeKind::Alive,
            writer_guid: Guid::UNKNOWN,
            sequence_number: SequenceNumber(number),
            instance: None,
            source_timestamp: None,
            time: Time(0),
            payload: Bytes::from(vec![0; len]),
        };
        let mut kept = Kept::default();
        assert!(kept.insert(&change(1, limits::KEPT_BYTES + 1)), "one at least");
        assert!(!kept.insert(&change(2, 1)) && kept.insert(&change(1, limits::KEPT_BYTES + 1)));
        let mut kept = Kept::default();
        let fits = (0..99).filter(|number| kept.insert(&change(*number, limits::KEPT_BYTES / 99))).count();
        assert_eq!(fits, limits::KEPT_CHANGES);
    }
}
