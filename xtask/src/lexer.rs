//! A Rust file as a flat list of tokens, and its comments.
//!
//! Tokens come from proc-macro2, which drops comments; they are found again in the gaps between tokens.

use std::ops::Range;

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// What a token is. Brackets know the index of their partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A word, keywords among them.
    Ident,
    /// One character.
    Punct,
    /// A string or a number.
    Literal,
    /// An opening bracket and the index of its closing one.
    Open(Delimiter, usize),
    /// A closing bracket and the index of its opening one.
    Close(Delimiter, usize),
}

/// One token.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its text; empty for literals, so that no rule matches inside of a string, but for the name of a feature, which
    /// has its quotes.
    pub text: String,
    /// Its first line, counted from 1.
    pub line: usize,
    /// Its last line: strings may span several.
    pub last_line: usize,
}

/// One comment, documentation or not.
#[derive(Clone, Debug)]
pub struct Comment {
    /// Its first line, counted from 1.
    pub line: usize,
    /// With its slashes.
    pub text: String,
}

/// Turns a token stream into a list and finds the comments between the tokens.
pub struct Lexer<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    end: usize,
    /// In order.
    pub tokens: Vec<Token>,
    /// In order.
    pub comments: Vec<Comment>,
}

impl<'a> Lexer<'a> {
    /// Reads a whole file.
    pub fn run(text: &'a str) -> Result<Lexer<'a>, LexError> {
        let stream: TokenStream = text.parse()?;
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut lexer = Lexer { text, line_starts, end: 0, tokens: Vec::new(), comments: Vec::new() };
        lexer.flatten(stream);
        lexer.gap(text.len());
        Ok(lexer)
    }

    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    fn flatten(&mut self, stream: TokenStream) {
        // A documentation comment comes as `#`, `!` and `[doc = ""]`, all with the comment's span.
        let mut doc = None;
        for tree in stream {
            let span = tree.span().byte_range();
            if doc == Some(span.start) {
                continue;
            }
            doc = None;
            match tree {
                TokenTree::Group(group) => self.group(&group),
                TokenTree::Punct(punct) => {
                    let text = self.text.get(span.clone()).unwrap_or("");
                    if punct.as_char() == '#' && text.starts_with('/') {
                        doc = Some(span.start);
                        self.gap(span.start);
                        self.comments.push(Comment { line: self.line(span.start), text: text.to_string() });
                        self.end = span.end;
                    } else {
                        self.push(Kind::Punct, punct.as_char().to_string(), span);
                    }
                }
                TokenTree::Ident(ident) => self.push(Kind::Ident, ident.to_string(), span),
                TokenTree::Literal(_) => {
                    let text = if self.names_a_feature() { self.text.get(span.clone()) } else { None };
                    self.push(Kind::Literal, text.unwrap_or_default().to_string(), span);
                }
            }
        }
    }

    fn names_a_feature(&self) -> bool {
        matches!(self.tokens.as_slice(), [.., key, equals] if key.text == "feature" && equals.text == "=")
    }

    fn group(&mut self, group: &proc_macro2::Group) {
        let delimiter = group.delimiter();
        let (open_text, close_text) = match delimiter {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        let open = self.tokens.len();
        self.push(Kind::Open(delimiter, 0), open_text.to_string(), group.span_open().byte_range());
        self.flatten(group.stream());
        let close = self.tokens.len();
        self.push(Kind::Close(delimiter, open), close_text.to_string(), group.span_close().byte_range());
        self.tokens[open].kind = Kind::Open(delimiter, close);
    }

    fn push(&mut self, kind: Kind, text: String, span: Range<usize>) {
        self.gap(span.start);
        let last_line = self.line(span.end.saturating_sub(1).max(span.start));
        self.tokens.push(Token { kind, text, line: self.line(span.start), last_line });
        self.end = span.end;
    }

    /// Collects the comments between the last token and `until`.
    fn gap(&mut self, until: usize) {
        let mut at = self.end;
        while let Some(rest) = self.text.get(at..until) {
            let Some(offset) = rest.find("//").into_iter().chain(rest.find("/*")).min() else { break };
            let body = &rest[offset..];
            let length = if body.starts_with("//") { body.find('\n') } else { block_comment(body) };
            let text = &body[..length.unwrap_or(body.len())];
            self.comments.push(Comment { line: self.line(at + offset), text: text.to_string() });
            at += offset + text.len();
        }
        self.end = until.max(self.end);
    }
}

/// The length of the block comment at the start of `text`; they nest.
fn block_comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(rest) = text.get(at..) {
        let step = rest.chars().next()?.len_utf8();
        match rest.get(..2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") if depth == 1 => return Some(at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += step,
        }
    }
    None
}
