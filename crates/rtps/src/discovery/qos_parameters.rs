//! The policies of an endpoint as parameters of its announcement. RTPS 2.5 §9.6.3, table 9.14 (types)
//! and table 9.18 (ids); XTypes 1.3 §7.6.3.
//!
//! Owns the layout of each policy. Must never compare two policies: that is `taut-qos`. Called by
//! `endpoint_data`.

use taut_base::Duration;
use taut_qos::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, EndpointQos, History,
    Liveliness, LivelinessKind, MAX_NAMES, OwnershipKind, Presentation, PresentationAccessScopeKind,
    Reliability, ReliabilityKind, ResourceLimits, TypeConsistencyEnforcement, TypeConsistencyKind,
};
use taut_wire::{Cursor, Out, Parameter, ParameterListWriter, WireError, pid};

/// The most representations of one list that count; the standard has three. Lower and a future one may
/// be missed, higher gives a peer room to make comparisons slow.
const MAX_REPRESENTATIONS: usize = 16;

/// HISTORY on the wire. *Source*: DCPS 1.4 §2.3.3.
const KEEP_LAST: i32 = 0;
const KEEP_ALL: i32 = 1;

/// Takes one parameter into `qos`; `false` if it is none of the policies. `nanoseconds`: where a duration has a fraction
/// of a second, it has these.
///
/// *Errors*: a value that no standard has, too short, or a negative duration.
pub(super) fn read_policy(
    qos: &mut EndpointQos,
    parameter: &Parameter<'_>,
    nanoseconds: bool,
) -> Result<bool, WireError> {
    let duration = |value: &mut Cursor<'_>| {
        if nanoseconds { read_nanoseconds(value) } else { value.duration() }
    };
    let mut value = parameter.cursor();
    let value = &mut value;
    match pid::canonical(parameter.pid) {
        pid::DURABILITY => qos.durability = kind(value, DurabilityKind::from_wire)?,
        pid::DURABILITY_SERVICE => qos.durability_service = read_durability_service(value, duration)?,
        pid::DEADLINE => qos.deadline = duration(value)?,
        pid::LATENCY_BUDGET => qos.latency_budget = duration(value)?,
        pid::LIVELINESS => {
            let kind = kind(value, LivelinessKind::from_wire)?;
            qos.liveliness = Liveliness { kind, lease_duration: duration(value)? };
        }
        pid::RELIABILITY => {
            let kind = kind(value, ReliabilityKind::from_wire)?;
            qos.reliability = Reliability { kind, max_blocking_time: duration(value)? };
        }
        pid::OWNERSHIP => qos.ownership = kind(value, OwnershipKind::from_wire)?,
        pid::OWNERSHIP_STRENGTH => qos.ownership_strength = value.i32()?,
        pid::DESTINATION_ORDER => qos.destination_order = kind(value, DestinationOrderKind::from_wire)?,
        pid::TIME_BASED_FILTER => qos.time_based_filter = duration(value)?,
        pid::TRANSPORT_PRIORITY => qos.transport_priority = value.i32()?,
        pid::LIFESPAN => qos.lifespan = duration(value)?,
        pid::DATA_REPRESENTATION => qos.representation = read_representation(value)?,
        pid::TYPE_CONSISTENCY_ENFORCEMENT => qos.type_consistency = read_type_consistency(value)?,
        pid::USER_DATA => qos.user_data = value.octets()?.to_vec(),
        pid::PRESENTATION => {
            qos.presentation = Presentation {
                access_scope: kind(value, read_scope)?,
                coherent_access: value.boolean()?,
                ordered_access: value.boolean()?,
            };
        }
        pid::PARTITION => qos.partition = read_partition(value)?,
        pid::GROUP_DATA => qos.group_data = value.octets()?.to_vec(),
        pid::TOPIC_DATA => qos.topic_data = value.octets()?.to_vec(),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A subscriber of RTI Connext may ask for the highest scope that is offered: each is.
const HIGHEST_OFFERED: i32 = 3;

fn read_scope(scope: i32) -> Option<PresentationAccessScopeKind> {
    match scope {
        HIGHEST_OFFERED => Some(PresentationAccessScopeKind::Instance),
        _ => PresentationAccessScopeKind::from_wire(scope),
    }
}

/// Seconds and nanoseconds.
fn read_nanoseconds(value: &mut Cursor<'_>) -> Result<Duration, WireError> {
    let (seconds, rest) = (value.i32()?, value.u32()?);
    let whole = Duration::from_wire(seconds, 0).ok_or(WireError::BadDuration)?;
    Ok(if whole.is_infinite() { whole } else { Duration(whole.0.saturating_add(i64::from(rest))) })
}

fn kind<T>(value: &mut Cursor<'_>, from_wire: impl Fn(i32) -> Option<T>) -> Result<T, WireError> {
    from_wire(value.i32()?).ok_or(WireError::BadParameter)
}

fn read_durability_service(
    value: &mut Cursor<'_>,
    duration: impl Fn(&mut Cursor<'_>) -> Result<Duration, WireError>,
) -> Result<DurabilityService, WireError> {
    let service_cleanup_delay = duration(value)?;
    let history = match (value.i32()?, value.i32()?) {
        (KEEP_LAST, depth) => {
            History::KeepLast(u32::try_from(depth).map_err(|_| WireError::BadParameter)?.max(1))
        }
        (KEEP_ALL, _) => History::KeepAll,
        _ => return Err(WireError::BadParameter),
    };
    // DCPS 1.4 §2.3.3: LENGTH_UNLIMITED is -1.
    let mut limit = || value.i32().map(|number| u32::try_from(number).ok());
    let resource_limits =
        ResourceLimits { max_samples: limit()?, max_instances: limit()?, max_samples_per_instance: limit()? };
    Ok(DurabilityService { service_cleanup_delay, history, resource_limits })
}

fn read_representation(value: &mut Cursor<'_>) -> Result<Vec<DataRepresentationId>, WireError> {
    let count = value.count(size_of::<i16>())?;
    (0..count.min(MAX_REPRESENTATIONS))
        .map(|_| value.u16().map(|id| DataRepresentationId(id.cast_signed())))
        .collect()
}

fn read_type_consistency(value: &mut Cursor<'_>) -> Result<TypeConsistencyEnforcement, WireError> {
    // OpenDDS counts kinds from 1 on. Nothing here depends on which it is, and nobody is to be unknown for it.
    let kind = TypeConsistencyKind::from_wire(i32::from(value.u16()?));
    let kind = kind.unwrap_or(TypeConsistencyKind::AllowTypeCoercion);
    // XTypes 1.1 has the kind alone: 2 bytes and 2 of padding.
    if value.remaining() < 5 {
        return Ok(TypeConsistencyEnforcement { kind, ..TypeConsistencyEnforcement::default() });
    }
    Ok(TypeConsistencyEnforcement {
        kind,
        ignore_sequence_bounds: value.boolean()?,
        ignore_string_bounds: value.boolean()?,
        ignore_member_names: value.boolean()?,
        prevent_type_widening: value.boolean()?,
        force_type_validation: value.boolean()?,
    })
}

fn read_partition(value: &mut Cursor<'_>) -> Result<Vec<String>, WireError> {
    // A string takes at least the 4 bytes of its length: no memory for more than can be there.
    let count = value.count(4)?.min(MAX_NAMES);
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        value.align(4)?;
        // One that is longer than [`MAX_NAME`] is nobody's, and without it the list might be the empty one.
        names.push(value.string()?.to_owned());
    }
    Ok(names)
}

/// Appends what a peer needs for matching, and of the rest what is not at its default.
pub(super) fn write_policies(list: &mut ParameterListWriter<'_>, qos: &EndpointQos, is_writer: bool) {
    let default = if is_writer { EndpointQos::default_writer() } else { EndpointQos::default_reader() };
    list.put_i32(pid::DURABILITY, qos.durability.to_wire());
    // dust_dds reads an infinite duration as another one than its default, and finds that incompatible.
    if qos.deadline != default.deadline {
        list.put_duration(pid::DEADLINE, qos.deadline);
    }
    list.put_duration(pid::LATENCY_BUDGET, qos.latency_budget);
    if qos.liveliness != default.liveliness {
        list.put(pid::LIVELINESS, |out| {
            out.put_i32(qos.liveliness.kind.to_wire());
            out.put_duration(qos.liveliness.lease_duration);
        });
    }
    list.put(pid::RELIABILITY, |out| {
        out.put_i32(qos.reliability.kind.to_wire());
        out.put_duration(qos.reliability.max_blocking_time);
    });
    list.put_i32(pid::OWNERSHIP, qos.ownership.to_wire());
    list.put_i32(pid::DESTINATION_ORDER, qos.destination_order.to_wire());
    list.put(pid::PRESENTATION, |out| {
        out.put_i32(qos.presentation.access_scope.to_wire());
        out.put_boolean(qos.presentation.coherent_access);
        out.put_boolean(qos.presentation.ordered_access);
    });
    write_data_policies(list, qos);
    if is_writer {
        write_writer_policies(list, qos, &default);
    } else {
        write_reader_policies(list, qos, &default);
    }
}

fn write_data_policies(list: &mut ParameterListWriter<'_>, qos: &EndpointQos) {
    if !qos.partition.is_empty() {
        list.put(pid::PARTITION, |out| {
            out.put_count(qos.partition.len());
            for name in &qos.partition {
                out.align(4);
                out.put_string(name);
            }
        });
    }
    if !qos.representation.is_empty() {
        list.put(pid::DATA_REPRESENTATION, |out| {
            out.put_count(qos.representation.len());
            qos.representation.iter().for_each(|id| out.put_u16(id.0.cast_unsigned()));
        });
    }
    for (pid, data) in [
        (pid::USER_DATA, &qos.user_data),
        (pid::GROUP_DATA, &qos.group_data),
        (pid::TOPIC_DATA, &qos.topic_data),
    ] {
        if !data.is_empty() {
            list.put_octets(pid, data);
        }
    }
}

fn write_writer_policies(list: &mut ParameterListWriter<'_>, qos: &EndpointQos, default: &EndpointQos) {
    if qos.durability_service != default.durability_service {
        list.put(pid::DURABILITY_SERVICE, |out| put_durability_service(out, &qos.durability_service));
    }
    if qos.lifespan != default.lifespan {
        list.put_duration(pid::LIFESPAN, qos.lifespan);
    }
    if qos.ownership_strength != default.ownership_strength {
        list.put_i32(pid::OWNERSHIP_STRENGTH, qos.ownership_strength);
    }
    if qos.transport_priority != default.transport_priority {
        list.put_i32(pid::TRANSPORT_PRIORITY, qos.transport_priority);
    }
}

fn write_reader_policies(list: &mut ParameterListWriter<'_>, qos: &EndpointQos, default: &EndpointQos) {
    if qos.time_based_filter != Duration::ZERO {
        list.put_duration(pid::TIME_BASED_FILTER, qos.time_based_filter);
    }
    let rule = &qos.type_consistency;
    if *rule != default.type_consistency {
        list.put(pid::TYPE_CONSISTENCY_ENFORCEMENT, |out| {
            out.put_u16(u16::try_from(rule.kind.to_wire()).unwrap_or(0));
            for flag in [
                rule.ignore_sequence_bounds,
                rule.ignore_string_bounds,
                rule.ignore_member_names,
                rule.prevent_type_widening,
                rule.force_type_validation,
            ] {
                out.put_boolean(flag);
            }
        });
    }
}

fn put_durability_service(out: &mut Out<'_>, service: &DurabilityService) {
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    out.put_duration(service.service_cleanup_delay);
    let (kind, depth) = match service.history {
        History::KeepLast(depth) => (KEEP_LAST, number(depth)),
        History::KeepAll => (KEEP_ALL, 1),
    };
    out.put_i32(kind);
    out.put_i32(depth);
    let limits = &service.resource_limits;
    for limit in [limits.max_samples, limits.max_instances, limits.max_samples_per_instance] {
        out.put_i32(limit.map_or(-1, number));
    }
}
