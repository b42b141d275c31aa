//! Over which receive queues a NIC spreads what no rule steers: its indirection table (RSS), by the ioctl SIOCETHTOOL.
//! Each frame's hash chooses an entry, and the entry the queue.
//!
//! The layout is that of linux/ethtool.h: `ethtool_rxfh_indir`, words of 32 bits all: the command, how many entries,
//! the entries.

use std::io;

use crate::interface::{asked, ethtool, request};

const GRXFHINDIR: u32 = 0x38;
const SRXFHINDIR: u32 = 0x39;

/// Where the number of entries is, and where they begin, in words.
const SIZE: usize = 1;
const ENTRIES: usize = 2;
/// Entries that are read; NICs have 64 to some thousands. A larger table is told as none.
const MAX_ENTRIES: u32 = 16_384;

/// The words of a call: room for these entries behind their number.
fn command(command: u32, entries: &[u32]) -> Vec<u32> {
    [&[command, entries.len() as u32], entries].concat()
}

/// The entries of an answer: as many as it says, which are fewer than there was room for if the table has changed.
fn entries(mut words: Vec<u32>) -> Vec<u32> {
    let count = words.get(SIZE).map_or(0, |count| *count as usize);
    let mut entries = words.split_off(ENTRIES.min(words.len()));
    entries.truncate(count);
    entries
}

/// Makes the call. The words are as many as their number of entries says, as [`command`] makes them.
fn call(interface: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = request(interface).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the words begin with a command, and live through the call; the kernel writes the number and no more
    // entries than it was told that there is room for.
    Ok(unsafe { ethtool(&asked()?, &mut request, words.as_mut_ptr().cast()) }?)
}

/// The queue of each entry.
///
/// *Errors*: what the kernel says; `EOPNOTSUPP` where the driver has no such table. *Cost*: two system calls.
pub fn spread(interface: &str) -> io::Result<Vec<u32>> {
    // Without room it tells how many there are.
    let mut count = command(GRXFHINDIR, &[]);
    call(interface, &mut count)?;
    let room = count[SIZE];
    if room == 0 || room > MAX_ENTRIES {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let mut all = command(GRXFHINDIR, &vec![0; room as usize]);
    call(interface, &mut all)?;
    Ok(entries(all))
}

/// Sets the queue of each entry; with no entries the kernel spreads over all queues, as it does by itself.
///
/// *Errors*: what the driver says; `EINVAL` for a queue that it has not, or another number of entries.
pub fn set_spread(interface: &str, queues: &[u32]) -> io::Result<()> {
    call(interface, &mut command(SRXFHINDIR, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets that a C compiler gives.
    #[test]
    fn the_layout_of_the_kernel() {
        let words = command(SRXFHINDIR, &[0, 1, 2, 0]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let set: Vec<(usize, u8)> =
            bytes.iter().copied().enumerate().filter(|(_, byte)| *byte != 0).collect();
        assert_eq!((bytes.len(), set), (24, vec![(0, 0x39), (4, 4), (12, 1), (16, 2)]));
        assert_eq!(command(GRXFHINDIR, &[]), [0x38, 0], "a question for the number");
    }

    /// What the kernel writes where there was room for four.
    #[test]
    fn an_answer_is_read() {
        assert_eq!(entries(vec![0x38, 4, 3, 0, 1, 2]), [3, 0, 1, 2]);
        assert_eq!(entries(vec![0x38, 2, 3, 1, 0, 0]), [3, 1], "the table has become smaller");
        assert!(entries(vec![0x38, 0]).is_empty());
    }

    #[test]
    fn the_loopback_interface_has_no_table() {
        assert_eq!(spread("lo").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert_eq!(set_spread("lo", &[]).unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(spread("a name that is too long").is_err());
    }
}
