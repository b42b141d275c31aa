//! Tags of VLANs in what a port sends, and in what it takes. Over memif, which leaves frames as they are.

mod common;

use common::{Cable, GROUP, OURS, PEER, PORT, Ported, Wire, announced, bare, own};
use taut_base::Locator;
use taut_dpdk::DeviceConfig;
use taut_ethernet::{Reached, Stats, Tag};
use taut_port_dpdk::DpdkConfig;

const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A port whose frames have this tag, and a cable's other end.
fn open(cable: &Cable, tag: Option<Tag>, reached: Reached) -> (Ported, Wire) {
    let [first, second] = cable.names();
    let port = Ported::open(first, DpdkConfig { tag, ..DpdkConfig::default() }, reached);
    (port, Wire::open(&second, &DeviceConfig::default()))
}

/// The frame from the other station, and with another tag or none instead of that of four bytes.
fn answer(frame: &[u8], tag: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], tag, &frame[16..]].concat()
}

fn not_ours(port: &Ported) -> u64 {
    let Stats { not_ours, malformed, damaged, .. } = port.port.stats();
    assert_eq!([malformed, damaged], [0; 2]);
    not_ours
}

#[test]
fn frames_have_the_tag_of_their_network_and_priority() {
    let cable = Cable::new(100);
    for (tag, of_ours, taken, others) in [
        (Tag::of(5, None), [0x00, 5], [5, 0xc005], &[0, 0xc000, 6, 0x105][..]),
        // A tag of no network may be missing.
        (Tag::of(0, Some(0)), [0x00, 0], [0, 0xc000], &[5, 6]),
    ] {
        let (mut ours, mut wire) = open(&cable, tag, bare());
        ours.link(&mut wire);
        let to = Locator::ethernet(PEER_MAC, PORT);
        assert_eq!(ours.port.carrier().path_size(&to), Some(1_500 - 8), "a tag takes nothing of the MTU");
        let longest = vec![7; 1_500 - 8];
        for (priority, payload) in [(0, &b"RTPS"[..]), (6, b"RTPS"), (6, &longest), (0, b"RTPS")] {
            ours.port.set_mark(0, 0, priority);
            ours.send(&to, payload);
            let frame = wire.said(0, 1).remove(0);
            assert_eq!(frame[..6], PEER_MAC);
            let tci = [of_ours[0] | priority << 5, of_ours[1]];
            assert_eq!(frame[12..18], [&[0x81, 0][..], &tci, &[0x88, 0xb5]].concat(), "priority {priority}");
            assert!(frame[26..].starts_with(payload), "{frame:02x?}");
        }
        ours.send(&to, b"RTPS");
        let sent = wire.said(0, 1).remove(0);
        let tagged = |tci: &u16| [&[0x81, 0][..], &tci.to_be_bytes()].concat();
        let refused: Vec<_> = others.iter().map(|tci| answer(&sent, &tagged(tci))).collect();
        wire.send(0, &refused);
        assert!(ours.receive_all(refused.len()).is_empty());
        assert_eq!(not_ours(&ours), others.len() as u64);
        // A tag within the tag is no type of ours, whatever network the first one is of.
        wire.send(0, &[answer(&sent, &[tagged(&taken[0]), tagged(&taken[0])].concat())]);
        assert!(ours.receive_all(1).is_empty());
        wire.send(0, &taken.map(|tci| answer(&sent, &tagged(&tci))));
        assert_eq!(ours.receive_all(2), [b"RTPS"; 2]);
        wire.send(0, &[answer(&sent, &[])]);
        let is_any = tag == Tag::of(0, Some(0));
        assert_eq!(ours.receive_all(1).len(), usize::from(is_any), "without a tag");
    }
}

#[test]
fn a_port_without_a_tag_takes_none_of_a_network() {
    let cable = Cable::new(110);
    let (mut ours, mut wire) = open(&cable, None, bare());
    ours.link(&mut wire);
    ours.port.set_mark(0, 0, 6);
    ours.send(&Locator::ethernet(PEER_MAC, PORT), b"RTPS");
    let sent = wire.said(0, 1).remove(0);
    assert_eq!(sent[12..14], [0x88, 0xb5], "nothing has asked for tags");
    let tagged = |tci: &[u8]| [&sent[6..12], &sent[..6], &[0x81, 0], tci, &sent[12..]].concat();
    wire.send(0, &[tagged(&[0, 5]), tagged(&[0xc0, 0])]);
    assert_eq!(ours.receive_all(2), [b"RTPS"], "a priority alone is no network");
    assert_eq!(not_ours(&ours), 1);
}

/// What the layer says itself, and whom it hears.
#[test]
fn stations_of_other_networks_are_neither_told_nor_heard() {
    let cable = Cable::new(120);
    let (mut ours, mut wire) = open(&cable, Tag::of(5, Some(0)), own());
    let said = announced(&mut ours.port, &mut wire, 2);
    let kinds = [[8, 6], [8, 0]];
    for (frame, kind) in said.iter().zip(kinds) {
        assert_eq!(frame[12..18], [&[0x81, 0, 0, 5][..], &kind].concat(), "who we are, and our group");
    }
    let mac = &said[0][6..12];
    let ask = |tag: &[u8]| {
        let arp = [&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1][..], &PEER_MAC, &PEER, &[0; 6], &OURS].concat();
        [&[0xff; 6][..], &PEER_MAC, tag, &arp].concat()
    };
    wire.send(0, &[ask(&[]), ask(&[0x81, 0, 0, 6])]);
    ours.receive_all(2);
    assert_eq!(not_ours(&ours), 2);
    wire.send(0, &[ask(&[0x81, 0, 0x60, 5])]);
    ours.receive_all(1);
    let told = wire.said(0, 1).remove(0);
    assert_eq!(told[..18], [&PEER_MAC[..], mac, &[0x81, 0, 0, 5, 8, 6]].concat());
    // It is known now.
    ours.port.set_mark(46, 6, 6);
    ours.send(&Locator::udp_v4(PEER.into(), PORT), b"RTPS");
    let sent = wire.said(0, 1).remove(0);
    assert_eq!(sent[..18], [&PEER_MAC[..], mac, &[0x81, 0, 0xc0, 5, 8, 0]].concat());
    assert_eq!((sent[19] >> 2, &sent[46..]), (46, &b"RTPS"[..]), "as long as it is: {sent:02x?}");
    ours.send(&Locator::udp_v4(GROUP.into(), PORT), b"RTPS");
    assert_eq!(wire.said(0, 1)[0][12..16], [0x81, 0, 0xc0, 5]);
}
