//! The other participants of this host: who they are, and what is said to them over their sockets.
//!
//! Discovery finds a participant and its host's identity; the one of the lower prefix connects. Each side
//! looks who the other is and then takes descriptors, and says hello, which brings the other's bell and
//! eventfd, and from then on pairs are joined by the four messages of [`Message`]. A hang-up or any doubt
//! ends the connection, and with it all of its lanes: samples go by UDP until it is made again. Order of locks: these maps are never held while anything else is taken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use taut_base::{Guid, GuidPrefix, Time};
use taut_lock::Mutex;
use taut_mem::fail::{self, Point};
use taut_mem::lane::{Bell, Feedback, Lane};
use taut_port_shm::{
    Admitted, ConnectError, Connection, Memory, Message, Peer, Received, Refusal, SendError, Waker, map,
};

use crate::clock::monotonic_now;
use crate::config::ExecutorConfig;
use crate::executor::Inner;
use crate::lanes::greeting::{Complaints, Due, Returns};
use crate::lanes::local::{NO_ADDRESSES, NO_DESCRIPTORS, NO_ROOM, is_matched, may_pass, why_refused};
use crate::lanes::own::Own;
use crate::lanes::pairs::{PAIRS, Pair, Pairs, Stage};
use crate::lanes::path::{Reasons, Who};
use crate::write::outlet::MAX_LANE;

/// From here on numbers of sources mean the listener and, two each, connections and their processes.
pub(crate) const FIRST_SOURCE: u64 = 1 << 32;

/// Connections of one participant. Lower and participants beyond it talk by UDP; higher and somebody who
/// connects again and again takes more descriptors.
pub(crate) const MAX_CONNECTIONS: usize = 1_024;
/// Messages handled of one connection before others have their turn.
const MESSAGES: usize = 64;
/// Messages to one neighbour that wait for room in its socket: some for each of its pairs. Lower and of pairs that are
/// joined together some take their samples by UDP; higher and who never listens takes more memory.
const UNSENT: usize = 4 * PAIRS;
/// The bell's and a feedback's memory.
pub(crate) const PAGE: usize = 4_096;

/// Nothing is known to be in the way of a pair.
pub(crate) const NOT_JOINED: &str = "not joined yet";
/// Why a connection ends that has just begun.
const NOT_GREETED: &str = "there is no descriptor to greet it with, or too many are on their way: raise the limit of open \
                           files (`ulimit -n`)";
/// Why a pair, or a connection that has just begun, does not come about.
const NOT_PASSED: &str = "a descriptor was not passed, as this process may have no more of them: raise the limit of open files \
                          (`ulimit -n`)";
/// There was a connection.
pub(crate) const ENDED: &str = "the connection to it has ended";

/// Another participant of this host, as far as the connection to it goes.
pub(crate) struct Neighbour {
    id: u64,
    connection: Connection,
    pub peer: Peer,
    /// When it was connected.
    pub since: Time,
    pub trusted: bool,
    /// Does this side hear when the process ends? Not before Linux 6.5, if its process-id namespace is not seen from here.
    hears_end: bool,
    /// The connection has ended. The process may live on, and be heard to end.
    parted: AtomicBool,
    /// Whom this side has connected to.
    pub expected: Option<GuidPrefix>,
    /// Known from its hello.
    greeted: OnceLock<Greeted>,
    /// What its socket had no room for, or the system, in order, and the memory that goes with each.
    pub unsent: Mutex<VecDeque<(Message, Option<Memory>)>>,
    /// It could not be greeted yet: it had not looked who this is.
    owed_hello: AtomicBool,
    /// What its readers hold of lanes of ours, for when its process has ended.
    feedbacks: Mutex<Vec<Weak<Feedback>>>,
    pub pairs: Pairs,
}

struct Greeted {
    prefix: GuidPrefix,
    /// Does it hear when this process ends?
    hears_end: bool,
    bell: Arc<Bell>,
    waker: Waker,
}

/// The neighbours of one participant.
#[derive(Default)]
pub(crate) struct Neighbours {
    pub own: Option<Own>,
    pub known: Mutex<BTreeMap<u64, Arc<Neighbour>>>,
    /// When the first of them that have not greeted is to have done so.
    pub greet_by: Due,
    /// When what waits for the clock is said to them.
    pub say_at: Due,
    /// Pairs of a local writer and a neighbour's reader that wait for its hello.
    pub wanted: Mutex<BTreeMap<GuidPrefix, BTreeSet<Pair>>>,
    last_id: AtomicU64,
    /// What was refused or broken off.
    pub doubts: AtomicU64,
    /// Why some share no memory, as far as it was seen.
    pub reasons: Reasons,
    pub complaints: Complaints,
    /// Whom to connect to once more.
    pub returns: Returns,
    /// Does this side hear of nobody's end, as before Linux 6.5 of who is of a process-id namespace that is not seen?
    #[cfg(test)]
    pub is_blind: AtomicBool,
    /// Does it trust nobody, as if all were of other users?
    #[cfg(test)]
    pub is_wary: AtomicBool,
}

impl Neighbour {
    /// By which number its connection is found; its process by the next.
    fn source(&self) -> u64 {
        FIRST_SOURCE + 2 * self.id
    }

    /// Says something now. *Errors*: what hinders.
    pub fn send(&self, message: &Message, memory: Option<&Memory>) -> std::result::Result<(), SendError> {
        let fd = memory.map(Memory::fd);
        self.connection.send(message, fd.as_slice())
    }

    pub fn bell(&self) -> Option<Arc<Bell>> {
        Some(Arc::clone(&self.greeted.get()?.bell))
    }

    pub fn prefix(&self) -> Option<GuidPrefix> {
        Some(self.greeted.get()?.prefix)
    }

    /// Who it is, as it says or as this side has looked for it.
    fn name(&self) -> Option<GuidPrefix> {
        self.prefix().or(self.expected)
    }

    fn is(&self, prefix: GuidPrefix) -> bool {
        self.name() == Some(prefix)
    }

    /// May it use memory again that is held of its lanes here, once the connection has ended? Who could not hear of the end of
    /// this process does; the two of nested process-id namespaces may each see another of the two.
    pub fn gives_up_with_connection(&self) -> bool {
        !self.hears_end || self.greeted.get().is_none_or(|greeted| !greeted.hears_end)
    }

    pub fn has_parted(&self) -> bool {
        self.parted.load(Ordering::SeqCst)
    }

    /// May its readers look at lanes of ours, as far as is known? One whose program was replaced has not said that they do not.
    fn may_read(&self) -> bool {
        self.feedbacks.lock().iter().filter_map(Weak::upgrade).any(|feedback| !feedback.has_ended())
    }

    /// Do they hold anything?
    #[cfg(test)]
    pub fn holds_any(&self) -> bool {
        self.feedbacks.lock().iter().filter_map(Weak::upgrade).any(|feedback| feedback.holds_any())
    }

    /// What its readers hold of lanes of ours is nobody's any more.
    fn abandon(&self) {
        self.feedbacks.lock().iter().filter_map(Weak::upgrade).for_each(|feedback| feedback.abandon());
    }

    /// Has it connected and not said hello?
    pub fn is_stranger(&self) -> bool {
        self.greeted.get().is_none() && !self.has_parted()
    }

    /// Wakes it. Somebody who is not trusted could make the eventfd wait, so that one gets a packet. `false`: there was no
    /// room for that.
    pub fn ring(&self) -> bool {
        fail::point(Point::BeforeRing);
        let is_out = match self.greeted.get() {
            Some(greeted) if self.trusted => {
                greeted.waker.ring();
                true
            }
            _ => {
                let sent = self.connection.send(&Message::Ring, &[]);
                !matches!(sent, Err(SendError::Full | SendError::Crowded))
            }
        };
        fail::point(Point::Rung);
        is_out
    }

    /// `false`: with those that its readers have left behind it has as many as a neighbour may.
    pub fn note_feedback(&self, feedback: &Arc<Feedback>) -> bool {
        let mut feedbacks = self.feedbacks.lock();
        feedbacks.retain(|known| known.strong_count() > 0);
        let has_room = feedbacks.len() < PAIRS;
        if has_room {
            feedbacks.push(Arc::downgrade(feedback));
        }
        has_room
    }
}

impl Neighbours {
    /// The rendezvous of a participant, unless it wants none or the machine has none.
    pub fn open(config: &ExecutorConfig, prefix: GuidPrefix) -> Neighbours {
        let mut neighbours = Neighbours::default();
        if config.local {
            match Own::open(prefix, config.local_directory.clone(), config.local_groups.clone()) {
                Ok(own) => neighbours.own = Some(own),
                Err(error) => log::warn!("no shared memory with other processes: {error}"),
            }
        }
        neighbours
    }

    pub fn fd(&self, call: impl FnOnce(BorrowedFd<'_>)) {
        if let Some(own) = &self.own {
            call(own.listener.lock().fd());
        }
    }

    /// Does this side hear when this process ends?
    fn hear_end_of(&self, peer: &Peer) -> bool {
        #[cfg(test)]
        if self.is_blind.load(Ordering::Relaxed) {
            return false;
        }
        peer.pidfd().is_some()
    }

    /// Is who was let in so trusted?
    fn trusts(&self, how: Admitted) -> bool {
        #[cfg(test)]
        if self.is_wary.load(Ordering::Relaxed) {
            return false;
        }
        how == Admitted::Trusted
    }

    /// The neighbour of a prefix that has said hello.
    pub fn find(&self, prefix: GuidPrefix) -> Option<Arc<Neighbour>> {
        let is_it = |one: &&Arc<Neighbour>| one.prefix() == Some(prefix) && !one.has_parted();
        self.known.lock().values().find(is_it).cloned()
    }

    /// How far a neighbour has come, if this side has met it: for people.
    pub fn state(&self, prefix: GuidPrefix) -> Option<&'static str> {
        let known = self.known.lock();
        let met = known.values().filter(|one| one.is(prefix));
        let state = |one: &Arc<Neighbour>| match (one.has_parted(), one.prefix()) {
            (true, _) => ENDED,
            (false, None) => "it has not said hello yet",
            (false, Some(_)) => NOT_JOINED,
        };
        met.map(state).next_back()
    }

    /// Tells the log and who asks for the path why no memory is shared.
    pub fn tell_why(&self, who: Who, why: &str) {
        self.reasons.note(who, why.to_owned());
        self.complain(Some(who), why);
    }

    /// The same of a participant, if it is known which one it is, of a process, which the log names then: it may have many.
    fn tell_why_of(&self, prefix: Option<GuidPrefix>, pid: Option<u32>, why: &str) {
        let (participant, process) = (prefix.map(Who::Participant), pid.map(Who::Process));
        if let Some(who) = participant.or(process) {
            self.reasons.note(who, why.to_owned());
        }
        self.complain(process.or(participant), why);
    }

    pub fn take_wanted(&self, prefix: GuidPrefix) -> BTreeSet<Pair> {
        self.wanted.lock().remove(&prefix).unwrap_or_default()
    }

    fn want(&self, writer: Guid, reader: Guid) {
        self.wanted.lock().entry(reader.prefix).or_default().insert((writer, reader));
    }

    /// The pair is no longer matched. Returns who is to be told.
    pub fn end(&self, writer: Guid, reader: Guid, other: GuidPrefix) -> Option<Arc<Neighbour>> {
        let mut wanted = self.wanted.lock();
        if let Some(pairs) = wanted.get_mut(&reader.prefix) {
            pairs.remove(&(writer, reader));
            if pairs.is_empty() {
                wanted.remove(&reader.prefix);
            }
        }
        drop(wanted);
        self.reasons.forget(Who::Pair(writer, reader));
        let neighbour = self.find(other)?;
        neighbour.pairs.remove((writer, reader)).then_some(neighbour)
    }

    pub fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// The lane of a local writer is offered to a neighbour's reader when that greets, if they are matched. With the token,
    /// as who unmatches them forgets that after it.
    pub fn want(&self, writer: Guid, reader: Guid) {
        self.peek(|core| {
            if is_matched(&core.participant, writer, reader) {
                self.neighbours.want(writer, reader);
            }
        });
    }

    /// A participant of this host has matched: connects to it, if that is ours to do.
    pub fn meet(&self, prefix: GuidPrefix) {
        let Some(own) = &self.neighbours.own else { return };
        let ours = self.prefix;
        let is_met = |one: &Arc<Neighbour>| one.is(prefix) && !one.has_parted();
        if prefix <= ours || self.neighbours.known.lock().values().any(is_met) {
            return;
        }
        self.drop_parted(prefix);
        self.sweep();
        match Connection::connect(prefix, own.directory.as_deref()) {
            Ok(connection) => self.admit(connection, Some(prefix)),
            // It is there by discovery: UDP does until its next match, or until it is less busy.
            Err(error @ (ConnectError::Nobody | ConnectError::Busy | ConnectError::Os(_))) => {
                let who = Who::Participant(prefix);
                self.neighbours.reasons.note(who, error.to_string());
                self.neighbours.doubt();
                if error != ConnectError::Nobody {
                    self.neighbours.complain(Some(who), &error.to_string());
                    self.return_to(prefix, None);
                }
            }
        }
    }

    /// Looks who is at the other end and says hello.
    fn admit(&self, connection: Connection, expected: Option<GuidPrefix>) {
        let Some(own) = &self.neighbours.own else { return };
        let admitted =
            connection.peer().map_err(|error| (None, error.to_string())).and_then(|peer| {
                match own.policy.admit(&peer) {
                    Ok(how) => Ok((peer, how)),
                    Err(why) => Err((peer.pid, why.to_string())),
                }
            });
        let (peer, how) = match admitted {
            Ok(admitted) => admitted,
            Err((pid, why)) => {
                self.neighbours.doubt();
                return self.neighbours.tell_why_of(expected, pid, &why);
            }
        };
        let pid = peer.pid;
        let again = |why: &str| {
            self.neighbours.doubt();
            self.neighbours.tell_why_of(expected, pid, why);
            if let Some(prefix) = expected {
                self.return_to(prefix, None);
            }
        };
        let is_full = self.neighbours.known.lock().len() >= MAX_CONNECTIONS;
        if is_full || !self.neighbours.admits_stranger(peer.uid) {
            return again("as many as may have connected, or of one user as may without a greeting");
        }
        let id = self.neighbours.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let hears_end = self.neighbours.hear_end_of(&peer);
        let neighbour = Arc::new(Neighbour {
            id,
            connection,
            peer,
            since: monotonic_now(),
            trusted: self.neighbours.trusts(how),
            hears_end,
            parted: AtomicBool::new(false),
            expected,
            greeted: OnceLock::new(),
            unsent: Mutex::default(),
            owed_hello: AtomicBool::new(false),
            feedbacks: Mutex::default(),
            pairs: Pairs::default(),
        });
        let watched = self.watch_fd(neighbour.connection.fd(), neighbour.source())
            && neighbour.peer.pidfd().is_none_or(|fd| self.watch_fd(fd, neighbour.source() + 1));
        fail::point(Point::BeforeHello);
        if !watched {
            return again("it cannot be watched: raise the limit of watches (fs.epoll.max_user_watches)");
        }
        neighbour.connection.welcome();
        if !self.greet(&neighbour) {
            return again(NOT_GREETED);
        }
        fail::point(Point::HelloSent);
        if let Some(prefix) = expected {
            self.neighbours.reasons.forget(Who::Participant(prefix));
        }
        self.neighbours.known.lock().insert(id, neighbour);
        self.neighbours.time_strangers();
    }

    /// Says hello. Who has not looked yet who this is takes no descriptors: it is greeted when its own hello has come,
    /// which it sends once it has. Its own is not refused, as it was welcome before this one was sent.
    ///
    /// `false`: there are no descriptors left, or as many on their way as may be.
    fn greet(&self, neighbour: &Neighbour) -> bool {
        let Some(own) = &self.neighbours.own else { return false };
        // Who is not trusted rings by a message, and could take rings back by the waker: it gets one that nobody listens to.
        let Ok(nobodys) = Waker::new() else { return false };
        let waker = if neighbour.trusted { self.wake_fd() } else { nobodys.fd() };
        let hello =
            Message::Hello { host_id: own.host_id, prefix: self.prefix, hears_end: neighbour.hears_end };
        // If it has ended already, it may still have said who it was.
        let sent = neighbour.connection.send(&hello, &[own.bell.fd(), waker]);
        neighbour.owed_hello.store(sent == Err(SendError::NotWelcome), Ordering::Relaxed);
        sent != Err(SendError::Crowded)
    }

    fn watch_fd(&self, fd: BorrowedFd<'_>, source: u64) -> bool {
        self.watch.add(fd, source).is_ok()
    }

    /// Handles what a wait has found of the neighbours. Called without the token.
    pub fn hear(&self, source: u64) {
        let Some(number) = source.checked_sub(FIRST_SOURCE) else { return };
        if number == 0 {
            return self.accept();
        }
        let neighbour = self.neighbours.known.lock().get(&(number / 2)).cloned();
        let Some(neighbour) = neighbour else { return };
        self.say_unsent(&neighbour);
        self.listen(&neighbour);
        if number % 2 == 1 {
            self.bury(&neighbour);
        }
    }

    /// Says something of a pair, with the memory that it is about: now, or in its turn when there is room. `false`: the
    /// other end has gone, or has not listened for long.
    pub fn say(&self, to: &Neighbour, message: &Message, memory: Option<&Memory>) -> bool {
        let mut unsent = to.unsent.lock();
        if unsent.is_empty() {
            match to.send(message, memory) {
                Err(SendError::Full) => {
                    if !self.watch.await_room(to.connection.fd(), to.source(), true) {
                        return false;
                    }
                }
                Err(SendError::Crowded) => self.say_again(),
                sent => return sent.is_ok(),
            }
        }
        let has_room = unsent.len() < UNSENT;
        if has_room {
            unsent.push_back((*message, memory.cloned()));
        }
        has_room
    }

    /// Says what had no room before, as far as there is some now.
    pub fn say_unsent(&self, to: &Neighbour) {
        let mut unsent = to.unsent.lock();
        if unsent.is_empty() {
            return;
        }
        while let Some((message, memory)) = unsent.front() {
            match to.send(message, memory.as_ref()) {
                Err(SendError::Full) => {
                    self.watch.await_room(to.connection.fd(), to.source(), true);
                    return;
                }
                // The socket is writable, so nothing but the clock tells when to try again.
                Err(SendError::Crowded) => {
                    self.say_again();
                    break;
                }
                _ => drop(unsent.pop_front()),
            }
        }
        self.watch.await_room(to.connection.fd(), to.source(), false);
    }

    pub fn listen(&self, neighbour: &Arc<Neighbour>) {
        for _ in 0..MESSAGES {
            if neighbour.has_parted() {
                return;
            }
            let received = neighbour.connection.receive();
            // What is heard may have left no room for a ring.
            if matches!(received, Received::Message(..) | Received::Cut(_)) {
                self.note_rung();
            }
            match received {
                Received::Empty => return,
                Received::Message(message, fds) => {
                    if !self.on_message(neighbour, message, fds) {
                        self.neighbours.doubt();
                        return self.part(neighbour);
                    }
                }
                Received::Cut(message) => {
                    if !self.on_cut(neighbour, &message) {
                        return self.part(neighbour);
                    }
                }
                Received::Gone => return self.part(neighbour),
                Received::Hostile(why) => {
                    self.neighbours.doubt();
                    self.neighbours.tell_why_of(neighbour.name(), neighbour.peer.pid, &why.to_string());
                    return self.part(neighbour);
                }
            }
            self.hear_users_between();
        }
    }

    fn accept(&self) {
        let Some(own) = &self.neighbours.own else { return };
        self.sweep();
        for _ in 0..MESSAGES {
            let accepted = own.listener.lock().accept();
            match accepted {
                Ok(Some(connection)) => self.admit(connection, None),
                Ok(None) => return,
                Err(error) => return self.neighbours.complain(None, &error.to_string()),
            }
            self.hear_users_between();
        }
    }

    /// Handles a message. `false`: a peer that keeps to the rules does not send it.
    fn on_message(&self, from: &Arc<Neighbour>, message: Message, mut fds: Vec<OwnedFd>) -> bool {
        let is_of = |guid: Guid| from.prefix() == Some(guid.prefix);
        let ours = |guid: Guid| guid.prefix == self.prefix;
        match message {
            Message::Hello { host_id, prefix, hears_end } => {
                return self.on_hello(from, host_id, (prefix, hears_end), fds);
            }
            // That is noted of all that is heard.
            Message::Ring => {}
            Message::Offer { writer, reader, number } => {
                let Some(lane) = fds.pop().filter(|_| is_of(writer) && ours(reader)) else { return false };
                return self.hear_offer(from, (writer, reader), number, lane);
            }
            Message::Accept { writer, reader, number } => {
                let Some(feedback) = fds.pop().filter(|_| ours(writer) && is_of(reader)) else {
                    return false;
                };
                if from.pairs.begin((writer, reader), number) {
                    let region = match map(feedback, PAGE as u64) {
                        Err(why) if why.is_own_want() => {
                            self.refuse_feedback(from, (writer, reader), &why.to_string());
                            return true;
                        }
                        mapped => mapped,
                    };
                    let Some(feedback) = region.ok().and_then(Feedback::new) else { return false };
                    self.on_accept(from, (writer, reader), number, feedback);
                }
            }
            Message::Begin { writer, reader, number } => {
                if !is_of(writer) || !ours(reader) {
                    return false;
                }
                if let Some((lane, feedback)) = from.pairs.attach((writer, reader), number) {
                    self.on_begin(from, (writer, reader), lane, feedback);
                }
            }
            Message::Reading { writer, reader, from: number } => {
                if !ours(writer) || !is_of(reader) {
                    return false;
                }
                if from.pairs.is((writer, reader), |stage| matches!(stage, Stage::Begun)) {
                    self.on_reading(writer, reader, number);
                }
            }
            Message::Refuse { writer, reader, reason } => {
                if self.on_end(from, (writer, reader), Some(reason)) && ours(writer) && may_pass(reason) {
                    self.offer_later(writer, reader);
                }
            }
            Message::End { writer, reader } => {
                // Its reader may have lost a match that our writer knows of still, and find it again.
                if self.on_end(from, (writer, reader), None) && ours(writer) {
                    self.want(writer, reader);
                    self.return_to(reader.prefix, Some(from.since));
                }
            }
        }
        true
    }

    /// A neighbour's writer offers its lane. `false`: it is none.
    fn hear_offer(&self, from: &Arc<Neighbour>, (writer, reader): Pair, number: u64, lane: OwnedFd) -> bool {
        if self.peek(|core| core.participant.core().local_reader(reader).is_none()) {
            // It has gone, of which the writer hears by discovery, or was never there.
            return true;
        }
        let mapped = map(lane, MAX_LANE);
        let is_own_want = mapped.as_ref().is_err_and(Refusal::is_own_want);
        let mapped = mapped.map_err(|why| why.to_string());
        match mapped.and_then(|region| Lane::open(region).map_err(|why| why.to_string())) {
            Ok(lane) => self.on_offer(from, (writer, reader), number, Arc::new(lane)),
            Err(why) if is_own_want => self.refuse_lane(from, (writer, reader), NO_ADDRESSES, &why),
            Err(why) => {
                self.neighbours.tell_why(Who::Participant(writer.prefix), &why);
                return false;
            }
        }
        true
    }

    /// The other end no longer uses a lane, or refuses it. Returns whether the pair was joined, or about to be.
    fn on_end(&self, from: &Neighbour, (writer, reader): Pair, refused: Option<u8>) -> bool {
        let was_there = from.pairs.remove((writer, reader));
        match refused {
            Some(NO_ROOM) => self.on_no_room(from, (writer, reader), was_there),
            Some(reason) if was_there => {
                self.neighbours.tell_why(Who::Pair(writer, reader), &why_refused(reason));
            }
            _ => {}
        }
        if was_there {
            self.leave_lane(writer, reader);
        }
        was_there
    }

    /// A message has come without its descriptors, for which there is no room: what is joined goes on, and what was to be is
    /// offered again. `false`: there is nothing to go on with.
    fn on_cut(&self, from: &Arc<Neighbour>, message: &Message) -> bool {
        let is_of = |guid: Guid| from.prefix() == Some(guid.prefix);
        let ours = |guid: Guid| guid.prefix == self.prefix;
        match *message {
            Message::Offer { writer, reader, .. } if is_of(writer) && ours(reader) => {
                self.refuse_lane(from, (writer, reader), NO_DESCRIPTORS, NOT_PASSED);
            }
            Message::Accept { writer, reader, number } if ours(writer) && is_of(reader) => {
                if from.pairs.begin((writer, reader), number) {
                    self.refuse_feedback(from, (writer, reader), NOT_PASSED);
                    self.offer_later(writer, reader);
                }
            }
            _ => {
                self.neighbours.doubt();
                self.neighbours.tell_why_of(from.name(), from.peer.pid, NOT_PASSED);
                return false;
            }
        }
        true
    }

    fn on_hello(
        &self,
        from: &Arc<Neighbour>,
        host_id: [u8; 16],
        (prefix, hears_end): (GuidPrefix, bool),
        mut fds: Vec<OwnedFd>,
    ) -> bool {
        if self.neighbours.own.as_ref().is_none_or(|own| own.host_id != host_id) {
            return false;
        }
        let (Some(waker), Some(bell)) = (fds.pop(), fds.pop()) else { return false };
        let Ok(waker) = Waker::from_fd(waker) else { return false };
        let who = from.peer.pid.map_or(Who::Participant(prefix), Who::Process);
        let bell =
            map(bell, PAGE as u64).map_err(|why| self.neighbours.complain(Some(who), &why.to_string()));
        let bell = bell.ok().and_then(Bell::new).filter(|_| self.may_greet(from, prefix));
        let Some(bell) = bell else { return false };
        let greeted = Greeted { prefix, hears_end, bell: Arc::new(bell), waker };
        if from.greeted.set(greeted).is_err() {
            return false;
        }
        self.neighbours.time_strangers();
        self.neighbours.reasons.forget(Who::Participant(prefix));
        if let Some(pid) = from.peer.pid {
            self.neighbours.reasons.forget(Who::Process(pid));
        }
        self.drop_parted(prefix);
        if from.owed_hello.load(Ordering::Relaxed) && !self.greet(from) {
            self.neighbours.tell_why(Who::Participant(prefix), NOT_GREETED);
            return false;
        }
        self.offer_wanted(from, prefix);
        true
    }

    /// The connection has ended, whatever became of the process: nothing of it is used any more. Whether
    /// the process has ended too is heard by its pidfd.
    pub fn part(&self, neighbour: &Arc<Neighbour>) {
        if neighbour.parted.swap(true, Ordering::SeqCst) {
            return;
        }
        self.neighbours.time_strangers();
        neighbour.unsent.lock().clear();
        self.watch.remove(neighbour.connection.fd());
        // A peer that is not told leaves samples to lanes that nobody reads any more.
        neighbour.connection.end();
        for (writer, reader) in neighbour.pairs.take_all() {
            self.leave_lane(writer, reader);
            // It may be met again.
            self.want(writer, reader);
            self.hear_users_between();
        }
        if let Some(prefix) = neighbour.expected {
            self.return_to(prefix, Some(neighbour.since));
        }
        if !neighbour.hears_end {
            // Nothing else tells of the end of its process, whose readers would hold their slots for ever.
            neighbour.abandon();
        }
        if !neighbour.hears_end || neighbour.name().is_none() {
            self.drop_neighbour(neighbour);
        }
        if neighbour.peer.has_ended() {
            self.forget_process(neighbour);
        }
    }

    /// Is the participant known by discovery?
    pub fn is_there(&self, prefix: GuidPrefix) -> bool {
        self.peek(|core| core.participant.core().database().peer(prefix).is_some())
    }

    /// Drops those that have parted and whose participants are no longer known: the process lives on. While it may look at
    /// samples of ours, its end is still to be heard.
    fn sweep(&self) {
        let known = self.neighbours.known.lock();
        let parted: Vec<_> = known.values().filter(|one| one.has_parted()).cloned().collect();
        drop(known);
        for one in parted {
            let name = one.name();
            if !name.is_some_and(|prefix| self.is_there(prefix)) && !one.may_read() {
                self.drop_neighbour(&one);
            }
        }
    }

    /// Those of a participant that have parted make room for its next connection. While it may look at samples of ours, its
    /// end is still to be heard.
    fn drop_parted(&self, prefix: GuidPrefix) {
        let known = self.neighbours.known.lock();
        let parted: Vec<_> =
            known.values().filter(|one| one.is(prefix) && one.has_parted()).cloned().collect();
        drop(known);
        parted.iter().filter(|one| !one.may_read()).for_each(|one| self.drop_neighbour(one));
    }

    fn drop_neighbour(&self, neighbour: &Neighbour) {
        if let Some(pidfd) = neighbour.peer.pidfd() {
            self.watch.remove(pidfd);
        }
        self.neighbours.known.lock().remove(&neighbour.id);
    }

    /// The process has ended: its participant is forgotten at once, not when its lease runs out.
    fn bury(&self, neighbour: &Arc<Neighbour>) {
        self.part(neighbour);
        self.drop_neighbour(neighbour);
        self.forget_process(neighbour);
    }

    fn forget_process(&self, neighbour: &Neighbour) {
        neighbour.abandon();
        if let Some(prefix) = neighbour.name().filter(|_| neighbour.trusted) {
            self.with(|participant, now| participant.forget_participant(now, prefix));
        }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.watch.waker()
    }
}
