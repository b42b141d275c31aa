//! Repairs that several readers of one multicast group need: one datagram for all of them.
//!
//! The first that asks for a change gets it alone. When another one asks for the same shortly after, the change goes
//! to the group, and who asks for it then has it on its way.

use std::collections::BTreeMap;

use taut_base::{Duration, Guid, Locator, SequenceNumber, Time};

use super::{ReaderProxy, Writer};
use crate::limits;

/// How long a repair is believed to be on its way to a reader that did not ask for it. Below the time after which a
/// reader asks again. Lower repairs each reader alone, higher leaves a lost repair unnoticed.
const ON_ITS_WAY: Duration = Duration(limits::NACK_REPEAT.0 / 2);

/// How many repairs are remembered; beyond, each reader is repaired alone.
const REMEMBERED: usize = 512;

/// Changes that were sent again lately to readers of a group: when, and to whom alone, or to the group.
#[derive(Debug, Default)]
pub(super) struct Recent(BTreeMap<(Locator, SequenceNumber), (Time, Option<Guid>)>);

/// How a reader gets a change that it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Alone.
    Alone,
    /// With the group.
    Shared,
    /// It is on its way to the group.
    Sent,
}

impl Recent {
    /// How a reader of a group gets a change that it asks for now.
    pub fn way(&mut self, now: Time, group: Locator, number: SequenceNumber, reader: Guid) -> Way {
        let is_young = |at: &Time| now.since(*at) < ON_ITS_WAY;
        let way = match self.0.get(&(group, number)).filter(|(at, _)| is_young(at)) {
            Some((_, None)) => return Way::Sent,
            Some((_, Some(first))) if *first != reader => Way::Shared,
            // It knows best whether it has lost what it was sent.
            Some(_) | None => Way::Alone,
        };
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, (at, _)| is_young(at));
        }
        if self.0.len() < REMEMBERED {
            self.0.insert((group, number), (now, (way == Way::Alone).then_some(reader)));
        }
        way
    }
}

impl ReaderProxy {
    /// The group that reaches it, if a route does by one.
    pub(super) fn group_in(&self, route: &[Locator]) -> Option<Locator> {
        let group = self.multicast.first()?;
        [*group, group.by_all()].into_iter().find(|group| route.contains(group))
    }
}

impl Writer {
    /// Where a reader is repaired together with others, if it is, and from which change on all of them may see it:
    /// one that was written before a reader matched is none of its business.
    pub(super) fn repair_group(&self, reader: Guid) -> Option<(Locator, SequenceNumber)> {
        let group = self.proxies.get(&reader)?.group_in(&self.route)?;
        let from = |greeted: bool, first| if greeted { first } else { SequenceNumber(i64::MAX) };
        let from = self.proxies.values().map(|proxy| from(proxy.greeted, proxy.first_relevant)).max()?;
        Some((group, from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterIndex;
    use crate::writer::MulticastChoice;
    use taut_base::{EntityId, GuidPrefix};
    use taut_qos::{EndpointQos, History};

    const GROUP: Locator = Locator::udp_v4(std::net::Ipv4Addr::new(239, 255, 0, 1), 7401);

    #[test]
    fn readers_are_repaired_by_the_group_that_reaches_them() {
        let guid = Guid::new(GuidPrefix([7; 12]), EntityId::user(1, true, false));
        let (qos, auto) = (EndpointQos::default_writer(), MulticastChoice::Auto);
        let mut writer = Writer::new(guid, WriterIndex(0), &qos, History::KeepAll, None, auto);
        let reader = |n| Guid::new(GuidPrefix([n; 12]), EntityId::user(1, false, false));
        let mut join = |n, group| {
            let unicast = vec![Locator::udp_v4([10, 0, 0, n].into(), 7411)];
            writer.match_reader(ReaderProxy::new(reader(n), true, unicast, vec![group]), false);
            [1, 2, 3].map(|n| writer.repair_group(reader(n)).map(|(group, _)| group))
        };
        let by = GROUP.by([10, 0, 0, 9].into());
        assert_eq!(join(1, by), [None; 3]);
        assert_eq!(join(2, by), [Some(by), Some(by), None]);
        assert_eq!(join(3, GROUP), [Some(by), Some(by), None], "one elsewhere gets it alone");
        assert_eq!(join(4, GROUP), [Some(GROUP); 3], "all by all interfaces");
    }

    #[test]
    fn the_second_reader_makes_it_shared_and_time_makes_it_anew() {
        let reader = |n| Guid::new(GuidPrefix([n; 12]), EntityId::UNKNOWN);
        let (mut recent, number) = (Recent::default(), SequenceNumber(5));
        let (group, other) = (GROUP, GROUP.by([10, 0, 0, 9].into()));
        let mut way = |at, who| recent.way(Time(at), group, number, reader(who));
        assert_eq!([way(0, 1), way(1, 1), way(2, 2)], [Way::Alone, Way::Alone, Way::Shared]);
        assert_eq!([way(3, 1), way(4, 3)], [Way::Sent, Way::Sent]);
        assert_eq!(way(2 + ON_ITS_WAY.0, 3), Way::Alone);
        assert_eq!(
            recent.way(Time(2 + ON_ITS_WAY.0), other, number, reader(4)),
            Way::Alone,
            "of another group"
        );
        for number in 0..10 * REMEMBERED as i64 {
            recent.way(Time(0), group, SequenceNumber(number), reader(1));
        }
        assert!(recent.0.len() <= REMEMBERED);
    }
}
