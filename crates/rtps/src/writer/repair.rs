//! What single readers are owed: changes again, fragments, GAPs, heartbeats to answer.
//! RTPS 2.5 §8.4.9.2 (reliable stateful writer), §8.3.8.5 (GAP).

use taut_base::{EntityId, FragmentNumber, Guid, Locator, SequenceNumber, SequenceNumberSet, Time};
use taut_wire::{Gap, Heartbeat};

use super::apart::Kept;
use super::path::PathSizes;
use super::proxies::Proxies;
use super::shared::{Recent, Way};
use super::transmit::{send_fragments, stamp};
use super::window::{self, Window};
use super::{Owed, ReaderProxy, Writer};
use crate::anatomy::Calls;
use crate::history_cache::{CacheChange, HistoryCache};
use crate::limits;
use crate::message::{HEARTBEAT, NUMBERS, Tx};

/// What a reader asks for that others of its group may need, too.
struct Shared<'a> {
    group: Locator,
    /// All readers of the group may see changes from here on.
    from: SequenceNumber,
    recent: &'a mut Recent,
    /// What is to be sent to the group.
    changes: Option<SequenceNumberSet>,
}

impl Shared<'_> {
    /// How this reader gets a change. One that is shared is sent behind what is sent to it alone.
    fn way(&mut self, now: Time, number: SequenceNumber, reader: Guid) -> Way {
        if number < self.from {
            return Way::Alone;
        }
        let way = self.recent.way(now, self.group, number, reader);
        let is_noted =
            way != Way::Shared || self.changes.get_or_insert(SequenceNumberSet::new(number)).insert(number);
        if is_noted { way } else { Way::Alone }
    }
}

/// What a small change takes of a turn besides its payload. Lower counts a turn of small changes as shorter than it
/// is, higher as longer.
const CHANGE_HEADERS: usize = 64;

/// What a change takes of a turn.
fn cost(change: &CacheChange) -> usize {
    change.payload.len().saturating_add(CHANGE_HEADERS)
}

/// What a writer holds, beside its proxies.
pub(super) struct Contents<'a> {
    writer_id: EntityId,
    pub(super) history: &'a HistoryCache,
    kept: &'a Kept,
    paths: &'a PathSizes,
    calls: Option<&'a Calls>,
    sent: SequenceNumber,
    off_lane: SequenceNumber,
    count: &'a mut i32,
}

impl Writer {
    /// What this writer holds.
    pub(super) fn contents(&mut self) -> Contents<'_> {
        self.parts().0
    }

    /// The same, beside the readers and what several of them were sent again.
    pub(super) fn parts(&mut self) -> (Contents<'_>, &mut Proxies, &mut Recent) {
        let Writer { history, kept, paths, proxies, recent, heartbeat_count: count, .. } = self;
        let (calls, sent, off_lane) = (self.calls.as_ref(), self.sent, self.off_lane);
        let writer_id = self.guid.entity;
        (Contents { writer_id, history, kept, paths, calls, sent, off_lane, count }, proxies, recent)
    }

    /// Sends of what single readers are owed as much as is one turn. Returns whether all is out.
    #[inline(never)]
    pub fn repair(&mut self, tx: &mut Tx<'_>) -> bool {
        self.catch_up();
        self.expire(tx.now);
        self.learn_paths(tx);
        let mut turn = limits::REPAIR_TURN;
        let mut refused = 0_usize;
        let begun = self.begun();
        while let Some(guid) = self.owed.next() {
            if tx.budget == 0 || turn == 0 {
                return false;
            }
            let group = self.repair_group(guid);
            let mut part = turn;
            if tx.flow.is_some() && !self.may_repair(tx, guid, group.map(|(group, _)| group), &mut part) {
                // The others get theirs.
                self.owed.let_others();
                refused = refused.saturating_add(1);
                tx.waits = refused >= self.owed.len();
                if tx.waits {
                    return false;
                }
                continue;
            }
            let (before, mut joins) = (part, false);
            let more = tx.is_followed || self.owed.len() > 1;
            let (mut contents, proxies, recent) = self.parts();
            let mut shared = group.map(|(group, from)| Shared { group, from, recent, changes: None });
            let done = proxies.get_mut(&guid).is_none_or(|proxy| {
                let catches_up = proxy.catches_up;
                if let (true, Owed::Replay(_, to)) = (catches_up, &mut proxy.owed) {
                    *to = begun;
                }
                tx.join(&proxy.unicast);
                let done = contents.repair(tx, proxy, &mut part, &mut shared);
                tx.leave(&proxy.unicast, more);
                joins = catches_up && !proxy.catches_up;
                done
            });
            if let Some(shared) = shared {
                contents.repair_group(tx, shared);
            }
            turn = turn.saturating_sub(before.saturating_sub(part));
            (tx.pays, tx.room) = (false, i64::MAX);
            if joins {
                self.update_route();
            }
            if done {
                self.owed.take(guid, &mut self.proxies);
            } else {
                // The others get their turn before the rest of this one.
                self.owed.let_others();
                return false;
            }
        }
        self.update_link();
        true
    }

    /// Sends one reader a heartbeat that is due, and nothing else.
    #[cold]
    pub(super) fn tell_one(&mut self, tx: &mut Tx<'_>, reader: Guid) {
        let (mut contents, proxies, _) = self.parts();
        if let Some(proxy) = proxies.get_mut(&reader).filter(|proxy| proxy.heartbeat_due) {
            tx.message.directed(proxy.guid.prefix);
            contents.tell(tx, proxy);
            tx.flush(&proxy.unicast);
        }
    }

    /// Puts what one reader of a built-in writer is owed into the message, at most about `turn` bytes. What is more
    /// is owed behind what others are.
    pub(crate) fn repair_reader(&mut self, tx: &mut Tx<'_>, reader: Guid, turn: &mut usize) {
        if !self.owed.take(reader, &mut self.proxies) {
            return;
        }
        let (mut contents, proxies, _) = self.parts();
        let Some(proxy) = proxies.get_mut(&reader) else { return };
        proxy.asked = Some((tx.now, proxy.asked.is_none()));
        if !contents.repair(tx, proxy, turn, &mut None) {
            self.owe(reader);
        }
    }

    /// A while after that repairs that paused go on, for readers that have not said anything since.
    pub(super) fn resume_repairs(&mut self, now: Time) {
        let Writer { proxies, owed, .. } = self;
        for proxy in proxies.values_mut() {
            if proxy.may_resume(now) && proxy.resume() {
                owed.add(proxy);
            }
        }
    }

    /// A reader that is owed something.
    pub(crate) fn next_owed(&self) -> Option<Guid> {
        self.owed.next()
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
        let mut first = self.history.first().unwrap_or(next);
        if !self.kept.is_empty() {
            first = first.min(self.kept.next(SequenceNumber::ZERO).unwrap_or(first));
        }
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

    /// Puts what one reader is owed into the message, at most about `turn` bytes. Returns whether that is all.
    fn repair(
        &mut self,
        tx: &mut Tx<'_>,
        proxy: &mut ReaderProxy,
        turn: &mut usize,
        shared: &mut Option<Shared<'_>>,
    ) -> bool {
        tx.message.directed(proxy.guid.prefix);
        let paused = proxy.is_paused();
        let owed = if paused { Owed::Nothing } else { std::mem::take(&mut proxy.owed) };
        let mut repaired = !paused && (!matches!(owed, Owed::Nothing) || !proxy.fragments.is_empty());
        match owed {
            Owed::Nothing => {}
            Owed::Requested(set) => repaired = self.send_requested(tx, proxy, &set, turn, shared),
            Owed::Replay(from, to) if proxy.catches_up => self.catch_up(tx, proxy, (from, to), turn),
            Owed::Replay(from, to) => self.replay(tx, proxy, (from, to), turn),
        }
        let mut done =
            paused || matches!(proxy.owed, Owed::Nothing) && self.repair_fragments(tx, proxy, turn);
        if !done && proxy.reliable && proxy.repair_room == 0 {
            // It says what it misses of this, or has room for the rest when the next heartbeat is due.
            proxy.pause(tx.now);
            done = true;
        }
        if done && proxy.reliable && (repaired || proxy.heartbeat_due) {
            self.tell(tx, proxy);
        }
        if done && proxy.catches_up {
            self.end_catching_up(tx, proxy);
        }
        done
    }

    /// Tells one reader what there is for it.
    fn tell(&mut self, tx: &mut Tx<'_>, proxy: &mut ReaderProxy) {
        proxy.heartbeat_due = false;
        let heartbeat = self.heartbeat_for(proxy, false);
        tx.make_room(HEARTBEAT, &proxy.unicast);
        tx.message.heartbeat(&heartbeat);
    }

    /// What there is for one reader.
    pub(super) fn heartbeat_for(&mut self, proxy: &ReaderProxy, final_flag: bool) -> Heartbeat {
        let mut heartbeat = self.heartbeat(proxy.guid.entity, final_flag, proxy.first_relevant);
        if !proxy.greeted {
            (heartbeat.first_sn, heartbeat.last_sn) = (proxy.first_relevant, proxy.first_relevant.prev());
        }
        // What the lane brings is not to be had here.
        if let Some(from) = proxy.lane_from {
            heartbeat.last_sn = heartbeat.last_sn.min(from.prev().max(self.off_lane));
            heartbeat.first_sn = heartbeat.first_sn.min(heartbeat.last_sn.next());
        }
        heartbeat
    }

    /// Sends history, and where it has holes, to a reader that has just matched.
    fn replay(
        &self,
        tx: &mut Tx<'_>,
        proxy: &mut ReaderProxy,
        (from, to): (SequenceNumber, SequenceNumber),
        turn: &mut usize,
    ) {
        let (mut gap, mut next) = (GapBuilder::default(), from);
        // Between the changes for one that reads a lane are those that come through it.
        let tells_of_holes = proxy.reliable && proxy.lane_from.is_none();
        for change in self.history.from(from).take_while(|change| change.sequence_number <= to) {
            let number = change.sequence_number;
            if *turn == 0 {
                proxy.owed = Owed::Replay(number, to);
                break;
            }
            if tells_of_holes && next < number {
                gap.add(next, number, |gap| self.send_gap(tx, proxy, gap));
            }
            self.send_to_one(tx, change, proxy, turn);
            next = number.next();
        }
        gap.end(|gap| self.send_gap(tx, proxy, gap));
    }

    /// A change that is not held is one of how many in a row, up to before which?
    fn end_of_hole(&self, number: SequenceNumber, proxy: &ReaderProxy) -> SequenceNumber {
        let held = || {
            let held = self.history.first_from(number).map(|change| change.sequence_number);
            held.into_iter().chain(self.kept.next(number)).min()
        };
        let end = match number < proxy.first_relevant {
            true => proxy.first_relevant,
            false => held().unwrap_or(SequenceNumber(i64::MAX)),
        };
        // What the lane brings is not gone.
        let lane = proxy.lane_from.unwrap_or(SequenceNumber(i64::MAX));
        end.min(self.sent.next()).min(lane).max(number.next())
    }

    /// Puts a change into the message for one reader, or notes its fragments for later.
    pub(super) fn send_to_one(
        &self,
        tx: &mut Tx<'_>,
        change: &CacheChange,
        proxy: &mut ReaderProxy,
        turn: &mut usize,
    ) {
        if self.paths.fragment_size(change).is_some() {
            proxy.owe_fragments(change.sequence_number, None);
            return;
        }
        proxy.sent_again = proxy.sent_again.saturating_add(1);
        *turn = turn.saturating_sub(cost(change));
        let to = (change.sequence_number, FragmentNumber::MAX);
        proxy.note_answered(to, change.payload.len().max(window::DATAGRAM));
        stamp(self.calls, change, tx);
        tx.data(proxy.guid.entity, change, &proxy.unicast);
    }

    /// Sends changes that a reader asked for. Returns whether it is to say what it has got.
    fn send_requested(
        &self,
        tx: &mut Tx<'_>,
        proxy: &mut ReaderProxy,
        set: &SequenceNumberSet,
        turn: &mut usize,
        shared: &mut Option<Shared<'_>>,
    ) -> bool {
        let (mut gap, mut told_to) = (GapBuilder::default(), SequenceNumber::ZERO);
        let (mut alone, mut any) = (false, false);
        // What it has got meanwhile it is not sent. What it never gets it is told to be irrelevant, whatever it has said.
        let (acked, first) = (proxy.acked, proxy.first_relevant);
        let asked = set.iter().filter(|number| *number > acked || *number < first);
        let mut asked = asked.take_while(|number| *number <= self.sent).peekable();
        while let Some(number) = asked.next_if(|_| *turn > 0 && proxy.repair_room > 0) {
            match self.sendable(number).filter(|_| number >= proxy.first_relevant) {
                Some(change) => {
                    any = true;
                    let is_whole = self.paths.fragment_size(change).is_none();
                    let shared = shared.as_mut().filter(|_| is_whole);
                    match shared.map_or(Way::Alone, |shared| shared.way(tx.now, number, proxy.guid)) {
                        Way::Alone => {
                            alone = true;
                            self.send_to_one(tx, change, proxy, turn);
                        }
                        Way::Shared => *turn = turn.saturating_sub(cost(change)),
                        Way::Sent => {}
                    }
                }
                None if number < told_to => {}
                None => {
                    told_to = self.end_of_hole(number, proxy);
                    gap.add(number, told_to, |gap| self.send_gap(tx, proxy, gap));
                }
            }
        }
        if let Some(next) = asked.peek() {
            let mut rest = SequenceNumberSet::new(*next);
            asked.for_each(|number| {
                rest.insert(number);
            });
            proxy.owed = Owed::Requested(rest);
        }
        gap.end(|gap| self.send_gap(tx, proxy, gap));
        alone || !any || !proxy.fragments.is_empty()
    }

    /// Sends changes to a group that several readers of it have asked for.
    fn repair_group(&mut self, tx: &mut Tx<'_>, shared: Shared<'_>) {
        let Some(changes) = shared.changes else { return };
        tx.send_left();
        let group = [shared.group];
        for change in changes.iter().filter_map(|number| self.history.get(number)) {
            stamp(self.calls, change, tx);
            tx.data(EntityId::UNKNOWN, change, &group);
        }
        let heartbeat = self.heartbeat(EntityId::UNKNOWN, false, SequenceNumber::FIRST);
        tx.make_room(HEARTBEAT, &group);
        tx.message.heartbeat(&heartbeat);
        tx.flush(&group);
    }

    /// A change that may be sent again.
    fn sendable(&self, number: SequenceNumber) -> Option<&CacheChange> {
        self.history.get(number).or_else(|| self.kept.get(number))
    }

    fn send_gap(&self, tx: &mut Tx<'_>, proxy: &ReaderProxy, (gap_start, gap_list): Gone) {
        let (reader_id, writer_id) = (proxy.guid.entity, self.writer_id);
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

    pub(super) fn repair_fragments(
        &self,
        tx: &mut Tx<'_>,
        proxy: &mut ReaderProxy,
        turn: &mut usize,
    ) -> bool {
        while let Some(job) = proxy.fragments.front_mut() {
            let change = self.sendable(job.number).filter(|_| job.number >= proxy.first_relevant);
            // One after the other: the rest it asks for again. Not what comes before, without which it never has it all.
            let waits = proxy.apart.is_some() && proxy.taking.is_some_and(|taking| taking < job.number);
            match change.map(|change| (change, self.paths.fragment_size(change))) {
                Some((_, Some(_))) if waits => {}
                Some((change, None)) => self.send_to_one(tx, change, proxy, turn),
                Some((change, Some(size))) => {
                    tx.send_all(&proxy.unicast);
                    let allowed = Window::datagrams(proxy.repair_room, size).min(turn.div_ceil(size.max(1)));
                    let before = allowed.saturating_mul(size);
                    let mut left = before;
                    let way = (&proxy.unicast[..], self.calls);
                    let done = send_fragments(tx, change, size, proxy.guid.entity, job, way, &mut left);
                    let to = (job.number, job.next.saturating_sub(1));
                    let bytes = before.saturating_sub(left);
                    let fragments = bytes.div_ceil(size.max(1));
                    *turn = turn.saturating_sub(bytes);
                    let cost = fragments.saturating_mul(size.max(window::DATAGRAM));
                    proxy.note_answered(to, cost);
                    proxy.sent_again =
                        proxy.sent_again.saturating_add(u64::try_from(fragments).unwrap_or(u64::MAX));
                    if !done {
                        return false;
                    }
                }
                None => {
                    let (number, next) = (job.number, job.number.next());
                    self.send_gap(tx, proxy, (number, SequenceNumberSet::new(next)));
                }
            }
            proxy.fragments.pop_front();
        }
        true
    }
}

/// `[start, base)` and the numbers of the set, which begins with the base.
type Gone = (SequenceNumber, SequenceNumberSet);

/// Collects numbers that are gone into as few GAPs as fit. RTPS 2.5 §8.3.8.5.
#[derive(Default)]
struct GapBuilder {
    gap: Option<Gone>,
}

impl GapBuilder {
    /// Adds the numbers from `start` up to before `end`; they come rising. What is full is sent.
    fn add(&mut self, start: SequenceNumber, end: SequenceNumber, send: impl FnOnce(Gone)) {
        match &mut self.gap {
            Some((_, list)) if list.is_empty() && list.base() == start => *list = SequenceNumberSet::new(end),
            Some((_, list)) if end.0.saturating_sub(list.base().0) <= 256 => {
                (start.0..end.0).for_each(|number| _ = list.insert(SequenceNumber(number)));
            }
            gap => {
                if let Some(full) = gap.replace((start, SequenceNumberSet::new(end))) {
                    send(full);
                }
            }
        }
    }

    /// Sends the last ones.
    fn end(self, send: impl FnOnce(Gone)) {
        if let Some(gap) = self.gap {
            send(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::history_cache::ChangeKind;
    use crate::message::Message;
    use crate::writer::{Acknowledged, MulticastChoice, NewChange, change};
    use taut_base::{Duration, GuidPrefix, InstanceHandle, ProtocolVersion, VendorId};
    use taut_mem::Bytes;
    use taut_port::Loopback;
    use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};
    use taut_wire::{Header, Submessage, Submessages};

    /// Runs a step of a writer. Returns first and last number of each heartbeat that it sent.
    fn heartbeats(
        writer: &mut Writer,
        step: impl FnOnce(&mut Writer, &mut Tx<'_>) -> bool,
    ) -> Vec<(i64, i64)> {
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
        let mut port = Loopback::new();
        let mut tx = Tx::new(Time(0), &mut port, &mut message, 9);
        assert!(step(writer, &mut tx));
        tx.send_left();
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

    /// A reliable KEEP_ALL writer with readers of these participants that it is about to greet.
    fn matched_with<const N: usize>(
        durability: DurabilityKind,
        participants: [u8; N],
    ) -> (Writer, [Guid; N]) {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, false));
        let mut qos = EndpointQos::default_writer();
        (qos.reliability.kind, qos.durability) = (ReliabilityKind::Reliable, durability);
        let mut writer =
            Writer::new(guid, WriterIndex(0), &qos, History::KeepAll, None, MulticastChoice::Auto);
        let readers = participants.map(|n| Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, false)));
        for reader in readers {
            let proxy = ReaderProxy::new(reader, true, vec![Locator::INVALID], Vec::new());
            writer.match_reader(proxy, durability != DurabilityKind::Volatile);
            writer.greet(reader);
        }
        (writer, readers)
    }

    fn matched() -> (Writer, Guid) {
        let (writer, [reader]) = matched_with(DurabilityKind::Volatile, [2]);
        (writer, reader)
    }

    #[test]
    fn a_volatile_reader_is_greeted_before_it_hears_what_there_is() {
        let (mut writer, reader) = matched();
        writer.write(Time(0), &mut change()).unwrap();
        assert_eq!(heartbeats(&mut writer, Writer::push), [], "the change alone");
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);

        // The question of a reader that has heard nothing yet, and its answer to the greeting.
        let nothing = SequenceNumberSet::new(SequenceNumber::FIRST);
        writer.on_acknack(Time(0), reader, &nothing, 1, false);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);
        writer.on_acknack(Time(0), reader, &nothing, 2, true);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 1)]);

        // It goes on where it was, if it forgets the writer and finds it again before it has acknowledged the change.
        writer.begin_anew(reader, false);
        writer.greet(reader);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);
        let all = SequenceNumberSet::new(SequenceNumber(2));
        assert_eq!(writer.on_acknack(Time(0), reader, &all, 3, true), Acknowledged::More);
        assert_eq!(writer.on_acknack(Time(0), reader, &nothing, 4, false), Acknowledged::Less);
        writer.begin_anew(reader, false);
        writer.greet(reader);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);
    }

    /// A volatile reader begins where the first heartbeat ends that it hears: what was written since the match comes after it.
    #[test]
    fn that_a_writer_is_alive_tells_who_is_not_greeted_of_no_change() {
        let (mut writer, readers) = matched_with(DurabilityKind::Volatile, [2, 3]);
        let say = Writer::send_liveliness;
        let nothing = SequenceNumberSet::new(SequenceNumber::FIRST);
        writer.on_acknack(Time(0), readers[0], &nothing, 1, true);
        writer.write(Time(0), &mut change()).unwrap();
        heartbeats(&mut writer, Writer::push);
        let mut told = heartbeats(&mut writer, say);
        told.sort_unstable();
        assert_eq!(told, [(1, 0), (1, 1)]);
        writer.on_acknack(Time(0), readers[1], &nothing, 1, true);
        assert_eq!(heartbeats(&mut writer, say), [(1, 1)], "to all at once");
    }

    /// It may never say anything, as one that has refused the writer. No heartbeat rides behind changes meanwhile.
    #[test]
    fn a_reader_that_is_not_greeted_keeps_no_heartbeat_from_the_others() {
        let (mut writer, readers) = matched_with(DurabilityKind::Volatile, [2, 3]);
        let nothing = SequenceNumberSet::new(SequenceNumber::FIRST);
        writer.on_acknack(Time(0), readers[0], &nothing, 1, true);
        heartbeats(&mut writer, Writer::repair);
        let tells = |now: &Time| {
            writer.write(*now, &mut change()).unwrap();
            writer.want_heartbeat(*now);
            assert_eq!(heartbeats(&mut writer, Writer::push), [], "the change alone");
            if writer.heartbeat_at <= *now {
                writer.on_heartbeat_timer(*now);
            }
            heartbeats(&mut writer, Writer::repair).iter().any(|(_, last)| *last > 0)
        };
        let times = (1..200).map(|ms| Time(0) + Duration::from_millis(ms));
        let told: Vec<Time> = times.filter(tells).collect();
        let longest = told.windows(2).map(|two| two[1].since(two[0])).max();
        assert!(longest.is_some_and(|span| span < limits::HEARTBEAT_FIRST.times(2)), "{told:?}");
    }

    #[test]
    fn what_a_group_is_sent_again_is_as_much_as_one_turn() {
        const GROUP: Locator = Locator::udp_v4(std::net::Ipv4Addr::new(239, 255, 0, 1), 7401);
        let (mut writer, _) = matched_with(DurabilityKind::Volatile, []);
        let readers = [2, 3].map(|n| Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, false)));
        for reader in readers {
            let unicast = vec![Locator::udp_v4([10, 0, 0, reader.prefix.0[0]].into(), 7411)];
            writer.match_reader(ReaderProxy::new(reader, true, unicast, vec![GROUP]), false);
            writer.greet(reader);
            writer.on_acknack(Time(0), reader, &SequenceNumberSet::new(SequenceNumber::FIRST), 1, true);
        }
        let len = limits::REPAIR_TURN / 8;
        for _ in 0..100 {
            let payload = Bytes::from(vec![0; len]);
            writer.write(Time(0), &mut NewChange { payload, ..change() }).unwrap();
        }
        let bytes = |writer: &mut Writer, step: fn(&mut Writer, &mut Tx<'_>) -> bool| {
            let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
            let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
            let mut port = Loopback::new();
            let mut tx = Tx::new(Time(0), &mut port, &mut message, 1_000);
            step(writer, &mut tx);
            tx.send_left();
            std::iter::from_fn(|| port.take()).map(|(_, datagram)| datagram.len()).sum::<usize>()
        };
        assert!(bytes(&mut writer, Writer::push) > 100 * len);
        let mut all = SequenceNumberSet::new(SequenceNumber::FIRST);
        (1..=100).for_each(|number| _ = all.insert(SequenceNumber(number)));
        writer.on_acknack(Time(0), readers[0], &all, 2, true);
        while bytes(&mut writer, Writer::repair) > len {}
        writer.on_acknack(Time(0), readers[1], &all, 2, true);
        let turn = bytes(&mut writer, Writer::repair);
        assert!(turn > len && turn < 2 * limits::REPAIR_TURN, "{turn} bytes");
    }

    #[test]
    fn a_reader_that_wants_a_history_anew_holds_up_no_other() {
        let (mut writer, readers) = matched_with(DurabilityKind::TransientLocal, [2, 3]);
        let mut acks = 0;
        let mut ack = |writer: &mut Writer, reader: Guid, next: i64| {
            acks += 1;
            writer.on_acknack(Time(0), reader, &SequenceNumberSet::new(SequenceNumber(next)), acks, true)
        };
        let write = |writer: &mut Writer| {
            assert!(writer.has_room(), "number {}", writer.last.0 + 1);
            writer.write(Time(0), &mut change()).unwrap();
            heartbeats(writer, Writer::push);
            writer.last.0 + 1
        };
        let many = limits::WINDOW_CHANGES as i64 + 10;
        for _ in 0..many {
            let next = write(&mut writer);
            for reader in readers {
                ack(&mut writer, reader, next);
            }
        }
        writer.begin_anew(readers[1], true);
        // The other one answers before it says that it has nothing.
        ack(&mut writer, readers[0], many + 1);
        let next = write(&mut writer);
        ack(&mut writer, readers[0], next);
        assert_eq!(ack(&mut writer, readers[1], 1), Acknowledged::Less);
        for _ in 0..many {
            let next = write(&mut writer);
            ack(&mut writer, readers[0], next);
        }
    }

    #[test]
    fn a_reader_that_only_a_group_reaches_is_repaired_there() {
        let (mut writer, _) = matched();
        let reader = Guid::new(GuidPrefix([3; 12]), EntityId::user(1, false, false));
        writer.match_reader(ReaderProxy::new(reader, true, Vec::new(), vec![Locator::INVALID]), false);
        heartbeats(&mut writer, Writer::repair);
        writer.greet(reader);
        assert_eq!(heartbeats(&mut writer, Writer::repair), [(1, 0)]);
    }

    #[test]
    fn a_repair_goes_on_when_the_reader_says_nothing() {
        let (mut writer, reader) = matched();
        for _ in 0..100 {
            writer.write(Time(0), &mut change()).unwrap();
        }
        heartbeats(&mut writer, Writer::push);
        heartbeats(&mut writer, Writer::repair);
        let mut all = SequenceNumberSet::new(SequenceNumber::FIRST);
        (1..=100).for_each(|number| assert!(all.insert(SequenceNumber(number))));
        let sent = |writer: &Writer| writer.proxies.values().map(|proxy| proxy.sent_again).sum::<u64>();
        let mut at = Time(0);
        let mut ask = |writer: &mut Writer, count, room| {
            at = at + limits::HEARTBEAT_FIRST;
            writer.on_acknack(at, reader, &all, count, true);
            // As if it had lost much.
            writer.proxies.get_mut(&reader).unwrap().repair_room = room * window::DATAGRAM;
            assert_eq!(heartbeats(writer, Writer::repair).len(), 1);
            at
        };
        let at = ask(&mut writer, 1, 30);
        assert_eq!(sent(&writer), 30);
        assert!(!writer.proxies.get(&reader).unwrap().is_owed(), "it waits");
        writer.on_heartbeat_timer(at + limits::HEARTBEAT_FIRST);
        heartbeats(&mut writer, Writer::repair);
        assert_eq!(sent(&writer), 100, "it may hold all by now");
        ask(&mut writer, 2, 40);
        ask(&mut writer, 3, 50);
        assert_eq!(sent(&writer), 190, "what it asks for takes the place of what waited");
    }

    #[test]
    fn that_an_endpoint_is_gone_is_kept_for_a_while() {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::SEDP_PUBLICATIONS_WRITER);
        let mut qos = EndpointQos::default_writer();
        qos.durability = DurabilityKind::TransientLocal;
        let mut writer =
            Writer::new(guid, WriterIndex(0), &qos, History::KeepLast(1), None, MulticastChoice::Auto);
        let mut end = |at, instance| {
            let mut change = NewChange {
                kind: ChangeKind::NotAliveDisposedUnregistered,
                instance: InstanceHandle([instance; 16]),
                source_timestamp: None,
                payload: Bytes::new(),
                number: None,
                in_lane: false,
                called: Time::default(),
                was_left: false,
            };
            writer.write(at, &mut change).unwrap();
            writer.changes_held()
        };
        let late = Time(0) + limits::GONE_KEPT;
        assert_eq!((end(Time(0), 1), end(Time(1), 2), end(late, 3)), (1, 2, 2));
    }

    #[test]
    fn gaps_start_with_a_run() {
        let mut gap = GapBuilder::default();
        let none = |_| panic!("it fits");
        [5, 6, 7, 9, 12].into_iter().for_each(|n| gap.add(SequenceNumber(n), SequenceNumber(n + 1), none));
        let (start, list) = gap.gap.unwrap();
        assert_eq!((start.0, list.base().0), (5, 8));
        assert_eq!(list.iter().map(|n| n.0).collect::<Vec<_>>(), [9, 12]);
        gap.add(SequenceNumber(14), SequenceNumber(264), none);
        let mut full = None;
        gap.add(SequenceNumber(264), SequenceNumber(265), |gap| full = Some(gap));
        assert_eq!(full.unwrap().1.iter().count(), 252);
        gap.add(SequenceNumber(265), SequenceNumber(1 << 40), none);
        let (start, list) = gap.gap.unwrap();
        assert_eq!((start.0, list.base().0, list.is_empty()), (264, 1 << 40, true));
    }
}
