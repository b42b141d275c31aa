//! Driving: wait at the port, then run jobs, highest class first, each within its budget.

use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use taut_base::{Duration, Error, Result, Time};
use taut_dcps::DomainParticipant;
use taut_lock::MutexGuard;
use taut_port::Traffic;
use taut_rtps::TxClass;

use crate::alarm::{ALARM, Alarm};
use crate::clock::{NS_PER_S, monotonic_now, wall_clock_now};
use crate::core::Core;
use crate::executor::{Inner, WAKE};
use crate::frames::Look;
use crate::jobs::JobClass;
use crate::neighbours::FIRST_SOURCE;
use crate::network::{HOSTS, NETWORK};
use crate::ports::{ASIDE, Ports, QUEUES};
use crate::waiting::AT_PORT;

/// Sockets that can be ready at once, the eventfd and the alarm.
const READY: usize = 8;

/// How often the token's holder looks whether a thread that does not sleep yet has taken it, in one pause of the
/// processor each. Lower than the time that a thread takes from one try to the next and it waits for one step more;
/// higher and a thread that the system has stopped just then holds up the driver.
const LOOKS: usize = 100;

/// What a wait has found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Readable {
    sources: [u64; READY],
    count: usize,
    /// Interfaces have changed.
    network: bool,
    /// The kernel tells something of hosts.
    hosts: bool,
}

impl Readable {
    pub fn push(&mut self, source: u64) {
        if let Some(slot) = self.sources.get_mut(self.count) {
            *slot = source;
            self.count += 1;
        }
    }

    pub fn is_any(&self) -> bool {
        self.count > 0
    }

    fn is_anything(&self) -> bool {
        self.is_any() || self.network || self.hosts
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.sources.iter().take(self.count).copied()
    }
}

/// What the driver waits at: the port's descriptors, and what wakes it when it is told to and when it is time.
pub(crate) fn watch(port: &Ports) -> Result<(Epoll, EventFd, Alarm)> {
    let refused = |call: &'static str| {
        move |errno: nix::Error| {
            Error::Error(format!("{call}: {errno}; raise the limit of open files (ulimit -n)"))
        }
    };
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused("epoll_create"))?;
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let wake = EventFd::from_value_and_flags(0, flags).map_err(refused("eventfd"))?;
    let sockets = port.udp.fds().map(|source| (source.fd, source.index as u64));
    let watched = port.udp.watch().map(|fd| (fd, NETWORK));
    let frames = port.frames.iter();
    let frames =
        frames.flat_map(|of| of.fds().zip(QUEUES as u64..).chain(of.watched().map(|fd| (fd, HOSTS))));
    for (fd, datum) in sockets.chain(watched).chain(frames) {
        epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, datum)).map_err(refused("epoll_ctl"))?;
    }
    let alarm = Alarm::new().map_err(refused("timerfd_create"))?;
    // Each write, and each time that the alarm rings, is an edge of its own, so that nobody has to read them.
    let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
    for (fd, datum) in [(wake.as_fd(), WAKE), (alarm.fd(), ALARM)] {
        epoll.add(fd, EpollEvent::new(edge, datum)).map_err(refused("epoll_ctl"))?;
    }
    Ok((epoll, wake, alarm))
}

impl Inner {
    /// Drives until `ready` gives a value. The caller has the role.
    pub fn drive_until<R>(
        &self,
        until: Option<Time>,
        ready: &mut impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        let mut core = self.enter();
        loop {
            self.give_way(&mut core);
            let now = core.now;
            let found = ready(&mut core.participant, now);
            if found.is_some() || until.is_some_and(|until| until <= now) {
                return self.stop_driving(core, found);
            }
            let readable = self.sleep(core, now, until);
            if readable.count == 0 {
                // Rung, most likely by the writer whose sample is waited for: that comes before all else.
                core = self.enter();
                self.give_way(&mut core);
                let now = core.now;
                if let Some(found) = ready(&mut core.participant, now) {
                    return self.stop_driving(core, Some(found));
                }
                self.give_back(core);
            }
            core = self.step(&readable);
        }
    }

    fn stop_driving<R>(&self, mut core: MutexGuard<'_, Core>, found: Option<R>) -> Option<R> {
        self.send(&mut core, TxClass::Discovery);
        self.give_back(core);
        found
    }

    /// One wait and the jobs that follow from it, whoever has the role.
    pub fn drive_once(&self, until: Option<Time>) {
        // That has passed, whatever time it is.
        if until.is_some_and(|until| until <= Time(0)) {
            return self.look_once(monotonic_now());
        }
        let mut core = self.enter();
        self.give_way(&mut core);
        let now = core.now;
        let readable = self.sleep(core, now, until);
        self.give_back(self.step(&readable));
    }

    /// The same without a wait. Most looks find nothing: those do without the token.
    fn look_once(&self, now: Time) {
        let readable = self.sort(&self.glance(now));
        let due = self.polling.due().min(self.promises.next());
        if readable.is_anything() || due <= now || self.writes.is_any() || self.doors.has_lanes() {
            self.give_back(self.step(&readable));
        }
    }

    /// Gives the token back and waits for the port, a timer or a kick.
    fn sleep(&self, mut core: MutexGuard<'_, Core>, now: Time, until: Option<Time>) -> Readable {
        let wake_at = core.next_timeout().min(until.unwrap_or(Time::NEVER));
        self.send(&mut core, TxClass::Discovery);
        let mut busy = core.has_work(TxClass::Discovery) || core.participant.has_news();
        self.holding.fall_asleep(wake_at);
        self.give_back(core);
        let polls = self.polling.is_on();
        // Who polls looks at lanes itself.
        let watched = !polls && self.doors.is_watched();
        if watched {
            self.bell.arm();
            busy |= self.doors.is_ready();
        }
        // Who wanted the role before it was said that the driver sleeps has kicked nobody.
        busy |= self.role.is_wanted();
        // Neither has who promised to write again before it was said until when the driver sleeps.
        busy |= self.promises.next() < wake_at;
        // Nobody is woken by frames of a port that can only be looked at.
        busy |= self.looks.iter().any(Look::is_blind);
        // A kick between the store and here has set it to AWAKE and made the eventfd readable.
        let ready = match busy {
            true => self.glance(now),
            false if polls => self.poll(now, wake_at),
            false => self.look_and_wait(now, wake_at),
        };
        self.holding.wake();
        if watched {
            self.bell.disarm();
        }
        self.sort(&ready)
    }

    /// What a wait has found, without what was meant for the driver itself.
    fn sort(&self, ready: &Readable) -> Readable {
        let mut readable = Readable::default();
        for source in ready.iter() {
            match source {
                // A neighbour may have rung for what a thread waits for that does not drive.
                WAKE if self.role.has_followers() => self.role.tell_followers(),
                WAKE => {}
                NETWORK => readable.network = true,
                HOSTS => readable.hosts = true,
                _ => readable.push(source),
            }
        }
        readable
    }

    /// Looks for a while, if that has helped of late: who is not asleep need not be woken, which takes the
    /// machine longer than a datagram takes to come. Then sleeps.
    fn look_and_wait(&self, now: Time, wake_at: Time) -> Readable {
        let mut ready = Readable::default();
        let look = || {
            ready = self.wait_ready(Some(Duration::ZERO));
            ready.count > 0
        };
        if wake_at > now && self.port_spin.look(self.spin, Some(wake_at), &AT_PORT, look) {
            return ready;
        }
        loop {
            // A look in vain has taken some of the time, and so has a sleep that ends without a reason.
            let now = monotonic_now();
            let Some(next) = self.holding.next_look(now, wake_at) else {
                return self.wait_ready(Some(Duration::ZERO));
            };
            let ready = self.wait_ready(self.alarm.limit(now, next));
            if ready.count > 0 {
                return ready;
            }
        }
    }

    /// Waits at most so long, for ever without a limit. Nothing is ready after a signal.
    pub fn wait_ready(&self, limit: Option<Duration>) -> Readable {
        let mut ready = Readable::default();
        let mut note = |source| match source {
            ALARM => self.alarm.note_rung(),
            _ => ready.push(source),
        };
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; READY];
        let timeout = limit.map(|Duration(ns)| Timespec { tv_sec: ns / NS_PER_S, tv_nsec: ns % NS_PER_S });
        match epoll::wait(&self.epoll.0, &mut events, timeout.as_ref()) {
            Ok(count) => events.iter().take(count).for_each(|event| note(event.data.u64())),
            // Before Linux 5.11 a wait has whole milliseconds.
            Err(Errno::NOSYS) => {
                let mut events = [EpollEvent::empty(); READY];
                let count = self.epoll.wait(&mut events, whole_ms(limit)).unwrap_or(0);
                events.iter().take(count).for_each(|event| note(event.data()));
            }
            Err(_) => {}
        }
        ready
    }

    /// Runs the jobs that are due, highest class first. Between two of them others come first. The caller has the
    /// token in the end and gives it back, which tells the news.
    fn step(&self, readable: &Readable) -> MutexGuard<'_, Core> {
        readable.iter().filter(|source| *source >= FIRST_SOURCE).for_each(|source| self.hear(source));
        let mut core = self.enter();
        if readable.network {
            core.hear_network();
        }
        if readable.hosts {
            core.port.hear_hosts();
        }
        self.pull_lanes(&mut core);
        self.run_writes(&mut core);
        self.receive(&mut core, readable, Traffic::User);
        self.send(&mut core, TxClass::Data);
        self.give_way(&mut core);
        let due = core.next_timeout();
        if due <= core.now {
            let ready = std::mem::replace(&mut core.ready, due);
            self.run(&mut core, JobClass::Timers, |core, _| {
                core.follow_network();
                core.port.on_timeout(core.now);
                core.participant.on_timeout(core.now);
                core.look_at_promises();
                core.look_at_reports();
                1
            });
            core.ready = ready;
            self.send(&mut core, TxClass::Data);
            self.give_way(&mut core);
        }
        self.receive(&mut core, readable, Traffic::Meta);
        // No more than was put aside: nothing is received meanwhile.
        while core.port.has_aside() {
            self.take_from(&mut core, JobClass::ReceiveMeta, ASIDE);
        }
        self.send(&mut core, TxClass::Discovery);
        core
    }

    /// Between two steps: whoever waits for the token gets it, and what was left for its holder is run and sent.
    /// So a write waits for one step that has begun and for no other, but those of writes.
    fn give_way(&self, core: &mut MutexGuard<'_, Core>) {
        self.let_others(core);
        if self.writes.is_any() {
            self.run_writes(core);
            self.send(core, TxClass::Data);
        }
    }

    /// Whoever waits for the token gets it; what others did meanwhile is no part of our next step.
    pub fn let_others(&self, core: &mut MutexGuard<'_, Core>) {
        let asking = self.asking.load(Ordering::SeqCst);
        if asking > 0 {
            // Who sleeps for it is handed it. Who does not yet, or is about to try, finds it free.
            let took_it = || self.asking.load(Ordering::SeqCst) < asking;
            let wait = || (0..LOOKS).take_while(|_| !took_it()).for_each(|_| std::hint::spin_loop());
            MutexGuard::unlocked_fair(core, wait);
            core.read_clock();
        }
        core.accounts.note_offered();
    }

    /// Each source is a step, and others come first between two of them.
    fn receive(&self, core: &mut MutexGuard<'_, Core>, readable: &Readable, traffic: Traffic) {
        let class = match traffic {
            Traffic::User => JobClass::ReceiveUser,
            Traffic::Meta => JobClass::ReceiveMeta,
        };
        for index in readable.iter().filter_map(|source| usize::try_from(source).ok()) {
            if core.port.traffic(index) != Some(traffic) {
                continue;
            }
            self.take_from(core, class, index);
        }
    }

    /// Takes what has come at a source, then lets others come.
    fn take_from(&self, core: &mut MutexGuard<'_, Core>, class: JobClass, source: usize) {
        if core.participant.wants_wall_clock() {
            core.participant.set_wall_clock(monotonic_now(), wall_clock_now());
        }
        self.run(core, class, |core, budget| {
            let Core { participant, port, panics, now, is_exact, .. } = core;
            port.receive_from(source, budget, &mut |frame| {
                let now = if *is_exact { monotonic_now() } else { *now };
                // Nothing that arrives may end the process. The core has no panic to catch: this is
                // the backstop of rule R11, and its count is 0.
                let handled = catch_unwind(AssertUnwindSafe(|| participant.on_frame(now, &frame)));
                *panics += u64::from(handled.is_err());
            })
        });
        self.give_way(core);
    }
}

/// What is left until then; `None` is for ever.
/// Rounded up, so that a timer is never early and never spins.
fn whole_ms(limit: Option<Duration>) -> EpollTimeout {
    let Some(Duration(ns)) = limit else { return EpollTimeout::NONE };
    let ms = i32::try_from(ns.saturating_add(999_999) / 1_000_000).unwrap_or(i32::MAX);
    EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX)
}
