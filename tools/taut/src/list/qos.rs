//! The policies of an endpoint that are worth showing.

use serde_json::Value;
use taut::qos::EndpointQos;
use taut::{EndpointKind, EndpointSummary};

/// RELIABILITY and DURABILITY, and every policy that is not at its default: a text, or a list where it has several.
pub fn shown(endpoint: &EndpointSummary) -> Vec<(&'static str, Value)> {
    let default = match endpoint.kind {
        EndpointKind::Writer => EndpointQos::default_writer(),
        EndpointKind::Reader => EndpointQos::default_reader(),
    };
    let qos = &endpoint.qos;
    let mut shown = vec![
        ("RELIABILITY", qos.reliability.kind.to_string().into()),
        ("DURABILITY", qos.durability.to_string().into()),
    ];
    if qos.partition != default.partition {
        shown.push(("PARTITION", qos.partition.iter().cloned().collect()));
    }
    if qos.representation != default.representation {
        shown.push(("DATA_REPRESENTATION", qos.representation.iter().map(ToString::to_string).collect()));
    }
    let mut differs = |name, differs: bool, text: String| {
        if differs {
            shown.push((name, text.into()));
        }
    };
    differs("DEADLINE", qos.deadline != default.deadline, qos.deadline.to_string());
    differs("LATENCY_BUDGET", qos.latency_budget != default.latency_budget, qos.latency_budget.to_string());
    differs(
        "LIVELINESS",
        qos.liveliness != default.liveliness,
        format!("{} {}", qos.liveliness.kind, qos.liveliness.lease_duration),
    );
    differs("OWNERSHIP", qos.ownership != default.ownership, qos.ownership.to_string());
    differs(
        "OWNERSHIP_STRENGTH",
        qos.ownership_strength != default.ownership_strength,
        qos.ownership_strength.to_string(),
    );
    differs(
        "DESTINATION_ORDER",
        qos.destination_order != default.destination_order,
        qos.destination_order.to_string(),
    );
    differs(
        "TIME_BASED_FILTER",
        qos.time_based_filter != default.time_based_filter,
        qos.time_based_filter.to_string(),
    );
    differs(
        "TRANSPORT_PRIORITY",
        qos.transport_priority != default.transport_priority,
        qos.transport_priority.to_string(),
    );
    differs("LIFESPAN", qos.lifespan != default.lifespan, qos.lifespan.to_string());
    differs("PRESENTATION", qos.presentation != default.presentation, qos.presentation.to_string());
    differs(
        "USER_DATA",
        qos.user_data != default.user_data,
        String::from_utf8_lossy(&qos.user_data).into_owned(),
    );
    differs(
        "GROUP_DATA",
        qos.group_data != default.group_data,
        String::from_utf8_lossy(&qos.group_data).into_owned(),
    );
    differs(
        "TOPIC_DATA",
        qos.topic_data != default.topic_data,
        String::from_utf8_lossy(&qos.topic_data).into_owned(),
    );
    shown
}
