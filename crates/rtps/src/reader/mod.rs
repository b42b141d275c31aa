//! The receiving side. RTPS 2.5 §8.4.10 (reader entities), §8.4.12 (their behaviour).
//!
//! A [`Reader`] owns what it knows of each matched writer. It orders, completes and acknowledges;
//! what is ready goes to whoever delivers. It sends only when [`Reader::send_acks`] is called.

mod reassembly;
mod writer_proxy;

use std::collections::{BTreeMap, VecDeque};

use taut_base::{EntityId, Guid, GuidPrefix};
use taut_qos::{EndpointQos, ReliabilityKind};
use taut_wire::{AckNack, NackFrag};

use crate::message::Tx;
use crate::{ReaderIndex, WriterIndex};

pub use reassembly::{Assembly, FragmentInfo};
pub(crate) use writer_proxy::is_newer;
pub use writer_proxy::{Deliver, WriterProxy};

/// One reader.
pub struct Reader {
    /// Its name.
    pub guid: Guid,
    /// Its place in the participant's table.
    pub index: ReaderIndex,
    /// The matched writers of other participants.
    pub proxies: BTreeMap<Guid, WriterProxy>,
    /// The matched writers of this participant.
    pub local: Vec<WriterIndex>,
    /// Proxies with an ACKNACK or NACK_FRAG due, each at most once.
    acks: VecDeque<Guid>,
    /// It is in the schedule.
    pub acks_queued: bool,
    reliable: bool,
    /// The last value of the count field of ACKNACK and NACK_FRAG. It belongs to the reader and outlives
    /// its proxies: a writer that did not notice that this side had forgotten it would take counts from
    /// 1 on for old messages.
    count: i32,
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, index: ReaderIndex, qos: &EndpointQos) -> Reader {
        Reader {
            guid,
            index,
            proxies: BTreeMap::new(),
            local: Vec::new(),
            acks: VecDeque::new(),
            acks_queued: false,
            reliable: qos.reliability.kind == ReliabilityKind::Reliable,
            count: 0,
        }
    }

    /// A writer of another participant has matched. A reliable reader asks it at once for a
    /// heartbeat: it may have matched first and said all it had to say.
    pub fn match_writer(&mut self, mut proxy: WriterProxy) {
        proxy.reliable &= self.reliable;
        proxy.ack_due = proxy.reliable;
        let guid = proxy.guid;
        self.proxies.insert(guid, proxy);
        self.queue_ack(guid);
    }

    /// A matched writer has gone.
    pub fn unmatch_writer(&mut self, guid: Guid) -> Option<WriterProxy> {
        self.proxies.remove(&guid)
    }

    /// Asks the writers of a participant again that have not answered the question of
    /// [`Reader::match_writer`]: it, or the answer, was lost, and they may believe that all is said.
    pub fn ask_again(&mut self, prefix: GuidPrefix) {
        let (first, last) = (Guid::new(prefix, EntityId::UNKNOWN), Guid::new(prefix, EntityId([u8::MAX; 4])));
        let silent = self.proxies.range_mut(first..=last).map(|(_, proxy)| proxy);
        let silent = silent.filter(|proxy| proxy.reliable && !proxy.has_heard());
        let guids: Vec<Guid> = silent
            .map(|proxy| {
                proxy.ack_due = true;
                proxy.guid
            })
            .collect();
        guids.into_iter().for_each(|guid| self.queue_ack(guid));
    }

    /// Notes that a proxy may have something to send; [`Reader::send_acks`] finds out.
    pub fn queue_ack(&mut self, guid: Guid) {
        if !self.acks.contains(&guid) {
            self.acks.push_back(guid);
        }
    }

    /// Is an acknowledgement to be sent?
    pub fn has_acks(&self) -> bool {
        !self.acks.is_empty()
    }

    /// Sends the ACKNACKs and NACK_FRAGs that are due. Returns whether all are out.
    pub fn send_acks(&mut self, tx: &mut Tx<'_>) -> bool {
        while let Some(guid) = self.acks.front().copied() {
            if tx.budget == 0 {
                return false;
            }
            self.acks.pop_front();
            let Reader { proxies, count, .. } = self;
            let Some(proxy) = proxies.get_mut(&guid).filter(|proxy| proxy.reliable) else { continue };
            let mut next_count = || {
                *count = count.wrapping_add(1);
                *count
            };
            let (reader_id, writer_id) = (self.guid.entity, guid.entity);
            tx.message.directed(guid.prefix);
            for (writer_sn, fragment_number_state) in proxy.ask_fragments(tx.now) {
                let count = next_count();
                tx.make_room(0, &proxy.locators);
                tx.message.nack_frag(&NackFrag {
                    reader_id,
                    writer_id,
                    writer_sn,
                    fragment_number_state,
                    count,
                });
            }
            if proxy.ack_due {
                let reader_sn_state = proxy.acknack(tx.now);
                // Before the first heartbeat it asks for one; later only what is missing wants an answer.
                let final_flag = proxy.has_heard() && reader_sn_state.is_empty();
                let count = next_count();
                tx.make_room(0, &proxy.locators);
                tx.message.acknack(&AckNack { reader_id, writer_id, reader_sn_state, count, final_flag });
            }
            tx.flush(&proxy.locators);
        }
        true
    }
}
