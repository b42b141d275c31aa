//! Enumerations: a signed integer of the width that `bit_bound` asks for.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Result};

use crate::attributes::{MemberAttributes, TypeAttributes};

pub fn expand(input: &DeriveInput, attributes: &TypeAttributes, data: &DataEnum) -> Result<TokenStream> {
    let (krate, ident) = (&attributes.krate, &input.ident);
    // XTypes 1.3 §7.3.1.2.1.5: 1 to 32 bits, 32 if it is not said.
    let bound = attributes.bit_bound.unwrap_or(32);
    let wire = match bound {
        1..=8 => quote!(i8),
        9..=16 => quote!(i16),
        17..=32 => quote!(i32),
        _ => return Err(Error::new_spanned(ident, "bit_bound of an enumeration is 1 to 32")),
    };
    let mut default = None;
    for variant in &data.variants {
        let read = MemberAttributes::parse(&variant.attrs)?;
        read.only(&["default", "name"], "a literal of an enumeration")?;
        if read.default && default.replace(&variant.ident).is_some() {
            return Err(Error::new_spanned(variant, "only one literal is the default"));
        }
    }
    let Some(initial) = default.or_else(|| data.variants.first().map(|variant| &variant.ident)) else {
        return Err(Error::new_spanned(ident, "an enumeration has at least one literal"));
    };
    let literals: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names = data.variants.iter().map(|variant| {
        let name = MemberAttributes::parse(&variant.attrs)?.name;
        Ok(name.unwrap_or_else(|| variant.ident.to_string().trim_start_matches("r#").to_owned()))
    });
    let names = names.collect::<Result<Vec<String>>>()?;
    let dds_type = attributes.dds_type(input, attributes.extensibility_or_final(), quote!(false));
    Ok(quote! {
        #dds_type
        #(const _: () = {
            let value = #ident::#literals as i64;
            let fits = value >> #bound == 0 || value >> (#bound - 1) == -1;
            assert!(fits && value == value as #wire as i64, "a literal does not fit into bit_bound");
        };)*
        #[automatically_derived]
        impl #krate::Cdr for #ident {
            const MIN_SIZE: usize = <#wire as #krate::Cdr>::MIN_SIZE;
            const LENGTH_CODE: u32 = <#wire as #krate::Cdr>::LENGTH_CODE;
            const KEY_UNIT: usize = <#wire as #krate::Cdr>::KEY_UNIT;
            fn encode(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                let value: #wire = match self { #(Self::#literals => Self::#literals as i64 as #wire,)* };
                #krate::Cdr::encode(&value, out)
            }
            fn decode(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> {
                let value: #wire = #krate::Cdr::decode(input)?;
                #(if value == Self::#literals as i64 as #wire { return ::core::result::Result::Ok(Self::#literals); })*
                ::core::result::Result::Err(#krate::CdrError::InvalidEnum)
            }
            fn initial() -> Self { Self::#initial }
            fn field_kind(path: &[#krate::Step]) -> ::core::option::Option<#krate::FieldKind> {
                const LITERALS: &[(&str, i64)] = &[#((#names, #ident::#literals as i64),)*];
                path.is_empty().then_some(#krate::FieldKind::Enumeration(LITERALS))
            }
            fn field(&self, path: &[#krate::Step]) -> ::core::option::Option<#krate::FieldValue<'_>> {
                let value = match self { #(Self::#literals => Self::#literals as i64,)* };
                path.is_empty().then_some(#krate::FieldValue::Integer(i128::from(value)))
            }
            fn key_size(size: #krate::KeySize, bounds: &[usize]) -> #krate::KeySize {
                <#wire as #krate::Cdr>::key_size(size, bounds)
            }
        }
    })
}
