//! The bodies of a structure's methods: what happens to each member.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Member, Type};

use crate::attributes::{Extensibility, bounds_fit};
use crate::structure::{Field, Structure};

impl Field {
    /// Its name in the standard's sense.
    fn name(&self) -> String {
        self.attributes.name.clone().unwrap_or_else(|| match &self.member {
            Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        })
    }
}

impl Structure<'_> {
    /// Code that refuses `value` (an expression of a reference) when it exceeds the member's bounds.
    fn check(&self, field: &Field, value: TokenStream) -> TokenStream {
        let (krate, bounds) = (self.krate, field.attributes.bounds_tokens());
        if field.attributes.bounds.is_empty() {
            return TokenStream::new();
        }
        // Of a type with parameters it is known only here.
        let fit = bounds_fit(krate, &field.ty, &bounds);
        if field.optional {
            return quote! {
                const { #fit };
                if let ::core::option::Option::Some(value) = #value { #krate::Cdr::check_bounds(value, #bounds)?; }
            };
        }
        quote!(const { #fit }; #krate::Cdr::check_bounds(#value, #bounds)?;)
    }

    pub fn encode_members(&self) -> TokenStream {
        let (krate, checks) = (self.krate, self.checks_in_place());
        let base =
            self.base.iter().map(|(member, _)| quote!(#krate::Members::encode_members(&self.#member, out)?;));
        let fields = self.fields.iter().map(|field| {
            let Field { member, id, optional, attributes, .. } = field;
            let (check, understand) = (self.check(field, quote!(&self.#member)), attributes.must_understand);
            let write = match (self.mutable(), optional) {
                (false, false) => quote!(#krate::Cdr::encode(&self.#member, out)?;),
                (false, true) => quote!(out.optional(#id, #understand, self.#member.as_ref())?;),
                (true, false) => quote!(out.member(#id, #understand, &self.#member)?;),
                (true, true) => quote! {
                    if let ::core::option::Option::Some(value) = &self.#member { out.member(#id, #understand, value)?; }
                },
            };
            quote!(#check #write)
        });
        quote!(#checks #(#base)* #(#fields)*)
    }

    pub fn decode_members(&self) -> TokenStream {
        let (krate, checks) = (self.krate, self.checks_in_place());
        if self.mutable() {
            return quote! {
                #checks
                let mut value = <Self as #krate::Cdr>::initial();
                input.mutable(|id, input| #krate::Members::decode_member(&mut value, id, false, input))?;
                ::core::result::Result::Ok(value)
            };
        }
        let base =
            self.base.iter().map(|(member, _)| quote!(#member: #krate::Members::decode_members(input)?));
        let fields = self.fields.iter().map(|field| {
            let Field { member, id, optional, .. } = field;
            let read = match (self.extensibility, optional) {
                (Extensibility::Appendable, false) => quote!(input.appended()?),
                (Extensibility::Appendable, true) => {
                    quote!(input.appended_optional(#id)?)
                }
                (_, false) => quote!(#krate::Cdr::decode(input)?),
                (_, true) => quote!(input.optional(#id)?),
            };
            let check = self.check(field, quote!(&value));
            if check.is_empty() {
                return quote!(#member: #read);
            }
            let ty = &field.ty;
            let ty = if *optional { quote!(::core::option::Option<#ty>) } else { quote!(#ty) };
            quote!(#member: { let value: #ty = #read; #check value })
        });
        quote!(#checks ::core::result::Result::Ok(Self { #(#base,)* #(#fields,)* }))
    }

    /// The members of a final or appendable structure, into this one.
    pub fn decode_members_into(&self) -> TokenStream {
        let krate = self.krate;
        let base = self
            .base
            .iter()
            .map(|(member, _)| quote!(#krate::Members::decode_members_into(&mut self.#member, input)?;));
        let fields = self.fields.iter().map(|field| {
            let Field { member, id, optional, .. } = field;
            let check = self.check(field, quote!(&self.#member));
            let read = match (self.extensibility, optional) {
                (Extensibility::Appendable, false) => quote!(input.appended_into(&mut self.#member)?),
                (Extensibility::Appendable, true) => {
                    quote!(self.#member = input.appended_optional(#id)?)
                }
                (_, false) => quote!(#krate::Cdr::decode_into(&mut self.#member, input)?),
                (_, true) => quote!(self.#member = input.optional(#id)?),
            };
            quote!(#read; #check)
        });
        quote!(#(#base)* #(#fields)*)
    }

    pub fn decode_member(&self) -> TokenStream {
        let krate = self.krate;
        if !self.mutable() {
            return quote!(::core::result::Result::Ok(false));
        }
        let fields = self.fields.iter().map(|field| {
            let Field { member, ty, id, optional, .. } = field;
            let check = self.check(field, quote!(&self.#member));
            let some = if *optional { quote!(::core::option::Option::Some(value)) } else { quote!(value) };
            quote! {
                if id == #id {
                    let value: #ty =
                        if key { #krate::Cdr::decode_key(input)? } else { #krate::Cdr::decode(input)? };
                    self.#member = #some;
                    #check
                    return ::core::result::Result::Ok(true);
                }
            }
        });
        let rest = match &self.base {
            Some((member, _)) => {
                quote!(#krate::Members::decode_member(&mut self.#member, id, key, input))
            }
            None => quote!(::core::result::Result::Ok(false)),
        };
        quote!(#(#fields)* #rest)
    }

    /// The bound of what the last member ends in.
    pub fn last_bound(&self) -> TokenStream {
        let krate = self.krate;
        let bound = match (self.fields.last(), &self.base) {
            (Some(Field { optional: true, .. }), _) | (None, None) => return TokenStream::new(),
            (Some(Field { ty, attributes, .. }), _) => match attributes.bounds.first() {
                Some(bound) => quote!(#bound),
                None => quote!(<#ty as #krate::Cdr>::last_bound()),
            },
            (None, Some((_, base))) => quote!(<#base as #krate::Cdr>::last_bound()),
        };
        quote!(fn last_bound() -> usize { #bound })
    }

    /// What a way that starts with a member's name leads to.
    pub fn field_access(&self) -> TokenStream {
        let krate = self.krate;
        let names: Vec<String> = self.fields.iter().map(Field::name).collect();
        let types = self.fields.iter().map(|field| &field.ty);
        let values = self.fields.iter().map(|Field { member, optional, .. }| {
            let member = if *optional { quote!(self.#member.as_ref()?) } else { quote!(&self.#member) };
            quote!(#krate::Cdr::field(#member, rest))
        });
        let (base_kind, base_value) = match &self.base {
            Some((member, base)) => (
                quote!(<#base as #krate::Cdr>::field_kind(path)),
                quote!(#krate::Cdr::field(&self.#member, path)),
            ),
            None => (quote!(::core::option::Option::None), quote!(::core::option::Option::None)),
        };
        quote! {
            fn field_kind(path: &[#krate::Step]) -> ::core::option::Option<#krate::FieldKind> {
                let (#krate::Step::Member(name), rest) = path.split_first()? else { return ::core::option::Option::None };
                match name.as_str() {
                    #(#names => <#types as #krate::Cdr>::field_kind(rest),)*
                    _ => #base_kind,
                }
            }
            fn field(&self, path: &[#krate::Step]) -> ::core::option::Option<#krate::FieldValue<'_>> {
                let (#krate::Step::Member(name), rest) = path.split_first()? else { return ::core::option::Option::None };
                match name.as_str() {
                    #(#names => #values,)*
                    _ => #base_value,
                }
            }
        }
    }

    /// Runs `step` over the key members, or over all if there are none, the base's first.
    ///
    /// `sorted`: in the order of the ids, as the key hash wants it (XTypes 1.3 §7.6.8).
    fn over_key(
        &self,
        sorted: bool,
        base_step: impl Fn(&Member, &Type) -> TokenStream,
        step: impl Fn(&Field) -> TokenStream,
    ) -> TokenStream {
        let krate = self.krate;
        let run = |keys: bool| {
            let mut fields: Vec<&Field> =
                self.fields.iter().filter(|field| !keys || field.attributes.key).collect();
            if sorted && self.base.is_none() {
                fields.sort_by_key(|field| field.number);
            }
            fields.into_iter().map(&step).collect::<TokenStream>()
        };
        let any = self.fields.iter().any(|field| field.attributes.key);
        let Some((member, base)) = &self.base else { return run(any) };
        let (of_base, own, all) = (base_step(member, base), run(true), run(false));
        let base_has_key = quote!(<#base as #krate::DdsType>::HAS_KEY);
        if any {
            quote!(if #base_has_key { #of_base } #own)
        } else {
            quote!(#of_base if !#base_has_key { #all })
        }
    }

    pub fn encode_key(&self) -> TokenStream {
        let krate = self.krate;
        let order = |sorted| {
            self.over_key(
                sorted,
                |member, _| quote!(#krate::Members::encode_key_members(&self.#member, out)?;),
                |field| self.encode_key_member(field),
            )
        };
        let (defined, sorted) = (order(false), order(true));
        if defined.to_string() == sorted.to_string() {
            return defined;
        }
        quote!(if out.is_key_hash() { #sorted } else { #defined })
    }

    fn encode_key_member(&self, field: &Field) -> TokenStream {
        let krate = self.krate;
        let Field { member, id, optional, attributes, .. } = field;
        let (check, understand) = (self.check(field, quote!(&self.#member)), attributes.must_understand);
        let optionally = quote!(out.optional(#id, #understand, self.#member.as_ref())?;);
        let write = match (self.mutable(), optional) {
            (false, false) => quote!(#krate::Cdr::encode_key(&self.#member, out)?;),
            (false, true) => optionally,
            (true, false) => quote!(out.key_member(#id, #understand, &self.#member)?;),
            (true, true) => quote! {
                if out.is_key_hash() { #optionally }
                else if let ::core::option::Option::Some(value) = &self.#member {
                    out.key_member(#id, #understand, value)?;
                }
            },
        };
        quote!(#check #write)
    }

    pub fn decode_key(&self) -> TokenStream {
        let krate = self.krate;
        let order = |sorted| {
            self.over_key(
                sorted,
                |member, _| quote!(#krate::Members::decode_key_members(&mut self.#member, input)?;),
                |field| self.decode_key_member(field),
            )
        };
        let (defined, sorted) = (order(false), order(true));
        // Those of a mutable one are told apart by their ids, unless they come without.
        if self.mutable() || defined.to_string() == sorted.to_string() {
            return sorted;
        }
        quote!(if input.is_bare() { #sorted } else { #defined })
    }

    fn decode_key_member(&self, field: &Field) -> TokenStream {
        let krate = self.krate;
        let Field { member, id, optional, .. } = field;
        let check = self.check(field, quote!(&self.#member));
        let read =
            if *optional { quote!(input.optional(#id)?) } else { quote!(#krate::Cdr::decode_key(input)?) };
        let present = match self.extensibility {
            Extensibility::Appendable => quote!(if !input.is_key_over()),
            _ => TokenStream::new(),
        };
        quote!(#present { self.#member = #read; } #check)
    }

    /// The members of a final or appendable structure, gone past.
    pub fn skip_members(&self) -> TokenStream {
        let krate = self.krate;
        let base =
            self.base.iter().map(|(_, base)| quote!(<#base as #krate::Members>::skip_members(input)?;));
        let fields = self.fields.iter().map(|field| self.skip_member(field));
        quote!(#(#base)* #(#fields)*)
    }

    fn skip_member(&self, field: &Field) -> TokenStream {
        let krate = self.krate;
        let Field { ty, id, optional, .. } = field;
        match (self.extensibility, optional) {
            (Extensibility::Appendable, false) => quote!(input.skip_appended::<#ty>()?;),
            (Extensibility::Appendable, true) => quote!(input.skip_appended_optional::<#ty>(#id)?;),
            (_, false) => quote!(<#ty as #krate::Cdr>::skip(input)?;),
            (_, true) => quote!(input.skip_optional::<#ty>(#id)?;),
        }
    }

    /// What leads to the last key member, and not beyond. None: the members come in another order than the hash has
    /// them, or in one that the sender chooses.
    pub fn recode_key(&self) -> Option<TokenStream> {
        let krate = self.krate;
        let is_key = |field: &Field| field.attributes.key;
        let keys: Vec<Option<u32>> =
            self.fields.iter().filter(|field| is_key(field)).map(|field| field.number).collect();
        let last = self.fields.iter().rposition(is_key)?;
        if self.mutable() || self.base.is_some() || !keys.is_sorted() {
            return None;
        }
        let fields = self.fields.iter().take(last + 1).map(|field| {
            if !is_key(field) {
                return self.skip_member(field);
            }
            let (ty, bounds) = (&field.ty, field.attributes.bounds_tokens());
            if self.extensibility == Extensibility::Appendable {
                quote!(input.recode_appended_key::<#ty>(#bounds, out)?;)
            } else {
                quote!(<#ty as #krate::Cdr>::recode_key(input, #bounds, out)?;)
            }
        });
        Some(quote!(#(#fields)*))
    }

    /// What all key members have to have, or all if there are none. Optional ones are written otherwise by each version.
    pub fn key_unit(&self) -> TokenStream {
        let krate = self.krate;
        let any = self.fields.iter().any(|field| field.attributes.key);
        let base = self.base.iter().map(|(_, base)| quote!(<#base as #krate::Cdr>::KEY_UNIT));
        let fields = self.fields.iter().filter(|field| !any || field.attributes.key).map(|field| {
            let ty = &field.ty;
            if field.optional { quote!(0) } else { quote!(<#ty as #krate::Cdr>::KEY_UNIT) }
        });
        quote!(const KEY_UNIT: usize = #krate::key_unit(&[#(#base,)* #(#fields,)*]);)
    }

    pub fn key_size(&self) -> TokenStream {
        let krate = self.krate;
        self.over_key(
            true,
            |_, base| quote!(size = <#base as #krate::Members>::key_members_size(size);),
            |field| {
                let (ty, bounds) = (&field.ty, field.attributes.bounds_tokens());
                if field.optional {
                    return quote!(size = size.unbounded(););
                }
                // The early return ends the walk through types that contain themselves.
                quote! {
                    if size.exceeds_hash() { return size; }
                    size = <#ty as #krate::Cdr>::key_size(size, #bounds);
                }
            },
        )
    }
}
