//! Prints what one encoding and one decoding costs, next to a bare copy of as many bytes.
//!
//! `cargo run --release -p taut-cdr --example cdr_cost`
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use taut_cdr::{DdsType as Type, KeyHasher, Representation, from_payload, to_payload, view};
use taut_derive::DdsType;

macro_rules! samples {
    ($plain:ident, $members:ident, $floats:literal) => {
        #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[dds(final, plain, crate = taut_cdr)]
        #[repr(C)]
        struct $plain {
            id: u32,
            flags: u32,
            stamp: u64,
            values: [f32; $floats],
        }
        #[derive(DdsType, Clone)]
        #[dds(final, crate = taut_cdr)]
        struct $members {
            id: u32,
            flags: u32,
            stamp: u64,
            values: [f32; $floats],
        }
    };
}
samples!(Plain64, Members64, 12);
samples!(Plain1K, Members1K, 252);
samples!(Plain4K, Members4K, 1020);

#[derive(DdsType, Clone)]
#[dds(final, crate = taut_cdr)]
struct Numbers {
    #[dds(key)]
    a: u32,
    b: u8,
    c: f64,
    d: u16,
    e: i64,
    f: [f64; 3],
    g: u32,
}

#[derive(DdsType, Clone)]
#[dds(appendable, crate = taut_cdr)]
struct Texts {
    #[dds(key)]
    host: String,
    name: String,
    lines: Vec<String>,
    count: u64,
}

#[derive(DdsType, Clone)]
#[dds(appendable, crate = taut_cdr)]
struct Cloud {
    stamp: u64,
    values: Vec<f32>,
}

/// The least time of one call in nanoseconds, over 20 rounds.
fn time(mut step: impl FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    let round = |step: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..CALLS {
            step();
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..20).map(|_| round(&mut step)).fold(f64::INFINITY, f64::min)
}

fn measure<T: Type>(name: &str, value: &T) {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut out = Vec::new();
        to_payload(value, representation, &mut out).expect("a valid value");
        let payload = out.clone();
        let mut copy = vec![0u8; payload.len()];
        let bare = time(|| black_box(&mut copy).copy_from_slice(black_box(&payload)));
        let encode = time(|| {
            out.clear();
            let _ = black_box(to_payload(black_box(value), representation, &mut out));
        });
        let decode = time(|| _ = black_box(from_payload::<T>(black_box(&payload))));
        println!(
            "{name:<20} {representation:?} {:>5} B   copy {bare:>7.1} ns   encode {encode:>7.1} ns   decode {decode:>7.1} ns",
            payload.len()
        );
    }
}

fn main() {
    measure("plain 64 B", &Plain64 { id: 1, flags: 2, stamp: 3, values: [0.5; 12] });
    measure("members 64 B", &Members64 { id: 1, flags: 2, stamp: 3, values: [0.5; 12] });
    measure("plain 1 KiB", &Plain1K { id: 1, flags: 2, stamp: 3, values: [0.5; 252] });
    measure("members 1 KiB", &Members1K { id: 1, flags: 2, stamp: 3, values: [0.5; 252] });
    measure("plain 4 KiB", &Plain4K { id: 1, flags: 2, stamp: 3, values: [0.5; 1020] });
    measure("members 4 KiB", &Members4K { id: 1, flags: 2, stamp: 3, values: [0.5; 1020] });
    measure("sequence 4 KiB", &Cloud { stamp: 1, values: vec![0.5; 1020] });
    let numbers = Numbers { a: 1, b: 2, c: 3.0, d: 4, e: 5, f: [6.0; 3], g: 7 };
    measure("mixed numbers", &numbers);
    let line = "a line of text that is not short".to_owned();
    let texts = Texts { host: "host".into(), name: "a name".into(), lines: vec![line; 8], count: 9 };
    measure("strings", &texts);

    let mut payload = Vec::new();
    let plain = Plain4K { id: 1, flags: 2, stamp: 3, values: [0.5; 1020] };
    to_payload(&plain, Representation::Xcdr2, &mut payload).expect("a valid value");
    let mut words = vec![0u64; 1_024];
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let end = 4 + payload.len();
    room[4..end].copy_from_slice(&payload);
    let look = time(|| _ = black_box(view::<Plain4K>(black_box(&room[4..end])).map(|v| v.stamp)));
    let mut hasher = KeyHasher::default();
    let small = time(|| _ = black_box(hasher.hash(black_box(&numbers), Representation::Xcdr1)));
    let md5 = time(|| _ = black_box(hasher.hash(black_box(&texts), Representation::Xcdr1)));
    println!("view 4 KiB {look:.1} ns   key hash {small:.1} ns   key hash with MD5 {md5:.1} ns");
}
