//! Whose process a participant is. The child of a fork has the memory of all that its parent goes on with, whose threads it
//! has not: what one of them had locked stays locked, and sockets, shared memory and sequence numbers are the parent's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use taut_base::{Error, Result};
use taut_port_shm::fork_word;

/// What the child of a fork is told.
const FORKED: &str = "this process is forked from the one that made the participant, which goes on with it: make one of its \
                      own in the child, or fork before there is any";

/// Where this process finds its number without a system call. `None` before Linux 4.14.
pub(crate) fn number() -> Option<&'static AtomicU32> {
    static NUMBER: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let number = (*NUMBER.get_or_init(|| fork_word().ok()))?;
    // In a child it is 0 again.
    if number.load(Relaxed) == 0 {
        number.store(std::process::id(), Relaxed);
    }
    Some(number)
}

/// The process that has made something.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    pub id: u32,
    number: &'static AtomicU32,
}

impl Process {
    /// The one that calls.
    pub fn this() -> Process {
        /// Before Linux 4.14, where no child is found out by it.
        static SAME: AtomicU32 = AtomicU32::new(0);
        let id = std::process::id();
        let number = number().unwrap_or_else(|| {
            SAME.store(id, Relaxed);
            &SAME
        });
        Process { id, number }
    }

    /// Does another one call, forked from it? *Cost*: a load.
    #[inline]
    pub fn is_another(&self) -> bool {
        self.id != self.number.load(Relaxed)
    }

    /// *Errors*: [`Error::IllegalOperation`] where another one calls.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_another() { Err(forked()) } else { Ok(()) }
    }

    /// For a call that returns no error: a program that goes on in the child would wait for ever.
    #[inline]
    #[track_caller]
    pub fn assert(&self) {
        assert!(!self.is_another(), "{FORKED}");
    }
}

#[cold]
fn forked() -> Error {
    Error::IllegalOperation(FORKED.into())
}
