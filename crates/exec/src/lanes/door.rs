//! A reader's side behind its own lock, so that its owner takes samples without the token.
//!
//! The lock is held for a few samples at a time: by the owner who takes, by the protocol that delivers, by
//! the driver that empties lanes. Order of locks: the token, then a door; never the other way round.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use taut_base::Guid;
use taut_dcps::{Delivery, Doors, Entity, ReaderSide};
use taut_lock::{Mutex, MutexGuard};
use taut_mem::lane::{Bell, Peephole};
use taut_rtps::ReaderIndex;

use crate::clock::monotonic_now;
use crate::driver::waiting::Spin;
use crate::lanes::quiet::Quiet;
use crate::lanes::ringer::Ringer;

/// Lanes that a driver looks at itself before it sleeps. Higher and a look at a socket waits for that at lanes, which takes
/// up to 11 ns for each; lower has writers ring for a driver that is awake.
const FEW: usize = 16;

/// The place of no door.
const NOBODY: u32 = u32::MAX;

/// One reader's side and who is interested in it.
#[repr(align(64))]
pub struct Door {
    pub(crate) index: ReaderIndex,
    side: Mutex<ReaderSide>,
    quiet: Quiet,
    /// Who wants to be told of new samples: threads that wait, listeners, tasks.
    watchers: AtomicUsize,
    /// Who is to be told that there is room in a lane, by its writer.
    writers: Mutex<Vec<(Guid, Ringer)>>,
    /// The thread that waits here and not at the port, and what it looks at before it sleeps.
    parked: Mutex<Option<Thread>>,
    pub(crate) spin: Spin,
    pub(crate) bell: Arc<Bell>,
}

impl Door {
    pub(crate) fn side(&self) -> MutexGuard<'_, ReaderSide> {
        self.side.lock()
    }

    /// Is there nothing here, as nothing was brought since a look that has found nothing? See [`Quiet::is_set`].
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.is_set()
    }

    /// A look has found nothing to take; the caller has the lock.
    #[inline]
    pub(crate) fn note_vain_look(&self, side: &ReaderSide) {
        if side.is_quiet() {
            self.quiet.set();
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    /// Does anybody watch beside a caller who does so as often?
    pub(crate) fn is_watched_beside(&self, own: usize) -> bool {
        self.watchers.load(Ordering::SeqCst) > own
    }

    /// Do lanes lead here?
    pub(crate) fn has_lanes(&self) -> bool {
        !self.writers.lock().is_empty()
    }

    /// Wakes the thread that waits here.
    pub(crate) fn wake(&self) {
        // Without the lock: on one core the woken thread runs at once, and would wait for it.
        let parked = self.parked.lock().clone();
        if let Some(thread) = parked {
            thread.unpark();
        }
    }

    /// Does every sample come by a lane from this process, of so many writers?
    pub(crate) fn is_fed_here(&self, matched: usize) -> bool {
        let writers = self.writers.lock();
        matched > 0 && writers.len() == matched && writers.iter().all(|(_, ringer)| ringer.is_here())
    }

    /// Is this writer, whose lane leads here, in this process? `None` if its lane does not.
    pub(crate) fn is_here(&self, writer: Guid) -> Option<bool> {
        let writers = self.writers.lock();
        writers.iter().find(|(known, _)| *known == writer).map(|(_, ringer)| ringer.is_here())
    }

    /// Tells the writers of its lanes that there is room.
    pub(crate) fn ring_writers(&self) {
        for (_, ringer) in self.writers.lock().iter() {
            ringer.ring();
        }
    }
}

/// A look at one lane without its door.
struct Peep {
    hole: Option<Peephole>,
    writer: Guid,
    door: Arc<Door>,
}

impl Peep {
    /// May there be something in the lane? *Cost*: a load of the lane's memory, as the next.
    #[inline]
    fn may_show(&self) -> bool {
        self.hole.as_ref().is_none_or(Peephole::shows)
    }

    /// May its writer wait for room?
    #[inline]
    fn may_be_awaited(&self) -> bool {
        self.hole.as_ref().is_none_or(Peephole::wants_readers)
    }
}

/// The doors of a participant, by their place in the protocol's table.
#[derive(Default)]
pub(crate) struct Table {
    doors: Mutex<Vec<Option<Arc<Door>>>>,
    /// One for each lane, by the door's place: a look for what lanes bring passes all other doors over.
    peepholes: Mutex<BTreeMap<u32, Vec<Peep>>>,
    /// How many lanes lead to them, so that a participant without any pays one load.
    lanes: AtomicUsize,
    /// How many threads wait at a door.
    parked: AtomicUsize,
    /// How many watch.
    watchers: AtomicUsize,
    /// Every door is watched, by who drives and then takes.
    watches_all: bool,
    /// Lanes that turned out broken, to be left by who has neither token nor door: reader and writer.
    broken: Mutex<Vec<(ReaderIndex, Guid)>>,
    any_broken: AtomicBool,
    /// Where lanes are many: the value of the participant's bell since which nothing was in any of them that somebody waits
    /// for. Whoever writes there rings.
    quiet_since: AtomicU64,
    /// The place of the door whose lanes brought something last, or [`NOBODY`].
    last_found: AtomicU32,
    /// Somebody has rung, and not all lanes were looked at since.
    owes_look: AtomicBool,
    /// The door that something came to last was looked at since.
    has_looked_there: AtomicBool,
}

impl Table {
    pub fn new(watches_all: bool) -> Table {
        Table { watches_all, last_found: AtomicU32::new(NOBODY), ..Table::default() }
    }

    /// Remembers the lanes that a look at a door has found broken. *Cost*: one comparison if there are none.
    #[inline]
    pub fn note_broken(&self, index: ReaderIndex, side: &mut ReaderSide) {
        if side.has_broken() {
            self.take_note_of_broken(index, side);
        }
    }

    #[cold]
    fn take_note_of_broken(&self, index: ReaderIndex, side: &mut ReaderSide) {
        while let Some(writer) = side.take_broken() {
            self.broken.lock().push((index, writer));
            self.any_broken.store(true, Ordering::SeqCst);
        }
    }

    /// Are there lanes to leave?
    #[inline]
    pub fn has_broken(&self) -> bool {
        self.any_broken.load(Ordering::SeqCst)
    }

    /// The lanes to leave.
    pub fn take_broken(&self) -> Vec<(ReaderIndex, Guid)> {
        self.any_broken.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.broken.lock())
    }

    /// Does somebody wait for what lanes bring to this door?
    pub fn watches(&self, door: &Door) -> bool {
        self.watches_all || door.is_watched()
    }

    pub fn watch(&self, door: &Door) {
        let is_first = door.watchers.fetch_add(1, Ordering::SeqCst) == 0;
        self.watchers.fetch_add(1, Ordering::SeqCst);
        if is_first && self.has_lanes() && door.has_lanes() {
            self.note_change();
        }
    }

    pub fn unwatch(&self, door: &Door) {
        door.watchers.fetch_sub(1, Ordering::SeqCst);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Does somebody wait for what lanes bring?
    pub fn is_watched(&self) -> bool {
        self.has_lanes() && (self.watches_all || self.watchers.load(Ordering::SeqCst) > 0)
    }

    /// The calling thread is the one that waits at a door; `false` if there is one.
    pub fn begin_parking(&self, door: &Door) -> bool {
        let mut parked = door.parked.lock();
        let free = parked.is_none();
        if free {
            *parked = Some(std::thread::current());
            self.parked.fetch_add(1, Ordering::SeqCst);
        }
        free
    }

    /// Does a thread wait at a door?
    #[inline]
    pub fn has_parked(&self) -> bool {
        self.parked.load(Ordering::SeqCst) > 0
    }

    pub fn end_parking(&self, door: &Door) {
        *door.parked.lock() = None;
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the thread that waits for a reader, if one does, as the protocol has news for it: also of the end of its last
    /// lane.
    pub fn wake(&self, entity: Entity) {
        if let Entity::Reader(index) = entity
            && self.has_parked()
            && let Some(door) = self.get(index)
        {
            door.wake();
        }
    }

    pub fn get(&self, index: ReaderIndex) -> Option<Arc<Door>> {
        self.doors.lock().get(index.0 as usize)?.clone()
    }

    /// Nobody gets a door, or a place for one, while the guard lives.
    #[cfg(test)]
    pub fn hold(&self) -> impl Sized {
        self.doors.lock()
    }

    /// Are there so few lanes that a look at them takes no longer than one at a socket?
    pub fn are_few(&self) -> bool {
        self.lanes.load(Ordering::SeqCst) <= FEW
    }

    /// Is there nothing in any lane, as nobody has rung since it was looked for while the bell had this value?
    #[inline]
    pub fn is_quiet_since(&self, armed: Option<u64>) -> bool {
        armed == Some(self.quiet_since.load(Ordering::SeqCst))
    }

    /// Looks whether there is something in a lane that somebody waits for, while the bell is armed with this value. Only
    /// whoever drives does.
    pub fn is_ready_since(&self, armed: u64) -> bool {
        // First: who changes what is looked at does so after that, or is seen.
        self.quiet_since.store(armed, Ordering::SeqCst);
        let is_ready = self.is_ready();
        if is_ready {
            self.note_change();
        }
        is_ready
    }

    /// Somebody has rung: most likely a writer whose lane leads to the door that something came to last, but perhaps one that
    /// waits for room, whom nobody finds but who looks at all. Few lanes are looked at in each step.
    pub fn note_rung(&self) {
        if !self.are_few() && !self.owes_look.swap(true, Ordering::SeqCst) {
            self.has_looked_there.store(false, Ordering::SeqCst);
        }
    }

    /// Is a look at all lanes owed to who has rung?
    #[inline]
    pub fn owes_look(&self) -> bool {
        self.owes_look.load(Ordering::SeqCst) && self.has_lanes()
    }

    /// All lanes are looked at from here on.
    pub fn begin_look(&self) {
        self.owes_look.store(false, Ordering::SeqCst);
    }

    /// Something came to this door.
    pub fn note_found(&self, door: &Door) {
        self.last_found.store(door.index.0, Ordering::SeqCst);
    }

    /// The door that something came to last, if more has come where many lanes are to be looked at; once before each look at
    /// all, for which who waits there need not wait then. *Cost*: one load mostly.
    pub fn likely_wanted(&self) -> Option<Arc<Door>> {
        if !self.owes_look() || self.has_looked_there.swap(true, Ordering::SeqCst) {
            return None;
        }
        let last = ReaderIndex(self.last_found.load(Ordering::SeqCst));
        self.get(last).filter(|door| self.watches(door) && door.side().is_ready())
    }

    /// There is more to look at than before. No bell that is armed has this value.
    fn note_change(&self) {
        self.quiet_since.store(0, Ordering::SeqCst);
    }

    pub fn has_lanes(&self) -> bool {
        self.lanes.load(Ordering::SeqCst) > 0
    }

    pub fn add_writer(&self, door: &Arc<Door>, writer: Guid, ringer: Ringer) {
        self.remove_writer(door, writer);
        let peep = Peep { hole: door.side().peephole(writer), writer, door: Arc::clone(door) };
        self.peepholes.lock().entry(door.index.0).or_default().push(peep);
        door.writers.lock().push((writer, ringer));
        self.lanes.fetch_add(1, Ordering::SeqCst);
        self.note_change();
    }

    pub fn remove_writer(&self, door: &Door, writer: Guid) {
        let mut writers = door.writers.lock();
        let Some(at) = writers.iter().position(|(known, _)| *known == writer) else { return };
        writers.remove(at);
        drop(writers);
        self.lanes.fetch_sub(1, Ordering::SeqCst);
        let mut peepholes = self.peepholes.lock();
        if let Some(of_door) = peepholes.get_mut(&door.index.0) {
            of_door.retain(|peep| peep.writer != writer);
            if of_door.is_empty() {
                peepholes.remove(&door.index.0);
            }
        }
    }

    /// Lanes of its readers whose writers broke their rules.
    pub fn broken_lanes(&self) -> u64 {
        let doors = self.doors.lock();
        doors.iter().flatten().map(|door| door.side().broken_lanes).sum()
    }

    /// The first door after `last`, or of all, whose lanes are to be emptied for somebody. *Cost*: two loads for each lane up to
    /// that, and the lock of each door that may have something.
    pub fn next_wanted(&self, last: Option<ReaderIndex>) -> Option<Arc<Door>> {
        let mut peepholes = self.peepholes.lock();
        let after = last.map_or(Bound::Unbounded, |last| Bound::Excluded(last.0));
        let mut rest = peepholes.range_mut((after, Bound::Unbounded)).flat_map(|(_, of_door)| of_door);
        rest.find_map(|peep| {
            let is_wanted = |door: &Door, side: &ReaderSide| self.is_wanted_side(door, side);
            (self.may_want(peep) && Table::looks_in(peep, is_wanted)).then(|| Arc::clone(&peep.door))
        })
    }

    #[inline]
    fn may_want(&self, peep: &Peep) -> bool {
        peep.may_be_awaited() || (peep.may_show() && self.watches(&peep.door))
    }

    /// Looks behind the door. If there is nothing, though it looked so, the reader has read on.
    fn looks_in(peep: &mut Peep, is_there: impl FnOnce(&Door, &ReaderSide) -> bool) -> bool {
        let side = peep.door.side();
        let found = is_there(&peep.door, &side);
        if !found {
            peep.hole = side.peephole(peep.writer);
        }
        found
    }

    /// Does somebody wait for what is in a lane to this door, or for room in one?
    pub fn is_wanted(&self, door: &Door) -> bool {
        self.is_wanted_side(door, &door.side())
    }

    fn is_wanted_side(&self, door: &Door, side: &ReaderSide) -> bool {
        side.is_awaited() || (self.watches(door) && side.is_ready())
    }

    /// Is there something in a lane that somebody waits for?
    pub fn is_ready(&self) -> bool {
        let mut peepholes = self.peepholes.lock();
        peepholes.values_mut().flatten().any(|peep| {
            let may_be = peep.may_show() && self.watches(&peep.door);
            may_be && Table::looks_in(peep, |_, side| side.is_ready())
        })
    }
}

/// The table as the participant sees it. Only it changes the table, so it may remember a door.
pub(crate) struct TableDoors {
    table: Arc<Table>,
    last: Option<Arc<Door>>,
}

impl TableDoors {
    pub fn new(table: Arc<Table>) -> TableDoors {
        TableDoors { table, last: None }
    }

    /// Calls with what is behind the door of a reader, which most often is that of the last time, and does what is to be done
    /// at the door then.
    #[inline]
    fn at_door(&mut self, index: ReaderIndex, call: impl FnOnce(&mut ReaderSide)) {
        if self.last.as_ref().is_none_or(|door| door.index != index) {
            self.last = self.table.get(index);
        }
        if let Some(door) = &self.last {
            let mut side = door.side();
            call(&mut side);
            side.end_delivery(monotonic_now);
            self.table.note_broken(index, &mut side);
            let awaited = side.take_awaited();
            door.quiet.end();
            drop(side);
            if awaited {
                door.ring_writers();
            }
        }
    }
}

impl Doors for TableDoors {
    fn set(&mut self, index: ReaderIndex, side: Option<ReaderSide>) {
        let door = side.map(|side| {
            Arc::new(Door {
                index,
                side: Mutex::new(side),
                quiet: Quiet::default(),
                watchers: AtomicUsize::new(0),
                writers: Mutex::default(),
                parked: Mutex::default(),
                spin: Spin::default(),
                bell: Arc::new(Bell::of_process()),
            })
        });
        self.last = None;
        let mut doors = self.table.doors.lock();
        let at = index.0 as usize;
        if doors.len() <= at {
            doors.resize(at + 1, None);
        }
        if let Some(old) = std::mem::replace(&mut doors[at], door) {
            self.table.peepholes.lock().remove(&index.0);
            self.table.lanes.fetch_sub(old.writers.lock().len(), Ordering::SeqCst);
            self.table.watchers.fetch_sub(old.watchers.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    fn look(&self, index: ReaderIndex, call: &mut dyn FnMut(&ReaderSide)) {
        if let Some(door) = self.table.get(index) {
            call(&door.side());
        }
    }

    fn with(&mut self, index: ReaderIndex, call: &mut dyn FnMut(&mut ReaderSide)) {
        self.at_door(index, call);
    }

    fn deliver(&mut self, index: ReaderIndex, delivery: &mut Delivery<'_>) {
        self.at_door(index, |side| delivery.enter(side));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use taut_base::{Duration, Time};
    use taut_dcps::{Endpoint, TypeSupport};
    use taut_qos::{DataWriterQos, TopicQos};

    use super::*;
    use crate::driver::watch::Readable;
    use crate::executor_tests::{config, own_domain, write};
    use crate::{Executor, Outlet};

    fn endpoint<Qos: Default, Group: Default>(topic: usize) -> Endpoint<Qos, Group> {
        let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
        let (topic_qos, group, qos) = (TopicQos::default(), Group::default(), Qos::default());
        Endpoint { topic_name: format!("Numbers{topic}"), topic_qos, type_support, qos, group }
    }

    /// Readers and what writes to each by a lane, and nothing in any of these. Whoever drives watches all.
    fn fed(count: usize) -> (Executor, Vec<Arc<Door>>, Vec<Outlet>) {
        let executor = Executor::start(&config(own_domain(), true)).unwrap();
        let ends = (0..count).map(|topic| {
            let (reader, _) = executor.create_reader(endpoint(topic)).unwrap();
            let (writer, _) = executor.create_writer(endpoint(topic)).unwrap();
            (executor.door(reader).unwrap(), executor.outlet(writer, &DataWriterQos::default()).unwrap())
        });
        let (doors, outlets) = ends.collect();
        executor.run_once(Some(Time(0))).unwrap();
        assert!(executor.inner.doors.next_wanted(None).is_none());
        (executor, doors, outlets)
    }

    #[test]
    fn who_looks_for_what_lanes_bring_leaves_other_doors_alone() {
        let (executor, doors, mut outlets) = fed(3);
        let table = &executor.inner.doors;
        for turn in 0..3 {
            write(&executor, &mut outlets[1], turn);
            // A look behind these would wait.
            let held = [doors[0].side(), doors[2].side()];
            let (tell, told) = mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let next = |last| table.next_wanted(last).map(|door| door.index);
                    tell.send((next(None), next(Some(doors[1].index)), table.is_ready())).unwrap();
                });
                let found = told.recv_timeout(std::time::Duration::from_secs(20));
                drop(held);
                assert_eq!(found, Ok((Some(doors[1].index), None, true)));
            });
            executor.run_once(Some(Time(0))).unwrap();
            assert!(table.next_wanted(None).is_none() && !table.is_ready(), "it is in the reader's cache");
        }
    }

    #[test]
    fn many_lanes_are_looked_at_when_somebody_rings() {
        let (executor, doors, mut outlets) = fed(FEW + 1);
        let inner = &executor.inner;
        let is_quiet = || inner.doors.is_quiet_since(inner.bell.armed());
        let drive =
            || executor.run_once(Some(monotonic_now() + taut_base::Duration::from_millis(1))).unwrap();
        drive();
        assert!(is_quiet());
        // A look behind this one would wait.
        let held = doors[0].side();
        executor.run_once(Some(Time(0))).unwrap();
        drop(held);
        for turn in 0..3 {
            let before = executor.stats().kicks;
            write(&executor, &mut outlets[3], turn);
            assert_eq!(executor.stats().kicks, before + 1);
            drive();
            (0..1_000).take_while(|_| !is_quiet()).for_each(|_| drive());
            assert!(is_quiet());
            assert!(!doors[3].side().is_ready(), "it is in the reader's cache");
        }
        inner.doors.watch(&doors[0]);
        assert!(!is_quiet(), "somebody wants to know what is there already");
    }

    /// Who waits for what has come most often need not wait for a look at all the others, nor do these wait for good.
    #[test]
    fn behind_a_ring_the_likely_door_comes_first_and_alone() {
        let (executor, doors, mut outlets) = fed(FEW + 1);
        let table = &executor.inner.doors;
        let has = |at: usize| !doors[at].side().is_ready();
        let drive = |is_rung: bool| {
            if is_rung {
                table.note_rung();
            }
            drop(executor.inner.step(&Readable::default(), None));
        };
        write(&executor, &mut outlets[5], 1);
        drive(true);
        assert!(has(5) && !table.owes_look(), "nothing is likely yet");
        for others_ring in [false, true] {
            for (is_rung, of_others) in [(true, false), (others_ring, true)] {
                [2, 5, 9].into_iter().for_each(|at| write(&executor, &mut outlets[at], 2));
                drive(is_rung);
                assert_eq!([2, 5, 9].map(has), [of_others, true, of_others]);
                assert_eq!(table.owes_look(), !of_others);
            }
            // The last that was found.
            write(&executor, &mut outlets[5], 2);
            drive(false);
        }
        write(&executor, &mut outlets[9], 3);
        drive(true);
        assert!(has(9), "where the likely one has nothing all are looked at");
        executor.inner.with(|participant, now| participant.delete_reader(now, doors[9].index));
        write(&executor, &mut outlets[2], 4);
        drive(true);
        assert!(has(2), "or has gone");
    }

    /// That is no sample, so a look for samples does not find it.
    #[test]
    fn who_rings_for_room_is_looked_at_before_anybody_sleeps() {
        let sleeps = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:")).unwrap().to_owned()
        };
        let (executor, doors, mut outlets) = fed(FEW + 1);
        let table = &executor.inner.doors;
        write(&executor, &mut outlets[5], 1);
        drop(executor.inner.step(&Readable::default(), None));
        write(&executor, &mut outlets[5], 2);
        table.note_rung();
        drop(executor.inner.step(&Readable::default(), None));
        assert!(!doors[5].side().is_ready() && table.owes_look(), "to the others");
        let before = sleeps();
        executor.run_once(Some(monotonic_now() + Duration::from_secs(20))).unwrap();
        assert_eq!((sleeps(), table.owes_look()), (before, false));
    }

    #[test]
    fn a_reader_that_has_gone_is_looked_at_no_more() {
        let (executor, doors, mut outlets) = fed(2);
        outlets.iter_mut().for_each(|outlet| write(&executor, outlet, 1));
        let table = &executor.inner.doors;
        assert_eq!(table.next_wanted(None).map(|door| door.index), Some(doors[0].index));
        executor.inner.with(|participant, now| participant.delete_reader(now, doors[0].index));
        assert_eq!(table.next_wanted(None).map(|door| door.index), Some(doors[1].index));
        assert_eq!(table.peepholes.lock().len(), 1);
    }
}
