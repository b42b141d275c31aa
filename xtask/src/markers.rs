//! Words that mark unfinished work: none of them lands.

use crate::report::Finding;
use crate::source::Source;

/// In a comment.
const WORDS: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// Called as a macro.
const MACROS: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Checks one file, its tests too.
pub fn check(source: &Source) -> Vec<Finding> {
    if source.generated {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for comment in &source.comments {
        for (offset, line) in comment.text.lines().enumerate() {
            if let Some(word) = WORDS.iter().find(|word| has_word(line, word)) {
                let message = format!("{word} in a comment: do it, or open an issue");
                findings.push(Finding::error(&source.path, comment.line + offset, message));
            }
        }
    }
    for index in 0..source.tokens.len() {
        if let Some(what) = marker_at(source, index) {
            let message = format!("{what}: unfinished work does not land");
            findings.push(Finding::error(&source.path, source.tokens[index].line, message));
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

fn marker_at(source: &Source, index: usize) -> Option<String> {
    let text = source.text(index);
    if MACROS.contains(&text) && source.text(index + 1) == "!" {
        return Some(format!("{text}!"));
    }
    if source.reads(index, &["#", "[", "ignore"]) {
        return Some("#[ignore]".to_string());
    }
    if (text == "allow" || text == "expect") && source.text(index + 1) == "(" {
        let close = source.close_of(index + 1)?;
        let contains = |word| (index + 2..close).any(|inner| source.text(inner) == word);
        // Each binary of tests/ compiles the whole of a shared module and uses its part.
        if contains("dead_code") && !(source.beside && contains("reason")) {
            return Some(format!("{text}(dead_code)"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::parse(Path::new("a.rs"), text).unwrap();
        check(&source).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn comments() {
        assert_eq!(lines("// TODO: x\n/// FIXME\nfn a() {}\n/* a\n XXX */"), [1, 2, 5]);
        assert_eq!(lines("// TODOS are kept elsewhere\nconst A: &str = \"TODO\";"), [0; 0]);
        assert_eq!(lines("// @generated\n// TODO"), [0; 0]);
    }

    #[test]
    fn modules_that_tests_share() {
        let count = |text: &str| {
            let mut source = Source::parse(Path::new("tests/common/mod.rs"), text).unwrap();
            source.beside = true;
            check(&source).len()
        };
        assert_eq!(count("#![allow(dead_code, reason = \"each binary uses its part\")]"), 0);
        assert_eq!(count("#![allow(dead_code)]"), 1);
    }

    #[test]
    fn macros_and_attributes() {
        assert_eq!(lines("fn a() {\n todo!()\n}\nfn b() {\n dbg!(1);\n unimplemented!()\n}"), [2, 5, 6]);
        assert_eq!(lines("#[ignore]\nfn a() {}\n#[allow(unused, dead_code)]\nfn b() {}"), [1, 3]);
        assert_eq!(lines("#![expect(dead_code)]"), [1]);
        assert_eq!(
            lines("#![allow(dead_code, reason = \"r\")]"),
            [1],
            "in the product not for a reason either"
        );
        assert_eq!(lines("#[allow(clippy::too_many_arguments)]\nfn todo() {}"), [0; 0]);
    }
}
