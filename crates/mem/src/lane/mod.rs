//! Lanes: one writer's samples for any number of readers, in memory that all of them see.
//!
//! A lane is a ring of cells that only its writer writes. Each reader has a [`Feedback`] of its own, which
//! only it writes: how far it has read and what it still holds. So each byte has one writing side, a side
//! that dies leaves nothing to repair, and one that lies is caught by the other's checks. A small payload
//! lies in its cell, a larger one in a slot of the lane's arena that the cell names.
//!
//! **The invariants**, to which the code refers by their letters:
//!
//! * **C** A cell's stamp is `2 * position + 2` exactly while the cell holds that position's sample. The
//!   writer makes it `2 * position + 1` before it touches the words and sets it with Release after; a reader
//!   loads it with Acquire before it copies the words and looks again after an Acquire fence.
//! * **L** A reader names a position in its feedback before it looks at the cell's stamp for the last time,
//!   with a SeqCst fence between the two; the writer takes a slot back only when the cell's stamp has
//!   changed or the cursor has passed, and after a SeqCst fence no feedback names its position.
//! * **P** The writer knows of every reader whose cursor may stand at or before a position before it takes
//!   that position's slot back: it is told of a reader's feedback, then the reader attaches, at the head;
//!   after each push and before the next claim it looks whether it was told, also of who has gone since.
//!   Between the two steps of either side is a lock that both take, or a SeqCst fence.
//! * **W** Who sleeps says so, then a SeqCst fence, then looks once more; who has something to tell writes
//!   it, then a SeqCst fence, then looks whether somebody sleeps.

mod arena;
mod bell;
mod feedback;
mod payload;
mod reader;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

use std::fmt;

use crate::region::{PAGE, Region, WORD};
use crate::sync::{AtomicU64, Ordering};

pub use arena::{Commit, HEADROOM, LEAD, Slot};
pub use bell::Bell;
pub use feedback::{FEEDBACK_LEN, Feedback, LOANS};
pub use payload::{Entry, Payload, Short};
pub(crate) use reader::Hold;
pub use reader::{LaneReader, Next, Peephole};
pub use writer::{LaneWriter, NoRoom, Peer};

// Under loom all that is counted in words is as short as it can be: each load of a word that is written at
// the same time doubles what is to be explored.

/// The opaque words that go with a payload. The first rises from sample to sample.
pub type Meta = [u64; META_WORDS];

const META_WORDS: usize = if cfg!(loom) { 1 } else { 5 };

/// The longest payload that lies in its cell, [`LEAD`] bytes behind a word boundary like one in a slot. More
/// would make every cell a cache line longer.
pub const INLINE: usize = INLINE_WORDS * WORD - LEAD;

/// The bytes of a payload in front of the first word boundary of its cell: a value's header.
pub const HEAD: usize = WORD - LEAD;

/// Words of a cell: two cache lines, which a processor fetches together.
const CELL: usize = if cfg!(loom) { 4 } else { 16 };
const STAMP: usize = 0;
const META: usize = 1;
/// Payload length in the low half; in the high half 0 for a payload in the cell, else the slot's
/// offset plus [`LEAD`] in units of [`UNIT`], plus 1.
const PAYLOAD: usize = META + META_WORDS;
const DATA: usize = PAYLOAD + 1;
const INLINE_WORDS: usize = CELL - DATA;
/// A sample's words.
type Cell = [AtomicU64; CELL];
/// What slots are aligned to: a cache line.
pub(crate) const UNIT: usize = 64;

/// "TautLane" and the version of this layout.
const MAGIC: u64 = 0x5461_7574_4c61_6e00 | 1;
const HEADER: usize = 32;
// The header's words, by who looks when. Line 0 never changes.
const AT_MAGIC: usize = 0;
const AT_CELLS: usize = 1;
/// Line 1 changes with each sample and is looked at when somebody attaches.
const AT_HEAD: usize = 8;
const AT_LAST: usize = 9;
/// Line 2 changes when the writer waits: readers look at it after each sample.
const AT_WAITING: usize = 16;
/// What is there then.
const WAITS: u64 = 1;
/// And while readers lag that are to be called before they are overtaken.
const CALLS: u64 = 2;
/// Line 3 changes once.
const AT_CLOSED: usize = 24;

/// The most cells of a lane that is read. *Source*: 128 times what the executor's writers have, which looked through to
/// the end are 8 MiB of stamps apart, some milliseconds. Higher and a writer that lies keeps its readers looking for
/// as long as it has cells, lower leaves less room for writers to come.
pub const MAX_CELLS: usize = 65_536;

/// Why memory of another process is no lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotALane {
    /// It does not begin as a lane of this layout.
    Layout,
    /// It says to have so many cells: no power of two, or more than [`MAX_CELLS`].
    Cells(u64),
    /// It is shorter than its cells.
    Short,
}

/// One lane's memory, as any side sees it.
#[repr(align(64))]
pub struct Lane {
    region: Region,
    /// A power of two.
    cells: u64,
}

impl Lane {
    /// Bytes that a lane of so many cells and an arena of so many bytes takes.
    pub const fn size(cells: usize, arena: usize) -> usize {
        Lane::arena_start(cells) + arena
    }

    const fn arena_start(cells: usize) -> usize {
        ((HEADER + cells * CELL) * WORD).next_multiple_of(PAGE)
    }

    /// Lays a lane of `cells`, a power of two, into zeroed memory of at least [`Lane::size`].
    pub fn create(region: Region, cells: usize) -> Lane {
        assert!(cells.is_power_of_two() && region.len() >= Lane::size(cells, 0), "the lane fits its memory");
        let lane = Lane { region, cells: cells as u64 };
        lane.header()[AT_CELLS].store(cells as u64, Ordering::Relaxed);
        lane.header()[AT_MAGIC].store(MAGIC, Ordering::Release);
        lane
    }

    /// Finds the lane that another process has laid.
    ///
    /// *Errors*: [`NotALane`].
    pub fn open(region: Region) -> Result<Lane, NotALane> {
        let header = region.words(0, HEADER).ok_or(NotALane::Layout)?;
        if header[AT_MAGIC].load(Ordering::Acquire) != MAGIC {
            return Err(NotALane::Layout);
        }
        let cells = header[AT_CELLS].load(Ordering::Relaxed);
        if !cells.is_power_of_two() || cells > MAX_CELLS as u64 {
            return Err(NotALane::Cells(cells));
        }
        let fits = Lane::size(cells as usize, 0) <= region.len();
        fits.then_some(Lane { region, cells }).ok_or(NotALane::Short)
    }

    /// How many samples it holds.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The first word of the last sample's meta words; 0 before the first.
    pub fn last(&self) -> u64 {
        self.header()[AT_LAST].load(Ordering::SeqCst)
    }

    /// Does the writer wait to be told when a reader moves on? Readers look after they have ([W]).
    pub fn is_awaited(&self) -> bool {
        self.header()[AT_WAITING].load(Ordering::Relaxed) == WAITS
    }

    /// Does it call readers that it would overtake, to read what is there?
    pub fn calls_readers(&self) -> bool {
        self.header()[AT_WAITING].load(Ordering::Relaxed) == CALLS
    }

    /// Has the writer gone for good? What it had written can still be read.
    pub fn is_closed(&self) -> bool {
        self.header()[AT_CLOSED].load(Ordering::Acquire) != 0
    }

    #[inline]
    fn header(&self) -> &[AtomicU64; HEADER] {
        self.region.row(0).expect("invariant: a lane is longer than its header")
    }

    #[inline]
    fn cell(&self, position: u64) -> &Cell {
        let index = (position & (self.cells - 1)) as usize;
        self.region.row(HEADER + index * CELL).expect("invariant: a lane is as long as its cells")
    }

    fn stamp(&self, position: u64) -> &AtomicU64 {
        &self.cell(position)[STAMP]
    }
}

impl fmt::Display for NotALane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotALane::Layout => f.write_str("the memory is no lane of this layout"),
            NotALane::Cells(cells) => {
                write!(f, "a lane of {cells} cells: a power of two up to {MAX_CELLS} is read")
            }
            NotALane::Short => f.write_str("a lane that is shorter than its cells"),
        }
    }
}

impl std::error::Error for NotALane {}

/// The stamp of a position whose sample is there. [C]
fn ready(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(2)
}
