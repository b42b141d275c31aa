//! What must be true at the end of a seed.

use std::collections::BTreeMap;

use taut_dcps::InstanceState;
use taut_rtps::ChangeKind;
use taut_sim::instance;

use crate::outlet::Outlet;
use crate::world::{Inlet, World};

/// So often a full writer tries again, whose readers take all meanwhile.
const TRIES: usize = 2_000;

impl World {
    /// No writer is full for ever.
    pub fn check_room(&mut self) {
        for at in 0..self.outlets.len() {
            let mut tries = 0;
            while !self.write_one(at) {
                tries += 1;
                assert!(tries < TRIES, "writer {at} stays full, {}", self.describe(at));
                self.take_all();
            }
        }
    }

    fn write_one(&mut self, at: usize) -> bool {
        let key = self.first_key(at);
        self.outlets[at].write(&mut self.network, ChangeKind::Alive, key, 8)
    }

    /// What is known of a writer, and of the readers that wait for it.
    fn describe(&self, at: usize) -> String {
        let Outlet { writer, qos, readers, writes, .. } = &self.outlets[at];
        let unread = readers.iter().map(|(guid, peer)| (*guid, writes.unread_by(&peer.feedback).0));
        let unread: Vec<_> = unread.filter(|(_, unread)| *unread > 0).collect();
        format!("{}, lifespan {:?}, its lane is not read by {unread:?}", writer.guid, qos.writer.lifespan)
    }

    /// Each reader gets one more of each writer, that comes when nothing else is under way.
    pub fn check_next(&mut self) {
        for at in 0..self.outlets.len() {
            assert!(self.write_one(at), "writer {at} is full, {}", self.describe(at));
            self.drain();
            let (tag, last) = (self.outlets[at].writer.tag, self.outlets[at].last());
            for (r, inlet) in self.inlets.iter().enumerate() {
                let seen = inlet.seen.get(&tag).is_some_and(|seen| seen.contains(&last));
                assert!(seen, "reader {r} has not seen {last} of writer {at}");
            }
        }
    }

    /// Lanes are read, writers are acknowledged, readers have what they are owed.
    pub fn check(&mut self) {
        for at in 0..self.outlets.len() {
            let outlet = &mut self.outlets[at];
            outlet.refresh();
            let unread = if outlet.readers.is_empty() { 0 } else { outlet.writes.unread() };
            assert_eq!(unread, 0, "writer {at}, {}", self.describe(at));
            let writer = &self.outlets[at].writer;
            let participant = self.network.participant(writer.node).unwrap();
            assert!(participant.is_acknowledged(writer.index), "writer {at}, {}", self.describe(at));
            for (r, inlet) in self.inlets.iter().enumerate() {
                self.check_pair(&self.outlets[at], inlet, &format!("writer {at}, reader {r}"));
            }
        }
    }

    fn check_pair(&self, outlet: &Outlet, inlet: &Inlet, who: &str) {
        if !inlet.is_reliable() || !outlet.qos.writer.lifespan.is_infinite() {
            return;
        }
        let participant = self.network.participant(inlet.reader.node).unwrap();
        let rejected = participant.side(inlet.reader.index, |side| side.sample_rejected.total_count);
        assert_eq!(rejected, Some(0), "{who}");
        if outlet.keeps_all() && inlet.keeps_all() {
            self.check_all(outlet, inlet, who);
        } else if inlet.keeps_all() || !(self.shared && self.keyed) {
            self.check_last(outlet, inlet, who);
        }
    }

    fn check_all(&self, outlet: &Outlet, inlet: &Inlet, who: &str) {
        let changes = (1..).zip(&outlet.changes);
        let written: Vec<u64> =
            changes.filter(|(_, (_, kind))| *kind == ChangeKind::Alive).map(|(number, _)| number).collect();
        let mut seen = inlet.seen.get(&outlet.writer.tag).cloned().unwrap_or_default();
        if self.keyed {
            seen.sort_unstable();
        }
        assert_eq!(seen, written, "{who}: all, in order");
    }

    /// With KEEP_LAST the last of each instance is there, if nobody else writes that.
    fn check_last(&self, outlet: &Outlet, inlet: &Inlet, who: &str) {
        let seen = inlet.seen.get(&outlet.writer.tag);
        let mut last: BTreeMap<u32, (u64, ChangeKind)> = BTreeMap::new();
        for (number, (key, kind)) in (1..).zip(&outlet.changes) {
            last.insert(*key, (number, *kind));
        }
        let participant = self.network.participant(inlet.reader.node).unwrap();
        for (key, (number, kind)) in last {
            let find = |side: &taut_dcps::ReaderSide| side.cache.instance_state(instance(key));
            let is_alive = participant.side(inlet.reader.index, find).flatten() == Some(InstanceState::Alive);
            let is_alone = self.keyed || inlet.seen.len() <= 1;
            if kind == ChangeKind::Alive && is_alone {
                let has = seen.is_some_and(|seen| seen.contains(&number));
                assert!(has, "{who}: {number}, the last of instance {key}, is missing");
            }
            if self.keyed && !self.shared {
                assert_eq!(is_alive, kind == ChangeKind::Alive, "{who}: instance {key} after {number}");
            }
        }
    }
}
