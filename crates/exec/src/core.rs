//! What the token of a participant protects: its state machine, its port, and the account of what is done with it.
//!
//! Owns the time of a step: the clock is read when the token is got and when a step ends. Must never wait.

use std::sync::Arc;

use log::Level;
use taut_base::{Guid, Time};
use taut_dcps::{DomainParticipant, Entity, Late, StatusMask};
use taut_rtps::TxClass;

use crate::account::jobs::{Accounts, Done, JobClass};
use crate::account::recorder::{Activity, RecordCause, Recorder};
use crate::account::reports::Schedule;
use crate::clock::monotonic_now;
use crate::driver::drive::{HEARS_AFTER, Lower};
use crate::net::network::network;
use crate::net::ports::Ports;
use crate::write::burst::{Held, LONGEST};
use crate::write::owed::Owed;

/// What the token protects.
pub(crate) struct Core {
    pub participant: DomainParticipant,
    pub port: Ports,
    pub accounts: Accounts,
    pub recorder: Recorder,
    pub reports: Schedule,
    /// Datagrams whose handling panicked.
    pub panics: u64,
    /// The last reading of the clock by a holder of the token.
    pub now: Time,
    /// Fresh changes that wait for company.
    pub held: Held,
    /// Since when what its holder does could have been done.
    pub ready: Time,
    /// When the user's sources were last looked at.
    pub heard_at: Time,
    /// Have samples come in this round?
    pub have_come: bool,
    /// What a round goes on with below the user's samples.
    pub next_lower: Lower,
    /// Did the last one end with timers, before that?
    pub had_timers: bool,
    /// The source of discovery that had its step last.
    pub last_meta: usize,
    /// When to look which interfaces there are now; `NEVER` while nothing has changed.
    pub follow_at: Time,
    /// From when on it is told what the system has not sent.
    pub unsent_at: Time,
    /// That it cannot be looked has been said since the last change.
    pub is_refused_said: bool,
    /// The network namespace in which the ports were opened.
    pub network: Option<u64>,
    /// What its writers leave to whoever drives.
    pub owed: Arc<Owed>,
    /// Samples say when they are sent and received.
    pub is_exact: bool,
    /// What the log is told when the token is given back, with the news of the participant.
    pub lines: Vec<(Level, String)>,
}

impl Core {
    pub fn new(participant: DomainParticipant, port: Ports, recorder: Recorder) -> Core {
        let (accounts, now, held) = (Accounts::default(), monotonic_now(), Held::NOTHING);
        let reports = Schedule::default();
        let follow_at = Time::NEVER;
        let (panics, ready, owed) = (0, now, Arc::default());
        let is_exact = participant.core().config().anatomy.is_some();
        Core {
            participant,
            port,
            accounts,
            recorder,
            reports,
            panics,
            now,
            held,
            ready,
            heard_at: now,
            have_come: false,
            next_lower: Lower::Timers,
            had_timers: false,
            last_meta: 0,
            follow_at,
            unsent_at: now,
            is_refused_said: false,
            network: network(),
            owed,
            is_exact,
            lines: Vec::new(),
        }
    }

    /// The time of this step; what it is now if somebody wants to know where the latency of samples went.
    #[inline]
    pub fn exact_now(&self) -> Time {
        if self.is_exact { monotonic_now() } else { self.now }
    }

    /// The user's sources are looked at now.
    pub fn hear(&mut self) {
        self.heard_at = self.now;
        self.accounts.note_heard();
    }

    /// Was that so long ago that samples may wait?
    #[inline]
    pub fn is_unheard(&self) -> bool {
        self.now >= self.heard_at + HEARS_AFTER
    }

    /// Reads the clock: what follows happens now. The last holder's may be some ns ahead of this thread's.
    pub fn read_clock(&mut self) {
        self.now = self.now.max(monotonic_now());
    }

    /// The same for one who has just got the token, and was kept waiting for it from then on, if at all.
    pub fn enter(&mut self, since: Option<Time>) {
        self.read_clock();
        self.ready = since.unwrap_or(self.now);
        self.accounts.begin_round();
    }

    /// The same for one who has read the clock just before.
    pub fn enter_at(&mut self, just_now: Option<Time>) {
        match just_now {
            Some(just_now) => self.now = self.now.max(just_now),
            None => self.read_clock(),
        }
        self.ready = self.now;
        self.accounts.begin_round();
    }

    /// When the next timer is due.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let participant = self.participant.next_timeout().unwrap_or(Time::NEVER);
        participant
            .min(self.port.next_timeout(self.now))
            .min(self.reports.at)
            .min(self.follow_at)
            .min(self.owed.next())
    }

    /// Until when there is nothing to be done but to receive; `None` if there is something now.
    #[inline]
    pub fn idle_until(&self) -> Option<Time> {
        if self.participant.has_work(TxClass::Discovery) || self.port.has_aside() {
            return None;
        }
        Some(self.next_timeout()).filter(|next| *next > self.now)
    }

    /// Is there something to be sent now of class `lowest` or above?
    #[inline]
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.participant.has_work(lowest) && self.participant.has_work(self.lowest_now(lowest))
    }

    /// While fresh changes wait for company, nothing from their class on is sent. Those that wait for longer than a burst's do
    /// go with whatever else there is to send.
    #[inline(never)]
    pub fn lowest_now(&self, lowest: TxClass) -> TxClass {
        let until = self.held.until;
        let is_over = until == Time::NEVER || until <= self.now;
        let is_long = until > self.now + LONGEST;
        if is_over || is_long && self.has_others() { lowest } else { lowest.min(TxClass::Repair) }
    }

    /// Is there something to be sent of the class of fresh changes or below besides those that wait?
    pub fn has_others(&self) -> bool {
        self.participant.has_work_beside(self.held.writers)
    }

    /// Runs one step of a class, which says how much it did, from the last reading of the clock to the next, and
    /// accounts for it.
    ///
    /// *Cost*: one reading. A step begins where the last has ended, so what its holder did between them counts. One that
    /// knows better since when it could have run says so in `ready`.
    #[inline(always)]
    pub fn run<D: Into<Done>>(&mut self, class: JobClass, step: impl FnOnce(&mut Core, usize) -> D) {
        let start = self.now;
        if class.is_lower() && self.is_unheard() {
            self.accounts.note_unheard();
        }
        let done: Done = step(self, self.accounts.budget(class)).into();
        self.read_clock();
        let (waited, ran) = (start.since(self.ready), self.now.since(start));
        self.accounts.note(class, (waited, ran), done);
        if self.recorder.note(Activity::Step(class), start, waited, ran, done.count) {
            self.record(RecordCause::LongStep(Activity::Step(class)));
        }
    }

    /// Wakes whom writers have left asleep, and tells of the deadlines that they have missed.
    pub fn look_at_owed(&mut self) {
        let Core { participant, owed, .. } = self;
        owed.look(self.now, |writer, missed| participant.note_offered_deadlines(writer, missed));
    }

    /// Tells the log when the token is given back: a logger is the user's, who may use the participant.
    pub fn log(&mut self, level: Level, line: String) {
        self.lines.push((level, line));
        self.participant.tell(Entity::Participant, StatusMask::NONE);
    }

    /// Has the flight recorder make a record, to be told with the next news.
    #[cold]
    pub fn record(&mut self, cause: RecordCause) {
        if self.recorder.make(self.now, cause) {
            self.participant.tell(Entity::Participant, StatusMask::NONE);
        }
    }

    /// The same for a sample that took longer than its writer's LATENCY_BUDGET.
    pub fn record_late(&mut self, late: Late) {
        let topic = self.topic_of(Entity::Reader(late.reader));
        let (took, budget) = (late.took.into(), late.budget.into());
        self.recorder.make(self.now, RecordCause::LatencyBudgetExceeded { topic, took, budget });
    }

    /// The same for an entity that has missed a deadline.
    pub fn record_missed_deadline(&mut self, entity: Entity) {
        let topic = self.topic_of(entity);
        self.recorder.make(self.now, RecordCause::DeadlineMissed { topic });
    }

    fn guid_of(&self, entity: Entity) -> Option<Guid> {
        let core = self.participant.core();
        match entity {
            Entity::Reader(index) => core.reader(index).map(|reader| reader.guid),
            Entity::Writer(index) => core.writer(index).map(|writer| writer.guid),
            Entity::Participant => None,
        }
    }

    fn topic_of(&self, entity: Entity) -> String {
        let topic = |guid: Guid| self.participant.core().topic_of(guid.entity);
        self.guid_of(entity).and_then(topic).unwrap_or_default().to_owned()
    }

    /// For a line of the log.
    #[cold]
    pub fn name_of(&self, entity: Entity) -> String {
        let (topic, what) =
            (self.topic_of(entity), if matches!(entity, Entity::Writer(_)) { "writer" } else { "reader" });
        self.guid_of(entity)
            .map_or("the participant".into(), |guid| format!("{what} {guid} of topic {topic:?}"))
    }
}
