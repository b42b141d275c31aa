//! Numbers as a terminal shows them: in plain letters, and the digits of a column alike.

/// Three digits of a time.
pub(super) fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// Three digits of a number with a unit of thousands.
pub(super) fn scaled(number: f64, unit: &str) -> String {
    let (value, prefix) = match number.abs() {
        n if n < 1e3 => (number, ""),
        n if n < 1e6 => (number / 1e3, "k"),
        n if n < 1e9 => (number / 1e6, "M"),
        _ => (number / 1e9, "G"),
    };
    format!("{} {prefix}{unit}", digits(value)).trim_end().to_string()
}

pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

pub(super) fn bytes(size: u64) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}
