//! The packets.
//!
//! A message is a packet of its own: a byte of version, a byte of kind, then the fields one after another without gaps,
//! numbers little-endian, a text at the end.
//!
//! | kind | message | fields | descriptors |
//! |---|---|---|---|
//! | 1 | Take | layer 1, attach 1, bind 1, count 1, queues 4 each, name of the interface | over IP one to four UDP sockets |
//! | 2 | Receive | count 1, ends 18 each: address 16, port 2 | |
//! | 3 | Taken | index of the interface 4, attached 1, why not native | |
//! | 4 | Queue | number, chunks, bytes of a chunk, chunks of a frame, entries of fill, completion, RX, TX: 4 each | socket, frames |
//! | 5 | Receiving | | |
//! | 6 | Refused | why | |
//! | 7 | Welcome | | |

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use taut_xdp::{AttachMode, BindMode, ChunkSize, MAX_PIECES, Mode, Rings};

use super::{Layout, MAX_PROOFS};

/// Of this layout. Both ends must have the same.
const VERSION: u8 = 4;
/// Queues of one participant. Each costs 28 MiB; more are more than a network card gives to one kind of traffic.
pub const MAX_QUEUES: usize = 16;
/// Addresses and ports of one participant on one interface; what comes for those beyond goes by sockets. Lower and an
/// interface with many addresses of IPv6 meets that, higher and a packet is longer for everybody.
pub const MAX_ENDS: usize = 64;
/// Bytes of a text: a sentence or two. What is longer is cut.
const MAX_TEXT: usize = 600;
/// Bytes of an interface's name, without the zero that ends it: IFNAMSIZ of linux/if.h.
const MAX_NAME: usize = 15;
/// Bytes of an end.
const END: usize = 18;
/// The longest message.
pub(super) const MAX_LEN: usize = 3 + END * MAX_ENDS;

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// To the participant, the first: it may say what it wants.
    Welcome,
    /// From the participant, its first: which queues it wants.
    Take {
        /// The name of the interface.
        interface: String,
        /// Which frames it is to get: messages to ports that it proves, or all of our type, where there is nothing to prove.
        layer: Mode,
        /// The numbers of the queues: one to [`MAX_QUEUES`].
        queues: Vec<u32>,
        /// Where the program is to run; `None`: in the driver if it can.
        attach: Option<AttachMode>,
        /// How frames are to be moved; `None`: without copies if the driver can.
        bind: Option<BindMode>,
    },
    /// From the participant, over IP only: what comes there is to come past the kernel, and nothing else.
    Receive {
        /// Addresses and ports, at most [`MAX_ENDS`].
        ends: Vec<SocketAddr>,
    },
    /// To the participant: it has the queues, which follow.
    Taken {
        /// The index of the interface in the network namespace of netd.
        interface: u32,
        /// Where the program runs.
        attached: AttachMode,
        /// Why it does not run in the driver, if that was tried; empty: it does, or was not to.
        why_not_native: String,
    },
    /// To the participant: a queue.
    Queue(Granted),
    /// To the participant: what it asked for with Receive is done.
    Receiving,
    /// To the participant: what it asked for is not done.
    Refused {
        /// One sentence with the remedy.
        why: String,
    },
}

/// A queue that a participant takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// Its number.
    pub queue: u32,
    /// Its memory.
    pub layout: Layout,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Another version of this layout.
    Version(u8),
    /// A kind that this version does not have.
    Kind(u8),
    /// Its fields are not what its kind has.
    Fields(u8),
}

impl Message {
    /// Goes it with so many descriptors?
    pub fn goes_with(&self, descriptors: usize) -> bool {
        match self {
            Message::Take { layer: Mode::L3, .. } => (1..=MAX_PROOFS).contains(&descriptors),
            Message::Queue(_) => descriptors == 2,
            _ => descriptors == 0,
        }
    }

    /// Its bytes. Texts and lists that are too long are cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Message::Take { interface, layer, queues, attach, bind } => {
                let layer = if *layer == Mode::L2 { 2 } else { 3 };
                let queues = queues.get(..MAX_QUEUES).unwrap_or(queues);
                let attach = attach.map_or(0, |mode| 1 + u8::from(mode == AttachMode::Generic));
                let bind = bind.map_or(0, |mode| 1 + u8::from(mode == BindMode::Copy));
                out.extend([1, layer, attach, bind, queues.len() as u8]);
                queues.iter().for_each(|queue| out.extend(queue.to_le_bytes()));
                out.extend(cut(interface, MAX_NAME).bytes());
            }
            Message::Receive { ends } => {
                let ends = ends.get(..MAX_ENDS).unwrap_or(ends);
                out.extend([2, ends.len() as u8]);
                ends.iter().for_each(|end| put_end(&mut out, end));
            }
            Message::Taken { interface, attached, why_not_native } => {
                out.push(3);
                out.extend(interface.to_le_bytes());
                out.push(u8::from(*attached == AttachMode::Generic));
                out.extend(cut(why_not_native, MAX_TEXT).bytes());
            }
            Message::Queue(Granted { queue, layout: Layout { rings, chunks, chunk_size, pieces } }) => {
                out.push(4);
                let Rings { fill, completion, rx, tx } = *rings;
                let memory = [*queue, *chunks, chunk_size.bytes(), *pieces];
                memory
                    .iter()
                    .chain(&[fill, completion, rx, tx])
                    .for_each(|field| out.extend(field.to_le_bytes()));
            }
            Message::Receiving => out.push(5),
            Message::Refused { why } => {
                out.push(6);
                out.extend(cut(why, MAX_TEXT).bytes());
            }
            Message::Welcome => out.push(7),
        }
        out
    }

    /// Reads a packet.
    pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
        let (version, rest) = bytes.split_first().ok_or(Malformed::Fields(0))?;
        if *version != VERSION {
            return Err(Malformed::Version(*version));
        }
        let (kind, rest) = rest.split_first().ok_or(Malformed::Fields(0))?;
        let mut fields = Fields(rest);
        let message = match kind {
            1 => fields.take_queues(),
            2 => fields.receive(),
            3 => fields.taken(),
            4 => fields.queue(),
            5 => Some(Message::Receiving),
            6 => fields.text(MAX_TEXT).map(|why| Message::Refused { why }),
            7 => Some(Message::Welcome),
            other => return Err(Malformed::Kind(*other)),
        };
        message.filter(|_| fields.0.is_empty()).ok_or(Malformed::Fields(*kind))
    }
}

/// As much of a text as has room.
fn cut(text: &str, most: usize) -> &str {
    let len = (0..=most.min(text.len())).rev().find(|len| text.is_char_boundary(*len));
    text.get(..len.unwrap_or(0)).unwrap_or_default()
}

fn put_end(out: &mut Vec<u8>, end: &SocketAddr) {
    let address = match end.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    out.extend(address.octets());
    out.extend(end.port().to_le_bytes());
}

/// What is left to parse.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// The rest.
    fn text(&mut self, most: usize) -> Option<String> {
        let bytes = std::mem::take(&mut self.0);
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= most)?;
        // It is for people and for the log: nothing that a terminal would act on.
        (!text.contains(char::is_control)).then(|| text.to_owned())
    }

    fn take_queues(&mut self) -> Option<Message> {
        let layer = match self.byte()? {
            2 => Mode::L2,
            3 => Mode::L3,
            _ => return None,
        };
        let attach = match self.byte()? {
            0 => None,
            1 => Some(AttachMode::Native),
            2 => Some(AttachMode::Generic),
            _ => return None,
        };
        let bind = match self.byte()? {
            0 => None,
            1 => Some(BindMode::ZeroCopy),
            2 => Some(BindMode::Copy),
            _ => return None,
        };
        let count = usize::from(self.byte()?);
        if !(1..=MAX_QUEUES).contains(&count) {
            return None;
        }
        let queues = (0..count).map(|_| self.number()).collect::<Option<Vec<_>>>()?;
        // One twice would be refused by the kernel in the end, when its memory is there.
        if queues.iter().collect::<BTreeSet<_>>().len() < count {
            return None;
        }
        let interface = self.text(MAX_NAME)?;
        let is_name = !interface.is_empty() && !interface.contains(['/', ' ']);
        is_name.then_some(Message::Take { interface, layer, queues, attach, bind })
    }

    fn receive(&mut self) -> Option<Message> {
        let count = usize::from(self.byte()?);
        if count > MAX_ENDS {
            return None;
        }
        let end = |_| {
            let address = Ipv6Addr::from(self.bytes::<16>()?).to_canonical();
            Some(SocketAddr::new(address, u16::from_le_bytes(self.bytes()?)))
        };
        let ends = (0..count).map(end).collect::<Option<Vec<_>>>()?;
        Some(Message::Receive { ends })
    }

    fn taken(&mut self) -> Option<Message> {
        let interface = self.number()?;
        let attached = match self.byte()? {
            0 => AttachMode::Native,
            1 => AttachMode::Generic,
            _ => return None,
        };
        Some(Message::Taken { interface, attached, why_not_native: self.text(MAX_TEXT)? })
    }

    fn queue(&mut self) -> Option<Message> {
        let (queue, chunks, chunk_size) = (self.number()?, self.number()?, self.number()?);
        let pieces = self.number().filter(|pieces| (1..=MAX_PIECES).contains(pieces))?;
        let (fill, completion) = (self.number()?, self.number()?);
        let rings = Rings { fill, completion, rx: self.number()?, tx: self.number()? };
        let sizes = [ChunkSize::B2048, ChunkSize::B4096];
        let chunk_size = sizes.into_iter().find(|size| size.bytes() == chunk_size)?;
        Some(Message::Queue(Granted { queue, layout: Layout { rings, chunks, chunk_size, pieces } }))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Version(version) => {
                write!(f, "version {version} of what netd and participants say, this is version {VERSION}")
            }
            Malformed::Kind(kind) => write!(f, "a message of the unknown kind {kind}"),
            Malformed::Fields(kind) => {
                write!(f, "a message of kind {kind} with fields that it does not have")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::Rng;

    fn all() -> Vec<Message> {
        let ends = vec!["10.0.0.1:7411".parse().unwrap(), "[fd00::1]:7661".parse().unwrap()];
        vec![
            Message::Take {
                interface: "enp3s0".into(),
                layer: Mode::L3,
                queues: vec![0, 0x0403_0201],
                attach: Some(AttachMode::Generic),
                bind: None,
            },
            Message::Take {
                interface: "a".into(),
                layer: Mode::L2,
                queues: vec![3],
                attach: None,
                bind: Some(BindMode::Copy),
            },
            Message::Receive { ends },
            Message::Receive { ends: Vec::new() },
            Message::Taken { interface: 7, attached: AttachMode::Native, why_not_native: String::new() },
            Message::Queue(Granted { queue: 3, layout: Layout::of(1_500) }),
            Message::Queue(Granted { queue: 0, layout: Layout::of(3_000) }),
            Message::Queue(Granted { queue: 1, layout: Layout::of(9_000) }),
            Message::Receiving,
            Message::Refused { why: "no: ask somebody – else".into() },
            Message::Welcome,
        ]
    }

    #[test]
    fn there_and_back() {
        for message in all() {
            assert_eq!(Message::parse(&message.encode()), Ok(message));
        }
        assert_eq!(all()[0].encode()[6..14], [0, 0, 0, 0, 1, 2, 3, 4], "little-endian");
        let most = Message::Receive { ends: vec!["10.0.0.1:7411".parse().unwrap(); 200] };
        assert_eq!(most.encode().len(), MAX_LEN);
        let told = Message::Refused { why: "é".repeat(1_000) };
        assert_eq!(Message::parse(&told.encode()), Ok(Message::Refused { why: "é".repeat(300) }));
    }

    #[test]
    fn what_is_no_message() {
        let take = all()[1].encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = take.clone();
            bytes[at] = byte;
            Message::parse(&bytes)
        };
        assert_eq!(Message::parse(&[]), Err(Malformed::Fields(0)));
        assert_eq!(with(0, 1), Err(Malformed::Version(1)));
        // What was said before there was a layer is not read as one.
        assert_eq!(with(0, 3), Err(Malformed::Version(3)));
        let told = Malformed::Version(3).to_string();
        assert_eq!(told, "version 3 of what netd and participants say, this is version 4");
        assert_eq!(with(1, 9), Err(Malformed::Kind(9)));
        let (interface, queues) = ("eth0".into(), vec![3, 1, 3]);
        let twice = Message::Take { interface, layer: Mode::L3, queues, attach: None, bind: None };
        assert_eq!(Message::parse(&twice.encode()), Err(Malformed::Fields(1)));
        let layers = [0, 1, 4, 0xff].map(|layer| (2, layer));
        let others = [(3, 3), (4, 3), (5, 0), (5, 17), (5, 9), (10, b'/'), (10, b'\n'), (10, 0xff)];
        for (at, byte) in layers.into_iter().chain(others) {
            assert_eq!(with(at, byte), Err(Malformed::Fields(1)), "{byte} at {at}");
        }
        for pieces in [0, MAX_PIECES + 1] {
            let layout = Layout { pieces, ..Layout::of(9_000) };
            let queue = Message::Queue(Granted { queue: 0, layout }).encode();
            assert_eq!(Message::parse(&queue), Err(Malformed::Fields(4)), "a frame of {pieces} chunks");
        }
        let longer = [take.clone(), vec![b'b'; 15]].concat();
        assert_eq!(Message::parse(&longer), Err(Malformed::Fields(1)), "no name is so long");
        let ends = all()[2].encode();
        (3..ends.len()).for_each(|len| assert_eq!(Message::parse(&ends[..len]), Err(Malformed::Fields(2))));
        assert_eq!(Message::parse(&[ends, vec![0]].concat()), Err(Malformed::Fields(2)));
    }

    /// Without IP there is nothing that a socket could prove.
    #[test]
    fn what_goes_with_a_request() {
        for (layer, counts) in
            [(Mode::L3, [false, true, true, false]), (Mode::L2, [true, false, false, false])]
        {
            let take =
                Message::Take { interface: "a".into(), layer, queues: vec![0], attach: None, bind: None };
            assert_eq!([0, 1, MAX_PROOFS, MAX_PROOFS + 1].map(|count| take.goes_with(count)), counts);
        }
    }

    #[test]
    fn whatever_parses_is_what_it_says() {
        let (seed, all) = (0x5eed, all());
        let mut rng = Rng::new(seed);
        let mut parsed = 0;
        for round in 0..100_000 {
            let mut bytes = all[(rng.next_u64() % all.len() as u64) as usize].encode();
            for _ in 0..rng.next_u64() % 3 {
                let at = (rng.next_u64() % bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            bytes.truncate((rng.next_u64() % 80) as usize);
            if let Ok(message) = Message::parse(&bytes) {
                parsed += 1;
                assert_eq!(Message::parse(&message.encode()), Ok(message), "seed {seed} round {round}");
            }
        }
        assert!(parsed > 1_000, "the noise leaves some whole: {parsed}");
    }
}
