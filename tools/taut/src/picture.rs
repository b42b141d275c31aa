//! Lines on a terminal that are drawn again in their place.

use std::fmt::Write as _;
use std::io;

use taut_perf::terminal;

use crate::output;

/// A terminal that does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// What is on the terminal. Gives it back when dropped.
pub struct Picture {
    /// The line that is the heading of a table: it is dim. The first line is bold.
    heading: usize,
    styled: bool,
    /// Lines of the last picture.
    height: usize,
    /// Columns and lines that the terminal had then.
    size: (usize, usize),
}

impl Picture {
    /// None yet.
    pub fn new(heading: usize) -> Picture {
        let styled = terminal::has_style(&io::stdout());
        Picture { heading, styled, height: 0, size: SIZE }
    }

    /// Columns and lines of the terminal.
    pub fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or(SIZE, |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Draws the next picture over the last one.
    pub fn draw(&mut self, lines: &[String], size: (usize, usize)) -> io::Result<()> {
        let picture = self.text(lines, size);
        output::raw(&picture)
    }

    /// What the terminal gets. Characters may be wider than one column, as they are in names of the far east: the terminal
    /// cuts what remains too long, where a line that wraps would leave one of the last picture behind.
    fn text(&mut self, lines: &[String], size: (usize, usize)) -> String {
        let mut picture = String::from("\x1b[?25l\x1b[?7l");
        if self.height > 0 && self.size != size {
            // Terminals move and wrap what they show when their size changes, each in its way: where the last picture
            // begins now is not known.
            picture.push_str("\x1b[H");
        } else if self.height > 0 {
            let _ = write!(picture, "\x1b[{}A\r", self.height);
        }
        self.size = size;
        let (width, _) = size;
        for (index, line) in lines.iter().enumerate() {
            let cut: String = line.chars().take(width).collect();
            let style = match index {
                0 if self.styled => "\x1b[1m",
                _ if self.styled && index == self.heading => "\x1b[2m",
                _ => "",
            };
            let end = if style.is_empty() { "" } else { "\x1b[0m" };
            // What was there goes before: behind a line that fills the terminal the cursor stands on its last character.
            let _ = writeln!(picture, "\x1b[K{style}{cut}{end}");
        }
        picture.push_str("\x1b[J\x1b[?7h");
        self.height = lines.len();
        picture
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // A terminal that is gone needs no cursor.
        let _ = output::raw("\x1b[?25h");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wider_than_they_are_long_do_not_wrap() {
        let mut picture = Picture { heading: 1, styled: false, height: 0, size: SIZE };
        let text = picture.text(&["日本語".to_owned(), "abc".to_owned()], (4, 24));
        assert_eq!(text, "\x1b[?25l\x1b[?7l\x1b[K日本語\n\x1b[Kabc\n\x1b[J\x1b[?7h");
        assert!(
            picture.text(&["abc".to_owned()], (4, 24)).starts_with("\x1b[?25l\x1b[?7l\x1b[2A\r\x1b[Kabc")
        );
    }

    #[test]
    fn a_terminal_of_another_size_is_drawn_from_its_top() {
        let mut picture = Picture { heading: 1, styled: false, height: 0, size: SIZE };
        let lines = ["abc".to_owned(), "def".to_owned()];
        assert!(
            picture.text(&lines, (100, 50)).starts_with("\x1b[?25l\x1b[?7l\x1b[Kabc"),
            "what is above stays"
        );
        assert!(picture.text(&lines, (40, 10)).starts_with("\x1b[?25l\x1b[?7l\x1b[H\x1b[Kabc"));
        assert!(picture.text(&lines, (40, 10)).starts_with("\x1b[?25l\x1b[?7l\x1b[2A\r\x1b[Kabc"));
    }
}
