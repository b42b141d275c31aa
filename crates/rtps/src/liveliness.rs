//! The Writer Liveliness Protocol: who promises to be alive, who watches. RTPS 2.5 §8.4.13.

use taut_base::{Duration, Guid, GuidPrefix, InstanceHandle, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_qos::LivelinessKind;
use taut_wire::{Cursor, EncapsulationId};

use crate::counters::bump;
use crate::event::Event;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::participant::{Participant, Sink};
use crate::reader::{Offer, WriterProxy};
use crate::schedule::{TxClass, Work};
use crate::timers::Timer;
use crate::writer::NewChange;
use crate::{ReaderIndex, WriterIndex};

/// PARTICIPANT_MESSAGE_DATA_KIND_AUTOMATIC_LIVELINESS_UPDATE. RTPS 2.5 §9.6.3.1.
const AUTOMATIC: [u8; 4] = [0, 0, 0, 1];
/// PARTICIPANT_MESSAGE_DATA_KIND_MANUAL_LIVELINESS_UPDATE.
const MANUAL_BY_PARTICIPANT: [u8; 4] = [0, 0, 0, 2];
/// Messages per lease, so that two may be lost.
const PER_LEASE: i64 = 3;
/// The shortest time between two messages, whatever the lease: one below three times that is held by who is alive only as
/// far as its readers hear of it so often. Lower and a lease that nobody can hold takes a processor of each side, higher
/// and the shortest that can be held is longer.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// One MANUAL_BY_PARTICIPANT writer speaks for all of its participant, which is passed on at most this often. Lower and a
/// stream of one costs a look at all readers for each datagram, higher and a shorter lease of another one is not held.
const SPEAKS_EACH: Duration = Duration::from_millis(5);

/// What a message says of who is alive, beside its writers.
#[derive(Default)]
pub(crate) struct Alive {
    /// Readers that have heard of a writer that was silent.
    pub revived: Vec<ReaderIndex>,
    /// Participants of which a MANUAL_BY_PARTICIPANT writer was heard: not all vendors say so of the others.
    pub spoken: Vec<GuidPrefix>,
}

impl WriterProxy {
    /// Does a change show that the writer is alive, where its application has promised to say so? Not one that only comes once
    /// more, or later than what follows it; of the newest one each `part` does. RTPS 2.5 §8.3.8.6 has the same of heartbeats that
    /// repair.
    #[inline]
    pub(crate) fn is_news(&mut self, number: SequenceNumber, part: bool) -> bool {
        let is_news = number > self.newest || part && number == self.newest;
        self.newest = self.newest.max(number);
        is_news || self.liveliness.kind == LivelinessKind::Automatic
    }
}

impl Alive {
    #[inline]
    fn is_empty(&self) -> bool {
        self.revived.is_empty() && self.spoken.is_empty()
    }

    /// A writer was heard that was silent, or that speaks for others.
    #[cold]
    pub fn note(&mut self, now: Time, reader: ReaderIndex, proxy: &mut WriterProxy) {
        if !proxy.alive {
            self.revived.push(reader);
        }
        let speaks = proxy.liveliness.kind == LivelinessKind::ManualByParticipant;
        let prefix = proxy.guid.prefix;
        if speaks && now >= proxy.spoke_at + SPEAKS_EACH && !self.spoken.contains(&prefix) {
            self.spoken.push(prefix);
        }
    }
}

/// How often a lease asks for a message.
fn period_of(lease: Duration) -> Duration {
    Duration(lease.0.checked_div(PER_LEASE).unwrap_or(lease.0)).max(SHORTEST_PERIOD)
}

/// What this participant has promised.
#[derive(Default)]
pub(crate) struct Liveliness {
    /// The shortest lease of the local AUTOMATIC writers; `ZERO` if there is none.
    automatic_lease: Duration,
    assert_at: Time,
    /// The shortest lease of the local MANUAL_BY_PARTICIPANT writers if there are several; else `ZERO`, as what one
    /// writes shows that it is alive.
    manual_lease: Duration,
    /// When the last of these has written, or the application has said that the participant is alive.
    manual_at: Time,
    /// When that was told last, and is it to be told again?
    told_at: Time,
    is_to_tell: bool,
    /// Some of these have fallen silent.
    any_silent: bool,
}

/// Changes of built-in writers never reach a user's reader.
struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

impl Participant {
    /// The local writers have changed: how often is liveliness to be asserted?
    pub(crate) fn arm_liveliness(&mut self, now: Time) {
        let leases = self.locals.values().filter(|local| {
            local.kind.writer().is_some()
                && !local.data.guid.entity.is_builtin()
                && local.data.qos.liveliness.kind == LivelinessKind::Automatic
                && !local.data.qos.liveliness.lease_duration.is_infinite()
        });
        let shortest = leases.map(|local| local.data.qos.liveliness.lease_duration).min();
        let before = std::mem::replace(&mut self.liveliness.automatic_lease, shortest.unwrap_or_default());
        if shortest.is_some_and(|lease| before == Duration::ZERO || lease < before) {
            self.liveliness.assert_at = now;
            self.timers.set(now, Timer::AssertLiveliness);
        }
        let by_participant = self.writers.iter_mut().filter(|(_, writer)| writer.by_participant).count();
        let finite = self.manual_writers().filter(|(index, ..)| self.is_by_participant(*index));
        let shortest = finite.map(|(_, _, lease)| lease).min().filter(|_| by_participant > 1);
        self.liveliness.manual_lease = shortest.unwrap_or_default();
        let manual: Vec<_> = self.manual_writers().collect();
        for (index, asserted_at, lease) in manual {
            self.timers.set(asserted_at + lease, Timer::WriterLiveliness(index));
        }
    }

    fn is_by_participant(&self, index: WriterIndex) -> bool {
        self.writers.get(index.0).is_some_and(|writer| writer.by_participant)
    }

    /// The writers that promise to say that they are alive: when that was last so, and their leases.
    fn manual_writers(&self) -> impl Iterator<Item = (WriterIndex, Time, Duration)> + '_ {
        self.locals.values().filter_map(|local| {
            let index = local.kind.writer()?;
            let liveliness = local.data.qos.liveliness;
            let manual = liveliness.kind != LivelinessKind::Automatic;
            let finite = !liveliness.lease_duration.is_infinite();
            let writer = self.writers.get(index.0)?;
            let together = if writer.by_participant { self.liveliness.manual_at } else { Time(0) };
            (manual && finite).then(|| (index, writer.asserted_at.max(together), liveliness.lease_duration))
        })
    }

    pub(crate) fn on_assert_timer(&mut self, now: Time, at: Time) {
        let lease = self.liveliness.automatic_lease;
        if lease == Duration::ZERO || at != self.liveliness.assert_at {
            return;
        }
        self.send_participant_message(now, AUTOMATIC);
        self.liveliness.assert_at = now + period_of(lease);
        self.timers.set(self.liveliness.assert_at, Timer::AssertLiveliness);
    }

    fn send_participant_message(&mut self, now: Time, kind: [u8; 4]) {
        let key = self.config.guid_prefix.0.into_iter().chain(kind);
        let mut instance = [0; 16];
        instance.iter_mut().zip(key.clone()).for_each(|(to, from)| *to = from);
        // Behind the key there are no octets, of which 0 is the count.
        let mut payload = [0; 24];
        let head = EncapsulationId::CDR_LE.header().into_iter().chain(key);
        payload.iter_mut().zip(head).for_each(|(to, from)| *to = from);
        let mut change = NewChange {
            kind: ChangeKind::Alive,
            instance: InstanceHandle(instance),
            source_timestamp: None,
            payload: Bytes::copy_from(&payload),
            number: None,
            in_lane: false,
            called: Time::default(),
            was_left: false,
        };
        // KEEP_LAST always has room.
        let _ = self.write(now, self.builtin.message_writer, &mut change, &mut Nowhere);
    }

    /// The application says that a writer, or with MANUAL_BY_PARTICIPANT all of them, is alive.
    pub fn assert_liveliness(&mut self, now: Time, index: WriterIndex) {
        let Some(entity) = self.writers.get(index.0).map(|writer| writer.guid.entity) else { return };
        let Some(local) = self.locals.get(&entity) else { return };
        match local.data.qos.liveliness.kind {
            LivelinessKind::Automatic => {}
            LivelinessKind::ManualByParticipant => self.assert_participant(now),
            LivelinessKind::ManualByTopic => {
                self.note_manual_liveliness(now, index);
                self.say_alive(now, index);
            }
        }
    }

    /// The application says that the participant is alive (DCPS 1.4 §2.2.2.2.1.16).
    pub fn assert_participant(&mut self, now: Time) {
        self.note_participant(now);
        self.say_manual(now);
    }

    /// A write or an assertion: the writer has kept its promise.
    pub(crate) fn note_manual_liveliness(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        writer.asserted_at = now;
        let by_participant = writer.by_participant;
        self.revive(index);
        if by_participant {
            self.note_participant(now);
            self.tell_of_write(now);
        }
    }

    fn revive(&mut self, index: WriterIndex) {
        let writer = self.writers.get_mut(index.0);
        if writer.is_some_and(|writer| std::mem::take(&mut writer.manual.is_lost)) {
            self.tell_readers_beside(index, true);
            let promise = self.manual_writers().find(|(writer, ..)| *writer == index);
            if let Some((_, asserted_at, lease)) = promise {
                self.timers.set(asserted_at + lease, Timer::WriterLiveliness(index));
            }
        }
    }

    /// One MANUAL_BY_PARTICIPANT writer speaks for all (DCPS 1.4 §2.2.3.11).
    fn note_participant(&mut self, now: Time) {
        self.liveliness.manual_at = now;
        if std::mem::take(&mut self.liveliness.any_silent) {
            let all = self.manual_writers().map(|(index, ..)| index);
            let all: Vec<WriterIndex> = all.filter(|index| self.is_by_participant(*index)).collect();
            all.into_iter().for_each(|index| self.revive(index));
        }
    }

    /// The other writers' readers hear nothing of a write: they are told, as often as the lease asks for. What comes too
    /// early for that is told later, so that nobody counts from an older one.
    fn tell_of_write(&mut self, now: Time) {
        let Liveliness { manual_lease: lease, told_at, is_to_tell, .. } = &mut self.liveliness;
        if *lease == Duration::ZERO || *is_to_tell {
            return;
        }
        let at = *told_at + period_of(*lease);
        if at > now {
            *is_to_tell = true;
            self.timers.set(at, Timer::AssertManual);
        } else {
            self.say_manual(now);
        }
    }

    pub(crate) fn say_manual(&mut self, now: Time) {
        (self.liveliness.told_at, self.liveliness.is_to_tell) = (now, false);
        self.timers.set(Time::NEVER, Timer::AssertManual);
        self.send_participant_message(now, MANUAL_BY_PARTICIPANT);
    }

    /// Readers of this participant get no message that says so.
    fn tell_readers_beside(&mut self, index: WriterIndex, alive: bool) {
        let Some(writer) = self.writers.get(index.0) else { return };
        let guid = writer.guid;
        let readers: Vec<ReaderIndex> = writer.local.iter().map(|local| local.reader).collect();
        for reader in readers {
            self.push_event(Event::LivelinessChanged { reader, writer: guid, alive });
        }
    }

    /// Is this writer of the participant alive, as far as is known?
    pub(crate) fn is_alive(&self, index: WriterIndex) -> bool {
        self.writers.get(index.0).is_none_or(|writer| !writer.manual.is_lost)
    }

    /// Does a writer that a reader is matched with not keep its promise, as far as is known?
    pub fn is_silent(&self, reader: ReaderIndex, writer: Guid) -> bool {
        if writer.prefix == self.config.guid_prefix {
            let local = self.locals.get(&writer.entity).and_then(|local| local.kind.writer());
            return local.is_some_and(|index| !self.is_alive(index));
        }
        let proxy = self.readers.get(reader.0).and_then(|reader| reader.proxies.get(&writer));
        proxy.is_some_and(|proxy| !proxy.alive)
    }

    /// A manual writer has written into its lane, of which the protocol of its readers hears nothing: they are told, as often
    /// as the lease asks for. What comes too early for that is told later, so that nobody counts from an older one.
    pub(crate) fn tell_lane_readers(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get(index.0).filter(|writer| writer.is_unheard()) else { return };
        let Some(local) = self.locals.get(&writer.guid.entity) else { return };
        let lease = local.data.qos.liveliness.lease_duration;
        if lease.is_infinite() {
            return;
        }
        let at = writer.manual.told_at.map_or(now, |at| at + period_of(lease));
        if at > now {
            self.timers.set(at, Timer::AssertByTopic(index));
        } else {
            self.say_alive(now, index);
        }
    }

    /// Tells the readers of a manual writer that it is alive, once however often it is said before that leaves.
    fn say_alive(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        (writer.manual.told_at, writer.manual.left) = (Some(now), None);
        if !std::mem::replace(&mut writer.manual.is_queued, true) {
            self.schedule.push(TxClass::Liveliness, 0, Work::Liveliness(index));
        }
        self.timers.set(Time::NEVER, Timer::AssertByTopic(index));
    }

    pub(crate) fn on_writer_liveliness_timer(&mut self, now: Time, index: WriterIndex) {
        let Some((_, asserted_at, lease)) = self.manual_writers().find(|(writer, ..)| *writer == index)
        else {
            return;
        };
        let due = asserted_at + lease;
        if due > now {
            return self.timers.set(due, Timer::WriterLiveliness(index));
        }
        // It is watched again once it lives.
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        self.liveliness.any_silent |= writer.by_participant;
        if !std::mem::replace(&mut writer.manual.is_lost, true) {
            self.push_event(Event::LivelinessLost { writer: index });
            self.tell_readers_beside(index, false);
        }
    }

    /// A peer says that its writers of one kind are alive.
    pub(crate) fn on_participant_message(&mut self, now: Time, change: &CacheChange) {
        let parsed = EncapsulationId::parse(&change.payload).and_then(|(id, body)| {
            let mut cursor = Cursor::new(body, id.endian());
            Ok((cursor.guid_prefix()?, cursor.array::<4>()?))
        });
        let (prefix, kind) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => return self.counters.malformed(reason),
        };
        // Only a participant itself says that it lives.
        if prefix != change.writer_guid.prefix {
            return bump(&mut self.counters.foreign_guid);
        }
        let kind = match kind {
            AUTOMATIC => LivelinessKind::Automatic,
            MANUAL_BY_PARTICIPANT => LivelinessKind::ManualByParticipant,
            _ => return,
        };
        self.hear_writers(now, prefix, kind);
        self.look_at_all_revived(now);
    }

    /// What has come in a datagram says of writers.
    #[inline]
    pub(crate) fn look_at_alive(&mut self, now: Time) {
        if !self.alive.is_empty() {
            self.look_at_all_alive(now);
        }
    }

    #[cold]
    fn look_at_all_alive(&mut self, now: Time) {
        while let Some(prefix) = self.alive.spoken.pop() {
            self.hear_writers(now, prefix, LivelinessKind::ManualByParticipant);
        }
        self.look_at_all_revived(now);
    }

    fn look_at_all_revived(&mut self, now: Time) {
        while let Some(index) = self.alive.revived.pop() {
            self.look_at_revived(now, index);
        }
    }

    /// Notes which readers have writers that are alive again. *Cost*: O(log n) for each match with the peer, which this step is
    /// charged with; none where the peer has said the same in this step before.
    pub(crate) fn hear_writers(&mut self, now: Time, prefix: GuidPrefix, kind: LivelinessKind) {
        let Participant { database, locals, readers, alive, compared, .. } = self;
        for (local, remote) in database.matches_of_peer(prefix) {
            *compared = compared.saturating_add(1);
            let reader = locals.get(&local).and_then(|local| local.kind.reader());
            let Some(index) = reader else { continue };
            let proxy = readers.get_mut(index.0).and_then(|reader| reader.proxies.get_mut(&remote));
            let Some(proxy) = proxy.filter(|proxy| proxy.liveliness.kind == kind) else { continue };
            if proxy.spoke_at == now {
                break;
            }
            (proxy.heard, proxy.spoke_at) = (now, now);
            alive.revived.extend((!proxy.alive).then_some(index));
        }
        alive.revived.sort_unstable();
        alive.revived.dedup();
    }

    /// Writers of a reader are alive again: it has one look at all of them, however many those are.
    #[cold]
    pub(crate) fn look_at_revived(&mut self, now: Time, index: ReaderIndex) {
        self.alive.revived.retain(|other| *other != index);
        self.compare_leases(now, index, false);
    }

    /// Watches the liveliness of the writers that a reader is matched with, if any has a lease.
    pub(crate) fn arm_reader_liveliness(&mut self, index: ReaderIndex) {
        let Some(reader) = self.readers.get(index.0) else { return };
        if let Some((end, _)) = reader.first_lease() {
            self.timers.set(end, Timer::ReaderLiveliness(index));
        }
    }

    /// The first of the leases is over, unless its writer was heard meanwhile. As with those of participants
    /// ([`Participant::on_lease_timer`]), what a writer has said may still lie in a socket if that is noticed late.
    pub(crate) fn on_reader_liveliness_timer(&mut self, now: Time, index: ReaderIndex) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        let Some((end, is_second)) = reader.first_lease() else { return };
        if !is_second && now.since(end) >= limits::LEASE_LATE {
            reader.late_since = now;
        } else {
            self.compare_leases(now, index, true);
        }
        self.arm_reader_liveliness(index);
    }

    /// Compares what each writer has promised with when it was heard. Those that are silent are found so where `ends` is set.
    fn compare_leases(&mut self, now: Time, index: ReaderIndex, ends: bool) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        let (mut changed, late_since) = (Vec::new(), reader.late_since);
        reader.proxies.for_each(|_, proxy| {
            let alive = proxy.lease_end(late_since).0 > now;
            if alive != proxy.alive && (alive || ends) {
                proxy.alive = alive;
                changed.push((proxy.guid, alive));
            }
        });
        let revived = changed.iter().any(|(_, alive)| *alive);
        for (writer, alive) in changed {
            self.push_event(Event::LivelinessChanged { reader: index, writer, alive });
        }
        if revived {
            self.arm_reader_liveliness(index);
        }
    }
}
