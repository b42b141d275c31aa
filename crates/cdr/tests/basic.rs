//! Structures, primitives, strings, sequences and keys, against bytes worked out by hand from XTypes 1.3.
#![forbid(unsafe_code)]

use taut_base::InstanceHandle;
use taut_cdr::{
    Cdr, CdrError, DdsType as Type, Endian, KeyHasher, LongDouble, Representation, WString, from_key_payload,
    from_payload, from_payload_into, key_hash, key_hash_of_payload, key_to_payload_in, to_payload,
    to_payload_in, view,
};
use taut_derive::DdsType;

const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final, name = "ShapeType", crate = taut_cdr)]
struct Shape {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

fn shape() -> Shape {
    Shape { color: "BLUE".into(), x: 1, y: -2, shapesize: 30 }
}

#[test]
fn shape_in_xcdr1() {
    let mut out = vec![9];
    to_payload_in(&shape(), Representation::Xcdr1, Endian::Big, &mut out).unwrap();
    let expected = [
        9, 0, 0, 0, 0, 0, 0, 0, 5, b'B', b'L', b'U', b'E', 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0,
        0, 0, 30,
    ];
    assert_eq!(out, expected);
    assert_eq!(from_payload::<Shape>(&out[1..]), Ok(shape()));
    assert_eq!(Shape::TYPE_NAME, "ShapeType");
    const { assert!(Shape::HAS_KEY) };
}

#[test]
fn every_version_and_order_comes_back() {
    for representation in REPRESENTATIONS {
        for endian in [Endian::Big, Endian::Little] {
            let mut out = Vec::new();
            to_payload_in(&shape(), representation, endian, &mut out).unwrap();
            assert_eq!(from_payload::<Shape>(&out), Ok(shape()));
            for end in 0..out.len() {
                assert!(from_payload::<Shape>(&out[..end]).is_err(), "{end} of {} bytes", out.len());
            }
        }
    }
}

#[test]
fn a_key_of_any_length_has_the_hash_that_a_hasher_gives() {
    #[derive(DdsType)]
    #[dds(final, crate = taut_cdr)]
    struct Named {
        #[dds(key)]
        name: String,
    }
    let mut hasher = KeyHasher::default();
    for length in 0..300 {
        let named = Named { name: "x".repeat(length) };
        let hash = hasher.hash(&named, Representation::Xcdr1);
        assert_eq!(key_hash(&named, Representation::Xcdr1), hash, "{length}");
    }
}

#[test]
fn key_hash_is_md5_for_an_unbounded_key_and_plain_for_a_small_one() {
    // The MD5 of 00 00 00 05 "BLUE" 00.
    let expected =
        [0xca, 0xc2, 0x17, 0xc3, 0x18, 0x36, 0x3f, 0x8e, 0xf1, 0x16, 0x0e, 0xee, 0xde, 0xf9, 0xe8, 0x86];
    assert_eq!(key_hash(&shape(), Representation::Xcdr1), Ok(InstanceHandle(expected)));

    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Small {
        other: String,
        #[dds(key, id = 7)]
        b: u16,
        #[dds(key, id = 3)]
        a: u8,
    }
    let small = Small { other: "x".into(), b: 0x0102, a: 9 };
    // In the order of the ids, big-endian, no delimiter.
    let mut expected = [0; 16];
    expected[..4].copy_from_slice(&[9, 0, 1, 2]);
    assert_eq!(key_hash(&small, Representation::Xcdr2), Ok(InstanceHandle(expected)));

    // The key alone keeps the order of definition and the delimiter.
    let mut key = Vec::new();
    key_to_payload_in(&small, Representation::Xcdr2, Endian::Big, &mut key).unwrap();
    assert_eq!(key, [0, 8, 0, 1, 0, 0, 0, 3, 1, 2, 9, 0]);
    assert_eq!(from_key_payload(&key), Ok(Small { other: String::new(), b: 0x0102, a: 9 }));
    assert_eq!(key_hash_of_payload::<Small>(&key, true), Ok(InstanceHandle(expected)));
    let mut data = Vec::new();
    to_payload(&small, Representation::Xcdr2, &mut data).unwrap();
    assert_eq!(key_hash_of_payload::<Small>(&data, false), Ok(InstanceHandle(expected)));
}

#[test]
fn an_array_of_arrays_has_one_delimiter_in_its_key_hash() {
    #[derive(DdsType, Clone, Copy)]
    #[dds(crate = taut_cdr)]
    enum Color {
        Red = 1,
        Green,
    }
    #[derive(DdsType, Clone, Copy)]
    #[dds(bit_bound = 8, crate = taut_cdr)]
    enum Tiny {
        Low = 1,
        High,
    }
    #[derive(DdsType)]
    #[dds(final, crate = taut_cdr)]
    struct Grid<T> {
        #[dds(key)]
        grid: T,
    }
    let hash = |start: &[u8]| {
        let mut hash = [0; 16];
        hash[..start.len()].copy_from_slice(start);
        Ok(InstanceHandle(hash))
    };
    let colors = Grid { grid: [[Color::Red], [Color::Green]] };
    assert_eq!(key_hash(&colors, Representation::Xcdr2), hash(&[0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2]));
    let tiny = Grid { grid: [[Tiny::Low, Tiny::High]; 2] };
    assert_eq!(key_hash(&tiny, Representation::Xcdr2), hash(&[0, 0, 0, 4, 1, 2, 1, 2]));
    // A sequence's arrays have one each, and no room beside it.
    #[derive(DdsType)]
    #[dds(final, crate = taut_cdr)]
    struct Rows {
        #[dds(key, bound = 2)]
        rows: Vec<[Tiny; 1]>,
    }
    let rows = key_hash(&Rows { rows: vec![[Tiny::Low]] }, Representation::Xcdr2);
    assert_ne!(rows, hash(&[0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 1]));
}

#[test]
fn appended_and_trimmed_members() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Old {
        a: u32,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct New {
        a: u32,
        b: String,
        c: Option<u8>,
        d: [u64; 40],
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Two<T> {
        first: T,
        last: u16,
    }
    for representation in REPRESENTATIONS {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        to_payload(&Old { a: 5 }, representation, &mut old).unwrap();
        let long = New { a: 6, b: "more".into(), c: Some(1), d: [3; 40] };
        to_payload(&long, representation, &mut new).unwrap();
        assert_eq!(from_payload::<New>(&old), Ok(New { a: 5, b: String::new(), c: None, d: [0; 40] }));
        assert_eq!(from_payload::<Old>(&new), Ok(Old { a: 6 }));
    }
    // With something behind it only XCDR2 can tell where the structure ends.
    let mut out = Vec::new();
    to_payload(&Two { first: Old { a: 5 }, last: 7 }, Representation::Xcdr2, &mut out).unwrap();
    let expected = Two { first: New { a: 5, b: String::new(), c: None, d: [0; 40] }, last: 7 };
    assert_eq!(from_payload::<Two<New>>(&out), Ok(expected));
}

#[test]
fn members_are_trimmed_before_padding_that_nobody_tells_of() {
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct New {
        #[dds(key)]
        a: u8,
        #[dds(key)]
        b: u32,
        c: Option<u64>,
        d: String,
    }
    let [one, two] = [0, 9].map(|b| New { a: 7, b, ..New::default() });
    // As Fast DDS sends a structure of an octet: a submessage has a multiple of 4 bytes, the options count none of them.
    for padding in 0..4 {
        let old = [&[0, 1, 0, 0, 7][..], &[0, 0, 0][..padding]].concat();
        assert_eq!(from_payload::<New>(&old).as_ref(), Ok(&one), "{padding} bytes");
        let mut into = New { a: 1, b: 2, c: Some(3), d: "four".into() };
        assert_eq!(from_payload_into(&old, &mut into), Ok(()));
        assert_eq!(into, one, "{padding} bytes");
        let old = [&[0, 1, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0][..], &[0, 0, 0][..padding]].concat();
        assert_eq!(from_payload::<New>(&old).as_ref(), Ok(&two), "{padding} bytes");
        assert_eq!(from_key_payload::<New>(&old), Ok(New { a: 7, b: 9, ..New::default() }));
    }
    // No byte of padding is taken for the member's.
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(bit_bound = 8, crate = taut_cdr)]
    enum Kind {
        #[default]
        One = 1,
    }
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Part {
        kind: Kind,
        x: u32,
    }
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct OfKind {
        a: u8,
        part: Part,
    }
    for padding in 0..4 {
        let old = [&[0, 1, 0, 0, 7][..], &[0, 0, 0][..padding]].concat();
        let expected = OfKind { a: 7, ..OfKind::default() };
        assert_eq!(from_payload::<OfKind>(&old), Ok(expected), "{padding} bytes");
    }
    // Its least size tells neither of what is appendable itself nor of what is external.
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Inner {
        flag: bool,
        x: u32,
    }
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Nested {
        a: u8,
        n: Inner,
        number: Box<u32>,
        pair: Box<[u16; 2]>,
        last: u8,
    }
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct Behind {
        a: u8,
        n: Box<Inner>,
        #[dds(key)]
        number: Box<u32>,
    }
    for padding in [&[][..], &[0], &[0; 2], &[0; 3], &[0, 0, 9]] {
        let old = [&[0, 1, 0, 0, 7], padding].concat();
        let nested = Nested { a: 7, ..Nested::default() };
        assert_eq!(from_payload::<Nested>(&old).as_ref(), Ok(&nested), "{padding:?}");
        let mut into = Nested { last: 9, pair: Box::new([4, 4]), ..Nested::default() };
        assert_eq!(from_payload_into(&old, &mut into), Ok(()));
        assert_eq!(into, nested, "{padding:?}");
        let hash = key_hash(&Behind::default(), Representation::Xcdr1);
        assert_eq!(key_hash_of_payload::<Behind>(&old, false), hash, "{padding:?}");
        let old = [&[0, 1, 0, 0, 7, 1, 0, 0, 9, 0, 0, 0], padding].concat();
        let read = from_payload::<Nested>(&old);
        assert_eq!(read, Ok(Nested { n: Inner { flag: true, x: 9 }, ..nested }), "{padding:?}");
    }
    assert_eq!(from_payload::<Nested>(&[0, 1, 0, 0, 7, 1, 0, 0, 9]), Err(CdrError::EndOfData));
    // More than padding can be is a part of a member, as all is that XCDR2 delimits.
    let cut = [0, 1, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0];
    assert_eq!(from_payload::<New>(&cut), Err(CdrError::EndOfData));
    assert_eq!(from_payload::<New>(&[0, 9, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0]), Err(CdrError::EndOfData));
}

#[test]
fn padding_is_no_value_of_a_member_that_has_no_zero() {
    #[derive(DdsType, Debug, Default, PartialEq)]
    #[dds(bit_bound = 8, crate = taut_cdr)]
    enum Kind {
        #[default]
        One = 1,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, union, discriminator = u8, crate = taut_cdr)]
    enum Choice {
        #[dds(case = 1)]
        One,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(appendable, crate = taut_cdr)]
    struct New<T> {
        x: u32,
        y: u8,
        added: T,
    }
    fn is_over<T: Cdr + PartialEq + std::fmt::Debug>() {
        let old = [0, 1, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(from_payload(&old), Ok(New { x: 1, y: 5, added: T::initial() }));
        // What was sent is wrong: it is no zero, or not what fills it up.
        for wrong in [&[5, 2, 0, 0][..], &[5, 0, 0, 2], &[5, 0], &[5, 0, 0]] {
            assert!(from_payload::<New<T>>(&[&old[..8], wrong].concat()).is_err(), "{wrong:?}");
        }
    }
    is_over::<Kind>();
    is_over::<Choice>();
    is_over::<Box<Kind>>();
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[dds(final, plain, crate = taut_cdr)]
#[repr(C)]
struct Point {
    id: u64,
    x: f32,
    y: f32,
    tag: [u16; 4],
}

#[test]
fn plain_is_the_same_bytes_as_member_by_member() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Slow {
        id: u64,
        x: f32,
        y: f32,
        tag: [u16; 4],
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Many<T> {
        shift: u8,
        points: Vec<T>,
        more: [T; 2],
    }
    let point = Point { id: 1 << 40, x: 1.5, y: -2.0, tag: [1, 2, 3, 4] };
    let slow = || Slow { id: 1 << 40, x: 1.5, y: -2.0, tag: [1, 2, 3, 4] };
    for representation in REPRESENTATIONS {
        for endian in [Endian::Big, Endian::Little] {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            to_payload_in(&point, representation, endian, &mut a).unwrap();
            to_payload_in(&slow(), representation, endian, &mut b).unwrap();
            assert_eq!(a, b);
            assert_eq!(from_payload::<Point>(&a), Ok(point));
            a.clear();
            b.clear();
            let fast = Many { shift: 1, points: vec![point; 3], more: [point; 2] };
            let many = Many { shift: 1, points: vec![slow(), slow(), slow()], more: [slow(), slow()] };
            to_payload_in(&fast, representation, endian, &mut a).unwrap();
            to_payload_in(&many, representation, endian, &mut b).unwrap();
            assert_eq!(a, b);
            assert_eq!(from_payload(&a), Ok(fast));
            assert_eq!(from_payload(&a), Ok(many));
        }
    }
}

#[test]
fn plain_is_seen_in_place() {
    let mut words = [0u64; 8];
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let point = Point { id: 7, x: 0.5, y: 0.25, tag: [0, 1, 2, 3] };
    let mut out = Vec::new();
    to_payload(&point, Representation::Xcdr2, &mut out).unwrap();
    room[4..4 + out.len()].copy_from_slice(&out);
    assert_eq!(view::<Point>(&room[4..4 + out.len()]), Ok(&point));
    room[8..8 + out.len()].copy_from_slice(&out);
    assert_eq!(view::<Point>(&room[8..8 + out.len()]), Err(CdrError::NotInPlace));
}

#[test]
fn a_type_may_call_itself_by_no_name() {
    #[derive(DdsType, Debug, Clone, PartialEq)]
    #[dds(union, discriminator = i32, final, crate = taut_cdr)]
    enum Tree {
        #[dds(case = 1)]
        Leaf(i32),
        #[dds(case = 2)]
        Node(Vec<Self>),
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(final, crate = taut_cdr)]
    struct Directory {
        #[dds(bound = 8)]
        entries: Vec<Self>,
        #[dds(bound = Self::MOST)]
        name: String,
    }
    impl Directory {
        const MOST: usize = 4;
    }
    let tree = Tree::Node(vec![Tree::Leaf(7), Tree::Node(Vec::new())]);
    let inner = Directory { entries: Vec::new(), name: "bin".into() };
    let directory = Directory { entries: vec![inner], name: "usr".into() };
    for representation in REPRESENTATIONS {
        let (mut of_tree, mut of_directory) = (Vec::new(), Vec::new());
        to_payload(&tree, representation, &mut of_tree).unwrap();
        to_payload(&directory, representation, &mut of_directory).unwrap();
        assert_eq!(from_payload(&of_tree).as_ref(), Ok(&tree));
        assert_eq!(from_payload(&of_directory).as_ref(), Ok(&directory));
    }
    let long = Directory { entries: Vec::new(), name: "local".into() };
    assert!(to_payload(&long, Representation::Xcdr2, &mut Vec::new()).is_err());
}

#[test]
fn a_key_whose_hash_the_versions_have_otherwise_is_told() {
    #[derive(DdsType, Clone)]
    #[dds(final, crate = taut_cdr)]
    struct Keys<A, B, C> {
        #[dds(key)]
        a: A,
        #[dds(key)]
        b: B,
        #[dds(key)]
        c: C,
    }
    #[derive(DdsType)]
    #[dds(final, union, discriminator = u8, crate = taut_cdr)]
    enum Tree {
        #[dds(case = 0)]
        Leaf,
        #[dds(case = 1)]
        Node(Box<Keys<Tree, Tree, u8>>),
    }
    fn told<T: Type>(value: &T) -> bool {
        let told = T::KEY_UNIT == 0;
        let [one, other] = REPRESENTATIONS.map(|version| key_hash(value, version).unwrap());
        assert!(one == other || told, "nobody is told of it");
        told
    }
    let text = || "a text".to_owned();
    assert!(!told(&Keys { a: text(), b: 1_u32, c: text() }));
    assert!(!told(&Keys { a: 1_u64, b: [2.5_f64; 3], c: LongDouble(3) }));
    assert!(told(&Keys { a: 1_u64, b: 2_u32, c: 3_u8 }), "they do not, but this is not looked at");
    assert!(!told(&Keys { a: [7_u8; 16], b: [1_u32; 9], c: true }));
    assert!(!told(&Keys { a: 1_u8, b: 2_u32, c: Keys { a: text(), b: 1_u16, c: 'x' as u16 } }));
    assert!(told(&Keys { a: 1_u8, b: 2_u64, c: 3_u8 }));
    assert!(told(&Keys { a: text(), b: 1_u8, c: [2.5_f64; 2] }));
    assert!(told(&Keys { a: 1_u32, b: LongDouble(1), c: 3_u8 }));
    assert!(told(&Keys { a: WString::from(""), b: 1_u64, c: 3_u8 }));
    assert!(told(&Keys { a: [text(), text()], b: 1_u8, c: 3_u8 }));
    assert!(told(&Keys { a: vec![text()], b: 1_u8, c: 3_u8 }));
    let leaves = Keys { a: Tree::Leaf, b: Tree::Leaf, c: 1 };
    assert!(told(&Keys { a: Tree::Node(Box::new(leaves)), b: 1_u64, c: text() }));
}
