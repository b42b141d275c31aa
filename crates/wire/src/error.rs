//! Why bytes were refused: a reason to count, never an error of the caller.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The reason why a message, a submessage or a parameter is dropped.
        ///
        /// *Shape*: one byte, so that a table of counters can be indexed with [`WireError::index`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum WireError { $($(#[$doc])* $name,)* }

        impl WireError {
            /// Every reason, in the order of [`WireError::index`].
            pub const ALL: &'static [WireError] = &[$(WireError::$name,)*];

            /// A short name for counters and logs.
            pub const fn name(self) -> &'static str {
                match self { $(WireError::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The bytes end before the value does.
    Truncated = "truncated",
    /// The message does not start with `RTPS`.
    BadMagic = "bad_magic",
    /// The major version is not 2.
    BadVersion = "bad_version",
    /// A submessage or message length points past the end or is not a multiple of 4.
    BadLength = "bad_length",
    /// Two flags contradict each other.
    BadFlags = "bad_flags",
    /// A sequence number or a range of them is not valid.
    BadSequenceNumber = "bad_sequence_number",
    /// Fragment numbers or sizes contradict each other.
    BadFragment = "bad_fragment",
    /// A number set has more than 256 bits, lacks words or has no valid base.
    BadSet = "bad_set",
    /// octetsToInlineQos points into the fields before it, past the end, or off the 4-byte grid.
    BadInlineQosOffset = "bad_inline_qos_offset",
    /// A payload is announced and is too short for its encapsulation header.
    BadPayload = "bad_payload",
    /// A parameter list without sentinel, or a length that is odd or past the end.
    BadParameterList = "bad_parameter_list",
    /// The value of a known parameter has the wrong size or content.
    BadParameter = "bad_parameter",
    /// A parameter with the must-understand bit is unknown.
    NotUnderstood = "not_understood",
    /// A mandatory parameter is missing.
    MissingParameter = "missing_parameter",
    /// A string without its NUL, with one inside, or not UTF-8.
    BadString = "bad_string",
    /// A declared count exceeds what the received bytes can hold.
    BadCount = "bad_count",
    /// A value exceeds a named limit of this implementation.
    LimitExceeded = "limit_exceeded",
    /// A negative duration.
    BadDuration = "bad_duration",
    /// An encapsulation identifier that does not fit here.
    BadEncapsulation = "bad_encapsulation",
    /// A GUID that cannot name what it should name.
    BadGuid = "bad_guid",
    /// A HEADER_EXTENSION that does not follow the header directly.
    MisplacedHeaderExtension = "misplaced_header_extension",
    /// The checksum of the message is not the announced one.
    ChecksumMismatch = "checksum_mismatch",
}

impl WireError {
    /// The place of this reason in [`WireError::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_and_names_are_unique() {
        for (i, error) in WireError::ALL.iter().enumerate() {
            assert_eq!(error.index(), i);
            assert!(WireError::ALL.iter().skip(i + 1).all(|other| other.name() != error.name()));
        }
    }
}
