//! What DCPS keeps of each reader and writer above the protocol: cache, statuses, what is news.

use std::collections::BTreeSet;
use std::ops::Range;

use taut_base::{Guid, SequenceNumber, Time};
use taut_qos::{DataReaderQos, DataWriterQos};
use taut_rtps::{Offer, Passage, ReaderIndex, Sink, WriterIndex};

use crate::doors::{Delivery, Doors};
use crate::due::Due;
use crate::lag::Lags;
use crate::reader_side::ReaderSide;
use crate::status::{
    LivelinessChangedStatus, LivelinessLostStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SlowReaderStatus, StatusMask, SubscriptionMatchedStatus,
};
use crate::type_support::TypeSupport;

/// Who has news.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entity {
    /// The participant: somebody came or went.
    Participant,
    /// A local reader.
    Reader(ReaderIndex),
    /// A local writer.
    Writer(WriterIndex),
}

/// News of entities: each entity is in the queue once, with all its kinds.
#[derive(Default)]
pub(crate) struct News {
    queue: std::collections::VecDeque<(Entity, StatusMask)>,
}

impl News {
    #[inline(always)]
    pub fn add(&mut self, entity: Entity, kinds: StatusMask) {
        match self.queue.back_mut() {
            Some((last, known)) if *last == entity => *known = *known | kinds,
            Some(_) => self.add_to_others(entity, kinds),
            None => self.queue.push_back((entity, kinds)),
        }
    }

    #[cold]
    fn add_to_others(&mut self, entity: Entity, kinds: StatusMask) {
        // Few entities have news at a time: a step handles a bounded number of frames.
        match self.queue.iter_mut().find(|(known, _)| *known == entity) {
            Some((_, known)) => *known = *known | kinds,
            None => self.queue.push_back((entity, kinds)),
        }
    }

    pub fn take(&mut self) -> Option<(Entity, StatusMask)> {
        self.queue.pop_front()
    }

    /// Forgets it if it is all that one reader has samples.
    pub fn forget_samples(&mut self) -> bool {
        let is_all = self.queue.len() == 1
            && matches!(self.queue.front(), Some((Entity::Reader(_), StatusMask::DATA_AVAILABLE)));
        if is_all {
            self.queue.clear();
        }
        is_all
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// A reader, but for its samples: those are in its [`ReaderSide`].
pub struct DataReader {
    /// Its QoS.
    pub qos: DataReaderQos,
    /// Its type.
    pub type_support: TypeSupport,
    /// Writers it has met.
    pub subscription_matched: SubscriptionMatchedStatus,
    /// Writers it could not meet.
    pub requested_incompatible_qos: RequestedIncompatibleQosStatus,
    /// Writers that are alive.
    pub liveliness_changed: LivelinessChangedStatus,
    /// Instances whose samples did not come in time.
    pub requested_deadline_missed: RequestedDeadlineMissedStatus,
}

impl DataReader {
    pub(crate) fn new(qos: DataReaderQos, type_support: TypeSupport) -> DataReader {
        DataReader {
            qos,
            type_support,
            subscription_matched: SubscriptionMatchedStatus::default(),
            requested_incompatible_qos: RequestedIncompatibleQosStatus::default(),
            liveliness_changed: LivelinessChangedStatus::default(),
            requested_deadline_missed: RequestedDeadlineMissedStatus::default(),
        }
    }
}

/// A writer.
pub struct DataWriter {
    /// Its QoS.
    pub qos: DataWriterQos,
    /// Its type.
    pub type_support: TypeSupport,
    /// Readers it has met.
    pub publication_matched: PublicationMatchedStatus,
    /// Readers it could not meet.
    pub offered_incompatible_qos: OfferedIncompatibleQosStatus,
    /// Promises of liveliness it broke.
    pub liveliness_lost: LivelinessLostStatus,
    /// Instances that it did not write in time.
    pub offered_deadline_missed: OfferedDeadlineMissedStatus,
    /// Writes that gave up on a reader.
    pub slow_reader: SlowReaderStatus,
}

impl DataWriter {
    pub(crate) fn new(qos: DataWriterQos, type_support: TypeSupport) -> DataWriter {
        DataWriter {
            qos,
            type_support,
            publication_matched: PublicationMatchedStatus::default(),
            offered_incompatible_qos: OfferedIncompatibleQosStatus::default(),
            liveliness_lost: LivelinessLostStatus::default(),
            offered_deadline_missed: OfferedDeadlineMissedStatus::default(),
            slow_reader: SlowReaderStatus::default(),
        }
    }
}

/// All readers, by their place in the protocol's table: where the protocol delivers.
pub(crate) struct Readers {
    slots: Vec<Option<DataReader>>,
    pub doors: Box<dyn Doors>,
    pub news: News,
    /// When to look at their deadlines.
    pub alarms: Due,
    /// LATENCY_BUDGET of the writers that they are matched with.
    pub lags: Lags,
    /// Which of them are matched with which writers whose samples expire.
    pub expiring: BTreeSet<(ReaderIndex, Guid)>,
    /// The time of the step in which changes are delivered.
    pub now: Time,
}

impl Readers {
    pub fn new(doors: Box<dyn Doors>) -> Readers {
        let (news, alarms, lags) = (News::default(), Due::default(), Lags::default());
        let (slots, expiring, now) = (Vec::new(), BTreeSet::new(), Time::default());
        Readers { slots, doors, news, alarms, lags, expiring, now }
    }

    /// Is one of them matched with such a writer?
    pub fn has_expiring(&self, index: ReaderIndex) -> bool {
        let expiring = self.expiring.range((index, Guid::UNKNOWN)..).next();
        expiring.is_some_and(|(of, _)| *of == index)
    }

    pub fn get(&self, index: ReaderIndex) -> Option<&DataReader> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, index: ReaderIndex) -> Option<&mut DataReader> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    pub fn set(&mut self, index: ReaderIndex, reader: Option<(DataReader, ReaderSide)>) {
        let at = index.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at.saturating_add(1), || None);
        }
        let (reader, side) = reader.unzip();
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = reader;
        }
        self.alarms.cancel(index.0);
        self.lags.forget_reader(index);
        self.expiring.retain(|(of, _)| *of != index);
        self.doors.set(index, side);
    }

    /// Runs `call` with a reader's side; nothing happens if there is none.
    pub fn at_side<R>(&mut self, index: ReaderIndex, call: impl FnOnce(&mut ReaderSide) -> R) -> Option<R> {
        let (mut call, mut result) = (Some(call), None);
        let (mut alarm, to_wall) = (None, self.lags.to_wall);
        self.doors.with(index, &mut |side| {
            side.lifespans.note_wall_clock(to_wall);
            result = call.take().map(|call| call(side));
            alarm = side.take_alarm();
        });
        self.note_alarm(index, alarm);
        result
    }

    #[inline]
    fn note_alarm(&mut self, index: ReaderIndex, alarm: Option<Time>) {
        if let Some(at) = alarm {
            // What is to be done at once is due now, and no later than it is found.
            self.alarms.set(index.0, at.max(self.now));
        }
    }

    /// Runs `call` with a reader's side and tells of the news that it returns.
    pub fn change_side<R>(
        &mut self,
        index: ReaderIndex,
        call: impl FnOnce(&mut ReaderSide) -> (R, StatusMask),
    ) -> Option<R> {
        let (result, news) = self.at_side(index, call)?;
        if news != StatusMask::NONE {
            self.news.add(Entity::Reader(index), news);
        }
        Some(result)
    }
}

impl Sink for Readers {
    fn deliver(&mut self, index: ReaderIndex, strength: i32, offer: &mut Offer) {
        let (now, to_wall) = (self.now, self.lags.to_wall);
        if self.lags.are_on() && self.lags.look(now, index, offer) {
            self.news.add(Entity::Participant, StatusMask::NONE);
        }
        let (news, alarm, is_there) = (StatusMask::NONE, None, false);
        let mut delivery = Delivery { now, strength, to_wall, offer, news, alarm, is_there };
        self.doors.deliver(index, &mut delivery);
        let Delivery { offer, news, alarm, is_there, .. } = delivery;
        self.note_alarm(index, alarm);
        if news != StatusMask::NONE {
            self.news.add(Entity::Reader(index), news);
        }
        if !is_there {
            *offer = None;
        }
    }

    fn note_passage(&mut self, index: ReaderIndex, writer: Guid, number: SequenceNumber, passage: Passage) {
        self.doors.with(index, &mut |side| side.note_passage(writer, number, passage));
    }

    fn lane_next(&mut self, index: ReaderIndex, writer: Guid, expected: SequenceNumber) -> SequenceNumber {
        let now = self.now;
        self.change_side(index, |side| side.lane_next(now, writer, expected)).unwrap_or(expected)
    }

    fn held_by_lane(&mut self, index: ReaderIndex, writer: Guid, numbers: Range<SequenceNumber>) -> u64 {
        self.at_side(index, |side| side.held_by_lane(writer, &numbers)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_forgotten_only_if_one_reader_has_samples() {
        let (reader, data) = (Entity::Reader(ReaderIndex(0)), StatusMask::DATA_AVAILABLE);
        let mut news = News::default();
        assert!(!news.forget_samples(), "there are none");
        news.add(reader, data);
        assert!(news.forget_samples() && news.is_empty());
        for (entity, kinds) in [
            (reader, StatusMask::SAMPLE_LOST),
            (Entity::Reader(ReaderIndex(1)), data),
            (Entity::Writer(WriterIndex(0)), data),
            (Entity::Participant, StatusMask::NONE),
        ] {
            news.add(reader, data);
            news.add(entity, kinds);
            assert!(!news.forget_samples(), "{entity:?} {kinds:?}");
            assert_eq!(news.take().map(|(first, _)| first), Some(reader));
            news.take();
        }
        news.add(Entity::Writer(WriterIndex(0)), data);
        assert!(!news.forget_samples());
    }
}
