//! Members by their way from the sample, in everything that can be derived.

use taut_cdr::{Cdr, Char, FieldKind, FieldValue, Step, WString};
use taut_derive::DdsType;

#[derive(DdsType, Clone, Copy)]
#[dds(crate = taut_cdr)]
enum Color {
    Red = 1,
    #[dds(name = "GREEN")]
    Green = 4,
}

#[derive(DdsType)]
#[dds(final, crate = taut_cdr)]
struct Point {
    x: f32,
    y: f64,
}

#[derive(DdsType)]
#[dds(mutable, crate = taut_cdr)]
struct Base {
    id: u64,
}

#[derive(DdsType)]
#[dds(mutable, crate = taut_cdr)]
struct All {
    #[dds(base)]
    base: Base,
    r#type: i8,
    #[dds(name = "isOn")]
    on: bool,
    letter: Char,
    text: String,
    wide: WString,
    color: Color,
    at: Point,
    path: Vec<Point>,
    grid: [[u16; 3]; 2],
    maybe: Option<Point>,
    #[dds(external)]
    far: Box<Point>,
}

fn sample() -> All {
    let point = |x| Point { x, y: -0.5 };
    All {
        base: Base { id: u64::MAX },
        r#type: -8,
        on: true,
        letter: Char(b'q'),
        text: "text".into(),
        wide: "wide".into(),
        color: Color::Green,
        at: point(1.0),
        path: vec![point(2.0), point(3.0)],
        grid: [[1, 2, 3], [4, 5, 6]],
        maybe: None,
        far: Box::new(point(4.0)),
    }
}

/// `a.b[1]` as steps.
fn way(text: &str) -> Vec<Step> {
    let steps = text.split(['.', '[']).map(|step| match step.strip_suffix(']') {
        Some(at) => Step::Element(at.parse().unwrap()),
        None => Step::Member(step.into()),
    });
    steps.collect()
}

#[test]
fn each_member_is_found_by_its_way() {
    use FieldKind as Kind;
    use FieldValue as Value;
    const COLORS: &[(&str, i64)] = &[("Red", 1), ("GREEN", 4)];
    let all = sample();
    for (text, kind, value) in [
        ("id", Kind::Integer, Some(Value::Integer(u64::MAX.into()))),
        ("type", Kind::Integer, Some(Value::Integer(-8))),
        ("isOn", Kind::Boolean, Some(Value::Boolean(true))),
        ("letter", Kind::Character, Some(Value::Character('q'))),
        ("text", Kind::String, Some(Value::String("text"))),
        ("wide", Kind::String, Some(Value::String("wide"))),
        ("color", Kind::Enumeration(COLORS), Some(Value::Integer(4))),
        ("at.x", Kind::Single, Some(Value::Float(1.0))),
        ("path[1].x", Kind::Single, Some(Value::Float(3.0))),
        ("path[2].x", Kind::Single, None),
        ("grid[1][2]", Kind::Integer, Some(Value::Integer(6))),
        ("maybe.y", Kind::Float, None),
        ("far.y", Kind::Float, Some(Value::Float(-0.5))),
    ] {
        let way = way(text);
        assert_eq!((All::field_kind(&way), all.field(&way)), (Some(kind), value), "{text}");
    }
    let with = All { maybe: Some(Point { x: 9.0, y: 0.0 }), ..all };
    assert_eq!(with.field(&way("maybe.x")), Some(FieldValue::Float(9.0)));
}

#[test]
fn what_is_no_member_is_none() {
    let all = sample();
    for text in [
        "none",
        "at",
        "at.z",
        "at[0]",
        "path",
        "path.x",
        "grid[2][0]",
        "grid[0][3]",
        "on",
        "base.id",
        "text.x",
        "id[0]",
    ] {
        assert_eq!((All::field_kind(&way(text)), all.field(&way(text))), (None, None), "{text}");
    }
    assert_eq!((All::field_kind(&[]), all.field(&[])), (None, None));
}
