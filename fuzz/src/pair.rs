//! Two participants that are matched, and what somebody puts on their network: the first byte chooses QoS, then come acts.

use taut_base::Duration;
use taut_mem::Bytes;
use taut_port::Traffic;
use taut_qos::Qos;
use taut_sim::{Pair, meta_locator, user_locator};
use taut_wire::write_message_header;

use crate::{byte, some};

/// More is a longer way to the same.
const ACTS: usize = 64;
/// Far more than a pair makes of so many acts in the time that they take.
const EVENTS: u64 = 20_000;
/// A name that neither has.
const STRANGER: taut_base::GuidPrefix = taut_base::GuidPrefix(*b"a stranger!!");

pub fn play(mut bytes: &[u8]) {
    let choice = byte(&mut bytes);
    let mut qos = Qos::default().reliable();
    if choice & 1 != 0 {
        qos = qos.keep_all();
    }
    if choice & 2 != 0 {
        qos = qos.transient_local();
    }
    let mut pair = Pair::new(1);
    if choice & 4 != 0 {
        pair = pair.without_key();
    }
    pair.reader(qos.clone());
    pair.writer(qos);
    pair.network.capturing = 64;
    pair.run_until_matched();
    pair.network.event_limit = EVENTS;
    // Who speaks under the name of one of the two may have the other believe anything.
    let is_stolen = choice & 8 != 0;
    for _ in 0..ACTS {
        if bytes.is_empty() {
            break;
        }
        act(&mut pair, &mut bytes, is_stolen);
    }
    if !is_stolen {
        works(&mut pair, choice & 1 != 0);
    }
}

fn act(pair: &mut Pair, bytes: &mut &[u8], is_stolen: bool) {
    let what = byte(bytes);
    let to = usize::from(what >> 7);
    let prefix = if is_stolen { pair.network.prefix(1 - to) } else { STRANGER };
    match what % 5 {
        0 => {
            let len = usize::from(byte(bytes)) * 4;
            let mut message = Vec::new();
            write_message_header(&mut message, prefix);
            message.extend_from_slice(some(bytes, len));
            inject(pair, to, what, message);
        }
        1 => {
            let captured = &pair.network.captured;
            let Some(captured) = captured.get(usize::from(byte(bytes)) % captured.len().max(1)) else {
                return;
            };
            let mut message = captured.bytes.to_vec();
            message.iter_mut().skip(8).zip(prefix.0).for_each(|(to, from)| *to = from);
            let at = 20 + usize::from(byte(bytes)) * 4;
            let patch = some(bytes, 4);
            message.iter_mut().skip(at).zip(patch).for_each(|(to, from)| *to = *from);
            inject(pair, to, what, message);
        }
        2 => _ = pair.write(u32::from(what >> 5), u32::from(byte(bytes)) * 64),
        3 => pair.run_for(Duration::from_millis(i64::from(byte(bytes)))),
        _ => _ = pair.take(),
    }
}

fn inject(pair: &mut Pair, to: usize, what: u8, message: Vec<u8>) {
    let (traffic, source) = match what & 0x60 {
        0x20 => (Traffic::Meta, meta_locator(1 - to)),
        0x40 => (Traffic::MetaMulticast, meta_locator(1 - to)),
        _ => (Traffic::User, user_locator(1 - to)),
    };
    pair.network.inject(to, traffic, source, Bytes::from(message));
}

/// Nothing that a stranger says keeps a sample from its reader.
fn works(pair: &mut Pair, keeps_all: bool) {
    pair.run_for(Duration::from_secs(2));
    _ = pair.take();
    let before = pair.writers[0].written;
    for _ in 0..3 {
        pair.write(7, 10).expect("all is acknowledged");
        pair.run_for(Duration::from_millis(if keeps_all { 0 } else { 200 }));
    }
    pair.run_for(Duration::from_secs(2));
    let numbers = pair.take_numbers();
    let wanted: Vec<u64> = (before + 1..=before + 3).collect();
    match keeps_all {
        true => assert_eq!(numbers, wanted),
        false => assert_eq!(numbers.last(), wanted.last()),
    }
    assert!(pair.is_acknowledged(0), "what was read is acknowledged");
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for choice in 0..16_u8 {
        let mut seed = vec![choice, 2, 10, 3, 20];
        for number in 0..12 {
            seed.extend([0x81, number, number, 0xff, 0xff, 0xff, 0x7f, 1, number, 2, 1, 0, 0, 0, 3, 5]);
        }
        seed.extend([4, 2, 0, 3, 250]);
        seeds.push(seed);
    }
    for captured in crate::captured().iter().filter(|captured| captured.bytes.len() < 1_000) {
        let body = &captured.bytes[20..];
        let words = body.len().div_ceil(4) as u8;
        for choice in [1, 9] {
            seeds.push([&[choice, if captured.from == 0 { 0x80 } else { 0 }, words], body].concat());
        }
    }
    seeds
}
