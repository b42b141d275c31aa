//! Samples that are written and read in place, on the paths of one machine and over UDP.

use taut::cdr::bytemuck::{self, Pod, Zeroable};
use taut::{
    Config, DataReader, DataRepresentationId, DataWriter, DdsType, DomainParticipant, Duration, Error, Qos,
};

#[derive(DdsType, Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Scan {
    seq: u64,
    ranges: [f32; 1000],
}

#[derive(DdsType, Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(DdsType, PartialEq, Debug)]
#[dds(final)]
struct Cloud {
    name: String,
    #[dds(key)]
    sensor: u32,
    points: Vec<Point>,
}

#[derive(DdsType)]
#[dds(final)]
struct Tail {
    points: Vec<Point>,
    count: u32,
}

const SOON: Duration = Duration::from_secs(10);

fn participant(domain_id: u32, local: bool) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn pair<T: DdsType>(
    from: &DomainParticipant,
    to: &DomainParticipant,
    topic: &str,
) -> (DataWriter<T>, DataReader<T>) {
    let qos = Qos::default().reliable().keep_all();
    let writer = from.topic::<T>(topic).unwrap().writer(qos.clone()).unwrap();
    let reader = to.topic::<T>(topic).unwrap().reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (writer, reader)
}

#[test]
fn a_loan_is_written_and_looked_at_in_place_and_goes_over_udp_too() {
    for (domain, local) in [(91, true), (92, false)] {
        let (a, b) = (participant(domain, local), participant(domain, local));
        let (writer, reader) = pair::<Scan>(&a, &b, "Scan");
        for seq in 0..2_000 {
            let mut loan = writer.loan().unwrap();
            (loan.seq, loan.ranges[999]) = (seq, seq as f32);
            loan.write().unwrap();
            reader.wait(SOON).unwrap();
            let view = reader.take_view().unwrap().expect("it has come");
            let scan = view.data().expect("it has data");
            assert_eq!((scan.seq, scan.ranges[999]), (seq, seq as f32), "local {local}");
            assert!(view.info.valid_data);
        }
    }
}

#[test]
fn what_a_view_shows_stays_while_the_writer_goes_on() {
    let one = participant(93, true);
    let (writer, reader) = pair::<Scan>(&one, &one, "Scan");
    let mut views = Vec::new();
    for seq in 0..600 {
        let mut loan = writer.loan().unwrap();
        loan.seq = seq;
        loan.ranges.fill(seq as f32);
        loan.write().unwrap();
        let view = reader.take_view().unwrap().expect("it is there");
        if seq % 3 == 0 {
            views.push(view);
        }
    }
    drop((reader, writer));
    for (n, view) in views.iter().enumerate() {
        let scan = view.data().unwrap();
        let seq = 3 * n as u64;
        assert!(scan.seq == seq && scan.ranges.iter().all(|range| *range == seq as f32), "{n}");
    }
}

#[test]
fn a_loan_that_is_dropped_goes_back() {
    let one = participant(94, true);
    let (writer, reader) = pair::<Scan>(&one, &one, "Scan");
    let place = || {
        let loan = writer.loan().unwrap();
        &raw const *loan
    };
    let first = place();
    assert!((0..1_000).all(|_| place() == first), "the same memory again");
    assert!(reader.take_view().unwrap().is_none(), "nothing was written");
}

#[test]
fn elements_are_lent_behind_the_other_members() {
    for (domain, local) in [(95, true), (96, false)] {
        let (a, b) = (participant(domain, local), participant(domain, local));
        let (writer, reader) = pair::<Cloud>(&a, &b, "Cloud");
        for count in [0, 1, 7, 10_000] {
            let head = Cloud { name: "lidar".into(), sensor: count as u32, points: Vec::new() };
            let mut points = writer.loan_sequence::<Point>(&head, count).unwrap();
            assert_eq!(points.len(), count);
            for (n, point) in points.iter_mut().enumerate() {
                *point = Point { x: n as f32, y: -1.0 };
            }
            points.write().unwrap();
            reader.wait(SOON).unwrap();
            let sample = reader.take_next().unwrap().unwrap();
            let expected: Vec<Point> = (0..count).map(|n| Point { x: n as f32, y: -1.0 }).collect();
            assert_eq!(sample.data, Some(Cloud { points: expected, ..head }));
            assert_eq!(
                sample.info.instance_handle,
                writer
                    .register_instance(&Cloud {
                        name: String::new(),
                        sensor: count as u32,
                        points: Vec::new(),
                    })
                    .unwrap()
            );
        }
    }
}

#[test]
fn only_what_can_be_lent_in_parts_is() {
    let one = participant(97, true);
    let (clouds, _reader) = pair::<Cloud>(&one, &one, "Cloud");
    let full = Cloud { name: String::new(), sensor: 0, points: vec![Point { x: 0.0, y: 0.0 }] };
    assert!(matches!(clouds.loan_sequence::<Point>(&full, 1), Err(Error::BadParameter(_))), "not empty");
    let empty = Cloud { points: Vec::new(), ..full };
    assert!(matches!(clouds.loan_sequence::<Scan>(&empty, 1), Err(Error::BadParameter(_))), "other elements");
    let (tails, _reader) = pair::<Tail>(&one, &one, "Tail");
    let tail = Tail { points: Vec::new(), count: 0 };
    assert!(matches!(tails.loan_sequence::<Point>(&tail, 1), Err(Error::BadParameter(_))), "not the last");
}

#[derive(DdsType)]
#[dds(final)]
struct Named {
    names: Vec<String>,
}

#[derive(DdsType)]
#[dds(final)]
struct Path {
    #[dds(key)]
    points: Vec<Point>,
}

#[derive(DdsType)]
#[dds(final)]
struct Of<T> {
    number: u32,
    #[dds(key)]
    inner: T,
}

/// What one element of zeros does not tell apart, and samples that would be those of an instance without elements.
#[test]
fn neither_strings_nor_a_key_are_lent_in_parts() {
    let one = participant(97, true);
    let refused = |outcome: taut::Result<()>, what: &str| {
        let Err(Error::BadParameter(text)) = outcome else { panic!("{outcome:?}") };
        assert!(text.contains(what), "{text}");
    };
    for (topic, representation) in
        [("Names1", DataRepresentationId::XCDR1), ("Names2", DataRepresentationId::XCDR2)]
    {
        let names = one.topic::<Named>(topic).unwrap();
        let names = names.writer(Qos::default().representation([representation])).unwrap();
        let empty = Named { names: Vec::new() };
        refused(names.loan_sequence::<Word>(&empty, 1).map(drop), "no sequence of such elements");
    }
    let (paths, _reader) = pair::<Path>(&one, &one, "Path");
    let path = || Path { points: Vec::new() };
    refused(paths.loan_sequence::<Point>(&path(), 1).map(drop), "part of the key; use write");
    let (nested, _reader) = pair::<Of<Path>>(&one, &one, "Nested");
    let of = Of { number: 1, inner: path() };
    refused(nested.loan_sequence::<Point>(&of, 1).map(drop), "part of the key; use write");
    let (clouds, _reader) = pair::<Of<Cloud>>(&one, &one, "Clouds");
    let cloud = Cloud { name: String::new(), sensor: 1, points: Vec::new() };
    assert!(clouds.loan_sequence::<Point>(&Of { number: 1, inner: cloud }, 1).is_ok(), "it has another key");
}

#[derive(DdsType, Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Word {
    word: u32,
}

#[derive(DdsType, PartialEq, Debug)]
#[dds(final)]
struct Sketch {
    #[dds(bound = 2)]
    points: Vec<Point>,
}

#[derive(DdsType)]
#[dds(final)]
struct Page {
    number: u32,
    sketch: Sketch,
}

#[derive(DdsType)]
#[dds(final)]
struct Boxed {
    sketch: Box<Sketch>,
}

/// It has no members of its own.
#[derive(DdsType)]
#[dds(final)]
struct Derived {
    #[dds(base)]
    sketch: Sketch,
}

#[test]
fn no_more_is_lent_than_the_bound_allows() {
    let one = participant(90, true);
    let (sketches, reader) = pair::<Sketch>(&one, &one, "Sketch");
    let empty = || Sketch { points: Vec::new() };
    let Err(Error::BadParameter(text)) = sketches.loan_sequence::<Point>(&empty(), 3).map(|_| ()) else {
        panic!("its readers would refuse it");
    };
    assert!(text.contains("3 elements") && text.contains("at most 2"), "{text}");
    sketches.loan_sequence::<Point>(&empty(), 2).unwrap().write().unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().points.len(), 2);
    let (pages, _reader) = pair::<Page>(&one, &one, "Page");
    let page = Page { number: 1, sketch: empty() };
    assert!(matches!(pages.loan_sequence::<Point>(&page, 3), Err(Error::BadParameter(_))), "of a member");
    let (boxed, _reader) = pair::<Boxed>(&one, &one, "Boxed");
    let lent = boxed.loan_sequence::<Point>(&Boxed { sketch: Box::new(empty()) }, 3);
    assert!(matches!(lent, Err(Error::BadParameter(_))), "of an external member");
    let (derived, _reader) = pair::<Derived>(&one, &one, "Derived");
    let lent = derived.loan_sequence::<Point>(&Derived { sketch: empty() }, 3);
    assert!(matches!(lent, Err(Error::BadParameter(_))), "of a base");
}

/// In XCDR2 the length of such a sequence stands before it.
#[test]
fn structures_are_not_lent_where_cdr_has_their_length_twice() {
    let one = participant(131, true);
    let topic = one.topic::<Sketch>("Xcdr2").unwrap();
    let writer = topic.writer(Qos::default().representation([DataRepresentationId::XCDR2])).unwrap();
    match writer.loan_sequence::<Point>(&Sketch { points: Vec::new() }, 1).map(|_| ()) {
        Err(Error::Unsupported(text)) => assert!(text.contains("XCDR1") && text.contains("write"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn serialized_bytes_are_lent() {
    let one = participant(98, true);
    let (writer, reader) = pair::<Scan>(&one, &one, "Scan");
    let scan = Scan { seq: 7, ranges: [2.5; 1000] };
    let mut bytes = writer.loan_bytes(size_of::<Scan>()).unwrap();
    bytes.copy_from_slice(bytemuck::bytes_of(&scan));
    bytes.write().unwrap();
    let mut taken = Scan::zeroed();
    let info = reader.take_into(&mut taken).unwrap().expect("it is there");
    assert_eq!((taken.seq, taken.ranges[999], info.valid_data), (7, 2.5, true));
    assert!(reader.take_into(&mut taken).unwrap().is_none());
}

#[test]
fn a_loan_is_no_longer_than_a_sample_can_be() {
    let participant = participant(83, true);
    let (writer, _reader) = pair::<Cloud>(&participant, &participant, "LongLoan");
    let head = Cloud { name: "lidar".into(), sensor: 1, points: vec![] };
    for len in [(1 << 30) - 3, (1 << 32) - 7, 1 << 32, usize::MAX - 4, usize::MAX] {
        assert!(matches!(writer.loan_bytes(len), Err(Error::BadParameter(_))), "{len} bytes");
        assert!(
            matches!(writer.loan_sequence::<Point>(&head, len / 8), Err(Error::BadParameter(_))),
            "{len}"
        );
    }
}

/// A plain type that nobody takes.
#[derive(DdsType, Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Huge {
    words: [[u64; 1 << 14]; 1 << 13],
}

#[derive(DdsType)]
#[dds(final)]
struct Blob {
    data: Vec<u8>,
}

#[test]
fn nothing_is_written_that_no_reader_takes() {
    let participant = participant(83, true);
    let refused = |outcome: taut::Result<()>| {
        let Err(Error::BadParameter(text)) = outcome else { panic!("{outcome:?}") };
        assert!(text.contains("up to 1073741824 B"), "{text}");
    };
    let (plain, _reader) = pair::<Huge>(&participant, &participant, "Huge");
    refused(plain.write(&bytemuck::allocation::zeroed_box::<Huge>()));
    refused(plain.try_write(&bytemuck::allocation::zeroed_box::<Huge>()));
    refused(plain.loan().map(drop));
    let (encoded, reader) = pair::<Blob>(&participant, &participant, "LongBlob");
    let mut blob = Blob { data: vec![0; (1 << 30) - 7] };
    refused(encoded.write(&blob));
    blob.data.truncate(3);
    encoded.write(&blob).unwrap();
    encoded.wait_for_acknowledgments(SOON).unwrap();
    assert_eq!(reader.take().unwrap().len(), 1, "the next one that is short enough");
}
