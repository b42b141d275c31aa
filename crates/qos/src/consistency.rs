//! Is a QoS at one with itself, and may it change? DCPS 1.4 §2.2.3 table 2.9 (column "changeable") and
//! the rules between HISTORY, RESOURCE_LIMITS, DEADLINE and TIME_BASED_FILTER. Called when an entity is
//! made and by `set_qos`; the texts go to the user and say what to change.

use taut_base::{Duration, Error, Result};

use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::partition::{MAX_NAME, MAX_NAMES};
use crate::policy::{
    DurabilityService, EntityFactory, History, Liveliness, Presentation, PresentationAccessScopeKind,
    ResourceLimits, TypeConsistencyEnforcement, TypeConsistencyKind,
};

/// The longest USER_DATA, TOPIC_DATA or GROUP_DATA. *Units*: bytes. They travel in one discovery
/// datagram; 60,000 leaves room for the other parameters. Higher and an endpoint cannot be announced.
pub const MAX_OPAQUE_DATA: usize = 60_000;

/// The most that the names of a PARTITION take in discovery, as long as [`MAX_OPAQUE_DATA`] for the same reason. Higher and
/// an announcement leaves in fragments, which not every implementation takes for discovery, or (from 65,532 on, RTPS 2.5
/// §9.4.2.11) without the names, so that the endpoint is taken for one without; lower and lists are refused that could be.
const MAX_PARTITION: usize = MAX_OPAQUE_DATA;

fn check(fits: bool, remedy: impl FnOnce() -> String) -> Result<()> {
    if fits { Ok(()) } else { Err(Error::InconsistentPolicy(remedy())) }
}

/// Is it done at all? What is silently left out would be found out by samples.
fn supported(is_done: bool, remedy: &str) -> Result<()> {
    if is_done { Ok(()) } else { Err(Error::Unsupported(remedy.into())) }
}

/// DCPS 1.4 §2.2.3.20.
fn factory(factory: EntityFactory) -> Result<()> {
    supported(
        factory.autoenable_created_entities,
        "ENTITY_FACTORY autoenable_created_entities is false, but all entities are born enabled: make it true",
    )
}

fn presentation(presentation: &Presentation) -> Result<()> {
    let across =
        presentation.ordered_access && presentation.access_scope == PresentationAccessScopeKind::Group;
    supported(
        !across,
        "PRESENTATION ordered_access with the access_scope GROUP, but changes of several writers are in no order: make the \
         scope TOPIC",
    )
}

fn span(policy: &str, value: Duration, may_be_zero: bool) -> Result<()> {
    let lowest = if may_be_zero { 0 } else { 1 };
    check(value.0 >= lowest, || {
        format!("{policy} is {} ns: make it {lowest} ns or more, or infinite", value.0)
    })
}

fn opaque(policy: &str, bytes: &[u8]) -> Result<()> {
    check(bytes.len() <= MAX_OPAQUE_DATA, || {
        format!("{policy} has {} bytes: at most {MAX_OPAQUE_DATA} fit into discovery", bytes.len())
    })
}

fn durability_service(service: &DurabilityService) -> Result<()> {
    history(["DURABILITY_SERVICE"; 2], service.history, &service.resource_limits)?;
    span("DURABILITY_SERVICE service_cleanup_delay", service.service_cleanup_delay, true)
}

/// The policies that say so of an entity's own samples.
const OWN: [&str; 2] = ["HISTORY", "RESOURCE_LIMITS"];

/// Of these policies. DCPS 1.4 §2.2.3.18 and §2.2.3.19.
fn history([kind, most]: [&str; 2], history: History, limits: &ResourceLimits) -> Result<()> {
    for (name, limit) in [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ] {
        check(limit != Some(0), || format!("{most} {name} is 0: make it 1 or more, or None for no limit"))?;
    }
    if let (Some(all), Some(one)) = (limits.max_samples, limits.max_samples_per_instance) {
        check(all >= one, || {
            format!(
                "{most} max_samples {all} is below max_samples_per_instance {one}: \
                 raise the first or lower the second"
            )
        })?;
    }
    let History::KeepLast(depth) = history else { return Ok(()) };
    check(depth > 0, || format!("{kind} KEEP_LAST has depth 0: make it 1 or more"))?;
    let limit = limits.max_samples_per_instance.unwrap_or(u32::MAX);
    check(depth <= limit, || {
        format!(
            "{kind} KEEP_LAST has depth {depth}, {most} max_samples_per_instance is {limit}: \
             lower the depth or raise the limit"
        )
    })
}

fn timing(deadline: Duration, latency_budget: Duration, liveliness: &Liveliness) -> Result<()> {
    span("DEADLINE", deadline, false)?;
    span("LATENCY_BUDGET", latency_budget, true)?;
    span("LIVELINESS lease_duration", liveliness.lease_duration, false)
}

fn partition(names: &[String]) -> Result<()> {
    check(names.len() <= MAX_NAMES, || {
        format!(
            "PARTITION has {} names: make them {MAX_NAMES} or fewer, a pattern can stand for many",
            names.len()
        )
    })?;
    names.iter().try_for_each(|name| {
        check(name.len() <= MAX_NAME && !name.contains('\0'), || {
            format!(
                "PARTITION has a name of {} bytes or with a NUL: at most {MAX_NAME} bytes, no NUL",
                name.len()
            )
        })
    })?;
    // Each with its length and its NUL.
    let bytes: usize = names.iter().map(|name| 4 + (name.len() + 1).next_multiple_of(4)).sum();
    check(bytes <= MAX_PARTITION, || {
        format!(
            "PARTITION takes {bytes} bytes: at most {MAX_PARTITION} fit into discovery, make names shorter or fewer, a \
             pattern can stand for many"
        )
    })
}

/// Fails with `ImmutablePolicy` if one of the named fields differs.
macro_rules! unchanged {
    ($old:expr, $new:expr, $($field:ident = $policy:literal),*) => {
        $(if $old.$field != $new.$field {
            return Err(Error::ImmutablePolicy(format!(
                "{} cannot change once the entity is enabled: delete it and make a new one", $policy
            )));
        })*
    };
}

impl DomainParticipantQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` with what to change.
    pub fn check(&self) -> Result<()> {
        opaque("USER_DATA", &self.user_data)
    }
}

impl PublisherQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` and `Unsupported` with what to change.
    pub fn check(&self) -> Result<()> {
        factory(self.entity_factory)?;
        presentation(&self.presentation)?;
        partition(&self.partition)?;
        opaque("GROUP_DATA", &self.group_data)
    }

    /// May an enabled publisher of this QoS take the new one? *Errors*: `ImmutablePolicy`.
    pub fn changeable(&self, new: &PublisherQos) -> Result<()> {
        unchanged!(self, new, presentation = "PRESENTATION");
        Ok(())
    }
}

impl SubscriberQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` and `Unsupported` with what to change.
    pub fn check(&self) -> Result<()> {
        factory(self.entity_factory)?;
        presentation(&self.presentation)?;
        supported(
            !self.presentation.coherent_access,
            "PRESENTATION coherent_access of a subscriber, but the changes of a set are handed out as they come: \
             make it false",
        )?;
        partition(&self.partition)?;
        opaque("GROUP_DATA", &self.group_data)
    }

    /// May an enabled subscriber of this QoS take the new one? *Errors*: `ImmutablePolicy`.
    pub fn changeable(&self, new: &SubscriberQos) -> Result<()> {
        unchanged!(self, new, presentation = "PRESENTATION");
        Ok(())
    }
}

impl TopicQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` with what to change.
    pub fn check(&self) -> Result<()> {
        history(OWN, self.history, &self.resource_limits)?;
        durability_service(&self.durability_service)?;
        timing(self.deadline, self.latency_budget, &self.liveliness)?;
        span("LIFESPAN", self.lifespan, false)?;
        span("RELIABILITY max_blocking_time", self.reliability.max_blocking_time, true)?;
        opaque("TOPIC_DATA", &self.topic_data)
    }

    /// May an enabled topic of this QoS take the new one? *Errors*: `ImmutablePolicy`.
    pub fn changeable(&self, new: &TopicQos) -> Result<()> {
        unchanged!(
            self,
            new,
            durability = "DURABILITY",
            durability_service = "DURABILITY_SERVICE",
            liveliness = "LIVELINESS",
            reliability = "RELIABILITY",
            destination_order = "DESTINATION_ORDER",
            history = "HISTORY",
            resource_limits = "RESOURCE_LIMITS",
            ownership = "OWNERSHIP",
            representation = "DATA_REPRESENTATION"
        );
        Ok(())
    }
}

impl DataWriterQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` with what to change.
    pub fn check(&self) -> Result<()> {
        history(OWN, self.history, &self.resource_limits)?;
        durability_service(&self.durability_service)?;
        timing(self.deadline, self.latency_budget, &self.liveliness)?;
        span("LIFESPAN", self.lifespan, false)?;
        span("RELIABILITY max_blocking_time", self.reliability.max_blocking_time, true)?;
        opaque("USER_DATA", &self.user_data)
    }

    /// May an enabled writer of this QoS take the new one? *Errors*: `ImmutablePolicy`.
    pub fn changeable(&self, new: &DataWriterQos) -> Result<()> {
        unchanged!(
            self,
            new,
            durability = "DURABILITY",
            durability_service = "DURABILITY_SERVICE",
            liveliness = "LIVELINESS",
            reliability = "RELIABILITY",
            destination_order = "DESTINATION_ORDER",
            history = "HISTORY",
            resource_limits = "RESOURCE_LIMITS",
            ownership = "OWNERSHIP",
            representation = "DATA_REPRESENTATION"
        );
        Ok(())
    }
}

/// Types are known by their names.
fn types(rule: &TypeConsistencyEnforcement) -> Result<()> {
    supported(
        rule.kind == TypeConsistencyKind::AllowTypeCoercion,
        "TYPE_CONSISTENCY_ENFORCEMENT DISALLOW_TYPE_COERCION, but types are known by their names only: allow it",
    )?;
    supported(
        !rule.prevent_type_widening,
        "TYPE_CONSISTENCY_ENFORCEMENT prevent_type_widening, but types are known by their names only: make it false",
    )?;
    supported(
        !rule.force_type_validation,
        "TYPE_CONSISTENCY_ENFORCEMENT force_type_validation, but types are known by their names only: make it false",
    )
}

impl DataReaderQos {
    /// Is it at one with itself? *Errors*: `InconsistentPolicy` and `Unsupported` with what to change.
    pub fn check(&self) -> Result<()> {
        types(&self.type_consistency)?;
        history(OWN, self.history, &self.resource_limits)?;
        timing(self.deadline, self.latency_budget, &self.liveliness)?;
        span("TIME_BASED_FILTER minimum_separation", self.time_based_filter, true)?;
        span("RELIABILITY max_blocking_time", self.reliability.max_blocking_time, true)?;
        let lifecycle = &self.reader_data_lifecycle;
        span(
            "READER_DATA_LIFECYCLE autopurge_nowriter_samples_delay",
            lifecycle.autopurge_nowriter_samples_delay,
            true,
        )?;
        span(
            "READER_DATA_LIFECYCLE autopurge_disposed_samples_delay",
            lifecycle.autopurge_disposed_samples_delay,
            true,
        )?;
        check(self.deadline >= self.time_based_filter, || {
            format!(
                "DEADLINE {} is shorter than TIME_BASED_FILTER minimum_separation {}: \
                 lengthen the deadline or shorten the separation",
                self.deadline, self.time_based_filter
            )
        })?;
        opaque("USER_DATA", &self.user_data)
    }

    /// May an enabled reader of this QoS take the new one? *Errors*: `ImmutablePolicy`.
    pub fn changeable(&self, new: &DataReaderQos) -> Result<()> {
        unchanged!(
            self,
            new,
            durability = "DURABILITY",
            liveliness = "LIVELINESS",
            reliability = "RELIABILITY",
            destination_order = "DESTINATION_ORDER",
            history = "HISTORY",
            resource_limits = "RESOURCE_LIMITS",
            ownership = "OWNERSHIP",
            representation = "DATA_REPRESENTATION",
            type_consistency = "TYPE_CONSISTENCY_ENFORCEMENT"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DurabilityKind;

    #[test]
    fn defaults_are_consistent() {
        DomainParticipantQos::default().check().unwrap();
        PublisherQos::default().check().unwrap();
        SubscriberQos::default().check().unwrap();
        TopicQos::default().check().unwrap();
        DataWriterQos::default().check().unwrap();
        DataReaderQos::default().check().unwrap();
    }

    #[test]
    fn contradictions_are_refused_with_the_remedy() {
        let limits = |all, one| ResourceLimits {
            max_samples: all,
            max_instances: None,
            max_samples_per_instance: one,
        };
        let reader = DataReaderQos::default;
        for (qos, words) in [
            (reader().keep_last(0), "depth 0"),
            (reader().keep_last(5).resource_limits(limits(None, Some(4))), "lower the depth"),
            (
                reader().keep_all().resource_limits(limits(Some(3), Some(4))),
                "below max_samples_per_instance 4",
            ),
            (reader().resource_limits(limits(Some(0), None)), "max_samples is 0"),
            (reader().deadline(Duration::ZERO), "DEADLINE"),
            (
                reader().deadline(Duration::from_millis(1)).time_based_filter(Duration::from_millis(2)),
                "shorter than TIME_BASED_FILTER",
            ),
            (reader().latency_budget(Duration(-1)), "LATENCY_BUDGET is -1 ns"),
            (reader().max_blocking_time(Duration::from_secs(-1)), "RELIABILITY max_blocking_time"),
            (reader().user_data(vec![0; MAX_OPAQUE_DATA + 1]), "USER_DATA"),
        ] {
            let Err(Error::InconsistentPolicy(text)) = qos.check() else { panic!("accepted: {words}") };
            assert!(text.contains(words), "{text}");
        }
        assert!(reader().keep_last(4).resource_limits(limits(Some(4), Some(4))).check().is_ok());
        assert!(DataWriterQos::default().lifespan(Duration::ZERO).check().is_err());
        let service = DurabilityService { service_cleanup_delay: Duration(-1), ..Default::default() };
        assert!(DataWriterQos { durability_service: service, ..Default::default() }.check().is_err());
        assert!(TopicQos { durability_service: service, ..Default::default() }.check().is_err());
        let service = DurabilityService { resource_limits: limits(Some(0), None), ..Default::default() };
        let text = DataWriterQos::default().durability_service(service).check().unwrap_err().to_string();
        assert!(text.contains("DURABILITY_SERVICE max_samples is 0"), "{text}");
        assert!(PublisherQos::default().partition(["x".repeat(MAX_NAME + 1)]).check().is_err());
    }

    #[test]
    fn what_is_not_done_is_refused() {
        let is_refused =
            |outcome, words: &str| matches!(outcome, Err(Error::Unsupported(text)) if text.contains(words));
        let entity_factory = EntityFactory { autoenable_created_entities: false };
        assert!(is_refused(
            PublisherQos { entity_factory, ..PublisherQos::default() }.check(),
            "born enabled"
        ));
        let mut subscriber = SubscriberQos { entity_factory, ..SubscriberQos::default() };
        assert!(is_refused(subscriber.check(), "born enabled"));
        subscriber = SubscriberQos::default();
        subscriber.presentation.coherent_access = true;
        assert!(is_refused(subscriber.check(), "coherent_access"));
        let presentation = Presentation {
            access_scope: PresentationAccessScopeKind::Group,
            ordered_access: true,
            coherent_access: false,
        };
        subscriber = SubscriberQos { presentation, ..SubscriberQos::default() };
        assert!(is_refused(subscriber.check(), "make the scope TOPIC"));
        let publisher = PublisherQos { presentation, ..PublisherQos::default() };
        assert!(is_refused(publisher.check(), "make the scope TOPIC"));
        let mut reader = DataReaderQos::default();
        reader.type_consistency.force_type_validation = true;
        assert!(is_refused(reader.check(), "force_type_validation"));
        let mut reader = DataReaderQos::default();
        reader.type_consistency.kind = TypeConsistencyKind::DisallowTypeCoercion;
        assert!(is_refused(reader.check(), "DISALLOW_TYPE_COERCION"));
        let mut reader = DataReaderQos::default();
        reader.type_consistency.prevent_type_widening = true;
        assert!(is_refused(reader.check(), "prevent_type_widening"));
    }

    #[test]
    fn what_may_change() {
        let old = DataWriterQos::default();
        let deadline = old.clone().deadline(Duration::from_secs(1)).lifespan(Duration::from_secs(1));
        assert_eq!(old.changeable(&deadline.user_data(*b"x").ownership_strength(3)), Ok(()));
        let durable = old.clone().durability(DurabilityKind::TransientLocal);
        let Err(Error::ImmutablePolicy(text)) = old.changeable(&durable) else { panic!("accepted") };
        assert!(text.contains("DURABILITY cannot change"), "{text}");
        assert!(PublisherQos::default().changeable(&PublisherQos::default().partition(["x"])).is_ok());
    }
}
