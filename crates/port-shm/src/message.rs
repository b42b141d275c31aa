//! What two participants of a host say to each other over their socket.
//!
//! A message is a packet of its own: a byte of version, a byte of kind, then the fields one after another
//! without gaps, numbers little-endian. Its length is fixed by its kind, as is the number of descriptors
//! that go with it.
//!
//! | kind | message | fields | descriptors |
//! |---|---|---|---|
//! | 1 | Hello | host id 16, GUID prefix 12, hears the end 1 | bell, eventfd |
//! | 2 | Offer | writer 16, reader 16, number 8 | lane |
//! | 3 | Accept | writer 16, reader 16, number 8 | feedback |
//! | 4 | Refuse | writer 16, reader 16, reason 1 | |
//! | 5 | End | writer 16, reader 16 | |
//! | 6 | Ring | | |
//! | 7 | Begin | writer 16, reader 16, number 8 | |
//! | 8 | Reading | writer 16, reader 16, sample 8 | |
//!
//! A pair is joined by Offer, Accept, Begin, Reading: the reader attaches only when the writer's owner will
//! look at its feedback, and the writer's protocol leaves samples to the lane only when the reader reads it.
//! Each offer of a connection has another number, which its Accept and its Begin repeat: a pair may part and
//! match again while an answer is on its way, which then counts for nothing.

use std::fmt;

use taut_base::{Guid, GuidPrefix};

/// Of this layout. Both ends must have the same: a host whose programs are of two versions uses UDP
/// between them.
pub(crate) const VERSION: u8 = 3;
/// The longest message.
pub(crate) const MAX_LEN: usize = 2 + 16 + 16 + 8;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// The first in both directions, whoever is first: who speaks, the memory of its bell and the eventfd to ring it by.
    Hello {
        /// [`crate::host_id`].
        host_id: [u8; 16],
        /// The participant.
        prefix: GuidPrefix,
        /// Does it hear when the process that this goes to ends? If not it gives up with the connection what that one holds of
        /// its lanes, which is therefore to copy.
        hears_end: bool,
    },
    /// From the writer's side: here is the writer's lane for a reader of yours.
    Offer {
        /// The writer.
        writer: Guid,
        /// The matched reader.
        reader: Guid,
        /// Of the offer.
        number: u64,
    },
    /// From the reader's side: this is its feedback.
    Accept {
        /// The writer.
        writer: Guid,
        /// The matched reader.
        reader: Guid,
        /// Of the offer.
        number: u64,
    },
    /// From the writer's side: its owner looks at the feedback from its next write on.
    Begin {
        /// The writer.
        writer: Guid,
        /// The matched reader.
        reader: Guid,
        /// Of the offer.
        number: u64,
    },
    /// From the reader's side: it is attached.
    Reading {
        /// The writer.
        writer: Guid,
        /// The matched reader.
        reader: Guid,
        /// The number of the first sample that it takes from the lane.
        from: u64,
    },
    /// From the reader's side: it takes this writer's samples by UDP. From the writer's side, in place of an offer: there is no
    /// room for one more pair.
    Refuse {
        /// The writer.
        writer: Guid,
        /// The matched reader.
        reader: Guid,
        /// Why, for counters.
        reason: u8,
    },
    /// From either side: the pair no longer uses the lane.
    End {
        /// The writer.
        writer: Guid,
        /// The reader.
        reader: Guid,
    },
    /// Wake up and look. In place of [`crate::Waker::ring`] towards a peer that is not trusted: whoever
    /// shares an eventfd can make a write to it wait, a packet never waits.
    Ring,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Another version of this layout.
    Version(u8),
    /// A kind that this version does not have.
    Kind(u8),
    /// Not as long as its kind is.
    Length(usize),
}

/// A message as bytes.
pub(crate) struct Encoded {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Message {
    /// How many descriptors go with it.
    pub fn descriptors(&self) -> usize {
        match self {
            Message::Hello { .. } => 2,
            Message::Offer { .. } | Message::Accept { .. } => 1,
            Message::Refuse { .. } | Message::End { .. } | Message::Ring => 0,
            Message::Begin { .. } | Message::Reading { .. } => 0,
        }
    }

    pub(crate) fn encode(&self) -> Encoded {
        let mut out = Encoded { bytes: [0; MAX_LEN], len: 0 };
        let kind = match self {
            Message::Hello { .. } => 1,
            Message::Offer { .. } => 2,
            Message::Accept { .. } => 3,
            Message::Refuse { .. } => 4,
            Message::End { .. } => 5,
            Message::Ring => 6,
            Message::Begin { .. } => 7,
            Message::Reading { .. } => 8,
        };
        out.put(&[VERSION, kind]);
        match self {
            Message::Hello { host_id, prefix, hears_end } => {
                out.put(host_id);
                out.put(&prefix.0);
                out.put(&[u8::from(*hears_end)]);
            }
            Message::Offer { writer, reader, number }
            | Message::Accept { writer, reader, number }
            | Message::Begin { writer, reader, number }
            | Message::Reading { writer, reader, from: number } => {
                out.pair(writer, reader);
                out.put(&number.to_le_bytes());
            }
            Message::End { writer, reader } => out.pair(writer, reader),
            Message::Refuse { writer, reader, reason } => {
                out.pair(writer, reader);
                out.put(&[*reason]);
            }
            Message::Ring => {}
        }
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
        let short = Malformed::Length(bytes.len());
        let mut fields = Fields(bytes);
        let [version] = fields.take().ok_or(short)?;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let [kind] = fields.take().ok_or(short)?;
        let message = match kind {
            1 => fields.hello(),
            2 => fields.numbered(|writer, reader, number| Message::Offer { writer, reader, number }),
            3 => fields.numbered(|writer, reader, number| Message::Accept { writer, reader, number }),
            4 => fields.refuse(),
            5 => fields.pair().map(|(writer, reader)| Message::End { writer, reader }),
            6 => Some(Message::Ring),
            7 => fields.numbered(|writer, reader, number| Message::Begin { writer, reader, number }),
            8 => fields.numbered(|writer, reader, from| Message::Reading { writer, reader, from }),
            other => return Err(Malformed::Kind(other)),
        };
        message.filter(|_| fields.0.is_empty()).ok_or(short)
    }
}

impl Encoded {
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn put(&mut self, field: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.len).zip(field) {
            *to = *from;
        }
        self.len = self.len.saturating_add(field.len());
    }

    fn pair(&mut self, writer: &Guid, reader: &Guid) {
        self.put(&writer.to_bytes());
        self.put(&reader.to_bytes());
    }
}

/// What is left to parse.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn pair(&mut self) -> Option<(Guid, Guid)> {
        Some((Guid::from_bytes(self.take()?), Guid::from_bytes(self.take()?)))
    }

    fn hello(&mut self) -> Option<Message> {
        let (host_id, prefix) = (self.take()?, GuidPrefix(self.take()?));
        let hears_end = match self.take()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Message::Hello { host_id, prefix, hears_end })
    }

    fn numbered(&mut self, message: impl FnOnce(Guid, Guid, u64) -> Message) -> Option<Message> {
        let (writer, reader) = self.pair()?;
        Some(message(writer, reader, u64::from_le_bytes(self.take()?)))
    }

    fn refuse(&mut self) -> Option<Message> {
        let (writer, reader) = self.pair()?;
        let [reason] = self.take()?;
        Some(Message::Refuse { writer, reader, reason })
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Version(version) => {
                write!(f, "version {version} of the local protocol, this is version {VERSION}")
            }
            Malformed::Kind(kind) => write!(f, "a message of the unknown kind {kind}"),
            Malformed::Length(len) => write!(f, "a message of {len} B, which its kind does not have"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::{EntityId, Rng};

    fn all() -> [Message; 8] {
        let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user(2, true, false));
        let reader = Guid::new(GuidPrefix([3; 12]), EntityId::user(4, false, false));
        [
            Message::Hello { host_id: [9; 16], prefix: GuidPrefix([7; 12]), hears_end: true },
            Message::Offer { writer, reader, number: 3 },
            Message::Reading { writer, reader, from: 0x0102_0304_0506_0708 },
            Message::Refuse { writer, reader, reason: 5 },
            Message::End { writer, reader },
            Message::Ring,
            Message::Accept { writer, reader, number: u64::MAX },
            Message::Begin { writer, reader, number: 0 },
        ]
    }

    #[test]
    fn there_and_back_and_never_shorter_or_longer() {
        for message in all() {
            let encoded = message.encode();
            let bytes = encoded.bytes();
            assert_eq!(Message::parse(bytes), Ok(message));
            for len in 0..bytes.len() {
                assert_eq!(Message::parse(&bytes[..len]), Err(Malformed::Length(len)), "{message:?}");
            }
            let longer = [bytes, &[0]].concat();
            assert_eq!(Message::parse(&longer), Err(Malformed::Length(longer.len())));
        }
        assert_eq!(all()[2].encode().bytes().len(), MAX_LEN);
        assert_eq!(all()[2].encode().bytes()[34..], [8, 7, 6, 5, 4, 3, 2, 1], "little-endian");
    }

    #[test]
    fn whatever_parses_is_what_it_says() {
        let seed = 0x5eed;
        let mut rng = Rng::new(seed);
        let mut parsed = 0;
        for round in 0..200_000 {
            let mut bytes = all()[(rng.next_u64() % 8) as usize].encode().bytes().to_vec();
            for _ in 0..rng.next_u64() % 3 {
                let at = (rng.next_u64() % bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            bytes.truncate((rng.next_u64() % 64) as usize);
            if let Ok(message) = Message::parse(&bytes) {
                parsed += 1;
                assert_eq!(message.encode().bytes(), bytes, "seed {seed} round {round}");
            }
        }
        assert!(parsed > 1_000, "the noise leaves some whole: {parsed}");
    }
}
