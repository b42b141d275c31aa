//! Payloads that are sent from where they were written, and looked at where they have come, over memif in this process.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{await_link, eal, flush, memif, open};
use taut_dpdk::{Burst, Device, DeviceConfig};
use taut_mem::{Bytes, Wrap, gather};
use taut_testbed::await_that;
use tempfile::TempDir;

const LENT: usize = 8;
const HEADER: &[u8] = b"a header of what length it has";
const BEFORE: &[u8] = b"before";
const BEHIND: &[u8] = b"and what follows";

fn lending(number: u32, role: &str, socket: &Path) -> Device {
    lending_by(1, number, role, socket)
}

/// By so many queues.
fn lending_by(queues: u16, number: u32, role: &str, socket: &Path) -> Device {
    let (rx_queues, tx_queues) = (queues, queues);
    let of = DeviceConfig { rx_queues, tx_queues, ..DeviceConfig::default() };
    let config = DeviceConfig { lent_frames: LENT as u32, shift: 2, ..of };
    Device::open(eal(), &memif(number, role, socket), &config).unwrap()
}

/// A sender and a receiver, with numbers that no other test has.
fn pair(directory: &TempDir, number: u32) -> [Device; 2] {
    let socket = directory.path().join("socket");
    let server = lending(number, "server", &socket);
    // Memory to receive into is the client's, so that it may send before anybody has looked.
    let client = lending(number + 1, "client", &socket);
    let devices = [client, server];
    devices.iter().for_each(await_link);
    devices
}

fn written(device: &Device, byte: u8, len: usize) -> Option<Bytes> {
    let mut chunk = device.chunks().unwrap().claim(len)?;
    chunk[..len].fill(byte);
    Some(chunk.share(len))
}

fn wrap(device: &mut Device, payload: &[u8], burst: &mut Burst) -> bool {
    wrap_for(0, device, payload, burst)
}

fn wrap_for(queue: u16, device: &mut Device, payload: &[u8], burst: &mut Burst) -> bool {
    let header = |datagram: &[u8], place: &mut [u8]| {
        assert_eq!(datagram, [BEFORE, payload, BEHIND].concat());
        gather(place, &[HEADER]);
        Some(())
    };
    let datagram = Wrap { before: &[BEFORE], payload, after: &[BEHIND], header_len: HEADER.len() };
    device.wrap(datagram, header, (queue, burst))
}

fn frame(payload: &[u8]) -> Vec<u8> {
    [HEADER, BEFORE, payload, BEHIND].concat()
}

/// Takes one frame that has come, and keeps it all if it can.
fn keep(device: &mut Device) -> Option<Bytes> {
    let mut burst = Burst::new();
    await_that("a frame comes", || device.receive(0, &mut burst) > 0);
    let mut kept = None;
    device.take_each(&mut burst, |bytes, keep| {
        assert!(keep(&[1, 2, 3]).is_none(), "it lies elsewhere");
        kept = keep(bytes);
        assert!(keep(bytes).is_none(), "it has a holder already");
    });
    assert_eq!(burst.len(), 1, "it, or another instead");
    kept
}

fn free(device: &Device) -> usize {
    device.chunks().unwrap().free()
}

#[test]
fn a_payload_is_sent_from_its_place() {
    let directory = TempDir::new().unwrap();
    let [mut near, mut far] = pair(&directory, 10);
    let mut burst = Burst::new();
    for len in [100, 1_001, 1_400] {
        let payload = written(&near, 7, len).unwrap();
        for _ in 0..3 {
            assert!(wrap(&mut near, &payload, &mut burst));
            assert_eq!(burst.iter().next().unwrap(), frame(&payload));
            assert!(!wrap(&mut near, &payload, &mut burst), "it is on its way");
            near.take_back();
            assert!(!wrap(&mut near, &payload, &mut burst), "and still is");
            flush(&mut near, &mut burst);
            near.take_back();
            assert_eq!(*keep(&mut far).unwrap(), *frame(&payload));
        }
        for part in [&payload[1..], &payload[..len - 1], BEFORE] {
            assert!(!wrap(&mut near, part, &mut burst), "not all of a payload of these");
        }
        assert_eq!(free(&near), LENT - 1);
        // It is held for as long as it is on its way, and may be thrown away.
        assert!(wrap(&mut near, &payload, &mut burst));
        drop(payload);
        near.take_back();
        assert_eq!(free(&near), LENT - 1);
        burst.clear();
        near.take_back();
        assert_eq!((free(&near), free(&far)), (LENT, LENT));
    }
}

#[test]
fn nobody_writes_what_is_looked_at() {
    let directory = TempDir::new().unwrap();
    let mut device = lending(20, "server", &directory.path().join("socket"));
    let mut burst = Burst::new();
    let payload = written(&device, 7, 500).unwrap();
    assert!(wrap(&mut device, &payload, &mut burst));
    let mut sent = burst.pop().unwrap();
    assert_eq!(sent.bytes(), frame(&payload));
    assert!(sent.bytes_mut().is_empty() && sent.append(1).is_none() && sent.prepend(1).is_none());
    // Nor is it kept as if it had come.
    burst.push(sent).unwrap();
    device.take_each(&mut burst, |bytes, keep| assert!(keep(bytes).is_none()));
    // Beside the frames that are lent nobody gets theirs.
    let mut frames: Vec<_> = std::iter::from_fn(|| device.frame()).collect();
    frames.iter_mut().for_each(|frame| frame.append(2_000).unwrap().fill(0xee));
    let mut chunks: Vec<_> = std::iter::from_fn(|| device.chunks().unwrap().claim(100)).collect();
    assert_eq!(chunks.len(), LENT - 1);
    chunks.iter_mut().for_each(|chunk| chunk.fill(0xdd));
    assert!(frames.iter().all(|frame| frame.bytes() == [0xee; 2_000]));
    assert_eq!(*payload, [7; 500]);
}

/// A driver has done with what went by one queue only when more goes by that one, which may take long.
#[test]
fn what_one_queue_has_not_sent_keeps_back_nothing_of_another() {
    let directory = TempDir::new().unwrap();
    let mut device = lending_by(2, 70, "server", &directory.path().join("socket"));
    let mut bursts = [Burst::new(), Burst::new()];
    for (queue, burst) in (0..).zip(&mut bursts) {
        let payload = written(&device, 7, 500).unwrap();
        assert!(wrap_for(queue, &mut device, &payload, burst));
    }
    assert_eq!(free(&device), LENT - 2);
    bursts[1].clear();
    device.take_back();
    assert_eq!(free(&device), LENT - 1);
    bursts[0].clear();
    device.take_back();
    assert_eq!(free(&device), LENT);
}

#[test]
fn what_has_come_is_kept_while_there_are_frames_instead() {
    let directory = TempDir::new().unwrap();
    let [mut near, mut far] = pair(&directory, 30);
    let mut burst = Burst::new();
    let mut send = |byte: u8| {
        let payload = written(&near, byte, 1_000).unwrap();
        assert!(wrap(&mut near, &payload, &mut burst));
        flush(&mut near, &mut burst);
        near.take_back();
    };
    for _ in 0..3 {
        let mut kept = Vec::new();
        for byte in 0..LENT as u8 {
            send(byte);
            kept.push(keep(&mut far).unwrap());
        }
        // As many as are received into before they are looked for.
        for _ in 0..3_000 {
            send(0xff);
            assert!(keep(&mut far).is_none(), "there is none to spare");
        }
        for (byte, view) in (0..).zip(&kept) {
            assert_eq!(**view, *frame(&[byte; 1_000]));
            assert_eq!((view.as_ptr() as usize) % 8, 2, "where it was asked for");
        }
        assert!(written(&far, 1, 100).is_none());
        drop(kept);
        assert_eq!(free(&far), LENT);
    }
}

#[test]
fn what_is_kept_outlives_its_device() {
    let directory = TempDir::new().unwrap();
    for _ in 0..2 {
        let [mut near, mut far] = pair(&directory, 40);
        let mut burst = Burst::new();
        let payload = written(&near, 9, 800).unwrap();
        assert!(wrap(&mut near, &payload, &mut burst));
        flush(&mut near, &mut burst);
        let kept = keep(&mut far).unwrap();
        let chunks = Arc::clone(near.chunks().unwrap());
        drop([near, far]);
        // Others do not get its memory.
        let [mut near, mut far] = pair(&directory, 40);
        for _ in 0..3_000 {
            let payload = written(&near, 1, 1_000).unwrap();
            assert!(wrap(&mut near, &payload, &mut burst));
            flush(&mut near, &mut burst);
            near.take_back();
            keep(&mut far);
        }
        assert_eq!((&*kept, &*payload), (&*frame(&[9; 800]), &[9; 800][..]));
        drop(payload);
        assert_eq!(chunks.free(), LENT);
        assert!(chunks.claim(1_000).is_some(), "who has the chunks may go on to write into them");
    }
}

#[test]
fn what_is_to_be_sent_outlives_its_device() {
    let directory = TempDir::new().unwrap();
    let open = || lending(60, "server", &directory.path().join("socket"));
    let mut device = open();
    let mut burst = Burst::new();
    let payload = written(&device, 9, 800).unwrap();
    assert!(wrap(&mut device, &payload, &mut burst));
    drop((device, payload));
    let device = open();
    let mut others: Vec<_> = std::iter::from_fn(|| device.chunks().unwrap().claim(1_000)).collect();
    others.iter_mut().for_each(|chunk| chunk.fill(1));
    let mut frames: Vec<_> = std::iter::from_fn(|| device.frame()).collect();
    frames.iter_mut().for_each(|frame| frame.append(2_000).unwrap().fill(1));
    assert_eq!(burst.iter().next().unwrap(), frame(&[9; 800]));
}

#[test]
fn memory_is_given_back_after_the_last_view() {
    let directory = TempDir::new().unwrap();
    // Together they are more than DPDK has.
    for _ in 0..30 {
        let config = DeviceConfig { lent_frames: 4_096, ..DeviceConfig::default() };
        let device = memif(50, "server", &directory.path().join("socket"));
        let device = Device::open(eal(), &device, &config).unwrap();
        let payload = written(&device, 3, 100).unwrap();
        drop(device);
        assert_eq!(*payload, [3; 100]);
    }
    drop(open(&memif(50, "server", &directory.path().join("socket"))).unwrap());
}
