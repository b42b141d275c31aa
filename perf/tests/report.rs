//! The page, the comparison and the document, made from a made-up run of everything.

mod synthetic;

use std::path::PathBuf;

use taut_perf::report;

const SEED: u64 = 11;

/// Where a person can look at it.
fn keep(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_page_needs_nothing_else_and_is_small() {
    let page = report::page(&synthetic::run(SEED));
    let path = keep("report.html", &page);
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    // The namespace of SVG is a name; nothing is fetched from it.
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for fetched in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!without_names.contains(fetched), "{fetched} in {}", path.display());
    }
    assert!(!page.contains("NaN") && !page.contains("inf"), "a place is no number");
}
