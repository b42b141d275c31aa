//! Fragments to samples. RTPS 2.5 §8.3.8.3, §8.4.14.1.
//!
//! Memory is taken as bytes arrive, never as a header declares them: fragments in order
//! are appended, fragments ahead of a missing one wait as views of their frames.

use std::collections::BTreeMap;

use taut_base::{Duration, FragmentNumber, FragmentNumberSet, Time, Timestamp};
use taut_mem::{Bytes, Pool, Slot};
use taut_wire::InlineQos;

use crate::history_cache::ChangeKind;
use crate::limits;

/// One sample in assembly.
pub struct Assembly {
    sample_size: u32,
    fragment_size: u16,
    /// The fragments below `next`; gone once the sample is finished.
    prefix: Option<Slot>,
    next: FragmentNumber,
    ahead: BTreeMap<FragmentNumber, Bytes>,
    /// The last fragment that the writer has said to have sent.
    offered: FragmentNumber,
    asked: u32,
    asked_until: FragmentNumber,
    asked_at: Option<Time>,
    /// Some of what was asked for has arrived.
    answered: bool,
    /// How often in a row nothing of what was asked for has.
    vain: u32,
    said: Said,
}

/// What is said of a change beside its payload.
#[derive(Clone, Copy)]
pub struct Said {
    /// What it does.
    pub kind: ChangeKind,
    /// Its key hash and all else that its inline QoS says.
    pub inline: InlineQos,
    /// The writer's clock.
    pub source_timestamp: Option<Timestamp>,
}

/// What stands in a DATA_FRAG besides its payload.
#[derive(Clone, Copy)]
pub struct FragmentInfo {
    /// The first fragment in the submessage, from 1.
    pub starting_num: FragmentNumber,
    /// Bytes of each fragment but the last.
    pub fragment_size: u16,
    /// Bytes of the sample.
    pub sample_size: u32,
}

impl Assembly {
    /// Starts with what the first that arrives says, for as long as fragment 1 has not.
    pub fn new(pool: &mut Pool, info: FragmentInfo, said: Said) -> Option<Assembly> {
        if info.sample_size > limits::SAMPLE_SIZE || info.fragment_size == 0 {
            return None;
        }
        let mut prefix = pool.claim();
        prefix.clear();
        Some(Assembly {
            sample_size: info.sample_size,
            fragment_size: info.fragment_size,
            prefix: Some(prefix),
            next: 1,
            ahead: BTreeMap::new(),
            offered: 0,
            asked: 0,
            asked_until: 0,
            asked_at: None,
            answered: false,
            vain: 0,
            said,
        })
    }

    /// Adds the fragments of one submessage, with what it says; `false` if they contradict those before.
    /// `keep` makes a view, or a copy, that outlives the frame.
    pub fn add(
        &mut self,
        info: FragmentInfo,
        said: &Said,
        payload: &[u8],
        keep: &mut dyn FnMut(&[u8]) -> Bytes,
    ) -> bool {
        if !self.agrees(info) {
            return false;
        }
        // Whoever sends some of it has it, also if it is not what was asked for.
        self.vain = 0;
        let mut number = info.starting_num;
        for fragment in payload.chunks(usize::from(self.fragment_size)) {
            if fragment.len() != self.fragment_len(number) {
                break;
            }
            if number == self.next {
                self.append(fragment, said);
            } else if number > self.next && !self.ahead.contains_key(&number) {
                if self.fragment_size < limits::SMALL_FRAGMENT && self.ahead.len() >= limits::SMALL_FRAGMENTS
                {
                    break;
                }
                self.ahead.insert(number, keep(fragment));
                self.note_answer(number);
            }
            number = number.saturating_add(1);
        }
        true
    }

    /// Are these fragments of the sample that was begun?
    pub fn agrees(&self, info: FragmentInfo) -> bool {
        info.sample_size == self.sample_size && info.fragment_size == self.fragment_size
    }

    /// What has arrived of it.
    pub fn bytes(&self) -> usize {
        let ahead = self.ahead.len().saturating_mul(usize::from(self.fragment_size));
        self.prefix.as_ref().map_or(0, |prefix| prefix.len()).saturating_add(ahead)
    }

    fn note_answer(&mut self, number: FragmentNumber) {
        if number <= self.asked_until {
            self.answered = true;
            self.asked = self.asked.saturating_sub(1);
        }
    }

    /// The writer has answered: what has not come by now is asked for again.
    pub fn end_answer(&mut self) {
        if self.answered {
            self.asked = 0;
        }
    }

    fn append(&mut self, fragment: &[u8], said: &Said) {
        self.note_answer(self.next);
        if self.ahead.is_empty() {
            self.extend(fragment);
        } else {
            self.append_late(fragment, said);
        }
    }

    /// Fragments behind it have come before.
    #[inline(never)]
    fn append_late(&mut self, fragment: &[u8], said: &Said) {
        if self.next == 1 {
            // Some writers, Cyclone DDS among them, say it with fragment 1 only.
            self.said = *said;
        }
        self.extend(fragment);
        while let Some(fragment) = self.ahead.remove(&self.next) {
            self.extend(&fragment);
        }
    }

    /// Once a quarter of the sample is there, room for all of it: at most 4x of what has arrived.
    fn extend(&mut self, fragment: &[u8]) {
        let total = self.sample_size as usize;
        let Some(prefix) = &mut self.prefix else { return };
        let have = prefix.len().saturating_add(fragment.len());
        if prefix.capacity() < total && have.saturating_mul(4) >= total {
            let more = total.saturating_sub(prefix.len());
            prefix.reserve_exact(more);
        }
        prefix.extend_from_slice(fragment);
        self.next = self.next.saturating_add(1);
    }

    /// Bytes of fragment `number`; 0 past the end.
    fn fragment_len(&self, number: FragmentNumber) -> usize {
        let start = u64::from(number.saturating_sub(1)).saturating_mul(u64::from(self.fragment_size));
        let left = u64::from(self.sample_size).saturating_sub(start);
        left.min(u64::from(self.fragment_size)) as usize
    }

    fn last_fragment(&self) -> FragmentNumber {
        self.sample_size.div_ceil(u32::from(self.fragment_size))
    }

    /// The finished sample.
    pub fn finish(&mut self, pool: &mut Pool) -> Option<(Bytes, Said)> {
        if self.next <= self.last_fragment() {
            return None;
        }
        let payload = pool.share(self.prefix.take()?);
        Some((payload, self.said))
    }

    /// The writer has sent the fragments up to `last`. Is one of them missing?
    pub fn offer(&mut self, last: FragmentNumber) -> bool {
        self.offered = self.offered.max(last.min(self.last_fragment()));
        self.next <= self.offered
    }

    /// The missing fragments, of the whole sample or of those that were offered, to be asked for
    /// now; `None` if nothing is missing or the answer to the last request, which takes up to `patience`, may still
    /// be on its way.
    pub fn ask(&mut self, now: Time, whole: bool, patience: Duration) -> Option<FragmentNumberSet> {
        let last = if whole { self.last_fragment() } else { self.offered };
        let answered = self.asked == 0;
        let overdue = self.asked_at.is_none_or(|at| now.since(at) >= patience);
        if self.next > last || !(answered || overdue) {
            return None;
        }
        let mut set = FragmentNumberSet::new(self.next);
        let mut asked = 0_u32;
        self.asked_until = last.min(self.next.saturating_add(255));
        for number in self.next..=self.asked_until {
            if !self.ahead.contains_key(&number) && set.insert(number) {
                asked = asked.saturating_add(1);
            }
        }
        self.vain = if self.answered || self.asked_at.is_none() { 0 } else { self.vain.saturating_add(1) };
        (self.asked, self.asked_at, self.answered) = (asked, Some(now), false);
        Some(set)
    }

    /// Is its sample to be asked for as one of which nothing has come? Its writer may have it no longer, and some say
    /// nothing to who asks for fragments of what they do not have.
    pub fn is_in_vain(&self) -> bool {
        self.vain >= limits::VAIN_QUESTIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(starting_num: u32) -> FragmentInfo {
        FragmentInfo { starting_num, fragment_size: 4, sample_size: 10 }
    }

    fn pool() -> Pool {
        Pool::new(0, 1)
    }

    fn nothing() -> Said {
        Said { kind: ChangeKind::Alive, inline: InlineQos::default(), source_timestamp: None }
    }

    fn new() -> Assembly {
        Assembly::new(&mut pool(), info(1), nothing()).unwrap()
    }

    #[test]
    fn any_order_gives_the_sample() {
        let data: Vec<u8> = (0..10).collect();
        for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3], [3, 1, 2]] {
            let mut assembly = new();
            for number in order {
                assert!(assembly.finish(&mut pool()).is_none());
                let start = (number as usize - 1) * 4;
                let part = &data[start..(start + 4).min(10)];
                assert!(assembly.add(info(number), &nothing(), part, &mut |b| Bytes::copy_from(b)));
                assert!(
                    assembly.add(info(number), &nothing(), part, &mut |b| Bytes::copy_from(b)),
                    "a duplicate is fine"
                );
            }
            assert_eq!(&*assembly.finish(&mut pool()).unwrap().0, &data[..], "{order:?}");
        }
    }

    #[test]
    fn contradictions_and_wrong_lengths() {
        let mut assembly = new();
        let other = FragmentInfo { sample_size: 11, ..info(1) };
        assert!(!assembly.add(other, &nothing(), &[0; 4], &mut |b| Bytes::copy_from(b)));
        assembly.add(info(3), &nothing(), &[0; 4], &mut |b| Bytes::copy_from(b));
        assembly.add(info(9), &nothing(), &[0; 4], &mut |b| Bytes::copy_from(b));
        assert!(assembly.ahead.is_empty(), "the last fragment has 2 bytes, there is no ninth");
    }

    #[test]
    fn asks_once_until_answered_or_overdue() {
        let mut assembly = new();
        assembly.add(info(2), &nothing(), &[0; 4], &mut |b| Bytes::copy_from(b));
        let set = assembly.ask(Time(0), true, limits::NACK_REPEAT).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3]);
        assert!(assembly.ask(Time(1), true, limits::NACK_REPEAT).is_none());
        assert!(assembly.ask(Time(0) + limits::NACK_REPEAT, true, limits::NACK_REPEAT).is_some());
        assembly.add(info(1), &nothing(), &[0; 4], &mut |b| Bytes::copy_from(b));
        assert!(assembly.ask(Time(2), true, limits::NACK_REPEAT).is_none(), "one of two is still under way");
        assembly.add(info(3), &nothing(), &[0; 2], &mut |b| Bytes::copy_from(b));
        assert!(
            assembly.ask(Time(3), true, limits::NACK_REPEAT).is_none()
                && assembly.finish(&mut pool()).is_some()
        );
    }

    /// A writer that is asked for all of a sample begins anew, with what has come: asked for all once more, it never gets further.
    #[test]
    fn who_sends_what_has_come_already_is_not_asked_in_vain() {
        let mut assembly = new();
        let add = |assembly: &mut Assembly| {
            assembly.add(info(1), &nothing(), &[0; 4], &mut |bytes| Bytes::copy_from(bytes))
        };
        assert!(add(&mut assembly));
        for at in 0..=i64::from(limits::VAIN_QUESTIONS) {
            assert!(!assembly.is_in_vain());
            assert!(assembly.ask(Time(at * limits::NACK_REPEAT.0), true, limits::NACK_REPEAT).is_some());
        }
        assert!(assembly.is_in_vain());
        assert!(add(&mut assembly) && !assembly.is_in_vain());
    }

    #[test]
    fn few_small_fragments_wait_for_a_missing_one() {
        let info = |starting_num| FragmentInfo { starting_num, fragment_size: 1, sample_size: 10_000 };
        let mut assembly = Assembly::new(&mut pool(), info(1), nothing()).unwrap();
        assert!(assembly.add(info(2), &nothing(), &[7; 9_999], &mut |b| Bytes::copy_from(b)));
        assert_eq!(assembly.ahead.len(), limits::SMALL_FRAGMENTS);
        assert!(assembly.add(info(1), &nothing(), &[7; 10_000], &mut |b| Bytes::copy_from(b)));
        assert_eq!(assembly.finish(&mut pool()).unwrap().0.len(), 10_000);
    }

    /// Whatever the size of fragments is, of which the first never comes.
    #[test]
    fn what_waits_for_a_missing_fragment_takes_little_or_four_times_its_bytes() {
        for fragment_size in [1, 69, 200, 511, 512, 1_400] {
            let info =
                |starting_num| FragmentInfo { starting_num, fragment_size, sample_size: limits::SAMPLE_SIZE };
            let mut assembly = Assembly::new(&mut pool(), info(1), nothing()).unwrap();
            let mut held = 0;
            for number in 2..2_000 {
                let fragment = vec![7; usize::from(fragment_size)];
                let mut keep = |part: &[u8]| {
                    held += limits::KEPT.max(part.len());
                    Bytes::copy_from(part)
                };
                assert!(assembly.add(info(number), &nothing(), &fragment, &mut keep));
            }
            let little = limits::SMALL_FRAGMENTS * limits::KEPT;
            assert!(held <= little.max(4 * assembly.bytes()), "{held} B in pieces of {fragment_size}");
        }
    }

    #[test]
    fn memory_follows_the_bytes() {
        let big = FragmentInfo { starting_num: 1, fragment_size: 1_000, sample_size: 1 << 30 };
        let mut assembly = Assembly::new(&mut pool(), big, nothing()).unwrap();
        assembly.add(big, &nothing(), &[0; 1_000], &mut |b| Bytes::copy_from(b));
        assert!(assembly.prefix.unwrap().capacity() <= 4_000);
    }
}
