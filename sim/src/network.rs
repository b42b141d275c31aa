//! The network and its clock: who is reached by what, when, and what goes wrong on the way.
//!
//! Owns virtual time, the queue of events and the participants. One seed gives one run: there is no other
//! source of chance, no wall clock and no thread. Every participant is the same core that runs over
//! sockets. One with a [`NodeOptions::step`] is driven as an executor drives it: samples leave at once, timers,
//! discovery and matches have a step, and frames and writes come between two of them. Others do all at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::Ipv4Addr;

use taut_base::{Duration, GuidPrefix, Locator, Rng, Time, Timestamp};
use taut_dcps::{DomainParticipant, Entity, StatusMask};
use taut_mem::Bytes;
use taut_port::{Frame, Port, Traffic};
use taut_rtps::{Addresses, Anatomy, Config, Interface, MaxRate, MulticastChoice, TxClass};

use crate::faults::Faults;
use crate::tally::Tally;

/// The group of discovery.
pub const META_GROUP: Locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
/// The group of user data.
pub const USER_GROUP: Locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7401);

/// Datagrams per transmission step of a participant that does all at once.
const BUDGET: usize = 64;
/// Datagrams that the socket of a process holds which does not run.
const BACKLOG: usize = 300;
/// Transmission steps that one event may cause. More is a core that never gets done.
const STEPS: usize = 100_000;

/// What a participant is made of, besides its name and addresses.
#[derive(Clone, Copy, Debug)]
pub struct NodeOptions {
    /// How long peers remember it.
    pub lease: Duration,
    /// Between announcements.
    pub announcement_period: Duration,
    /// What its monotonic clock shows when the network's shows 0.
    pub clock_offset: Duration,
    /// How far its wall clock is ahead of the network's.
    pub wall_offset: Duration,
    /// Does it use the multicast group of user data?
    pub multicast: MulticastChoice,
    /// Does it announce to the group of discovery, or only to the addresses of those before it?
    pub multicast_discovery: bool,
    /// Does it announce to those addresses beside the group?
    pub names_peers: bool,
    /// Time to handle one datagram; with [`NodeOptions::receive_buffer`] makes a slow receiver.
    pub service: Duration,
    /// Datagrams that wait to be handled; more are lost.
    pub receive_buffer: usize,
    /// The largest datagram that its network takes in one piece. *Units*: bytes.
    pub path_size: usize,
    /// The most that it sends to each destination.
    pub max_rate: Option<MaxRate>,
    /// It wants to know where the latency of samples goes, and has a clock of this name.
    pub anatomy: Option<&'static str>,
    /// Does it announce, as Fast DDS does, of which process it is?
    pub tells_process: bool,
    /// How much it does in one step: datagrams, and timers. `None`: all at once.
    pub step: Option<usize>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            lease: Duration::from_secs(60),
            announcement_period: Duration::from_secs(3),
            clock_offset: Duration::ZERO,
            wall_offset: Duration::ZERO,
            multicast: MulticastChoice::Auto,
            multicast_discovery: true,
            names_peers: false,
            service: Duration::ZERO,
            receive_buffer: usize::MAX,
            path_size: usize::MAX,
            max_rate: None,
            anatomy: None,
            tells_process: false,
            step: None,
        }
    }
}

/// A place in the network where a participant runs, or did.
pub struct Node {
    /// The participant; `None` once it has crashed or left.
    pub participant: Option<DomainParticipant>,
    /// What it is made of.
    pub options: NodeOptions,
    /// How often it was started.
    pub incarnation: u32,
    /// What it has sent.
    pub sent: Tally,
    /// Calls of `on_timeout`.
    pub timeouts: u64,
    /// Datagrams handled.
    pub received: u64,
    prefix: GuidPrefix,
    /// How often it has moved: each time its address is another one.
    moves: u8,
    wake_at: Time,
    busy_until: Time,
    /// What has arrived since its process was stopped; `None` while that runs.
    backlog: Option<Vec<Frame>>,
    has_paused: bool,
    /// Has it matched an endpoint in more steps than one?
    pub matched_in_steps: bool,
    /// Is its next step in the queue?
    is_stepping: bool,
}

enum What {
    Arrive { to: usize, traffic: Traffic, source: Locator, bytes: Bytes },
    Wake { node: usize },
    Step { node: usize },
}

struct Queued {
    at: Time,
    order: u64,
    what: What,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Queued) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Queued {}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Queued) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Queued {
    fn cmp(&self, other: &Queued) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A datagram that went over the network, for those who listen.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When, by the network's clock.
    pub at: Time,
    /// Who sent it.
    pub from: usize,
    /// Where it went.
    pub to: Locator,
    /// What it holds.
    pub bytes: Bytes,
}

/// The network with everything in it.
pub struct Network {
    /// The participants, by number.
    pub nodes: Vec<Node>,
    /// What happens to datagrams that have no faults of their own.
    pub faults: Faults,
    /// What happens to datagrams from one to another, where that is different.
    pub links: BTreeMap<(usize, usize), Faults>,
    /// News of entities that nobody has looked at: see [`Network::observe`].
    pub news: Vec<(usize, Entity, StatusMask)>,
    /// Does it lose what goes to groups, as that of a cloud does?
    pub loses_groups: bool,
    /// Keep the news?
    pub observe: bool,
    /// Print what happens?
    pub trace: bool,
    /// What went over the network, if `capturing`.
    pub captured: Vec<Captured>,
    /// Keep at most so many of the datagrams.
    pub capturing: usize,
    /// Events handled.
    pub events: u64,
    /// More events are a storm.
    pub event_limit: u64,
    now: Time,
    rng: Rng,
    order: u64,
    queue: BinaryHeap<Reverse<Queued>>,
    cut: BTreeSet<(usize, usize)>,
}

/// Collects what a participant sends in one step.
struct Outbox {
    sent: Vec<(Locator, Bytes)>,
    path_size: usize,
}

impl Port for Outbox {
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        let datagram = Bytes::from(parts.concat());
        self.sent.extend(to.iter().map(|locator| (*locator, datagram.clone())));
    }

    fn path_size(&mut self, _: &Locator) -> usize {
        self.path_size
    }

    fn flush(&mut self) {}
}

/// The port of discovery.
const META_PORT: u16 = 7410;
/// The port of samples.
const USER_PORT: u16 = 7411;

/// The address of a node's discovery, as long as it has not moved.
pub fn meta_locator(node: usize) -> Locator {
    Locator::udp_v4(address(node, 0), META_PORT)
}

/// The address of a node's samples, as long as it has not moved.
pub fn user_locator(node: usize) -> Locator {
    Locator::udp_v4(address(node, 0), USER_PORT)
}

fn address(node: usize, moves: u8) -> Ipv4Addr {
    let [_, _, high, low] = u32::try_from(node + 1).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(10, moves, high, low)
}

/// Which node an address belongs to, and after how many moves of it.
fn node_of(locator: &Locator) -> Option<(usize, u8, Traffic)> {
    let [.., 10, moves, high, low] = locator.address else { return None };
    let node = (usize::from(high) << 8 | usize::from(low)).checked_sub(1)?;
    match u16::try_from(locator.port) {
        Ok(META_PORT) => Some((node, moves, Traffic::Meta)),
        Ok(USER_PORT) => Some((node, moves, Traffic::User)),
        _ => None,
    }
}

impl Network {
    /// An empty network.
    pub fn new(seed: u64) -> Network {
        Network {
            nodes: Vec::new(),
            faults: Faults::default(),
            links: BTreeMap::new(),
            news: Vec::new(),
            loses_groups: false,
            observe: false,
            trace: false,
            captured: Vec::new(),
            capturing: 0,
            events: 0,
            event_limit: u64::MAX,
            now: Time(0),
            rng: Rng::new(seed),
            order: 0,
            queue: BinaryHeap::new(),
            cut: BTreeSet::new(),
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The one source of chance.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Adds a place for a participant; [`Network::start`] starts it.
    pub fn add(&mut self, options: NodeOptions) -> usize {
        self.nodes.push(Node {
            participant: None,
            options,
            incarnation: 0,
            sent: Tally::default(),
            timeouts: 0,
            received: 0,
            prefix: GuidPrefix::UNKNOWN,
            moves: 0,
            wake_at: Time::NEVER,
            busy_until: Time(0),
            backlog: None,
            has_paused: false,
            matched_in_steps: false,
            is_stepping: false,
        });
        self.nodes.len() - 1
    }

    /// Starts a participant under a new name.
    pub fn start(&mut self, node: usize) {
        let incarnation = self.nodes[node].incarnation + 1;
        let mut prefix = [0; 12];
        prefix[..2].copy_from_slice(&[0x7a, 0x7a]);
        prefix[2..6].copy_from_slice(&u32::try_from(node).unwrap_or(u32::MAX).to_be_bytes());
        prefix[8..].copy_from_slice(&incarnation.to_be_bytes());
        self.start_as(node, GuidPrefix(prefix));
    }

    /// Starts a participant under the name it had before, as one that keeps its name in a file would.
    pub fn start_again(&mut self, node: usize) {
        self.start_as(node, self.nodes[node].prefix);
    }

    fn start_as(&mut self, node: usize, guid_prefix: GuidPrefix) {
        let options = self.nodes[node].options;
        let names = options.names_peers || !options.multicast_discovery;
        let peers = (0..self.nodes.len()).filter(|peer| *peer != node && names);
        let process = ("fastdds.physical_data.process".into(), self.nodes[node].incarnation.to_string());
        let config = Config {
            guid_prefix,
            domain_id: 0,
            entity_name: format!("node {node}"),
            user_data: Vec::new(),
            properties: options.tells_process.then_some(process).into_iter().collect(),
            lease_duration: options.lease,
            announcement_period: options.announcement_period,
            addresses: self.addresses(node),
            initial_peers: peers.map(meta_locator).collect(),
            multicast: options.multicast,
            anatomy: options.anatomy.map(|clock| Anatomy { samples: 64, clock: clock.into() }),
            cuts_discovery: false,
        };
        self.say(node, "starts");
        let (local, wall) = (self.local_now(node), self.wall_now(node));
        let place = &mut self.nodes[node];
        let mut participant = DomainParticipant::new(config);
        // What is local may expire before anything has come.
        participant.set_wall_clock(local, wall);
        if let Some(max) = place.options.max_rate {
            participant.set_max_rate(max);
        }
        place.participant = Some(participant);
        place.incarnation += 1;
        place.prefix = guid_prefix;
        place.wake_at = Time::NEVER;
        self.settle(node);
    }

    fn addresses(&self, node: usize) -> Addresses {
        let Node { options, moves, .. } = &self.nodes[node];
        let address = address(node, *moves);
        Addresses {
            metatraffic_unicast: vec![Locator::udp_v4(address, META_PORT)],
            metatraffic_multicast: if options.multicast_discovery { vec![META_GROUP] } else { Vec::new() },
            default_unicast: vec![Locator::udp_v4(address, USER_PORT)],
            default_multicast: vec![USER_GROUP],
            interfaces: vec![Interface { address: address.into(), prefix_len: 8, link: 1, multicast: true }],
            ..Addresses::default()
        }
    }

    /// Gives a node another address. What is sent to the old one is lost from now on; `tell` its participant, or
    /// let it believe that it still has the old one.
    pub fn move_away(&mut self, node: usize, tell: bool) {
        self.say(node, "moves");
        self.nodes[node].moves += 1;
        if tell {
            let addresses = self.addresses(node);
            self.on(node, |participant, now| participant.set_addresses(now, addresses));
        }
    }

    /// Stops a participant without a word.
    pub fn crash(&mut self, node: usize) {
        self.say(node, "crashes");
        self.nodes[node].participant = None;
        self.nodes[node].backlog = None;
    }

    /// Stops a participant's process for a while, as SIGSTOP does. It is not to be called until [`Network::go_on`].
    pub fn pause(&mut self, node: usize) {
        self.say(node, "pauses");
        self.nodes[node].backlog = Some(Vec::new());
        self.nodes[node].has_paused = true;
    }

    /// The process goes on. Its driver looks at the clock first, or at what has arrived.
    pub fn go_on(&mut self, node: usize, clock_first: bool) {
        self.say(node, "goes on");
        let Some(backlog) = self.nodes[node].backlog.take() else { return };
        if clock_first {
            self.time(node);
        }
        for Frame { source, traffic, bytes } in backlog {
            self.push(self.now, What::Arrive { to: node, traffic, source, bytes });
        }
        self.nodes[node].wake_at = self.now;
        self.push(self.now, What::Wake { node });
        if self.nodes[node].options.step.is_some() {
            self.take_step(node);
        }
    }

    /// Has its process ever been stopped? Then what it handles, or sends again, may be older than the network's delay.
    pub fn has_paused(&self, node: usize) -> bool {
        self.nodes[node].has_paused
    }

    /// Is its process stopped?
    pub fn is_paused(&self, node: usize) -> bool {
        self.nodes[node].backlog.is_some()
    }

    /// Stops a participant that says so.
    pub fn leave(&mut self, node: usize) {
        self.say(node, "leaves");
        let local = self.local_now(node);
        if let Some(participant) = &mut self.nodes[node].participant {
            while participant.match_more(local) {}
            participant.leave();
        }
        self.send_all(node, TxClass::Discovery, BUDGET);
        self.note_news(node);
        self.nodes[node].participant = None;
    }

    /// Does a participant run there?
    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].participant.is_some()
    }

    /// The name of the participant there, or of the last one.
    pub fn prefix(&self, node: usize) -> GuidPrefix {
        self.nodes[node].prefix
    }

    /// Loses everything from `from` to `to`; the other way is another cut.
    pub fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Ends a cut.
    pub fn mend(&mut self, from: usize, to: usize) {
        self.cut.remove(&(from, to));
    }

    /// Ends all cuts.
    pub fn mend_all(&mut self) {
        self.cut.clear();
    }

    /// What a node's own clock shows.
    pub fn local_now(&self, node: usize) -> Time {
        self.now + self.nodes[node].options.clock_offset
    }

    /// What a node's wall clock shows. That of a run starts at a round date.
    pub fn wall_now(&self, node: usize) -> Timestamp {
        let passed = self.now + self.nodes[node].options.wall_offset;
        Timestamp::from_unix_ns(1_700_000_000_000_000_000 + passed.0)
    }

    /// Does something with a participant, at its own time, and lets it send what follows.
    pub fn on<R>(&mut self, node: usize, act: impl FnOnce(&mut DomainParticipant, Time) -> R) -> Option<R> {
        let now = self.local_now(node);
        let outcome = act(self.nodes[node].participant.as_mut()?, now);
        self.settle(node);
        Some(outcome)
    }

    /// The participant there, to look at.
    pub fn participant(&self, node: usize) -> Option<&DomainParticipant> {
        self.nodes[node].participant.as_ref()
    }

    /// Puts a datagram before a node as if it had come from `source`, now.
    pub fn inject(&mut self, to: usize, traffic: Traffic, source: Locator, bytes: Bytes) {
        self.push(self.now, What::Arrive { to, traffic, source, bytes });
    }

    /// Lets time pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_to(self.now + span);
    }

    /// Lets time pass up to a point in time.
    pub fn run_to(&mut self, end: Time) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Handles the next event if it is not after `end`.
    pub fn step(&mut self, end: Time) -> bool {
        if self.queue.peek().is_none_or(|Reverse(next)| next.at > end) {
            return false;
        }
        let Some(Reverse(next)) = self.queue.pop() else { return false };
        self.now = self.now.max(next.at);
        self.events += 1;
        assert!(self.events <= self.event_limit, "a storm: {} events", self.events);
        match next.what {
            What::Arrive { to, traffic, source, bytes } => self.arrive(to, traffic, source, bytes),
            What::Wake { node } => self.wake(node, next.at),
            What::Step { node } => self.take_step(node),
        }
        true
    }

    /// What was sent by all.
    pub fn sent(&self) -> Tally {
        self.nodes.iter().fold(Tally::default(), |sum, node| sum.plus(&node.sent))
    }

    fn arrive(&mut self, to: usize, traffic: Traffic, source: Locator, bytes: Bytes) {
        let (local, wall) = (self.local_now(to), self.wall_now(to));
        let node = &mut self.nodes[to];
        let Some(participant) = &mut node.participant else { return };
        if let Some(backlog) = &mut node.backlog {
            if backlog.len() < BACKLOG {
                backlog.push(Frame { source, traffic, bytes });
            }
            return;
        }
        node.received += 1;
        if participant.wants_wall_clock() {
            participant.set_wall_clock(local, wall);
        }
        participant.on_frame(local, &Frame { source, traffic, bytes });
        self.settle(to);
    }

    fn wake(&mut self, node: usize, at: Time) {
        let place = &mut self.nodes[node];
        if place.wake_at != at {
            return;
        }
        place.wake_at = Time::NEVER;
        if place.backlog.is_none() {
            self.time(node);
        }
    }

    /// Lets a participant look at its clock.
    fn time(&mut self, node: usize) {
        let local = self.local_now(node);
        let place = &mut self.nodes[node];
        let Some(participant) = &mut place.participant else { return };
        if participant.next_timeout().is_some_and(|due| due <= local) {
            place.timeouts += 1;
            participant.on_timeout(local, place.options.step.unwrap_or(usize::MAX));
        }
        self.settle(node);
    }

    /// Lets a participant match some of what it was given to match, or send some of discovery.
    fn take_step(&mut self, node: usize) {
        let local = self.local_now(node);
        let place = &mut self.nodes[node];
        place.is_stepping = false;
        let (Some(participant), Some(budget)) = (&mut place.participant, place.options.step) else { return };
        if place.backlog.is_some() {
            return;
        }
        if participant.is_matching() {
            place.matched_in_steps = true;
            participant.match_more(local);
        } else {
            self.send_some(node, TxClass::Discovery, budget);
        }
        self.settle(node);
    }

    /// How long others have between two steps: longer where the driver's thread is kept from running.
    pub(crate) fn pause_between_steps(&mut self) -> Duration {
        let most = if self.rng.chance(100) { 20_000 } else { 200 };
        Duration::from_micros(1 + self.rng.below(most).cast_signed())
    }

    /// Lets a participant send what it has, as much as it does before others come, and notes when it wants to be called.
    fn settle(&mut self, node: usize) {
        let step = self.nodes[node].options.step;
        match step {
            None => self.send_all(node, TxClass::Discovery, BUDGET),
            Some(budget) => self.send_all(node, TxClass::Data, budget),
        }
        self.note_news(node);
        let local = self.local_now(node);
        let place = &mut self.nodes[node];
        let Some(participant) = &place.participant else { return };
        let due = participant.next_timeout().unwrap_or(Time::NEVER);
        let waits = participant.is_matching() || participant.has_work(TxClass::Discovery);
        let wake_at = place.wake_at;
        if step.is_some() && waits && !std::mem::replace(&mut place.is_stepping, true) {
            let at = self.now + self.pause_between_steps();
            self.push(at, What::Step { node });
        }
        if due == Time::NEVER {
            return;
        }
        let mut at = (due - self.nodes[node].options.clock_offset).max(self.now);
        if step.is_some() && due <= local && wake_at > at {
            at = at + self.pause_between_steps();
        }
        if at < wake_at {
            self.nodes[node].wake_at = at;
            self.push(at, What::Wake { node });
        }
    }

    fn send_all(&mut self, node: usize, lowest: TxClass, budget: usize) {
        let mut steps = 0;
        while self.send_some(node, lowest, budget) {
            steps += 1;
            assert!(steps < STEPS, "node {node} has sent {STEPS} bursts at one point in time");
        }
    }

    /// Returns whether there is more.
    fn send_some(&mut self, node: usize, lowest: TxClass, budget: usize) -> bool {
        let local = self.local_now(node);
        let path_size = self.nodes[node].options.path_size;
        let Some(participant) = &mut self.nodes[node].participant else { return false };
        let mut outbox = Outbox { sent: Vec::new(), path_size };
        let progress = participant.poll_transmit(local, &mut outbox, lowest, budget);
        for (to, bytes) in outbox.sent {
            let is_meta = to == META_GROUP || node_of(&to).is_some_and(|(_, _, of)| of == Traffic::Meta);
            assert!(is_meta || bytes.len() <= path_size, "{} B on a path of {path_size}", bytes.len());
            self.send(node, to, bytes);
        }
        progress.more
    }

    fn note_news(&mut self, node: usize) {
        let Some(participant) = &mut self.nodes[node].participant else { return };
        while let Some((entity, mask)) = participant.poll_news() {
            if self.observe {
                self.news.push((node, entity, mask));
            }
        }
        while let Some(line) = participant.poll_log() {
            if self.trace {
                println!("{:>12.6} node {node}: {line}", seconds(self.now));
            }
        }
    }

    fn send(&mut self, from: usize, to: Locator, bytes: Bytes) {
        self.nodes[from].sent.count(&bytes);
        if self.captured.len() < self.capturing {
            self.captured.push(Captured { at: self.now, from, to, bytes: bytes.clone() });
        }
        if to.is_multicast() {
            let traffic = if to == META_GROUP { Traffic::MetaMulticast } else { Traffic::User };
            let hearing = if self.loses_groups { 0 } else { self.nodes.len() };
            for node in 0..hearing {
                self.carry(from, node, traffic, bytes.clone());
            }
        } else if let Some((node, moves, traffic)) = node_of(&to)
            && self.nodes.get(node).is_some_and(|node| node.moves == moves)
        {
            self.carry(from, node, traffic, bytes);
        }
    }

    /// Carries one datagram to one node, with what goes wrong on the way.
    fn carry(&mut self, from: usize, to: usize, traffic: Traffic, mut bytes: Bytes) {
        if self.cut.contains(&(from, to)) {
            return;
        }
        let faults = *self.links.get(&(from, to)).unwrap_or(&self.faults);
        let fate = faults.draw(&mut self.rng, from == to);
        if self.trace {
            self.trace_datagram(from, to, &bytes, fate.copies == 0);
        }
        for _ in 0..fate.copies {
            let delay = faults.delay_of(&mut self.rng);
            if faults.corrupt > 0 && self.rng.chance(faults.corrupt) {
                bytes = faults.flip(&mut self.rng, &bytes);
            }
            let Some(at) = self.queue_up(to, self.now + delay) else { continue };
            let port = if traffic == Traffic::User { USER_PORT } else { META_PORT };
            let source = Locator::udp_v4(address(from, self.nodes[from].moves), port);
            self.push(at, What::Arrive { to, traffic, source, bytes: bytes.clone() });
        }
    }

    /// When a datagram that arrives at `at` is handled; `None` if the buffer is full.
    fn queue_up(&mut self, to: usize, at: Time) -> Option<Time> {
        let node = &mut self.nodes[to];
        let service = node.options.service;
        if service == Duration::ZERO {
            return Some(at);
        }
        let waiting = node.busy_until.since(at).0 / service.0.max(1);
        if usize::try_from(waiting).is_ok_and(|waiting| waiting >= node.options.receive_buffer) {
            return None;
        }
        node.busy_until = node.busy_until.max(at) + service;
        Some(node.busy_until)
    }

    fn push(&mut self, at: Time, what: What) {
        self.order += 1;
        self.queue.push(Reverse(Queued { at, order: self.order, what }));
    }

    fn say(&self, node: usize, what: &str) {
        if self.trace {
            println!("{:>12.6} node {node} {what}", seconds(self.now));
        }
    }

    fn trace_datagram(&self, from: usize, to: usize, bytes: &[u8], lost: bool) {
        let Ok((_, rest)) = taut_wire::Header::parse(bytes) else { return };
        let lost = if lost { " LOST" } else { "" };
        println!("{:>12.6} {from} -> {to}{lost}: {}", seconds(self.now), crate::trace::line(rest));
    }
}

/// A point in virtual time in seconds, to print.
pub fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}
