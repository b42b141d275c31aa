//! Two participants that take each other for those of two processes, driven in turns by one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, geteuid, setuid};
use taut_base::{EntityId, Guid, Time};
use taut_dcps::{Endpoint, Match, Selection, TypeSupport};
use taut_mem::lane::{FEEDBACK_LEN, Feedback};
use taut_mem::{Pool, Region};
use taut_port_shm::{Connection, Listener, Memory, Message, SendError, Waker, host_id};
use taut_qos::{
    DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, ReliabilityKind, ResourceLimits,
    SubscriberQos, TopicQos,
};
use taut_rtps::{ReaderIndex, WriterIndex};

use crate::clock::monotonic_now;
use crate::core::Core;
use crate::executor::Inner;
use crate::executor_tests::{DOMAIN, call, own_domain, take};
use crate::lanes::local;
use crate::lanes::neighbours::FIRST_SOURCE;
use crate::lanes::pairs::Stage;
use crate::lanes::path::Who;
use crate::process::Process;
use crate::{Driver, Executor, ExecutorConfig, Outlet, Patience, Payload, SamplePath};

/// No wait is longer.
pub const LIMIT: Duration = Duration::from_secs(20);

pub fn participant(domain_id: u32) -> Executor {
    start(domain_id, true)
}

fn start(domain_id: u32, local: bool) -> Executor {
    let executor = start_here(domain_id, local);
    // Who does not find it here takes it for one of another process.
    Process::this().unregister(executor.inner.prefix);
    executor
}

pub fn start_here(domain_id: u32, local: bool) -> Executor {
    let udp = taut_port_udp::UdpConfig { domain_id, interfaces: vec!["lo".into()], ..Default::default() };
    let config = ExecutorConfig { udp, local, driver: Driver::Inline, ..ExecutorConfig::default() };
    Executor::start(&config).unwrap()
}

fn endpoint<Qos, Group: Default>(qos: Qos) -> Endpoint<Qos, Group> {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let (topic_qos, group) = (TopicQos::default(), Group::default());
    Endpoint { topic_name: "Neighbours".into(), topic_qos, type_support, qos, group }
}

/// A writer and a reader, both reliable and KEEP_ALL, and where they are.
pub struct Pair {
    pub near: Executor,
    pub far: Executor,
    writes: DataWriterQos,
    pub writer: WriterIndex,
    pub reader: ReaderIndex,
    outlet: Outlet,
}

impl Pair {
    /// In a domain of their own.
    pub fn new() -> Pair {
        let domain_id = own_domain();
        Pair::between(participant(domain_id), participant(domain_id), ResourceLimits::default())
    }

    pub fn between(near: Executor, far: Executor, resource_limits: ResourceLimits) -> Pair {
        let reliable = |mut reliability: Reliability| {
            reliability.kind = ReliabilityKind::Reliable;
            reliability
        };
        let (writes, reads) = (DataWriterQos::default(), DataReaderQos::default());
        let history = History::KeepAll;
        let writes =
            DataWriterQos { reliability: reliable(writes.reliability), history, resource_limits, ..writes };
        let reads = DataReaderQos { reliability: reliable(reads.reliability), history, ..reads };
        let writer = near.inner.with(|participant, now| {
            participant.create_writer(now, endpoint::<_, PublisherQos>(writes.clone()))
        });
        let reader = far
            .inner
            .with(|participant, now| participant.create_reader(now, endpoint::<_, SubscriberQos>(reads)));
        let outlet = near.outlet(writer, &writes).unwrap();
        Pair { near, far, writes, writer, reader, outlet }
    }

    /// One more writer of the kind is the one that is looked at from now on.
    pub fn add_writer(&mut self) {
        let qos = &self.writes;
        self.writer = self.near.inner.with(|participant, now| {
            participant.create_writer(now, endpoint::<_, PublisherQos>(qos.clone()))
        });
        self.outlet = self.near.outlet(self.writer, qos).unwrap();
    }

    /// Writes and takes until the lane is enough. Returns what was taken.
    pub fn drive_into_lane(&mut self, written: &mut u32) -> Vec<u32> {
        let mut taken = Vec::new();
        self.drive("the lane is enough", |pair| {
            pair.write(*written).unwrap();
            *written += 1;
            taken.extend(take(&pair.far, pair.reader));
            pair.outlet.has_readers() && pair.outlet.is_direct()
        });
        taken
    }

    pub fn guids(&self) -> (Guid, Guid) {
        let writer = self.near.inner.peek(|core| core.participant.core().writer(self.writer).unwrap().guid);
        let reader = self.far.inner.peek(|core| core.participant.core().reader(self.reader).unwrap().guid);
        (writer, reader)
    }

    /// Drives both in turns until something is so, which is looked at after each turn.
    pub fn drive(&mut self, what: &str, mut is_so: impl FnMut(&mut Pair) -> bool) {
        let end = Instant::now() + LIMIT;
        loop {
            for near in [true, false] {
                let executor = if near { &self.near } else { &self.far };
                executor.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
                if is_so(self) {
                    return;
                }
            }
            assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        }
    }

    fn write(&mut self, n: u32) -> taut_base::Result<()> {
        let bytes = n.to_le_bytes();
        let payload = &mut Payload::short(&bytes);
        self.near.publish(&mut self.outlet, &mut call(Patience::KeepAll(None)), payload)
    }
}

#[test]
fn a_reader_that_cannot_be_told_to_begin_is_told_when_there_is_room() {
    /// More than the lane holds.
    const SAMPLES: u32 = 700;
    let mut pair = Pair::new();
    let (writer, reader) = pair.guids();
    pair.drive("the offer is accepted", |pair| {
        let neighbour = pair.far.inner.neighbours.find(pair.near.inner.prefix);
        let is_accepted = |stage: &Stage| matches!(stage, Stage::Accepted(..));
        neighbour.is_some_and(|one| one.pairs.is((writer, reader), is_accepted))
    });
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    while neighbour.send(&Message::Ring, None).is_ok() {}
    pair.near.run_once(Some(Time(0))).unwrap();
    let (mut taken, mut next) = (Vec::new(), 0);
    pair.drive("all samples have come", |pair| {
        while next < SAMPLES && pair.write(next).is_ok() {
            next += 1;
        }
        taken.extend(take(&pair.far, pair.reader));
        taken.len() >= SAMPLES as usize
    });
    assert_eq!(taken, Vec::from_iter(0..SAMPLES));
    pair.drive_into_lane(&mut next);
}

/// As where many writers match at once: their offers are more than a socket has room for.
#[test]
fn an_offer_that_finds_no_room_in_the_socket_is_made_when_there_is_some() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    while neighbour.send(&Message::Ring, None).is_ok() {}
    pair.add_writer();
    pair.near.run_once(Some(Time(0))).unwrap();
    pair.drive_into_lane(&mut 0);
}

/// Takes as many descriptors on their way as the kernel lets this user have there, until both are dropped.
fn crowd() -> (Connection, Connection) {
    let prefix = taut_base::GuidPrefix([0x5f; 12]);
    let mut listener = Listener::bind(prefix, None).unwrap();
    let near = Connection::connect(prefix, None).unwrap();
    let far = listener.accept().unwrap().unwrap();
    far.welcome();
    let (bell, waker) = (Memory::create("bell", FEEDBACK_LEN).unwrap(), Waker::new().unwrap());
    let hello = Message::Hello { host_id: host_id().unwrap(), prefix, hears_end: true };
    let end = loop {
        if let Err(end) = near.send(&hello, &[bell.fd(), waker.fd()]) {
            break end;
        }
    };
    assert_ne!(end, SendError::Full, "the limit of the user comes first");
    (near, far)
}

/// Is this the process of a test that is alone in it, as it changes a limit of all threads? If not it runs there, to its end.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(DOMAIN).is_some() {
        return true;
    }
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", &format!("lanes::neighbours_tests::{test}"), "--nocapture"]);
    process.env(DOMAIN, own_domain().to_string());
    assert!(process.status().unwrap().success());
    false
}

/// So many descriptors are there at most from now on; those above stay.
fn limit_descriptors(soft: u64) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
}

/// As where many processes start at once, which do not listen yet.
#[test]
fn what_goes_with_one_descriptor_too_many_is_said_later() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    if !is_alone("what_goes_with_one_descriptor_too_many_is_said_later") {
        return;
    }
    // The kernel counts those of a user: no other process of this one may take any that are on their way.
    if geteuid().is_root() {
        setuid(Uid::from_raw(12_347)).unwrap();
    }
    limit_descriptors(256);
    let mut own = capabilities(None).unwrap();
    own.effective.remove(CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN);
    set_capabilities(None, own).unwrap();
    let crowded = crowd();
    let mut pair = Pair::new();
    let is_greeted =
        |one: &Executor, other: &Executor| one.inner.neighbours.find(other.inner.prefix).is_some();
    pair.drive("one cannot greet", |pair| {
        assert!(!is_greeted(&pair.near, &pair.far) && !is_greeted(&pair.far, &pair.near));
        pair.near.inner.neighbours.returns.has(pair.far.inner.prefix)
            || pair.far.inner.neighbours.returns.has(pair.near.inner.prefix)
    });
    drop(crowded);
    pair.drive_into_lane(&mut 0);
    let crowded = crowd();
    pair.add_writer();
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    pair.drive("the offer waits", |_| !neighbour.unsent.lock().is_empty());
    drop(crowded);
    pair.drive_into_lane(&mut 0);
}

/// What is joined stays so, and what was to be is offered again.
#[test]
fn what_comes_without_its_descriptor_ends_nothing() {
    if !is_alone("what_comes_without_its_descriptor_ends_nothing") {
        return;
    }
    let (all, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (first, reader) = pair.guids();
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    for is_accepted in [false, true] {
        pair.add_writer();
        let (second, _) = pair.guids();
        let of_far = pair.far.inner.neighbours.find(pair.near.inner.prefix).unwrap();
        pair.drive("it is offered", |_| match is_accepted {
            true => of_far.pairs.is((second, reader), |stage| matches!(stage, Stage::Accepted(..))),
            false => neighbour.pairs.is((second, reader), |stage| matches!(stage, Stage::Offered(_))),
        });
        limit_descriptors(0);
        let why = |pair: &Pair| pair.near.path(second, reader).1.unwrap_or_default();
        pair.drive("it is refused", |pair| why(pair).contains("ulimit -n"));
        assert_eq!(pair.near.path(first, reader), (SamplePath::SharedMemory, None));
        limit_descriptors(all);
        pair.drive_into_lane(&mut 0);
        assert_eq!(pair.near.path(second, reader), (SamplePath::SharedMemory, None));
        assert!(!neighbour.has_parted() && !of_far.has_parted());
    }
}

#[test]
fn who_breaks_off_a_connection_tells_the_other_end() {
    const MORE: u32 = 100;
    let mut pair = Pair::new();
    let (writer, reader) = pair.guids();
    let mut written = 0;
    let mut taken = pair.drive_into_lane(&mut written);
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    // The writer is not the reader's to begin with.
    let begin = Message::Begin { writer: reader, reader: writer, number: 1 };
    neighbour.send(&begin, None).unwrap();
    pair.drive("it has no more of this one", |pair| {
        pair.far.inner.neighbours.find(pair.near.inner.prefix).is_none()
    });
    let all = written + MORE;
    pair.drive("all samples have come", |pair| {
        while written < all && pair.write(written).is_ok() {
            written += 1;
        }
        taken.extend(take(&pair.far, pair.reader));
        taken.last() == Some(&(all - 1))
    });
    // The first were written before the two had matched.
    assert_eq!(taken, Vec::from_iter(taken[0]..all));
}

#[test]
fn who_has_parted_is_met_again() {
    let mut pair = Pair::new();
    let mut written = 0;
    let mut taken = pair.drive_into_lane(&mut written);
    for near in [true, false] {
        let (one, other) = if near { (&pair.near, &pair.far) } else { (&pair.far, &pair.near) };
        let neighbour = one.inner.neighbours.find(other.inner.prefix).unwrap();
        one.inner.neighbours.reasons.note(Who::Participant(other.inner.prefix), "of this".to_owned());
        one.inner.part(&neighbour);
        drop(neighbour);
        let (writer, reader) = pair.guids();
        let (path, why) = if near { pair.near.path(writer, reader) } else { pair.far.path(reader, writer) };
        assert_eq!(path, SamplePath::Network);
        assert_eq!(why.as_deref(), Some("the connection to it has ended: of this"));
        pair.drive("both have met again", |pair| {
            let (near, far) = (&pair.near.inner, &pair.far.inner);
            near.neighbours.find(far.prefix).is_some() && far.neighbours.find(near.prefix).is_some()
        });
        taken.extend(pair.drive_into_lane(&mut written));
        let (near, far) = (&pair.near.inner, &pair.far.inner);
        assert!(near.neighbours.known.lock().len() == 1 && far.neighbours.known.lock().len() == 1);
    }
    assert_eq!(taken, Vec::from_iter(taken[0]..taken[0] + taken.len() as u32));
}

#[test]
fn who_has_gone_is_not_met_again_and_begins_anew() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let Pair { near, far, .. } = pair;
    let (inner, prefix) = (&near.inner, far.inner.prefix);
    let hour = monotonic_now() + taut_base::Duration::from_secs(3_600);
    inner.neighbours.returns.add(prefix, hour, None);
    drop(far);
    let end = Instant::now() + LIMIT;
    while inner.neighbours.returns.has(prefix) {
        assert!(Instant::now() < end, "it is to be met again");
        near.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
    }
    assert!(!inner.is_there(prefix));
}

/// Another thread may unmatch a pair while the connection ends or its offer is on its way.
#[test]
fn what_is_no_longer_matched_is_neither_wanted_nor_offered() {
    let mut pair = Pair::new();
    let (writer, reader) = pair.guids();
    pair.drive_into_lane(&mut 0);
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    pair.far.inner.with(|participant, now| participant.delete_reader(now, pair.reader));
    pair.drive("the pair ends", |pair| {
        let is_matched = |core: &mut Core| local::is_matched(&core.participant, writer, reader);
        !pair.near.inner.peek(is_matched) && !neighbour.pairs.is((writer, reader), |_| true)
    });
    let inner = &pair.near.inner;
    inner.offer_there(&neighbour, writer, reader);
    assert!(!neighbour.pairs.is((writer, reader), |_| true), "it is offered again");
    // As if that had come before.
    neighbour.pairs.offer((writer, reader)).unwrap();
    inner.part(&neighbour);
    assert!(inner.neighbours.take_wanted(pair.far.inner.prefix).is_empty(), "it is wanted again");
}

#[test]
fn why_one_pair_is_refused_is_told_of_no_other_and_not_of_the_end() {
    let mut pair = Pair::new();
    let (first, reader) = pair.guids();
    pair.drive_into_lane(&mut 0);
    pair.add_writer();
    let (second, _) = pair.guids();
    pair.drive_into_lane(&mut 0);
    let (near, far) = (&pair.near, &pair.far);
    let refuse = Message::Refuse { writer: first, reader, reason: 2 };
    far.inner.neighbours.find(near.inner.prefix).unwrap().send(&refuse, None).unwrap();
    let is_out = |writer| near.path(writer, reader).0 == SamplePath::Network;
    let end = Instant::now() + LIMIT;
    while !is_out(first) {
        assert!(Instant::now() < end, "it is refused");
        near.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
    }
    let refused = Some("the two participants share as many pairs as they may: 1024");
    assert_eq!(near.path(first, reader).1.as_deref(), refused);
    let neighbour = near.inner.neighbours.find(far.inner.prefix).unwrap();
    near.inner.leave_lane(second, reader);
    assert_eq!(near.path(second, reader).1.as_deref(), Some("not joined yet"));
    near.inner.part(&neighbour);
    for writer in [first, second] {
        assert_eq!(near.path(writer, reader).1.as_deref(), Some("the connection to it has ended"));
    }
}

#[test]
fn what_was_accepted_is_not_accepted_again() {
    /// More than the lane holds: a feedback that is not the reader's own never says that any of them was read.
    const SAMPLES: u32 = 700;
    let mut pair = Pair::new();
    let (writer, reader) = pair.guids();
    let mut written = 0;
    let mut taken = pair.drive_into_lane(&mut written);
    let neighbour = pair.far.inner.neighbours.find(pair.near.inner.prefix).unwrap();
    let memory = Memory::create("feedback", FEEDBACK_LEN).unwrap();
    neighbour.send(&Message::Accept { writer, reader, number: 1 }, Some(&memory)).unwrap();
    let all = written + SAMPLES;
    pair.drive("all samples have come", |pair| {
        pair.write(written).unwrap();
        written += 1;
        taken.extend(take(&pair.far, pair.reader));
        assert!(pair.outlet.is_direct(), "the lane is no longer enough after {} samples", taken.len());
        written == all
    });
}

#[test]
fn what_a_participant_left_held_comes_back_with_the_end_of_its_process() {
    /// More than a cell holds.
    const LEN: usize = 1_000;
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (_, reader) = pair.guids();
    let mut pool = Pool::new(LEN, 1);
    let memory = pair.near.lend(&mut pair.outlet, &mut pool, LEN).unwrap();
    let mut payload = Payload::of(&mut pool, memory, LEN);
    pair.near.publish(&mut pair.outlet, &mut call(Patience::KeepAll(None)), &mut payload).unwrap();
    let mut kept = Vec::new();
    pair.drive("the sample is there", |pair| {
        let door = pair.far.door(pair.reader).unwrap();
        pair.far.take(&door, &Selection::ANY, |sample| kept.push(sample.payload)).unwrap();
        kept.iter().any(|payload| payload.len() == LEN)
    });
    let Pair { near, far, writer, mut outlet, .. } = pair;
    let (inner, id) = (&near.inner, go(&near, far));
    let mut held = || {
        inner.joins.route(writer).remove(reader);
        outlet.refresh();
        outlet.lane.as_ref().unwrap().left()
    };
    assert_eq!(held(), 1, "the sample is looked at");
    // Somebody else connects.
    let _other = Connection::connect(inner.prefix, None).unwrap();
    inner.hear(FIRST_SOURCE);
    // The process ends.
    inner.hear(FIRST_SOURCE + 2 * id + 1);
    assert_eq!(held(), 0);
}

/// As of a process whose program was replaced: it has ended nothing, and reads nothing.
#[test]
fn who_has_not_said_that_it_reads_no_more_counts_until_its_process_has_ended() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (_, reader) = pair.guids();
    let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    let route = pair.near.inner.joins.route(pair.writer);
    let other = Guid { prefix: taut_base::GuidPrefix([4; 12]), ..reader };
    assert!(neighbour.note_feedback(&feedback) && route.add(other, feedback, true, Vec::new()));
    drop(neighbour);
    let Pair { near, far, mut outlet, .. } = pair;
    let id = go(&near, far);
    route.remove(other);
    let mut left = || {
        route.remove(reader);
        outlet.refresh();
        outlet.lane.as_ref().unwrap().left()
    };
    assert_eq!(left(), 1, "it may read on");
    // Somebody else connects.
    let _other = Connection::connect(near.inner.prefix, None).unwrap();
    near.inner.hear(FIRST_SOURCE);
    // The process ends.
    near.inner.hear(FIRST_SOURCE + 2 * id + 1);
    assert_eq!(left(), 0);
}

/// Ends the other participant. Returns the number of the connection to it when both are no longer known.
fn go(near: &Executor, far: Executor) -> u64 {
    let (inner, prefix) = (&near.inner, far.inner.prefix);
    let id = *inner.neighbours.known.lock().keys().next().unwrap();
    drop(far);
    let is_known = || inner.peek(|core| core.participant.core().database().peer(prefix).is_some());
    let end = Instant::now() + LIMIT;
    while is_known() || inner.neighbours.find(prefix).is_some() {
        assert!(Instant::now() < end, "it has gone");
        near.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
    }
    id
}

/// A lane in which each cell was written once has no room while a reader is about to attach.
#[test]
fn who_comes_while_a_write_waits_may_take_its_place_in_the_lane() {
    const CELLS: u32 = 512;
    const SAMPLES: u32 = 600;
    let limits = ResourceLimits { max_samples: Some(SAMPLES), ..ResourceLimits::default() };
    let domain_id = own_domain();
    let mut pair = Pair::between(participant(domain_id), start(domain_id, false), limits);
    let are_matched = |pair: &mut Pair| {
        let (out, far) = (&pair.near, &pair.far);
        let one = out
            .inner
            .with(|p, _| p.writer(pair.writer).is_some_and(|w| w.publication_matched.current_count == 1));
        one && far
            .inner
            .with(|p, _| p.reader(pair.reader).is_some_and(|r| r.subscription_matched.current_count == 1))
    };
    pair.drive("both have matched", are_matched);
    let before = SAMPLES - CELLS;
    (0..before).for_each(|n| pair.write(n).unwrap());
    let reads = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
    let reads = DataReaderQos { reliability: pair.writes.reliability, ..reads };
    let (beside, _) = pair.near.create_reader(endpoint(reads)).unwrap();
    let mut taken = Vec::new();
    for n in before..SAMPLES {
        pair.write(n).unwrap();
        taken.extend(take(&pair.near, beside));
    }
    let (_, comer) = pair.guids();
    let reader = pair.reader;
    let route = pair.near.inner.joins.route(pair.writer);
    let lane = route.lane(None);
    let Pair { near, far, mut outlet, .. } = pair;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + LIMIT;
            while !lane.is_awaited() {
                assert!(Instant::now() < end, "it does not wait");
                std::thread::yield_now();
            }
            let feedback = Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap();
            assert!(route.add(comer, Arc::new(feedback), true, Vec::new()));
            // Now there is room, as far as the protocol is concerned.
            while !done.load(Ordering::SeqCst) && Instant::now() < end {
                far.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
                take(&far, reader);
            }
        });
        let patience = Patience::KeepAll(Some(taut_base::Duration::from_secs(20)));
        let payload = &mut Payload::short(&SAMPLES.to_le_bytes());
        let written = near.publish(&mut outlet, &mut call(patience), payload);
        done.store(true, Ordering::SeqCst);
        written.unwrap();
    });
    near.run_once(Some(Time(0))).unwrap();
    taken.extend(take(&near, beside));
    assert_eq!(taken, Vec::from_iter(before..=SAMPLES));
}

/// Who is not trusted rings by a packet, which is to do what a ring by the eventfd does.
#[test]
fn who_is_rung_by_a_packet_is_rung() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let find = |at: &Executor, other: &Executor| at.inner.neighbours.find(other.inner.prefix).unwrap();
    let (inner, ringer, rung) = (&pair.near.inner, find(&pair.far, &pair.near), find(&pair.near, &pair.far));
    inner.bell.arm();
    ringer.send(&Message::Ring, None).unwrap();
    inner.listen(&rung);
    assert!(inner.bell.armed().is_none(), "writers have yet to ring again");
}

/// Whose socket is full has something to hear, which is as good.
#[test]
fn who_could_not_be_rung_for_want_of_room_is_rung_all_the_same() {
    let mut pair = Pair::new();
    pair.near.inner.neighbours.is_wary.store(true, Ordering::Relaxed);
    pair.drive_into_lane(&mut 0);
    let find = |at: &Executor, other: &Executor| at.inner.neighbours.find(other.inner.prefix).unwrap();
    let (sleeper, near) = (find(&pair.near, &pair.far), find(&pair.far, &pair.near));
    let inner = Arc::clone(&pair.far.inner);
    let (writer, reader) = pair.guids();
    // Of a pair that there is not.
    let end = Message::End { writer: reader, reader: writer };
    while sleeper.send(&end, None).is_ok() {}
    for is_full in [true, false] {
        inner.bell.arm();
        assert!(pair.outlet.is_ring_owed());
        pair.write(0).unwrap();
        assert_eq!(pair.outlet.is_ring_owed(), is_full);
        inner.listen(&near);
        assert!(inner.bell.armed().is_none(), "writers have yet to ring again: {is_full}");
    }
}

/// However much a neighbour says at once, or leaves behind.
#[test]
fn samples_wait_for_one_step_of_a_neighbour() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (near, far) = (&pair.near.inner, &pair.far.inner);
    let ringer = far.neighbours.find(near.prefix).unwrap();
    let neighbour = near.neighbours.find(far.prefix).unwrap();
    let heard_during = |step: &dyn Fn()| {
        while !near.peek(|core| core.is_unheard()) {
            std::thread::yield_now();
        }
        let before = pair.near.stats().port.datagrams_in;
        crate::driver::watch::tests::send(near);
        step();
        pair.near.stats().port.datagrams_in - before
    };
    ringer.send(&Message::Ring, None).unwrap();
    assert_eq!(heard_during(&|| near.listen(&neighbour)), 1);
    let _stranger = Connection::connect(near.prefix, None).unwrap();
    assert_eq!(heard_during(&|| near.hear(FIRST_SOURCE)), 1);
    let overdue_in = |seconds| {
        let now = monotonic_now() + taut_base::Duration::from_secs(seconds);
        heard_during(&|| near.end_overdue(now))
    };
    near.say_again();
    assert_eq!(overdue_in(1), 1, "something is said again");
    near.neighbours.returns.add(far.prefix, monotonic_now(), None);
    assert_eq!(overdue_in(1), 1, "one is met again");
    assert_eq!(overdue_in(3_600), 1, "a stranger has not greeted");
    assert_eq!(heard_during(&|| near.part(&neighbour)), 1);
}

#[test]
fn a_write_that_waits_for_a_reader_of_the_lane_is_told_when_that_leaves() {
    let leave: [fn(&Inner, Guid, Guid); 2] = [Inner::leave_lane, Inner::withdraw];
    for leave in leave {
        for waits in [false, true] {
            let mut pair = Pair::new();
            pair.drive_into_lane(&mut 0);
            let (writer, reader) = pair.guids();
            pair.outlet.set_waiting(waits);
            let before = pair.near.stats().kicks;
            leave(&pair.near.inner, writer, reader);
            assert_eq!(pair.near.stats().kicks - before, u64::from(waits));
            assert!(pair.outlet.may_write());
        }
    }
}

/// The process of its writer stood still for longer than a lease, say.
#[test]
fn a_reader_that_loses_a_match_alone_is_offered_the_lane_anew() {
    let mut pair = Pair::new();
    let mut written = 0;
    let mut taken = pair.drive_into_lane(&mut written);
    let (writer, reader) = pair.guids();
    pair.far.inner.leave_matches(vec![Match { writer, reader, offered: false, matched: false }]);
    let is_joined = |pair: &Pair| pair.near.path(writer, reader).0 == SamplePath::SharedMemory;
    pair.drive("it has left the lane", |pair| !is_joined(pair));
    pair.drive("it reads the lane", |pair| is_joined(pair));
    taken.extend(pair.drive_into_lane(&mut written));
    assert!(taken.is_sorted(), "{taken:?}");
}

/// A partition that was changed and changed back, say, while its reader begins to read.
#[test]
fn what_is_matched_anew_is_not_taken_for_what_reads_the_lane() {
    const MORE: u32 = 10;
    for is_late in [false, true] {
        let mut pair = Pair::new();
        let mut written = 0;
        let mut taken = pair.drive_into_lane(&mut written);
        let (writer, reader) = pair.guids();
        let inner = Arc::clone(&pair.near.inner);
        let read = || inner.on_reading(writer, reader, 1);
        let follow = |matched| {
            inner.leave_matches(vec![Match { writer, reader, offered: true, matched }]);
            inner.follow_matches(Time::NEVER);
        };
        if !is_late {
            read();
        }
        follow(false);
        if is_late {
            read();
        }
        follow(true);
        let all = written + MORE;
        while written < all {
            pair.write(written).unwrap();
            written += 1;
        }
        pair.drive("all samples have come", |pair| {
            taken.extend(take(&pair.far, pair.reader));
            taken.last() == Some(&(all - 1))
        });
        assert_eq!(taken, Vec::from_iter(taken[0]..all));
    }
}

/// What it brings takes addresses of this process.
#[test]
fn what_is_offered_to_no_reader_is_not_kept() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (writer, _) = pair.guids();
    let find = |at: &Executor, other: &Executor| at.inner.neighbours.find(other.inner.prefix).unwrap();
    let (far, near) = (find(&pair.near, &pair.far), find(&pair.far, &pair.near));
    let of = |number| Guid::new(pair.far.inner.prefix, EntityId::user(number, false, false));
    let route = pair.near.inner.joins.route(pair.writer);
    for number in 0..3 {
        let offer = Message::Offer { writer, reader: of(0xff_0000 + number), number: 1 };
        assert!(route.with_memory(|memory| far.send(&offer, Some(memory)).is_ok()));
    }
    pair.far.inner.listen(&near);
    assert!((0..3).all(|number| !near.pairs.is((writer, of(0xff_0000 + number)), |_| true)));
    assert!(!near.has_parted(), "it may have gone while that was on its way");
}

#[test]
fn a_reader_that_loses_a_match_alone_in_its_process_leaves_the_lane_and_joins_it_anew() {
    let domain_id = own_domain();
    let [near, far] = [(); 2].map(|()| start_here(domain_id, true));
    let mut pair = Pair::between(near, far, ResourceLimits::default());
    let mut written = 0;
    let mut taken = pair.drive_into_lane(&mut written);
    let (writer, reader) = pair.guids();
    let is_joined = |pair: &Pair| pair.near.path(writer, reader).0 == SamplePath::Process;
    for matched in [false, true] {
        pair.far.inner.leave_matches(vec![Match { writer, reader, offered: false, matched }]);
        pair.drive("its writer knows", |pair| is_joined(pair) == matched);
    }
    taken.extend(pair.drive_into_lane(&mut written));
    assert!(taken.is_sorted(), "{taken:?}");
}

#[test]
fn a_reader_that_has_lost_its_match_as_a_lane_begins_does_not_attach() {
    let mut pair = Pair::new();
    pair.drive_into_lane(&mut 0);
    let (writer, reader) = pair.guids();
    let inner = &pair.far.inner;
    let neighbour = inner.neighbours.find(pair.near.inner.prefix).unwrap();
    inner.leave_matches(vec![Match { writer, reader, offered: false, matched: false }]);
    inner.follow_matches(Time(0));
    let lane = Arc::clone(pair.outlet.lane.as_ref().unwrap().lane());
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    inner.on_begin(&neighbour, (writer, reader), lane, feedback);
    assert!(pair.far.door(pair.reader).unwrap().is_here(writer).is_none());
}

/// As of a container, before Linux 6.5: of two processes one hears when the other ends, and that one does not.
#[test]
fn who_is_not_heard_to_end_holds_nothing() {
    for (is_near_blind, is_far_blind) in [(false, false), (true, false), (false, true)] {
        let mut pair = Pair::new();
        pair.near.inner.neighbours.is_blind.store(is_near_blind, Ordering::Relaxed);
        pair.far.inner.neighbours.is_blind.store(is_far_blind, Ordering::Relaxed);
        pair.drive_into_lane(&mut 0);
        let value = [7; 1_000];
        let mut pool = Pool::new(1_004, 2);
        let payload = &mut Payload::value([0, 1], &value, &mut pool);
        pair.near.publish(&mut pair.outlet, &mut call(Patience::KeepAll(None)), payload).unwrap();
        let neighbour = pair.near.inner.neighbours.find(pair.far.inner.prefix).unwrap();
        let door = pair.far.door(pair.reader).unwrap();
        let mut taken = Vec::new();
        pair.drive("it has come", |pair| {
            let took = pair.far.take(&door, &Selection::ANY, |sample| taken.push(sample.payload));
            took.unwrap();
            taken.last().is_some_and(|payload| payload.len() > value.len())
        });
        assert!(taken.pop().is_some_and(|last| {
            // It is held for as long as the payload is there.
            let is_held = neighbour.holds_any();
            last[4..] == value && is_held != (is_near_blind || is_far_blind)
        }));
    }
}
