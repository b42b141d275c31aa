//! How often times of each size were noted, in bounded memory: each is counted among those that differ by a sixteenth of it
//! at most, and below 32 ns by itself. To note one takes some ten instructions, as each step does it.

/// Longer ones count as this long. *Units*: ns.
const LONGEST_NS: u64 = 10_000_000_000;

/// So many counts for each doubling, a power of two. Lower and times are told less exactly than to a tenth, higher takes
/// more memory.
const PARTS: u64 = 16;

/// The first times have one count each.
const EXACT: u64 = 2 * PARTS;

/// Up to that of [`LONGEST_NS`].
const COUNTS: usize = place(LONGEST_NS) + 1;

/// Where a time is counted: behind those of all shorter doublings, by its first bits.
#[inline]
const fn place(ns: u64) -> usize {
    let shift = (ns | (EXACT - 1)).ilog2() - (EXACT - 1).ilog2();
    (shift as u64 * PARTS + (ns >> shift)) as usize
}

/// The longest time that is counted there.
fn longest_at(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / PARTS).saturating_sub(1);
    ((place - shift * PARTS + 1) << shift) - 1
}

/// See above.
#[derive(Clone)]
pub(crate) struct Counts([u64; COUNTS]);

impl Counts {
    #[cold]
    pub fn new() -> Box<Counts> {
        Box::new(Counts([0; COUNTS]))
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    #[inline]
    pub fn note(&mut self, ns: u64) {
        if let Some(count) = self.0.get_mut(place(ns.min(LONGEST_NS))) {
            *count += 1;
        }
    }

    pub fn len(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many times are not above each of these bounds, which ascend. Those counted together with longer ones than the
    /// bound are not: no time is told to be shorter than it was.
    pub fn up_to<const N: usize>(&self, bounds: [u64; N]) -> [u64; N] {
        let (mut sum, mut from) = (0, 0);
        bounds.map(|bound| {
            let to = place(bound.saturating_add(1));
            sum += self.0.get(from..to).unwrap_or_default().iter().sum::<u64>();
            from = to;
            sum
        })
    }

    /// This share of the times is not above; 0 without any.
    pub fn quantile(&self, share: f64) -> u64 {
        let mut left = ((share * self.len() as f64).ceil() as u64).max(1);
        let place = self.0.iter().position(|count| {
            let is_among = left <= *count;
            left = left.saturating_sub(*count);
            is_among
        });
        place.map_or(0, longest_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_told_to_a_sixteenth() {
        let mut last = 0;
        let long = (17..33).flat_map(|shift| [(1 << shift) - 1, 1 << shift, 3 << shift]);
        for ns in (0..100_000).chain(long.filter(|ns| *ns < LONGEST_NS)) {
            let (at, longest) = (place(ns), longest_at(place(ns)));
            assert!(longest >= ns && longest <= ns + ns / PARTS, "{ns}: {longest}");
            assert!(at < COUNTS && place(longest) == at && place(longest + 1) == at + 1, "{ns}");
            assert!(ns >= 100_000 || at == last || at == last + 1, "{ns}");
            last = at;
        }
    }

    #[test]
    fn what_is_longer_than_the_longest_counts_as_that() {
        let mut counts = Counts::new();
        assert_eq!(counts.quantile(0.5), 0, "there is none");
        [7, 7, LONGEST_NS + 1, u64::MAX].iter().for_each(|ns| counts.note(*ns));
        let near = LONGEST_NS..=LONGEST_NS + LONGEST_NS / PARTS;
        assert_eq!((counts.len(), counts.quantile(0.25), counts.quantile(0.5)), (4, 7, 7));
        assert!([0.51, 1.0].iter().all(|share| near.contains(&counts.quantile(*share))));
    }

    #[test]
    fn no_time_is_counted_up_to_less_than_it_was() {
        const BOUNDS: [u64; 5] = [0, 31, 1_000, 50_000, 100_000_000];
        let up_to = |ns: u64| {
            let mut counts = Counts::new();
            counts.note(ns);
            counts.up_to(BOUNDS)
        };
        assert_eq!(Counts::new().up_to(BOUNDS), [0; 5]);
        let near = BOUNDS.iter().flat_map(|bound| bound.saturating_sub(bound / PARTS + 1)..=*bound + 1);
        for ns in (0..2_000).chain(near.filter(|ns| ns % 97 == 0 || BOUNDS.contains(ns))) {
            let of = up_to(ns);
            let reference = BOUNDS.map(|bound| u64::from(longest_at(place(ns)) <= bound));
            assert_eq!(of, reference, "{ns}");
            assert!(BOUNDS.iter().zip(of).all(|(bound, count)| count == 0 || ns <= *bound), "{ns}");
            assert!(
                BOUNDS.iter().zip(of).all(|(bound, count)| count == 1 || ns + ns / PARTS >= *bound),
                "{ns}"
            );
        }
        let mut counts = Counts::new();
        [0, 7, 31, 900, 40_000, 40_000, u64::MAX].iter().for_each(|ns| counts.note(*ns));
        assert_eq!(counts.up_to(BOUNDS), [1, 3, 4, 6, 6]);
    }

    #[test]
    fn more_times_than_32_bits_count_are_spread_as_they_came() {
        let mut counts = Counts::new();
        counts.0[place(50_000)] = 2 * u64::from(u32::MAX);
        counts.note(50_000);
        assert!([0.5, 0.999].iter().all(|share| (50_000..=53_125).contains(&counts.quantile(*share))));
    }
}
