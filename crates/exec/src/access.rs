//! What the owners of readers and writers do with their ends: take, publish.
//!
//! None of it needs the token while lanes are enough.

use std::sync::Arc;

use taut_base::{Duration, Error, ErrorText, Guid, InstanceHandle, Result, Time};
use taut_dcps::{
    DomainParticipant, Endpoint, Entity, OfferedDeadlines, Passed, Pulled, ReaderSide, Sample, SampleAnatomy,
    SampleInfo, Selection, StatusMask, Taken, Write,
};
use taut_lock::MutexGuard;
use taut_mem::{Bytes, Chunks};
use taut_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::limits::SAMPLE_SIZE;
use taut_rtps::{ReaderIndex, WriterIndex};

use crate::clock::{Moment, monotonic_now, wall_clock_now};
use crate::driver::waiting::ends;
use crate::executor::Executor;
use crate::lanes::door::Door;
use crate::write::outlet::Outlet;
use crate::write::payload::Payload;
use crate::write::promises::Promise;

/// A write that may not wait found no room. Who tries again and again is not to pay for the names each time.
#[cold]
pub(crate) fn would_wait() -> Error {
    Error::Timeout(ErrorText::Fixed("it would have to wait for a reader; slow_readers() names it"))
}

/// Waiting for readers would be in vain: what the history has it keeps for those that come.
#[cold]
fn no_samples_left() -> Error {
    Error::OutOfResources(
        "RESOURCE_LIMITS max_samples is reached by the last samples of instances: unregister one or raise the limit".into(),
    )
}

/// May a sample have a payload of `len` bytes? *Errors*: [`Error::BadParameter`] above what readers take.
#[inline]
pub fn check_size(len: usize) -> Result<()> {
    if len > SAMPLE_SIZE as usize { Err(too_long(len)) } else { Ok(()) }
}

#[cold]
fn too_long(len: usize) -> Error {
    Error::BadParameter(format!(
        "a sample of {len} B: readers take up to {SAMPLE_SIZE} B, encapsulation header included; write it in parts"
    ))
}

/// How old samples are that expire is known by the wall clock.
#[inline]
pub(crate) fn tell_wall_clock(side: &mut ReaderSide) {
    if side.wants_wall_clock() {
        side.set_wall_clock(monotonic_now(), wall_clock_now());
    }
}

/// The same of a participant, whose readers get what is delivered to them. The clock may have been set since the last time.
#[inline]
pub(crate) fn tell_wall_clock_to(participant: &mut DomainParticipant) {
    if participant.wants_wall_clock() {
        participant.set_wall_clock(monotonic_now(), wall_clock_now());
    }
}

/// The same before one of its writers writes.
#[inline]
pub(crate) fn tell_wall_clock_for(participant: &mut DomainParticipant, writer: WriterIndex) {
    if participant.wants_wall_clock_of(writer) {
        participant.set_wall_clock(monotonic_now(), wall_clock_now());
    }
}

/// What a write does that finds no room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// What is oldest makes room.
    KeepLast,
    /// The same, as far as max_samples lets a durable history: without room the write fails.
    KeepLastWithin,
    /// It waits for its readers for so long, or not at all.
    KeepAll(Option<Duration>),
}

/// One call of a writer's.
pub struct Call {
    /// What it writes, complete but for payload, number and source timestamp.
    pub(crate) write: Write,
    moment: Moment,
    patience: Patience,
}

impl Call {
    /// For a change of an instance.
    #[inline]
    pub fn new(kind: ChangeKind, instance: InstanceHandle, moment: Moment, patience: Patience) -> Call {
        let write = Write {
            kind,
            instance,
            source_timestamp: None,
            payload: Bytes::new(),
            number: None,
            in_lane: false,
            called: Time::default(),
            was_left: false,
        };
        Call { write, moment, patience }
    }
}

/// Somebody wants to know where the time of a sample goes, or its order by source.
///
/// *Errors*: [`Error::BadParameter`] for a time of the caller's that falls. DCPS 1.4 §2.2.2.4.2.12, §2.2.3.17.
#[cold]
fn note_call(outlet: &mut Outlet, write: &mut Write, moment: Moment) -> Result<()> {
    if let Some(last) = outlet.source_order {
        write.source_timestamp = Some(moment.not_before(last).ok_or_else(falls)?);
    }
    if outlet.tells_anatomy {
        // Who gets the token is to read the clock again.
        outlet.burst.announce(None);
    }
    Ok(())
}

fn falls() -> Error {
    Error::BadParameter(
        "with DESTINATION_ORDER BY_SOURCE_TIMESTAMP a source timestamp may not be INVALID or before that of the last \
         change: give a later one"
            .into(),
    )
}

impl Executor {
    /// Makes a reader, which has the history of writers of its participant when it is there. Returns also its name.
    ///
    /// *Errors*: those of [`Executor::may_use`].
    pub fn create_reader(
        &self,
        endpoint: Endpoint<DataReaderQos, SubscriberQos>,
    ) -> Result<(ReaderIndex, Guid)> {
        let made = self.with(|participant, now| {
            // Whether history is too old is asked before anybody says that the clock matters. It may have been set since the last
            // time.
            participant.set_wall_clock(monotonic_now(), wall_clock_now());
            let index = participant.create_reader(now, endpoint);
            (index, participant.core().reader(index).map_or(Guid::UNKNOWN, |reader| reader.guid))
        })?;
        self.match_all();
        Ok(made)
    }

    /// Makes a writer. Returns also its name.
    ///
    /// *Errors*: those of [`Executor::may_use`].
    pub fn create_writer(
        &self,
        endpoint: Endpoint<DataWriterQos, PublisherQos>,
    ) -> Result<(WriterIndex, Guid)> {
        let made = self.with(|participant, now| {
            let index = participant.create_writer(now, endpoint);
            (index, participant.core().writer(index).map_or(Guid::UNKNOWN, |writer| writer.guid))
        })?;
        self.match_all();
        Ok(made)
    }

    /// Matches what was just created with all that there is, and what others create meanwhile before it.
    fn match_all(&self) {
        if self.inner.peek(|core| core.participant.is_matching()) {
            self.in_steps(|participant, now| participant.match_more(now));
        }
        self.inner.follow_own_matches();
    }

    /// Calls until there is no more to be done: others have their turn between two calls.
    fn in_steps(&self, call: impl Fn(&mut DomainParticipant, Time) -> bool) {
        while self.inner.with(&call) {}
    }

    /// The door of a reader that was just created.
    pub fn door(&self, index: ReaderIndex) -> Option<Arc<Door>> {
        self.inner.doors.get(index)
    }

    /// The outlet of a writer that was just created with this QoS.
    pub fn outlet(&self, index: WriterIndex, qos: &DataWriterQos) -> Option<Outlet> {
        let link = self
            .inner
            .peek(|core| core.participant.core().writer(index).map(|writer| Arc::clone(&writer.link)));
        let link = link?;
        let promise = (!qos.deadline.is_infinite()).then(|| {
            let deadlines = OfferedDeadlines::new(qos.deadline, qos.resource_limits.max_instances);
            self.inner.owed.promises.add(index, deadlines)
        });
        let route = self.inner.joins.route(index);
        Some(Outlet::new(index, link, route, qos, promise, self.inner.tells_anatomy))
    }

    /// Deletes a reader, once it is parted from its writers step by step.
    pub fn delete_reader(&self, index: ReaderIndex) {
        let reader = self.inner.peek(|core| core.participant.core().reader(index).map(|reader| reader.guid));
        self.in_steps(|participant, now| {
            let more = participant.part_reader(now, index);
            if !more {
                participant.delete_reader(now, index);
            }
            more
        });
        reader.into_iter().for_each(|reader| self.inner.end_joins_of(reader));
    }

    /// The same of a writer, and of all that is known of it, before the next one gets its place in the table.
    pub fn delete_writer(&self, index: WriterIndex) {
        let writer = self.inner.peek(|core| core.participant.core().writer(index).map(|writer| writer.guid));
        self.in_steps(|participant, now| {
            let more = participant.part_writer(now, index);
            if !more {
                participant.delete_writer(now, index);
                self.inner.joins.remove_route(index);
                self.inner.owed.promises.remove(index);
            }
            more
        });
        writer.into_iter().for_each(|writer| self.inner.end_joins_of(writer));
    }

    /// Takes the next sample that was not read before and gives it to `out`, which is called once, with the
    /// door's lock: it hands a large sample on. `false` if there is none. The caller [watches](Executor::watch) `own` times
    /// itself, and others hear of what it leaves; it has asked [`Executor::may_use`]. *Cost*: the lock, or a load where
    /// nothing was brought since a look in vain.
    pub fn take_next(&self, door: &Door, own: usize, out: &mut dyn FnMut(Taken<'_>)) -> bool {
        if door.is_quiet() {
            return false;
        }
        let (mut side, mut pulled) = (door.side(), Pulled::default());
        match side.pass_next(&mut pulled, out) {
            Passed::On(()) => {
                drop(side);
                self.tell(door, pulled);
                true
            }
            Passed::Nothing => false,
            Passed::Not(out) => {
                tell_wall_clock(&mut side);
                pulled.add(side.refill(monotonic_now));
                let taken = side.take_next_with(monotonic_now, out).is_some();
                if !taken {
                    door.note_vain_look(&side);
                }
                self.leave(door, side, pulled, (taken, own));
                taken
            }
        }
    }

    /// Takes selected samples.
    ///
    /// *Errors*: those of [`Executor::may_use`].
    pub fn take(&self, door: &Door, selection: &Selection, out: impl FnMut(Sample)) -> Result<()> {
        self.visit(door, |side, now, pulled| {
            pulled.add(side.pull(now));
            side.end_delivery(monotonic_now);
            side.take(now, selection, out)
        })
    }

    /// Reads selected samples; they stay.
    ///
    /// *Errors*: those of [`Executor::may_use`].
    pub fn read(&self, door: &Door, selection: &Selection, out: impl FnMut(Sample)) -> Result<()> {
        self.visit(door, |side, now, pulled| {
            pulled.add(side.pull(now));
            side.end_delivery(monotonic_now);
            side.read(now, selection, out);
            0
        })
    }

    /// Where the latency of the last samples of a reader went, oldest first, if it remembers any.
    pub fn anatomies(&self, door: &Door) -> Vec<SampleAnatomy> {
        if self.is_forked() {
            return Vec::new();
        }
        door.side().anatomies().collect()
    }

    /// The same for one sample.
    pub fn anatomy_of(&self, door: &Door, info: &SampleInfo) -> Option<SampleAnatomy> {
        self.may_use().ok()?;
        door.side().anatomy_of(info)
    }

    /// Calls `take`, which says how many samples have gone, and tells who waits for room.
    fn visit(
        &self,
        door: &Door,
        take: impl FnOnce(&mut ReaderSide, Time, &mut Pulled) -> usize,
    ) -> Result<()> {
        self.may_use()?;
        if door.is_quiet() {
            return Ok(());
        }
        let mut side = door.side();
        // What has come too soon waits, and is not counted.
        if side.cache.is_empty() && !side.is_ready() && side.cache.next_timeout().is_none() {
            door.note_vain_look(&side);
            return Ok(());
        }
        let (now, mut pulled) = (monotonic_now(), Pulled::default());
        tell_wall_clock(&mut side);
        let taken = take(&mut side, now, &mut pulled) > 0;
        self.leave(door, side, pulled, (taken, 0));
        Ok(())
    }

    /// Tells who waits for it what a look at the lanes has done.
    #[inline(always)]
    fn tell(&self, door: &Door, pulled: Pulled) {
        if pulled.awaited || pulled.news != StatusMask::NONE {
            self.tell_news(door, pulled);
        }
    }

    #[inline(never)]
    fn tell_news(&self, door: &Door, pulled: Pulled) {
        if pulled.awaited {
            door.ring_writers();
        }
        // Listeners hear of what only this look has found; the samples themselves are here already.
        let told = StatusMask(pulled.news.0 & !StatusMask::DATA_AVAILABLE.0);
        if told != StatusMask::NONE {
            self.inner.with(|participant, _| participant.tell(Entity::Reader(door.index), told));
        }
    }

    /// After a visit: room is used, and told to who waits for it. So is what it has found and left: the driver, who would
    /// tell those that watch, finds it in no lane any more. The caller watches `own` times itself.
    #[inline(always)]
    pub(crate) fn leave(
        &self,
        door: &Door,
        mut side: MutexGuard<'_, ReaderSide>,
        mut pulled: Pulled,
        (taken, own): (bool, usize),
    ) {
        let blocked = taken && side.take_blocked(monotonic_now);
        if taken && side.is_stalled() {
            pulled.add(side.refill(monotonic_now));
        }
        self.inner.doors.note_broken(door.index, &mut side);
        let has_more = blocked || side.take_untold();
        let has_left = pulled.news.intersects(StatusMask::DATA_AVAILABLE) && side.cache.unread_count() > 0;
        drop(side);
        self.inner.leave_broken();
        self.tell(door, pulled);
        if has_more {
            self.tell_driver(door, blocked);
        }
        if has_left {
            self.tell_of_left(door, taken, own);
        }
    }

    /// Who waits at the door has heard of it when it was written, and found no room in the cache.
    #[inline]
    fn tell_of_left(&self, door: &Door, taken: bool, own: usize) {
        if door.is_watched_beside(own) {
            self.tell_others(door);
        } else if taken && self.inner.doors.has_parked() {
            door.wake();
        }
    }

    #[cold]
    fn tell_others(&self, door: &Door) {
        let found = StatusMask::DATA_AVAILABLE;
        self.inner.look(|participant, _| participant.tell(Entity::Reader(door.index), found));
    }

    /// There is room for who was `blocked`, or a sample waits for its time.
    #[cold]
    fn tell_driver(&self, door: &Door, blocked: bool) {
        self.inner.with(|participant, now| {
            if blocked {
                participant.on_room(now, door.index);
            }
            participant.at_side(door.index, |_| ());
        });
    }

    /// Who has begun to listen hears of samples that were found before: of those in lanes it hears as the driver finds them.
    pub fn tell_found(&self, door: &Door) {
        if door.side().cache.unread_count() > 0 {
            self.tell_others(door);
        }
    }

    /// So many samples that were taken are none of the reader's type, which its listener hears. *Cost*: the reader's lock, then
    /// the token.
    #[cold]
    pub fn note_lost(&self, door: &Door, count: u64) {
        door.side().sample_lost.count(count);
        self.tell_news(door, Pulled { news: StatusMask::SAMPLE_LOST, ..Pulled::default() });
    }

    /// From now on the driver empties the reader's lanes, so that its news are told. In the child of a fork there is none.
    pub fn watch(&self, door: &Door) {
        if self.is_forked() {
            return;
        }
        self.inner.doors.watch(door);
        // Who sleeps has told no writer to wake it.
        if self.inner.holding.is_asleep() {
            self.inner.kick();
        }
    }

    /// The inverse of [`Executor::watch`].
    pub fn unwatch(&self, door: &Door) {
        self.inner.doors.unwatch(door);
    }

    /// Writes. The caller has asked [`Executor::may_use`], before it may have encoded into the lane.
    ///
    /// *Errors*: [`Error::Timeout`], [`Error::OutOfResources`], [`Error::BadParameter`] for its source timestamp and those of
    /// [`check_size`]; a buffer of the pool then goes back there, a loan is given back.
    /// *Cost*: see [`Outlet`].
    #[inline]
    pub fn publish(&self, outlet: &mut Outlet, call: &mut Call, payload: &mut Payload<'_>) -> Result<()> {
        let Call { write, moment, patience } = call;
        let moment = *moment;
        write.source_timestamp = Some(moment.timestamp);
        write.called = moment.begun.unwrap_or_else(monotonic_now);
        outlet.burst.announce(moment.begun);
        let noted = |()| if outlet.notes_calls { note_call(outlet, write, moment) } else { Ok(()) };
        if let Err(error) = check_size(payload.len).and_then(noted) {
            payload.drop_into(outlet);
            return Err(error);
        }
        if let Patience::KeepAll(wait) = *patience
            && !outlet.may_write()
        {
            let may_gain = self.may_gain_room(outlet, write);
            match may_gain.and_then(|()| self.wait_for_room(outlet, wait)) {
                // The protocol may have it wait, too: for no longer than that in all.
                Ok(left) => *patience = Patience::KeepAll(Some(left)),
                Err(error) => {
                    payload.drop_into(outlet);
                    return Err(error);
                }
            }
            outlet.burst.announce(None);
            outlet.wakes.excuse(write.called);
        }
        write.in_lane = outlet.has_room() && outlet.place(payload);
        if outlet.is_direct() && (write.in_lane || !outlet.has_readers()) {
            outlet.commit(write, payload, &self.inner);
            self.note_written(outlet, write);
            return Ok(());
        }
        self.publish_beside(outlet, write, payload, *patience)
    }

    /// The same for a change that the protocol is to see, too.
    fn publish_beside(
        &self,
        outlet: &mut Outlet,
        write: &mut Write,
        payload: &mut Payload<'_>,
        patience: Patience,
    ) -> Result<()> {
        write.number = Some(outlet.next_number());
        payload.share_as(&mut write.payload);
        if let Err(error) = self.give(outlet, write, payload.len, patience) {
            payload.drop_into(outlet);
            return Err(error);
        }
        outlet.note_given();
        outlet.commit(write, payload, &self.inner);
        self.note_written(outlet, write);
        Ok(())
    }

    /// After a write.
    #[inline]
    fn note_written(&self, outlet: &mut Outlet, write: &Write) {
        if outlet.notes_calls {
            self.note_in_order(outlet, write);
        }
    }

    /// None after it may be before it by its source; if its DEADLINE is watched, the next one is awaited.
    #[cold]
    fn note_in_order(&self, outlet: &mut Outlet, write: &Write) {
        if outlet.source_order.is_some() {
            outlet.source_order = write.source_timestamp;
        }
        if let Some(promise) = &outlet.promise {
            self.await_next(promise, write);
        }
    }

    /// *Cost*: a lock.
    pub(crate) fn await_next(&self, promise: &Promise, write: &Write) {
        let inner = &self.inner;
        let next = inner.owed.promises.note(promise, write.called, write.instance, write.kind);
        if let Some(next) = next.filter(|next| inner.holding.oversleeps(false, *next, Time::NEVER)) {
            inner.remind(monotonic_now(), next, Time::NEVER);
        }
    }

    /// Sends what waits for a publisher to resume, and asks for acknowledgements of it. The caller has asked
    /// [`Executor::may_use`]. *Cost*: the token.
    pub fn end_burst(&self) {
        self.inner.end_burst();
    }

    /// The chunks that a port sends payloads from as they are, of a writer with this TRANSPORT_PRIORITY, if one does.
    pub fn chunks(&self, priority: i32) -> Option<Arc<Chunks>> {
        self.inner.peek(|core| core.port.chunks(priority).cloned())
    }

    /// Gives a change with a payload of `len` bytes to the protocol.
    #[inline]
    fn give(&self, outlet: &mut Outlet, write: &mut Write, len: usize, patience: Patience) -> Result<()> {
        let (index, line) = (outlet.index, outlet.line);
        let (burst, room) = outlet.burst_and_room();
        let may_leave = || match patience {
            Patience::KeepLast => true,
            Patience::KeepLastWithin => false,
            Patience::KeepAll(_) => room.is_enough_for(len),
        };
        if self.inner.write(index, write, len, burst, (line, may_leave)).is_ok() {
            return Ok(());
        }
        match patience {
            Patience::KeepAll(wait) => self.give_when_read(outlet, write, wait),
            Patience::KeepLastWithin => Err(no_samples_left()),
            Patience::KeepLast => Err(would_wait()),
        }
    }

    /// The same as soon as readers let it, if they can.
    #[cold]
    fn give_when_read(&self, outlet: &mut Outlet, write: &mut Write, wait: Option<Duration>) -> Result<()> {
        let index = outlet.index;
        self.may_gain_room(outlet, write)?;
        let wait = wait.ok_or_else(would_wait)?;
        self.may_wait()?;
        let written = self.await_readers(outlet, ends(wait), |outlet, until| {
            self.inner.wait_behind(until, |participant, now| {
                // What was taken from the lane meanwhile counts no more, and who has come may leave no room in it.
                outlet.may_write();
                write.in_lane &= outlet.has_room();
                participant.write(now, index, write).is_ok().then_some(())
            })
        });
        // It was no pause of the caller's.
        outlet.burst.end(monotonic_now());
        written.ok_or_else(|| self.time_out(outlet))
    }

    /// Has everybody acknowledged all that was written?
    pub fn is_acknowledged(&self, outlet: &mut Outlet) -> bool {
        let index = outlet.index;
        // What was left to the token's holder is written, too.
        outlet.is_read() && self.inner.look(|participant, _| participant.is_acknowledged(index))
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::{DataReaderQos, DataWriterQos};

    use crate::account::jobs::JobClass;
    use crate::executor_tests::{endpoint, inline};

    #[test]
    fn who_makes_or_ends_an_endpoint_leaves_others_their_turn_between_its_matches() {
        const READERS: usize = 4 * taut_rtps::limits::LOCAL_STEP;
        let executor = inline();
        let readers: Vec<_> = (0..READERS)
            .map(|_| executor.create_reader(endpoint(DataReaderQos::default())).unwrap().0)
            .collect();
        let calls = || executor.latency_report().classes[JobClass::Calls as usize].steps;
        let before = calls();
        let (writer, _) = executor.create_writer(endpoint(DataWriterQos::default())).unwrap();
        assert!(calls() - before >= 4, "{}", calls() - before);
        let matched = |reader| {
            let look = |of: &mut taut_dcps::DomainParticipant, _| {
                of.reader(reader).unwrap().subscription_matched.current_count
            };
            executor.inner.look(look)
        };
        assert!(readers.iter().all(|reader| matched(*reader) == 1), "with all of them when it is there");
        let before = calls();
        executor.delete_writer(writer);
        assert!(calls() - before >= 4, "{}", calls() - before);
        assert!(readers.iter().all(|reader| matched(*reader) == 0));
    }
}
