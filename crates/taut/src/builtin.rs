//! What discovery knows: the content of the built-in topics. DCPS 1.4 §2.2.5.

use taut_base::{Guid, Locator, VendorId};
use taut_exec::SamplePath;
use taut_qos::EndpointQos;

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

fn summary(data: &taut_rtps::discovery::EndpointData, own: bool) -> EndpointSummary {
    EndpointSummary {
        guid: data.guid,
        kind: if data.guid.entity.is_writer() { EndpointKind::Writer } else { EndpointKind::Reader },
        topic_name: data.topic_name.clone(),
        type_name: data.type_name.clone(),
        qos: data.qos.clone(),
        unicast: data.unicast_locators.clone(),
        multicast: data.multicast_locators.clone(),
        own,
    }
}

impl DomainParticipant {
    /// The participants of the domain, this one first.
    pub fn discovered_participants(&self) -> Vec<ParticipantSummary> {
        let found = self.executor.look(|participant, _| {
            let core = participant.core();
            let config = core.config();
            let own = ParticipantSummary {
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
            };
            let peers = core.database().peers().map(|peer| ParticipantSummary {
                guid: peer.data.guid(),
                vendor: peer.data.vendor_id,
                name: peer.data.entity_name.clone(),
                properties: peer.data.properties.clone(),
                user_data: peer.data.user_data.clone(),
                unicast: peer.data.default_unicast.clone(),
                multicast: peer.data.default_multicast.clone(),
                metatraffic: peer.data.metatraffic_unicast.clone(),
                lease_duration: peer.data.lease_duration,
                own: false,
            });
            std::iter::once(own).chain(peers).collect()
        });
        found.unwrap_or_default()
    }

    /// The endpoints of the domain, this participant's first.
    pub fn discovered_endpoints(&self) -> Vec<EndpointSummary> {
        let found = self.executor.look(|participant, _| {
            let core = participant.core();
            let own = core.local_endpoints().map(|data| summary(data, true));
            own.chain(core.database().endpoints().map(|data| summary(data, false))).collect()
        });
        found.unwrap_or_default()
    }

    /// For each local endpoint the others of its topic: matched and on which path, or why not.
    pub fn matches(&self) -> Vec<LocalMatch> {
        let mut found = self.pairs();
        for pair in found.iter_mut().filter(|pair| pair.refused.is_none()) {
            let (path, why) = self.executor.path(pair.local, pair.remote);
            (pair.path, pair.why) = (Some(path), why);
        }
        found
    }

    fn pairs(&self) -> Vec<LocalMatch> {
        let pair = |local, remote, refused| LocalMatch { local, remote, refused, path: None, why: None };
        let found = self.executor.look(|participant, _| {
            let core = participant.core();
            let prefix = core.guid().prefix;
            let matched = core.local_endpoints().flat_map(|data| {
                let remotes = core.database().matches(data.guid.entity);
                remotes.map(move |remote| pair(data.guid, remote, None))
            });
            let refused = core
                .database()
                .refusals()
                .map(|(local, remote, why)| pair(Guid::new(prefix, local), remote, Some(why.to_string())));
            matched.chain(refused).collect()
        });
        found.unwrap_or_default()
    }
}
