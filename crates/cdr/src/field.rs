//! Members by their way from the sample: what content filters compare. DCPS 1.4 Annex B (FIELDNAME).

/// One step of the way from a sample to a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// To a member of a structure, by its name.
    Member(String),
    /// To an element of a sequence or an array.
    Element(usize),
}

/// What can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// `bool`.
    Boolean,
    /// All integers.
    Integer,
    /// `f32`: what it is compared with is rounded to one.
    Single,
    /// `f64`.
    Float,
    /// `Char` and `WChar`.
    Character,
    /// `String` and `WString`.
    String,
    /// An enumeration with its literals; its values are integers.
    Enumeration(&'static [(&'static str, i64)]),
}

/// The value of a member.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FieldValue<'a> {
    /// Of [`FieldKind::Boolean`].
    Boolean(bool),
    /// Of [`FieldKind::Integer`] and [`FieldKind::Enumeration`].
    Integer(i128),
    /// Of [`FieldKind::Float`] and [`FieldKind::Single`].
    Float(f64),
    /// Of [`FieldKind::Character`].
    Character(char),
    /// Of [`FieldKind::String`].
    String(&'a str),
}

/// The rest of a way whose first step leads to an element, and which one.
pub(crate) fn element(path: &[Step]) -> Option<(usize, &[Step])> {
    match path.split_first()? {
        (Step::Element(at), rest) => Some((*at, rest)),
        (Step::Member(_), _) => None,
    }
}
