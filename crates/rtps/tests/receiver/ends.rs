//! What kind of change it is, by what is said about it: samples that end their instance, keys, what a filter keeps out.

use taut_base::{InstanceHandle, Time};
use taut_qos::ReliabilityKind;
use taut_rtps::{ChangeKind, Event};
use taut_wire::{Endian, InlineQos, ParameterListWriter, PayloadKind, StatusInfo, pid};

use crate::common::{
    Kept, announcement, data, events, inline, matched_reader, part, participant, publication, reader_of,
};

#[test]
fn the_data_of_a_sample_that_disposes_of_its_instance_are_no_key() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    let (instance, payload) = (InstanceHandle([7; 16]), [0, 1, 0, 0, 1, 2, 3, 4]);
    for (number, kind) in [(1, PayloadKind::Data), (2, PayloadKind::Key)] {
        let said =
            InlineQos { key_hash: Some(instance), status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
        participant.on_frame(Time(0), &data(number, &inline(&said, &[]), kind, &payload), &mut sink);
    }
    let (with_data, with_key) = (ChangeKind::AliveThenDisposed, ChangeKind::NotAliveDisposed);
    assert_eq!(sink.kinds(), [with_data, with_key].map(|kind| (kind, Some(instance), payload.len())));
    assert_eq!([with_data.has_data(), with_key.has_data()], [true, false]);
}

#[test]
fn data_that_end_their_instance_are_kept_and_are_no_key() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let sample: Vec<u8> = (0..8).collect();
    let all = StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED);
    let mut number = 0;
    let mut expected = Vec::new();
    for (status_info, with_data, with_key) in [
        (StatusInfo::DISPOSED, ChangeKind::AliveThenDisposed, ChangeKind::NotAliveDisposed),
        (StatusInfo::UNREGISTERED, ChangeKind::AliveThenUnregistered, ChangeKind::NotAliveUnregistered),
        (all, ChangeKind::AliveThenDisposedUnregistered, ChangeKind::NotAliveDisposedUnregistered),
    ] {
        for (payload, kind) in [(PayloadKind::Data, with_data), (PayloadKind::Key, with_key)] {
            for key_hash in [None, Some(InstanceHandle([7; 16]))] {
                number += 1;
                let said = inline(&InlineQos { key_hash, status_info, ..InlineQos::default() }, &[]);
                participant.on_frame(Time(0), &data(number, &said, payload, &sample), &mut sink);
                assert_eq!(kind.has_data(), payload == PayloadKind::Data);
                assert_eq!((kind.end(), kind.status_info()), (with_key, status_info.0));
                expected.push((kind, key_hash, 8));
            }
        }
    }
    assert_eq!(sink.kinds(), expected);
}

#[test]
fn a_key_in_fragments_ends_its_instance() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let sample: Vec<u8> = (0..10).collect();
    let hash = Some(InstanceHandle([7; 16]));
    let ends = |status_info| InlineQos { key_hash: hash, status_info, ..InlineQos::default() };
    let nothing = InlineQos::default();
    let all = StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED);
    for (number, key, said) in [
        (1, true, ends(StatusInfo::UNREGISTERED)),
        (2, true, ends(all)),
        (3, true, ends(StatusInfo::DISPOSED)),
        (4, false, ends(StatusInfo::DISPOSED)),
        (5, false, nothing),
    ] {
        for fragment in [3, 1, 2] {
            let inline = inline(&said, &[]);
            participant.on_frame(Time(0), &part(number, fragment, key, &inline, &sample), &mut sink);
        }
    }
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered, NotAliveUnregistered};
    let expected = [
        (NotAliveUnregistered, hash, 10),
        (NotAliveDisposedUnregistered, hash, 10),
        (NotAliveDisposed, hash, 10),
        // The data of a sample that ends its instance are no key, in fragments as in one piece.
        (ChangeKind::AliveThenDisposed, hash, 10),
        (Alive, None, 10),
    ];
    assert_eq!(sink.kinds(), expected);
}

/// OpenDDS registers an instance before its first sample by the key with a status of 0.
#[test]
fn a_key_that_ends_nothing_is_passed_over() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let sample: Vec<u8> = (0..8).collect();
    let mut registers = Vec::new();
    let mut list = ParameterListWriter::new(&mut registers, Endian::Little);
    list.put_bytes(pid::STATUS_INFO, &[0; 4]);
    list.finish();
    for (number, kind, said) in [
        (1, PayloadKind::Key, &registers[..]),
        (2, PayloadKind::Data, &[][..]),
        (3, PayloadKind::Key, &[][..]),
        (5, PayloadKind::Data, &[][..]),
    ] {
        participant.on_frame(Time(0), &data(number, said, kind, &sample), &mut sink);
    }
    // Nor is one in fragments waited for. What it does stands in its first one only, as with Cyclone DDS.
    participant.on_frame(Time(0), &part(4, 2, true, &[], &sample), &mut sink);
    participant.on_frame(Time(0), &part(4, 1, true, &registers, &sample), &mut sink);
    let disposes = inline(&InlineQos { status_info: StatusInfo::DISPOSED, ..InlineQos::default() }, &[]);
    for (number, fragment, said) in
        [(6, 1, &disposes[..]), (6, 2, &[][..]), (7, 2, &[][..]), (7, 1, &disposes[..])]
    {
        participant.on_frame(Time(0), &part(number, fragment, true, said, &sample), &mut sink);
    }
    let got: Vec<_> = sink.0.iter().map(|change| (change.sequence_number.0, change.kind)).collect();
    use ChangeKind::{Alive, NotAliveDisposed};
    assert_eq!(got, [(2, Alive), (5, Alive), (6, NotAliveDisposed), (7, NotAliveDisposed)]);
    assert!(!events(&mut participant).any(|event| matches!(event, Event::SampleLost { .. })));
}

#[test]
fn a_change_that_does_not_pass_a_filter_is_neither_data_nor_an_end() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let key_hash = Some(InstanceHandle([7; 16]));
    let with = |status_info| inline(&InlineQos { key_hash, status_info, ..InlineQos::default() }, &[]);
    let sample: Vec<u8> = (0..8).collect();
    let filtered = with(StatusInfo::FILTERED);
    for (number, kind) in [(1, PayloadKind::Key), (2, PayloadKind::None), (3, PayloadKind::Data)] {
        let payload = if kind == PayloadKind::None { &[][..] } else { &sample[..] };
        participant.on_frame(Time(0), &data(number, &filtered, kind, payload), &mut sink);
    }
    for fragment in [2, 1] {
        participant.on_frame(Time(0), &part(4, fragment, true, &filtered, &sample), &mut sink);
    }
    let ends = with(StatusInfo::FILTERED.with(StatusInfo::DISPOSED));
    participant.on_frame(Time(0), &data(5, &ends, PayloadKind::Key, &sample), &mut sink);
    let got: Vec<_> = sink.0.iter().map(|change| (change.sequence_number.0, change.kind)).collect();
    assert_eq!(got, [(5, ChangeKind::NotAliveDisposed)]);
}
