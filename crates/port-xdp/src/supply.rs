//! How many frames the kernel has to receive into.
//!
//! All of them go round: the one that came back last is received into last, when as many others have been. With 8,192 in
//! turn none is in the processor's caches when the kernel writes into it, nor when it is read: that is a third of what a
//! round trip of 1 KiB takes here beyond the bare one. So where the kernel copies, and what comes is taken at once, few are
//! in turn. Where a device writes them all are, as it takes as many ahead as it has places.

use taut_xdp::BindMode;

/// The fewest in turn: as many as network cards have places for as they come. Lower loses frames while the receiver is
/// stopped for a moment, higher and they do not fit in a core's cache.
const LEAST: u32 = 512;

/// So many times what waited at most, at once, are in turn. Lower loses frames of the first burst that is longer, higher
/// keeps more in turn where frames come in short bursts.
const TIMES: u32 = 16;
/// All are, as soon as such a part of those in turn waits at once. Lower loses frames of a burst that goes on growing before it
/// is seen; higher, and near what was the most so far, all are in turn again and again in a stream that is taken at once.
const PART: u32 = 4;

/// The number of frames in turn, by how many have waited to be taken.
pub(crate) struct Supply {
    least: u32,
    most: u32,
    level: u32,
    /// The most that have waited at once since the level was set by it.
    waited: u32,
    /// How many have been taken since then.
    taken: u32,
}

impl Supply {
    /// Of so many at most; all of them at first.
    pub fn new(bound: BindMode, most: u32) -> Supply {
        let least = if bound == BindMode::Copy { LEAST.min(most) } else { most };
        Supply { least, most, level: most, waited: 0, taken: 0 }
    }

    /// How many are to be left out.
    #[inline]
    pub fn left_out(&self) -> usize {
        (self.most - self.level) as usize
    }

    /// So many have been taken, of so many that waited.
    #[inline]
    pub fn note(&mut self, taken: u32, waited: u32) {
        self.waited = self.waited.max(waited);
        self.taken = self.taken.saturating_add(taken);
        if waited > self.level / PART {
            // More may come next.
            self.level = self.most;
        } else if self.taken >= self.most {
            self.level = self.waited.saturating_mul(TIMES).clamp(self.least, self.most);
            (self.waited, self.taken) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 8_192;

    /// After so many looks that each found so many.
    fn after(supply: &mut Supply, looks: u32, found: u32) -> usize {
        (0..looks).for_each(|_| supply.note(found, found));
        supply.left_out()
    }

    #[test]
    fn what_is_taken_at_once_needs_few() {
        let mut supply = Supply::new(BindMode::Copy, MOST);
        assert_eq!(after(&mut supply, MOST - 1, 1), 0, "each has been in turn first");
        assert_eq!(after(&mut supply, 1, 1), (MOST - LEAST) as usize);
        assert_eq!(after(&mut supply, 10 * MOST, LEAST / TIMES), (MOST - LEAST) as usize);
    }

    #[test]
    fn a_burst_brings_all_of_them_back_at_once() {
        let mut supply = Supply::new(BindMode::Copy, MOST);
        after(&mut supply, MOST, 1);
        assert_eq!(after(&mut supply, 1, LEAST / PART + 1), 0);
        // They stay until as many as there are have been taken, and then as many as such a burst needs.
        assert_eq!(after(&mut supply, MOST / 2, 1), 0);
        assert_eq!(after(&mut supply, MOST / 2, 1), (MOST - (LEAST / PART + 1) * TIMES) as usize);
        assert_eq!(after(&mut supply, MOST, 1), (MOST - LEAST) as usize);
    }

    #[test]
    fn some_more_than_before_need_no_more_than_that() {
        let mut supply = Supply::new(BindMode::Copy, MOST);
        after(&mut supply, MOST, 1);
        // As many as there are at least for.
        let more = 3 * LEAST / TIMES;
        assert_eq!(after(&mut supply, 1, more), (MOST - LEAST) as usize);
        assert_eq!(after(&mut supply, MOST, 1), (MOST - more * TIMES) as usize);
    }

    #[test]
    fn what_is_left_waiting_counts_for_what_it_is() {
        let mut supply = Supply::new(BindMode::Copy, MOST);
        for _ in 0..MOST {
            supply.note(1, MOST / TIMES);
        }
        assert_eq!(supply.left_out(), 0);
    }

    #[test]
    fn a_device_has_all_of_them() {
        let mut supply = Supply::new(BindMode::ZeroCopy, MOST);
        assert_eq!(after(&mut supply, 10 * MOST, 1), 0);
    }
}
