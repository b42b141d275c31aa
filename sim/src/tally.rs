//! What kinds of submessages a participant has sent. For bounds on traffic and for quiescence.

use taut_base::EntityId;
use taut_wire::{Header, Submessage, Submessages};

/// Counts of what was sent. Built-in traffic is apart: discovery and liveliness are what an idle system
/// may still say.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams; one for each destination.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// SPDP announcements.
    pub spdp: u64,
    /// Anything of the liveliness protocol.
    pub wlp: u64,
    /// Anything of SEDP.
    pub sedp: u64,
    /// DATA of user writers.
    pub data: u64,
    /// DATA_FRAG of user writers.
    pub data_frag: u64,
    /// HEARTBEAT of user writers.
    pub heartbeat: u64,
    /// HEARTBEAT of user writers that says that the writer is alive.
    pub alive: u64,
    /// GAP of user writers.
    pub gap: u64,
    /// ACKNACK of user readers.
    pub acknack: u64,
    /// NACK_FRAG of user readers.
    pub nack_frag: u64,
}

impl Tally {
    /// Counts one datagram of ours.
    pub fn count(&mut self, datagram: &[u8]) {
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
        let Ok((_, rest)) = Header::parse(datagram) else { return };
        for submessage in Submessages::new(rest).flatten() {
            let (writer, slot) = match submessage {
                Submessage::Data(data) => (data.writer_id, &mut self.data),
                Submessage::DataFrag(frag) => (frag.writer_id, &mut self.data_frag),
                Submessage::Heartbeat(beat) if beat.liveliness_flag => (beat.writer_id, &mut self.alive),
                Submessage::Heartbeat(beat) => (beat.writer_id, &mut self.heartbeat),
                Submessage::Gap(gap) => (gap.writer_id, &mut self.gap),
                Submessage::AckNack(acknack) => (acknack.writer_id, &mut self.acknack),
                Submessage::NackFrag(nack) => (nack.writer_id, &mut self.nack_frag),
                _ => continue,
            };
            *match writer {
                EntityId::SPDP_WRITER => &mut self.spdp,
                EntityId::PARTICIPANT_MESSAGE_WRITER => &mut self.wlp,
                writer if writer.is_builtin() => &mut self.sedp,
                _ => slot,
            } += 1;
        }
    }

    /// What was sent since `before`.
    #[must_use]
    pub fn since(&self, before: &Tally) -> Tally {
        Tally {
            datagrams: self.datagrams - before.datagrams,
            bytes: self.bytes - before.bytes,
            spdp: self.spdp - before.spdp,
            wlp: self.wlp - before.wlp,
            sedp: self.sedp - before.sedp,
            data: self.data - before.data,
            data_frag: self.data_frag - before.data_frag,
            heartbeat: self.heartbeat - before.heartbeat,
            alive: self.alive - before.alive,
            gap: self.gap - before.gap,
            acknack: self.acknack - before.acknack,
            nack_frag: self.nack_frag - before.nack_frag,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Tally) -> Tally {
        Tally {
            datagrams: self.datagrams + other.datagrams,
            bytes: self.bytes + other.bytes,
            spdp: self.spdp + other.spdp,
            wlp: self.wlp + other.wlp,
            sedp: self.sedp + other.sedp,
            data: self.data + other.data,
            data_frag: self.data_frag + other.data_frag,
            heartbeat: self.heartbeat + other.heartbeat,
            alive: self.alive + other.alive,
            gap: self.gap + other.gap,
            acknack: self.acknack + other.acknack,
            nack_frag: self.nack_frag + other.nack_frag,
        }
    }

    /// Submessages of user endpoints that are there because something is not settled.
    pub fn user_traffic(&self) -> u64 {
        self.data + self.data_frag + self.heartbeat + self.gap + self.acknack + self.nack_frag
    }
}
