//! The values that options take: whole numbers, times, rates, shares, sizes, texts and addresses, and what is said of a word
//! that is none.
//!
//! The one place where words of a command line become numbers, for `taut perf` and for all other commands. Each error
//! says what to write instead, with the least, the most and the unit; the parser puts the option's name in front of it.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The largest sample. Beyond it the tables of two processes and their queues do not fit a small machine.
const LARGEST: u64 = 64 << 20;

/// The end of a range that has none.
pub const NO_END: f64 = f64::MAX;

/// A whole number of this range.
pub fn whole<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("use a whole number from {} to {}", range.start(), range.end()))
    }
}

/// How many there are to be: at least one.
pub fn count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "use a whole number from 1".to_owned())
}

/// Any number.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| "use a number, as 2.5 or -1e3".to_owned())
}

/// A time of this range.
pub fn seconds(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| real(text, &range, "in seconds, as 2.5")
}

/// So many in a second; 0, for as fast as it goes, whether or not the range has it.
pub fn rate(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse() {
        Ok(0.0) => Ok(0.0),
        _ => real(text, &range, "in samples per second, as 100; 0 is as fast as it goes"),
    }
}

/// A share of this range.
pub fn percent(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| real(text, &range, "in percent, as 2 or 0.5")
}

fn real(text: &str, range: &RangeInclusive<f64>, words: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let end = if *range.end() < NO_END { format!(" to {}", range.end()) } else { String::new() };
        format!("use a number from {}{end}, {words}", range.start())
    })
}

/// A text of at most so many bytes.
pub fn text(most: usize) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |text| match text.len() {
        len if len > most => Err(format!("use {most} bytes at most, not {len}")),
        _ => Ok(text.to_owned()),
    }
}

/// The size of a sample.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
        None => (text, ""),
    };
    let unit: Option<u64> = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes.filter(|bytes| (1..=LARGEST).contains(bytes)).ok_or_else(|| {
        "use bytes, or K and M for 1,024 and 1,048,576 of them, from 1 to 64M, as 64,1K".to_owned()
    })
}

/// Where to listen: an address with a port, or a port on this machine only.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse().ok().map(|port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    text.parse().ok().or_else(alone).ok_or_else(|| {
        "use PORT or ADDRESS:PORT, as 127.0.0.1:9469, with a port up to 65535, or 0 for a free one".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("64"), Ok(64));
        assert_eq!(size("8K"), Ok(8_192));
        assert_eq!(size("2MiB"), Ok(2_097_152));
        for wrong in ["", "K", "0", "-1", "1G", "65M", "99999999999999999999", "1 K"] {
            assert!(size(wrong).is_err_and(|told| told.contains("from 1 to 64M")), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_the_range() {
        for wrong in ["", "abc", "-1", "233", "1.5", "4294967296", "0x1", " 1"] {
            assert_eq!(
                whole(0..=232_u32)(wrong).unwrap_err(),
                "use a whole number from 0 to 232",
                "{wrong:?}"
            );
        }
        assert_eq!([whole(0..=232_u32)("0"), whole(0..=232_u32)("232")], [Ok(0), Ok(232)]);
        assert!(count("0").is_err() && count("1") == Ok(1));
        assert!(number("nan").is_err() && number("-1e3") == Ok(-1_000.0));
        for wrong in ["soon", "nan", "inf", "-1", "0.001", "1e7", "5s"] {
            let told = seconds(0.01..=1e6)(wrong).unwrap_err();
            assert_eq!(told, "use a number from 0.01 to 1000000, in seconds, as 2.5", "{wrong:?}");
        }
        assert!(seconds(0.0..=NO_END)("inf").unwrap_err().starts_with("use a number from 0, in seconds"));
        assert_eq!((rate(0.01..=1e7)("0"), rate(0.01..=1e7)("1e3")), (Ok(0.0), Ok(1_000.0)));
        assert!(
            rate(0.01..=1e7)("0.001").unwrap_err().contains("from 0.01 to 10000000, in samples per second")
        );
    }
}
