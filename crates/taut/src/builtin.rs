//! What discovery knows: the content of the built-in topics. DCPS 1.4 §2.2.5.

use std::sync::Arc;

use taut_base::{EntityId, Guid, GuidPrefix, Locator, VendorId};
use taut_exec::{Executor, SamplePath};
use taut_qos::EndpointQos;
use taut_rtps::Participant;
use taut_rtps::discovery::{EndpointData, Pair, ParticipantData, Refusal};

use crate::DomainParticipant;

/// A participant of the domain (DCPSParticipant).
#[derive(Clone, PartialEq, Debug)]
pub struct ParticipantSummary {
    /// Its GUID.
    pub guid: Guid,
    /// Who made its DDS.
    pub vendor: VendorId,
    /// Its name for people, if it has one.
    pub name: String,
    /// What it says of itself, such as host and process.
    pub properties: Vec<(String, String)>,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// Where its samples go, unless an endpoint says otherwise.
    pub unicast: Vec<Locator>,
    /// The multicast address for its samples.
    pub multicast: Vec<Locator>,
    /// Where its discovery is reached.
    pub metatraffic: Vec<Locator>,
    /// How long it is remembered without a sign of life.
    pub lease_duration: taut_base::Duration,
    /// Is it this participant?
    pub own: bool,
}

impl ParticipantSummary {
    /// Its program, process id and host, as far as it says so in one of the vendors' ways.
    pub fn process(&self) -> [Option<&str>; 3] {
        taut_rtps::discovery::process(&self.properties)
    }
}

/// A writer (DCPSPublication) or a reader (DCPSSubscription).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointKind {
    /// A DataWriter.
    Writer,
    /// A DataReader.
    Reader,
}

/// An endpoint of the domain (DCPSPublication, DCPSSubscription).
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointSummary {
    /// Its GUID.
    pub guid: Guid,
    /// Writer or reader.
    pub kind: EndpointKind,
    /// Its topic.
    pub topic_name: String,
    /// Its type.
    pub type_name: String,
    /// All its policies.
    pub qos: EndpointQos,
    /// Addresses of its own.
    pub unicast: Vec<Locator>,
    /// Multicast addresses of its own.
    pub multicast: Vec<Locator>,
    /// Does it belong to this participant?
    pub own: bool,
}

/// A local endpoint and another one of its topic: matched, or why not.
#[derive(Clone, Debug)]
pub struct LocalMatch {
    /// The local endpoint.
    pub local: Guid,
    /// The other one.
    pub remote: Guid,
    /// Why they do not match; `None` if they do.
    pub refused: Option<String>,
    /// The way that samples between them go now; `None` if they do not match. What finds no room on a
    /// way past the network goes by the network, sample by sample; so does all of a KEEP_ALL writer with
    /// `max_samples_per_instance`.
    pub path: Option<SamplePath>,
    /// Why that is the network.
    pub why: Option<String>,
}

impl ParticipantSummary {
    fn own(core: &Participant) -> ParticipantSummary {
        let config = core.config();
        ParticipantSummary {
            guid: core.guid(),
            vendor: VendorId::UNKNOWN,
            name: config.entity_name.clone(),
            properties: config.properties.clone(),
            user_data: config.user_data.clone(),
            unicast: config.addresses.default_unicast.clone(),
            multicast: config.addresses.default_multicast.clone(),
            metatraffic: config.addresses.metatraffic_unicast.clone(),
            lease_duration: config.lease_duration,
            own: true,
        }
    }

    fn other(data: &ParticipantData) -> ParticipantSummary {
        ParticipantSummary {
            guid: data.guid(),
            vendor: data.vendor_id,
            name: data.entity_name.clone(),
            properties: data.properties.clone(),
            user_data: data.user_data.clone(),
            unicast: data.default_unicast.clone(),
            multicast: data.default_multicast.clone(),
            metatraffic: data.metatraffic_unicast.clone(),
            lease_duration: data.lease_duration,
            own: false,
        }
    }
}

impl EndpointSummary {
    fn new(data: &EndpointData, own: bool) -> EndpointSummary {
        EndpointSummary {
            guid: data.guid,
            kind: if data.is_writer() { EndpointKind::Writer } else { EndpointKind::Reader },
            topic_name: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            qos: data.qos.clone(),
            unicast: data.unicast_locators.clone(),
            multicast: data.multicast_locators.clone(),
            own,
        }
    }
}

/// What discovery knows is found in steps with the token, of so many handles each: what a user sees is copied from them
/// without it. Lower and it takes more steps, each of which takes the token, higher and others wait for longer: so many take up
/// to 25 us where none is in a cache.
const STEP: usize = 256;

/// All that is behind one after another, beginning with what is behind `None`; others have their turn between two steps. In
/// the child of a fork there is none.
fn in_steps<T: Clone>(
    executor: &Executor,
    behind: impl Fn(&Participant, Option<T>) -> Box<dyn Iterator<Item = T> + '_>,
) -> Vec<T> {
    let mut found = Vec::new();
    loop {
        // Nor is memory sought with the token.
        found.reserve(STEP);
        let (before, last) = (found.len(), found.last().cloned());
        let looked =
            executor.look(|participant, _| found.extend(behind(participant.core(), last).take(STEP)));
        if looked.is_err() || found.len() - before < STEP {
            return found;
        }
    }
}

/// The other participants of the domain.
pub(crate) fn others(executor: &Executor) -> Vec<ParticipantSummary> {
    let found = in_steps(executor, |core, last: Option<Arc<ParticipantData>>| {
        let last = last.map_or(GuidPrefix::UNKNOWN, |data| data.guid_prefix);
        Box::new(core.database().peers_behind(last).map(|peer| Arc::clone(&peer.data)))
    });
    found.iter().map(|data| ParticipantSummary::other(data)).collect()
}

/// Their writers or readers.
pub(crate) fn others_endpoints(executor: &Executor, kind: EndpointKind) -> Vec<EndpointSummary> {
    let found = endpoints_behind(executor, Guid::UNKNOWN);
    let of_kind = found.iter().filter(|data| data.is_writer() == (kind == EndpointKind::Writer));
    of_kind.map(|data| EndpointSummary::new(data, false)).collect()
}

fn endpoints_behind(executor: &Executor, guid: Guid) -> Vec<Arc<EndpointData>> {
    in_steps(executor, |core, last: Option<Arc<EndpointData>>| {
        Box::new(core.endpoints_behind(last.map_or(guid, |data| data.guid)).cloned())
    })
}

/// What a local endpoint is matched with. *Cost*: the token for 256 at a time.
pub(crate) fn matched_with(executor: &Executor, local: Guid) -> Vec<Guid> {
    in_steps(executor, |core, last: Option<Guid>| {
        Box::new(core.database().matches_behind(local.entity, last.unwrap_or(Guid::UNKNOWN)))
    })
}

/// Is it matched with another one?
pub(crate) fn is_matched_with(executor: &Executor, local: Guid, other: Guid) -> bool {
    let is_matched =
        executor.look(|participant, _| participant.core().database().is_matched(local.entity, other));
    is_matched.unwrap_or_default()
}

impl DomainParticipant {
    /// The participants of the domain, this one first. *Cost*: the token for 256 at a time, and copies without it: what comes or
    /// goes meanwhile may be among them.
    pub fn discovered_participants(&self) -> Vec<ParticipantSummary> {
        let own = self.executor.look(|participant, _| ParticipantSummary::own(participant.core()));
        own.into_iter().chain(others(&self.executor)).collect()
    }

    /// The endpoints of the domain, this participant's first. *Cost*: as of [`DomainParticipant::discovered_participants`].
    pub fn discovered_endpoints(&self) -> Vec<EndpointSummary> {
        let prefix = self.executor.guid_prefix();
        let found = endpoints_behind(&self.executor, Guid::new(prefix, EntityId::UNKNOWN));
        found.iter().map(|data| EndpointSummary::new(data, data.guid.prefix == prefix)).collect()
    }

    /// For each local endpoint the others of its topic: matched and on which path, or why not. *Cost*: as of
    /// [`DomainParticipant::discovered_participants`], and the token up to three times for each match.
    pub fn matches(&self) -> Vec<LocalMatch> {
        let prefix = self.executor.guid_prefix();
        let found = in_steps(&self.executor, |core, last: Option<(Pair, _)>| {
            let last = last.map_or((Guid::UNKNOWN, EntityId::UNKNOWN), |(pair, _)| pair);
            Box::new(core.database().pairs_behind(last).map(|(pair, why)| (pair, why.cloned())))
        });
        let mut found: Vec<_> = found
            .into_iter()
            .map(|((remote, local), why)| self.pair(Guid::new(prefix, local), remote, why.as_deref()))
            .collect();
        found.sort_by_key(|pair| (pair.refused.is_some(), pair.local, pair.remote));
        found
    }

    fn pair(&self, local: Guid, remote: Guid, refused: Option<&Refusal>) -> LocalMatch {
        let refused = refused.map(Refusal::to_string);
        let (path, why) = refused.is_none().then(|| self.executor.path(local, remote)).unzip();
        LocalMatch { local, remote, refused, path, why: why.flatten() }
    }
}

#[cfg(test)]
mod tests {
    use taut_derive::DdsType;
    use taut_exec::{Driver, JobClass};

    use super::*;
    use crate::{Config, DataReader, Qos};

    #[derive(DdsType)]
    #[dds(final, crate = ::taut_cdr)]
    struct Number {
        value: u32,
    }

    /// Others have their turn between two steps.
    #[test]
    fn however_much_is_known_is_found_in_steps_of_so_much() {
        const READERS: usize = 2 * STEP;
        let config = Config { domain_id: 113, interfaces: vec!["lo".into()], ..Config::default() };
        let participant =
            DomainParticipant::with_config(&Config { driver: Driver::Inline, ..config }).unwrap();
        let topic = participant.topic::<Number>("Many").unwrap();
        let writer = topic.writer(Qos::default().best_effort()).unwrap();
        let reliable = |n: usize| {
            if n.is_multiple_of(2) { Qos::default().reliable() } else { Qos::default().best_effort() }
        };
        let readers: Vec<_> = (0..READERS).map(|n| topic.reader(reliable(n)).unwrap()).collect();
        let calls = || participant.latency_report().classes[JobClass::Calls as usize].steps as usize;
        // One of them is the report.
        let steps_since = |before: usize| calls() - before - 1;
        let before = calls();
        let endpoints: Vec<_> = participant.discovered_endpoints().iter().map(|found| found.guid).collect();
        let taken = steps_since(before);
        assert!(taken > READERS / STEP, "{taken}");
        let mut known: Vec<_> = readers.iter().map(DataReader::guid).chain([writer.guid()]).collect();
        known.sort();
        assert_eq!(endpoints, known);
        let before = calls();
        let matches = participant.matches();
        let taken = steps_since(before);
        // Each is one for either side.
        assert!(taken > 2 * READERS / STEP, "{taken}");
        let (refused, matched) = matches.into_iter().partition::<Vec<_>, _>(|pair| pair.refused.is_some());
        let of =
            |found: &[LocalMatch]| found.iter().map(|pair| (pair.local, pair.remote)).collect::<Vec<_>>();
        let before = calls();
        let own = writer.matched_subscriptions();
        let taken = steps_since(before);
        assert_eq!(
            own,
            of(&matched)
                .into_iter()
                .filter(|pair| pair.0 == writer.guid())
                .map(|pair| pair.1)
                .collect::<Vec<_>>()
        );
        assert!(own.len() == READERS / 2 && (1..=1 + own.len() / STEP).contains(&taken), "{taken}");
        assert!(
            readers
                .iter()
                .all(|reader| writer.is_matched_with(reader.guid()) == own.contains(&reader.guid()))
        );
        assert_eq!(readers[1].matched_publications(), [writer.guid()]);
        assert!(readers[1].is_matched_with(writer.guid()) && !readers[0].is_matched_with(writer.guid()));
        assert_eq!(readers[0].matched_publications(), []);
        let pairs = |is_refused: bool| {
            let of_kind =
                (0..READERS).filter(|n| n.is_multiple_of(2) == is_refused).map(|n| readers[n].guid());
            let mut pairs: Vec<_> =
                of_kind.flat_map(|reader| [(reader, writer.guid()), (writer.guid(), reader)]).collect();
            pairs.sort();
            pairs
        };
        assert_eq!([of(&refused), of(&matched)], [pairs(true), pairs(false)]);
    }
}
