//! Bit masks (a newtype over an unsigned integer) and bit sets (fields of some bits each).

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Index, Member, Result};

use crate::attributes::{MemberAttributes, TypeAttributes};

/// The unsigned integer that holds that many bits. *Source*: XTypes 1.3 §7.3.1.2.1.4, §7.4.3.5.1.
fn holder(input: &DeriveInput, bits: u32) -> Result<TokenStream> {
    Ok(match bits {
        1..=8 => quote!(u8),
        9..=16 => quote!(u16),
        17..=32 => quote!(u32),
        33..=64 => quote!(u64),
        _ => return Err(Error::new_spanned(&input.ident, "1 to 64 bits")),
    })
}

/// The implementation over `wire`, given how to get the integer and back.
fn integer(
    input: &DeriveInput,
    attributes: &TypeAttributes,
    wire: &TokenStream,
    to: TokenStream,
    check: TokenStream,
    made: TokenStream,
) -> TokenStream {
    let (krate, ident) = (&attributes.krate, &input.ident);
    let dds_type = attributes.dds_type(input, attributes.extensibility_or_final(), quote!(false));
    quote! {
        #dds_type
        #[automatically_derived]
        impl #krate::Cdr for #ident {
            const MIN_SIZE: usize = <#wire as #krate::Cdr>::MIN_SIZE;
            const LENGTH_CODE: u32 = <#wire as #krate::Cdr>::LENGTH_CODE;
            const KEY_UNIT: usize = <#wire as #krate::Cdr>::KEY_UNIT;
            fn encode(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                let raw: #wire = #to;
                #krate::Cdr::encode(&raw, out)
            }
            fn decode(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> {
                let raw: #wire = #krate::Cdr::decode(input)?;
                #check
                ::core::result::Result::Ok(#made)
            }
            fn initial() -> Self {
                let raw: #wire = 0;
                #made
            }
            fn key_size(size: #krate::KeySize, bounds: &[usize]) -> #krate::KeySize {
                <#wire as #krate::Cdr>::key_size(size, bounds)
            }
        }
    }
}

pub fn mask(input: &DeriveInput, attributes: &TypeAttributes, data: &DataStruct) -> Result<TokenStream> {
    let krate = &attributes.krate;
    let bound = attributes.bit_bound.unwrap_or(32);
    let wire = holder(input, bound)?;
    let mut fields = data.fields.iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        let text =
            format!("a bit mask is a structure with one member, an unsigned integer: struct Flags({wire})");
        return Err(Error::new_spanned(&input.ident, text));
    };
    MemberAttributes::parse(&field.attrs)?.only(&[], "the member of a bit mask")?;
    let member = field.ident.clone().map_or(Member::Unnamed(Index::from(0)), Member::Named);
    let unused = 64u32.saturating_sub(bound);
    let check = quote! {
        if u64::from(raw) & !(u64::MAX >> #unused) != 0 {
            return ::core::result::Result::Err(#krate::CdrError::InvalidBits);
        }
    };
    let to = quote!({ let raw: #wire = self.#member; #check raw });
    Ok(integer(input, attributes, &wire, to, check, quote!(Self { #member: raw })))
}

pub fn set(input: &DeriveInput, attributes: &TypeAttributes, data: &DataStruct) -> Result<TokenStream> {
    let krate = &attributes.krate;
    let mut offset = 0u32;
    let (mut to, mut from, mut checks) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for (index, field) in data.fields.iter().enumerate() {
        let read = MemberAttributes::parse(&field.attrs)?;
        read.only(&["bits", "skip", "name"], "a member of a bit set")?;
        let Some(bits) = read.bits.filter(|bits| (1..=64).contains(bits)) else {
            return Err(Error::new_spanned(field, "a member of a bit set says how many: #[dds(bits = N)]"));
        };
        offset = offset.saturating_add(read.skip);
        let (ty, start) = (&field.ty, offset);
        let member = field.ident.clone().map_or(Member::Unnamed(Index::from(index)), Member::Named);
        to.extend(quote! {
            all |= #krate::BitField::to_bits(self.#member, #bits).ok_or(#krate::CdrError::InvalidBits)? << #start;
        });
        from.extend(quote! {
            #member: <#ty as #krate::BitField>::from_bits(u64::from(raw) >> #start, #bits),
        });
        checks.extend(quote! {
            const _: () = assert!(
                #bits <= <#ty as #krate::BitField>::BITS,
                "a member of a bit set takes more bits than its type has"
            );
        });
        offset = offset.saturating_add(bits);
    }
    let wire = holder(input, offset)?;
    let to = quote!({ let mut all = 0u64; #to all as #wire });
    let integer = integer(input, attributes, &wire, to, quote!(), quote!(Self { #from }));
    Ok(quote!(#integer #checks))
}
