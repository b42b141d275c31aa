//! What comes through the protocol beside a lane of the same writer.

use std::ops::Range;

use taut_base::SequenceNumber;

use crate::ReaderIndex;
use crate::participant::Sink;
use crate::reader::WriterProxy;

/// Brings the protocol and a writer's lane together: each learns how far the other has come.
pub(crate) fn pass_lane(reader: ReaderIndex, proxy: &mut WriterProxy, sink: &mut dyn Sink) {
    if proxy.lane {
        proxy.pass(sink.lane_next(reader, proxy.guid, proxy.next_expected()));
    }
}

/// Of so many of these numbers that a writer no longer has, how many are lost? What a full reader has left in its lane is not.
pub(super) fn lost_beside_lane(
    lost: u64,
    reader: ReaderIndex,
    proxy: &WriterProxy,
    numbers: Range<SequenceNumber>,
    sink: &mut dyn Sink,
) -> u64 {
    if lost == 0 || !proxy.lane {
        return lost;
    }
    lost.saturating_sub(sink.held_by_lane(reader, proxy.guid, numbers))
}
