//! What a reader hands out: a sample and what is known of it. DCPS 1.4 §2.2.2.5.5.

use taut_base::{InstanceHandle, SequenceNumber, Timestamp};
use taut_mem::Bytes;

use crate::states::{
    InstanceState, InstanceStateMask, SampleState, SampleStateMask, ViewState, ViewStateMask,
};

/// What is known of a sample at the time of read or take. *Source*: DCPS 1.4 §2.2.2.5.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleInfo {
    /// Was it read before?
    pub sample_state: SampleState,
    /// Was its instance seen before?
    pub view_state: ViewState,
    /// Does its instance exist now?
    pub instance_state: InstanceState,
    /// The writer's clock at the write; `None` if it did not say.
    pub source_timestamp: Option<Timestamp>,
    /// Its instance. A topic without a key has one, whose handle is not NIL either.
    pub instance_handle: InstanceHandle,
    /// The writer's GUID.
    pub publication_handle: InstanceHandle,
    /// How often the instance had come back from being disposed when the sample came.
    pub disposed_generation_count: u32,
    /// How often the instance had come back from having no writers when the sample came.
    pub no_writers_generation_count: u32,
    /// How many samples of the instance follow in what this call returns.
    pub sample_rank: u32,
    /// How often the instance came back between this and its last sample in what this call returns.
    pub generation_rank: u32,
    /// How often the instance came back between this and its last sample that has arrived.
    pub absolute_generation_rank: u32,
    /// Is there data? If not, the sample only tells that the instance's state has changed.
    pub valid_data: bool,
    /// The sample's number in its writer's order; UNKNOWN if no message brought it.
    pub sequence_number: SequenceNumber,
}

impl SampleInfo {
    /// Of no sample.
    pub(crate) const NONE: SampleInfo = SampleInfo {
        sample_state: SampleState::NotRead,
        view_state: ViewState::New,
        instance_state: InstanceState::Alive,
        source_timestamp: None,
        instance_handle: InstanceHandle::NIL,
        publication_handle: InstanceHandle::NIL,
        disposed_generation_count: 0,
        no_writers_generation_count: 0,
        sample_rank: 0,
        generation_rank: 0,
        absolute_generation_rank: 0,
        valid_data: false,
        sequence_number: SequenceNumber::UNKNOWN,
    };
}

/// What the payload of a sample is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadKind {
    /// Encapsulation header and serialized data.
    Data,
    /// Encapsulation header and serialized key.
    Key,
    /// Nothing: the key is not known.
    Empty,
}

/// One sample as a reader hands it out.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The bytes. Of a sample without valid data: the best that is known of the instance's key.
    pub payload: Bytes,
    /// What these bytes are.
    pub payload_kind: PayloadKind,
    /// What is known of it.
    pub info: SampleInfo,
}

/// Which samples a read or take is about, and how many at most.
///
/// ```
/// use taut_dcps::{SampleStateMask, Selection};
/// let next_ten_unread = Selection { sample_states: SampleStateMask::NOT_READ, max_samples: 10, ..Selection::ANY };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Sample states that count.
    pub sample_states: SampleStateMask,
    /// View states that count.
    pub view_states: ViewStateMask,
    /// Instance states that count.
    pub instance_states: InstanceStateMask,
    /// Only this instance.
    pub instance: Option<InstanceHandle>,
    /// Only the first instance after this one that has such samples; NIL is before all.
    pub next_instance_after: Option<InstanceHandle>,
    /// How many at most.
    pub max_samples: usize,
}

impl Selection {
    /// All samples.
    pub const ANY: Selection = Selection {
        sample_states: SampleStateMask::ANY,
        view_states: ViewStateMask::ANY,
        instance_states: InstanceStateMask::ANY,
        instance: None,
        next_instance_after: None,
        max_samples: usize::MAX,
    };
    /// All samples that were not read before.
    pub const NOT_READ: Selection = Selection { sample_states: SampleStateMask::NOT_READ, ..Selection::ANY };
}

impl Default for Selection {
    fn default() -> Self {
        Selection::ANY
    }
}
