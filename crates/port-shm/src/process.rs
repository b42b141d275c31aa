//! The memory of the whole process: kept from being swapped out, its code taken beforehand.
//!
//! A page that is not there costs the thread that touches it a visit to the kernel, and one that was swapped out,
//! or dropped as the file has it still, a wait for the disk.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MlockAllFlags, MlockFlags, ProtFlags, madvise, mlock_with, mlockall, mmap_anonymous,
    munmap,
};
use rustix::process::{Resource, getrlimit};
use taut_base::{Error, Result};

use crate::kernel_file;
use crate::refused::{not_locked, refused};

/// Keeps all pages of this process in memory from when they are first there, those of now and those to come. Again
/// is harmless.
///
/// *Errors*: `OUT_OF_RESOURCES` with a limit of locked memory, with how to raise it.
pub fn lock_process() -> Result<()> {
    // What is reserved and never touched, as most of a lane is, takes no memory.
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    // A process that is below its limit now would be killed by the first memory that it asks for beyond it.
    let beyond = getrlimit(Resource::Memlock).current.map_or(Ok(()), lock_beyond);
    beyond
        .and_then(|()| mlockall(flags))
        .map_err(|errno| not_locked("mlockall".into(), "the memory of this process", errno))
}

/// Asks the kernel whether this process may lock more than its limit, by doing so for a moment. Its capabilities would not
/// tell: those of a user namespace do not count for this.
fn lock_beyond(limit: u64) -> std::result::Result<(), Errno> {
    let len = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(rustix::param::page_size());
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses addresses that nothing else has.
    let range = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), flags) }?;
    // SAFETY: of what was just mapped; nothing of it is there, so nothing is locked but the addresses.
    let locked = unsafe { mlock_with(range, len, MlockFlags::ONFAULT) };
    // SAFETY: mapped above, and nobody else knows of it.
    unsafe { munmap(range, len) }?;
    locked
}

/// Enters the code of the program and of its libraries, their data and the heap into the page table, as far as they
/// are there now, so that their first use costs no page fault.
///
/// *Errors*: `UNSUPPORTED` before Linux 5.14; what keeps /proc from being read.
pub fn prefault_code() -> Result<()> {
    let maps =
        kernel_file::text("/proc/self/maps").map_err(|errno| refused("read /proc/self/maps", errno))?;
    for Range { start, len, writable } in ranges(&maps) {
        let advice = if writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        let start = std::ptr::without_provenance_mut::<c_void>(start);
        // SAFETY: populating changes no byte, whatever has become of the addresses since they were listed.
        let populated = unsafe { madvise(start, len, advice) };
        // Else a mapping that has gone, or a page of a file that cannot be read: its user will see.
        if populated == Err(Errno::INVAL) {
            return Err(Error::Unsupported("prefault: Linux 5.14 or later is needed".into()));
        }
    }
    Ok(())
}

/// A word that is 0, and 0 again in each child of a fork, which else has all memory of its parent: who sets it finds out
/// without a system call whether this is still the same process.
///
/// *Errors*: before Linux 4.14; `OUT_OF_RESOURCES`. *Cost*: a page, for as long as the process lives.
pub fn fork_word() -> Result<&'static AtomicU32> {
    let (access, len) = (ProtFlags::READ | ProtFlags::WRITE, size_of::<AtomicU32>());
    // SAFETY: the kernel chooses addresses that nothing else has.
    let word = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE) }
        .map_err(|errno| refused("mmap a word", errno))?;
    // SAFETY: of the page that was just mapped, which nobody knows of yet.
    unsafe { madvise(word, len, Advice::LinuxWipeOnFork) }
        .map_err(|errno| refused("MADV_WIPEONFORK", errno))?;
    // SAFETY: a page is mapped there and never unmapped, aligned and zeroed; it is only accessed as an atomic.
    Ok(unsafe { &*word.cast::<AtomicU32>() })
}

/// A part of the address space.
#[derive(PartialEq, Eq, Debug)]
struct Range {
    start: usize,
    len: usize,
    writable: bool,
}

/// The heap, and what files are mapped from that are mapped as code, too: data files of the user's may be larger than
/// the memory.
fn ranges(maps: &str) -> Vec<Range> {
    let lines = || maps.lines().filter_map(parts);
    let mut code: Vec<&str> = lines().filter(|of| of.1.contains('x')).map(|of| of.2).collect();
    // One for each library.
    code.dedup();
    let wanted = |name: &str| name == "[heap]" || (name.starts_with('/') && code.contains(&name));
    let range = |(addresses, access, _): (&str, &str, &str)| {
        let (start, end) = addresses.split_once('-')?;
        let number = |hex| usize::from_str_radix(hex, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        Some(Range { start, len: end.checked_sub(start)?, writable: access.contains('w') })
    };
    lines().filter(|of| of.1.starts_with('r') && wanted(of.2)).filter_map(range).collect()
}

/// Addresses, access and name of a line of /proc/PID/maps.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let mut words = line.split_whitespace();
    let (range, access) = (words.next()?, words.next()?);
    Some((range, access, words.nth(3).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_its_data_are_taken_and_nothing_of_the_users() {
        let maps = "1000-2000 r--p 00000000 fe:00 17 /usr/bin/app\n\
                    2000-5000 r-xp 00001000 fe:00 17 /usr/bin/app\n\
                    5000-6000 rw-p 00004000 fe:00 17 /usr/bin/app\n\
                    6000-7000 ---p 00004000 fe:00 17 /usr/bin/app\n\
                    9000-a000 rw-p 00000000 00:00 0 [heap]\n\
                    b000-f000 rw-p 00000000 00:00 0\n\
                    10000-90000 rw-s 00000000 00:01 18 /memfd:taut-lane (deleted)\n\
                    90000-ff000 r--s 00000000 fe:00 19 /data/database\n\
                    ff000-100000 r-xp 00000000 00:00 0 [vdso]\n";
        let found: Vec<_> = ranges(maps).into_iter().map(|of| (of.start, of.len, of.writable)).collect();
        let app = [(0x1000, 0x1000, false), (0x2000, 0x3000, false), (0x5000, 0x1000, true)];
        assert_eq!(found, [&app[..], &[(0x9000, 0x1000, true)]].concat());
    }

    #[test]
    fn what_is_there_can_be_taken() {
        prefault_code().unwrap();
    }
}
