//! What fits into the width of a terminal: where there is no room, whole columns of a table go, and whole parts of a line.
//! A figure that is cut off is taken for another one.

use std::borrow::Cow;

/// A column of a table. A space is in front of it.
#[derive(Clone)]
pub struct Column {
    pub heading: Cow<'static, str>,
    pub width: usize,
    /// Is it text, and not a number?
    pub is_text: bool,
    /// Where there is no room, the highest goes first; none of 0 does.
    pub goes: u8,
}

/// A column of numbers.
pub const fn number(heading: &'static str, width: usize, goes: u8) -> Column {
    Column { heading: Cow::Borrowed(heading), width, is_text: false, goes }
}

/// A column of text.
pub const fn text(heading: &'static str, width: usize, goes: u8) -> Column {
    Column { heading: Cow::Borrowed(heading), width, is_text: true, goes }
}

/// What those take that stay when all above `limit` have gone.
pub fn width(columns: &[Column], limit: u8) -> usize {
    columns.iter().filter(|column| column.goes <= limit).map(|column| 1 + column.width).sum()
}

/// The highest limit by which a table fits.
pub fn limit(columns: &[Column], room: Option<usize>) -> u8 {
    let fits = |limit: &u8| room.is_none_or(|room| width(columns, *limit) <= room);
    let most = columns.iter().map(|column| column.goes).max().unwrap_or(0);
    (0..=most).rev().find(fits).unwrap_or(0)
}

/// A line of the table, with its columns up to `limit`.
pub fn aligned<'c>(cells: impl IntoIterator<Item = &'c str>, columns: &[Column], limit: u8) -> String {
    let mut line = String::new();
    for (cell, Column { width, is_text, .. }) in
        cells.into_iter().zip(columns).filter(|(_, column)| column.goes <= limit)
    {
        let width = *width;
        line.push_str(&if *is_text { format!(" {cell:<width$}") } else { format!(" {cell:>width$}") });
    }
    line
}

/// The line of headings.
pub fn headings(columns: &[Column], limit: u8) -> String {
    aligned(columns.iter().map(|column| &*column.heading), columns, limit)
}

/// A line of parts, each with the space in front of it and when it goes, as a column does.
pub fn line(parts: &[(String, u8)], room: Option<usize>) -> String {
    let most = parts.iter().map(|(_, goes)| *goes).max().unwrap_or(0);
    let with = |limit| {
        let stay = parts.iter().filter(|(_, goes)| *goes <= limit).map(|(text, _)| text.as_str());
        stay.collect::<String>().trim_start().to_owned()
    };
    let fits = |line: &String| room.is_none_or(|room| line.chars().count() <= room);
    (0..=most).rev().map(with).find(fits).unwrap_or_else(|| with(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_goes_as_a_whole() {
        let columns = [text("name", 4, 0), number("a", 5, 2), number("b", 3, 1)];
        let table = |room| {
            let limit = limit(&columns, room);
            [headings(&columns, limit), aligned(["pump", "12345", "7"], &columns, limit)]
        };
        assert_eq!(table(None), [" name     a   b", " pump 12345   7"]);
        assert_eq!(table(Some(15)), table(None));
        assert_eq!(table(Some(14)), [" name   b", " pump   7"]);
        assert_eq!(table(Some(8)), [" name", " pump"]);
        assert_eq!(table(Some(1)), table(Some(8)), "the least there is");
        let parts = [("received 10".to_owned(), 2), ("  lost 0".to_owned(), 0), ("  max 3 ms".to_owned(), 1)];
        for (room, shown) in [(29, "received 10  lost 0  max 3 ms"), (28, "lost 0  max 3 ms"), (15, "lost 0")]
        {
            assert_eq!(line(&parts, Some(room)), shown);
        }
    }
}
