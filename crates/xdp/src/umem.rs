//! The UMEM: the memory of all frames, cut into chunks.
//!
//! Owns a memfd and its mapping, and nothing that says which frame is whose: an address of a frame is a plain
//! number, its distance from the start, and who hands it to a ring or takes it from there keeps the account.
//! [`FreeFrames`] is the simplest one. The memfd can be passed to another process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

use crate::Error;
use crate::mapping::Mapping;

/// What the kernel keeps free in front of a received frame (XDP_PACKET_HEADROOM).
const KERNEL_HEADROOM: u32 = 256;
/// Ethernet with one tag.
const HEADER: u32 = 18;

/// What a receiver has kept free in front of a frame besides, so that samples in it are aligned as in memory: behind
/// headers of 14 bytes, or 14 and 20 and 8, those of RTPS start at a word (as with the kernel's NET_IP_ALIGN).
const ALIGN: u32 = 2;
/// The most that is kept free so.
const ALIGN_MAX: u32 = 6;
/// Bytes of a frame that are fetched before it is read, as another processor has written them: all of one with the usual
/// MTU. Fewer and the reader waits for each line, more fetches what is read much later.
const PREFETCHED: u32 = 1_536;

/// The most chunks that a frame lies in. The kernel takes one more of a frame that is sent, at least (MAX_SKB_FRAGS).
pub const MAX_PIECES: u32 = 16;

/// Bytes of a chunk; the kernel has no other sizes on pages of 4,096.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkSize {
    /// For an MTU of up to 1,768 bytes.
    B2048,
    /// For an MTU of up to 3,816 bytes.
    B4096,
}

impl ChunkSize {
    /// In bytes.
    pub fn bytes(self) -> u32 {
        match self {
            ChunkSize::B2048 => 2_048,
            ChunkSize::B4096 => 4_096,
        }
    }

    /// The largest MTU whose frames fit into one, with the room that the kernel keeps.
    pub fn largest_mtu(self) -> u32 {
        self.received() - HEADER
    }

    /// The largest MTU whose frames fit into as many as one may lie in, which takes Linux 6.6.
    pub fn largest_mtu_in_pieces(self) -> u32 {
        MAX_PIECES * self.received() - HEADER
    }

    /// How many the longest frame with this MTU lies in.
    pub fn pieces(self, mtu: u32) -> u32 {
        mtu.saturating_add(HEADER).div_ceil(self.received())
    }

    /// Bytes of a frame that one takes where it is received.
    fn received(self) -> u32 {
        self.bytes() - KERNEL_HEADROOM - ALIGN_MAX
    }
}

/// Beyond the limit of file sizes the kernel does not only refuse to lengthen a file: it ends the process (SIGXFSZ).
fn check_file_limit(len: usize) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if len as u64 > limit => Err(Error::FileLimit { bytes: len, limit }),
        _ => Ok(()),
    }
}

/// Memory of frames.
///
/// Invariant: the file is as long as the mapping and sealed so that nobody can make it shorter.
pub struct Umem {
    fd: OwnedFd,
    mapping: Mapping,
    chunks: u32,
    chunk_size: ChunkSize,
    headroom: u32,
}

impl Umem {
    /// Zeroed memory of so many chunks, all of it there once a socket has it.
    ///
    /// *Errors*: no chunks; what the operating system refuses. *Cost*: the kernel clears all pages then.
    pub fn create(chunks: u32, chunk_size: ChunkSize) -> Result<Umem, Error> {
        if chunks == 0 {
            return Err(Error::BadParameter("a UMEM has at least one chunk: choose twice a ring".into()));
        }
        let len = len_of(chunks, chunk_size);
        let refused =
            |call: &str, errno: Errno| Error::refused(format!("{call} of {len} B of frames"), errno);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("taut-umem", flags).map_err(|errno| refused("memfd_create", errno))?;
        check_file_limit(len)?;
        ftruncate(&fd, len as u64).map_err(|errno| refused("ftruncate", errno))?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|errno| refused("seal", errno))?;
        let mapping = Mapping::in_large_pages(fd.as_fd(), len).map_err(|errno| refused("mmap", errno))?;
        Ok(Umem { fd, mapping, chunks, chunk_size, headroom: ALIGN })
    }

    /// The same with so many bytes kept free in front of each frame that is received, beside those that the kernel keeps:
    /// 2 if nothing else is said, at most 6.
    #[must_use]
    pub fn with_headroom(mut self, bytes: u32) -> Umem {
        self.headroom = bytes.min(ALIGN_MAX);
        self
    }

    /// The memory that another process has made with [`Umem::create`] and passed.
    ///
    /// *Errors*: [`Error::BadParameter`] if it is no memfd of that length, or not sealed. *Cost*: three system calls.
    pub fn adopt(fd: OwnedFd, chunks: u32, chunk_size: ChunkSize) -> Result<Umem, Error> {
        let wrong = |what: &str| {
            Error::BadParameter(format!(
                "the frames that were passed are {what}: use one version of Taut at both ends"
            ))
        };
        let len = len_of(chunks, chunk_size);
        // No other file has seals, so whoever has some is a memfd.
        let seals = fcntl_get_seals(&fd).map_err(|_| wrong("no memfd"))?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(wrong("not sealed"));
        }
        let found = fstat(&fd).map_err(|errno| Error::refused("fstat of frames", errno))?.st_size;
        if chunks == 0 || usize::try_from(found) != Ok(len) {
            return Err(wrong(&format!("{found} B and not {len}")));
        }
        let mapping =
            Mapping::new(fd.as_fd(), len, 0).map_err(|errno| Error::refused("mmap of frames", errno))?;
        Ok(Umem { fd, mapping, chunks, chunk_size, headroom: ALIGN })
    }

    /// Gives up the mapping; the memfd stays.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// How many chunks it has.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// How large each is.
    pub fn chunk_size(&self) -> ChunkSize {
        self.chunk_size
    }

    /// The memfd, for a process that shares the frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The chunk that an address lies in, as the address of its start; the kernel gives received frames with
    /// some room in front. `None` if it is outside.
    pub fn chunk_of(&self, address: u64) -> Option<u64> {
        let size = u64::from(self.chunk_size.bytes());
        (address / size < u64::from(self.chunks)).then(|| address / size * size)
    }

    /// Has the processor fetch the first bytes of a frame that is read soon: so many that its headers and those of RTPS are
    /// among them.
    #[inline]
    pub fn prefetch(&self, address: u64, len: u32) {
        let len = len.min(PREFETCHED);
        if self.place(address, len).is_some() {
            self.mapping.prefetch(address as usize, len as usize);
        }
    }

    /// Bytes to read; `None` if they are not all inside of one chunk.
    ///
    /// # Safety
    /// The chunk must be the caller's while the result lives: neither in the fill ring, nor written by anybody
    /// of this process. A process that has the memfd may write it all the same: the result is then for readers
    /// to whom all bytes are valid, and who look once.
    pub unsafe fn bytes(&self, address: u64, len: u32) -> Option<&[u8]> {
        let start = self.place(address, len)?;
        // SAFETY: the type's invariant; the bytes lie inside; the caller sees to their peace.
        Some(unsafe { std::slice::from_raw_parts(start, len as usize) })
    }

    /// Bytes to write; `None` if they are not all inside of one chunk.
    ///
    /// # Safety
    /// The chunk must be the caller's alone while the result lives: in no ring, and looked at by nobody of this
    /// process.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self, address: u64, len: u32) -> Option<&mut [u8]> {
        let start = self.place(address, len)?;
        // SAFETY: the type's invariant; the bytes lie inside and are the caller's alone.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len as usize) })
    }

    /// Bytes to write of so many chunks, one behind the other, of which the first starts at this address; `None` if there
    /// are no such chunks.
    ///
    /// # Safety
    /// As for [`Umem::bytes_mut`], of each of the chunks.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn chunks_mut(&self, address: u64, count: u32) -> Option<&mut [u8]> {
        let size = self.chunk_size.bytes();
        let (first, len) = (self.chunk_of(address)?, (size as usize).checked_mul(count as usize)?);
        let end = (first / u64::from(size)).checked_add(count.into())?;
        if address != first || end > u64::from(self.chunks) {
            return None;
        }
        let start = self.mapping.base().as_ptr().wrapping_add(address as usize);
        // SAFETY: the type's invariant; the bytes lie inside and are the caller's alone.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Where the memory starts, which is at a page and for as long as this lives. Who may touch what is said at
    /// [`Umem::bytes`].
    pub fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    pub(crate) fn headroom(&self) -> u32 {
        self.headroom
    }

    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    fn place(&self, address: u64, len: u32) -> Option<*mut u8> {
        let chunk = self.chunk_of(address)?;
        let end = chunk + u64::from(self.chunk_size.bytes());
        (address + u64::from(len) <= end).then(|| self.mapping.base().as_ptr().wrapping_add(address as usize))
    }
}

/// Bytes of so many chunks, in whole pages.
fn len_of(chunks: u32, chunk_size: ChunkSize) -> usize {
    (chunks as usize * chunk_size.bytes() as usize).next_multiple_of(page_size())
}

/// The chunks that nobody uses. *Cost*: no allocation after it is made.
#[derive(Debug)]
pub struct FreeFrames {
    free: Vec<u64>,
    chunks: usize,
    chunk_size: u64,
}

impl FreeFrames {
    /// All chunks of a UMEM.
    pub fn of(umem: &Umem) -> FreeFrames {
        let chunk_size = u64::from(umem.chunk_size.bytes());
        let free = (0..u64::from(umem.chunks)).rev().map(|chunk| chunk * chunk_size).collect();
        FreeFrames { free, chunks: umem.chunks as usize, chunk_size }
    }

    /// A chunk, by the address of its start.
    pub fn take(&mut self) -> Option<u64> {
        self.free.pop()
    }

    /// Gives a chunk back by any address in it. One that is outside, or one more than there are, is not taken.
    pub fn put(&mut self, address: u64) {
        let chunk = address / self.chunk_size;
        if self.free.len() < self.chunks && chunk < self.chunks as u64 {
            self.free.push(chunk * self.chunk_size);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_inside_of_their_chunks() {
        let umem = Umem::create(3, ChunkSize::B2048).unwrap();
        assert_eq!(umem.len() % page_size(), 0);
        // SAFETY: no ring has the chunks, and one slice lives at a time.
        let bytes = |address, len| unsafe { umem.bytes_mut(address, len) }.map(|bytes| bytes.fill(7));
        assert_eq!(bytes(0, 2_048), Some(()));
        assert_eq!(bytes(4_096 + 2_000, 48), Some(()));
        assert_eq!(bytes(4_096 + 2_000, 49), None, "the next chunk is another's");
        assert_eq!(bytes(3 * 2_048, 1), None, "the page goes on, the chunks do not");
        assert_eq!(bytes(u64::MAX, u32::MAX), None);
        // SAFETY: the same.
        assert_eq!(unsafe { umem.bytes(2_040, 8) }, Some(&[7; 8][..]));
        assert_eq!((umem.chunk_of(4_097), umem.chunk_of(6_144)), (Some(4_096), None));
    }

    #[test]
    fn chunks_that_lie_one_behind_the_other_are_written_as_one() {
        let umem = Umem::create(4, ChunkSize::B2048).unwrap();
        // SAFETY: no ring has the chunks, and one slice lives at a time.
        let len = |address, count| unsafe { umem.chunks_mut(address, count) }.map(|bytes| bytes.len());
        assert_eq!((len(0, 4), len(2_048, 3), len(6_144, 1)), (Some(8_192), Some(6_144), Some(2_048)));
        assert_eq!((len(2_048, 4), len(8_192, 1), len(8_192, 0)), (None, None, None), "there are four");
        assert_eq!((len(1, 1), len(u64::MAX, u32::MAX)), (None, None), "no chunk starts there");
    }

    #[test]
    fn free_frames_are_each_given_once() {
        let umem = Umem::create(4, ChunkSize::B4096).unwrap();
        let mut free = FreeFrames::of(&umem);
        let taken: Vec<u64> = std::iter::from_fn(|| free.take()).collect();
        assert_eq!(taken, [0, 4_096, 8_192, 12_288]);
        free.put(8_192 + 256);
        free.put(1 << 40);
        assert_eq!((free.len(), free.take(), free.take()), (1, Some(8_192), None));
    }

    #[test]
    fn only_what_was_made_so_is_adopted() {
        let made = || Umem::create(3, ChunkSize::B2048).unwrap().into_fd();
        let plain = |len: u64| {
            let fd = memfd_create("plain", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
            ftruncate(&fd, len).unwrap();
            fd
        };
        let shared = Umem::create(3, ChunkSize::B2048).unwrap();
        let adopted = Umem::adopt(shared.fd().try_clone_to_owned().unwrap(), 3, ChunkSize::B2048).unwrap();
        // SAFETY: no ring has the chunk, and one slice lives at a time.
        unsafe { shared.bytes_mut(0, 1) }.unwrap().fill(9);
        // SAFETY: the same.
        assert_eq!(unsafe { adopted.bytes(0, 1) }, Some(&[9][..]), "it is the same memory");
        let file = OwnedFd::from(std::fs::File::open("/proc/self/exe").unwrap());
        let refused =
            |fd: OwnedFd, chunks| Umem::adopt(fd, chunks, ChunkSize::B2048).err().unwrap().to_string();
        for (fd, chunks, what) in [
            (made(), 5, "8192 B and not 12288"),
            (made(), 0, "8192 B and not 0"),
            (plain(8_192), 3, "not sealed"),
            (file, 3, "no memfd"),
        ] {
            let text = refused(fd, chunks);
            assert!(text.contains(what), "{text}");
        }
    }

    #[test]
    fn the_file_cannot_be_cut() {
        let umem = Umem::create(2, ChunkSize::B2048).unwrap();
        assert_eq!(ftruncate(umem.fd(), 0), Err(Errno::PERM));
        assert!(Umem::create(0, ChunkSize::B2048).err().unwrap().to_string().contains("at least one"));
    }
}
