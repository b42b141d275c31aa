//! From the words of a filter expression to what it asks.

use std::iter::Peekable;

use taut_cdr::{FieldKind, Step};

use super::lexer::{Lexer, Token, Wrong};
use super::{Field, MAX_EXPRESSION, Node, Operand, Relation};

/// How deep parentheses and NOT may stand in each other: more is no expression that a person wrote, and
/// each takes a piece of the stack.
const MAX_DEPTH: usize = 64;

type Parsed = Result<Node<Operand>, Wrong>;

struct Parser<'t, K> {
    words: Peekable<Lexer<'t>>,
    end: usize,
    kind: K,
    fields: Vec<Field>,
    depth: usize,
}

/// An expression and the fields that it names.
pub fn parse(
    text: &str,
    kind: impl Fn(&[Step]) -> Option<FieldKind>,
) -> Result<(Node<Operand>, Vec<Field>), Wrong> {
    if text.len() > MAX_EXPRESSION {
        return Err((MAX_EXPRESSION, format!("longer than {MAX_EXPRESSION} bytes")));
    }
    let words = Lexer::new(text).peekable();
    let mut parser = Parser { words, end: text.len(), kind, fields: Vec::new(), depth: 0 };
    let root = parser.any()?;
    match parser.words.next() {
        None => Ok((root, parser.fields)),
        Some(Err(wrong)) => Err(wrong),
        Some(Ok((at, _))) => Err((at, "AND, OR or the end is expected".into())),
    }
}

impl<K: Fn(&[Step]) -> Option<FieldKind>> Parser<'_, K> {
    fn take(&mut self, wanted: &Token) -> bool {
        self.words.next_if(|word| matches!(word, Ok((_, token)) if token == wanted)).is_some()
    }

    fn next(&mut self, expected: &str) -> Result<(usize, Token), Wrong> {
        self.words.next().unwrap_or_else(|| Err((self.end, format!("{expected} is expected"))))
    }

    /// One or more of what `part` reads, with a word between them.
    fn list(
        &mut self,
        word: &Token,
        join: fn(Vec<Node<Operand>>) -> Node<Operand>,
        mut part: impl FnMut(&mut Self) -> Parsed,
    ) -> Parsed {
        let first = part(self)?;
        let mut all = vec![first];
        while self.take(word) {
            all.push(part(self)?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { join(all) })
    }

    fn any(&mut self) -> Parsed {
        self.list(&Token::Or, Node::Any, |parser| parser.list(&Token::And, Node::All, Self::condition))
    }

    fn condition(&mut self) -> Parsed {
        if self.take(&Token::Not) {
            return self.deeper(|parser| Ok(Node::Not(Box::new(parser.condition()?))));
        }
        if self.take(&Token::Open) {
            return self.deeper(|parser| {
                let inner = parser.any()?;
                match parser.next("a closing parenthesis")? {
                    (_, Token::Close) => Ok(inner),
                    (at, _) => Err((at, "a closing parenthesis is expected".into())),
                }
            });
        }
        self.predicate()
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            return Err((self.end, format!("parentheses and NOT are more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn predicate(&mut self) -> Parsed {
        let left = self.operand()?;
        let negated = self.take(&Token::Not);
        match self.next("a comparison")? {
            (_, Token::Between) => {
                let low = self.operand()?;
                match self.next("AND")? {
                    (_, Token::And) => {}
                    (at, _) => return Err((at, "AND is expected: BETWEEN low AND high".into())),
                }
                let high = self.operand()?;
                // One comparison in the grammar: what a sample has not is neither between nor not between.
                Ok(if negated {
                    let below = Node::Compare(left.clone(), Relation::Less, low);
                    Node::Any(vec![below, Node::Compare(left, Relation::Greater, high)])
                } else {
                    let above = Node::Compare(left.clone(), Relation::GreaterOrEqual, low);
                    Node::All(vec![above, Node::Compare(left, Relation::LessOrEqual, high)])
                })
            }
            (_, Token::Relation(relation)) if !negated => {
                let right = self.operand()?;
                Ok(Node::Compare(left, relation, right))
            }
            (at, _) => Err((at, "a comparison is expected: =, <>, <, <=, >, >=, LIKE or BETWEEN".into())),
        }
    }

    fn operand(&mut self) -> Result<Operand, Wrong> {
        match self.next("a member, a value or a parameter")? {
            (at, Token::Field(name, path)) => self.field(name, path).map_err(|what| (at, what)),
            (_, Token::Literal(literal)) => Ok(Operand::Literal(literal)),
            (_, Token::Parameter(number)) => Ok(Operand::Parameter(number)),
            (at, _) => Err((at, "a member, a value or a parameter is expected".into())),
        }
    }

    fn field(&mut self, name: String, path: Vec<Step>) -> Result<Operand, String> {
        if let Some(known) = self.fields.iter().position(|field| field.path == path) {
            return Ok(Operand::Field(known));
        }
        let kind = (self.kind)(&path);
        let kind = kind.ok_or_else(|| format!("the type has no member {name} that can be compared"))?;
        self.fields.push(Field { name, path, kind });
        Ok(Operand::Field(self.fields.len() - 1))
    }
}
