//! What a link does to datagrams.

use taut_base::{Duration, Rng};
use taut_mem::Bytes;

/// The faults of a link. *Units*: chances are per mille.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// The chance that a datagram is lost.
    pub loss: u64,
    /// The chance that it comes twice.
    pub duplicate: u64,
    /// The chance that it takes [`Faults::detour`] longer, so that later ones overtake it.
    pub reorder: u64,
    /// How much longer at most.
    pub detour: Duration,
    /// How long every datagram takes.
    pub delay: Duration,
    /// And at most this much longer, by chance.
    pub jitter: Duration,
    /// The chance that a bit is flipped; UDP's checksum would hide such a datagram, so it is off.
    pub corrupt: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            loss: 0,
            duplicate: 0,
            reorder: 0,
            detour: Duration::from_millis(20),
            delay: Duration::from_micros(50),
            jitter: Duration::ZERO,
            corrupt: 0,
        }
    }
}

/// What becomes of a datagram.
pub(crate) struct Fate {
    /// How often it arrives.
    pub copies: u32,
}

impl Faults {
    /// Loses so many of a thousand, and nothing else.
    pub fn loss(per_mille: u64) -> Faults {
        Faults { loss: per_mille, ..Faults::default() }
    }

    /// Draws what becomes of a datagram. One to oneself is never lost.
    pub(crate) fn draw(&self, rng: &mut Rng, to_self: bool) -> Fate {
        if to_self {
            return Fate { copies: 1 };
        }
        if self.loss > 0 && rng.chance(self.loss) {
            return Fate { copies: 0 };
        }
        let twice = self.duplicate > 0 && rng.chance(self.duplicate);
        Fate { copies: if twice { 2 } else { 1 } }
    }

    /// Draws how long a datagram takes.
    pub(crate) fn delay_of(&self, rng: &mut Rng) -> Duration {
        let mut delay = self.delay;
        if self.jitter > Duration::ZERO {
            delay.0 += rng.below(self.jitter.0.unsigned_abs()).cast_signed();
        }
        if self.reorder > 0 && rng.chance(self.reorder) {
            delay.0 += rng.below(self.detour.0.unsigned_abs()).cast_signed();
        }
        delay
    }

    /// The datagram with one bit flipped.
    pub(crate) fn flip(&self, rng: &mut Rng, bytes: &[u8]) -> Bytes {
        let mut changed = bytes.to_vec();
        let at = rng.below(changed.len() as u64) as usize;
        if let Some(byte) = changed.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
        Bytes::from(changed)
    }
}
