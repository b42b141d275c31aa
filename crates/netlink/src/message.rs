//! The messages of one read.

use crate::{half, word};

/// nlmsghdr: length, kind, flags, sequence number, address.
pub(crate) const HEADER: usize = 16;

/// One message of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

/// The messages in `bytes`, up to the first that is none.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let (len, kind, sequence) = (word(bytes, 0)? as usize, half(bytes, 4)?, word(bytes, 8)?);
        let body = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, sequence, body })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: u32, padding: usize) -> Vec<u8> {
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(7u16.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.resize(HEADER + 8 + padding, 1);
        bytes
    }

    #[test]
    fn they_begin_at_multiples_of_four() {
        let all = [message(23, 0), message(24, 4), message(24, 0)].concat();
        let lens: Vec<usize> = messages(&all).map(|message| message.body.len()).collect();
        assert_eq!(lens, [7, 8], "what is behind the second says a length of nothing");
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let whole = message(24, 0);
        for len in 0..whole.len() {
            assert_eq!(messages(&whole[..len]).count(), 0, "{len} bytes");
        }
        for said in [0, 1, 15, 25, u32::MAX] {
            assert_eq!(messages(&message(said, 0)).count(), 0, "a length of {said}");
        }
    }
}
