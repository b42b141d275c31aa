//! The parameter ids. RTPS 2.5 tables 9.14, 9.18 and 9.20; XTypes 1.3 §7.6.3; DDS Security 1.2 §7.4.
//!
//! Owns the numbers only; what the values look like is with who reads them.

use crate::ParameterId;

macro_rules! standard {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: ParameterId = ParameterId($value);)*

        /// Is it a parameter of a standard, with or without the must-understand bit?
        pub const fn is_standard(pid: ParameterId) -> bool {
            matches!(pid.0, $($value)|*) || matches!(pid.without_must_understand().0, $($value)|*)
        }
    };
}

standard! {
    /// Nothing, to be passed over.
    PAD = 0x0000;
    /// The end of the list.
    SENTINEL = 0x0001;
    /// Duration: the lease of a participant.
    PARTICIPANT_LEASE_DURATION = 0x0002;
    /// Duration: TIME_BASED_FILTER.
    TIME_BASED_FILTER = 0x0004;
    /// String: the name of the topic.
    TOPIC_NAME = 0x0005;
    /// i32: OWNERSHIP_STRENGTH.
    OWNERSHIP_STRENGTH = 0x0006;
    /// String: the name of the type.
    TYPE_NAME = 0x0007;
    /// IPv4 address of old versions.
    METATRAFFIC_MULTICAST_IPADDRESS = 0x000b;
    /// IPv4 address of old versions.
    DEFAULT_UNICAST_IPADDRESS = 0x000c;
    /// Port of old versions.
    METATRAFFIC_UNICAST_PORT = 0x000d;
    /// Port of old versions.
    DEFAULT_UNICAST_PORT = 0x000e;
    /// u32: the domain.
    DOMAIN_ID = 0x000f;
    /// IPv4 address of old versions.
    MULTICAST_IPADDRESS = 0x0011;
    /// Two bytes: the version of the protocol.
    PROTOCOL_VERSION = 0x0015;
    /// Two bytes: the vendor.
    VENDOR_ID = 0x0016;
    /// Kind and duration: RELIABILITY.
    RELIABILITY = 0x001a;
    /// Kind and duration: LIVELINESS.
    LIVELINESS = 0x001b;
    /// Kind: DURABILITY.
    DURABILITY = 0x001d;
    /// DURABILITY_SERVICE.
    DURABILITY_SERVICE = 0x001e;
    /// Kind: OWNERSHIP.
    OWNERSHIP = 0x001f;
    /// Scope and two booleans: PRESENTATION.
    PRESENTATION = 0x0021;
    /// Duration: DEADLINE.
    DEADLINE = 0x0023;
    /// Kind: DESTINATION_ORDER.
    DESTINATION_ORDER = 0x0025;
    /// Duration: LATENCY_BUDGET.
    LATENCY_BUDGET = 0x0027;
    /// Sequence of strings: PARTITION.
    PARTITION = 0x0029;
    /// Duration: LIFESPAN.
    LIFESPAN = 0x002b;
    /// Octets: USER_DATA.
    USER_DATA = 0x002c;
    /// Octets: GROUP_DATA.
    GROUP_DATA = 0x002d;
    /// Octets: TOPIC_DATA.
    TOPIC_DATA = 0x002e;
    /// Locator of an endpoint.
    UNICAST_LOCATOR = 0x002f;
    /// Locator of an endpoint.
    MULTICAST_LOCATOR = 0x0030;
    /// Locator for the endpoints of a participant that name none.
    DEFAULT_UNICAST_LOCATOR = 0x0031;
    /// Locator of the built-in endpoints.
    METATRAFFIC_UNICAST_LOCATOR = 0x0032;
    /// Locator of the built-in endpoints.
    METATRAFFIC_MULTICAST_LOCATOR = 0x0033;
    /// u32: grows with each manual assertion of liveliness.
    PARTICIPANT_MANUAL_LIVELINESS_COUNT = 0x0034;
    /// ContentFilterProperty_t.
    CONTENT_FILTER_PROPERTY = 0x0035;
    /// Kind and depth: HISTORY.
    HISTORY = 0x0040;
    /// Three numbers: RESOURCE_LIMITS.
    RESOURCE_LIMITS = 0x0041;
    /// Boolean: does the reader want inline QoS with every change?
    EXPECTS_INLINE_QOS = 0x0043;
    /// u32 of old versions: built-in endpoints.
    PARTICIPANT_BUILTIN_ENDPOINTS = 0x0044;
    /// IPv4 address of old versions.
    METATRAFFIC_UNICAST_IPADDRESS = 0x0045;
    /// Port of old versions.
    METATRAFFIC_MULTICAST_PORT = 0x0046;
    /// Locator for the endpoints of a participant that name none.
    DEFAULT_MULTICAST_LOCATOR = 0x0048;
    /// i32: TRANSPORT_PRIORITY.
    TRANSPORT_PRIORITY = 0x0049;
    /// GUID of a participant.
    PARTICIPANT_GUID = 0x0050;
    /// EntityId of old versions.
    PARTICIPANT_ENTITY_ID = 0x0051;
    /// GUID of a publisher or subscriber.
    GROUP_GUID = 0x0052;
    /// EntityId of a publisher or subscriber.
    GROUP_ENTITY_ID = 0x0053;
    /// Inline: ContentFilterInfo_t.
    CONTENT_FILTER_INFO = 0x0055;
    /// Inline: the first change of a coherent set.
    COHERENT_SET = 0x0056;
    /// Inline: GUID of a reader that the change is for.
    DIRECTED_WRITE = 0x0057;
    /// u32: built-in endpoints.
    BUILTIN_ENDPOINT_SET = 0x0058;
    /// Sequence of pairs of strings: PROPERTY.
    PROPERTY_LIST = 0x0059;
    /// GUID of an endpoint.
    ENDPOINT_GUID = 0x005a;
    /// u32: the largest sample. *Units*: bytes.
    TYPE_MAX_SIZE_SERIALIZED = 0x0060;
    /// Inline: OriginalWriterInfo_t.
    ORIGINAL_WRITER_INFO = 0x0061;
    /// String: ENTITY_NAME.
    ENTITY_NAME = 0x0062;
    /// Inline: the last group sequence number of a coherent set of the group.
    GROUP_COHERENT_SET = 0x0063;
    /// Inline: the group sequence number of the change.
    GROUP_SEQ_NUM = 0x0064;
    /// Inline: the digest of the writers of the group.
    WRITER_GROUP_INFO = 0x0065;
    /// Inline: the digest of the secure writers of the group.
    SECURE_WRITER_GROUP_INFO = 0x0066;
    /// TypeIdV1 of XTypes 1.1.
    TYPE_ID_V1 = 0x0069;
    /// Inline: 16 bytes of the key or of its MD5.
    KEY_HASH = 0x0070;
    /// Inline: disposed, unregistered, filtered.
    STATUS_INFO = 0x0071;
    /// TypeObject of XTypes 1.1.
    TYPE_OBJECT_V1 = 0x0072;
    /// Sequence of 16-bit numbers: DATA_REPRESENTATION.
    DATA_REPRESENTATION = 0x0073;
    /// TYPE_CONSISTENCY_ENFORCEMENT.
    TYPE_CONSISTENCY_ENFORCEMENT = 0x0074;
    /// TypeInformation, XCDR2 little-endian.
    TYPE_INFORMATION = 0x0075;
    /// String: the name of the base type.
    BASE_TYPE_NAME = 0x0076;
    /// u32: how the built-in endpoints behave.
    BUILTIN_ENDPOINT_QOS = 0x0077;
    /// Sequence of octets of DDS Security drafts.
    ENABLE_AUTHENTICATION = 0x0078;
    /// GUID of the related entity (DDS-RPC 1.0 §7.6.2).
    RELATED_ENTITY_GUID = 0x0081;
    /// String: the name of a service instance (DDS-RPC 1.0 §7.6.2).
    SERVICE_INSTANCE_NAME = 0x0080;
    /// Sequence of strings: aliases of a topic (DDS-RPC 1.0 §7.6.2).
    TOPIC_ALIASES = 0x0082;
    /// Inline: the sample that this one answers (DDS-RPC 1.0 §7.8.2).
    RELATED_SAMPLE_IDENTITY = 0x0083;
    /// DDS Security: IdentityToken.
    IDENTITY_TOKEN = 0x1001;
    /// DDS Security: PermissionsToken.
    PERMISSIONS_TOKEN = 0x1002;
    /// DDS Security: DataTags.
    DATA_TAGS = 0x1003;
    /// DDS Security: EndpointSecurityInfo.
    ENDPOINT_SECURITY_INFO = 0x1004;
    /// DDS Security: ParticipantSecurityInfo.
    PARTICIPANT_SECURITY_INFO = 0x1005;
    /// DDS Security: IdentityStatusToken.
    IDENTITY_STATUS_TOKEN = 0x1006;
    /// DDS Security 1.2: algorithms for signatures.
    PARTICIPANT_SECURITY_DIGITAL_SIGNATURE_ALGO = 0x1010;
    /// DDS Security 1.2: algorithms for key agreement.
    PARTICIPANT_SECURITY_KEY_ESTABLISHMENT_ALGO = 0x1011;
    /// DDS Security 1.2: ciphers of a participant.
    PARTICIPANT_SECURITY_SYMMETRIC_CIPHER_ALGO = 0x1012;
    /// DDS Security 1.2: ciphers of an endpoint.
    ENDPOINT_SECURITY_SYMMETRIC_CIPHER_ALGO = 0x1013;
    /// String: the domain tag; must be understood.
    DOMAIN_TAG = 0x4014;
}

/// The id without the must-understand bit, so that a known parameter is known either way; DOMAIN_TAG
/// keeps the bit, which is part of its number.
pub const fn canonical(pid: ParameterId) -> ParameterId {
    if pid.0 == DOMAIN_TAG.0 { pid } else { pid.without_must_understand() }
}

/// Parameters of one vendor, to be read only if the sender has that vendor id: with others the numbers may mean
/// something else.
pub mod vendor {
    use super::ParameterId;

    /// RTI Connext, Fast DDS: version of the product.
    pub const PRODUCT_VERSION: ParameterId = ParameterId(0x8000);
    /// Fast DDS: GUID that survives a restart.
    pub const FAST_DDS_PERSISTENCE_GUID: ParameterId = ParameterId(0x8002);
    /// Fast DDS, RTI Connext: does the reader acknowledge only what it misses?
    pub const DISABLE_POSITIVE_ACKS: ParameterId = ParameterId(0x8005);
    /// Cyclone DDS, OpenSplice: version, host and process of a participant.
    pub const CYCLONE_PARTICIPANT_VERSION_INFO: ParameterId = ParameterId(0x8007);
    /// Fast DDS: the sample that this one answers.
    pub const FAST_DDS_RELATED_SAMPLE_IDENTITY: ParameterId = ParameterId(0x800f);
    /// OpenDDS: flags of a participant.
    pub const OPENDDS_PARTICIPANT_FLAGS: ParameterId = ParameterId(0xb005);
    /// Taut: inline, when the change was written, queued and sent ([`Stamps`](crate::Stamps)). Taut has no vendor id:
    /// its participants are known by a property (`taut.anatomy`).
    pub const TAUT_ANATOMY: ParameterId = ParameterId(0xa701);
}
