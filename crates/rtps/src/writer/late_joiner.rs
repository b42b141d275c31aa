//! History for best-effort readers that join late. DCPS 1.4 §2.2.3.4, RTPS 2.5 §8.4.9.1.
//!
//! Such a reader takes what comes with rising numbers and asks for nothing: a fresh change that overtook its history
//! would be the end of that. So it is sent history, and what is written meanwhile, in order and alone. Once it has all
//! that was sent to others it is told so, and goes where they are.

use taut_base::{Guid, SequenceNumber};

use super::repair::Contents;
use super::{Owed, ReaderProxy, Writer};
use crate::message::{HEARTBEAT, Tx};

impl Writer {
    /// A reader that cannot ask is to have history.
    pub(super) fn begin_catching_up(&mut self, reader: Guid) {
        let Writer { history, proxies, last, .. } = self;
        let Some(proxy) = proxies.get_mut(&reader).filter(|proxy| !proxy.reliable) else { return };
        let from = history.first().unwrap_or(last.next());
        proxy.forget_owed();
        proxy.owed = Owed::Replay(from, *last);
        proxy.catches_up = true;
        self.update_route();
    }

    /// Up to which change the others have begun to get what there is.
    pub(super) fn begun(&self) -> SequenceNumber {
        self.sent.max(self.fragment.0)
    }
}

impl Contents<'_> {
    /// Sends one change after the other, each whole before the next.
    pub(super) fn catch_up(
        &self,
        tx: &mut Tx<'_>,
        proxy: &mut ReaderProxy,
        (mut from, to): (SequenceNumber, SequenceNumber),
        turn: &mut usize,
    ) {
        let mut changes = self.history.from(from).take_while(|change| change.sequence_number <= to);
        while self.repair_fragments(tx, proxy, turn) && *turn > 0 {
            let Some(change) = changes.next() else { return };
            self.send_to_one(tx, change, proxy, turn);
            from = change.sequence_number.next();
        }
        proxy.owed = Owed::Replay(from, to);
    }

    /// The reader has all that was sent before: it is told that what comes for all from now on follows.
    pub(super) fn end_catching_up(&mut self, tx: &mut Tx<'_>, proxy: &mut ReaderProxy) {
        proxy.catches_up = false;
        let heartbeat = self.heartbeat(proxy.guid.entity, true, SequenceNumber::FIRST);
        tx.make_room(HEARTBEAT, &proxy.unicast);
        tx.message.heartbeat(&heartbeat);
    }
}
