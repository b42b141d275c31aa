//! The core's whole surface: one participant, driven from outside. RTPS 2.5 §8.2.5, §8.4.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, Time, VendorId,
};
use taut_mem::Pool;
use taut_port::Port;
use taut_qos::{EndpointQos, History};
use taut_wire::Header;

use crate::anatomy::{Anatomy, Passage};
use crate::counters::{Counters, bump};
use crate::discovery::inbox::Inbox;
use crate::discovery::{Announcements, Database, Found, Local, LocalKind, Outbound, Spdp, Topics, Unmatched};
use crate::event::Event;
use crate::flow::{Flow, MaxRate};
use crate::limits;
use crate::liveliness::{Alive, Liveliness};
use crate::message::{Message, Tx};
use crate::reader::{Offer, Reader};
use crate::recent::RecentMap;
use crate::schedule::{Schedule, TxClass, Work};
use crate::table::Table;
use crate::timers::{Timer, Timers};
use crate::together::Together;
use crate::writer::{Full, MulticastChoice, NewChange, Writer};
use crate::{ReaderIndex, WriterIndex};

/// An address of this host, so that the nearest address of a peer can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its address.
    pub address: IpAddr,
    /// The length of its network's prefix.
    pub prefix_len: u8,
    /// The number of the link that it is on: addresses of one interface have the same.
    pub link: u32,
    /// Is multicast used there?
    pub multicast: bool,
}

/// Where a participant is reached, and where its host is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Addresses {
    /// Where discovery reaches it.
    pub metatraffic_unicast: Vec<Locator>,
    /// Where discovery reaches all.
    pub metatraffic_multicast: Vec<Locator>,
    /// Where samples reach it.
    pub default_unicast: Vec<Locator>,
    /// Where samples reach all.
    pub default_multicast: Vec<Locator>,
    /// Where samples reach its critical endpoints; empty: where they reach the others.
    pub critical_unicast: Vec<Locator>,
    /// From which TRANSPORT_PRIORITY on an endpoint is critical.
    pub critical_from: i32,
    /// The host's addresses.
    pub interfaces: Vec<Interface>,
}

impl Addresses {
    /// Where an endpoint of this TRANSPORT_PRIORITY is reached.
    pub(crate) fn unicast_of(&self, transport_priority: i32) -> &[Locator] {
        let is_critical = transport_priority >= self.critical_from && !self.critical_unicast.is_empty();
        if is_critical { &self.critical_unicast } else { &self.default_unicast }
    }
}

/// What a participant is told when it is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its name; must be unique, so it comes from a random source outside.
    pub guid_prefix: GuidPrefix,
    /// The domain.
    pub domain_id: u32,
    /// A name for people, announced.
    pub entity_name: String,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// Pairs for people and tools, announced.
    pub properties: Vec<(String, String)>,
    /// How long peers remember it without an announcement.
    pub lease_duration: Duration,
    /// The time between announcements; at most a third of the lease.
    pub announcement_period: Duration,
    /// Its addresses, until [`Participant::set_addresses`] gives it others.
    pub addresses: Addresses,
    /// Hosts to announce to besides multicast.
    pub initial_peers: Vec<Locator>,
    /// When writers use multicast.
    pub multicast: MulticastChoice,
    /// Writers say when each change was written, and readers remember; `None`: nobody wants to know.
    pub anatomy: Option<Anatomy>,
    /// Nobody on the way cuts datagrams that are too long for it, as IP does: what discovery says goes in fragments of
    /// [`limits::FRAGMENT_SIZE_MIN`] bytes. Some implementations take that only whole.
    pub cuts_discovery: bool,
}

impl Config {
    /// One of domain 0 that is reached at one address, by unicast alone, with a lease of 10 s, and says nothing else of
    /// itself. For tests.
    pub fn at(guid_prefix: GuidPrefix, address: Locator) -> Config {
        Config {
            guid_prefix,
            domain_id: 0,
            entity_name: String::new(),
            user_data: Vec::new(),
            properties: Vec::new(),
            lease_duration: Duration::from_secs(10),
            announcement_period: Duration::from_secs(3),
            addresses: Addresses {
                metatraffic_unicast: vec![address],
                default_unicast: vec![address],
                ..Addresses::default()
            },
            initial_peers: Vec::new(),
            multicast: MulticastChoice::Never,
            anatomy: None,
            cuts_discovery: false,
        }
    }
}

/// What an endpoint is told when it is made.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The topic.
    pub topic_name: String,
    /// The type's name.
    pub type_name: String,
    /// Has the type a key?
    pub keyed: bool,
    /// All policies that travel.
    pub qos: EndpointQos,
    /// HISTORY. Of a reader it only says whether what it has had may come again; its cache is above.
    pub history: History,
    /// RESOURCE_LIMITS max_samples, of writers.
    pub max_samples: Option<u32>,
}

/// Where a reader's changes go.
pub trait Sink {
    /// Takes a change for a reader, in the order of its writer. `strength` is the writer's
    /// OWNERSHIP_STRENGTH. What is left in the offer has found no room: offer it again after
    /// [`Participant::on_room`]; for a best-effort writer it is lost.
    fn deliver(&mut self, reader: ReaderIndex, strength: i32, offer: &mut Offer);

    /// Tells when a change was written that is about to be delivered. Of a change in several datagrams that is known
    /// before it is whole.
    fn note_passage(&mut self, _: ReaderIndex, _: Guid, _: SequenceNumber, _: Passage) {}

    /// Gives a reader what its lane from a writer holds, as far as it follows on what came through the
    /// protocol, which has all below `expected`. Returns below which number all has come now.
    fn lane_next(&mut self, _: ReaderIndex, _: Guid, expected: SequenceNumber) -> SequenceNumber {
        expected
    }

    /// How many changes of these numbers lie in a reader's lane from a writer, and wait there.
    fn held_by_lane(&mut self, _: ReaderIndex, _: Guid, _: Range<SequenceNumber>) -> u64 {
        0
    }
}

/// What a transmission step has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Calls of the port, one for each destination of a datagram or a row of them.
    pub calls: usize,
    /// There is more of the classes that were asked for.
    pub more: bool,
}

/// One participant.
pub struct Participant {
    pub(crate) config: Config,
    pub(crate) writers: Table<Writer>,
    pub(crate) readers: Table<Reader>,
    /// Local readers by the remote writer that they are matched with.
    pub(crate) sources: RecentMap<Guid, Vec<ReaderIndex>>,
    pub(crate) locals: BTreeMap<EntityId, Local>,
    /// The user's endpoints by topic.
    pub(crate) topics: Topics,
    pub(crate) database: Database,
    pub(crate) spdp: Spdp,
    /// What other participants say of themselves, and has not come as a whole.
    pub(crate) announcements: Announcements,
    pub(crate) liveliness: Liveliness,
    pub(crate) builtin: crate::discovery::Builtin,
    /// Changes of built-in writers, for discovery.
    pub(crate) inbox: Inbox,
    /// What is yet to be done for the last of those.
    pub(crate) found: Found,
    /// What comparing PARTITION, and hearing who is alive, has cost in this step.
    pub(crate) compared: usize,
    pub(crate) unmatched: VecDeque<Unmatched>,
    /// Writers that have more for readers of this participant.
    pub(crate) undelivered: VecDeque<WriterIndex>,
    /// A known peer that has announced itself again; `None` between calls.
    pub(crate) announced: Option<GuidPrefix>,
    /// So many participants the message at hand may yet say to have started again.
    pub(crate) lives_left: u32,
    /// Readers that may have something to acknowledge; empty between calls.
    pub(crate) woken: Vec<ReaderIndex>,
    /// What a message has said of who is alive; empty between calls.
    pub(crate) alive: Alive,
    /// Buffers for small payloads that outlive their frame.
    pub(crate) pool: Pool,
    /// Buffers for samples that come in fragments.
    pub(crate) samples: Pool,
    pub(crate) timers: Timers,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) schedule: Schedule,
    /// A write may wait for room.
    pub(crate) has_refused: bool,
    pub(crate) flow: Option<Box<Flow>>,
    message: Message,
    pub(crate) next_entity_key: u32,
}

impl Participant {
    /// A participant that announces itself from the first [`Participant::on_timeout`] on.
    pub fn new(config: Config) -> Participant {
        let config = config.announcing_anatomy();
        let header = Header {
            version: ProtocolVersion::RTPS_2_5,
            vendor: VendorId::UNKNOWN,
            prefix: config.guid_prefix,
        };
        let mut participant = Participant {
            spdp: Spdp::new(&config),
            announcements: Announcements::default(),
            config,
            writers: Table::default(),
            readers: Table::default(),
            sources: RecentMap::default(),
            locals: BTreeMap::new(),
            topics: Topics::default(),
            database: Database::default(),
            liveliness: Liveliness::default(),
            builtin: crate::discovery::Builtin::default(),
            inbox: Inbox::default(),
            found: Found::default(),
            compared: 0,
            unmatched: VecDeque::new(),
            undelivered: VecDeque::new(),
            announced: None,
            lives_left: 0,
            woken: Vec::new(),
            alive: Alive::default(),
            pool: Pool::new(limits::KEPT, 4_096),
            samples: Pool::new(0, limits::SAMPLE_BUFFERS).forgetting_above(limits::SAMPLE_BUFFER_SIZE),
            timers: Timers::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
            schedule: Schedule::default(),
            has_refused: false,
            flow: None,
            message: Message::new(header),
            next_entity_key: 1,
        };
        participant.create_builtin_endpoints();
        participant.timers.set(Time::AT_ONCE, Timer::Announce);
        participant
    }

    /// The participant's GUID.
    pub fn guid(&self) -> Guid {
        Guid::new(self.config.guid_prefix, EntityId::PARTICIPANT)
    }

    /// What it was told when it was made, with the addresses of now.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it has received and refused.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The next event. Poll until `None` after every call that takes a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Is there something to tell?
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When [`Participant::on_timeout`] is to be called; ask again after any call. May be early.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Handles timers that are due, at most so many. A call without one does nothing. Returns how many.
    pub fn on_timeout(&mut self, now: Time, budget: usize) -> usize {
        for handled in 0..budget {
            let Some((at, timer)) = self.timers.pop_due(now) else { return handled };
            match timer {
                Timer::Repeat(index) => self.on_repeat_timer(now, at, index),
                Timer::Heartbeat(index) => self.on_heartbeat_timer(now, at, index),
                Timer::Announce => self.on_announce_timer(now, at),
                Timer::Others => self.tell_others(now),
                Timer::Lease(prefix) => self.on_lease_timer(now, at, prefix),
                Timer::Forget(prefix) => self.forget_more(now, prefix),
                Timer::Look(prefix) => self.look_more(now, prefix),
                Timer::Peer(prefix) => self.on_peer_timer(now, prefix),
                Timer::Inbox => {
                    self.handle_inbox(now, limits::INBOX_STEP);
                    // It is a step of its own: what is left is due at once, and others come first.
                    return budget;
                }
                Timer::Ask(prefix) => self.ask_again(now, prefix),
                Timer::AssertLiveliness => self.on_assert_timer(now, at),
                Timer::AssertManual => self.say_manual(now),
                Timer::AssertByTopic(index) => self.tell_lane_readers(now, index),
                Timer::ReaderLiveliness(index) => self.on_reader_liveliness_timer(now, index),
                Timer::WriterLiveliness(index) => self.on_writer_liveliness_timer(now, index),
                Timer::Lifespan(index) => self.on_lifespan_timer(now, at, index),
                Timer::Flow => self.on_flow_timer(now),
                // With it ends the step, behind which `match_more` is called.
                Timer::Beside => return budget,
            }
        }
        budget
    }

    fn on_repeat_timer(&mut self, now: Time, at: Time, index: ReaderIndex) {
        let Some(reader) = self.readers.get_mut(index.0).filter(|reader| reader.repeat_at == at) else {
            return;
        };
        let released = reader.on_repeat_timer(now);
        self.timers.set(reader.repeat_at, Timer::Repeat(index));
        if released {
            self.push_event(Event::GreetingOverdue { reader: index });
        }
        self.wake_reader(index);
    }

    fn on_heartbeat_timer(&mut self, now: Time, at: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0).filter(|writer| writer.heartbeat_at == at) else {
            return;
        };
        writer.on_heartbeat_timer(now);
        let next = writer.heartbeat_at;
        self.timers.set(next, Timer::Heartbeat(index));
        self.wake_writer(now, index);
    }

    fn on_lifespan_timer(&mut self, now: Time, at: Time, index: WriterIndex) {
        let writer = self.writers.get_mut(index.0).filter(|writer| writer.expires_at == at);
        if writer.is_some_and(|writer| writer.on_expiry_timer(now)) {
            self.push_event(Event::Acknowledged { writer: index });
        }
        self.wake_writer(now, index);
    }

    /// Before any writer is made: no more goes to each destination than this, of what writers send of changes.
    pub fn set_max_rate(&mut self, max: MaxRate) {
        self.flow = Some(Box::new(Flow::new(max)));
    }

    /// Queues what may be sent now as far as pacing goes.
    fn on_flow_timer(&mut self, now: Time) {
        let Participant { flow: Some(flow), schedule, timers, .. } = self else { return };
        flow.wake(now, |work, priority| {
            let class = match work {
                Work::Push(_) if priority > 0 => TxClass::Critical,
                Work::Push(_) => TxClass::Data,
                _ => TxClass::Repair,
            };
            schedule.push(class, priority, work);
        });
        timers.set(flow.next(), Timer::Flow);
    }

    /// Is there something to send of class `lowest` or above?
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.schedule.has_work(self.lowest(lowest))
    }

    /// How many writers have fresh changes of class Data to send, or repairs that have had their turn.
    pub fn data_count(&self) -> usize {
        self.schedule.count(TxClass::Data)
    }

    /// Is there work of class Data or below besides what is the first `count` writers' with fresh changes?
    pub fn has_work_beside(&self, count: usize) -> bool {
        let below = [TxClass::Liveliness, TxClass::Discovery];
        let lowest = self.lowest(TxClass::Discovery);
        self.data_count() > count || below.iter().any(|class| *class <= lowest && self.schedule.has(*class))
    }

    /// The lowest class that is sent now: discovery says nothing while a new endpoint is being matched.
    fn lowest(&self, lowest: TxClass) -> TxClass {
        if self.unmatched.is_empty() { lowest } else { lowest.min(TxClass::Liveliness) }
    }

    /// What waits to be sent of fresh changes is all of a burst: after a pause its last heartbeat asks for acknowledgements,
    /// and is not followed by one of the timer's.
    pub fn end_burst(&mut self, now: Time) {
        for index in self.schedule.pushing(TxClass::Data) {
            if let Some(writer) = self.writers.get_mut(index.0) {
                writer.ask_behind_burst(now);
            }
        }
    }

    /// Sends what is of class `lowest` or above, the highest first, by at most about `budget` calls of the port, one
    /// for each destination of a datagram or a row.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        port: &mut dyn Port,
        lowest: TxClass,
        budget: usize,
    ) -> Progress {
        let lowest = self.lowest(lowest);
        let Participant { message, schedule, writers, readers, timers, flow, .. } = self;
        let mut tx = Tx::new(now, port, message, budget);
        tx.flow = flow.as_deref_mut();
        let paced = tx.flow.is_some();
        let mut marked = 0;
        while tx.budget > 0 {
            let Some(class) = schedule.highest(lowest) else { break };
            let Some((priority, mut work)) = schedule.pop(class) else { break };
            if priority != marked {
                // So that no datagram holds samples of two priorities.
                tx.send_left();
                tx.port.set_priority(priority);
                marked = priority;
            }
            tx.begin_piece(work, schedule);
            let done = match work {
                Work::Discovery => {
                    let (spdp, database, inbox) = (&mut self.spdp, &mut self.database, &mut self.inbox);
                    let builtin = &mut self.builtin;
                    let mut outbound = Outbound { spdp, builtin, database, inbox, writers, readers, timers };
                    builtin.queued = !outbound.send(&mut tx);
                    !builtin.queued
                }
                Work::Acks(index) => acknowledge(&mut tx, readers, timers, index),
                Work::Repair(index) => repair(&mut tx, writers, index),
                // Who is alone in its class, as most are, need not look for others.
                Work::Push(index) if class > TxClass::Data || !paced && !schedule.has(class) => {
                    push_alone(&mut tx, writers, timers, index)
                }
                Work::Push(index) => {
                    let mut together = Together { schedule, writers, timers };
                    let (last, done) = together.push(&mut tx, class, priority, index);
                    work = Work::Push(last);
                    done
                }
                Work::Liveliness(index) => tell_alive(&mut tx, writers, index),
            };
            if paced && tx.end_turn(work) {
                continue;
            }
            if !done {
                // What has had its turn is behind what waits for one.
                let has_had_its_turn = class == TxClass::Repair && matches!(work, Work::Repair(_));
                schedule.push(if has_had_its_turn { TxClass::Data } else { class }, priority, work);
            }
        }
        tx.send_left();
        if marked != 0 {
            tx.port.set_priority(0);
        }
        let calls = tx.calls;
        if paced {
            tx.arm(timers);
            self.tell_of_room(now);
        }
        if calls > 0 {
            port.flush();
        }
        Progress { calls, more: self.schedule.has_work(lowest) }
    }

    /// Creates a writer, announces it, and matches it with the first of the readers that are known; [`Participant::match_more`]
    /// matches it with the rest, and has to be called until it has.
    pub fn create_writer(&mut self, now: Time, endpoint: EndpointConfig, sink: &mut dyn Sink) -> WriterIndex {
        let entity = self.take_entity(true, endpoint.keyed);
        let guid = Guid::new(self.config.guid_prefix, entity);
        let multicast = self.config.multicast;
        let tells = self.config.anatomy.is_some();
        let index = WriterIndex(self.writers.insert_with(|index| {
            let index = WriterIndex(index);
            let EndpointConfig { qos, history, max_samples, .. } = &endpoint;
            let mut writer = Writer::new(guid, index, qos, *history, *max_samples, multicast);
            writer.asserted_at = now;
            writer.limit_samples();
            if tells {
                writer.tell_anatomy();
            }
            writer
        }));
        self.add_local(now, guid, LocalKind::Writer(index), endpoint, sink);
        self.arm_liveliness(now);
        index
    }

    /// A KEEP_ALL writer that was just created, and has written nothing, holds at most so many samples of an instance.
    pub fn limit_instances(&mut self, index: WriterIndex, max_samples_per_instance: usize) {
        if let Some(writer) = self.writers.get_mut(index.0) {
            writer.limit_instances(max_samples_per_instance);
        }
    }

    /// Creates a reader, announces it, and matches it with the first of the writers that are known; [`Participant::match_more`]
    /// matches it with the rest, and has to be called until it has.
    pub fn create_reader(&mut self, now: Time, endpoint: EndpointConfig, sink: &mut dyn Sink) -> ReaderIndex {
        let entity = self.take_entity(false, endpoint.keyed);
        let guid = Guid::new(self.config.guid_prefix, entity);
        let index = ReaderIndex(
            self.readers
                .insert_with(|index| Reader::new(guid, ReaderIndex(index), &endpoint.qos, endpoint.history)),
        );
        self.add_local(now, guid, LocalKind::Reader(index), endpoint, sink);
        index
    }

    /// The place that the next reader gets.
    pub fn next_reader_index(&self) -> ReaderIndex {
        ReaderIndex(self.readers.next_index())
    }

    /// A name that no endpoint has. Keys have 24 bits: after so many endpoints they come around, and some may still be there.
    /// It ends, as there are far fewer endpoints at a time than keys: no more names are looked at than endpoints, and one.
    fn take_entity(&mut self, is_writer: bool, keyed: bool) -> EntityId {
        loop {
            let entity = EntityId::user(self.next_entity_key, is_writer, keyed);
            self.next_entity_key = self.next_entity_key.wrapping_add(1);
            if !self.locals.contains_key(&entity) {
                return entity;
            }
        }
    }

    /// Writes a change, whose payload it takes. *Errors*: [`Full`] if KEEP_ALL has to wait for readers first, or KEEP_LAST
    /// can give up nothing for it; the change is as it was then, and [`Event::Acknowledged`] tells when to try again.
    pub fn write(
        &mut self,
        now: Time,
        index: WriterIndex,
        change: &mut NewChange,
        sink: &mut dyn Sink,
    ) -> Result<SequenceNumber, Full> {
        let writer = self.writers.get_mut(index.0).ok_or(Full)?;
        let outcome = writer.write(now, change);
        if outcome.is_err() {
            self.note_refused(now, index, change);
        } else {
            writer.asserted_at = now;
            let (has_local, is_news) =
                (!writer.local.is_empty(), writer.manual.is_lost || writer.by_participant);
            if is_news {
                self.note_manual_liveliness(now, index);
            }
            if change.in_lane {
                self.tell_lane_readers(now, index);
            }
            if has_local {
                self.deliver_local(now, index, sink, &mut { limits::LOCAL_CHANGES });
            }
        }
        if let Some(writer) = self.writers.get_mut(index.0) {
            // Not before readers of this participant have it: what follows in a lane would overtake it.
            writer.say_seen();
            if wake(writer, &mut self.schedule, &mut self.timers, now) {
                self.queue_discovery();
            }
        }
        outcome
    }

    /// A reader takes from a local writer's lane, from this change on, what goes through it; `None`: no
    /// longer. Returns, for a reader of this participant, the number after all that it was given.
    pub fn set_reader_lane(
        &mut self,
        now: Time,
        index: WriterIndex,
        reader: Guid,
        from: Option<SequenceNumber>,
    ) -> Option<SequenceNumber> {
        let local = self.local_reader(reader);
        let writer = self.writers.get_mut(index.0)?;
        let next = match local {
            Some(reader) => writer.set_local_lane(reader, from),
            None => {
                writer.set_lane(reader, from);
                None
            }
        };
        self.wake_writer(now, index);
        // What it takes from there it has, as if it had said so.
        self.push_event(Event::Acknowledged { writer: index });
        next
    }

    /// Are a local reader and a writer matched, and has history come that a lane would overtake?
    pub fn may_read_lane(&self, reader: EntityId, writer: Guid) -> bool {
        let index = self.locals.get(&reader).and_then(|local| local.kind.reader());
        let proxy = index.and_then(|index| self.readers.get(index.0)?.proxies.get(&writer));
        let awaits_history = proxy.is_some_and(|proxy| proxy.history_until.is_some())
            || index.is_some_and(|index| self.is_behind(index, writer));
        !awaits_history && self.database.matches(reader).any(|known| known == writer)
    }

    /// Have all matched reliable readers acknowledged all changes of a writer?
    pub fn is_acknowledged(&self, index: WriterIndex) -> bool {
        self.writers.get(index.0).is_none_or(Writer::is_acknowledged)
    }

    /// Asks the readers of a writer to acknowledge now, for somebody who waits.
    pub fn ask_for_acknowledgements(&mut self, now: Time, index: WriterIndex) {
        if let Some(writer) = self.writers.get_mut(index.0) {
            writer.ask_for_acknowledgements();
        }
        self.wake_writer(now, index);
    }

    /// A local writer.
    pub fn writer(&self, index: WriterIndex) -> Option<&Writer> {
        self.writers.get(index.0)
    }

    /// A local reader.
    pub fn reader(&self, index: ReaderIndex) -> Option<&Reader> {
        self.readers.get(index.0)
    }

    /// Queues what a writer has to send.
    pub(crate) fn wake_writer(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        if wake(writer, &mut self.schedule, &mut self.timers, now) {
            self.queue_discovery();
        }
    }

    /// Queues what a reader has to acknowledge.
    pub(crate) fn wake_reader(&mut self, index: ReaderIndex) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        if !reader.has_acks() || reader.acks_queued {
            return;
        }
        if reader.guid.entity.is_builtin() {
            return self.queue_discovery();
        }
        reader.acks_queued = true;
        self.schedule.push(TxClass::Repair, 0, Work::Acks(index));
    }

    /// Queues what discovery has to send.
    pub(crate) fn queue_discovery(&mut self) {
        if !self.builtin.queued {
            self.builtin.queued = true;
            self.schedule.push(TxClass::Discovery, 0, Work::Discovery);
        }
    }

    pub(crate) fn push_event(&mut self, event: Event) {
        if self.events.len() < limits::EVENTS {
            self.events.push_back(event);
        } else {
            bump(&mut self.counters.too_many_events);
        }
    }
}

/// Queues what a writer has to send. Returns whether it is discovery that sends it.
#[inline(always)]
fn wake(writer: &mut Writer, schedule: &mut Schedule, timers: &mut Timers, now: Time) -> bool {
    let builtin = writer.guid.entity.is_builtin();
    let has_owed = writer.has_owed();
    if has_owed && !builtin && !writer.queued.repair {
        writer.queued.repair = true;
        schedule.push(TxClass::Repair, writer.priority, Work::Repair(writer.index));
    }
    if writer.has_fresh() && !writer.queued.push {
        writer.queued.push = true;
        let class = match builtin {
            true => class_of_builtin(writer),
            false if writer.priority > 0 => TxClass::Critical,
            false => TxClass::Data,
        };
        schedule.push(class, writer.priority, Work::Push(writer.index));
    }
    arm_timers(timers, now, writer);
    has_owed && builtin
}

#[cold]
fn class_of_builtin(writer: &Writer) -> TxClass {
    if writer.guid.entity == EntityId::PARTICIPANT_MESSAGE_WRITER {
        TxClass::Liveliness
    } else {
        TxClass::Discovery
    }
}

/// Sends what a reader owes its writers. Returns whether all is out.
#[inline(never)]
fn acknowledge(
    tx: &mut Tx<'_>,
    readers: &mut Table<Reader>,
    timers: &mut Timers,
    index: ReaderIndex,
) -> bool {
    readers.get_mut(index.0).is_none_or(|reader| {
        let repeat_at = reader.repeat_at;
        reader.acks_queued = !reader.send_acks(tx);
        if reader.repeat_at != repeat_at {
            timers.set(reader.repeat_at, Timer::Repeat(index));
        }
        !reader.acks_queued
    })
}

/// Sends what a writer owes single readers. Returns whether all is out.
#[inline(never)]
fn repair(tx: &mut Tx<'_>, writers: &mut Table<Writer>, index: WriterIndex) -> bool {
    writers.get_mut(index.0).is_none_or(|writer| {
        writer.queued.repair = !writer.repair(tx);
        !writer.queued.repair
    })
}

/// Says that a writer is alive. Returns whether all are told.
#[cold]
fn tell_alive(tx: &mut Tx<'_>, writers: &mut Table<Writer>, index: WriterIndex) -> bool {
    writers.get_mut(index.0).is_none_or(|writer| {
        writer.manual.is_queued = !writer.send_liveliness(tx);
        !writer.manual.is_queued
    })
}

/// Sends a writer's fresh changes. Returns whether all are out.
#[inline(never)]
fn push_alone(tx: &mut Tx<'_>, writers: &mut Table<Writer>, timers: &mut Timers, index: WriterIndex) -> bool {
    writers.get_mut(index.0).is_none_or(|writer| {
        writer.queued.push = !writer.push(tx);
        arm_timers(timers, tx.now, writer);
        !writer.queued.push
    })
}

/// Sees to it that a heartbeat follows what is not acknowledged, and that what is too old goes.
#[inline(always)]
pub(crate) fn arm_timers(timers: &mut Timers, now: Time, writer: &mut Writer) {
    if writer.may_want_heartbeat(now) {
        arm_heartbeat(timers, now, writer);
    }
    if let Some(at) = writer.want_expiry() {
        timers.set(at, Timer::Lifespan(writer.index));
    }
}

#[inline(never)]
fn arm_heartbeat(timers: &mut Timers, now: Time, writer: &mut Writer) {
    if let Some(at) = writer.want_heartbeat(now) {
        timers.set_heartbeat(at, writer.index);
    }
}
