//! PARTITION matching: names and POSIX fnmatch patterns. DCPS 1.4 §2.2.3.13, POSIX.1-2008 XCU §2.13.
//!
//! Peers choose the strings, so the matcher must never recurse or back up further than the last `*`:
//! a pattern costs at most its length times the name's, over [`MAX_NAME`] bytes it matches nothing, and
//! names after the first [`MAX_NAMES`] of a list are not heard.
//! Called by discovery's matching.

/// The longest string that is still read as a pattern. *Units*: bytes. DDS allows 256 bytes for a
/// partition's name; lower and legal names fail to match, higher and one comparison gets slow (it costs
/// the square of it).
pub const MAX_NAME: usize = 256;

/// The most names of one list that count. A datagram of 64 KiB holds this many of the longest; lower and
/// legal lists fail to match, higher and one announcement can cost the square of it.
pub const MAX_NAMES: usize = 256;

/// Do two lists have a name in common? An empty list is the list of one empty name. A pattern matches
/// names only, never another pattern, be it the same text.
///
/// ```
/// # use taut_qos::partitions_match;
/// let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
/// assert!(partitions_match(&list(&["plant/*"]), &list(&["office", "plant/hall"])));
/// assert!(!partitions_match(&list(&["plant/*"]), &list(&["plant/*"])));
/// ```
pub fn partitions_match(a: &[String], b: &[String]) -> bool {
    names(a).any(|a| names(b).any(|b| pair_matches(a, b)))
}

fn names(list: &[String]) -> impl Iterator<Item = &str> {
    let empty_name = list.is_empty().then_some("");
    list.iter().take(MAX_NAMES).map(String::as_str).chain(empty_name)
}

fn pair_matches(a: &str, b: &str) -> bool {
    match (is_pattern(a), is_pattern(b)) {
        (false, false) => a == b,
        (true, false) => fnmatch(a, b),
        (false, true) => fnmatch(b, a),
        (true, true) => false,
    }
}

/// Has the text something that fnmatch treats as special? A `[` that opens no bracket expression is a character like any
/// other (POSIX.1-2008 XCU §2.13.1), in a text that has nothing else of the kind.
pub fn is_pattern(text: &str) -> bool {
    // The first `[` is closed if any is. One behind a backslash stands for itself, but in a pattern only.
    let opens = |(_, rest): (&str, &str)| text.contains('\\') || bracket(rest, ' ').is_some();
    text.contains(['*', '?']) || text.split_once('[').is_some_and(opens)
}

/// Does the whole name match the pattern? A slash and a leading period are characters like any other.
fn fnmatch(pattern: &str, name: &str) -> bool {
    if pattern.len() > MAX_NAME || name.len() > MAX_NAME {
        return false;
    }
    let (mut pattern, mut name) = (pattern, name);
    // A `[` with no more than this behind it is never closed: if one is not, none behind it is.
    let mut unclosed = None;
    // Where to go on when the text after the last `*` does not fit: one character of the name further.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            pattern = rest;
            retry = Some((rest, name));
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        if let Some((rest_of_pattern, rest_of_name)) = match_one(pattern, name, &mut unclosed) {
            (pattern, name) = (rest_of_pattern, rest_of_name);
            continue;
        }
        let Some((after_star, from)) = retry else { return false };
        let mut rest = from.chars();
        if rest.next().is_none() {
            return false;
        }
        (pattern, name) = (after_star, rest.as_str());
        retry = Some((after_star, name));
    }
}

/// Matches the first element of the pattern against the first character of the name; gives what is left
/// of both. `unclosed`: how much of the pattern is behind the first `[` that is known to be never closed.
fn match_one<'p, 'n>(
    pattern: &'p str,
    name: &'n str,
    unclosed: &mut Option<usize>,
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
            match (!is_open).then(|| bracket(behind, found)).flatten() {
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
fn bracket(text: &str, found: char) -> Option<(bool, &str)> {
    let body = text.strip_prefix(['!', '^']);
    let negated = body.is_some();
    let mut chars = body.unwrap_or(text).chars();
    let mut holds = false;
    let mut first = true;
    loop {
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
            assert_eq!(fnmatch(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn hostile_patterns_are_bounded() {
        let stars = "*a".repeat(MAX_NAME / 2);
        assert!(!fnmatch(&stars, &"a".repeat(MAX_NAME / 2 - 1)));
        assert!(!fnmatch(&("[".repeat(MAX_NAME)), &"a".repeat(MAX_NAME)));
        assert!(!partitions_match(&["*".repeat(65_536)], &["x".to_string()]));
        let bomb = format!("{}b", "*a".repeat(100));
        assert!(!fnmatch(&bomb, &"a".repeat(MAX_NAME)));
    }
}
