//! The token and what happens around it: writes, waits, news.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use taut_base::{Duration, Error, GuidPrefix, Result, Time};
use taut_dcps::{DomainParticipant, Entity, Write};
use taut_lock::{Mutex, MutexGuard};
use taut_mem::Region;
use taut_mem::lane::Bell;
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{Full, TxClass, WriterIndex};

use crate::background::{self, Background};
use crate::burst::Burst;
use crate::clock::monotonic_now;
use crate::config::{Driver, ExecutorConfig, LaneMemory};
use crate::core::Core;
use crate::door::{Table, TableDoors};
use crate::driving::Driving;
use crate::frames::Frames;
use crate::hand::Hand;
use crate::holding::Holding;
use crate::hooks::{Hooks, Listener, Waits};
use crate::jobs::{JobClass, LatencyReport};
use crate::left::Left;
use crate::local::{self, Joins};
use crate::neighbours::{FIRST_SOURCE, Neighbours, Own, PAGE};
use crate::polling::Polling;
use crate::ports::Ports;
use crate::promises::Promises;
use crate::recorder::{FlightRecord, Recorder};
use crate::reports::Reports;
use crate::role::{Claim, Role};
use crate::waiting::Spin;
use crate::watch::Watch;

/// Writes that wait for the holder of the token. Full, the caller waits for the token itself.
pub(crate) const QUEUE: usize = 256;
/// A payload up to this is encoded so quickly that the clock need not be read again after it. Lower reads it for more
/// writes, higher and the time of encoding counts as part of the step that sends. *Units*: bytes.
const SHORT: usize = 4_096;

/// Drives one participant.
pub struct Executor {
    pub(crate) inner: Arc<Inner>,
    pub(crate) background: Option<Background>,
    /// It shares the participant with the executor that started it, and does not end it.
    pub(crate) is_guest: bool,
}

pub(crate) struct Inner {
    pub me: Weak<Inner>,
    core: Mutex<Core>,
    /// Threads that wait for it.
    pub asking: AtomicUsize,
    pub doors: Arc<Table>,
    pub joins: Joins,
    pub bell: Arc<Bell>,
    /// May it use lanes?
    pub local: bool,
    /// How long a wait looks before it sleeps.
    pub spin: Duration,
    /// Its samples say where their latency goes.
    pub tells_anatomy: bool,
    lanes: LaneMemory,
    /// Whether the driver looks at the port before it sleeps there.
    pub port_spin: Spin,
    /// What has come past the kernel, for one who polls.
    pub looks: Vec<taut_port_xdp::Glance>,
    pub neighbours: Neighbours,
    pub prefix: GuidPrefix,
    pub writes: Left<LeftWrite>,
    pub promises: Arc<Promises>,
    pub role: Role,
    pub polling: Polling,
    /// What its threads tell each other of samples that wait.
    pub holding: Holding,
    pub hooks: Hooks,
    pub reports: Reports,
    pub watch: Watch,
    /// What whoever drives looks at itself.
    pub hand: Option<Mutex<Hand>>,
    pub closing: AtomicBool,
    pub background_thread: Mutex<Option<std::thread::Thread>>,
    tokens: AtomicU64,
    pub contended: AtomicU64,
    pub queued: AtomicU64,
    kicks: AtomicU64,
}

/// A write that is left to the holder of the token.
pub(crate) struct LeftWrite {
    writer: WriterIndex,
    write: Write,
    /// Until when it may wait for company.
    until: Time,
}

/// What an executor has done.
#[derive(Clone, Debug)]
pub struct Stats {
    /// How often the token was taken: the only lock of the data path.
    pub tokens: u64,
    /// How often it had to be waited for.
    pub contended: u64,
    /// Writes that were left to the holder of the token.
    pub queued_writes: u64,
    /// How often a sleeping driver was woken.
    pub kicks: u64,
    /// The counts of the sockets.
    pub port: taut_port_udp::Stats,
    /// Those of frames, by AF_XDP or by DPDK, if anything goes past the kernel's stack.
    pub frames: Option<taut_ethernet::Stats>,
    /// Datagrams whose handling panicked: 0, or there is a defect to report.
    pub panics: u64,
    /// What was refused, by reason.
    pub refused: Vec<(&'static str, u64)>,
}

/// Is this what can be had together?
fn check(config: &ExecutorConfig) -> Result<()> {
    if config.driver == Driver::Inline && config.scheduling.is_any() {
        let text = "driver_priority, driver_deadline, driver_cpus: the inline driver has no thread; they are for your own";
        return Err(Error::BadParameter(text.into()));
    }
    Ok(())
}

impl Executor {
    /// Opens the port and starts the participant.
    ///
    /// *Errors*: what the operating system refuses, an interface or a peer that does not exist, with
    /// the remedy in the text.
    pub fn start(config: &ExecutorConfig) -> Result<Executor> {
        check(config)?;
        if config.lock_process {
            taut_port_shm::lock_process()?;
        }
        let mut port = Ports::open(config)?;
        let doors = Arc::new(Table::new(config.driver == Driver::Inline));
        let held = Box::new(TableDoors::new(Arc::clone(&doors)));
        let mut about = config.participant(&mut port)?;
        let prefix = about.guid_prefix;
        let neighbours = Neighbours::open(config, prefix);
        about.properties.extend(neighbours.own.iter().map(Own::property));
        let participant = DomainParticipant::with_doors(about, held);
        let region = neighbours.own.as_ref().map_or_else(|| Region::heap(PAGE), Own::bell);
        let bell = Bell::new(region).expect("invariant: a page is enough for a word");
        let looks = port.frames.as_ref().map(Frames::looks).unwrap_or_default();
        let hand = Hand::open(config.driver, &mut port);
        let watch = Watch::new(&port, hand.as_ref())?;
        let core = Core::new(participant, port, Recorder::new(config.longest_step));
        let inner = Arc::new_cyclic(|me| Inner {
            me: Weak::clone(me),
            doors,
            joins: Joins::default(),
            bell: Arc::new(bell),
            looks,
            neighbours,
            prefix,
            local: config.local,
            spin: config.spin,
            tells_anatomy: config.anatomy > 0,
            lanes: config.lanes,
            port_spin: Spin::default(),
            promises: Arc::clone(&core.promises),
            core: Mutex::new(core),
            asking: AtomicUsize::new(0),
            writes: Left::new(QUEUE),
            role: Role::default(),
            polling: Polling::new(config.driver == Driver::Polling, hand.as_ref()),
            holding: Holding::default(),
            hooks: Hooks::default(),
            reports: Reports::default(),
            watch,
            hand: hand.map(Mutex::new),
            closing: AtomicBool::new(false),
            background_thread: Mutex::new(None),
            tokens: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            kicks: AtomicU64::new(0),
        });
        local::register(prefix, &inner);
        inner.neighbours.fd(|fd| {
            // Without it neighbours are met by their listeners only.
            let _ = inner.watch.add(fd, FIRST_SOURCE);
        });
        inner.with(|participant, now| participant.on_timeout(now));
        if config.lock_process {
            inner.prefault();
        }
        background::executor(inner, config)
    }

    /// Runs `call` with the participant and sends what came of it, all from this thread.
    ///
    /// *Cost*: the token; a system call for each datagram.
    pub fn with<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> R {
        self.inner.with(call)
    }

    /// The same without sending: for looking and taking.
    pub fn look<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> R {
        self.inner.look(call)
    }

    /// Waits until `ready` gives a value, driving the port meanwhile if no other thread does. `None`
    /// when `until` has passed.
    pub fn wait<R>(
        &self,
        until: Option<Time>,
        ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        self.inner.wait(until, ready)
    }

    /// Handles what has arrived and is due, sends what is to be sent, waits at most until `until` for
    /// something to do. For the inline driver.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] while another thread drives, or from a listener.
    pub fn run_once(&self, until: Option<Time>) -> Result<()> {
        self.may_wait()?;
        let refused = |text: &str| Err(Error::PreconditionNotMet(text.into()));
        if self.is_threaded() {
            return refused("a background thread drives: run_once is for Driver::Inline");
        }
        if self.inner.role.claim() != Claim::Taken {
            return refused("another thread drives: it is in run_once, too, or waits for samples");
        }
        let role = Driving::new(&self.inner);
        role.note_driven();
        self.inner.drive_once(until);
        Ok(())
    }

    /// May the calling thread wait for this participant? What it waits for could not come while it runs a
    /// listener.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`].
    pub fn may_wait(&self) -> Result<()> {
        if self.inner.hooks.is_telling() {
            let text = "a listener cannot wait: it runs on the thread that brings what it would wait for; \
                        do so in a thread of your own, or use a call that does not wait";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        Ok(())
    }

    /// Sets or takes away the listener of an entity. Returns whether it had one.
    pub fn set_listener(&self, entity: Entity, listener: Option<Listener>) -> bool {
        self.inner.hooks.set_listener(entity, listener)
    }

    /// Who waits for news of an entity, with one waker at a time.
    pub fn waits(&self, entity: Entity) -> Waits {
        self.inner.hooks.waits(entity)
    }

    /// Wakes a task at the next news, in place of the last that waited there.
    pub fn register_waker(&self, waits: &Waits, waker: &std::task::Waker) {
        self.inner.hooks.register(waits, waker);
    }

    /// Nobody waits there any more.
    pub fn forget_waker(&self, waits: &Waits) {
        self.inner.hooks.forget(waits);
    }

    /// Forgets listener and wakers of an entity.
    pub fn remove_hooks(&self, entity: Entity) {
        self.inner.hooks.remove(entity);
    }

    /// Does a background thread drive while nobody waits?
    pub(crate) fn is_threaded(&self) -> bool {
        self.background.is_some()
    }

    /// Where the time of its steps has gone so far. *Cost*: the token for a copy of some 55 kB; the rest without it.
    pub fn latency_report(&self) -> LatencyReport {
        let accounts = self.inner.peek(|core| core.accounts.clone());
        accounts.report()
    }

    /// The same, and how long the longest step of each class took since the last call of this.
    pub fn take_latency_report(&self) -> (LatencyReport, [std::time::Duration; JobClass::ALL.len()]) {
        let (accounts, recent) = self.inner.peek(|core| (core.accounts.clone(), core.accounts.take_recent()));
        (accounts.report(), recent)
    }

    /// The steps before a deadline was missed, or something ran for too long, the last time.
    pub fn flight_record(&self) -> Option<Arc<FlightRecord>> {
        self.inner.peek(|core| core.recorder.kept())
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Says goodbye to the peers and ends the background thread.
    fn close(&mut self) {
        self.inner.reports.close();
        local::unregister(self.inner.prefix);
        self.inner.with(|participant, _| participant.leave());
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.kick();
        if let Some(background) = self.background.take() {
            background.end();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if !self.is_guest {
            self.close();
        }
    }
}

impl Inner {
    /// Takes the memory that the participant works with. What cannot be had is told, and waited for when it is used.
    fn prefault(&self) {
        self.peek(|core| core.port.udp.prefault());
        if let Err(error) = taut_port_shm::prefault_code() {
            log::warn!("{error}");
        }
    }

    /// How lanes are made in memory that other processes can see; `None` where there is none.
    pub fn lane_memory(&self) -> Option<LaneMemory> {
        self.neighbours.own.is_some().then_some(self.lanes)
    }

    fn stats(&self) -> Stats {
        let local = [
            ("local_doubts", self.neighbours.doubts.load(Ordering::Relaxed)),
            ("broken_lanes", self.doors.broken_lanes()),
        ];
        let (mut refused, port, frames, panics) = self.peek(|core| {
            let Core { participant, port, panics, .. } = core;
            (participant.core().counters().refused(), port.udp.stats(), port.frame_stats(), *panics)
        });
        refused.extend(local.into_iter().filter(|(_, count)| *count > 0));
        Stats {
            tokens: self.tokens.load(Ordering::Relaxed),
            contended: self.contended.load(Ordering::Relaxed),
            queued_writes: self.queued.load(Ordering::Relaxed),
            kicks: self.kicks.load(Ordering::Relaxed),
            port,
            frames,
            panics,
            refused,
        }
    }

    /// The token, and since when it was waited for if it was not free.
    pub fn await_token(&self) -> (MutexGuard<'_, Core>, Option<Time>) {
        if let Some(core) = self.try_token() {
            return (core, None);
        }
        self.contended.fetch_add(1, Ordering::Relaxed);
        let since = monotonic_now();
        self.asking.fetch_add(1, Ordering::SeqCst);
        let core = self.core.lock();
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.count_token();
        (core, Some(since))
    }

    /// Runs one step, and counts how many of them nobody could come between.
    pub fn run(&self, core: &mut Core, class: JobClass, step: impl FnOnce(&mut Core, usize) -> usize) {
        core.run(class, step);
        if class.gives_way() {
            let wanted = self.asking.load(Ordering::SeqCst) > 0;
            core.accounts.note_ahead(wanted, self.writes.is_any());
        }
    }

    /// The token, with the clock read.
    pub fn enter(&self) -> MutexGuard<'_, Core> {
        let (mut core, since) = self.await_token();
        core.enter(since);
        core
    }

    /// The same for one who has read the clock just before.
    pub fn enter_at(&self, just_now: Time) -> MutexGuard<'_, Core> {
        let (mut core, since) = self.await_token();
        match since {
            None => core.enter_at(Some(just_now)),
            since => core.enter(since),
        }
        core
    }

    pub fn try_token(&self) -> Option<MutexGuard<'_, Core>> {
        let token = self.core.try_lock()?;
        self.count_token();
        Some(token)
    }

    /// With the token, so that nobody else counts.
    #[inline]
    fn count_token(&self) {
        self.tokens.store(self.tokens.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Writes. With `may_queue` (a KEEP_LAST writer, which always has room) the change is left to the
    /// holder of the token if it is taken, so that the caller waits for nobody; a real-time thread waits for it.
    ///
    /// *Errors*: [`Full`] if KEEP_ALL has to wait for readers.
    pub fn write(
        &self,
        writer: WriterIndex,
        write: &mut Write,
        burst: &mut Burst,
        may_queue: bool,
    ) -> std::result::Result<(), Full> {
        let core = match self.try_token() {
            Some(mut core) => {
                // What is long took time to encode, which is no part of a step.
                let begun = burst.take_begun().filter(|_| write.payload.len() <= SHORT);
                core.enter_at(begun);
                core
            }
            // A real-time thread waits, for then the holder runs at its priority: what is left to one that others
            // keep from the processor goes out when they are done.
            None if may_queue && !taut_lock::is_real_time() && self.queue(writer, write, burst) => {
                return Ok(());
            }
            None => self.token_in(burst),
        };
        self.write_now(core, writer, write, burst)
    }

    /// Leaves a change to the holder of the token. `false` if the queue is full.
    fn queue(&self, writer: WriterIndex, write: &mut Write, burst: &mut Burst) -> bool {
        let now = burst.take_begun().unwrap_or_else(monotonic_now);
        let until = burst.begin(now);
        burst.end(now);
        let payload = std::mem::take(&mut write.payload);
        let left = self.writes.leave(LeftWrite { writer, write: Write { payload, ..*write }, until });
        match left {
            Ok(()) => {
                self.queued.fetch_add(1, Ordering::Relaxed);
                self.help();
                true
            }
            Err(left) => {
                write.payload = left.write.payload;
                false
            }
        }
    }

    /// The token, for which a burst may have to wait: that is no pause of its own.
    fn token_in(&self, burst: &mut Burst) -> MutexGuard<'_, Core> {
        let core = self.enter();
        burst.end(core.now);
        core
    }

    fn write_now(
        &self,
        mut core: MutexGuard<'_, Core>,
        writer: WriterIndex,
        write: &mut Write,
        burst: &mut Burst,
    ) -> std::result::Result<(), Full> {
        self.run_writes(&mut core);
        let now = core.now;
        let until = burst.begin(now);
        let len = write.payload.len();
        let may_wait = until > now && write.kind == ChangeKind::Alive;
        let outcome = core.participant.write(now, writer, write);
        // What waits is what fills the window.
        if outcome.is_err() || !may_wait || !self.hold(&mut core, until, len, burst) {
            self.release(&mut core);
        }
        self.send(&mut core, TxClass::Data);
        burst.end(core.now);
        if self.give_back(core) {
            burst.end(monotonic_now());
        }
        outcome.map(|_| ())
    }

    /// A fresh change of `len` bytes waits for company until then. `false` if it is to be sent now.
    fn hold(&self, core: &mut Core, until: Time, len: usize, burst: &Burst) -> bool {
        let nobody_sends = self.holding.is_telling();
        let fresh = core.participant.has_work(TxClass::Data) && !core.participant.has_work(TxClass::Critical);
        if nobody_sends || !fresh || !core.held.add(len) {
            return false;
        }
        if !self.holding.hold(&mut core.held, until, &self.role) {
            if burst.goes_on() {
                self.call_background();
            }
            return false;
        }
        core.held.until > core.now
    }

    /// What waits for company is to be sent with the next that is.
    pub fn release(&self, core: &mut Core) {
        self.holding.release(&mut core.held);
    }

    /// Runs what others have left for the holder of the token. Whoever waits for it gets it between two shares.
    pub fn run_writes(&self, core: &mut MutexGuard<'_, Core>) {
        let mut begun = false;
        self.writes.run(JobClass::Writes.budget(), |writes| {
            if std::mem::replace(&mut begun, true) {
                self.let_others(core);
            }
            self.run(core, JobClass::Writes, |core, _| {
                let mut count = 0;
                for LeftWrite { writer, mut write, until } in writes {
                    if until <= core.now || !core.held.add(write.payload.len()) {
                        self.release(core);
                    }
                    // Only writers that always have room leave their changes.
                    let _ = core.participant.write(core.now, writer, &mut write);
                    count += 1;
                }
                count
            });
        });
        core.accounts.note_run();
    }

    /// After a write was left, or the token given back: whoever holds the token runs it, or this thread does.
    pub fn help(&self) {
        let serve = |mut core: MutexGuard<'_, Core>| {
            core.enter(None);
            self.run_writes(&mut core);
            self.send(&mut core, TxClass::Data);
            self.finish(core);
        };
        self.writes.help(|| self.try_token(), serve);
    }

    /// Sends what is to be sent now of class `lowest` and above: user data first, in a step of their own.
    pub fn send(&self, core: &mut Core, lowest: TxClass) {
        let lowest = core.lowest_now(lowest);
        if lowest > TxClass::Data {
            self.send_in_a_step(core, TxClass::Data);
        }
        self.send_in_a_step(core, lowest);
    }

    fn send_in_a_step(&self, core: &mut Core, lowest: TxClass) {
        if !core.participant.has_work(lowest) {
            return;
        }
        if lowest >= TxClass::Data {
            self.release(core);
        }
        // User data that one step leaves come before all else in the next, too.
        let is_user = core.participant.has_work(TxClass::Data);
        let class = if is_user { JobClass::SendUser } else { JobClass::SendMeta };
        self.run(core, class, |core, budget| {
            let now = core.exact_now();
            core.participant.poll_transmit(now, &mut core.port, lowest, budget).calls
        });
    }

    /// Gives the token back and tells of the news; then looks once more for what others have left. Returns
    /// whether that took its time, as somebody was woken or told.
    pub fn give_back(&self, core: MutexGuard<'_, Core>) -> bool {
        let busy = self.finish(core);
        self.help();
        busy
    }

    pub fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> bool {
        if core.participant.is_quiet() {
            return self.let_go(core, false);
        }
        // Not one within the other: there may be many.
        while self.tell(core) {
            core = self.await_token().0;
        }
        true
    }

    /// Unlocks, and wakes the driver if there is something for it. Returns whether it did.
    pub fn let_go(&self, core: MutexGuard<'_, Core>, news: bool) -> bool {
        let more_work = core.has_work(TxClass::Discovery);
        let (next, held_until) = (core.next_timeout(), core.held.until);
        self.polling.note_due(if news || more_work { Time(0) } else { next.min(held_until) });
        MutexGuard::unlock_fair(core);
        let kicked = self.holding.oversleeps(news || more_work, next, held_until) && self.kick();
        self.leave_broken();
        kicked
    }

    /// Wakes the driver if it sleeps. Returns whether it did.
    pub fn kick(&self) -> bool {
        let sleeps = self.holding.rouse();
        if sleeps && !self.polling.is_on() {
            self.kicks.fetch_add(1, Ordering::Relaxed);
            self.watch.wake();
        }
        sleeps
    }

    /// Somebody beside the token has something for whoever waits here.
    pub fn be_rung(&self) {
        self.kicks.fetch_add(1, Ordering::Relaxed);
        // The driver may be on its way to sleep: it finds the eventfd written.
        self.watch.wake();
        if self.role.has_followers() {
            self.role.tell_followers();
        }
    }

    pub fn wait<R>(
        &self,
        until: Option<Time>,
        mut ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        loop {
            let claim = self.role.claim();
            if claim == Claim::Taken {
                let role = Driving::new(self);
                return self.drive_until(&role, until, &mut ready);
            }
            let seen = self.role.start_following();
            let (found, now) = self.look_now(&mut ready);
            let ends = found.is_some() || until.is_some_and(|until| until <= now);
            if !ends {
                let until = self.instant(until, now);
                match claim {
                    Claim::Background if !self.polling.has_thread() => {
                        self.role.follow_wanting(seen, until, || _ = self.kick())
                    }
                    _ => self.role.follow(seen, until, || {}),
                }
            }
            self.role.stop_following();
            if ends {
                return found;
            }
        }
    }

    /// The same for a writer: the background thread is to go on driving, as the next burst needs it.
    pub fn wait_behind<R>(
        &self,
        until: Option<Time>,
        mut ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        if self.background_thread.lock().is_none() {
            return self.wait(until, ready);
        }
        loop {
            let seen = self.role.start_following();
            let (found, now) = self.look_now(&mut ready);
            let ends = found.is_some() || until.is_some_and(|until| until <= now);
            if !ends {
                self.call_background();
                self.role.follow_news(seen, self.instant(until, now));
            }
            self.role.stop_following();
            if ends {
                return found;
            }
        }
    }

    /// Has the background thread drive if nobody does.
    fn call_background(&self) {
        if self.role.call_background() {
            self.unpark_background();
        }
    }

    pub fn unpark_background(&self) {
        if let Some(thread) = self.background_thread.lock().as_ref() {
            thread.unpark();
        }
    }

    fn instant(&self, until: Option<Time>, now: Time) -> Option<std::time::Instant> {
        until.map(|until| std::time::Instant::now() + until.since(now).into())
    }
}
