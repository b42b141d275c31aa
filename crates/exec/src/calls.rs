//! Calls of the API that look at the participant or change it, on the caller's thread.
//!
//! Each is a step, as all that holds the token is: others wait for it as they do for any other.

use taut_base::Time;
use taut_dcps::DomainParticipant;
use taut_rtps::TxClass;

use crate::account::jobs::JobClass;
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::executor::Inner;

impl Inner {
    /// Runs `call`, and sends what came of it.
    pub fn with<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> R {
        let mut core = self.enter();
        self.run_writes(&mut core);
        if core.held.until != Time::NEVER || core.participant.has_work(TxClass::Data) {
            // What was written before comes before: the call may delete its writer.
            self.release(&mut core);
            self.send(&mut core, TxClass::Data);
            self.give_way(&mut core);
        }
        let result = self.call(&mut core, |core| call(&mut core.participant, core.now));
        self.give_way(&mut core);
        self.release(&mut core);
        self.send_beside(&mut core);
        self.give_back_soon(core);
        result
    }

    /// The same, and fresh changes go on waiting for company.
    pub fn look<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> R {
        self.look_now(call).0
    }

    /// The same. Says what time it is then, too. *Cost*: the clock is read no more than for the step, unless others were
    /// told.
    pub fn look_now<R>(&self, call: impl FnOnce(&mut DomainParticipant, Time) -> R) -> (R, Time) {
        let mut core = self.enter();
        self.run_writes(&mut core);
        let result = self.call(&mut core, |core| call(&mut core.participant, core.now));
        self.give_way(&mut core);
        self.send_beside(&mut core);
        let now = core.now;
        let busy = self.give_back_soon(core);
        (result, if busy { monotonic_now() } else { now })
    }

    /// Looks; what others have left for the token's holder meanwhile is run then.
    pub fn peek<R>(&self, look: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.enter();
        let mut result = None;
        // What comes with news is no step that a write waits for beside the one that has brought them.
        core.run(JobClass::Calls, |core, _| {
            result = Some(look(core));
            1
        });
        drop(core);
        self.help();
        result.expect("invariant: a step has run when it has ended")
    }

    /// Runs a call with the token.
    pub fn call<R>(&self, core: &mut Core, call: impl FnOnce(&mut Core) -> R) -> R {
        let mut result = None;
        self.run(core, JobClass::Calls, |core, _| {
            result = Some(call(core));
            1
        });
        result.expect("invariant: a step has run when it has ended")
    }
}
