//! What no other implementation here can make: by hand from XTypes 1.3, and there and back again.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use taut_cdr::{
    CdrError, Char, DdsType as Type, Encapsulation, Endian, LongDouble, Representation, WChar, WString,
    fill_payload, from_key_payload, from_payload, from_payload_into, key_hash, key_hash_of_payload,
    key_to_payload, to_payload, to_payload_in,
};
use taut_derive::DdsType;

use Representation::{Xcdr1, Xcdr2};

/// The value's bytes, big-endian, after they have been decoded and compared in both orders.
fn bytes<T: Type + Debug + PartialEq>(value: &T, representation: Representation) -> Vec<u8> {
    let mut out = Vec::new();
    for endian in [Endian::Little, Endian::Big] {
        out.clear();
        to_payload_in(value, representation, endian, &mut out).unwrap();
        assert_eq!(from_payload::<T>(&out).as_ref(), Ok(value));
        assert_eq!(out.len() % 4, 0);
    }
    Encapsulation::parse(&out).unwrap().1.to_vec()
}

fn refused<T: Type + Debug + PartialEq>(value: &T) -> CdrError {
    let mut out = vec![1, 2];
    let error = to_payload(value, Xcdr2, &mut out).unwrap_err();
    assert_eq!(out, [1, 2], "a refused value leaves nothing behind");
    error
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final, crate = taut_cdr)]
struct Wide {
    c: WChar,
    #[dds(bound = 3)]
    text: WString,
    long: LongDouble,
}

#[test]
fn wide_strings_and_long_double() {
    let value = Wide { c: WChar(0xe9), text: "a\u{1f600}".into(), long: LongDouble(0x3fff << 112) };
    let units = [0, 0xe9, 0, 0, 0, 0, 0, 6, 0, b'a', 0xd8, 0x3d, 0xde, 0x00];
    let mut expected = units.to_vec();
    expected.extend([0, 0, 0x3f, 0xff]);
    expected.resize(32, 0);
    assert_eq!(bytes(&value, Xcdr1), expected);
    assert_eq!(bytes(&value, Xcdr2), expected);
    assert_eq!(refused(&Wide { text: "four".into(), ..value }), CdrError::Bound);
    // Half of a surrogate pair, then an odd length.
    let wrong = [0, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0, 2, 0xd8, 0x3d];
    assert_eq!(from_payload::<Wide>(&wrong), Err(CdrError::InvalidString));
    let odd = [0, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0, 1, 0x3d];
    assert_eq!(from_payload::<Wide>(&odd), Err(CdrError::InvalidString));
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final, crate = taut_cdr)]
struct WideKey {
    #[dds(key, bound = 3)]
    text: WString,
}

#[test]
fn a_wide_key_is_refused_as_its_value_is() {
    let hash = |payload: &[u8]| key_hash_of_payload::<WideKey>(payload, false);
    for (units, error) in [
        (&[0x00, b'a', 0xd8, 0x3d, 0xde, 0x00][..], None),
        (&[], None),
        (&[0x00, b'a', 0x00, b'b', 0xd8, 0x3d, 0xde, 0x00], Some(CdrError::Bound)),
        (&[0x00, b'a', 0x3d], Some(CdrError::InvalidString)),
        (&[0xd8, 0x3d], Some(CdrError::InvalidString)),
        (&[0xde, 0x00, 0xd8, 0x3d], Some(CdrError::InvalidString)),
        (&[0x00, b'a', 0x00, 0x00], Some(CdrError::InvalidString)),
    ] {
        let payload = [&[0, 0, 0, 0, 0, 0, 0, units.len() as u8], units].concat();
        let value = from_payload::<WideKey>(&payload);
        assert_eq!(value.as_ref().err(), error.as_ref(), "{units:x?}");
        assert_eq!(hash(&payload), value.and_then(|value| key_hash(&value, Xcdr1)), "{units:x?}");
    }
    assert_eq!(hash(&[0, 0, 0, 0, 0, 0, 0, 2, 0]), Err(CdrError::EndOfData));
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final, crate = taut_cdr)]
struct Maps {
    numbers: BTreeMap<u8, u16>,
    #[dds(bound = [2, 3])]
    texts: BTreeMap<u8, String>,
}

#[test]
fn maps_are_delimited_unless_all_primitive() {
    let value = Maps { numbers: [(1, 2)].into(), texts: [(3, "x".to_owned())].into() };
    let plain = [0, 0, 0, 1, 1, 0, 0, 2];
    let text = [0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 2, b'x', 0];
    assert_eq!(bytes(&value, Xcdr1), [&plain[..], &text].concat());
    assert_eq!(bytes(&value, Xcdr2), [&plain[..], &[0, 0, 0, 14], &text].concat());
    let long = Maps { texts: [(3, "four".to_owned())].into(), ..value };
    assert_eq!(refused(&long), CdrError::Bound);
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bitset, crate = taut_cdr)]
struct Fields {
    #[dds(bits = 3)]
    low: i8,
    #[dds(bits = 1, skip = 4)]
    flag: bool,
    #[dds(bits = 9)]
    high: u16,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bitmask, bit_bound = 3, crate = taut_cdr)]
struct Mask {
    bits: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(final, crate = taut_cdr)]
struct Bits {
    fields: Fields,
    mask: Mask,
}

#[test]
fn bits_are_one_integer() {
    let value = Bits { fields: Fields { low: -2, flag: true, high: 0x101 }, mask: Mask { bits: 5 } };
    // high at 8, flag at 7, low at 0.
    assert_eq!(bytes(&value, Xcdr2), [0, 1, 1, 0x86, 5]);
    let wrong = Bits { fields: Fields { low: 4, ..value.fields }, ..value };
    assert_eq!(refused(&wrong), CdrError::InvalidBits);
    assert_eq!(refused(&Bits { mask: Mask { bits: 8 }, ..value }), CdrError::InvalidBits);
    assert_eq!(from_payload::<Bits>(&[0, 6, 0, 3, 0, 1, 1, 0x86, 8, 0, 0, 0]), Err(CdrError::InvalidBits));
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(mutable, crate = taut_cdr)]
struct Animal {
    #[dds(key, id = 3)]
    id: u16,
    name: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(mutable, crate = taut_cdr)]
struct Dog {
    #[dds(base)]
    animal: Animal,
    #[dds(key)]
    litter: u8,
    #[dds(must_understand)]
    tricks: Option<Vec<u16>>,
}

#[test]
fn a_mutable_structure_inherits() {
    let value = Dog { animal: Animal { id: 7, name: "Rex".into() }, litter: 2, tricks: Some(vec![9]) };
    // EMHEADERs: id 3 of 2 bytes, id 4 with length code 5, id 5 of 1 byte, id 6 with a length.
    let expected = [
        0, 0, 0, 42, 0x10, 0, 0, 3, 0, 7, 0, 0, 0x50, 0, 0, 4, 0, 0, 0, 4, b'R', b'e', b'x', 0, 0, 0, 0, 5,
        2, 0, 0, 0, 0xc0, 0, 0, 6, 0, 0, 0, 6, 0, 0, 0, 1, 0, 9,
    ];
    assert_eq!(bytes(&value, Xcdr2), expected);
    let parameters = [
        0, 3, 0, 4, 0, 7, 0, 0, 0, 4, 0, 8, 0, 0, 0, 4, b'R', b'e', b'x', 0, 0, 5, 0, 4, 2, 0, 0, 0, 0x40, 6,
        0, 8, 0, 0, 0, 1, 0, 9, 0, 0, 0x7f, 2, 0, 0,
    ];
    assert_eq!(bytes(&value, Xcdr1), parameters);

    // The base reads what the derived one wrote, except for what it must understand.
    let (mut out, mut bare) = (Vec::new(), Vec::new());
    to_payload(&value, Xcdr2, &mut out).unwrap();
    assert_eq!(from_payload::<Animal>(&out), Err(CdrError::MustUnderstand));
    to_payload(&Dog { tricks: None, ..value.clone() }, Xcdr2, &mut bare).unwrap();
    assert_eq!(from_payload::<Animal>(&bare), Ok(value.animal.clone()));

    let mut hash = [0; 16];
    hash[..3].copy_from_slice(&[0, 7, 2]);
    assert_eq!(key_hash(&value, Xcdr1).unwrap().0, hash);
    for representation in [Xcdr1, Xcdr2] {
        let mut key = Vec::new();
        key_to_payload(&value, representation, &mut key).unwrap();
        let animal = Animal { id: 7, name: String::new() };
        assert_eq!(from_key_payload(&key), Ok(Dog { animal, litter: 2, tricks: None }));
    }
}

/// XTypes 1.3 §7.4.1.2: what a vendor has added by its own numbers is no member of the type.
#[test]
fn a_parameter_of_xcdr1_that_only_its_vendor_knows_is_no_member() {
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, crate = taut_cdr)]
    struct Gauge {
        #[dds(id = 1)]
        value: u32,
    }
    let end = [0x7f, 0x02, 0, 0];
    let (value, own) = ([0, 1, 0, 4, 0, 0, 0, 7], [0x80, 1, 0, 4, 0, 0, 0, 9]);
    let own_far = [0x3f, 1, 0, 8, 0x80, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 9];
    for added in [&own[..], &own_far[..]] {
        let payload = [&[0, 2, 0, 0][..], &value, added, &end].concat();
        assert_eq!(from_payload(&payload), Ok(Gauge { value: 7 }));
        let mut needed = [&[0, 2, 0, 0][..], &value, added, &end].concat();
        // The same, to be understood.
        let at = if added.len() == 8 { 12 } else { 16 };
        needed[at] |= 0x40;
        assert_eq!(from_payload::<Gauge>(&needed), Err(CdrError::MustUnderstand));
    }
}

#[test]
fn large_and_far_parameters_of_xcdr1_take_the_extended_header() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(mutable, crate = taut_cdr)]
    struct Far {
        #[dds(id = 0x3f01, must_understand)]
        far: u8,
        #[dds(id = 1)]
        large: Vec<u8>,
        #[dds(id = 2)]
        after: Vec<u64>,
    }
    let value = Far { far: 1, large: vec![7; 70_001], after: vec![5] };
    let out = bytes(&value, Xcdr1);
    assert_eq!(out[..16], [0x7f, 1, 0, 8, 0x40, 0, 0x3f, 1, 0, 0, 0, 4, 1, 0, 0, 0]);
    assert_eq!(out[16..28], [0x7f, 1, 0, 8, 0, 0, 0, 1, 0, 1, 0x11, 0x78]);
    bytes(&value, Xcdr2);

    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Plain {
        gap: u8,
        large: Option<Vec<u8>>,
        after: Option<u64>,
    }
    bytes(&Plain { gap: 1, large: Some(vec![7; 70_001]), after: Some(3) }, Xcdr1);
    let small = Plain { gap: 1, large: None, after: Some(3) };
    let expected = [1, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(bytes(&small, Xcdr1), expected);
    assert_eq!(bytes(&small, Xcdr2), [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(bit_bound = 16, crate = taut_cdr)]
enum Kind {
    Low = -5,
    #[dds(default)]
    Middle = 3,
    High = 300,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(mutable, union, discriminator = Kind, crate = taut_cdr)]
enum ByKind {
    #[dds(case = [Kind::Low, Kind::High])]
    Ends { discriminator: Kind, value: f32 },
    #[dds(default = Kind::Middle, bound = 2)]
    Rest(String),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final, union, discriminator = bool, key, crate = taut_cdr)]
enum Tree {
    #[dds(case = false)]
    Leaf(Char),
    #[dds(case = true)]
    Node(Vec<Tree>),
}

#[test]
fn unions_by_enumeration_and_boolean() {
    let ends = ByKind::Ends { discriminator: Kind::High, value: 1.0 };
    let expected = [0, 0, 0, 16, 0x10, 0, 0, 0, 1, 44, 0, 0, 0x20, 0, 0, 1, 0x3f, 0x80, 0, 0];
    assert_eq!(bytes(&ends, Xcdr2), expected);
    bytes(&ends, Xcdr1);
    bytes(&ByKind::Rest("ab".into()), Xcdr1);
    assert_eq!(refused(&ByKind::Rest("abc".into())), CdrError::Bound);
    let wrong = ByKind::Ends { discriminator: Kind::Middle, value: 1.0 };
    assert_eq!(refused(&wrong), CdrError::InvalidDiscriminator);

    let tree = Tree::Node(vec![Tree::Leaf(Char(b'a')), Tree::Node(vec![])]);
    assert_eq!(bytes(&tree, Xcdr1), [1, 0, 0, 0, 0, 0, 0, 2, 0, b'a', 1, 0, 0, 0, 0, 0]);
    bytes(&tree, Xcdr2);
    assert_eq!(key_hash(&tree, Xcdr2).unwrap().0[..2], [1, 0]);
}

/// Names that hide those of the prelude.
mod hidden {
    use taut_derive::DdsType;

    #[derive(DdsType, Clone, Copy, Debug, PartialEq)]
    #[dds(crate = taut_cdr)]
    pub enum State {
        Ok,
        Err,
        Some,
        None,
    }
    #[allow(clippy::enum_glob_use, unused_imports)]
    use State::*;

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, crate = taut_cdr)]
    pub struct Joint {
        #[dds(key)]
        pub id: u8,
        pub state: State,
        #[dds(bound = 4)]
        pub text: std::option::Option<String>,
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    pub struct Arm {
        pub joints: Vec<Joint>,
        pub note: std::option::Option<u8>,
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, union, discriminator = u8, crate = taut_cdr)]
    pub enum Answer {
        #[dds(case = 1)]
        Done(Arm),
        #[dds(default)]
        Failed,
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(bitset, crate = taut_cdr)]
    pub struct Mode {
        #[dds(bits = 3)]
        pub low: u8,
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(bitmask, crate = taut_cdr)]
    pub struct Flags(pub u32);
}

#[test]
fn names_of_the_prelude_may_be_hidden() {
    use hidden::{Answer, Arm, Flags, Joint, Mode, State};
    let joint = Joint { id: 1, state: State::Err, text: Some("knee".into()) };
    bytes(&Answer::Done(Arm { joints: vec![joint], note: None }), Xcdr2);
    bytes(&Answer::Failed, Xcdr1);
    assert_eq!(bytes(&Mode { low: 5 }, Xcdr1), [5]);
    assert_eq!(bytes(&Flags(6), Xcdr1), [0, 0, 0, 6]);
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final, crate = taut_cdr)]
struct Select {
    tool: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final, union, discriminator = u8, crate = taut_cdr)]
enum Command {
    #[dds(case = 1)]
    Pick(Select),
}

#[test]
fn a_union_has_members_of_any_name() {
    assert_eq!(bytes(&Command::Pick(Select { tool: 7 }), Xcdr1), [1, 7]);
}

#[test]
fn the_id_of_a_member_of_a_union_follows_from_the_one_before() {
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, union, discriminator = u8, crate = taut_cdr)]
    enum Far {
        #[dds(case = 1, id = 20)]
        One(u8),
        #[dds(case = 2)]
        Two(u8),
    }
    // IDL: case 1: @id(20) octet one; case 2: octet two;
    let expected = [0, 0, 0, 13, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 21, 9];
    assert_eq!(bytes(&Far::Two(9), Xcdr2), expected);
}

/// OpenDDS numbers the members of a union from 0, and its discriminator 0, too.
#[test]
fn the_member_of_a_mutable_union_is_the_one_behind_the_discriminator() {
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, union, discriminator = i32, crate = taut_cdr)]
    enum Value {
        #[dds(case = 1)]
        A(i32),
        #[dds(case = 2)]
        B(f32),
        #[dds(default)]
        Nothing,
    }
    let read = |members: &[[u8; 4]]| {
        let len = [0, 0, 0, 4 * members.len() as u8];
        from_payload::<Value>(&[&[[0, 10, 0, 0], len][..], members].concat().concat())
    };
    let (discriminator, number) = ([0x20, 0, 0, 0], |number| [0, 0, 0, number]);
    let float = [0x40, 0x60, 0, 0];
    assert_eq!(read(&[discriminator, number(2), [0x20, 0, 0, 1], float]), Ok(Value::B(3.5)));
    assert_eq!(read(&[discriminator, number(1), [0x20, 0, 0, 0], number(7)]), Ok(Value::A(7)));
    assert_eq!(read(&[discriminator, number(2), [0x20, 0, 0, 2], float]), Ok(Value::B(3.5)));
    // One by another id is of a type that has more members.
    assert_eq!(read(&[discriminator, number(1), [0x20, 0, 0, 9], number(7)]), Ok(Value::A(0)));
    assert_eq!(read(&[discriminator, number(1), [0xa0, 0, 0, 9], number(7)]), Err(CdrError::MustUnderstand));
    // Whatever is behind it is none of them, nor is what follows one that selects nothing.
    let (unknown, needed) = ([0x20, 0, 0, 1], [0xa0, 0, 0, 1]);
    for (selects, value, read_as) in
        [(number(1), &[[0x20, 0, 0, 1], number(7)][..], Value::A(7)), (number(3), &[], Value::Nothing)]
    {
        let with = |more: [u8; 4]| read(&[&[discriminator, selects], value, &[more, number(8)]].concat());
        assert_eq!(with(unknown), Ok(read_as));
        assert_eq!(with(needed), Err(CdrError::MustUnderstand));
    }
    // One before the discriminator is in no order that the standard has.
    let before = read(&[[0x20, 0, 0, 2], float, discriminator, number(2)]);
    assert_eq!(before, Err(CdrError::InvalidDiscriminator));
    let parameters = [[0, 2, 0, 0], [0, 0, 0, 4], number(1), [0, 0, 0, 4], number(7), [0x7f, 2, 0, 0]];
    assert_eq!(from_payload(parameters.as_flattened()), Ok(Value::A(7)));
}

#[test]
fn depth_is_bounded_on_both_sides() {
    let nest = |depth: usize| (1..depth).fold(Tree::Leaf(Char(0)), |inner, _| Tree::Node(vec![inner]));
    bytes(&nest(32), Xcdr2);
    assert_eq!(refused(&nest(33)), CdrError::Depth);
    let mut hostile = vec![0, 1, 0, 0];
    for _ in 0..1_000 {
        hostile.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    }
    assert_eq!(from_payload::<Tree>(&hostile), Err(CdrError::Depth));
}

#[test]
fn counts_and_lengths_are_not_believed() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Empty {}
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Lists {
        nothing: Vec<Empty>,
        bytes: Vec<Vec<u64>>,
    }
    let value = Lists { nothing: vec![Empty {}, Empty {}], bytes: vec![vec![1], vec![]] };
    bytes(&value, Xcdr1);
    bytes(&value, Xcdr2);
    let huge = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(from_payload::<Lists>(&huge), Err(CdrError::Count));
    let huge = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
    assert_eq!(from_payload::<Lists>(&huge), Err(CdrError::Count));
    // A delimiter beyond the end, one shorter than its content, a length code that overflows.
    assert_eq!(from_payload::<Lists>(&[0, 6, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0]), Err(CdrError::Header));
    assert_eq!(from_payload::<Lists>(&[0, 6, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]), Err(CdrError::EndOfData));
    let overflow = [0, 10, 0, 0, 0, 0, 0, 8, 0x70, 0, 0, 4, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(from_payload::<Animal>(&overflow), Err(CdrError::Header));
    let unknown = [0, 10, 0, 0, 0, 0, 0, 8, 0xa0, 0, 0, 9, 0, 0, 0, 0];
    assert_eq!(from_payload::<Animal>(&unknown), Err(CdrError::MustUnderstand));
}

#[test]
fn elements_without_a_byte_are_bounded_in_all_sequences_together() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Empty {}
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Lists<T> {
        lists: Vec<Vec<T>>,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Keyed {
        x: u8,
        #[dds(key)]
        key: Empty,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct OfKey {
        #[dds(key)]
        keys: Lists<Keyed>,
    }
    let counts = |count: u32| {
        let lists = std::iter::repeat_n(count.to_be_bytes(), 16 << 10).flatten();
        [0, 0, 0, 0, 0, 0, 0x40, 0].into_iter().chain(lists).collect::<Vec<u8>>()
    };
    for payload in [counts(16_000), counts(4_000)] {
        assert_eq!(from_payload::<Lists<Empty>>(&payload), Err(CdrError::Count));
        assert_eq!(from_payload::<Lists<Box<Empty>>>(&payload), Err(CdrError::Count));
        assert_eq!(from_key_payload::<OfKey>(&payload), Err(CdrError::Count));
        let into = &mut Lists { lists: vec![vec![Empty {}]] };
        assert_eq!(from_payload_into(&payload, into), Err(CdrError::Count));
    }
    // What is external takes bytes, if its content does: those are no others'.
    for representation in [Xcdr1, Xcdr2] {
        let mut payload = Vec::new();
        let numbers = Lists { lists: vec![vec![Box::new(7u8); 10_000]; 10] };
        to_payload(&numbers, representation, &mut payload).unwrap();
        assert_eq!(from_payload(&payload), Ok(numbers));
        payload.clear();
        let empty = Lists { lists: (0..4).map(|_| (0..1_024).map(|_| Empty {}).collect()).collect() };
        to_payload(&empty, representation, &mut payload).unwrap();
        assert_eq!(from_payload(&payload), Ok(empty));
    }
}

#[test]
fn encapsulations_are_checked() {
    let body = [0, 0, 0, 6, 0x10, 0, 0, 3, 0, 7, 0, 0];
    let with = |header: [u8; 4]| [&header[..], &body].concat();
    assert!(from_payload::<Animal>(&with([0, 10, 0, 0])).is_ok());
    for header in [[0, 0, 0, 0], [0, 6, 0, 0], [0, 8, 0, 0], [0, 4, 0, 0], [0, 12, 0, 0], [1, 10, 0, 0]] {
        assert_eq!(from_payload::<Animal>(&with(header)), Err(CdrError::Encapsulation), "{header:?}");
    }
    assert_eq!(from_payload::<Animal>(&[0, 10, 0, 3, 1, 2]), Err(CdrError::EndOfData));
    assert_eq!(from_payload::<Animal>(&[0, 10, 0]), Err(CdrError::EndOfData));
}

#[test]
fn invalid_values_are_refused() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Values {
        flag: bool,
        maybe: Option<u8>,
        kind: Kind,
        text: String,
    }
    let read = |body: [u8; 16]| from_payload::<Values>(&[&[0, 6, 0, 0][..], &body].concat());
    let good = [1, 1, 9, 0, 1, 44, 0, 0, 0, 0, 0, 3, b'h', b'i', 0, 0];
    assert_eq!(read(good), Ok(Values { flag: true, maybe: Some(9), kind: Kind::High, text: "hi".into() }));
    let with = |at: usize, byte: u8| {
        let mut body = good;
        body[at] = byte;
        read(body).unwrap_err()
    };
    assert_eq!(with(0, 2), CdrError::InvalidBool);
    assert_eq!(with(1, 2), CdrError::InvalidBool);
    assert_eq!(with(5, 45), CdrError::InvalidEnum);
    assert_eq!(with(12, 0xff), CdrError::InvalidString);
    assert_eq!(with(12, 0), CdrError::InvalidString);
    assert_eq!(with(14, 1), CdrError::InvalidString);
    assert_eq!(with(11, 9), CdrError::EndOfData);
    let nul = Values { flag: true, maybe: None, kind: Kind::Low, text: "a\0".into() };
    assert_eq!(refused(&nul), CdrError::InvalidString);
}

#[test]
fn a_sample_beyond_32_bits_is_refused_as_a_whole() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Halves {
        first: Vec<u8>,
        second: Vec<u8>,
    }
    // Zeros that nobody looks at take no memory, and what does not fit is only counted.
    let halves = |len: usize| Halves { first: vec![0; 1 << 31], second: vec![0; len] };
    for representation in [Xcdr1, Xcdr2] {
        let longest = (1 << 31) - 16;
        assert_eq!(fill_payload(&halves(longest), representation, &mut []), Ok(u32::MAX as usize - 3));
        assert_eq!(fill_payload(&halves(longest + 1), representation, &mut []), Err(CdrError::TooLarge));
        assert_eq!(fill_payload(&halves(1 << 31), representation, &mut []), Err(CdrError::TooLarge));
    }
}

#[test]
fn a_union_in_a_key_without_headers_is_read() {
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(appendable, union, discriminator = u8, crate = taut_cdr)]
    enum Place {
        #[dds(case = 1)]
        Row(u32),
        #[dds(default)]
        Nowhere,
    }
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(mutable, union, discriminator = u8, key, crate = taut_cdr)]
    enum Tool {
        #[dds(case = 1)]
        Drill(u8),
        #[dds(case = 0)]
        None,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Job {
        #[dds(key)]
        place: Place,
        #[dds(key)]
        tool: Tool,
        #[dds(key)]
        turn: u16,
    }
    let job = |place, tool| Job { place, tool, turn: 0x0102 };
    let in_row = [[0, 8, 0, 0], [1, 0, 0, 0], [0, 0, 0, 7], [1, 0, 1, 2]].concat();
    assert_eq!(from_key_payload(&in_row), Ok(job(Place::Row(7), Tool::Drill(0))));
    let nowhere = [[0, 8, 0, 0], [0, 0, 1, 2]].concat();
    assert_eq!(from_key_payload(&nowhere), Ok(job(Place::Nowhere, Tool::None)));
    for representation in [Xcdr1, Xcdr2] {
        let (value, mut key) = (job(Place::Row(7), Tool::Drill(0)), Vec::new());
        key_to_payload(&value, representation, &mut key).unwrap();
        assert_eq!(from_key_payload(&key), Ok(value));
    }
}

/// The same but for how it may change, which a hash does not tell.
macro_rules! forms {
    ($form:ident, $extensibility:ident) => {
        mod $form {
            use super::*;
            #[derive(DdsType, Clone, Debug, PartialEq)]
            #[dds($extensibility, crate = taut_cdr)]
            pub struct Whole {
                pub x: u8,
            }
            #[derive(DdsType, Clone, Debug, PartialEq)]
            #[dds($extensibility, crate = taut_cdr)]
            pub struct Keyed {
                pub gap: u8,
                #[dds(key)]
                pub a: u8,
                #[dds(key)]
                pub b: u8,
            }
            #[derive(DdsType, Clone, Debug, PartialEq)]
            #[dds($extensibility, union, discriminator = u8, crate = taut_cdr)]
            pub enum Choice {
                #[dds(case = 1)]
                Whole(Whole),
                #[dds(case = 2)]
                Keyed(Keyed),
            }
            #[derive(DdsType, Debug, PartialEq)]
            #[dds(final, crate = taut_cdr)]
            pub struct Chosen {
                #[dds(key)]
                pub choice: Choice,
            }
            #[derive(DdsType, Debug, PartialEq)]
            #[dds(final, crate = taut_cdr)]
            pub struct Parts {
                pub ordered: BTreeMap<u8, Keyed>,
                pub hashed: HashMap<u8, Keyed>,
                pub maybe: Option<Keyed>,
            }
            #[derive(DdsType, Debug, PartialEq)]
            #[dds(final, crate = taut_cdr)]
            pub struct All {
                #[dds(key)]
                pub parts: Parts,
            }
            pub fn all() -> All {
                let keyed = || Keyed { gap: 0, a: 6, b: 5 };
                let parts = Parts {
                    ordered: [(1, keyed())].into(),
                    hashed: [(2, keyed())].into(),
                    maybe: Some(keyed()),
                };
                All { parts }
            }
            pub fn check() {
                for (choice, key) in [
                    (Choice::Whole(Whole { x: 5 }), &[1, 5][..]),
                    (Choice::Keyed(Keyed { gap: 0, a: 6, b: 5 }), &[2, 6, 5]),
                ] {
                    let value = Chosen { choice };
                    let mut hash = [0; 16];
                    hash[..key.len()].copy_from_slice(key);
                    for representation in [Xcdr1, Xcdr2] {
                        let (mut payload, mut sample) = (Vec::new(), Vec::new());
                        key_to_payload(&value, representation, &mut payload).unwrap();
                        to_payload(&value, representation, &mut sample).unwrap();
                        assert_eq!(key_hash(&value, representation).unwrap().0, hash);
                        assert_eq!(key_hash_of_payload::<Chosen>(&sample, false).unwrap().0, hash);
                        assert_eq!(from_key_payload(&payload).as_ref(), Ok(&value));
                    }
                    assert_eq!(from_key_payload(&[&[0, 6, 0, 0], key].concat()), Ok(value));
                }
                // One entry each, and what is optional behind the octet that says that it is there.
                let entries = [0, 0, 0, 7, 0, 0, 0, 1, 1, 6, 5, 0, 0, 0, 0, 7, 0, 0, 0, 1, 2, 6, 5, 1, 6, 5];
                assert_eq!(from_key_payload(&[&[0, 6, 0, 0][..], &entries].concat()), Ok(all()));
                let mut payload = Vec::new();
                key_to_payload(&all(), Xcdr2, &mut payload).unwrap();
                assert_eq!(from_key_payload(&payload), Ok(all()));
            }
        }
    };
}
forms!(closed, final);
forms!(open, appendable);
forms!(loose, mutable);

#[test]
fn what_is_key_in_a_union_or_map_has_no_headers_in_a_hash() {
    closed::check();
    open::check();
    loose::check();
    for representation in [Xcdr1, Xcdr2] {
        let hash = key_hash(&closed::all(), representation);
        assert_eq!(key_hash(&open::all(), representation), hash);
        assert_eq!(key_hash(&loose::all(), representation), hash);
    }
}

#[test]
fn a_key_without_headers_is_told_from_one_with_them() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Part {
        #[dds(key)]
        number: i32,
        gap: u8,
        #[dds(key)]
        place: u8,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(mutable, crate = taut_cdr)]
    struct Whole {
        #[dds(key, id = 9)]
        part: Part,
        #[dds(key, id = 4)]
        id: i32,
    }
    let part = |number, place| Part { number, gap: 0, place };
    let header = |id| [0, id, 0, 0];
    // The first four bytes are such a length, too, as is 0 without anything behind.
    for number in [0, 1, 4, 5, 8, -1] {
        let bare = [&header(8)[..], &i32::to_be_bytes(number), &[7]].concat();
        let padded = [&bare[..], &[0; 3]].concat();
        assert_eq!(from_key_payload(&bare), Ok(part(number, 7)));
        assert_eq!(from_key_payload(&padded), Ok(part(number, 7)));
        let whole = [&header(10)[..], &[0, 0, 0, 3], &bare[4..]].concat();
        assert_eq!(from_key_payload(&whole), Ok(Whole { part: part(number, 7), id: 3 }));
        for representation in [Xcdr1, Xcdr2] {
            let value = Whole { part: part(number, 7), id: number };
            let (mut key, mut of_part) = (Vec::new(), Vec::new());
            key_to_payload(&value, representation, &mut key).unwrap();
            key_to_payload(&value.part, representation, &mut of_part).unwrap();
            assert_eq!(from_key_payload(&key).as_ref(), Ok(&value));
            assert_eq!(from_key_payload(&of_part), Ok(value.part));
        }
    }
    assert_eq!(from_key_payload::<Part>(&[0, 8, 0, 0, 0, 0, 0, 9, 1]), Ok(part(9, 1)));
    assert_eq!(from_key_payload::<Part>(&[0, 8, 0, 0, 0, 0, 0, 9]), Err(CdrError::Header));
    assert_eq!(from_key_payload::<Whole>(&[0, 10, 0, 0, 0, 0, 0, 9]), Err(CdrError::Header));
}

#[test]
fn equal_hashed_maps_are_one_key() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Labels {
        #[dds(key)]
        labels: HashMap<String, u32>,
    }
    // Each map has a hasher of its own, and with it an order.
    let made = || Labels { labels: (0..20).map(|n| (format!("label {n}"), n)).collect() };
    for representation in [Xcdr1, Xcdr2] {
        let hash = key_hash(&made(), representation).unwrap();
        let mut payload = Vec::new();
        to_payload(&made(), representation, &mut payload).unwrap();
        assert_eq!(key_hash(&made(), representation), Ok(hash));
        assert_eq!(key_hash_of_payload::<Labels>(&payload, false), Ok(hash));
        let other = Labels { labels: made().labels.into_iter().skip(1).collect() };
        assert_ne!(key_hash(&other, representation), Ok(hash));
    }
}
