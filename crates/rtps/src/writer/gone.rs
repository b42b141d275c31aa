//! Instances that end, and how long a built-in writer keeps that an endpoint is gone.

use taut_base::{SequenceNumber, Time};

use super::Writer;
use crate::history_cache::ChangeKind;
use crate::limits;

impl Writer {
    /// The last change tells that an instance has ended; of a built-in writer, that an endpoint is gone.
    #[cold]
    pub(super) fn note_end(&mut self, now: Time, kind: ChangeKind) {
        if self.guid.entity.is_builtin() && kind == ChangeKind::NotAliveDisposedUnregistered {
            self.gone.push_back((self.last, now));
            self.forget_gone(now);
        }
        self.lost.give_up(now);
        self.history.bound_ended();
        if self.route.is_empty() && self.history.has_ended(self.last) {
            // No datagram is to leave, behind which that would go.
            self.forget_acknowledged();
        }
    }

    /// A built-in writer keeps that an endpoint is gone until all that are matched have heard it, and for a while longer:
    /// who is found later may know the endpoint all the same, as it has heard what was said to others, or was lost
    /// and comes back. Who has never answered is not waited for, and nobody for more than so many.
    fn forget_gone(&mut self, now: Time) {
        let answers = self.proxies.values().filter(|proxy| proxy.reliable && proxy.has_acknowledged());
        let acked = answers.map(|proxy| proxy.acked).fold(self.sent, SequenceNumber::min);
        while let Some((number, at)) = self.gone.front().copied().filter(|(number, _)| *number <= self.sent) {
            let most = if number > acked { limits::GONE_UNHEARD } else { limits::GONE };
            if self.gone.len() <= most && (number > acked || now.since(at) < limits::GONE_KEPT) {
                return;
            }
            self.gone.pop_front();
            self.history.remove(number);
        }
    }
}
