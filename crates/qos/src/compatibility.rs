//! The request/offer table: may a writer and a reader meet? DCPS 1.4 §2.2.3 table 2.10 and the rules of
//! each policy below it, DDS-XTypes 1.3 §7.6.3.1. Called by discovery's matching for each pair of
//! endpoints of one topic. PARTITION and the types are asked elsewhere: they do not count as policies
//! that are incompatible.

use std::fmt::{self, Display};

use crate::endpoint::EndpointQos;
use crate::policy::{DataRepresentationId, Liveliness, Presentation};

/// QosPolicyId_t: the number of a policy in statuses. *Source*: DCPS 1.4 §2.3.3, DDS-XTypes 1.3 §7.6.3; 25 of Fast DDS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PolicyId(pub u32);

impl fmt::Debug for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            UNKNOWN => write!(f, "PolicyId({})", self.0),
            name => f.write_str(name),
        }
    }
}

/// What a policy is called that has no name here.
const UNKNOWN: &str = "UNKNOWN";

macro_rules! policy_ids {
    ($($name:ident = $number:literal;)*) => {
        impl PolicyId {
            $(#[doc = concat!("`", stringify!($name), "`.")] pub const $name: PolicyId = PolicyId($number);)*

            /// The standard's name.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => stringify!($name),)*
                    _ => UNKNOWN,
                }
            }
        }
    };
}
policy_ids! {
    INVALID = 0;
    USER_DATA = 1;
    DURABILITY = 2;
    PRESENTATION = 3;
    DEADLINE = 4;
    LATENCY_BUDGET = 5;
    OWNERSHIP = 6;
    OWNERSHIP_STRENGTH = 7;
    LIVELINESS = 8;
    TIME_BASED_FILTER = 9;
    PARTITION = 10;
    RELIABILITY = 11;
    DESTINATION_ORDER = 12;
    HISTORY = 13;
    RESOURCE_LIMITS = 14;
    ENTITY_FACTORY = 15;
    WRITER_DATA_LIFECYCLE = 16;
    READER_DATA_LIFECYCLE = 17;
    TOPIC_DATA = 18;
    GROUP_DATA = 19;
    TRANSPORT_PRIORITY = 20;
    LIFESPAN = 21;
    DURABILITY_SERVICE = 22;
    DATA_REPRESENTATION = 23;
    TYPE_CONSISTENCY_ENFORCEMENT = 24;
    DISABLE_POSITIVE_ACKS = 25;
}

impl Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One policy that keeps a writer and a reader apart, with both values as people read them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incompatibility {
    /// Which policy.
    pub policy: PolicyId,
    /// The writer's value.
    pub offered: String,
    /// The reader's value.
    pub requested: String,
}

impl Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: offered {}, requested {}", self.policy, self.offered, self.requested)
    }
}

/// All policies that keep a writer and a reader apart, in the order of their ids; empty if they may meet.
/// *Cost*: no allocation if they may.
///
/// ```
/// use taut_qos::{DataReaderQos, DataWriterQos, EndpointQos, incompatible};
/// let offered = EndpointQos::of_writer(
///     &DataWriterQos::default().best_effort(), &Default::default(), &Default::default());
/// let requested = EndpointQos::of_reader(
///     &DataReaderQos::default().reliable(), &Default::default(), &Default::default());
/// let why = incompatible(&offered, &requested);
/// assert_eq!(why[0].to_string(), "RELIABILITY: offered BEST_EFFORT, requested RELIABLE");
/// ```
pub fn incompatible(offered: &EndpointQos, requested: &EndpointQos) -> Vec<Incompatibility> {
    let mut found = Vec::new();
    let mut check = |fits: bool, policy: PolicyId, o: &dyn Display, r: &dyn Display| {
        if !fits {
            found.push(Incompatibility { policy, offered: o.to_string(), requested: r.to_string() });
        }
    };
    let (o, r) = (offered, requested);
    check(o.durability >= r.durability, PolicyId::DURABILITY, &o.durability, &r.durability);
    check(
        presentation_fits(&o.presentation, &r.presentation),
        PolicyId::PRESENTATION,
        &o.presentation,
        &r.presentation,
    );
    check(o.deadline <= r.deadline, PolicyId::DEADLINE, &o.deadline, &r.deadline);
    check(
        o.latency_budget <= r.latency_budget,
        PolicyId::LATENCY_BUDGET,
        &o.latency_budget,
        &r.latency_budget,
    );
    check(o.ownership == r.ownership, PolicyId::OWNERSHIP, &o.ownership, &r.ownership);
    check(liveliness_fits(&o.liveliness, &r.liveliness), PolicyId::LIVELINESS, &o.liveliness, &r.liveliness);
    check(
        o.reliability.kind >= r.reliability.kind,
        PolicyId::RELIABILITY,
        &o.reliability.kind,
        &r.reliability.kind,
    );
    check(
        o.destination_order >= r.destination_order,
        PolicyId::DESTINATION_ORDER,
        &o.destination_order,
        &r.destination_order,
    );
    check(
        representation_fits(&o.representation, &r.representation),
        PolicyId::DATA_REPRESENTATION,
        &offered_representation(&o.representation),
        &Representations(&r.representation),
    );
    found
}

/// DCPS 1.4 §2.2.3.6: the offered scope is at least as wide, and what is requested of coherence and order
/// is offered.
fn presentation_fits(offered: &Presentation, requested: &Presentation) -> bool {
    offered.access_scope >= requested.access_scope
        && offered.coherent_access >= requested.coherent_access
        && offered.ordered_access >= requested.ordered_access
}

fn liveliness_fits(offered: &Liveliness, requested: &Liveliness) -> bool {
    offered.kind >= requested.kind && offered.lease_duration <= requested.lease_duration
}

/// The one representation that a writer of this list writes. *Source*: DDS-XTypes 1.3 §7.6.3.1.1: the
/// first of the list; XCDR1 if it is empty.
pub fn offered_representation(list: &[DataRepresentationId]) -> DataRepresentationId {
    list.first().copied().unwrap_or(DataRepresentationId::XCDR1)
}

fn representation_fits(offered: &[DataRepresentationId], requested: &[DataRepresentationId]) -> bool {
    let written = offered_representation(offered);
    if requested.is_empty() { written == DataRepresentationId::XCDR1 } else { requested.contains(&written) }
}

struct Representations<'a>(&'a [DataRepresentationId]);

impl Display for Representations<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.0.split_first() else {
            return DataRepresentationId::XCDR1.fmt(f);
        };
        first.fmt(f)?;
        // A peer's list can be long; a text for people need not be.
        rest.iter().take(3).try_for_each(|id| write!(f, " or {id}"))
    }
}

impl Display for Presentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access_scope.fmt(f)?;
        f.write_str(if self.coherent_access { " coherent" } else { "" })?;
        f.write_str(if self.ordered_access { " ordered" } else { "" })
    }
}

impl Display for Liveliness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.lease_duration)
    }
}

#[cfg(test)]
mod tests {
    use taut_base::Duration;

    use super::*;
    use crate::policy::{
        DestinationOrderKind::*, DurabilityKind::*, LivelinessKind::*, OwnershipKind::*,
        PresentationAccessScopeKind::*, Reliability,
    };
    use crate::{PublisherQos, Qos, SubscriberQos, TopicQos};

    /// Sets one policy to the value number `n`, weakest first, and says how many values there are.
    type Set = fn(&mut EndpointQos, usize) -> usize;

    fn pick<T: Copy>(to: &mut T, values: &[T], n: usize) -> usize {
        if let Some(value) = values.get(n) {
            *to = *value;
        }
        values.len()
    }

    const MS: [Duration; 4] =
        [Duration::INFINITE, Duration::from_secs(1), Duration::from_millis(1), Duration::ZERO];

    /// Policies of which the offered value must be at least as strong as the requested one.
    const ORDERED: &[(PolicyId, Set)] = &[
        (PolicyId::DURABILITY, |q, n| {
            pick(&mut q.durability, &[Volatile, TransientLocal, Transient, Persistent], n)
        }),
        (PolicyId::PRESENTATION, |q, n| pick(&mut q.presentation.access_scope, &[Instance, Topic, Group], n)),
        (PolicyId::PRESENTATION, |q, n| pick(&mut q.presentation.coherent_access, &[false, true], n)),
        (PolicyId::PRESENTATION, |q, n| pick(&mut q.presentation.ordered_access, &[false, true], n)),
        (PolicyId::DEADLINE, |q, n| pick(&mut q.deadline, &MS, n)),
        (PolicyId::LATENCY_BUDGET, |q, n| pick(&mut q.latency_budget, &MS, n)),
        (PolicyId::LIVELINESS, |q, n| {
            pick(&mut q.liveliness.kind, &[Automatic, ManualByParticipant, ManualByTopic], n)
        }),
        (PolicyId::LIVELINESS, |q, n| pick(&mut q.liveliness.lease_duration, &MS, n)),
        (PolicyId::RELIABILITY, |q, n| {
            pick(&mut q.reliability, &[Reliability::BEST_EFFORT, Reliability::RELIABLE], n)
        }),
        (PolicyId::DESTINATION_ORDER, |q, n| {
            pick(&mut q.destination_order, &[ByReceptionTimestamp, BySourceTimestamp], n)
        }),
    ];

    #[test]
    fn offered_must_be_at_least_what_is_requested() {
        for (policy, set) in ORDERED {
            let base = EndpointQos::default_reader();
            let count = set(&mut base.clone(), usize::MAX);
            for offered in 0..count {
                for requested in 0..count {
                    let (mut o, mut r) = (base.clone(), base.clone());
                    set(&mut o, offered);
                    set(&mut r, requested);
                    let found: Vec<_> = incompatible(&o, &r).iter().map(|i| i.policy).collect();
                    let expected: &[PolicyId] = if offered >= requested { &[] } else { &[*policy] };
                    assert_eq!(found, expected, "{policy}: {offered} offered, {requested} requested");
                }
            }
        }
    }

    /// DDS's DURATION_INFINITE has these seconds: who is told of a span as long reads that.
    #[test]
    fn a_span_that_the_wire_cannot_say_is_infinite_on_both_sides() {
        const LONG: i64 = i32::MAX as i64;
        for (seconds, is_infinite) in [(LONG - 1, false), (LONG, true), (i64::MAX, true)] {
            let span = Duration::from_secs(seconds);
            let qos = || Qos::default().deadline(span).latency_budget(span).liveliness(Automatic, span);
            let (writer, reader) = (qos().lifespan(span).writer, qos().time_based_filter(span).reader);
            let offered = EndpointQos::of_writer(&writer, &PublisherQos::default(), &TopicQos::default());
            let requested = EndpointQos::of_reader(&reader, &SubscriberQos::default(), &TopicQos::default());
            for one in [&offered, &requested] {
                let spans = [one.deadline, one.latency_budget, one.liveliness.lease_duration];
                assert!(spans.iter().all(|span| span.is_infinite() == is_infinite), "{seconds} s: {spans:?}");
            }
            assert_eq!(offered.lifespan.is_infinite(), is_infinite);
            assert_eq!(requested.time_based_filter.is_infinite(), is_infinite);
            assert!(incompatible(&offered, &requested).is_empty());
        }
    }

    #[test]
    fn ownership_must_be_the_same() {
        for (o, r) in [(Shared, Shared), (Shared, Exclusive), (Exclusive, Shared), (Exclusive, Exclusive)] {
            let offered = EndpointQos { ownership: o, ..EndpointQos::default_writer() };
            let requested = EndpointQos { ownership: r, ..EndpointQos::default_reader() };
            assert_eq!(incompatible(&offered, &requested).is_empty(), o == r);
        }
    }

    #[test]
    fn representation_table() {
        const X1: DataRepresentationId = DataRepresentationId::XCDR1;
        const X2: DataRepresentationId = DataRepresentationId::XCDR2;
        for (offered, requested, fits) in [
            (&[][..], &[][..], true),
            (&[], &[X1], true),
            (&[], &[X2], false),
            (&[X1], &[], true),
            (&[X2], &[], false),
            (&[X2], &[X1, X2], true),
            (&[X1, X2], &[X2], false),
            (&[X2, X1], &[X2], true),
        ] {
            let o = EndpointQos { representation: offered.to_vec(), ..EndpointQos::default_writer() };
            let r = EndpointQos { representation: requested.to_vec(), ..EndpointQos::default_reader() };
            assert_eq!(incompatible(&o, &r).is_empty(), fits, "{offered:?} {requested:?}");
        }
    }

    #[test]
    fn texts_and_order() {
        let mut offered = EndpointQos::default_reader();
        offered.deadline = Duration::from_millis(200);
        let mut requested = EndpointQos::default_writer();
        requested.deadline = Duration::from_millis(100);
        requested.liveliness = Liveliness { kind: ManualByTopic, lease_duration: Duration::from_secs(1) };
        requested.representation = vec![DataRepresentationId::XCDR2, DataRepresentationId::XML];
        let texts: Vec<_> = incompatible(&offered, &requested).iter().map(|i| i.to_string()).collect();
        assert_eq!(
            texts,
            [
                "DEADLINE: offered 200ms, requested 100ms",
                "LIVELINESS: offered AUTOMATIC infinite, requested MANUAL_BY_TOPIC 1s",
                "RELIABILITY: offered BEST_EFFORT, requested RELIABLE",
                "DATA_REPRESENTATION: offered XCDR1, requested XCDR2 or XML",
            ]
        );
        assert_eq!(PolicyId::DATA_REPRESENTATION.0, 23);
        assert_eq!(format!("{:?}", [PolicyId::LIVELINESS, PolicyId(99)]), "[LIVELINESS, PolicyId(99)]");
    }
}
