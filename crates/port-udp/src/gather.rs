//! The port as the core sees it: the parts of a datagram or a row are joined or gathered, whichever is cheaper, and
//! sent.

use std::io::IoSlice;

use taut_base::Locator;
use taut_port::Port;

use crate::UdpPort;
use crate::mark::mark_of;
use crate::send::Sender;
use crate::sys::SegmentSize;

/// Parts of most datagrams: header, destination, timestamp, data, payload.
const FEW_PARTS: usize = 8;

/// The most parts that one call gathers; more are copied together first and counted. The kernel
/// takes up to 1,024, but each costs 16 bytes of stack that are written on every send.
pub(crate) const MANY_PARTS: usize = 96;

/// Up to how many bytes the parts are joined here rather than by the kernel. A call with one part
/// costs the kernel 0.2 us less than one with a list of parts, as much as copying a few thousand
/// bytes; higher would touch more cache lines than it saves.
const SMALL: usize = 512;

/// *Cost*: one syscall for all unicast destinations of IPv4 and one for those of IPv6, 32 at a time; for a group one
/// for each interface. No allocation; no copy above 512 bytes, unless there are more than 96 parts, which is counted.
impl Port for UdpPort {
    #[inline]
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        self.send_parts(to, parts, None);
    }

    /// One syscall as well, for as many datagrams as the kernel cuts; where it cuts none, one for each.
    fn send_row(&mut self, to: &[Locator], parts: &[&[u8]], each: usize) {
        match SegmentSize::new(each) {
            Some(segment) => self.send_parts(to, parts, Some(&segment)),
            None => taut_port::split(parts, each, |datagram| self.send(to, datagram)),
        }
    }

    /// Three syscalls for an address that was not asked for lately.
    fn path_size(&mut self, to: &Locator) -> usize {
        let address = self.sender.address_of(to);
        address.map_or(usize::MAX, |address| self.sender.paths.of(address, to.interface()))
    }

    fn path_generation(&self) -> u64 {
        self.sender.paths.generation
    }

    /// *Cost*: a syscall for each socket at its first datagram with another mark than its last.
    fn set_priority(&mut self, priority: i32) {
        let Sender { marks, first_mark, mark, .. } = &mut self.sender;
        *mark = mark_of(marks, *first_mark, priority);
    }

    fn flush(&mut self) {}
}

impl UdpPort {
    #[inline]
    fn send_parts(&mut self, to: &[Locator], parts: &[&[u8]], segment: Option<&SegmentSize>) {
        match parts {
            [whole] => self.sender.send(to, &[IoSlice::new(whole)], segment, &mut self.stats),
            _ => self.send_gathered(to, parts, segment),
        }
    }

    #[inline(never)]
    fn send_gathered(&mut self, to: &[Locator], parts: &[&[u8]], segment: Option<&SegmentSize>) {
        let stats = &mut self.stats;
        let few = parts.len() <= FEW_PARTS;
        if few && parts.iter().map(|part| part.len()).sum::<usize>() <= SMALL {
            let mut joined = [0; SMALL];
            self.sender.send(to, &[IoSlice::new(join(parts, &mut joined))], segment, stats);
        } else if few {
            gather::<FEW_PARTS>(parts, |slices| self.sender.send(to, slices, segment, stats));
        } else if parts.len() <= MANY_PARTS {
            gather::<MANY_PARTS>(parts, |slices| self.sender.send(to, slices, segment, stats));
        } else {
            stats.sends_copied += 1;
            let mut scratch = std::mem::take(&mut self.sender.scratch);
            scratch.clear();
            parts.iter().for_each(|part| scratch.extend_from_slice(part));
            self.sender.send(to, &[IoSlice::new(&scratch)], segment, stats);
            self.sender.scratch = scratch;
        }
    }
}

/// `N` slices over the parts, of which there are no more, and the call.
pub(crate) fn gather<const N: usize>(parts: &[&[u8]], call: impl FnOnce(&[IoSlice<'_>])) {
    let mut slices = [IoSlice::new(&[]); N];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    call(&slices[..parts.len().min(N)]);
}

/// `parts` one after the other in `joined`, which has room for them.
fn join<'a>(parts: &[&[u8]], joined: &'a mut [u8]) -> &'a [u8] {
    let mut end = 0;
    for part in parts {
        joined[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    &joined[..end]
}
