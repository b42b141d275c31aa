//! The fields of bit sets. XTypes 1.3 §7.2.2.4.4.2 (bit sets), §7.4.3.5.1.

/// A value that takes some of the bits of a bit set: `bool` or an integer.
///
/// ```
/// use taut_cdr::BitField;
/// assert_eq!(i8::to_bits(-1, 3), Some(0b111));
/// assert_eq!(i8::from_bits(0b111, 3), -1);
/// assert_eq!(u8::to_bits(8, 3), None);
/// ```
///
/// A member of a bit set takes no more bits than its type has: a peer's would be lost.
///
/// ```
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bitset, crate = taut_cdr)]
/// struct Good { #[dds(bits = 8)] a: u8, #[dds(bits = 1)] b: bool, #[dds(bits = 16)] c: i16 }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bitset, crate = taut_cdr)]
/// struct Bad { #[dds(bits = 9)] a: u8 }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bitset, crate = taut_cdr)]
/// struct Bad { #[dds(bits = 3)] flag: bool }
/// ```
pub trait BitField: Sized {
    /// How many it can take at most.
    const BITS: u32;
    /// The value in that many bits; `None` if it does not fit.
    fn to_bits(value: Self, bits: u32) -> Option<u64>;
    /// The value of the lowest bits; the others are ignored.
    fn from_bits(raw: u64, bits: u32) -> Self;
}

/// The lowest `bits` bits set.
fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0)
}

impl BitField for bool {
    const BITS: u32 = 1;
    fn to_bits(value: bool, _bits: u32) -> Option<u64> {
        Some(u64::from(value))
    }
    fn from_bits(raw: u64, _bits: u32) -> bool {
        raw & 1 != 0
    }
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl BitField for $type {
            const BITS: u32 = <$type>::BITS;
            fn to_bits(value: $type, bits: u32) -> Option<u64> {
                let value = u64::from(value);
                (value & !mask(bits) == 0).then_some(value)
            }
            fn from_bits(raw: u64, bits: u32) -> $type {
                <$type>::try_from(raw & mask(bits) & u64::from(<$type>::MAX)).unwrap_or(0)
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($type:ty),*) => {$(
        impl BitField for $type {
            const BITS: u32 = <$type>::BITS;
            fn to_bits(value: $type, bits: u32) -> Option<u64> {
                let unused = 64u32.saturating_sub(bits);
                let wide = i64::from(value);
                let fits = wide.wrapping_shl(unused).wrapping_shr(unused) == wide;
                fits.then_some(wide.cast_unsigned() & mask(bits))
            }
            fn from_bits(raw: u64, bits: u32) -> $type {
                let unused = 64u32.saturating_sub(bits.min(<$type>::BITS));
                let wide = raw.cast_signed().wrapping_shl(unused).wrapping_shr(unused);
                <$type>::try_from(wide).unwrap_or(0)
            }
        }
    )*};
}
signed!(i8, i16, i32, i64);
