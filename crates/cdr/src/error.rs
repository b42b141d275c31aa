//! Why bytes are not a sample, or a sample has no bytes.

use std::fmt;

/// The result of an encoding or decoding step.
pub type Result<T> = std::result::Result<T, CdrError>;

/// The reason why a value cannot be encoded, or why bytes cannot be decoded.
///
/// ```
/// use taut_cdr::CdrError;
/// assert_eq!(CdrError::InvalidBool.reason(), "invalid_bool");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CdrError {
    /// The bytes end before the value does.
    EndOfData,
    /// The encapsulation identifier is unknown or does not fit the type's extensibility.
    Encapsulation,
    /// A DHEADER, EMHEADER or parameter header contradicts the bytes around it.
    Header,
    /// A declared count cannot fit into the bytes that are there.
    Count,
    /// A value nests deeper than 32 structures.
    Depth,
    /// A boolean is neither 0 nor 1.
    InvalidBool,
    /// An enumeration has no literal with this value.
    InvalidEnum,
    /// A bit outside of the bit mask or bit set is set, or a field does not fit into its bits.
    InvalidBits,
    /// A union has no member for this discriminator.
    InvalidDiscriminator,
    /// A string is not UTF-8 (a wide one not UTF-16), lacks its terminator, or contains NUL.
    InvalidString,
    /// A string, sequence or map is longer than its bound.
    Bound,
    /// A member that must be understood is unknown to this type.
    MustUnderstand,
    /// The value is too large for a 32-bit length.
    TooLarge,
    /// A member id cannot be expressed in the chosen representation.
    MemberId,
    /// The payload cannot be looked at in place: its byte order, version or address does not allow it.
    NotInPlace,
}

impl CdrError {
    /// The name of the reason, as counters and logs use it.
    pub fn reason(self) -> &'static str {
        match self {
            CdrError::EndOfData => "end_of_data",
            CdrError::Encapsulation => "encapsulation",
            CdrError::Header => "header",
            CdrError::Count => "count",
            CdrError::Depth => "depth",
            CdrError::InvalidBool => "invalid_bool",
            CdrError::InvalidEnum => "invalid_enum",
            CdrError::InvalidBits => "invalid_bits",
            CdrError::InvalidDiscriminator => "invalid_discriminator",
            CdrError::InvalidString => "invalid_string",
            CdrError::Bound => "bound",
            CdrError::MustUnderstand => "must_understand",
            CdrError::TooLarge => "too_large",
            CdrError::MemberId => "member_id",
            CdrError::NotInPlace => "not_in_place",
        }
    }
}

impl fmt::Display for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CdrError::EndOfData => "the bytes end before the value does",
            CdrError::Encapsulation => "the encapsulation does not fit the type's extensibility",
            CdrError::Header => "a member or delimiter header contradicts the bytes around it",
            CdrError::Count => "a declared count cannot fit into the bytes that are there",
            CdrError::Depth => "the value nests deeper than 32 structures",
            CdrError::InvalidBool => "a boolean is neither 0 nor 1",
            CdrError::InvalidEnum => "an enumeration has no literal with this value",
            CdrError::InvalidBits => "a value does not fit into its bits",
            CdrError::InvalidDiscriminator => "a union has no member for this discriminator",
            CdrError::InvalidString => "a string is not valid Unicode, lacks its end, or contains NUL",
            CdrError::Bound => "a string or collection is longer than its bound",
            CdrError::MustUnderstand => "a member that must be understood is unknown to this type",
            CdrError::TooLarge => "the value is too large for a 32-bit length",
            CdrError::MemberId => "a member id cannot be expressed in this representation",
            CdrError::NotInPlace => "the payload cannot be looked at in place; decode it instead",
        })
    }
}

impl std::error::Error for CdrError {}
