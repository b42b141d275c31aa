//! What `docs/types.md` says: the types of its table are these, messages of ROS 2 have the bytes that ROS 2 gives them, and
//! its lines of the log are those that come.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use taut::cdr::{
    CdrError, Char, LongDouble, WChar, WString, bytemuck, from_key_payload, from_payload, key_hash,
    key_to_payload, to_payload,
};
use taut::qos::TopicQos;
use taut::{
    Config, DataReader, DataRepresentationId, DataWriter, DdsType, DomainParticipant, Duration, Octets, Qos,
    Representation, StatusMask,
};

use Representation::{Xcdr1, Xcdr2};

const PAGE: &str = include_str!("../../../docs/types.md");
const SOURCE: &str = include_str!("types.rs");

const SOON: Duration = Duration::from_secs(10);
const REPRESENTATIONS: [Representation; 2] = [Xcdr1, Xcdr2];

fn payload<T: DdsType>(value: &T, representation: Representation) -> Vec<u8> {
    let mut out = Vec::new();
    to_payload(value, representation, &mut out).unwrap();
    out
}

/// Is it the same there and back again?
fn comes_back<T: DdsType + Debug + PartialEq>(value: &T) {
    for representation in REPRESENTATIONS {
        assert_eq!(from_payload::<T>(&payload(value, representation)).as_ref(), Ok(value));
    }
}

fn refused<T: DdsType>(value: &T) -> CdrError {
    to_payload(value, Xcdr1, &mut Vec::new()).unwrap_err()
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Primitives {
    boolean: bool,
    octet: u8,
    int8: i8,
    short: i16,
    unsigned_short: u16,
    long: i32,
    unsigned_long: u32,
    long_long: i64,
    unsigned_long_long: u64,
    float: f32,
    double: f64,
    long_double: LongDouble,
    char: Char,
    wchar: WChar,
}

/// A bound may be a constant.
const MAX: usize = 4;

type Metres = f64;

#[rustfmt::skip]
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(appendable)]
struct Collections {
    text: String,
    #[dds(bound = 8)] short: String,
    wide: WString,
    #[dds(bound = 8)] short_wide: WString,
    doubles: Vec<f64>,
    #[dds(bound = MAX)] few: Vec<Metres>,
    #[dds(bound = [4, 8])] names: Vec<String>,
    bytes: Vec<u8>,
    image: Octets,
    grid: [[f64; 3]; 2],
    map: BTreeMap<i32, String>,
    hashed: HashMap<i32, String>,
    #[dds(bound = [4, 8])] labels: BTreeMap<i32, String>,
}

#[test]
fn primitives_and_collections_come_back() {
    comes_back(&Primitives {
        boolean: true,
        octet: 1,
        int8: -2,
        short: -3,
        unsigned_short: 4,
        long: -5,
        unsigned_long: 6,
        long_long: -7,
        unsigned_long_long: 8,
        float: 0.5,
        double: -0.25,
        long_double: LongDouble(0x3fff << 112),
        char: Char(b'c'),
        wchar: WChar(0xe9),
    });
    let one = || [(1, "one".to_owned())];
    let all = Collections {
        text: "Zürich".into(),
        short: "12345678".into(),
        wide: "Zürich".into(),
        short_wide: "12345678".into(),
        doubles: vec![0.5],
        few: vec![1.0; 4],
        names: vec!["12345678".into(); 4],
        bytes: vec![1, 2],
        image: Octets::from(vec![3, 4]),
        grid: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        map: one().into(),
        hashed: one().into(),
        labels: one().into(),
    };
    comes_back(&all);
    let long = || "123456789".to_owned();
    let beyond = [
        // The bound of a string counts the bytes of UTF-8: these are 9.
        Collections { short: "1234567ü".into(), ..all.clone() },
        // That of a wide one counts the units of UTF-16: these are 9.
        Collections { short_wide: "1234567\u{1f600}".into(), ..all.clone() },
        Collections { few: vec![0.0; 5], ..all.clone() },
        Collections { names: vec![String::new(); 5], ..all.clone() },
        Collections { names: vec![long()], ..all.clone() },
        Collections { labels: [(1, long())].into(), ..all.clone() },
        Collections { labels: (0..5).map(|n| (n, String::new())).collect(), ..all.clone() },
    ];
    assert_eq!(beyond.map(|value| refused(&value)), [CdrError::Bound; 7]);
    assert_eq!(refused(&Collections { text: "a\0".into(), ..all }), CdrError::InvalidString);

    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct Labels {
        #[dds(bound = 4)]
        labels: BTreeMap<String, u8>,
    }
    comes_back(&Labels { labels: [(long(), 1)].into() });
}

#[rustfmt::skip]
#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
enum Color { Red, Green = 4 }

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bit_bound = 8)]
enum Gear {
    Reverse = -1,
    #[dds(default)]
    Neutral,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bitmask, bit_bound = 12)]
struct Flags(u16);

const HOT: Flags = Flags(1 << 3);

#[rustfmt::skip]
#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bitset)]
struct Mode {
    #[dds(bits = 3)] low: u8,
    #[dds(bits = 1, skip = 4)] flag: bool,
}

#[rustfmt::skip]
#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(union, discriminator = i32, final)]
enum Value {
    #[dds(case = [1, 2])] Number(f64),
    #[dds(case = 3)] Kept { discriminator: i32, text: String },
    #[dds(default)] Nothing,
}

#[rustfmt::skip]
#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(union, discriminator = Color, key, final)]
enum Keyed {
    #[dds(case = Color::Red)] Warm(f32),
    #[dds(case = Color::Green)] Cold(f32),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Parts {
    color: Color,
    gear: Gear,
    flags: Flags,
    mode: Mode,
    value: Value,
    keyed: Keyed,
}

fn parts() -> Parts {
    let mode = Mode { low: 5, flag: true };
    let (value, keyed) = (Value::Number(0.5), Keyed::Cold(-1.5));
    Parts { color: Color::Green, gear: Gear::Reverse, flags: HOT, mode, value, keyed }
}

#[test]
fn enumerations_bits_and_unions_come_back() {
    comes_back(&parts());
    comes_back(&Parts { value: Value::Kept { discriminator: 3, text: "three".into() }, ..parts() });
    comes_back(&Parts { value: Value::Nothing, ..parts() });
    assert_eq!(refused(&Parts { flags: Flags(1 << 12), ..parts() }), CdrError::InvalidBits);
    assert_eq!(refused(&Parts { mode: Mode { low: 8, flag: false }, ..parts() }), CdrError::InvalidBits);
    assert_eq!(payload(&Value::Number(0.5), Xcdr1)[4..8], 1_i32.to_ne_bytes(), "the first of its cases");
    // The flag is bit 7: three bits, and four that are nobody's.
    assert_eq!(payload(&parts().mode, Xcdr1)[4], 0x85);
    assert_eq!(payload(&Gear::Reverse, Xcdr1)[4..5], [0xff]);
}

#[test]
fn what_is_no_literal_and_no_case_is_no_sample() {
    let body = |bytes: [u8; 4]| [&[0, 1, 0, 0][..], &bytes].concat();
    assert_eq!(from_payload(&body([4, 0, 0, 0])), Ok(Color::Green));
    assert_eq!(from_payload::<Color>(&body([1, 0, 0, 0])), Err(CdrError::InvalidEnum));
    assert_eq!(
        from_payload(&body([9, 0, 0, 0])),
        Ok(Value::Nothing),
        "a variant without value takes the rest"
    );
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(union, discriminator = i32, final)]
    enum Strict {
        #[dds(case = 1)]
        One(u8),
    }
    assert_eq!(from_payload::<Strict>(&body([9, 0, 0, 0])), Err(CdrError::InvalidDiscriminator));
}

#[test]
fn a_member_that_was_not_sent_has_the_default_literal() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable)]
    struct Car {
        wheels: u32,
        gear: Gear,
        color: Color,
        name: String,
        tank: Option<f32>,
    }
    let old = [0, 1, 0, 0, 4, 0, 0, 0];
    let (name, tank) = (String::new(), None);
    assert_eq!(from_payload(&old), Ok(Car { wheels: 4, gear: Gear::Neutral, color: Color::Red, name, tank }));
}

#[rustfmt::skip]
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(mutable)]
struct Animal {
    #[dds(key)] name: String,
    #[dds(id = 7)] legs: u8,
}

#[rustfmt::skip]
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(mutable, name = "zoo::Dog")]
struct Dog {
    #[dds(base)] animal: Animal,
    tricks: Option<u32>,
    parent: Option<Box<Dog>>,
    #[dds(must_understand)] bites: bool,
    #[dds(name = "isOn")] on: bool,
}

#[test]
fn a_structure_inherits_nests_and_leaves_out() {
    let animal = Animal { name: "Rex".into(), legs: 4 };
    let parent = Dog { animal: animal.clone(), ..Dog::default() };
    let dog = Dog { animal, tricks: Some(2), parent: Some(Box::new(parent)), bites: true, on: true };
    comes_back(&dog);
    assert_eq!((Dog::TYPE_NAME, Animal::TYPE_NAME), ("zoo::Dog", "Animal"));
    const { assert!(Dog::HAS_KEY, "it has that of its base") };
    let mut key = Vec::new();
    key_to_payload(&dog, Xcdr2, &mut key).unwrap();
    assert_eq!(from_key_payload::<Dog>(&key).unwrap().animal.name, "Rex");
    assert_ne!(key_hash(&dog, Xcdr1).unwrap(), key_hash(&Dog::default(), Xcdr1).unwrap());
    // What the base does not know it leaves out, but not what must be understood.
    assert_eq!(from_payload::<Animal>(&payload(&dog, Xcdr2)), Err(CdrError::MustUnderstand));
}

/// What lies between backticks.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_the_table_shows_compiles() {
    let source = squeezed(SOURCE);
    let (_, table) = PAGE.split_once("| IDL | Rust |").expect("the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|')).skip(1);
    let mut count = 0;
    for row in rows {
        let rust = row.split(" | ").nth(1).unwrap_or_else(|| panic!("no second cell: {row}"));
        for shown in spans(rust) {
            assert!(source.contains(&squeezed(shown)), "not in this file: {shown}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// Messages of ROS 2, as the page writes them.
#[rustfmt::skip]
mod ros {
    use taut::DdsType;

    /// builtin_interfaces/Time
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(final)]
    pub struct Time { pub sec: i32, pub nanosec: u32 }

    /// std_msgs/Header
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(final)]
    pub struct Header { pub stamp: Time, pub frame_id: String }

    /// sensor_msgs/JointState
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(final, name = "sensor_msgs::msg::dds_::JointState_")]
    pub struct JointState {
        pub header: Header, pub name: Vec<String>,
        pub position: Vec<f64>, pub velocity: Vec<f64>, pub effort: Vec<f64>,
    }

    /// std_msgs/String
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(final, name = "std_msgs::msg::dds_::String_")]
    pub struct Text { pub data: String }

    /// std_msgs/Empty
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(final, name = "std_msgs::msg::dds_::Empty_")]
    pub struct Empty { pub structure_needs_at_least_one_member: u8 }
}

#[test]
fn the_page_writes_messages_of_ros_as_they_are_here() {
    let (_, of_ros) = PAGE.split_once("## ROS 2").expect("the chapter");
    let (_, rest) = of_ros.split_once("#[derive").expect("a type");
    let (types, _) = rest.split_once("# let config").expect("a program");
    let source = squeezed(&SOURCE.replace("pub ", ""));
    assert!(types.contains("JointState") && types.contains("String_"), "{types}");
    assert!(source.contains(&squeezed(types)), "not in this file: {types}");
}

fn same_as_ros<T: DdsType + Debug + PartialEq>(value: &T, of_ros: &str) {
    let bytes = (0..of_ros.len()).step_by(2).map(|at| u8::from_str_radix(&of_ros[at..at + 2], 16).unwrap());
    let bytes: Vec<u8> = bytes.collect();
    assert_eq!(from_payload::<T>(&bytes).as_ref(), Ok(value));
    // How much padding is behind the value is the writer's choice.
    let own = payload(value, Xcdr1);
    let same = own.len().min(bytes.len());
    assert_eq!(own[4..same], bytes[4..same]);
    assert!(own[same..].iter().chain(&bytes[same..]).all(|byte| *byte == 0));
}

/// As a message of ROS 2 over Fast DDS has it.
#[derive(DdsType, Debug, PartialEq)]
#[dds(final)]
struct Wide {
    wstring: Vec<u32>,
}

/// test_msgs/BasicTypes
#[derive(DdsType, Debug, PartialEq)]
#[dds(final)]
struct Basic {
    bool: bool,
    byte: u8,
    char: u8,
    float32: f32,
    float64: f64,
    int8: i8,
    uint8: u8,
    int16: i16,
    uint16: u16,
    int32: i32,
    uint32: u32,
    int64: i64,
    uint64: u64,
}

const BASIC: Basic = Basic {
    bool: true,
    byte: 2,
    char: 3,
    float32: 0.5,
    float64: -0.25,
    int8: -4,
    uint8: 5,
    int16: -6,
    uint16: 7,
    int32: -8,
    uint32: 9,
    int64: -10,
    uint64: 11,
};

/// The bytes are those of `rclpy.serialization.serialize_message` (rclpy 9.1.2, rmw_fastrtps_cpp 9.3.3, messages 5.5.1);
/// before the `int32` that leaves what was in memory, and here are zeros.
#[cfg(target_endian = "little")]
#[test]
fn messages_have_the_bytes_that_ros_gives_them() {
    same_as_ros(&ros::Text { data: "hello".into() }, "000100000600000068656c6c6f00");
    same_as_ros(&ros::Empty::default(), "0001000000000000");
    same_as_ros(
        &BASIC,
        "00010000010203000000003f000000000000d0bffc05faff07000000f8ffffff09000000\
         f6ffffffffffffff0b00000000000000",
    );
    same_as_ros(&Wide { wstring: "aé".chars().map(u32::from).collect() }, "000100000200000061000000e9000000");
    let header = ros::Header { stamp: ros::Time { sec: 1, nanosec: 2 }, frame_id: "base".into() };
    let joints = ros::JointState {
        header,
        name: vec!["hip".into(), "knee".into()],
        position: vec![0.5, -0.25],
        velocity: vec![],
        effort: vec![1.0],
    };
    same_as_ros(
        &joints,
        "00010000010000000200000005000000626173650000000002000000040000006869700005000000\
         6b6e65650000000002000000000000000000e03f000000000000d0bf000000000100000000000000\
         0000f03f0000000000000000",
    );
}

/// What the process has logged.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static MORE: Condvar = Condvar::new();

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        LOGGED.lock().unwrap_or_else(PoisonError::into_inner).push(record.args().to_string());
        MORE.notify_all();
    }

    fn flush(&self) {}
}

/// Is it that, with anything where `...` stands?
fn is_like(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split("...");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut is_exact = true;
    for part in parts {
        let Some(at) = rest.rfind(part) else { return false };
        rest = &rest[at + part.len()..];
        is_exact = !part.is_empty();
    }
    rest.is_empty() || !is_exact
}

/// Waits until such a line is logged.
fn hear(pattern: &str) {
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_missing = |lines: &mut Vec<String>| !lines.iter().any(|line| is_like(line, pattern));
    let (logged, waited) = MORE.wait_timeout_while(logged, SOON.into(), is_missing).unwrap();
    assert!(!waited.timed_out(), "not logged: {pattern}\nbut {logged:#?}");
}

/// The lines that the page shows of the log.
fn shown() -> Vec<&'static str> {
    let blocks = PAGE.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.flat_map(str::lines).collect()
}

mod other {
    /// What another program takes the type of this name for.
    #[derive(taut::DdsType)]
    #[dds(final)]
    pub struct Pose {
        pub name: String,
    }

    #[derive(taut::DdsType)]
    #[dds(final)]
    pub struct Keyless {
        pub sensor: String,
    }
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final)]
struct Pose {
    x: f64,
    y: f64,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final)]
struct Reading {
    #[dds(key)]
    sensor: String,
}

fn participant(domain_id: u32, local: bool) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

/// A writer and a reader of one topic whose types have the same name.
fn matched<W: DdsType, R: DdsType>(
    topic: &str,
    [here, there]: [&DomainParticipant; 2],
    qos: &Qos,
) -> (DataWriter<W>, DataReader<R>) {
    let (from, to) = (here.topic_as::<W>(topic, R::TYPE_NAME, TopicQos::default()), there.topic::<R>(topic));
    let (writer, reader) =
        (from.unwrap().writer(qos.clone()).unwrap(), to.unwrap().reader(qos.clone()).unwrap());
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (writer, reader)
}

#[test]
fn the_log_says_what_the_page_shows() {
    let _ = log::set_logger(&Logger);
    log::set_max_level(log::LevelFilter::Warn);
    let (here, there) = (participant(161, true), participant(161, true));
    let poses = here.topic::<Pose>("Pose").unwrap();
    let reader = poses.reader(reliable()).unwrap();
    let named = there.topic_as::<Pose>("Pose", "robot::Pose", TopicQos::default()).unwrap();
    let _named = named.writer(reliable()).unwrap();
    let xcdr2 = there.topic::<Pose>("Pose").unwrap();
    let xcdr2 = xcdr2.writer(reliable().representation([DataRepresentationId::XCDR2])).unwrap();
    let keyed = here.topic::<Reading>("Reading").unwrap().reader(reliable()).unwrap();
    let keyless = there.topic_as::<other::Keyless>("Reading", "Reading", TopicQos::default()).unwrap();
    let keyless = keyless.writer(reliable()).unwrap();
    let (writer, other) = matched::<other::Pose, Pose>("Other", [&there, &here], &reliable());
    let (tell, told) = mpsc::channel();
    other.set_listener(move |kinds| tell.send(kinds).unwrap_or_default());
    writer.write(&other::Pose { name: "no pose".into() }).unwrap();
    other.wait(SOON).unwrap();
    assert!(other.take_next().unwrap().is_none());
    while !told.recv_timeout(SOON.into()).unwrap().intersects(StatusMask::SAMPLE_LOST) {}
    assert_eq!(other.sample_lost_status().total_count, 1);
    let shown = shown();
    assert_eq!(shown.len(), 4, "{shown:?}");
    shown.into_iter().for_each(hear);
    hear("topic Pose: no match with ...: its type is Pose, here it is robot::Pose");
    hear("topic Pose: this writer does not match ...: DATA_REPRESENTATION: offered XCDR2, requested XCDR1");

    writer.write(&other::Pose { name: "nor this".into() }).unwrap();
    other.wait(SOON).unwrap();
    assert!(other.take().unwrap().is_empty());
    assert_eq!(other.sample_lost_status().total_count, 2);

    // And the statuses, and the reasons that a program can ask for.
    assert!([&poses, &named].iter().all(|topic| topic.inconsistent_topic_status().total_count > 0));
    let status = reader.requested_incompatible_qos_status();
    assert_eq!(status.last[0].to_string(), "DATA_REPRESENTATION: offered XCDR2, requested XCDR1");
    assert!(xcdr2.offered_incompatible_qos_status().total_count > 0);
    let refused: Vec<_> = here.matches().into_iter().filter_map(|of| of.refused).collect();
    for reason in
        ["type: here Pose, there robot::Pose", "key: one side's type has a key, the other's has none"]
    {
        assert!(refused.iter().any(|why| why == reason), "{reason}: {refused:?}");
    }
    drop((keyed, keyless));
}

#[test]
fn an_unreadable_sample_takes_the_place_of_one_of_its_instance() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct Level {
        #[dds(key)]
        sensor: String,
        litres: f64,
    }
    let (here, there) = (participant(164, true), participant(164, true));
    let qos = Qos::default().reliable().keep_last(1);
    let (other, reader) = matched::<Reading, Level>("Level", [&there, &here], &qos);
    let writer = here.topic::<Level>("Level").unwrap().writer(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    for sensor in ["left", "right"] {
        writer.write(&Level { sensor: sensor.into(), litres: 2.0 }).unwrap();
    }
    let sensors = |samples: Vec<taut::Sample<Level>>| {
        samples.into_iter().map(|sample| sample.data.unwrap().sensor).collect::<Vec<_>>()
    };
    let mut heard = Vec::new();
    while heard.len() < 2 {
        reader.wait(SOON).unwrap();
        heard.extend(sensors(reader.read().unwrap()));
    }
    assert_eq!(heard, ["left", "right"]);
    other.write(&Reading { sensor: "left".into() }).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(sensors(reader.take().unwrap()), ["right"]);
    assert_eq!(reader.sample_lost_status().total_count, 1);
}

/// A member that fills a gap is where CDR leaves one.
#[test]
fn what_fills_a_gap_of_a_plain_type_is_no_member_of_its_peer() {
    #[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[bytemuck(crate = "taut::cdr::bytemuck")]
    #[dds(final, plain)]
    #[repr(C)]
    struct Filled {
        valid: u8,
        spare: [u8; 3],
        number: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct WithGap {
        valid: bool,
        number: u32,
    }
    let (filled, gap) = (Filled { valid: 1, spare: [0; 3], number: 9 }, WithGap { valid: true, number: 9 });
    for representation in REPRESENTATIONS {
        assert_eq!(payload(&filled, representation), payload(&gap, representation));
    }
}

/// What a type has and another of the same name has not.
#[test]
fn types_that_differ_are_read_as_far_as_the_page_says() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable)]
    struct Open {
        a: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable)]
    struct Opened {
        a: u32,
        b: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct Closed {
        a: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(mutable)]
    struct Numbered {
        a: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct Around<T> {
        inner: T,
        last: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final)]
    struct Float {
        a: f32,
    }
    let open = Open { a: 7 };
    assert_eq!(from_payload(&payload(&Closed { a: 7 }, Xcdr1)), Ok(Float { a: f32::from_bits(7) }));
    // Final and appendable: the same in XCDR1, told apart in XCDR2. Mutable: never the same.
    assert_eq!(from_payload::<Closed>(&payload(&open, Xcdr1)), Ok(Closed { a: 7 }));
    assert_eq!(from_payload::<Closed>(&payload(&open, Xcdr2)), Err(CdrError::Encapsulation));
    for representation in REPRESENTATIONS {
        let sent = payload(&Numbered { a: 7 }, representation);
        assert_eq!(from_payload::<Open>(&sent), Err(CdrError::Encapsulation));
    }
    // What is within another structure has an end in XCDR2 only.
    let around = Around { inner: open, last: 9 };
    let newer = Around { inner: Opened { a: 7, b: 0 }, last: 9 };
    assert_eq!(from_payload(&payload(&around, Xcdr2)), Ok(newer));
    let misread = from_payload::<Around<Opened>>(&payload(&around, Xcdr1));
    assert_eq!(misread, Err(CdrError::EndOfData), "the next member is taken for the one that is not there");
}
