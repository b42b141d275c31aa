//! Threads that wait at one participant, each for another reader: who is woken by a sample.

use std::fs;
use std::sync::mpsc;
use std::thread;

use nix::unistd::gettid;

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: Duration = Duration::from_secs(20);
const WAITERS: usize = 20;
const SAMPLES: u32 = 200;

/// How often a thread has gone to sleep.
fn sleeps(thread: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    count.trim().parse().unwrap()
}

#[test]
fn a_sample_wakes_who_waits_for_it_and_hardly_anybody_else() {
    let config = Config { domain_id: 64, interfaces: vec!["lo".into()], local: false, ..Config::default() };
    let [here, there] = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
    let qos = Qos::default().reliable().keep_all();
    let topic = |of: &DomainParticipant, n: usize| of.topic::<Number>(&format!("Number{n}")).unwrap();
    let writers: Vec<_> = (0..WAITERS).map(|n| topic(&there, n).writer(qos.clone()).unwrap()).collect();
    let (begun, begins) = mpsc::channel();
    let (got, gets) = mpsc::channel();
    thread::scope(|scope| {
        for n in 0..WAITERS {
            let reader = topic(&here, n).reader(qos.clone()).unwrap();
            reader.wait_matched(SOON).unwrap();
            let (begun, got) = (begun.clone(), got.clone());
            scope.spawn(move || {
                begun.send(gettid().as_raw()).unwrap();
                // The last sample is the end.
                loop {
                    reader.wait(SOON).unwrap();
                    for sample in reader.take().unwrap() {
                        let value = sample.data.unwrap().value;
                        if value > SAMPLES {
                            return;
                        }
                        got.send(value).unwrap();
                    }
                }
            });
        }
        let waiters: Vec<i32> = (0..WAITERS).map(|_| begins.recv().unwrap()).collect();
        writers.iter().for_each(|writer| writer.wait_matched(SOON).unwrap());
        let exchange = || {
            for value in 1..=SAMPLES {
                writers[0].write(&Number { value }).unwrap();
                assert_eq!(gets.recv_timeout(SOON.into()), Ok(value));
            }
        };
        // All wait by the end of the first.
        exchange();
        let before: Vec<u64> = waiters.iter().map(|thread| sleeps(*thread)).collect();
        exchange();
        let mut more: Vec<u64> =
            waiters.iter().zip(before).map(|(thread, before)| sleeps(*thread) - before).collect();
        for writer in &writers {
            writer.write(&Number { value: SAMPLES + 1 }).unwrap();
        }
        more.sort_unstable();
        // One takes the samples, one drives.
        let others: u64 = more.iter().rev().skip(2).sum();
        assert!(others < u64::from(SAMPLES) / 2, "{more:?}");
    });
}
