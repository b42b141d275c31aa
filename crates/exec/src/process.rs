//! Whose process a participant is. The child of a fork has the memory of all that its parent goes on with, and none of its
//! threads: what one of them had locked stays locked there, and sockets, lanes and sequence numbers are the parent's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use taut_base::Error;
use taut_port_shm::fork_word;

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

/// In place of that before Linux 4.14: the number of no process, so that the kernel is asked.
static NONE: AtomicU32 = AtomicU32::new(0);

/// The process that has made something.
pub(crate) struct Process {
    pub id: u32,
    number: &'static AtomicU32,
}

impl Process {
    /// The one that calls.
    pub fn this() -> Process {
        Process { id: std::process::id(), number: number().unwrap_or(&NONE) }
    }

    /// Does it call, and not a child that was forked? *Cost*: a load of what nobody changes; before Linux 4.14 a system call.
    #[inline]
    pub fn is_this(&self) -> bool {
        self.id == self.number.load(Relaxed) || self.is_told()
    }

    #[cold]
    fn is_told(&self) -> bool {
        std::ptr::eq(self.number, &NONE) && self.id == std::process::id()
    }
}

/// What the child of a fork is told.
#[cold]
pub(crate) fn forked() -> Error {
    Error::PreconditionNotMet(
        "this participant was made by the process that forked this one: make one here after the fork".into(),
    )
}
