//! From values to places: linear, logarithmic and by rank, with the ticks that fit.

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// As they are.
    Linear,
    /// By their logarithm: equal distances are equal factors.
    Log,
    /// A share of all samples by its rarity: 90 %, 99 %, 99.9 % are equally far apart.
    Tail,
}

/// Values `from..to` on places `start..end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    kind: Kind,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Without a spread of values there is one place for all: the middle.
    pub(crate) fn new(kind: Kind, values: (f64, f64), places: (f64, f64)) -> Scale {
        Scale { kind, from: values.0, to: values.1, start: places.0, end: places.1 }
    }

    fn measure(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => value,
            Kind::Log => value.max(f64::MIN_POSITIVE).ln(),
            // Rarer than one in a hundred million is beyond any run here.
            Kind::Tail => -(1.0 - value).max(1e-8).log10(),
        }
    }

    /// The place of a value; values beyond the ends stay there.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (from, to) = (self.measure(self.from), self.measure(self.to));
        let share =
            if to > from { ((self.measure(value) - from) / (to - from)).clamp(0.0, 1.0) } else { 0.5 };
        self.start + share * (self.end - self.start)
    }

    /// Round values within the ends, `gap` places apart at least.
    pub(crate) fn ticks(&self, gap: f64) -> Vec<f64> {
        let room = ((self.end - self.start).abs() / gap).max(1.0);
        match self.kind {
            Kind::Linear => self.linear_ticks(room),
            Kind::Log => self.log_ticks(room),
            Kind::Tail => {
                let shares = [0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.999_999_9];
                shares.into_iter().filter(|share| *share >= self.from && *share <= self.to).collect()
            }
        }
    }

    fn linear_ticks(&self, room: f64) -> Vec<f64> {
        let raw = (self.to - self.from).max(f64::MIN_POSITIVE) / room;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step * 1.000_001).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    fn log_ticks(&self, room: f64) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let within: &[f64] = match room / decades.max(0.01) {
            per_decade if per_decade >= 6.0 => &[1.0, 2.0, 5.0],
            per_decade if per_decade >= 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let every = (decades / room).ceil().max(1.0) as i32;
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let all = powers.flat_map(|power| within.iter().map(move |m| m * 10f64.powi(power)));
        all.filter(|value| *value >= self.from * 0.999 && *value <= self.to * 1.001).collect()
    }
}

/// The ends of a logarithmic axis for these values: a little room on both sides.
pub(crate) fn log_ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let positive = values.filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = positive.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    (high > 0.0).then_some((low * 0.8, high * 1.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let log = Scale::new(Kind::Log, (1.0, 100.0), (200.0, 0.0));
        assert_eq!((log.at(1.0), log.at(10.0), log.at(1e9)), (200.0, 100.0, 0.0));
        let tail = Scale::new(Kind::Tail, (0.0, 0.999), (0.0, 300.0));
        assert!((tail.at(0.9) - 100.0).abs() < 1e-6 && (tail.at(0.99) - 200.0).abs() < 1e-6);
        assert_eq!(Scale::new(Kind::Log, (7.0, 7.0), (0.0, 10.0)).at(7.0), 5.0, "one value has a place");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            Scale::new(Kind::Linear, (0.0, 97.0), (0.0, 300.0)).ticks(60.0),
            [0.0, 20.0, 40.0, 60.0, 80.0]
        );
        assert_eq!(Scale::new(Kind::Log, (3.0, 4_000.0), (0.0, 200.0)).ticks(30.0), [10.0, 100.0, 1_000.0]);
        let one = Scale::new(Kind::Log, (4.0, 90.0), (0.0, 300.0)).ticks(30.0);
        assert_eq!(one.iter().map(|tick| tick.round()).collect::<Vec<_>>(), [5.0, 10.0, 20.0, 50.0]);
        for kind in [Kind::Linear, Kind::Log] {
            let wide = Scale::new(kind, (1e-3, 1e12), (0.0, 100.0)).ticks(20.0);
            assert!(wide.len() <= 8, "{kind:?}: {wide:?}");
        }
    }
}
