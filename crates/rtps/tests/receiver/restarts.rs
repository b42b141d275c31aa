//! Who is taken for one that has started again: by its heartbeats, or because it says that it is another process.

use taut_base::{Duration, EntityId, GuidPrefix, ProtocolVersion, SequenceNumber, Time};
use taut_port::Frame;
use taut_qos::ReliabilityKind;
use taut_rtps::{Event, Participant, limits};
use taut_wire::{Endian, Heartbeat, InfoSource};

use crate::common::{
    Announcement, FOREIGN, Nowhere, OTHER, announcement, events, frame, heartbeat, message, participant,
    publication, reader_of,
};

fn times_lost(participant: &mut Participant) -> usize {
    let lost = |event: &Event| matches!(event, Event::ParticipantLost { .. });
    events(participant).filter(lost).count()
}

#[test]
fn what_the_network_holds_back_or_repeats_is_not_of_one_that_has_started_again() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    (1..=5).for_each(|n| {
        participant.on_frame(Time(0), &publication(n, n as u32, "Square", |_| {}), &mut Nowhere);
        participant.on_frame(Time(0), &heartbeat(n as i32, n), &mut Nowhere);
    });
    for n in 0..100 {
        let now = Time(0) + Duration(n * limits::RESTART_AFTER.0 / 4);
        // What is old comes again and again, and now and then what is new.
        participant.on_frame(now, &heartbeat(1 + n as i32 % 4, 1 + n % 4), &mut Nowhere);
        if n % 4 == 3 {
            participant.on_frame(now, &heartbeat(6 + n as i32, 5), &mut Nowhere);
        }
    }
    // Later a heartbeat comes behind a change that was sent after it.
    let late = Time(0) + limits::RESTART_AFTER.times(200);
    participant.on_frame(late, &heartbeat(1, 1), &mut Nowhere);
    participant.on_frame(late + limits::RESTART_AFTER, &publication(6, 6, "Square", |_| {}), &mut Nowhere);
    participant.on_frame(late + limits::RESTART_AFTER, &heartbeat(500, 4), &mut Nowhere);
    assert_eq!(times_lost(&mut participant), 0);
    assert_eq!(participant.database().endpoints().count(), 6);
}

#[test]
fn who_pretends_to_start_again_and_again_is_believed_now_and_then() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    let publication = publication(1, 1, "Square", |_| {});
    for millis in 0..10_000 {
        let now = Time(0) + Duration::from_millis(millis);
        participant.on_frame(now, &publication, &mut Nowhere);
        participant.on_frame(now, &heartbeat(0, 0), &mut Nowhere);
    }
    let lost = times_lost(&mut participant);
    assert!((5..=10).contains(&lost), "{lost}");
    assert_eq!(participant.database().peers().count(), 1);
}

/// Each that is forgotten takes a step of its own with all that it has.
#[test]
fn a_message_begins_no_more_lives_than_a_step_takes() {
    const TOLD: u8 = 20;
    let mut participant = participant();
    let prefixes = || (100..100 + TOLD).map(|n| GuidPrefix([n; 12]));
    for source in prefixes() {
        let announced = Announcement { source, ..Announcement::of(OTHER) }.frame();
        participant.on_frame(Time(0), &announced, &mut Nowhere);
    }
    let all_say = |first: i64, last: i64, count| {
        let mut said = message();
        for prefix in prefixes() {
            let info = InfoSource { version: ProtocolVersion::RTPS_2_5, vendor: FOREIGN, prefix };
            info.write(&mut said, Endian::Little);
            let heartbeat = Heartbeat {
                reader_id: EntityId::UNKNOWN,
                writer_id: EntityId::SEDP_PUBLICATIONS_WRITER,
                first_sn: SequenceNumber(first),
                last_sn: SequenceNumber(last),
                count,
                final_flag: true,
                liveliness_flag: false,
                group_info: None,
            };
            heartbeat.write(&mut said, Endian::Little);
        }
        frame(said)
    };
    participant.on_frame(Time(0), &all_say(6, 5, 1), &mut Nowhere);
    // They have written less than before, and say nothing else.
    participant.on_frame(Time(0), &all_say(1, 0, 1), &mut Nowhere);
    assert_eq!(times_lost(&mut participant), 0);
    participant.on_frame(Time(0) + limits::RESTART_AFTER, &all_say(1, 0, 2), &mut Nowhere);
    let most = limits::MESSAGE_ANNOUNCEMENTS as usize;
    assert_eq!(times_lost(&mut participant), most);
    assert_eq!(participant.counters().too_many_participants, u64::from(TOLD) - most as u64);
}

/// The properties by which a participant says which process it is of.
const OF_PROCESS: [&str; 2] = ["PID_PERSISTENCE_GUID", "fastdds.physical_data.process"];

/// The other participant announces itself and says by these which process it is of.
fn announcement_of(properties: &[(&str, String)]) -> Frame {
    Announcement { properties, ..Announcement::of(OTHER) }.frame()
}

#[test]
fn who_says_that_it_is_another_process_has_started_again() {
    for name in OF_PROCESS {
        let mut participant = participant();
        let of = |process: u8| announcement_of(&[(name, process.to_string()), ("a", "b".into())]);
        participant.on_frame(Time(0), &of(1), &mut Nowhere);
        participant.on_frame(Time(0), &publication(1, 1, "Square", |_| {}), &mut Nowhere);
        participant.on_frame(Time(0), &heartbeat(1, 1), &mut Nowhere);
        let late = Time(1) + limits::RESTART_AFTER;
        // What the earlier one has said comes behind it, and says nothing.
        for (now, processes, lost) in [(Time(1), &[2, 1][..], 1), (late, &[2], 0)] {
            processes.iter().for_each(|process| participant.on_frame(now, &of(*process), &mut Nowhere));
            // It has as many writers as the earlier one, and has sent no more.
            participant.on_frame(now, &publication(1, 2, "Circle", |_| {}), &mut Nowhere);
            participant.on_frame(now, &heartbeat(1, 1), &mut Nowhere);
            assert_eq!(times_lost(&mut participant), lost, "{name}");
            let topics: Vec<_> = participant.database().endpoints().map(|e| e.topic_name.clone()).collect();
            assert_eq!(topics, ["Circle"], "{name}");
        }
    }
}

#[test]
fn who_says_again_and_again_that_it_is_another_process_is_believed_now_and_then() {
    let mut participant = participant();
    for millis in 0..10_000 {
        let announced = announcement_of(&[(OF_PROCESS[1], (millis % 2).to_string())]);
        participant.on_frame(Time(0) + Duration::from_millis(millis), &announced, &mut Nowhere);
    }
    let lost = times_lost(&mut participant);
    assert!((5..=10).contains(&lost), "{lost}");
    // Who says nothing of it may well be the same.
    let now = Time(0) + Duration::from_secs(20);
    [announcement(), announcement_of(&[(OF_PROCESS[0], "1".into())])]
        .iter()
        .for_each(|frame| participant.on_frame(now, frame, &mut Nowhere));
    assert_eq!(times_lost(&mut participant), 0);
}

/// What is matched with it is forgotten in several steps, and meanwhile others go on talking.
#[test]
fn who_says_that_it_is_another_process_is_believed_no_more_often_if_it_is_matched() {
    let mut participant = participant();
    let reader = reader_of(&mut participant, "Square", ReliabilityKind::Reliable);
    let of = |process: i64| announcement_of(&[(OF_PROCESS[1], process.to_string())]);
    let mut lives = Vec::new();
    for millis in 0..10_000 {
        let now = Time(0) + Duration::from_millis(millis);
        // Each 1.1 s another process takes the name, and for a while what the one before has said still comes.
        let (life, since) = (millis / 1_100, millis % 1_100);
        let late = if since < 500 { life.min(1) } else { 0 };
        for process in (life - late..=life).rev() {
            participant.on_frame(now, &of(process), &mut Nowhere);
            participant.on_frame(now, &publication(1, 1, "Square", |_| {}), &mut Nowhere);
        }
        participant.on_timeout(now, usize::MAX);
        let said = participant.database().peers().map(|peer| peer.data.properties[0].1.clone());
        lives.extend(said.filter(|said| lives.last() != Some(said)).collect::<Vec<_>>());
    }
    assert_eq!(participant.reader(reader).unwrap().proxies.len(), 1, "it is matched");
    let lost = times_lost(&mut participant);
    assert!((5..=9).contains(&lost), "{lost}: {lives:?}");
    assert!(lives.is_sorted(), "{lives:?}");
}
