//! What the core tells the layer above. It is polled after every call; nothing calls back.

use taut_base::{Guid, GuidPrefix};
use taut_qos::Incompatibility;

use crate::intervals::IntervalSet;
use crate::{ReaderIndex, WriterIndex};

/// Something the layer above turns into a status, a listener call or a line of the log.
#[derive(Clone, Debug)]
pub enum Event {
    /// A participant has been discovered, or says something else of itself.
    ParticipantDiscovered(GuidPrefix),
    /// A participant has left, or its lease has run out.
    ParticipantLost {
        /// Which.
        prefix: GuidPrefix,
        /// It said so itself.
        left: bool,
    },
    /// An endpoint of another participant has been discovered or has changed.
    EndpointDiscovered(Guid),
    /// An endpoint of another participant has gone.
    EndpointLost(Guid),
    /// A reader has matched a local writer, or no longer does.
    PublicationMatched {
        /// The local writer.
        writer: WriterIndex,
        /// The reader.
        reader: Guid,
        /// Matched or no longer.
        matched: bool,
    },
    /// A writer has matched a local reader, or no longer does.
    SubscriptionMatched {
        /// The local reader.
        reader: ReaderIndex,
        /// The writer.
        writer: Guid,
        /// Matched or no longer.
        matched: bool,
        /// Does, or did, the writer keep its promise to be alive?
        alive: bool,
        /// What a reliable reader had not been given when the match ended, and was still to come. `None` if nothing is
        /// known of it.
        undelivered: Option<IntervalSet>,
    },
    /// A local writer and a reader do not match: their QoS contradict each other.
    OfferedIncompatibleQos {
        /// The local writer.
        writer: WriterIndex,
        /// The reader.
        reader: Guid,
        /// Each policy with both values.
        why: Vec<Incompatibility>,
    },
    /// A local reader and a writer do not match: their QoS contradict each other.
    RequestedIncompatibleQos {
        /// The local reader.
        reader: ReaderIndex,
        /// The writer.
        writer: Guid,
        /// Each policy with both values.
        why: Vec<Incompatibility>,
    },
    /// An endpoint of the same topic has another type.
    InconsistentTopic {
        /// The topic.
        topic: String,
        /// The local type.
        local_type: String,
        /// Whose other type.
        remote: Guid,
        /// The other type.
        remote_type: String,
    },
    /// A local reader that cannot ask for history has had it.
    HistoryReceived {
        /// The local reader.
        reader: ReaderIndex,
        /// The writer.
        writer: Guid,
    },
    /// Changes that waited for the greeting of their writer wait no longer: [`crate::Participant::on_room`] delivers them.
    GreetingOverdue {
        /// The local reader.
        reader: ReaderIndex,
    },
    /// The liveliness of a matched writer has changed.
    LivelinessChanged {
        /// The local reader.
        reader: ReaderIndex,
        /// The writer.
        writer: Guid,
        /// Alive, or no longer.
        alive: bool,
    },
    /// Changes that had waited, for room or for what does not come, were delivered, and their writer is silent by now: whatever they say of its
    /// instances, it writes none of them.
    DeliveredLate {
        /// The local reader.
        reader: ReaderIndex,
        /// The writer.
        writer: Guid,
    },
    /// A local writer has not kept its promise to be alive.
    LivelinessLost {
        /// The local writer.
        writer: WriterIndex,
    },
    /// Changes of a matched writer can no longer be had.
    SampleLost {
        /// The local reader.
        reader: ReaderIndex,
        /// How many.
        count: u64,
    },
    /// Readers have acknowledged changes: a writer may have room again.
    Acknowledged {
        /// The local writer.
        writer: WriterIndex,
    },
}
