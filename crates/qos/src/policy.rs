//! The policies one by one, with the standard's names and defaults. DCPS 1.4 §2.2.3, DDS-XTypes 1.3
//! §7.6.3. Plain values: what they mean together is in `consistency` and `compatibility`.

use taut_base::Duration;

/// Declares a policy's kind: an ordered enum whose first value is the default, the standard's name of
/// each value for texts, and its number on the wire.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $value:ident = $number:literal $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$vdoc])* $value = $number,)* }

        impl $name {
            /// The number that travels.
            pub fn to_wire(self) -> i32 {
                self as i32
            }

            /// The value behind a number that travels; `None` if the standard has none.
            pub fn from_wire(number: i32) -> Option<Self> {
                match number {
                    $($number => Some($name::$value),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($name::$value => $text,)* })
            }
        }
    )*};
}

kinds! {
    /// How long a writer's samples outlive their write. *Source*: DCPS 1.4 §2.2.3.4.
    DurabilityKind {
        /// For the readers of the moment only.
        Volatile = 0 "VOLATILE",
        /// Late joiners get the writer's history while the writer lives.
        TransientLocal = 1 "TRANSIENT_LOCAL",
        /// A service keeps it beyond the writer: another vendor's, as Taut has none; else it is as `TransientLocal`, which the
        /// log tells who makes such a writer.
        Transient = 2 "TRANSIENT",
        /// A service keeps it beyond a restart of the machine; as for `Transient`.
        Persistent = 3 "PERSISTENT",
    }
    /// The widest group of changes that is presented as one. *Source*: DCPS 1.4 §2.2.3.6.
    PresentationAccessScopeKind {
        /// The changes of one instance.
        Instance = 0 "INSTANCE",
        /// The changes of one writer.
        Topic = 1 "TOPIC",
        /// The changes of all writers of one publisher.
        Group = 2 "GROUP",
    }
    /// May several writers update one instance? *Source*: DCPS 1.4 §2.2.3.9.
    OwnershipKind {
        /// All writers are heard.
        Shared = 0 "SHARED",
        /// Only the strongest writer of an instance is heard.
        Exclusive = 1 "EXCLUSIVE",
    }
    /// Who says that a writer is alive. *Source*: DCPS 1.4 §2.2.3.11.
    LivelinessKind {
        /// The middleware does.
        Automatic = 0 "AUTOMATIC",
        /// The application does, once for all writers of the participant.
        ManualByParticipant = 1 "MANUAL_BY_PARTICIPANT",
        /// The application does, for each writer.
        ManualByTopic = 2 "MANUAL_BY_TOPIC",
    }
    /// Are lost samples sent again? The numbers are those of RTPS 2.5 §9.6.3.6, one above the API's.
    /// *Source*: DCPS 1.4 §2.2.3.14.
    ReliabilityKind {
        /// No.
        BestEffort = 1 "BEST_EFFORT",
        /// Yes.
        Reliable = 2 "RELIABLE",
    }
    /// Whose clock orders the changes of an instance. *Source*: DCPS 1.4 §2.2.3.17.
    DestinationOrderKind {
        /// The reader's: in the order of arrival.
        ByReceptionTimestamp = 0 "BY_RECEPTION_TIMESTAMP",
        /// The writer's: the same final value at every reader.
        BySourceTimestamp = 1 "BY_SOURCE_TIMESTAMP",
    }
    /// May the types of writer and reader differ? *Source*: DDS-XTypes 1.3 §7.6.3.4.
    TypeConsistencyKind {
        /// The types must be the same.
        DisallowTypeCoercion = 0 "DISALLOW_TYPE_COERCION",
        /// The writer's type must be assignable to the reader's.
        AllowTypeCoercion = 1 "ALLOW_TYPE_COERCION",
    }
}

/// A way to write samples as bytes. *Source*: DDS-XTypes 1.3 §7.6.3.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DataRepresentationId(pub i16);

impl DataRepresentationId {
    /// XCDR_DATA_REPRESENTATION: classic CDR and parameter lists.
    pub const XCDR1: DataRepresentationId = DataRepresentationId(0);
    /// XML_DATA_REPRESENTATION.
    pub const XML: DataRepresentationId = DataRepresentationId(1);
    /// XCDR2_DATA_REPRESENTATION.
    pub const XCDR2: DataRepresentationId = DataRepresentationId(2);
}

impl std::fmt::Display for DataRepresentationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            DataRepresentationId::XCDR1 => f.write_str("XCDR1"),
            DataRepresentationId::XML => f.write_str("XML"),
            DataRepresentationId::XCDR2 => f.write_str("XCDR2"),
            DataRepresentationId(other) => write!(f, "{other}"),
        }
    }
}

/// Which samples are kept. *Source*: DCPS 1.4 §2.2.3.18.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum History {
    /// The newest `depth` samples of each instance. *Range*: from 1.
    KeepLast(u32),
    /// All of them, up to RESOURCE_LIMITS; then the writer waits.
    KeepAll,
}

impl Default for History {
    fn default() -> Self {
        History::KeepLast(1)
    }
}

impl std::fmt::Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            History::KeepLast(depth) => write!(f, "KEEP_LAST {depth}"),
            History::KeepAll => f.write_str("KEEP_ALL"),
        }
    }
}

/// Upper bounds of a history; `None` is the standard's LENGTH_UNLIMITED. A reader has bounds of its own then: 8,192 samples if
/// it is KEEP_ALL, and 65,536 instances. *Source*: DCPS 1.4 §2.2.3.19.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResourceLimits {
    /// Samples of all instances together.
    pub max_samples: Option<u32>,
    /// Instances.
    pub max_instances: Option<u32>,
    /// Samples of any one instance.
    pub max_samples_per_instance: Option<u32>,
}

/// What the service behind TRANSIENT and PERSISTENT keeps. *Source*: DCPS 1.4 §2.2.3.5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DurabilityService {
    /// How long a finished instance is kept.
    pub service_cleanup_delay: Duration,
    /// Which samples.
    pub history: History,
    /// How many.
    pub resource_limits: ResourceLimits,
}

/// How changes are grouped and ordered for the subscriber. *Source*: DCPS 1.4 §2.2.3.6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Presentation {
    /// The widest group.
    pub access_scope: PresentationAccessScopeKind,
    /// Are the changes of a coherent set seen all at once or not at all? A subscriber of Taut's cannot ask for it.
    pub coherent_access: bool,
    /// Are changes seen in the order they were made within the scope? Taut does not order those of a GROUP.
    pub ordered_access: bool,
}

impl Default for Presentation {
    fn default() -> Self {
        Presentation {
            access_scope: PresentationAccessScopeKind::Instance,
            coherent_access: false,
            ordered_access: false,
        }
    }
}

/// How it is known that a writer lives. *Source*: DCPS 1.4 §2.2.3.11.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Liveliness {
    /// Who says so.
    pub kind: LivelinessKind,
    /// How often at least. The middleware says so three times in it, but no more than once in 1 ms: who promises less than
    /// 3 ms may be thought dead between two writes.
    pub lease_duration: Duration,
}

impl Default for Liveliness {
    fn default() -> Self {
        Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::INFINITE }
    }
}

/// Are lost samples sent again, and how long may `write` wait for room? *Source*: DCPS 1.4 §2.2.3.14.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reliability {
    /// Sent again or not.
    pub kind: ReliabilityKind,
    /// The longest wait of `write` when the history is full.
    pub max_blocking_time: Duration,
}

impl Reliability {
    /// The standard's 100 ms.
    pub const DEFAULT_MAX_BLOCKING_TIME: Duration = Duration::from_millis(100);
    /// RELIABLE with the standard's blocking time; a writer's default.
    pub const RELIABLE: Reliability = Reliability {
        kind: ReliabilityKind::Reliable,
        max_blocking_time: Reliability::DEFAULT_MAX_BLOCKING_TIME,
    };
    /// BEST_EFFORT; the default of readers and topics.
    pub const BEST_EFFORT: Reliability = Reliability {
        kind: ReliabilityKind::BestEffort,
        max_blocking_time: Reliability::DEFAULT_MAX_BLOCKING_TIME,
    };
}

/// Are entities born enabled? Those of Taut are. *Source*: DCPS 1.4 §2.2.3.20.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntityFactory {
    /// Yes.
    pub autoenable_created_entities: bool,
}

impl Default for EntityFactory {
    fn default() -> Self {
        EntityFactory { autoenable_created_entities: true }
    }
}

/// What a writer's unregister means. *Source*: DCPS 1.4 §2.2.3.21.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriterDataLifecycle {
    /// Does it also dispose the instance?
    pub autodispose_unregistered_instances: bool,
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        WriterDataLifecycle { autodispose_unregistered_instances: true }
    }
}

/// How long a reader keeps what nobody takes of finished instances. *Source*: DCPS 1.4 §2.2.3.22.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReaderDataLifecycle {
    /// After the last writer has gone.
    pub autopurge_nowriter_samples_delay: Duration,
    /// After the instance was disposed.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}

/// How far the types of writer and reader may differ. *Source*: DDS-XTypes 1.3 §7.6.3.4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypeConsistencyEnforcement {
    /// At all?
    pub kind: TypeConsistencyKind,
    /// Bounds of sequences do not count.
    pub ignore_sequence_bounds: bool,
    /// Bounds of strings do not count.
    pub ignore_string_bounds: bool,
    /// Names of members do not count, only their ids.
    pub ignore_member_names: bool,
    /// The reader's type must not have members that the writer's lacks.
    pub prevent_type_widening: bool,
    /// No match without type information of both. A reader of Taut's cannot ask for it: it knows types by their names.
    pub force_type_validation: bool,
}

impl Default for TypeConsistencyEnforcement {
    fn default() -> Self {
        TypeConsistencyEnforcement {
            kind: TypeConsistencyKind::AllowTypeCoercion,
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: false,
            prevent_type_widening: false,
            force_type_validation: false,
        }
    }
}
