//! Sequence and fragment numbers and the 256-bit sets of them that travel. RTPS 2.5 §8.3.5.4-7.

use std::fmt;

/// The number of a change of one writer. *Range*: 1..=2^63-1 for changes; 0 and below mean none.
///
/// ```
/// assert_eq!(format!("{:>3}", taut_base::SequenceNumber(7)), "  7");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// SEQUENCENUMBER_UNKNOWN: high word -1, low word 0.
    pub const UNKNOWN: SequenceNumber = SequenceNumber(-1 << 32);
    /// Below the first change.
    pub const ZERO: SequenceNumber = SequenceNumber(0);
    /// The first change of a writer.
    pub const FIRST: SequenceNumber = SequenceNumber(1);

    /// The next number; stays at the end of the range, which no writer reaches.
    #[must_use]
    pub fn next(self) -> SequenceNumber {
        SequenceNumber(self.0.saturating_add(1))
    }

    /// The number before.
    #[must_use]
    pub fn prev(self) -> SequenceNumber {
        SequenceNumber(self.0.saturating_sub(1))
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a fragment of one change. *Range*: from 1.
pub type FragmentNumber = u32;

/// Declares a set of at most 256 numbers from a base on; bit `n` is the number `base + n`,
/// counted from the most significant bit of the first word (RTPS 2.5 §9.4.2.6).
macro_rules! number_set {
    ($(#[$doc:meta])* $name:ident, $number:ty, $to:expr, $from:expr, $floor:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            base: $number,
            num_bits: u32,
            bitmap: [u32; 8],
        }

        impl $name {
            /// An empty set. `base` also acknowledges everything below it in an ACKNACK.
            pub fn new(base: $number) -> Self {
                $name { base, num_bits: 0, bitmap: [0; 8] }
            }

            /// From the parts on the wire; `None` if they are not valid: more than 256 bits, words
            /// missing, or a base below 1.
            pub fn from_parts(base: $number, num_bits: u32, words: &[u32]) -> Option<Self> {
                let needed = num_bits.div_ceil(32) as usize;
                if num_bits > 256 || words.len() < needed || base < $floor {
                    return None;
                }
                let mut bitmap = [0; 8];
                for (to, from) in bitmap.iter_mut().zip(words.iter().take(needed)) {
                    *to = *from;
                }
                if let (Some(last), 1..) = (bitmap.get_mut(needed.wrapping_sub(1)), num_bits % 32) {
                    *last &= u32::MAX << (32 - num_bits % 32);
                }
                Some($name { base, num_bits, bitmap })
            }

            /// The first number that the set can hold.
            pub fn base(&self) -> $number {
                self.base
            }

            /// How many bits travel.
            pub fn num_bits(&self) -> u32 {
                self.num_bits
            }

            /// The words that travel, most significant bit first.
            pub fn words(&self) -> &[u32] {
                self.bitmap.get(..self.num_bits.div_ceil(32) as usize).unwrap_or(&[])
            }

            /// Adds a number; `false` if it is outside of base..base+256.
            pub fn insert(&mut self, number: $number) -> bool {
                let Some(bit) = $to(number, self.base).filter(|bit| *bit < 256) else { return false };
                let bit = bit as u32;
                if let Some(word) = self.bitmap.get_mut((bit / 32) as usize) {
                    *word |= 1 << (31 - bit % 32);
                }
                self.num_bits = self.num_bits.max(bit + 1);
                true
            }

            /// Is the number in the set?
            pub fn contains(&self, number: $number) -> bool {
                $to(number, self.base).filter(|bit| *bit < u64::from(self.num_bits)).is_some_and(|bit| {
                    self.bitmap.get((bit / 32) as usize).is_some_and(|w| w >> (31 - bit % 32) & 1 == 1)
                })
            }

            /// Has it no number?
            pub fn is_empty(&self) -> bool {
                self.bitmap.iter().all(|word| *word == 0)
            }

            /// The numbers, rising. *Cost*: at most 256 steps.
            pub fn iter(&self) -> impl Iterator<Item = $number> + '_ {
                (0..self.num_bits).map(|bit| $from(self.base, bit)).filter(|number| self.contains(*number))
            }
        }
    };
}

number_set!(
    /// Up to 256 sequence numbers. *Source*: RTPS 2.5 §9.4.2.6.
    SequenceNumberSet,
    SequenceNumber,
    |n: SequenceNumber, base: SequenceNumber| n.0.checked_sub(base.0).and_then(|d| u64::try_from(d).ok()),
    |base: SequenceNumber, bit: u32| SequenceNumber(base.0.saturating_add(i64::from(bit))),
    SequenceNumber::FIRST
);
number_set!(
    /// Up to 256 fragment numbers. *Source*: RTPS 2.5 §9.4.2.8.
    FragmentNumberSet,
    FragmentNumber,
    |n: FragmentNumber, base: FragmentNumber| n.checked_sub(base).map(u64::from),
    |base: FragmentNumber, bit: u32| base.saturating_add(bit),
    1
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_left() {
        let mut set = SequenceNumberSet::new(SequenceNumber(10));
        assert!(set.insert(SequenceNumber(10)) && set.insert(SequenceNumber(43)));
        assert!(!set.insert(SequenceNumber(9)) && !set.insert(SequenceNumber(266)));
        assert_eq!((set.num_bits(), set.words()), (34, &[0x8000_0000, 0x4000_0000][..]));
        assert_eq!(set.iter().collect::<Vec<_>>(), [SequenceNumber(10), SequenceNumber(43)]);
    }

    #[test]
    fn parts_that_are_refused() {
        let one = SequenceNumber(1);
        assert!(SequenceNumberSet::from_parts(one, 257, &[0; 9]).is_none());
        assert!(SequenceNumberSet::from_parts(one, 33, &[0]).is_none());
        assert!(SequenceNumberSet::from_parts(SequenceNumber(0), 0, &[]).is_none());
        assert!(SequenceNumberSet::from_parts(one, 256, &[u32::MAX; 8]).is_some());
        let set = SequenceNumberSet::from_parts(one, 4, &[u32::MAX]).unwrap();
        assert_eq!(set.iter().count(), 4, "bits past numBits do not count");
    }

    #[test]
    fn ends_of_the_range() {
        let set = SequenceNumberSet::new(SequenceNumber(1));
        assert!(!set.contains(SequenceNumber(i64::MIN)) && !set.contains(SequenceNumber(i64::MAX)));
        let mut top = FragmentNumberSet::new(u32::MAX);
        assert!(top.insert(u32::MAX) && top.contains(u32::MAX));
    }
}
