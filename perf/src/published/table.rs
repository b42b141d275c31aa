//! A table beside what others have published, whoever draws it: the page of the documentation and that of a run.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::record::{Record, Run};

/// A column.
pub(crate) struct Head {
    pub(crate) text: String,
    /// Is it of figures, which stand to the right.
    pub(crate) is_figure: bool,
}

/// Its title, where it comes from, what to know of it, and its rows; each has a cell for each head.
pub(crate) struct Table {
    pub(crate) title: String,
    /// The commands that made its lines.
    pub(crate) commands: Vec<String>,
    /// The runs of its lines, by their ids.
    pub(crate) runs: BTreeSet<String>,
    /// Empty if it goes without saying.
    pub(crate) says: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Of which processor and build each row is; empty for none.
    of: Vec<String>,
}

impl Table {
    /// Without columns and rows.
    pub(crate) fn new(title: impl Into<String>, used: &[&Record], says: impl Into<String>) -> Table {
        let mut commands: Vec<String> = used.iter().map(|record| record.run.command.clone()).collect();
        commands.sort_unstable();
        commands.dedup();
        let runs = used.iter().map(|record| record.run.id.clone()).collect();
        let (title, says) = (title.into(), says.into());
        Table { title, commands, runs, says, heads: Vec::new(), rows: Vec::new(), of: Vec::new() }
    }

    /// A row of lines of this run, if it is of one.
    pub(crate) fn add(&mut self, row: Vec<String>, run: Option<&Run>) {
        self.rows.push(row);
        self.of.push(run.map(Run::label).unwrap_or_default());
    }

    /// With the processor and the build: once if all rows are of the same, otherwise in each of them.
    pub(crate) fn labelled(mut self) -> Table {
        let labels: BTreeSet<&String> = self.of.iter().filter(|label| !label.is_empty()).collect();
        if let (Some(only), 1) = (labels.first(), labels.len()) {
            let between = if self.says.is_empty() { "" } else { " " };
            self.says += &format!("{between}Measured on: {only}.");
        } else if !labels.is_empty() {
            self.heads.push(Head { text: "measured on".into(), is_figure: false });
            self.rows.iter_mut().zip(self.of.drain(..)).for_each(|(row, label)| row.push(label));
        }
        self
    }

    /// With columns of words, then columns of figures.
    pub(crate) fn with_heads<T: Into<String>>(
        mut self,
        words: impl IntoIterator<Item = T>,
        figures: impl IntoIterator<Item = T>,
    ) -> Table {
        let head = |text: T, is_figure| Head { text: text.into(), is_figure };
        self.heads = words.into_iter().map(|text| head(text, false)).collect();
        self.heads.extend(figures.into_iter().map(|text| head(text, true)));
        self
    }

    /// For the documentation, below a heading of this level.
    pub(crate) fn markdown(&self, level: &str) -> String {
        let commands: Vec<String> = self.commands.iter().map(|command| format!("`{command}`")).collect();
        let mut page = format!("{level} {}\n\n{}\n\n", self.title, commands.join(", "));
        if !self.says.is_empty() {
            let _ = write!(page, "{}\n\n", self.says);
        }
        let heads: Vec<&str> = self.heads.iter().map(|head| head.text.as_str()).collect();
        let rules: String =
            self.heads.iter().map(|head| if head.is_figure { "--:|" } else { "---|" }).collect();
        let _ = writeln!(page, "| {} |\n|{rules}", heads.join(" | "));
        for row in &self.rows {
            let _ = writeln!(page, "| {} |", row.join(" | "));
        }
        page.push('\n');
        page
    }
}
