//! Expressions against a sample of each kind of member, and texts that nobody would write.

use taut_base::Error;
use taut_cdr::{FieldKind, FieldValue, Step};

use super::{Expression, MAX_EXPRESSION, is_like};

const COLORS: &[(&str, i64)] = &[("RED", 0), ("BLUE", 5)];

fn kind(path: &[Step]) -> Option<FieldKind> {
    let [Step::Member(name), rest @ ..] = path else { return None };
    match (name.as_str(), rest) {
        ("x" | "y" | "from", []) => Some(FieldKind::Integer),
        ("list", [Step::Element(_)]) => Some(FieldKind::Integer),
        ("at", [Step::Member(name)]) if name == "z" => Some(FieldKind::Float),
        ("near", []) => Some(FieldKind::Single),
        ("ok", []) => Some(FieldKind::Boolean),
        ("grade", []) => Some(FieldKind::Character),
        ("name", []) => Some(FieldKind::String),
        ("color", []) => Some(FieldKind::Enumeration(COLORS)),
        _ => None,
    }
}

/// x 7, y -3, from 0, list [1, 2], at.z 2.5, near 0.1 as `f32`, ok true, grade B, name "boiler 3", color BLUE.
fn value<'v>(path: &[Step]) -> Option<FieldValue<'v>> {
    let [Step::Member(name), rest @ ..] = path else { return None };
    Some(match (name.as_str(), rest) {
        ("x", _) => FieldValue::Integer(7),
        ("y", _) => FieldValue::Integer(-3),
        ("from", _) => FieldValue::Integer(0),
        ("list", [Step::Element(at @ (0 | 1))]) => FieldValue::Integer(*at as i128 + 1),
        ("at", _) => FieldValue::Float(2.5),
        ("near", _) => FieldValue::Float(0.1_f32.into()),
        ("ok", _) => FieldValue::Boolean(true),
        ("grade", _) => FieldValue::Character('B'),
        ("name", _) => FieldValue::String("boiler 3"),
        ("color", _) => FieldValue::Integer(5),
        _ => return None,
    })
}

fn passes(text: &str, parameters: &[&str]) -> bool {
    let filter = Expression::new(text, kind).and_then(|expression| expression.with(parameters));
    filter.unwrap_or_else(|error| panic!("{text}: {error}")).passes(value)
}

fn refusal(text: &str, parameters: &[&str]) -> String {
    match Expression::new(text, kind).and_then(|expression| expression.with(parameters)) {
        Err(Error::BadParameter(text)) => text,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_holds() {
    for text in [
        "x = 7",
        "7 = x",
        "x == +7 and x <> 8 and x != 8",
        "x > 6 AND x >= 7 AND x < 8 AND x <= 7",
        "y = -3 AND x > y",
        "x = 0x7 AND x < 7.5 AND x > 0.65e1 AND x >= .5",
        "at.z = 2.5 AND at.z > 2 AND at.z < x",
        "list[1] = 2 AND list[0] <> 2",
        "ok = TRUE AND ok <> false AND ok = 1",
        "grade = 'B' AND grade < 'C'",
        "name = 'boiler 3' AND name > 'boiler 2'",
        "name LIKE 'boiler%' AND name like '%_3' AND NOT name LIKE 'boiler'",
        "color = 'BLUE' AND color > 'RED' AND color = 5",
        "x BETWEEN 7 AND 7 AND x NOT BETWEEN 8 AND 10 AND at.z BETWEEN 1 AND 3",
        "x = 1 OR y = -3 AND x = 7",
        "NOT (x = 1 OR y = 1)",
        "NOT x = 1 AND NOT NOT x = 7",
        "from = 0",
        "`boiler 3' = name",
    ] {
        assert!(passes(text, &[]), "{text}");
    }
}

#[test]
fn a_number_is_rounded_to_the_f32_that_it_is_compared_with() {
    for text in ["near = 0.1", "0.1 = near", "near BETWEEN 0.1 AND 0.1", "near = %0", "near < 1 AND near > 0"]
    {
        assert!(passes(text, &["0.1"]), "{text}");
    }
    for text in ["near > 0.1", "near < 0.1", "near <> 0.1", "near = 0.10001"] {
        assert!(!passes(text, &[]), "{text}");
    }
}

#[test]
fn an_apostrophe_within_a_text_is_doubled() {
    let is = |name: &'static str, text: &str, parameters: &[&str]| {
        let filter = Expression::new(text, kind).and_then(|expression| expression.with(parameters)).unwrap();
        filter.passes(|_| Some(FieldValue::String(name)))
    };
    for (text, parameter) in [("name = 'it''s'", ""), ("name LIKE 'it''_'", ""), ("`it''s' = name", "")]
        .into_iter()
        .chain(["it's", "'it''s'", " 'it''s' "].map(|parameter| ("name = %0", parameter)))
    {
        assert!(is("it's", text, &[parameter]), "{text} {parameter}");
    }
    assert!(is("'", "name = ''''", &[]) && is("", "name = ''", &[]) && !is("it's", "name = %0", &["it''s"]));
    for parameter in ["'it's'", "'it", "`it", "'a' 'b'", " 'it''s"] {
        let text = refusal("name = %0", &[parameter]);
        assert!(text.contains("name is a string") && text.contains("doubled, as 'it''s'"), "{text}");
    }
    assert!(refusal("x = 'it''s'", &[]).contains("x is a number, 'it''s' is not"));
}

#[test]
fn what_does_not_hold() {
    for text in [
        "x = 8",
        "x = 7 AND y = 7",
        "(x = 7 OR y = 1) AND y = 1",
        "list[2] = 3",
        "list[2] <> 3",
        "name LIKE 'boiler_'",
        "color = 'RED'",
        "x NOT BETWEEN 1 AND 10",
        "list[2] BETWEEN 1 AND 2",
        "list[2] NOT BETWEEN 1 AND 2",
        "NOT (x = 7)",
    ] {
        assert!(!passes(text, &[]), "{text}");
    }
}

#[test]
fn parameters_are_literals_whose_apostrophes_may_be_left_out() {
    assert!(passes("x = %0 AND y < %1 AND %0 > at.z", &["7", "0"]));
    for name in ["'boiler 3'", "boiler 3"] {
        assert!(passes("name = %0", &[name]));
    }
    assert!(passes("color = %1 AND color <> %0", &["RED", "'BLUE'"]) && passes("color = %0", &["5"]));
    assert!(passes("ok = %0", &["true"]) && passes("grade = %0", &["B"]));
    assert!(!passes("name = %0", &["7"]), "a number's text is a text where one is compared");
    assert!(passes("x = %99", &["7"; 100]));
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_reason() {
    for (text, parameters, reason) in [
        ("", &[][..], "is expected"),
        ("x", &[], "a comparison is expected"),
        ("x =", &[], "a member, a value or a parameter is expected"),
        ("x = 7 y", &[], "at byte 6: AND, OR or the end"),
        ("(x = 7", &[], "a closing parenthesis"),
        ("x = 7)", &[], "at byte 5"),
        ("w = 7", &[], "at byte 0: the type has no member w"),
        ("at = 7", &[], "no member at that can be compared"),
        ("at. = 7", &[], "the name of a member is missing"),
        ("list[x] = 7", &[], "an element is [number]"),
        ("x = 'seven'", &[], "x is a number, 'seven' is not"),
        ("x = TRUE", &[], "x is a number, true is not"),
        ("ok = 2", &[], "ok is a boolean"),
        ("grade = 'BB'", &[], "grade is a character"),
        ("name = 3", &[], "name is a string, 3 is not"),
        ("x = name", &[], "x is a number and name is a string"),
        ("color = 'GREEN'", &[], "color is one of RED, BLUE, not GREEN"),
        ("x LIKE '7'", &[], "x is a number"),
        ("x LIKE y", &[], "LIKE compares a string"),
        ("7 = 7", &[], "one side of a comparison is a member"),
        ("x = %0", &[], "%0 is missing"),
        ("x = %0", &["'7"], "x is a number"),
        ("x = %100", &[], "a parameter is %0 to %99"),
        ("name = 'boiler", &[], "the apostrophe that ends the text is missing"),
        ("x = 1e", &[], "`1e` is no number"),
        ("x ; 7", &[], "`;` has no meaning"),
        ("x BETWEEN 1", &[], "AND is expected"),
        ("x NOT = 1", &[], "a comparison is expected"),
    ] {
        let refusal = refusal(text, parameters);
        assert!(refusal.contains(reason), "{text}: {refusal}");
    }
    assert!(refusal("x = 7", &["0"; 101]).contains("100 at most"));
}

#[test]
fn texts_that_are_meant_to_break_it_are_refused_or_answered() {
    let deep = |n: usize| format!("{}x = 7{}", "(".repeat(n), ")".repeat(n));
    assert!(passes(&deep(64), &[]));
    assert!(refusal(&deep(65), &[]).contains("64 deep"));
    assert!(refusal(&deep(10_000), &[]).contains("64 deep"));
    assert!(refusal(&"NOT ".repeat(8_000), &[]).contains("64 deep"));
    // A type may hold itself.
    assert!(refusal(&format!("{}v = 1", "n.".repeat(16_000)), &[]).contains("128 members"));
    assert!(refusal(&" ".repeat(MAX_EXPRESSION + 1), &[]).contains("longer than"));
    assert!(passes(&vec!["x = 7"; 2_500].join(" AND "), &[]));
    assert!(passes(&format!("name LIKE '{}3'", "%".repeat(30_000)), &[]));
}

#[test]
fn like_is_what_trying_everything_says() {
    fn slow(text: &[u8], pattern: &[u8]) -> bool {
        match (text, pattern) {
            (_, [b'%', rest @ ..]) => (0..=text.len()).any(|at| slow(&text[at..], rest)),
            ([_, text @ ..], [b'_', rest @ ..]) => slow(text, rest),
            ([one, text @ ..], [other, rest @ ..]) => one == other && slow(text, rest),
            (text, pattern) => text.is_empty() && pattern.is_empty(),
        }
    }
    let mut random = fastrand::Rng::with_seed(4);
    let mut word = |of: &str| -> String {
        (0..random.usize(..7)).map(|_| of.as_bytes()[random.usize(..of.len())] as char).collect()
    };
    let mut found = 0;
    for _ in 0..20_000 {
        let (text, pattern) = (word("ab"), word("ab%_"));
        let expected = slow(text.as_bytes(), pattern.as_bytes());
        found += usize::from(expected);
        assert_eq!(is_like(&text, &pattern), expected, "{text} LIKE {pattern}");
    }
    assert!(found > 1_000);
}

#[test]
fn no_text_breaks_it() {
    const WORDS: [&str; 24] = [
        "x", "name", "list", "[", "]", ".", "0", "7", "-", "0x", "e", "'", "`", "%", "=", "<", ">", "(", ")",
        " ", "AND ", "NOT ", "BETWEEN ", "ü",
    ];
    let mut random = fastrand::Rng::with_seed(9);
    let mut accepted = 0;
    for _ in 0..50_000 {
        let text: String = (0..random.usize(..12)).map(|_| *random.choice(&WORDS).unwrap()).collect();
        if let Ok(filter) = Expression::new(&text, kind).and_then(|expression| expression.with(&["1"])) {
            filter.passes(value);
            accepted += 1;
        }
    }
    assert!(accepted > 10, "{accepted}");
}
