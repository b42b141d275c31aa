//! From the history to datagrams: fresh changes to all, repairs and heartbeats to one.
//! RTPS 2.5 §8.4.9 (stateful writer), §8.3.8.5 (GAP), §8.4.14.1 (large data).

use taut_base::{EntityId, SequenceNumber, SequenceNumberSet};
use taut_wire::{Gap, Heartbeat};

use super::reader_proxy::FragmentJob;
use super::{Owed, Writer};
use crate::history_cache::CacheChange;
use crate::limits;
use crate::message::Tx;

impl Writer {
    /// Sends fresh changes to all readers. Returns whether all are out; `false` when the budget
    /// is used up.
    pub fn push(&mut self, tx: &mut Tx<'_>) -> bool {
        if self.route.is_empty() {
            self.sent = self.last;
        }
        let mut done = true;
        while self.sent < self.last {
            if tx.budget == 0 {
                done = false;
                break;
            }
            let Some(change) = self.history.from(self.sent.next()).next() else {
                self.sent = self.last;
                break;
            };
            let number = change.sequence_number;
            if change.payload.len() > limits::FRAGMENT_SIZE {
                tx.flush(&self.route);
                // KEEP_LAST may have dropped the change that was under way.
                let next = if self.fragment.0 == number { self.fragment.1 } else { 1 };
                let mut job = FragmentJob { number, next, only: None };
                let sent_all = send_fragments(tx, change, EntityId::UNKNOWN, &mut job, &self.route);
                self.fragment = (number, job.next);
                if !sent_all {
                    done = false;
                    break;
                }
            } else {
                tx.make_room(change.payload.len(), &self.route);
                tx.message.data(EntityId::UNKNOWN, change);
            }
            self.sent = number;
        }
        self.piggyback_heartbeat(tx);
        tx.flush(&self.route);
        self.forget_acknowledged();
        done
    }

    /// RTPS 2.5 §8.3.5: a heartbeat may travel behind the data. It is final, so that it costs no
    /// answer but from a reader that misses something; every so often it asks for acknowledgement.
    fn piggyback_heartbeat(&mut self, tx: &mut Tx<'_>) {
        if !self.proxies.values().any(|proxy| proxy.reliable) {
            return;
        }
        let ask = self.hurry
            || self.unasked_changes >= limits::ACK_EVERY_CHANGES.min(self.max_samples.div_ceil(2))
            || self.unasked_bytes >= limits::ACK_EVERY_BYTES;
        if ask {
            (self.unasked_changes, self.unasked_bytes, self.hurry) = (0, 0, false);
        }
        let heartbeat = self.next_heartbeat(EntityId::UNKNOWN, !ask, SequenceNumber::FIRST);
        tx.message.heartbeat(&heartbeat);
    }

    /// What this writer has, for a reader to whom nothing below `first_relevant` matters.
    fn next_heartbeat(
        &mut self,
        reader_id: EntityId,
        final_flag: bool,
        first_relevant: SequenceNumber,
    ) -> Heartbeat {
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        let first = self.history.first().unwrap_or(self.sent.next()).min(self.sent.next());
        Heartbeat {
            reader_id,
            writer_id: self.guid.entity,
            first_sn: first.max(first_relevant).min(self.sent.next()),
            last_sn: self.sent,
            count: self.heartbeat_count,
            final_flag,
            liveliness_flag: false,
            group_info: None,
        }
    }

    /// Tells all readers that the writer is alive. *Source*: RTPS 2.5 §8.3.8.6, MANUAL_BY_TOPIC.
    pub fn send_liveliness(&mut self, tx: &mut Tx<'_>) {
        let mut heartbeat = self.next_heartbeat(EntityId::UNKNOWN, true, SequenceNumber::FIRST);
        heartbeat.liveliness_flag = true;
        tx.message.heartbeat(&heartbeat);
        tx.flush(&self.route);
    }

    /// Sends what single readers are owed. Returns whether all is out.
    pub fn repair(&mut self, tx: &mut Tx<'_>) -> bool {
        while let Some(guid) = self.owed.front().copied() {
            if tx.budget == 0 {
                return false;
            }
            if self.repair_one(tx, guid) {
                self.owed.pop_front();
            } else {
                // The others get their turn before the rest of this one.
                self.owed.rotate_left(1);
                return false;
            }
        }
        true
    }

    fn repair_one(&mut self, tx: &mut Tx<'_>, guid: taut_base::Guid) -> bool {
        let Some(mut proxy) = self.proxies.remove(&guid) else { return true };
        let reader_id = guid.entity;
        tx.message.directed(guid.prefix);
        let owed = std::mem::take(&mut proxy.owed);
        let repaired = !matches!(owed, Owed::Nothing) || !proxy.fragments.is_empty();
        match owed {
            Owed::Nothing => {}
            Owed::Requested(set) => {
                let mut gap = GapBuilder::default();
                for number in set.iter().take_while(|number| *number <= self.sent) {
                    let change = self.history.get(number).filter(|_| number >= proxy.first_relevant);
                    match change {
                        Some(change) => send_to_one(tx, change, &mut proxy),
                        None => gap.add(number),
                    }
                }
                gap.send(tx, reader_id, self.guid.entity, &proxy.unicast);
            }
            Owed::Replay(from, to) => {
                for change in self.history.from(from).take_while(|change| change.sequence_number <= to) {
                    send_to_one(tx, change, &mut proxy);
                }
            }
        }
        let done = self.repair_fragments(tx, &mut proxy);
        if done && proxy.reliable && (repaired || proxy.heartbeat_due) {
            proxy.heartbeat_due = false;
            let heartbeat = self.next_heartbeat(reader_id, false, proxy.first_relevant);
            tx.make_room(0, &proxy.unicast);
            tx.message.heartbeat(&heartbeat);
        }
        tx.flush(&proxy.unicast);
        self.proxies.insert(guid, proxy);
        done
    }

    fn repair_fragments(&self, tx: &mut Tx<'_>, proxy: &mut super::ReaderProxy) -> bool {
        while let Some(job) = proxy.fragments.front_mut() {
            let change = self.history.get(job.number).filter(|_| job.number >= proxy.first_relevant);
            let done = match change {
                Some(change) => {
                    tx.next_message(&proxy.unicast);
                    send_fragments(tx, change, proxy.guid.entity, job, &proxy.unicast)
                }
                None => {
                    let mut gap = GapBuilder::default();
                    gap.add(job.number);
                    gap.send(tx, proxy.guid.entity, self.guid.entity, &proxy.unicast);
                    true
                }
            };
            if !done {
                return false;
            }
            proxy.fragments.pop_front();
        }
        true
    }
}

/// Puts a change into the message for one reader, or notes its fragments for later.
fn send_to_one(tx: &mut Tx<'_>, change: &CacheChange, proxy: &mut super::ReaderProxy) {
    if change.payload.len() > limits::FRAGMENT_SIZE {
        proxy.owe_fragments(change.sequence_number, None);
        return;
    }
    tx.make_room(change.payload.len(), &proxy.unicast);
    tx.message.data(proxy.guid.entity, change);
}

/// Sends the fragments of a job, one datagram each, as far as the budget goes; the last one may stay
/// in the message.
fn send_fragments(
    tx: &mut Tx<'_>,
    change: &CacheChange,
    reader_id: EntityId,
    job: &mut FragmentJob,
    to: &[taut_base::Locator],
) -> bool {
    let total = u32::try_from(change.payload.len().div_ceil(limits::FRAGMENT_SIZE)).unwrap_or(u32::MAX);
    loop {
        if tx.budget == 0 {
            return false;
        }
        let Some(number) = job.take_next(total) else { return true };
        let aligned = tx.message.data_frag(reader_id, change, number);
        // The last one leaves with the heartbeat that follows it.
        if number < total || !aligned {
            tx.next_message(to);
        }
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

    fn send(self, tx: &mut Tx<'_>, reader_id: EntityId, writer_id: EntityId, to: &[taut_base::Locator]) {
        let Some((gap_start, gap_list)) = self.gap else { return };
        tx.make_room(0, to);
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

    #[test]
    fn gaps_start_with_a_run() {
        let mut gap = GapBuilder::default();
        [5, 6, 7, 9, 12].into_iter().for_each(|n| gap.add(SequenceNumber(n)));
        let (start, list) = gap.gap.unwrap();
        assert_eq!((start.0, list.base().0), (5, 8));
        assert_eq!(list.iter().map(|n| n.0).collect::<Vec<_>>(), [9, 12]);
    }
}
