//! The samples that the simulator writes: each names its writer and its number, and its filler follows
//! from both, so that a reader can tell a sample that was made wrong from one that went wrong.

use taut_base::InstanceHandle;
use taut_mem::Bytes;

/// CDR_LE, no options. The bytes behind it are the simulator's own.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
/// Encapsulation, key, tag, number, length of the filler.
const HEADER: usize = 4 + 4 + 8 + 8 + 4;

/// What a sample says of itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Content {
    /// The instance.
    pub key: u32,
    /// Which writer wrote it, unique in a run.
    pub tag: u64,
    /// Its number in that writer's order, from 1.
    pub number: u64,
    /// The length of its filler.
    pub filler: u32,
}

impl Content {
    /// The bytes of a sample.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(HEADER + self.filler as usize);
        out.extend_from_slice(&ENCAPSULATION);
        out.extend_from_slice(&self.key.to_le_bytes());
        out.extend_from_slice(&self.tag.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.filler.to_le_bytes());
        let mut state = self.seed();
        let mut left = self.filler as usize;
        while left > 0 {
            state = next(state);
            let word = state.to_le_bytes();
            out.extend_from_slice(&word[..left.min(8)]);
            left = left.saturating_sub(8);
        }
        Bytes::from(out)
    }

    /// Reads a sample. `None` if a byte of it is not as it was written.
    pub fn decode(payload: &[u8]) -> Option<Content> {
        let (head, filler) = payload.split_at_checked(HEADER)?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let content = Content { key: half(4)?, tag: word(8)?, number: word(16)?, filler: half(24)? };
        // RTPS pads a payload to a multiple of 4; fragments are not padded.
        let (filler, padding) = filler.split_at_checked(content.filler as usize)?;
        let mut state = content.seed();
        let fits = filler.chunks(8).all(|chunk| {
            state = next(state);
            chunk == &state.to_le_bytes()[..chunk.len()]
        });
        let padded = padding.len() < 4 && padding.iter().all(|byte| *byte == 0);
        (head.starts_with(&ENCAPSULATION) && padded && fits).then_some(content)
    }

    fn seed(&self) -> u64 {
        self.tag.rotate_left(32) ^ self.number ^ 0x7461_7574
    }
}

fn next(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// The serialized key of an instance.
pub fn key_payload(key: u32) -> Bytes {
    Bytes::from([&ENCAPSULATION[..], &key.to_le_bytes()].concat())
}

/// The handle of an instance.
pub fn instance(key: u32) -> InstanceHandle {
    let mut handle = [0; 16];
    handle[..4].copy_from_slice(&key.to_be_bytes());
    InstanceHandle(handle)
}

/// Finds the instance of a payload: what a keyed type gives to DCPS.
pub fn key_hash(payload: &[u8], key_only: bool) -> Option<InstanceHandle> {
    if !key_only && payload.len() < HEADER {
        return None;
    }
    Some(instance(u32::from_le_bytes(payload.get(4..8)?.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_seen() {
        for filler in [0, 1, 7, 8, 1_000] {
            let content = Content { key: 3, tag: 9, number: 5, filler };
            let bytes = content.encode();
            assert_eq!(Content::decode(&bytes), Some(content));
            for at in 16..bytes.len() {
                let mut changed = bytes.to_vec();
                changed[at] ^= 1;
                assert_ne!(Content::decode(&changed), Some(content), "byte {at}");
            }
        }
    }
}
