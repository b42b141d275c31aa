//! What it takes to know the instance of a serialized sample, by count of the allocator.
#![forbid(unsafe_code)]

use taut_cdr::{DdsType as Type, Octets, Representation, WString, key_hash, key_hash_of_payload, to_payload};
use taut_derive::DdsType;
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(DdsType)]
#[dds(final, union, discriminator = u8, crate = taut_cdr)]
enum Note {
    #[dds(case = 1)]
    Text(String),
    #[dds(default)]
    Nothing,
}

#[derive(DdsType)]
#[dds(appendable, union, discriminator = u8, crate = taut_cdr)]
enum OpenNote {
    #[dds(case = 1)]
    Text(String),
    #[dds(default)]
    Nothing,
}

#[derive(DdsType)]
#[dds(mutable, union, discriminator = u8, crate = taut_cdr)]
enum LooseNote {
    #[dds(case = 1)]
    Text(String),
    #[dds(default)]
    Nothing,
}

#[derive(DdsType)]
#[dds(final, crate = taut_cdr)]
struct Frame {
    pixels: Octets,
    note: Note,
    open: OpenNote,
    loose: LooseNote,
    notes: Vec<Note>,
    #[dds(key)]
    camera: u32,
}

/// Allocations while the instance of `value` is found.
fn allocations<T: Type>(value: &T, representation: Representation) -> u64 {
    let mut payload = Vec::new();
    to_payload(value, representation, &mut payload).unwrap();
    let before = CountingAllocator::of_thread();
    let hash = key_hash_of_payload::<T>(&payload, false);
    let allocations = CountingAllocator::of_thread() - before;
    assert_eq!(hash, key_hash(value, representation));
    allocations
}

#[test]
fn what_lies_before_a_key_is_not_made() {
    let frame = Frame {
        pixels: Octets::from(vec![7; 100]),
        note: Note::Text("bright".into()),
        open: OpenNote::Text("brighter".into()),
        loose: LooseNote::Text("dark".into()),
        notes: vec![Note::Nothing, Note::Text("at noon".into())],
        camera: 3,
    };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        assert_eq!(allocations(&frame, representation), 0, "{representation:?}");
    }
}

#[derive(DdsType)]
#[dds(final, crate = taut_cdr)]
struct Placed {
    #[dds(key)]
    number: Box<u64>,
    #[dds(key, bound = 8)]
    #[allow(clippy::box_collection)]
    place: Box<String>,
    #[dds(key)]
    name: WString,
}

#[test]
fn keys_of_numbers_and_strings_are_not_made() {
    let placed = Placed { number: Box::new(5), place: Box::new("Zürich".into()), name: "😀€".into() };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        assert_eq!(allocations(&placed, representation), 0, "{representation:?}");
    }
}

#[derive(DdsType)]
#[dds(final, crate = taut_cdr)]
struct Numbered {
    #[dds(key)]
    numbers: Vec<u32>,
}

#[derive(DdsType)]
#[dds(mutable, crate = taut_cdr)]
struct Named {
    text: String,
    #[dds(key)]
    name: String,
}

#[test]
fn a_long_key_takes_memory_once_and_what_is_decoded_is_so_once() {
    let named = |length| Named { text: "text".into(), name: "x".repeat(length) };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        // The value's strings; then memory for the key, too.
        assert_eq!(allocations(&named(10), representation), 2, "{representation:?}");
        assert_eq!(allocations(&named(1_000), representation), 3, "{representation:?}");
        // Its length is known when it does not fit on the stack: it is read for that, and once more.
        let numbered = Numbered { numbers: vec![5; 1_000] };
        assert_eq!(allocations(&numbered, representation), 3, "{representation:?}");
    }
}
