//! Random values come back; random and damaged bytes give an error or a value, never a panic.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};

use taut_base::Rng;
use taut_cdr::{
    Char, DdsType as Type, Endian, LongDouble, Octets, Representation, WChar, WString, fill_payload,
    from_key_payload, from_payload, from_payload_into, key_hash, key_hash_of_payload, key_hash_of_payload_in,
    key_payload_of, key_to_payload, key_to_payload_in, to_payload, to_payload_in,
};
use taut_derive::DdsType;

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
#[dds(crate = taut_cdr, final, union, discriminator = u8)]
enum Closed {
    #[dds(case = 3)]
    Text(String),
    #[dds(case = [5, 6])]
    Half { discriminator: u8, value: u16 },
    #[dds(default)]
    Nothing,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, mutable, union, discriminator = u8)]
enum LooseChoice {
    #[dds(case = 1)]
    Text(String),
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
    bytes: Vec<u8>,
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

fn vec<T>(rng: &mut Rng, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    (0..rng.below(5)).map(|_| make(rng)).collect()
}

fn option<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    rng.chance(500).then(|| make(rng))
}

fn text(rng: &mut Rng) -> String {
    let chars = ['a', 'ü', '€', '😀'];
    (0..rng.below(3)).map(|_| chars[rng.below(4) as usize]).collect()
}

fn leaf(rng: &mut Rng) -> Leaf {
    Leaf {
        flag: rng.chance(500),
        byte: rng.next_u64() as i8,
        text: text(rng),
        wide: WString(text(rng)),
        long: LongDouble(u128::from(rng.next_u64()) << rng.below(64)),
    }
}

fn choice(rng: &mut Rng) -> Choice {
    match rng.below(3) {
        0 => Choice::Leaf(leaf(rng)),
        1 => Choice::Double { discriminator: 1 + rng.below(2) as i16, value: rng.below(100) as f64 },
        _ => Choice::Nothing,
    }
}

fn closed(rng: &mut Rng) -> Closed {
    match rng.below(3) {
        0 => Closed::Text(text(rng)),
        1 => Closed::Half { discriminator: 5 + rng.below(2) as u8, value: rng.next_u64() as u16 },
        _ => Closed::Nothing,
    }
}

fn loose_choice(rng: &mut Rng) -> LooseChoice {
    if rng.chance(500) { LooseChoice::Text(text(rng)) } else { LooseChoice::Nothing }
}

fn loose(rng: &mut Rng, depth: u32) -> Loose {
    let level = |rng: &mut Rng| if rng.chance(500) { Level::Low } else { Level::High };
    Loose {
        number: rng.next_u64(),
        levels: [level(rng), level(rng), level(rng)],
        choice: choice(rng),
        maybe: if depth == 0 { None } else { option(rng, |rng| Box::new(loose(rng, depth - 1))) },
        bytes: vec(rng, |rng| rng.next_u64() as u8),
        doubles: vec(rng, |rng| rng.below(1_000) as f64 / 8.0),
        chars: vec(rng, |rng| Char(rng.next_u64() as u8)),
        halves: vec(rng, |rng| WChar(rng.next_u64() as u16)),
    }
}

fn all(rng: &mut Rng) -> All {
    All {
        gap: rng.next_u64() as u8,
        loose: loose(rng, 2),
        maybe: option(rng, |rng| rng.next_u64() as i64),
        leaves: vec(rng, leaf),
        mask: Mask(rng.below(1 << 20) as u32),
        names: vec(rng, |rng| (rng.next_u64() as u16, text(rng))).into_iter().collect(),
        flags: vec(rng, |rng| rng.chance(500)),
        grid: [[rng.next_u64() as i32; 2]; 3],
        words: vec(rng, |rng| vec(rng, text)),
        tail: option(rng, leaf),
    }
}

const WAYS: [(Representation, Endian); 4] = [
    (Representation::Xcdr1, Endian::Big),
    (Representation::Xcdr1, Endian::Little),
    (Representation::Xcdr2, Endian::Big),
    (Representation::Xcdr2, Endian::Little),
];

#[test]
fn values_come_back() {
    let mut kept = all(&mut Rng::new(9_999));
    for seed in 0..2_000 {
        let value = all(&mut Rng::new(seed));
        for (representation, endian) in WAYS {
            let (mut data, mut key) = (vec![0; 4], Vec::new());
            to_payload_in(&value, representation, endian, &mut data).unwrap();
            assert_eq!(from_payload::<All>(&data[4..]).as_ref(), Ok(&value), "seed {seed}");
            from_payload_into(&data[4..], &mut kept).unwrap();
            assert_eq!(kept, value, "into another value, seed {seed}");
            // Not the same again, but the value of another seed.
            kept = all(&mut Rng::new(seed * 7));
            let hash = key_hash(&value, representation);
            key_to_payload_in(&value, representation, endian, &mut key).unwrap();
            assert_eq!(key_hash_of_payload::<All>(&key, true), hash, "seed {seed}");
            assert_eq!(key_hash_of_payload::<All>(&data[4..], false), hash, "seed {seed}");
            let only: All = from_key_payload(&key).unwrap();
            assert_eq!((only.loose.number, only.leaves.len()), (value.loose.number, value.leaves.len()));
            assert_eq!((only.gap, only.tail), (0, None));
        }
    }
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[dds(crate = taut_cdr, final, plain)]
#[repr(C)]
struct Plain {
    long: u64,
    halves: [u16; 3],
    half: u16,
}

fn plain(rng: &mut Rng) -> Plain {
    let mut half = || rng.next_u64() as u16;
    Plain { halves: [half(), half(), half()], half: half(), long: rng.next_u64() }
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = taut_cdr, appendable)]
struct Derived {
    #[dds(base)]
    base: Leaf,
    more: Option<String>,
}

fn derived(rng: &mut Rng) -> Derived {
    Derived { base: leaf(rng), more: option(rng, text) }
}

/// A key behind members of every kind, which are gone past.
macro_rules! behind {
    ($($name:ident $extensibility:tt)*) => {$(
        #[derive(DdsType, Clone, Debug, PartialEq)]
        #[dds(crate = taut_cdr, $extensibility)]
        struct $name {
            all: All,
            gap: u8,
            leaf: Leaf,
            loose: Loose,
            choice: Choice,
            octets: Octets,
            plain: Plain,
            plains: Vec<Plain>,
            derived: Derived,
            closed: Closed,
            loose_choices: [LooseChoice; 2],
            mask: Mask,
            maybe: Option<u16>,
            #[dds(key, bound = 9)]
            label: String,
            leaves: [Leaf; 2],
            grid: [[i64; 2]; 2],
            numbers: Vec<Box<u32>>,
            boxes: [Box<u16>; 3],
            longs: Vec<LongDouble>,
            names: HashMap<String, u8>,
            counts: BTreeMap<u8, u64>,
            wide: WString,
            tail: Option<Box<Leaf>>,
            #[dds(key)]
            part: Leaf,
            #[dds(key)]
            number: u64,
            #[dds(key, bound = 4)]
            wide_label: WString,
            rest: Vec<String>,
            last: u32,
        }

        impl $name {
            fn new(rng: &mut Rng) -> Self {
                $name {
                    all: all(rng),
                    gap: rng.next_u64() as u8,
                    leaf: leaf(rng),
                    loose: loose(rng, 1),
                    choice: choice(rng),
                    octets: vec(rng, |rng| rng.next_u64() as u8).into(),
                    plain: plain(rng),
                    plains: vec(rng, plain),
                    derived: derived(rng),
                    closed: closed(rng),
                    loose_choices: [loose_choice(rng), loose_choice(rng)],
                    mask: Mask(rng.below(1 << 20) as u32),
                    maybe: option(rng, |rng| rng.next_u64() as u16),
                    label: text(rng),
                    leaves: [leaf(rng), leaf(rng)],
                    grid: [[rng.next_u64() as i64; 2]; 2],
                    numbers: vec(rng, |rng| Box::new(rng.next_u64() as u32)),
                    boxes: [(); 3].map(|()| Box::new(rng.next_u64() as u16)),
                    longs: vec(rng, |rng| LongDouble(u128::from(rng.next_u64()))),
                    names: vec(rng, |rng| (text(rng), rng.next_u64() as u8)).into_iter().collect(),
                    counts: vec(rng, |rng| (rng.next_u64() as u8, rng.next_u64())).into_iter().collect(),
                    wide: WString(text(rng)),
                    tail: option(rng, |rng| Box::new(leaf(rng))),
                    part: leaf(rng),
                    number: rng.next_u64(),
                    wide_label: WString(text(rng)),
                    rest: vec(rng, text),
                    last: rng.next_u64() as u32,
                }
            }
        }
    )*};
}
behind!(FinalBehind final AppendableBehind appendable MutableBehind mutable);

fn a_key_is_found<T: Type>(seed: u64, value: &T) {
    for (representation, endian) in WAYS {
        let mut data = Vec::new();
        to_payload_in(value, representation, endian, &mut data).unwrap();
        for of_hash in [Representation::Xcdr1, Representation::Xcdr2] {
            assert_eq!(
                key_hash_of_payload_in::<T>(&data, false, of_hash),
                key_hash(value, of_hash),
                "{} {representation:?}, hash in {of_hash:?}, seed {seed}",
                T::TYPE_NAME
            );
        }
        let (mut of_sample, mut of_value) = (Vec::new(), Vec::new());
        key_payload_of::<T>(&data, &mut of_sample).unwrap();
        key_to_payload(value, Representation::Xcdr1, &mut of_value).unwrap();
        assert_eq!(of_sample, of_value, "{} {representation:?}, seed {seed}", T::TYPE_NAME);
        // What lacks members at its end is of an older type, or an error.
        for len in 4..data.len() {
            if let Ok(older) = from_payload::<T>(&data[..len]) {
                let hash = key_hash(&older, representation);
                assert_eq!(key_hash_of_payload::<T>(&data[..len], false), hash, "{len} bytes, seed {seed}");
            }
        }
    }
}

/// Of what lies behind the key of a final structure nothing is read.
fn nothing_is_read_behind_the_key(seed: u64, value: &FinalBehind) {
    for (representation, endian) in WAYS {
        let of_rest = |rest: Vec<String>| {
            let mut data = Vec::new();
            let value = FinalBehind { rest, ..value.clone() };
            to_payload_in(&value, representation, endian, &mut data).unwrap();
            data
        };
        // They differ in what follows the key at once.
        let (data, other) = (of_rest(vec![]), of_rest(vec![String::new()]));
        let end = data.iter().zip(&other).skip(4).position(|(one, other)| one != other).unwrap() + 4;
        let hash = key_hash(value, representation);
        assert_eq!(key_hash_of_payload::<FinalBehind>(&data[..end], false), hash, "seed {seed}");
        assert!(from_payload::<FinalBehind>(&data[..end]).is_err());
    }
}

#[test]
fn a_key_is_found_behind_members_of_every_kind() {
    for seed in 0..60 {
        nothing_is_read_behind_the_key(seed, &FinalBehind::new(&mut Rng::new(seed)));
        a_key_is_found(seed, &FinalBehind::new(&mut Rng::new(seed)));
        a_key_is_found(seed, &AppendableBehind::new(&mut Rng::new(seed)));
        a_key_is_found(seed, &MutableBehind::new(&mut Rng::new(seed)));
    }
}

#[test]
fn a_sample_is_the_same_in_memory_of_any_length() {
    let mut rng = Rng::new(5);
    for seed in 0..60 {
        let value = all(&mut Rng::new(seed));
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut whole = Vec::new();
            to_payload(&value, representation, &mut whole).unwrap();
            let len = whole.len();
            let others = (0..20).map(|_| rng.below(len as u64 + 20) as usize);
            for room in [0, 1, 4, len - 1, len, len + 1, len + 8].into_iter().chain(others) {
                let mut memory = vec![0xaa; room];
                assert_eq!(fill_payload(&value, representation, &mut memory), Ok(len), "seed {seed}: {room}");
                assert!(room < len || memory[..len] == whole, "seed {seed}: {len} bytes in {room}");
            }
        }
    }
}

/// Reads the bytes as a sample and as a key; what is read can be written and read again.
fn digest<T: Type + PartialEq + std::fmt::Debug>(bytes: &[u8], mut into: T) -> u32 {
    let mut good = 0;
    let read = from_payload_into(bytes, &mut into);
    // NaN is not equal to itself.
    let text = |value: &T| format!("{value:?}");
    assert_eq!(read.map(|()| text(&into)), from_payload::<T>(bytes).map(|value| text(&value)));
    for value in [from_payload::<T>(bytes), from_key_payload::<T>(bytes)].into_iter().flatten() {
        let mut again = Vec::new();
        if to_payload_in(&value, Representation::Xcdr2, Endian::Big, &mut again).is_ok() {
            assert!(from_payload::<T>(&again).is_ok());
            good += 1;
        }
    }
    good
}

#[test]
fn damaged_bytes_never_panic() {
    let mut rng = Rng::new(77);
    let mut good = 0;
    for round in 0..20_000u64 {
        let (representation, endian) = WAYS[(round % 4) as usize];
        let mut data = Vec::new();
        if round % 2 == 0 {
            to_payload_in(&loose(&mut rng, 1), representation, endian, &mut data).unwrap();
        } else {
            to_payload_in(&all(&mut rng), representation, endian, &mut data).unwrap();
        }
        for _ in 0..=rng.below(3) {
            let at = rng.below(data.len() as u64) as usize;
            match rng.below(4) {
                0 => data[at] ^= 1 << rng.below(8),
                1 => data[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
                2 => data.truncate(at.max(1)),
                _ => drop(data.splice(at..at, (0..rng.below(5)).map(|n| n as u8))),
            }
        }
        let (one, two, three) = (loose(&mut rng, 1), all(&mut rng), leaf(&mut rng));
        good += digest::<Loose>(&data, one) + digest::<All>(&data, two) + digest::<Leaf>(&data, three);
    }
    assert!(good > 1_000, "the damage should leave some samples readable: {good}");
}

#[test]
fn random_bytes_never_panic() {
    let mut rng = Rng::new(5);
    for round in 0..50_000u64 {
        let length = rng.below(120);
        let mut data: Vec<u8> = (0..length)
            .map(|_| if rng.chance(600) { rng.below(4) as u8 } else { rng.next_u64() as u8 })
            .collect();
        let ids = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11];
        if let [high, low, ..] = &mut data[..] {
            (*high, *low) = (0, ids[(round % 10) as usize]);
        }
        digest::<Loose>(&data, loose(&mut rng, 1));
        digest::<All>(&data, all(&mut rng));
        digest::<Leaf>(&data, leaf(&mut rng));
    }
}
