//! DataWriter. DCPS 1.4 §2.2.2.4.2.

use std::marker::PhantomData;

use taut_base::{Duration, Error, Guid, InstanceHandle, Result, Timestamp};
use taut_cdr::{DdsType, Encapsulation, Endian, KeyHasher};
use taut_dcps::{
    Entity, LivelinessLostStatus, ONLY_INSTANCE, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, SlowReaderStatus, StatusMask, instance_handle,
};
use taut_exec::{Call, Moment, Outlet, Payload, SlowReader, check_size};
use taut_mem::Pool;
use taut_qos::DataWriterQos;
use taut_rtps::history_cache::ChangeKind;

use crate::builtin::{is_matched_with, matched_with};
use crate::erase::{HANDLES, handle_of, refused};
use crate::instances::{Instances, Named};
use crate::untyped_writer::{Tools, UntypedWriter};

/// Writes samples of a topic.
///
/// When it is dropped, its instances end: they are disposed of and unregistered, or, without
/// `autodispose_unregistered_instances`, unregistered only; so is one that it had disposed of itself, though another
/// writer may have revived it since. A RELIABLE writer then waits up to `max_blocking_time`, at most
/// a second in all, for its readers' acknowledgements, and any writer for what it has written to be sent to readers that
/// acknowledge nothing; for a second after that no other one waits for a participant that has
/// not answered meanwhile. It knows up to `max_instances` of its instances, 65,536 if that
/// is not said; of others readers see that they have no writers.
///
/// Belongs to one thread at a time: it can be sent, not shared. *Cost*: of a write, no allocation once
/// warm; to readers of this machine no lock and no system call unless one sleeps; over the network one lock
/// (the participant's token) and one system call for each destination.
pub struct DataWriter<T> {
    pub(crate) untyped: UntypedWriter,
    of: PhantomData<fn(T)>,
}

impl<T: DdsType> DataWriter<T> {
    pub(crate) fn of(untyped: UntypedWriter) -> DataWriter<T> {
        DataWriter { untyped, of: PhantomData }
    }

    /// Writes a sample. With RELIABLE and KEEP_ALL it waits up to `max_blocking_time` for readers.
    ///
    /// *Errors*: [`Error::Timeout`] after that, whose text names the reader that is furthest behind, and the limit that is
    /// reached; [`Error::OutOfResources`] for a new instance beyond `max_instances`, or beyond `max_samples` of a durable KEEP_LAST
    /// writer that holds no more than the last sample of each, or beyond the limits of a durable KEEP_ALL writer without a
    /// LIFESPAN, whose samples never go; [`Error::BadParameter`] for a value its type
    /// forbids, and for more than 1 GiB, serialized; [`Error::PreconditionNotMet`] where it would have to wait within a listener,
    /// within another call of this writer's, which may run a task by its waker, and in the child of a fork.
    pub fn write(&self, sample: &T) -> Result<()> {
        self.publish(ChangeKind::Alive, sample, Moment::now(), true)
    }

    /// Writes a sample with a time of the caller's own as its source timestamp.
    ///
    /// With DESTINATION_ORDER BY_SOURCE_TIMESTAMP none is before that of the writer's last change, whichever instance it
    /// is of: samples that are written without a time have the clock's, or as long as that is behind, the same as the last
    /// one. With BY_RECEPTION_TIMESTAMP, the default, any will do.
    ///
    /// *Errors*: as [`DataWriter::write`]; [`Error::BadParameter`] with BY_SOURCE_TIMESTAMP for one that is before the last, or
    /// is [`Timestamp::INVALID`]. *Source*: DCPS 1.4 §2.2.2.4.2.12.
    pub fn write_with_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        self.publish(ChangeKind::Alive, sample, timestamp.into(), true)
    }

    /// Writes a sample if it can do so at once. *Errors*: as [`DataWriter::write`], and [`Error::Timeout`], whose text names no
    /// reader, if it would have to wait for readers.
    pub fn try_write(&self, sample: &T) -> Result<()> {
        self.publish(ChangeKind::Alive, sample, Moment::now(), false)
    }

    /// Disposes of the instance that has the key of `key`.
    ///
    /// *Errors*: as [`DataWriter::write`]; [`Error::PreconditionNotMet`] on a topic without a key.
    pub fn dispose(&self, key: &T) -> Result<()> {
        self.publish(ChangeKind::NotAliveDisposed, key, Moment::now(), true)
    }

    /// The same with a time of the caller's own. *Errors*: as [`DataWriter::dispose`] and
    /// [`DataWriter::write_with_timestamp`].
    pub fn dispose_with_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<()> {
        self.publish(ChangeKind::NotAliveDisposed, key, timestamp.into(), true)
    }

    /// Says that this writer will not write the instance any more; with
    /// `autodispose_unregistered_instances`, the default, it is disposed of too.
    ///
    /// *Errors*: as [`DataWriter::dispose`]; [`Error::PreconditionNotMet`] for an instance that this writer has neither
    /// registered nor written.
    pub fn unregister_instance(&self, key: &T) -> Result<()> {
        self.publish(self.unregisters_by(), key, Moment::now(), true)
    }

    /// The same with a time of the caller's own. *Errors*: as [`DataWriter::unregister_instance`] and
    /// [`DataWriter::write_with_timestamp`].
    pub fn unregister_instance_with_timestamp(&self, key: &T, timestamp: Timestamp) -> Result<()> {
        self.publish(self.unregisters_by(), key, timestamp.into(), true)
    }

    fn unregisters_by(&self) -> ChangeKind {
        if self.untyped.qos.writer_data_lifecycle.autodispose_unregistered_instances {
            ChangeKind::NotAliveDisposedUnregistered
        } else {
            ChangeKind::NotAliveUnregistered
        }
    }

    /// The handle of the instance that has the key of `key`, the one that readers have for it, whatever XCDR it is
    /// written in; of a topic without a key that of its only instance. It counts against `max_instances` from now on.
    /// Needs nothing of the peers, and so no time. *Errors*: [`Error::OutOfResources`] beyond that;
    /// [`Error::BadParameter`] as [`DataWriter::write`].
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle> {
        self.untyped.executor.may_use()?;
        self.name(key)?;
        let hash = taut_cdr::key_hash(key, HANDLES).map_err(refused::<T>)?;
        Ok(if T::HAS_KEY { instance_handle(hash) } else { ONLY_INSTANCE })
    }

    /// Registers the instance of a sample, by the name that it has in this writer's changes.
    pub(crate) fn name(&self, sample: &T) -> Result<Named> {
        let Tools { hasher, instances, .. } = &mut *self.untyped.tools()?;
        self.register(hasher, instances, sample)
    }

    /// The same for one that is written later, with what is to be sent when it ends.
    pub(crate) fn name_later(&self, sample: &T) -> Result<(InstanceHandle, Vec<u8>)> {
        let (hasher, mut key) = (&mut self.untyped.tools()?.hasher, Vec::new());
        let instance = hasher.hash(sample, self.untyped.representation).map_err(refused::<T>)?;
        if T::HAS_KEY {
            taut_cdr::key_to_payload(sample, self.untyped.representation, &mut key).map_err(refused::<T>)?;
        }
        Ok((instance, key))
    }

    #[inline]
    fn register(&self, hasher: &mut KeyHasher, instances: &mut Instances, sample: &T) -> Result<Named> {
        let instance = hasher.hash(sample, self.untyped.representation).map_err(refused::<T>)?;
        let key = |out: &mut Vec<u8>| taut_cdr::key_to_payload(sample, self.untyped.representation, out);
        let is_new = T::HAS_KEY && instances.register(instance, |out| key(out).map_err(refused::<T>))?;
        Ok(Named { instance, is_new })
    }

    fn publish(&self, kind: ChangeKind, sample: &T, moment: Moment, may_wait: bool) -> Result<()> {
        if kind != ChangeKind::Alive && !T::HAS_KEY {
            let text = format!("{} has no key: mark one with #[dds(key)]", T::TYPE_NAME);
            return Err(Error::PreconditionNotMet(text));
        }
        self.untyped.executor.may_use()?;
        let Tools { pool, hasher, outlet, instances } = &mut *self.untyped.tools()?;
        let named = match kind {
            ChangeKind::Alive | ChangeKind::NotAliveDisposed => self.register(hasher, instances, sample)?,
            _ => {
                let instance = hasher.hash(sample, self.untyped.representation).map_err(refused::<T>)?;
                instances.check_registered(instance)?;
                Named { instance, is_new: false }
            }
        };
        let call = &mut Call::new(kind, named.instance, moment, self.untyped.patience(may_wait));
        let written = match kind {
            ChangeKind::Alive => self.publish_data(outlet, pool, call, sample),
            _ => self.publish_key(outlet, pool, call, sample),
        };
        if T::HAS_KEY {
            instances.end_write(named, kind, written.is_ok());
        }
        written
    }

    /// What ends an instance.
    fn publish_key(&self, outlet: &mut Outlet, pool: &mut Pool, call: &mut Call, sample: &T) -> Result<()> {
        let mut buffer = pool.claim();
        buffer.clear();
        taut_cdr::key_to_payload(sample, self.untyped.representation, &mut buffer).map_err(refused::<T>)?;
        let len = buffer.len();
        self.untyped.executor.publish(outlet, call, &mut Payload::buffer(pool, buffer, len))
    }

    #[inline]
    fn publish_data(&self, outlet: &mut Outlet, pool: &mut Pool, call: &mut Call, sample: &T) -> Result<()> {
        let Some(value) = sample.plain_bytes() else {
            return self.publish_encoded(outlet, pool, call, sample);
        };
        let how = Encapsulation::new(self.untyped.representation, Endian::NATIVE, T::EXTENSIBILITY);
        let payload = &mut Payload::value([0, how.id()], value, pool);
        self.untyped.executor.publish(outlet, call, payload)
    }

    /// Encodes the sample where its readers look or a port sends from, if its length can be told from those before;
    /// else into a buffer.
    fn publish_encoded(
        &self,
        outlet: &mut Outlet,
        pool: &mut Pool,
        call: &mut Call,
        sample: &T,
    ) -> Result<()> {
        // What is too long is refused before it takes memory.
        let encode = |memory: &mut [u8]| {
            let len =
                taut_cdr::fill_payload(sample, self.untyped.representation, memory).map_err(refused::<T>)?;
            check_size(len).map(|()| len)
        };
        while let Some(mut memory) = outlet.memory(pool) {
            let encoded = encode(&mut memory);
            if let Ok(len) = encoded {
                outlet.note_len(len);
                if len <= memory.len() {
                    let payload = &mut outlet.payload(pool, memory, len);
                    return self.untyped.executor.publish(outlet, call, payload);
                }
            }
            // Longer than those before: once more, with as much as it takes.
            outlet.take_back(memory);
            encoded?;
        }
        let mut buffer = pool.claim();
        if buffer.len() < outlet.usual_len() {
            buffer.resize(outlet.usual_len(), 0);
        }
        let mut len = encode(&mut buffer)?;
        if len > buffer.len() {
            buffer.resize(len, 0);
            len = encode(&mut buffer)?;
        }
        outlet.note_len(len);
        self.untyped.executor.publish(outlet, call, &mut Payload::buffer(pool, buffer, len))
    }

    /// Waits until a reader has matched here: it is sent what is written from now on. That says nothing of the way back: what a
    /// server answers before its own writer has matched the caller's reader is lost, RELIABLE or not, if the two are VOLATILE.
    /// It can wait for that, by [`DataWriter::is_matched_with`], if it is told which reader that is.
    ///
    /// *Errors*: [`Error::Timeout`], whose text says why none has, as far as is known; who asks with a timeout of zero is told
    /// where that is to be seen.
    pub fn wait_matched(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.wait_matched_count(1, timeout)
    }

    /// Waits until `count` readers are matched. *Errors*: as of [`DataWriter::wait_matched`].
    pub fn wait_matched_count(&self, count: usize, timeout: impl Into<Duration>) -> Result<()> {
        self.untyped.wait_matched_count(count, timeout.into())
    }

    /// DCPS's get_matched_subscriptions: the readers that are matched here now. *Cost*: the token for 256 at a time, and a copy
    /// of each GUID.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("MatchedReaders")?;
    /// let (writer, reader) = (topic.writer(Qos::default())?, topic.reader(Qos::default())?);
    /// writer.wait_matched(Duration::from_secs(1))?;
    /// assert_eq!(writer.matched_subscriptions(), [reader.guid()]);
    /// assert!(writer.is_matched_with(reader.guid()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_subscriptions(&self) -> Vec<Guid> {
        matched_with(&self.untyped.executor, self.untyped.guid)
    }

    /// Is this reader among them? *Cost*: the token, for a look.
    pub fn is_matched_with(&self, reader: Guid) -> bool {
        is_matched_with(&self.untyped.executor, self.untyped.guid, reader)
    }

    /// Waits until all matched reliable readers have acknowledged all that was written; a BEST_EFFORT writer waits for nobody.
    ///
    /// *Errors*: [`Error::Timeout`], whose text names the reader that is furthest behind; [`Error::PreconditionNotMet`] from a
    /// listener.
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.untyped.wait_for_acknowledgments(timeout.into())
    }

    /// The reliable readers that do not have all that was written, furthest behind first: who holds a KEEP_ALL
    /// writer back, and who may lose samples of a KEEP_LAST one. Empty when all have all, and within another call of this
    /// writer's that runs the caller.
    ///
    /// *Cost*: the participant's token and a look at each reader, so not for each write.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Qos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("Slow")?;
    /// let (writer, _reader) = (topic.writer(Qos::default().reliable())?, topic.reader(Qos::default().reliable())?);
    /// writer.write(&Hello { text: "hello, world".into() })?;
    /// for slow in writer.slow_readers() {
    ///     eprintln!("{slow}"); // reader … of "planner" (…) is 1 sample behind since 0.001 s
    ///     assert!(slow.samples_behind >= 1);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn slow_readers(&self) -> Vec<SlowReader> {
        let tools = self.untyped.tools.try_borrow();
        tools.map(|tools| self.untyped.executor.slow_readers(&tools.outlet)).unwrap_or_default()
    }

    /// SLOW_READER: writes that gave up after `max_blocking_time`; its changes count from 0 again.
    pub fn slow_reader_status(&self) -> SlowReaderStatus {
        self.untyped.status(|writer| writer.slow_reader.take())
    }

    /// PUBLICATION_MATCHED; its changes count from 0 again.
    pub fn publication_matched_status(&self) -> PublicationMatchedStatus {
        self.untyped.status(|writer| writer.publication_matched.take())
    }

    /// OFFERED_INCOMPATIBLE_QOS, with both values of each policy; its changes count from 0 again.
    pub fn offered_incompatible_qos_status(&self) -> OfferedIncompatibleQosStatus {
        self.untyped.status(|writer| writer.offered_incompatible_qos.take())
    }

    /// LIVELINESS_LOST; its changes count from 0 again.
    pub fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        self.untyped.status(|writer| writer.liveliness_lost.take())
    }

    /// OFFERED_DEADLINE_MISSED; its changes count from 0 again.
    pub fn offered_deadline_missed_status(&self) -> OfferedDeadlineMissedStatus {
        let mut status = self.untyped.status(|writer| writer.offered_deadline_missed.take());
        let handle = &mut status.last_instance_handle;
        let tools = self.untyped.tools.try_borrow();
        let named = match tools.as_ref().ok().and_then(|tools| tools.instances.key(*handle)) {
            Some(key) => handle_of::<T>(key, true),
            None => (!T::HAS_KEY && status.total_count > 0).then_some(ONLY_INSTANCE),
        };
        *handle = named.unwrap_or(*handle);
        status
    }

    /// Says that this writer is alive (MANUAL_BY_TOPIC).
    pub fn assert_liveliness(&self) {
        self.untyped.assert_liveliness();
    }

    /// Calls `listener` with the kinds of each change of a status, on the thread that drives, one call at a time: do not wait
    /// in it. That may be a thread of yours, within any call of this participant, so take no lock in it that you hold around one.
    /// It takes the place of the one that was set before, and is dropped with the writer; neither waits for a call that another thread is
    /// in: what the listener has captured is dropped after that, so that its drop tells when it is called no more.
    pub fn set_listener(&self, listener: impl FnMut(StatusMask) + Send + 'static) {
        let UntypedWriter { executor, index, .. } = &self.untyped;
        let _ = executor.set_listener(Entity::Writer(*index), Some(taut_exec::listener(listener)));
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.untyped.guid
    }

    /// Its QoS.
    pub fn qos(&self) -> &DataWriterQos {
        &self.untyped.qos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BuiltinReader, Config, DataReader, DdsType, DomainParticipant, ParticipantSummary, Publisher, Qos,
        Topic,
    };

    #[derive(DdsType, Clone, PartialEq, Debug)]
    #[dds(final, crate = taut_cdr)]
    struct Image {
        name: String,
        pixels: Vec<u8>,
    }

    const SOON: Duration = Duration::from_secs(30);

    /// As docs/dds.md has it.
    #[test]
    fn threads_share_all_but_writers() {
        fn shared<T: Send + Sync>() {}
        fn sent<T: Send>() {}
        shared::<(DomainParticipant, Topic<Image>, Publisher, DataReader<Image>)>();
        sent::<(DataWriter<Image>, BuiltinReader<ParticipantSummary>)>();
    }

    fn write(writer: &DataWriter<Image>, reader: &DataReader<Image>, len: usize) -> bool {
        let image = Image { name: "front".into(), pixels: (0..len).map(|at| (at * 7 + len) as u8).collect() };
        writer.write(&image).unwrap();
        // Until the reader is in the lane another thread may hold the token, which is to deliver it.
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data, Some(image));
        // And that thread may have it still.
        writer.wait_for_acknowledgments(SOON).unwrap();
        let Tools { pool, .. } = &mut *writer.untyped.tools.borrow_mut();
        let mut buffer = pool.claim();
        let unused = buffer.is_empty();
        buffer.clear();
        pool.give_back(buffer);
        unused
    }

    /// By a task that is run there.
    #[test]
    fn a_loan_that_is_dropped_within_a_call_is_lent_again() {
        let config = Config { domain_id: 84, interfaces: vec!["lo".into()], ..Config::default() };
        let topic = DomainParticipant::with_config(&config).unwrap().topic::<Image>("Dropped").unwrap();
        let writer = topic.writer(Qos::default()).unwrap();
        let lend = || writer.loan_bytes(4_000);
        let loan = lend().unwrap();
        let memory = loan.as_ptr();
        let call = writer.untyped.tools.borrow_mut();
        assert!(matches!(lend(), Err(Error::PreconditionNotMet(_))));
        drop(loan);
        drop(call);
        let loan = lend().unwrap();
        assert_eq!(loan.as_ptr(), memory);
        let call = writer.untyped.tools.borrow_mut();
        assert!(matches!(loan.write(), Err(Error::PreconditionNotMet(_))));
        drop(call);
        assert_eq!(lend().unwrap().as_ptr(), memory, "what is refused goes back, too");
    }

    #[test]
    fn a_value_is_encoded_where_its_readers_look() {
        let config = Config { domain_id: 84, interfaces: vec!["lo".into()], ..Config::default() };
        let topic = DomainParticipant::with_config(&config).unwrap().topic("Image").unwrap();
        let writer = topic.writer(Qos::default().reliable()).unwrap();
        let reader = topic.reader(Qos::default().reliable()).unwrap();
        assert!(!write(&writer, &reader, 100_000), "the first one's length is not known");
        let begun = std::time::Instant::now();
        while !write(&writer, &reader, 100_000) {
            assert!(begun.elapsed() < SOON.into(), "the reader joins the lane");
        }
        for len in [100_000, 110_000, 90_000, 3, 100_000, 200_000] {
            assert!(write(&writer, &reader, len), "{len}");
        }
        // What fails goes back.
        for _ in 0..1_000 {
            writer.write(&Image { name: "\0".into(), pixels: vec![0; 200_000] }).unwrap_err();
        }
        assert!(write(&writer, &reader, 200_000));
    }
}
