//! Which writers and readers of a domain match, and why others do not.

use taut::qos::{incompatible, partitions_match};
use taut::{EndpointKind, EndpointSummary, Guid, ParticipantSummary};

use super::path::{self, Expected};

/// A writer and a reader of one topic.
pub struct Pair {
    pub topic_name: String,
    pub writer: Guid,
    pub reader: Guid,
    /// Why they do not match; `None` if they do.
    pub refused: Option<String>,
    /// Where its samples go, if they match.
    pub path: Option<Expected>,
}

/// Every writer with every reader of its topic.
pub fn pairs(participants: &[ParticipantSummary], endpoints: &[EndpointSummary]) -> Vec<Pair> {
    let of = |kind| endpoints.iter().filter(move |endpoint| endpoint.kind == kind);
    let participant = |guid: Guid| participants.iter().find(|one| one.guid.prefix == guid.prefix);
    let pair = |writer: &EndpointSummary, reader: &EndpointSummary| {
        let refused = refusal(writer, reader);
        let path = || path::expected(participant(writer.guid), participant(reader.guid));
        Pair {
            topic_name: writer.topic_name.clone(),
            writer: writer.guid,
            reader: reader.guid,
            path: refused.is_none().then(path),
            refused,
        }
    };
    of(EndpointKind::Writer)
        .flat_map(|writer| {
            let readers = of(EndpointKind::Reader).filter(|reader| reader.topic_name == writer.topic_name);
            readers.map(move |reader| pair(writer, reader))
        })
        .collect()
}

fn refusal(writer: &EndpointSummary, reader: &EndpointSummary) -> Option<String> {
    if writer.type_name != reader.type_name {
        return Some(format!("type: the writer has {}, the reader {}", writer.type_name, reader.type_name));
    }
    if writer.guid.entity.is_keyed() != reader.guid.entity.is_keyed() {
        return Some("key: one side's type has a key, the other's has none".to_owned());
    }
    if !partitions_match(&writer.qos.partition, &reader.qos.partition) {
        return Some(format!(
            "PARTITION: offered {:?}, requested {:?}",
            writer.qos.partition, reader.qos.partition
        ));
    }
    let why: Vec<String> = incompatible(&writer.qos, &reader.qos).iter().map(ToString::to_string).collect();
    (!why.is_empty()).then(|| why.join("; "))
}
