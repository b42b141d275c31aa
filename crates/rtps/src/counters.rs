//! What was dropped and why: never an error up the stack, always a number.

use taut_base::Guid;
use taut_wire::WireError;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of what one participant has received and refused.
        #[derive(Clone, Debug)]
        pub struct Counters {
            malformed: [u64; WireError::ALL.len()],
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Default for Counters {
            fn default() -> Self {
                Counters { malformed: [0; WireError::ALL.len()], $($name: 0,)* }
            }
        }

        impl Counters {
            /// Every count that is not 0, by name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                let own = [$((stringify!($name), self.$name),)*];
                let malformed = WireError::ALL.iter().map(|reason| (reason.name(), self.of(*reason)));
                own.into_iter().chain(malformed).filter(|(_, count)| *count > 0).collect()
            }
        }
    };
}

counters! {
    /// Messages received.
    messages,
    /// Changes of matched writers of the user's, and parts of them, that had not arrived before.
    changes,
    /// Messages of ourselves that came back.
    reflected,
    /// Submessages for other participants.
    not_for_us,
    /// Submessages of kinds that are not known.
    unknown_submessages,
    /// Data, heartbeats and gaps of writers that are not matched.
    unmatched_writer,
    /// Acknowledgements of readers that are not matched.
    unmatched_reader,
    /// Changes that had arrived before.
    duplicates,
    /// Changes that found the reader's cache full and were asked for again.
    refused_by_cache,
    /// Stamps of a change's way that are too short, out of order or ahead of this clock.
    bad_anatomy,
    /// Fragments that contradict each other or find no place.
    bad_fragments,
    /// Announcements that name another participant than their sender.
    foreign_guid,
    /// Announcements of another domain.
    foreign_domain,
    /// Addresses in announcements of participants, of a kind that this one has no address of.
    unusable_locators,
    /// Names and properties in announcements that are longer than is kept: they are cut or left out.
    too_long,
    /// Participants beyond the cap.
    too_many_participants,
    /// Announcements of participants that have said meanwhile that they leave.
    late_announcements,
    /// Endpoints beyond the cap.
    too_many_endpoints,
    /// Events beyond the cap.
    too_many_events,
    /// ACKNACKs and GAPs whose numbers are more than one message may have.
    too_many_numbers,
}

/// What comes in the normal course, whoever the peers are.
const NORMAL: [&str; 5] = ["messages", "changes", "reflected", "not_for_us", "duplicates"];

impl Counters {
    /// Every count of what was refused that is not 0, by name.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let mut counts = self.named();
        counts.retain(|(name, _)| !NORMAL.contains(name));
        counts
    }

    /// Counts bytes that were refused.
    #[cold]
    pub fn malformed(&mut self, reason: WireError) {
        if let Some(count) = self.malformed.get_mut(reason.index()) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts a change that had not arrived before, or a part of one.
    #[inline]
    pub(crate) fn note_change(&mut self, writer: Guid) {
        if !writer.entity.is_builtin() {
            bump(&mut self.changes);
        }
    }

    /// Counts what an announcement had that was too long.
    pub(crate) fn note_too_long(&mut self, count: u64) {
        self.too_long = self.too_long.saturating_add(count);
    }

    /// Counts addresses of an announcement that lead nowhere from here.
    pub(crate) fn note_unusable(&mut self, count: u64) {
        self.unusable_locators = self.unusable_locators.saturating_add(count);
    }

    /// How often bytes were refused for this reason.
    pub fn of(&self, reason: WireError) -> u64 {
        self.malformed.get(reason.index()).copied().unwrap_or(0)
    }
}

/// One more; counts do not wrap.
pub(crate) fn bump(count: &mut u64) {
    *count = count.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_the_normal_course_is_not_refused() {
        let mut counters = Counters::default();
        (counters.messages, counters.reflected, counters.not_for_us, counters.duplicates) = (1, 2, 3, 4);
        counters.changes = 5;
        assert_eq!((counters.named().len(), counters.refused()), (5, vec![]));
        counters.foreign_guid = 5;
        counters.malformed(WireError::ALL[0]);
        assert_eq!(counters.refused(), [("foreign_guid", 5), (WireError::ALL[0].name(), 1)]);
    }
}
