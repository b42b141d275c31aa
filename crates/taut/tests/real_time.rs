//! What the driver's thread asks of the scheduler, and where a participant's time goes.

use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use taut::{
    Activity, Config, DdsType, DeadlineScheduling, DomainParticipant, Driver, Duration, Error, FlightRecord,
    JobClass, Qos, RecordCause, RecordedStep,
};

const LIMIT: Duration = Duration::from_secs(20);

#[derive(DdsType)]
#[dds(final)]
struct Count {
    n: u32,
}

fn config(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], local: false, ..Config::default() }
}

/// What the kernel says of each thread of this process that is called `taut`.
fn drivers(file: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let ours = tasks.filter(|task| read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "taut"));
    ours.filter_map(|task| read_to_string(task.join(file)).ok()).collect()
}

/// The fields of /proc/PID/stat from the third on.
fn stat(line: &str) -> Vec<&str> {
    line.rsplit_once(") ").unwrap().1.split(' ').collect()
}

#[test]
fn the_driver_gets_what_it_asks_for_or_says_how_to_get_it() {
    let wanted = Config { driver_priority: 7, driver_cpus: vec![0], ..config(201) };
    match DomainParticipant::with_config(&wanted) {
        Ok(_participant) => {
            // rt_priority and policy, fields 40 and 41; SCHED_FIFO is 1.
            let is_fifo = |line: &String| stat(line)[37..39] == ["7", "1"];
            assert!(drivers("stat").iter().any(is_fifo), "{:?}", drivers("stat"));
            let is_pinned = |status: &String| status.contains("Cpus_allowed_list:\t0\n");
            assert!(drivers("status").iter().any(is_pinned));
        }
        Err(Error::Error(text)) => assert!(text.contains("EPERM") && text.contains("ulimit -r 7"), "{text}"),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_driver_gets_its_deadline_or_says_how_to_get_it() {
    let [runtime, period] = [200, 1_000].map(Duration::from_micros);
    let times = DeadlineScheduling { runtime, deadline: period, period };
    let wanted = Config { driver_deadline: Some(times), ..config(202) };
    let pinned = Config { driver_cpus: vec![0], ..wanted.clone() };
    let refused = DomainParticipant::with_config(&pinned).err().unwrap().to_string();
    assert!(refused.contains("a thread with a deadline runs on all processors"), "{refused}");
    assert!(refused.contains("leave driver_cpus out"), "{refused}");
    match DomainParticipant::with_config(&wanted) {
        Ok(one) => {
            // SCHED_DEADLINE is 6.
            assert!(drivers("stat").iter().any(|line| stat(line)[38] == "6"), "{:?}", drivers("stat"));
            // It drives, and a listener may make a thread, which does not inherit it.
            let topic = one.topic::<Count>("Deadline").unwrap();
            let (writer, reader) =
                (topic.writer(Qos::default()).unwrap(), topic.reader(Qos::default()).unwrap());
            let (send, heard) = mpsc::channel();
            reader.on_data_available(move |sample| {
                let send = send.clone();
                std::thread::spawn(move || send.send(sample.data.unwrap().n).unwrap());
            });
            writer.wait_matched(LIMIT).unwrap();
            writer.write(&Count { n: 3 }).unwrap();
            assert_eq!(heard.recv_timeout(LIMIT.into()), Ok(3));
            // An hour is more than any kernel's longest period.
            let long = Duration::from_secs(3_600);
            let seldom =
                DeadlineScheduling { runtime: Duration::from_secs(60), deadline: long, period: long };
            let seldom = Config { driver_deadline: Some(seldom), ..wanted };
            let refused = DomainParticipant::with_config(&seldom).err().unwrap().to_string();
            assert!(refused.contains("kernel.sched_deadline_period_max_us"), "{refused}");
        }
        Err(Error::Error(text)) => assert!(text.contains("EPERM") && text.contains("CAP_SYS_NICE"), "{text}"),
        Err(other) => panic!("{other:?}"),
    }
}

/// What comes of `act` in a thread of its own with a policy that another program has given it. `None` if that may not.
fn under<R: Send + 'static>(chrt: &'static [&str], act: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let run = move || {
        let thread = nix::unistd::gettid().to_string();
        let status = Command::new("chrt").args(chrt).args(["-p", chrt_priority(chrt), &thread]).status();
        status.expect("util-linux").success().then(act)
    };
    let told = std::thread::spawn(run).join().unwrap();
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    assert!(told.is_some() || !is_root, "root may");
    told
}

/// SCHED_DEADLINE has none.
fn chrt_priority(chrt: &[&str]) -> &'static str {
    if chrt.contains(&"--fifo") { "5" } else { "0" }
}

fn may_run_only_on(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu).unwrap();
    sched_setaffinity(Pid::from_raw(0), &only).unwrap();
}

#[test]
fn a_driver_without_settings_runs_as_who_makes_the_participant() {
    let made = under(&["--fifo"], || {
        may_run_only_on(0);
        let _participant = DomainParticipant::with_config(&config(209)).unwrap();
        let (stats, status) = (drivers("stat"), drivers("status"));
        assert!(stats.iter().any(|line| stat(line)[37..39] == ["5", "1"]), "{stats:?}");
        assert!(status.iter().any(|status| status.contains("Cpus_allowed_list:\t0\n")), "{status:?}");
    });
    if made.is_none() {
        println!("not tested: it needs CAP_SYS_NICE");
    }
}

#[test]
fn a_thread_with_a_deadline_makes_a_participant_if_others_do_not_inherit_it() {
    let make = || DomainParticipant::with_config(&config(210)).map(drop).map_err(|error| error.to_string());
    let plain = &["--deadline", "--sched-runtime", "2000000", "--sched-period", "10000000"];
    let reset =
        &["--deadline", "--reset-on-fork", "--sched-runtime", "2000000", "--sched-period", "10000000"];
    let (Some(refused), Some(made)) = (under(plain, make), under(reset, make)) else {
        return println!("not tested: it needs CAP_SYS_NICE");
    };
    let text = refused.unwrap_err();
    for part in
        ["SCHED_DEADLINE", "make the participant before", "SCHED_FLAG_RESET_ON_FORK", "Driver::Inline"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(made, Ok(()));
}

#[test]
fn a_deadline_on_some_of_the_processors_is_refused_with_what_is_in_the_way() {
    let all = std::thread::available_parallelism().unwrap().get();
    if all < 2 {
        return println!("not tested: it needs two processors");
    }
    let ms = Duration::from_millis(1);
    let times = DeadlineScheduling { runtime: Duration::from_micros(200), deadline: ms, period: ms };
    let make = move || {
        may_run_only_on(0);
        DomainParticipant::with_config(&Config { driver_deadline: Some(times), ..config(211) }).map(drop)
    };
    let text = std::thread::spawn(make).join().unwrap().unwrap_err().to_string();
    for part in ["EPERM", "may use 1 of ", "taskset -p -a -c PROCESSORS PID", "CAP_SYS_NICE"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("driver_cpus"), "it is empty: {text}");
}

/// Set in the process that this one starts without the privilege.
const UNPRIVILEGED: &str = "TAUT_TEST_UNPRIVILEGED";

/// Does nothing unless it was started as that process. It goes on without what it is refused.
#[test]
fn the_process_without_the_privilege() {
    if std::env::var_os(UNPRIVILEGED).is_none() {
        return;
    }
    let ms = Duration::from_millis(1);
    let times = DeadlineScheduling { runtime: Duration::from_micros(200), deadline: ms, period: ms };
    for (wanted, words) in [
        (Config { driver_priority: 7, ..config(203) }, ["SCHED_FIFO 7", "ulimit -r 7", "CAP_SYS_NICE"]),
        (Config { driver_deadline: Some(times), ..config(203) }, ["SCHED_DEADLINE", "200µs", "CAP_SYS_NICE"]),
    ] {
        match DomainParticipant::with_config(&wanted).err() {
            Some(Error::Error(text)) => {
                assert!(text.contains("EPERM") && words.iter().all(|word| text.contains(word)), "{text}");
            }
            other => panic!("{other:?}"),
        }
        let until = Instant::now() + LIMIT.into();
        while !drivers("comm").is_empty() {
            assert!(Instant::now() < until, "its thread does not end");
        }
    }
    let _participant = DomainParticipant::with_config(&config(203)).unwrap();
    println!("refused");
}

/// Also where the tests run as root, to whom nothing is refused.
#[test]
fn without_the_privilege_it_is_said_how_to_get_it() {
    let limit = ["prlimit", "--rtprio=0:0"];
    let without = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"];
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let before = limit.into_iter().chain(without.into_iter().filter(|_| is_root));
    let mut words = before.map(Into::into).chain([std::env::current_exe().unwrap().into_os_string()]);
    let mut command = Command::new(words.next().unwrap());
    let role = ["--exact", "the_process_without_the_privilege", "--nocapture", "--quiet"];
    let output = command.args(words).args(role).env(UNPRIVILEGED, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("refused"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |config: Config| match DomainParticipant::with_config(&config).err() {
        Some(Error::BadParameter(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(
        refused(Config { driver_cpus: vec![1 << 20], ..config(204) }).contains("1048576 is no processor")
    );
    assert!(refused(Config { driver_priority: 100, ..config(204) }).contains("1 to 99"));
    let ms = Duration::from_millis(1);
    let times = DeadlineScheduling { runtime: ms, deadline: ms, period: ms };
    let both = Config { driver_priority: 7, driver_deadline: Some(times), ..config(204) };
    assert!(refused(both).contains("either a priority or a deadline"));
    let longer = Some(DeadlineScheduling { runtime: ms.times(2), ..times });
    assert!(refused(Config { driver_deadline: longer, ..config(204) }).contains("runtime <= deadline"));
    let inline = Config { driver_priority: 7, driver: Driver::Inline, ..config(204) };
    assert!(refused(inline).contains("has no thread"));
    // A processor that there could be and is not, by itself and beside one that is.
    for cpus in [vec![1_000], vec![0, 1_000]] {
        match DomainParticipant::with_config(&Config { driver_cpus: cpus, ..config(204) }).err() {
            Some(Error::Error(text)) => assert!(text.contains("Cpus_allowed_list"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn where_the_time_goes() {
    let (out, inward) = (
        DomainParticipant::with_config(&config(205)).unwrap(),
        DomainParticipant::with_config(&config(205)).unwrap(),
    );
    let qos = Qos::default().reliable().keep_all();
    let writer = out.topic::<Count>("Time").unwrap().writer(qos.clone()).unwrap();
    let reader = inward.topic::<Count>("Time").unwrap().reader(qos).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    for n in 0..100 {
        writer.write(&Count { n }).unwrap();
        reader.wait(LIMIT).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().n, n);
    }
    let (sent, received) = (out.latency_report(), inward.latency_report());
    let of =
        |report: &taut::LatencyReport, class| report.classes.iter().find(|of| of.class == class).copied();
    let (send, receive) =
        (of(&sent, JobClass::SendUser).unwrap(), of(&received, JobClass::ReceiveUser).unwrap());
    assert!(send.steps >= 100 && receive.steps >= 100, "{sent}\n{received}");
    for one in [send, receive] {
        assert!(one.running.p50 > std::time::Duration::ZERO && one.running.p50 <= one.running.longest);
    }
    let (_, longest) = received.longest_step();
    assert!(received.classes.iter().all(|of| of.running.longest <= longest));
    assert!(received.bound(JobClass::SendMeta) >= longest + receive.running.longest);
    assert!(received.to_string().contains("receive_user"), "{received}");
}

#[test]
fn a_listener_that_takes_its_time_is_in_the_flight_record() {
    const SLEEP: std::time::Duration = std::time::Duration::from_millis(60);
    let patient = Config { flight_recorder_step: Duration::from_millis(50), ..config(206) };
    let participant = DomainParticipant::with_config(&patient).unwrap();
    let topic = participant.topic::<Count>("Slow").unwrap();
    let reader = topic.reader(Qos::default().reliable()).unwrap();
    let (heard, told) = mpsc::channel();
    reader.on_data_available(move |sample| {
        std::thread::sleep(SLEEP);
        heard.send(sample.data.unwrap().n).unwrap();
    });
    let other = DomainParticipant::with_config(&config(206)).unwrap();
    let writer = other.topic::<Count>("Slow").unwrap().writer(Qos::default().reliable()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    // No step takes so long, unless the machine stands still: then it is that step's record, and the next may be missing.
    let is_of_listeners = |record: &FlightRecord| {
        let longest = record.longest().map(|step| step.activity);
        (&record.cause, longest) == (&RecordCause::LongStep(Activity::Listeners), Some(Activity::Listeners))
    };
    if let Some(record) = participant.flight_record() {
        assert!(matches!(record.cause, RecordCause::LongStep(Activity::Step(_))), "{record}");
        assert!(
            record.longest().is_some_and(|step| step.ran > patient.flight_recorder_step.into()),
            "{record}"
        );
    }
    let end = Instant::now() + LIMIT.into();
    let record = (1..).find_map(|n| {
        assert!(Instant::now() < end, "{:?}", participant.flight_record());
        writer.write(&Count { n }).unwrap();
        assert_eq!(told.recv_timeout(LIMIT.into()), Ok(n));
        participant.flight_record().filter(is_of_listeners)
    });
    let record = record.unwrap();
    // This thread's own look at the record may come between the two.
    let mut others =
        record.steps.iter().rev().filter(|step| step.activity != Activity::Step(JobClass::Calls));
    let (last, before) = (others.next().unwrap(), others.next().unwrap());
    assert!(last.activity == Activity::Listeners && last.ran >= SLEEP, "{record}");
    assert!(
        record.steps.iter().any(|step| step.activity == Activity::Step(JobClass::ReceiveUser)),
        "{record}"
    );
    assert!(before.began_before >= last.began_before, "{record}");
    assert!(record.to_string().contains("listeners"), "{record}");
}

/// Also where that is less than what is recorded of listeners otherwise.
#[test]
fn a_listener_that_takes_longer_than_a_short_limit_is_in_the_flight_record() {
    const TAKES: std::time::Duration = std::time::Duration::from_micros(60);
    let strict = Config { flight_recorder_step: Duration::from_micros(50), ..config(207) };
    let participant = DomainParticipant::with_config(&strict).unwrap();
    let topic = participant.topic::<Count>("Short").unwrap();
    let (reader, writer) = (topic.reader(Qos::default()).unwrap(), topic.writer(Qos::default()).unwrap());
    let (heard, told) = mpsc::channel();
    reader.on_data_available(move |sample| {
        let end = Instant::now() + TAKES;
        while Instant::now() < end {}
        heard.send(sample.data.unwrap().n).unwrap();
    });
    // Steps may be too long, too, and one that the system stops; there is a record each second.
    let is_it = |step: &RecordedStep| {
        step.activity == Activity::Listeners && step.ran < std::time::Duration::from_micros(100)
    };
    let end = Instant::now() + LIMIT.into();
    while !participant.flight_record().is_some_and(|record| record.steps.iter().any(is_it)) {
        assert!(Instant::now() < end, "{:?}", participant.flight_record());
        writer.write(&Count { n: 1 }).unwrap();
        assert_eq!(told.recv_timeout(LIMIT.into()), Ok(1));
    }
}

/// The reader's driver runs a listener while a sample comes: that is later than its writer has planned for.
#[test]
fn a_sample_that_took_longer_than_its_budget_makes_a_flight_record() {
    const BUDGET: Duration = Duration::from_millis(5);
    let qos = Qos::default().reliable().keep_all().latency_budget(BUDGET).transport_priority(1);
    let (out, inward) = (
        DomainParticipant::with_config(&config(208)).unwrap(),
        DomainParticipant::with_config(&config(208)).unwrap(),
    );
    let writer = out.topic::<Count>("Late").unwrap().writer(qos.clone()).unwrap();
    let reader = inward.topic::<Count>("Late").unwrap().reader(qos).unwrap();
    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    reader.on_data_available(move |sample| {
        enter.send(sample.data.unwrap().n).unwrap();
        let _ = left.recv();
    });
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    for n in 0..2 {
        writer.write(&Count { n }).unwrap();
        assert_eq!(entered.recv_timeout(LIMIT.into()), Ok(n));
        // Nobody receives this one until the listener is done with that.
        writer.write(&Count { n: n + 100 }).unwrap();
        std::thread::sleep(std::time::Duration::from(BUDGET) * 3);
        leave.send(()).unwrap();
        assert_eq!(entered.recv_timeout(LIMIT.into()), Ok(n + 100));
        leave.send(()).unwrap();
    }
    let end = Instant::now() + LIMIT.into();
    let record = loop {
        match inward.flight_record() {
            Some(record) => break record,
            None => assert!(Instant::now() < end, "no record"),
        }
    };
    let RecordCause::LatencyBudgetExceeded { topic, took, budget } = &record.cause else {
        panic!("{record}");
    };
    assert_eq!((topic.as_str(), *budget), ("Late", BUDGET.into()));
    assert!(took > budget, "{record}");
    assert!(out.flight_record().is_none(), "its writer knows nothing of it");
}
