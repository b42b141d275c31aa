//! A Rust file as a flat list of tokens, with its comments and with what of it is test code.
//!
//! Works on tokens, not on a syntax tree, so that code inside of macros is seen as well.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proc_macro2::Delimiter;

use crate::lexer::Lexer;
pub use crate::lexer::{Comment, Kind, Token};

/// One parsed file.
#[derive(Debug)]
pub struct Source {
    /// From the root of the workspace.
    pub path: PathBuf,
    /// The whole file is test code, an example, a benchmark or a build script.
    pub beside: bool,
    /// A tool wrote it: its first line contains `@generated`.
    pub generated: bool,
    /// How many lines.
    pub line_count: usize,
    /// In order.
    pub tokens: Vec<Token>,
    /// In order.
    pub comments: Vec<Comment>,
    test_ranges: Vec<Range<usize>>,
}

impl Source {
    /// Parses `text`.
    pub fn parse(path: &Path, text: &str) -> Result<Source, String> {
        let lexer = Lexer::run(text).map_err(|error| format!("{}: not Rust: {error}", path.display()))?;
        let test_ranges = test_ranges(&lexer.tokens);
        Ok(Source {
            path: path.to_owned(),
            beside: false,
            generated: text.lines().next().is_some_and(|line| line.contains("@generated")),
            line_count: text.lines().count(),
            tokens: lexer.tokens,
            comments: lexer.comments,
            test_ranges,
        })
    }

    /// Is the token test code?
    pub fn is_test(&self, index: usize) -> bool {
        self.beside || self.test_ranges.iter().any(|range| range.contains(&index))
    }

    /// The lines that are test code.
    pub fn test_lines(&self) -> BTreeSet<usize> {
        if self.beside {
            return (1..=self.line_count).collect();
        }
        let lines = |range: &Range<usize>| match self.tokens.get(range.clone()) {
            Some([first, .., last]) => first.line..last.last_line + 1,
            Some([only]) => only.line..only.last_line + 1,
            _ => 0..0,
        };
        self.test_ranges.iter().flat_map(lines).collect()
    }

    /// The lines with a token on them.
    pub fn code_lines(&self) -> BTreeSet<usize> {
        self.tokens.iter().flat_map(|token| token.line..=token.last_line).collect()
    }

    /// The lines with a comment on them.
    pub fn comment_lines(&self) -> BTreeSet<usize> {
        self.comments.iter().flat_map(|c| c.line..=c.line + c.text.trim_end().matches('\n').count()).collect()
    }

    /// The text of a token; empty past the end.
    pub fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &token.text)
    }

    /// Do the tokens from `index` read like `words`?
    pub fn reads(&self, index: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.text(index + offset) == *word)
    }

    /// The index of the partner of an opening bracket.
    pub fn close_of(&self, index: usize) -> Option<usize> {
        match self.tokens.get(index)?.kind {
            Kind::Open(_, close) => Some(close),
            _ => None,
        }
    }

    /// Where the files of its modules are.
    pub fn modules(&self) -> PathBuf {
        let parent = self.path.parent().unwrap_or(Path::new(""));
        let stem = self.path.file_stem().unwrap_or_default();
        let is_root = ["lib", "main", "mod"].iter().any(|name| stem == *name);
        if is_root { parent.to_owned() } else { parent.join(stem) }
    }

    /// Names of modules declared as `#[cfg(test)] mod name;`: their files are test code.
    pub fn test_modules(&self) -> Vec<String> {
        let names = |range: &Range<usize>| {
            range.clone().find(|i| self.text(*i) == "mod" && self.text(i + 2) == ";").map(|i| i + 1)
        };
        self.test_ranges.iter().filter_map(names).map(|i| self.text(i).to_string()).collect()
    }
}

/// Token ranges of items under `#[cfg(test)]`, `#[cfg(all(test, …))]` and `#[test]`.
fn test_ranges(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for start in 0..tokens.len() {
        if ranges.last().is_some_and(|last| last.contains(&start)) {
            continue;
        }
        if let Some(end) = test_attribute(tokens, start) {
            ranges.push(start..item_end(tokens, end) + 1);
        }
    }
    ranges
}

/// The index of the closing bracket of the test attribute that starts here.
fn test_attribute(tokens: &[Token], start: usize) -> Option<usize> {
    let Kind::Open(Delimiter::Bracket, close) = tokens.get(start + 1)?.kind else { return None };
    if tokens[start].text != "#" {
        return None;
    }
    let words: Vec<&str> = tokens[start + 2..close].iter().map(|token| token.text.as_str()).collect();
    match words.as_slice() {
        ["test"] | ["cfg", "(", "test", ")"] => Some(close),
        ["cfg", "(", "all", "(", rest @ ..] => {
            let negated = rest.windows(3).any(|three| three == ["not", "(", "test"]);
            (rest.contains(&"test") && !negated).then_some(close)
        }
        _ => None,
    }
}

/// The index of the last token of the item whose attribute ends at `index`.
fn item_end(tokens: &[Token], index: usize) -> usize {
    const ITEMS: [&str; 16] = [
        "fn",
        "mod",
        "impl",
        "struct",
        "enum",
        "union",
        "trait",
        "use",
        "const",
        "static",
        "type",
        "unsafe",
        "extern",
        "async",
        "macro_rules",
        "let",
    ];
    let mut is_item = false;
    let mut at = index + 1;
    while let Some(token) = tokens.get(at) {
        is_item |= ITEMS.contains(&token.text.as_str());
        match token.kind {
            Kind::Open(Delimiter::Brace, close) => return close,
            Kind::Open(_, close) => at = close,
            Kind::Close(..) => return at - 1,
            Kind::Punct if token.text == ";" || (token.text == "," && !is_item) => return at,
            _ => {}
        }
        at += 1;
    }
    tokens.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn parse(text: &str) -> Source {
        Source::parse(Path::new("a.rs"), text).unwrap()
    }

    #[test]
    fn strings_and_comments_are_told_apart() {
        let source =
            parse("//! top ä\nlet a = \"// no\"; // yes\n/* b /* c */ d\n */ fn x() {} /// doc\nfn y() {}\n");
        let texts: Vec<(usize, &str)> = source.comments.iter().map(|c| (c.line, c.text.as_str())).collect();
        assert_eq!(texts, [(1, "//! top ä"), (2, "// yes"), (3, "/* b /* c */ d\n */"), (4, "/// doc")]);
        assert_eq!(source.code_lines().into_iter().collect::<Vec<_>>(), [2, 4, 5]);
        assert_eq!(source.comment_lines().into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(source.tokens.iter().all(|token| token.text != "doc"));
    }

    #[test]
    fn test_code_is_found() {
        let source = parse(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n#[test]\nfn d<A, B>() {\n}\n\
             #[cfg(not(test))]\nfn e() {}\nstruct S {\n#[cfg(test)]\nf: u8,\ng: u8 }\n",
        );
        assert_eq!(source.test_lines().into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 7, 8, 9, 13, 14]);
    }

    #[test]
    fn a_cfg_that_also_holds_outside_of_tests_is_no_test() {
        assert!(parse("#[cfg(all(not(test), unix))]\nfn e() {}").test_lines().is_empty());
        assert!(parse("#[cfg(any(test, unix))]\nfn e() {}").test_lines().is_empty());
        assert_eq!(parse("#[cfg(all(unix, test))]\nfn e() {}").test_lines().len(), 2);
    }

    #[test]
    fn test_modules_in_files_of_their_own() {
        assert_eq!(
            parse("#[cfg(test)]\nmod pair;\nmod other;\n#[cfg(test)]\nmod t { }").test_modules(),
            ["pair"]
        );
    }
}
