//! Whose process a participant is. The child of a fork has the memory of all that its parent goes on with, and none of its
//! threads: what one of them had locked stays locked there, and sockets, lanes and sequence numbers are the parent's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use taut_base::{Error, GuidPrefix};
use taut_lock::Mutex;
use taut_port_shm::fork_word;

use crate::executor::Inner;

/// A process, and the participants that were made in it. The child of a fork has those that its parent had, which nobody
/// drives there: their samples come by shared memory, as from any other process.
pub(crate) struct Process {
    id: u32,
    word: &'static AtomicU32,
    /// A child has a list of its own: it has not the thread that may have had the lock of this one.
    participants: Mutex<BTreeMap<GuidPrefix, Weak<Inner>>>,
    /// That of a child.
    next: OnceLock<Box<Process>>,
}

/// In the place of a word before Linux 4.14, where nothing tells a child.
static UNTOLD: AtomicU32 = AtomicU32::new(1);

impl Process {
    /// The one that calls.
    pub fn this() -> &'static Process {
        static FIRST: OnceLock<Box<Process>> = OnceLock::new();
        let mut place = &FIRST;
        loop {
            let process = place.get_or_init(|| Box::new(Process::begin()));
            if process.is_this() {
                return process;
            }
            place = &process.next;
        }
    }

    fn begin() -> Process {
        let word = fork_word().inspect(|word| word.store(1, Relaxed)).unwrap_or(&UNTOLD);
        Process { id: std::process::id(), word, participants: Mutex::default(), next: OnceLock::new() }
    }

    /// Does it call, and not a child that was forked? By its number, too: one that is told by nothing else has a list of its
    /// own all the same.
    pub fn is_this(&self) -> bool {
        self.word.load(Relaxed) != 0 && self.id == std::process::id()
    }

    /// What is 1 in it, and 0 in each child of a fork that is told.
    pub fn word(&self) -> &'static AtomicU32 {
        self.word
    }

    pub fn register(&self, prefix: GuidPrefix, inner: &Arc<Inner>) {
        self.participants.lock().insert(prefix, Arc::downgrade(inner));
    }

    pub fn unregister(&self, prefix: GuidPrefix) {
        self.participants.lock().remove(&prefix);
    }

    pub fn find(&self, prefix: GuidPrefix) -> Option<Arc<Inner>> {
        self.participants.lock().get(&prefix)?.upgrade()
    }

    /// One that does not call.
    #[cfg(test)]
    pub fn parent() -> &'static Process {
        let parent = Process::begin();
        parent.word.store(0, Relaxed);
        Box::leak(Box::new(parent))
    }
}

/// What the child of a fork is told.
#[cold]
pub(crate) fn forked() -> Error {
    Error::PreconditionNotMet(
        "this participant was made by the process that forked this one: make one here after the fork".into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor_tests::executor_with_lanes;

    #[test]
    fn a_participant_is_here_in_its_own_process_only() {
        let (executor, ..) = executor_with_lanes();
        let prefix = executor.inner.prefix;
        assert!(Process::this().is_this() && Process::this().find(prefix).is_some());
        assert!(!Process::parent().is_this());
    }
}
