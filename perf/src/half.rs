//! The halves of `cdr`: encode and decode, each of which is compared by itself, for one that is ahead must not hide that
//! the other one is behind.
//!
//! Reads lines and changes none. Called by all that compares them: the report, the table and the comparison of runs.

use crate::record::{Ratio, Record, Times};
use crate::statistics;

/// What is compared of a line of `cdr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Encode,
    Decode,
}

impl Half {
    pub(crate) const BOTH: [Half; 2] = [Half::Encode, Half::Decode];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Half::Encode => "encode",
            Half::Decode => "decode",
        }
    }

    /// Of all its rounds.
    pub(crate) fn times(self, record: &Record) -> Option<&Times> {
        match self {
            Half::Encode => record.encode_ns.as_ref(),
            Half::Decode => record.decode_ns.as_ref(),
        }
    }

    /// The values of its rounds. None of a run of before: that has those of both halves together.
    pub(crate) fn rounds(self, record: &Record) -> &[f64] {
        match self {
            Half::Encode => &record.encode_round_values,
            Half::Decode => &record.decode_round_values,
        }
    }

    /// How a line stands to another one of its run by this half.
    pub(crate) fn ratio(self, this: &Record, that: &Record) -> Option<HalfRatio> {
        let (own, theirs) = (self.times(this)?, self.times(that)?);
        let rounds = (self.rounds(this), self.rounds(that));
        let of_both = rounds.0.is_empty() || rounds.1.is_empty();
        let rounds = if of_both { (&this.round_values[..], &that.round_values[..]) } else { rounds };
        let mut ratio = statistics::ratio(&that.peer, (rounds.0, Some(own)), (rounds.1, Some(theirs)))?;
        if of_both {
            let (own, theirs) = (own.p50 as f64, theirs.p50 as f64);
            let factor = own / theirs / ratio.p50;
            // Either may be a nanosecond off, as it is stored in whole ones.
            let off = (1.0 + 1.0 / own) * (1.0 + 1.0 / theirs);
            ratio.p50 *= factor;
            ratio.low = ratio.low.map(|low| low * factor / off);
            ratio.high = ratio.high.map(|high| high * factor * off);
        }
        Some(HalfRatio { ratio, of_both })
    }
}

/// How a line stands to another one by one half.
pub(crate) struct HalfRatio {
    pub(crate) ratio: Ratio,
    /// Are there the rounds of both halves together only? Then their interval, as wide, lies about the half's own ratio.
    pub(crate) of_both: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with these medians, and the rounds of both halves together.
    fn line(encode: u64, decode: u64, rounds: &[f64]) -> Record {
        let times = |p50: u64| {
            serde_json::json!({"min": 1, "mean": 1, "p50": p50, "p90": 1, "p99": p50, "p999": 1, "p9999": 1,
                "p999999": 1, "max": p50, "max_at_ns": 1, "stddev": 1, "pdv": 1})
        };
        serde_json::from_value(serde_json::json!({
            "workload": "cdr", "peer": "taut", "version": "1", "transport": "thread", "wait": "spin",
            "pin": "none", "size_bytes": 64, "rate_hz": 0.0, "qos": "", "case": "complex", "status": "ok",
            "rounds": rounds.len(), "samples": 9, "lost": 0, "out_of_order": 0, "duplicates": 0, "corrupt": 0,
            "round_values": rounds, "encode_ns": times(encode), "decode_ns": times(decode),
            "run": serde_json::to_value(crate::record::Run::default()).unwrap(),
        }))
        .unwrap()
    }

    #[test]
    fn each_half_is_compared_by_its_own_rounds() {
        let own = Record {
            encode_round_values: vec![30.0, 33.0],
            decode_round_values: vec![50.0, 50.0],
            ..line(31, 50, &[80.0, 83.0])
        };
        let theirs = Record {
            encode_round_values: vec![10.0, 11.0],
            decode_round_values: vec![100.0, 100.0],
            ..line(10, 100, &[110.0, 111.0])
        };
        let [encode, decode] = Half::BOTH.map(|half| half.ratio(&own, &theirs).unwrap());
        assert!(!encode.of_both && !decode.of_both);
        assert!((encode.ratio.p50 - 3.0).abs() < 1e-9 && encode.ratio.p99 == Some(3.1));
        assert!((decode.ratio.p50 - 0.5).abs() < 1e-9 && decode.ratio.high.unwrap() < 1.0);
    }

    #[test]
    fn a_run_without_rounds_of_halves_has_their_medians_and_an_interval_as_wide_as_of_both() {
        let rounds = [800.0, 1_000.0, 900.0];
        let (own, theirs) = (line(3_000, 5_000, &rounds), line(1_000, 10_000, &[1_000.0; 3]));
        let HalfRatio { ratio, of_both } = Half::Encode.ratio(&own, &theirs).unwrap();
        assert!(of_both && (ratio.p50 - 3.0).abs() < 1e-9);
        let both = statistics::paired_ratio(&rounds, &[1_000.0; 3]).unwrap();
        let (low, high) = both.interval.unwrap();
        let off = (1.0 + 1.0 / 3_000.0) * (1.0 + 1.0 / 1_000.0);
        assert!((ratio.high.unwrap() / 3.0 - high / both.ratio * off).abs() < 1e-9);
        assert!((ratio.low.unwrap() / 3.0 - low / both.ratio / off).abs() < 1e-9);
    }

    #[test]
    fn a_nanosecond_that_was_rounded_is_no_difference() {
        let (own, theirs) = (line(2, 3, &[5.0; 3]), line(1, 6, &[7.0; 3]));
        let ratio = Half::Encode.ratio(&own, &theirs).unwrap().ratio;
        assert!(ratio.p50 == 2.0 && ratio.low.unwrap() < 1.0, "{ratio:?}");
    }
}
