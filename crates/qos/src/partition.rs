//! PARTITION matching: names and POSIX fnmatch patterns. DCPS 1.4 §2.2.3.13, POSIX.1-2008 XCU §2.13.
//!
//! Peers choose the strings, so the matcher must never recurse or back up further than the last `*`, and counts what it
//! reads: after [`MAX_WORK`] of it two lists do not match. Names over [`MAX_NAME`] bytes match nothing, and those after the
//! first [`MAX_NAMES`] of a list are not heard.
//! Called by discovery's matching.

/// The longest string that is still read as a pattern. *Units*: bytes. DDS allows 256 bytes for a
/// partition's name; lower and legal names fail to match, higher and one comparison gets slow (it costs
/// the square of it).
pub const MAX_NAME: usize = 256;

/// The most names of one list that count. A datagram of 64 KiB holds this many of the longest; lower and
/// legal lists fail to match, higher and one announcement can cost the square of it.
pub const MAX_NAMES: usize = 256;

/// What it may cost to compare two lists: 1 for each character that is read and each pair of a pattern and a name, which takes
/// some 2 to 5 ns. Names without patterns do not count. Lower and lists fail to match that have many patterns with several `*`
/// each, higher and samples wait longer for the lists that a peer makes up.
pub const MAX_WORK: usize = 65_536;

/// What may stand for something else than itself in a pattern.
const SPECIAL: [char; 5] = ['*', '?', '[', ']', '\\'];

/// Do two lists have a name in common? An empty list is the list of one empty name. A pattern matches
/// names only, never another pattern, be it the same text. What takes more than [`MAX_WORK`] does not match.
///
/// ```
/// # use taut_qos::partitions_match;
/// let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
/// assert!(partitions_match(&list(&["plant/*"]), &list(&["office", "plant/hall"])));
/// assert!(!partitions_match(&list(&["plant/*"]), &list(&["plant/*"])));
/// ```
pub fn partitions_match(a: &[String], b: &[String]) -> bool {
    compare_partitions(a, b, &mut 0) == Some(true)
}

/// The same, which adds what it has cost to `work`, of names without patterns, too. `None`: more than [`MAX_WORK`] would have to be read to know it.
///
/// ```
/// # use taut_qos::{MAX_WORK, compare_partitions};
/// let mut work = 0;
/// let found = compare_partitions(&["plant/*".to_string()], &["plant/hall".to_string()], &mut work);
/// assert!(found == Some(true) && work < MAX_WORK);
/// ```
pub fn compare_partitions(a: &[String], b: &[String], work: &mut usize) -> Option<bool> {
    let mut left = MAX_WORK;
    let found = compare_within(a, b, &mut left);
    // To sort names, and to look for what makes a pattern of them, takes less than a step for four bytes.
    let bytes: usize = names(a).chain(names(b)).map(str::len).sum();
    *work += MAX_WORK - left + bytes / 4;
    found
}

fn compare_within(a: &[String], b: &[String], left: &mut usize) -> Option<bool> {
    let mut split = |list| names(list).partition::<Vec<_>, _>(|name| is_pattern(name, left));
    let ((patterns_a, mut names_a), (patterns_b, names_b)) = (split(a), split(b));
    // First, and for nothing: a name that both lists have as it is written is found whatever their patterns cost.
    names_a.sort_unstable();
    let is_common = names_b.iter().any(|name| names_a.binary_search(name).is_ok());
    Some(is_common || any_fits(&patterns_a, &names_b, left)? || any_fits(&patterns_b, &names_a, left)?)
}

fn names(list: &[String]) -> impl Iterator<Item = &str> {
    let empty_name = list.is_empty().then_some("");
    let heard = list.iter().take(MAX_NAMES).map(String::as_str);
    heard.filter(|name| name.len() <= MAX_NAME).chain(empty_name)
}

/// Has the text something that fnmatch treats as special? A `[` that opens no bracket expression is a character like any
/// other (POSIX.1-2008 XCU §2.13.1), in a text that has nothing else of the kind.
fn is_pattern(text: &str, left: &mut usize) -> bool {
    // The first `[` is closed if any is. One behind a backslash stands for itself, but in a pattern only.
    let opens = |(_, rest): (&str, &str)| text.contains('\\') || bracket(rest, ' ', left).is_some();
    text.contains('*') || text.contains('?') || text.split_once('[').is_some_and(opens)
}

/// Does one of these patterns match one of these names? `None`: nothing is left to find out with.
fn any_fits(patterns: &[&str], names: &[&str], left: &mut usize) -> Option<bool> {
    for pattern in patterns {
        // What stands for itself at either end tells most names that do not match.
        let head = pattern.split(SPECIAL).next().unwrap_or_default();
        let tail = pattern.rsplit(SPECIAL).next().unwrap_or_default();
        *left = left.checked_sub(pattern.len())?;
        for name in names {
            *left = left.checked_sub(1 + (head.len() + tail.len()) / 16)?;
            let behind = pattern.strip_prefix(head).zip(name.strip_prefix(head));
            if let Some((pattern, name)) = behind.filter(|(_, name)| name.ends_with(tail))
                && fnmatch(pattern, name, left)?
            {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// Does the whole name match the pattern? A slash and a leading period are characters like any other. `None`: nothing is left
/// to find out with.
fn fnmatch(pattern: &str, name: &str, left: &mut usize) -> Option<bool> {
    let (mut pattern, mut name) = (pattern, name);
    // A `[` with no more than this behind it is never closed: if one is not, none behind it is.
    let mut unclosed = None;
    // Where to go on when the text after the last `*` does not fit: further on in the name.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        *left = left.checked_sub(1)?;
        if let Some(rest) = pattern.strip_prefix('*') {
            pattern = rest;
            retry = Some((rest, name));
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return Some(true);
        }
        if let Some((rest_of_pattern, rest_of_name)) = match_one(pattern, name, &mut unclosed, left) {
            (pattern, name) = (rest_of_pattern, rest_of_name);
            continue;
        }
        let Some((after_star, from)) = retry else { return Some(false) };
        let Some(next) = next_place(after_star, from) else { return Some(false) };
        (pattern, name) = (after_star, next);
        retry = Some((after_star, name));
    }
}

/// Where in the name, behind its first character, the pattern may begin: at the next one that it begins with, if that stands
/// for itself.
fn next_place<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let mut rest = name.chars();
    rest.next()?;
    let rest = rest.as_str();
    match pattern.chars().next().filter(|first| !SPECIAL.contains(first)) {
        Some(first) => rest.get(rest.find(first)?..),
        None => Some(rest),
    }
}

/// Matches the first element of the pattern against the first character of the name; gives what is left
/// of both. `unclosed`: how much of the pattern is behind the first `[` that is known to be never closed.
fn match_one<'p, 'n>(
    pattern: &'p str,
    name: &'n str,
    unclosed: &mut Option<usize>,
    left: &mut usize,
) -> Option<(&'p str, &'n str)> {
    let mut names = name.chars();
    let found = names.next()?;
    let mut patterns = pattern.chars();
    let fits = match patterns.next()? {
        '?' => true,
        // POSIX.1-2008 XCU §2.13.1: one that opens no bracket expression stands for itself. To look for the end again at
        // each of them would cost the cube of the length.
        '[' => {
            let behind = patterns.as_str();
            let is_open = unclosed.is_some_and(|most| behind.len() <= most);
            match (!is_open).then(|| bracket(behind, found, left)).flatten() {
                Some((fits, rest)) => {
                    patterns = rest.chars();
                    fits
                }
                None => {
                    *unclosed = (*unclosed).max(Some(behind.len()));
                    found == '['
                }
            }
        }
        '\\' => match patterns.next() {
            Some(escaped) => escaped == found,
            None => found == '\\',
        },
        plain => plain == found,
    };
    fits.then_some((patterns.as_str(), names.as_str()))
}

/// Reads a bracket expression after its `[`: does it hold the character, and what follows its `]`?
/// `None` if it is not closed. Ranges go by code point; classes such as `[:alpha:]` are plain characters.
fn bracket<'t>(text: &'t str, found: char, left: &mut usize) -> Option<(bool, &'t str)> {
    let body = text.strip_prefix(['!', '^']);
    let negated = body.is_some();
    let mut chars = body.unwrap_or(text).chars();
    let mut holds = false;
    let mut first = true;
    loop {
        // Without any left the next element is not read.
        *left = left.saturating_sub(1);
        let low = match chars.next()? {
            ']' if !first => return Some((holds != negated, chars.as_str())),
            '\\' => chars.next()?,
            other => other,
        };
        first = false;
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                chars = ahead;
                if high == '\\' { chars.next()? } else { high }
            }
            _ => low,
        };
        holds |= (low..=high).contains(&found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn lists() {
        for (a, b, expected) in [
            (&[][..], &[][..], true),
            (&[], &[""], true),
            (&[], &["A"], false),
            (&[], &["*"], true),
            (&["A", "B"], &["C", "B"], true),
            (&["A"], &["B"], false),
            (&["A*"], &["AB"], true),
            (&["A*"], &["A*"], false),
            (&["A?"], &["A*"], false),
            (&["x", "A*"], &["B*", "Ax"], true),
            // What opens no bracket expression is a character like any other.
            (&["line[1"], &["line[1"], true),
            (&["line[]"], &["line[]"], true),
            (&["line[1"], &["line[2"], false),
            (&["line[1"], &["line*"], true),
            (&["line[1]"], &["line[1]"], false),
            (&["line[]]"], &["line]"], true),
            (&[r"line\[1"], &["line[1"], true),
        ] {
            assert_eq!(partitions_match(&list(a), &list(b)), expected, "{a:?} {b:?}");
            assert_eq!(partitions_match(&list(b), &list(a)), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("?", "", false),
            ("?", "é", true),
            ("a*b*c", "a__b__b_c", true),
            ("a*b*c", "a__b__b_d", false),
            ("*/x", "a/b/x", true),
            ("**", "abc", true),
            ("*ab", "aab", true),
            ("*éa*", "xéxéa", true),
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("[]ab", "[]ab", true),
            ("*]b", "a]b", true),
            ("[abc]", "b", true),
            ("[!abc]", "b", false),
            ("[^abc]", "d", true),
            ("[a-c]x", "cx", true),
            ("[a-c]x", "dx", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[a-]", "b", false),
            ("[abc", "[abc", true),
            ("[abc", "a", false),
            ("line[*", "line[1", true),
            ("line[*", "line1", false),
            ("*[x", "a[[x", true),
            ("[a]*[[", "a b[[", true),
            ("[]*", "[]a", true),
            (r"[\]*", r"[]a", true),
            ("*[0-9]", "run7", true),
            ("*[0-9]", "run", false),
            (r"a\*?", "a*b", true),
            (r"a\*?", "axb", false),
            (r"[\]]", "]", true),
        ] {
            let found = any_fits(&[pattern], &[name], &mut MAX_WORK.clone());
            assert_eq!(found, Some(expected), "{pattern} {name}");
        }
    }

    /// What it costs to find out that these do not match, or that it costs too much.
    fn work(a: &[String], b: &[String]) -> (Option<bool>, usize) {
        let mut work = 0;
        (compare_partitions(a, b, &mut work), work)
    }

    #[test]
    fn what_a_match_reads_is_bounded() {
        let name = vec!["a".repeat(MAX_NAME)];
        let patterns = |text: &str| vec![text.to_owned(); MAX_NAMES];
        let brackets = format!("*[{}]", "b".repeat(MAX_NAME - 3));
        for hostile in
            [brackets.as_str(), &format!("*{}?b?", "a".repeat(100)), &format!("*{}[b]", "?".repeat(100))]
        {
            let patterns = patterns(hostile);
            for (a, b) in [(&patterns, &name), (&name, &patterns)] {
                assert_eq!(work(a, b).0, None, "{hostile}");
            }
        }
        // Nothing that matches is beyond it, where it is spelt out.
        let mut both = patterns(&brackets);
        both[MAX_NAMES - 1] = "plant".to_owned();
        assert!(partitions_match(&both, &list(&["plant"])));
    }

    #[test]
    fn hostile_patterns_are_read_once_for_each_place_at_most() {
        let most = |pattern: &str| MAX_NAME * pattern.len() * 2;
        for pattern in [&"*a".repeat(MAX_NAME / 2), &"[".repeat(MAX_NAME), &format!("{}b?", "*a".repeat(100))]
        {
            let mut left = most(pattern);
            assert_eq!(fnmatch(pattern, &"a".repeat(MAX_NAME / 2 - 1), &mut left), Some(false), "{pattern}");
        }
        assert!(!partitions_match(&["*".repeat(65_536)], &["x".to_string()]));
        assert!(!partitions_match(&["x".repeat(65_536)], &["x".repeat(65_536)]));
    }

    #[test]
    fn lists_as_people_write_them_cost_a_part_of_what_they_may() {
        let of = |text: fn(usize) -> String| (0..50).map(text).collect::<Vec<_>>();
        let names = of(|n| format!("plant/hall {}/line {}/robot {n}/status", n % 4, n % 9));
        for (patterns, most) in [
            (of(|n| format!("plant/hall {}/line {n}/*", n % 4 + 5)), MAX_WORK / 4),
            (of(|n| format!("*/motor {n}/status")), MAX_WORK / 4),
            (of(|n| format!("plant/*/line {}/motor {n}/*", n % 9)), MAX_WORK * 3 / 4),
            (of(|n| format!("plant/hall [0-9]/line [0-9]/motor {n}/*")), MAX_WORK * 3 / 4),
        ] {
            let (found, work) = work(&patterns, &names);
            assert!(found == Some(false) && work < most, "{}: {found:?}, {work}", patterns[0]);
        }
        let longest = |end: &str| {
            let text = |n| format!("{n:0>width$}{end}", width = MAX_NAME - end.len());
            (0..MAX_NAMES).map(text).collect::<Vec<_>>()
        };
        assert_eq!(work(&longest("a"), &longest("b")), (Some(false), 2 * MAX_NAMES * MAX_NAME / 4));
    }
}
