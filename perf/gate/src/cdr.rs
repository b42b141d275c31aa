//! Encoding and decoding, in XCDR1, which writers offer first.

use std::hint::black_box;

use taut_cdr::{DdsType, Representation, fill_payload, from_payload, key_hash, key_hash_of_payload_in};

use crate::Path;
use crate::rounds::warm_and_count;
use crate::samples::{Complex, KeyBehind, Plain64, Plain256, Plain1024, Plain4096, Sample};

/// *Units*: bytes, of the encapsulation header.
const HEADER: usize = 4;

pub fn paths() -> Vec<Path> {
    let mut paths = Vec::new();
    let mut add = |kind: &str, size: usize, encode, decode| {
        paths.push(Path::new(format!("cdr/encode/{kind}/{size}"), encode));
        paths.push(Path::new(format!("cdr/decode/{kind}/{size}"), decode));
    };
    add("plain", 64, encode_plain::<Plain64>, decode_plain::<Plain64>);
    add("plain", 256, encode_plain::<Plain256>, decode_plain::<Plain256>);
    add("plain", 1024, encode_plain::<Plain1024>, decode_plain::<Plain1024>);
    add("plain", 4096, encode_plain::<Plain4096>, decode_plain::<Plain4096>);
    add("complex", 64, encode_complex::<64>, decode_complex::<64>);
    add("complex", 256, encode_complex::<256>, decode_complex::<256>);
    add("complex", 1024, encode_complex::<1024>, decode_complex::<1024>);
    add("complex", 4096, encode_complex::<4096>, decode_complex::<4096>);
    paths.push(Path::new("cdr/key/behind-complex/64", key_behind::<64>));
    paths.push(Path::new("cdr/key/behind-complex/1024", key_behind::<1024>));
    paths
}

fn encode_plain<T: Sample>(rounds: u64) -> u64 {
    encode(&T::example(3), HEADER + T::SIZE, rounds)
}

fn decode_plain<T: Sample>(rounds: u64) -> u64 {
    decode(&T::example(3), rounds)
}

fn encode_complex<const SIZE: usize>(rounds: u64) -> u64 {
    encode(&Complex::example(SIZE), HEADER + Complex::HEAD + SIZE, rounds)
}

fn decode_complex<const SIZE: usize>(rounds: u64) -> u64 {
    decode(&Complex::example(SIZE), rounds)
}

fn encode<T: DdsType + PartialEq>(value: &T, length: usize, rounds: u64) -> u64 {
    let mut out = vec![0; length];
    let mut encoded = 0;
    warm_and_count(rounds, |_| {
        encoded += u64::from(fill(black_box(value), &mut out) == length);
        black_box(&out);
    });
    assert_eq!(encoded, rounds + crate::rounds::WARM_UP, "the size that the path is named after");
    assert!(from_payload::<T>(&out).as_ref() == Ok(value), "what was encoded");
    rounds
}

fn decode<T: DdsType + PartialEq>(value: &T, rounds: u64) -> u64 {
    let mut payload = vec![0; fill(value, &mut [])];
    fill(value, &mut payload);
    let mut decoded = 0;
    warm_and_count(rounds, |_| {
        // Looked at where it lies: to hand it over would be one more copy.
        decoded += u64::from(black_box(&from_payload::<T>(black_box(&payload))).is_ok());
    });
    assert_eq!(decoded, rounds + crate::rounds::WARM_UP);
    assert!(from_payload::<T>(&payload).as_ref() == Ok(value), "what was encoded");
    rounds
}

/// The instance of a sample, as a reader finds it.
fn key_behind<const SIZE: usize>(rounds: u64) -> u64 {
    let value = KeyBehind::example(SIZE);
    let mut payload = vec![0; fill(&value, &mut [])];
    fill(&value, &mut payload);
    let hash = key_hash(&value, Representation::Xcdr1);
    let mut found = 0;
    warm_and_count(rounds, |_| {
        let key = key_hash_of_payload_in::<KeyBehind>(black_box(&payload), false, Representation::Xcdr1);
        found += u64::from(key == hash);
    });
    assert_eq!(found, rounds + crate::rounds::WARM_UP, "another instance");
    rounds
}

/// Encodes as a write does. One function for all paths, as in a program that writes.
#[inline(never)]
fn fill<T: DdsType>(value: &T, memory: &mut [u8]) -> usize {
    fill_payload(value, Representation::Xcdr1, memory).expect("a valid value")
}
