//! Reads the `#[dds(..)]` attributes of types, members and variants.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{
    Attribute, DeriveInput, Error, Expr, ExprArray, GenericArgument, LitInt, LitStr, Path, PathArguments,
    Result, Type,
};

/// How a type may change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extensibility {
    Final,
    Appendable,
    Mutable,
}

/// What stands in `#[dds(..)]` on the type.
pub struct TypeAttributes {
    extensibility: Option<Extensibility>,
    name: Option<String>,
    pub krate: Path,
    pub union: bool,
    pub discriminator: Option<Type>,
    pub key: bool,
    pub bitmask: bool,
    pub bitset: bool,
    pub bit_bound: Option<u32>,
    pub plain: bool,
    ident: String,
    words: Vec<Path>,
}

/// What stands in `#[dds(..)]` on a member or variant.
#[derive(Default)]
pub struct MemberAttributes {
    pub name: Option<String>,
    pub key: bool,
    pub id: Option<u32>,
    pub optional: bool,
    pub external: bool,
    pub must_understand: bool,
    pub base: bool,
    pub bounds: Vec<Expr>,
    pub bits: Option<u32>,
    pub skip: u32,
    pub cases: Vec<Expr>,
    pub default: bool,
    pub default_label: Option<Expr>,
    words: Vec<Path>,
}

/// The greatest member id: 28 bits of the member header (XTypes 1.3 §7.4.1.2.5).
const MAX_ID: u32 = 0x0fff_ffff;

/// Refuses an id that is greater, written out or not, at `place`.
pub fn check_id(id: u32, place: impl ToTokens) -> Result<()> {
    if id > MAX_ID {
        return Err(Error::new_spanned(place, "a member id has 28 bits: at most 0x0fffffff"));
    }
    Ok(())
}

fn integer(meta: &ParseNestedMeta<'_>) -> Result<u32> {
    meta.value()?.parse::<LitInt>()?.base10_parse()
}

fn expressions(meta: &ParseNestedMeta<'_>) -> Result<Vec<Expr>> {
    let value = meta.value()?;
    if value.peek(syn::token::Bracket) {
        return Ok(value.parse::<ExprArray>()?.elems.into_iter().collect());
    }
    Ok(vec![value.parse()?])
}

fn each(attributes: &[Attribute], mut read: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("dds"))
        .try_for_each(|attribute| attribute.parse_nested_meta(|meta| read(&meta)))
}

/// Notes a word. One that is written twice is a mistake: which of them is meant?
fn note(words: &mut Vec<Path>, meta: &ParseNestedMeta<'_>) -> Result<String> {
    let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
    // Labels of a variant may come one by one.
    if word != "case" && words.iter().any(|other| other.is_ident(&word)) {
        return Err(meta.error(format!("{word} is written twice: take one of them out")));
    }
    words.push(meta.path.clone());
    Ok(word)
}

/// What is written where it says nothing is a mistake: a key that is none, a bound that nobody keeps.
fn only(written: &[Path], words: &[&str], kind: &str) -> Result<()> {
    match written.iter().find(|path| !words.iter().any(|word| path.is_ident(word))) {
        Some(path) => {
            Err(Error::new_spanned(path, format!("says nothing of {kind}, which takes {}", words.join(", "))))
        }
        None => Ok(()),
    }
}

impl TypeAttributes {
    pub fn parse(input: &DeriveInput) -> Result<TypeAttributes> {
        let mut out = TypeAttributes {
            extensibility: None,
            name: None,
            krate: syn::parse_quote!(::taut::cdr),
            union: false,
            discriminator: None,
            key: false,
            bitmask: false,
            bitset: false,
            bit_bound: None,
            plain: false,
            ident: input.ident.to_string().trim_start_matches("r#").to_owned(),
            words: Vec::new(),
        };
        each(&input.attrs, |meta| out.read(meta))?;
        Ok(out)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match note(&mut self.words, meta)?.as_str() {
            "final" => self.set_extensibility(meta, Extensibility::Final)?,
            "appendable" => self.set_extensibility(meta, Extensibility::Appendable)?,
            "mutable" => self.set_extensibility(meta, Extensibility::Mutable)?,
            "name" => self.name = Some(meta.value()?.parse::<LitStr>()?.value()),
            "crate" => {
                let value = meta.value()?;
                self.krate = if value.peek(LitStr) {
                    value.parse::<LitStr>()?.parse()?
                } else {
                    value.call(Path::parse_mod_style)?
                };
            }
            "union" => self.union = true,
            "discriminator" => self.discriminator = Some(meta.value()?.parse()?),
            "key" => self.key = true,
            "bitmask" => self.bitmask = true,
            "bitset" => self.bitset = true,
            "bit_bound" => self.bit_bound = Some(integer(meta)?),
            "plain" => self.plain = true,
            _ => {
                return Err(meta.error(
                    "unknown word; a type takes final, appendable, mutable, name, plain, union, discriminator, \
                     key, bitmask, bitset, bit_bound, crate",
                ));
            }
        }
        Ok(())
    }

    fn set_extensibility(&mut self, meta: &ParseNestedMeta<'_>, to: Extensibility) -> Result<()> {
        if self.extensibility.replace(to).is_some() {
            return Err(meta.error("only one of final, appendable, mutable"));
        }
        Ok(())
    }

    /// Refuses words that say nothing of `kind`, beside those that any type takes.
    pub fn only(&self, words: &[&str], kind: &str) -> Result<()> {
        const ANY: [&str; 5] = ["final", "appendable", "mutable", "name", "crate"];
        only(&self.words, &[&ANY, words].concat(), kind)
    }

    /// The extensibility, which structures and unions must write out.
    pub fn extensibility(&self) -> Result<Extensibility> {
        self.extensibility.ok_or_else(|| {
            Error::new(
                Span::call_site(),
                "the extensibility must be written out, because vendors differ in what they assume: \
                 #[dds(final)] (the type never changes), #[dds(appendable)] (members may be added at the \
                 end) or #[dds(mutable)] (members are recognised by their id)",
            )
        })
    }

    /// The extensibility of an enumeration, bit mask or bit set, where it does not change the encoding.
    pub fn extensibility_or_final(&self) -> Extensibility {
        self.extensibility.unwrap_or(Extensibility::Final)
    }

    /// The implementation of `DdsType` for a type with these attributes.
    pub fn dds_type(
        &self,
        input: &DeriveInput,
        extensibility: Extensibility,
        key: TokenStream,
    ) -> TokenStream {
        let (krate, ident) = (&self.krate, &input.ident);
        let name = self.name.as_ref().unwrap_or(&self.ident);
        let extensibility = extensibility.tokens(krate);
        let generics = with_bounds(input, krate);
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let plain_bytes = self.plain.then(|| {
            quote! {
                fn plain_bytes(&self) -> ::core::option::Option<&[u8]> {
                    ::core::option::Option::Some(#krate::bytemuck::bytes_of(self))
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::DdsType for #ident #type_generics #where_clause {
                const TYPE_NAME: &'static str = #name;
                const EXTENSIBILITY: #krate::Extensibility = #extensibility;
                const HAS_KEY: bool = #key;
                #plain_bytes
            }
        }
    }
}

/// An assertion that the type takes so many bounds: one that nobody keeps is a mistake.
pub fn bounds_fit(krate: &Path, ty: &Type, bounds: &TokenStream) -> TokenStream {
    quote! {
        assert!(
            <[usize]>::len(#bounds) <= <#ty as #krate::Cdr>::BOUNDS,
            "a bound says nothing here: strings, sequences and maps take one each, from the outside in"
        )
    }
}

/// Assertions about a type without parameters, in an implementation of it, as what they are of may be called `Self`.
pub fn asserted(ident: &Ident, checks: &[TokenStream]) -> TokenStream {
    if checks.is_empty() {
        return TokenStream::new();
    }
    quote! {
        const _: () = {
            trait __Fits { const FITS: (); }
            impl __Fits for #ident { const FITS: () = { #(#checks;)* }; }
            <#ident as __Fits>::FITS
        };
    }
}

/// The type's generics with `Cdr` asked of each type parameter.
pub fn with_bounds(input: &DeriveInput, krate: &Path) -> syn::Generics {
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(#krate::Cdr));
    }
    generics
}

impl Extensibility {
    pub fn tokens(self, krate: &Path) -> TokenStream {
        match self {
            Extensibility::Final => quote!(#krate::Extensibility::Final),
            Extensibility::Appendable => quote!(#krate::Extensibility::Appendable),
            Extensibility::Mutable => quote!(#krate::Extensibility::Mutable),
        }
    }
}

impl MemberAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<MemberAttributes> {
        let mut out = MemberAttributes::default();
        each(attributes, |meta| out.read(meta))?;
        Ok(out)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match note(&mut self.words, meta)?.as_str() {
            "key" => self.key = true,
            "id" => {
                let id = integer(meta)?;
                check_id(id, &meta.path)?;
                self.id = Some(id);
            }
            "optional" => self.optional = true,
            "external" => self.external = true,
            "must_understand" => self.must_understand = true,
            "base" => self.base = true,
            "bound" => self.bounds = expressions(meta)?,
            "bits" => self.bits = Some(integer(meta)?),
            "skip" => self.skip = integer(meta)?,
            "case" => self.cases.extend(expressions(meta)?),
            "default" => {
                self.default = true;
                if meta.input.peek(syn::Token![=]) {
                    self.default_label = Some(meta.value()?.parse()?);
                }
            }
            "name" => self.name = Some(meta.value()?.parse::<LitStr>()?.value()),
            _ => {
                return Err(meta.error(
                    "unknown word; a member takes key, id, optional, external, bound, must_understand, base, \
                     name, bits, skip, and a variant case, default, id, bound",
                ));
            }
        }
        Ok(())
    }

    /// Refuses words that say nothing of `kind`.
    pub fn only(&self, words: &[&str], kind: &str) -> Result<()> {
        only(&self.words, words, kind)
    }

    /// The bounds as an array expression of `usize`.
    pub fn bounds_tokens(&self) -> TokenStream {
        let bounds = &self.bounds;
        quote!(&[#(#bounds),*])
    }
}

/// The `T` of a type that is written `Name<T>`, with or without a path.
pub fn argument_of<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) => Some(ty),
        _ => None,
    }
}
