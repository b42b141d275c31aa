//! Who is there and what matches. RTPS 2.5 §8.5.
//!
//! `spdp` finds participants, `fragmented` those whose announcements come so, `forgetting` forgets them, `sedp`
//! exchanges endpoints, `matching` brings local and remote ones together, `refusals` has
//! why some do not match, `transmit` sends what comes of it. What a
//! peer says is believed of that peer only, and every table has a cap.

mod addresses;
mod endpoint_data;
mod forgetting;
mod fragmented;
pub(crate) mod inbox;
mod locators;
mod looking;
mod lost;
mod matches;
mod matching;
mod naming;
mod parameters;
mod participant_data;
mod qos_parameters;
mod refusals;
mod sedp;
mod spdp;
mod stranded;
mod topics;
mod transmit;

#[cfg(test)]
mod data_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use taut_base::{Duration, EntityId, Guid, GuidPrefix, Locator, SequenceNumber, Time};

use crate::participant::Participant;
use crate::recent::RecentMap;
use crate::{ReaderIndex, WriterIndex};

use forgetting::Leaving;
use looking::{Looks, start};
use lost::{LeftPeers, LostPeers};
use matches::Matches;
use refusals::Refusals;

pub use endpoint_data::EndpointData;
pub(crate) use fragmented::Announcements;
pub(crate) use matching::{Found, Unmatched};
pub use naming::{Named, process, push_process};
pub use participant_data::{ParticipantData, builtin_endpoint};
pub use refusals::Refusal;
pub(crate) use spdp::Spdp;
pub(crate) use topics::Topics;
pub(crate) use transmit::Outbound;

/// A known participant.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it says of itself.
    pub data: Arc<ParticipantData>,
    /// Where its discovery is reached from here.
    pub metatraffic: Vec<Locator>,
    /// Where its endpoints are reached from here, unless they say otherwise.
    pub unicast: Vec<Locator>,
    /// Where it announces itself from; of two addresses that lead elsewhere the one that was heard first, as long as it is.
    pub(crate) source: Locator,
    /// When it last did so from there.
    pub(crate) source_at: Time,
    /// When it last announced itself to a group, as far as that got here: so does what this side announces to groups, there.
    pub(crate) group_at: Option<Time>,
    /// It is told directly of this participant, which is not done yet.
    pub(crate) is_newcomer: bool,
    /// That announcement byte by byte, unless it was [long](crate::limits::SAID): said again, it need not be read again.
    pub(crate) said: Vec<u8>,
    /// The addresses of this participant that it has found it at, if it keeps them and as far as that can be known here.
    pub(crate) kept_addresses: Vec<IpAddr>,
    /// How long it counts as alive after each message: its lease, or less while it has answered nothing.
    pub(crate) lease: Duration,
    /// When it last said something. It is forgotten so long after that.
    pub(crate) heard_at: Time,
    /// Since when it is known, if it has answered nothing since.
    pub(crate) silent_since: Option<Time>,
    /// How often it was sent something since it last announced itself, if it has answered nothing.
    pub(crate) asked: u32,
    /// How many endpoints it has.
    pub(crate) endpoints: usize,
    /// Matches of local endpoints that it has not said to know: they greet theirs when it has.
    pub(crate) greetings: BTreeSet<Greeting>,
    /// Before this, not all matches with it are gone through once more.
    pub(crate) look_at: Time,
    /// Before this, its writers that have said nothing are not asked once more.
    pub(crate) ask_at: Time,
    /// How long they were not, once they had been.
    pub(crate) ask_pause: Duration,
    /// Before this, it is not believed once more that another process has taken its name.
    pub(crate) next_life_at: Time,
    /// What is under way through the matches with it.
    pub(crate) looks: Looks,
    /// It has forgotten this participant, and that is not seen to yet.
    pub(crate) has_forgotten: bool,
    /// It has named other groups than before, and that is not seen to yet.
    pub(crate) has_regrouped: bool,
}

/// A match of a local endpoint that is to greet the other one once it is known there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Greeting {
    /// Is the local endpoint a writer? Two writers announce, each with its own numbers.
    by_writer: bool,
    /// The change that tells of it.
    announced: SequenceNumber,
    local: EntityId,
    remote: Guid,
}

impl Greeting {
    fn new(announced: SequenceNumber, local: EntityId, remote: Guid) -> Greeting {
        Greeting { by_writer: local.is_writer(), announced, local, remote }
    }
}

/// An endpoint of whichever participant, and a local one: a match, or why there is none.
pub type Pair = (Guid, EntityId);

/// Everything that discovery has found.
#[derive(Default)]
pub struct Database {
    peers: RecentMap<GuidPrefix, Peer>,
    /// Those that are being forgotten.
    leaving: BTreeMap<GuidPrefix, Leaving>,
    lost: LostPeers,
    left: LeftPeers,
    /// Those that have answered nothing, the oldest first.
    silent: BTreeSet<(Time, GuidPrefix)>,
    endpoints: BTreeMap<Guid, Arc<EndpointData>>,
    by_topic: BTreeMap<String, BTreeSet<Guid>>,
    matches: Matches,
    refusals: Refusals,
}

impl Database {
    /// The known participants.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    /// Those behind this one.
    pub fn peers_behind(&self, prefix: GuidPrefix) -> impl Iterator<Item = &Peer> {
        let next = |prefix: &GuidPrefix| self.peers.key_after(*prefix);
        std::iter::successors(next(&prefix), next).filter_map(|prefix| self.peers.get(&prefix))
    }

    /// A known participant.
    pub fn peer(&self, prefix: GuidPrefix) -> Option<&Peer> {
        self.peers.get(&prefix)
    }

    /// The known endpoints of other participants.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<EndpointData>> {
        self.endpoints.values()
    }

    /// A known endpoint of another participant.
    pub fn endpoint(&self, guid: Guid) -> Option<&Arc<EndpointData>> {
        self.endpoints.get(&guid)
    }

    /// Has a topic a reader in another participant?
    pub fn is_read(&self, topic_name: &str) -> bool {
        self.by_topic.get(topic_name).is_some_and(|guids| guids.iter().any(|guid| guid.entity.is_reader()))
    }

    /// What a local endpoint is matched with.
    pub fn matches(&self, local: EntityId) -> impl Iterator<Item = Guid> + '_ {
        self.matches.of_local(local)
    }

    /// The same behind this one.
    pub fn matches_behind(&self, local: EntityId, behind: Guid) -> impl Iterator<Item = Guid> + '_ {
        self.matches.of_local_behind(local, behind)
    }

    /// Local endpoints and those of a participant that they are matched with.
    pub(crate) fn matches_of_peer(&self, prefix: GuidPrefix) -> impl Iterator<Item = (EntityId, Guid)> + '_ {
        self.matches.of_peer_after(prefix, start(prefix))
    }

    /// Is a local endpoint matched with another one?
    pub fn is_matched(&self, local: EntityId, remote: Guid) -> bool {
        self.matches.contains(local, remote)
    }

    /// Why local endpoints do not match others of their topic.
    pub fn refusals(&self) -> impl Iterator<Item = (EntityId, Guid, &Refusal)> {
        self.refusals.iter()
    }

    /// The pairs behind this one: matched, or why not.
    pub fn pairs_behind(&self, pair: Pair) -> impl Iterator<Item = (Pair, Option<&Arc<Refusal>>)> {
        let mut matched = self.matches.behind(pair).peekable();
        let mut refused = self.refusals.behind(pair).peekable();
        std::iter::from_fn(move || {
            let is_match = |next: &Pair| refused.peek().is_none_or(|(refused, _)| next < *refused);
            match matched.next_if(is_match) {
                Some(pair) => Some((pair, None)),
                None => refused.next().map(|(pair, why)| (*pair, Some(why))),
            }
        })
    }
}

/// A local endpoint as discovery sees it.
pub(crate) struct Local {
    pub data: Arc<EndpointData>,
    pub kind: LocalKind,
    /// It is about to be deleted: it matches nothing any more, and hears of nothing.
    pub ends: bool,
    /// The change that last told of it.
    pub announced: SequenceNumber,
}

/// Which table a local endpoint is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LocalKind {
    Writer(WriterIndex),
    Reader(ReaderIndex),
}

impl LocalKind {
    pub fn writer(self) -> Option<WriterIndex> {
        match self {
            LocalKind::Writer(index) => Some(index),
            LocalKind::Reader(_) => None,
        }
    }

    pub fn reader(self) -> Option<ReaderIndex> {
        match self {
            LocalKind::Writer(_) => None,
            LocalKind::Reader(index) => Some(index),
        }
    }
}

impl Participant {
    /// The topic of a local endpoint.
    pub fn topic_of(&self, entity: EntityId) -> Option<&str> {
        self.locals.get(&entity).map(|local| local.data.topic_name.as_str())
    }

    /// What a local or a discovered endpoint announces.
    pub fn endpoint(&self, guid: Guid) -> Option<&Arc<EndpointData>> {
        match self.local(guid) {
            Some(local) => Some(&local.data),
            None => self.database.endpoint(guid),
        }
    }

    /// The place of a local writer.
    pub fn local_writer(&self, guid: Guid) -> Option<WriterIndex> {
        self.local(guid)?.kind.writer()
    }

    /// The local readers that are matched with a writer of another participant.
    pub fn readers_of(&self, writer: Guid) -> &[ReaderIndex] {
        self.sources.get(&writer).map_or(&[], Vec::as_slice)
    }

    /// The place of a local reader.
    pub fn local_reader(&self, guid: Guid) -> Option<ReaderIndex> {
        self.local(guid)?.kind.reader()
    }

    fn local(&self, guid: Guid) -> Option<&Local> {
        self.locals.get(&guid.entity).filter(|_| guid.prefix == self.config.guid_prefix)
    }

    /// The local endpoints with what they announce, built-in ones left out.
    pub fn local_endpoints(&self) -> impl Iterator<Item = &Arc<EndpointData>> {
        self.locals.iter().filter(|(entity, _)| !entity.is_builtin()).map(|(_, local)| &local.data)
    }

    /// Why a local endpoint does not match others of its topic. *Cost*: a look at each of these.
    pub fn refusals_of(&self, local: EntityId) -> impl Iterator<Item = (Guid, &Refusal)> {
        let topic = self.topic_of(local).unwrap_or_default();
        let beside = self.topics.of(topic).map(|entity| Guid::new(self.config.guid_prefix, entity));
        let others = self.database.by_topic.get(topic).into_iter().flatten().copied();
        beside.chain(others).filter_map(move |guid| Some((guid, self.database.refusals.get(guid, local)?)))
    }

    /// The endpoints behind this one: those of this participant first, built-in ones left out, then those of others.
    pub fn endpoints_behind(&self, guid: Guid) -> impl Iterator<Item = &Arc<EndpointData>> {
        let is_own = guid.prefix == self.config.guid_prefix;
        let behind = (Bound::Excluded(guid.entity), Bound::Unbounded);
        let locals = is_own.then(|| self.locals.range(behind)).into_iter().flatten();
        let locals = locals.filter(|(entity, _)| !entity.is_builtin()).map(|(_, local)| &local.data);
        let from = if is_own { Bound::Unbounded } else { Bound::Excluded(guid) };
        locals.chain(self.database.endpoints.range((from, Bound::Unbounded)).map(|(_, data)| data))
    }

    /// Everything that discovery has found.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

/// The participant's own built-in endpoints. RTPS 2.5 §8.5.4.2, §8.4.13.
pub(crate) struct Builtin {
    pub publications_writer: WriterIndex,
    pub subscriptions_writer: WriterIndex,
    pub message_writer: WriterIndex,
    pub publications_reader: ReaderIndex,
    pub subscriptions_reader: ReaderIndex,
    pub message_reader: ReaderIndex,
    /// What discovery has to send is in the schedule.
    pub queued: bool,
}

/// A built-in writer, the reader of the same data, and what both have to do with at each other participant. The bits
/// in its announcement say which of the two it has.
#[derive(Clone, Copy)]
pub(crate) struct BuiltinPair {
    pub writer: WriterIndex,
    pub remote_reader: EntityId,
    pub reads: u32,
    pub reader: ReaderIndex,
    pub remote_writer: EntityId,
    pub writes: u32,
}

impl Builtin {
    /// All but those of SPDP, which have no proxies.
    pub fn pairs(&self) -> [BuiltinPair; 3] {
        [
            BuiltinPair {
                writer: self.publications_writer,
                remote_reader: EntityId::SEDP_PUBLICATIONS_READER,
                reads: builtin_endpoint::PUBLICATIONS_DETECTOR,
                reader: self.publications_reader,
                remote_writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                writes: builtin_endpoint::PUBLICATIONS_ANNOUNCER,
            },
            BuiltinPair {
                writer: self.subscriptions_writer,
                remote_reader: EntityId::SEDP_SUBSCRIPTIONS_READER,
                reads: builtin_endpoint::SUBSCRIPTIONS_DETECTOR,
                reader: self.subscriptions_reader,
                remote_writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                writes: builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER,
            },
            BuiltinPair {
                writer: self.message_writer,
                remote_reader: EntityId::PARTICIPANT_MESSAGE_READER,
                reads: builtin_endpoint::PARTICIPANT_MESSAGE_READER,
                reader: self.message_reader,
                remote_writer: EntityId::PARTICIPANT_MESSAGE_WRITER,
                writes: builtin_endpoint::PARTICIPANT_MESSAGE_WRITER,
            },
        ]
    }
}

impl Default for Builtin {
    fn default() -> Self {
        let (writer, reader) = (WriterIndex(u32::MAX), ReaderIndex(u32::MAX));
        Builtin {
            publications_writer: writer,
            subscriptions_writer: writer,
            message_writer: writer,
            publications_reader: reader,
            subscriptions_reader: reader,
            message_reader: reader,
            queued: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use taut_qos::EndpointQos;

    use super::*;
    use crate::Config;

    /// A step begins behind the last one's last, which may have gone meanwhile.
    #[test]
    fn what_is_behind_one_after_another_is_all_there_is() {
        /// One that is found behind itself would be found for ever.
        const MOST: usize = 20;
        let (prefix, own) = (|n| GuidPrefix([n; 12]), GuidPrefix([2; 12]));
        let [first, second] = [1, 2].map(|n| EntityId::user(n, n == 1, false));
        let address = Locator::udp_v4([127, 0, 0, 1].into(), 7410);
        let mut here = Participant::new(Config::at(own, address));
        let of = |guid| Arc::new(EndpointData::of(guid, "Topic", "Type", EndpointQos::default_writer()));
        for entity in [first, second] {
            let (kind, announced) = (LocalKind::Writer(WriterIndex(9)), SequenceNumber::ZERO);
            let data = of(Guid::new(own, entity));
            here.locals.insert(entity, Local { data, kind, ends: false, announced });
        }
        for n in [1, 3, 4] {
            let metatraffic_unicast = vec![address];
            let data =
                ParticipantData { guid_prefix: prefix(n), metatraffic_unicast, ..ParticipantData::default() };
            here.note_peer(Time(0), data, &address, &[]);
            for entity in [first, second] {
                let guid = Guid::new(prefix(n), entity);
                here.database.endpoints.insert(guid, of(guid));
                if entity == second || n == 3 {
                    here.database.matches.insert(first, guid);
                }
                if entity == first || n == 1 {
                    here.database.refusals.insert(guid, second, Refusal::Key);
                }
            }
        }
        let behind = |guid| here.endpoints_behind(guid).next().map(|data| data.guid);
        let endpoints =
            |start| successors(behind(start), |guid| behind(*guid)).take(MOST).collect::<Vec<_>>();
        let of_others: Vec<_> = here.database.endpoints().map(|data| data.guid).collect();
        let all: Vec<_> = here.local_endpoints().map(|data| data.guid).chain(of_others.clone()).collect();
        assert_eq!((all.len(), of_others.len()), (8, 6));
        assert_eq!(endpoints(Guid::new(own, EntityId::UNKNOWN)), all);
        assert_eq!(endpoints(Guid::UNKNOWN), of_others);
        let next = |prefix| here.database.peers_behind(prefix).next().map(|peer| peer.data.guid_prefix);
        let peers =
            successors(next(GuidPrefix::UNKNOWN), |prefix| next(*prefix)).take(MOST).collect::<Vec<_>>();
        assert_eq!(peers, [1, 3, 4].map(prefix));
        let next = |pair| here.database.pairs_behind(pair).next().map(|(pair, why)| (pair, why.is_some()));
        let start = (Guid::UNKNOWN, EntityId::UNKNOWN);
        let pairs = successors(next(start), |(pair, _)| next(*pair)).take(MOST).collect::<Vec<_>>();
        let pair = |n, entity, local, is_refused| ((Guid::new(prefix(n), entity), local), is_refused);
        let expected = [
            pair(1, first, second, true),
            pair(1, second, first, false),
            pair(1, second, second, true),
            pair(3, first, first, false),
            pair(3, first, second, true),
            pair(3, second, first, false),
            pair(4, first, second, true),
            pair(4, second, first, false),
        ];
        assert_eq!(pairs, expected);
    }
}
