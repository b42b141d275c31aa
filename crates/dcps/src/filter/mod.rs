//! Filter expressions of content-filtered topics. DCPS 1.4 Annex B.
//!
//! An [`Expression`] is a text whose members were looked up in a type; with its parameters it becomes a
//! [`Filter`], in which each comparison is known to be one of values that compare. Neither knows the type:
//! it is asked by a function. Must never panic, whatever the text, nor follow it deeper than a bound.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::result::Result as Outcome;
use std::sync::Arc;

use taut_base::{Error, Result};
use taut_cdr::{FieldKind, FieldValue, Step};

use lexer::Literal;

/// The longest expression, in bytes: it comes from users, and from peers one day.
pub const MAX_EXPRESSION: usize = 32_768;

/// The most parameters. *Source*: DCPS 1.4 Annex B, `%0` to `%99`.
pub const MAX_PARAMETERS: usize = 100;

/// What an expression asks, over operands of a kind.
#[derive(Clone, Debug)]
enum Node<O> {
    All(Vec<Node<O>>),
    Any(Vec<Node<O>>),
    Not(Box<Node<O>>),
    Compare(O, Relation, O),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
}

/// An operand as it is written. A field is its place in the list of fields.
#[derive(Clone, PartialEq, Debug)]
enum Operand {
    Field(usize),
    Literal(Literal),
    Parameter(usize),
}

/// An operand that can be compared with the one on the other side.
#[derive(Clone, Debug)]
enum Bound {
    Field(usize),
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Character(char),
    String(String),
}

/// A member that an expression names.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    path: Vec<Step>,
    kind: FieldKind,
}

/// An expression over the members of a type.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node<Operand>,
    fields: Arc<[Field]>,
}

/// An expression with its parameters.
///
/// *Semantics*: a comparison with a member that a sample has not (an optional one that is absent, an
/// element behind the last) is false.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node<Bound>,
    fields: Arc<[Field]>,
}

impl Expression {
    /// Reads an expression over a type whose members are looked up by `kind`.
    ///
    /// *Errors*: [`Error::BadParameter`] with the place and what is wrong with it.
    pub fn new(text: &str, kind: impl Fn(&[Step]) -> Option<FieldKind>) -> Result<Expression> {
        let refuse = |(at, what): (usize, String)| {
            Error::BadParameter(format!("the filter expression `{}` at byte {at}: {what}", shown(text)))
        };
        let (root, fields) = parser::parse(text, kind).map_err(refuse)?;
        Ok(Expression { text: text.to_owned(), root, fields: fields.into() })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The filter with these parameters, literals as they are written in an expression; the apostrophes around a
    /// text may be left out, and one within it then stands alone.
    ///
    /// *Errors*: [`Error::BadParameter`] for a parameter that is missing, one too many, or a comparison of what
    /// does not compare.
    pub fn with(&self, parameters: &[&str]) -> Result<Filter> {
        let refuse =
            |what: String| Error::BadParameter(format!("the filter `{}`: {what}", shown(&self.text)));
        if parameters.len() > MAX_PARAMETERS {
            return Err(refuse(format!("{} parameters, {MAX_PARAMETERS} at most", parameters.len())));
        }
        let root = self.bind(&self.root, parameters).map_err(refuse)?;
        Ok(Filter { root, fields: Arc::clone(&self.fields) })
    }

    fn bind(&self, node: &Node<Operand>, parameters: &[&str]) -> Outcome<Node<Bound>, String> {
        let all = |nodes: &[Node<Operand>]| -> Outcome<Vec<_>, String> {
            nodes.iter().map(|node| self.bind(node, parameters)).collect()
        };
        Ok(match node {
            Node::All(nodes) => Node::All(all(nodes)?),
            Node::Any(nodes) => Node::Any(all(nodes)?),
            Node::Not(node) => Node::Not(Box::new(self.bind(node, parameters)?)),
            Node::Compare(left, relation, right) => {
                let (left, right) = self.compared(left, right, parameters)?;
                if *relation == Relation::Like && !self.are_strings(&left, &right) {
                    return Err("LIKE compares a string with a pattern".into());
                }
                Node::Compare(left, *relation, right)
            }
        })
    }

    fn compared(
        &self,
        left: &Operand,
        right: &Operand,
        parameters: &[&str],
    ) -> Outcome<(Bound, Bound), String> {
        match (left, right) {
            (Operand::Field(one), Operand::Field(other)) => {
                let (one_kind, other_kind) = (&self.fields[*one], &self.fields[*other]);
                if class(one_kind.kind) != class(other_kind.kind) {
                    return Err(format!(
                        "{} is {} and {} is {}",
                        one_kind.name,
                        named(one_kind.kind),
                        other_kind.name,
                        named(other_kind.kind)
                    ));
                }
                Ok((Bound::Field(*one), Bound::Field(*other)))
            }
            (Operand::Field(field), other) => {
                Ok((Bound::Field(*field), constant(&self.fields[*field], other, parameters)?))
            }
            (other, Operand::Field(field)) => {
                Ok((constant(&self.fields[*field], other, parameters)?, Bound::Field(*field)))
            }
            _ => Err("one side of a comparison is a member".into()),
        }
    }

    fn are_strings(&self, left: &Bound, right: &Bound) -> bool {
        let is_string = |bound: &Bound| match bound {
            Bound::Field(field) => self.fields[*field].kind == FieldKind::String,
            bound => matches!(bound, Bound::String(_)),
        };
        is_string(left) && is_string(right)
    }
}

/// As much of a text as a message needs.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Kinds with the same number compare.
fn class(kind: FieldKind) -> u8 {
    match kind {
        FieldKind::Integer | FieldKind::Single | FieldKind::Float | FieldKind::Enumeration(_) => 0,
        FieldKind::Boolean => 1,
        FieldKind::Character => 2,
        FieldKind::String => 3,
    }
}

fn named(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Integer | FieldKind::Single | FieldKind::Float => "a number",
        FieldKind::Enumeration(_) => "an enumeration",
        FieldKind::Boolean => "a boolean",
        FieldKind::Character => "a character",
        FieldKind::String => "a string",
    }
}

/// A literal or a parameter as a value that compares with a field.
fn constant(field: &Field, operand: &Operand, parameters: &[&str]) -> Outcome<Bound, String> {
    let literal = match operand {
        Operand::Field(_) => return Err("one side of a comparison is a member".into()),
        Operand::Literal(literal) => literal.clone(),
        Operand::Parameter(number) => {
            let text = parameters.get(*number);
            let text = text.ok_or_else(|| format!("%{number} is missing: {} are given", parameters.len()))?;
            // A text may come without its apostrophes, also one that looks like a number.
            match lexer::literal(text) {
                Some(Literal::Integer(value)) if matches!(field.kind, FieldKind::Enumeration(_)) => {
                    Literal::Integer(value)
                }
                Some(literal @ Literal::String(_)) => literal,
                Some(literal)
                    if class(field.kind) < 2 && !matches!(field.kind, FieldKind::Enumeration(_)) =>
                {
                    literal
                }
                _ if text.trim_start().starts_with(['\'', '`']) => {
                    let (name, kind) = (&field.name, named(field.kind));
                    return Err(format!(
                        "{name} is {kind}, %{number} is {text}: a text in apostrophes has those within doubled, as 'it''s'"
                    ));
                }
                _ => Literal::String((*text).to_owned()),
            }
        }
    };
    let refused = || Err(format!("{} is {}, {literal} is not", field.name, named(field.kind)));
    match (field.kind, &literal) {
        // No `f32` is 0.1: the one that is nearest is meant.
        (FieldKind::Single, Literal::Integer(value)) => Ok(Bound::Float((*value as f32).into())),
        (FieldKind::Single, Literal::Float(value)) => Ok(Bound::Float((*value as f32).into())),
        (FieldKind::Integer | FieldKind::Float | FieldKind::Enumeration(_), Literal::Integer(value)) => {
            Ok(Bound::Integer(*value))
        }
        (FieldKind::Integer | FieldKind::Float, Literal::Float(value)) => Ok(Bound::Float(*value)),
        (FieldKind::Boolean, Literal::Boolean(value)) => Ok(Bound::Boolean(*value)),
        (FieldKind::Boolean, Literal::Integer(value @ (0 | 1))) => Ok(Bound::Boolean(*value == 1)),
        (FieldKind::Character, Literal::String(text)) => {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(one), None) => Ok(Bound::Character(one)),
                _ => refused(),
            }
        }
        (FieldKind::String, Literal::String(text)) => Ok(Bound::String(text.clone())),
        (FieldKind::Enumeration(literals), Literal::String(name)) => {
            match literals.iter().find(|(known, _)| known == name) {
                Some((_, value)) => Ok(Bound::Integer((*value).into())),
                None => {
                    let known: Vec<&str> = literals.iter().map(|(known, _)| *known).collect();
                    Err(format!("{} is one of {}, not {name}", field.name, known.join(", ")))
                }
            }
        }
        _ => refused(),
    }
}

impl Filter {
    /// Does a sample pass whose members are looked up by `value`? *Cost*: at most one look for each operand.
    pub fn passes<'v>(&'v self, value: impl Fn(&[Step]) -> Option<FieldValue<'v>>) -> bool {
        self.holds(&self.root, &value)
    }

    fn holds<'v>(
        &'v self,
        node: &'v Node<Bound>,
        value: &impl Fn(&[Step]) -> Option<FieldValue<'v>>,
    ) -> bool {
        let of = |bound: &'v Bound| match bound {
            Bound::Field(field) => value(&self.fields[*field].path),
            Bound::Boolean(value) => Some(FieldValue::Boolean(*value)),
            Bound::Integer(value) => Some(FieldValue::Integer(*value)),
            Bound::Float(value) => Some(FieldValue::Float(*value)),
            Bound::Character(value) => Some(FieldValue::Character(*value)),
            Bound::String(value) => Some(FieldValue::String(value)),
        };
        match node {
            Node::All(nodes) => nodes.iter().all(|node| self.holds(node, value)),
            Node::Any(nodes) => nodes.iter().any(|node| self.holds(node, value)),
            Node::Not(node) => !self.holds(node, value),
            Node::Compare(left, relation, right) => {
                of(left).zip(of(right)).is_some_and(|(left, right)| relation.holds(left, right))
            }
        }
    }
}

impl Relation {
    fn holds(self, left: FieldValue<'_>, right: FieldValue<'_>) -> bool {
        if self == Relation::Like {
            return match (left, right) {
                (FieldValue::String(text), FieldValue::String(pattern)) => is_like(text, pattern),
                _ => false,
            };
        }
        let order = order(left, right);
        match self {
            Relation::Equal => order == Some(Ordering::Equal),
            Relation::NotEqual => order != Some(Ordering::Equal),
            Relation::Less => order == Some(Ordering::Less),
            Relation::LessOrEqual => order.is_some_and(Ordering::is_le),
            Relation::Greater => order == Some(Ordering::Greater),
            Relation::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Relation::Like => false,
        }
    }
}

/// `None` for what has no order, as NaN.
fn order(left: FieldValue<'_>, right: FieldValue<'_>) -> Option<Ordering> {
    match (left, right) {
        (FieldValue::Integer(left), FieldValue::Integer(right)) => Some(left.cmp(&right)),
        (FieldValue::Float(left), FieldValue::Float(right)) => left.partial_cmp(&right),
        (FieldValue::Integer(left), FieldValue::Float(right)) => (left as f64).partial_cmp(&right),
        (FieldValue::Float(left), FieldValue::Integer(right)) => left.partial_cmp(&(right as f64)),
        (FieldValue::Boolean(left), FieldValue::Boolean(right)) => Some(left.cmp(&right)),
        (FieldValue::Character(left), FieldValue::Character(right)) => Some(left.cmp(&right)),
        (FieldValue::String(left), FieldValue::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Is the text like the pattern, in which `%` is any characters and `_` is one?
///
/// *Cost*: at most length times length. After a mismatch only the last `%` is tried longer: whatever an
/// earlier one could take instead, the last can take too.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut last = None;
    loop {
        let before = text.clone();
        match (pattern.next(), text.next()) {
            (Some('%'), _) => {
                last = Some((before.clone(), pattern.clone()));
                text = before;
            }
            (Some('_'), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            (None, None) => return true,
            (Some(_), None) => return false,
            (_, Some(_)) => {
                let Some((taken, after)) = &mut last else { return false };
                taken.next();
                (text, pattern) = (taken.clone(), after.clone());
            }
        }
    }
}
