//! The loop: who connects, who says something, who has gone, who is late.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use log::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use taut_ethernet::{BARE_SHIFT, UDP_SHIFT, group};
use taut_port_udp::DEFAULT_GROUP;
use taut_port_xdp::netd::{CROWDED, Layout, Message, Peer, Received, namespace, namespace_of, peer};
use taut_xdp::{AttachMode, BindMode, Error, Handover, Interface, Link, Membership, Mode, Program, Umem};

use crate::client::{Client, End, Passed, Proof, Share, State, TO_ASK, TO_BIND, ports};
use crate::interfaces::{self, Addresses, Interfaces};
use crate::listener::Listener;
use crate::pace::Paces;
use crate::places::places;
use crate::sockets::Sockets;
use crate::tally::{Counts, Tally};
use crate::undertaker::Undertaker;
use crate::{Policy, Wanted};

/// Clients at once. Each is up to three descriptors, beside those that wait to be closed; lower and a large machine is
/// refused, higher and the limit of open files is met first where the system's is low (`ulimit -Hn`).
const MAX_CLIENTS: usize = 256;
/// Clients of one user at once, so that one user's do not take the places of all. Lower and a user with a queue for each
/// of many processes is refused.
pub(crate) const MAX_OF_USER: usize = 64;
/// Who connects is accepted in groups of so many, between which all others are served.
const ACCEPTED: usize = 16;
/// How long until a queue that is taken is tried again. Lower and the tries take the processor from the kernel's
/// clean-up, higher and the queue is had later.
const AGAIN: Duration = Duration::from_millis(5);
/// How often it is looked whether the sockets still show what they did, and whether the interfaces still have the
/// addresses and the program. Lower costs a few calls more, higher leaves a port that was given up with who had it for longer.
const LOOK: Duration = Duration::from_secs(1);

/// Serves participants.
pub struct Server {
    listener: Listener,
    policy: Policy,
    namespace: u64,
    interfaces: Interfaces,
    clients: Vec<Client>,
    paces: Paces,
    tally: Tally,
    undertaker: Undertaker,
    look_at: Instant,
}

/// What a look around has found, of what could be read.
#[derive(Default)]
struct Look {
    is_any: bool,
    sockets: Option<Sockets>,
    addresses: Option<Addresses>,
}

/// What a participant wants.
struct Take {
    interface: String,
    layer: Mode,
    queues: Vec<u32>,
    attach: Option<AttachMode>,
    bind: Option<BindMode>,
}

impl Server {
    /// Listens at a path, for participants of this thread's network namespace.
    ///
    /// *Errors*: one sentence with the remedy: no privilege, another netd, a place that cannot be written.
    ///
    /// ```no_run
    /// let policy = taut_netd::Policy::parse("", "netd.toml")?;
    /// let mut server = taut_netd::Server::open(policy, taut_netd::SOCKET.as_ref())?;
    /// loop {
    ///     server.turn(std::time::Duration::from_secs(1))?;
    /// }
    /// # #[allow(unreachable_code)]
    /// # Ok::<(), String>(())
    /// ```
    pub fn open(policy: Policy, path: &Path) -> Result<Server, String> {
        raise_file_limit();
        // Whoever may do this may do the rest, and is told before anybody waits. It is for no interface.
        drop(Program::load(Mode::L3, 0).map_err(|error| error.without_netd().to_string())?);
        let namespace =
            namespace().map_err(|errno| format!("SO_NETNS_COOKIE: {errno}; Linux 6.4 is needed"))?;
        let now = Instant::now();
        Ok(Server {
            listener: Listener::bind(path)?,
            policy,
            namespace,
            interfaces: Interfaces::default(),
            clients: Vec::new(),
            paces: Paces::default(),
            tally: Tally::new(now),
            undertaker: Undertaker::default(),
            look_at: now + LOOK,
        })
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.tally.counts
    }

    /// Goes by another policy from now on. Participants that it allows keep what they have, the longest first where it
    /// allows fewer; all others lose it and are told why.
    ///
    /// *Cost*: some system calls for each participant.
    ///
    /// ```no_run
    /// let policy = |text| taut_netd::Policy::parse(text, "netd.toml");
    /// let mut server = taut_netd::Server::open(policy("")?, taut_netd::SOCKET.as_ref())?;
    /// server.set_policy(policy("[[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [0]\ndomains = [0]")?);
    /// # Ok::<(), String>(())
    /// ```
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        let mut eldest: Vec<usize> = (0..self.clients.len()).collect();
        let since = |at: &usize| self.clients[*at].share().map(|share| share.since);
        eldest.retain(|at| since(at).is_some());
        eldest.sort_by_key(since);
        let fitting: Vec<Result<Vec<usize>, String>> = eldest.iter().map(|at| self.fitting(*at)).collect();
        let rules: Vec<Vec<usize>> = fitting.iter().map(|of| of.clone().unwrap_or_default()).collect();
        let places = places(&rules, |rule| self.policy.most(rule));
        let mut lost = Vec::new();
        for ((at, fitting), place) in eldest.into_iter().zip(fitting).zip(places) {
            match (self.clients[at].share_mut(), place) {
                (Some(share), Some(rule)) => share.rule = rule,
                _ => lost.push((at, fitting.err().unwrap_or_else(|| self.full(at)))),
            }
        }
        // From the last, so that those before keep their places when one goes.
        lost.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let now = Instant::now();
        for (at, why) in lost {
            let end = self.clients[at].revoke(why);
            self.drop_client(at, end, now);
        }
        self.keep_used();
    }

    /// Waits until there is something to do, at most for so long, and does it: a message of each client at most.
    ///
    /// *Errors*: the system does not let it wait.
    pub fn turn(&mut self, at_most: Duration) -> Result<(), String> {
        let (somebody, mut ready) = self.wait(at_most).map_err(|errno| format!("poll: {errno}"))?;
        let now = Instant::now();
        let look = self.look(now);
        // What one who has gone had is free before another one asks for it. From the last, so that those before keep
        // their places when one goes.
        for at in
            (0..self.clients.len()).rev().filter(|at| ready[*at].contains(PollFlags::HUP)).collect::<Vec<_>>()
        {
            ready.swap_remove(at);
            self.drop_client(at, End::Gone, now);
        }
        for at in (0..self.clients.len()).rev() {
            let served = if ready[at].is_empty() { Ok(()) } else { self.serve(at, now) };
            if let Err(end) = served.and_then(|()| self.go_on(at, now, &look)) {
                self.drop_client(at, end, now);
            }
        }
        if somebody {
            (0..ACCEPTED).take_while(|_| self.accept(now)).count();
        }
        self.keep_used();
        Ok(())
    }

    /// Detaches the program of interfaces that nobody has a queue of.
    fn keep_used(&mut self) {
        let used: Vec<u64> = self.shares().map(|share| share.interface).collect();
        self.interfaces.keep(|id| used.contains(&id));
    }

    /// Looks around, if it is time to and somebody has a queue.
    fn look(&mut self, now: Instant) -> Look {
        if now < self.look_at {
            return Look::default();
        }
        self.look_at = now + LOOK;
        let has = |layer| {
            let is_of = |client: &Client| matches!(&client.state, State::Has(share) if share.layer == layer);
            self.clients.iter().any(is_of)
        };
        let (over_ip, without_ip) = (has(Mode::L3), has(Mode::L2));
        let mut look = Look { is_any: over_ip || without_ip, ..Look::default() };
        // Without IP nobody has shown a port, or receives at an address.
        if over_ip {
            look.sockets = self.told(now, Sockets::read());
            look.addresses = self.told(now, Addresses::read());
        }
        look
    }

    /// Whether somebody connects, and what there is of each client; of who asks too often only whether it has gone.
    fn wait(&mut self, at_most: Duration) -> Result<(bool, Vec<PollFlags>), Errno> {
        let waits = self.clients.iter().any(|client| matches!(client.state, State::Waits { .. }));
        let at_most = match (waits, self.clients.is_empty()) {
            (true, _) => at_most.min(AGAIN),
            (false, false) => at_most.min(LOOK),
            (false, true) => at_most,
        };
        let now = Instant::now();
        let pause = |client: &Client| self.paces.wait(client.peer.uid, now);
        let at_most = self.clients.iter().filter_map(pause).fold(at_most, Duration::min);
        let limit = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        let events = |client: &Client| match pause(client) {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut fds: Vec<PollFd<'_>> = self
            .clients
            .iter()
            .map(|client| PollFd::from_borrowed_fd(client.connection.fd(), events(client)))
            .collect();
        fds.extend(self.listener.fd(now).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        let somebody = ready.split_off(self.clients.len()).iter().any(|events| !events.is_empty());
        Ok((somebody, ready))
    }

    /// Takes in one who has connected, if there is one.
    fn accept(&mut self, now: Instant) -> bool {
        let connection = match self.listener.accept(now) {
            Ok(Some(connection)) => connection,
            Ok(None) => return false,
            Err(errno) => {
                self.tally.tell(
                    now,
                    Level::Warn,
                    &format!("accept: {errno}; raise the limit of open files (ulimit -Hn)"),
                );
                return false;
            }
        };
        self.tally.counts.connected += 1;
        let Ok(peer) = peer(connection.fd()) else { return true };
        let of_user = self.clients.iter().filter(|client| client.peer.uid == peer.uid).count();
        let welcome = self.policy.knows(&peer).and_then(|()| {
            self.undertaker.is_free(peer.uid)?;
            if self.clients.len() >= MAX_CLIENTS || of_user >= MAX_OF_USER {
                return Err(format!(
                    "netd serves {MAX_CLIENTS} and {MAX_OF_USER} of a user at most: end some"
                ));
            }
            Ok(())
        });
        let client = Client { connection, peer, state: State::New(now) };
        match welcome.map_err(|why| client.refuse(why)).and_then(|()| client.welcome()) {
            Ok(()) => self.clients.push(client),
            // It could pass nothing: to close it takes no time.
            Err(end) => self.tell_of_end(&client, &end, now),
        }
        true
    }

    /// Does what a client wants.
    fn serve(&mut self, at: usize, now: Instant) -> Result<(), End> {
        let Some(client) = self.clients.get(at) else { return Ok(()) };
        if self.paces.wait(client.peer.uid, now).is_some() {
            return Ok(());
        }
        // What is not received is not this process's: those who have connected before may bring as much each.
        self.undertaker.is_free(client.peer.uid).map_err(|why| client.refuse(why))?;
        let (message, fds) = match client.connection.receive() {
            Received::Empty => return Ok(()),
            Received::Gone => return Err(End::Gone),
            Received::Crowded(fds) => {
                self.undertaker.close(client.peer.uid, fds);
                return Err(client.refuse(format!("of netd: {CROWDED}")));
            }
            Received::Hostile(what, fds) => {
                self.undertaker.close(client.peer.uid, fds);
                return Err(End::Hostile(what));
            }
            Received::Message(message, fds) => (message, fds),
        };
        match (message, &client.state) {
            (Message::Take { interface, layer, queues, attach, bind }, State::New(_)) => {
                self.take(at, &Take { interface, layer, queues, attach, bind }, fds, now)
            }
            (Message::Receive { ends }, State::Has(share)) if share.layer == Mode::L3 => {
                self.receive(at, &ends, now)
            }
            (message, _) => {
                self.undertaker.close(client.peer.uid, fds);
                Err(End::Hostile(format!("{} out of turn", name(&message))))
            }
        }
    }

    /// Begins to give a client what it wants.
    fn take(&mut self, at: usize, take: &Take, fds: Vec<OwnedFd>, now: Instant) -> Result<(), End> {
        let (mut passed, mut others) = (Vec::new(), Vec::new());
        for fd in fds {
            match Passed::of(fd) {
                Ok(socket) => passed.push(socket),
                Err(other) => others.push(other),
            }
        }
        let Some(client) = self.clients.get(at) else { return Ok(()) };
        if !others.is_empty() {
            self.undertaker.close(client.peer.uid, others);
            return Err(End::Hostile("a descriptor that is no socket of UDP".into()));
        }
        self.paces.count(client.peer.uid, now);
        let shown = match take.layer {
            Mode::L3 => self.shown(passed),
            Mode::L2 => self.is_here(client).map(|()| Vec::new()),
        };
        let admitted = shown.and_then(|proofs| Ok((self.admit(client, take, &proofs)?, proofs)));
        let prepared = admitted.and_then(|(rule, proofs)| self.set_up(take, (rule, now), proofs));
        let Some(client) = self.clients.get_mut(at) else { return Ok(()) };
        match prepared {
            Ok((share, layout, handovers)) => {
                client.state = State::Waits { share, layout, handovers, bound: 0 };
                Ok(())
            }
            Err(why) => Err(client.refuse(why)),
        }
    }

    /// Is a client in this network namespace? Sockets show it of those over IP, the connection of those without.
    fn is_here(&self, client: &Client) -> Result<(), String> {
        let of = namespace_of(client.connection.fd()).map_err(|errno| format!("SO_NETNS_COOKIE: {errno}"))?;
        if of == self.namespace {
            return Ok(());
        }
        Err("the participant is in another network namespace than netd: start netd in that one".into())
    }

    /// What sockets show that were passed.
    fn shown(&self, passed: Vec<Passed>) -> Result<Vec<Proof>, String> {
        if passed.iter().any(|socket| socket.known.namespace != self.namespace) {
            return Err("the socket is of another network namespace than netd: start netd in that one".into());
        }
        let cookies: Vec<u64> = passed.iter().map(|socket| socket.known.cookie).collect();
        let sockets = Sockets::read_with(&cookies)?;
        passed.into_iter().map(|socket| Proof::of(socket, &sockets)).collect()
    }

    /// Is it allowed, and by which rule?
    fn admit(&self, client: &Client, take: &Take, proofs: &[Proof]) -> Result<usize, String> {
        let ports = ports(proofs);
        let (interface, names) = (&take.interface, interfaces::names(&take.interface));
        let (layer, queues) = (take.layer, take.queues.as_slice());
        let wanted = Wanted { interface, names: &names, layer, queues, ports: &ports };
        let has = |rule| self.shares().filter(|share| share.rule == rule).count() as u32;
        self.policy.admit(&client.peer, &wanted, has)
    }

    /// By which rules is a client allowed what it has?
    fn fitting(&self, at: usize) -> Result<Vec<usize>, String> {
        self.held_against(at, |policy, peer, wanted| policy.fitting(peer, wanted))
    }

    /// Why a client is not allowed what it has, where others are by all of its rules.
    fn full(&self, at: usize) -> String {
        self.held_against(at, |policy, peer, wanted| policy.full(peer, wanted))
    }

    /// Holds what a client has against the rules, of an interface by the names that it has now.
    fn held_against<T>(&self, at: usize, hold: impl FnOnce(&Policy, &Peer, &Wanted<'_>) -> T) -> T {
        let client = &self.clients[at];
        let share = client.share();
        let link = share.and_then(|share| self.interfaces.link(share.interface));
        let of = link.map(Link::interface);
        let names = of.map(|of| interfaces::names_of(of.index)).unwrap_or_default();
        let interface = names.first().or(of.map(|of| &of.name)).map_or("", String::as_str);
        let ports: Vec<u16> = share.map(Share::ports).unwrap_or_default();
        let queues = share.map(|share| share.queues.as_slice()).unwrap_or_default();
        let layer = share.map_or(Mode::L3, |share| share.layer);
        let wanted = Wanted { interface, names: &names, layer, queues, ports: &ports };
        hold(&self.policy, &client.peer, &wanted)
    }

    /// Sets the sockets up.
    fn set_up(
        &mut self,
        take: &Take,
        (rule, since): (usize, Instant),
        proofs: Vec<Proof>,
    ) -> Result<(Share, Layout, Vec<Handover>), String> {
        let interface = Interface::named(&take.interface).map_err(|error| error.to_string())?;
        if let Some(other) = self.has_without_ip(&interface) {
            return Err(format!(
                "{} has {} without IP, where an interface has one participant: end it, choose another interface \
                 (xdp_interface), or stay with UDP (no xdp_interface)",
                who(other),
                take.interface
            ));
        }
        let used: Vec<u64> = self.shares().map(|share| share.interface).collect();
        let id = self.interfaces.open(&interface, take.layer, take.attach, |id| used.contains(&id))?;
        let taken = |queue: &u32| {
            let mut others = self.shares().filter(|share| share.interface == id);
            others.any(|share| share.queues.contains(queue))
        };
        if let Some(queue) = take.queues.iter().find(|queue| taken(queue)) {
            let name = &take.interface;
            return Err(format!(
                "another participant has queue {queue} of {name}: end it, choose another queue (xdp_queues), or stay \
                 with UDP (no xdp_interface)"
            ));
        }
        let link = self.interfaces.link(id).ok_or("the interface has gone: try again")?;
        let layout = Layout::of(interface.mtu);
        let (_groups, handovers) =
            opened(link, &interface, take, &layout).map_err(|error| error.without_netd().to_string())?;
        let share = Share {
            rule,
            since,
            interface: id,
            layer: take.layer,
            queues: take.queues.clone(),
            mtu: interface.mtu,
            proofs,
            ends: Vec::new(),
            wanted: Vec::new(),
            _groups,
        };
        Ok((share, layout, handovers))
    }

    /// Who has an interface without IP: frames are for whose queue they come by, and none is more a participant's than
    /// another's.
    fn has_without_ip(&self, interface: &Interface) -> Option<&Client> {
        let has =
            |share: &Share| share.layer == Mode::L2 && self.interfaces.is_on(share.interface, interface);
        self.clients.iter().find(|client| client.share().is_some_and(has))
    }

    /// Has a client receive at these ends, and at no others; at those that it may not yet as soon as it may.
    fn receive(&mut self, at: usize, ends: &[SocketAddr], now: Instant) -> Result<(), End> {
        let Some(client) = self.clients.get_mut(at) else { return Ok(()) };
        let State::Has(share) = &mut client.state else { return Ok(()) };
        self.paces.count(client.peer.uid, now);
        let Some(link) = self.interfaces.link(share.interface) else { return Err(End::Gone) };
        ends.clone_into(&mut share.wanted);
        // What was shown is looked at anew: since then it may be given up. What cannot be looked at now takes nothing from
        // it, and is looked at again.
        let refused = match (Sockets::read(), Addresses::read()) {
            (Ok(sockets), Ok(addresses)) => {
                share.holds(&sockets).map_err(End::Hostile)?;
                share.follow(link, &addresses)
            }
            (Err(why), _) | (_, Err(why)) => Some(why),
        };
        let Some(why) = refused else { return client.tell(&Message::Receiving) };
        self.tally.counts.refused += 1;
        client.tell(&Message::Refused { why })
    }

    /// What is owed to a client without being asked.
    fn go_on(&mut self, at: usize, now: Instant, look: &Look) -> Result<(), End> {
        let Some(client) = self.clients.get_mut(at) else { return Ok(()) };
        match &mut client.state {
            // It may have said it, and is not heard.
            State::New(since) if self.paces.wait(client.peer.uid, now).is_some() => {
                *since = now;
                Ok(())
            }
            State::New(since) if now >= *since + TO_ASK => Err(End::Stalled("does not say what it wants")),
            State::New(_) => Ok(()),
            State::Has(share) => {
                if look.is_any && !self.interfaces.link(share.interface).is_some_and(Link::is_attached) {
                    return Err(End::Lost);
                }
                if let Some(sockets) = &look.sockets {
                    share.holds(sockets).map_err(End::Hostile)?;
                }
                if let Some(addresses) = &look.addresses {
                    self.follow(at, addresses, now);
                }
                Ok(())
            }
            State::Waits { share, .. } => {
                let link = self.interfaces.link(share.interface);
                if client.advance(link, now)? {
                    self.tally.counts.granted += 1;
                    let line = format!("{} has {}", who(client), what(client, &self.interfaces));
                    self.tally.tell(now, Level::Info, &line);
                }
                Ok(())
            }
        }
    }

    /// Takes what comes to addresses that have left the interface back to the kernel, which may have given them to
    /// another interface, and to those that have come, or come back, to the client: it may not have noticed.
    fn follow(&mut self, at: usize, addresses: &Addresses, now: Instant) {
        let Some(client) = self.clients.get_mut(at) else { return };
        let State::Has(share) = &mut client.state else { return };
        let Some(link) = self.interfaces.link(share.interface) else { return };
        let had = share.ends.clone();
        let why = share.follow(link, addresses);
        if share.ends == had {
            return;
        }
        let ends: Vec<String> = share.ends.iter().map(ToString::to_string).collect();
        let why = why.map(|why| format!(", and nowhere else: {why}")).unwrap_or_default();
        let line = format!(
            "{} receives at [{}] of {} past the kernel from now on{why}",
            who(client),
            ends.join(", "),
            link.interface().name
        );
        self.tally.tell(now, Level::Info, &line);
    }

    /// Takes back what a client had.
    fn drop_client(&mut self, at: usize, end: End, now: Instant) {
        let client = self.clients.swap_remove(at);
        if let Some(share) = client.share()
            && let Some(link) = self.interfaces.link(share.interface)
        {
            for queue in &share.queues {
                share.ends.iter().for_each(|end| drop(link.program().remove(*end, *queue)));
                // The kernel has done that, unless a child of the client has its socket.
                let _ = link.remove(*queue);
            }
        }
        if let Some(why) = end.untold() {
            // Who does not read is not waited for.
            let _ = client.tell(&Message::Refused { why });
        }
        self.tell_of_end(&client, &end, now);
        self.undertaker.close(client.peer.uid, vec![client.connection.end()]);
    }

    /// What was found; why not is told.
    fn told<T>(&mut self, now: Instant, found: Result<T, String>) -> Option<T> {
        found.map_err(|why| self.tally.tell(now, Level::Warn, &why)).ok()
    }

    fn tell_of_end(&mut self, client: &Client, end: &End, now: Instant) {
        let (count, level, what) = match end {
            End::Gone => (None, Level::Info, "has ended".to_owned()),
            End::Refused(why) => {
                (Some(&mut self.tally.counts.refused), Level::Warn, format!("is refused: {why}"))
            }
            End::Hostile(what) => {
                (Some(&mut self.tally.counts.hostile), Level::Warn, format!("is dropped: {what}"))
            }
            End::Revoked(why) => {
                let what = format!("loses what it has, as the rules are others now: {why}");
                (Some(&mut self.tally.counts.revoked), Level::Warn, what)
            }
            End::Lost => {
                let what = "is told to ask again: its interface was removed, or our program detached from it";
                (None, Level::Warn, what.to_owned())
            }
            End::Stalled(what) => {
                (Some(&mut self.tally.counts.stalled), Level::Warn, format!("is dropped: it {what}"))
            }
        };
        if let Some(count) = count {
            *count += 1;
        }
        self.tally.tell(now, level, &format!("{} {what}", who(client)));
    }

    fn shares(&self) -> impl Iterator<Item = &Share> {
        self.clients.iter().filter_map(Client::share)
    }
}

/// What a participant is to have of an interface: the groups, where it does without IP, and a socket for each queue.
fn opened(
    link: &Link,
    interface: &Interface,
    take: &Take,
    layout: &Layout,
) -> Result<(Option<Membership>, Vec<Handover>), Error> {
    let (groups, headroom) = match take.layer {
        Mode::L2 => (Some(Membership::join(link.interface(), &[group(DEFAULT_GROUP.into())])?), BARE_SHIFT),
        Mode::L3 => (None, UDP_SHIFT),
    };
    let open = |queue: &u32| {
        let umem = Umem::create(layout.chunks, layout.chunk_size)?.with_headroom(headroom.into());
        Handover::new(link, interface, *queue, umem, &layout.rings, take.bind)
    };
    Ok((groups, take.queues.iter().map(open).collect::<Result<_, _>>()?))
}

/// A client, for people.
fn who(client: &Client) -> String {
    format!("process {} of user {}", client.peer.pid, client.peer.uid)
}

/// What it has, for people.
fn what(client: &Client, interfaces: &Interfaces) -> String {
    let Some(share) = client.share() else { return "nothing".into() };
    let name = interfaces.link(share.interface).map_or("an interface", |link| link.interface().name.as_str());
    let queues: Vec<String> = share.queues.iter().map(u32::to_string).collect();
    let ports: Vec<String> = share.proofs.iter().map(|proof| proof.end.address.port().to_string()).collect();
    let what = match share.layer {
        Mode::L2 => "without IP".to_owned(),
        Mode::L3 => format!("port {}", ports.join(" and ")),
    };
    format!("queue {} of {name}, {what}", queues.join(" and "))
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Take { .. } => "Take",
        Message::Receive { .. } => "Receive",
        _ => "an answer",
    }
}

/// Allows this process as many open files as the system lets it have: the limit that programs start with is for those
/// that use select(2). If it fails, participants beyond that are refused.
fn raise_file_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

const _: () = assert!(TO_BIND.as_millis() > AGAIN.as_millis());

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own: the others keep what they have.
    #[test]
    fn who_may_not_is_not_sent_to_netd() {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let opened = std::thread::spawn(|| {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).unwrap();
            let policy = Policy::parse("", "netd.toml").unwrap();
            Server::open(policy, Path::new("/nonexistent/netd.sock")).err().unwrap()
        });
        let told = opened.join().unwrap();
        assert!(
            told.contains("it lacks, CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW") && !told.contains("`taut netd`"),
            "{told}"
        );
    }

    #[test]
    fn as_many_files_are_open_as_may_be() {
        let found = getrlimit(Resource::Nofile);
        let lower = found.maximum.map_or(1_000, |maximum| maximum.min(1_000));
        setrlimit(Resource::Nofile, Rlimit { current: Some(lower), maximum: found.maximum }).unwrap();
        raise_file_limit();
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: found.maximum, maximum: found.maximum });
    }
}
