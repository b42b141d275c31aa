//! Datagrams that nobody should send: what was on the network, changed.

use taut_base::Rng;
use taut_mem::Bytes;

use crate::network::Captured;

/// The name under which a stranger speaks.
const STRANGER: [u8; 12] = *b"a stranger!!";

/// The id of DATA_FRAG. Datagrams with one behind the header and INFO_TS are picked more often than they come.
const FRAGMENT: u8 = 0x16;

/// The length of the headers that most datagrams begin with. Half of the changes are there: behind it lies what most samples
/// fill, of which nobody knows what it means.
const HEADERS: usize = 80;

/// Makes a datagram out of captured ones. `stolen`: under this name, else under a stranger's.
pub fn mutate(rng: &mut Rng, captured: &[Captured], stolen: Option<[u8; 12]>) -> Option<Bytes> {
    let pick = |rng: &mut Rng| {
        let from = rng.below(captured.len() as u64) as usize;
        let is_fragment = |c: &&Captured| c.bytes.get(32) == Some(&FRAGMENT);
        let fragment = captured.get(from..)?.iter().find(is_fragment).filter(|_| rng.chance(300));
        fragment.or(captured.get(from))
    };
    let mut bytes = pick(rng)?.bytes.to_vec();
    match rng.below(8) {
        0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
        1 => {
            let other = pick(rng)?;
            splice(rng, &mut bytes, &other.bytes);
        }
        2 => bytes.iter_mut().skip(20).for_each(|byte| *byte = rng.next_u64() as u8),
        3 => {
            // An extreme value somewhere: counts, lengths and numbers are where the bugs are.
            let word = [0_u32, 1, u32::MAX, 1 << 31, 0x7fff_ffff, 0xffff, 256][rng.below(7) as usize];
            overwrite(rng, &mut bytes, &word.to_le_bytes());
        }
        4 => overwrite(rng, &mut bytes, &i64::MAX.to_le_bytes()),
        5 if bytes.get(32) == Some(&FRAGMENT) => {
            // Of a sample that has not come, which is longer or shorter than others say: writerSN, sampleSize.
            bytes.iter_mut().skip(53).take(1).for_each(|byte| *byte = byte.wrapping_add(1));
            bytes.iter_mut().skip(64).take(2).for_each(|byte| *byte = rng.next_u64() as u8);
        }
        _ => {
            for _ in 0..=rng.below(8) {
                let at = place(rng, &bytes);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
    let name = stolen.unwrap_or(STRANGER);
    bytes.iter_mut().skip(8).zip(name).for_each(|(to, from)| *to = from);
    Some(Bytes::from(bytes))
}

/// The head of one message and the tail of another, at the borders of words.
fn splice(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = (rng.below(bytes.len() as u64 + 1) as usize) & !3;
    let from = (rng.below(other.len() as u64 + 1) as usize) & !3;
    bytes.truncate(at.max(20));
    bytes.extend_from_slice(other.get(from.max(20)..).unwrap_or_default());
}

fn overwrite(rng: &mut Rng, bytes: &mut [u8], with: &[u8]) {
    let at = place(rng, bytes) & !3;
    bytes.iter_mut().skip(at.max(20)).zip(with).for_each(|(to, from)| *to = *from);
}

fn place(rng: &mut Rng, bytes: &[u8]) -> usize {
    let most = if rng.chance(500) { HEADERS } else { usize::MAX };
    rng.below(bytes.len().min(most) as u64) as usize
}
