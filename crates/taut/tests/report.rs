//! Reports of response times: made while somebody reads them, and only then.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use taut::{
    ClassReport, Config, DataReader, DdsType, DomainParticipant, Driver, Duration, EndpointKind, Histogram,
    HistogramReport, JobClass, LatencyReport, ParticipantReport, Qos, REPORT_TOPIC, Representation,
};

const LIMIT: Duration = Duration::from_secs(20);
const SLICE: Duration = Duration::from_millis(2);

#[derive(DdsType)]
#[dds(final)]
struct Count {
    n: u32,
}

fn config(domain_id: u32) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() }
}

/// One that asks and does not report.
fn asker(domain_id: u32) -> DomainParticipant {
    DomainParticipant::with_config(&Config { report: false, ..config(domain_id) }).unwrap()
}

fn ask(participant: &DomainParticipant) -> DataReader<ParticipantReport> {
    participant.topic(REPORT_TOPIC).unwrap().reader(Qos::default()).unwrap()
}

/// The writers of reports that a participant has.
fn own_writers(participant: &DomainParticipant) -> usize {
    let endpoints = participant.discovered_endpoints().into_iter();
    endpoints.filter(|one| one.own && one.topic_name == REPORT_TOPIC).count()
}

fn is_reported(participant: &DomainParticipant) -> bool {
    let mut endpoints = participant.discovered_endpoints().into_iter();
    endpoints.any(|one| one.kind == EndpointKind::Writer && one.topic_name == REPORT_TOPIC)
}

/// Calls `step` until `done`.
fn until(what: &str, mut step: impl FnMut(), mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT.into();
    while !done() {
        assert!(Instant::now() < end, "{what}");
        step();
    }
}

fn next(reader: &DataReader<ParticipantReport>) -> ParticipantReport {
    loop {
        reader.wait(LIMIT).unwrap();
        if let Some(report) = reader.take_next().unwrap().and_then(|sample| sample.data) {
            return report;
        }
    }
}

fn guid(participant: &DomainParticipant) -> [u8; 16] {
    participant.discovered_participants()[0].guid.to_bytes()
}

#[test]
fn who_reads_them_gets_reports_and_nobody_else_has_them_made() {
    let observed = DomainParticipant::with_config(&Config { local: false, ..config(91) }).unwrap();
    let asker = asker(91);
    let (out, inward) = (observed.topic::<Count>("N").unwrap(), asker.topic::<Count>("N").unwrap());
    let writer = out.writer(Qos::default().reliable().keep_all()).unwrap();
    let reader = inward.reader(Qos::default().reliable().keep_all()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    for n in 0..100 {
        writer.write(&Count { n }).unwrap();
        reader.wait(LIMIT).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().n, n);
    }
    assert_eq!(own_writers(&observed), 0, "nobody has asked");

    let reports = ask(&asker);
    let (first, mut second) = (next(&reports), next(&reports));
    assert_eq!(own_writers(&observed), 1);
    assert_eq!((first.participant, second.participant), (guid(&observed), guid(&observed)));
    let of = |report: &ParticipantReport, class: JobClass| {
        report.classes.iter().find(|of| of.class == class.name()).cloned().unwrap()
    };
    let send = of(&first, JobClass::SendUser);
    assert!(send.steps >= 100 && first.datagrams_out >= 100, "{first:?}");
    assert!(send.running.p50_ns > 0 && send.running.p50_ns <= send.running.longest_ns, "{send:?}");
    assert!(send.busy_ns >= send.running.longest_ns && send.bound_ns >= send.running.longest_ns, "{send:?}");
    assert_eq!(send.recent_longest_ns, send.running.longest_ns, "since the begin");
    assert!(of(&second, JobClass::Timers).steps > of(&first, JobClass::Timers).steps, "the report's own");
    // The next one is due no later where the system keeps from running who makes this one, which it does not each time.
    let mut apart_ns = vec![second.monotonic_ns - first.monotonic_ns];
    while apart_ns.last() <= Some(&900_000_000) {
        assert!(apart_ns.len() < 5, "{apart_ns:?} between two reports");
        let before_ns = second.monotonic_ns;
        second = next(&reports);
        apart_ns.push(second.monotonic_ns - before_ns);
    }
    let steps = |report: &LatencyReport| report.classes[JobClass::SendUser as usize].steps;
    let (told, own) = (first.latency_report(), observed.latency_report());
    assert!(steps(&told) <= steps(&own) && told.longest_step().1 <= own.longest_step().1);
    for (told, own) in told.classes.iter().zip(own.classes) {
        for (told, own) in [(told.running, own.running), (told.waiting, own.waiting)] {
            let (told, own) = (told.histogram.unwrap(), own.histogram.unwrap());
            assert!(told.up_to.is_sorted() && told.up_to[15] <= told.count, "{told:?}");
            assert!(told.up_to.iter().zip(own.up_to).all(|(told, own)| *told <= own), "{told:?} {own:?}");
            assert!(told.count <= own.count && told.total <= own.total, "{told:?} {own:?}");
        }
    }
    let histogram = told.classes[JobClass::SendUser as usize].running.histogram.unwrap();
    assert!(histogram.count == send.steps && histogram.up_to[15] > 0, "{histogram:?}");

    drop(reports);
    until("the writer stays", || std::thread::sleep(SLICE.into()), || own_writers(&observed) == 0);
    until("its peer is not told", || std::thread::sleep(SLICE.into()), || !is_reported(&asker));
    let again = ask(&asker);
    assert!(next(&again).monotonic_ns > second.monotonic_ns);
}

/// The report as it was before it told of histograms.
#[derive(DdsType, Clone, PartialEq, Debug)]
#[dds(appendable, name = "taut::ParticipantReport")]
struct OlderReport {
    #[dds(key)]
    participant: [u8; 16],
    monotonic_ns: u64,
    #[dds(bound = 64)]
    classes: Vec<ClassReport>,
    counts: [u64; 8],
    steps_ahead: u64,
}

#[test]
fn older_and_newer_sides_understand_each_other() {
    let steps = |name: &str| ClassReport { class: name.into(), steps: 5, ..ClassReport::default() };
    let older = OlderReport {
        participant: [7; 16],
        monotonic_ns: 1,
        classes: vec![steps("timers")],
        counts: [2; 8],
        steps_ahead: 3,
    };
    let mut bytes = Vec::new();
    taut::cdr::to_payload(&older, Representation::Xcdr1, &mut bytes).unwrap();
    let newer: ParticipantReport = taut::cdr::from_payload(&bytes).unwrap();
    assert_eq!((newer.steps_ahead, newer.histograms.len()), (3, 0));
    let report = newer.latency_report();
    let spread = |class: JobClass| report.classes[class as usize].running.histogram;
    assert_eq!((spread(JobClass::Timers), spread(JobClass::Calls)), (None, Some(Histogram::default())));

    let told = HistogramReport { class: "timers".into(), running: [5; 16], ..HistogramReport::default() };
    let newer = ParticipantReport { histograms: vec![told], ..newer };
    bytes.clear();
    taut::cdr::to_payload(&newer, Representation::Xcdr1, &mut bytes).unwrap();
    assert_eq!(taut::cdr::from_payload::<OlderReport>(&bytes).unwrap(), older);
}

#[test]
fn an_inline_driver_reports_when_it_is_called() {
    let observed = DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config(92) }).unwrap();
    let asker = asker(92);
    let reports = ask(&asker);
    let (mut first, mut drive) = (None, || observed.run_once(SLICE).unwrap());
    until("no report", &mut drive, || {
        first = first.take().or_else(|| reports.take_next().unwrap().and_then(|sample| sample.data));
        first.is_some()
    });
    assert_eq!(first.unwrap().participant, guid(&observed));
    drop(reports);
    until("the writer stays", &mut drive, || own_writers(&observed) == 0);
}

#[test]
fn a_report_keeps_nobody_in_the_domain() {
    let observed = DomainParticipant::with_config(&config(93)).unwrap();
    let asker = asker(93);
    let reports = ask(&asker);
    next(&reports);
    let gone = guid(&observed);
    let port = observed.discovered_participants()[0].unicast[0].port;
    let is_free = || UdpSocket::bind(("0.0.0.0", u16::try_from(port).unwrap())).is_ok();
    assert!(!is_free());
    drop(observed);
    until("its sockets are open still", || std::thread::sleep(SLICE.into()), is_free);
    let is_there =
        || asker.discovered_participants().iter().any(|participant| participant.guid.to_bytes() == gone);
    until("it is there still", || std::thread::sleep(SLICE.into()), || !is_there());
}

#[test]
fn a_listener_may_end_a_participant_that_reports() {
    let observed = DomainParticipant::with_config(&config(95)).unwrap();
    let asker = asker(95);
    let reports = ask(&asker);
    let reader = observed.topic::<Count>("End").unwrap().reader(Qos::default().reliable()).unwrap();
    let writer = asker.topic::<Count>("End").unwrap().writer(Qos::default().reliable()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    next(&reports);
    let all = Arc::new(Mutex::new(None));
    let last = Arc::clone(&all);
    reader.set_listener(move |_| {
        let ended = last.lock().unwrap().take();
        drop(ended);
    });
    *all.lock().unwrap() = Some((reader, observed));
    writer.write(&Count { n: 1 }).unwrap();
    let is_alone = || asker.discovered_participants().len() == 1;
    until("it is there still", || std::thread::sleep(SLICE.into()), is_alone);
}

#[test]
fn who_does_not_want_to_report_does_not() {
    let silent = DomainParticipant::with_config(&Config { report: false, ..config(94) }).unwrap();
    let observed = DomainParticipant::with_config(&config(94)).unwrap();
    let asker = asker(94);
    let reports = ask(&asker);
    let knows = || silent.discovered_endpoints().iter().any(|one| !one.own && one.guid == reports.guid());
    until("it is not known", || std::thread::sleep(SLICE.into()), knows);
    for _ in 0..2 {
        assert_eq!(next(&reports).participant, guid(&observed));
    }
    assert_eq!((own_writers(&silent), own_writers(&observed)), (0, 1));
}
