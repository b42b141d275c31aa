//! The traits a type of the wire implements, and the few words that choose its encoding.
//!
//! XTypes 1.3 §7.2 (type system). `derive(DdsType)` writes the implementations.

use crate::{CdrError, Decoder, Encoder, FieldKind, FieldValue, KeySize, Result, Step};

/// The version of the encoding rules. *Source*: XTypes 1.3 §7.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Representation {
    /// XCDR version 1: 8-byte alignment, no delimiters; what ROS 2 and older DDS speak.
    Xcdr1,
    /// XCDR version 2: 4-byte alignment at most, delimiters around what may grow.
    Xcdr2,
}

/// The byte order of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Endian {
    /// The byte order of this machine.
    pub const NATIVE: Endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
}

/// How a type may change between versions of a system. *Source*: XTypes 1.3 §7.2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// Never: the smallest encoding.
    Final,
    /// Members may be added at the end.
    Appendable,
    /// Members may be added, removed and reordered: each carries its id.
    Mutable,
}

/// A value that has a CDR form: primitives, strings, collections and everything derived.
///
/// Implemented by `derive(DdsType)`; the methods after `initial` have meaning for collections and keys only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no CDR form, so it cannot be a member of a DDS type",
    note = "a structure or an enumeration of yours derives it: `#[derive(DdsType)] #[dds(final)]`",
    note = "there are `bool`, integers and floats of a fixed size, `String`, `Vec`, arrays, `BTreeMap`, `HashMap`, `Box` of \
            these, and an `Option` of one as a member"
)]
pub trait Cdr: Sized {
    /// Is it a primitive type of XTypes, so that collections of it carry no delimiter?
    const PRIMITIVE: bool = false;
    /// The same question for the innermost element of a (multi-dimensional) array.
    const ELEMENT_PRIMITIVE: bool = Self::PRIMITIVE;
    /// Is it an array, so that an array of it is one array of more dimensions?
    const IS_ARRAY: bool = false;
    /// The least number of bytes that any value takes on the wire; refuses impossible counts.
    const MIN_SIZE: usize;
    /// The length code of a mutable member of this type. *Source*: XTypes 1.3 §7.4.3.4.2.
    const LENGTH_CODE: u32 = 4;
    /// Can its memory be its wire form, in both versions?
    const PLAIN: bool = false;
    /// The alignment of its first primitive, for plain types.
    const FIRST_ALIGN: usize = 1;
    /// How many bounds a member of this type takes: one for itself, if it is a string, a sequence or a map, and those of
    /// its elements or values.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Good {
    ///     #[dds(bound = [4, 8])]
    ///     a: Vec<[String; 2]>,
    ///     #[dds(bound = [4, 2, 8])]
    ///     b: Option<Box<BTreeMap<u8, Vec<String>>>>,
    /// }
    /// ```
    ///
    /// What has no bound is refused one.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Bad { #[dds(bound = 3)] x: u32 }
    /// ```
    ///
    /// Those of a structure's members stand at these.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Inner { text: String }
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Bad { #[dds(bound = 5)] inner: Inner }
    /// ```
    ///
    /// A sequence of numbers has one.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Bad { #[dds(bound = [4, 8])] v: Vec<u8> }
    /// ```
    ///
    /// So it is in a union.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, union, discriminator = u8, crate = taut_cdr)]
    /// enum Bad { #[dds(case = 1, bound = [4, 8])] Text(String) }
    /// ```
    ///
    /// Of a type with parameters it is seen where one of its values is written or read.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(final, crate = taut_cdr)]
    /// struct Bad<T> { #[dds(bound = 3)] x: T }
    /// taut_cdr::from_payload::<Bad<u32>>(&[]).ok();
    /// ```
    const BOUNDS: usize = 0;
    /// Where its key form has to begin for both versions to write the same, and where it ends then: at a multiple of this,
    /// 8, or anywhere, 4. 0: they may differ, or nobody has looked.
    const KEY_UNIT: usize = 0;
    /// Does [`Cdr::recode_key_of_sample`] make no value? Of a derived structure whose key members come in the order of
    /// their ids.
    const RECODES_KEY: bool = false;

    /// Writes the value.
    fn encode(&self, out: &mut Encoder<'_>) -> Result<()>;
    /// Reads a value.
    fn decode(input: &mut Decoder<'_>) -> Result<Self>;
    /// Reads a value into this one, whose strings and sequences keep their memory. After an error it holds some
    /// of what was read.
    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        *self = Self::decode(input)?;
        Ok(())
    }
    /// Goes past a value without making it. *Errors*: as its lengths have them; what is between is not looked at.
    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        Self::decode(input).map(drop)
    }
    /// The value of a member that the sender did not send. *Source*: XTypes 1.3 §7.2.2.4.4.4.7.
    fn initial() -> Self;
    /// An array of initial values.
    fn initial_array<const N: usize>() -> [Self; N] {
        std::array::from_fn(|_| Self::initial())
    }

    /// Writes the key members only, or all of it when it has none.
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        self.encode(out)
    }
    /// Reads what `encode_key` writes; other members take their initial value.
    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        Self::decode(input)
    }
    /// Reads a value and writes its key members, or all of it when it has none.
    fn recode_key(input: &mut Decoder<'_>, bounds: &[usize], out: &mut Encoder<'_>) -> Result<()> {
        let value = Self::decode(input)?;
        value.check_bounds(bounds)?;
        value.encode_key(out)
    }
    /// Reads a sample as far as its key members go, past the others if it can, and writes these as a key hash has them.
    fn recode_key_of_sample(input: &mut Decoder<'_>, out: &mut Encoder<'_>) -> Result<()> {
        Self::recode_key(input, &[], out)
    }
    /// Adds the greatest size of the key form to `size`. `bounds` are those of the member, outermost first.
    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize;
    /// What the member is that `path` leads to; `None` if there is none or if it cannot be compared.
    fn field_kind(_path: &[Step]) -> Option<FieldKind> {
        None
    }
    /// The value of that member; `None` if this value has none: it is an optional member that is absent, an
    /// element behind the last.
    fn field(&self, _path: &[Step]) -> Option<FieldValue<'_>> {
        None
    }
    /// Refuses a value that exceeds the bounds, outermost first; 0 is unbounded.
    fn check_bounds(&self, _bounds: &[usize]) -> Result<()> {
        Ok(())
    }
    /// The bound of the sequence that the value ends in, as its member has it; 0: none, or it ends in something else.
    fn last_bound() -> usize {
        0
    }
    /// Writes the elements of a collection, without count.
    fn encode_slice(slice: &[Self], out: &mut Encoder<'_>) -> Result<()> {
        out.alone(|out| slice.iter().try_for_each(|value| value.encode(out)))
    }
    /// Reads `count` elements. The caller has compared `count` to the bytes that remain.
    fn decode_vec(input: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>> {
        let mut out = input.vec_for(count);
        for _ in 0..count {
            out.push(Self::decode(input)?);
        }
        Ok(out)
    }
    /// Reads an array's elements, without a delimiter.
    fn decode_array<const N: usize>(input: &mut Decoder<'_>) -> Result<[Self; N]> {
        let mut values = Self::initial_array();
        if Self::IS_ARRAY {
            values.iter_mut().try_for_each(|value: &mut Self| value.decode_flat(input))?;
        } else {
            Self::decode_slice(input, &mut values)?;
        }
        Ok(values)
    }
    /// Reads as many elements as the slice has.
    fn decode_slice(input: &mut Decoder<'_>, slice: &mut [Self]) -> Result<()> {
        slice.iter_mut().try_for_each(|value| value.decode_into(input))
    }
    /// Writes an array's elements without a delimiter of their own; other types as ever.
    fn encode_flat(&self, out: &mut Encoder<'_>) -> Result<()> {
        self.encode(out)
    }
    /// Reads what `encode_flat` writes.
    fn decode_flat(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        *self = Self::decode(input)?;
        Ok(())
    }
    /// The key form of `encode_flat`.
    fn encode_key_flat(&self, out: &mut Encoder<'_>) -> Result<()> {
        self.encode_key(out)
    }
    /// Reads what `encode_key_flat` writes.
    fn decode_key_flat(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        *self = Self::decode_key(input)?;
        Ok(())
    }
    /// Adds the greatest size of what `encode_key_flat` writes.
    fn key_size_flat(size: KeySize, bounds: &[usize]) -> KeySize {
        Self::key_size(size, bounds)
    }
}

/// A type with a name that a topic can carry. Derive it: `#[derive(DdsType)] #[dds(final)]`.
///
/// The literals of an enumeration fit into its `bit_bound`, be it read as that of a signed integer or of an unsigned one:
/// compilers of IDL differ in that. On the wire it is signed.
///
/// ```
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bit_bound = 4, crate = taut_cdr)]
/// enum Good { Lowest = -8, Highest = 15 }
/// #[derive(DdsType)]
/// #[dds(bit_bound = 1, crate = taut_cdr)]
/// enum Switch { Off, On }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bit_bound = 4, crate = taut_cdr)]
/// enum Bad { A = 100 }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bit_bound = 4, crate = taut_cdr)]
/// enum Bad { A = 16 }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bit_bound = 4, crate = taut_cdr)]
/// enum Bad { A = -9 }
/// ```
///
/// ```compile_fail
/// # use taut_derive::DdsType;
/// #[derive(DdsType)]
/// #[dds(bit_bound = 8, crate = taut_cdr)]
/// enum Bad { A = 128 }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a topic",
    note = "a structure of yours derives it: `#[derive(DdsType)] #[dds(final)]`"
)]
pub trait DdsType: Cdr {
    /// The name that discovery compares, such as `std_msgs::msg::dds_::String_`. The derived one of a type with parameters
    /// is the same for all of them: topics whose types differ in these alone need names of their own, by `topic_as`.
    const TYPE_NAME: &'static str;
    /// What was written in the derive.
    const EXTENSIBILITY: Extensibility;
    /// Does the topic have instances?
    const HAS_KEY: bool;

    /// The value as it lies in memory, if that is its serialized form: `#[dds(plain)]` says so.
    #[doc(hidden)]
    #[inline]
    fn plain_bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// The members of a structure without its header, so that a derived structure can flatten its base.
///
/// Written by `derive(DdsType)`; not for calling.
#[doc(hidden)]
pub trait Members: DdsType {
    /// The id of the first member of a structure that inherits from this one, if none is written out.
    const NEXT_ID: u32;
    /// From here on no member has the id, so that one of a structure that inherits may.
    ///
    /// ```
    /// # use taut_derive::DdsType;
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct Base { #[dds(id = 5)] a: u8, #[dds(id = 1)] b: u8 }
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct Good { #[dds(base)] base: Base, #[dds(id = 6)] c: u8, d: u8 }
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct With<T> { #[dds(base)] base: Base, #[dds(id = 6)] c: T }
    /// taut_cdr::from_payload::<With<u8>>(&[]).ok();
    /// ```
    ///
    /// Without an id of its own `c` has 2, and `f` would have that of `a`.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// # #[derive(DdsType)]
    /// # #[dds(mutable, crate = taut_cdr)]
    /// # struct Base { #[dds(id = 5)] a: u8, #[dds(id = 1)] b: u8 }
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct Bad { #[dds(base)] base: Base, c: u8, d: u8, e: u8, f: u8 }
    /// ```
    ///
    /// One without members of its own has those of its base.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// # #[derive(DdsType)]
    /// # #[dds(mutable, crate = taut_cdr)]
    /// # struct Base { #[dds(id = 5)] a: u8, #[dds(id = 1)] b: u8 }
    /// # #[derive(DdsType)]
    /// # #[dds(mutable, crate = taut_cdr)]
    /// # struct Same { #[dds(base)] base: Base }
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct Bad { #[dds(base)] base: Same, #[dds(id = 4)] c: u8 }
    /// ```
    ///
    /// Of a type with parameters it is seen where one of its values is written or read.
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// # #[derive(DdsType)]
    /// # #[dds(mutable, crate = taut_cdr)]
    /// # struct Base { #[dds(id = 5)] a: u8, #[dds(id = 1)] b: u8 }
    /// #[derive(DdsType)]
    /// #[dds(mutable, crate = taut_cdr)]
    /// struct Bad<T> { #[dds(base)] base: Base, #[dds(id = 5)] c: T }
    /// taut_cdr::from_payload::<Bad<u8>>(&[]).ok();
    /// ```
    ///
    /// ```compile_fail
    /// # use taut_derive::DdsType;
    /// # #[derive(DdsType)]
    /// # #[dds(final, crate = taut_cdr)]
    /// # struct Base { a: u8 }
    /// #[derive(DdsType)]
    /// #[dds(appendable, crate = taut_cdr)]
    /// struct Bad<T> { #[dds(base)] base: Base, c: T }
    /// taut_cdr::to_payload(&Bad { base: Base { a: 1 }, c: 2u8 }, taut_cdr::Representation::Xcdr1, &mut vec![]).ok();
    /// ```
    const FREE_ID: u32;
    /// The sum of the members' least sizes.
    const MEMBERS_MIN: usize;
    /// Writes the members.
    fn encode_members(&self, out: &mut Encoder<'_>) -> Result<()>;
    /// Reads the members of a final or appendable structure.
    fn decode_members(input: &mut Decoder<'_>) -> Result<Self>;
    /// Reads the members of a final or appendable structure into this one.
    fn decode_members_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        *self = Self::decode_members(input)?;
        Ok(())
    }
    /// Goes past the members of a final or appendable structure.
    fn skip_members(input: &mut Decoder<'_>) -> Result<()> {
        Self::decode_members(input).map(drop)
    }
    /// Reads the member with this id; false if there is none.
    fn decode_member(&mut self, id: u32, key: bool, input: &mut Decoder<'_>) -> Result<bool>;
    /// Writes the key members (all members if there are none).
    fn encode_key_members(&self, out: &mut Encoder<'_>) -> Result<()>;
    /// Reads the key members of a final or appendable structure, or those of any without headers.
    fn decode_key_members(&mut self, input: &mut Decoder<'_>) -> Result<()>;
    /// Adds the greatest size of the key members.
    fn key_members_size(size: KeySize) -> KeySize;
}

/// The `KEY_UNIT` of a key of members with these: the one that all have.
#[doc(hidden)]
pub const fn key_unit(mut units: &[usize]) -> usize {
    let [first, ..] = units else { return 4 };
    while let [unit, rest @ ..] = units {
        if *unit != *first {
            return 0;
        }
        units = rest;
    }
    *first
}

/// The least size of a structure or union with this extensibility, given that of its members.
#[doc(hidden)]
pub const fn min_size(extensibility: Extensibility, members: usize) -> usize {
    match extensibility {
        Extensibility::Final => members,
        // Trailing members may be missing; at least the DHEADER or one byte is there.
        Extensibility::Appendable => {
            if members == 0 {
                0
            } else {
                1
            }
        }
        // DHEADER in XCDR2, sentinel in XCDR1.
        Extensibility::Mutable => 4,
    }
}

/// Turns a length into the 32 bits that CDR has for it.
pub(crate) fn wire_length(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| CdrError::TooLarge)
}

/// Refuses a length beyond the first of the bounds; 0 is unbounded.
pub(crate) fn within(length: usize, bounds: &[usize]) -> Result<()> {
    match bounds.first() {
        Some(&bound) if bound != 0 && length > bound => Err(CdrError::Bound),
        _ => Ok(()),
    }
}
