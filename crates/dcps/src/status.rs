//! The communication statuses: counters and what was last seen. DCPS 1.4 §2.2.4.1, table 2.12.
//! Plain values; the entities count, the public API hands out copies.

use std::fmt;
use std::ops::BitOr;

use taut_base::{Guid, InstanceHandle};
use taut_qos::{Incompatibility, PolicyId};

macro_rules! status_kinds {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl StatusMask {
            $($(#[$doc])* pub const $name: StatusMask = StatusMask(1 << $bit);)*

            /// All that have a name, with it.
            const NAMES: &[(StatusMask, &str)] = &[$((StatusMask::$name, stringify!($name)),)*];
        }
    };
}

/// A set of kinds of statuses; one kind is the set of one. *Source*: DCPS 1.4 §2.3.3, StatusKind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusMask(pub u32);

/// By the names of the kinds: `SAMPLE_LOST | DATA_AVAILABLE`.
impl fmt::Debug for StatusMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StatusMask::NONE => return f.write_str("NONE"),
            StatusMask::ALL => return f.write_str("ALL"),
            _ => {}
        }
        let (mut rest, mut between) = (self.0, "");
        for (kind, name) in StatusMask::NAMES.iter().filter(|(kind, _)| self.intersects(*kind)) {
            write!(f, "{between}{name}")?;
            (rest, between) = (rest & !kind.0, " | ");
        }
        if rest == 0 { Ok(()) } else { write!(f, "{between}{rest:#x}") }
    }
}

/// One kind of status: a [`StatusMask`] with one bit.
pub type StatusKind = StatusMask;

status_kinds! {
    /// A topic of this name with another type exists.
    INCONSISTENT_TOPIC = 0;
    /// A writer missed its promised deadline.
    OFFERED_DEADLINE_MISSED = 1;
    /// A reader missed a sample within its deadline.
    REQUESTED_DEADLINE_MISSED = 2;
    /// A reader asks for more than this writer offers.
    OFFERED_INCOMPATIBLE_QOS = 5;
    /// A writer offers less than this reader asks for.
    REQUESTED_INCOMPATIBLE_QOS = 6;
    /// A sample was lost on its way.
    SAMPLE_LOST = 7;
    /// A sample was refused for a limit.
    SAMPLE_REJECTED = 8;
    /// A subscriber has new data: DCPS's name, which no listener is told of.
    DATA_ON_READERS = 9;
    /// A reader has new data.
    DATA_AVAILABLE = 10;
    /// A writer missed its promise to be alive.
    LIVELINESS_LOST = 11;
    /// Writers of a reader came to life or went silent.
    LIVELINESS_CHANGED = 12;
    /// A writer found or lost a reader.
    PUBLICATION_MATCHED = 13;
    /// A reader found or lost a writer.
    SUBSCRIPTION_MATCHED = 14;
    /// A write gave up waiting for a reader. Not of the standard, whose kinds end at 14.
    SLOW_READER = 24;
}

impl StatusMask {
    /// No kind.
    pub const NONE: StatusMask = StatusMask(0);
    /// All kinds.
    pub const ALL: StatusMask = StatusMask(u32::MAX);

    /// Are all kinds of `other` in the set?
    pub fn contains(self, other: StatusMask) -> bool {
        self.0 & other.0 == other.0
    }

    /// Have the sets a kind in common?
    pub fn intersects(self, other: StatusMask) -> bool {
        self.0 & other.0 != 0
    }

    /// The set without the kinds of `other`.
    #[must_use]
    pub fn without(self, other: StatusMask) -> StatusMask {
        StatusMask(self.0 & !other.0)
    }
}

impl BitOr for StatusMask {
    type Output = StatusMask;
    fn bitor(self, other: StatusMask) -> StatusMask {
        StatusMask(self.0 | other.0)
    }
}

/// Declares statuses that are plain counters: `count` adds one to each of the named pairs, `take` hands out
/// a copy and sets the changes to 0, as reading a status does (DCPS 1.4 §2.2.4.1).
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident [$($change:ident),*] { $($(#[$fdoc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $name { $($(#[$fdoc])* pub $field: $kind,)* }

        impl $name {
            /// A copy; the changes count from 0 again.
            pub fn take(&mut self) -> $name {
                let copy = self.clone();
                $(self.$change = 0;)*
                copy
            }
        }
    )*};
}

statuses! {
    /// How many topics of the same name and another type were seen.
    InconsistentTopicStatus [total_count_change] {
        /// Since the topic was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
    }
    /// How many samples were lost on their way.
    SampleLostStatus [total_count_change] {
        /// Since the reader was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
    }
    /// How many writes gave up after `max_blocking_time`, as readers had not made room.
    SlowReaderStatus [total_count_change] {
        /// Since the writer was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// The reader that was furthest behind at the last one.
        last_subscription_handle: InstanceHandle,
    }
    /// How many samples were refused for a limit.
    SampleRejectedStatus [total_count_change] {
        /// Since the reader was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// The limit of the last one.
        last_reason: SampleRejectedReason,
        /// The instance of the last one.
        last_instance_handle: InstanceHandle,
    }
    /// How often a writer did not say in time that it is alive.
    LivelinessLostStatus [total_count_change] {
        /// Since the writer was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
    }
    /// How many matched writers are alive.
    LivelinessChangedStatus [alive_count_change, not_alive_count_change] {
        /// Alive now.
        alive_count: u32,
        /// Matched and silent now.
        not_alive_count: u32,
        /// Change of the first since the status was read.
        alive_count_change: i32,
        /// Change of the second since the status was read.
        not_alive_count_change: i32,
        /// The writer of the last change.
        last_publication_handle: InstanceHandle,
    }
    /// How often a writer did not write an instance within its deadline.
    OfferedDeadlineMissedStatus [total_count_change] {
        /// Since the writer was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// The instance of the last one.
        last_instance_handle: InstanceHandle,
    }
    /// How often an instance had no sample within the reader's deadline.
    RequestedDeadlineMissedStatus [total_count_change] {
        /// Since the reader was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// The instance of the last one.
        last_instance_handle: InstanceHandle,
    }
    /// The readers a writer has met.
    PublicationMatchedStatus [total_count_change, current_count_change] {
        /// Since the writer was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// Matched now.
        current_count: u32,
        /// Change of that since the status was read.
        current_count_change: i32,
        /// The reader of the last change.
        last_subscription_handle: InstanceHandle,
    }
    /// The writers a reader has met.
    SubscriptionMatchedStatus [total_count_change, current_count_change] {
        /// Since the reader was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// Matched now.
        current_count: u32,
        /// Change of that since the status was read.
        current_count_change: i32,
        /// The writer of the last change.
        last_publication_handle: InstanceHandle,
    }
    /// Readers and writers of one topic that could not meet. A writer calls it
    /// [`OfferedIncompatibleQosStatus`], a reader [`RequestedIncompatibleQosStatus`].
    IncompatibleQosStatus [total_count_change] {
        /// Since the entity was made.
        total_count: u32,
        /// Since the status was read.
        total_count_change: i32,
        /// One policy of the last one.
        last_policy_id: PolicyId,
        /// How often each policy was in the way.
        policies: Vec<QosPolicyCount>,
        /// All policies of the last one with both values.
        last: Vec<Incompatibility>,
        /// The other side of the last one.
        last_remote: Guid,
    }
}

/// Readers that ask for more than a writer offers.
pub type OfferedIncompatibleQosStatus = IncompatibleQosStatus;
/// Writers that offer less than a reader asks for.
pub type RequestedIncompatibleQosStatus = IncompatibleQosStatus;

/// How often one policy was in the way. *Source*: DCPS 1.4 §2.2.4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QosPolicyCount {
    /// The policy.
    pub policy_id: PolicyId,
    /// How often.
    pub count: u32,
}

/// Why a reader refused a sample. *Source*: DCPS 1.4 §2.2.4.1, SampleRejectedStatusKind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SampleRejectedReason {
    /// It did not.
    #[default]
    NotRejected,
    /// RESOURCE_LIMITS max_instances, or the memory for instances.
    RejectedByInstancesLimit,
    /// RESOURCE_LIMITS max_samples, or the memory for samples.
    RejectedBySamplesLimit,
    /// RESOURCE_LIMITS max_samples_per_instance.
    RejectedBySamplesPerInstanceLimit,
}

impl IncompatibleQosStatus {
    /// Counts one endpoint that could not be met. Nothing if `why` is empty.
    pub fn count(&mut self, remote: Guid, why: Vec<Incompatibility>) {
        let Some(first) = why.first() else { return };
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
        self.last_policy_id = first.policy;
        self.last_remote = remote;
        for found in &why {
            match self.policies.iter_mut().find(|known| known.policy_id == found.policy) {
                Some(known) => known.count = known.count.saturating_add(1),
                None => self.policies.push(QosPolicyCount { policy_id: found.policy, count: 1 }),
            }
        }
        self.last = why;
    }
}

impl SampleRejectedStatus {
    /// Counts one sample that was refused.
    pub fn count(&mut self, reason: SampleRejectedReason, instance: InstanceHandle) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
        self.last_reason = reason;
        self.last_instance_handle = instance;
    }
}

impl SampleLostStatus {
    /// Counts lost samples.
    pub fn count(&mut self, lost: u64) {
        let lost = i32::try_from(lost).unwrap_or(i32::MAX);
        self.total_count = self.total_count.saturating_add(lost.unsigned_abs());
        self.total_count_change = self.total_count_change.saturating_add(lost);
    }
}

impl SlowReaderStatus {
    /// Counts one write that gave up on a reader.
    pub fn count(&mut self, reader: Guid) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
        self.last_subscription_handle = reader.into();
    }
}

impl LivelinessChangedStatus {
    /// Counts writers that became alive or silent; negative ones are fewer.
    pub fn count(&mut self, writer: Guid, alive: i32, not_alive: i32) {
        self.alive_count = self.alive_count.saturating_add_signed(alive);
        self.alive_count_change = self.alive_count_change.saturating_add(alive);
        self.not_alive_count = self.not_alive_count.saturating_add_signed(not_alive);
        self.not_alive_count_change = self.not_alive_count_change.saturating_add(not_alive);
        self.last_publication_handle = writer.into();
    }
}

/// Writes `count` for statuses that count single events.
macro_rules! single_events {
    ($($name:ident),*) => {$(
        impl $name {
            /// Counts one.
            pub fn count(&mut self) {
                self.total_count = self.total_count.saturating_add(1);
                self.total_count_change = self.total_count_change.saturating_add(1);
            }
        }
    )*};
}
single_events!(LivelinessLostStatus, InconsistentTopicStatus);

/// Writes `matched` and `unmatched` for the two statuses that are mirror images.
macro_rules! matching {
    ($name:ident, $last:ident) => {
        impl $name {
            /// Counts an endpoint that was found.
            pub fn matched(&mut self, remote: Guid) {
                self.total_count = self.total_count.saturating_add(1);
                self.total_count_change = self.total_count_change.saturating_add(1);
                self.current_count = self.current_count.saturating_add(1);
                self.current_count_change = self.current_count_change.saturating_add(1);
                self.$last = remote.into();
            }

            /// Counts an endpoint that has gone.
            pub fn unmatched(&mut self, remote: Guid) {
                self.current_count = self.current_count.saturating_sub(1);
                self.current_count_change = self.current_count_change.saturating_sub(1);
                self.$last = remote.into();
            }
        }
    };
}
matching!(PublicationMatchedStatus, last_subscription_handle);
matching!(SubscriptionMatchedStatus, last_publication_handle);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_shown_by_its_names() {
        let shown = |mask: StatusMask| format!("{mask:?}");
        assert_eq!(
            shown(StatusMask::SAMPLE_LOST | StatusMask::DATA_AVAILABLE),
            "SAMPLE_LOST | DATA_AVAILABLE"
        );
        assert_eq!(shown(StatusMask(1 << 30) | StatusMask::SLOW_READER), "SLOW_READER | 0x40000000");
        assert_eq!([StatusMask::NONE, StatusMask::ALL].map(shown), ["NONE", "ALL"]);
    }

    #[test]
    fn reading_a_status_resets_its_changes_only() {
        let mut status = SubscriptionMatchedStatus::default();
        status.matched(Guid::UNKNOWN);
        status.matched(Guid::UNKNOWN);
        status.unmatched(Guid::UNKNOWN);
        let first = status.take();
        assert_eq!((first.total_count, first.total_count_change), (2, 2));
        assert_eq!((first.current_count, first.current_count_change), (1, 1));
        let second = status.take();
        assert_eq!((second.total_count, second.total_count_change, second.current_count_change), (2, 0, 0));
    }

    #[test]
    fn incompatible_qos_counts_by_policy() {
        let why = |policies: &[PolicyId]| {
            let (offered, requested) = ("a".to_string(), "b".to_string());
            let one = |policy: &PolicyId| Incompatibility {
                policy: *policy,
                offered: offered.clone(),
                requested: requested.clone(),
            };
            policies.iter().map(one).collect::<Vec<_>>()
        };
        let mut status = IncompatibleQosStatus::default();
        status.count(Guid::UNKNOWN, why(&[PolicyId::DURABILITY, PolicyId::RELIABILITY]));
        status.count(Guid::UNKNOWN, why(&[PolicyId::RELIABILITY]));
        status.count(Guid::UNKNOWN, why(&[]));
        assert_eq!((status.total_count, status.last_policy_id), (2, PolicyId::RELIABILITY));
        let counts: Vec<_> = status.policies.iter().map(|p| (p.policy_id, p.count)).collect();
        assert_eq!(counts, [(PolicyId::DURABILITY, 1), (PolicyId::RELIABILITY, 2)]);
        assert_eq!(status.last.len(), 1);
    }

    #[test]
    fn masks() {
        let both = StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST;
        assert!(both.contains(StatusMask::SAMPLE_LOST) && !both.contains(StatusMask::ALL));
        assert!(both.intersects(StatusMask::ALL));
        assert_eq!(both.without(StatusMask::SAMPLE_LOST).0, 1 << 10);
    }
}
