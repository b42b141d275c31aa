//! The driver that never sleeps: a thread of Taut's, or of the program. A binary of its own: it looks at the threads.

use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use taut::qos::ResourceLimits;
use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, Qos};
use taut_testbed::threads_of_taut;

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(10);

/// Past the network or by it.
fn config(domain_id: u32, driver: Driver, local: bool) -> Config {
    Config { domain_id, driver, local, interfaces: vec!["lo".into()], ..Config::default() }
}

fn pair(
    writer: &DomainParticipant,
    reader: &DomainParticipant,
    topic: &str,
    qos: &Qos,
) -> (DataWriter<Number>, DataReader<Number>) {
    let w = writer.topic::<Number>(topic).unwrap().writer(qos.clone()).unwrap();
    let r = reader.topic::<Number>(topic).unwrap().reader(qos.clone()).unwrap();
    w.wait_matched(SOON).unwrap();
    r.wait_matched(SOON).unwrap();
    (w, r)
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

/// How often the thread of this process with this number has gone to sleep, and for how many ticks it has run.
fn sleeps_and_ticks(task: &str) -> (u64, u64) {
    let read = |file| read_to_string(format!("/proc/self/task/{task}/{file}")).unwrap();
    let (status, stat) = (read("status"), read("stat"));
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    // utime and stime, by where they stand behind the name: proc_pid_stat(5).
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    (sleeps.unwrap().trim().parse().unwrap(), ticks)
}

/// One after the other: they look at all threads of the process, and each takes a processor.
#[test]
fn polling() {
    it_never_sleeps();
    threads_that_wait_are_served(false);
    threads_that_wait_are_served(true);
    a_program_may_poll_itself();
    only_one_drives();
    who_polls_may_wait(false);
    who_polls_may_wait(true);
    it_is_not_stopped();
}

fn it_never_sleeps() {
    let participant = DomainParticipant::with_config(&config(50, Driver::Polling, true)).unwrap();
    let [task] = &threads_of_taut()[..] else { panic!("{:?}", threads_of_taut()) };
    let sleeps_while_it_runs = || {
        let (sleeps, ticks) = sleeps_and_ticks(task);
        let until = Instant::now() + SOON.into();
        while sleeps_and_ticks(task).1 < ticks + 20 {
            assert!(Instant::now() < until, "it does not run");
        }
        sleeps_and_ticks(task).0 - sleeps
    };
    // The kernel has it wait for memory, or for who reads about it, now and then. One that sleeps does so each time.
    let mut sleeps = Vec::new();
    let never = (0..10).any(|_| {
        sleeps.push(sleeps_while_it_runs());
        sleeps.last() == Some(&0)
    });
    assert!(never, "it has slept: {sleeps:?}");
    drop(participant);
    assert_eq!(threads_of_taut(), Vec::<String>::new(), "it ends with the participant");
}

fn threads_that_wait_are_served(local: bool) {
    let new = |driver| DomainParticipant::with_config(&config(51, driver, local)).unwrap();
    let (a, b) = (new(Driver::Polling), new(Driver::Threaded));
    let (there, to_b) = pair(&a, &b, "There", &reliable());
    let (back, to_a) = pair(&b, &a, "Back", &reliable());
    let echo = std::thread::spawn(move || {
        for _ in 0..200 {
            to_b.wait(SOON).unwrap();
            back.write(&to_b.take_next().unwrap().unwrap().data.unwrap()).unwrap();
        }
    });
    for value in 0..200 {
        there.write(&Number { value }).unwrap();
        to_a.wait(SOON).unwrap();
        assert_eq!(to_a.take_next().unwrap().unwrap().data, Some(Number { value }));
    }
    echo.join().unwrap();
    there.wait_for_acknowledgments(SOON).unwrap();
    let waited = to_a.wait(Duration::from_millis(20));
    assert!(matches!(waited, Err(Error::Timeout(_))), "nothing comes: {waited:?}");

    let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let (full, taken) = pair(&a, &b, "Full", &reliable().resource_limits(limits).max_blocking_time(SOON));
    let taker = std::thread::spawn(move || {
        for value in 0..100 {
            taken.wait(SOON).unwrap();
            assert_eq!(taken.take_next().unwrap().unwrap().data, Some(Number { value }));
        }
    });
    (0..100).for_each(|value| full.write(&Number { value }).unwrap());
    taker.join().unwrap();

    let (heard_writer, heard_reader) = pair(&b, &a, "Heard", &reliable());
    let (send, heard) = mpsc::channel();
    heard_reader.on_data_available(move |sample| send.send(sample.data.unwrap().value).unwrap());
    heard_writer.write(&Number { value: 7 }).unwrap();
    assert_eq!(heard.recv_timeout(SOON.into()), Ok(7));

    // A burst whose last samples nobody but the driver sends.
    let (burst, of_burst) = pair(&a, &b, "Burst", &reliable());
    (0..300).for_each(|value| burst.write(&Number { value }).unwrap());
    for value in 0..300 {
        of_burst.wait(SOON).unwrap();
        assert_eq!(of_burst.take_next().unwrap().unwrap().data, Some(Number { value }));
    }
    if !local {
        let calls = a.stats().kicks + a.stats().reminders;
        assert!(calls < 20, "{calls} system calls to wake who does not sleep");
    }
}

fn a_program_may_poll_itself() {
    let inline = DomainParticipant::with_config(&config(52, Driver::Inline, true)).unwrap();
    let other = DomainParticipant::with_config(&config(52, Driver::Threaded, true)).unwrap();
    let goes_on = AtomicBool::new(true);
    let (writer, reader) = std::thread::scope(|scope| {
        let poller = scope.spawn(|| inline.poll_while(|| goes_on.load(Ordering::SeqCst)));
        let (writer, reader) = pair(&other, &inline, "Poll", &reliable());
        for value in 0..50 {
            writer.write(&Number { value }).unwrap();
            reader.wait(SOON).unwrap();
            assert_eq!(reader.take_next().unwrap().unwrap().data, Some(Number { value }));
        }
        goes_on.store(false, Ordering::SeqCst);
        poller.join().unwrap().unwrap();
        (writer, reader)
    });
    // It is as before when nobody polls any more.
    writer.write(&Number { value: 1 }).unwrap();
    reader.wait(SOON).unwrap();
}

fn only_one_drives() {
    let refused = |participant: &DomainParticipant| match participant.poll_while(|| true) {
        Err(Error::PreconditionNotMet(text)) => text,
        other => panic!("{other:?}"),
    };
    let polling = DomainParticipant::with_config(&config(53, Driver::Polling, true)).unwrap();
    assert!(refused(&polling).contains("Driver::Inline"));
    assert!(polling.run_once(Duration::ZERO).is_err());
    let inline = Arc::new(DomainParticipant::with_config(&config(53, Driver::Inline, true)).unwrap());
    let (polls, nested) = (Arc::clone(&inline), Arc::clone(&inline));
    let mut is_first = true;
    polls
        .poll_while(|| {
            if std::mem::take(&mut is_first) {
                let nested = Arc::clone(&nested);
                let other = std::thread::spawn(move || refused(&nested)).join().unwrap();
                assert!(other.contains("another thread drives"), "{other}");
                let own = refused(&polls);
                assert!(own.contains("this thread is in poll_while already"), "{own}");
                return true;
            }
            false
        })
        .unwrap();
}

/// Whatever asks whether to go on does so on the thread that drives: what it waits for comes all the same.
fn who_polls_may_wait(local: bool) {
    // More than a writer and its reader hold, less than those of both topics.
    const MANY: u32 = 12;
    let new = |driver| DomainParticipant::with_config(&config(56, driver, local)).unwrap();
    let (inline, other) = (new(Driver::Inline), new(Driver::Threaded));
    let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let qos = reliable().resource_limits(limits).max_blocking_time(SOON);
    let end = |participant: &DomainParticipant, topic| {
        let topic = participant.topic::<Number>(topic).unwrap();
        move |qos: &Qos| (topic.writer(qos.clone()).unwrap(), topic.reader(qos.clone()).unwrap())
    };
    let [(there, _), (_, here)] = [end(&inline, "There"), end(&inline, "Back")].map(|end| end(&qos));
    let [(_, to_other), (back, _)] = [end(&other, "There"), end(&other, "Back")].map(|end| end(&qos));
    let (tell, matched) = mpsc::channel();
    let echo = std::thread::spawn(move || {
        to_other.wait_matched(SOON).unwrap();
        back.wait_matched(SOON).unwrap();
        tell.send(()).unwrap();
        for _ in 0..MANY {
            to_other.wait(SOON).unwrap();
            back.write(&to_other.take_next().unwrap().unwrap().data.unwrap()).unwrap();
        }
        back.wait_for_acknowledgments(SOON).unwrap();
    });
    inline
        .poll_while(|| {
            if matched.try_recv().is_err() {
                return true;
            }
            there.wait_matched(SOON).unwrap();
            here.wait_matched(SOON).unwrap();
            (0..MANY).for_each(|value| there.write(&Number { value }).unwrap());
            for value in 0..MANY {
                here.wait(SOON).unwrap();
                assert_eq!(here.take_next().unwrap().unwrap().data, Some(Number { value }));
            }
            there.wait_for_acknowledgments(SOON).unwrap();
            inline.run_once(Duration::ZERO).unwrap();
            inline.run_once(Duration::from_millis(1)).unwrap();
            false
        })
        .unwrap();
    echo.join().unwrap();
    inline.run_once(Duration::ZERO).unwrap();
}

/// Has the calling thread run on this processor only.
fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).unwrap();
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

/// A thread that would like the driver's processor gets some of it, in small parts: samples do not wait for as long
/// as they do when the kernel takes it.
fn it_is_not_stopped() {
    for stops in [of_a_driver as fn() -> Option<u64>, of_who_polls_again_and_again] {
        // Where the processor stands still for a while the driver cannot rest in time, but not in each second of each run:
        // the kernel's throttle stops it in each.
        let mut runs = (0..3).map_while(|_| stops());
        let Some(first) = runs.next() else {
            return println!("not tested: no privilege for SCHED_FIFO, or one processor only");
        };
        assert!(first < 2 || runs.any(|stops| stops < 2), "{first} stops in three seconds, each time");
    }
}

/// Another thread runs for so long at once only where the driver is stopped: the kernel's throttle does so for 50 ms.
const STOP: std::time::Duration = std::time::Duration::from_millis(20);

/// Has the calling thread run under SCHED_FIFO.
fn run_with_priority(priority: u8) -> Result<(), thread_priority::Error> {
    thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        thread_priority::ThreadPriority::Crossplatform(priority.try_into().unwrap()),
        thread_priority::ThreadSchedulePolicy::Realtime(thread_priority::RealtimeThreadSchedulePolicy::Fifo),
    )
}

/// What a thread has had of the last processor that wants all of it.
#[derive(Default)]
struct Hog {
    ends: AtomicBool,
    rounds: AtomicU64,
    /// How often it has run for longer than [`STOP`] without the driver in between.
    stops: AtomicU64,
}

impl Hog {
    /// Turns the wheel until it is told that it ends. What the machine does meanwhile is not taken for a stop: where the
    /// processor stands still, so does the wheel.
    fn turn(&self) {
        /// The driver polls for more than that between two rests; an interrupt takes less.
        const INTERRUPTED: std::time::Duration = std::time::Duration::from_micros(200);
        pin(std::thread::available_parallelism().unwrap().get() - 1);
        let (mut since, mut last) = (Instant::now(), Instant::now());
        let mut is_counted = false;
        while !self.ends.load(Ordering::SeqCst) {
            let now = Instant::now();
            if now - last >= INTERRUPTED {
                (since, is_counted) = (now, false);
            }
            if now - since >= STOP && !is_counted {
                is_counted = true;
                self.stops.fetch_add(1, Ordering::SeqCst);
            }
            last = now;
            self.rounds.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often the driver has been stopped since it was so often, and the end.
    fn end(&self, stops_before: u64) -> u64 {
        let stops = self.stops.load(Ordering::SeqCst) - stops_before;
        self.ends.store(true, Ordering::SeqCst);
        assert!(self.rounds.load(Ordering::SeqCst) > 0, "it got nothing");
        stops
    }
}

/// How often a thread was stopped that polls for 200 us at a time, for three seconds.
fn of_who_polls_again_and_again() -> Option<u64> {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        return None;
    }
    let inline = DomainParticipant::with_config(&config(55, Driver::Inline, false)).unwrap();
    let hog = Hog::default();
    std::thread::scope(|scope| {
        scope.spawn(|| hog.turn());
        let poller = scope.spawn(|| {
            pin(cpus - 1);
            if run_with_priority(10).is_err() {
                hog.end(0);
                return None;
            }
            let (started, before) = (Instant::now(), hog.stops.load(Ordering::SeqCst));
            while started.elapsed().as_secs() < 3 {
                let began = Instant::now();
                inline.poll_while(|| began.elapsed().as_micros() < 200).unwrap();
            }
            // The other one does not run now.
            Some(hog.end(before))
        });
        poller.join().unwrap()
    })
}

/// The same of a driver to which 3,000 samples come.
fn of_a_driver() -> Option<u64> {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let polling =
        Config { driver_priority: 10, driver_cpus: vec![cpus - 1], ..config(54, Driver::Polling, false) };
    let reads = DomainParticipant::with_config(&polling).ok().filter(|_| cpus > 1)?;
    // Its writer keeps time under a priority of its own.
    let writes = Config { driver_priority: 20, ..config(54, Driver::Threaded, false) };
    let writes = DomainParticipant::with_config(&writes).unwrap();
    let (writer, reader) = pair(&writes, &reads, "Stops", &Qos::default().best_effort());
    let count = Arc::new(AtomicU64::new(0));
    let heard = Arc::clone(&count);
    reader.on_data_available(move |_| _ = heard.fetch_add(1, Ordering::SeqCst));
    let hog = Hog::default();
    let stops = std::thread::scope(|scope| {
        scope.spawn(|| hog.turn());
        let keeps_time = scope.spawn(move || {
            pin(0);
            run_with_priority(20).unwrap();
            for value in 0..3_000 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                writer.write(&Number { value }).unwrap();
            }
        });
        keeps_time.join().unwrap();
        hog.end(0)
    });
    let count = count.load(Ordering::SeqCst);
    assert!(count > 2_000, "{count} samples of 3,000 have come: the driver has stopped");
    Some(stops)
}
