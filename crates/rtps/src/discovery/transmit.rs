//! What discovery sends: participant by participant. RTPS 2.5 §8.3.4 (one message, many submessages), §8.5.
//!
//! Three writers and three readers talk to the same of each other participant, and about the same things at the same
//! time. What they owe one participant leaves together with the announcement that it is owed, in one datagram if it
//! fits: found in the order of who was owed something first. Called by `Participant::poll_transmit` only, for the
//! class Discovery; owns nothing.

use taut_base::{Guid, GuidPrefix};

use super::inbox::Inbox;
use super::{Builtin, Database, Peer, Spdp};
use crate::limits;
use crate::message::Tx;
use crate::reader::Reader;
use crate::table::Table;
use crate::timers::{Timer, Timers};
use crate::writer::Writer;

/// What a participant sends for discovery with.
pub(crate) struct Outbound<'a> {
    pub spdp: &'a mut Spdp,
    pub builtin: &'a Builtin,
    pub database: &'a mut Database,
    pub inbox: &'a mut Inbox,
    pub writers: &'a mut Table<Writer>,
    pub readers: &'a mut Table<Reader>,
    pub timers: &'a mut Timers,
}

impl Outbound<'_> {
    /// Sends what is due, at most about a turn of it and no more than the budget. Returns whether all is out.
    #[inline(never)]
    pub fn send(&mut self, tx: &mut Tx<'_>) -> bool {
        if !self.spdp.send_to_stranded(tx, self.database) || !self.spdp.send_to_everybody(tx) {
            return false;
        }
        let mut turn = limits::REPAIR_TURN;
        while let Some(prefix) = self.next_peer() {
            if tx.budget == 0 || turn == 0 {
                return false;
            }
            self.send_to(tx, prefix, &mut turn);
        }
        true
    }

    /// A participant that is owed something.
    fn next_peer(&self) -> Option<GuidPrefix> {
        let newcomer = self.spdp.newcomers.front().copied();
        newcomer.or_else(|| {
            self.builtin.pairs().into_iter().find_map(|pair| {
                let asking = self.readers.get(pair.reader.0).and_then(Reader::next_owed);
                asking.or_else(|| self.writers.get(pair.writer.0)?.next_owed()).map(|guid| guid.prefix)
            })
        })
    }

    /// Sends one participant all that it is owed. What is more than a turn waits behind what others are owed.
    fn send_to(&mut self, tx: &mut Tx<'_>, prefix: GuidPrefix, turn: &mut usize) {
        let mut peer = self.database.peers.get_mut(&prefix);
        let is_newcomer = self.spdp.take_newcomer(prefix, peer.as_deref_mut());
        let to = peer.and_then(|peer| peer.admits().then_some(&peer.metatraffic[..])).unwrap_or_default();
        if let Some(datagram) = to.iter().map(|to| tx.port.path_size(to)).min() {
            tx.message.set_limit(datagram.max(limits::DATAGRAM_MIN));
        }
        // Who does not know this participant yet has to, before it can listen to the rest.
        if is_newcomer && !to.is_empty() {
            self.spdp.write(tx, to);
        }
        let waits = self.inbox.withholds(prefix);
        for pair in self.builtin.pairs() {
            let Some(reader) = self.readers.get_mut(pair.reader.0) else { continue };
            let Some(writer) = self.writers.get_mut(pair.writer.0) else { continue };
            let repeat_at = reader.repeat_at;
            reader.send_acks_to(tx, Guid::new(prefix, pair.remote_writer), (writer.patience(), waits));
            if reader.repeat_at != repeat_at {
                self.timers.set(reader.repeat_at, Timer::Repeat(pair.reader));
            }
            writer.repair_reader(tx, Guid::new(prefix, pair.remote_reader), turn);
        }
        tx.flush(to);
    }
}

impl Peer {
    /// It is about to be sent what it is owed, which counts: may it be? Who has answered nothing may have been made up by
    /// somebody, with the address of another: it is sent so much for each announcement, and asked again when it announces itself.
    fn admits(&mut self) -> bool {
        if self.silent_since.is_some() {
            self.asked = self.asked.saturating_add(1);
        }
        self.silent_since.is_none() || self.asked <= limits::SILENT_ASKED
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use taut_base::{Duration, GuidPrefix, Locator, Time};
    use taut_port::{Frame, Loopback, Traffic};
    use taut_wire::{Header, Submessage, Submessages};

    use crate::participant::{Addresses, Config, Participant, Sink};
    use crate::reader::Offer;
    use crate::writer::MulticastChoice;
    use crate::{ReaderIndex, TxClass};

    const GROUP: Locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);

    struct Nowhere;

    impl Sink for Nowhere {
        fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
    }

    fn participant(number: u8) -> Participant {
        let unicast = vec![Locator::udp_v4(Ipv4Addr::LOCALHOST, 1_000 + u16::from(number))];
        Participant::new(Config {
            guid_prefix: GuidPrefix([number; 12]),
            domain_id: 0,
            entity_name: String::new(),
            user_data: Vec::new(),
            properties: Vec::new(),
            lease_duration: Duration::from_secs(60),
            announcement_period: Duration::from_secs(3),
            addresses: Addresses {
                metatraffic_unicast: unicast.clone(),
                metatraffic_multicast: vec![GROUP],
                default_unicast: unicast,
                ..Addresses::default()
            },
            initial_peers: Vec::new(),
            multicast: MulticastChoice::Auto,
            anatomy: None,
            cuts_discovery: false,
        })
    }

    #[test]
    fn each_newcomer_gets_one_datagram_within_the_budget() {
        const NEWCOMERS: u8 = 100;
        const BUDGET: usize = 8;
        let (now, mut port) = (Time(0), Loopback::new());
        let mut old = participant(200);
        for number in 1..=NEWCOMERS {
            let mut new = participant(number);
            new.on_timeout(now, usize::MAX);
            new.poll_transmit(now, &mut port, TxClass::Discovery, BUDGET);
            let (_, bytes) = port.take().expect("an announcement");
            let source = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1_000 + u16::from(number));
            old.on_frame(now, &Frame { source, traffic: Traffic::Meta, bytes }, &mut Nowhere);
        }
        let mut told = 0;
        loop {
            let progress = old.poll_transmit(now, &mut port, TxClass::Discovery, BUDGET);
            assert!(progress.calls <= BUDGET, "{progress:?}");
            while let Some((_, datagram)) = port.take() {
                told += 1;
                let (_, rest) = Header::parse(&datagram).unwrap();
                let kinds: Vec<char> = Submessages::new(rest)
                    .filter_map(|submessage| match submessage.unwrap() {
                        Submessage::Data(_) => Some('d'),
                        Submessage::AckNack(_) => Some('a'),
                        Submessage::Heartbeat(_) => Some('h'),
                        _ => None,
                    })
                    .collect();
                assert_eq!(kinds, ['d', 'a', 'h', 'a', 'h', 'a', 'h']);
            }
            if !progress.more {
                break;
            }
        }
        assert_eq!(told, NEWCOMERS);
    }
}
