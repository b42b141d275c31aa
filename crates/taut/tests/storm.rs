//! A critical writer waits for no more than the step that has begun, and so does what comes for a critical reader, while
//! discovery storms.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, JobClass, LatencyReport, Qos,
};

const SOON: Duration = Duration::from_secs(30);
const ENDPOINTS: usize = 1_000;
/// Writes that have found the token taken, each of which could have been kept waiting.
const ENOUGH: u64 = 100;
/// Steps of discovery; fewer are no storm.
const A_STORM: u64 = 100;

#[derive(DdsType)]
#[dds(final)]
struct Count {
    n: u32,
}

fn participant() -> DomainParticipant {
    let config = Config { domain_id: 94, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

/// Creates endpoints of as many topics, as fast as it can, and drops them again.
fn storm(participant: &DomainParticipant, round: usize) {
    let ends: Vec<_> = (0..ENDPOINTS)
        .map(|n| {
            let topic = participant.topic::<Count>(&format!("Storm{}", round * ENDPOINTS + n)).unwrap();
            topic.writer(Qos::default().reliable()).unwrap()
        })
        .collect();
    drop(ends);
}

/// Writes on and on, until it is told to stop. Returns how much.
fn write(writer: &DataWriter<Count>, stop: &AtomicBool) -> u32 {
    let mut n = 0;
    while !stop.load(Ordering::SeqCst) {
        writer.write(&Count { n }).unwrap();
        n += 1;
    }
    writer.wait_for_acknowledgments(SOON).unwrap();
    n
}

/// Has a reader tell the numbers that it takes.
fn listen(reader: &DataReader<Count>, heard: &'static Mutex<Vec<u32>>) {
    reader.on_data_available(|sample| heard.lock().unwrap().extend(sample.data.map(|data| data.n)));
}

fn meta_steps(report: &LatencyReport) -> u64 {
    let meta = report.classes.iter().find(|of| of.class == JobClass::ReceiveMeta);
    meta.map_or(0, |of| of.steps)
}

#[test]
fn critical_writers_and_readers_wait_for_one_step_at_most() {
    static ALL: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    static LAST: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let (out, inward, other) = (participant(), participant(), participant());
    let critical = Qos::default().reliable().transport_priority(1).max_blocking_time(SOON);
    // One that waits for the token, and one that leaves its writes to the token's holder.
    let pair = |topic: &str, qos: Qos, heard| {
        let writer = out.topic::<Count>(topic).unwrap().writer(qos.clone()).unwrap();
        let reader = inward.topic::<Count>(topic).unwrap().reader(qos).unwrap();
        listen(&reader, heard);
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        (writer, reader)
    };
    let (waits, _all) = pair("All", critical.clone().keep_all(), &ALL);
    let (leaves, _last) = pair("Last", critical.keep_last(1), &LAST);

    let stop = AtomicBool::new(false);
    let (before, until) = (out.stats(), Instant::now() + SOON.into());
    let written = std::thread::scope(|scope| {
        let stop = &stop;
        let writers = [waits, leaves].map(|writer| scope.spawn(move || write(&writer, stop)));
        for round in 0.. {
            storm(&other, round);
            let now = out.stats();
            let found = (now.contended - before.contended).min(now.queued_writes - before.queued_writes);
            let steps =
                [&out, &inward].map(|end| meta_steps(&end.latency_report())).into_iter().min().unwrap();
            if found >= ENOUGH && steps >= A_STORM {
                break;
            }
            assert!(
                Instant::now() < until,
                "the token was taken for {found} writes, {steps} steps of discovery"
            );
        }
        stop.store(true, Ordering::SeqCst);
        writers.map(|writer| writer.join().unwrap())
    });

    let report = out.latency_report();
    println!("{report}\n{written:?} written");
    assert_eq!(report.steps_ahead, 1, "{report}");
    let received = inward.latency_report();
    println!("{received}");
    // Samples came all the time; between two looks for them there is one step that may take long.
    let ahead = inward.stats().steps_ahead_of_samples;
    assert!(ahead <= 1, "{ahead} steps\n{received}");
    for of in report.classes.iter().chain(&received.classes) {
        // A message that was begun is finished; it goes to at most the two others.
        assert!(of.most <= of.class.budget().saturating_add(4), "{:?}: {}", of.class, of.most);
    }
    assert_eq!(*ALL.lock().unwrap(), Vec::from_iter(0..written[0]));
    assert!(LAST.lock().unwrap().is_sorted());
}
