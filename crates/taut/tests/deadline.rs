//! DEADLINE between participants of one machine, through lanes and over the network.

use std::sync::mpsc;
use std::time::Instant;

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, InstanceHandle, InstanceState, Qos,
    RecordCause, Selection, StatusMask,
};

const LIMIT: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_millis(60);

#[derive(DdsType)]
#[dds(final)]
struct Reading {
    #[dds(key)]
    id: u32,
    value: u32,
}

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

struct Pair {
    out: DomainParticipant,
    inward: DomainParticipant,
    writer: DataWriter<Reading>,
    reader: DataReader<Reading>,
}

fn pair(domain_id: u32, local: bool, qos: &Qos) -> Pair {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    let open = || DomainParticipant::with_config(&config).unwrap();
    let (out, inward) = (open(), open());
    let writer = out.topic("Readings").unwrap().writer(qos.clone()).unwrap();
    let reader = inward.topic("Readings").unwrap().reader(qos.clone()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    Pair { out, inward, writer, reader }
}

/// So many periods have ended since then.
fn periods(since: Instant) -> u32 {
    (since.elapsed().as_nanos() / std::time::Duration::from(PERIOD).as_nanos()) as u32
}

/// Asks until there is an answer.
fn await_some<R>(mut ask: impl FnMut() -> Option<R>) -> R {
    let end = Instant::now() + LIMIT.into();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "no answer");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// A writer that writes no more, a reader that nobody takes from: both are told for each period, the instance with
/// it, and no longer once it is disposed of.
fn is_told(domain_id: u32, local: bool) {
    let Pair { out, inward, writer, reader } =
        pair(domain_id, local, &Qos::default().reliable().keep_all().deadline(PERIOD));
    let one = writer.register_instance(&Reading { id: 1, value: 0 }).unwrap();
    let begin = Instant::now();
    writer.write(&Reading { id: 1, value: 7 }).unwrap();
    let offered = await_some(|| Some(writer.offered_deadline_missed_status()).filter(|s| s.total_count >= 3));
    assert!(offered.total_count <= periods(begin), "{offered:?}, {} periods", periods(begin));
    assert_eq!(offered.last_instance_handle, one);
    let requested =
        await_some(|| Some(reader.requested_deadline_missed_status()).filter(|s| s.total_count >= 3));
    assert!(requested.total_count <= periods(begin), "{requested:?}, {} periods", periods(begin));
    assert_eq!(requested.last_instance_handle, one);
    for participant in [&out, &inward] {
        let record = await_some(|| participant.flight_record());
        assert_eq!(record.cause, RecordCause::DeadlineMissed { topic: "Readings".into() });
        assert!(!record.steps.is_empty());
    }

    writer.dispose(&Reading { id: 1, value: 0 }).unwrap();
    await_some(|| {
        let sample = reader.take_next().unwrap()?;
        (sample.info.instance_state == InstanceState::NotAliveDisposed && sample.data.is_none()).then_some(())
    });
    // What was missed before it ended may be told yet.
    let mut more = Vec::new();
    let is_over = (0..3).any(|_| {
        let told = || (writer.offered_deadline_missed_status(), reader.requested_deadline_missed_status());
        told();
        // That nothing comes cannot be awaited.
        std::thread::sleep(PERIOD.times(3).into());
        more.push(told());
        more.last().is_some_and(|(o, r)| o.total_count_change <= 1 && r.total_count_change <= 1)
    });
    assert!(is_over, "{more:?}");
}

#[test]
fn missed_deadlines_are_told_for_samples_through_lanes() {
    is_told(50, true);
}

#[test]
fn missed_deadlines_are_told_for_samples_over_the_network() {
    is_told(51, false);
}

/// Its only instance.
#[test]
fn the_instance_of_a_topic_without_a_key_has_one_handle() {
    let config = Config { domain_id: 199, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Number>("Numbers").unwrap();
    let qos = Qos::default().reliable().deadline(PERIOD);
    let (writer, reader) = (topic.writer(qos.clone()).unwrap(), topic.reader(qos).unwrap());
    let number = Number { value: 7 };
    let only = writer.register_instance(&number).unwrap();
    assert_ne!(only, InstanceHandle::NIL);
    writer.write(&number).unwrap();
    reader.wait(LIMIT).unwrap();
    let of_it = Selection { instance: Some(only), ..Selection::ANY };
    let read = reader.read_with(&of_it).unwrap();
    assert_eq!(read.iter().map(|sample| sample.info.instance_handle).collect::<Vec<_>>(), [only]);
    let offered = await_some(|| Some(writer.offered_deadline_missed_status()).filter(|s| s.total_count > 0));
    let requested =
        await_some(|| Some(reader.requested_deadline_missed_status()).filter(|s| s.total_count > 0));
    assert_eq!([offered.last_instance_handle, requested.last_instance_handle], [only; 2]);
}

#[test]
fn listeners_hear_of_missed_deadlines() {
    let Pair { writer, reader, .. } = pair(52, true, &Qos::default().reliable().deadline(PERIOD));
    let (send, heard) = mpsc::channel();
    let also = send.clone();
    writer.set_listener(move |kinds| send.send(kinds).unwrap());
    reader.set_listener(move |kinds| also.send(kinds).unwrap());
    writer.write(&Reading { id: 1, value: 1 }).unwrap();
    let mut all = StatusMask::NONE;
    while !all.contains(StatusMask::OFFERED_DEADLINE_MISSED | StatusMask::REQUESTED_DEADLINE_MISSED) {
        all = all | heard.recv_timeout(LIMIT.into()).unwrap();
    }
}

/// Writes each 20 ms for some periods of a second. Returns what was missed of the deadline, offered and requested.
fn keep_the_deadline(domain_id: u32, local: bool) -> [u32; 2] {
    let qos = Qos::default().reliable().deadline(Duration::from_secs(1));
    let Pair { writer, reader, .. } = pair(domain_id, local, &qos);
    let begin = Instant::now();
    while begin.elapsed() < std::time::Duration::from_millis(2_500) {
        writer.write(&Reading { id: 1, value: 1 }).unwrap();
        while reader.take_next().unwrap().is_some() {}
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (offered, requested) =
        (writer.offered_deadline_missed_status(), reader.requested_deadline_missed_status());
    [offered.total_count, requested.total_count]
}

/// Only where the machine stands still for a second does a thread let a period end that writes each 20 ms, and not each time.
#[test]
fn who_keeps_the_deadline_hears_nothing() {
    for (domain_id, local) in [(53, true), (54, false)] {
        let mut missed = Vec::new();
        let is_kept = (0..3).any(|_| {
            missed.push(keep_the_deadline(domain_id, local));
            missed.last() == Some(&[0, 0])
        });
        assert!(is_kept, "{missed:?}");
    }
}

#[test]
fn a_weaker_writer_takes_over_from_one_that_missed_its_deadline() {
    let qos = |strength| Qos::default().reliable().exclusive().ownership_strength(strength).deadline(PERIOD);
    let Pair { out, writer, reader, .. } = pair(55, true, &qos(9));
    let weaker = out.topic::<Reading>("Readings").unwrap().writer(qos(1)).unwrap();
    weaker.wait_matched(LIMIT).unwrap();
    reader.wait_matched_count(2, LIMIT).unwrap();
    let begin = Instant::now();
    writer.write(&Reading { id: 1, value: 9 }).unwrap();
    // Each has a lane of its own: of what waits in both, either may come first, and the weaker owns what nobody does.
    assert_eq!(await_some(|| reader.take_next().unwrap()).data.map(|data| data.value), Some(9));
    let heard = await_some(|| {
        weaker.write(&Reading { id: 1, value: 1 }).unwrap();
        reader.take_next().unwrap()?.data.filter(|data| data.value == 1)
    });
    assert_eq!(heard.id, 1);
    assert!(begin.elapsed() + std::time::Duration::from_millis(1) >= PERIOD.into(), "{:?}", begin.elapsed());
    assert!(
        await_some(|| Some(reader.requested_deadline_missed_status()).filter(|s| s.total_count > 0))
            .total_count
            >= 1
    );
}
