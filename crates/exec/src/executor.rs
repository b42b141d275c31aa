//! Drives one participant: how it starts, waits and ends. What is done with the token is in `token` and `writes`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use taut_base::{Duration, Error, GuidPrefix, Result, Time};
use taut_dcps::{DomainParticipant, Entity, StatusMask};
use taut_lock::{Mutex, thread_id};
use taut_mem::Region;
use taut_mem::lane::Bell;
use taut_rtps::TxClass;

use crate::account::jobs::JobClass;
use crate::account::latency::LatencyReport;
use crate::account::recorder::{FlightRecord, Recorder};
use crate::account::reports::Reports;
use crate::clock::{monotonic_now, wall_clock_now};
use crate::config::{Driver, ExecutorConfig, LaneMemory};
use crate::core::Core;
use crate::driver::background::{self, Background};
use crate::driver::driving::Driving;
use crate::driver::hand::Hand;
use crate::driver::holding::Holding;
use crate::driver::news::Topics;
use crate::driver::polling::Polling;
use crate::driver::rhythm::{Rhythm, Steady};
use crate::driver::role::{Claim, Role};
use crate::driver::waiting::Spin;
use crate::driver::watch::Watch;
use crate::hooks::{Hooks, Listener, Waits};
use crate::lanes::door::{Table, TableDoors};
use crate::lanes::local::Joins;
use crate::lanes::neighbours::{FIRST_SOURCE, Neighbours, PAGE};
use crate::lanes::own::Own;
use crate::net::ports::Ports;
use crate::process::{Process, forked};
use crate::scheduling;
use crate::telling::Listening;
use crate::write::burst;
use crate::write::goodbye::Silent;
use crate::write::left::Left;
use crate::write::outlet::Told;
use crate::write::owed::Owed;
use crate::write::writes::{LeftWrite, QUEUE};

/// Drives one participant.
pub struct Executor {
    pub(crate) inner: Arc<Inner>,
    pub(crate) background: Option<Background>,
    /// It shares the participant with the executor that started it, and does not end it.
    pub(crate) is_guest: bool,
    /// The process that has made it.
    pub(crate) process: &'static Process,
    /// Its word, nearer.
    pub(crate) word: &'static AtomicU32,
}

pub(crate) struct Inner {
    pub me: Weak<Inner>,
    pub core: Mutex<Core>,
    /// Threads that wait for it.
    pub asking: AtomicUsize,
    pub doors: Arc<Table>,
    pub joins: Joins,
    pub bell: Arc<Bell>,
    /// May it use lanes?
    pub local: bool,
    /// Is it driven by calls alone?
    pub is_inline: bool,
    /// How long a wait looks before it sleeps.
    pub spin: Duration,
    /// Its samples say where their latency goes.
    pub tells_anatomy: bool,
    /// How long listeners took.
    pub listening: Listening,
    /// How lanes are made in memory that other processes can see, and what was said of those that were not.
    lanes: (LaneMemory, Told),
    /// Whether the driver looks at the port before it sleeps there.
    pub port_spin: Spin,
    /// When the next sample is expected there.
    pub rhythm: Rhythm,
    pub neighbours: Neighbours,
    pub prefix: GuidPrefix,
    pub writes: Left<LeftWrite>,
    pub owed: Arc<Owed>,
    /// For whom no writer that goes waits.
    pub silent: Silent,
    pub role: Role,
    pub polling: Polling,
    /// What its threads tell each other of samples that wait.
    pub holding: Holding,
    pub hooks: Hooks,
    /// Empty, with the room of what listeners have left before.
    pub leftover: Mutex<Vec<(Entity, StatusMask)>>,
    pub reports: Reports,
    pub watch: Watch,
    /// What whoever drives looks at itself.
    pub hand: Option<Mutex<Hand>>,
    pub closing: AtomicBool,
    pub background_thread: Mutex<Option<std::thread::Thread>>,
    pub tokens: AtomicU64,
    pub contended: AtomicU64,
    pub queued: AtomicU64,
    pub kicks: AtomicU64,
    pub reminders: AtomicU64,
}

/// Steps in which all are told that a participant leaves. Lower and some of the 4,096 that it may know believe in it until its
/// lease is over, higher and its end waits for longer where others keep it busy.
const LEAVE_STEPS: usize = 256;

/// What an executor has done.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// How often the token was taken: the lock of all paths that leave the machine.
    pub tokens: u64,
    /// How often it had to be waited for.
    pub contended: u64,
    /// How often a thread had to wait for any lock of an executor, the token among them. Of all participants of this
    /// process together.
    pub lock_waits: u64,
    /// How often whoever drives asked the kernel what is ready, or slept until something is. Beside those of `port`
    /// and `frames` these are the system calls of a sample.
    pub waits: u64,
    /// Writes that were left to the holder of the token.
    pub queued_writes: u64,
    /// How often another thread has called whoever drives, which wakes that one if it sleeps.
    pub kicks: u64,
    /// How often a timer was to wake one in time for something that others had left it since.
    pub reminders: u64,
    /// The most steps of timers or discovery that began, one after another, when whoever drives had looked for samples last
    /// more than 20 us before: 1 is the one that a sample waits for which comes while it runs.
    pub steps_ahead_of_samples: u64,
    /// What has become of samples that were expected; `None` without `wake_ahead`.
    pub steady: Option<Steady>,
    /// The counts of the sockets.
    pub port: taut_port_udp::Stats,
    /// Those of frames, by AF_XDP or by DPDK, if anything goes past the kernel's stack.
    pub frames: Option<taut_ethernet::Stats>,
    /// How AF_XDP uses its interface, as it was found when that was opened: in the driver or behind it, with copies or
    /// without; and what each of its queues has done since then. `None` without AF_XDP, and while the interface is lost:
    /// removed, without the program, or the `taut netd` that had opened it has ended.
    pub xdp: Option<taut_port_xdp::Probed>,
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
    if config.driver == Driver::Inline { Ok(()) } else { scheduling::may_make_threads() }
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
        let mut participant = DomainParticipant::with_doors(about, held);
        if let Some(max) = config.max_rate {
            participant.set_max_rate(max);
        }
        // What is local may expire before anything has come.
        participant.set_wall_clock(monotonic_now(), wall_clock_now());
        let region = neighbours.own.as_ref().map_or_else(|| Region::heap(PAGE), Own::bell);
        let bell = Bell::new(region).expect("invariant: a page is enough for a word");
        let hand = Hand::open(&mut port);
        let watch = Watch::new(&port, hand.as_ref())?;
        let core = Core::new(participant, port, Recorder::new(config.longest_step));
        let inner = Arc::new_cyclic(|me| Inner {
            me: Weak::clone(me),
            doors,
            joins: Joins::default(),
            bell: Arc::new(bell),
            neighbours,
            prefix,
            local: config.local,
            is_inline: config.driver == Driver::Inline,
            spin: config.spin,
            tells_anatomy: config.anatomy > 0,
            listening: Listening::new(config.longest_step),
            lanes: (config.lanes, Told::default()),
            port_spin: Spin::default(),
            rhythm: Rhythm::new(config.wake_ahead),
            owed: Arc::clone(&core.owed),
            silent: Silent::default(),
            core: Mutex::new(core),
            asking: AtomicUsize::new(0),
            writes: Left::new(QUEUE),
            role: Role::default(),
            polling: Polling::new(config.driver == Driver::Polling, hand.as_ref()),
            holding: Holding::default(),
            hooks: Hooks::default(),
            leftover: Mutex::default(),
            reports: Reports::default(),
            watch,
            hand: hand.map(Mutex::new),
            closing: AtomicBool::new(false),
            background_thread: Mutex::new(None),
            tokens: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            kicks: AtomicU64::new(0),
            reminders: AtomicU64::new(0),
        });
        Process::this().register(prefix, &inner);
        inner.neighbours.fd(|fd| {
            // Without it neighbours are met by their listeners only.
            let _ = inner.watch.add(fd, FIRST_SOURCE);
        });
        inner.with(|participant, now| participant.on_timeout(now, JobClass::Timers.budget()));
        if config.lock_process {
            inner.prefault();
        }
        background::executor(inner, config)
    }

    pub(crate) fn of(inner: Arc<Inner>, is_guest: bool) -> Executor {
        let process = Process::this();
        Executor { inner, background: None, is_guest, process, word: process.word() }
    }

    /// Of the participant and all its endpoints.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.inner.prefix
    }

    /// Runs `call` with the participant and sends what came of it, all from this thread.
    ///
    /// *Errors*: those of [`Executor::may_use`]. *Cost*: the token; a system call for each datagram.
    pub fn with<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> Result<R> {
        self.may_use()?;
        Ok(self.inner.with(call))
    }

    /// The same, for looking and taking: samples that wait for company go on waiting. While some do, only what ranks above
    /// them is sent (acknowledgements, repairs, samples with a TRANSPORT_PRIORITY), otherwise all that there is.
    pub fn look<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> Result<R> {
        self.may_use()?;
        Ok(self.inner.look(call))
    }

    /// Looks for a call that has no error to return: in the child of a fork there is nothing to see.
    fn peek<R: Default>(&self, look: impl FnOnce(&mut Core) -> R) -> R {
        if self.is_forked() { R::default() } else { self.inner.peek(look) }
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
    /// *Errors*: [`Error::PreconditionNotMet`] while another thread drives, or from a listener or a waker.
    pub fn run_once(&self, until: Option<Time>) -> Result<()> {
        self.run(until, None)
    }

    /// The same, for so long at most.
    pub fn run_once_for(&self, timeout: Duration) -> Result<()> {
        let now = monotonic_now();
        self.run(Some(now + timeout), Some(now))
    }

    fn run(&self, until: Option<Time>, just_now: Option<Time>) -> Result<()> {
        self.may_wait()?;
        let refused = |text: &str| Err(Error::PreconditionNotMet(text.into()));
        if self.is_threaded() {
            return refused("a background thread drives: run_once is for Driver::Inline");
        }
        let role = match self.inner.role.claim() {
            Claim::Taken => Some(Driving::new(&self.inner)),
            // It polls, is asked whether to go on, and drives on.
            _ if self.inner.role.is_away(thread_id()) => None,
            _ => return refused("another thread drives: it is in run_once, too, or waits for samples"),
        };
        role.iter().for_each(Driving::note_driven);
        self.inner.drive_once(until, just_now);
        Ok(())
    }

    /// May the calling thread wait for this participant? What it waits for could not come while it runs a listener, or a
    /// waker that runs its task there and then.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`].
    pub fn may_wait(&self) -> Result<()> {
        self.may_ask_again()?;
        if self.inner.hooks.is_waking() {
            let text = "a task cannot wait within its waker: that runs on the thread that brings what it would wait for; \
                        have the waker leave the task to a thread of your own, or use a call that does not wait";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        Ok(())
    }

    /// May it be woken, and ask again then? A listener is not; a task is, wherever it runs.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`].
    pub fn may_ask_again(&self) -> Result<()> {
        self.may_use()?;
        if self.inner.hooks.is_telling() {
            let text = "a listener cannot wait: it runs on the thread that brings what it would wait for; \
                        do so in a thread of your own, or use a call that does not wait";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        Ok(())
    }

    /// Sets or takes away the listener of an entity. Returns whether it had one.
    ///
    /// *Errors*: those of [`Executor::may_use`]. *Cost*: the token.
    pub fn set_listener(&self, entity: Entity, listener: Option<Listener>) -> Result<bool> {
        self.may_use()?;
        let of = self.inner.peek(|core| core.name_of(entity));
        Ok(self.inner.hooks.set_listener(entity, of, listener))
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
        let accounts = self.peek(|core| core.accounts.clone());
        accounts.report().with_listeners(self.inner.listening.longest())
    }

    /// Forgets the times so far, so that reports tell those from now on. *Cost*: the token for some 55 kB that are cleared.
    pub fn begin_latency_report(&self) {
        self.inner.listening.begin_anew();
        self.peek(|core| core.accounts.begin_anew());
    }

    /// The same, and how long the longest step of each class took since the last call of this.
    pub fn take_latency_report(&self) -> (LatencyReport, [std::time::Duration; JobClass::ALL.len()]) {
        let (accounts, recent) = self.peek(|core| (core.accounts.clone(), core.accounts.take_recent()));
        (accounts.report().with_listeners(self.inner.listening.longest()), recent)
    }

    /// The steps before a deadline was missed, or something ran for too long, the last time.
    pub fn flight_record(&self) -> Option<Arc<FlightRecord>> {
        self.peek(|core| core.recorder.kept())
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        if self.is_forked() { Stats::default() } else { self.inner.stats() }
    }

    /// Is this the child of a fork, which has the memory of what its parent goes on with? What ends here does not end there.
    #[inline]
    pub fn is_forked(&self) -> bool {
        self.word.load(Ordering::Relaxed) == 0
    }

    /// The same for what ends here: it asks the kernel, too, as that child may not be told. *Cost*: a system call.
    pub fn ends_elsewhere(&self) -> bool {
        !self.process.is_this()
    }

    /// May the calling process use it? All that takes its locks, waits for its threads or writes into its memory asks before,
    /// but for what goes with it.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] in the child of a fork. *Cost*: a load.
    #[inline]
    pub fn may_use(&self) -> Result<()> {
        if self.is_forked() { Err(forked()) } else { Ok(()) }
    }

    /// Says goodbye to the peers and ends the background thread.
    fn close(&mut self) {
        self.inner.reports.close();
        Process::this().unregister(self.inner.prefix);
        self.inner.with(|participant, _| participant.leave());
        (0..LEAVE_STEPS).any(|_| self.tell_all());
        self.inner.follow_ends();
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.kick();
        if let Some(background) = self.background.take() {
            background.end();
        }
    }

    /// Sends what one step may. Returns whether that was all.
    fn tell_all(&self) -> bool {
        let mut core = self.inner.enter();
        self.inner.send(&mut core, TxClass::Discovery);
        let is_all = !core.participant.has_work(TxClass::Discovery);
        self.inner.give_back(core);
        is_all
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if self.ends_elsewhere() {
            // Its sockets, its shared memory and its name are the parent's, its thread is not here.
            std::mem::forget((Arc::clone(&self.inner), self.background.take()));
        } else if !self.is_guest {
            self.close();
        }
    }
}

impl Inner {
    /// Takes the memory that the participant works with. What cannot be had is told, and waited for when it is used.
    fn prefault(&self) {
        self.writes.prefault();
        self.peek(|core| {
            core.accounts.prefault();
            core.port.udp.prefault();
        });
        if let Err(error) = taut_port_shm::prefault_code() {
            log::warn!("{error}");
        }
    }

    /// How lanes are made in memory that other processes can see; `None` where there is none.
    pub fn lane_memory(&self) -> Option<(LaneMemory, &Told)> {
        self.neighbours.own.is_some().then_some((self.lanes.0, &self.lanes.1))
    }

    fn stats(&self) -> Stats {
        let local = [
            ("local_doubts", self.neighbours.doubts.load(Ordering::Relaxed)),
            ("broken_lanes", self.doors.broken_lanes()),
        ];
        let (mut refused, port, frames, xdp, panics, steps_ahead_of_samples) = self.peek(|core| {
            let Core { participant, port, panics, accounts, .. } = core;
            let refused = participant.core().counters().refused();
            let (ahead, panics) = (accounts.steps_ahead_of_samples(), *panics);
            (refused, port.udp.stats(), port.frame_stats(), port.xdp_probed(), panics, ahead)
        });
        refused.extend(local.into_iter().filter(|(_, count)| *count > 0));
        Stats {
            tokens: self.tokens.load(Ordering::Relaxed),
            contended: self.contended.load(Ordering::Relaxed),
            lock_waits: taut_lock::waits(),
            waits: self.watch.calls(),
            queued_writes: self.queued.load(Ordering::Relaxed),
            kicks: self.kicks.load(Ordering::Relaxed),
            reminders: self.reminders.load(Ordering::Relaxed),
            steps_ahead_of_samples,
            steady: self.rhythm.steady(),
            port,
            frames,
            xdp,
            panics,
            refused,
        }
    }

    pub fn wait<R>(
        &self,
        until: Option<Time>,
        ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        self.wait_first(until, Topics::ALL, |_| None, ready)
    }

    /// The same of who waits for news `of` these, and in a way of its own first if nobody else drives: `None` of that if the usual
    /// one has to follow.
    #[inline]
    pub fn wait_first<R>(
        &self,
        until: Option<Time>,
        of: Topics,
        first: impl FnOnce(&Driving) -> Option<R>,
        mut ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        let mut first = Some(first);
        loop {
            let claim = self.role.claim();
            if claim == Claim::Taken {
                let role = Driving::new(self);
                let found = first.take().and_then(|first| first(&role));
                return found.or_else(|| self.drive_until(Some(&role), until, &mut ready));
            }
            if self.role.is_out(thread_id) {
                return self.drive_until(None, until, &mut ready);
            }
            let seen = self.role.start_following();
            let (found, now) = self.look_now(&mut ready);
            let ends = found.is_some() || until.is_some_and(|until| until <= now);
            if !ends {
                burst::note_wait();
                let until = self.instant(until, now);
                match claim {
                    Claim::Background if !self.polling.has_thread() => {
                        self.role.follow_wanting(seen, of, until, || _ = self.kick())
                    }
                    _ => self.role.follow(seen, of, until, || {}),
                }
            }
            self.role.stop_following();
            if ends {
                return found;
            }
        }
    }

    /// The same for a writer: the background thread is to go on driving, as the next burst needs it. It may be the caller.
    pub fn wait_behind<R>(
        &self,
        until: Option<Time>,
        mut ready: impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        if self.background_thread.lock().is_none() || self.role.is_out(thread_id) {
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
    pub fn call_background(&self) {
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
