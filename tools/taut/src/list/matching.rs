//! Which writers and readers of a domain match, and why others do not.
//!
//! There may be as many pairs as there are writers times readers: each is worked out when it is asked for, and none is
//! kept.

use std::fmt;

use taut::qos::{Incompatibility, compare_partitions, incompatible};
use taut::{EndpointKind, EndpointSummary, Guid, ParticipantSummary};

use super::path::{self, Expected};

/// A writer and a reader of one topic.
pub struct Pair<'d> {
    pub writer: &'d EndpointSummary,
    pub reader: &'d EndpointSummary,
    /// Where its samples go, if they match.
    pub outcome: Result<Expected, Refusal<'d>>,
}

/// Why a writer and a reader do not match.
pub enum Refusal<'d> {
    Type(&'d str, &'d str),
    Key,
    Partition(&'d [String], &'d [String]),
    PartitionTooLong,
    Policies(Vec<Incompatibility>),
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Type(writer, reader) => write!(f, "type: the writer has {writer}, the reader {reader}"),
            Refusal::Key => f.write_str("key: one side's type has a key, the other's has none"),
            Refusal::Partition(offered, requested) => {
                write!(f, "PARTITION: offered {offered:?}, requested {requested:?}")
            }
            Refusal::PartitionTooLong => {
                f.write_str("PARTITION: the patterns take too long to compare: make them fewer or shorter")
            }
            Refusal::Policies(why) => {
                let why: Vec<String> = why.iter().map(ToString::to_string).collect();
                f.write_str(&why.join("; "))
            }
        }
    }
}

/// Every writer with every reader of its topic. Participants are in the order of their GUIDs, endpoints in that of their
/// topics.
pub fn pairs<'d>(
    participants: &'d [ParticipantSummary],
    endpoints: &'d [EndpointSummary],
) -> impl Iterator<Item = Pair<'d>> {
    let of_topics = endpoints.chunk_by(|a, b| a.topic_name == b.topic_name);
    of_topics.flat_map(move |of_topic| {
        let of = move |kind| of_topic.iter().filter(move |endpoint| endpoint.kind == kind);
        of(EndpointKind::Writer).flat_map(move |writer| {
            of(EndpointKind::Reader).map(move |reader| pair(participants, writer, reader))
        })
    })
}

fn pair<'d>(
    participants: &'d [ParticipantSummary],
    writer: &'d EndpointSummary,
    reader: &'d EndpointSummary,
) -> Pair<'d> {
    let participant = |guid: Guid| {
        let at = participants.binary_search_by_key(&guid.prefix, |one| one.guid.prefix).ok();
        at.and_then(|at| participants.get(at))
    };
    let path = || path::expected(participant(writer.guid), participant(reader.guid));
    Pair { writer, reader, outcome: refusal(writer, reader).map_or_else(|| Ok(path()), Err) }
}

fn refusal<'d>(writer: &'d EndpointSummary, reader: &'d EndpointSummary) -> Option<Refusal<'d>> {
    if writer.type_name != reader.type_name {
        return Some(Refusal::Type(&writer.type_name, &reader.type_name));
    }
    if writer.guid.entity.is_keyed() != reader.guid.entity.is_keyed() {
        return Some(Refusal::Key);
    }
    let (offered, requested) = (&writer.qos.partition, &reader.qos.partition);
    match compare_partitions(offered, requested, &mut 0) {
        Some(true) => {}
        Some(false) => return Some(Refusal::Partition(offered, requested)),
        None => return Some(Refusal::PartitionTooLong),
    }
    let why = incompatible(&writer.qos, &reader.qos);
    (!why.is_empty()).then_some(Refusal::Policies(why))
}

#[cfg(test)]
pub mod tests {
    use taut::qos::EndpointQos;
    use taut::{EntityId, GuidPrefix};

    use super::*;

    /// So many writers and readers of a topic, by participant 1; those of odd numbers are in a partition of their own.
    pub fn endpoints(writers: u32, readers: u32) -> Vec<EndpointSummary> {
        let of = |kind, number: u32| {
            let (is_writer, mut qos) = match kind {
                EndpointKind::Writer => (true, EndpointQos::default_writer()),
                EndpointKind::Reader => (false, EndpointQos::default_reader()),
            };
            if number % 2 == 1 {
                qos.partition = vec![format!("office {number}")];
            }
            EndpointSummary {
                guid: Guid::new(GuidPrefix([1; 12]), EntityId::user(number, is_writer, true)),
                kind,
                topic_name: "Square".to_owned(),
                type_name: "ShapeType".to_owned(),
                qos,
                unicast: Vec::new(),
                multicast: Vec::new(),
                own: false,
            }
        };
        let writers = (0..writers).map(|number| of(EndpointKind::Writer, number));
        writers.chain((0..readers).map(|number| of(EndpointKind::Reader, number))).collect()
    }

    #[test]
    fn what_takes_too_long_to_compare_says_so() {
        let mut endpoints = endpoints(1, 1);
        let names = (0..256).map(|n| format!("hall {n} {}", "a".repeat(240))).collect();
        let [writer, reader] = &mut endpoints[..] else { panic!("a writer and a reader") };
        (writer.qos.partition, reader.qos.partition) = (vec!["*a*b".to_owned(); 256], names);
        let participants = [path::tests::participant(1, &[])];
        let told = pairs(&participants, &endpoints).map(|pair| pair.outcome.err().map(|why| why.to_string()));
        let told: Vec<_> = told.flatten().collect();
        assert!(told.len() == 1 && told[0].contains("too long to compare"), "{told:?}");
    }

    #[test]
    fn each_writer_meets_each_reader_of_its_topic_only() {
        let mut endpoints = endpoints(2, 3);
        let mut other = endpoints.clone();
        other.iter_mut().for_each(|endpoint| endpoint.topic_name = "Triangle".to_owned());
        endpoints.extend(other);
        let participants = [path::tests::participant(1, &[])];
        let told: Vec<String> = pairs(&participants, &endpoints)
            .map(|pair| {
                assert_eq!(pair.writer.topic_name, pair.reader.topic_name);
                pair.outcome.map_or_else(|refusal| refusal.to_string(), path::words)
            })
            .collect();
        let [here, office, other] = [
            "within one process",
            "PARTITION: offered [\"office 1\"], requested []",
            "PARTITION: offered [], requested [\"office 1\"]",
        ];
        assert_eq!(told, [[here, other, here, office, here, office]; 2].concat());
    }
}
