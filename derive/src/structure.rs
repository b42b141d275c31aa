//! Structures: members in order (or by id), optional members, a flattened base, keys.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Index, Member, Path, Result, Type};

use crate::attributes::{
    Extensibility, MemberAttributes, TypeAttributes, argument_of, asserted, bounds_fit, check_id, with_bounds,
};

/// A member as the code below needs it.
pub struct Field {
    pub member: Member,
    /// The type on the wire: what is inside of an `Option`.
    pub ty: Type,
    pub optional: bool,
    pub attributes: MemberAttributes,
    /// Known unless it follows from the base's.
    pub number: Option<u32>,
    pub id: TokenStream,
}

pub struct Structure<'a> {
    pub krate: &'a Path,
    pub extensibility: Extensibility,
    pub base: Option<(Member, Type)>,
    pub fields: Vec<Field>,
}

pub fn expand(input: &DeriveInput, attributes: &TypeAttributes, data: &DataStruct) -> Result<TokenStream> {
    let structure = Structure::parse(attributes, data)?;
    if attributes.plain {
        structure.check_plain(input)?;
    }
    let krate = &attributes.krate;
    let has_key = structure.has_key();
    let dds_type = attributes.dds_type(input, structure.extensibility, has_key);
    let members = structure.members(input);
    let cdr = structure.cdr(input, attributes.plain);
    let checks = structure.checks(input);
    let ident = &input.ident;
    let plain = attributes.plain.then(|| {
        quote! {
            #[automatically_derived]
            impl #krate::Plain for #ident {}
            const _: () = assert!(
                <#ident as #krate::Cdr>::PLAIN,
                "#[dds(plain)]: a member's memory is not its wire form; only numbers, arrays of numbers and \
                 plain structures are"
            );
        }
    });
    Ok(quote! { #dds_type #members #cdr #plain #checks })
}

impl<'a> Structure<'a> {
    fn parse(attributes: &'a TypeAttributes, data: &DataStruct) -> Result<Structure<'a>> {
        let (krate, extensibility) = (&attributes.krate, attributes.extensibility()?);
        let mut out = Structure { krate, extensibility, base: None, fields: Vec::new() };
        for (index, field) in data.fields.iter().enumerate() {
            let member = match &field.ident {
                Some(ident) => Member::Named(ident.clone()),
                None => Member::Unnamed(Index::from(index)),
            };
            let attributes = MemberAttributes::parse(&field.attrs)?;
            if attributes.base {
                attributes.only(&["base"], "a base")?;
                if index != 0 {
                    return Err(Error::new_spanned(field, "the base must be the first member"));
                }
                out.base = Some((member, field.ty.clone()));
                continue;
            }
            const WORDS: [&str; 7] =
                ["key", "id", "optional", "external", "bound", "must_understand", "name"];
            attributes.only(&WORDS, "a member of a structure")?;
            out.push(member, &field.ty, attributes)?;
        }
        Ok(out)
    }

    fn push(&mut self, member: Member, ty: &Type, attributes: MemberAttributes) -> Result<()> {
        let inner = argument_of(ty, "Option");
        if attributes.optional && inner.is_none() {
            return Err(Error::new_spanned(ty, "an optional member is an Option<T>"));
        }
        if attributes.key && inner.is_some() {
            return Err(Error::new_spanned(
                ty,
                "a key member cannot be optional (XTypes 1.3 §7.2.2.4.4.4.8)",
            ));
        }
        if attributes.external && argument_of(inner.unwrap_or(ty), "Box").is_none() {
            return Err(Error::new_spanned(ty, "an external member is a Box<T>"));
        }
        // XTypes 1.3 §7.3.1.2.1.1: an id that is not written out follows from the member before.
        let (number, id) = match (attributes.id, self.fields.last(), &self.base) {
            (Some(id), _, _) => (Some(id), quote!(#id)),
            (None, Some(last), _) => {
                let (number, id) = (last.number.map(|n| n.saturating_add(1)), &last.id);
                (number, number.map_or_else(|| quote!((#id + 1)), |n| quote!(#n)))
            }
            (None, None, Some((_, base))) => {
                let krate = self.krate;
                (None, quote!(<#base as #krate::Members>::NEXT_ID))
            }
            (None, None, None) => (Some(0), quote!(0u32)),
        };
        check_id(number.unwrap_or(0), &member)?;
        if number.is_some() && self.fields.iter().any(|field| field.number == number) {
            return Err(Error::new_spanned(&member, "another member has the same id"));
        }
        let ty = inner.unwrap_or(ty).clone();
        self.fields.push(Field { member, ty, optional: inner.is_some(), attributes, number, id });
        Ok(())
    }

    pub fn mutable(&self) -> bool {
        self.extensibility == Extensibility::Mutable
    }

    fn has_key(&self) -> TokenStream {
        let (krate, own) = (self.krate, self.fields.iter().any(|field| field.attributes.key));
        match &self.base {
            Some((_, base)) => quote!(#own || <#base as #krate::DdsType>::HAS_KEY),
            None => quote!(#own),
        }
    }

    fn check_plain(&self, input: &DeriveInput) -> Result<()> {
        let simple = self.fields.iter().all(|field| !field.optional && field.attributes.bounds.is_empty());
        if self.extensibility != Extensibility::Final || self.base.is_some() || !simple {
            let text = "#[dds(plain)] is for final structures without base, optional members and bounds";
            return Err(Error::new_spanned(&input.ident, text));
        }
        if !input.generics.params.is_empty() {
            return Err(Error::new_spanned(&input.generics, "#[dds(plain)] is for types without parameters"));
        }
        Ok(())
    }

    /// What only the compiler can see: which bounds the members take, the base's extensibility and ids. Of a type with
    /// parameters it is looked at where one of its values is written or read.
    fn checks(&self, input: &DeriveInput) -> TokenStream {
        if !input.generics.params.is_empty() {
            return TokenStream::new();
        }
        let bounded = self.fields.iter().filter(|field| !field.attributes.bounds.is_empty());
        let bounds = bounded
            .map(|Field { ty, attributes, .. }| bounds_fit(self.krate, ty, &attributes.bounds_tokens()));
        asserted(&input.ident, &bounds.chain(self.base_checks()).collect::<Vec<_>>())
    }

    /// Assertions about the base: its extensibility, and that its ids are below those of the own members, as a key's
    /// members come in the order of their ids (XTypes 1.3 §7.6.8), the base's first.
    fn base_checks(&self) -> Option<TokenStream> {
        let (_, base) = self.base.as_ref()?;
        let (krate, extensibility) = (self.krate, self.extensibility.tokens(self.krate));
        let ids = self.fields.iter().map(|field| &field.id);
        Some(quote! {
            assert!(
                <#base as #krate::DdsType>::EXTENSIBILITY as u8 == #extensibility as u8,
                "a structure has the extensibility of its base"
            );
            let mut free = <#base as #krate::Members>::FREE_ID;
            #(
                assert!(
                    #ids >= free,
                    "the ids of a derived structure ascend from the greatest of its base: write them out, #[dds(id = N)]"
                );
                free = #ids + 1;
            )*
        })
    }

    /// The same where a value is written or read.
    pub fn checks_in_place(&self) -> Option<TokenStream> {
        self.base_checks().map(|checks| quote!(const { #checks };))
    }

    fn members(&self, input: &DeriveInput) -> TokenStream {
        let (krate, ident) = (self.krate, &input.ident);
        let generics = with_bounds(input, krate);
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let next = match (self.fields.last(), &self.base) {
            (Some(Field { id, .. }), _) => quote!(#id + 1),
            (None, Some((_, base))) => quote!(<#base as #krate::Members>::NEXT_ID),
            (None, None) => quote!(0),
        };
        let ids = self.fields.iter().map(|field| &field.id);
        let base_free = self.base.iter().map(|(_, base)| quote!(<#base as #krate::Members>::FREE_ID));
        let base_min = self.base.iter().map(|(_, base)| quote!(<#base as #krate::Members>::MEMBERS_MIN));
        let mins = self.fields.iter().map(|field| {
            let ty = &field.ty;
            if field.optional { quote!(1) } else { quote!(<#ty as #krate::Cdr>::MIN_SIZE) }
        });
        let (encode, decode) = (self.encode_members(), self.decode_members());
        let into = (!self.mutable()).then(|| {
            let into = self.decode_members_into();
            quote! {
                fn decode_members_into(&mut self, input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                    #into
                    ::core::result::Result::Ok(())
                }
            }
        });
        let skip = (!self.mutable()).then(|| {
            let skip = self.skip_members();
            quote! {
                fn skip_members(input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                    #skip
                    ::core::result::Result::Ok(())
                }
            }
        });
        let (member, key_size) = (self.decode_member(), self.key_size());
        let (encode_key, decode_key) = (self.encode_key(), self.decode_key());
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::Members for #ident #type_generics #where_clause {
                const NEXT_ID: u32 = #next;
                const FREE_ID: u32 = {
                    let mut free = 0 #(+ #base_free)*;
                    #(if #ids >= free { free = #ids + 1; })*
                    free
                };
                const MEMBERS_MIN: usize = 0usize #(.saturating_add(#base_min))* #(.saturating_add(#mins))*;
                #[inline] fn encode_members(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                    #encode
                    ::core::result::Result::Ok(())
                }
                #[inline] fn decode_members(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #decode }
                #into
                #skip
                fn decode_member(&mut self, id: u32, key: bool, input: &mut #krate::Decoder<'_>)
                    -> #krate::Result<bool> { #member }
                fn encode_key_members(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                    #encode_key
                    ::core::result::Result::Ok(())
                }
                fn decode_key_members(&mut self, input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                    #decode_key
                    ::core::result::Result::Ok(())
                }
                fn key_members_size(mut size: #krate::KeySize) -> #krate::KeySize { #key_size size }
            }
        }
    }

    fn cdr(&self, input: &DeriveInput, plain: bool) -> TokenStream {
        let (krate, ident) = (self.krate, &input.ident);
        let generics = with_bounds(input, krate);
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let extensibility = self.extensibility.tokens(krate);
        let base = self.base.iter().map(|(member, _)| member);
        let initials = self.fields.iter().map(|Field { member, optional, .. }| {
            if *optional {
                quote!(#member: ::core::option::Option::None)
            } else {
                quote!(#member: #krate::Cdr::initial())
            }
        });
        let (coding, plain_items) = if plain { self.plain_coding() } else { (self.coding(), quote!()) };
        let (fields, last_bound, key_unit) = (self.field_access(), self.last_bound(), self.key_unit());
        let in_order = quote! {
            |input| {
                let mut value = <Self as #krate::Cdr>::initial();
                #krate::Members::decode_key_members(&mut value, input)?;
                ::core::result::Result::Ok(value)
            }
        };
        let final_key = quote!(input.structure(#krate::Extensibility::Final, #in_order));
        let decode_key = match self.extensibility {
            Extensibility::Final => final_key,
            Extensibility::Appendable => quote!(input.structure(#extensibility, #in_order)),
            Extensibility::Mutable => quote! {
                if input.is_bare() { return #final_key; }
                let mut value = <Self as #krate::Cdr>::initial();
                input.mutable(|id, input| #krate::Members::decode_member(&mut value, id, true, input))?;
                ::core::result::Result::Ok(value)
            },
        };
        let recode_key = self.recode_key().map(|members| {
            quote! {
                const RECODES_KEY: bool = true;
                fn recode_key_of_sample(input: &mut #krate::Decoder<'_>, out: &mut #krate::Encoder<'_>)
                    -> #krate::Result<()> {
                    input.structure(#extensibility, |input| out.structure(#extensibility, |out| {
                        #members
                        ::core::result::Result::Ok(())
                    }))
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::Cdr for #ident #type_generics #where_clause {
                const MIN_SIZE: usize = #krate::min_size(#extensibility, <Self as #krate::Members>::MEMBERS_MIN);
                #key_unit
                #plain_items
                #coding
                #[inline] fn initial() -> Self {
                    Self { #(#base: #krate::Cdr::initial(),)* #(#initials,)* }
                }
                fn encode_key(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                    out.structure(#extensibility, |out| #krate::Members::encode_key_members(self, out))
                }
                fn decode_key(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #decode_key }
                #recode_key
                #fields
                #last_bound
                fn key_size(size: #krate::KeySize, _bounds: &[usize]) -> #krate::KeySize {
                    <Self as #krate::Members>::key_members_size(size)
                }
            }
        }
    }

    fn coding(&self) -> TokenStream {
        let (krate, extensibility) = (self.krate, self.extensibility.tokens(self.krate));
        let decode = if self.mutable() {
            quote!(#krate::Members::decode_members(input))
        } else {
            quote!(input.structure(#extensibility, |input| #krate::Members::decode_members(input)))
        };
        let into = (!self.mutable()).then(|| {
            quote! {
                fn decode_into(&mut self, input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                    input.structure(#extensibility, |input| #krate::Members::decode_members_into(self, input))
                }
            }
        });
        quote! {
            fn skip(input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                input.skip_structure(#extensibility, <Self as #krate::Members>::skip_members)
            }
            #[inline] fn encode(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                out.structure(#extensibility, |out| #krate::Members::encode_members(self, out))
            }
            #[inline] fn decode(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #decode }
            #into
        }
    }

    fn plain_coding(&self) -> (TokenStream, TokenStream) {
        let krate = self.krate;
        let types = self.fields.iter().map(|field| &field.ty);
        let first = self
            .fields
            .first()
            .map(|Field { ty, .. }| quote!(const FIRST_ALIGN: usize = <#ty as #krate::Cdr>::FIRST_ALIGN;));
        let coding = quote! {
            #[inline] fn encode(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                #krate::put_plain(self, out)
            }
            #[inline] fn decode(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #krate::take_plain(input) }
            #[inline] fn decode_into(&mut self, input: &mut #krate::Decoder<'_>) -> #krate::Result<()> {
                #krate::take_plain_into(self, input)
            }
            fn skip(input: &mut #krate::Decoder<'_>) -> #krate::Result<()> { #krate::skip_plain::<Self>(input) }
            fn encode_slice(slice: &[Self], out: &mut #krate::Encoder<'_>) -> #krate::Result<()> {
                #krate::put_plain_slice(slice, out)
            }
            fn decode_vec(input: &mut #krate::Decoder<'_>, count: usize) -> #krate::Result<::std::vec::Vec<Self>> {
                #krate::take_plain_vec(input, count)
            }
        };
        (coding, quote! { const PLAIN: bool = true #(&& <#types as #krate::Cdr>::PLAIN)*; #first })
    }
}
