//! Job classes, their order and budgets, and what becomes of their time: how long steps wait and run.

use std::time::Duration;

use crate::account::counts::Counts;
use crate::account::latency::{Histogram, JobReport, LatencyReport, Spread};
use crate::driver::drive::HEARS_AFTER;

/// A class of middleware work, highest first: what callers ask for, what comes for the user and goes out for him, what
/// keeps the participant known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum JobClass {
    /// What a caller has written while the token was taken.
    Writes,
    /// Calls of the API that look at the participant or change it.
    Calls,
    /// Datagrams on the user's addresses.
    ReceiveUser,
    /// Fresh changes, acknowledgements and repairs of user data, in their own order.
    SendUser,
    /// Heartbeats, leases, liveliness, announcements that are due.
    Timers,
    /// Datagrams on discovery's addresses.
    ReceiveMeta,
    /// Liveliness and discovery.
    SendMeta,
}

impl JobClass {
    /// All, highest first.
    pub const ALL: [JobClass; 7] = [
        JobClass::Writes,
        JobClass::Calls,
        JobClass::ReceiveUser,
        JobClass::SendUser,
        JobClass::Timers,
        JobClass::ReceiveMeta,
        JobClass::SendMeta,
    ];

    /// The most one step of the class does; less if that would take too long. *Units*: writes, calls of the API, datagrams
    /// received, calls that send (of one datagram or of a row of them, to one destination), timers. Higher makes a class
    /// below another wait longer; lower costs a round of the loop per burst.
    pub const fn budget(self) -> usize {
        match self {
            JobClass::Writes => 64,
            JobClass::Calls => 1,
            JobClass::ReceiveUser => 32,
            JobClass::SendUser => 64,
            JobClass::Timers => 64,
            JobClass::ReceiveMeta => 16,
            JobClass::SendMeta => 32,
        }
    }

    /// Is it below what comes for the user and goes out for him?
    pub(crate) const fn is_lower(self) -> bool {
        matches!(self, JobClass::Timers | JobClass::ReceiveMeta | JobClass::SendMeta)
    }

    /// Do its steps come before one of this class that waits? All of the classes above do. What was written before a call
    /// is sent before it, and between two looks for samples others are sent.
    const fn comes_before(self, waiting: JobClass) -> bool {
        (self as usize) < waiting as usize
            || matches!((self, waiting), (JobClass::SendUser, JobClass::Calls | JobClass::ReceiveUser))
    }

    /// Does it let a write come first that is made while it runs?
    pub(crate) const fn gives_way(self) -> bool {
        !matches!(self, JobClass::Writes)
    }

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            JobClass::Writes => "writes",
            JobClass::Calls => "calls",
            JobClass::ReceiveUser => "receive_user",
            JobClass::SendUser => "send_user",
            JobClass::Timers => "timers",
            JobClass::ReceiveMeta => "receive_meta",
            JobClass::SendMeta => "send_meta",
        }
    }
}

/// The shares of [`Spread`].
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// The times of one class. The longest is kept as it was, the others to a sixteenth.
#[derive(Clone, Default)]
struct Times {
    /// Most steps do not wait.
    zeros: u64,
    /// The times that were noted beside those; `None` before the first: a participant does not have work of each class.
    counts: Option<Box<Counts>>,
    /// The longest before the last [`Times::take_recent`], and since.
    longest_ns: u64,
    recent_ns: u64,
    total_ns: u64,
    /// What the total was when the account began anew.
    began_ns: u64,
}

impl Times {
    /// Forgets what was noted, and keeps the memory.
    fn begin_anew(&mut self) {
        let counts = self.counts.take();
        *self = Times { counts, total_ns: self.total_ns, began_ns: self.total_ns, ..Times::default() };
        self.counts.iter_mut().for_each(|counts| counts.clear());
    }

    /// All of them together.
    fn total(&self) -> Duration {
        Duration::from_nanos(self.total_ns - self.began_ns)
    }

    /// Most often it is 0.
    #[inline]
    fn note_rare(&mut self, ns: u64) {
        if ns == 0 {
            self.zeros += 1;
        } else {
            self.note_long(ns);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_long(&mut self, ns: u64) {
        self.note(ns);
    }

    #[inline(always)]
    fn note(&mut self, ns: u64) {
        self.counts.get_or_insert_with(Counts::new).note(ns);
        self.recent_ns = self.recent_ns.max(ns);
        self.total_ns += ns;
    }

    fn longest(&self) -> u64 {
        self.longest_ns.max(self.recent_ns)
    }

    /// The longest since the last call of this.
    fn take_recent(&mut self) -> Duration {
        self.longest_ns = self.longest();
        Duration::from_nanos(std::mem::take(&mut self.recent_ns))
    }

    fn len(&self) -> u64 {
        self.zeros + self.counts.as_ref().map_or(0, |counts| counts.len())
    }

    fn spread(&self) -> Spread {
        let [p50, p99, p999] = QUANTILES.map(|share| self.quantile(share));
        let (longest, histogram) = (Duration::from_nanos(self.longest()), Some(self.histogram()));
        Spread { p50, p99, p999, longest, histogram }
    }

    fn histogram(&self) -> Histogram {
        let others = self.counts.as_ref().map(|counts| counts.up_to(Histogram::BOUNDS_NS));
        let up_to = others.unwrap_or_default().map(|others| self.zeros + others);
        Histogram { up_to, count: self.len(), total: self.total() }
    }

    /// This share of the times is not above.
    fn quantile(&self, share: f64) -> Duration {
        let others = share * self.len() as f64 - self.zeros as f64;
        let Some(counts) = self.counts.as_ref().filter(|_| others > 0.0) else { return Duration::ZERO };
        let among = others / counts.len() as f64;
        Duration::from_nanos(counts.quantile(among).min(self.longest()))
    }
}

/// A step is to take no longer than this, if what it does can be parted at all. Lower and long samples take more rounds
/// of the loop, of some microseconds each; higher and a critical writer waits for longer. *Units*: ns.
const STEP_NS: u64 = 200_000;

/// What a step of a class has done.
#[derive(Clone, Copy)]
pub(crate) struct Done {
    /// *Units*: those of [`JobClass::budget`].
    pub count: usize,
    /// The same by what it costs, where one is not like another: a long datagram counts as several.
    pub cost: usize,
}

impl From<usize> for Done {
    fn from(count: usize) -> Done {
        Done { count, cost: count }
    }
}

/// Steps up to this are so short that nothing is to be learned from them. Lower has most steps pay for a division, higher
/// overlooks a class that takes as long as this for each. *Units*: ns.
const SHORT_NS: u64 = STEP_NS / 4;

/// How long one of what a class does takes, if so long that its whole budget would be too much.
#[derive(Clone, Copy, Default)]
struct Pace {
    each_ns: u64,
}

impl Pace {
    /// How much can be done in the time of a step, one at least.
    #[inline]
    fn within(self, most: usize) -> usize {
        if self.each_ns == 0 { most } else { self.limit(most) }
    }

    #[cold]
    #[inline(never)]
    fn limit(self, most: usize) -> usize {
        usize::try_from(STEP_NS / self.each_ns).unwrap_or(most).clamp(1, most)
    }

    /// So much has taken this long.
    #[inline]
    fn learn(&mut self, ns: u64, cost: usize, most: usize) {
        if self.each_ns != 0 || ns > SHORT_NS {
            self.learn_from(ns, cost, most);
        }
    }

    /// A step that was stopped in the middle counts as one that was too long, and no more: it is soon forgotten.
    #[cold]
    #[inline(never)]
    fn learn_from(&mut self, ns: u64, cost: usize, most: usize) {
        let Some(each) = ns.checked_div(cost as u64) else { return };
        let each = each.min(STEP_NS);
        let before = if self.each_ns == 0 { each } else { self.each_ns };
        let each = before - before / 8 + each / 8;
        self.each_ns = if each.saturating_mul(most as u64) <= STEP_NS { 0 } else { each };
    }
}

/// The account of one class.
#[derive(Clone, Default)]
struct Account {
    waiting: Times,
    running: Times,
    most: usize,
    pace: Pace,
    /// What all its steps had taken before the first one of the round.
    before_ns: u64,
    /// The longest that several in one round took.
    run_ns: u64,
    /// The longest that those took which one of the class waited for.
    own_ns: u64,
}

impl Account {
    /// A step that is not the first of the round; all before it had taken so much.
    #[cold]
    fn note_another(&mut self, class: JobClass, total_ns: u64) {
        // One write most often was not there yet while the others ran: see [`Accounts::note_line`].
        if class.gives_way() {
            self.own_ns = self.own_ns.max(total_ns - self.before_ns);
        }
        self.note_run();
    }

    fn note_run(&mut self) {
        self.run_ns = self.run_ns.max(self.running.total_ns - self.before_ns);
    }

    fn begin_anew(&mut self) {
        (self.most, self.run_ns, self.own_ns) = (0, 0, 0);
        [&mut self.waiting, &mut self.running].into_iter().for_each(Times::begin_anew);
    }

    /// The longest that its steps in one round took.
    fn longest_run(&self) -> u64 {
        self.run_ns.max(self.running.longest())
    }
}

/// The accounts of all classes.
#[derive(Clone, Default)]
pub(crate) struct Accounts {
    classes: [Account; JobClass::ALL.len()],
    ahead: Ahead,
    /// A bit for each class that has run since the token was taken.
    in_round: u8,
}

/// A round that is interrupted: what all steps of each class had taken before its first in that round, and until now.
pub(crate) struct Round([(u64, u64); JobClass::ALL.len()]);

/// Steps that gave way to nobody, one after another.
#[derive(Clone, Default)]
struct Ahead {
    /// While a thread wanted the token.
    of_threads: u64,
    /// While writes were left to its holder.
    of_writes: u64,
    most: u64,
    /// Of lower classes, while samples may have come; `None` while nobody drives who would look for them.
    of_samples: Option<u64>,
    most_of_samples: u64,
}

impl Accounts {
    /// Takes the memory of all classes, rather than that of each with its first step.
    pub fn prefault(&mut self) {
        for times in self.classes.iter_mut().flat_map(|of| [&mut of.waiting, &mut of.running]) {
            times.counts.get_or_insert_with(Counts::new);
        }
    }

    /// Forgets all times; what was learned of how much a step may do stays.
    pub fn begin_anew(&mut self) {
        self.in_round = 0;
        (self.ahead.most, self.ahead.most_of_samples) = (0, 0);
        self.classes.iter_mut().for_each(Account::begin_anew);
    }

    /// What the next step of a class may do.
    #[inline]
    pub fn budget(&self, class: JobClass) -> usize {
        self.classes[class as usize].pace.within(class.budget())
    }

    /// A thread has got the token, and begins a round of steps.
    #[inline]
    pub fn begin_round(&mut self) {
        self.in_round = 0;
        self.note_offered();
    }

    /// Others get the token in the midst of one.
    pub fn interrupt(&self) -> Round {
        let ran = |class: JobClass| self.in_round & (1 << class as u8) != 0;
        Round(JobClass::ALL.map(|class| {
            let Account { before_ns, running, .. } = &self.classes[class as usize];
            (if ran(class) { *before_ns } else { running.total_ns }, running.total_ns)
        }))
    }

    /// It goes on. What others did meanwhile came before what is left of it, unless they had more turns than those that
    /// had asked: then its thread did not run, and they waited for nobody.
    pub fn resume(&mut self, round: &Round, waited: bool) {
        self.in_round = u8::MAX;
        for (account, of_round) in self.classes.iter_mut().zip(round.0) {
            // The account may have begun anew meanwhile.
            let (before_ns, total_ns) =
                (of_round.0.max(account.running.began_ns), of_round.1.max(account.running.began_ns));
            let own_ns = total_ns - before_ns;
            account.before_ns = if waited { before_ns } else { account.running.total_ns - own_ns };
            account.note_run();
        }
    }

    /// Writes that were left have waited for so long while those before them were run.
    pub fn note_line(&mut self, waited: taut_base::Duration) {
        let own_ns = &mut self.classes[JobClass::Writes as usize].own_ns;
        *own_ns = waited.0.max(0).unsigned_abs().max(*own_ns);
    }

    /// Accounts for one step of a class, which did so much. *Cost*: two counts.
    #[inline(always)]
    pub fn note(
        &mut self,
        class: JobClass,
        (waited, ran): (taut_base::Duration, taut_base::Duration),
        done: Done,
    ) {
        let ran = ran.0.max(0).unsigned_abs();
        let account = &mut self.classes[class as usize];
        account.waiting.note_rare(waited.0.max(0).unsigned_abs());
        let total_ns = account.running.total_ns;
        account.running.note(ran);
        let bit = 1 << class as u8;
        if self.in_round & bit == 0 {
            self.in_round |= bit;
            account.before_ns = total_ns;
        } else {
            account.note_another(class, total_ns);
        }
        account.most = done.count.max(account.most);
        account.pace.learn(ran, done.cost, class.budget());
    }

    /// At the end of a step that gives way: does a thread want the token, is a critical write left to its holder?
    #[inline]
    pub fn note_ahead(&mut self, wanted: bool, left: bool) {
        if wanted || left {
            self.count_ahead(wanted, left);
        } else {
            (self.ahead.of_threads, self.ahead.of_writes) = (0, 0);
        }
    }

    #[cold]
    fn count_ahead(&mut self, wanted: bool, left: bool) {
        let Ahead { of_threads, of_writes, most, .. } = &mut self.ahead;
        *of_threads = if wanted { *of_threads + 1 } else { 0 };
        *of_writes = if left { *of_writes + 1 } else { 0 };
        *most = (*of_threads).max(*of_writes).max(*most);
    }

    /// Threads could have the token.
    pub fn note_offered(&mut self) {
        self.ahead.of_threads = 0;
    }

    /// Whoever drives has looked for samples.
    pub fn note_heard(&mut self) {
        self.ahead.of_samples = Some(0);
    }

    /// It looks for nothing before it has slept or is back, or drives no more.
    pub fn end_round(&mut self) {
        self.ahead.of_samples = None;
    }

    /// A step of a lower class begins, and the last look for samples is long ago.
    pub fn note_unheard(&mut self) {
        let Ahead { of_samples, most_of_samples, .. } = &mut self.ahead;
        if let Some(count) = of_samples {
            *count += 1;
            *most_of_samples = (*count).max(*most_of_samples);
        }
    }

    /// Does somebody drive who looks for samples before it sleeps, or drives no more?
    pub fn is_in_round(&self) -> bool {
        self.ahead.of_samples.is_some()
    }

    /// The most of these steps between two looks.
    pub fn steps_ahead_of_samples(&self) -> u64 {
        self.ahead.most_of_samples
    }

    /// What was left has been run.
    pub fn note_run(&mut self) {
        self.ahead.of_writes = 0;
    }

    /// How long the longest step of each class took since the last call of this.
    pub fn take_recent(&mut self) -> [Duration; JobClass::ALL.len()] {
        self.classes.each_mut().map(|of| of.running.take_recent())
    }

    /// See [`LatencyReport::bound`].
    fn bound(&self, class: JobClass) -> Duration {
        let before = |other: &JobClass| other.comes_before(class);
        let runs = JobClass::ALL.into_iter().filter(before).map(|of| self.classes[of as usize].longest_run());
        let begun = self.classes.iter().map(|of| of.running.longest()).max().unwrap_or_default();
        let Account { own_ns, waiting, .. } = &self.classes[class as usize];
        // Lower steps that begin before that may all be over by then.
        let unheard = if class == JobClass::ReceiveUser { HEARS_AFTER.0.unsigned_abs() } else { 0 };
        Duration::from_nanos((begun + unheard + runs.sum::<u64>() + own_ns).max(waiting.longest()))
    }

    pub fn report(&self) -> LatencyReport {
        let of = |class: JobClass| {
            let Account { waiting, running, most, .. } = &self.classes[class as usize];
            let (steps, busy) = (running.len(), running.total());
            let (most, waiting, running) = (*most, waiting.spread(), running.spread());
            JobReport { class, steps, most, waiting, running, busy, bound: self.bound(class) }
        };
        let (classes, listeners) = (JobClass::ALL.map(of), Duration::ZERO);
        LatencyReport { classes, listeners, steps_ahead: self.ahead.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    const fn us(n: i64) -> taut_base::Duration {
        taut_base::Duration::from_micros(n)
    }

    fn report() -> LatencyReport {
        let mut accounts = Accounts::default();
        for n in 1..=1_000 {
            accounts.begin_round();
            accounts.note(JobClass::ReceiveUser, (us(n), us(2 * n)), 1.into());
        }
        accounts.note(JobClass::Timers, (us(1), us(5_000)), 1.into());
        accounts.note(JobClass::ReceiveMeta, (us(20_000), us(1)), 7.into());
        accounts.report()
    }

    #[test]
    fn a_step_does_what_takes_as_long_as_a_step_may() {
        let mut accounts = Accounts::default();
        let mut budget_after = |times: usize, each_us: i64, count: usize| {
            let ran = us(each_us * i64::try_from(count).unwrap());
            (0..times).for_each(|_| accounts.note(JobClass::SendUser, (us(0), ran), count.into()));
            accounts.budget(JobClass::SendUser)
        };
        let most = JobClass::SendUser.budget();
        assert_eq!(budget_after(100, 2, 10), most, "short ones");
        assert_eq!(budget_after(1, 10_000, 1), 1, "one that was stopped");
        assert!(budget_after(16, 2, 1) >= 5);
        assert_eq!(budget_after(32, 2, 1), most, "and is forgotten");
        assert_eq!(budget_after(1, 20, 8), 10, "rows of 64 kB, from the first step on");
        assert_eq!(budget_after(100, 900, 1), 1, "one at least");
        assert_eq!(
            accounts.budget(JobClass::ReceiveUser),
            JobClass::ReceiveUser.budget(),
            "each class by itself"
        );
    }

    #[test]
    fn what_costs_more_counts_as_several() {
        let mut accounts = Accounts::default();
        (0..100).for_each(|_| {
            accounts.note(JobClass::ReceiveUser, (us(0), us(160)), Done { count: 1, cost: 8 });
        });
        let budget = accounts.budget(JobClass::ReceiveUser);
        assert!((10..=11).contains(&budget), "{budget} of 20 us each");
    }

    #[test]
    fn a_step_waits_for_one_that_has_begun_and_for_those_above() {
        let report = report();
        assert_eq!(report.longest_step(), (JobClass::Timers, 5_000 * US));
        assert_eq!(report.bound(JobClass::Writes), 5_000 * US);
        assert_eq!(
            report.bound(JobClass::ReceiveUser),
            5_020 * US,
            "what is lower and began before its last look"
        );
        assert_eq!(report.bound(JobClass::SendUser), 7_000 * US);
        assert_eq!(report.bound(JobClass::SendMeta), 12_001 * US);
        assert_eq!(report.bound(JobClass::ReceiveMeta), 20_000 * US, "not below what was seen");
    }

    /// Steps of one round, each of which waits for all before.
    fn round(accounts: &mut Accounts, steps: &[(JobClass, u32)]) -> u32 {
        accounts.begin_round();
        let mut passed = 0;
        for (class, ran) in steps {
            accounts.note(*class, (us(passed.into()), us((*ran).into())), 1.into());
            passed += ran;
        }
        passed
    }

    #[test]
    fn a_step_waits_for_all_of_a_class_that_come_before_it_in_a_round() {
        let mut accounts = Accounts::default();
        // Many samples, and once something of discovery that takes longer: never in one round.
        let samples = round(&mut accounts, &[(JobClass::ReceiveUser, 100); 10]);
        round(
            &mut accounts,
            &[(JobClass::SendUser, 30), (JobClass::SendUser, 20), (JobClass::ReceiveMeta, 300)],
        );
        round(&mut accounts, &[(JobClass::ReceiveUser, 100), (JobClass::SendUser, 40)]);
        let bound = |accounts: &Accounts, class: JobClass| accounts.report().bound(class);
        // A timer that becomes due when the latter has just begun, and a round of the former that comes then.
        let waits = 300 * US + samples * US;
        let report = accounts.report();
        let above = report.classes[..JobClass::Timers as usize].iter().map(|of| of.running.longest);
        assert!(
            report.longest_step().1 + above.sum::<Duration>() < waits,
            "one step of each class is not all of it"
        );
        assert!(report.bound(JobClass::Timers) >= waits);
        assert_eq!(bound(&accounts, JobClass::Timers), 1_350 * US);
        assert_eq!(bound(&accounts, JobClass::SendUser), 1_330 * US, "with the one that is before it");
        assert_eq!(
            bound(&accounts, JobClass::ReceiveUser),
            1_270 * US,
            "the last of ten, after some were sent"
        );
        assert_eq!(bound(&accounts, JobClass::Writes), 300 * US);
        accounts.note_line(us(70));
        assert_eq!(bound(&accounts, JobClass::Writes), 370 * US, "with those left before");
        assert_eq!(bound(&accounts, JobClass::Calls), 350 * US, "what was written before is sent");
    }

    #[test]
    fn what_others_do_meanwhile_is_of_the_round_that_they_interrupt() {
        let mut accounts = Accounts::default();
        round(&mut accounts, &[(JobClass::Timers, 5)]);
        round(&mut accounts, &[(JobClass::ReceiveUser, 10)]);
        let interrupted = accounts.interrupt();
        (0..3)
            .for_each(|_| _ = round(&mut accounts, &[(JobClass::SendUser, 50), (JobClass::ReceiveUser, 1)]));
        accounts.resume(&interrupted, true);
        assert_eq!(accounts.report().bound(JobClass::Timers), (50 + 13 + 150) * US);
        accounts.note(JobClass::SendUser, (us(163), us(20)), 1.into());
        accounts.note(JobClass::Timers, (us(183), us(5)), 1.into());
        assert_eq!(
            accounts.report().bound(JobClass::ReceiveMeta),
            (50 + 13 + 170 + 5) * US,
            "and it goes on"
        );
        round(&mut accounts, &[(JobClass::SendUser, 20)]);
        assert_eq!(accounts.report().bound(JobClass::Timers), (50 + 13 + 170) * US);
        let mut accounts = Accounts::default();
        round(&mut accounts, &[(JobClass::ReceiveUser, 10)]);
        let interrupted = accounts.interrupt();
        (0..3)
            .for_each(|_| _ = round(&mut accounts, &[(JobClass::SendUser, 50), (JobClass::ReceiveUser, 1)]));
        accounts.resume(&interrupted, false);
        accounts.note(JobClass::ReceiveUser, (us(163), us(5)), 1.into());
        assert_eq!(accounts.report().bound(JobClass::Timers), (50 + 15 + 50) * US, "it did not run");
    }

    #[test]
    fn times_are_spread_as_they_came() {
        let JobReport { steps, waiting, running, .. } = report().classes[JobClass::ReceiveUser as usize];
        assert_eq!((steps, waiting.longest, running.longest), (1_000, 1_000 * US, 2_000 * US));
        let near = |time: Duration, us: u32| time >= us * US && time <= us * US * 11 / 10;
        assert!(near(waiting.p50, 500) && near(running.p50, 1_000), "{waiting:?} {running:?}");
        assert!(near(waiting.p99, 990) || waiting.p99 == waiting.longest);
    }

    #[test]
    fn steps_are_ahead_of_who_could_not_come_between() {
        let mut accounts = Accounts::default();
        let mut most = |wanted, left, offers: fn(&mut Accounts)| {
            accounts.note_ahead(wanted, left);
            offers(&mut accounts);
            accounts.report().steps_ahead
        };
        assert_eq!(most(false, false, |_| {}), 0, "nobody waits");
        assert_eq!(most(true, false, Accounts::note_offered), 1, "for the step that had begun");
        assert_eq!(most(true, false, Accounts::note_run), 1);
        assert_eq!(most(true, true, Accounts::note_run), 2, "it was not offered");
        assert_eq!(most(true, true, Accounts::note_offered), 3);
        assert_eq!(
            [most(false, true, |_| {}), most(false, true, |_| {}), most(false, true, |_| {})],
            [3, 3, 4]
        );
    }

    #[test]
    fn lower_steps_are_ahead_of_samples_while_somebody_drives() {
        let mut accounts = Accounts::default();
        let mut most = |steps: usize, then: fn(&mut Accounts)| {
            (0..steps).for_each(|_| accounts.note_unheard());
            then(&mut accounts);
            accounts.steps_ahead_of_samples()
        };
        assert_eq!(most(3, Accounts::note_heard), 0, "nobody drives");
        assert_eq!([most(1, Accounts::note_heard), most(1, Accounts::end_round)], [1, 1]);
        assert_eq!(most(2, Accounts::note_heard), 1);
        assert_eq!(most(2, Accounts::note_heard), 2);
    }

    #[test]
    fn the_longest_is_told_since_the_last_look_too() {
        let mut accounts = Accounts::default();
        let mut recent = |times: &[i64]| {
            times.iter().for_each(|n| accounts.note(JobClass::SendUser, (us(0), us(*n)), 1.into()));
            let recent = accounts.take_recent()[JobClass::SendUser as usize];
            let JobReport { running, busy, .. } = accounts.report().classes[JobClass::SendUser as usize];
            (recent, running.longest, busy)
        };
        assert_eq!(recent(&[5, 9, 7]), (9 * US, 9 * US, 21 * US));
        assert_eq!(recent(&[3]), (3 * US, 9 * US, 24 * US));
        assert_eq!(recent(&[]), (Duration::ZERO, 9 * US, 24 * US));
    }

    #[test]
    fn most_steps_do_not_wait() {
        let mut times = Times::default();
        (0..990).for_each(|_| times.note_rare(0));
        (0..10).for_each(|_| times.note_rare(50_000));
        let Spread { p50, p99, p999, longest, histogram } = times.spread();
        assert_eq!((p50, p99, longest), (Duration::ZERO, Duration::ZERO, 50 * US));
        assert!(p999 > 45 * US, "{p999:?}");
        let Histogram { up_to, count, total } = histogram.unwrap();
        assert_eq!((count, total), (1_000, 500 * US));
        assert_eq!((up_to[0], up_to[4], up_to[6], up_to[15]), (990, 990, 1_000, 1_000));
    }

    #[test]
    fn what_a_round_did_before_the_account_began_anew_is_not_in_its_bounds() {
        let mut accounts = Accounts::default();
        accounts.begin_round();
        accounts.note(JobClass::ReceiveUser, (us(7), us(50_000)), 9.into());
        let round = accounts.interrupt();
        accounts.note(JobClass::Calls, (us(30_000), us(20_000)), 1.into());
        accounts.begin_anew();
        accounts.note(JobClass::Calls, (us(0), us(3)), 1.into());
        accounts.resume(&round, true);
        accounts.note(JobClass::ReceiveUser, (us(0), us(40)), 2.into());
        let report = accounts.report();
        let [of, calls] =
            [JobClass::ReceiveUser, JobClass::Calls].map(|class| report.classes[class as usize]);
        assert_eq!((of.steps, of.most, of.busy, of.waiting.longest), (1, 2, 40 * US, Duration::ZERO));
        assert_eq!((calls.steps, calls.busy), (1, 3 * US));
        assert!(report.bound(JobClass::SendMeta) < 200 * US, "{report}");
    }
}
