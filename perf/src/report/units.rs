//! Numbers as people read them: three digits and a unit.

/// Nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        _ if ns < 999.5 => format!("{} ns", digits(ns)),
        _ if ns < 999.5e3 => format!("{} µs", digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// Samples per second.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        _ if per_s < 999.5 => format!("{}/s", digits(per_s)),
        _ if per_s < 999.5e3 => format!("{} k/s", digits(per_s / 1e3)),
        _ => format!("{} M/s", digits(per_s / 1e6)),
    }
}

/// Bytes that were moved or are held, in decimal units.
pub(crate) fn bytes(count: f64) -> String {
    match count.abs() {
        size if size < 999.5 => format!("{} B", digits(count)),
        size if size < 999.5e3 => format!("{} kB", digits(count / 1e3)),
        size if size < 999.5e6 => format!("{} MB", digits(count / 1e6)),
        _ => format!("{} GB", digits(count / 1e9)),
    }
}

/// The size of a sample: powers of two have binary units.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0 => "no sample".to_string(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{} B", thousands(bytes)),
    }
}

/// The same for an axis whose title says bytes.
pub(crate) fn size_tick(bytes: f64) -> String {
    let bytes = bytes as u64;
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// How many times as good.
pub(crate) fn times(factor: f64) -> String {
    match factor {
        _ if factor >= 9.995 => format!("{}×", digits(factor)),
        _ if factor < 0.0995 => format!("{factor:.3}×"),
        _ => format!("{factor:.2}×"),
    }
}

/// A number of things on average.
pub(crate) fn count(average: f64) -> String {
    if average < 0.005 { format!("{average:.0}") } else { digits(average) }
}

/// A share; what is not nothing does not look so.
pub(crate) fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0 %".to_string(),
        value if value < 0.01 => "<0.01 %".to_string(),
        value if value < 9.995 => format!("{value:.2} %"),
        value => format!("{value:.1} %"),
    }
}

/// A count with its thousands apart.
pub(crate) fn thousands(count: u64) -> String {
    let plain = count.to_string();
    let mut text = String::new();
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits; no point after whole numbers, which are counts or ticks.
fn digits(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_no_step_between_units() {
        assert_eq!(time(247.0), "247 ns");
        assert_eq!(time(999.6), "1.00 µs");
        assert_eq!(time(16_640.0), "16.6 µs");
        assert_eq!(time(999_400.0), "999 µs");
        assert_eq!(time(2_206_000.0), "2.21 ms");
        assert_eq!(rate(187_300.0), "187 k/s");
        assert_eq!(rate(1_574_000.0), "1.57 M/s");
        assert_eq!([0.0, 1e-6, 0.0123, 0.61].map(percent), ["0 %", "<0.01 %", "1.23 %", "61.0 %"]);
        assert_eq!(bytes(-128_400.0), "-128 kB");
        assert_eq!(
            (size(32).as_str(), size(8_192).as_str(), size(1 << 20).as_str()),
            ("32 B", "8 KiB", "1 MiB")
        );
        assert_eq!((size_tick(65_536.0).as_str(), size_tick(65_000.0).as_str()), ("64K", "65000"));
        assert_eq!((times(0.954).as_str(), times(24.2).as_str()), ("0.95×", "24.2×"));
        assert_eq!((thousands(1_234_567).as_str(), thousands(999).as_str()), ("1,234,567", "999"));
    }
}
