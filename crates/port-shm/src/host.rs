//! Which machine this is.

use rustix::io::Errno;
use taut_base::{Error, Result};

use crate::kernel_file;
use crate::refused::refused;

/// Made anew by the kernel at each start, from its random source.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of the running kernel: no two hosts have the same, whatever addresses they use.
///
/// A container has that of its host, on purpose: whether the two reach each other is for the socket to
/// say. Clones that were resumed from one snapshot of a virtual machine may share it: then too the socket
/// says that nobody is there.
///
/// *Errors*: there is no /proc; `OUT_OF_RESOURCES` without a descriptor for it. *Cost*: three system calls.
pub fn host_id() -> Result<[u8; 16]> {
    let text = kernel_file::text(BOOT_ID).map_err(|errno| match errno {
        Errno::NOENT => Error::Error(format!("read {BOOT_ID}: {errno}; mount /proc into this container")),
        _ => refused(format!("read {BOOT_ID}"), errno),
    })?;
    parse(&text).ok_or_else(|| Error::Error(format!("{BOOT_ID} is no UUID: mount the kernel's own /proc")))
}

/// The bytes of a UUID's text.
fn parse(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.trim().chars().filter(|c| *c != '-').map(|c| c.to_digit(16));
    let mut id = [0; 16];
    for byte in &mut id {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = (high << 4 | low) as u8;
    }
    digits.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_and_what_is_none() {
        let id = parse("01234567-89ab-cdef-0123-456789abcdef\n").unwrap();
        assert_eq!((id[0], id[7], id[15]), (0x01, 0xef, 0xef));
        assert_eq!(parse("0123"), None);
        assert_eq!(parse("01234567-89ab-cdef-0123-456789abcdefa"), None);
        assert_eq!(parse("g1234567-89ab-cdef-0123-456789abcdef"), None);
    }

    #[test]
    fn this_host_has_one() {
        assert_ne!(host_id().unwrap(), [0; 16]);
        assert_eq!(host_id().unwrap(), host_id().unwrap());
    }
}
