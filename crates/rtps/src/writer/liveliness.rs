//! How a writer tells its readers that it is alive. RTPS 2.5 §8.3.8.6, DCPS 1.4 §2.2.3.11 (MANUAL_BY_TOPIC).
//!
//! When it does is decided in the participant's `liveliness`, which calls it. It brings no change, and is none of what single
//! readers are owed.

use taut_base::{EntityId, Guid, Locator, SequenceNumber, Time};
use taut_wire::Heartbeat;

use super::repair::Contents;
use super::route::cover;
use super::{ReaderProxy, Writer};
use crate::message::{DIRECTED, HEARTBEAT, Tx};

/// A writer's promise to say that it is alive: DCPS 1.4 §2.2.3.11, the manual kinds.
#[derive(Default)]
pub struct Manual {
    /// It is broken, and that is known.
    pub is_lost: bool,
    /// When the readers were told last that it is kept, if they were.
    pub told_at: Option<Time>,
    /// That is in the schedule.
    pub is_queued: bool,
    /// Where they are told one by one, how many are yet to be; all if `None`.
    pub left: Option<usize>,
    /// Who was told so last. The others come first.
    told: Guid,
}

impl Writer {
    /// Tells all readers that the writer is alive. Returns whether all are told; `false` when the budget is used up.
    /// *Source*: RTPS 2.5 §8.3.8.6, MANUAL_BY_TOPIC.
    pub fn send_liveliness(&mut self, tx: &mut Tx<'_>) -> bool {
        if self.proxies.values().any(|proxy| !proxy.greeted) {
            return self.send_liveliness_to_each(tx);
        }
        let mut heartbeat = self.contents().heartbeat(EntityId::UNKNOWN, true, SequenceNumber::FIRST);
        heartbeat.liveliness_flag = true;
        if !self.is_unheard() {
            tx.message.heartbeat(&heartbeat);
            tx.flush(&self.route);
            return true;
        }
        // The route leaves out who reads the lane.
        let Writer { routes_to_all, proxies, multicast, .. } = self;
        let [by_lane, others] = &**routes_to_all.get_or_insert_with(|| {
            let cover = |by_lane| {
                cover(proxies.values().filter(|proxy| proxy.lane_from.is_some() == by_lane), *multicast)
            };
            Box::new([cover(true), cover(false)])
        });
        if !others.is_empty() {
            tx.message.heartbeat(&heartbeat);
            tx.flush(others);
        }
        // The protocol is given a change before the lane is. To say now that the last one can no longer be had would lose it
        // to who does not find it in the lane yet.
        if heartbeat.first_sn > heartbeat.last_sn && heartbeat.last_sn > SequenceNumber::ZERO {
            (heartbeat.first_sn, heartbeat.last_sn) = (heartbeat.last_sn, heartbeat.last_sn.prev());
        }
        tx.message.heartbeat(&heartbeat);
        tx.flush(by_lane);
        true
    }

    /// The same one by one, as who has not been greeted is not to hear what there is. What goes to one address, or to a
    /// group, shares datagrams. It goes on behind the one that was told last.
    #[cold]
    fn send_liveliness_to_each(&mut self, tx: &mut Tx<'_>) -> bool {
        self.learn_paths(tx);
        let from = self.manual.told;
        let all = self.proxies.values().count();
        let mut left = self.manual.left.take().unwrap_or(all).min(all);
        let route = std::mem::take(&mut self.route);
        let (mut contents, proxies, _) = self.parts();
        let others = proxies.values().filter(|proxy| proxy.guid > from);
        let in_turn = others.chain(proxies.values().filter(|proxy| proxy.guid <= from));
        let (mut to, mut told) = (None, from);
        for proxy in in_turn.take(left) {
            let next = proxy.group_in(&route).or(proxy.unicast.first().copied());
            if next != to {
                tx.flush(to.as_slice());
                to = next;
            }
            if tx.budget == 0 {
                break;
            }
            (told, left) = (proxy.guid, left.saturating_sub(1));
            // History says so, too, and is not to be overtaken.
            if !proxy.catches_up {
                contents.put_liveliness(tx, proxy, to.as_slice());
            }
        }
        tx.flush(to.as_slice());
        self.route = route;
        (self.manual.told, self.manual.left) = (told, Some(left).filter(|left| *left > 0));
        left == 0
    }
}

impl Contents<'_> {
    fn put_liveliness(&mut self, tx: &mut Tx<'_>, proxy: &ReaderProxy, to: &[Locator]) {
        let heartbeat = Heartbeat { liveliness_flag: true, ..self.heartbeat_for(proxy, true) };
        tx.make_room(DIRECTED.saturating_add(HEARTBEAT), to);
        tx.message.directed(proxy.guid.prefix);
        tx.message.heartbeat(&heartbeat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::message::Message;
    use crate::writer::{MulticastChoice, change};
    use taut_base::{GuidPrefix, ProtocolVersion, SequenceNumberSet, VendorId};
    use taut_port::Loopback;
    use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};
    use taut_wire::{Header, Submessage, Submessages};

    const READERS: u8 = 200;
    const GROUP: Locator = Locator::udp_v4(std::net::Ipv4Addr::new(239, 255, 0, 1), 7401);

    fn writer() -> Writer {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, false));
        let mut qos = EndpointQos::default_writer();
        (qos.reliability.kind, qos.durability) = (ReliabilityKind::Reliable, DurabilityKind::TransientLocal);
        let history = History::KeepLast(1);
        let mut writer = Writer::new(guid, WriterIndex(0), &qos, history, None, MulticastChoice::Auto);
        writer.write(Time(0), &mut change()).unwrap();
        writer
    }

    fn reader(n: u8) -> Guid {
        Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, false))
    }

    fn matches(writer: &mut Writer, n: u8, reliable: bool, durable: bool) {
        let unicast = vec![Locator::udp_v4([10, 0, 0, n].into(), 7411)];
        writer.match_reader(ReaderProxy::new(reader(n), reliable, unicast, vec![GROUP]), durable);
    }

    /// Says that the writer is alive with so many datagrams. Returns which participants are told of up to which change, whether
    /// those are all, and how many datagrams that took.
    fn say(writer: &mut Writer, budget: usize) -> (Vec<(u8, i64)>, bool, usize) {
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
        let mut port = Loopback::new();
        let mut tx = Tx::new(Time(0), &mut port, &mut message, budget);
        let done = writer.send_liveliness(&mut tx);
        let (sent, mut to, mut told) = (tx.sent, 0, Vec::new());
        while let Some((_, datagram)) = port.take() {
            assert!(datagram.len() <= writer.paths.datagram());
            let (_, rest) = Header::parse(&datagram).unwrap();
            for submessage in Submessages::new(rest) {
                match submessage.unwrap() {
                    Submessage::InfoDestination(prefix) => to = prefix.0[0],
                    Submessage::Heartbeat(said) => {
                        assert!(said.liveliness_flag && said.reader_id == reader(to).entity);
                        told.push((to, said.last_sn.0));
                    }
                    _ => {}
                }
            }
        }
        (told, done, sent)
    }

    #[test]
    fn one_that_is_not_greeted_costs_a_group_few_datagrams() {
        let mut writer = writer();
        (1..=READERS).for_each(|n| matches(&mut writer, n, true, false));
        let has_all = SequenceNumberSet::new(SequenceNumber(2));
        writer.sent = writer.last;
        for n in 2..=READERS {
            writer.on_acknack(Time(0), reader(n), &has_all, 1, true);
        }
        // What is written now those that are greeted are told of.
        writer.write(Time(0), &mut change()).unwrap();
        writer.sent = writer.last;
        let (mut told, done, datagrams) = say(&mut writer, usize::MAX);
        assert!(done && datagrams <= 10, "{datagrams} datagrams");
        told.sort_unstable();
        assert_eq!(told, Vec::from_iter((1..=READERS).map(|n| (n, if n == 1 { 1 } else { 2 }))));
    }

    #[test]
    fn who_takes_history_is_told_by_that() {
        let mut writer = writer();
        writer.sent = writer.last;
        matches(&mut writer, 2, false, true);
        matches(&mut writer, 3, true, false);
        assert_eq!(say(&mut writer, usize::MAX), (vec![(3, 1)], true, 1));
    }
}
