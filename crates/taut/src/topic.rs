//! Topic: a name, a type, and what makes writers and readers of it. DCPS 1.4 §2.2.2.3.2.

use std::marker::PhantomData;
use std::sync::Arc;

use taut_base::Result;
use taut_cdr::DdsType;
use taut_dcps::{ContentFilter, Endpoint, InconsistentTopicStatus, TypeSupport};
use taut_exec::Suspension;
use taut_qos::{DataReaderQos, DataWriterQos, PublisherQos, Qos, SubscriberQos, TopicQos};

use crate::erase::type_support;
use crate::untyped_reader::UntypedReader;
use crate::untyped_writer::UntypedWriter;
use crate::{ContentFilteredTopic, DataReader, DataWriter, DomainParticipant};

/// A topic of a participant.
pub struct Topic<T> {
    pub(crate) participant: DomainParticipant,
    name: String,
    type_name: String,
    qos: TopicQos,
    of: PhantomData<fn() -> T>,
}

/// A writer's QoS with that of its publisher. Made from a [`Qos`] or a [`DataWriterQos`].
#[derive(Clone, Debug, Default)]
pub struct WriterQos {
    /// The writer's.
    pub qos: DataWriterQos,
    /// The publisher's.
    pub publisher: PublisherQos,
}

/// A reader's QoS with that of its subscriber. Made from a [`Qos`] or a [`DataReaderQos`].
#[derive(Clone, Debug, Default)]
pub struct ReaderQos {
    /// The reader's.
    pub qos: DataReaderQos,
    /// The subscriber's.
    pub subscriber: SubscriberQos,
}

impl From<Qos> for WriterQos {
    fn from(qos: Qos) -> Self {
        WriterQos { qos: qos.writer, publisher: qos.publisher }
    }
}

impl From<DataWriterQos> for WriterQos {
    fn from(qos: DataWriterQos) -> Self {
        WriterQos { qos, publisher: PublisherQos::default() }
    }
}

impl From<Qos> for ReaderQos {
    fn from(qos: Qos) -> Self {
        ReaderQos { qos: qos.reader, subscriber: qos.subscriber }
    }
}

impl From<DataReaderQos> for ReaderQos {
    fn from(qos: DataReaderQos) -> Self {
        ReaderQos { qos, subscriber: SubscriberQos::default() }
    }
}

impl<T: DdsType> Topic<T> {
    pub(crate) fn new(
        participant: DomainParticipant,
        name: &str,
        type_name: &str,
        qos: TopicQos,
    ) -> Topic<T> {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        Topic { participant, name, type_name, qos, of: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that its type is registered under.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// A writer. *Errors*: [`crate::Error::InconsistentPolicy`] and [`crate::Error::Unsupported`] with what to change.
    pub fn writer(&self, qos: impl Into<WriterQos>) -> Result<DataWriter<T>> {
        self.writer_of(qos.into(), None)
    }

    pub(crate) fn writer_of(
        &self,
        qos: WriterQos,
        suspension: Option<Arc<Suspension>>,
    ) -> Result<DataWriter<T>> {
        let endpoint = self.endpoint(qos.qos, qos.publisher);
        Ok(DataWriter::of(UntypedWriter::new(&self.participant, endpoint, suspension)?))
    }

    /// A reader. *Errors*: [`crate::Error::InconsistentPolicy`] and [`crate::Error::Unsupported`] with what to change.
    pub fn reader(&self, qos: impl Into<ReaderQos>) -> Result<DataReader<T>> {
        self.reader_of(qos, None)
    }

    pub(crate) fn reader_of(
        &self,
        qos: impl Into<ReaderQos>,
        filter: Option<ContentFilter>,
    ) -> Result<DataReader<T>> {
        let ReaderQos { qos, subscriber } = qos.into();
        let mut endpoint = self.endpoint(qos, subscriber);
        endpoint.type_support.filter = filter;
        Ok(DataReader::of(UntypedReader::new(&self.participant, endpoint)?))
    }

    /// The samples of this topic for which `expression` holds, with `%0`, `%1` … standing for `parameters`.
    ///
    /// *Errors*: [`crate::Error::BadParameter`] with what is wrong with the expression or a parameter.
    pub fn filtered(
        &self,
        name: &str,
        expression: &str,
        parameters: &[&str],
    ) -> Result<ContentFilteredTopic<'_, T>> {
        ContentFilteredTopic::new(self, name, expression, parameters)
    }

    /// INCONSISTENT_TOPIC: how often a reader or writer of this participant has met one of the same topic name and another type;
    /// its changes count from 0 again. All topics of that name share it. The log and [`DomainParticipant::matches`] name the
    /// types.
    ///
    /// ```
    /// # use taut::{DdsType, Qos};
    /// use taut::{Config, DomainParticipant, qos::TopicQos};
    /// # #[derive(DdsType)]
    /// # #[dds(final)]
    /// # struct Hello { text: String }
    /// # fn main() -> taut::Result<()> {
    /// # let config = Config { domain_id: 181, interfaces: vec!["lo".into()], ..Config::default() };
    /// let participant = DomainParticipant::with_config(&config)?;
    /// let topic = participant.topic::<Hello>("Greeting")?;
    /// let reader = topic.reader(Qos::default())?;
    /// let other = participant.topic_as::<Hello>("Greeting", "Goodbye", TopicQos::default())?;
    /// let writer = other.writer(Qos::default())?;
    /// assert!(topic.inconsistent_topic_status().total_count > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inconsistent_topic_status(&self) -> InconsistentTopicStatus {
        let status =
            self.participant.executor.look(|participant, _| participant.inconsistent_topic(&self.name));
        status.unwrap_or_default()
    }

    fn endpoint<Qos, Group>(&self, qos: Qos, group: Group) -> Endpoint<Qos, Group> {
        endpoint(&self.name, &self.qos, type_support::<T>(&self.type_name), qos, group)
    }
}

/// The same code for all types.
#[inline(never)]
fn endpoint<Qos, Group>(
    topic_name: &str,
    topic_qos: &TopicQos,
    type_support: TypeSupport,
    qos: Qos,
    group: Group,
) -> Endpoint<Qos, Group> {
    Endpoint { topic_name: topic_name.to_owned(), topic_qos: topic_qos.clone(), type_support, qos, group }
}
