//! Readers of other processes that leave a lane and stay matched: what they have not read goes to them by the network.
//!
//! Whoever hears of it finds in the lane what is unread, and gives it to the protocol. The writer's owner, who meets
//! nobody, may be about to write one more sample there. So its lane goes on to reckon with the reader until the owner has
//! looked where the lane leads, which it does before each write, or has not done so for long: then what it may have
//! written since is found, too. Called without the token.

use std::sync::Arc;

use taut_base::{Duration, Guid, Time};
use taut_dcps::{Leaver, Unread};
use taut_lock::Mutex;
use taut_mem::lane::Feedback;

use crate::clock::monotonic_now;
use crate::executor::Inner;
use crate::write::outlet::Route;

/// How long until a lane is looked at again whose owner has not seen that a reader has left. Each time takes twice as long
/// as the last. Lower and a writer that is silent costs more looks, higher and a sample that was about to be written
/// comes later.
const LOOK_FIRST: Duration = Duration::from_millis(1);
/// How often. An owner that was in the midst of a write is through with it by then, 65 s later, or its process is stopped
/// as a whole. Lower loses what it writes after that, higher looks at silent writers for longer.
const LOOKS: u32 = 16;

/// The readers that leave lanes of a participant. *Shape*: as many as are matched, at most.
#[derive(Default)]
pub(crate) struct Leaving(Mutex<Vec<Leaves>>);

/// A reader that leaves a lane.
struct Leaves {
    writer: Guid,
    reader: Guid,
    feedback: Arc<Feedback>,
    route: Arc<Route>,
    /// From which version of the route on its owner has seen that.
    version: u64,
    leaver: Leaver,
    looks: u32,
    at: Time,
}

impl Leaving {
    /// Takes those that are to be looked at, by now or as the owner has looked.
    fn take(&self, now: Time) -> Vec<Leaves> {
        let is_due = |one: &mut Leaves| one.at <= now || one.has_settled();
        self.0.lock().extract_if(.., is_due).collect()
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    fn next(&self) -> Time {
        self.0.lock().iter().map(|one| one.at).min().unwrap_or(Time::NEVER)
    }
}

impl Leaves {
    /// Does the writer's owner write no more for it?
    fn has_settled(&self) -> bool {
        self.route.has_seen(self.version)
    }
}

impl Inner {
    /// A reader of another process leaves the lane of a local writer.
    pub fn leave_reader(&self, route: Arc<Route>, writer: Guid, reader: Guid) {
        let Some((lane, feedback, version)) = route.leave(reader, self.me.clone()) else {
            // It was about to read it.
            return self.with(|participant, now| {
                if let Some(index) = participant.core().local_writer(writer) {
                    participant.set_reader_lane(now, index, reader, None);
                }
            });
        };
        let mut leaver = Leaver::new(writer, lane, &feedback);
        // It may be much: most of it without the token.
        let mut unread = leaver.find(monotonic_now());
        self.with(|participant, now| {
            unread.changes.extend(leaver.find(now).changes);
            if let Some(index) = participant.core().local_writer(writer) {
                participant.leave_reader_lane(now, index, reader, unread);
            }
        });
        let (looks, at) = (0, monotonic_now() + LOOK_FIRST);
        let leaves = Leaves { writer, reader, feedback, route, version, leaver, looks, at };
        self.neighbours.leaving.0.lock().push(leaves);
        self.look_again(at);
    }

    /// A writer's owner has seen that a reader has left.
    pub fn settle_soon(&self) {
        self.neighbours.look_again_at.bring(Time::AT_ONCE);
        self.be_rung();
    }

    /// Looks what owners have written for readers that had left.
    pub fn settle_lanes(&self, now: Time) {
        for mut one in self.neighbours.leaving.take(now) {
            // Before the look, which finds what was written before that.
            let is_all = one.has_settled() || one.looks >= LOOKS;
            let mut unread = one.leaver.find(now);
            if is_all || !unread.changes.is_empty() {
                self.with(|participant, now| {
                    unread = Unread { is_all, ..std::mem::take(&mut unread) };
                    if let Some(index) = participant.core().local_writer(one.writer) {
                        participant.keep_unread(now, index, one.reader, unread);
                    }
                });
            }
            if is_all {
                one.route.end(&one.feedback);
                // Its writer may wait for room.
                self.be_rung();
                continue;
            }
            one.at = now + (0..one.looks).fold(LOOK_FIRST, |pause, _| pause.times(2));
            one.looks += 1;
            self.neighbours.leaving.0.lock().push(one);
        }
        self.neighbours.look_again_at.bring(self.neighbours.leaving.next());
    }
}
