//! Samples over anything that carries pieces of a limited length: cut where they are too long, and put
//! together again. Bare: in order, nothing is repaired; what lacks a piece is lost.

use std::marker::PhantomData;
use std::time::Duration;

use taut_perf_kit::clock::{left, now_ns};
use taut_perf_kit::{Line, Options, Stop};

use crate::sample::{Fields, Pool, Sample};

/// Carries pieces.
pub trait Wire {
    /// The longest piece.
    fn room(&self) -> usize;

    /// Sends `head` and `body` as one piece. `head` is empty where samples are not cut.
    fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop>;

    /// The next piece, its beginning in `head` and the rest in `body`; all of its bytes. Waits at most so
    /// long; zero only looks.
    fn receive(&mut self, head: &mut [u8], body: &mut [u8], at_most: Duration)
    -> Result<Option<usize>, Stop>;

    /// Sends what was held back to go with more.
    fn push(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// How it waits, for `ready`.
    fn wait(&self, options: &Options) -> &'static str {
        if options.spin() { "spin" } else { "block" }
    }
}

/// Before each piece of a sample that is cut: its number and the place of the piece.
const HEAD: usize = 16;

/// A line of samples over a wire.
pub struct WireLine<W, O, I> {
    wire: W,
    pool: Pool,
    /// Are samples that come in cut? Their length is known, so both sides know it.
    cut_in: bool,
    in_len: usize,
    sent: u64,
    /// The sample that is being put together.
    partial: Option<Sample<I>>,
    number: u64,
    got: usize,
    out: PhantomData<O>,
}

impl<W: Wire, O: Fields, I: Fields> WireLine<W, O, I> {
    /// Over this wire.
    pub fn new(wire: W, options: &Options) -> WireLine<W, O, I> {
        let in_len = I::wire_len(options.size);
        let cut_in = in_len > wire.room();
        WireLine {
            // While a sample is put together the first piece of the next may come: it must fit behind.
            pool: Pool::new(if cut_in { in_len + wire.room() } else { in_len }),
            cut_in,
            wire,
            in_len,
            sent: 0,
            partial: None,
            number: 0,
            got: 0,
            out: PhantomData,
        }
    }

    fn send_cut(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&self.sent.to_le_bytes());
        self.sent += 1;
        let mut at = 0usize;
        for piece in bytes.chunks(self.wire.room() - HEAD) {
            head[8..].copy_from_slice(&(at as u64).to_le_bytes());
            self.wire.send(&head, piece)?;
            at += piece.len();
        }
        Ok(())
    }

    fn receive_cut(&mut self, at_most: Duration) -> Result<Option<Sample<I>>, Stop> {
        let end_ns = now_ns() + at_most.as_nanos() as u64;
        loop {
            let mut head = [0; HEAD];
            let sample = self.partial.get_or_insert_with(|| self.pool.sample());
            let body = &mut sample.room()[self.got..];
            let Some(len) = self.wire.receive(&mut head, body, left(end_ns))? else { return Ok(None) };
            let len = len.saturating_sub(HEAD);
            let number = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
            let at = u64::from_le_bytes(head[8..].try_into().unwrap_or_default()) as usize;
            if at == self.got && (at == 0 || number == self.number) {
                self.got += len;
            } else if at == 0 {
                // The rest of the last sample is lost; this is the beginning of the next, in the wrong place.
                let from = self.got;
                sample.room().copy_within(from..from + len, 0);
                self.got = len;
            } else {
                self.got = 0;
                continue;
            }
            self.number = number;
            if self.got >= self.in_len {
                sample.set_len(self.got);
                self.got = 0;
                return Ok(self.partial.take());
            }
        }
    }
}

impl<W: Wire, O: Fields, I: Fields> Line for WireLine<W, O, I> {
    type Out = Sample<O>;
    type In = Sample<I>;

    fn send(&mut self, sample: &Sample<O>) -> Result<(), Stop> {
        let bytes = sample.bytes();
        if bytes.len() <= self.wire.room() { self.wire.send(&[], bytes) } else { self.send_cut(bytes) }
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Sample<I>>, Stop> {
        if self.cut_in {
            return self.receive_cut(at_most);
        }
        let mut sample = self.pool.sample();
        let Some(len) = self.wire.receive(&mut [], sample.room(), at_most)? else { return Ok(None) };
        sample.set_len(len);
        Ok(Some(sample))
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.wire.push()
    }

    fn wait(&self, options: &Options) -> &'static str {
        self.wire.wait(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Bytes;
    use std::collections::VecDeque;
    use taut_perf_kit::{Payload, Stamp};

    /// Carries 100 bytes at a time, to itself.
    #[derive(Default)]
    struct Loop(VecDeque<Vec<u8>>);

    impl Wire for Loop {
        fn room(&self) -> usize {
            100
        }
        fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop> {
            assert!(head.len() + body.len() <= 100);
            self.0.push_back([head, body].concat());
            Ok(())
        }
        fn receive(&mut self, head: &mut [u8], body: &mut [u8], _: Duration) -> Result<Option<usize>, Stop> {
            let Some(piece) = self.0.pop_front() else { return Ok(None) };
            head.copy_from_slice(&piece[..head.len()]);
            let rest = &piece[head.len()..];
            let fits = rest.len().min(body.len());
            body[..fits].copy_from_slice(&rest[..fits]);
            Ok(Some(head.len() + fits))
        }
    }

    fn options(size: usize) -> Options {
        Options::read(["ping".into(), "--size".into(), size.to_string()]).unwrap()
    }

    /// Of samples 0, 1, 2 in pieces, those that come out when some pieces are lost.
    fn arrive(size: usize, lost: &[usize]) -> Vec<u64> {
        let mut line = WireLine::<Loop, Bytes, Bytes>::new(Loop::default(), &options(size));
        let mut sample = Sample::sized(size);
        for seq in 0..3 {
            sample.set_stamp(Stamp { seq, sent_ns: 1, seen_ns: 0 });
            line.send(&sample).unwrap();
        }
        for (removed, at) in lost.iter().enumerate() {
            line.wire.0.remove(at - removed);
        }
        let mut seqs = Vec::new();
        while let Some(sample) = line.receive(Duration::ZERO).unwrap() {
            assert!(sample.intact(size));
            seqs.push(sample.stamp().seq);
        }
        seqs
    }

    #[test]
    fn what_is_whole_arrives() {
        assert_eq!(arrive(100, &[]), [0, 1, 2]);
        assert_eq!(arrive(100, &[1]), [0, 2]);
        // Three pieces each.
        assert_eq!(arrive(250, &[]), [0, 1, 2]);
        assert_eq!(arrive(250, &[2]), [1, 2]);
        assert_eq!(arrive(250, &[3]), [0, 2]);
        assert_eq!(arrive(250, &[4]), [0, 2]);
        assert_eq!(arrive(250, &[1, 2, 3]), [2]);
    }
}
