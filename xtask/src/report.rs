//! What a check found, and tables of counts.

use std::fmt;
use std::path::{Path, PathBuf};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// `tidy` fails.
    Error,
    /// `tidy` says so and goes on.
    Warning,
}

/// One place that breaks one rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The file, from the root of the workspace.
    pub path: PathBuf,
    /// The line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Finding {
    /// A finding that fails the run.
    pub fn error(path: &Path, line: usize, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, path: path.to_owned(), line, message: message.into() }
    }

    /// A finding that does not.
    pub fn warning(path: &Path, line: usize, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}: {}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Rows of cells as text: the first column to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |a: &str, b: &str| vec![a.to_string(), b.to_string()];
        assert_eq!(table(&[row("crate", "n"), row("x", "100")]), "crate    n\nx      100\n");
    }

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        let found = Finding::error(Path::new("a.rs"), 3, "too long");
        assert_eq!(found.to_string(), "error: a.rs:3: too long");
        assert_eq!(Finding::warning(Path::new("a.rs"), 0, "m").to_string(), "warning: a.rs: m");
    }
}
