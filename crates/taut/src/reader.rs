//! DataReader. DCPS 1.4 §2.2.2.5.3.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use taut_base::{Duration, Guid, InstanceHandle, Result};
use taut_cdr::{DdsType, SerializedPayload};
use taut_dcps::{
    LivelinessChangedStatus, PayloadKind, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleAnatomy, SampleInfo, SampleLostStatus, SampleRejectedStatus, Selection, StatusMask,
    SubscriptionMatchedStatus, instance_handle,
};
use taut_exec::{Door, Executor};
use taut_qos::DataReaderQos;

use crate::builtin::{is_matched_with, matched_with};
use crate::erase::{HANDLES, key_of, refused};
use crate::stream::Samples;
use crate::untyped_reader::{self, UntypedReader, warn_of_other_type};

/// How long a listener goes on with further samples before others have their turn. Lower has whoever drives look around more
/// often, for some us each time; higher has what else comes wait for longer.
const TURN: std::time::Duration = std::time::Duration::from_micros(200);

/// One sample as the application gets it.
#[derive(Clone, Debug)]
pub struct Sample<T> {
    /// The data; `None` if the sample only tells that the state of its instance has changed.
    pub data: Option<T>,
    /// Then the key of the instance, if it is known: other members have their initial values.
    pub key: Option<T>,
    /// All that is known of the sample.
    pub info: SampleInfo,
}

/// Reads samples of a topic.
pub struct DataReader<T> {
    pub(crate) untyped: UntypedReader,
    of: PhantomData<fn() -> T>,
}

/// Decodes what the cache hands out into an empty place. `false` if the bytes are no sample of the type: it stays empty.
#[inline]
fn decode_into<T: DdsType>(
    place: &mut Option<Sample<T>>,
    payload: SerializedPayload<'_>,
    kind: PayloadKind,
    info: &SampleInfo,
) -> bool {
    if !info.valid_data {
        *place = Some(Sample { data: None, key: decode_key(&payload, kind), info: *info });
        return true;
    }
    let Ok(data) = payload.decode() else { return false };
    *place = Some(Sample { data: Some(data), key: None, info: *info });
    true
}

/// The key that an instance is known by, if more is known of it than a hash.
#[inline(never)]
pub(crate) fn decode_key<T: DdsType>(payload: &[u8], kind: PayloadKind) -> Option<T> {
    match kind {
        PayloadKind::Key => taut_cdr::from_key_payload(payload).ok(),
        // Whatever else its instance was first written with.
        PayloadKind::Data => key_of::<T>(payload).and_then(|key| taut_cdr::from_key_payload(&key)).ok(),
        PayloadKind::Empty => None,
    }
}

fn decode_sample<T: DdsType>(sample: taut_dcps::Sample) -> Option<Sample<T>> {
    let mut decoded = None;
    if !decode_into(&mut decoded, (&sample.payload).into(), sample.payload_kind, &sample.info) {
        warn_of_other_type(T::TYPE_NAME);
    }
    decoded
}

/// Takes and decodes the next sample of a reader, for a caller who watches it `own` times; samples that are none of the type
/// are passed over.
#[inline(always)]
pub(crate) fn take_next<T: DdsType>(
    executor: &Executor,
    door: &Door,
    own: usize,
) -> Result<Option<Sample<T>>> {
    // One place for it, which the caller has, and in line for that: a sample may be long.
    let mut sample = Ok(None);
    if let Err(error) = executor.may_use() {
        sample = Err(error);
    } else if let Ok(place) = &mut sample {
        untyped_reader::take_next(executor, (door, own), T::TYPE_NAME, &mut |payload, kind, info| {
            decode_into(place, payload, kind, info)
        });
    }
    sample
}

impl<T: DdsType> DataReader<T> {
    pub(crate) fn of(untyped: UntypedReader) -> DataReader<T> {
        DataReader { untyped, of: PhantomData }
    }

    /// Takes the next sample that was not read before, if there is one (DCPS's take_next_sample). Those that were read stay until
    /// [`DataReader::take`].
    pub fn take_next(&self) -> Result<Option<Sample<T>>> {
        take_next(&self.untyped.executor, &self.untyped.door, 0)
    }

    /// Takes the next sample that was not read before into a value, whose strings and sequences keep their memory. It keeps what it has
    /// if the sample has no data: which instance has ended then [`DataReader::take_into_or_key`] tells. Of one that is none of the
    /// type, which is passed over, parts may be left in it.
    ///
    /// *Cost*: one copy; allocates for what has grown only.
    pub fn take_into(&self, into: &mut T) -> Result<Option<SampleInfo>> {
        self.take_into_or_end(into, |_, _| ())
    }

    /// [`DataReader::take_into`], and of a sample without data `key` becomes the key of the instance, if it is known: other members
    /// have their initial values. It becomes `None` otherwise.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
    /// # #[derive(DdsType, Default, PartialEq, Debug)]
    /// # #[dds(final)]
    /// # struct Room { #[dds(key)] number: u32, celsius: f32 }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 85, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Room>("Rooms")?;
    /// # let (writer, reader) = (topic.writer(Qos::default().reliable())?, topic.reader(Qos::default().reliable())?);
    /// let (mut room, mut key) = (Room::default(), None);
    /// writer.write(&Room { number: 7, celsius: 21.5 })?;
    /// reader.wait(Duration::from_secs(1))?;
    /// reader.take_into_or_key(&mut room, &mut key)?.unwrap();
    /// assert_eq!((&room, &key), (&Room { number: 7, celsius: 21.5 }, &None));
    /// writer.dispose(&room)?;
    /// reader.wait(Duration::from_secs(1))?;
    /// let info = reader.take_into_or_key(&mut room, &mut key)?.unwrap();
    /// assert!(!info.valid_data);
    /// assert_eq!(key, Some(Room { number: 7, celsius: 0.0 }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// *Cost*: as of that; of a key one copy more, and an allocation for each string or sequence in it.
    pub fn take_into_or_key(&self, into: &mut T, key: &mut Option<T>) -> Result<Option<SampleInfo>> {
        *key = None;
        self.take_into_or_end(into, |payload, kind| *key = decode_key(payload, kind))
    }

    /// `end` is given what is known of the instance by a sample without data.
    #[inline]
    fn take_into_or_end(
        &self,
        into: &mut T,
        mut end: impl FnMut(&[u8], PayloadKind),
    ) -> Result<Option<SampleInfo>> {
        let (UntypedReader { executor, door, .. }, mut taken) = (&self.untyped, None);
        executor.may_use()?;
        untyped_reader::take_next(executor, (door, 0), T::TYPE_NAME, &mut |payload, kind, info| {
            let decoded = if info.valid_data {
                payload.decode_into(into).is_ok()
            } else {
                end(&payload, kind);
                true
            };
            taken = decoded.then_some(*info);
            decoded
        });
        Ok(taken)
    }

    /// Takes all samples.
    pub fn take(&self) -> Result<Vec<Sample<T>>> {
        self.take_with(&Selection::ANY)
    }

    /// Takes the samples of a selection.
    pub fn take_with(&self, selection: &Selection) -> Result<Vec<Sample<T>>> {
        let taken = self.untyped.take(selection)?;
        let count = taken.len();
        let samples: Vec<_> = taken.into_iter().filter_map(decode_sample).collect();
        if samples.len() < count {
            self.untyped.executor.note_lost(&self.untyped.door, (count - samples.len()) as u64);
        }
        Ok(samples)
    }

    /// Reads all samples that were not read before; they stay.
    pub fn read(&self) -> Result<Vec<Sample<T>>> {
        self.read_with(&Selection::NOT_READ)
    }

    /// Reads the samples of a selection; they stay.
    pub fn read_with(&self, selection: &Selection) -> Result<Vec<Sample<T>>> {
        Ok(self.untyped.read(selection)?.into_iter().filter_map(decode_sample).collect())
    }

    /// Waits until there is a sample that was not read. It looks for `Config::spin` first, up to three times that where waits
    /// follow close upon each other, as long as looks find something; then it sleeps, and drives the participant meanwhile unless
    /// another thread does or all its writers are in this process.
    ///
    /// *Errors*: [`crate::Error::Timeout`], whose text says, after 100 ms or more, why no writer has matched, if none has, or how
    /// many samples a content filter has kept out, and else where that is to be seen;
    /// [`crate::Error::PreconditionNotMet`] from a listener.
    pub fn wait(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.untyped.wait(timeout.into())
    }

    /// Waits until a writer has matched here. The writer's side may not know this reader yet: what that writes before, and
    /// does not keep as with TRANSIENT_LOCAL, does not come, of a RELIABLE writer either.
    ///
    /// *Errors*: [`crate::Error::Timeout`], whose text says why none has, as far as is known; who asks with a timeout of zero
    /// is told where that is to be seen.
    pub fn wait_matched(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.wait_matched_count(1, timeout)
    }

    /// Waits until `count` writers are matched. *Errors*: as of [`DataReader::wait_matched`].
    pub fn wait_matched_count(&self, count: usize, timeout: impl Into<Duration>) -> Result<()> {
        self.untyped.wait_matched_count(count, timeout.into())
    }

    /// DCPS's get_matched_publications: the writers that are matched here now, each of whose samples has the `publication_handle`
    /// that its GUID [becomes](InstanceHandle#impl-From<Guid>-for-InstanceHandle). *Cost*: the token for 256 at a time, and a
    /// copy of each GUID.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("MatchedWriters")?;
    /// let (writer, reader) = (topic.writer(Qos::default())?, topic.reader(Qos::default())?);
    /// reader.wait_matched(Duration::from_secs(1))?;
    /// assert_eq!(reader.matched_publications(), [writer.guid()]);
    /// assert!(reader.is_matched_with(writer.guid()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_publications(&self) -> Vec<Guid> {
        matched_with(&self.untyped.executor, self.untyped.guid)
    }

    /// Is this writer among them? *Cost*: the token, for a look.
    pub fn is_matched_with(&self, writer: Guid) -> bool {
        is_matched_with(&self.untyped.executor, self.untyped.guid, writer)
    }

    /// DCPS's lookup_instance: the handle of the instance that has the key of `of`. `None` if this reader does not know it,
    /// or its type has no key.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
    /// # #[derive(DdsType, Default, PartialEq, Debug)]
    /// # #[dds(final)]
    /// # struct Room { #[dds(key)] number: u32, celsius: f32 }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 82, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Room>("Rooms")?;
    /// # let (writer, reader) = (topic.writer(Qos::default().reliable())?, topic.reader(Qos::default().reliable())?);
    /// writer.write(&Room { number: 7, celsius: 21.5 })?;
    /// reader.wait(Duration::from_secs(1))?;
    /// let sample = reader.take_next()?.unwrap();
    /// let room = Room { number: 7, ..Room::default() };
    /// assert_eq!(reader.lookup_instance(&room)?, Some(sample.info.instance_handle));
    /// assert_eq!(reader.key_value(sample.info.instance_handle), Some(room));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// *Errors*: [`taut_base::Error::BadParameter`] for a key that its type forbids.
    pub fn lookup_instance(&self, of: &T) -> Result<Option<InstanceHandle>> {
        self.untyped.executor.may_use()?;
        let hash = taut_cdr::key_hash(of, HANDLES).map_err(refused::<T>)?;
        Ok(self.untyped.side_status(|side| side.cache.lookup_instance(instance_handle(hash))))
    }

    /// DCPS's get_key_value: the key of an instance, in a value whose other members have their initial values. `None` if this
    /// reader does not know the instance, or no more of it than a hash.
    pub fn key_value(&self, instance: InstanceHandle) -> Option<T> {
        let known = self.untyped.side_status(|side| side.cache.key_payload(instance));
        known.and_then(|(payload, kind)| decode_key(&payload, kind))
    }

    /// Where the latency of the last samples went, as many as [`crate::Config::anatomy`] says, oldest first: those that
    /// have come, taken or not. Empty without that setting, and of samples that one without it wrote less is known.
    ///
    /// *Cost*: an allocation, and a copy of each.
    ///
    /// ```
    /// # use taut::{DdsType, Duration, Qos};
    /// use taut::{Config, DomainParticipant};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// let participant = DomainParticipant::with_config(&Config { anatomy: 16, ..config })?;
    /// # let topic = participant.topic::<Hello>("Anatomy")?;
    /// # let (writer, reader) = (topic.writer(Qos::default().reliable())?, topic.reader(Qos::default().reliable())?);
    /// writer.write(&Hello { text: "hello, world".into() })?;
    /// reader.wait(Duration::from_secs(1))?;
    /// let sample = reader.take_next()?.unwrap();
    /// let anatomy = reader.anatomy_of(&sample.info).unwrap();
    /// println!("{anatomy}"); // lane 0.9us · take 0.2us
    /// assert_eq!(reader.anatomy(), [anatomy]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn anatomy(&self) -> Vec<SampleAnatomy> {
        self.untyped.executor.anatomies(&self.untyped.door)
    }

    /// The same for one sample; `None` if that is not, or no longer, remembered.
    pub fn anatomy_of(&self, info: &SampleInfo) -> Option<SampleAnatomy> {
        self.untyped.executor.anatomy_of(&self.untyped.door, info)
    }

    /// The samples as an asynchronous stream, for any runtime.
    ///
    /// Awaiting it does not drive. With [`crate::Driver::Inline`] another thread has to, by
    /// [`crate::DomainParticipant::run_once`] or a call that waits: without one the stream waits for ever, and nothing is there
    /// that could say so.
    pub fn samples(&self) -> Samples<'_, T> {
        Samples::new(self)
    }

    /// Calls `listener` with each sample that waits or arrives, on the thread that drives: do not wait in it. That may be a
    /// thread of yours, within any call of this participant, so take no lock in it that you hold around one.
    /// One that panics is called no more; the log says so. After some 0.2 ms, and once a sample is done with, whoever drives does
    /// what else there is to do before the next one.
    ///
    /// It is the reader's listener, in the place of one that was set by [`DataReader::set_listener`], and called for nothing but
    /// samples: who wants to hear of other statuses, too, sets that, and takes the samples at DATA_AVAILABLE.
    pub fn on_data_available(&self, mut listener: impl FnMut(Sample<T>) + Send + 'static) {
        let executor = Arc::downgrade(&self.untyped.executor);
        let door = Arc::clone(&self.untyped.door);
        self.untyped.set_listener(Box::new(move |kinds| {
            let Some(executor) = executor.upgrade().filter(|_| kinds.intersects(StatusMask::DATA_AVAILABLE))
            else {
                return StatusMask::NONE;
            };
            let (began, mut told) = (Instant::now(), 0_u32);
            while let Ok(Some(sample)) = take_next(&executor, &door, 1) {
                listener(sample);
                told = told.wrapping_add(1);
                // A quick listener does not look at the clock for each.
                if (told.is_power_of_two() || told % 64 == 0) && began.elapsed() >= TURN {
                    return StatusMask::DATA_AVAILABLE;
                }
            }
            StatusMask::NONE
        }));
    }

    /// Calls `listener` with the kinds of each change of a status, on the thread that drives, one call at a time; with
    /// DATA_AVAILABLE also for samples that nobody has read by now. That may be a thread of yours, as with
    /// [`DataReader::on_data_available`], within this call, too.
    ///
    /// A reader has one listener: it takes the place of the one that was set before, by [`DataReader::on_data_available`], too,
    /// and is dropped with the reader. Neither waits for a call that another thread is in: what the listener has captured is
    /// dropped after that, so that its drop tells when it is called no more.
    ///
    /// ```
    /// # use std::sync::mpsc::channel;
    /// # use taut::{Config, DdsType, DomainParticipant, Qos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("Listened")?;
    /// let reader = topic.reader(Qos::default())?;
    /// let (tell, told) = channel();
    /// reader.set_listener(move |kinds| _ = tell.send(kinds));
    /// drop(reader);
    /// // Whatever it tells still: this ends once it is called no more.
    /// told.iter().for_each(drop);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: impl FnMut(StatusMask) + Send + 'static) {
        self.untyped.set_listener(taut_exec::listener(listener));
    }

    /// SUBSCRIPTION_MATCHED; its changes count from 0 again.
    pub fn subscription_matched_status(&self) -> SubscriptionMatchedStatus {
        self.untyped.status(|reader| reader.subscription_matched.take())
    }

    /// REQUESTED_INCOMPATIBLE_QOS, with both values of each policy; its changes count from 0 again.
    pub fn requested_incompatible_qos_status(&self) -> RequestedIncompatibleQosStatus {
        self.untyped.status(|reader| reader.requested_incompatible_qos.take())
    }

    /// LIVELINESS_CHANGED; its changes count from 0 again.
    pub fn liveliness_changed_status(&self) -> LivelinessChangedStatus {
        self.untyped.status(|reader| reader.liveliness_changed.take())
    }

    /// REQUESTED_DEADLINE_MISSED; its changes count from 0 again.
    pub fn requested_deadline_missed_status(&self) -> RequestedDeadlineMissedStatus {
        self.untyped.status(|reader| reader.requested_deadline_missed.take())
    }

    /// SAMPLE_LOST: samples that were lost on their way, and those that are none of the reader's type, as soon as that is
    /// seen: when they come if it is their key that cannot be read, else when they are taken. Its changes count from 0 again.
    ///
    /// ```
    /// # use taut::{Config, DdsType, DomainParticipant, Duration, Qos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 191, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("Lost")?;
    /// let reader = topic.reader(Qos::default().best_effort().keep_all())?;
    /// let writer = topic.writer(Qos::default().best_effort())?;
    /// for _ in 0..2_000 {
    ///     writer.write(&Hello { text: "hello".into() })?;
    /// }
    /// // A best-effort reader holds up no writer: what comes faster than anybody moves it to the reader is lost, and counted.
    /// let lost = reader.sample_lost_status().total_count as usize;
    /// assert_eq!(reader.take()?.len(), 2_000 - lost);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_lost_status(&self) -> SampleLostStatus {
        self.untyped.side_status(|side| side.sample_lost.take())
    }

    /// SAMPLE_REJECTED; its changes count from 0 again.
    ///
    /// ```
    /// use taut::{DdsType, Duration, Qos, SampleRejectedReason, qos::ResourceLimits};
    /// # use taut::{Config, DomainParticipant};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 82, interfaces: vec!["lo".into()], ..Config::default() };
    /// # let topic = DomainParticipant::with_config(&config)?.topic::<Hello>("Rejected")?;
    /// let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    /// let reader = topic.reader(Qos::default().best_effort().keep_all().resource_limits(limits))?;
    /// let writer = topic.writer(Qos::default().best_effort())?;
    /// writer.write(&Hello { text: "hello".into() })?;
    /// writer.write(&Hello { text: "world".into() })?;
    /// reader.wait(Duration::from_secs(1))?;
    /// let status = reader.sample_rejected_status();
    /// assert_eq!(status.total_count, 1);
    /// assert_eq!(status.last_reason, SampleRejectedReason::RejectedBySamplesLimit);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        self.untyped.side_status(|side| side.sample_rejected.take())
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.untyped.guid
    }

    /// Its QoS.
    pub fn qos(&self) -> &DataReaderQos {
        &self.untyped.qos
    }
}
