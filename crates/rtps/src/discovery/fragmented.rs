//! Announcements of participants that come in fragments. RTPS 2.5 §8.3.8.3, §8.5.3.
//!
//! Who sends nothing larger than a packet sends those so that take more. Nothing is matched with their writers, as they may
//! be anybody's, and nobody asks for what is missing: it comes with the next announcement. Owns what has come until then, and
//! must never keep more of it than [`limits::ANNOUNCEMENTS`] says. The receiver calls it, and gives what is whole to SPDP.

use std::collections::VecDeque;

use taut_base::{GuidPrefix, SequenceNumber};
use taut_mem::{Bytes, Pool};

use crate::limits;
use crate::reader::{Assembly, FragmentInfo, Said};

/// One announcement in assembly.
struct Announcement {
    prefix: GuidPrefix,
    number: SequenceNumber,
    assembly: Assembly,
}

/// The announcements in assembly, at most one of each participant, those first that were begun first.
#[derive(Default)]
pub(crate) struct Announcements(VecDeque<Announcement>);

impl Announcements {
    /// Adds the fragments of one submessage. Returns what a participant says if that is all of it.
    ///
    /// Another announcement of a participant takes the place of the one that was begun; those of too many that of the one that
    /// was begun first.
    pub fn add(
        &mut self,
        pool: &mut Pool,
        (prefix, number): (GuidPrefix, SequenceNumber),
        (info, said): (FragmentInfo, Said),
        payload: &[u8],
        keep: &mut dyn FnMut(&[u8]) -> Bytes,
    ) -> Option<(Bytes, Said)> {
        let of_it = |known: &Announcement| known.number == number && known.assembly.agrees(info);
        self.0.retain(|known| known.prefix != prefix || of_it(known));
        let at = match self.0.iter().position(|known| known.prefix == prefix) {
            Some(at) => at,
            None => {
                let assembly = Assembly::new(pool, info, said)?;
                if self.0.len() >= limits::ANNOUNCEMENTS {
                    self.0.pop_front();
                }
                self.0.push_back(Announcement { prefix, number, assembly });
                self.0.len().saturating_sub(1)
            }
        };
        let assembly = &mut self.0.get_mut(at)?.assembly;
        assembly.add(info, &said, payload, keep);
        let whole = assembly.finish(pool)?;
        self.0.remove(at);
        Some(whole)
    }
}
