//! What the names of endpoints are, when all have been given out; how many are found in a step.

use std::net::Ipv4Addr;
use std::sync::Arc;

use taut_base::{Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_port::{Frame, Loopback, Port, Traffic};
use taut_qos::{
    DurabilityKind, EndpointQos, History, Liveliness, LivelinessKind, ReliabilityKind, compare_partitions,
};
use taut_wire::{Header, Submessage, Submessages};

use crate::discovery::Refusal;
use crate::discovery::inbox::Inbox;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::timers::Timer;
use crate::writer::{Link, NewChange, change};
use crate::{
    Config, EndpointConfig, Event, Offer, Participant, ReaderIndex, Sink, TxClass, WriterIndex, limits,
};

struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

/// Whose samples have come.
struct Came(Vec<ReaderIndex>);

impl Sink for Came {
    fn deliver(&mut self, reader: ReaderIndex, _: i32, offer: &mut Offer) {
        self.0.extend(offer.take().map(|_| reader));
    }
}

pub(crate) fn endpoint() -> EndpointConfig {
    EndpointConfig {
        topic_name: "Topic".to_owned(),
        type_name: "Type".to_owned(),
        keyed: false,
        qos: EndpointQos::default_reader(),
        history: History::KeepAll,
        max_samples: None,
    }
}

#[test]
fn no_two_endpoints_have_the_same_name_however_many_there_were() {
    let here = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);
    let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), here));
    let make = |participant: &mut Participant, is_writer| match is_writer {
        true => _ = participant.create_writer(Time(0), endpoint(), &mut Nowhere),
        false => _ = participant.create_reader(Time(0), endpoint(), &mut Nowhere),
    };
    let long_lived = [false, true, false];
    long_lived.into_iter().for_each(|is_writer| make(&mut participant, is_writer));
    // So many have come and gone since that all keys have been given out.
    participant.next_entity_key = (1 << 24) + 1;
    long_lived.into_iter().for_each(|is_writer| make(&mut participant, is_writer));
    assert_eq!(participant.local_endpoints().count(), 6);
}

/// A port all of whose paths take datagrams of up to so many bytes.
struct Narrow {
    port: Loopback,
    path: usize,
}

impl Narrow {
    fn take(&mut self) -> Option<(Locator, Bytes)> {
        self.port.take()
    }
}

impl Port for Narrow {
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        self.port.send(to, parts);
    }

    fn flush(&mut self) {}

    fn path_size(&mut self, _: &Locator) -> usize {
        self.path
    }
}

/// Two participants, each known to the other, and what they send.
struct Both {
    ends: [Participant; 2],
    port: Narrow,
}

impl Both {
    const NOW: Time = Time(1);

    fn source(number: usize) -> Locator {
        Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410 + number as u16)
    }

    fn new() -> Both {
        let mut both = Both::that(false, 0);
        while both.send(0, usize::MAX) + both.send(1, usize::MAX) > 0 {}
        both
    }

    /// Not known to each other yet, with so much USER_DATA.
    fn that(cuts_discovery: bool, user_data: usize) -> Both {
        let end = |number: usize| {
            let prefix = GuidPrefix([number as u8 + 1; 12]);
            Participant::new(Config {
                initial_peers: vec![Both::source(1 - number)],
                cuts_discovery,
                user_data: vec![8; user_data],
                ..Config::at(prefix, Both::source(number))
            })
        };
        let mut both = Both {
            ends: [end(0), end(1)],
            port: Narrow { port: Loopback::new(), path: limits::MESSAGE_SIZE },
        };
        both.ends.iter_mut().for_each(|end| _ = end.on_timeout(Both::NOW, usize::MAX));
        both
    }

    /// Brings what one has to send to the other, which runs so many steps of timers after each datagram. Returns how many
    /// those were.
    fn send(&mut self, from: usize, steps: usize) -> usize {
        self.send_with(from, steps, &mut Nowhere)
    }

    fn send_with(&mut self, from: usize, steps: usize, sink: &mut dyn Sink) -> usize {
        let mut sent = 0;
        while self.ends[from].poll_transmit(Both::NOW, &mut self.port, TxClass::Discovery, 8).more {}
        while let Some((_, bytes)) = self.port.take() {
            sent += 1;
            let frame = Frame { source: Both::source(from), traffic: Traffic::Meta, bytes };
            let to = &mut self.ends[1 - from];
            to.on_frame(Both::NOW, &frame, sink);
            (0..steps).take_while(|_| to.on_timeout(Both::NOW, 1) > 0).for_each(drop);
        }
        sent
    }

    /// Brings to each what the other one has to send in datagrams of up to so many bytes, until there is no more. Returns the
    /// longest that was too long, if any was.
    fn exchange(&mut self, longest: usize) -> Option<usize> {
        let mut too_long = None;
        for _ in 0..100 {
            for from in [0, 1] {
                let tx = &mut self.ends[from];
                while tx.poll_transmit(Both::NOW, &mut self.port, TxClass::Discovery, 8).more {}
                while let Some((_, bytes)) = self.port.take() {
                    if bytes.len() > longest {
                        too_long = too_long.max(Some(bytes.len()));
                        continue;
                    }
                    let frame = Frame { source: Both::source(from), traffic: Traffic::Meta, bytes };
                    self.ends[1 - from].on_frame(Both::NOW, &frame, &mut Nowhere);
                }
                self.ends[1 - from].on_timeout(Both::NOW, usize::MAX);
            }
        }
        too_long
    }

    /// Until neither has anything to say.
    fn settle(&mut self) {
        while self.send(1, usize::MAX) + self.send(0, usize::MAX) > 0 {}
    }

    fn known(&self) -> usize {
        self.ends[1].database().endpoints().count()
    }
}

#[test]
fn a_step_finds_so_many_endpoints_and_the_next_ones_the_rest() {
    const ENDPOINTS: usize = 500;
    let mut both = Both::new();
    for _ in 0..ENDPOINTS {
        both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    let datagrams = both.send(0, 0);
    let at_once = both.known();
    assert!(datagrams > 1 && at_once > 0 && at_once <= limits::INBOX_AT_ONCE, "{at_once} in {datagrams}");
    assert!(at_once < ENDPOINTS && both.ends[1].next_timeout() <= Some(Both::NOW));
    while both.known() < ENDPOINTS {
        let before = both.known();
        both.ends[1].on_timeout(Both::NOW, usize::MAX);
        let found = both.known() - before;
        assert!(found > 0 && found <= limits::INBOX_STEP, "{found}");
    }
}

#[test]
fn a_step_matches_or_parts_so_many_and_the_next_ones_the_rest() {
    const READERS: usize = 100;
    let mut both = Both::new();
    for _ in 0..READERS {
        both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.settle();
    let matched = |both: &Both| {
        let here = &both.ends[1];
        here.local_endpoints().map(|own| here.database().matches(own.guid.entity).count()).sum::<usize>()
    };
    let writer = both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    while both.ends[0].match_more(Both::NOW, &mut Nowhere) {}
    for wanted in [READERS, 0] {
        let mut before = matched(&both);
        both.send(0, 0);
        let at_once = matched(&both).abs_diff(before);
        assert!(at_once > 0 && at_once <= limits::INBOX_AT_ONCE, "{at_once}");
        before = matched(&both);
        while before != wanted {
            both.ends[1].on_timeout(Both::NOW, usize::MAX);
            let so_many = matched(&both).abs_diff(before);
            assert!(so_many > 0 && so_many <= limits::INBOX_STEP, "{so_many}");
            before = matched(&both);
        }
        // What it says to them is no part of this.
        both.settle();
        both.ends[0].delete_writer(Both::NOW, writer, &mut Nowhere);
    }
    both.ends[1].on_timeout(Both::NOW, usize::MAX);
    assert_eq!(both.known(), 0, "the writer has gone");
}

/// As without IP, where nobody cuts what is too long for a frame.
#[test]
fn what_discovery_says_goes_in_fragments_where_nobody_cuts_datagrams() {
    for (cuts, of_participants, of_endpoint, known) in [
        (false, 0, 100, [1, 1]),
        (false, 0, 5_000, [1, 0]),
        (false, 5_000, 100, [0, 0]),
        (true, 0, 100, [1, 1]),
        (true, 5_000, 5_000, [1, 1]),
    ] {
        let mut both = Both::that(cuts, of_participants);
        both.port.path = limits::DATAGRAM_MIN;
        let mut said = endpoint();
        said.qos.user_data = vec![7; of_endpoint];
        both.ends[0].create_writer(Both::NOW, said, &mut Nowhere);
        let too_long = both.exchange(limits::DATAGRAM_MIN);
        let (prefix, found) = (both.ends[0].config().guid_prefix, both.ends[1].database());
        let peer = found.peer(prefix);
        assert_eq!([usize::from(peer.is_some()), both.known()], known, "{too_long:?}");
        assert_eq!(too_long.is_some(), known != [1, 1], "{too_long:?}");
        assert!(peer.is_none_or(|peer| peer.data.user_data.len() == of_participants));
        assert!(found.endpoints().all(|found| found.qos.user_data.len() == of_endpoint));
    }
}

#[test]
fn what_a_peer_has_said_in_an_earlier_life_is_not_found_later() {
    let mut both = Both::new();
    for _ in 0..500 {
        both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.send(0, 0);
    let [peer, here] = &mut both.ends;
    here.begin_life(Both::NOW, peer.config().guid_prefix);
    while here.next_timeout().is_some_and(|next| next <= Both::NOW) {
        here.on_timeout(Both::NOW, usize::MAX);
    }
    assert_eq!(both.known(), 0);
}

#[test]
fn an_endpoint_of_its_own_is_matched_and_parted_in_steps() {
    const STEPS: usize = 3;
    const READERS: usize = STEPS * limits::LOCAL_STEP;
    let mut both = Both::new();
    for _ in 0..READERS {
        both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.settle();
    let here = &mut both.ends[0];
    let told = |here: &mut Participant| std::iter::from_fn(|| here.poll_event()).count();
    told(here);
    let index = here.create_writer(Both::NOW, endpoint(), &mut Nowhere);
    let entity = here.writer(index).unwrap().guid.entity;
    let matched = |here: &Participant| here.database().matches(entity).count();
    for step in 1..=STEPS {
        assert_eq!(matched(here), step * limits::LOCAL_STEP);
        assert_eq!(told(here), limits::LOCAL_STEP, "each is told of");
        assert_eq!(here.is_matching(), step < STEPS);
        here.match_more(Both::NOW, &mut Nowhere);
    }
    for step in 1..=STEPS {
        assert_eq!(here.part_more(entity), step < STEPS);
        assert_eq!((matched(here), told(here)), (READERS - step * limits::LOCAL_STEP, 0), "of none");
    }
    // Who is about to be deleted matches nothing new.
    both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    both.settle();
    let here = &mut both.ends[0];
    here.create_reader(Both::NOW, endpoint(), &mut Nowhere);
    assert!(!here.is_matching());
    assert_eq!((here.database().endpoints().count(), matched(here)), (READERS + 1, 0));
}

#[test]
fn endpoints_of_its_own_that_do_not_match_are_compared_once() {
    let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), Locator::INVALID));
    let (mut of_reader, mut of_writer) = (endpoint(), endpoint());
    of_reader.qos.partition = vec!["plant/*".into()];
    of_writer.qos.partition = vec!["office/hall".into()];
    let mut cost = 0;
    assert_eq!(
        compare_partitions(&of_writer.qos.partition, &of_reader.qos.partition, &mut cost),
        Some(false)
    );
    let reader = participant.create_reader(Time(0), of_reader, &mut Nowhere);
    let writer = participant.create_writer(Time(0), of_writer, &mut Nowhere);
    assert!(!participant.is_matching());
    let refusals = participant.database().refusals();
    let here = |why: &Refusal| match why {
        Refusal::Partition { local, remote } => [local.guid, remote.guid],
        why => panic!("{why}"),
    };
    let mut refused: Vec<_> = refusals.map(|(local, remote, why)| (local, remote, here(why))).collect();
    refused.sort();
    let (reader, writer) =
        (participant.reader(reader).unwrap().guid, participant.writer(writer).unwrap().guid);
    let mut each = [(reader.entity, writer, [reader, writer]), (writer.entity, reader, [writer, reader])];
    each.sort();
    assert_eq!(refused, each);
    assert!(cost > 0);
    assert_eq!(participant.compared, cost);
}

/// Who learns of it says at once what it has for it, and some of that once.
#[test]
fn an_endpoint_of_its_own_is_announced_when_it_can_hear_all_that_it_matches() {
    let mut both = Both::new();
    for _ in 0..=limits::LOCAL_STEP {
        both.ends[1].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.settle();
    let reader = both.ends[0].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    both.settle();
    assert_eq!(both.ends[1].database().endpoints().count(), 0, "one is yet to be matched");
    assert!(!both.ends[0].has_work(TxClass::Discovery), "nobody tries to say it meanwhile");
    assert!(!both.ends[0].match_more(Both::NOW, &mut Nowhere));
    both.settle();
    assert_eq!(both.ends[1].database().endpoints().count(), 1);
    assert_eq!(both.ends[0].counters().unmatched_writer, 0, "what they say to it is heard");
    both.ends[0].delete_reader(Both::NOW, reader, &mut Nowhere);
    both.settle();
    assert_eq!(both.ends[1].database().endpoints().count(), 0);
}

#[test]
fn an_endpoint_of_its_own_says_nothing_before_it_is_announced() {
    let reliable = || {
        let mut reliable = endpoint();
        reliable.qos.reliability.kind = ReliabilityKind::Reliable;
        reliable
    };
    let mut both = Both::new();
    for _ in 0..=limits::LOCAL_STEP {
        both.ends[1].create_reader(Both::NOW, reliable(), &mut Nowhere);
    }
    both.settle();
    both.ends[0].create_writer(Both::NOW, reliable(), &mut Nowhere);
    both.settle();
    both.ends[0].match_more(Both::NOW, &mut Nowhere);
    both.settle();
    assert_eq!(both.ends[1].counters().unmatched_writer, 0, "nobody would listen");
    // One that is told nothing of it is not waited for.
    let [own, peer] = &mut both.ends;
    let told = own.builtin.pairs()[0];
    let theirs = Guid::new(peer.config().guid_prefix, told.remote_reader);
    own.writers.get_mut(told.writer.0).unwrap().unmatch_reader(theirs);
    own.create_writer(Both::NOW, reliable(), &mut Nowhere);
    own.match_more(Both::NOW, &mut Nowhere);
    both.settle();
    assert!(both.ends[1].counters().unmatched_writer > 0);
}

#[test]
fn who_has_gone_or_changed_between_two_steps_is_matched_by_none() {
    let mut both = Both::new();
    let mut readers: Vec<ReaderIndex> = Vec::new();
    for _ in 0..=limits::LOCAL_STEP {
        readers.push(both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere));
    }
    both.settle();
    let [own, peer] = &mut both.ends;
    let index = own.create_writer(Both::NOW, endpoint(), &mut Nowhere);
    let entity = own.writer(index).unwrap().guid.entity;
    assert!(own.is_matching());
    // The last one is of another topic now, under its name.
    let last = peer.reader(*readers.last().unwrap()).unwrap().guid;
    peer.delete_reader(Both::NOW, readers.pop().unwrap(), &mut Nowhere);
    peer.next_entity_key -= 1;
    let elsewhere = EndpointConfig { topic_name: "Elsewhere".to_owned(), ..endpoint() };
    let other = peer.create_reader(Both::NOW, elsewhere, &mut Nowhere);
    assert_eq!(peer.reader(other).unwrap().guid, last);
    both.settle();
    let own = &mut both.ends[0];
    assert_eq!(own.database().endpoint(last).unwrap().topic_name, "Elsewhere");
    assert!(!own.match_more(Both::NOW, &mut Nowhere));
    assert_eq!(own.database().matches(entity).count(), limits::LOCAL_STEP);

    let index = own.create_writer(Both::NOW, endpoint(), &mut Nowhere);
    let entity = own.writer(index).unwrap().guid.entity;
    own.begin_life(Both::NOW, last.prefix);
    while own.next_timeout().is_some_and(|next| next <= Both::NOW) {
        own.on_timeout(Both::NOW, usize::MAX);
    }
    assert!(!own.match_more(Both::NOW, &mut Nowhere));
    assert_eq!(own.database().matches(entity).count(), 0);
    // Nor is one that is deleted itself.
    for _ in 0..=limits::LOCAL_STEP {
        own.create_reader(Both::NOW, endpoint(), &mut Nowhere);
    }
    let index = own.create_writer(Both::NOW, endpoint(), &mut Nowhere);
    assert!(own.is_matching());
    own.delete_writer(Both::NOW, index, &mut Nowhere);
    assert!(!own.is_matching());
}

/// What waits to be handled is bounded; the rest comes when there is room.
#[test]
fn many_endpoints_of_a_peer_wait_with_their_writer() {
    let endpoints = limits::INBOX + 500;
    let mut both = Both::new();
    for _ in 0..endpoints {
        both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.send(0, 0);
    assert_eq!(both.ends[1].inbox.len(), limits::INBOX);
    while both.ends[1].next_timeout().is_some_and(|next| next <= Both::NOW) {
        both.ends[1].on_timeout(Both::NOW, usize::MAX);
    }
    both.settle();
    assert_eq!(both.known(), endpoints);
}

/// A peer that has acknowledged what it was told of a writer is sent history for its readers: it has to listen by then.
#[test]
fn what_is_not_handled_is_not_acknowledged_so_that_no_history_comes_too_early() {
    const TOPICS: u32 = 40;
    const HISTORY: usize = 3;
    let mut both = Both::new();
    let mut readers = Vec::new();
    for topic in 0..TOPICS {
        let mut endpoint = EndpointConfig { topic_name: format!("Topic{topic}"), ..endpoint() };
        endpoint.qos.durability = DurabilityKind::TransientLocal;
        readers.push(both.ends[1].create_reader(Both::NOW, endpoint.clone(), &mut Nowhere));
        let writer = both.ends[0].create_writer(Both::NOW, endpoint, &mut Nowhere);
        let sample = || NewChange { payload: Bytes::copy_from(&[0, 1, 0, 0]), ..change() };
        (0..HISTORY).for_each(|_| _ = both.ends[0].write(Both::NOW, writer, &mut sample(), &mut Nowhere));
    }
    let mut came = Came(Vec::new());
    both.send(1, usize::MAX);
    // The reader's side has no time but for what comes, and for what it has to send.
    both.send_with(0, 0, &mut came);
    assert!(!both.ends[1].inbox.is_empty());
    both.send(1, usize::MAX);
    both.send_with(0, 0, &mut came);
    while both.send_with(0, usize::MAX, &mut came) + both.send(1, usize::MAX) > 0
        || both.ends[1].on_timeout(Both::NOW, usize::MAX) > 0
    {}
    came.0.sort();
    let expected: Vec<ReaderIndex> = readers.iter().flat_map(|reader| [*reader; HISTORY]).collect();
    assert_eq!(came.0, expected);
}

/// Nor is one that has much to say waited for with what others have said.
#[test]
fn who_has_been_handled_is_acknowledged_while_another_one_waits() {
    let mut inbox = Inbox::default();
    let [one, other] = [1, 2].map(|number| GuidPrefix([number; 12]));
    for prefix in [one, other, one, other] {
        let guid = Guid::new(prefix, EntityId::SEDP_PUBLICATIONS_WRITER);
        inbox.take(&mut Some(change_of(guid, Bytes::new())));
    }
    let mut handle = || inbox.next().map(|_| inbox.withholds(one)).zip(Some(inbox.end_current()));
    assert_eq!([handle(), handle()], [Some((true, None)); 2]);
    assert_eq!(handle(), Some((true, Some(one))), "while it is handled it is not over");
    assert_eq!(handle(), Some((false, None)), "nothing was withheld from it");
    assert!(handle().is_none() && inbox.end_current().is_none());
    // That it lives makes no endpoint known.
    inbox.take(&mut Some(change_of(Guid::new(one, EntityId::PARTICIPANT_MESSAGE_WRITER), Bytes::new())));
    assert!(!inbox.withholds(one) && inbox.next().is_some() && inbox.end_current().is_none());
}

/// A peer that comes to know many endpoints at once is greeted in steps.
#[test]
fn so_many_greet_in_a_step_and_the_next_ones_the_rest() {
    const READERS: usize = 500;
    let mut both = Both::new();
    for _ in 0..READERS {
        both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.settle();
    both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    while both.ends[0].match_more(Both::NOW, &mut Nowhere) {}
    both.send(0, usize::MAX);
    let prefix = both.ends[1].config().guid_prefix;
    let left = |both: &Both| both.ends[0].database().peer(prefix).unwrap().greetings.len();
    let before = left(&both);
    let datagrams = both.send(1, 0);
    let at_once = before - left(&both);
    assert_eq!(before, READERS);
    assert!(at_once > 0 && at_once <= datagrams * limits::ASK_STEP, "{at_once} in {datagrams}");
    assert!(left(&both) > 0);
    while left(&both) > 0 {
        let before = left(&both);
        assert_eq!(both.ends[0].on_timeout(Both::NOW, 1), 1);
        assert!(before - left(&both) <= limits::ASK_STEP, "{before}");
    }
}

/// A peer that is forgotten makes room for the others.
#[test]
fn what_waits_for_room_comes_though_who_took_it_has_gone() {
    let mut both = Both::new();
    for _ in 0..limits::INBOX + 500 {
        both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.send(0, 0);
    let [gone, here] = &mut both.ends;
    here.timers.set(Time::NEVER, Timer::Inbox);
    assert!(here.inbox.has_refused());
    here.forget_participant(Both::NOW, gone.config().guid_prefix);
    while here.next_timeout().is_some_and(|next| next <= Both::NOW) {
        here.on_timeout(Both::NOW, usize::MAX);
    }
    assert!(here.inbox.is_empty() && !here.inbox.has_refused());
}

#[test]
fn who_leaves_while_an_earlier_life_is_forgotten_is_not_found_again() {
    let mut both = Both::new();
    for _ in 0..500 {
        both.ends[0].create_writer(Both::NOW, endpoint(), &mut Nowhere);
    }
    both.settle();
    let prefix = both.ends[0].config().guid_prefix;
    let here = &mut both.ends[1];
    here.begin_life(Both::NOW, prefix);
    here.forget_participant(Both::NOW, prefix);
    while here.next_timeout().is_some_and(|next| next <= Both::NOW) {
        here.on_timeout(Both::NOW, usize::MAX);
    }
    assert!(here.database().peer(prefix).is_none() && both.known() == 0);
}

/// Writers with a lease of a second, of this kind, and a reader of the other participant that is matched with all of them.
fn with_leases(kind: LivelinessKind, writers: usize) -> (Both, Vec<WriterIndex>, ReaderIndex) {
    let mut both = Both::new();
    let mut promised = endpoint();
    promised.qos.liveliness = Liveliness { kind, lease_duration: Duration::from_secs(1) };
    promised.qos.reliability.kind = ReliabilityKind::Reliable;
    let reader = both.ends[1].create_reader(Both::NOW, endpoint(), &mut Nowhere);
    both.settle();
    let make = |_| both.ends[0].create_writer(Both::NOW, promised.clone(), &mut Nowhere);
    let made = (0..writers).map(make).collect();
    both.settle();
    assert_eq!(both.ends[1].reader(reader).unwrap().proxies.len(), writers);
    (both, made, reader)
}

#[test]
fn a_reader_is_looked_at_once_however_many_of_its_writers_are_back() {
    const WRITERS: usize = 50;
    let (mut both, _, reader) = with_leases(LivelinessKind::Automatic, WRITERS);
    let here = &mut both.ends[1];
    let noticed = Both::NOW + Duration::from_secs(2);
    let late = noticed + limits::LEASE_GRACE;
    [noticed, late].iter().for_each(|now| here.on_reader_liveliness_timer(*now, reader));
    let silent = |here: &Participant| {
        here.reader(reader).unwrap().proxies.values().filter(|proxy| !proxy.alive).count()
    };
    assert_eq!(silent(here), WRITERS);
    here.hear_writers(late, GuidPrefix([1; 12]), LivelinessKind::Automatic);
    assert_eq!(here.alive.revived, [reader]);
    here.alive.revived.push(reader);
    here.look_at_revived(late, reader);
    assert!(here.alive.revived.is_empty(), "it has been looked at");
    assert_eq!(silent(here), 0);
}

/// The readers that were told that writers fall silent, or speak again.
fn changes_of_liveliness(participant: &mut Participant) -> Vec<bool> {
    let events = std::iter::from_fn(|| participant.poll_event());
    let of = |event| match event {
        Event::LivelinessChanged { alive, .. } => Some(alive),
        _ => None,
    };
    events.filter_map(of).collect()
}

/// A process that was stopped finds that a lease is over before it has received what was said meanwhile.
#[test]
fn writers_that_have_spoken_while_nobody_listened_are_not_silent() {
    for speaks in [true, false] {
        let (mut both, _, reader) = with_leases(LivelinessKind::Automatic, 3);
        let late = Both::NOW + Duration::from_secs(3);
        let [there, here] = &mut both.ends;
        here.on_timeout(late, usize::MAX);
        assert_eq!(changes_of_liveliness(here), []);
        there.on_timeout(late, usize::MAX);
        while there.poll_transmit(late, &mut both.port, TxClass::Discovery, 8).more {}
        while let Some((_, bytes)) = both.port.take().filter(|_| speaks) {
            let frame = Frame { source: Both::source(0), traffic: Traffic::Meta, bytes };
            here.on_frame(late, &frame, &mut Nowhere);
        }
        // A new match is no reason to give more time to the others.
        here.arm_reader_liveliness(reader);
        here.on_timeout(late + Duration::from_millis(100), usize::MAX);
        here.on_timeout(late + limits::LEASE_GRACE, usize::MAX);
        assert_eq!(changes_of_liveliness(here), if speaks { vec![] } else { vec![false; 3] });
        // Who looks in time needs no more of it.
        here.on_timeout(late + Duration::from_secs(1), usize::MAX);
        assert_eq!(changes_of_liveliness(here).len(), if speaks { 3 } else { 0 });
    }
}

#[test]
fn a_short_lease_leaves_the_others_their_second_look() {
    let (mut both, _, reader) = with_leases(LivelinessKind::Automatic, 3);
    let here = &mut both.ends[1];
    let short = Duration::from_millis(10);
    let proxies = &mut here.readers.get_mut(reader.0).unwrap().proxies;
    let first = *proxies.keys().next().unwrap();
    proxies.get_mut(&first).unwrap().liveliness.lease_duration = short;
    let late = Both::NOW + Duration::from_secs(3);
    here.on_timeout(late, usize::MAX);
    assert_eq!(changes_of_liveliness(here), []);
    here.on_timeout(late + short, usize::MAX);
    assert_eq!(changes_of_liveliness(here), [false]);
    here.hear_writers(late + short, GuidPrefix([1; 12]), LivelinessKind::Automatic);
    here.on_timeout(late + limits::LEASE_GRACE, usize::MAX);
    let silent = changes_of_liveliness(here).iter().filter(|alive| !**alive).count();
    assert!(silent <= 1, "the short one alone: {silent}");
}

/// Nor does one of them that is heard first show that the others are.
#[test]
fn who_is_heard_again_ends_nothing_for_others() {
    let (mut both, _, reader) = with_leases(LivelinessKind::Automatic, 2);
    let late = Both::NOW + Duration::from_secs(2);
    let here = &mut both.ends[1];
    let silent = here.reader(reader).and_then(|reader| reader.proxies.keys().next().copied()).unwrap();
    let proxy = here.readers.get_mut(reader.0).and_then(|reader| reader.proxies.get_mut(&silent)).unwrap();
    (proxy.alive, proxy.heard) = (false, late);
    here.look_at_revived(late, reader);
    assert_eq!(changes_of_liveliness(here), [true]);
}

/// What a participant says of its writers of one kind.
fn assertion(of: GuidPrefix, kind: u8) -> CacheChange {
    let payload = [&[0, 1, 0, 0][..], &of.0, &[0, 0, 0, kind], &[0; 4]].concat();
    change_of(Guid::new(of, EntityId::PARTICIPANT_MESSAGE_WRITER), Bytes::from(payload))
}

fn change_of(writer_guid: Guid, payload: Bytes) -> CacheChange {
    CacheChange {
        kind: ChangeKind::Alive,
        writer_guid,
        sequence_number: SequenceNumber::FIRST,
        instance: None,
        source_timestamp: None,
        time: Both::NOW,
        payload,
    }
}

/// Each takes a look at all matches with the peer, unless it has just said so.
#[test]
fn assertions_of_one_step_cost_no_more_than_a_step_may() {
    const WRITERS: usize = 1_000;
    const SAID: usize = 100;
    let (mut both, ..) = with_leases(LivelinessKind::Automatic, WRITERS);
    let peer = both.ends[0].config().guid_prefix;
    let here = &mut both.ends[1];
    // Of the kind that they promise, and of the other one.
    for (kind, at_least) in [(1, limits::INBOX_STEP), (2, 1)] {
        let now = Both::NOW + Duration::from_millis(kind.into());
        (0..SAID).for_each(|_| here.inbox.take(&mut Some(assertion(peer, kind))));
        here.handle_inbox(now, limits::INBOX_STEP);
        let handled = SAID - here.inbox.len();
        assert!(handled >= at_least && here.compared < limits::COMPARED_STEP + WRITERS, "{handled}");
        assert!(kind == 1 || handled * WRITERS <= here.compared, "{handled} for {}", here.compared);
        while !here.inbox.is_empty() {
            here.on_timeout(now, usize::MAX);
        }
    }
}

/// The heartbeats with which a writer says that it is alive, of what a participant sends until then.
fn said_alive(end: &mut Participant, until: Time) -> usize {
    let (mut port, mut said, mut now) = (Loopback::new(), 0, Both::NOW);
    loop {
        end.on_timeout(now, usize::MAX);
        while end.poll_transmit(now, &mut port, TxClass::Discovery, 8).more {}
        while let Some((_, datagram)) = port.take() {
            let (_, rest) = Header::parse(&datagram).unwrap();
            let is_one = |submessage: &Result<_, _>| matches!(submessage, Ok(Submessage::Heartbeat(of)) if of.liveliness_flag);
            said += Submessages::new(rest).filter(is_one).count();
        }
        match end.next_timeout().filter(|next| *next <= until) {
            Some(next) => now = now.max(next),
            None => return said,
        }
    }
}

#[test]
fn readers_of_a_lane_are_told_that_its_writer_is_alive_as_often_as_the_lease_asks_for() {
    let (mut both, writers, reader) = with_leases(LivelinessKind::ManualByTopic, 1);
    let reader = both.ends[1].reader(reader).unwrap().guid;
    let end = &mut both.ends[0];
    end.set_reader_lane(Both::NOW, writers[0], reader, Some(SequenceNumber(1)));
    said_alive(end, Both::NOW);
    for _ in 0..1_000 {
        let mut change = NewChange {
            kind: ChangeKind::Alive,
            instance: InstanceHandle::NIL,
            source_timestamp: None,
            payload: Bytes::new(),
            number: None,
            in_lane: true,
            called: Time::default(),
            was_left: false,
        };
        end.write(Both::NOW, writers[0], &mut change, &mut Nowhere).unwrap();
    }
    assert_eq!(said_alive(end, Both::NOW), 1, "at once");
    assert_eq!(
        said_alive(end, Both::NOW + Duration::from_millis(900)),
        1,
        "and once more for the last of them"
    );
    for _ in 0..2 {
        end.assert_liveliness(Both::NOW, writers[0]);
    }
    assert_eq!(said_alive(end, Both::NOW), 1, "who says so is heard at once");
}

#[test]
fn why_two_of_a_participant_do_not_match_goes_with_either() {
    let here = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);
    let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), here));
    let mut best_effort = endpoint();
    best_effort.qos.reliability.kind = ReliabilityKind::BestEffort;
    let mut reliable = endpoint();
    reliable.qos.reliability.kind = ReliabilityKind::Reliable;
    for writer_goes in [true, false] {
        let writer = participant.create_writer(Time(0), best_effort.clone(), &mut Nowhere);
        let reader = participant.create_reader(Time(0), reliable.clone(), &mut Nowhere);
        assert_eq!(participant.database().refusals().count(), 2);
        let (of_writer, of_reader) =
            (participant.writer(writer).unwrap().guid, participant.reader(reader).unwrap().guid);
        for (local, other) in [(of_writer, of_reader), (of_reader, of_writer)] {
            let refused: Vec<_> = participant.refusals_of(local.entity).map(|(remote, _)| remote).collect();
            assert_eq!(refused, [other]);
        }
        if writer_goes {
            participant.delete_writer(Time(0), writer, &mut Nowhere);
        } else {
            participant.delete_reader(Time(0), reader, &mut Nowhere);
        }
        assert_eq!(participant.database().refusals().count(), 0);
        participant.delete_writer(Time(0), writer, &mut Nowhere);
        participant.delete_reader(Time(0), reader, &mut Nowhere);
    }
}

/// What its lane brings next may be taken as soon as that is said.
#[test]
fn a_change_counts_as_seen_once_it_is_with_readers_of_its_participant() {
    struct Looks(Arc<Link>, Vec<SequenceNumber>);

    impl Sink for Looks {
        fn deliver(&mut self, _: ReaderIndex, _: i32, offer: &mut Offer) {
            self.1.push(self.0.seen());
            *offer = None;
        }
    }

    let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), Locator::INVALID));
    let writer = participant.create_writer(Time(0), endpoint(), &mut Nowhere);
    participant.create_reader(Time(0), endpoint(), &mut Nowhere);
    let mut looks = Looks(Arc::clone(&participant.writer(writer).unwrap().link), Vec::new());
    for number in 1..=2 {
        participant.write(Time(0), writer, &mut change(), &mut looks).unwrap();
        assert_eq!(looks.0.seen(), SequenceNumber(number));
    }
    assert_eq!(looks.1, [SequenceNumber::ZERO, SequenceNumber(1)]);
}
