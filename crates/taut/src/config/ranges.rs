//! What settings take, by the file, by the environment or by the program itself.
//!
//! Owns the ranges, and no text of them: that is the table's, in `settings`.

use taut_base::Duration;
use taut_qos::{MAX_NAME, MAX_OPAQUE_DATA};

use super::{Config, MAX_ANATOMY};

/// Is this what a setting takes? For what a program may set as well.
type InRange = fn(&Config) -> bool;

/// The settings that neither the core nor the kernel would refuse, and would make something else of.
pub(super) const RANGES: [(&str, InRange); 14] = [
    ("name", |config| is_name(&config.name)),
    ("user_data", |config| is_user_data(&config.user_data)),
    ("prefault", |config| is_prefault(&config.prefault)),
    ("lease_duration", |config| is_lease(&config.lease_duration)),
    ("announcement_period", |config| is_period(&config.announcement_period)),
    ("spin", |config| is_spin(&config.spin)),
    ("wake_ahead", |config| is_wake_ahead(&config.wake_ahead)),
    ("receive_buffer", |config| is_receive_buffer(&config.receive_buffer)),
    ("max_rate", |config| is_rate(&config.max_rate)),
    ("max_burst", |config| is_burst(&config.max_burst)),
    ("anatomy", |config| is_anatomy(&config.anatomy)),
    ("xdp_pcp", |config| config.xdp_pcp.is_none_or(|priority| is_pcp(&priority))),
    ("dpdk_vlan", |config| config.dpdk_vlan.is_none_or(|vlan| is_vlan(&vlan))),
    ("dpdk_priority_pcp", |config| config.dpdk_priority_pcp.iter().all(|of| is_by_priority(of, LARGEST_PCP))),
];

/// Peers do not hear an announcement with a longer name, and read one up to a NUL.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && !text.contains('\0')
}

/// More does not fit into the datagram of an announcement.
pub(super) fn is_user_data(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_OPAQUE_DATA
}

pub(super) fn is_prefault(bytes: &usize) -> bool {
    *bytes <= 1 << 30
}

/// The shortest time between two announcements. Lower lets one participant flood the group that all of a domain listen to,
/// higher refuses a lease of some 30 ms to who wants to miss a peer at once.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// Of a lease that is shorter a third, which is announced by then, would be less than that.
pub(super) fn is_lease(lease: &Duration) -> bool {
    *lease >= SHORTEST_PERIOD.times(3)
}

pub(super) fn is_period(period: &Duration) -> bool {
    *period >= SHORTEST_PERIOD
}

/// The longest look before a wait sleeps. Lower refuses it to who waits for what comes so seldom, higher takes a processor from
/// others for nothing: who wants to have one for itself polls.
const LONGEST_SPIN: Duration = Duration::from_secs(1);

pub(super) fn is_spin(spin: &Duration) -> bool {
    (Duration::ZERO..=LONGEST_SPIN).contains(spin)
}

/// The longest look for a sample that is expected. Lower refuses it to who has a jitter of milliseconds, higher takes a processor
/// that a look without end would take, too.
const LONGEST_AHEAD: Duration = Duration::from_millis(10);

pub(super) fn is_wake_ahead(ahead: &Duration) -> bool {
    (Duration::ZERO..=LONGEST_AHEAD).contains(ahead)
}

pub(super) fn is_receive_buffer(bytes: &usize) -> bool {
    (4_096..=1 << 30).contains(bytes)
}

pub(super) fn is_rate(bytes: &u64) -> bool {
    *bytes == 0 || *bytes >= 1_000
}

pub(super) fn is_burst(bytes: &u64) -> bool {
    (1..=1 << 30).contains(bytes)
}

pub(super) fn is_anatomy(samples: &usize) -> bool {
    *samples <= MAX_ANATOMY
}

/// IEEE 802.1Q has three bits for it.
pub(super) const LARGEST_PCP: u8 = 7;
/// RFC 2474 has six.
pub(super) const LARGEST_DSCP: u8 = 63;

pub(super) fn is_pcp(priority: &u8) -> bool {
    *priority <= LARGEST_PCP
}

/// 0 names no network, and 4,095 is kept free (IEEE 802.1Q, table 9-2).
pub(super) fn is_vlan(vlan: &u16) -> bool {
    (1..=4_094).contains(vlan)
}

pub(super) fn is_by_priority((from, number): &(i32, u8), largest: u8) -> bool {
    *from >= 1 && *number <= largest
}
