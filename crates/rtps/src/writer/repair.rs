//! What single readers are owed: changes again, fragments, GAPs, heartbeats to answer.
//! RTPS 2.5 §8.4.9.2 (reliable stateful writer), §8.3.8.5 (GAP).

use taut_base::{EntityId, SequenceNumber, SequenceNumberSet};
use taut_wire::{Gap, Heartbeat};

use super::path::PathSizes;
use super::transmit::send_fragments;
use super::{Owed, ReaderProxy, Writer};
use crate::history_cache::{CacheChange, HistoryCache};
use crate::limits;
use crate::message::{HEARTBEAT, NUMBERS, Tx};

/// What a writer holds, beside its proxies.
pub(super) struct Contents<'a> {
    writer_id: EntityId,
    history: &'a HistoryCache,
    paths: &'a PathSizes,
    sent: SequenceNumber,
    off_lane: SequenceNumber,
    count: &'a mut i32,
}

impl Writer {
    /// What this writer holds.
    pub(super) fn contents(&mut self) -> Contents<'_> {
        let Writer { guid, history, paths, sent, off_lane, heartbeat_count, .. } = self;
        let (sent, off_lane) = (*sent, *off_lane);
        Contents { writer_id: guid.entity, history, paths, sent, off_lane, count: heartbeat_count }
    }

    /// Sends what single readers are owed. Returns whether all is out.
    pub fn repair(&mut self, tx: &mut Tx<'_>) -> bool {
        self.catch_up();
        self.learn_paths(tx);
        while let Some(guid) = self.owed.front() {
            if tx.budget == 0 {
                return false;
            }
            let Writer { guid: own, history, paths, sent, off_lane, heartbeat_count, proxies, .. } = self;
            let (sent, off_lane) = (*sent, *off_lane);
            let mut contents =
                Contents { writer_id: own.entity, history, paths, sent, off_lane, count: heartbeat_count };
            let done = proxies.get_mut(guid).is_none_or(|proxy| contents.repair(tx, proxy));
            if done {
                self.owed.pop_front();
            } else {
                // The others get their turn before the rest of this one.
                self.owed.rotate_left(1);
                return false;
            }
        }
        self.update_link();
        true
    }
}

impl Contents<'_> {
    /// What there is, for a reader to whom nothing below `first_relevant` matters.
    pub fn heartbeat(
        &mut self,
        reader_id: EntityId,
        final_flag: bool,
        first_relevant: SequenceNumber,
    ) -> Heartbeat {
        *self.count = self.count.wrapping_add(1);
        let next = self.sent.next();
        let first = self.history.first().unwrap_or(next);
        Heartbeat {
            reader_id,
            writer_id: self.writer_id,
            first_sn: first.max(first_relevant).min(next),
            last_sn: self.sent,
            count: *self.count,
            final_flag,
            liveliness_flag: false,
            group_info: None,
        }
    }

    fn repair(&mut self, tx: &mut Tx<'_>, proxy: &mut ReaderProxy) -> bool {
        let reader_id = proxy.guid.entity;
        tx.message.directed(proxy.guid.prefix);
        let owed = std::mem::take(&mut proxy.owed);
        let repaired = !matches!(owed, Owed::Nothing) || !proxy.fragments.is_empty();
        match owed {
            Owed::Nothing => {}
            Owed::Requested(set) => self.send_requested(tx, proxy, &set),
            Owed::Replay(from, to) => {
                for change in self.history.from(from).take_while(|change| change.sequence_number <= to) {
                    self.send_to_one(tx, change, proxy);
                }
            }
        }
        let done = self.repair_fragments(tx, proxy);
        if done && proxy.reliable && (repaired || proxy.heartbeat_due) {
            proxy.heartbeat_due = false;
            let mut heartbeat = self.heartbeat(reader_id, false, proxy.first_relevant);
            if !proxy.greeted {
                (heartbeat.first_sn, heartbeat.last_sn) = (proxy.first_relevant, proxy.first_relevant.prev());
            }
            // What the lane brings is not to be had here.
            if let Some(from) = proxy.lane_from {
                heartbeat.last_sn = heartbeat.last_sn.min(from.prev().max(self.off_lane));
                heartbeat.first_sn = heartbeat.first_sn.min(heartbeat.last_sn.next());
            }
            tx.make_room(HEARTBEAT, &proxy.unicast);
            tx.message.heartbeat(&heartbeat);
        }
        tx.flush(&proxy.unicast);
        done
    }

    /// Puts a change into the message for one reader, or notes its fragments for later.
    fn send_to_one(&self, tx: &mut Tx<'_>, change: &CacheChange, proxy: &mut ReaderProxy) {
        if self.paths.fragment_size(change).is_some() {
            proxy.owe_fragments(change.sequence_number, None);
            return;
        }
        tx.data(proxy.guid.entity, change, &proxy.unicast);
    }

    fn send_requested(&self, tx: &mut Tx<'_>, proxy: &mut ReaderProxy, set: &SequenceNumberSet) {
        let mut gap = GapBuilder::default();
        for number in set.iter().take_while(|number| *number <= self.sent) {
            match self.history.get(number).filter(|_| number >= proxy.first_relevant) {
                Some(change) => self.send_to_one(tx, change, proxy),
                None => gap.add(number),
            }
        }
        gap.send(tx, proxy, self.writer_id);
    }

    fn repair_fragments(&self, tx: &mut Tx<'_>, proxy: &mut ReaderProxy) -> bool {
        while let Some(job) = proxy.fragments.front_mut() {
            match self.history.get(job.number).filter(|_| job.number >= proxy.first_relevant) {
                Some(change) => {
                    tx.send_all(&proxy.unicast);
                    let size = self.paths.fragment_size(change).unwrap_or(limits::FRAGMENT_SIZE);
                    if !send_fragments(tx, change, size, proxy.guid.entity, job, &proxy.unicast) {
                        return false;
                    }
                }
                None => {
                    let mut gap = GapBuilder::default();
                    gap.add(job.number);
                    gap.send(tx, proxy, self.writer_id);
                }
            }
            proxy.fragments.pop_front();
        }
        true
    }
}

/// Collects numbers that are gone into as few GAPs as fit. RTPS 2.5 §8.3.8.5.
#[derive(Default)]
struct GapBuilder {
    /// `[start, end)` and, from `end` on, single numbers.
    gap: Option<(SequenceNumber, SequenceNumberSet)>,
}

impl GapBuilder {
    /// Adds a number; they come rising and lie within 256 of each other, as in an ACKNACK's set.
    fn add(&mut self, number: SequenceNumber) {
        match &mut self.gap {
            None => self.gap = Some((number, SequenceNumberSet::new(number.next()))),
            Some((_, list)) if list.is_empty() && list.base() == number => {
                *list = SequenceNumberSet::new(number.next());
            }
            Some((_, list)) => {
                list.insert(number);
            }
        }
    }

    fn send(self, tx: &mut Tx<'_>, proxy: &ReaderProxy, writer_id: EntityId) {
        let Some((gap_start, gap_list)) = self.gap else { return };
        let reader_id = proxy.guid.entity;
        tx.make_room(NUMBERS, &proxy.unicast);
        tx.message.gap(&Gap {
            reader_id,
            writer_id,
            gap_start,
            gap_list,
            group_info: None,
            filtered_count: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::history_cache::ChangeKind;
    use crate::message::Message;
    use crate::writer::{MulticastChoice, NewChange};
    use taut_base::{Guid, GuidPrefix, InstanceHandle, Locator, ProtocolVersion, Time, VendorId};
    use taut_mem::Bytes;
    use taut_port::Loopback;
    use taut_qos::{EndpointQos, History, ReliabilityKind};
    use taut_wire::{Header, Submessage, Submessages};

    /// Runs a step of a writer. Returns first and last number of each heartbeat that it sent.
    fn heartbeats(
        writer: &mut Writer,
        step: impl FnOnce(&mut Writer, &mut Tx<'_>) -> bool,
    ) -> Vec<(i64, i64)> {
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
        let mut port = Loopback::new();
        let mut tx =
            Tx { now: Time(0), port: &mut port, message: &mut message, budget: 9, sent: 0, calls: 0 };
        assert!(step(writer, &mut tx));
        let mut found = Vec::new();
        while let Some((_, datagram)) = port.take() {
            let (_, rest) = Header::parse(&datagram).unwrap();
            found.extend(Submessages::new(rest).filter_map(|submessage| match submessage {
                Ok(Submessage::Heartbeat(heartbeat)) => Some((heartbeat.first_sn.0, heartbeat.last_sn.0)),
                _ => None,
            }));
        }
        found
    }

    #[test]
    fn a_volatile_reader_is_greeted_before_it_hears_what_there_is() {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, false));
        let reader = Guid::new(GuidPrefix([2; 12]), EntityId::user(1, false, false));
        let mut qos = EndpointQos::default_writer();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut writer =
            Writer::new(guid, WriterIndex(0), &qos, History::KeepAll, None, MulticastChoice::Auto);
        writer.match_reader(ReaderProxy::new(reader, true, vec![Locator::INVALID], Vec::new()), false);
        let mut change = NewChange {
            kind: ChangeKind::Alive,
            instance: InstanceHandle::NIL,
            source_timestamp: None,
            payload: Bytes::new(),
            number: None,
            in_lane: false,
            called: Time::default(),
        };
        writer.write(Time(0), &mut change).unwrap();
        assert_eq!(heartbeats(&mut writer, Writer::push), [], "the change alone");
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);

        // The question of a reader that has heard nothing yet, and its answer to the greeting.
        let nothing = SequenceNumberSet::new(SequenceNumber::FIRST);
        writer.on_acknack(Time(0), reader, &nothing, 1, false);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);
        writer.on_acknack(Time(0), reader, &nothing, 2, true);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 1)]);
    }

    #[test]
    fn gaps_start_with_a_run() {
        let mut gap = GapBuilder::default();
        [5, 6, 7, 9, 12].into_iter().for_each(|n| gap.add(SequenceNumber(n)));
        let (start, list) = gap.gap.unwrap();
        assert_eq!((start.0, list.base().0), (5, 8));
        assert_eq!(list.iter().map(|n| n.0).collect::<Vec<_>>(), [9, 12]);
    }
}
