//! The short way to a QoS: methods that each set one policy and hand the value on.
//!
//! The methods have one home, a macro, and act alike on [`DataWriterQos`], [`DataReaderQos`],
//! [`TopicQos`] and on [`Qos`], which is all of them at once. Called by applications only.

use taut_base::Duration;

use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::policy::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, History, Liveliness,
    LivelinessKind, OwnershipKind, Presentation, ReaderDataLifecycle, Reliability, ReliabilityKind,
    ResourceLimits, TypeConsistencyEnforcement,
};

/// One QoS for whatever it is handed to: a writer, a reader, a topic, and the publisher or subscriber
/// that Taut makes for them. A setter sets the policy wherever it exists.
///
/// `Qos::default()` is the standard's default of each entity, so a writer of it is RELIABLE and a reader
/// of it BEST_EFFORT.
///
/// ```
/// use taut_qos::{DataReaderQos, History, Qos};
/// let qos = Qos::default().reliable().keep_last(10).partition(["plant"]);
/// assert_eq!(DataReaderQos::from(qos).history, History::KeepLast(10));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Qos {
    /// Used when it is handed to a writer.
    pub writer: DataWriterQos,
    /// Used when it is handed to a reader.
    pub reader: DataReaderQos,
    /// Used when it is handed to a topic.
    pub topic: TopicQos,
    /// Used for a writer's implicit publisher.
    pub publisher: PublisherQos,
    /// Used for a reader's implicit subscriber.
    pub subscriber: SubscriberQos,
}

/// Writes the setters of the policies that topics, writers and readers share. After the type comes what
/// holds the policies: `[]` is the value itself, `[field]` a field of it; all of them are set.
macro_rules! shared_setters {
    ($name:ident: $([$($part:ident)?])+) => {
        impl $name {
            /// RELIABILITY RELIABLE: lost samples are sent again. How long `write` waits for room stays as it is.
            #[must_use]
            pub fn reliable(mut self) -> Self {
                $(self$(.$part)?.reliability.kind = ReliabilityKind::Reliable;)+
                self
            }

            /// RELIABILITY BEST_EFFORT: lost samples stay lost. How long `write` waits for room stays as it is.
            #[must_use]
            pub fn best_effort(mut self) -> Self {
                $(self$(.$part)?.reliability.kind = ReliabilityKind::BestEffort;)+
                self
            }

            /// RELIABILITY `max_blocking_time`: `write` waits up to `longest` for room, 100 ms if this is not called. It makes
            /// nothing RELIABLE, nor BEST_EFFORT.
            #[must_use]
            pub fn max_blocking_time(mut self, longest: impl Into<Duration>) -> Self {
                let value = longest.into();
                $(self$(.$part)?.reliability.max_blocking_time = value;)+
                self
            }

            /// HISTORY KEEP_LAST: the newest `depth` samples of each instance.
            #[must_use]
            pub fn keep_last(self, depth: u32) -> Self {
                self.history(History::KeepLast(depth))
            }

            /// HISTORY KEEP_ALL: no sample is dropped for a newer one; a full reader makes its writers wait.
            #[must_use]
            pub fn keep_all(self) -> Self {
                self.history(History::KeepAll)
            }

            /// DURABILITY VOLATILE: late joiners get nothing old.
            #[must_use]
            pub fn volatile(self) -> Self {
                self.durability(DurabilityKind::Volatile)
            }

            /// DURABILITY TRANSIENT_LOCAL: late joiners get the history of the writers that live.
            #[must_use]
            pub fn transient_local(self) -> Self {
                self.durability(DurabilityKind::TransientLocal)
            }

            /// OWNERSHIP EXCLUSIVE: only the strongest writer of an instance is heard.
            #[must_use]
            pub fn exclusive(self) -> Self {
                self.ownership(OwnershipKind::Exclusive)
            }

            /// RELIABILITY in full.
            #[must_use]
            pub fn reliability(mut self, value: Reliability) -> Self {
                $(self$(.$part)?.reliability = value;)+
                self
            }

            /// HISTORY.
            #[must_use]
            pub fn history(mut self, value: History) -> Self {
                $(self$(.$part)?.history = value;)+
                self
            }

            /// DURABILITY.
            #[must_use]
            pub fn durability(mut self, value: DurabilityKind) -> Self {
                $(self$(.$part)?.durability = value;)+
                self
            }

            /// OWNERSHIP.
            #[must_use]
            pub fn ownership(mut self, value: OwnershipKind) -> Self {
                $(self$(.$part)?.ownership = value;)+
                self
            }

            /// DESTINATION_ORDER: whose clock orders the changes of an instance.
            #[must_use]
            pub fn destination_order(mut self, value: DestinationOrderKind) -> Self {
                $(self$(.$part)?.destination_order = value;)+
                self
            }

            /// RESOURCE_LIMITS: upper bounds of the history.
            #[must_use]
            pub fn resource_limits(mut self, value: ResourceLimits) -> Self {
                $(self$(.$part)?.resource_limits = value;)+
                self
            }

            /// DEADLINE: the longest time between two samples of an instance.
            #[must_use]
            pub fn deadline(mut self, period: impl Into<Duration>) -> Self {
                let value = period.into();
                $(self$(.$part)?.deadline = value;)+
                self
            }

            /// LATENCY_BUDGET: how long a sample may wait for company on its way.
            #[must_use]
            pub fn latency_budget(mut self, budget: impl Into<Duration>) -> Self {
                let value = budget.into();
                $(self$(.$part)?.latency_budget = value;)+
                self
            }

            /// TRANSPORT_PRIORITY: higher is more urgent.
            #[must_use]
            pub fn transport_priority(mut self, priority: i32) -> Self {
                $(self$(.$part)?.transport_priority = priority;)+
                self
            }

            /// LIVELINESS: who says that a writer is alive, and how often at least.
            #[must_use]
            pub fn liveliness(mut self, kind: LivelinessKind, lease: impl Into<Duration>) -> Self {
                let value = Liveliness { kind, lease_duration: lease.into() };
                $(self$(.$part)?.liveliness = value;)+
                self
            }

            /// DATA_REPRESENTATION: a writer writes the first, a reader understands each.
            #[must_use]
            pub fn representation(mut self, ids: impl IntoIterator<Item = DataRepresentationId>) -> Self {
                let value: Vec<_> = ids.into_iter().collect();
                $(self$(.$part)?.representation.clone_from(&value);)+
                self
            }
        }
    };
}
shared_setters!(TopicQos: []);
shared_setters!(DataWriterQos: []);
shared_setters!(DataReaderQos: []);
shared_setters!(Qos: [writer] [reader] [topic]);

/// Writes the setters of policies that only a writer has, in the way of `shared_setters`.
macro_rules! writer_setters {
    ($name:ident: $([$($part:ident)?])+) => {
        impl $name {
            /// LIFESPAN: samples older than this are dropped.
            #[must_use]
            pub fn lifespan(mut self, age: impl Into<Duration>) -> Self {
                let value = age.into();
                $(self$(.$part)?.lifespan = value;)+
                self
            }

            /// OWNERSHIP_STRENGTH: the strongest writer of an EXCLUSIVE instance is heard.
            #[must_use]
            pub fn ownership_strength(mut self, strength: i32) -> Self {
                $(self$(.$part)?.ownership_strength = strength;)+
                self
            }

            /// DURABILITY_SERVICE: what a durability service keeps.
            #[must_use]
            pub fn durability_service(mut self, service: DurabilityService) -> Self {
                $(self$(.$part)?.durability_service = service;)+
                self
            }

            /// WRITER_DATA_LIFECYCLE: does unregister also dispose?
            #[must_use]
            pub fn autodispose_unregistered_instances(mut self, dispose: bool) -> Self {
                $(self$(.$part)?.writer_data_lifecycle.autodispose_unregistered_instances = dispose;)+
                self
            }
        }
    };
}
writer_setters!(DataWriterQos: []);
writer_setters!(Qos: [writer]);

/// Writes the setters of policies that only a reader has, in the way of `shared_setters`.
macro_rules! reader_setters {
    ($name:ident: $([$($part:ident)?])+) => {
        impl $name {
            /// TIME_BASED_FILTER: the shortest time between two samples of an instance.
            #[must_use]
            pub fn time_based_filter(mut self, minimum_separation: impl Into<Duration>) -> Self {
                let value = minimum_separation.into();
                $(self$(.$part)?.time_based_filter = value;)+
                self
            }

            /// READER_DATA_LIFECYCLE: how long unread samples of finished instances are kept.
            #[must_use]
            pub fn reader_data_lifecycle(mut self, lifecycle: ReaderDataLifecycle) -> Self {
                $(self$(.$part)?.reader_data_lifecycle = lifecycle;)+
                self
            }

            /// TYPE_CONSISTENCY_ENFORCEMENT: how far the writer's type may differ.
            #[must_use]
            pub fn type_consistency(mut self, enforcement: TypeConsistencyEnforcement) -> Self {
                $(self$(.$part)?.type_consistency = enforcement;)+
                self
            }
        }
    };
}
reader_setters!(DataReaderQos: []);
reader_setters!(Qos: [reader]);

/// Writes the setters of what publishers and subscribers share, in the way of `shared_setters`.
macro_rules! group_setters {
    ($name:ident: $([$($part:ident)?])+) => {
        impl $name {
            /// PARTITION: names or patterns (`*`, `?`, `[a-z]`); endpoints meet only if one of each agrees.
            #[must_use]
            pub fn partition<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
                let value: Vec<String> = names.into_iter().map(Into::into).collect();
                $(self$(.$part)?.partition.clone_from(&value);)+
                self
            }

            /// PRESENTATION: how changes are grouped and ordered.
            #[must_use]
            pub fn presentation(mut self, value: Presentation) -> Self {
                $(self$(.$part)?.presentation = value;)+
                self
            }

            /// GROUP_DATA: bytes of the application that discovery carries.
            #[must_use]
            pub fn group_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
                let value: Vec<u8> = bytes.into();
                $(self$(.$part)?.group_data.clone_from(&value);)+
                self
            }
        }
    };
}
group_setters!(PublisherQos: []);
group_setters!(SubscriberQos: []);
group_setters!(Qos: [publisher] [subscriber]);

/// Writes `user_data` for what has it.
macro_rules! user_data_setter {
    ($name:ident: $([$($part:ident)?])+) => {
        impl $name {
            /// USER_DATA: bytes of the application that discovery carries.
            #[must_use]
            pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
                let value: Vec<u8> = bytes.into();
                $(self$(.$part)?.user_data.clone_from(&value);)+
                self
            }
        }
    };
}
user_data_setter!(DomainParticipantQos: []);
user_data_setter!(DataWriterQos: []);
user_data_setter!(DataReaderQos: []);
user_data_setter!(Qos: [writer] [reader]);

/// Writes the two directions between [`Qos`] and one entity's QoS.
macro_rules! conversions {
    ($($name:ident = $part:ident;)*) => {$(
        impl From<Qos> for $name {
            fn from(qos: Qos) -> $name {
                qos.$part
            }
        }
        impl From<$name> for Qos {
            fn from($part: $name) -> Qos {
                Qos { $part, ..Qos::default() }
            }
        }
    )*};
}
conversions! {
    DataWriterQos = writer;
    DataReaderQos = reader;
    TopicQos = topic;
    PublisherQos = publisher;
    SubscriberQos = subscriber;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reliability_is_the_same_in_whichever_order_its_members_are_set() {
        let longest = Duration::from_secs(7);
        for kind in [ReliabilityKind::Reliable, ReliabilityKind::BestEffort] {
            let set_kind = |qos: Qos| match kind {
                ReliabilityKind::Reliable => qos.reliable(),
                ReliabilityKind::BestEffort => qos.best_effort(),
            };
            for qos in [
                set_kind(Qos::default()).max_blocking_time(longest),
                set_kind(Qos::default().max_blocking_time(longest)),
                set_kind(Qos::default().reliable().max_blocking_time(longest).best_effort()),
            ] {
                let parts = [qos.writer.reliability, qos.reader.reliability, qos.topic.reliability];
                assert_eq!(parts, [Reliability { kind, max_blocking_time: longest }; 3]);
            }
        }
        let of = Qos::default().max_blocking_time(longest);
        let kinds = [of.writer.reliability.kind, of.reader.reliability.kind];
        assert_eq!(kinds, [ReliabilityKind::Reliable, ReliabilityKind::BestEffort], "as they are by default");
    }
}
