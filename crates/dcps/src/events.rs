//! From what the protocol tells to statuses, news and lines for the log. DCPS 1.4 §2.2.4.1.

use taut_base::{EntityId, Guid, Time};
use taut_qos::Incompatibility;
use taut_rtps::{Event, IntervalSet, ReaderIndex, WriterIndex};

use crate::entities::Entity;
use crate::participant::{DomainParticipant, LOG_LINES, Match};
use crate::reader_side::ReaderSide;
use crate::status::StatusMask;

impl DomainParticipant {
    /// Handles all that the protocol has to tell: most often nothing.
    #[inline]
    pub(crate) fn handle_events(&mut self, now: Time) {
        if self.core.has_events() {
            self.handle_all_events(now);
        }
    }

    #[cold]
    fn handle_all_events(&mut self, now: Time) {
        while let Some(event) = self.core.poll_event() {
            self.handle_event(now, event);
        }
    }

    fn handle_event(&mut self, now: Time, event: Event) {
        match event {
            Event::ParticipantDiscovered(_)
            | Event::ParticipantLost { .. }
            | Event::EndpointDiscovered(_)
            | Event::EndpointLost(_) => {
                if let Event::EndpointDiscovered(endpoint) = event {
                    self.note_endpoint(now, endpoint);
                }
                self.count_change(&event);
                // There are samples of a built-in topic.
                self.tell(Entity::Participant, StatusMask::DATA_AVAILABLE);
            }
            Event::PublicationMatched { writer, reader, matched } => {
                if let Some(writer) = self.core.writer(writer).map(|writer| writer.guid) {
                    self.note_match(Match { writer, reader, offered: true, matched });
                }
                self.on_publication_matched(writer, reader, matched);
            }
            Event::SubscriptionMatched { reader, writer, matched, alive, undelivered } => {
                if let Some(reader) = self.core.reader(reader).map(|reader| reader.guid) {
                    self.note_match(Match { writer, reader, offered: false, matched });
                }
                self.on_subscription_matched(now, (reader, writer), matched, alive, undelivered);
            }
            Event::HistoryReceived { reader, writer } => {
                // Only now it may be joined by a lane.
                if let Some(reader) = self.core.reader(reader).map(|reader| reader.guid) {
                    self.note_match(Match { writer, reader, offered: false, matched: true });
                }
            }
            Event::OfferedIncompatibleQos { writer, reader, why } => {
                self.log_mismatch("writer", self.core.writer(writer).map(|w| w.guid.entity), reader, &why);
                let Some(entity) = self.writers.get_mut(&writer) else { return };
                entity.offered_incompatible_qos.count(reader, why);
                self.tell(Entity::Writer(writer), StatusMask::OFFERED_INCOMPATIBLE_QOS);
            }
            Event::RequestedIncompatibleQos { reader, writer, why } => {
                self.log_mismatch("reader", self.core.reader(reader).map(|r| r.guid.entity), writer, &why);
                let Some(entity) = self.readers.get_mut(reader) else { return };
                entity.requested_incompatible_qos.count(writer, why);
                self.tell(Entity::Reader(reader), StatusMask::REQUESTED_INCOMPATIBLE_QOS);
            }
            Event::InconsistentTopic { topic, local_type, remote, remote_type } => {
                self.on_inconsistent_topic(topic, &local_type, remote, &remote_type);
            }
            Event::LivelinessChanged { reader, writer, alive } => {
                self.on_liveliness_changed(now, reader, writer, alive);
            }
            // It may have said since that it is alive.
            Event::DeliveredLate { reader, writer } if self.core.is_silent(reader, writer) => {
                self.on_writer_gone(now, reader, writer, |_| StatusMask::NONE);
            }
            Event::DeliveredLate { .. } => {}
            Event::LivelinessLost { writer } => {
                let Some(entity) = self.writers.get_mut(&writer) else { return };
                entity.liveliness_lost.count();
                self.tell(Entity::Writer(writer), StatusMask::LIVELINESS_LOST);
            }
            Event::GreetingOverdue { reader } => self.on_room(now, reader),
            Event::SampleLost { reader, count } => {
                self.readers.at_side(reader, |side| side.sample_lost.count(count));
                self.tell(Entity::Reader(reader), StatusMask::SAMPLE_LOST);
            }
            Event::Acknowledged { writer } => self.tell(Entity::Writer(writer), StatusMask::NONE),
        }
    }

    fn on_inconsistent_topic(&mut self, topic: String, local_type: &str, remote: Guid, remote_type: &str) {
        let whose = self.core.named(remote);
        let types = if remote_type == local_type {
            "one side's type has a key, the other's has none".into()
        } else {
            format!("its type is {}, here it is {local_type}", remote_type.escape_debug())
        };
        self.log_line(format!("topic {topic}: no match with {whose}: {types}"));
        self.inconsistent_topics.entry(topic).or_default().count();
        self.tell(Entity::Participant, StatusMask::INCONSISTENT_TOPIC);
    }

    fn count_change(&mut self, event: &Event) {
        let changes = &mut self.discovery_changes;
        let of_topic = match event {
            Event::EndpointDiscovered(guid) | Event::EndpointLost(guid) if guid.entity.is_writer() => {
                &mut changes.publications
            }
            Event::EndpointDiscovered(_) | Event::EndpointLost(_) => &mut changes.subscriptions,
            _ => &mut changes.participants,
        };
        *of_topic = of_topic.saturating_add(1);
    }

    /// Another participant's endpoint is found, or has changed.
    fn note_endpoint(&mut self, now: Time, endpoint: Guid) {
        for reader in self.core.readers_of(endpoint).to_vec() {
            self.watch_lifespan(reader, endpoint, true);
            self.watch_lag(reader, endpoint, true);
            self.weigh(now, reader, endpoint);
        }
    }

    fn on_publication_matched(&mut self, writer: WriterIndex, reader: Guid, matched: bool) {
        let Some(entity) = self.writers.get_mut(&writer) else { return };
        let status = &mut entity.publication_matched;
        if matched {
            status.matched(reader)
        } else {
            status.unmatched(reader)
        }
        self.tell(Entity::Writer(writer), StatusMask::PUBLICATION_MATCHED);
    }

    fn on_subscription_matched(
        &mut self,
        now: Time,
        (reader, writer): (ReaderIndex, Guid),
        matched: bool,
        alive: bool,
        undelivered: Option<IntervalSet>,
    ) {
        let Some(entity) = self.readers.get_mut(reader) else { return };
        let status = &mut entity.subscription_matched;
        if matched {
            status.matched(writer)
        } else {
            status.unmatched(writer)
        }
        let current = usize::try_from(status.current_count).unwrap_or(0);
        let (alive, silent) = if alive { (1, 0) } else { (0, 1) };
        let sign = if matched { 1 } else { -1 };
        entity.liveliness_changed.count(writer, alive * sign, silent * sign);
        self.readers.at_side(reader, |side| side.matched = current);
        self.watch_lag(reader, writer, matched);
        if !matched {
            let mut lane = None;
            self.on_writer_gone(now, reader, writer, |side| {
                let (news, end) = side.leave_writer(writer, undelivered);
                lane = end;
                news
            });
            if let Some(end) = lane {
                self.core.lose_writer_lane(reader, writer, end);
            }
        }
        self.watch_lifespan(reader, writer, matched);
        let news = StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED;
        self.tell(Entity::Reader(reader), news);
    }

    /// A writer has gone or fallen silent: what it has written before comes before that.
    fn on_writer_gone(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        writer: Guid,
        leave: impl FnOnce(&mut ReaderSide) -> StatusMask,
    ) {
        self.readers.change_side(reader, |side| {
            let pulled = side.pull(now);
            side.note_awaited(pulled);
            let left = leave(side);
            let is_told = side.cache.writer_gone(now, writer);
            side.note_purge();
            let news = if is_told { StatusMask::DATA_AVAILABLE } else { StatusMask::NONE };
            ((), pulled.news | left | news)
        });
    }

    /// What a writer of this participant writes is delivered by its write.
    fn watch_lag(&mut self, reader: ReaderIndex, writer: Guid, matched: bool) {
        self.readers.lags.forget(reader, writer);
        let is_local = writer.prefix == self.core.guid().prefix;
        if let Some(endpoint) = self.core.endpoint(writer).filter(|_| matched && !is_local) {
            self.readers.lags.watch(reader, writer, endpoint.qos.latency_budget);
        }
    }

    fn on_liveliness_changed(&mut self, now: Time, reader: ReaderIndex, writer: Guid, alive: bool) {
        let Some(entity) = self.readers.get_mut(reader) else { return };
        let change = if alive { 1 } else { -1 };
        entity.liveliness_changed.count(writer, change, -change);
        if alive {
            self.readers.at_side(reader, |side| side.note_alive(writer));
        } else {
            self.on_writer_gone(now, reader, writer, |side| side.note_silent(writer));
        }
        self.tell(Entity::Reader(reader), StatusMask::LIVELINESS_CHANGED);
    }

    /// A write of a local writer has given up after `max_blocking_time`; this reader is furthest behind.
    pub fn note_slow_reader(&mut self, writer: WriterIndex, reader: Guid) {
        let Some(entity) = self.writers.get_mut(&writer) else { return };
        entity.slow_reader.count(reader);
        self.tell(Entity::Writer(writer), StatusMask::SLOW_READER);
    }

    fn note_match(&mut self, found: Match) {
        if let Some(matches) = &mut self.matches {
            matches.push_back(found);
        }
    }

    /// An entity has news of these kinds.
    pub fn tell(&mut self, entity: Entity, kinds: StatusMask) {
        self.readers.news.add(entity, kinds);
    }

    fn log_mismatch(&mut self, side: &str, local: Option<EntityId>, remote: Guid, why: &[Incompatibility]) {
        let topic = self.core.topic_of(local.unwrap_or_default()).unwrap_or_default().to_owned();
        let why = why.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let whose = self.core.named(remote);
        self.log_line(format!("topic {topic}: this {side} does not match {whose}: {why}"));
    }

    fn log_line(&mut self, line: String) {
        if self.log.len() < LOG_LINES {
            self.log.push_back(line);
        }
    }
}
