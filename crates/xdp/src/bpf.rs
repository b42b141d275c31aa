//! bpf(2): the commands that a program, its maps and its link take, each with the attributes it reads.
//!
//! Owns the layouts and numbers of linux/bpf.h. Knows no program; what an error number means for the user is
//! decided by the callers, who alone know the interface.

use std::ffi::{c_int, c_long};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::assembler::Instruction;

/// Types of maps.
pub(crate) const HASH: u32 = 1;
pub(crate) const ARRAY: u32 = 2;
pub(crate) const XSKMAP: u32 = 17;

/// Attached to the driver, or behind it to the kernel's own receive path (linux/if_link.h).
pub(crate) const DRV_MODE: u32 = 1 << 2;
pub(crate) const SKB_MODE: u32 = 1 << 1;

const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEM: c_int = 2;
const MAP_DELETE_ELEM: c_int = 3;
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const OBJ_GET_INFO_BY_FD: c_int = 15;
const LINK_CREATE: c_int = 28;
const LINK_DETACH: c_int = 34;

const PROG_TYPE_XDP: u32 = 6;
/// BPF_F_XDP_HAS_FRAGS, of Linux 5.18.
const HAS_FRAGS: u32 = 1 << 5;
/// The attach type of XDP.
const ATTACH_XDP: u32 = 37;
/// Both of Taut's licences; the helpers of the program ask for none.
const LICENSE: &std::ffi::CStr = c"Dual MIT/Apache-2.0";
/// The verifier says a few hundred bytes about the program; less cuts off the end, which is the reason.
const LOG: usize = 64 * 1024;
/// How often a program is loaded at most while signals come: the verifier gives up at each, as when the process is stopped and
/// goes on, or a profiler samples it. Lower has one of them keep the participant from the interface, higher only has who is
/// refused for another reason of the same number wait for longer.
const LOADS: usize = 10;

type Name = [u8; 16];

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: Name,
}

#[repr(C)]
struct MapElem {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: Name,
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct ProgTestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

#[repr(C)]
struct ObjGetInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

/// The beginning of struct bpf_prog_info; the kernel fills in as much as there is room for.
#[repr(C)]
#[derive(Default)]
struct ProgInfo {
    prog_type: u32,
    id: u32,
    tag: [u8; 8],
}

/// The beginning of struct bpf_link_info of a link of XDP.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    prog_id: u32,
    padding: u32,
    ifindex: u32,
    padding_end: u32,
}

/// # Safety
///
/// `attributes` are those of the command, as linux/bpf.h has them, and the addresses in them are valid for
/// what the command reads and writes there.
unsafe fn bpf<A>(command: c_int, attributes: &mut A) -> Result<c_long, Errno> {
    // SAFETY: the caller's promise; the kernel reads and writes no more of the attributes than their size.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut A, size_of::<A>()) };
    if result < 0 { Err(last()) } else { Ok(result) }
}

/// # Safety
///
/// As [`bpf`]; the command makes a descriptor.
unsafe fn bpf_fd<A>(command: c_int, mut attributes: A) -> Result<OwnedFd, Errno> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, &mut attributes) }?;
    // SAFETY: a descriptor that was just made for us and that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// The error number of the call of libc that has just failed.
pub(crate) fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// A map of the kernel with keys `K` and values `V`, which are plain numbers.
pub(crate) struct Map<K, V> {
    fd: OwnedFd,
    _of: std::marker::PhantomData<(K, V)>,
}

impl<K: Copy, V: Copy> Map<K, V> {
    pub fn create(map_type: u32, max_entries: u32, name: &str) -> Result<Map<K, V>, Errno> {
        let attributes = MapCreate {
            map_type,
            key_size: size_of::<K>() as u32,
            value_size: size_of::<V>() as u32,
            max_entries,
            map_flags: 0,
            inner_map_fd: 0,
            numa_node: 0,
            map_name: to_name(name),
        };
        // SAFETY: the attributes of the command; no addresses.
        let fd = unsafe { bpf_fd(MAP_CREATE, attributes) }?;
        Ok(Map { fd, _of: std::marker::PhantomData })
    }

    /// Adds or replaces.
    pub fn update(&self, key: K, value: V) -> Result<(), Errno> {
        let mut attributes = self.elem(&key);
        attributes.value = &raw const value as u64;
        // SAFETY: the attributes of the command; key and value live until it is done and have the sizes that
        // the map was made with.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
    }

    /// Removes; whether it was there.
    pub fn delete(&self, key: K) -> Result<bool, Errno> {
        let mut attributes = self.elem(&key);
        // SAFETY: the attributes of the command; the key lives until it is done and has the map's size.
        match unsafe { bpf(MAP_DELETE_ELEM, &mut attributes) } {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn elem(&self, key: &K) -> MapElem {
        let map_fd = self.fd.as_raw_fd() as u32;
        MapElem { map_fd, padding: 0, key: &raw const *key as u64, value: 0, flags: 0 }
    }
}

impl<K, V> AsFd for Map<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Loads a program of XDP; with the error comes what the verifier says, if it says something. One that `takes_pieces` is
/// given frames that lie in several buffers, of which it sees the first one.
pub(crate) fn load(
    instructions: &[Instruction],
    name: &str,
    takes_pieces: bool,
) -> Result<OwnedFd, (Errno, String)> {
    let without_log = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: if takes_pieces { HAS_FRAGS } else { 0 },
        prog_name: to_name(name),
        prog_ifindex: 0,
        expected_attach_type: ATTACH_XDP,
    };
    let mut log = vec![0_u8; LOG];
    let log_buf = log.as_mut_ptr() as u64;
    let with_log = ProgLoad { log_level: 1, log_size: LOG as u32, log_buf, ..without_log };
    // SAFETY: the attributes of the command; as many instructions, a string with its end, and the log's room,
    // all alive until it is done.
    let loaded = past_signals(|| unsafe { bpf_fd(PROG_LOAD, with_log) });
    loaded.map_err(|errno| {
        let text = String::from_utf8_lossy(&log);
        (errno, text.trim_end_matches('\0').trim_end().to_string())
    })
}

/// Calls anew what a signal has cut short.
fn past_signals<R>(load: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    let is_told = |loaded: &Result<R, Errno>| !matches!(loaded, Err(Errno::AGAIN));
    std::iter::repeat_with(load).take(LOADS).find(is_told).unwrap_or(Err(Errno::AGAIN))
}

/// The tag by which the kernel knows a program: the first bytes of a digest of its instructions.
pub(crate) fn tag(program: BorrowedFd<'_>) -> Result<[u8; 8], Errno> {
    // SAFETY: it begins as the kernel's does.
    unsafe { info::<ProgInfo>(program) }.map(|info| info.tag)
}

/// The number of a program, which no other one has while it is loaded.
pub(crate) fn program_id(program: BorrowedFd<'_>) -> Result<u32, Errno> {
    // SAFETY: it begins as the kernel's does.
    unsafe { info::<ProgInfo>(program) }.map(|info| info.id)
}

/// The number of the program that a link has now, and the index of the interface that it is attached to; 0: to none
/// any more.
pub(crate) fn attached(link: BorrowedFd<'_>) -> Result<(u32, u32), Errno> {
    // SAFETY: it begins as the kernel's does.
    unsafe { info::<LinkInfo>(link) }.map(|info| (info.prog_id, info.ifindex))
}

/// What the kernel says of a program or a link.
///
/// # Safety
///
/// `I` is made of numbers, and is the beginning of what the kernel has for a descriptor of this kind.
unsafe fn info<I: Default>(of: BorrowedFd<'_>) -> Result<I, Errno> {
    let mut info = I::default();
    let mut attributes = ObjGetInfo {
        bpf_fd: of.as_raw_fd() as u32,
        info_len: size_of::<I>() as u32,
        info: &raw mut info as u64,
    };
    // SAFETY: the attributes of the command; there is so much room, alive until it is done.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attributes) }?;
    Ok(info)
}

/// Runs a program on a frame without an interface: its result, and the mean time of a run in nanoseconds.
pub(crate) fn test_run(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> Result<(u32, u32), Errno> {
    let mut attributes = ProgTestRun {
        prog_fd: program.as_raw_fd() as u32,
        retval: 0,
        data_size_in: frame.len() as u32,
        data_size_out: 0,
        data_in: frame.as_ptr() as u64,
        data_out: 0,
        repeat,
        duration: 0,
    };
    // SAFETY: the attributes of the command; as many bytes are alive until it is done, none are written.
    unsafe { bpf(PROG_TEST_RUN, &mut attributes) }?;
    Ok((attributes.retval, attributes.duration))
}

/// Attaches a program to an interface for as long as the descriptor is open.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: u32, flags: u32) -> Result<OwnedFd, Errno> {
    let attributes = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: interface,
        attach_type: ATTACH_XDP,
        flags,
    };
    // SAFETY: the attributes of the command; no addresses.
    unsafe { bpf_fd(LINK_CREATE, attributes) }
}

/// Ends what a link is for, whoever else has a descriptor of it.
pub(crate) fn detach(link: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut attributes = LinkDetach { link_fd: link.as_raw_fd() as u32 };
    // SAFETY: the attributes of the command; no addresses.
    unsafe { bpf(LINK_DETACH, &mut attributes) }.map(drop)
}

fn to_name(text: &str) -> Name {
    let mut name = Name::default();
    // The last byte stays zero.
    name.iter_mut().take(15).zip(text.bytes()).for_each(|(to, from)| *to = from);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_signals_keep_from_the_verifier_is_loaded_anew() {
        let after = |signals: usize| {
            let mut calls = 0;
            let loaded = past_signals(|| {
                calls += 1;
                if calls > signals { Ok(()) } else { Err(Errno::AGAIN) }
            });
            (loaded, calls)
        };
        assert_eq!(after(0), (Ok(()), 1));
        assert_eq!(after(LOADS - 1), (Ok(()), LOADS));
        assert_eq!(after(usize::MAX), (Err(Errno::AGAIN), LOADS));
        assert_eq!(past_signals(|| Err::<(), _>(Errno::PERM)), Err(Errno::PERM), "it is told at once");
    }
}
