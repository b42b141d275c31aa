//! `#[derive(DdsType)]`: the CDR form of a Rust type, written down next to its definition.
//!
//! Reads `#[dds(..)]` attributes and writes implementations of `taut::cdr::{DdsType, Cdr}`. Knows the
//! names of that crate's items and nothing of its rules. XTypes 1.3 §7.2 names what can be said.
//!
//! On a type: one of `final`, `appendable`, `mutable` (must be written out for structures and unions);
//! `name = "pkg::Type"`, else the name is the Rust type's, without modules and parameters; `plain` for structures whose memory is their wire form; `union` with
//! `discriminator = T` (and `key` for a discriminator that is the key); `bitmask`, `bitset`;
//! `bit_bound = N` for enumerations and bit masks; `crate = path` where the CDR items are not in `taut::cdr`.
//!
//! On a member: `key`, `id = N`, `optional` (the type is an `Option`), `external` (the type is a `Box`),
//! `bound = N` or `bound = [outer, inner]`, `must_understand`, `base` (inherit from this member's type),
//! `name = ".."`; in a bit set `bits = N` and `skip = N`.
//!
//! On a variant of a union: `case = V` (again for more labels), `default` or `default = V`, `id = N`,
//! `bound`. A variant `Name { discriminator: T, value: U }` keeps the label it was received with. On a
//! literal of an enumeration: `default`.
//!
//! A type with parameters has the same name for all of them, so that discovery takes `Stamped<A>` for `Stamped<B>`: give
//! each a name of its own with the topic, by `DomainParticipant::topic_as`.
#![forbid(unsafe_code)]

mod attributes;
mod bits;
mod enumeration;
mod members;
mod structure;
#[cfg(test)]
mod tests;
mod union;

use proc_macro2::{Span, TokenStream};
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Result, parse_macro_input};

use attributes::TypeAttributes;

/// Derives the CDR form of a structure, union, enumeration, bit mask or bit set. What `#[dds(..)]` takes is in the text of
/// [this crate](crate).
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn has_no_data(data: &DataEnum) -> bool {
    data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit))
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = TypeAttributes::parse(input)?;
    match &input.data {
        Data::Struct(_) if attributes.bitmask => attributes.only(&["bitmask", "bit_bound"], "a bit mask")?,
        Data::Struct(_) if attributes.bitset => attributes.only(&["bitset"], "a bit set")?,
        Data::Struct(_) => attributes.only(&["plain"], "a structure")?,
        Data::Enum(_) if attributes.union => {
            attributes.only(&["union", "discriminator", "key"], "a union")?
        }
        Data::Enum(data) if has_no_data(data) => attributes.only(&["bit_bound"], "an enumeration")?,
        _ => {}
    }
    let body = match &input.data {
        Data::Struct(data) if attributes.bitmask => bits::mask(input, &attributes, data),
        Data::Struct(data) if attributes.bitset => bits::set(input, &attributes, data),
        Data::Struct(data) => structure::expand(input, &attributes, data),
        Data::Enum(data) if attributes.union => union::expand(input, &attributes, data),
        Data::Enum(data) if has_no_data(data) => enumeration::expand(input, &attributes, data),
        Data::Enum(_) => Err(Error::new(
            Span::call_site(),
            "an enum with data is a DDS union: write #[dds(union, discriminator = i32, final)] on the type and \
             #[dds(case = N)] on each variant",
        )),
        Data::Union(_) => Err(Error::new(
            Span::call_site(),
            "a DDS union is a Rust enum with data: #[dds(union, discriminator = i32, final)]",
        )),
    }?;
    Ok(quote::quote! {
        #[allow(unused_variables, unused_mut, clippy::all)]
        const _: () = { #body };
    })
}
