//! Bytes that other implementations made (see `vectors/README.md`), decoded, compared and made again.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Debug;

use taut_base::InstanceHandle;
use taut_cdr::{
    DdsType as Type, Encapsulation, Endian, Representation, WChar, WString, from_key_payload, from_payload,
    key_hash, key_hash_of_payload_in, key_to_payload_in, to_payload_in,
};
use taut_derive::DdsType;

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = taut_cdr)]
#[repr(i32)]
enum Color {
    Red,
    Green,
    Blue,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = taut_cdr, bit_bound = 8)]
enum Tiny {
    A,
    B,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = taut_cdr, bitmask, bit_bound = 12)]
struct Flags(u16);

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = taut_cdr, bitset)]
struct Fields {
    #[dds(bits = 3)]
    a: u8,
    #[dds(bits = 1)]
    b: bool,
    #[dds(bits = 8)]
    c: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Inner {
    a: u8,
    b: f64,
}

fn inner(n: u8) -> Inner {
    Inner { a: n, b: 2.5 * f64::from(n) }
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable)]
struct Open {
    a: u8,
    b: u16,
}

const OPEN: Open = Open { a: 3, b: 4 };

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Primitives {
    flag: bool,
    o: u8,
    i64: i64,
    c: taut_cdr::Char,
    f64: f64,
    i8: i8,
    i16: i16,
    u8: u8,
    u16: u16,
    i32: i32,
    gap: u8,
    u32: u32,
    f32: f32,
    u64: u64,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Strings {
    gap: u8,
    plain: String,
    #[dds(bound = 8)]
    bounded: String,
    list: Vec<String>,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Collections {
    bytes: Vec<u8>,
    shorts: Vec<i16>,
    doubles: Vec<f64>,
    none: Vec<f64>,
    flags: Vec<bool>,
    inners: Vec<Inner>,
    numbers: [i32; 3],
    grid: [[f64; 2]; 2],
    pair: [Inner; 2],
    #[dds(bound = 4)]
    bounded: Vec<i32>,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Enums {
    gap: u8,
    hue: Color,
    hues: Vec<Color>,
    both: [Color; 2],
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final, union, discriminator = i32)]
enum Choice {
    #[dds(case = 1)]
    Number(f64),
    #[dds(case = 2)]
    Text(String),
    #[dds(case = 3)]
    Within(Inner),
    #[dds(default)]
    Other { discriminator: i32, other: u8 },
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Unions {
    gap: u8,
    number: Choice,
    text: Choice,
    within: Choice,
    other: Choice,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Nested {
    gap: u8,
    within: Inner,
    opened: Open,
    opens: Vec<Open>,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable)]
struct Top {
    a: u8,
    b: i64,
    #[dds(external)]
    opened: Box<Open>,
    text: String,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Base {
    #[dds(key)]
    id: i32,
    x: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Derived {
    #[dds(base)]
    base: Base,
    y: f64,
    text: String,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct KeySmall {
    #[dds(key)]
    a: u8,
    other: String,
    #[dds(key)]
    b: u16,
    #[dds(key)]
    c: i32,
}

fn key_small() -> KeySmall {
    KeySmall { a: 1, other: "not key".into(), b: 0x0203, c: 0x0405_0607 }
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct KeyLarge {
    #[dds(key)]
    id: i32,
    #[dds(key)]
    name: String,
    value: f64,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct KeyDouble {
    #[dds(key)]
    a: u8,
    #[dds(key)]
    b: f64,
    value: i32,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct KeyInner {
    #[dds(key)]
    small: KeySmall,
    #[dds(key)]
    whole: Inner,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct KeyBounded {
    #[dds(key, bound = 7)]
    name: String,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable)]
struct KeyOpen {
    #[dds(key)]
    a: i32,
    gap: u8,
    #[dds(key)]
    b: u16,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Narrow {
    gap: u8,
    small: Tiny,
    gap2: u8,
    bits: Flags,
    more: Vec<Flags>,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Optionals {
    gap: u8,
    yes: Option<i32>,
    #[dds(optional)]
    no: Option<i32>,
    text: Option<String>,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, mutable)]
struct Mutable {
    #[dds(id = 50)]
    a: u8,
    #[dds(id = 2)]
    b: u16,
    c: i32,
    d: i64,
    text: String,
    bytes: Vec<u8>,
    shorts: Vec<i16>,
    longs: Vec<i32>,
    doubles: Vec<f64>,
    list: Vec<String>,
    within: Inner,
    opened: Open,
    hue: Color,
    numbers: [i32; 3],
    yes: Option<i32>,
    no: Option<i32>,
}

fn mutable() -> Mutable {
    Mutable {
        a: 1,
        b: 2,
        c: 3,
        d: 4,
        text: "txt".into(),
        bytes: vec![1, 2, 3],
        shorts: vec![1, 2],
        longs: vec![1, 2, 3],
        doubles: vec![0.5],
        list: vec!["x".into()],
        within: inner(1),
        opened: OPEN,
        hue: Color::Green,
        numbers: [1, 2, 3],
        yes: Some(6),
        no: None,
    }
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, mutable)]
struct KeyMutable {
    #[dds(key, id = 9)]
    a: u8,
    gap: i32,
    #[dds(key, id = 4)]
    b: u16,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, mutable)]
struct MutableNested {
    gap: u8,
    within: Mutable,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable, union, discriminator = u8)]
enum OpenChoice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case = 7)]
    Text(String),
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct OpenUnions {
    gap: u8,
    number: OpenChoice,
    text: OpenChoice,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Bits {
    gap: u8,
    bits: Flags,
    parts: Fields,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Maps {
    gap: u8,
    names: BTreeMap<i32, String>,
    numbers: BTreeMap<i16, f64>,
    last: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Wide {
    gap: u8,
    c: WChar,
    text: WString,
}

/// A line of a vector file.
struct Vector<'a> {
    file: &'a str,
    ty: &'a str,
    representation: Representation,
    endian: Endian,
    kind: &'a str,
    bytes: Vec<u8>,
}

/// How far a vector can be compared.
#[derive(Clone, Copy, PartialEq)]
enum Agreement {
    /// The same bytes.
    Full,
    /// Another valid form of the same value: decoded only.
    Decodes,
    /// Not what the specification says; see the README.
    None,
}

/// The differences that `vectors/README.md` explains. Everything else must agree in full.
fn agreement(vector: &Vector<'_>) -> Agreement {
    use Representation::{Xcdr1, Xcdr2};
    match (vector.file, vector.ty, vector.representation, vector.kind) {
        ("cyclonedds-c", "KeyLarge", _, "hash") => Agreement::None,
        ("cyclonedds-c", "KeyMutable", Xcdr2, "sample") => Agreement::Decodes,
        ("cyclonedds-c", _, Xcdr1, "key") => Agreement::Decodes,
        ("cyclonedds-c", "KeyOpen" | "KeyMutable", Xcdr2, "key") => Agreement::Decodes,
        ("cyclonedds-python", "Narrow", Xcdr1, _) => Agreement::None,
        ("cyclonedds-python", "Optionals" | "Mutable" | "KeyMutable" | "MutableNested", Xcdr1, _) => {
            Agreement::Decodes
        }
        ("fastdds", "KeyInner", _, "hash") => Agreement::None,
        ("fastdds", "Bits" | "Wide", _, _) => Agreement::None,
        _ => Agreement::Full,
    }
}

fn value_bytes(payload: &[u8]) -> &[u8] {
    Encapsulation::parse(payload).expect("an encapsulation").1
}

fn compare<T: Type + Debug + PartialEq>(vector: &Vector<'_>, value: T) -> Result<(), String> {
    let Vector { representation, endian, bytes, .. } = vector;
    let agreement = agreement(vector);
    if agreement == Agreement::None {
        return Ok(());
    }
    let hash = key_hash(&value, *representation).map_err(|e| e.to_string())?;
    let mut made = Vec::new();
    match vector.kind {
        "hash" => {
            let theirs = InstanceHandle(bytes.as_slice().try_into().map_err(|_| "not 16 bytes")?);
            return if hash == theirs { Ok(()) } else { Err(format!("hash {hash}, theirs {theirs}")) };
        }
        "key" => {
            let key: T = from_key_payload(bytes).map_err(|e| e.to_string())?;
            let again = key_hash(&key, *representation);
            if again != Ok(hash) || key_hash_of_payload_in::<T>(bytes, true, *representation) != Ok(hash) {
                return Err(format!("another instance: {key:?}"));
            }
            key_to_payload_in(&value, *representation, *endian, &mut made).map_err(|e| e.to_string())?;
        }
        _ => {
            let read: T = from_payload(bytes).map_err(|e| e.to_string())?;
            if read != value {
                return Err(format!("decoded {read:?}"));
            }
            if key_hash_of_payload_in::<T>(bytes, false, *representation) != Ok(hash) {
                return Err("another instance".into());
            }
            to_payload_in(&value, *representation, *endian, &mut made).map_err(|e| e.to_string())?;
        }
    }
    let same = made[..2] == bytes[..2] && value_bytes(&made) == value_bytes(bytes);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    match (same, agreement) {
        (true, Agreement::Full) | (false, Agreement::Decodes) => Ok(()),
        (true, _) => Err("agrees although the table says otherwise".into()),
        (false, _) => Err(format!("\n  ours   {}\n  theirs {}", hex(&made), hex(bytes))),
    }
}

fn check(vector: &Vector<'_>) -> Result<(), String> {
    match vector.ty {
        "Primitives" => compare(vector, primitives()),
        "Strings" => {
            let list = ["", "a", "bcd"].map(String::from).to_vec();
            compare(vector, Strings { gap: 1, plain: "Zürich".into(), bounded: "12345678".into(), list })
        }
        "Collections" => compare(vector, collections()),
        "Enums" => {
            let (hues, both) = (vec![Color::Red, Color::Green], [Color::Green, Color::Blue]);
            compare(vector, Enums { gap: 1, hue: Color::Blue, hues, both, last: 0xaa })
        }
        "Unions" => {
            let other = Choice::Other { discriminator: 9, other: 5 };
            let (text, within) = (Choice::Text("two".into()), Choice::Within(inner(1)));
            compare(vector, Unions { gap: 1, number: Choice::Number(0.5), text, within, other })
        }
        "Nested" => {
            let opens = vec![OPEN, OPEN];
            compare(vector, Nested { gap: 1, within: inner(1), opened: OPEN, opens, last: 0xaa })
        }
        "Top" => compare(vector, Top { a: 1, b: -2, opened: Box::new(OPEN), text: "end".into() }),
        "Derived" => compare(vector, Derived { base: Base { id: 7, x: 8 }, y: 0.5, text: "sub".into() }),
        "KeySmall" => compare(vector, key_small()),
        "KeyLarge" => compare(vector, KeyLarge { id: 5, name: "sensor".into(), value: 1.5 }),
        "KeyDouble" => compare(vector, KeyDouble { a: 1, b: 0.5, value: 3 }),
        "KeyInner" => compare(vector, KeyInner { small: key_small(), whole: inner(1), last: 0xaa }),
        "KeyBounded" => compare(vector, KeyBounded { name: "abc".into(), last: 0xaa }),
        "KeyOpen" => compare(vector, KeyOpen { a: 0x0102_0304, gap: 5, b: 0x0607 }),
        "Narrow" => {
            let (bits, more) = (Flags(0x809), vec![Flags(1), Flags(8)]);
            compare(vector, Narrow { gap: 1, small: Tiny::B, gap2: 2, bits, more, last: 0xaa })
        }
        "Optionals" => {
            let text = Some("opt".into());
            compare(vector, Optionals { gap: 1, yes: Some(5), no: None, text, last: 0xaa })
        }
        "Mutable" => compare(vector, mutable()),
        "KeyMutable" => compare(vector, KeyMutable { a: 1, gap: 2, b: 0x0304 }),
        "MutableNested" => compare(vector, MutableNested { gap: 1, within: mutable(), last: 0xaa }),
        "OpenUnions" => {
            let (number, text) = (OpenChoice::Number(77), OpenChoice::Text("seven".into()));
            compare(vector, OpenUnions { gap: 1, number, text })
        }
        "Bits" => {
            let parts = Fields { a: 5, b: true, c: 0x81 };
            compare(vector, Bits { gap: 1, bits: Flags(0x809), parts, last: 0xaa })
        }
        "Maps" => {
            let names = [(1, "one".to_owned()), (2, "two".to_owned())].into();
            compare(vector, Maps { gap: 1, names, numbers: [(-1, 0.5)].into(), last: 0xaa })
        }
        "Wide" => compare(vector, Wide { gap: 1, c: WChar(0xe9), text: "Zürich".into() }),
        other => Err(format!("no value for {other}")),
    }
}

fn primitives() -> Primitives {
    Primitives {
        flag: true,
        o: 0xfe,
        i64: -0x0102_0304_0506_0708,
        c: taut_cdr::Char(b'Z'),
        f64: 1.5,
        i8: -2,
        i16: -300,
        u8: 200,
        u16: 60_000,
        i32: -70_000,
        gap: 7,
        u32: 4_000_000_000,
        f32: -0.25,
        u64: 0xfedc_ba98_7654_3210,
    }
}

fn collections() -> Collections {
    Collections {
        bytes: vec![1, 2, 3],
        shorts: vec![-1, 2, -3],
        doubles: vec![0.5, -1.0],
        none: vec![],
        flags: vec![true, false, true],
        inners: vec![inner(1), inner(2)],
        numbers: [1, -2, 3],
        grid: [[1.0, 2.0], [3.0, 4.0]],
        pair: [inner(3), inner(4)],
        bounded: vec![9, 8],
        last: 0xaa,
    }
}

fn run(file: &str, text: &str, at_least: usize) {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [ty, version, order, kind, hex] = words[..] else { panic!("{file}: {line}") };
        let representation = if version == "1" { Representation::Xcdr1 } else { Representation::Xcdr2 };
        let endian = if order == "BE" { Endian::Big } else { Endian::Little };
        let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        let vector = Vector { file, ty, representation, endian, kind, bytes };
        if let Err(why) = check(&vector) {
            failures.push(format!("{ty} {version} {order} {kind}: {why}"));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{file}: {} of {count}\n{}", failures.len(), failures.join("\n"));
    assert!(count >= at_least, "{file} has only {count} lines");
}

#[test]
fn cyclonedds_c() {
    run("cyclonedds-c", include_str!("vectors/cyclonedds-c.hex"), 60);
}

#[test]
fn cyclonedds_python() {
    run("cyclonedds-python", include_str!("vectors/cyclonedds-python.hex"), 88);
}

#[test]
fn fastdds() {
    run("fastdds", include_str!("vectors/fastdds.hex"), 41);
}
