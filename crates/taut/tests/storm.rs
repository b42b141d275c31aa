//! A critical writer waits for no more than the step that has begun, beside other writes, and so does what comes for a
//! critical reader, while discovery storms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
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

fn participant(domain_id: u32, local: bool) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
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
fn listen(reader: &DataReader<Count>) -> Arc<Mutex<Vec<u32>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    reader.on_data_available(move |sample| told.lock().unwrap().extend(sample.data.map(|data| data.n)));
    heard
}

fn meta_steps(report: &LatencyReport) -> u64 {
    let meta = report.classes.iter().find(|of| of.class == JobClass::ReceiveMeta);
    meta.map_or(0, |of| of.steps)
}

#[test]
fn critical_writers_and_readers_wait_for_one_step_at_most() {
    wait_for_one_step(94, false);
}

#[test]
fn they_do_beside_lanes_too_where_two_threads_wait() {
    wait_for_one_step(96, true);
}

/// One writer waits for the token, and one leaves its writes to the token's holder. If it is `local`, another one waits,
/// and what they write goes to a reader of theirs, too, by lanes that their driver empties.
fn wait_for_one_step(domain_id: u32, local: bool) {
    let [out, other] = [local; 2].map(|local| participant(domain_id, local));
    let inward = participant(domain_id, false);
    let critical = Qos::default().reliable().transport_priority(1).max_blocking_time(SOON);
    let (keeps, last) = (critical.clone().keep_all(), critical.keep_last(1));
    let ways = [("All", &keeps), ("Last", &last), ("Others", &keeps)];
    let mut readers = Vec::new();
    let mut ends = Vec::new();
    for (topic, qos) in ways.into_iter().take(if local { 3 } else { 2 }) {
        let writer = out.topic::<Count>(topic).unwrap().writer(qos.clone()).unwrap();
        let mut heard = Vec::new();
        for at in [&inward, &out].into_iter().take(if local { 2 } else { 1 }) {
            let reader = at.topic::<Count>(topic).unwrap().reader(qos.clone()).unwrap();
            heard.push(listen(&reader));
            reader.wait_matched(SOON).unwrap();
            readers.push(reader);
        }
        writer.wait_matched_count(heard.len(), SOON).unwrap();
        ends.push((writer, heard));
    }
    let (writers, heard): (Vec<_>, Vec<_>) = ends.into_iter().unzip();

    let stop = AtomicBool::new(false);
    let (before, until) = (out.stats(), Instant::now() + SOON.into());
    let written = std::thread::scope(|scope| {
        let stop = &stop;
        let writers: Vec<_> =
            writers.into_iter().map(|writer| scope.spawn(move || write(&writer, stop))).collect();
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
        Vec::from_iter(writers.into_iter().map(|writer| writer.join().unwrap()))
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
    let until = Instant::now() + SOON.into();
    for ((heard, written), (topic, qos)) in heard.iter().zip(written).zip(ways) {
        let keeps_all = qos == &keeps;
        for heard in heard {
            while keeps_all && heard.lock().unwrap().len() < written as usize {
                assert!(Instant::now() < until, "{topic}");
                std::thread::yield_now();
            }
            let heard = heard.lock().unwrap();
            let is_right = if keeps_all { *heard == Vec::from_iter(0..written) } else { heard.is_sorted() };
            assert!(is_right, "{topic}");
        }
    }
}
