//! Samples larger than a datagram.

use taut_base::{Duration, EntityId, GuidPrefix, SequenceNumber, Timestamp};
use taut_dcps::InstanceState;
use taut_mem::Bytes;
use taut_port::Traffic;
use taut_qos::Qos;
use taut_sim::{Content, Faults, NodeOptions, Pair, Taken, user_locator};
use taut_wire::{
    DataFragHeader, Endian, InlineQos, StatusInfo, write_info_dst, write_info_ts, write_message_header,
};

#[test]
fn large_samples_arrive_whole_under_loss() {
    for (size, loss) in [(65_536, 0), (65_536, 300), (1 << 20, 200), (4 << 20, 100), (16 << 20, 50)] {
        for seed in 0..2 {
            let faults = Faults { loss, duplicate: 50, reorder: 50, ..Faults::default() };
            let mut pair = Pair::new(seed).with_faults(faults);
            pair.reader(Qos::default().reliable().keep_all());
            pair.writer(Qos::default().reliable().keep_all());
            pair.run_until_matched();
            for extra in 0..3 {
                // A window of 16 MiB lets the next one in once this one is acknowledged.
                while pair.write(1, size + extra).is_err() {
                    pair.run_for(Duration::from_millis(50));
                    assert!(pair.network.now().0 < 60_000_000_000, "the window opens");
                }
            }
            pair.run_for(Duration::from_secs(20));
            assert_eq!(pair.take_numbers(), [1, 2, 3], "{size} B, loss {loss}, seed {seed}");
        }
    }
}

/// The network asserts that no datagram of samples is larger than the path.
#[test]
fn fragments_are_as_large_as_the_path_takes() {
    for (path_size, seed) in [(1_472, 0), (8_972, 1), (640, 2)] {
        let narrow = NodeOptions { path_size, ..NodeOptions::default() };
        let mut pair = Pair::with_options(seed, narrow, NodeOptions::default()).with_loss(0.05);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        let sizes = [40, path_size - 200, path_size - 120, path_size, 4 * path_size, 300_000];
        for size in sizes {
            pair.write(1, size as u32).unwrap();
        }
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.take_numbers(), (1..=6).collect::<Vec<_>>(), "path of {path_size}");
    }
}

/// What was written before anybody read is cut for the path of the first reader.
#[test]
fn history_is_cut_for_the_path_too() {
    let narrow = NodeOptions { path_size: 1_472, ..NodeOptions::default() };
    let mut pair = Pair::with_options(3, narrow, NodeOptions::default()).with_loss(0.05);
    let qos = Qos::default().reliable().keep_all().transient_local();
    pair.writer(qos.clone());
    for _ in 0..10 {
        pair.write(1, 50_000).unwrap();
    }
    pair.reader(qos);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.take_numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn small_and_large_samples_keep_their_order() {
    for seed in 0..10 {
        let mut pair = Pair::new(seed).with_loss(0.2);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        for n in 0..60 {
            pair.write(1, if n % 3 == 0 { 200_000 } else { 50 }).unwrap();
        }
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.take_numbers(), (1..=60).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_late_joiner_gets_large_history() {
    let qos = Qos::default().reliable().keep_all().transient_local();
    let mut pair = Pair::new(8).with_loss(0.1);
    pair.writer(qos.clone());
    for _ in 0..40 {
        pair.write(1, 150_000).unwrap();
    }
    pair.reader(qos);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.take_numbers(), (1..=40).collect::<Vec<_>>());
}

#[test]
fn best_effort_loses_whole_samples_only() {
    let mut pair = Pair::new(9).with_loss(0.05);
    pair.reader(Qos::default().best_effort().keep_all());
    pair.writer(Qos::default().best_effort());
    pair.run_until_matched();
    for _ in 0..100 {
        pair.write(1, 200_000).unwrap();
        pair.run_for(Duration::from_millis(5));
    }
    let got = pair.take_numbers();
    assert!(got.is_sorted() && (50..100).contains(&got.len()), "{got:?}");
}

/// Somebody sends the reader's side a first fragment, of ten, of a change that the writer then sends in one piece or in
/// two, and that is lost.
#[test]
fn fragments_that_a_change_does_not_have_are_asked_for_in_vain_only_once() {
    for size in [100, 100_000] {
        let mut pair = Pair::new(10);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(Duration::from_secs(1));
        let mut forged = Vec::new();
        write_message_header(&mut forged, pair.network.prefix(Pair::WRITER));
        write_info_dst(&mut forged, Endian::Little, GuidPrefix::UNKNOWN);
        let header = DataFragHeader {
            reader_id: EntityId::UNKNOWN,
            writer_id: pair.writers[0].guid.entity,
            writer_sn: SequenceNumber(2),
            fragment_starting_num: 1,
            fragments_in_submessage: 4,
            fragment_size: 1_000,
            sample_size: 10_000,
            key: false,
        };
        header.write(&mut forged, Endian::Little, &[], 4_000);
        forged.extend_from_slice(&[0; 4_000]);
        pair.network.inject(Pair::READER, Traffic::User, user_locator(Pair::WRITER), Bytes::from(forged));
        pair.run_for(Duration::from_millis(1));
        pair.network.cut(Pair::WRITER, Pair::READER);
        pair.write(1, size).unwrap();
        pair.mend();
        pair.run_for(Duration::from_secs(5));
        pair.write(1, 10).unwrap();
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.take_numbers(), [1, 2, 3], "{size} B");
    }
}

/// Cyclone DDS tells when a change was written, and what it does, with its first fragment only.
#[test]
fn what_the_first_fragment_says_holds_though_it_comes_late() {
    let stamp = Timestamp { seconds: 1_000, fraction: 0 };
    for order in [[1, 2], [2, 1]] {
        let mut pair = Pair::new(11);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.take_numbers(), [1]);
        let payload = Content { key: 1, tag: 1, number: 2, filler: 1_000 }.encode();
        for number in order {
            let mut datagram = Vec::new();
            write_message_header(&mut datagram, pair.network.prefix(Pair::WRITER));
            let mut inline = Vec::new();
            if number == 1 {
                write_info_ts(&mut datagram, Endian::Little, Some(stamp));
                let status_info = StatusInfo::DISPOSED;
                InlineQos { status_info, ..InlineQos::default() }.write(&mut inline, Endian::Little);
            }
            let header = DataFragHeader {
                reader_id: EntityId::UNKNOWN,
                writer_id: pair.writers[0].guid.entity,
                writer_sn: SequenceNumber(2),
                fragment_starting_num: number,
                fragments_in_submessage: 1,
                fragment_size: 600,
                sample_size: payload.len() as u32,
                key: false,
            };
            let part = payload.chunks(600).nth(number as usize - 1).unwrap();
            header.write(&mut datagram, Endian::Little, &inline, part.len());
            datagram.extend_from_slice(part);
            pair.network.inject(
                Pair::READER,
                Traffic::User,
                user_locator(Pair::WRITER),
                Bytes::from(datagram),
            );
            pair.run_for(Duration::from_millis(1));
        }
        let taken = pair.take();
        let number =
            |taken: &Taken| taken.content.filter(|_| taken.info.valid_data).map(|content| content.number);
        let said = |taken: &Taken| (number(taken), taken.state(), taken.info.source_timestamp);
        let said: Vec<_> = taken.iter().map(said).collect();
        // The data, and the end that comes with them.
        let expected = [Some(2), None].map(|number| (number, InstanceState::NotAliveDisposed, Some(stamp)));
        assert_eq!(said, expected, "{order:?}");
    }
}
