//! Who joins writers and readers of this process by lanes.
//!
//! The protocol matches; then the participant of the writer offers its lane to that of the reader, which
//! takes the offer once it has matched too, attaches, and says from which sample on it reads there. Until
//! then, and whenever it does not come to that, samples come the usual way. Order of locks: a token, then
//! a route or a door; never two tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use taut_base::{Guid, GuidPrefix};
use taut_dcps::Match;
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader};
use taut_qos::ReliabilityKind;
use taut_rtps::WriterIndex;

use crate::executor::{Core, Inner};
use crate::outlet::Route;
use crate::ringer::Ringer;

/// The participants of this process.
static PARTICIPANTS: Mutex<BTreeMap<GuidPrefix, Weak<Inner>>> = Mutex::new(BTreeMap::new());

pub(crate) fn register(prefix: GuidPrefix, inner: &Arc<Inner>) {
    PARTICIPANTS.lock().insert(prefix, Arc::downgrade(inner));
}

pub(crate) fn unregister(prefix: GuidPrefix) {
    PARTICIPANTS.lock().remove(&prefix);
}

fn find(prefix: GuidPrefix) -> Option<Arc<Inner>> {
    PARTICIPANTS.lock().get(&prefix)?.upgrade()
}

/// A writer's lane, offered to a reader.
pub(crate) struct Offer {
    writer: Guid,
    lane: Arc<Lane>,
    route: Arc<Route>,
    ringer: Ringer,
    index: WriterIndex,
}

/// What a participant knows of lanes.
#[derive(Default)]
pub(crate) struct Joins {
    /// Where the lanes of its writers lead.
    routes: Mutex<BTreeMap<WriterIndex, Arc<Route>>>,
    /// Offers to its readers, by writer and reader, that have come before the match.
    offers: Mutex<BTreeMap<(Guid, Guid), Offer>>,
}

impl Joins {
    pub fn route(&self, index: WriterIndex) -> Arc<Route> {
        Arc::clone(self.routes.lock().entry(index).or_default())
    }

    pub fn remove_route(&self, index: WriterIndex) {
        self.routes.lock().remove(&index);
    }
}

impl Inner {
    /// Follows what the protocol has matched. Called without the token.
    pub fn join(&self, matches: Vec<Match>) {
        for Match { writer, reader, offered, matched } in matches {
            match (offered, matched) {
                (true, true) => self.offer(writer, reader),
                (true, false) => self.withdraw(writer, reader),
                (false, true) => {
                    let offer = self.joins.offers.lock().remove(&(writer, reader));
                    if let Some(offer) = offer {
                        self.consider(reader, offer);
                    }
                }
                (false, false) => self.forget(writer, reader),
            }
        }
    }

    fn offer(&self, writer: Guid, reader: Guid) {
        let Some(me) = self.me.upgrade() else { return };
        let other = if reader.prefix == writer.prefix { Some(Arc::clone(&me)) } else { find(reader.prefix) };
        let Some(other) = other.filter(|other| self.local && other.local) else { return };
        let Some(index) = self.token().participant.core().local_writer(writer) else { return };
        let route = self.joins.route(index);
        let offer = Offer { writer, lane: route.lane(), route, ringer: Ringer::of(&me), index };
        other.consider(reader, offer);
    }

    fn withdraw(&self, writer: Guid, reader: Guid) {
        let index = self.token().participant.core().local_writer(writer);
        if let Some(index) = index {
            self.joins.route(index).remove(reader);
        }
    }

    fn forget(&self, writer: Guid, reader: Guid) {
        self.joins.offers.lock().remove(&(writer, reader));
        let index = self.token().participant.core().local_reader(reader);
        if let Some(door) = index.and_then(|index| self.doors.get(index)) {
            self.doors.remove_writer(&door, writer);
        }
    }

    /// Takes an offer for one of this participant's readers, now or when it has matched.
    fn consider(&self, reader: Guid, offer: Offer) {
        let mut core = self.enter();
        let matched = core.participant.core().database().matches(reader.entity).any(|w| w == offer.writer);
        if !matched {
            self.joins.offers.lock().insert((offer.writer, reader), offer);
            return self.give_back(core);
        }
        let from = self.attach(&mut core, reader, &offer);
        self.give_back(core);
        let (writer, index) = (offer.writer, offer.index);
        if let Some(from) = from.filter(|_| writer.prefix != reader.prefix)
            && let Some(other) = find(writer.prefix)
        {
            other.with(|participant, now| participant.set_reader_lane(now, index, reader, Some(from)));
        }
    }

    /// Has a matched reader read the lane. The writer's owner learns of the reader before that reads.
    fn attach(&self, core: &mut Core, reader: Guid, offer: &Offer) -> Option<taut_base::SequenceNumber> {
        let Core { participant, now, .. } = core;
        let index = participant.core().local_reader(reader)?;
        let door = self.doors.get(index)?;
        let is_reliable = |guid| {
            let endpoint = participant.core().endpoint(guid);
            endpoint.is_some_and(|endpoint| endpoint.qos.reliability.kind == ReliabilityKind::Reliable)
        };
        let reliable = is_reliable(offer.writer) && is_reliable(reader);
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN))?);
        let me = self.me.upgrade()?;
        offer.route.add(reader, Arc::clone(&feedback), reliable, Ringer::of(&me));
        let lane = LaneReader::attach(Arc::clone(&offer.lane), feedback, false);
        let from = participant.add_lane(*now, index, offer.writer, lane);
        match from {
            Some(_) => self.doors.add_writer(&door, offer.writer, offer.ringer.clone()),
            None => offer.route.remove(reader),
        }
        from
    }

    /// Empties the lanes that somebody waits for: who watches a reader, or a writer that wants room.
    pub fn pull_lanes(&self, core: &mut Core) {
        if !self.doors.has_lanes() {
            return;
        }
        let mut last = None;
        while let Some(door) = self.doors.after(last) {
            last = Some(door.index);
            let wanted = {
                let side = door.side();
                side.is_awaited() || (door.is_watched() && side.is_ready())
            };
            if wanted && core.participant.pull(core.now, door.index) {
                door.ring_writers();
            }
        }
    }
}
