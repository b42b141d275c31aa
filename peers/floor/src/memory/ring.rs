//! A ring of slots in shared memory: one writer, up to [`MOST_READERS`] readers that each see all.
//!
//! A slot says by its turn which sample it holds; a reader polls the turn of its next slot only, so that
//! one cache line travels per small sample. The writer looks at what the readers have taken only when the
//! ring seems full. Nothing is lost: a full ring makes the writer wait.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rustix::thread::futex;
use taut_perf_kit::Stop;
use taut_perf_kit::clock::{now_ns, wait_until};

use super::Region;

/// As many as there are ports for in UDP.
pub const MOST_READERS: usize = 46;

/// The unit in which cores take memory from each other.
const LINE: usize = 64;

// Words of the first lines: the shape, and the bell of those that sleep.
const SLOTS: usize = 0;
const STRIDE: usize = 8;
const READERS: usize = 16;
const BELL: usize = LINE;
const SLEEPERS: usize = LINE + 4;
/// A line for each reader: how many it has taken.
const TAKEN: usize = 2 * LINE;

/// Before the sample in a slot: its turn and its length.
const SLOT_HEAD: usize = 16;

/// A look polls so often before it gives up, so that the caller's clock is read rarely: about 50 ns.
const LOOKS: u32 = 64;

/// Who polls and may be polite gives its core away after this time without luck: more than an answer
/// between two awake threads takes, far less than the scheduler would let the other wait.
const POLITE_NS: u64 = 1_000;

/// A writer that may sleep looks again at a full ring after this time, in which readers empty a part of it.
const NAP_NS: u64 = 20_000;

/// A ring that stays full for so long has lost its readers.
const FULL_NS: u64 = 1_000_000_000;

/// How a reader waits and a writer wakes it.
pub enum Bell {
    /// Polls the slot; `polite` lets others run when nothing comes.
    Poll {
        /// Is the core to be given away?
        polite: bool,
    },
    /// Sleeps in a futex of the shared memory.
    Futex,
    /// Sleeps in these eventfds: the writer has one per reader, a reader its own.
    Event(Vec<OwnedFd>),
}

struct Ring {
    region: Arc<Region>,
    slots: u64,
    stride: usize,
    readers: usize,
}

impl Ring {
    fn of(region: Arc<Region>) -> Ring {
        let word = |at| region.word(at).load(Relaxed);
        let (slots, stride, readers) = (word(SLOTS), word(STRIDE) as usize, word(READERS) as usize);
        Ring { region, slots, stride, readers }
    }

    fn slot(&self, number: u64) -> usize {
        TAKEN + self.readers * LINE + (number % self.slots) as usize * self.stride
    }

    fn taken(&self, reader: usize) -> usize {
        TAKEN + reader * LINE
    }
}

/// Memory for a ring: so many slots for samples up to this length.
pub fn create(slots: usize, len: usize, readers: usize) -> Result<(Arc<Region>, OwnedFd), Stop> {
    if readers > MOST_READERS {
        return Err(Stop::Absent(format!("a ring has at most {MOST_READERS} readers")));
    }
    let stride = (SLOT_HEAD + len).next_multiple_of(LINE);
    let (region, fd) = Region::create(TAKEN + readers * LINE + slots * stride)?;
    region.word(SLOTS).store(slots as u64, Relaxed);
    region.word(STRIDE).store(stride as u64, Relaxed);
    // The memory is handed over by a socket or a thread's start, which order these stores.
    region.word(READERS).store(readers as u64, Relaxed);
    Ok((Arc::new(region), fd))
}

/// The writing end.
pub struct Writer {
    ring: Ring,
    next: u64,
    /// What the slowest reader had taken when it was last looked at.
    taken: u64,
    bell: Bell,
}

impl Writer {
    /// Of this ring.
    pub fn new(region: Arc<Region>, bell: Bell) -> Writer {
        Writer { ring: Ring::of(region), next: 0, taken: 0, bell }
    }

    /// Where the next sample is to be written.
    pub fn claim(&mut self) -> Result<(&Region, usize), Stop> {
        if self.next - self.taken >= self.ring.slots {
            self.wait_room()?;
        }
        Ok((&self.ring.region, self.ring.slot(self.next) + SLOT_HEAD))
    }

    /// The sample is written: so long.
    pub fn publish(&mut self, len: usize) -> Result<(), Stop> {
        let (slot, region) = (self.ring.slot(self.next), &self.ring.region);
        region.word(slot + 8).store(len as u64, Relaxed);
        self.next += 1;
        // Partner: the Acquire of `Reader::look`; what was written before is seen with the turn.
        region.word(slot).store(self.next, Release);
        match &self.bell {
            Bell::Poll { .. } => {}
            Bell::Futex => {
                // In one order with `Reader::sleep`: either it sees the new bell or we see the sleeper.
                region.half(BELL).fetch_add(1, SeqCst);
                if region.half(SLEEPERS).load(SeqCst) > 0 {
                    futex::wake(region.half(BELL), futex::Flags::empty(), i32::MAX as u32)?;
                }
            }
            Bell::Event(fds) => {
                for fd in fds {
                    rustix::io::write(fd, &1u64.to_ne_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn wait_room(&mut self) -> Result<(), Stop> {
        let end_ns = now_ns() + FULL_NS;
        loop {
            let ring = &self.ring;
            let taken = |reader| ring.region.word(ring.taken(reader)).load(Acquire);
            self.taken = (0..ring.readers).map(taken).min().unwrap_or(self.next);
            if self.next - self.taken < self.ring.slots {
                return Ok(());
            }
            let now = now_ns();
            if now > end_ns {
                return Err(Stop::Failed("the ring stays full".to_string()));
            }
            match self.bell {
                Bell::Poll { polite: false } => {}
                Bell::Poll { polite: true } => std::thread::yield_now(),
                Bell::Futex | Bell::Event(_) => {
                    wait_until(now + NAP_NS, false);
                }
            }
        }
    }
}

/// The end of one reader.
pub struct Reader {
    ring: Ring,
    index: usize,
    next: u64,
    bell: Bell,
}

impl Reader {
    /// Of this ring.
    pub fn new(region: Arc<Region>, index: usize, bell: Bell) -> Reader {
        Reader { ring: Ring::of(region), index, next: 0, bell }
    }

    /// The next sample, waited for: where it is and how long. It stays until it is released.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<(&Region, usize, usize)>, Stop> {
        let mut found = self.looks();
        if !found && !at_most.is_zero() {
            found = match self.bell {
                Bell::Poll { polite } => self.poll(at_most.as_nanos() as u64, polite),
                Bell::Futex => self.sleep(now_ns() + at_most.as_nanos() as u64)?,
                Bell::Event(_) => self.sleep_event(at_most)?,
            };
        }
        let slot = self.ring.slot(self.next);
        let len = self.ring.region.word(slot + 8).load(Relaxed) as usize;
        Ok(found.then_some((&self.ring.region, slot + SLOT_HEAD, len)))
    }

    /// The sample is used: its slot may be written again.
    pub fn release(&mut self) {
        self.next += 1;
        // Partner: the Acquire of `Writer::wait_room`.
        self.ring.region.word(self.ring.taken(self.index)).store(self.next, Release);
    }

    fn look(&self) -> bool {
        // Partner: the Release of `Writer::publish`.
        self.ring.region.word(self.ring.slot(self.next)).load(Acquire) == self.next + 1
    }

    fn looks(&self) -> bool {
        // Whoever sleeps does not poll at all: that is what it is to show.
        let looks = if matches!(self.bell, Bell::Poll { .. }) { LOOKS } else { 1 };
        let word = self.ring.region.word(self.ring.slot(self.next));
        (0..looks).any(|_| word.load(Acquire) == self.next + 1)
    }

    fn poll(&self, for_ns: u64, polite: bool) -> bool {
        let begin_ns = now_ns();
        loop {
            if (0..LOOKS).any(|_| self.look()) {
                return true;
            }
            let waited_ns = now_ns() - begin_ns;
            if waited_ns >= for_ns {
                return false;
            }
            if polite && waited_ns > POLITE_NS {
                std::thread::yield_now();
            }
        }
    }

    fn sleep(&self, end_ns: u64) -> Result<bool, Stop> {
        let region = &self.ring.region;
        region.half(SLEEPERS).fetch_add(1, SeqCst);
        let slept = loop {
            let bell = region.half(BELL).load(SeqCst);
            let now = now_ns();
            if self.look() || now >= end_ns {
                break Ok(());
            }
            let left = Duration::from_nanos(end_ns - now);
            let left = futex::Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()) as _,
            };
            match futex::wait(region.half(BELL), futex::Flags::empty(), bell, Some(&left)) {
                // The bell had rung, the time is over, or a signal came: look again.
                Ok(())
                | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::TIMEDOUT | rustix::io::Errno::INTR) => {}
                Err(error) => break Err(error),
            }
        };
        region.half(SLEEPERS).fetch_sub(1, SeqCst);
        slept?;
        Ok(self.look())
    }

    fn sleep_event(&self, at_most: Duration) -> Result<bool, Stop> {
        let Bell::Event(fds) = &self.bell else { return Ok(false) };
        let fd = &fds[0];
        let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut polled, Some(TimeSpec::from_duration(at_most)), None) {
            Ok(0) | Err(nix::Error::EINTR) => {}
            Ok(_) => {
                // Resets it to zero. Later samples may have been rung for too: they are looked for first.
                rustix::io::read(fd, &mut [0u8; 8])?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.look())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(slots: usize, readers: usize, bell: fn() -> Bell) -> (Writer, Vec<Reader>) {
        let (region, _) = create(slots, 40, readers).unwrap();
        let reader = |index| Reader::new(Arc::clone(&region), index, bell());
        (Writer::new(Arc::clone(&region), bell()), (0..readers).map(reader).collect())
    }

    fn write(writer: &mut Writer, value: u64) -> Result<(), Stop> {
        let (region, at) = writer.claim()?;
        region.copy_in(at, &value.to_le_bytes());
        writer.publish(8)
    }

    fn read(reader: &mut Reader, at_most: Duration) -> Option<u64> {
        let mut value = [0; 8];
        {
            let (region, at, len) = reader.wait(at_most).unwrap()?;
            assert_eq!(len, 8);
            region.copy_out(at, &mut value);
        }
        reader.release();
        Some(u64::from_le_bytes(value))
    }

    #[test]
    fn every_reader_sees_all_in_order_and_the_writer_waits_for_the_slowest() {
        let (mut writer, mut readers) = ring(4, 2, || Bell::Poll { polite: false });
        for value in 0..4 {
            write(&mut writer, value).unwrap();
        }
        let (first, second) = readers.split_at_mut(1);
        for value in 0..4 {
            assert_eq!(read(&mut first[0], Duration::ZERO), Some(value));
        }
        assert_eq!(read(&mut first[0], Duration::ZERO), None);
        assert!(write(&mut writer, 4).is_err(), "the second reader has taken nothing");
        assert_eq!(read(&mut second[0], Duration::ZERO), Some(0));
        write(&mut writer, 4).unwrap();
        assert_eq!(read(&mut first[0], Duration::ZERO), Some(4));
        assert_eq!(read(&mut second[0], Duration::ZERO), Some(1));
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        for bell in [|| Bell::Poll { polite: false }, || Bell::Poll { polite: true }, || Bell::Futex] {
            let (_writer, mut readers) = ring(4, 1, bell);
            let begin_ns = now_ns();
            assert_eq!(read(&mut readers[0], Duration::from_millis(20)), None);
            assert!(now_ns() - begin_ns < 1_000_000_000);
        }
    }

    #[test]
    fn a_sleeper_misses_nothing() {
        for bell in [|| Bell::Futex, || Bell::Poll { polite: true }] {
            let (mut writer, mut readers) = ring(8, 1, bell);
            let reader = std::thread::spawn(move || {
                for value in 0..20_000 {
                    assert_eq!(read(&mut readers[0], Duration::from_secs(5)), Some(value));
                }
            });
            for value in 0..20_000 {
                write(&mut writer, value).unwrap();
            }
            reader.join().unwrap();
        }
    }
}
