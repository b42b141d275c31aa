//! What goes to stdout: whole lines, flushed, so that whoever reads has them at once.

use std::io::{self, Write};

use serde::Serialize;

/// One line of text.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// One JSON object.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value).map_err(io::Error::other)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}

/// A remark for people on stderr, of one line, in one write: another process may write to the same place. That it cannot be
/// written is no reason to stop: then nobody is left to tell.
pub fn note(text: &str) {
    let _ = io::stderr().write_all(format!("taut: {}\n", escaped(text)).as_bytes());
}

/// Text of a peer, without anything that a terminal would act on.
pub fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
