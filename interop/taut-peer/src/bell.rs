//! A listener that wakes the main thread: the peers wait for data and matches at once.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use taut::StatusMask;

/// Rung by a listener, waited for by the main thread. One ring is remembered.
pub struct Bell {
    rung: Receiver<()>,
    rope: SyncSender<()>,
}

impl Bell {
    pub fn new() -> Bell {
        let (rope, rung) = sync_channel(1);
        Bell { rung, rope }
    }

    /// The listener that rings it.
    pub fn listener(&self) -> impl FnMut(StatusMask) + Send + 'static {
        let rope = self.rope.clone();
        move |_| {
            // A full channel has been rung already.
            let _ = rope.try_send(());
        }
    }

    /// Waits until it is rung, at most until `end`.
    pub fn wait_until(&self, end: Instant) {
        // Rung or too late: the caller looks either way.
        let _ = self.rung.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}
