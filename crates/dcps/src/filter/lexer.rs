//! The words of a filter expression.

use std::fmt;

use taut_cdr::Step;

use super::{MAX_PARAMETERS, Relation};

/// The most steps to a member. A type that holds itself has members of any depth, and looking one up goes as deep: a received
/// value nests 32 structures at most, each with an element between.
const MAX_STEPS: usize = 128;

/// A value that is written out.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    Boolean(bool),
    Integer(i128),
    Float(f64),
    /// A string, a character or the name of an enumeration's literal.
    String(String),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Integer(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value}"),
            Literal::String(value) => write!(f, "'{}'", value.replace('\'', "''")),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// The name of a member as it is written, and the way to it.
    Field(String, Vec<Step>),
    Literal(Literal),
    Parameter(usize),
    Relation(Relation),
    And,
    Or,
    Not,
    Between,
    Open,
    Close,
}

/// What is wrong, and at which byte.
pub type Wrong = (usize, String);

/// A text that is nothing but a literal.
pub fn literal(text: &str) -> Option<Literal> {
    let mut lexer = Lexer::new(text.trim());
    match (lexer.next(), lexer.next()) {
        (Some(Ok((_, Token::Literal(literal)))), None) => Some(literal),
        _ => None,
    }
}

pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes as many characters as are of a kind.
    fn take_while(&mut self, is_of: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !is_of(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.rest().starts_with(word);
        if there {
            self.at += word.len();
        }
        there
    }

    fn token(&mut self, first: char) -> Result<Token, String> {
        // The longer ones first.
        const SIGNS: [(&str, Token); 10] = [
            ("<=", Token::Relation(Relation::LessOrEqual)),
            (">=", Token::Relation(Relation::GreaterOrEqual)),
            ("<>", Token::Relation(Relation::NotEqual)),
            ("!=", Token::Relation(Relation::NotEqual)),
            ("==", Token::Relation(Relation::Equal)),
            ("=", Token::Relation(Relation::Equal)),
            ("<", Token::Relation(Relation::Less)),
            (">", Token::Relation(Relation::Greater)),
            ("(", Token::Open),
            (")", Token::Close),
        ];
        if let Some((_, token)) = SIGNS.iter().find(|(sign, _)| self.take(sign)) {
            return Ok(token.clone());
        }
        match first {
            '\'' | '`' => self.string(),
            '%' => self.parameter(),
            '0'..='9' | '+' | '-' | '.' => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            other => Err(format!("`{other}` has no meaning here")),
        }
    }

    fn string(&mut self) -> Result<Token, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '\''));
            if !self.take("'") {
                return Err("the apostrophe that ends the text is missing; one within is doubled".into());
            }
            if !self.take("'") {
                return Ok(Token::Literal(Literal::String(text)));
            }
            text.push('\'');
        }
    }

    fn parameter(&mut self) -> Result<Token, String> {
        self.at += 1;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) if number < MAX_PARAMETERS => Ok(Token::Parameter(number)),
            _ => Err(format!("a parameter is %0 to %{}", MAX_PARAMETERS - 1)),
        }
    }

    fn number(&mut self) -> Result<Token, String> {
        let start = self.at;
        let negative = !self.take("+") && self.take("-");
        if self.take("0x") || self.take("0X") {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let value = i128::from_str_radix(digits, 16).map_err(|_| "not a number".to_owned())?;
            return Ok(Token::Literal(Literal::Integer(if negative { -value } else { value })));
        }
        self.take_while(|c| c.is_ascii_digit());
        let mut whole = true;
        if self.take(".") {
            whole = false;
            self.take_while(|c| c.is_ascii_digit());
        }
        if self.take("e") || self.take("E") {
            whole = false;
            let _ = self.take("+") || self.take("-");
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let value = if whole {
            text.parse().map(Literal::Integer).ok()
        } else {
            text.parse().map(Literal::Float).ok()
        };
        value.map(Token::Literal).ok_or_else(|| format!("`{text}` is no number"))
    }

    fn word(&mut self) -> Result<Token, String> {
        let start = self.at;
        let mut path = Vec::new();
        loop {
            let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            if name.is_empty() {
                return Err("the name of a member is missing".into());
            }
            path.push(Step::Member(name.to_owned()));
            while self.take("[") {
                let at = self.take_while(|c| c.is_ascii_digit()).parse().ok();
                let Some(at) = at.filter(|_| self.take("]")) else {
                    return Err("an element is [number]".into());
                };
                path.push(Step::Element(at));
            }
            if path.len() > MAX_STEPS {
                return Err(format!("a member is more than {MAX_STEPS} members and elements deep"));
            }
            if !self.take(".") {
                break;
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        Ok(keyword(text).unwrap_or_else(|| Token::Field(text.to_owned(), path)))
    }
}

fn keyword(text: &str) -> Option<Token> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    Some(match () {
        () if is("and") => Token::And,
        () if is("or") => Token::Or,
        () if is("not") => Token::Not,
        () if is("between") => Token::Between,
        () if is("like") => Token::Relation(Relation::Like),
        () if is("true") => Token::Literal(Literal::Boolean(true)),
        () if is("false") => Token::Literal(Literal::Boolean(false)),
        () => return None,
    })
}

impl Iterator for Lexer<'_> {
    type Item = Result<(usize, Token), Wrong>;

    /// The next word and where it starts. After an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        self.take_while(char::is_whitespace);
        let (start, first) = (self.at, self.rest().chars().next()?);
        let token = self.token(first);
        if token.is_err() {
            self.at = self.text.len();
        }
        Some(token.map(|token| (start, token)).map_err(|what| (start, what)))
    }
}
