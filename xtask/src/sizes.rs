//! How long files and functions may be, and that a file says first what it is.

use crate::report::Finding;
use crate::source::{Kind, Source};
use proc_macro2::Delimiter;

/// Above it a file is hard to hold in the head: a warning.
const FILE_WARNING: usize = 300;
/// Above it nobody reads the file as a whole: an error, unless its first lines say why.
const FILE_ERROR: usize = 800;
/// With this at the start of one of the first lines, a file over [`FILE_ERROR`] gives its reason.
const REASON: &str = "//! Size: ";
/// How many lines a reader sees before scrolling: where the reason must stand.
const REASON_WITHIN: usize = 20;
/// A function must fit on one screen, signature included.
const FUNCTION_ERROR: usize = 70;

/// Checks one file; test code counts apart and is not limited.
pub fn check(source: &Source) -> Vec<Finding> {
    if source.generated || source.beside {
        return Vec::new();
    }
    let mut findings = functions(source);
    let lines = source.line_count - source.test_lines().len();
    let reason = source.comments.iter().any(|c| c.line <= REASON_WITHIN && c.text.starts_with(REASON));
    if lines > FILE_ERROR && !reason {
        let message =
            format!("{lines} lines, at most {FILE_ERROR}: split it, or begin it with `{REASON}reason`");
        findings.push(Finding::error(&source.path, 0, message));
    } else if lines > FILE_WARNING && !reason {
        findings.push(Finding::warning(&source.path, 0, format!("{lines} lines, aim at {FILE_WARNING}")));
    }
    if !source.comments.first().is_some_and(|first| first.line == 1 && first.text.starts_with("//!")) {
        let message = "begins without a `//!` comment: say what the file owns and what it must never do";
        findings.push(Finding::error(&source.path, 1, message));
    }
    findings
}

fn functions(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        let named = source.tokens.get(index + 1).is_some_and(|next| next.kind == Kind::Ident);
        if token.text != "fn" || !named || source.is_test(index) {
            continue;
        }
        let Some(close) = body_end(source, index) else { continue };
        let lines = source.tokens[close].line + 1 - token.line;
        if lines > FUNCTION_ERROR {
            let name = source.text(index + 1);
            let message = format!("fn {name} has {lines} lines, at most {FUNCTION_ERROR}: split it");
            findings.push(Finding::error(&source.path, token.line, message));
        }
    }
    findings
}

/// The index of the brace that closes the function's body; `None` for a declaration.
fn body_end(source: &Source, index: usize) -> Option<usize> {
    let mut at = index + 2;
    loop {
        match source.tokens.get(at)?.kind {
            Kind::Open(Delimiter::Brace, close) => return Some(close),
            Kind::Open(_, close) => at = close,
            Kind::Punct if source.text(at) == ";" => return None,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Severity;
    use std::path::Path;

    fn found(text: &str) -> Vec<(Severity, usize)> {
        let source = Source::parse(Path::new("a.rs"), text).unwrap();
        check(&source).into_iter().map(|finding| (finding.severity, finding.line)).collect()
    }

    fn file_of(lines: usize) -> String {
        "//! A file.\n".to_string() + &"const A: u8 = 0;\n".repeat(lines - 1)
    }

    #[test]
    fn files() {
        assert_eq!(found(&file_of(300)), []);
        assert_eq!(found(&file_of(301)), [(Severity::Warning, 0)]);
        assert_eq!(found(&file_of(800)), [(Severity::Warning, 0)]);
        assert_eq!(found(&file_of(801)), [(Severity::Error, 0)]);
        assert_eq!(found(&("//! Size: a table\n".to_string() + &file_of(900))), []);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn a() {}\n".repeat(900));
        assert_eq!(found(&(file_of(300) + &tests)), [], "tests count apart");
    }

    #[test]
    fn functions_of_one_screen() {
        let body = |lines: usize| format!("//! A.\nfn long(\n) {{\n{}}}\n", "a();\n".repeat(lines - 3));
        assert_eq!(found(&body(70)), []);
        assert_eq!(found(&body(71)), [(Severity::Error, 2)]);
        assert_eq!(found(&body(71).replace("fn long", "#[test]\nfn long")), []);
        assert_eq!(found("//! A.\ntrait T { fn a(); }\n"), []);
    }

    #[test]
    fn the_first_comment() {
        assert_eq!(found("fn a() {}\n"), [(Severity::Error, 1)]);
        assert_eq!(found("// A.\nfn a() {}\n"), [(Severity::Error, 1)]);
    }
}
