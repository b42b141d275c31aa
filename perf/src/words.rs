//! How what is counted is said.

/// A number with what it counts, as `1 case` and `2 cases`.
///
/// ```
/// assert_eq!([1, 2].map(|cases| taut_perf::words::counted(cases, "case")), ["1 case", "2 cases"]);
/// ```
pub fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
