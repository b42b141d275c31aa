//! What goes to stdout and stderr: whole lines, at once, so that whoever reads has them.
//!
//! While nobody takes it the flag of [`crate::stop`] ends it, and the command's own time.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use serde::Serialize;
use taut_perf::output;

use crate::stop::Until;

/// One line of text.
pub fn line(text: &str) -> io::Result<()> {
    line_until(text, Until::NEVER)
}

/// One line of text for a command that has a time of its own. *Errors*: as of [`output::write`].
pub fn line_until(text: &str, until: Until) -> io::Result<()> {
    write(&io::stdout().lock(), format!("{text}\n").as_bytes(), until)
}

/// One JSON object.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    json_until(value, Until::NEVER)
}

/// One JSON object for a command that has a time of its own. *Errors*: as of [`output::write`].
pub fn json_until(value: &impl Serialize, until: Until) -> io::Result<()> {
    let text = serde_json::to_string(value).map_err(io::Error::other)?;
    line_until(&text, until)
}

/// Text for a terminal, as it is.
pub fn raw(text: &str) -> io::Result<()> {
    write(&io::stdout().lock(), text.as_bytes(), Until::NEVER)
}

/// A remark for people on stderr, of one line, in one write unless it is longer than [`output::PIECE`]: another process may write
/// to the same place. That it cannot be written is no reason to stop: then nobody is left to tell.
pub fn note(text: &str) {
    let _ = write(&io::stderr().lock(), format!("taut: {}\n", escaped(text)).as_bytes(), Until::NEVER);
}

/// stderr for the log.
pub struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(&io::stderr().lock(), bytes, Until::NEVER).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// *Errors*: as of [`output::write`].
fn write(to: &impl AsFd, bytes: &[u8], until: Until) -> io::Result<()> {
    output::write(to, bytes, || until.is_to_end())
}

/// Text of a peer, without anything that a terminal would act on, or that is not seen or moves what is around it. Quotes
/// and backslashes stay as they are.
pub fn escaped(text: &str) -> String {
    const PLAIN: [char; 3] = ['"', '\'', '\\'];
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(PLAIN) {
        let strange = part.trim_end_matches(PLAIN);
        shown.extend(strange.escape_debug());
        shown.push_str(&part[strange.len()..]);
    }
    shown
}

/// The columns of the terminal that stdout is; `None` if it is none.
pub fn width() -> Option<usize> {
    let size = Some(io::stdout()).filter(IsTerminal::is_terminal).and_then(terminal_size::terminal_size_of);
    size.map(|(width, _)| usize::from(width.0))
}

/// The words of a text in lines of at most `width`, each behind `indent` spaces. A longer word has a line of its own.
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = |text: &str| text.chars().count();
        if !line.is_empty() && indent + length(&line) + 1 + length(word) > width {
            lines.push(format!("{:indent$}{line}", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(format!("{:indent$}{line}", ""));
    lines
}

/// A line as it is if it is not wider than `width`, else in lines of which the later ones stand two columns further in.
pub fn folded(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start().len();
    let mut lines = wrapped(line, width, indent + 2);
    lines[0].drain(..2);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_folded_between_words_only() {
        let line = "  Taut 0.1.0, udp/239.255.0.1:7401, DATA_REPRESENTATION";
        assert_eq!(folded(line, line.len()), [line]);
        assert_eq!(folded(line, 37), ["  Taut 0.1.0, udp/239.255.0.1:7401,", "    DATA_REPRESENTATION"]);
        assert_eq!(folded("one  two", 4), ["one", "  two"]);
    }

    #[test]
    fn what_is_strange_is_escaped_and_nothing_else() {
        for plain in ["", "it's \"C:\\\"", "Grüße", "日本語", "ก\u{e49}า", "e\u{301}", "\u{1f680}"] {
            assert_eq!(escaped(plain), plain);
        }
        assert_eq!(escaped("a'\n\u{1b}[2J\"\u{202e}b\u{feff}\\"), "a'\\n\\u{1b}[2J\"\\u{202e}b\\u{feff}\\");
    }
}
