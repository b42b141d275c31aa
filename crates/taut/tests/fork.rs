//! The child of a fork that goes on with its parent's participant: it is told so at once, and its parent notices nothing of it.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc;

use futures_core::Stream;
use futures_executor::block_on;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};
use taut::cdr::bytemuck::{Pod, Zeroable};
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, PublisherQos, Qos,
    Selection, SubscriberQos, Timestamp,
};
use taut_exec::{Executor, ExecutorConfig};

const LIMIT: Duration = Duration::from_secs(20);
/// What a child waits for in vain it waits for so long.
const FOR_EVER: Duration = Duration::INFINITE;
/// How long a child may take before it is taken to wait for ever.
const CHILD_LIMIT_SECONDS: u32 = 60;

/// Longer than what fits into the cell of a lane.
#[derive(DdsType)]
#[dds(final)]
struct Note {
    n: u32,
    text: String,
}

fn note(n: u32) -> Note {
    Note { n, text: "x".repeat(1_000) }
}

#[derive(DdsType)]
#[dds(final)]
struct Keyed {
    #[dds(key)]
    n: u32,
}

#[derive(DdsType, Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Large {
    words: [u64; 128],
}

/// Runs `child` in a child; it returns the names of what is not so.
fn in_child(child: impl FnOnce() -> Vec<&'static str>) {
    let (mut found, mut tell) = std::io::pipe().unwrap();
    // SAFETY: what the child calls takes no lock that another thread of this process could have had: that it finds out before
    // it does is what is tested, and those of the allocator are free after a fork. It ends without what is run at the end of
    // a process.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            alarm::set(CHILD_LIMIT_SECONDS);
            let wrong = catch_unwind(AssertUnwindSafe(child)).unwrap_or_else(|_| vec!["it panicked"]);
            let told = tell.write_all(wrong.join(", ").as_bytes());
            // SAFETY: ends the process.
            unsafe { nix::libc::_exit(i32::from(told.is_err())) }
        }
        ForkResult::Parent { child } => {
            drop(tell);
            let mut wrong = String::new();
            found.read_to_string(&mut wrong).unwrap();
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            assert_eq!(wrong, "", "in the child");
        }
    }
}

fn is_told<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::PreconditionNotMet(text)) if text.contains("forked"))
}

/// The names of what is not so.
fn wrong(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    all.iter().filter(|(_, holds)| !holds).map(|(what, _)| *what).collect()
}

fn config(domain_id: u32, local: bool, driver: Driver) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], local, driver, ..Config::default() }
}

fn open(domain_id: u32, local: bool) -> DomainParticipant {
    DomainParticipant::with_config(&config(domain_id, local, Driver::default())).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all()
}

/// A writer and a reader of two participants.
fn matched(domain_id: u32, local: bool) -> (DataWriter<Note>, DataReader<Note>) {
    let (ours, theirs) = (open(domain_id, local), open(domain_id, local));
    let writer = ours.topic("Notes").unwrap().writer(qos()).unwrap();
    let reader = theirs.topic("Notes").unwrap().reader(qos()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    (writer, reader)
}

fn next(reader: &DataReader<Note>) -> u32 {
    reader.wait(LIMIT).unwrap();
    reader.take_next().unwrap().unwrap().data.unwrap().n
}

/// What a child writes comes to nobody, and takes no number from its parent; what it takes its parent still has.
fn goes_on(domain_id: u32, local: bool) {
    let (writer, reader) = matched(domain_id, local);
    (1..=2).for_each(|n| writer.write(&note(n)).unwrap());
    assert_eq!(next(&reader), 1);
    in_child(|| {
        wrong(&[
            ("write", is_told(writer.write(&note(7)))),
            ("try_write", is_told(writer.try_write(&note(8)))),
            ("take_next", is_told(reader.take_next())),
            ("take_into", is_told(reader.take_into(&mut note(9)))),
            ("take_into_or_key", is_told(reader.take_into_or_key(&mut note(9), &mut None))),
            ("take", is_told(reader.take())),
            ("read", is_told(reader.read())),
            ("wait", is_told(reader.wait(FOR_EVER))),
        ])
    });
    assert_eq!(next(&reader), 2, "the child has taken it");
    writer.write(&note(3)).unwrap();
    assert_eq!(next(&reader), 3);
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    assert!(reader.take_next().unwrap().is_none());
}

#[test]
fn a_child_writes_nothing_into_a_lane() {
    goes_on(40, true);
}

#[test]
fn a_child_writes_nothing_to_the_network() {
    goes_on(41, false);
}

#[test]
fn what_a_child_drops_goes_on_in_its_parent() {
    let (writer, reader) = matched(42, true);
    writer.write(&note(1)).unwrap();
    let mut ends = Some((writer, reader));
    in_child(|| {
        drop(ends.take());
        Vec::new()
    });
    let (writer, reader) = ends.as_ref().unwrap();
    writer.write(&note(2)).unwrap();
    assert_eq!([next(reader), next(reader)], [1, 2]);
    let (writers, readers) = (reader.subscription_matched_status(), writer.publication_matched_status());
    assert_eq!([writers.current_count, readers.current_count], [1, 1]);
    assert_eq!([writers.total_count, readers.total_count], [1, 1], "none has gone and come again");
}

#[test]
fn each_call_of_a_child_says_that_it_is_forked() {
    let participant = open(44, true);
    let topic = participant.topic::<Note>("Calls").unwrap();
    let (writer, reader) = (topic.writer(qos()).unwrap(), topic.reader(qos()).unwrap());
    let filtered = topic.filtered("Some", "n > %0", &["3"]).unwrap();
    let of_keyed = participant.topic::<Keyed>("Keyed").unwrap();
    let (keyed, knows) = (of_keyed.writer(qos()).unwrap(), of_keyed.reader(qos()).unwrap());
    keyed.write(&Keyed { n: 1 }).unwrap();
    let publisher = participant.publisher(PublisherQos::default());
    let subscriber = participant.subscriber(SubscriberQos::default());
    publisher.suspend_publications();
    let (found, at) = (participant.builtin_participants(), Timestamp::from_unix_ns(1));
    in_child(|| {
        wrong(&[
            ("topic", is_told(participant.topic::<Note>("Other"))),
            ("filtered", is_told(topic.filtered("Others", "n > 1", &[]))),
            ("set_expression_parameters", is_told(filtered.set_expression_parameters(&["4"]))),
            ("a filtered reader", is_told(filtered.reader(qos()))),
            ("writer", is_told(topic.writer(qos()))),
            ("reader", is_told(topic.reader(qos()))),
            ("a publisher's writer", is_told(publisher.writer(&topic, qos().writer))),
            ("a subscriber's reader", is_told(subscriber.reader(&topic, qos().reader))),
            ("resume_publications", is_told(publisher.resume_publications())),
            ("write_with_timestamp", is_told(writer.write_with_timestamp(&note(1), at))),
            ("register_instance", is_told(keyed.register_instance(&Keyed { n: 2 }))),
            ("lookup_instance", is_told(knows.lookup_instance(&Keyed { n: 1 }))),
            ("unregister_instance", is_told(keyed.unregister_instance(&Keyed { n: 1 }))),
            ("dispose", is_told(keyed.dispose(&Keyed { n: 1 }))),
            ("a writer's wait_matched", is_told(writer.wait_matched_count(2, FOR_EVER))),
            ("wait_for_acknowledgments", is_told(writer.wait_for_acknowledgments(FOR_EVER))),
            ("a reader's wait_matched", is_told(reader.wait_matched_count(2, FOR_EVER))),
            ("take_with", is_told(reader.take_with(&Selection::ANY))),
            ("read_with", is_told(reader.read_with(&Selection::ANY))),
            ("a built-in reader's take", is_told(found.take())),
            ("a built-in reader's wait", is_told(found.wait(FOR_EVER))),
        ])
    });
    publisher.resume_publications().unwrap();
    keyed.unregister_instance(&Keyed { n: 1 }).unwrap();
    assert_eq!(filtered.expression_parameters(), ["3"]);
}

#[test]
fn a_child_drives_nothing() {
    let inline = DomainParticipant::with_config(&config(45, true, Driver::Inline)).unwrap();
    in_child(|| {
        wrong(&[
            ("run_once", is_told(inline.run_once(FOR_EVER))),
            ("poll_while", is_told(inline.poll_while(|| true))),
        ])
    });
}

#[test]
fn a_child_lends_nothing_and_writes_no_loan() {
    let participant = open(46, true);
    let large = participant.topic::<Large>("Large").unwrap();
    let (lender, viewer) = (large.writer(qos()).unwrap(), large.reader(qos()).unwrap());
    lender.wait_matched(LIMIT).unwrap();
    let loans = [5, 6, 7].map(|word| {
        let mut loan = lender.loan().unwrap();
        loan.words = [word; 128];
        loan
    });
    let [mut written, mut dropped, mut kept] = loans.map(Some);
    in_child(|| {
        drop(dropped.take());
        wrong(&[
            ("loan", is_told(lender.loan())),
            ("loan_bytes", is_told(lender.loan_bytes(2_000))),
            ("a loan's write", is_told(written.take().unwrap().write())),
            ("take_view", is_told(viewer.take_view())),
        ])
    });
    kept.take().unwrap().write().unwrap();
    viewer.wait(LIMIT).unwrap();
    let view = viewer.take_view().unwrap().unwrap();
    assert_eq!(view.data().unwrap().words, [7; 128]);
}

/// What has no error to return does nothing, and finds nothing.
#[test]
fn a_child_is_told_nothing_of_its_parents_participant() {
    let (writer, reader) = matched(47, true);
    let mut stream = reader.samples();
    writer.write(&note(1)).unwrap();
    in_child(|| {
        writer.set_listener(|_| ());
        writer.assert_liveliness();
        reader.on_data_available(|_| ());
        let is_over = block_on(std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
        drop(reader.samples());
        wrong(&[
            ("a stream ends", is_over.is_none()),
            ("slow_readers", writer.slow_readers().is_empty()),
            ("a writer's status", writer.publication_matched_status().total_count == 0),
            ("a reader's status", reader.subscription_matched_status().total_count == 0),
            ("what is lost", reader.sample_lost_status().total_count == 0),
            ("anatomy", reader.anatomy().is_empty()),
        ])
    });
    assert_eq!(writer.publication_matched_status().total_count, 1);
    assert_eq!(next(&reader), 1);
}

/// A thread of the parent's has the token at the fork, and is not there to give it back.
#[test]
fn a_child_waits_for_no_token_of_its_parents() {
    let udp = taut_port_udp::UdpConfig { domain_id: 48, interfaces: vec!["lo".into()], ..Default::default() };
    let config = ExecutorConfig { udp, driver: Driver::Inline, ..Default::default() };
    let executor = &Executor::start(&config).unwrap();
    std::thread::scope(|scope| {
        let ((has, wait_until_held), (end, wait_for_end)) = (mpsc::channel(), mpsc::channel::<()>());
        scope.spawn(move || {
            executor.with(|_, _| {
                has.send(()).unwrap();
                // Whatever becomes of the child.
                let _ = wait_for_end.recv();
            })
        });
        wait_until_held.recv().unwrap();
        in_child(|| {
            wrong(&[
                ("with", is_told(executor.with(|_, _| ()))),
                ("look", is_told(executor.look(|_, _| ()))),
                ("may_wait", is_told(executor.may_wait())),
                ("stats", executor.stats().tokens == 0),
                ("latency_report", executor.latency_report().classes.iter().all(|class| class.steps == 0)),
                ("flight_record", executor.flight_record().is_none()),
            ])
        });
        drop(end);
    });
}

#[test]
fn a_participant_that_a_child_makes_is_its_own() {
    let parent = open(49, true);
    let reader: DataReader<Note> = parent.topic("Notes").unwrap().reader(qos()).unwrap();
    in_child(|| {
        let own = DomainParticipant::with_config(&config(49, true, Driver::Inline)).unwrap();
        let writer: DataWriter<Note> = own.topic("Notes").unwrap().writer(qos()).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        writer.write(&note(1)).unwrap();
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        wrong(&[("its parent's", is_told(parent.topic::<Note>("Notes")))])
    });
    assert_eq!(next(&reader), 1);
}
