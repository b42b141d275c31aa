//! Samples of types with everything in them, and filters over their members. The first byte chooses the type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use taut_cdr::{
    Cdr, Char, DdsType as Type, Endian, LongDouble, Octets, Representation, WChar, WString, from_key_payload,
    from_payload, from_payload_into, key_hash_of_payload_in, key_payload_of, to_payload, to_payload_in,
};
use taut_dcps::Expression;
use taut_derive::DdsType;

use crate::byte;

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = taut_cdr)]
enum Level {
    Low,
    High = 7,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, bitmask, bit_bound = 20)]
struct Mask(u32);

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable)]
struct Leaf {
    #[dds(key)]
    flag: bool,
    byte: i8,
    #[dds(key, bound = 9)]
    text: String,
    wide: WString,
    long: LongDouble,
    #[dds(bound = 3)]
    few: Vec<u16>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable, union, discriminator = i16)]
enum Choice {
    #[dds(case = -1)]
    Leaf(Leaf),
    #[dds(case = [1, 2])]
    Double { discriminator: i16, value: f64 },
    #[dds(default)]
    Nothing,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, mutable)]
struct Loose {
    #[dds(key, id = 70_000)]
    number: u64,
    #[dds(key, id = 5)]
    levels: [Level; 3],
    choice: Choice,
    maybe: Option<Box<Loose>>,
    doubles: Vec<f64>,
    chars: Vec<Char>,
    halves: Vec<WChar>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct All {
    gap: u8,
    #[dds(key)]
    loose: Loose,
    maybe: Option<i64>,
    #[dds(key)]
    leaves: Vec<Leaf>,
    mask: Mask,
    names: BTreeMap<u16, String>,
    flags: Vec<bool>,
    grid: [[i32; 2]; 3],
    words: Vec<Vec<String>>,
    tail: Option<Leaf>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, final)]
struct Picture {
    #[dds(key)]
    id: u32,
    pixels: Octets,
}

pub fn play(mut bytes: &[u8]) {
    match byte(&mut bytes) % 5 {
        0 => read::<All>(bytes),
        1 => read::<Loose>(bytes),
        2 => read::<Choice>(bytes),
        3 => read::<Picture>(bytes),
        _ => read::<Leaf>(bytes),
    }
}

/// What is a value is the same value whichever way it is read and written.
fn read<T: Type + Clone + PartialEq + std::fmt::Debug>(payload: &[u8]) {
    _ = from_key_payload::<T>(payload);
    let hash_of =
        |payload: &[u8], is_key| key_hash_of_payload_in::<T>(payload, is_key, Representation::Xcdr1).ok();
    let mut key = Vec::new();
    if key_payload_of::<T>(payload, &mut key).is_ok() && T::HAS_KEY {
        assert_eq!(hash_of(payload, false), hash_of(&key, true), "the key of a sample is that of its key");
    }
    let Ok(value) = from_payload::<T>(payload) else { return };
    let mut into = T::initial();
    from_payload_into(payload, &mut into).expect("it was read before");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let (mut first, mut again, mut other) = (Vec::new(), Vec::new(), Vec::new());
        to_payload(&value, representation, &mut first).expect("what was read is of its type");
        to_payload(&into, representation, &mut other).expect("what was read is of its type");
        assert_eq!(first, other, "read into a value it is the same");
        let back = from_payload::<T>(&first).expect("what was written is read");
        to_payload(&back, representation, &mut again).expect("what was read is of its type");
        assert_eq!(first, again, "and written again the same");
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let leaf = Leaf {
        flag: true,
        byte: -3,
        text: "leaf".into(),
        wide: WString("wide".into()),
        long: LongDouble(1 << 100),
        few: vec![1, 2],
    };
    let inner = Loose { maybe: None, ..Loose::initial() };
    let loose = Loose {
        number: 9,
        levels: [Level::High, Level::Low, Level::High],
        choice: Choice::Double { discriminator: 2, value: 0.5 },
        maybe: Some(Box::new(inner)),
        doubles: vec![1.0, -2.0],
        chars: vec![Char(b'x')],
        halves: vec![WChar(0x20ac)],
    };
    let all = All {
        gap: 1,
        loose: loose.clone(),
        maybe: Some(-1),
        leaves: vec![leaf.clone(), leaf.clone()],
        mask: Mask(5),
        names: BTreeMap::from([(1, "one".into()), (2, "two".into())]),
        flags: vec![true, false],
        grid: [[1, 2], [3, 4], [5, 6]],
        words: vec![vec!["a".into()], Vec::new()],
        tail: Some(leaf.clone()),
    };
    let picture = Picture { id: 1, pixels: Octets::from(vec![7; 40]) };
    let mut seeds = Vec::new();
    write(&mut seeds, 0, &all);
    write(&mut seeds, 1, &loose);
    write(&mut seeds, 2, &Choice::Leaf(leaf.clone()));
    write(&mut seeds, 2, &Choice::Nothing);
    write(&mut seeds, 3, &picture);
    write(&mut seeds, 4, &leaf);
    seeds
}

fn write<T: Type>(seeds: &mut Vec<Vec<u8>>, choice: u8, value: &T) {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        for endian in [Endian::Little, Endian::Big] {
            let (mut payload, mut seed) = (Vec::new(), vec![choice]);
            to_payload_in(value, representation, endian, &mut payload).expect("it is of its type");
            seed.append(&mut payload);
            seeds.push(seed);
        }
    }
}

/// Samples that filters are asked about.
static SAMPLES: LazyLock<Vec<All>> = LazyLock::new(|| {
    let payloads = seeds().into_iter().filter(|seed| seed[0] == 0);
    payloads.map(|seed| from_payload(&seed[1..]).expect("a seed is a sample")).collect()
});

/// An expression, and its parameters with a zero before each.
pub fn play_filter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0');
    let Ok(expression) = Expression::new(parts.next().unwrap_or_default(), All::field_kind) else { return };
    let parameters: Vec<&str> = parts.take_while(|part| !part.is_empty()).collect();
    let Ok(filter) = expression.with(&parameters) else { return };
    for sample in SAMPLES.iter() {
        _ = filter.passes(|path| sample.field(path));
    }
}

pub fn filter_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "gap = 1 AND loose.number BETWEEN 3 AND %0\x009\x00",
        "NOT (leaves[0].text LIKE 'l%f' OR loose.levels[1] <> 'High')",
        "maybe >= -1 and grid[2][1] < 7.5 or flags[0] = TRUE",
        "words[0][0] = %0 AND tail.flag = FALSE\x00'a'\x00",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
