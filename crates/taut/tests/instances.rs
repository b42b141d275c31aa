//! One instance, whoever writes it.

use std::time::Instant;

use taut::{
    Config, DataReader, DataRepresentationId, DataWriter, DdsType, DomainParticipant, Duration,
    InstanceHandle, InstanceState, LivelinessKind, Qos, SamplePath, Selection, cdr::bytemuck, qos::TopicQos,
};

const SOON: Duration = Duration::from_secs(20);

/// Its key takes 16 bytes in version 1, 12 in version 2.
#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Track {
    #[dds(key)]
    kind: u8,
    #[dds(key)]
    number: u64,
    seq: u32,
}

#[test]
fn writers_of_both_versions_write_one_instance() {
    for (local, domain_id) in [(true, 91), (false, 92)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let both = [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2];
        let qos = || Qos::default().reliable().keep_all();
        let reader = inward.topic::<Track>("Tracks").unwrap().reader(qos().representation(both)).unwrap();
        let topic = out.topic::<Track>("Tracks").unwrap();
        let writers = both.map(|one| topic.writer(qos().representation([one])).unwrap());
        reader.wait_matched_count(2, SOON).unwrap();
        for writer in &writers {
            writer.wait_matched(SOON).unwrap();
        }
        let next = || {
            reader.wait(SOON).unwrap();
            reader.take_next().unwrap().unwrap().info
        };
        let track = |seq| Track { kind: 1, number: 7, seq };
        let mut handles = Vec::new();
        for (writer, seq) in writers.iter().zip(0..) {
            writer.write(&track(seq)).unwrap();
            handles.push(next().instance_handle);
        }
        assert_eq!(handles[0], handles[1], "local: {local}");
        writers[1].dispose(&track(0)).unwrap();
        let end = next();
        assert_eq!((end.instance_handle, end.instance_state), (handles[0], InstanceState::NotAliveDisposed));
    }
}

#[test]
fn a_writer_tells_of_an_instance_by_the_handle_that_readers_have() {
    let config = Config { domain_id: 95, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Track>("Tracks").unwrap();
    for one in [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2] {
        let qos = || Qos::default().reliable().keep_all().representation([one]);
        let reader = topic.reader(qos().deadline(SOON)).unwrap();
        let writer = topic.writer(qos().deadline(Duration::from_millis(20))).unwrap();
        let track = Track { kind: 1, number: 7, seq: 0 };
        let handle = writer.register_instance(&track).unwrap();
        writer.write(&track).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().info.instance_handle, handle, "{one:?}");
        let end = Instant::now() + std::time::Duration::from_secs(20);
        let missed = loop {
            let status = writer.offered_deadline_missed_status();
            if status.total_count > 0 {
                break status.last_instance_handle;
            }
            assert!(Instant::now() < end, "the deadline is missed");
            std::thread::yield_now();
        };
        assert_eq!(missed, handle, "{one:?}");
    }
}

#[test]
fn a_walk_goes_past_the_instance_whose_key_is_zero() {
    let config = Config { domain_id: 95, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Track>("Zeros").unwrap();
    let qos = || Qos::default().reliable().keep_all();
    let (writer, reader) = (topic.writer(qos()).unwrap(), topic.reader(qos()).unwrap());
    let track = |number| Track { kind: 0, number, seq: 0 };
    let mut handles: Vec<_> =
        (0..3).map(|number| writer.register_instance(&track(number)).unwrap()).collect();
    (0..3).for_each(|number| writer.write(&track(number)).unwrap());
    let (mut after, mut walked) = (InstanceHandle::NIL, Vec::new());
    while walked.len() <= handles.len() {
        let next = Selection { next_instance_after: Some(after), ..Selection::ANY };
        let Some(first) = reader.read_with(&next).unwrap().pop() else { break };
        after = first.info.instance_handle;
        walked.push(after);
    }
    handles.sort();
    assert_eq!(walked, handles);
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Named {
    #[dds(key)]
    name: String,
    seq: u32,
}

#[test]
fn an_instance_whose_key_goes_in_fragments_ends() {
    for (local, domain_id) in [(true, 93), (false, 94)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let qos = || Qos::default().reliable().keep_all();
        let reader = inward.topic::<Named>("Names").unwrap().reader(qos()).unwrap();
        let writer = out.topic::<Named>("Names").unwrap().writer(qos()).unwrap();
        reader.wait_matched(SOON).unwrap();
        writer.wait_matched(SOON).unwrap();
        let next = || {
            reader.wait(SOON).unwrap();
            reader.take_next().unwrap().unwrap()
        };
        let mut named = Named { name: "n".repeat(200_000), seq: 1 };
        writer.write(&named).unwrap();
        let written = next();
        assert!(written.data.as_ref() == Some(&named));
        writer.dispose(&named).unwrap();
        let end = next();
        assert_eq!(end.info.instance_handle, written.info.instance_handle, "local: {local}");
        assert_eq!(end.info.instance_state, InstanceState::NotAliveDisposed);
        named.seq = 0;
        assert!(end.data.is_none() && end.key == Some(named));
    }
}

#[test]
fn who_falls_silent_leaves_the_key_of_an_instance_and_nothing_of_its_samples() {
    let config = Config { domain_id: 95, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Track>("Silent").unwrap();
    let qos =
        || Qos::default().keep_all().liveliness(LivelinessKind::ManualByTopic, Duration::from_millis(20));
    let (writer, reader) = (topic.writer(qos()).unwrap(), topic.reader(qos()).unwrap());
    writer.write(&Track { kind: 1, number: 7, seq: 9 }).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().seq, 9);
    reader.wait(SOON).unwrap();
    let end = reader.take_next().unwrap().unwrap();
    assert_eq!(end.info.instance_state, InstanceState::NotAliveNoWriters);
    assert_eq!(end.key, Some(Track { kind: 1, number: 7, seq: 0 }));
}

#[test]
fn who_is_silent_already_owns_nothing_of_what_a_later_reader_gets() {
    let config = Config { domain_id: 95, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Track>("Silent before").unwrap();
    let qos = || Qos::default().reliable().transient_local().keep_all().exclusive();
    let lease = Duration::from_millis(20);
    let promised = qos().liveliness(LivelinessKind::ManualByTopic, lease).ownership_strength(9);
    let (strong, weak) = (topic.writer(promised).unwrap(), topic.writer(qos()).unwrap());
    let mut track = Track { kind: 1, number: 7, seq: 1 };
    strong.write(&track).unwrap();
    let reader = topic.reader(qos()).unwrap();
    let next = |reader: &DataReader<Track>| {
        reader.wait(SOON).unwrap();
        let sample = reader.take_next().unwrap().unwrap();
        (sample.data.map(|track| track.seq), sample.info.instance_state)
    };
    assert_eq!(next(&reader).0, Some(1));
    assert_eq!(next(&reader), (None, InstanceState::NotAliveNoWriters), "it is silent");
    let later = topic.reader(qos()).unwrap();
    assert_eq!(next(&later).0, Some(1));
    assert_eq!(next(&later), (None, InstanceState::NotAliveNoWriters));
    track.seq = 2;
    weak.write(&track).unwrap();
    assert_eq!(next(&later), (Some(2), InstanceState::Alive));
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(final)]
struct Bulk {
    #[dds(key)]
    id: u32,
    body: Vec<u8>,
}

#[test]
fn the_key_of_an_instance_outlives_its_long_first_sample() {
    for (local, domain_id) in [(true, 93), (false, 94)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let lease = Duration::from_millis(20);
        let qos = || Qos::default().reliable().keep_all().liveliness(LivelinessKind::ManualByTopic, lease);
        let reader = inward.topic::<Bulk>("Bulk").unwrap().reader(qos()).unwrap();
        let writer = out.topic::<Bulk>("Bulk").unwrap().writer(qos()).unwrap();
        writer.wait_matched(SOON).unwrap();
        writer.write(&Bulk { id: 7, body: vec![1; 10_000] }).unwrap();
        let next = || {
            reader.wait(SOON).unwrap();
            reader.take_next().unwrap().unwrap()
        };
        assert_eq!(next().data.unwrap().body.len(), 10_000);
        let end = next();
        assert_eq!(end.key, Some(Bulk { id: 7, body: Vec::new() }), "local: {local}");
    }
}

/// A reader that looks when all was written long since, through lanes and over the network.
#[test]
fn what_two_writers_have_written_ends_as_the_last_of_them_left_it() {
    for (local, domain_id) in [(true, 93), (false, 94)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let track = |seq| Track { kind: 1, number: 7, seq };
        for (name, qos) in [("Last", Qos::default()), ("Owned", Qos::default().keep_all().exclusive())] {
            let qos = |strength| qos.clone().reliable().ownership_strength(strength);
            let reader = inward.topic::<Track>(name).unwrap().reader(qos(0)).unwrap();
            let topic = out.topic::<Track>(name).unwrap();
            let (weak, strong) = (topic.writer(qos(1)).unwrap(), topic.writer(qos(2)).unwrap());
            reader.wait_matched_count(2, SOON).unwrap();
            for writer in [&weak, &strong] {
                writer.wait_matched(SOON).unwrap();
            }
            let all_in_lanes = |side: &DomainParticipant| {
                side.matches().iter().all(|found| found.path == Some(SamplePath::Process))
            };
            let start = Instant::now();
            while local && ![&out, &inward].into_iter().all(all_in_lanes) {
                assert!(start.elapsed() < SOON.into(), "{:?}", out.matches());
                std::thread::yield_now();
            }
            // The network promises no order between writers: there each sample has come before the next is written.
            let come = |writer: &DataWriter<Track>| writer.wait_for_acknowledgments(SOON).unwrap();
            let written = |writer: &DataWriter<Track>| {
                if !local {
                    come(writer)
                }
            };
            weak.write(&track(1)).unwrap();
            written(&weak);
            strong.write(&track(2)).unwrap();
            written(&strong);
            weak.dispose(&track(0)).unwrap();
            written(&weak);
            weak.write(&track(3)).unwrap();
            [&weak, &strong].into_iter().for_each(come);
            let data: Vec<_> = reader.take().unwrap().into_iter().filter_map(|sample| sample.data).collect();
            let expected = if name == "Last" { vec![track(3)] } else { vec![track(1), track(2)] };
            assert_eq!(data, expected, "{name}, local: {local}");
        }
    }
}

/// What another program takes a track for: too short for its key.
#[derive(DdsType)]
#[dds(final)]
struct Kind {
    #[dds(key)]
    kind: u8,
}

#[test]
fn a_sample_whose_key_cannot_be_read_is_lost() {
    for local in [true, false] {
        let config = Config { domain_id: 162, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let qos = || Qos::default().reliable().keep_all();
        let reader = inward.topic::<Track>("Lost").unwrap().reader(qos()).unwrap();
        let wrong = out.topic_as::<Kind>("Lost", Track::TYPE_NAME, TopicQos::default()).unwrap();
        let (wrong, right) =
            (wrong.writer(qos()).unwrap(), out.topic::<Track>("Lost").unwrap().writer(qos()).unwrap());
        reader.wait_matched_count(2, SOON).unwrap();
        wrong.wait_matched(SOON).unwrap();
        right.wait_matched(SOON).unwrap();
        let (send, told) = std::sync::mpsc::channel();
        reader.set_listener(move |kinds| {
            if kinds.intersects(taut::StatusMask::SAMPLE_LOST) {
                send.send(()).unwrap();
            }
        });
        wrong.write(&Kind { kind: 1 }).unwrap();
        told.recv_timeout(SOON.into()).expect("the listener is not told");
        assert!(reader.wait(Duration::from_millis(10)).is_err(), "there is nothing to take");
        let begun = Instant::now();
        while reader.sample_lost_status().total_count == 0 {
            assert!(begun.elapsed() < SOON.into(), "nobody is told of it, local: {local}");
            std::thread::yield_now();
        }
        assert!(reader.take().unwrap().is_empty());
        // Those of others come.
        let track = Track { kind: 1, number: 7, seq: 0 };
        right.write(&track).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data, Some(track));
        let status = reader.sample_lost_status();
        assert_eq!((status.total_count, status.total_count_change), (1, 0), "local: {local}");
    }
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Room {
    #[dds(key)]
    id: u32,
    celsius: f32,
}

/// The reader forgets the instance with the sample that tells of its end: only that can say which it was.
#[test]
fn who_takes_into_a_value_or_a_view_is_told_which_instance_has_ended() {
    for (domain_id, local) in [(86, true), (87, false)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let open = || DomainParticipant::with_config(&config).unwrap();
        let (out, inward) = (open(), open());
        let (from, to) = (out.topic::<Room>("Rooms").unwrap(), inward.topic::<Room>("Rooms").unwrap());
        let qos = || Qos::default().reliable().keep_all();
        let (writer, by_value) = (from.writer(qos()).unwrap(), to.reader(qos()).unwrap());
        let by_view = to.reader(qos()).unwrap();
        writer.wait_matched_count(2, SOON).unwrap();
        [&by_value, &by_view].iter().for_each(|reader| reader.wait_matched(SOON).unwrap());
        let rooms = [1, 2].map(|id| Room { id, celsius: 20.5 });
        rooms.iter().for_each(|room| writer.write(room).unwrap());
        let (mut room, mut key) = (Room { id: 0, celsius: 0.0 }, Some(rooms[0]));
        for written in rooms {
            [&by_value, &by_view].iter().for_each(|reader| reader.wait(SOON).unwrap());
            by_value.take_into_or_key(&mut room, &mut key).unwrap().unwrap();
            assert_eq!((room, key), (written, None));
            let view = by_view.take_view().unwrap().unwrap();
            assert_eq!((view.data(), view.key()), (Some(&written), None));
        }
        writer.unregister_instance(&rooms[0]).unwrap();
        [&by_value, &by_view].iter().for_each(|reader| reader.wait(SOON).unwrap());
        let info = by_value.take_into_or_key(&mut room, &mut key).unwrap().unwrap();
        let ended = Some(Room { id: 1, celsius: 0.0 });
        assert_eq!((info.valid_data, key, room), (false, ended, rooms[1]), "local: {local}");
        let view = by_view.take_view().unwrap().unwrap();
        assert_eq!((view.info.valid_data, view.data(), view.key()), (false, None, ended), "local: {local}");
    }
}
