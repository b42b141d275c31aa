//! Writes: by who has the token, or left to who has it, alone or with others; and what is sent of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use taut_base::Time;
use taut_dcps::Write;
use taut_lock::MutexGuard;
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{Full, TxClass, WriterIndex};

use crate::access::tell_wall_clock_for;
use crate::account::jobs::JobClass;
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::executor::Inner;
use crate::write::burst::Burst;
use crate::write::left::Line;
use crate::write::outlet::Route;
use crate::write::wakes::Wakes;

/// Writes of each line that wait for the holder of the token. Full, the caller waits for the token itself.
pub(crate) const QUEUE: usize = 256;
/// So many more steps a writer sends by itself of what it has written. Lower wakes the driver for the rest of a long sample,
/// and both then share one processor's caches; higher keeps the writer for longer than its own sample takes.
const STEPS: usize = 64;
/// A payload up to this is encoded so quickly that the clock need not be read again after it, and sent in one step. Lower reads
/// it for more writes, higher and the time of encoding counts as part of the step that sends. *Units*: bytes.
pub(crate) const SHORT: usize = 4_096;

/// A write that is left to the holder of the token.
pub(crate) struct LeftWrite {
    writer: WriterIndex,
    write: Write,
    /// Since when it waits.
    since: Time,
    /// Until when it may wait for company.
    until: Time,
}

impl Inner {
    /// Writes a payload of `len` bytes. If it `may_leave` it the change is left in its line to the holder of the token if that is
    /// taken, so that the caller waits for nobody; a real-time thread waits for it.
    ///
    /// *Errors*: [`Full`] if KEEP_ALL has to wait for readers, or max_samples leaves KEEP_LAST no room.
    #[inline]
    pub fn write(
        &self,
        writer: WriterIndex,
        write: &mut Write,
        len: usize,
        burst: &mut Burst,
        (line, may_leave): (Line, impl FnOnce() -> bool),
    ) -> std::result::Result<(), Full> {
        let core = match self.try_token() {
            Some(mut core) => {
                // What is long took time to encode, which is no part of a step.
                let begun = burst.take_begun().filter(|_| len <= SHORT);
                core.enter_at(begun);
                core
            }
            // A real-time thread waits, for then the holder runs at its priority: what is left to one that others
            // keep from the processor goes out when they are done.
            None => {
                let leaves = !taut_lock::is_real_time() && may_leave();
                if leaves && self.queue(writer, write, line, burst) {
                    return Ok(());
                }
                self.token_in(burst)
            }
        };
        self.write_now(core, writer, write, (line, len), burst)
    }

    /// Leaves a change to the holder of the token. `false` if the queue is full.
    #[cold]
    fn queue(&self, writer: WriterIndex, write: &mut Write, line: Line, burst: &mut Burst) -> bool {
        let now = burst.take_begun().unwrap_or_else(monotonic_now);
        let until = burst.begin(now);
        burst.end(now);
        // That an instance has ended waits for nothing.
        let until = if write.kind == ChangeKind::Alive { until } else { now };
        let payload = std::mem::take(&mut write.payload);
        let left =
            LeftWrite { writer, write: Write { payload, was_left: true, ..*write }, since: now, until };
        match self.writes.leave(left, line) {
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
    #[cold]
    fn token_in(&self, burst: &mut Burst) -> MutexGuard<'_, Core> {
        let called = burst.take_begun().unwrap_or_else(monotonic_now);
        let core = self.enter();
        burst.excuse(core.now.since(called));
        core
    }

    #[inline]
    fn write_now(
        &self,
        mut core: MutexGuard<'_, Core>,
        writer: WriterIndex,
        write: &mut Write,
        (line, len): (Line, usize),
        burst: &mut Burst,
    ) -> std::result::Result<(), Full> {
        let alone = line == Line::Critical && self.is_driven();
        if alone {
            self.run_critical(&mut core)
        } else {
            self.run_writes(&mut core)
        }
        let now = core.now;
        let until = burst.begin(now);
        let may_wait = until > now && write.kind == ChangeKind::Alive;
        let is_all_held = may_wait && !core.has_others();
        tell_wall_clock_for(&mut core.participant, writer);
        let outcome = core.participant.write(now, writer, write);
        if is_all_held {
            core.held.writers = core.participant.data_count();
        }
        // What waits is what fills the window.
        if outcome.is_err() || !may_wait || !self.hold(&mut core, until, len, burst) {
            self.send_own(&mut core, len, alone);
        } else {
            self.send(&mut core, TxClass::Data);
            self.send_on(&mut core, len);
        }
        burst.end(core.now);
        let woke = if alone { self.leave_others(core) } else { self.give_back_soon(core) };
        if woke {
            burst.end(monotonic_now());
        }
        outcome.map(|_| ())
    }

    /// A fresh change of `len` bytes waits for company until then. `false` if it is to be sent now.
    #[inline(never)]
    fn hold(&self, core: &mut Core, until: Time, len: usize, burst: &Burst) -> bool {
        let nobody_sends = self.holding.is_telling();
        let fresh = core.participant.has_work(TxClass::Data) && !core.participant.has_work(TxClass::Critical);
        if nobody_sends || !fresh || !core.held.add(len, core.port.full()) {
            return false;
        }
        // Who drives by calls of its own sends what may wait in the first that finds it due, who has suspended its
        // publisher when it resumes.
        core.held.note_patience(burst.is_suspended() || (self.is_inline && burst.has_budget()));
        let until = until.min(core.held.left_until);
        if !self.holding.hold(&mut core.held, until, &self.role) {
            if burst.goes_on() {
                self.call_background();
            }
            return false;
        }
        core.held.until > core.now
    }

    /// What waits already waits no longer than that, as something goes with it that may not.
    fn hold_no_longer(&self, core: &mut Core, until: Time) {
        if core.held.until == Time::NEVER || core.held.until <= until {
            return;
        }
        core.held.note_patience(false);
        if !self.holding.hold(&mut core.held, until, &self.role) {
            self.release(core);
        }
    }

    /// Leaves who sleeps in a lane's readers to whoever drives, to be woken then. `false` if nobody drives who would.
    #[cold]
    pub fn leave_asleep(&self, route: &Arc<Route>, wakes: &mut Wakes, now: Time, until: Time) -> bool {
        if !std::mem::replace(&mut wakes.is_known, true) {
            self.owed.asleep.know(route);
        }
        let is_first = self.owed.leave_asleep(route, until);
        // Who gives the role back, goes away with it or runs listeners looks after that for whom is left asleep.
        if self.holding.is_telling() {
            return false;
        }
        if !self.role.is_served() {
            self.call_background();
            return false;
        }
        if is_first && self.holding.oversleeps(false, until, Time::NEVER) {
            self.remind(now, until, Time::NEVER);
        }
        true
    }

    /// Sends what waits for company: there is no more of it.
    pub fn end_burst(&self) {
        let mut core = self.enter();
        self.run_writes(&mut core);
        let now = core.now;
        core.participant.end_burst(now);
        self.release(&mut core);
        self.send_data(&mut core);
        self.send_on(&mut core, usize::MAX);
        self.give_back_soon(core);
    }

    /// What waits for company is to be sent with the next that is.
    pub fn release(&self, core: &mut Core) {
        self.holding.release(&mut core.held);
    }

    /// Runs what others have left for the holder of the token. Whoever waits for it gets it between two shares.
    #[inline]
    pub fn run_writes(&self, core: &mut MutexGuard<'_, Core>) {
        if self.writes.is_any() {
            self.run_left(core, Line::Others);
        }
        core.accounts.note_run();
    }

    /// The same of critical writes alone.
    #[inline]
    fn run_critical(&self, core: &mut MutexGuard<'_, Core>) {
        if self.writes.has_critical() {
            self.run_left(core, Line::Critical);
        }
        core.accounts.note_run();
    }

    #[cold]
    fn run_left(&self, core: &mut MutexGuard<'_, Core>, last_line: Line) {
        let (ready, mut begun, mut last) = (core.ready, core.now, None);
        self.writes.run(last_line, JobClass::Writes.budget(), |line, writes| {
            if last.is_some_and(|last| last != line) {
                // The critical are not to wait for all others to be written, too.
                self.send_for_others(core, TxClass::Critical);
            }
            if last.replace(line).is_some() {
                let until = core.now;
                core.accounts.note_line(until.since(begun));
                // They begin with what is left, too.
                self.let_others(core);
                begun = begun + core.now.since(until);
            }
            self.run(core, JobClass::Writes, |core, _| self.write_all(core, writes));
        });
        core.ready = ready;
    }

    /// Writes what was left, in a step that could have begun when the first of it was.
    fn write_all(&self, core: &mut Core, writes: &mut dyn Iterator<Item = LeftWrite>) -> usize {
        let mut count = 0;
        for LeftWrite { writer, mut write, since, until } in writes {
            if count == 0 {
                core.ready = since;
            }
            if until <= core.now || !core.held.add(write.payload.len(), core.port.full()) {
                self.release(core);
            } else {
                core.held.left_until = core.held.left_until.min(until);
                self.hold_no_longer(core, until);
            }
            tell_wall_clock_for(&mut core.participant, writer);
            // What was left always has room.
            let _ = core.participant.write(core.now, writer, &mut write);
            count += 1;
        }
        count
    }

    /// Does another thread drive, or this one within what it calls, and looks at nothing but that?
    #[inline]
    fn is_driven(&self) -> bool {
        // Who is about to run listeners, to go away or to give the role back looks after it has said so for what others have left.
        self.role.is_served() && !self.holding.is_telling()
    }

    /// Gives the token back after a critical write. What is not critical, and was left meanwhile, is left once more, to whoever
    /// drives, who is woken for it: it may come as fast as one runs it.
    fn leave_others(&self, core: MutexGuard<'_, Core>) -> bool {
        if !self.writes.is_any() {
            return self.give_back_soon(core);
        }
        let woke = if core.participant.is_quiet() { self.let_go(core, true) } else { self.finish_soon(core) };
        if self.writes.is_any() && !self.has_driver_go_on() {
            self.help_on();
        }
        woke
    }

    /// Leaves what others have left once more, to whoever drives, who is woken for it. `false` if nobody drives who would.
    pub fn has_driver_go_on(&self) -> bool {
        // Who is about to visit looks after it has said so, as who is about to give the role back does.
        let goes_on = self.is_driven() && !self.role.is_visiting();
        if goes_on {
            self.kick();
        }
        goes_on
    }

    /// After a write was left, or the token given back: whoever holds the token runs it, or this thread does.
    pub fn help(&self) {
        self.writes.help(|| self.try_token(), |core| self.serve(core), || self.has_driver_go_on());
    }

    /// The same after [`Inner::let_go`], in which there is a fence.
    #[inline]
    pub fn help_on(&self) {
        self.writes.help_on(|| self.try_token(), |core| self.serve(core), || self.has_driver_go_on());
    }

    fn serve(&self, mut core: MutexGuard<'_, Core>) {
        core.enter(None);
        self.run_writes(&mut core);
        self.send(&mut core, TxClass::Data);
        self.finish_soon(core);
    }

    /// Sends what is to be sent now of class `lowest` and above: user data first, in a step of their own. Others come before
    /// each step.
    #[inline]
    pub fn send(&self, core: &mut MutexGuard<'_, Core>, lowest: TxClass) {
        if core.participant.has_work(lowest) {
            self.send_all(core, lowest);
        }
    }

    fn send_all(&self, core: &mut MutexGuard<'_, Core>, lowest: TxClass) {
        let of_user = lowest.min(TxClass::Data);
        if core.has_work(of_user) {
            self.give_way(core);
            self.send_user(core, of_user);
        }
        if lowest > TxClass::Data && core.has_work(lowest) {
            self.give_way(core);
            self.send_more(core, lowest);
        }
    }

    /// The same of what came of a call, which may have come in the midst of a round of whoever drives: discovery is left to
    /// that if it is to look for samples first. They would wait for a step of this thread, too.
    #[inline]
    pub fn send_beside(&self, core: &mut MutexGuard<'_, Core>) {
        if core.participant.has_work(TxClass::Discovery) {
            self.send_all_beside(core);
        }
    }

    fn send_all_beside(&self, core: &mut MutexGuard<'_, Core>) {
        self.send(core, TxClass::Data);
        if core.has_work(TxClass::Discovery) {
            self.give_way(core);
            if core.is_unheard() && core.accounts.is_in_round() {
                self.send_user(core, TxClass::Data);
            } else {
                self.send_more(core, TxClass::Discovery);
            }
        }
    }

    fn send_user(&self, core: &mut Core, lowest: TxClass) {
        let lowest = core.lowest_now(lowest);
        if core.participant.has_work(lowest) {
            self.send_in_a_step(core, JobClass::SendUser, lowest);
        }
    }

    /// The same of what others had left: a part of their writes, which come before, and so no step beside those.
    pub fn send_for_others(&self, core: &mut Core, lowest: TxClass) {
        let lowest = core.lowest_now(lowest);
        if core.participant.has_work(lowest) {
            if lowest >= TxClass::Data {
                self.release(core);
            }
            core.run(JobClass::SendUser, |core, budget| transmit(core, lowest, budget));
        }
    }

    #[cold]
    fn send_more(&self, core: &mut Core, lowest: TxClass) {
        let lowest = core.lowest_now(lowest);
        if lowest <= TxClass::Data || !core.participant.has_work(lowest) {
            return;
        }
        // User data that one step leaves come before all else in the next, too.
        let is_user = core.participant.has_work(TxClass::Data);
        self.send_in_a_step(core, if is_user { JobClass::SendUser } else { JobClass::SendMeta }, lowest);
    }

    /// Sends user data, none of which waits for company.
    #[inline]
    fn send_data(&self, core: &mut Core) {
        if core.participant.has_work(TxClass::Data) {
            self.run_send(core, JobClass::SendUser, TxClass::Data);
        }
    }

    /// Sends what was written just now, of `len` bytes, and what others have to send that comes before or with it, unless it is
    /// to be `alone`.
    #[inline]
    fn send_own(&self, core: &mut MutexGuard<'_, Core>, len: usize, alone: bool) {
        if alone {
            return self.send_critical(core);
        }
        self.release(core);
        self.send_data(core);
        self.send_on(core, len);
    }

    /// Of what there is to send what is critical alone: in a storm of discovery there are acknowledgements to send as fast as
    /// one sends them. They are left to whoever drives.
    #[inline(never)]
    fn send_critical(&self, core: &mut MutexGuard<'_, Core>) {
        for step in 0..=STEPS {
            if !core.participant.has_work(TxClass::Critical) {
                return;
            }
            if step > 0 {
                self.let_others(core);
                self.run_critical(core);
            }
            self.run_send(core, JobClass::SendUser, TxClass::Critical);
        }
    }

    /// What one step of a long sample has left: its writer sends it all, and lets others come between two steps. What is left
    /// behind a short one is for whoever drives.
    #[inline]
    fn send_on(&self, core: &mut MutexGuard<'_, Core>, len: usize) {
        for _ in 0..STEPS {
            if !core.has_work(TxClass::Data) || len <= SHORT && self.is_driven() {
                return;
            }
            self.give_way(core);
            self.send(core, TxClass::Data);
        }
    }

    #[inline]
    fn send_in_a_step(&self, core: &mut Core, class: JobClass, lowest: TxClass) {
        if lowest >= TxClass::Data {
            self.release(core);
        }
        self.run_send(core, class, lowest);
    }

    #[inline(always)]
    fn run_send(&self, core: &mut Core, class: JobClass, lowest: TxClass) {
        self.run(core, class, |core, budget| transmit(core, lowest, budget));
    }
}

/// Sends within the budget. Returns how many calls that took.
#[inline(always)]
fn transmit(core: &mut Core, lowest: TxClass, budget: usize) -> usize {
    let now = core.exact_now();
    core.participant.poll_transmit(now, &mut core.port, lowest, budget).calls
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use taut_base::Time;
    use taut_dcps::{Endpoint, Entity, StatusMask};
    use taut_qos::{DataWriterQos, History, ResourceLimits};
    use taut_rtps::TxClass;

    use super::SHORT;
    use crate::driver::role::Claim;
    use crate::driver::watch::Readable;
    use crate::executor_tests::{Matched, call, endpoint, executor, inline, matched, new_write, soon, write};
    use crate::write::left::HELPS;
    use crate::write::outlet::MOST_LEFT;
    use crate::{Executor, Outlet, Patience, Payload, listener};

    const LIMIT: Duration = Duration::from_secs(20);

    /// What others have to send may come as fast as one sends it.
    #[test]
    fn a_critical_write_sends_what_is_critical_and_leaves_the_rest_to_whoever_drives() {
        let Matched { out, inward, writer: other, .. } = matched(History::KeepAll);
        let inner = &out.inner;
        let qos = DataWriterQos { transport_priority: 1, ..DataWriterQos::default() };
        let (critical, _) = out.create_writer(endpoint(qos.clone())).unwrap();
        let mut outlet = out.outlet(critical, &qos).unwrap();
        let is_matched = || {
            inner.peek(|core| {
                let writer = core.participant.writer(critical);
                writer.is_some_and(|of| of.publication_matched.current_count == 1)
            })
        };
        let begun = Instant::now();
        while !is_matched() {
            assert!(begun.elapsed() < LIMIT, "no match");
            out.run_once(soon()).unwrap();
            inward.run_once(soon()).unwrap();
        }
        let has_work = |lowest| inner.peek(|core| core.participant.has_work(lowest));
        for is_served in [true, false] {
            inner.peek(|core| {
                let now = core.now;
                core.participant.write(now, other, &mut new_write()).map(drop).unwrap();
            });
            assert!(has_work(TxClass::Data));
            if is_served {
                assert_eq!(inner.role.claim(), Claim::Taken);
            }
            write(&out, &mut outlet, 1);
            assert!(!has_work(TxClass::Critical));
            assert_eq!(has_work(TxClass::Data), is_served);
            if is_served {
                inner.role.release(true);
            }
            out.run_once(Some(Time(0))).unwrap();
            assert!(!has_work(TxClass::Data), "the rest stays");
        }
    }

    /// It was left to whoever held the token.
    #[test]
    fn what_was_written_is_sent_before_its_writer_goes() {
        let Matched { out, inward, writer, reader, writes } = matched(History::KeepLast(1));
        let mut outlet = out.outlet(writer, &writes).unwrap();
        let core = out.inner.enter();
        write(&out, &mut outlet, 1);
        drop(core);
        assert!(out.inner.writes.is_any());
        out.delete_writer(writer);
        let (begun, door) = (Instant::now(), inward.door(reader).unwrap());
        while door.side().cache.unread_count() == 0 {
            assert!(begun.elapsed() < LIMIT, "it is lost");
            inward.run_once(soon()).unwrap();
        }
    }

    /// No RESOURCE_LIMITS are the user's, and the protocol has seen nearly all.
    #[test]
    fn a_keep_all_writer_leaves_a_few_short_changes_that_have_room() {
        let (executor, writer, _) = executor();
        let limits = ResourceLimits { max_samples: Some(1_000), ..ResourceLimits::default() };
        let (most, long) = (MOST_LEFT as usize, vec![0; SHORT + 1]);
        for (qos, payload, left) in [
            (DataWriterQos::default(), &long[..8], most),
            (DataWriterQos::default(), &long[..], 0),
            (DataWriterQos { transport_priority: 1, ..DataWriterQos::default() }, &long[..8], 0),
            (DataWriterQos { resource_limits: limits, ..DataWriterQos::default() }, &long[..8], 0),
        ] {
            let qos = DataWriterQos { history: History::KeepAll, ..qos };
            let mut outlet = executor.outlet(writer, &qos).unwrap();
            let (_, room) = outlet.burst_and_room();
            assert_eq!(room.is_enough_for(payload.len()), left > 0, "{qos:?}");
            if left == 0 {
                continue;
            }
            let core = executor.inner.enter();
            for _ in 0..left {
                let payload = &mut Payload::short(payload);
                executor.publish(&mut outlet, &mut call(Patience::KeepAll(None)), payload).unwrap();
            }
            assert!(executor.inner.writes.is_any() && !outlet.burst_and_room().1.is_enough_for(8));
            drop(core);
            executor.inner.help();
            assert!(!executor.inner.writes.is_any() && outlet.burst_and_room().1.is_enough_for(8));
        }
    }

    /// They may come as fast as one runs them.
    #[test]
    fn a_critical_write_runs_no_other_that_was_left() {
        let (executor, other, _) = executor();
        let inner = &executor.inner;
        // Each of its writes meets the protocol, and none has news.
        let qos = DataWriterQos { transport_priority: 1, ..DataWriterQos::default() }.transient_local();
        let elsewhere = Endpoint { topic_name: "Others".into(), ..endpoint(qos.clone()) };
        let (critical, _) = executor.create_writer(elsewhere).unwrap();
        let mut outlet = executor.outlet(critical, &qos).unwrap();
        let mut others = executor.outlet(other, &DataWriterQos::default()).unwrap();
        executor.run_once(Some(Time(0))).unwrap();
        assert_eq!(inner.role.claim(), Claim::Taken);
        for is_telling in [false, true] {
            let telling = is_telling.then(|| inner.holding.tell());
            let core = inner.enter();
            write(&executor, &mut others, 1);
            // Its holder has let go, and has not looked yet for what was left.
            drop(core);
            assert!(inner.writes.is_any());
            write(&executor, &mut outlet, 2);
            assert_eq!(inner.writes.is_any(), !is_telling, "but where who drives may be busy");
            drop(telling);
            inner.give_back(inner.step(&Readable::default(), None));
            assert!(!inner.writes.is_any());
        }
        let core = inner.enter();
        write(&executor, &mut others, 3);
        drop(core);
        write(&executor, &mut outlet, 4);
        inner.role.release(true);
        assert!(inner.writes.is_any());
        inner.send_held();
        assert!(!inner.writes.is_any(), "who gives the role back looks for it");
    }

    /// Leaves one more to a holder who lets go and does not look, with news, while whoever drives has gone to sleep.
    fn leave_one(executor: &Executor, outlet: &mut Outlet) {
        let mut core = executor.inner.enter();
        core.participant.tell(Entity::Participant, StatusMask::INCONSISTENT_TOPIC);
        write(executor, outlet, 1);
        drop(core);
        executor.inner.holding.fall_asleep(Time::NEVER, Time::NEVER);
    }

    /// Others write as fast as one runs what they have left.
    #[test]
    fn who_helps_runs_what_is_left_some_times_and_has_whoever_drives_go_on() {
        const MANY: usize = 100;
        let executor = Arc::new(inline());
        let inner = &executor.inner;
        // Each write meets the protocol, and none has news.
        let [(first, qos), (critical, critical_qos)] = [0, 1].map(|transport_priority| {
            let qos = DataWriterQos { transport_priority, ..DataWriterQos::default() }.transient_local();
            (executor.create_writer(endpoint(qos.clone())).unwrap().0, qos)
        });
        let [mut first, mut more] = [(); 2].map(|()| executor.outlet(first, &qos).unwrap());
        let mut critical = executor.outlet(critical, &critical_qos).unwrap();
        executor.run_once(Some(Time(0))).unwrap();
        let (own, calls) = (Arc::downgrade(&executor), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&calls);
        let listens = move |_| {
            if count.fetch_add(1, Ordering::SeqCst) % MANY < MANY - 1 {
                leave_one(&own.upgrade().unwrap(), &mut more);
            }
        };
        executor.set_listener(Entity::Participant, Some(listener(listens))).unwrap();
        let mut helps = || {
            let before = calls.load(Ordering::SeqCst);
            leave_one(&executor, &mut first);
            inner.help();
            let is_woken = !inner.holding.is_asleep();
            inner.holding.wake();
            (calls.load(Ordering::SeqCst) - before, inner.writes.is_any(), is_woken)
        };
        assert_eq!(helps(), (MANY, false, true), "nobody else would");
        assert_eq!(inner.role.claim(), Claim::Taken);
        assert_eq!(helps(), (HELPS, true, true));
        write(&executor, &mut critical, 2);
        assert!(inner.writes.is_any() && !inner.holding.is_asleep(), "left while it told, to one who sleeps");
        let visiting = inner.role.go_visiting(1);
        inner.help();
        assert!(!inner.writes.is_any(), "who drives may be in a listener of another participant");
        drop(visiting);
        inner.role.release(true);
    }
}
