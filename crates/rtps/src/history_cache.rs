//! A change of a data-object and the kinds of it. RTPS 2.5 §8.2.2, §8.2.3.

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;

/// What a change does to its instance. *Source*: RTPS 2.5 §8.2.3 ChangeKind_t, §9.6.4.9 StatusInfo_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// New data.
    Alive,
    /// The instance is disposed; the payload, if any, is its serialized key.
    NotAliveDisposed,
    /// The writer has unregistered the instance.
    NotAliveUnregistered,
    /// Both at once.
    NotAliveDisposedUnregistered,
}

/// One change of one writer.
#[derive(Clone, Debug)]
pub struct CacheChange {
    /// What it does.
    pub kind: ChangeKind,
    /// Who wrote it.
    pub writer_guid: Guid,
    /// Its number in that writer's order.
    pub sequence_number: SequenceNumber,
    /// The instance, if it is known: on the wire a key hash is optional.
    pub instance: Option<InstanceHandle>,
    /// The writer's clock at the write; `None` if no INFO_TS came with it.
    pub source_timestamp: Option<Timestamp>,
    /// This side's clock at the arrival (a reader's change) or at the write (a writer's).
    pub time: Time,
    /// Encapsulation header and serialized data, or the serialized key if `kind` is not `Alive`.
    pub payload: Bytes,
}
