//! What the derive refuses, and whether it says what to do instead.

use syn::parse_quote;

fn refusal(input: syn::DeriveInput) -> String {
    crate::expand(&input).expect_err("must be refused").to_string()
}

#[test]
fn asks_for_the_extensibility() {
    let text = refusal(parse_quote! { struct A { x: i32 } });
    assert!(text.contains("#[dds(final)]") && text.contains("#[dds(appendable)]"), "{text}");
    assert!(text.contains("#[dds(mutable)]"), "{text}");
    let text = refusal(parse_quote! { #[dds(union, discriminator = i32)] enum A { #[dds(case = 1)] B } });
    assert!(text.contains("must be written out"), "{text}");
    let text = refusal(parse_quote! { #[dds(final, mutable)] struct A { x: i32 } });
    assert!(text.contains("only one of"), "{text}");
}

#[test]
fn names_the_words_it_knows() {
    assert!(refusal(parse_quote! { #[dds(finel)] struct A {} }).contains("final, appendable"));
    assert!(refusal(parse_quote! { #[dds(final)] struct A { #[dds(keys)] x: i32 } }).contains("key, id"));
}

#[test]
fn refuses_wrong_members() {
    let text =
        refusal(parse_quote! { #[dds(final)] struct A { #[dds(id = 1)] a: u8, #[dds(id = 1)] b: u8 } });
    assert!(text.contains("same id"), "{text}");
    let text = refusal(parse_quote! { #[dds(final)] struct A { a: u8, #[dds(id = 0)] b: u8 } });
    assert!(text.contains("same id"), "{text}");
    let text = refusal(parse_quote! { #[dds(mutable)] struct A { #[dds(id = 0x10000000)] a: u8 } });
    assert!(text.contains("28 bits"), "{text}");
    let text = refusal(parse_quote! { #[dds(mutable)] struct A { #[dds(id = 0x0fffffff)] a: u8, b: u8 } });
    assert!(text.contains("28 bits"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, mutable, discriminator = u8)]
        enum A { #[dds(case = 1, id = 0x0fffffff)] B(u8), #[dds(case = 2)] C(u8) }
    });
    assert!(text.contains("28 bits"), "{text}");
    let text = refusal(parse_quote! { #[dds(final)] struct A { #[dds(key)] a: Option<u8> } });
    assert!(text.contains("cannot be optional"), "{text}");
    let text = refusal(parse_quote! { #[dds(final)] struct A { #[dds(optional)] a: u8 } });
    assert!(text.contains("Option<T>"), "{text}");
    let text = refusal(parse_quote! { #[dds(final)] struct A { #[dds(external)] a: u8 } });
    assert!(text.contains("Box<T>"), "{text}");
    let text = refusal(parse_quote! { #[dds(final)] struct A { a: u8, #[dds(base)] b: B } });
    assert!(text.contains("first member"), "{text}");
    let text = refusal(parse_quote! { #[dds(appendable, plain)] struct A { a: u8 } });
    assert!(text.contains("final structures"), "{text}");
}

#[test]
fn what_is_not_plain_is_refused_as_the_manual_says() {
    const PAGE: &str = include_str!("../../docs/types.md");
    let other = refusal(parse_quote! { #[dds(final, plain)] struct A { a: Option<u8> } });
    let generic = refusal(parse_quote! { #[dds(final, plain)] struct A<T> { a: T } });
    let accepted = crate::expand(&parse_quote! { #[dds(final, plain)] struct A { a: bool } });
    let accepted = accepted.expect("the compiler refuses it by a constant").to_string();
    let constant = accepted.split('"').find(|text| text.starts_with("#[dds(plain)]")).expect("its text");
    // As it stands in the source, over two lines.
    let constant = constant.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
    for text in [other, generic, constant] {
        assert!(PAGE.contains(&format!("| `{text}` |")), "{text}");
    }
}

#[test]
fn refuses_wrong_unions() {
    let text = refusal(parse_quote! { #[dds(final)] enum A { B(u8) } });
    assert!(text.contains("#[dds(union, discriminator"), "{text}");
    let text = refusal(parse_quote! { #[dds(union, final)] enum A { #[dds(case = 1)] B(u8) } });
    assert!(text.contains("discriminator"), "{text}");
    let text = refusal(parse_quote! { #[dds(union, final, discriminator = i32)] enum A { B(u8) } });
    assert!(text.contains("#[dds(case = N)]"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, final, discriminator = Kind)]
        enum A { #[dds(case = Kind::B)] B(u8), #[dds(default)] C }
    });
    assert!(text.contains("#[dds(default = LABEL)]"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, final, discriminator = u8)] enum A { #[dds(case = 1)] B(u8, u8) }
    });
    assert!(text.contains("one value"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, final, discriminator = u8)]
        enum A { #[dds(case = 1, bound = 8)] B { #[dds(bound = 4)] b: String } }
    });
    assert!(text.contains("take one of them out"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, final, discriminator = u8)] enum A { #[dds(case = 1, bound = 8)] B }
    });
    assert!(text.contains("without a value"), "{text}");
}

#[test]
fn refuses_two_defaults() {
    let text = refusal(parse_quote! { enum A { #[dds(default)] B, C, #[dds(default)] D } });
    assert!(text.contains("only one literal is the default"), "{text}");
    let text = refusal(parse_quote! {
        #[dds(union, final, discriminator = u8)]
        enum A { #[dds(default)] B(u8), #[dds(default)] C }
    });
    assert!(text.contains("only one variant is the default"), "{text}");
}

#[test]
fn refuses_members_of_a_union_that_cannot_be_told_apart() {
    for (labels, what) in [
        (["case = 1", "case = 0x1"], "same discriminator"),
        (["case = 1", "case = [2, 1]"], "same discriminator"),
        (["case = [-1, -1]", "case = 2"], "same discriminator"),
        (["case = LOW", "case = LOW"], "same discriminator"),
        (["case = 1", "default = 1"], "same discriminator"),
        (["default = 1", "case = 1"], "same discriminator"),
        (["case = 1, id = 7", "case = 2, id = 7"], "same id"),
        (["case = 1, id = 2", "case = 2, id = 2"], "same id"),
        (["case = 1", "case = 2, id = 0"], "that of the discriminator"),
    ] {
        let [one, other] = labels.map(|label| label.parse::<proc_macro2::TokenStream>().unwrap());
        let text = refusal(parse_quote! {
            #[dds(union, mutable, discriminator = i32)] enum A { #[dds(#one)] B(u8), #[dds(#other)] C(u16) }
        });
        assert!(text.contains(what), "{labels:?}: {text}");
    }
}

/// Two keys would be one instance.
#[test]
fn refuses_a_key_that_is_not_kept() {
    let of = |first: &str, fields: &str| -> syn::DeriveInput {
        let [first, fields] = [first, fields].map(|text| text.parse::<proc_macro2::TokenStream>().unwrap());
        parse_quote! {
            #[dds(union, final, discriminator = i32, key)] enum A { #[dds(#first)] B #fields, #[dds(case = 7)] C }
        }
    };
    for first in ["case = [1, 2]", "default", "default = 3", "case = 1, default"] {
        for fields in ["", "(u8)", "{ value: u8 }"] {
            let text = refusal(of(first, fields));
            assert!(text.contains("must keep which it was"), "{first}: {text}");
        }
        for fields in ["{ discriminator: i32 }", "{ discriminator: i32, value: u8 }"] {
            crate::expand(&of(first, fields)).unwrap();
        }
    }
    crate::expand(&of("case = 1", "(u8)")).unwrap();
}

#[test]
fn refuses_words_where_they_say_nothing() {
    let inputs: [(&str, syn::DeriveInput); 14] = [
        ("a structure", parse_quote! { #[dds(final, key)] struct A { x: u8 } }),
        ("a structure", parse_quote! { #[dds(final, union)] struct A { x: u8 } }),
        ("a structure", parse_quote! { #[dds(final, bit_bound = 8)] struct A { x: u8 } }),
        ("an enumeration", parse_quote! { #[dds(key)] enum A { B } }),
        ("a bit set", parse_quote! { #[dds(bitset, bit_bound = 16)] struct A { #[dds(bits = 8)] a: u8 } }),
        ("a bit mask", parse_quote! { #[dds(bitmask, plain)] struct A(u32); }),
        (
            "a union",
            parse_quote! { #[dds(union, final, discriminator = u8, plain)] enum A { #[dds(case = 1)] B } },
        ),
        ("a member of a structure", parse_quote! { #[dds(final)] struct A { #[dds(default)] x: u8 } }),
        ("a member of a structure", parse_quote! { #[dds(final)] struct A { #[dds(bits = 3)] x: u8 } }),
        ("a base", parse_quote! { #[dds(final)] struct A { #[dds(base, key)] b: B } }),
        ("a literal", parse_quote! { enum A { #[dds(id = 3)] B } }),
        ("a member of a bit set", parse_quote! { #[dds(bitset)] struct A { #[dds(bits = 3, key)] a: u8 } }),
        (
            "a variant",
            parse_quote! {
                #[dds(union, final, discriminator = u8)] enum A { #[dds(case = 1, key)] B(u8) }
            },
        ),
        (
            "the value of a variant",
            parse_quote! {
                #[dds(union, mutable, discriminator = u8)] enum A { #[dds(case = 1)] B { #[dds(id = 3)] b: u8 } }
            },
        ),
    ];
    for (kind, input) in inputs {
        let text = refusal(input);
        assert!(text.contains(&format!("says nothing of {kind}")), "{kind}: {text}");
    }
}

/// Of IDL, with what `docs/types.md` says instead of each. Who writes one is not left to believe that it holds.
#[test]
fn refuses_annotations_that_are_not_there() {
    for word in
        ["hashid", "range", "min", "max", "unit", "non_serialized", "try_construct", "default_literal"]
    {
        let text = refusal(word_on_member(word));
        assert!(text.contains("unknown word; a member takes"), "{word}: {text}");
    }
    for word in ["nested", "topic", "autoid", "data_representation", "verbatim"] {
        let word: proc_macro2::TokenStream = word.parse().unwrap();
        let text = refusal(parse_quote! { #[dds(final, #word)] struct A { x: u8 } });
        assert!(text.contains("unknown word; a type takes"), "{word}: {text}");
    }
    for word in ["default", "default = 5"] {
        let text = refusal(word_on_member(word));
        assert!(text.contains("says nothing of a member of a structure"), "{word}: {text}");
    }
}

fn word_on_member(word: &str) -> syn::DeriveInput {
    let word: proc_macro2::TokenStream = word.parse().unwrap();
    parse_quote! { #[dds(final)] struct A { #[dds(#word)] x: u8 } }
}

#[test]
fn refuses_words_that_are_written_twice() {
    let inputs: [syn::DeriveInput; 7] = [
        parse_quote! { #[dds(mutable)] struct A { #[dds(id = 1, id = 2)] x: u8 } },
        parse_quote! { #[dds(mutable)] struct A { #[dds(id = 1)] #[dds(id = 1)] x: u8 } },
        parse_quote! { #[dds(final)] struct A { #[dds(bound = 1)] #[dds(key, bound = 2)] x: String } },
        parse_quote! { #[dds(final, name = "a", name = "b")] struct A { x: u8 } },
        parse_quote! { #[dds(bit_bound = 8)] #[dds(bit_bound = 16)] enum A { B } },
        parse_quote! { #[dds(bitset)] struct A { #[dds(bits = 3, skip = 2, skip = 3)] a: u8 } },
        parse_quote! {
            #[dds(union, final, discriminator = u8)] enum A { #[dds(default = 1, default = 2)] B }
        },
    ];
    for input in inputs {
        let text = refusal(input);
        assert!(text.contains("is written twice"), "{text}");
    }
}

#[test]
fn accepts_the_rest() {
    let inputs: [syn::DeriveInput; 5] = [
        parse_quote! { #[dds(final, name = "a::B")] struct A<T> { #[dds(key)] r#type: T, b: Option<String> } },
        parse_quote! { #[dds(mutable)] struct A(#[dds(key, must_understand)] u8, #[dds(bound = [1, 2])] Vec<String>); },
        parse_quote! { #[dds(bit_bound = 8)] enum A { B, #[dds(default)] C } },
        parse_quote! {
            #[dds(union, final, discriminator = u8)]
            enum A { #[dds(case = [1, 2], default)] B(u8), #[dds(case = 3)] #[dds(case = 4)] C, }
        },
        parse_quote! { #[dds(bitset)] struct A { #[dds(bits = 3, skip = 2)] a: u8 } },
    ];
    for input in inputs {
        crate::expand(&input).unwrap();
    }
}
