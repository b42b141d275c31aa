//! What a driver waits at: the port's descriptors, and what wakes it when it is told to and when it is time.
//!
//! Owns which of them the kernel watches. Who polls looks at the sources of samples itself, and then the kernel's watch
//! is of no use, but has a price: each datagram is noted in a list that another processor reads, on the way of its
//! sender, some 0.3 us. So it ends after many looks without a sleep, or some at queues of AF_XDP that have found something, and
//! begins again with the next sleep.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use taut_base::{Duration, Error, Result, Time};
use taut_lock::Mutex;
use taut_port_shm::Waker;
use taut_port_udp::Direct;

use crate::clock::NS_PER_S;
use crate::driver::alarm::Alarm;
use crate::driver::hand::Hand;
use crate::driver::reminder::Reminder;
use crate::net::frames::Frames;
use crate::net::network::{HOSTS, NETWORK};
use crate::net::ports::{Ports, QUEUES};

/// The number of what wakes the driver among the sources; sockets have their small indices.
pub(crate) const WAKE: u64 = u64::MAX;

/// Sources that can be found at once.
const READY: usize = 8;

/// After so many looks in a row the kernel watches the sources no longer that are looked at. Lower and who sleeps now and
/// then pays two system calls each time, higher and senders go on paying for longer.
const ALONE: u32 = 1_000;
/// And after so many that have found something. Lower and who looks before it sleeps pays two system calls for a sleep more
/// often, higher and senders of a stream pay where its receiver sleeps now and then.
const FINDS: u32 = 32;

/// What [`Watch::coarse`] is once it is told.
const TOLD: i32 = -1;

/// What a wait has found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Readable {
    sources: [u64; READY],
    count: u8,
    /// Some of them are not the port's.
    others: bool,
    /// Whoever waits was woken.
    rung: bool,
    /// It is to look again until when it may.
    reminded: bool,
}

impl Readable {
    /// Each source is there once.
    #[inline]
    pub fn push(&mut self, source: u64) {
        if source == WAKE {
            self.rung = true;
        } else if !self.has(source)
            && let Some(slot) = self.sources.get_mut(usize::from(self.count))
        {
            *slot = source;
            self.count += 1;
            self.others |= source >= HOSTS;
        }
    }

    /// Has the wait found anything?
    #[inline]
    pub fn is_any(&self) -> bool {
        self.count > 0 || self.rung
    }

    pub fn has_others(&self) -> bool {
        self.others
    }

    /// Was whoever waits woken? Asked once.
    #[inline]
    pub fn take_rung(&mut self) -> bool {
        std::mem::take(&mut self.rung)
    }

    /// Is whoever waits to look again until when it may? Asked once.
    #[inline]
    pub fn take_reminded(&mut self) -> bool {
        std::mem::take(&mut self.reminded)
    }

    #[inline]
    pub fn has(&self, source: u64) -> bool {
        self.iter().any(|other| other == source)
    }

    /// What it has found.
    #[inline]
    pub fn sources(&self) -> &[u64] {
        self.sources.get(..usize::from(self.count)).unwrap_or_default()
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.sources().iter().copied()
    }
}

/// The set of what is waited for. Who has the role waits.
pub(crate) struct Watch {
    epoll: Epoll,
    wake: Waker,
    alarm: Alarm,
    reminder: Reminder,
    /// The sources of samples that a driver can look at itself.
    looked_at: Mutex<Vec<(OwnedFd, u64)>>,
    /// Looks in a row, of which one that has found something counts as many; from [`ALONE`] on the kernel does not watch them.
    looks: AtomicU32,
    /// How often the kernel was asked.
    calls: AtomicU64,
    /// The errno with which the kernel refuses waits of less than a millisecond, [`TOLD`], or 0.
    coarse: AtomicI32,
}

impl Watch {
    /// With the port's descriptors; the driver may look at its queues itself, and at the socket that [`Direct`] looks at if
    /// that is its hand. *Errors*: what the system refuses, with the remedy.
    pub fn new(port: &Ports, hand: Option<&Hand>) -> Result<Watch> {
        let has_direct = matches!(hand, Some(Hand::Socket(_)));
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused("epoll_create"))?;
        let wake = Waker::new()?;
        let alarm = Alarm::new().map_err(refused("timerfd_create"))?;
        let reminder = Reminder::new().map_err(refused("timerfd_create"))?;
        // Each write, and each time that a timer rings, is an edge of its own, so that nobody has to read them.
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        for (fd, source) in alarm.fds().chain([reminder.fd(), (wake.fd(), WAKE)]) {
            epoll.add(fd, EpollEvent::new(edge, source)).map_err(refused("epoll_ctl"))?;
        }
        let watch = Watch {
            epoll,
            wake,
            alarm,
            reminder,
            looked_at: Mutex::default(),
            looks: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            coarse: AtomicI32::new(0),
        };
        let sockets = port.udp.fds().map(|of| (of.fd, of.index as u64));
        let (direct, others): (Vec<_>, Vec<_>) =
            sockets.partition(|(_, source)| has_direct && *source == Direct::SOURCE as u64);
        let frames = port.frames.iter();
        let queues = frames.clone().flat_map(|of| of.fds().zip(QUEUES as u64..));
        for (fd, source) in queues.chain(direct) {
            watch.look_at(fd, source)?;
        }
        let network = port.udp.watch().map(|fd| (fd, NETWORK));
        let hosts = frames.flat_map(|of| of.watched().map(|fd| (fd, HOSTS)));
        for (fd, source) in others.into_iter().chain(network).chain(hosts) {
            watch.add(fd, source).map_err(refused("epoll_ctl"))?;
        }
        Ok(watch)
    }

    /// Finds this descriptor by this number from now on, as one that the driver can look at itself.
    fn look_at(&self, fd: BorrowedFd<'_>, source: u64) -> Result<()> {
        // By a descriptor of its own, so that it can be left out and put in again without the port.
        let own = fd.try_clone_to_owned().map_err(io_error).map_err(refused("dup"))?;
        self.add(own.as_fd(), source).map_err(refused("epoll_ctl"))?;
        self.looked_at.lock().push((own, source));
        Ok(())
    }

    /// The queues of a port have gone: who keeps a descriptor keeps a queue.
    pub fn forget_queues(&self) {
        // Those of sockets are not there together with queues.
        let gone = std::mem::take(&mut *self.looked_at.lock());
        gone.iter().for_each(|(fd, _)| self.remove(fd.as_fd()));
    }

    /// Frames come by these descriptors from now on, after [`Watch::forget_queues`].
    pub fn watch_frames(&self, frames: &Frames) -> Result<()> {
        self.looks.store(0, Ordering::Relaxed);
        frames.fds().zip(QUEUES as u64..).try_for_each(|(fd, source)| self.look_at(fd, source))?;
        frames.watched().try_for_each(|fd| self.add(fd, HOSTS)).map_err(refused("epoll_ctl"))
    }

    /// Finds this descriptor by this number from now on, while it is readable, also if it was found by another one before.
    pub fn add(&self, fd: BorrowedFd<'_>, source: u64) -> nix::Result<()> {
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN, source);
        match self.epoll.add(fd, event) {
            Err(nix::Error::EEXIST) => self.epoll.modify(fd, &mut event),
            added => added,
        }
    }

    /// Finds a descriptor that was added also while it can be written, or no longer. `false`: it is not watched.
    pub fn await_room(&self, fd: BorrowedFd<'_>, source: u64, wanted: bool) -> bool {
        let room = if wanted { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        self.epoll.modify(fd, &mut EpollEvent::new(EpollFlags::EPOLLIN | room, source)).is_ok()
    }

    /// The inverse of [`Watch::add`].
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // It was not there, or is gone with its last descriptor.
        let _ = self.epoll.delete(fd);
    }

    /// What wakes whoever sleeps here, for other processes.
    pub fn waker(&self) -> BorrowedFd<'_> {
        self.wake.fd()
    }

    /// Wakes whoever sleeps here, now or next.
    pub fn wake(&self) {
        self.wake.ring();
    }

    /// Ends the sleep of whoever sleeps here then, at the latest. `false` if it is to be woken at once.
    pub fn remind(&self, now: Time, at: Time) -> bool {
        self.reminder.set(now, at)
    }

    /// The sources of samples were looked at. *Cost*: once in many times a system call for each.
    #[inline]
    pub fn note_look(&self) {
        self.note_looks(1);
    }

    /// The same of one who would have slept next, and has found something.
    #[inline]
    pub fn note_find(&self) {
        self.note_looks(ALONE.div_ceil(FINDS));
    }

    #[inline]
    fn note_looks(&self, more: u32) {
        let looks = self.looks.load(Ordering::Relaxed);
        if looks >= ALONE {
            return;
        }
        self.looks.store(looks + more, Ordering::Relaxed);
        if looks + more >= ALONE {
            self.looked_at.lock().iter().for_each(|(fd, _)| self.remove(fd.as_fd()));
        }
    }

    /// The sources of samples are found as all others are from now on. What cannot be is said to be ready.
    pub fn attend(&self, ready: &mut Readable) {
        if self.looks.load(Ordering::Relaxed) >= ALONE {
            self.watch_again(ready);
        } else {
            self.looks.store(0, Ordering::Relaxed);
        }
    }

    #[cold]
    fn watch_again(&self, ready: &mut Readable) {
        self.looks.store(0, Ordering::Relaxed);
        for (fd, source) in &*self.looked_at.lock() {
            if self.add(fd.as_fd(), *source).is_err() {
                // The next one tries again.
                self.looks.store(ALONE, Ordering::Relaxed);
                ready.push(*source);
            }
        }
    }

    /// Waits at most until then, after [`Watch::attend`], which has found nothing.
    pub fn sleep_until(&self, now: Time, until: Time, ready: &mut Readable) {
        self.wait(self.alarm.limit(now, until), ready);
    }

    /// The same, for one time that is another one the next time: no alarm stays set for it.
    pub fn sleep_once_until(&self, now: Time, until: Time, ready: &mut Readable) {
        self.wait(Some(until.since(now)), ready);
    }

    /// Waits at most so long, for ever without a limit. Nothing is ready after a signal.
    pub fn sleep(&self, limit: Option<Duration>) -> Readable {
        let mut ready = Readable::default();
        self.attend(&mut ready);
        self.wait(if ready.is_any() { Some(Duration::ZERO) } else { limit }, &mut ready);
        ready
    }

    /// Adds what is ready now. Sources that are looked at are among it if the kernel is known to watch them.
    pub fn find(&self, ready: &mut Readable) {
        self.wait(Some(Duration::ZERO), ready);
    }

    /// How often the kernel was asked what is ready, or to wait for it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What is to be warned of, once: the kernel refuses waits of less than a millisecond.
    #[inline]
    pub fn take_warning(&self) -> Option<String> {
        let errno = self.coarse.load(Ordering::Relaxed);
        (errno > 0).then(|| {
            self.coarse.store(TOLD, Ordering::Relaxed);
            coarse(nix::Error::from_raw(errno))
        })
    }

    fn wait(&self, limit: Option<Duration>, ready: &mut Readable) {
        // One thread at a time has the role, so nobody else counts.
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let mut note = |source| {
            if self.reminder.hear(source) {
                ready.reminded = true;
            } else if !self.alarm.hear(source) {
                ready.push(source);
            }
        };
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; READY];
        let timeout = limit.map(|Duration(ns)| Timespec { tv_sec: ns / NS_PER_S, tv_nsec: ns % NS_PER_S });
        match epoll::wait(&self.epoll.0, &mut events, timeout.as_ref()) {
            Ok(count) => events.iter().take(count).for_each(|event| note(event.data.u64())),
            // Before Linux 5.11 a wait has whole milliseconds; and where a filter of system calls that is older than
            // this one refuses it, as those of containers do.
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                if self.coarse.load(Ordering::Relaxed) == 0 {
                    self.coarse.store(errno.raw_os_error(), Ordering::Relaxed);
                }
                let mut events = [EpollEvent::empty(); READY];
                let count = self.epoll.wait(&mut events, whole_ms(limit)).unwrap_or(0);
                events.iter().take(count).for_each(|event| note(event.data()));
            }
            Err(_) => {}
        }
    }
}

fn io_error(error: std::io::Error) -> nix::Error {
    nix::Error::from_raw(error.raw_os_error().unwrap_or(0))
}

fn refused(call: &'static str) -> impl FnOnce(nix::Error) -> Error {
    move |errno| Error::Error(format!("{call}: {errno}; {}", remedy(errno)))
}

fn coarse(errno: nix::Error) -> String {
    format!(
        "epoll_pwait2: {errno}; Linux has it from 5.11 on, and without it sleeps have whole milliseconds, so that timers come up \
         to 1 ms late and `wake_ahead` does nothing: {}",
        remedy(errno)
    )
}

fn remedy(errno: nix::Error) -> &'static str {
    match errno {
        nix::Error::EMFILE | nix::Error::ENFILE => "raise the limit of open files (ulimit -n)",
        nix::Error::EPERM | nix::Error::EACCES | nix::Error::ENOSYS => {
            "this process may not: allow it in the policy of its sandbox, container or security module"
        }
        nix::Error::ENOSPC => "raise the limit of what one user watches (fs.epoll.max_user_watches)",
        _ => "there is no memory left: raise the limit of the container (memory.max)",
    }
}

/// What is left until then; `None` is for ever.
/// Rounded up, so that a timer is never early and never spins.
fn whole_ms(limit: Option<Duration>) -> EpollTimeout {
    let Some(Duration(ns)) = limit else { return EpollTimeout::NONE };
    let ms = i32::try_from(ns.saturating_add(999_999) / 1_000_000).unwrap_or(i32::MAX);
    EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    use taut_port_udp::Direct;

    use super::{ALONE, FINDS, Readable};
    use crate::clock::monotonic_now;
    use crate::executor::{Executor, Inner};
    use crate::executor_tests::executor;
    use crate::net::network::HOSTS;
    use crate::net::ports::HAND;

    const SOURCE: u64 = Direct::SOURCE as u64;

    /// Sends what is nothing of RTPS to where the samples of a participant come.
    pub(crate) fn send(inner: &Inner) {
        let to = inner.peek(|core| core.port.udp.user_unicast()[0]);
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0], to.socket_addr().unwrap()).unwrap();
    }

    /// An executor that has heard what its start has sent to itself: a turn asks the kernel to watch again.
    fn settled() -> Executor {
        let (executor, _, _) = executor();
        while executor.inner.glance(monotonic_now()).is_any() {
            executor.run_once(Some(taut_base::Time(0))).unwrap();
        }
        executor
    }

    fn find(inner: &Inner) -> Readable {
        let mut ready = Readable::default();
        inner.watch.find(&mut ready);
        ready
    }

    #[test]
    fn what_is_looked_at_is_watched_again_by_who_sleeps() {
        let executor = settled();
        let inner = &executor.inner;
        inner.watch.attend(&mut Readable::default());
        for _ in 1..ALONE {
            inner.watch.note_look();
        }
        send(inner);
        assert!(find(inner).has(SOURCE), "it is still watched");
        inner.watch.note_look();
        assert!(!find(inner).has(SOURCE), "after so many looks it is not");
        assert!(inner.watch.sleep(None).has(SOURCE), "who sleeps is woken by it");
        assert_eq!(inner.watch.looks.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_found_before_a_sleep_some_times_is_not_watched_until_the_next() {
        let executor = settled();
        let inner = &executor.inner;
        for finds in [FINDS - 1, FINDS] {
            inner.watch.attend(&mut Readable::default());
            (0..finds).for_each(|_| inner.watch.note_find());
            assert_eq!(inner.watch.looks.load(Ordering::Relaxed) < ALONE, finds < FINDS);
        }
        send(inner);
        assert!(!find(inner).has(SOURCE));
        assert!(inner.watch.sleep(None).has(SOURCE), "who sleeps is woken by it");
    }

    #[test]
    fn a_socket_that_nobody_looks_at_is_watched_for_ever() {
        let (executor, _, _) = executor();
        let inner = &executor.inner;
        let watch = inner.peek(|core| super::Watch::new(&core.port, None)).unwrap();
        for _ in 0..=ALONE {
            watch.note_look();
        }
        send(inner);
        let mut ready = Readable::default();
        watch.find(&mut ready);
        assert!(ready.has(SOURCE));
    }

    #[test]
    fn who_was_rung_more_often_than_can_be_counted_is_woken_by_the_next() {
        let (executor, _, _) = executor();
        let watch = &executor.inner.watch;
        let is_rung = || find(&executor.inner).take_rung();
        let _ = is_rung();
        watch.wake();
        assert!(is_rung() && !is_rung());
        // It was rung once, and is full.
        rustix::io::write(watch.waker(), &(u64::MAX - 2).to_ne_bytes()).unwrap();
        assert!(is_rung());
        watch.wake();
        assert!(is_rung());
    }

    #[test]
    fn what_is_refused_is_told_with_the_remedy_for_it() {
        for (errno, remedy) in [
            (nix::Error::EMFILE, "ulimit -n"),
            (nix::Error::EPERM, "sandbox"),
            (nix::Error::ENOSYS, "sandbox"),
            (nix::Error::ENOSPC, "max_user_watches"),
            (nix::Error::ENOMEM, "memory.max"),
        ] {
            let text = super::refused("eventfd")(errno).to_string();
            assert!(text.contains("eventfd") && text.contains(remedy), "{text}");
        }
    }

    /// The answers of netd come by a descriptor that is watched before its queues are.
    #[test]
    fn what_is_watched_already_is_found_by_its_new_number() {
        let (executor, _, _) = executor();
        let watch = &executor.inner.watch;
        let (read, write) = std::io::pipe().unwrap();
        for source in [HOSTS, SOURCE] {
            watch.add(read.as_fd(), source).unwrap();
        }
        drop(write);
        let ready = find(&executor.inner);
        assert!(ready.has(SOURCE) && !ready.has(HOSTS));
    }

    #[test]
    fn a_look_finds_without_the_kernel_unless_samples_come_elsewhere() {
        let (executor, _, _) = executor();
        let inner = &executor.inner;
        let now = monotonic_now();
        inner.polling.note_asked(now);
        send(inner);
        let ready = inner.glance(now);
        assert_eq!(ready.iter().collect::<Vec<_>>(), [HAND as u64]);
        let hand = || inner.hand.as_ref().unwrap().lock();
        inner.peek(|core| assert_eq!(hand().give(&mut core.port, 1, &mut |_| {}), 1));

        let mut elsewhere = Readable::default();
        elsewhere.push(SOURCE + 1);
        hand().note_found(|| now, &elsewhere);
        send(inner);
        let ready = inner.glance(now);
        assert!(ready.has(SOURCE) && !ready.has(HAND as u64), "the kernel was asked");
    }
}
