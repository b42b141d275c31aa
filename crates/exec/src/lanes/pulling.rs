//! What lanes bring to readers that do not take it themselves: listeners, tasks, writers that want room.
//!
//! Done by whoever drives, with the token, before all else of a round.

use taut_lock::MutexGuard;

use crate::access::tell_wall_clock_to;
use crate::account::jobs::JobClass;
use crate::core::Core;
use crate::executor::Inner;
use crate::lanes::door::Door;

/// Steps of a round in which the lanes of one reader are emptied; the next round goes on. Lower takes more rounds, higher lets
/// a quick writer hold up other readers and the network for longer.
const LANE_STEPS: usize = 64;

impl Inner {
    /// Empties the lanes that somebody waits for: who watches a reader, or a writer that wants room. Others come first between
    /// two steps of that. Behind a ring those of the likely
    /// door first, alone: nobody sleeps before all were looked at.
    pub fn pull_lanes(&self, core: &mut MutexGuard<'_, Core>) {
        let is_quiet = self.doors.is_quiet_since(self.bell.armed()) && !self.doors.owes_look();
        if is_quiet || !self.doors.has_lanes() {
            return;
        }
        if let Some(door) = self.doors.likely_wanted() {
            self.give_way(core);
            return self.empty_lanes_to(core, &door);
        }
        self.doors.begin_look();
        let mut last = None;
        while let Some(door) = self.doors.next_wanted(last) {
            if last.replace(door.index).is_none() {
                // What the token's last holder was left has waited for that one's step.
                self.give_way(core);
            }
            self.doors.note_found(&door);
            self.empty_lanes_to(core, &door);
        }
    }

    fn empty_lanes_to(&self, core: &mut MutexGuard<'_, Core>, door: &Door) {
        for _ in 0..LANE_STEPS {
            let mut more = false;
            self.run(core, JobClass::ReceiveUser, |core, budget| {
                tell_wall_clock_to(&mut core.participant);
                let pulled = core.participant.pull(core.now, door.index, budget);
                if pulled.awaited {
                    door.ring_writers();
                }
                core.have_come |= pulled.read > 0;
                more = pulled.read >= budget;
                pulled.read.max(1)
            });
            self.give_way(core);
            if !(more && self.doors.is_wanted(door)) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use taut_base::Duration;
    use taut_dcps::Endpoint;
    use taut_qos::{DataReaderQos, DataWriterQos, History, Reliability};

    use crate::clock::monotonic_now;
    use crate::executor_tests::{config, endpoint, own_domain, take, write};
    use crate::{Driver, Executor, ExecutorConfig};

    const LIMIT: Duration = Duration::from_secs(20);
    /// So long a wait lasts, in which a driver that sleeps is found.
    const BRIEF: Duration = Duration::from_millis(200);

    /// HISTORY says what it keeps, however the samples come.
    #[test]
    fn a_reader_that_may_lose_samples_loses_none_that_its_history_keeps() {
        const SAMPLES: u32 = 2_000;
        let executor =
            Executor::start(&ExecutorConfig { driver: Driver::Threaded, ..config(own_domain(), true) })
                .unwrap();
        let reads = DataReaderQos { history: History::KeepLast(2 * SAMPLES), ..DataReaderQos::default() };
        let (reader, _) = executor.create_reader(endpoint(reads)).unwrap();
        let qos = DataWriterQos::default();
        let (writer, _) = executor.create_writer(endpoint(qos.clone())).unwrap();
        let (mut outlet, door) = (executor.outlet(writer, &qos).unwrap(), executor.door(reader).unwrap());
        let limit = monotonic_now() + LIMIT;
        // That may be more than it keeps.
        while !(outlet.has_readers() && outlet.is_direct()) {
            assert!(monotonic_now() < limit, "no lane begins");
            write(&executor, &mut outlet, SAMPLES);
        }
        // Those count in what it has not read.
        _ = take(&executor, reader);
        for n in 0..SAMPLES {
            write(&executor, &mut outlet, n);
            // Once it was called for, and as long as it lags so far.
            let unread = || u64::from(n).saturating_sub(door.side().cache.unread_count() as u64);
            let lane = outlet.lane.as_ref().map(|lane| lane.lane());
            while lane.is_some_and(|lane| lane.calls_readers() && unread() >= lane.cells() / 4) {
                assert!(monotonic_now() < limit, "nobody has come for {n}");
                std::thread::yield_now();
            }
        }
        assert!(outlet.has_readers());
        let taken = take(&executor, reader).into_iter().filter(|n| *n < SAMPLES);
        assert_eq!(Vec::from_iter(taken), Vec::from_iter(0..SAMPLES));
    }

    /// Whoever drives makes room for it, whatever it waits for itself.
    #[test]
    fn who_waits_at_another_door_hears_who_wants_room() {
        let executor =
            &Executor::start(&ExecutorConfig { driver: Driver::Threaded, ..config(own_domain(), true) })
                .unwrap();
        let reliable = || DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
        let reads = DataReaderQos { history: History::KeepAll, ..reliable() };
        let (reader, _) = executor.create_reader(endpoint(reads)).unwrap();
        let other = Endpoint { topic_name: "Others".into(), ..endpoint(reliable()) };
        let (other, _) = executor.create_reader(other).unwrap();
        let qos = DataWriterQos::default();
        let (writer, _) = executor.create_writer(endpoint(qos.clone())).unwrap();
        let (mut outlet, door) = (executor.outlet(writer, &qos).unwrap(), executor.door(other).unwrap());
        let limit = monotonic_now() + LIMIT;
        let until = |is_so: &mut dyn FnMut() -> bool, what: &str| {
            while !is_so() {
                assert!(monotonic_now() < limit, "{what}");
                std::thread::yield_now();
            }
        };
        let mut begins = || {
            write(executor, &mut outlet, 0);
            outlet.has_readers() && outlet.is_direct()
        };
        until(&mut begins, "no lane begins");
        // A timer has it look there, too.
        let mut is_heard_alone = || {
            _ = take(executor, reader);
            while outlet.has_room() {
                write(executor, &mut outlet, 1);
            }
            let is_second = AtomicBool::new(false);
            std::thread::scope(|scope| {
                // The first wait does what there is to do.
                let waiting = scope.spawn(|| {
                    let wait = |so_long| executor.wait_unread(&door, Some(monotonic_now() + so_long));
                    wait(Duration::from_millis(1));
                    is_second.store(true, Ordering::SeqCst);
                    wait(BRIEF)
                });
                let drives = || is_second.load(Ordering::SeqCst) && executor.inner.role.look().1;
                let sleeps = || drives() && executor.inner.holding.is_asleep();
                until(&mut || sleeps() || waiting.is_finished(), "it does not sleep");
                let looks_at = executor.inner.holding.sleeps_until();
                outlet.set_waiting(true);
                outlet.ring_readers();
                until(&mut || outlet.has_room(), "nobody makes room");
                outlet.set_waiting(false);
                monotonic_now() < looks_at && !waiting.is_finished()
            })
        };
        until(&mut is_heard_alone, "only timers make room");
    }
}
