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

/// The announcements in assembly, at most one of each participant, those first that were begun first. Their buffers are not
/// those of samples, which may be large: anybody may have them kept.
pub(crate) struct Announcements {
    begun: VecDeque<Announcement>,
    pool: Pool,
}

impl Default for Announcements {
    fn default() -> Announcements {
        let pool = Pool::new(0, 1).forgetting_above(limits::ANNOUNCEMENT_SIZE as usize);
        Announcements { begun: VecDeque::new(), pool }
    }
}

impl Announcements {
    /// Adds the fragments of one submessage. Returns what a participant says if that is all of it.
    ///
    /// Another announcement of a participant takes the place of the one that was begun; those of too many that of the one that
    /// was begun first.
    pub fn add(
        &mut self,
        (prefix, number): (GuidPrefix, SequenceNumber),
        (info, said): (FragmentInfo, Said),
        payload: &[u8],
    ) -> Option<(Bytes, Said)> {
        let of_it = |known: &Announcement| known.number == number && known.assembly.agrees(info);
        self.begun.retain(|known| known.prefix != prefix || of_it(known));
        let at = match self.begun.iter().position(|known| known.prefix == prefix) {
            Some(at) => at,
            None => {
                let assembly = Assembly::new(&mut self.pool, info, said)?;
                if self.begun.len() >= limits::ANNOUNCEMENTS {
                    self.begun.pop_front();
                }
                self.begun.push_back(Announcement { prefix, number, assembly });
                self.begun.len().saturating_sub(1)
            }
        };
        let assembly = &mut self.begun.get_mut(at)?.assembly;
        // Copied, as a view would keep the whole datagram.
        assembly.add(info, &said, payload, &mut Bytes::copy_from);
        let whole = assembly.finish(&mut self.pool)?;
        self.begun.remove(at);
        Some(whole)
    }

    /// A participant is there no longer: what it had begun to say is nothing of its next life.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        self.begun.retain(|known| known.prefix != prefix);
    }
}
