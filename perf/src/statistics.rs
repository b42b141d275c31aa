//! From times to figures: the distribution of a line, and how two lines stand to each other.
//!
//! Owns no I/O and no clock. Percentiles come from an HdrHistogram with three digits: 0.1 % is finer than
//! any machine repeats. Ratios pair round with round, so that a machine that drifts hits both sides.

use hdrhistogram::Histogram;

use crate::record::{Ratio, SERIES_MOST, Slice, Times};

/// Above this a time is a hang, not a latency: 10 minutes. Values beyond it are held at it.
const HIGHEST_NS: u64 = 600_000_000_000;

/// The times of one line, round by round.
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: f64,
    sum_of_squares: f64,
    max_ns: u64,
    max_at_ns: u64,
    rounds_p50: Vec<f64>,
    /// The slices of each round, and how long it took: a round may be of millions of samples.
    slices: Vec<(Vec<Slice>, u64)>,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution {
            histogram: histogram(),
            sum: 0.0,
            sum_of_squares: 0.0,
            max_ns: 0,
            max_at_ns: 0,
            rounds_p50: Vec::new(),
            slices: Vec::new(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("the bounds are constants that it takes")
}

impl Distribution {
    /// Adds a round: `(start, time)` of each sample in nanoseconds, ascending by start. An empty round
    /// counts as one that failed.
    pub fn add_round(&mut self, samples: Vec<(u64, u64)>) {
        let begin_ns = samples.first().map_or(0, |first| first.0);
        let mut round = histogram();
        for &(start_ns, time_ns) in &samples {
            round.saturating_record(time_ns.clamp(1, HIGHEST_NS));
            self.sum += time_ns as f64;
            self.sum_of_squares += (time_ns as f64).powi(2);
            if time_ns > self.max_ns {
                self.max_ns = time_ns;
                self.max_at_ns = start_ns.saturating_sub(begin_ns);
            }
        }
        // The upper end of a cell may lie above all that is in it.
        let most = samples.iter().map(|(_, time_ns)| *time_ns).max();
        let p50 = most.map_or(0.0, |most| round.value_at_quantile(0.5).min(most.max(1)) as f64);
        self.rounds_p50.push(p50);
        self.histogram.add(&round).expect("both have the same bounds");
        let span_ns = samples.last().map_or(0, |last| last.0.saturating_sub(begin_ns) + last.1);
        self.slices.push((slices(&samples, begin_ns), span_ns));
    }

    /// The median of the round that was added last, where it is known more finely than its samples.
    pub fn refine(&mut self, p50: f64) {
        if let Some(last) = self.rounds_p50.last_mut() {
            *last = p50;
        }
    }

    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// The median of each round, 0 for an empty one.
    pub fn rounds_p50(&self) -> &[f64] {
        &self.rounds_p50
    }

    /// The figures, of all rounds together; but the median is what is typical of the rounds' medians, as ratios to others
    /// are of those. `None` without a sample.
    pub fn times(&self) -> Option<Times> {
        if self.samples() == 0 {
            return None;
        }
        let count = self.samples() as f64;
        let mean = self.sum / count;
        let variance = (self.sum_of_squares / count - mean * mean).max(0.0);
        let at = |quantile: f64| self.histogram.value_at_quantile(quantile).min(self.max_ns);
        let min = self.histogram.min().min(at(0.5));
        Some(Times {
            min,
            mean: mean.round() as u64,
            p50: typical(&self.rounds_p50).map_or(at(0.5), |median| median.round() as u64),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            p999999: at(0.999_999),
            max: self.max_ns,
            max_at_ns: self.max_at_ns,
            stddev: variance.sqrt().round() as u64,
            pdv: at(0.999).saturating_sub(min),
        })
    }

    /// `(value, count)` of the cells that are not empty, ascending; to 1 %, which a picture cannot show and
    /// which keeps a stored run small. No cell lies beyond the most.
    pub fn cells(&self) -> Vec<(u64, u64)> {
        let mut coarse = Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 2)
            .expect("the bounds are constants that it takes");
        for cell in self.histogram.iter_recorded() {
            coarse.saturating_record_n(cell.value_iterated_to(), cell.count_at_value());
        }
        let value = |value: u64| value.clamp(self.histogram.min(), self.max_ns.max(1));
        coarse.iter_recorded().map(|cell| (value(cell.value_iterated_to()), cell.count_at_value())).collect()
    }

    /// The rounds one after the other, cut into slices of about equal numbers of samples.
    pub fn series(&self) -> Vec<Slice> {
        let rounds = self.slices.iter().filter(|(slices, _)| !slices.is_empty()).count();
        let each = (SERIES_MOST / rounds.max(1)).max(1);
        let mut series = Vec::new();
        let mut offset_ns = 0;
        for (slices, span_ns) in &self.slices {
            for part in slices.chunks(slices.len().div_ceil(each).max(1)) {
                series.push(joined(part, offset_ns));
            }
            offset_ns += span_ns;
        }
        series
    }
}

/// A round as at most [`SERIES_MOST`] slices of equal numbers of samples, since its beginning.
fn slices(samples: &[(u64, u64)], begin_ns: u64) -> Vec<Slice> {
    let per_slice = samples.len().div_ceil(SERIES_MOST).max(1);
    let mut times = Vec::with_capacity(per_slice);
    let slice = |part: &[(u64, u64)]| {
        times.clear();
        times.extend(part.iter().map(|sample| sample.1));
        times.sort_unstable();
        Slice {
            at_ns: part[0].0.saturating_sub(begin_ns),
            min: times[0],
            p50: times[times.len() / 2],
            max: times[times.len() - 1],
        }
    };
    samples.chunks(per_slice).map(slice).collect()
}

/// Neighbours as one slice, so much later. Its median is that of theirs.
fn joined(part: &[Slice], offset_ns: u64) -> Slice {
    let mut medians: Vec<u64> = part.iter().map(|slice| slice.p50).collect();
    medians.sort_unstable();
    Slice {
        at_ns: offset_ns + part[0].at_ns,
        min: part.iter().map(|slice| slice.min).min().unwrap_or(0),
        p50: medians[medians.len() / 2],
        max: part.iter().map(|slice| slice.max).max().unwrap_or(0),
    }
}

/// The median of what is not 0; 0 if nothing is.
pub fn median(values: &[f64]) -> f64 {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A ratio with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// The interval; `None` with fewer than two pairs.
    pub interval: Option<(f64, f64)>,
}

/// This over that, round by round: a t interval of the logarithms of the ratios of each pair. Pairs in
/// which a side has no value (0) are left out; `None` if no pair is left.
pub fn paired_ratio(this: &[f64], that: &[f64]) -> Option<Estimate> {
    let pairs = this.iter().zip(that).filter(|(a, b)| **a > 0.0 && **b > 0.0);
    let logs: Vec<f64> = pairs.map(|(a, b)| (a / b).ln()).collect();
    let (mean, variance) = mean_and_variance(&logs)?;
    let half = (logs.len() > 1).then(|| t_95(logs.len() - 1) * (variance / logs.len() as f64).sqrt());
    Some(estimate(mean, half))
}

/// What is typical of some rounds: the geometric mean of their values, as a round counts as much as another one in a ratio.
/// 0 is a round that did not run. `None` without one that did.
pub fn typical(rounds: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = rounds.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
    Some(mean_and_variance(&logs)?.0.exp())
}

/// This over that, of two runs: their rounds have no partners, so Welch's interval of the logarithms.
pub fn unpaired_ratio(this: &[f64], that: &[f64]) -> Option<Estimate> {
    let logs = |values: &[f64]| values.iter().filter(|v| **v > 0.0).map(|v| v.ln()).collect::<Vec<_>>();
    let (this, that) = (logs(this), logs(that));
    let ((mean_a, var_a), (mean_b, var_b)) = (mean_and_variance(&this)?, mean_and_variance(&that)?);
    let (n_a, n_b) = (this.len() as f64, that.len() as f64);
    let half = (this.len() > 1 && that.len() > 1).then(|| {
        let (a, b) = (var_a / n_a, var_b / n_b);
        let freedom = (a + b).powi(2) / (a * a / (n_a - 1.0) + b * b / (n_b - 1.0));
        let freedom = if freedom.is_finite() { freedom.floor().max(1.0) as usize } else { 1 };
        t_95(freedom) * (a + b).sqrt()
    });
    Some(estimate(mean_a - mean_b, half))
}

fn estimate(log: f64, half: Option<f64>) -> Estimate {
    Estimate { ratio: log.exp(), interval: half.map(|half| ((log - half).exp(), (log + half).exp())) }
}

fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, if values.len() > 1 { squares / (count - 1.0) } else { 0.0 }))
}

/// The 97.5 % point of Student's t: two-sided 95 %.
fn t_95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond the table the normal distribution's 1.96 is approached from above: within 0.2 %.
    let far = |freedom: usize| 1.960 + 2.4 / freedom as f64;
    TABLE.get(freedom.wrapping_sub(1)).copied().unwrap_or_else(|| far(freedom))
}

/// How a line stands to another one of the same run: both with the values of their rounds and, where
/// they are times, their distribution.
pub fn ratio(to: &str, this: (&[f64], Option<&Times>), that: (&[f64], Option<&Times>)) -> Option<Ratio> {
    let estimate = paired_ratio(this.0, that.0)?;
    let tails = this.1.zip(that.1);
    let of = |pick: fn(&Times) -> u64| {
        tails.and_then(|(a, b)| (pick(b) > 0).then(|| pick(a) as f64 / pick(b) as f64))
    };
    Some(Ratio {
        to: to.to_string(),
        p50: estimate.ratio,
        p99: of(|times| times.p99),
        max: of(|times| times.max),
        low: estimate.interval.map(|interval| interval.0),
        high: estimate.interval.map(|interval| interval.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(begin: u64, times: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        times.into_iter().enumerate().map(|(n, time)| (begin + 1_000 * n as u64, time)).collect()
    }

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut all = Distribution::default();
        all.add_round(round(5_000_000, 1..=100_000));
        let times = all.times().unwrap();
        for (seen, exact) in [(times.p50, 50_000), (times.p99, 99_000), (times.p9999, 99_990)] {
            assert!(seen.abs_diff(exact) * 1_000 <= exact, "{seen} is not {exact}");
        }
        assert_eq!((times.min, times.max, times.max_at_ns), (1, 100_000, 99_999_000));
        assert_eq!(times.mean, 50_001);
        assert!(times.stddev.abs_diff(28_868) < 5);
    }

    #[test]
    fn cells_are_few_and_count_every_sample() {
        let mut all = Distribution::default();
        all.add_round(round(0, 1_000..=1_000_000));
        let cells = all.cells();
        // Ten octaves of 128 cells.
        assert!(cells.len() <= 1_280, "{} cells", cells.len());
        assert_eq!(cells.iter().map(|cell| cell.1).sum::<u64>(), 999_001);
        assert!(cells.is_sorted_by_key(|cell| cell.0) && cells.last().unwrap().0 == 1_000_000);
    }

    #[test]
    fn no_sample_no_figures() {
        let mut none = Distribution::default();
        none.add_round(Vec::new());
        assert_eq!((none.times(), none.rounds_p50()), (None, &[0.0][..]));
        assert!(none.series().is_empty());
    }

    #[test]
    fn the_series_goes_on_from_round_to_round_and_keeps_the_outlier() {
        let mut two = Distribution::default();
        two.add_round(round(7_000, vec![10; 5_000]));
        two.add_round(round(9_000_000_000, (0..5_000).map(|n| if n == 2_500 { 9_999 } else { 20 })));
        let series = two.series();
        assert!(series.len() <= SERIES_MOST + 1 && series.is_sorted_by_key(|slice| slice.at_ns));
        assert_eq!(series[0].at_ns, 0);
        assert_eq!(series.iter().map(|slice| slice.max).max(), Some(9_999));
        assert!(series.last().unwrap().at_ns < 11_000_000);
    }

    #[test]
    fn pairs_cancel_what_the_machine_does_to_both() {
        let drifting = [10.0, 20.0, 40.0, 80.0];
        let twice: Vec<f64> = drifting.iter().map(|value| 2.0 * value).collect();
        let paired = paired_ratio(&twice, &drifting).unwrap();
        let (low, high) = paired.interval.unwrap();
        assert!((paired.ratio - 2.0).abs() < 1e-9 && low > 1.99 && high < 2.01);
        let (low, high) = unpaired_ratio(&twice, &drifting).unwrap().interval.unwrap();
        assert!(low < 1.0 && high > 4.0, "without partners the drift is noise: {low} to {high}");
    }

    #[test]
    fn a_round_that_failed_is_left_out() {
        let estimate = paired_ratio(&[2.0, 0.0, 2.0], &[1.0, 1.0, 1.0]).unwrap();
        assert!((estimate.ratio - 2.0).abs() < 1e-9);
        assert_eq!(paired_ratio(&[0.0], &[1.0]), None);
        assert_eq!(paired_ratio(&[3.0], &[1.0]).unwrap().interval, None);
    }

    #[test]
    fn the_interval_of_three_pairs_is_the_textbooks() {
        // Logs 0, 1, 2: mean 1, standard deviation 1, t(2) = 4.303, half width 4.303 / sqrt(3).
        let this: Vec<f64> = [0.0f64, 1.0, 2.0].iter().map(|log| log.exp()).collect();
        let (low, high) = paired_ratio(&this, &[1.0; 3]).unwrap().interval.unwrap();
        let half = 4.303 / 3f64.sqrt();
        assert!((low.ln() - (1.0 - half)).abs() < 1e-9 && (high.ln() - (1.0 + half)).abs() < 1e-9);
    }
}
