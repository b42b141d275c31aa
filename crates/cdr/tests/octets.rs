//! Sequences of octets that are not copied out of the sample that they came in.
#![forbid(unsafe_code)]

use taut_cdr::{
    CdrError, Octets, Representation, SerializedPayload, from_key_payload, from_payload, key_hash,
    key_to_payload, to_payload,
};
use taut_derive::DdsType;
use taut_mem::Bytes;

/// The same type twice: once with vectors, once with octets.
macro_rules! twins {
    ($($how:ident: $copied:ident, $kept:ident;)*) => {$(
        #[derive(DdsType, Clone, Debug, PartialEq)]
        #[dds($how, name = "Image", crate = taut_cdr)]
        struct $copied {
            #[dds(key, bound = 8)]
            camera: Vec<u8>,
            #[dds(bound = 10_000)]
            pixels: Vec<u8>,
            more: Vec<Vec<u8>>,
            none: Option<Vec<u8>>,
            last: u16,
        }

        #[derive(DdsType, Clone, Debug, PartialEq)]
        #[dds($how, name = "Image", crate = taut_cdr)]
        struct $kept {
            #[dds(key, bound = 8)]
            camera: Octets,
            #[dds(bound = 10_000)]
            pixels: Octets,
            more: Vec<Octets>,
            none: Option<Octets>,
            last: u16,
        }

        impl $copied {
            fn of(pixels: usize) -> $copied {
                let pixels = (0..pixels).map(|at| at as u8).collect();
                $copied { camera: vec![3, 4], pixels, more: vec![vec![], vec![9; 3]], none: None, last: 7 }
            }

            fn kept(&self) -> $kept {
                $kept {
                    camera: self.camera.clone().into(),
                    pixels: self.pixels.iter().copied().collect(),
                    more: self.more.iter().map(|octets| octets.as_slice().into()).collect(),
                    none: self.none.clone().map(Octets::from),
                    last: self.last,
                }
            }
        }
    )*};
}

twins! {
    final: CopiedFinal, KeptFinal;
    appendable: CopiedAppendable, KeptAppendable;
    mutable: CopiedMutable, KeptMutable;
}

const BOTH: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

macro_rules! same_on_the_wire {
    ($($copied:ident, $kept:ident;)*) => {$(
        for (representation, len) in BOTH.into_iter().flat_map(|of| [(of, 0), (of, 5), (of, 9_999)]) {
            let copied = $copied::of(len);
            let kept = copied.kept();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            to_payload(&copied, representation, &mut one).unwrap();
            to_payload(&kept, representation, &mut other).unwrap();
            assert_eq!(one, other);
            assert_eq!(from_payload::<$kept>(&one).as_ref(), Ok(&kept));
            let whole = Bytes::from(one);
            assert_eq!(SerializedPayload::from(&whole).decode::<$kept>().as_ref(), Ok(&kept));
            assert_eq!(key_hash(&copied, representation), key_hash(&kept, representation));
            let (mut key, mut other_key) = (Vec::new(), Vec::new());
            key_to_payload(&copied, representation, &mut key).unwrap();
            key_to_payload(&kept, representation, &mut other_key).unwrap();
            assert_eq!(key, other_key);
            assert_eq!(from_key_payload::<$kept>(&key).unwrap().camera, kept.camera);
        }
    )*};
}

#[test]
fn on_the_wire_they_are_a_vector() {
    same_on_the_wire! {
        CopiedFinal, KeptFinal;
        CopiedAppendable, KeptAppendable;
        CopiedMutable, KeptMutable;
    }
    let mut out = Vec::new();
    let long = CopiedFinal::of(10_001).kept();
    assert_eq!(to_payload(&long, Representation::Xcdr1, &mut out), Err(CdrError::Bound));
}

fn payload(len: usize) -> Bytes {
    let mut payload = Vec::new();
    to_payload(&CopiedFinal::of(len).kept(), Representation::Xcdr1, &mut payload).unwrap();
    payload.shrink_to_fit();
    payload.into()
}

fn lies_in(whole: &Bytes, octets: &[u8]) -> bool {
    whole.as_ptr_range().contains(&octets.as_ptr())
}

#[test]
fn what_is_long_stays_where_it_is() {
    let whole = payload(5_000);
    let value: KeptFinal = SerializedPayload::from(&whole).decode().unwrap();
    assert!(lies_in(&whole, &value.pixels));
    assert!(!lies_in(&whole, &value.camera) && !lies_in(&whole, &value.more[1]), "short ones are copied");
    let copy = value.pixels.clone();
    assert!(lies_in(&whole, &copy), "so is a clone");
    let copied: KeptFinal = from_payload(&whole).unwrap();
    assert!(!lies_in(&whole, &copied.pixels), "only the bytes were given");
    assert_eq!(value, copied);
    drop(whole);
    assert_eq!(copy, copied.pixels, "it holds what it shows");
}

#[test]
fn what_is_changed_is_copied_first() {
    let whole = payload(5_000);
    let value: KeptFinal = SerializedPayload::from(&whole).decode().unwrap();
    let mut changed = value.pixels.clone();
    changed.to_mut()[0] = 99;
    assert_eq!((value.pixels[0], changed[0]), (0, 99));
    assert_eq!(value.pixels[1..], changed[1..]);
    let own = changed.as_ptr();
    changed.to_mut()[1] = 98;
    assert_eq!(changed.as_ptr(), own, "once");
    assert_eq!(value.pixels.clone().into_vec(), *value.pixels);
    assert!(value.pixels < changed);
}

/// A member that would hold much more than it shows has memory of its own, which serves the next one.
#[test]
fn a_small_part_does_not_hold_the_whole() {
    let mut value = CopiedFinal::of(0);
    (value.pixels, value.more) = (vec![1; 5_000], vec![vec![2; 20_000]]);
    let mut payload = Vec::new();
    to_payload(&value, Representation::Xcdr1, &mut payload).unwrap();
    payload.shrink_to_fit();
    let whole = Bytes::from(payload);
    let mut kept: KeptFinal = SerializedPayload::from(&whole).decode().unwrap();
    assert!(!lies_in(&whole, &kept.pixels) && lies_in(&whole, &kept.more[0]));
    let own = kept.pixels.as_ptr();
    SerializedPayload::from(&whole).decode_into(&mut kept).unwrap();
    assert_eq!(kept.pixels.as_ptr(), own);
    assert_eq!(kept, value.kept());

    // The buffer of a longer sample that serves again.
    let mut roomy = Vec::with_capacity(100_000);
    roomy.extend_from_slice(&self::payload(5_000));
    let whole = Bytes::from(roomy);
    assert!(!lies_in(&whole, &SerializedPayload::from(&whole).decode::<KeptFinal>().unwrap().pixels));
}

#[test]
fn a_value_lets_go_of_what_it_was_read_from() {
    let (first, second) = (payload(5_000), payload(6_000));
    let mut value: KeptFinal = SerializedPayload::from(&first).decode().unwrap();
    SerializedPayload::from(&second).decode_into(&mut value).unwrap();
    assert!(lies_in(&second, &value.pixels));
    SerializedPayload::from(&payload(3)).decode_into(&mut value).unwrap();
    assert_eq!(*value.pixels, [0, 1, 2]);
}

#[test]
fn a_count_beyond_the_bytes_is_refused() {
    for whole in [payload(5_000), payload(3)] {
        for end in 4..whole.len() {
            let cut = whole.slice(0..end);
            assert!(SerializedPayload::from(&cut).decode::<KeptFinal>().is_err(), "{end}");
        }
        let mut hostile = whole.to_vec();
        // The count of the pixels, behind the camera and its padding.
        hostile[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        let hostile = Bytes::from(hostile);
        assert_eq!(SerializedPayload::from(&hostile).decode::<KeptFinal>(), Err(CdrError::Count));
    }
}
