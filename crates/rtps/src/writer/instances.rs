//! How many samples a writer holds of an instance, and with KEEP_LAST of all. DCPS 1.4 §2.2.2.4.2.7, §2.2.2.4.2.11, §2.2.3.19.
//!
//! Where all are of one instance, or none is older than KEEP_ALL lets it be, the number of all tells.

use taut_base::{InstanceHandle, SequenceNumber};

use super::{NewChange, Owed, Writer};
use crate::history_cache::ChangeKind;

impl Writer {
    /// RESOURCE_LIMITS max_samples_per_instance of a KEEP_ALL writer, before its first change. None of them goes through the
    /// lane only.
    pub(crate) fn limit_instances(&mut self, most: usize) {
        if self.keep_all {
            self.max_samples_per_instance = most;
            self.counts_instances = true;
            self.history.count_instances();
        }
    }

    /// What a KEEP_LAST writer holds, before its first change: a durable one RESOURCE_LIMITS max_samples, and nothing of
    /// instances that have ended. What a volatile one holds its readers are about to acknowledge, and they stop no KEEP_LAST
    /// writer: it holds of those that have ended no more than [`limits::ENDED`](crate::limits::ENDED).
    pub(crate) fn limit_samples(&mut self) {
        if !self.keep_all {
            let most = if self.durable { self.max_samples } else { usize::MAX };
            self.counts_instances = self.guid.entity.is_keyed() && most != usize::MAX;
            self.history.limit(most, self.durable);
        }
    }

    /// Instances that have ended go, once all have been told who are matched.
    #[cold]
    pub(super) fn forget_ended(&mut self) {
        self.history.forget_ended(self.told());
        self.history.evict(self.sent);
    }

    /// Are there any left that may go?
    #[cold]
    pub(super) fn forgets_more_ended(&self) -> bool {
        self.history.has_ended(self.told())
    }

    /// Up to where all have been told: also those that acknowledge nothing, and are only sent what there is, and those that may
    /// come back.
    pub(super) fn told(&self) -> SequenceNumber {
        let owed = self.proxies.values().filter_map(|proxy| match proxy.owed {
            Owed::Replay(from, _) => Some(from.prev()),
            _ => None,
        });
        let local = self.local.iter().map(|local| local.delivered);
        owed.chain(local)
            .chain(self.lost.acked())
            .fold(self.acked_by_all().min(self.sent), SequenceNumber::min)
    }

    /// Is there room for one more sample of its instance? That one ends is always told.
    #[inline]
    pub(super) fn has_room_of(&mut self, new: &NewChange) -> bool {
        !self.counts_instances || self.makes_room_of(new)
    }

    #[cold]
    fn makes_room_of(&mut self, new: &NewChange) -> bool {
        if self.keep_all {
            return new.kind != ChangeKind::Alive || self.has_room_for(new.instance);
        }
        let acked = self.acked_by_all();
        let has_room = self.history.make_room(new.instance, acked);
        self.history.evict(self.sent);
        has_room || new.kind.unregisters()
    }

    /// Does a KEEP_ALL writer hold less of an instance than it may?
    pub(super) fn has_room_for(&self, instance: InstanceHandle) -> bool {
        self.history.len_of(instance) < self.max_samples_per_instance
    }

    /// Is there no room for a change, and never will be? A durable KEEP_ALL history gives up what is too old, and nothing for
    /// who acknowledges it.
    #[cold]
    pub fn never_takes(&self, new: &NewChange) -> bool {
        let keeps_for_good = self.keep_all && self.durable && self.lifespan.is_infinite();
        let is_full = || self.held() >= self.max_samples;
        let is_full_of_it = || new.kind == ChangeKind::Alive && !self.has_room_for(new.instance);
        keeps_for_good && (is_full() || is_full_of_it())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use crate::message::{Message, Tx};
    use crate::writer::{MulticastChoice, ReaderProxy, change};
    use crate::{ReaderIndex, WriterIndex};
    use taut_base::{
        EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumberSet, Time, VendorId,
    };
    use taut_port::Loopback;
    use taut_qos::{DurabilityKind, EndpointQos, History};
    use taut_wire::Header;

    const ENDS: ChangeKind = ChangeKind::NotAliveDisposedUnregistered;

    fn reader(n: u8) -> Guid {
        Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, true))
    }

    /// A TRANSIENT_LOCAL writer of KEEP_LAST 2 with reliable readers that want no history.
    fn writer(readers: &[u8]) -> Writer {
        let guid = Guid::new(GuidPrefix([9; 12]), EntityId::user(1, true, true));
        let qos = EndpointQos { durability: DurabilityKind::TransientLocal, ..EndpointQos::default_writer() };
        let (history, auto) = (History::KeepLast(2), MulticastChoice::Auto);
        let mut writer = Writer::new(guid, WriterIndex(0), &qos, history, None, auto);
        writer.limit_samples();
        for n in readers {
            let proxy = ReaderProxy::new(reader(*n), true, vec![Locator::INVALID], Vec::new());
            writer.match_reader(proxy, false);
        }
        writer
    }

    fn write(writer: &mut Writer, instance: u8, kind: ChangeKind) {
        let mut new = NewChange { kind, instance: InstanceHandle([instance; 16]), ..change() };
        writer.write(Time(0), &mut new).unwrap();
    }

    fn push(writer: &mut Writer) {
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
        writer.push(&mut Tx::new(Time(0), &mut Loopback::new(), &mut message, usize::MAX));
    }

    fn acknowledge(writer: &mut Writer, n: u8, through: i64, count: i32) {
        let set = SequenceNumberSet::new(SequenceNumber(through + 1));
        writer.on_acknack(Time(0), reader(n), &set, count, true);
    }

    fn held(writer: &Writer) -> Vec<i64> {
        writer.history.from(SequenceNumber::ZERO).map(|change| change.sequence_number.0).collect()
    }

    #[test]
    fn what_has_ended_goes_once_all_have_acknowledged_it() {
        let mut writer = writer(&[1, 2]);
        for (instance, kind) in [
            (1, ChangeKind::Alive),
            (2, ChangeKind::Alive),
            (1, ENDS),
            (3, ENDS),
            (3, ChangeKind::Alive),
            (4, ChangeKind::NotAliveDisposed),
            (5, ChangeKind::Alive),
            (5, ChangeKind::NotAliveUnregistered),
            (6, ChangeKind::Alive),
            (6, ENDS),
        ] {
            write(&mut writer, instance, kind);
        }
        push(&mut writer);
        let all: Vec<_> = (1..=10).collect();
        acknowledge(&mut writer, 1, 10, 1);
        assert_eq!(held(&writer), all, "the other one has nothing");
        acknowledge(&mut writer, 2, 2, 1);
        assert_eq!(held(&writer), all, "it does not know of the end");
        acknowledge(&mut writer, 2, 3, 2);
        assert_eq!(held(&writer), [2, 4, 5, 6, 7, 8, 9, 10]);
        writer.unmatch_reader(reader(2));
        assert_eq!(
            held(&writer),
            [2, 4, 5, 6, 7, 8],
            "one is written again, one may be, and of one the last state holds"
        );
    }

    #[test]
    fn nobody_has_to_hear_it_where_nobody_is() {
        let mut writer = writer(&[]);
        for n in 0..100 {
            write(&mut writer, n, ChangeKind::Alive);
            write(&mut writer, n, ENDS);
        }
        write(&mut writer, 200, ChangeKind::Alive);
        assert_eq!(held(&writer), [201]);
    }

    #[test]
    fn who_acknowledges_nothing_is_told_of_it_first() {
        let mut writer = writer(&[1]);
        writer.match_local(ReaderIndex(0), false, false);
        write(&mut writer, 1, ChangeKind::Alive);
        write(&mut writer, 1, ENDS);
        push(&mut writer);
        acknowledge(&mut writer, 1, 2, 1);
        assert_eq!(held(&writer), [1, 2]);
        assert!(!writer.forgets_more(), "that is nothing to come back for");
        writer.local[0].delivered = SequenceNumber(2);
        writer.after_delivery();
        assert!(held(&writer).is_empty());

        write(&mut writer, 2, ChangeKind::Alive);
        write(&mut writer, 2, ENDS);
        push(&mut writer);
        writer.local[0].delivered = SequenceNumber(4);
        let late = ReaderProxy::new(reader(2), false, vec![Locator::INVALID], Vec::new());
        writer.match_reader(late, true);
        acknowledge(&mut writer, 1, 4, 2);
        assert_eq!(held(&writer), [3, 4], "it is still to be sent them");
        writer.unmatch_reader(reader(2));
        assert!(held(&writer).is_empty());
    }

    #[test]
    fn who_was_lost_may_come_back_and_has_to_hear_of_it_then() {
        let mut writer = writer(&[1, 2]);
        write(&mut writer, 1, ChangeKind::Alive);
        push(&mut writer);
        (1..=2).for_each(|n| acknowledge(&mut writer, n, 1, 1));
        writer.lose_reader(Time(0), reader(2));
        write(&mut writer, 1, ENDS);
        push(&mut writer);
        acknowledge(&mut writer, 1, 2, 2);
        assert_eq!(held(&writer), [1, 2]);
        let mut end_another = |now| {
            let mut new = NewChange { kind: ENDS, instance: InstanceHandle([2; 16]), ..change() };
            writer.write(now, &mut new).unwrap();
            push(&mut writer);
            let last = writer.last.0;
            acknowledge(&mut writer, 1, last, 1 + last as i32);
            held(&writer)
        };
        let long = Time(0) + limits::GONE_KEPT;
        assert_eq!(end_another(Time(long.0 - 1)), [1, 2, 3]);
        assert!(end_another(long).is_empty());
    }

    #[test]
    fn of_many_that_were_lost_the_first_are_given_up() {
        let many = limits::LOST as u8 + 1;
        let mut writer = writer(&(0..=many).collect::<Vec<_>>());
        for number in 1..=i64::from(many) {
            write(&mut writer, 1, ChangeKind::Alive);
            push(&mut writer);
            (0..=many).for_each(|n| acknowledge(&mut writer, n, number, number as i32));
            writer.lose_reader(Time(0), reader(number as u8));
        }
        assert_eq!(writer.lost.acked().map(|acked| acked.0).min(), Some(2));
        assert_eq!(writer.lost.acked().count(), limits::LOST);
    }

    /// It writes ever new instances that end at once, and its reader takes none.
    #[test]
    fn of_very_many_that_have_ended_the_first_go_though_not_all_have_heard_so() {
        let guid = Guid::new(GuidPrefix([9; 12]), EntityId::user(1, true, true));
        let auto = MulticastChoice::Auto;
        for (durability, end) in [
            (DurabilityKind::Volatile, ChangeKind::NotAliveUnregistered),
            (DurabilityKind::TransientLocal, ENDS),
        ] {
            let qos = EndpointQos { durability, ..EndpointQos::default_writer() };
            let mut writer = Writer::new(guid, WriterIndex(0), &qos, History::KeepLast(1), None, auto);
            writer.limit_samples();
            let proxy = ReaderProxy::new(reader(1), true, vec![Locator::INVALID], Vec::new());
            writer.match_reader(proxy, false);
            write(&mut writer, 1, ChangeKind::Alive);
            for n in 0..limits::ENDED as u64 + 100 {
                let instance = InstanceHandle(u128::from(n).to_be_bytes());
                for kind in [ChangeKind::Alive, end] {
                    writer.write(Time(0), &mut NewChange { kind, instance, ..change() }).unwrap();
                }
                if n % 64 == 0 {
                    push(&mut writer);
                }
            }
            push(&mut writer);
            assert_eq!(writer.history.len(), 1 + limits::ENDED, "{durability:?}");
            assert_eq!(writer.history.first(), Some(SequenceNumber(1)), "what has not ended stays");
        }
    }

    #[test]
    fn an_endpoint_that_is_gone_is_not_kept_for_who_does_not_answer() {
        let qos = EndpointQos { durability: DurabilityKind::TransientLocal, ..EndpointQos::default_writer() };
        let (guid, auto) =
            (Guid::new(GuidPrefix([9; 12]), EntityId::SEDP_PUBLICATIONS_WRITER), MulticastChoice::Auto);
        let mut writer = Writer::new(guid, WriterIndex(0), &qos, History::KeepLast(1), None, auto);
        let proxy = ReaderProxy::new(reader(1), true, vec![Locator::INVALID], Vec::new());
        writer.match_reader(proxy, false);
        let mut ends = 0_u32;
        let mut end = |writer: &mut Writer, now| {
            ends += 1;
            let mut instance = [0; 16];
            instance[..4].copy_from_slice(&ends.to_le_bytes());
            let mut new = NewChange { kind: ENDS, instance: InstanceHandle(instance), ..change() };
            writer.write(now, &mut new).unwrap();
            push(writer);
            writer.history.len()
        };
        let late = Time(0) + limits::GONE_KEPT;
        assert_eq!([Time(0), Time(1), late].map(|now| end(&mut writer, now)), [1, 2, 2]);
        // It has answered once, and may be slow: so many are kept for it, and no more.
        acknowledge(&mut writer, 1, 1, 1);
        let later = late + limits::GONE_KEPT;
        let held = (0..=limits::GONE_UNHEARD).map(|_| end(&mut writer, later)).max();
        assert_eq!(held, Some(limits::GONE_UNHEARD));
    }
}
