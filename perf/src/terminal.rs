//! What a terminal can show.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// Is this a terminal on which lines are drawn again in their place?
pub fn draws(out: &impl IsTerminal) -> bool {
    out.is_terminal() && !is_dumb(std::env::var_os("TERM").as_deref())
}

/// Are bold and colours wanted on it, too? Not where NO_COLOR is set.
pub fn has_style(out: &impl IsTerminal) -> bool {
    draws(out) && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A terminal of this name knows no more than lines: that of an editor, or of a log.
fn is_dumb(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| name == "dumb")
}
