//! From a datagram to the entities it concerns. RTPS 2.5 §8.3.4 (the RTPS message receiver).
//!
//! Owns nothing but the state of the message in hand. Nothing that arrives can make it fail: what
//! is wrong is counted and dropped, with the rest of its message where the specification says so.

mod lane;
mod source;
mod telling;

use std::collections::VecDeque;

use taut_base::{EntityId, Guid, GuidPrefix, SequenceNumber, Time};
use taut_mem::{Bytes, Pool};
use taut_port::{Frame, Traffic};
use taut_qos::LivelinessKind;
use taut_wire::{
    AckNack, Data, DataFrag, Framed, Gap, Header, HeaderExtension, Heartbeat, HeartbeatFrag, InlineQos,
    NackFrag, ParameterList, Payload, Submessage, SubmessageKind, Submessages, WireError,
};

use crate::anatomy::read_stamps;
use crate::counters::{Counters, bump};
use crate::discovery::inbox::Inbox;
use crate::event::Event;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::liveliness::Alive;
use crate::participant::{Participant, Sink};
use crate::reader::{Assembly, FragmentInfo, Offer, Reader, Said, WriterProxy};
use crate::writer::Acknowledged;
use crate::{ReaderIndex, WriterIndex};
use lane::lost_beside_lane;
pub(crate) use lane::pass_lane;
pub(crate) use source::Source;

/// Payloads below this share of their receive buffer are copied out of it, so that a small sample
/// in a reader's cache does not hold a large buffer.
const KEEP_SHARE: usize = 4;

impl Participant {
    /// Handles one datagram. Changes for the user's readers go to `sink`.
    pub fn on_frame(&mut self, now: Time, frame: &Frame, sink: &mut dyn Sink) {
        bump(&mut self.counters.messages);
        let bytes: &[u8] = &frame.bytes;
        let (header, rest) = match Header::parse(bytes) {
            Ok(parsed) => parsed,
            Err(reason) => return self.counters.malformed(reason),
        };
        if header.prefix == self.config.guid_prefix {
            return bump(&mut self.counters.reflected);
        }
        // RTPS 2.5 §8.3.7: one of another length or checksum is not the message that was sent.
        let has_extension = rest.first() == Some(&SubmessageKind::HEADER_EXTENSION.0);
        if has_extension && let Err(reason) = HeaderExtension::verify(bytes) {
            return self.counters.malformed(reason);
        }
        // A busy link on which announcements get lost is no reason to forget a peer.
        self.renew_lease(now, header.prefix);
        let mut source = Source::new(bytes, &header, frame.source);
        self.lives_left = limits::MESSAGE_ANNOUNCEMENTS;
        let mut submessages = Submessages::new(rest);
        while let Some(framed) = submessages.next_framed() {
            let handled = framed.and_then(|framed| self.on_framed(now, &mut source, framed, frame, sink));
            if let Err(reason) = handled {
                // RTPS 2.5 §8.3.4.1: what comes before stands, what comes after is not valid.
                self.counters.malformed(reason);
                if source.for_us && !source.reflected {
                    self.refuse_last(now, source.prefix, (rest, submessages.remaining()), reason, sink);
                }
                break;
            }
        }
        // What is left of datagrams before this one has a timer: it is no part of each that comes meanwhile.
        if !self.inbox.is_empty() && !self.found.waits {
            self.handle_inbox(now, limits::INBOX_AT_ONCE);
        }
        if let Some(prefix) = self.announced.take() {
            // Only now, as its writers may have said in the same datagram what they have.
            self.ask_again(now, prefix);
        }
        self.look_at_alive(now);
    }

    /// What most messages consist of goes straight to where it belongs.
    #[inline]
    fn on_framed(
        &mut self,
        now: Time,
        source: &mut Source<'_>,
        framed: Framed<'_>,
        frame: &Frame,
        sink: &mut dyn Sink,
    ) -> Result<(), WireError> {
        let is_heard = source.for_us && !source.reflected;
        match framed.kind() {
            SubmessageKind::DATA if is_heard => self.on_data(now, source, &framed.data()?, frame, sink),
            SubmessageKind::INFO_TS => source.timestamp = framed.info_timestamp()?,
            SubmessageKind::INFO_DST => {
                let prefix = framed.info_destination()?;
                source.for_us = prefix == GuidPrefix::UNKNOWN || prefix == self.config.guid_prefix;
            }
            SubmessageKind::HEARTBEAT if is_heard => {
                self.on_heartbeat(now, source, &framed.heartbeat()?, sink);
            }
            SubmessageKind::ACKNACK if is_heard => {
                let acknack = framed.acknack()?;
                if source.may_name(acknack.reader_sn_state.num_bits()) {
                    self.on_acknack(now, source, &acknack);
                } else {
                    bump(&mut self.counters.too_many_numbers);
                }
            }
            _ => self.on_submessage(now, source, framed.read()?, frame, sink),
        }
        Ok(())
    }

    /// All others, and what is not for this participant.
    #[inline(never)]
    fn on_submessage(
        &mut self,
        now: Time,
        source: &mut Source<'_>,
        submessage: Submessage<'_>,
        frame: &Frame,
        sink: &mut dyn Sink,
    ) {
        match submessage {
            Submessage::InfoSource(info) => {
                // RTPS 2.5 §8.3.8.9.4: all that was said about the source no longer holds.
                (source.prefix, source.vendor, source.timestamp) = (info.prefix, info.vendor, None);
                source.reflected = info.prefix == self.config.guid_prefix;
            }
            Submessage::Unknown { .. } => bump(&mut self.counters.unknown_submessages),
            // Replies go to announced locators only: an address in a message proves nothing.
            Submessage::InfoReply(_) | Submessage::InfoReplyIp4(_) => {}
            Submessage::Pad | Submessage::HeaderExtension(_) => {}
            _ if source.reflected => bump(&mut self.counters.reflected),
            _ if !source.for_us => bump(&mut self.counters.not_for_us),
            Submessage::DataFrag(frag) if frag.writer_id == EntityId::SPDP_WRITER => {
                self.on_announcement_frag(now, source, &frag, frame.traffic);
            }
            Submessage::DataFrag(frag) => self.on_data_frag(now, source, &frag, frame, sink),
            Submessage::HeartbeatFrag(heartbeat) => self.on_heartbeat_frag(now, source, &heartbeat),
            Submessage::Gap(gap) if source.may_name(gap.gap_list.num_bits()) => {
                self.on_gap(now, source, &gap, sink)
            }
            Submessage::Gap(_) => bump(&mut self.counters.too_many_numbers),
            Submessage::NackFrag(nack) if source.may_name(nack.fragment_number_state.num_bits()) => {
                self.on_nack_frag(now, source, &nack);
            }
            Submessage::NackFrag(_) => bump(&mut self.counters.too_many_numbers),
            // They went straight.
            Submessage::Data(_)
            | Submessage::Heartbeat(_)
            | Submessage::AckNack(_)
            | Submessage::InfoTimestamp(_)
            | Submessage::InfoDestination(_) => {}
        }
    }

    #[inline(never)]
    fn on_data(
        &mut self,
        now: Time,
        source: &Source<'_>,
        data: &Data<'_>,
        frame: &Frame,
        sink: &mut dyn Sink,
    ) {
        let (writer, number) = (Guid::new(source.prefix, data.writer_id), data.writer_sn);
        let inline = match parse_inline(data.inline_qos) {
            Ok(inline) => inline,
            Err(reason) => return self.refuse_change(now, (writer, number, data.reader_id), reason, sink),
        };
        let (kind, payload) = match data.payload {
            Payload::None => (kind_of(true, &inline), &[][..]),
            Payload::Data(bytes) => (kind_of(false, &inline), bytes),
            Payload::Key(bytes) => (kind_of(true, &inline), bytes),
        };
        let Some(kind) = kind else { return self.pass_by(now, (writer, number, data.reader_id), 0, sink) };
        if data.writer_id == EntityId::SPDP_WRITER {
            return self.on_spdp(now, source, kind, payload, inline.key_hash, frame.traffic);
        }
        let (mut kept, rest) = (None, with_rest(source.message, payload));
        self.for_each_reader(writer, data.reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            rx.hear_change(now, reader.index, proxy, (number, false));
            pass_lane(reader.index, proxy, sink);
            if rx.has_arrived(now, reader.index, proxy, number, data.reader_id) {
                return;
            }
            if inline.is_for_some && is_for_others(&inline, data.inline_qos, reader.guid) {
                return rx.again().pass_over(now, reader.index, proxy, number, sink);
            }
            if proxy.clock.is_some() {
                rx.again().note_passage(now, reader.index, proxy, (number, true), data.inline_qos, sink);
            }
            let mut offer = Some(CacheChange {
                kind,
                writer_guid: writer,
                sequence_number: number,
                instance: inline.key_hash,
                source_timestamp: source.timestamp,
                time: now,
                payload: Bytes::new(),
            });
            // In its place at once, as it is what is longest of a change.
            if let Some(change) = &mut offer
                && !change.payload.set_short(rest, payload.len())
            {
                change.payload = keep_once(&mut kept, rx.pool, &frame.bytes, payload);
            }
            rx.take_change(reader.index, (writer, proxy), &mut offer, sink);
        });
    }

    fn on_data_frag(
        &mut self,
        now: Time,
        source: &Source<'_>,
        frag: &DataFrag<'_>,
        frame: &Frame,
        sink: &mut dyn Sink,
    ) {
        let (writer, number) = (Guid::new(source.prefix, frag.writer_id), frag.writer_sn);
        let inline = match parse_inline(frag.inline_qos) {
            Ok(inline) => inline,
            Err(reason) => return self.refuse_change(now, (writer, number, frag.reader_id), reason, sink),
        };
        let most = if frag.writer_id.is_builtin() { limits::DISCOVERY_SIZE } else { limits::SAMPLE_SIZE };
        if frag.sample_size > most {
            let change = (writer, number, frag.reader_id);
            return self.refuse_change(now, change, WireError::LimitExceeded, sink);
        }
        let Some(kind) = kind_of_fragment(frag, &inline) else {
            return self.pass_by(now, (writer, number, frag.reader_id), 0, sink);
        };
        let said = Said { kind, inline, source_timestamp: source.timestamp };
        let info = info_of(frag);
        let mut is_followed = false;
        self.for_each_reader(writer, frag.reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            rx.hear_change(now, reader.index, proxy, (number, true));
            pass_lane(reader.index, proxy, sink);
            if rx.has_arrived(now, reader.index, proxy, number, frag.reader_id) {
                return;
            }
            if said.inline.is_for_some && is_for_others(&said.inline, frag.inline_qos, reader.guid) {
                return rx.again().pass_over(now, reader.index, proxy, number, sink);
            }
            if proxy.clock.is_some() {
                rx.again().note_passage(now, reader.index, proxy, (number, false), frag.inline_qos, sink);
            }
            if proxy.contradicts(number, info) {
                bump(&mut rx.counters.bad_fragments);
            }
            if !proxy.assemblies.contains_key(&number) {
                let assembly = Assembly::new(rx.samples, info, said);
                let admitted = assembly.and_then(|assembly| proxy.admit_assembly(now, number, assembly));
                let Some(lost) = admitted else { return bump(&mut rx.counters.bad_fragments) };
                rx.note_given_up(lost, reader.index, proxy, sink);
                is_followed |= proxy.is_followed(number);
            }
            let Some(assembly) = proxy.assemblies.get_mut(&number) else { return };
            if !assembly.add(info, &said, frag.payload, &mut |part| keep(rx.pool, &frame.bytes, part)) {
                return bump(&mut rx.counters.bad_fragments);
            }
            let Some((payload, Said { kind, inline, source_timestamp })) = assembly.finish(rx.samples) else {
                rx.note_given_up(proxy.bound_assemblies(), reader.index, proxy, sink);
                return proxy.note_arrival(now);
            };
            let mut offer = Some(CacheChange {
                kind,
                writer_guid: writer,
                sequence_number: number,
                instance: inline.key_hash,
                source_timestamp,
                time: now,
                payload,
            });
            rx.take_change(reader.index, (writer, proxy), &mut offer, sink);
        });
        if is_followed {
            self.ask_for_fragments(writer);
        }
    }

    /// Some of what a participant says of itself has come.
    #[cold]
    #[inline(never)]
    fn on_announcement_frag(
        &mut self,
        now: Time,
        source: &Source<'_>,
        frag: &DataFrag<'_>,
        traffic: Traffic,
    ) {
        let inline = match parse_inline(frag.inline_qos) {
            Ok(inline) if frag.sample_size <= limits::ANNOUNCEMENT_SIZE => inline,
            Ok(_) => return self.counters.malformed(WireError::LimitExceeded),
            Err(reason) => return self.counters.malformed(reason),
        };
        let Some(kind) = kind_of_fragment(frag, &inline) else { return };
        let said = Said { kind, inline, source_timestamp: source.timestamp };
        let name = (source.prefix, frag.writer_sn);
        let whole = self.announcements.add(name, (info_of(frag), said), frag.payload);
        if let Some((payload, Said { kind, inline, .. })) = whole {
            self.on_spdp(now, source, kind, &payload, inline.key_hash, traffic);
        }
    }

    /// A submessage is not valid behind which so many bytes of the message are. If it brings a change nobody waits for that,
    /// as in [`Participant::refuse_change`]: what of it is not valid is the same each time that it is sent. Another fragment may
    /// be.
    // What else the message says would have to lie in memory for each sample that arrives, if it were given here.
    #[cold]
    #[inline(never)]
    fn refuse_last(
        &mut self,
        now: Time,
        prefix: GuidPrefix,
        (message, behind): (&[u8], usize),
        reason: WireError,
        sink: &mut dyn Sink,
    ) {
        let is_change = |framed: &Framed<'_>| match framed.kind() {
            SubmessageKind::DATA => true,
            SubmessageKind::DATA_FRAG => reason == WireError::BadParameterList,
            _ => false,
        };
        let mut submessages = Submessages::new(message);
        while let Some(Ok(framed)) = submessages.next_framed() {
            if submessages.remaining() == behind
                && let Some((reader_id, writer_id, number)) =
                    framed.named_change().filter(|_| is_change(&framed))
            {
                self.pass_by(now, (Guid::new(prefix, writer_id), number, reader_id), 1, sink);
            }
        }
    }

    /// A change cannot be taken. One with a parameter that has to be understood, and is not, is to be ignored (RTPS 2.5
    /// §9.6.2.2.1), one with a parameter that is too short is not valid (§8.3.8.2.3), and one that is too large always will
    /// be: each time it is sent it is the same, so nobody waits for it.
    #[cold]
    fn refuse_change(
        &mut self,
        now: Time,
        change: (Guid, SequenceNumber, EntityId),
        reason: WireError,
        sink: &mut dyn Sink,
    ) {
        self.counters.malformed(reason);
        self.pass_by(now, change, 1, sink);
    }

    /// A change has arrived of which no reader gets anything. `lost`: so many samples they miss with it.
    #[cold]
    fn pass_by(
        &mut self,
        now: Time,
        (writer, number, reader_id): (Guid, SequenceNumber, EntityId),
        lost: u64,
        sink: &mut dyn Sink,
    ) {
        self.for_each_reader(writer, reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            rx.hear_change(now, reader.index, proxy, (number, false));
            pass_lane(reader.index, proxy, sink);
            if !proxy.is_known(number) {
                rx.pass_over(now, reader.index, proxy, number, sink);
                rx.note_lost(reader.index, lost);
            }
        });
    }

    /// What a writer has sent is in assembly, and some of it has not come.
    #[cold]
    fn ask_for_fragments(&mut self, writer: Guid) {
        self.for_each_reader(writer, EntityId::UNKNOWN, |rx, reader| {
            reader.queue_ack(writer);
            rx.woken.push(reader.index);
        });
        self.wake_readers();
    }

    fn on_heartbeat(&mut self, now: Time, source: &Source<'_>, heartbeat: &Heartbeat, sink: &mut dyn Sink) {
        let writer = Guid::new(source.prefix, heartbeat.writer_id);
        if !heartbeat.final_flag || !self.is_abreast(now, writer, heartbeat) {
            self.on_news_of_writer(now, writer, heartbeat, sink);
        }
    }

    #[inline(never)]
    fn on_news_of_writer(&mut self, now: Time, writer: Guid, heartbeat: &Heartbeat, sink: &mut dyn Sink) {
        let (mut is_first, mut is_anew) = (false, false);
        self.for_each_reader(writer, heartbeat.reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            is_first |= !proxy.has_heard();
            is_anew |= writer.entity.is_builtin() && proxy.has_restarted(now, heartbeat);
            if shows_life(proxy, heartbeat) {
                rx.hear(now, reader.index, proxy);
            }
            // One that only says that the writer is alive may overtake history.
            let is_its_end = || heartbeat.reader_id != EntityId::UNKNOWN && !heartbeat.liveliness_flag;
            if proxy.history_until.is_some() && is_its_end() {
                rx.note_lost(reader.index, proxy.end_history(heartbeat.last_sn));
                rx.note(Event::HistoryReceived { reader: reader.index, writer });
            }
            pass_lane(reader.index, proxy, sink);
            let (strength, mut delivers, from) = (proxy.strength, false, proxy.next_expected());
            let lost = proxy.on_heartbeat(now, heartbeat, &mut |offer| {
                rx.offer(reader.index, writer, strength, sink, offer);
                delivers |= offer.is_none();
            });
            let lost = lost_beside_lane(lost, reader.index, proxy, from..heartbeat.first_sn, sink);
            pass_lane(reader.index, proxy, sink);
            rx.note_late(reader.index, proxy, delivers);
            let due = proxy.ack_due || !proxy.assemblies.is_empty();
            rx.note_lost(reader.index, lost);
            if due {
                reader.queue_ack(writer);
                rx.woken.push(reader.index);
            }
        });
        self.wake_readers();
        if is_anew {
            self.begin_said_life(now, writer.prefix);
        } else if is_first && writer.entity.is_builtin() {
            self.note_answer(now, writer.prefix);
            self.greet_opposite(now, writer);
        }
    }

    /// Does a heartbeat of a user's writer tell its only reader nothing? Most do not.
    #[inline]
    fn is_abreast(&mut self, now: Time, writer: Guid, heartbeat: &Heartbeat) -> bool {
        let Some([index]) = self.sources.get_mut(&writer).map(|readers| readers.as_slice()) else {
            return false;
        };
        let Some(reader) = self.readers.get_mut(index.0) else { return false };
        let is_meant = heartbeat.reader_id == EntityId::UNKNOWN || heartbeat.reader_id == reader.guid.entity;
        let Some(proxy) = reader.proxies.get_mut(&writer) else { return false };
        let speaks =
            heartbeat.liveliness_flag && proxy.liveliness.kind == LivelinessKind::ManualByParticipant;
        let is_usual = proxy.alive && !proxy.lane && proxy.history_until.is_none() && !speaks;
        let is_abreast = is_meant && is_usual && !writer.entity.is_builtin() && proxy.is_abreast(heartbeat);
        if is_abreast && shows_life(proxy, heartbeat) {
            proxy.heard = now;
        }
        is_abreast
    }

    fn on_heartbeat_frag(&mut self, now: Time, source: &Source<'_>, heartbeat: &HeartbeatFrag) {
        let writer = Guid::new(source.prefix, heartbeat.writer_id);
        self.for_each_reader(writer, heartbeat.reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            let fragment = (heartbeat.writer_sn, heartbeat.last_fragment_num);
            if proxy.on_heartbeat_frag(now, fragment, heartbeat.count) {
                reader.queue_ack(writer);
                rx.woken.push(reader.index);
            }
        });
        self.wake_readers();
    }

    fn on_gap(&mut self, now: Time, source: &Source<'_>, gap: &Gap, sink: &mut dyn Sink) {
        let writer = Guid::new(source.prefix, gap.writer_id);
        self.for_each_reader(writer, gap.reader_id, |rx, reader| {
            let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
            pass_lane(reader.index, proxy, sink);
            let (strength, mut delivers) = (proxy.strength, false);
            proxy.on_gap(now, gap, &mut |offer| {
                rx.offer(reader.index, writer, strength, sink, offer);
                delivers |= offer.is_none();
            });
            pass_lane(reader.index, proxy, sink);
            rx.note_late(reader.index, proxy, delivers);
        });
    }

    #[inline(never)]
    fn on_acknack(&mut self, now: Time, source: &Source<'_>, acknack: &AckNack) {
        let reader = Guid::new(source.prefix, acknack.reader_id);
        let Some(index) = self.writer_of(acknack.writer_id) else { return };
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        let AckNack { reader_sn_state, count, final_flag, .. } = acknack;
        let acknowledged = writer.on_acknack(now, reader, reader_sn_state, *count, *final_flag);
        match acknowledged {
            Acknowledged::Nothing => {
                if acknack.writer_id.is_builtin() {
                    self.note_reached(source.prefix, &source.locator);
                }
                return bump(&mut self.counters.unmatched_reader);
            }
            Acknowledged::Beyond => {
                bump(&mut self.counters.unmatched_reader);
                return self.wake_writer(now, index);
            }
            Acknowledged::Anew => return self.begin_said_life(now, source.prefix),
            _ => {}
        }
        self.push_event(Event::Acknowledged { writer: index });
        self.wake_writer(now, index);
        if acknowledged == Acknowledged::Less && index == self.builtin.publications_writer {
            self.on_forgotten(now, source.prefix);
        }
        if index == self.builtin.publications_writer || index == self.builtin.subscriptions_writer {
            self.note_answer(now, source.prefix);
            self.note_reached(source.prefix, &source.locator);
            self.greet_known(now, source.prefix, index == self.builtin.publications_writer);
        }
    }

    fn on_nack_frag(&mut self, now: Time, source: &Source<'_>, nack: &NackFrag) {
        let reader = Guid::new(source.prefix, nack.reader_id);
        let Some(index) = self.writer_of(nack.writer_id) else { return };
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        writer.on_nack_frag(now, reader, nack.writer_sn, nack.fragment_number_state, nack.count);
        self.wake_writer(now, index);
    }

    fn writer_of(&mut self, entity: EntityId) -> Option<WriterIndex> {
        let index = self.locals.get(&entity).and_then(|local| local.kind.writer());
        if index.is_none() {
            bump(&mut self.counters.unmatched_reader);
        }
        index
    }

    /// Calls `handle` with each local reader that a submessage of `writer` to `reader_id` concerns.
    fn for_each_reader(
        &mut self,
        writer: Guid,
        reader_id: EntityId,
        mut handle: impl FnMut(&mut Rx<'_>, &mut Reader),
    ) {
        let Participant { sources, readers, pool, samples, inbox, counters, events, woken, alive, .. } = self;
        let Some(indices) = sources.get_mut(&writer) else { return bump(&mut counters.unmatched_writer) };
        let mut rx = Rx { pool, samples, inbox, counters, events, woken, alive };
        for index in indices.iter() {
            let Some(reader) = readers.get_mut(index.0) else { continue };
            if reader_id == EntityId::UNKNOWN || reader_id == reader.guid.entity {
                handle(&mut rx, reader);
            }
        }
    }

    fn wake_readers(&mut self) {
        while let Some(index) = self.woken.pop() {
            self.wake_reader(index);
        }
    }
}

fn info_of(frag: &DataFrag<'_>) -> FragmentInfo {
    FragmentInfo {
        starting_num: frag.fragment_starting_num,
        fragment_size: frag.fragment_size,
        sample_size: frag.sample_size,
    }
}

/// The parts of a participant that a submessage's handling needs besides the reader.
struct Rx<'a> {
    pool: &'a mut Pool,
    samples: &'a mut Pool,
    inbox: &'a mut Inbox,
    counters: &'a mut Counters,
    events: &'a mut VecDeque<Event>,
    woken: &'a mut Vec<ReaderIndex>,
    alive: &'a mut Alive,
}

impl Rx<'_> {
    /// The same for a call that is rare: so only that has it in memory.
    #[inline(always)]
    fn again(&mut self) -> Rx<'_> {
        let Rx { pool, samples, inbox, counters, events, woken, alive } = self;
        Rx { pool, samples, inbox, counters, events, woken, alive }
    }

    /// Brings a change where this reader's go: into discovery's inbox if a built-in writer has written it, to the sink if
    /// a user's has.
    #[inline(always)]
    fn offer(
        &mut self,
        reader: ReaderIndex,
        writer: Guid,
        strength: i32,
        sink: &mut dyn Sink,
        offer: &mut Offer,
    ) {
        if writer.entity.is_builtin() {
            return self.inbox.take(offer);
        }
        sink.deliver(reader, strength, offer);
        if offer.is_some() {
            bump(&mut self.counters.refused_by_cache);
        }
    }

    /// A change has come for a reader.
    #[inline(always)]
    fn take_change(
        &mut self,
        reader: ReaderIndex,
        (writer, proxy): (Guid, &mut WriterProxy),
        offer: &mut Offer,
        sink: &mut dyn Sink,
    ) {
        let strength = proxy.strength;
        let (mut to, again) = (self.again(), &mut *sink);
        let lost = proxy.on_change(offer, move |offer| to.offer(reader, writer, strength, again, offer));
        pass_lane(reader, proxy, sink);
        self.note_lost(reader, lost);
    }

    /// A change is not for this reader.
    #[cold]
    fn pass_over(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        proxy: &mut WriterProxy,
        number: SequenceNumber,
        sink: &mut dyn Sink,
    ) {
        let (writer, strength) = (proxy.guid, proxy.strength);
        let lost = proxy.pass_over(now, number, &mut |offer| {
            self.offer(reader, writer, strength, sink, offer);
        });
        pass_lane(reader, proxy, sink);
        self.note_lost(reader, lost);
    }

    /// So many samples are lost as some in parts were given up: what follows in a lane does not count them once more.
    #[inline]
    fn note_given_up(
        &mut self,
        lost: u64,
        reader: ReaderIndex,
        proxy: &mut WriterProxy,
        sink: &mut dyn Sink,
    ) {
        if lost > 0 {
            pass_lane(reader, proxy, sink);
            self.note_lost(reader, lost);
        }
    }

    /// A change of a writer has come, or a `part` of it.
    #[inline(always)]
    fn hear_change(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        proxy: &mut WriterProxy,
        (number, part): (SequenceNumber, bool),
    ) {
        if proxy.is_news(number, part) {
            self.hear(now, reader, proxy);
        }
    }

    /// A writer has shown that it is alive.
    #[inline(always)]
    fn hear(&mut self, now: Time, reader: ReaderIndex, proxy: &mut WriterProxy) {
        proxy.heard = now;
        if !proxy.alive || proxy.liveliness.kind == LivelinessKind::ManualByParticipant {
            self.alive.note(now, reader, proxy);
        }
    }

    /// Tells what a change says of its way, or counts that it says nothing that can be. `is_whole`: there is no further
    /// datagram of it.
    #[cold]
    fn note_passage(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        proxy: &WriterProxy,
        (number, is_whole): (SequenceNumber, bool),
        list: Option<ParameterList<'_>>,
        sink: &mut dyn Sink,
    ) {
        let (Some(clock), Some(list)) = (proxy.clock, list) else { return };
        match read_stamps(now, clock, list, is_whole) {
            Ok(Some(passage)) => sink.note_passage(reader, proxy.guid, number, passage),
            Ok(None) => {}
            Err(_) => bump(&mut self.counters.bad_anatomy),
        }
    }

    /// Has a change arrived before? It is counted then, and otherwise as one that has arrived now.
    #[inline(always)]
    fn has_arrived(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        proxy: &mut WriterProxy,
        number: SequenceNumber,
        reader_id: EntityId,
    ) -> bool {
        if proxy.is_known(number) && !self.again().is_of_history(now, reader, proxy, number, reader_id) {
            bump(&mut self.counters.duplicates);
            return true;
        }
        self.counters.note_change(proxy.guid);
        false
    }

    /// Is a change that counts as known taken all the same, as it is of the history that is awaited?
    #[cold]
    fn is_of_history(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        proxy: &mut WriterProxy,
        number: SequenceNumber,
        reader_id: EntityId,
    ) -> bool {
        let is_awaited = proxy.history_until.is_some();
        let is_taken = proxy.is_of_history(now, number, reader_id);
        if is_awaited && proxy.history_until.is_none() {
            self.note(Event::HistoryReceived { reader, writer: proxy.guid });
        }
        is_taken
    }
}

/// RTPS 2.5 §8.3.8.6: a heartbeat that only repairs keeps no promise of the application.
fn shows_life(proxy: &WriterProxy, heartbeat: &Heartbeat) -> bool {
    heartbeat.liveliness_flag || proxy.liveliness.kind == LivelinessKind::Automatic
}

fn parse_inline(list: Option<ParameterList<'_>>) -> Result<InlineQos, WireError> {
    list.map_or(Ok(InlineQos::default()), InlineQos::parse)
}

/// Is a change that is for some readers not for this one?
#[cold]
fn is_for_others(inline: &InlineQos, list: Option<ParameterList<'_>>, reader: Guid) -> bool {
    list.is_some_and(|list| !inline.is_for(list, reader))
}

/// What a change does. Data with a status are data, and the end comes after them. `None` without data and without an end:
/// one that only ends a coherent set (RTPS 2.5 §8.7.5), or registers an instance by its key, as OpenDDS does.
fn kind_of(is_key: bool, inline: &InlineQos) -> Option<ChangeKind> {
    match ChangeKind::from_status_info(inline.status_info.0) {
        ChangeKind::Alive => (!is_key).then_some(ChangeKind::Alive),
        end if is_key => Some(end),
        end => Some(end.after_data()),
    }
}

/// The same of a fragment. Some writers, Cyclone DDS among them, say it with the first one only: of another one it stands
/// in for what the first will say.
fn kind_of_fragment(frag: &DataFrag<'_>, inline: &InlineQos) -> Option<ChangeKind> {
    let later = frag.fragment_starting_num > 1;
    kind_of(frag.key, inline).or(later.then_some(ChangeKind::NotAliveDisposed))
}

/// A part of a message with all that follows it there.
#[inline]
fn with_rest<'a>(message: &'a [u8], part: &'a [u8]) -> &'a [u8] {
    let at = (part.as_ptr() as usize).wrapping_sub(message.as_ptr() as usize);
    // An empty one may lie elsewhere.
    message.get(at..).filter(|rest| rest.len() >= part.len()).unwrap_or(part)
}

/// The same as [`keep`] for each reader of a change.
#[inline(never)]
fn keep_once(kept: &mut Option<Bytes>, pool: &mut Pool, frame: &Bytes, part: &[u8]) -> Bytes {
    kept.get_or_insert_with(|| keep(pool, frame, part)).clone()
}

/// A view of the frame, or a copy if the view would hold far more memory than it shows.
fn keep(pool: &mut Pool, frame: &Bytes, part: &[u8]) -> Bytes {
    if let Some(short) = Bytes::short(part) {
        return short;
    }
    if part.len().saturating_mul(KEEP_SHARE) >= frame.pinned()
        && let Some(view) = frame.slice_of(part)
    {
        return view;
    }
    let mut slot = pool.claim();
    slot.clear();
    slot.extend_from_slice(part);
    pool.share(slot)
}
