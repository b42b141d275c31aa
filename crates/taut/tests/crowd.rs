//! Threads that write at one participant at the same time, each with a writer of its own: who finds another one at it leaves its
//! sample to that one, also with KEEP_ALL.

use std::sync::mpsc;
use std::thread;

use taut::qos::ResourceLimits;
use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    thread: u32,
    value: u32,
}

const SOON: Duration = Duration::from_secs(60);
const THREADS: u32 = 4;
/// More than a writer has under way.
const SAMPLES: u32 = 6_000;

/// They write until it has happened that one left a sample to another. What comes of each is in order, and all of it.
fn all_comes_in_order(domain_id: u32, reads: &Qos) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let [here, there] = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
    let mut qos = Qos::default().reliable().keep_all();
    qos.writer.reliability.max_blocking_time = SOON;
    let reader = here.topic::<Number>("Crowd").unwrap().reader(reads.clone()).unwrap();
    let topic = there.topic::<Number>("Crowd").unwrap();
    let writers: Vec<_> = (0..THREADS).map(|_| topic.writer(qos.clone()).unwrap()).collect();
    writers.iter().for_each(|writer| writer.wait_matched(SOON).unwrap());
    let (ends, ended) = mpsc::channel();
    let taken = thread::scope(|scope| {
        for (thread, writer) in (0..).zip(writers) {
            let (there, ends) = (there.clone(), ends.clone());
            scope.spawn(move || {
                let mut value = 0;
                while value < SAMPLES || there.stats().queued_writes == 0 && value < 50 * SAMPLES {
                    writer.write(&Number { thread, value }).unwrap();
                    value += 1;
                }
                writer.wait_for_acknowledgments(SOON).unwrap();
                ends.send((thread, value)).unwrap();
            });
        }
        drop(ends);
        let mut next = [0; THREADS as usize];
        let mut written = [None; THREADS as usize];
        loop {
            ended.try_iter().for_each(|(thread, value): (u32, u32)| written[thread as usize] = Some(value));
            if written.iter().zip(&next).all(|(written, next)| *written == Some(*next)) {
                return next;
            }
            if reader.wait(Duration::from_millis(10)).is_err() {
                continue;
            }
            for sample in reader.take().unwrap() {
                let Number { thread, value } = sample.data.unwrap();
                assert_eq!(value, next[thread as usize], "of thread {thread}");
                next[thread as usize] += 1;
            }
        }
    });
    assert!(taken.iter().all(|taken| *taken >= SAMPLES) && there.stats().queued_writes > 0, "{taken:?}");
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn what_threads_leave_to_each_other_comes_whole_and_in_order() {
    all_comes_in_order(67, &Qos::default().reliable().keep_all());
}

/// Its writers have to wait for it again and again.
#[test]
fn what_they_leave_while_a_reader_falls_behind_comes_all_the_same() {
    let limits = ResourceLimits { max_samples: Some(8), ..ResourceLimits::default() };
    all_comes_in_order(68, &Qos::default().reliable().keep_all().resource_limits(limits));
}
