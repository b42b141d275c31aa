//! Sequences of octets stay where they were received, on each way of a sample, for as long as somebody has them. One
//! test in a binary of its own, since it counts the allocations of the whole process.

use std::collections::HashSet;
use std::time::Instant;

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Octets, Qos, Selection};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final, name = "Image")]
struct Image {
    number: u32,
    pixels: Octets,
}

/// The same type to others.
#[derive(DdsType)]
#[dds(final, name = "Image")]
struct Copied {
    number: u32,
    pixels: Vec<u8>,
}

const LEN: usize = 1 << 20;
const SOON: Duration = Duration::from_secs(10);
/// More than a reader may hold of one writer, and few enough for the shared memory of a writer.
const MANY: u32 = 300;
const MANY_LEN: usize = 5_000;

fn image(number: u32, len: usize) -> Image {
    Image { number, pixels: (0..len).map(|at| (at as u32 ^ number) as u8).collect() }
}

/// A writer and a reader of two participants.
struct Way {
    _participants: [DomainParticipant; 2],
    writer: DataWriter<Image>,
    reader: DataReader<Image>,
}

impl Way {
    fn new(domain_id: u32, local: bool) -> Way {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let participants = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
        let qos = || Qos::default().reliable().keep_all().max_blocking_time(SOON);
        let writer = participants[0].topic("Image").unwrap().writer(qos()).unwrap();
        let reader = participants[1].topic("Image").unwrap().reader(qos()).unwrap();
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        Way { _participants: participants, writer, reader }
    }

    fn next(&self) -> Image {
        self.reader.wait(SOON).unwrap();
        self.reader.take_next().unwrap().unwrap().data.unwrap()
    }

    /// What was read lies where it lies, however often it is read.
    fn is_in_place(&self) {
        let sent = image(1, LEN);
        self.writer.write(&sent).unwrap();
        self.reader.wait(SOON).unwrap();
        let places: HashSet<_> = (0..3)
            .map(|_| {
                let read = self.reader.read_with(&Selection::ANY).unwrap().remove(0).data.unwrap();
                assert_eq!(read, sent);
                read.pixels.as_ptr()
            })
            .collect();
        let taken = self.reader.take().unwrap().remove(0).data.unwrap();
        assert_eq!(places, HashSet::from([taken.pixels.as_ptr()]));
    }

    /// The writer goes on, and the reader goes.
    fn outlives_its_reader(self) {
        self.writer.write(&image(2, LEN)).unwrap();
        let held = self.next();
        for number in 3..40 {
            self.writer.write(&image(number, LEN)).unwrap();
            assert_eq!(self.next(), image(number, LEN));
        }
        let many: Vec<Image> = (0..MANY)
            .map(|number| {
                self.writer.write(&image(number, MANY_LEN)).unwrap();
                self.next()
            })
            .collect();
        drop(self);
        assert_eq!(held, image(2, LEN));
        assert!(many.into_iter().zip(0..).all(|(many, number)| many == image(number, MANY_LEN)));
    }

    /// Once warm, a row of samples allocates nothing, unless discovery announces itself or a fragment is lost meanwhile.
    fn allocates_nothing(&self) {
        let mut sent = image(0, LEN);
        let mut into = image(0, 0);
        let mut round = || {
            sent.number += 1;
            self.writer.write(&sent).unwrap();
            self.reader.wait(SOON).unwrap();
            self.reader.take_into(&mut into).unwrap().unwrap();
            assert_eq!((into.number, into.pixels.len()), (sent.number, LEN));
        };
        let end = Instant::now() + SOON.into();
        loop {
            let before = CountingAllocator::of_process();
            (0..20).for_each(|_| round());
            let allocations = CountingAllocator::of_process() - before;
            if allocations == 0 {
                return;
            }
            assert!(Instant::now() < end, "{allocations} in 20 samples");
        }
    }
}

#[test]
fn octets_stay_where_they_were_received() {
    for (domain_id, local) in [(101, true), (102, false)] {
        let way = Way::new(domain_id, local);
        way.is_in_place();
        way.allocates_nothing();
        way.outlives_its_reader();
    }
    a_vector_is_the_same_to_others();
}

fn a_vector_is_the_same_to_others() {
    let config = Config { domain_id: 103, interfaces: vec!["lo".into()], ..Config::default() };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let writer = participant.topic::<Copied>("Image").unwrap().writer(Qos::default().reliable()).unwrap();
    let reader = participant.topic::<Image>("Image").unwrap().reader(Qos::default().reliable()).unwrap();
    writer.wait_matched(SOON).unwrap();
    let Image { number, pixels } = image(7, LEN);
    writer.write(&Copied { number, pixels: pixels.to_vec() }).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap(), image(7, LEN));
}
