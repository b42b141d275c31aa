//! What lanes bring to readers that do not take it themselves: listeners, tasks, writers that want room.
//!
//! Done by whoever drives, with the token, before all else of a round.

use taut_lock::MutexGuard;

use crate::access::tell_wall_clock_to;
use crate::account::jobs::JobClass;
use crate::core::Core;
use crate::executor::Inner;
use crate::lanes::door::Door;

/// Steps of a round in which the lanes of one reader are emptied; the next round goes on. Lower takes more rounds, higher lets
/// a quick writer hold up other readers and the network for longer.
const LANE_STEPS: usize = 64;

impl Inner {
    /// Empties the lanes that somebody waits for: who watches a reader, or a writer that wants room. Others come first between
    /// two steps of that. Behind a ring those of the likely
    /// door first, alone: nobody sleeps before all were looked at.
    pub fn pull_lanes(&self, core: &mut MutexGuard<'_, Core>) {
        let is_quiet = self.doors.is_quiet_since(self.bell.armed()) && !self.doors.owes_look();
        if is_quiet || !self.doors.has_lanes() {
            return;
        }
        if let Some(door) = self.doors.likely_wanted() {
            self.give_way(core);
            return self.empty_lanes_to(core, &door);
        }
        self.doors.begin_look();
        let mut last = None;
        while let Some(door) = self.doors.next_wanted(last) {
            if last.replace(door.index).is_none() {
                // What the token's last holder was left has waited for that one's step.
                self.give_way(core);
            }
            self.doors.note_found(&door);
            self.empty_lanes_to(core, &door);
        }
    }

    fn empty_lanes_to(&self, core: &mut MutexGuard<'_, Core>, door: &Door) {
        for _ in 0..LANE_STEPS {
            let mut more = false;
            self.run(core, JobClass::ReceiveUser, |core, budget| {
                tell_wall_clock_to(&mut core.participant);
                let pulled = core.participant.pull(core.now, door.index, budget);
                if pulled.awaited {
                    door.ring_writers();
                }
                more = pulled.read >= budget;
                pulled.read.max(1)
            });
            self.give_way(core);
            if !(more && self.doors.is_wanted(door)) {
                break;
            }
        }
    }
}
