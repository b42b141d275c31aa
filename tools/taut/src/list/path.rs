//! Which way the samples of a matched pair are to go, from what both participants announce.
//!
//! Seen from outside, so it is what to expect: whether two processes of one host let each other look into
//! their memory they alone know (`DomainParticipant::matches`). The names of the properties are those that
//! Taut announces.

use taut::{ParticipantSummary, SamplePath};

use super::property;

/// Where to expect a pair's samples, and why there or why it cannot be told.
pub type Expected = (Option<SamplePath>, Option<&'static str>);

/// The way between a writer's and a reader's participant; `None` for one that has not announced itself yet.
pub fn expected(writer: Option<&ParticipantSummary>, reader: Option<&ParticipantSummary>) -> Expected {
    let (Some(writer), Some(reader)) = (writer, reader) else {
        return (None, Some("a participant has not announced itself"));
    };
    let same = |name| property(writer, name) == property(reader, name);
    let network = |why| (Some(SamplePath::Network), Some(why));
    let has = |name| (property(writer, name).is_some(), property(reader, name).is_some());
    if writer.guid.prefix == reader.guid.prefix {
        return (Some(SamplePath::Process), None);
    }
    match has("taut.version") {
        (false, false) => return (None, Some("neither side is Taut")),
        (true, true) => {}
        _ => return network("another vendor"),
    }
    match has("taut.local") {
        (false, false) => return network("local is off on both sides"),
        (false, true) => return network("local is off at the writer"),
        (true, false) => return network("local is off at the reader"),
        (true, true) => {}
    }
    if !same("taut.local") {
        return network("another host");
    }
    // Containers of one host may each have a process of this number.
    let same_process = same("taut.pid") && same("taut.host") && same("taut.process");
    (Some(if same_process { SamplePath::Process } else { SamplePath::SharedMemory }), None)
}

/// For programs.
pub fn name(path: SamplePath) -> &'static str {
    match path {
        SamplePath::Process => "process",
        SamplePath::SharedMemory => "shared_memory",
        SamplePath::Network => "network",
    }
}

/// For people, behind a number of pairs.
pub fn words((path, why): Expected) -> String {
    let way = match path {
        Some(SamplePath::Process) => "within one process",
        // Participants do not announce their users, who they alone know.
        Some(SamplePath::SharedMemory) => "by shared memory, if their users may",
        Some(SamplePath::Network) => "by UDP",
        None => "by a way unknown",
    };
    why.map_or_else(|| way.to_owned(), |why| format!("{way} ({why})"))
}

#[cfg(test)]
pub mod tests {
    use taut::{Duration, EntityId, Guid, GuidPrefix, VendorId};

    use super::*;

    /// A participant that announces these properties.
    pub fn participant(number: u8, properties: &[(&str, &str)]) -> ParticipantSummary {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ParticipantSummary {
            guid: Guid::new(GuidPrefix([number; 12]), EntityId::PARTICIPANT),
            vendor: VendorId::UNKNOWN,
            name: String::new(),
            properties: properties.collect(),
            user_data: Vec::new(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            metatraffic: Vec::new(),
            lease_duration: Duration::from_secs(10),
            own: false,
        }
    }

    /// What Taut announces in a process of a host.
    pub fn taut(number: u8, host: &str, pid: &str) -> ParticipantSummary {
        let about = [("taut.version", "1"), ("taut.host", "rover"), ("taut.process", "drive")];
        participant(number, &[&about[..], &[("taut.pid", pid), ("taut.local", host)]].concat())
    }

    fn without(mut participant: ParticipantSummary, name: &str) -> ParticipantSummary {
        participant.properties.retain(|(known, _)| known != name);
        participant
    }

    fn way(writer: &ParticipantSummary, reader: &ParticipantSummary) -> Expected {
        expected(Some(writer), Some(reader))
    }

    const PROCESS: Expected = (Some(SamplePath::Process), None);
    const SHARED_MEMORY: Expected = (Some(SamplePath::SharedMemory), None);

    fn network(why: &'static str) -> Expected {
        (Some(SamplePath::Network), Some(why))
    }

    #[test]
    fn one_host() {
        let one = taut(1, "h", "7");
        assert_eq!(way(&one, &taut(2, "h", "7")), PROCESS);
        assert_eq!(way(&one, &taut(2, "h", "8")), SHARED_MEMORY);
        let mut container = taut(2, "h", "7");
        container.properties.retain(|(name, _)| name != "taut.host");
        container.properties.push(("taut.host".to_owned(), "0a1b2c".to_owned()));
        assert_eq!(way(&one, &container), SHARED_MEMORY, "its process has this number by accident");
    }

    #[test]
    fn hosts_of_one_name_and_number_are_told_apart() {
        assert_eq!(way(&taut(1, "h", "7"), &taut(2, "g", "7")), network("another host"));
    }

    #[test]
    fn local_is_off() {
        let (on, off) = (taut(1, "h", "7"), without(taut(2, "h", "7"), "taut.local"));
        assert_eq!(way(&on, &off), network("local is off at the reader"));
        assert_eq!(way(&off, &on), network("local is off at the writer"));
        let other = without(taut(3, "h", "7"), "taut.local");
        assert_eq!(way(&off, &other), network("local is off on both sides"));
        assert_eq!(way(&off, &off), PROCESS, "one participant needs no memory of another");
    }

    #[test]
    fn other_vendors() {
        let (ours, theirs) = (taut(1, "h", "7"), participant(2, &[("__Pid", "7")]));
        assert_eq!(way(&ours, &theirs), network("another vendor"));
        assert_eq!(way(&theirs, &ours), network("another vendor"));
        assert_eq!(way(&theirs, &participant(3, &[])), (None, Some("neither side is Taut")));
        assert_eq!(way(&theirs, &theirs), PROCESS);
        assert_eq!(expected(Some(&ours), None).0, None);
    }
}
