//! Where `unsafe` may stand, and that a comment says why it holds.
//!
//! In the product only where `layers.toml` allows it; in `tests/` and `benches/` anywhere, for a counting
//! allocator needs it.

use crate::report::Finding;
use crate::source::{Kind, Source};
use proc_macro2::Delimiter;

/// Checks one file; `allowed` says whether its crate may contain `unsafe` at all.
pub fn check(source: &Source, allowed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        if token.kind != Kind::Ident || token.text != "unsafe" {
            continue;
        }
        if !allowed && !source.beside {
            let message = "unsafe outside of the crates that layers.toml allows it in";
            findings.push(Finding::error(&source.path, token.line, message));
        } else if !is_function_type(source, index) && !has_reason(source, index) {
            let message = "unsafe without a `SAFETY:` comment right above that names the invariant";
            findings.push(Finding::error(&source.path, token.line, message));
        }
    }
    findings
}

/// `unsafe fn(…)`, `unsafe extern "C" fn(…)`: a type, which does nothing.
fn is_function_type(source: &Source, index: usize) -> bool {
    let at = if source.text(index + 1) == "extern" { index + 3 } else { index + 1 };
    source.reads(at, &["fn", "("])
}

/// Is there a reason between the comment above the statement and the keyword?
fn has_reason(source: &Source, index: usize) -> bool {
    let comment_lines = source.comment_lines();
    let mut first = source.tokens[statement_start(source, index)].line;
    while first > 1 && comment_lines.contains(&(first - 1)) {
        first -= 1;
    }
    let range = first..=source.tokens[index].line;
    let is_reason = |text: &str| text.contains("SAFETY:") || text.contains("# Safety");
    source.comments.iter().any(|comment| range.contains(&comment.line) && is_reason(&comment.text))
}

/// The first token of the statement, item or argument that the token is part of.
fn statement_start(source: &Source, index: usize) -> usize {
    let mut at = index;
    while let Some(before) = at.checked_sub(1) {
        match source.tokens[before].kind {
            Kind::Open(..) | Kind::Close(Delimiter::Brace, _) => break,
            Kind::Punct if matches!(source.text(before), ";" | ",") => break,
            Kind::Close(_, open) => at = open,
            _ => at = before,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lines(text: &str, allowed: bool) -> Vec<usize> {
        let source = Source::parse(Path::new("a.rs"), text).unwrap();
        check(&source, allowed).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn forbidden_crates() {
        assert_eq!(lines("// SAFETY: no.\nfn a() { unsafe { b() } }", false), [2]);
        assert_eq!(lines("#![forbid(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";", false), [0; 0]);
    }

    #[test]
    fn files_beside_the_product() {
        let mut source =
            Source::parse(Path::new("tests/a.rs"), "// SAFETY: I1.\nunsafe impl A for B {}").unwrap();
        source.beside = true;
        assert_eq!(check(&source, false), []);
        source.comments.clear();
        assert_eq!(check(&source, false).len(), 1, "a reason is due there too");
    }

    #[test]
    fn a_reason_right_above() {
        assert_eq!(lines("fn a() {\n  let x = unsafe { b() };\n}", true), [2]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n  let x = unsafe { b() };\n}", true), [0; 0]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n  let x =\n    c(1,\n unsafe { b() });\n}", true), [5]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n  let x =\n    unsafe { b() };\n}", true), [0; 0]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n  c();\n  unsafe { b() };\n}", true), [4]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n\n  unsafe { b() };\n}", true), [4]);
        assert_eq!(lines("fn a() {\n  // SAFETY: I1.\n  unsafe { b() };\n  unsafe { b() };\n}", true), [4]);
    }

    #[test]
    fn items() {
        assert_eq!(lines("/// A.\npub unsafe fn a();", true), [2]);
        assert_eq!(lines("/// A.\n/// # Safety\n/// I1.\n#[inline]\npub unsafe fn a();", true), [0; 0]);
        assert_eq!(lines("// SAFETY: I1.\nunsafe impl Send for A {}\nunsafe impl Sync for A {}", true), [3]);
        assert_eq!(lines("type F = unsafe extern \"C\" fn(u8);\ntype G = unsafe fn();", true), [0; 0]);
    }
}
