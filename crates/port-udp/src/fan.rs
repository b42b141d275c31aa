//! One datagram or row for several destinations: those of unicast share a call, the others have one each.

use std::io::IoSlice;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use taut_base::Locator;

use crate::send::{How, Refused, Sender, send_by};
use crate::stats::Stats;
use crate::sys::{FAN, Name, send_to_many};

impl Sender {
    /// Sends to each of these destinations.
    #[inline(never)]
    pub(crate) fn send_to_all(
        &mut self,
        to: &[Locator],
        parts: &[IoSlice<'_>],
        how: &mut How<'_>,
        stats: &mut Stats,
    ) {
        let kinds = if self.v6.is_some() { &[true, false][..] } else { &[true] };
        for &is_v4 in kinds {
            let (mut names, mut count) = ([Name::NONE; FAN], 0);
            for locator in to {
                match self.address_of(locator).filter(|_| !locator.is_multicast()) {
                    Some(address) if address.is_ipv4() == is_v4 => {
                        if count == FAN {
                            self.fan(is_v4, &names, parts, how, stats);
                            count = 0;
                        }
                        names[count] = address.into();
                        count += 1;
                    }
                    None if is_v4 => self.send_to(locator, parts, how, stats),
                    _ => {}
                }
            }
            self.fan(is_v4, &names[..count], parts, how, stats);
        }
    }

    /// Sends to these addresses of one kind, by one call unless one of them fails.
    fn fan(&mut self, is_v4: bool, to: &[Name], parts: &[IoSlice<'_>], how: &mut How<'_>, stats: &mut Stats) {
        let marked = match &mut self.v6 {
            Some(v6) if !is_v4 => &mut v6.unicast,
            _ => &mut self.unicast,
        };
        let (mut left, mut narrow) = (to, false);
        while !left.is_empty() {
            // Once there was no room in the buffer, a call for all would most likely fail as well.
            let shared = left.len() > 1 && how.may_wait && (how.segment.is_none() || how.cuts);
            let sent = if shared { share(marked.with(how.mark, is_v4), left, parts, how, stats) } else { 0 };
            left = left.get(sent..).unwrap_or_default();
            // The kernel does not say what has stopped it: the one that did so goes alone.
            if let Some((alone, rest)) = left.split_first() {
                let refused = send_by([&mut *marked], Some(alone.socket_addr()), parts, how, stats);
                how.cuts &= !matches!(refused, Some(Refused::Never));
                narrow |= matches!(refused, Some(Refused::Narrow));
                left = rest;
            }
        }
        self.cuts_rows &= how.cuts;
        if narrow {
            self.paths.forget();
        }
    }
}

/// Sends by one call. Returns to how many, from the first on.
fn share(socket: &UdpSocket, to: &[Name], parts: &[IoSlice<'_>], how: &How<'_>, stats: &mut Stats) -> usize {
    stats.send_calls += 1;
    match send_to_many(socket.as_fd(), to, parts, how.segment) {
        Ok(sent) => {
            let bytes: usize = parts.iter().map(|part| part.len()).sum();
            stats.datagrams_out += how.datagrams(bytes) * sent as u64;
            stats.bytes_out += (bytes * sent) as u64;
            sent
        }
        Err(error) => {
            // The kernel tells it once, of what an earlier datagram met.
            stats.refused += u64::from(error.raw_os_error() == Some(libc::ECONNREFUSED));
            0
        }
    }
}
