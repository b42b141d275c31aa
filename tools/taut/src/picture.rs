//! Lines on a terminal that are drawn again in their place.

use std::fmt::Write as _;
use std::io::{self, Write as _};

/// A terminal that does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// What is on the terminal. Gives it back when dropped.
pub struct Picture {
    /// The line that is the heading of a table: it is dim. The first line is bold.
    heading: usize,
    styled: bool,
    /// Lines of the last picture.
    height: usize,
}

impl Picture {
    /// None yet.
    pub fn new(heading: usize) -> Picture {
        let styled = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Picture { heading, styled, height: 0 }
    }

    /// Columns and lines of the terminal.
    pub fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or(SIZE, |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Draws the next picture over the last one.
    pub fn draw(&mut self, lines: &[String], width: usize) -> io::Result<()> {
        let mut picture = String::from("\x1b[?25l");
        if self.height > 0 {
            let _ = write!(picture, "\x1b[{}A\r", self.height);
        }
        for (index, line) in lines.iter().enumerate() {
            let cut: String = line.chars().take(width).collect();
            let style = match index {
                0 if self.styled => "\x1b[1m",
                _ if self.styled && index == self.heading => "\x1b[2m",
                _ => "",
            };
            let end = if style.is_empty() { "" } else { "\x1b[0m" };
            let _ = writeln!(picture, "{style}{cut}{end}\x1b[K");
        }
        picture.push_str("\x1b[J");
        self.height = lines.len();
        let mut out = io::stdout().lock();
        out.write_all(picture.as_bytes())?;
        out.flush()
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // A terminal that is gone needs no cursor.
        let _ = io::stdout().write_all(b"\x1b[?25h");
        let _ = io::stdout().flush();
    }
}
