//! Datagrams are as large as the path takes, and large samples survive what is lost of them.

use std::time::Instant;

use taut::{Config, DdsType, Qos};

use crate::{Host, SOON, two_hosts};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Picture {
    pixels: Vec<u8>,
}

/// A datagram of 64 kB is 45 packets here: at one lost of 50 few would come through.
#[test]
fn large_samples_survive_lost_packets() {
    let Some((near, far)) = two_hosts("cable", 11) else { return };
    [&near, &far].iter().for_each(|host| host.lose_one_of(50, "cable"));
    let participants = [near.participant(&Config::default()), far.participant(&Config::default())];
    let topics = participants.each_ref().map(|of| of.topic::<Picture>("Pictures").unwrap());
    let qos = Qos::default().reliable().keep_all();
    let writer = topics[0].writer(qos.clone()).unwrap();
    let reader = topics[1].reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    let pictures = [100, 2_000, 300_000, 1_000_000, 1_400, 1_300].map(|len| Picture { pixels: vec![7; len] });
    for picture in &pictures {
        writer.write(picture).unwrap();
    }
    for picture in &pictures {
        reader.wait(SOON).expect("each arrives");
        assert_eq!(reader.take_next().unwrap().unwrap().data.as_ref(), Some(picture));
    }
    let port = participants[0].stats().port;
    assert!(port.bytes_out / port.datagrams_out < 1_472, "no datagram is more than a packet: {port:?}");
    assert!(port.send_calls < port.datagrams_out / 8, "rows of them share a call: {port:?}");
    assert_eq!(port.rows_refused, 0);

    // Nobody tells of a route that becomes narrower; it shows when the kernel refuses a row.
    near.ip("route change 10.78.11.0/24 dev cable proto kernel scope link src 10.78.11.1 mtu 1300");
    for picture in [&pictures[2], &pictures[2], &pictures[3]] {
        writer.write(picture).unwrap();
        reader.wait(SOON).expect("each arrives");
        assert_eq!(reader.take_next().unwrap().unwrap().data.as_ref(), Some(picture));
    }
    let narrow = participants[0].stats().port;
    assert!((1..=20).contains(&narrow.rows_refused), "the first change's, until it is out: {narrow:?}");
    let bytes = narrow.bytes_out - port.bytes_out;
    assert!(bytes / (narrow.datagrams_out - port.datagrams_out) < 1_272 + 100, "{narrow:?}");
}

/// Datagrams that this host has cut into pieces, and pieces that it has made. proc(5), `/proc/net/snmp`.
fn cut(host: &Host) -> (u64, u64) {
    host.on(|| {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("counts of IP");
        let [names, values] = text.lines().filter(|line| line.starts_with("Ip:")).collect::<Vec<_>>()[..]
        else {
            panic!("names and values: {text}");
        };
        let of = |wanted| {
            let mut all = names.split_whitespace().zip(values.split_whitespace());
            all.find(|(name, _)| *name == wanted).expect("it is counted").1.parse().expect("a number")
        };
        (of("FragOKs"), of("FragCreates"))
    })
}

#[test]
fn datagrams_follow_the_mtu() {
    let Some((near, far)) = two_hosts("cable", 12) else { return };
    // The near end alone is the path of what the writer sends.
    far.ip("link set cable mtu 9000");
    let participants = [near.participant(&Config::default()), far.participant(&Config::default())];
    let topics = participants.each_ref().map(|of| of.topic::<Picture>("Pictures").unwrap());
    let qos = Qos::default().reliable().keep_all();
    let (writer, reader) = (topics[0].writer(qos.clone()).unwrap(), topics[1].reader(qos).unwrap());
    writer.wait_matched(SOON).unwrap();
    let stats = || participants[0].stats().port;
    // Sends so many pictures of this size. Returns how long the datagrams were.
    let send = |count: usize, len: usize| {
        let before = stats();
        for n in 0..count {
            let picture = Picture { pixels: vec![n as u8; len] };
            writer.write(&picture).unwrap();
            reader.wait(SOON).expect("each arrives");
            assert_eq!(reader.take_next().unwrap().unwrap().data, Some(picture));
        }
        let after = stats();
        (after.bytes_out - before.bytes_out) / (after.datagrams_out - before.datagrams_out)
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + SOON;
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
        }
    };
    send(10, 1_300);
    send(10, 30_000);
    assert_eq!(cut(&near), (0, 0));
    near.ip("link set cable mtu 1000");
    let is_whole = || {
        let before = cut(&near);
        send(1, 1_300);
        cut(&near) == before
    };
    until("every datagram is cut", &is_whole);
    let before = cut(&near);
    send(50, 1_300);
    assert_eq!(cut(&near), before, "no datagram is cut");
    near.ip("link set cable mtu 9000");
    until("datagrams stay as small as before", &|| send(1, 30_000) > 4_000);
    let each = send(50, 30_000);
    assert!(each > 4_000, "{each} bytes each");
    assert_eq!((cut(&near), stats().rows_refused), (before, 0));
}
