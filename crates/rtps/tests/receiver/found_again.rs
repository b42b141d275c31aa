//! Participants that were lost with their leases, and are heard again before they announce themselves.

use taut_base::{Duration, EntityId, Guid, Time};
use taut_port::Frame;
use taut_rtps::discovery::ParticipantData;
use taut_rtps::{Participant, limits};
use taut_wire::{InlineQos, PayloadKind, StatusInfo};

use crate::common::{
    Announcement, Nowhere, OTHER, announcement, frame, heartbeat, inline, message, participant, put_data,
};

/// Knows the other one, which has answered if that `answers`, and then loses it.
fn loser(answers: bool) -> (Participant, Time) {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    if answers {
        participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    }
    let mut now = Time(0) + ParticipantData::default().lease_duration;
    assert!(knows(&mut participant, Time(now.0 - 1)));
    if knows(&mut participant, now) {
        now = now + limits::SILENT_LEASE;
    }
    assert!(!knows(&mut participant, now));
    (participant, now)
}

fn knows(participant: &mut Participant, now: Time) -> bool {
    participant.on_timeout(now, usize::MAX);
    participant.database().peer(OTHER).is_some()
}

/// Says something that is no announcement. Is it found by that?
fn is_found_at(participant: &mut Participant, now: Time) -> bool {
    participant.on_frame(now, &heartbeat(2, 0), &mut Nowhere);
    participant.database().peer(OTHER).is_some()
}

/// The same of one that goes on to.
fn is_found(participant: &mut Participant, now: Time) -> bool {
    let patience = limits::LOST_PATIENCE;
    assert!(!is_found_at(participant, now) && !is_found_at(participant, Time(now.0 + patience.0 - 1)));
    is_found_at(participant, now + patience)
}

/// The other one says that it leaves.
fn end() -> Frame {
    let mut end = message();
    let said = InlineQos { status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
    let mut key = vec![0, 3, 0, 0, 0x50, 0, 16, 0];
    key.extend(Guid::new(OTHER, EntityId::PARTICIPANT).to_bytes());
    key.extend([1, 0, 0, 0]);
    put_data(&mut end, EntityId::SPDP_WRITER, 2, &inline(&said, &[]), PayloadKind::Key, &key);
    frame(end)
}

#[test]
fn who_was_lost_is_found_by_whatever_it_says() {
    let (mut participant, now) = loser(true);
    assert!(is_found(&mut participant, now), "if it goes on to");
    let now = now + limits::LOST_PATIENCE;
    let peer = participant.database().peer(OTHER).unwrap();
    assert_eq!(peer.data.lease_duration, Announcement::of(OTHER).lease, "it is as it had said");
    // It has answered nothing since: that may have been somebody else.
    let later = now + ParticipantData::default().lease_duration;
    assert!(!knows(&mut participant, later) && !is_found(&mut participant, later));
}

#[test]
fn who_was_lost_long_ago_is_not() {
    let (mut participant, now) = loser(true);
    let kept = limits::GONE_KEPT;
    assert!(!is_found_at(&mut participant, now) && !is_found_at(&mut participant, now + kept));
}

/// There may be none.
#[test]
fn who_has_never_answered_is_not() {
    let (mut participant, now) = loser(false);
    assert!(!is_found(&mut participant, now));
}

#[test]
fn who_says_that_it_leaves_is_not_found_by_that_or_by_what_comes_late() {
    let (mut participant, now) = loser(true);
    participant.on_frame(now, &end(), &mut Nowhere);
    assert!(participant.database().peer(OTHER).is_none() && !is_found(&mut participant, now));
}

/// It was sent before that, and came by another socket.
#[test]
fn what_comes_behind_the_end_was_said_before_it() {
    let known = |participant: &mut Participant, now, said: &Announcement<'_>| {
        participant.on_frame(now, &said.frame(), &mut Nowhere);
        participant.database().peer(OTHER).is_some()
    };
    let said = Announcement::of(OTHER);
    let another = || Announcement { lease: Duration::from_secs(7), ..Announcement::of(OTHER) };
    for (after, with, is_believed) in [
        (Duration::ZERO, &said, false),
        (Duration(limits::RESTART_AFTER.0 - 1), &said, false),
        (limits::RESTART_AFTER, &said, true),
        (Duration::ZERO, &another(), true),
    ] {
        let mut participant = participant();
        assert!(known(&mut participant, Time(0), &said));
        participant.on_frame(Time(0), &end(), &mut Nowhere);
        assert!(participant.database().peer(OTHER).is_none());
        assert_eq!(known(&mut participant, Time(0) + after, with), is_believed, "{after} {}", with.lease);
        assert_eq!(participant.counters().late_announcements, u64::from(!is_believed));
    }
}

#[test]
fn whose_process_has_ended_is_not() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    participant.forget_participant(Time(1), OTHER);
    participant.on_timeout(Time(1), usize::MAX);
    assert!(!is_found(&mut participant, Time(1)));
}
