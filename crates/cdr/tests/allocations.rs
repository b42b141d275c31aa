//! What it takes to know the instance of a serialized sample, by count of the allocator.
#![forbid(unsafe_code)]

use taut_cdr::{DdsType as Type, Octets, Representation, key_hash, key_hash_of_payload, to_payload};
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
