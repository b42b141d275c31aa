//! When a writer's readers are asked what they have: by its timer, or at once if somebody waits for it.
//! RTPS 2.5 §8.4.9.2 (reliable stateful writer). What rides behind fresh changes is in `transmit`.

use taut_base::{Duration, InstanceHandle, SequenceNumber, Time};

use super::{NewChange, ReaderProxy, Writer};
use crate::limits;

/// When the next step of it comes of a history that goes in several: in another round of timers than this one.
const FORGETS_NEXT: Duration = Duration::from_micros(1);

/// A write that found no room, or a writer that goes.
#[derive(Default)]
pub(super) struct Hurried {
    /// This was the last change then.
    last: SequenceNumber,
    /// How often more the heartbeat timer asks for it soon.
    asks_left: u32,
    /// Of what there was none, if nobody has told of some since.
    awaits: Option<Room>,
}

/// What a write may wait for, or a writer that goes.
#[derive(Clone, Copy)]
enum Room {
    /// Room for one more change.
    ForAny,
    /// For one of this instance.
    Of(InstanceHandle),
    /// All that there may be: nothing is left that [`Writer::has_unsent`] asks for.
    ForAll,
}

impl Writer {
    /// The heartbeat timer has run out: each reader that lags is owed one.
    pub fn on_heartbeat_timer(&mut self, now: Time) {
        self.catch_up();
        self.resume_repairs(now);
        if self.has_apart || !self.kept.is_empty() {
            self.settle_silent(now);
        }
        let quiet_at = self.pushed_at + limits::HEARTBEAT_FIRST;
        if quiet_at > now && now < self.asked_at + limits::HEARTBEAT_IN_STREAM {
            self.heartbeat_at = quiet_at;
            if self.has_apart {
                self.ask_apart();
            }
            return;
        }
        let asked_at = std::mem::replace(&mut self.asked_at, now);
        self.answered = false;
        if self.blocked {
            self.on_blocked();
        }
        if self.is_acknowledged() {
            self.heartbeat_at = if self.forgets_more() { now + FORGETS_NEXT } else { Time::NEVER };
            return;
        }
        let since = now - self.patience();
        let any = self.owe_heartbeats(self.sent, |proxy| proxy.asked.is_none_or(|(at, _)| at <= since));
        // All that is out is asked for now: only later changes call a timer back that has backed off.
        self.forget_unasked();
        let most =
            if self.asks_for_room(asked_at) { limits::HEARTBEAT_FOR_ROOM } else { limits::HEARTBEAT_MAX };
        self.heartbeat_at = now + self.heartbeat_interval.min(most);
        // Also where others were asked too lately to be asked now: there may be such each time.
        if any {
            self.heartbeat_interval = self.heartbeat_interval.times(2).min(limits::HEARTBEAT_MAX);
        }
    }

    /// All is acknowledged: a volatile history goes, and of a durable one what has ended, as far as it goes in one step. Is some
    /// left?
    pub(super) fn forgets_more(&mut self) -> bool {
        self.forget_acknowledged();
        if self.durable {
            return self.forgets_more_ended();
        }
        self.history.first().is_some_and(|first| first <= self.sent)
    }

    /// Does a write wait for room that a reader could make who has said nothing since then? Only so often.
    fn asks_for_room(&mut self, since: Time) -> bool {
        let is_silent = |proxy: &ReaderProxy| {
            proxy.reliable && proxy.acked < self.sent && proxy.heard.is_none_or(|at| at < since)
        };
        let asks = self.hurried.asks_left > 0
            && self.hurried.last == self.last
            && self.proxies.values().any(is_silent);
        self.hurried.asks_left = self.hurried.asks_left.saturating_sub(u32::from(asks));
        asks
    }

    /// All that is out is asked for now.
    pub(super) fn forget_unasked(&mut self) {
        (self.unasked_changes, self.unasked_bytes, self.unasked_datagrams) = (0, 0, 0);
    }

    /// The time for a heartbeat timer, if what is sent and not acknowledged needs an earlier one
    /// than is set. Only to be asked of a writer that [may want one](Writer::may_want_heartbeat).
    pub fn want_heartbeat(&mut self, now: Time) -> Option<Time> {
        let first = now + limits::HEARTBEAT_FIRST;
        if self.puts_heartbeat_off(now) {
            self.heartbeat_at = first;
            return Some(first);
        }
        if self.heartbeat_at <= first || (self.sent == SequenceNumber::ZERO && !self.blocked) {
            return None;
        }
        let sent = self.sent;
        if !self.blocked && !self.proxies.values().any(|proxy| proxy.reliable && proxy.acked < sent) {
            return None;
        }
        // One that has backed off is called back only by news.
        if self.heartbeat_at != Time::NEVER && !self.blocked && self.unasked_changes == 0 && !self.answered {
            return None;
        }
        self.answered = false;
        self.heartbeat_interval = limits::HEARTBEAT_FIRST;
        self.heartbeat_at = first;
        Some(first)
    }

    /// Is [`Writer::want_heartbeat`] worth a look? Not while a stream goes on, whose heartbeat is set, and neither too soon
    /// nor too late. Nor if none was wanted before: it is for what is about to be sent then, and that asks again.
    #[inline]
    pub fn may_want_heartbeat(&self, now: Time) -> bool {
        let is_awaited = self.heartbeat_at != Time::NEVER || !self.queued.push || self.blocked;
        let is_set = self.heartbeat_at > now + limits::HEARTBEAT_PUT_OFF
            && self.heartbeat_at <= now + limits::HEARTBEAT_FIRST;
        is_awaited && !is_set && self.reliable
    }

    /// What is about to be sent says what the heartbeat would that is due soon, unless none may ride behind it or none has been
    /// asked for in a while.
    fn puts_heartbeat_off(&self, now: Time) -> bool {
        self.heartbeat_at <= now + limits::HEARTBEAT_PUT_OFF
            && self.has_fresh()
            && !self.blocked
            && !self.has_apart
            && now < self.asked_at + limits::HEARTBEAT_IN_STREAM
            && self.standing().1
    }

    /// A stream goes on, and nobody was asked for a while: the heartbeat behind its next change asks. That of the timer would be
    /// a datagram of its own, so long after a write that in a control loop another one is written just then.
    #[inline]
    pub(super) fn is_to_be_asked(&self, now: Time) -> bool {
        now >= self.asked_at + limits::HEARTBEAT_IN_STREAM
            && now < self.pushed_at + limits::HEARTBEAT_FIRST
            && self.heartbeat_at <= now + limits::HEARTBEAT_PUT_OFF
    }

    /// A write found no room: ask the readers now. Once is enough until there is a new change, as the
    /// heartbeat timer asks too; a caller that tries again and again must not flood them. Returns the time for that timer if
    /// it has backed off for longer.
    pub fn ask_for_room(&mut self, now: Time) -> Option<Time> {
        if self.hurried.last == self.last {
            return None;
        }
        (self.hurried.last, self.hurried.asks_left) = (self.last, limits::ASKS_FOR_ROOM);
        self.ask_for_acknowledgements();
        let soon = now + limits::HEARTBEAT_FOR_ROOM;
        let has_backed_off = self.heartbeat_at != Time::NEVER && self.heartbeat_at > soon;
        has_backed_off.then(|| {
            self.heartbeat_at = soon;
            soon
        })
    }

    /// A write has found no room. Returns whether it may wait for some.
    pub(crate) fn note_refused(&mut self, refused: &NewChange) -> bool {
        let awaits = if self.has_room() { Room::Of(refused.instance) } else { Room::ForAny };
        self.hurried.awaits = Some(awaits).filter(|_| self.keep_all && !self.never_takes(refused));
        self.has_refused()
    }

    /// A writer goes when it has sent what it sends once only. Returns whether it is to wait for that.
    pub(crate) fn note_going(&mut self) -> bool {
        if self.has_unsent() {
            self.hurried.awaits = Some(Room::ForAll);
        }
        self.has_refused()
    }

    /// May a write wait for room, or a writer that goes, and was not told of some since?
    pub(crate) fn has_refused(&self) -> bool {
        self.hurried.awaits.is_some()
    }

    /// The same, and there is some now: it is told.
    pub(crate) fn takes_again(&mut self) -> bool {
        let takes = self.hurried.awaits.is_some_and(|room| match room {
            Room::ForAny => self.has_room(),
            Room::Of(instance) => self.has_room_for(instance),
            Room::ForAll => !self.has_unsent(),
        });
        self.hurried.awaits.take_if(|_| takes);
        takes
    }

    /// The heartbeat behind the next fresh changes asks for acknowledgements.
    pub(crate) fn ask_with_next(&mut self) {
        self.hurry = true;
    }

    /// The heartbeat behind the next fresh changes does, if the one of the timer followed the last ones: nothing is written
    /// behind these either.
    pub(crate) fn ask_behind_burst(&mut self, now: Time) {
        if now >= self.pushed_at + limits::HEARTBEAT_PUT_OFF {
            self.hurry = true;
        }
    }

    /// How long the readers of a built-in writer may take to answer.
    pub(crate) fn patience(&self) -> Duration {
        self.answers.patience().min(limits::DISCOVERY_PATIENCE)
    }

    /// Somebody waits for acknowledgements: ask the readers now.
    pub fn ask_for_acknowledgements(&mut self) {
        self.owe_heartbeats(self.last, |_| true);
    }

    /// Each reader that has not acknowledged up to `number` and may be asked is owed a heartbeat to answer. Returns
    /// whether there is one.
    fn owe_heartbeats(&mut self, number: SequenceNumber, may_ask: impl Fn(&ReaderProxy) -> bool) -> bool {
        let Writer { proxies, owed, .. } = self;
        let lags = |proxy: &&mut ReaderProxy| proxy.reliable && proxy.acked < number && may_ask(proxy);
        let mut any = false;
        for proxy in proxies.values_mut().filter(lags) {
            (proxy.heartbeat_due, any) = (true, true);
            owed.add(proxy);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::history_cache::ChangeKind;
    use crate::message::{Message, Tx};
    use crate::writer::{MulticastChoice, change};
    use taut_base::{EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumberSet, VendorId};
    use taut_port::Loopback;
    use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};
    use taut_wire::Header;

    /// A reader that was stopped comes back, and the writer writes nothing more.
    #[test]
    fn a_deep_history_that_is_acknowledged_at_once_goes_step_by_step() {
        let of_one = |_| change();
        goes_step_by_step(DurabilityKind::Volatile, History::KeepLast(1_000_000), of_one);
    }

    #[test]
    fn so_do_the_instances_that_have_ended() {
        let ends = |n: u32| {
            let (kind, mut instance) = (ChangeKind::NotAliveDisposedUnregistered, [0; 16]);
            instance[..4].copy_from_slice(&n.to_ne_bytes());
            NewChange { kind, instance: InstanceHandle(instance), ..change() }
        };
        goes_step_by_step(DurabilityKind::TransientLocal, History::KeepLast(1), ends);
    }

    fn goes_step_by_step(durability: DurabilityKind, history: History, changes: impl Fn(u32) -> NewChange) {
        let keyed = durability != DurabilityKind::Volatile;
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, keyed));
        let mut qos = EndpointQos { durability, ..EndpointQos::default_writer() };
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut writer = Writer::new(guid, WriterIndex(0), &qos, history, None, MulticastChoice::Auto);
        writer.limit_samples();
        let reader = Guid::new(GuidPrefix([2; 12]), EntityId::user(1, false, keyed));
        writer.match_reader(ReaderProxy::new(reader, true, vec![Locator::INVALID], Vec::new()), false);
        let count = 5 * limits::FORGOTTEN + 7;
        (0..count as u32).for_each(|n| _ = writer.write(Time(0), &mut changes(n)).unwrap());
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: guid.prefix });
        writer.push(&mut Tx::new(Time(0), &mut Loopback::new(), &mut message, usize::MAX));
        let mut at = writer.want_heartbeat(Time(0)).unwrap();
        let all = SequenceNumberSet::new(SequenceNumber(count as i64 + 1));
        let mut held = vec![writer.changes_held()];
        writer.on_acknack(Time(0), reader, &all, 1, true);
        held.push(writer.changes_held());
        while at != Time::NEVER {
            writer.on_heartbeat_timer(at);
            held.push(writer.changes_held());
            assert!(writer.heartbeat_at > at, "the next step is not of this round");
            at = writer.heartbeat_at;
        }
        assert!(held.windows(2).all(|two| two[0] - two[1] <= limits::FORGOTTEN), "{held:?}");
        assert_eq!((held.first(), held.last()), (Some(&count), Some(&0)));
    }
}
