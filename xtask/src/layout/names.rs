//! Names of functions: in what callgrind writes, and as patterns that hold in each build.

use std::collections::{BTreeMap, BTreeSet};

/// The functions that ran, as patterns. All of the program's bear such names but its first, and no library's do.
pub fn patterns(callgrind: &str) -> BTreeSet<String> {
    callgrind.lines().filter_map(|line| pattern(line.strip_prefix("fn=")?)).collect()
}

/// The functions that were called so often, as patterns.
pub fn often(callgrind: &str, at_least: u64) -> BTreeSet<String> {
    let (mut calls, mut called) = (BTreeMap::<String, u64>::new(), None);
    for line in callgrind.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            called = pattern(name);
        } else if let Some(count) = line.strip_prefix("calls=")
            && let Some(name) = called.take()
        {
            let count = count.split(' ').next().and_then(|count| count.parse::<u64>().ok());
            *calls.entry(name).or_default() += count.unwrap_or_default();
        }
    }
    calls.into_iter().filter(|(_, count)| *count >= at_least).map(|(name, _)| name).collect()
}

/// Of a mangled name (RFC 2603) what is the same in each build: not the hashes of crates, which depend on
/// where they are built, nor the references to earlier places of the name, which depend on the lengths of those,
/// nor the crate at the end that has asked for a generic function: of several that are equal the compiler keeps any.
fn pattern(name: &str) -> Option<String> {
    // A recursion's depth.
    let name = name.split('\'').next().filter(|name| name.starts_with("_R") || *name == "main")?;
    let mut pattern = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let tag = if rest.starts_with("Cs") { 2 } else { usize::from(first == 'B') };
        let number = rest.get(tag..).and_then(|after| after.split_once('_')).map(|(number, _)| number);
        match number.filter(|number| tag > 0 && number.chars().all(|digit| digit.is_ascii_alphanumeric())) {
            Some(number) => {
                if !pattern.ends_with('*') {
                    pattern.push('*');
                }
                rest = &rest[tag + number.len() + 1..];
                if is_one_name(rest) {
                    break;
                }
            }
            None => {
                pattern.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Some(pattern)
}

/// Whether it is a length and a name of this length, and nothing else.
fn is_one_name(text: &str) -> bool {
    let name = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    text[..text.len() - name.len()].parse() == Ok(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_places_are_left_out() {
        let name = "_RNvMNtCs5oHvxF0qoHa_9taut_rtps6writerNtB2_6Writer3new";
        assert_eq!(pattern(name).unwrap(), "_RNvMNt*9taut_rtps6writerNt*6Writer3new");
        assert_eq!(pattern("_RINvNtCsgE_4core3ptr4dropECsa_B_4taut'2").unwrap(), "_RINvNt*4core3ptr4dropE*");
        assert_eq!(pattern("main").unwrap(), "main");
        assert_eq!(pattern("malloc"), None);
    }

    #[test]
    fn functions_are_found_by_how_often_they_are_called() {
        let calls = |name: &str, count: u64| format!("cfn={name}\ncalls={count} 12\n0 7\n");
        let text = format!("fn=_RNvCsa_1x1f\n{}{}", calls("_RNvCsa_1x1g", 600), calls("_RNvCsa_1x1h", 999));
        let text = format!("{text}fn=_RNvCsa_1x1h\n{}{}", calls("_RNvCsa_1x1g", 400), calls("malloc", 5_000));
        assert_eq!(often(&text, 1_000).into_iter().collect::<Vec<_>>(), ["_RNv*1x1g"]);
    }

    #[test]
    fn functions_are_found_where_they_ran() {
        let text = "ob=/p/peer\nfn=_RNvCsa_1x1f\ncob=/lib/c.so\ncfn=_RNvCsa_1x1h\nob=/lib/c.so\nfn=malloc\n";
        assert_eq!(patterns(text).into_iter().collect::<Vec<_>>(), ["_RNv*1x1f"]);
    }
}
