//! A payload on its way into the lane, to the protocol, or to both.

use taut_mem::lane::{HEAD, INLINE, LaneWriter, Meta, Short, Slot};
use taut_mem::{Bytes, Chunk, Pool};

use crate::write::memory::Memory;
use crate::write::outlet::Outlet;

/// A payload that is to be written.
pub struct Payload<'a> {
    pub(crate) len: usize,
    at: At<'a>,
    /// Its place in the lane, if it has one.
    pub(crate) place: Option<Place>,
}

/// Where a payload is until it is written.
enum At<'a> {
    /// A value's memory, to be put behind its header.
    Value { header: [u8; HEADER], value: &'a [u8], pool: &'a mut Pool },
    /// In a buffer of a pool.
    Buffer(&'a mut Pool, Option<taut_mem::Slot>),
    /// Here, to be copied wherever it goes.
    Short(Short),
    /// The protocol has it.
    Shared(Bytes),
    /// In the lane's arena; the pool is for what the protocol gets.
    Loan(&'a mut Pool),
    /// In a chunk that a port sends from.
    Chunk(Option<Chunk>),
}

/// How a payload goes into the lane.
pub(crate) enum Place {
    Cell,
    Slot(Slot),
}

/// Bytes of the encapsulation header. *Source*: RTPS 2.5 §10.2.
const HEADER: usize = 4;
const _: () = assert!(HEADER == HEAD, "a value behind its header starts at a word of its cell");

impl<'a> Payload<'a> {
    /// The memory of a value that is its serialized form, behind the first two bytes of its encapsulation
    /// header; `pool` is for what cannot go into the lane.
    #[inline]
    pub fn value([high, low]: [u8; 2], value: &'a [u8], pool: &'a mut Pool) -> Payload<'a> {
        let len = (HEADER + value.len()).next_multiple_of(4);
        let padding = len - HEADER - value.len();
        Payload { len, at: At::Value { header: [high, low, 0, padding as u8], value, pool }, place: None }
    }

    /// The first `len` bytes of a pool's buffer.
    pub fn buffer(pool: &'a mut Pool, buffer: taut_mem::Slot, len: usize) -> Payload<'a> {
        Payload { len: len.min(buffer.len()), at: At::Buffer(pool, Some(buffer)), place: None }
    }

    /// A copy of bytes that are short enough for a cell; of more than that none.
    pub fn short(bytes: &[u8]) -> Payload<'static> {
        let mut short = Short::zeros(bytes.len()).unwrap_or(Short::EMPTY);
        let len = short.len();
        short.copy_from_slice(bytes.get(..len).unwrap_or_default());
        Payload { len, at: At::Short(short), place: None }
    }

    /// The first `len` bytes of `memory`; `pool` is for a copy that others than a lane's readers need.
    pub fn of(pool: &'a mut Pool, memory: Memory, len: usize) -> Payload<'a> {
        let all = memory.len();
        let (at, place) = match memory {
            Memory::Slot(slot) => (At::Loan(pool), Some(Place::Slot(slot))),
            Memory::Chunk(chunk) => (At::Chunk(Some(chunk)), None),
            Memory::Short(short) => (At::Short(short), None),
        };
        Payload { len: len.min(all), at, place }
    }

    /// Writes the payload into memory of its length. *Cost*: the one copy.
    #[inline]
    pub(crate) fn copy_to(&self, to: &mut [u8]) {
        let At::Value { header, value, .. } = &self.at else { return to.copy_from_slice(self.bytes()) };
        lay(header, value, to);
    }

    /// Writes the payload, which is short enough, into a cell of the lane. `false` without room.
    #[inline]
    pub(crate) fn push(&self, lane: &mut LaneWriter, meta: &Meta) -> bool {
        match &self.at {
            At::Value { header, value, .. } => lane.push_value(meta, *header, value, self.len).is_ok(),
            _ => lane.push(meta, self.bytes()).is_ok(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match (&self.at, &self.place) {
            (At::Buffer(_, Some(buffer)), _) => buffer.get(..self.len).unwrap_or_default(),
            (At::Short(bytes), _) => bytes,
            (At::Shared(bytes), _) => bytes,
            (At::Chunk(Some(chunk)), _) => chunk.get(..self.len).unwrap_or_default(),
            (At::Loan(_), Some(Place::Slot(slot))) => slot.get(..self.len).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Makes `view` one that the protocol may keep. *Cost*: a copy of what is in the lane's arena, or short.
    #[inline]
    pub(crate) fn share_as(&mut self, view: &mut Bytes) {
        let is_short = match &self.at {
            At::Value { header, value, .. } => view.set_short_with(self.len, |to| lay(header, value, to)),
            At::Buffer(_, Some(buffer)) if self.len <= INLINE => view.set_short(buffer, self.len),
            _ => false,
        };
        if !is_short {
            *view = self.share();
        }
    }

    #[inline(never)]
    fn share(&mut self) -> Bytes {
        let bytes = match &mut self.at {
            At::Buffer(_, Some(buffer)) if self.len <= INLINE => {
                return Bytes::copy_from(buffer.get(..self.len).unwrap_or_default());
            }
            At::Buffer(pool, buffer) => {
                pool.note_copied();
                buffer.take().map(|buffer| pool.share_prefix(buffer, self.len)).unwrap_or_default()
            }
            At::Shared(bytes) => return bytes.clone(),
            At::Value { header, value, pool } => pool.written(self.len, |to| lay(header, value, to)),
            At::Chunk(chunk) => chunk.take().map(|chunk| chunk.share(self.len)).unwrap_or_default(),
            At::Loan(pool) => {
                let Some(Place::Slot(slot)) = &self.place else { return Bytes::new() };
                let view =
                    pool.written(self.len, |to| to.copy_from_slice(slot.get(..to.len()).unwrap_or_default()));
                if view.is_lent() {
                    pool.note_copied();
                }
                view
            }
            At::Short(bytes) => return Bytes::copy_from(bytes),
        };
        self.at = At::Shared(bytes.clone());
        bytes
    }

    /// It is not written, or written: what it took goes back.
    #[inline]
    pub(crate) fn drop_into(&mut self, outlet: &mut Outlet) {
        if let Some(Place::Slot(slot)) = self.place.take() {
            outlet.give_back(slot);
        }
        if let At::Buffer(pool, buffer) = &mut self.at
            && let Some(buffer) = buffer.take()
        {
            pool.give_back(buffer);
        }
    }
}

/// A value behind its header, and zeros up to the end.
#[inline]
fn lay(header: &[u8; HEADER], value: &[u8], to: &mut [u8]) {
    let (first, rest) = to.split_at_mut(HEADER);
    first.copy_from_slice(header);
    let (body, padding) = rest.split_at_mut(value.len());
    body.copy_from_slice(value);
    if !padding.is_empty() {
        padding.fill(0);
    }
}
