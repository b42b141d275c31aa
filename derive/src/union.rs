//! Unions: a Rust enum with data, chosen by a discriminator that is on the wire.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    DataEnum, DeriveInput, Error, Expr, ExprUnary, Field, Fields, Ident, Lit, Path, Result, Type, UnOp,
    Variant,
};

use crate::attributes::{Extensibility, MemberAttributes, TypeAttributes, asserted, bounds_fit, check_id};

/// A variant as the code below needs it.
struct Case<'a> {
    name: &'a Ident,
    /// The member's name (for a tuple variant there is none) and type.
    value: Option<(Option<&'a Ident>, &'a Type)>,
    /// Does it keep the discriminator?
    keeps: bool,
    labels: Vec<Expr>,
    default: bool,
    /// What a default was told to write.
    default_label: Option<Expr>,
    /// What is written when the variant does not keep the discriminator.
    label: Option<TokenStream>,
    id: u32,
    bounds: TokenStream,
}

struct Union<'a> {
    krate: &'a Path,
    ident: &'a Ident,
    discriminator: &'a Type,
    extensibility: Extensibility,
    key: bool,
    cases: Vec<Case<'a>>,
}

/// What is on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All of it.
    Sample,
    /// Of the value what is key in it.
    Key,
    /// The discriminator, which is the key.
    Discriminator,
}

pub fn expand(input: &DeriveInput, attributes: &TypeAttributes, data: &DataEnum) -> Result<TokenStream> {
    let Some(discriminator) = &attributes.discriminator else {
        let text = "a union names the type of its discriminator: #[dds(union, discriminator = i32, final)]";
        return Err(Error::new_spanned(&input.ident, text));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "a union has no type parameters"));
    }
    let extensibility = attributes.extensibility()?;
    let mut cases = Vec::new();
    for variant in &data.variants {
        let case = Case::parse(variant, cases.last())?;
        case.check_against(&cases)?;
        cases.push(case);
    }
    if cases.iter().filter(|case| case.default).count() > 1 {
        return Err(Error::new_spanned(&input.ident, "only one variant is the default"));
    }
    if attributes.key {
        cases.iter().try_for_each(Case::check_keeps_key)?;
    }
    name_default(&mut cases)?;
    let (krate, ident, key) = (&attributes.krate, &input.ident, attributes.key);
    let union = Union { krate, ident, discriminator, extensibility, key, cases };
    let dds_type = attributes.dds_type(input, extensibility, quote!(#key));
    let (select, cdr, checks) = (union.select(), union.cdr(), union.checks());
    Ok(quote! { #dds_type #select #cdr #checks })
}

impl<'a> Case<'a> {
    fn parse(variant: &'a Variant, before: Option<&Case<'_>>) -> Result<Case<'a>> {
        let mut read = MemberAttributes::parse(&variant.attrs)?;
        read.only(&["case", "default", "id", "bound", "name"], "a variant of a union")?;
        let mut keeps = false;
        let mut values: Vec<&Field> = Vec::new();
        for field in &variant.fields {
            if field.ident.as_ref().is_some_and(|name| name == "discriminator") {
                keeps = true;
                MemberAttributes::parse(&field.attrs)?.only(&[], "a kept discriminator")?;
            } else {
                values.push(field);
            }
        }
        if values.len() > 1 {
            return Err(Error::new_spanned(
                variant,
                "a member of a union has one value; put more into a structure",
            ));
        }
        if read.cases.is_empty() && !read.default {
            return Err(Error::new_spanned(
                variant,
                "which discriminator? #[dds(case = N)] or #[dds(default)]",
            ));
        }
        if let (Fields::Unnamed(fields), true) = (&variant.fields, keeps) {
            return Err(Error::new_spanned(fields, "a kept discriminator needs named fields"));
        }
        if let Some(field) = values.first() {
            let of_field = MemberAttributes::parse(&field.attrs)?;
            of_field.only(
                &["bound", "external", "name"],
                "the value of a variant, beside those of the variant",
            )?;
            if !read.bounds.is_empty() && !of_field.bounds.is_empty() {
                let text = "a bound is written of the variant and of its value: take one of them out";
                return Err(Error::new_spanned(variant, text));
            }
            read.bounds.extend(of_field.bounds);
        } else if !read.bounds.is_empty() {
            return Err(Error::new_spanned(variant, "a bound says nothing of a variant without a value"));
        }
        // XTypes 1.3 §7.3.1.2.1.1: an id that is not written out follows from the member before; 0 is the discriminator.
        let id = read.id.unwrap_or_else(|| before.map_or(0, |case| case.id).saturating_add(1));
        let label = read.cases.first().or(read.default_label.as_ref()).map(|expr| quote!(#expr));
        Ok(Case {
            name: &variant.ident,
            value: values.first().map(|field| (field.ident.as_ref(), &field.ty)),
            keeps,
            bounds: read.bounds_tokens(),
            labels: read.cases,
            default: read.default,
            default_label: read.default_label,
            label,
            id,
        })
    }

    /// Refuses an id or a discriminator that one of those before has.
    fn check_against(&self, before: &[Case<'_>]) -> Result<()> {
        check_id(self.id, self.name)?;
        if self.id == 0 {
            return Err(Error::new_spanned(self.name, "the id 0 is that of the discriminator"));
        }
        if before.iter().any(|case| case.id == self.id) {
            return Err(Error::new_spanned(self.name, "another member has the same id"));
        }
        for (index, label) in self.discriminators().enumerate() {
            let earlier =
                before.iter().flat_map(Case::discriminators).chain(self.discriminators().take(index));
            if earlier.into_iter().any(|other| is_same(label, other)) {
                return Err(Error::new_spanned(label, "another variant is chosen by the same discriminator"));
            }
        }
        Ok(())
    }

    /// Refuses it if keys that differ would be one: it stands for several, and is written as one of them.
    fn check_keeps_key(&self) -> Result<()> {
        if !self.keeps && (self.default || self.labels.len() > 1) {
            let text = "the discriminator is the key, and this variant has several, or is the default: it must keep which it was, as \
                        Name { discriminator: T, value: U }";
            return Err(Error::new_spanned(self.name, text));
        }
        Ok(())
    }

    /// Those that choose it, and what a default writes.
    fn discriminators(&self) -> impl Iterator<Item = &Expr> {
        self.labels.iter().chain(&self.default_label)
    }

    /// A pattern or expression of the variant, with `value` and `discriminator` as its parts.
    fn form(&self, discriminator: TokenStream, value: TokenStream) -> TokenStream {
        let name = self.name;
        let keep = self.keeps.then(|| quote!(discriminator: #discriminator,));
        match self.value {
            Some((Some(field), _)) => quote!(Self::#name { #keep #field: #value }),
            Some((None, _)) => quote!(Self::#name(#value)),
            None if self.keeps => quote!(Self::#name { #keep }),
            None => quote!(Self::#name),
        }
    }
}

/// An integer literal's value.
fn number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(i128::wrapping_neg),
        _ => None,
    }
}

/// Are they the same discriminator, as far as can be seen without their values?
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => quote!(#one).to_string() == quote!(#other).to_string(),
    }
}

/// Finds a label for a default that neither keeps nor names one: the least number that no case has.
fn name_default(cases: &mut [Case<'_>]) -> Result<()> {
    let taken: Option<Vec<i128>> = cases.iter().flat_map(|case| &case.labels).map(number).collect();
    for case in cases.iter_mut().filter(|case| case.label.is_none()) {
        let free = taken.as_ref().and_then(|taken| (0i128..).find(|n| !taken.contains(n)));
        let Some(free) = free else {
            let text = "say which discriminator the default writes: #[dds(default = LABEL)]";
            return Err(Error::new_spanned(case.name, text));
        };
        let free = proc_macro2::Literal::i128_unsuffixed(free);
        case.label = Some(quote!(#free));
    }
    Ok(())
}

impl Union<'_> {
    /// A condition: does `discriminator` select this case?
    fn selects(&self, case: &Case<'_>) -> TokenStream {
        let labels = &case.labels;
        if !case.default {
            return quote!(false #(|| discriminator == (#labels))*);
        }
        let others = self.cases.iter().filter(|other| !other.default).flat_map(|other| &other.labels);
        quote!(true #(&& discriminator != (#others))*)
    }

    /// A function from a discriminator to the variant with its initial value.
    fn select(&self) -> TokenStream {
        let (krate, ident, discriminator) = (self.krate, self.ident, self.discriminator);
        let arms = self.cases.iter().map(|case| {
            let (selects, made) =
                (self.selects(case), case.form(quote!(discriminator), quote!(#krate::Cdr::initial())));
            quote!(if #selects { return ::core::result::Result::Ok(#made); })
        });
        quote! {
            trait __Select: ::core::marker::Sized { fn select(discriminator: #discriminator) -> #krate::Result<Self>; }
            impl __Select for #ident {
                fn select(discriminator: #discriminator) -> #krate::Result<Self> {
                    #(#arms)*
                    ::core::result::Result::Err(#krate::CdrError::InvalidDiscriminator)
                }
            }
        }
    }

    fn encode(&self, form: Form) -> TokenStream {
        let (krate, mutable) = (self.krate, self.extensibility == Extensibility::Mutable);
        let discriminator = self.discriminator;
        let arms = self.cases.iter().map(|case| {
            let pattern = case.form(quote!(kept), quote!(value));
            let (label, id, bounds) = (&case.label, case.id, &case.bounds);
            let chosen = if case.keeps {
                let selects = self.selects(case);
                quote! {
                    let discriminator: #discriminator = ::core::clone::Clone::clone(kept);
                    if !(#selects) { return ::core::result::Result::Err(#krate::CdrError::InvalidDiscriminator); }
                }
            } else {
                quote!(let discriminator: #discriminator = #label;)
            };
            let first = if mutable {
                quote!(out.key_member(0, false, &discriminator)?;)
            } else {
                quote!(#krate::Cdr::encode(&discriminator, out)?;)
            };
            let second = case.value.filter(|_| form != Form::Discriminator).map(|_| {
                let write = match (mutable, form) {
                    (false, Form::Sample) => quote!(#krate::Cdr::encode(value, out)?;),
                    (false, _) => quote!(#krate::Cdr::encode_key(value, out)?;),
                    (true, Form::Sample) => quote!(out.member(#id, false, value)?;),
                    (true, _) => quote!(out.key_member(#id, false, value)?;),
                };
                quote!(#krate::Cdr::check_bounds(value, #bounds)?; #write)
            });
            quote!(#pattern => { #chosen #first #second })
        });
        let extensibility = self.extensibility.tokens(krate);
        quote! { out.structure(#extensibility, |out| { match self { #(#arms)* } ::core::result::Result::Ok(()) }) }
    }

    fn decode(&self, form: Form) -> TokenStream {
        if self.extensibility != Extensibility::Mutable {
            return self.decode_in_order(form, self.extensibility);
        }
        let by_id = self.decode_mutable(form);
        if form == Form::Sample {
            return by_id;
        }
        let bare = self.decode_in_order(form, Extensibility::Final);
        quote! {
            if input.is_bare() { return #bare; }
            #by_id
        }
    }

    fn decode_in_order(&self, form: Form, extensibility: Extensibility) -> TokenStream {
        let (krate, discriminator) = (self.krate, self.discriminator);
        let is_appendable = extensibility == Extensibility::Appendable;
        let extensibility = extensibility.tokens(krate);
        if form == Form::Discriminator {
            return quote! {
                input.structure(#extensibility, |input| {
                    let discriminator: #discriminator = #krate::Cdr::decode(input)?;
                    <Self as __Select>::select(discriminator)
                })
            };
        }
        let read = match (is_appendable, form) {
            (false, Form::Sample) => quote!(#krate::Cdr::decode(input)?),
            (false, _) => quote!(#krate::Cdr::decode_key(input)?),
            (true, Form::Sample) => quote!(input.appended()?),
            (true, _) => quote!(if input.is_key_over() {
                #krate::Cdr::initial()
            } else {
                #krate::Cdr::decode_key(input)?
            }),
        };
        let arms = self.cases.iter().map(|case| {
            let (selects, bounds) = (self.selects(case), &case.bounds);
            let value = case
                .value
                .map(|(_, ty)| quote!(let value: #ty = #read; #krate::Cdr::check_bounds(&value, #bounds)?;));
            let made = case.form(quote!(discriminator), quote!(value));
            quote!(if #selects { #value return ::core::result::Result::Ok(#made); })
        });
        quote! {
            input.structure(#extensibility, |input| {
                let discriminator: #discriminator = #krate::Cdr::decode(input)?;
                #(#arms)*
                ::core::result::Result::Err(#krate::CdrError::InvalidDiscriminator)
            })
        }
    }

    fn decode_mutable(&self, form: Form) -> TokenStream {
        let (krate, discriminator) = (self.krate, self.discriminator);
        let read = match form {
            Form::Key => quote!(#krate::Cdr::decode_key(input)?),
            _ => quote!(#krate::Cdr::decode(input)?),
        };
        let members = self.cases.iter().filter(|case| case.value.is_some());
        let arms = (0_u32..).zip(members).map(|(place, case)| {
            let (pattern, id, bounds) = (case.form(quote!(_), quote!(value)), case.id, &case.bounds);
            quote! {
                ::core::option::Option::Some(#pattern) if !is_read && (id == #id || id == #place) => {
                    *value = #read;
                    #krate::Cdr::check_bounds(value, #bounds)?;
                    is_read = true;
                    ::core::result::Result::Ok(true)
                }
            }
        });
        // XTypes 1.3 §7.4.3.5.3: the discriminator, whose id is 0, comes first, then what it selects: by its id, or by its
        // place, as some number members from 0, too.
        quote! {
            let mut made: ::core::option::Option<Self> = ::core::option::Option::None;
            let mut is_read = false;
            input.mutable(|id, input| match &mut made {
                ::core::option::Option::None if id == 0 => {
                    let discriminator: #discriminator = #krate::Cdr::decode(input)?;
                    made = ::core::option::Option::Some(<Self as __Select>::select(discriminator)?);
                    ::core::result::Result::Ok(true)
                }
                ::core::option::Option::None => ::core::result::Result::Err(#krate::CdrError::InvalidDiscriminator),
                #(#arms)*
                _ => ::core::result::Result::Ok(false),
            })?;
            made.ok_or(#krate::CdrError::InvalidDiscriminator)
        }
    }

    /// Past a discriminator and what it chooses.
    fn skip(&self) -> TokenStream {
        let (krate, extensibility) = (self.krate, self.extensibility.tokens(self.krate));
        let discriminator = self.discriminator;
        if self.extensibility == Extensibility::Mutable {
            return quote!(input.skip_structure(#extensibility, |_| ::core::result::Result::Ok(())));
        }
        let arms = self.cases.iter().map(|case| {
            let selects = self.selects(case);
            let value = case.value.map(|(_, ty)| match self.extensibility {
                Extensibility::Appendable => quote!(input.skip_appended::<#ty>()?;),
                _ => quote!(<#ty as #krate::Cdr>::skip(input)?;),
            });
            quote!(if #selects { #value return ::core::result::Result::Ok(()); })
        });
        quote! {
            input.skip_structure(#extensibility, |input| {
                let discriminator: #discriminator = #krate::Cdr::decode(input)?;
                #(#arms)*
                ::core::result::Result::Err(#krate::CdrError::InvalidDiscriminator)
            })
        }
    }

    fn key_size(&self) -> TokenStream {
        let (krate, discriminator) = (self.krate, self.discriminator);
        let first = quote!(let size = <#discriminator as #krate::Cdr>::key_size(size, &[]););
        if self.key {
            return quote!(#first size);
        }
        let values = self.cases.iter().filter_map(|case| {
            let ((_, ty), bounds) = (case.value?, &case.bounds);
            Some(quote!(if !all.exceeds_hash() { all = all.max(<#ty as #krate::Cdr>::key_size(size, #bounds)); }))
        });
        quote!(#first let mut all = size; #(#values)* all)
    }

    /// What only the compiler can see: which bounds the values take.
    fn checks(&self) -> TokenStream {
        let checks =
            self.cases.iter().filter_map(|case| Some(bounds_fit(self.krate, case.value?.1, &case.bounds)));
        asserted(self.ident, &checks.collect::<Vec<_>>())
    }

    fn cdr(&self) -> TokenStream {
        let (krate, ident, discriminator) = (self.krate, self.ident, self.discriminator);
        let extensibility = self.extensibility.tokens(krate);
        let (encode, decode) = (self.encode(Form::Sample), self.decode(Form::Sample));
        let key = if self.key { Form::Discriminator } else { Form::Key };
        let (encode_key, decode_key) = (self.encode(key), self.decode(key));
        let (skip, key_size) = (self.skip(), self.key_size());
        let first = self.cases.first().map(|case| {
            let label = &case.label;
            case.form(quote!(#label), quote!(#krate::Cdr::initial()))
        });
        quote! {
            #[automatically_derived]
            impl #krate::Cdr for #ident {
                const MIN_SIZE: usize =
                    #krate::min_size(#extensibility, <#discriminator as #krate::Cdr>::MIN_SIZE);
                fn encode(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> { #encode }
                fn decode(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #decode }
                fn skip(input: &mut #krate::Decoder<'_>) -> #krate::Result<()> { #skip }
                fn initial() -> Self {
                    let chosen = <Self as __Select>::select(<#discriminator as #krate::Cdr>::initial());
                    chosen.unwrap_or_else(|_| #first)
                }
                fn encode_key(&self, out: &mut #krate::Encoder<'_>) -> #krate::Result<()> { #encode_key }
                fn decode_key(input: &mut #krate::Decoder<'_>) -> #krate::Result<Self> { #decode_key }
                fn key_size(size: #krate::KeySize, _bounds: &[usize]) -> #krate::KeySize { #key_size }
            }
        }
    }
}
