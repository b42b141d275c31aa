//! A reader without its type: the same code for all types, once in a program.

use std::sync::Arc;

use taut_base::{Duration, Error, ErrorText, Guid, Result};
use taut_cdr::SerializedPayload;
use taut_dcps::{Endpoint, Entity, PayloadKind, ReaderSide, Sample, SampleInfo, Selection, Taken};
use taut_exec::{Door, Executor, Listener, ends, to_log};
use taut_qos::{DataReaderQos, SubscriberQos};
use taut_rtps::ReaderIndex;

use crate::erase::check_readable;
use crate::participant::{DomainParticipant, check_matched, wait_matched};

/// Samples up to this size are decoded while the reader's lock is held: it takes no longer than to hand
/// them out. A longer one would hold up who delivers to the reader.
const DECODED_AT_ONCE: usize = 1_024;

/// A wait for samples that was in vain for so long says why, if no writer is matched. Lower and a loop that waits in short
/// turns takes the token and makes a text in each, higher and who has waited for long is told no more than [`NOTHING`].
const TOLD: Duration = Duration::from_millis(100);
/// What any other says, at no cost.
const NOTHING: ErrorText = ErrorText::Fixed(
    "no sample has come that was not read or taken; DomainParticipant::matches() tells which writers match and why others do not, as does a wait of \
     100 ms or more if none does",
);

/// Decodes a sample. `false` if the bytes are no sample of the type.
pub(crate) type Decode<'a> = dyn FnMut(SerializedPayload<'_>, PayloadKind, &SampleInfo) -> bool + 'a;

pub(crate) struct UntypedReader {
    pub executor: Arc<Executor>,
    pub index: ReaderIndex,
    pub door: Arc<Door>,
    pub guid: Guid,
    pub qos: DataReaderQos,
}

/// Takes the next sample of a reader, for a caller who watches it `own` times. Samples that are none of the type are passed
/// over. `false` if there is none.
#[inline(never)]
pub(crate) fn take_next(
    executor: &Executor,
    (door, own): (&Door, usize),
    type_name: &str,
    decode: &mut Decode<'_>,
) -> bool {
    loop {
        let (mut decoded, mut large) = (false, None);
        let any = executor.take_next(door, own, &mut |taken: Taken<'_>| {
            let payload: &[u8] = &taken.payload;
            if payload.len() <= DECODED_AT_ONCE {
                decoded = decode(payload.into(), taken.payload_kind, taken.info);
            } else {
                large = Some(taken.keep());
            }
        });
        if let Some(large) = large {
            decoded = decode((&large.payload).into(), large.payload_kind, &large.info);
        }
        if decoded || !any {
            return any;
        }
        executor.note_lost(door, 1);
        warn_of_other_type(type_name);
    }
}

#[cold]
#[inline(never)]
pub(crate) fn warn_of_other_type(type_name: &str) {
    to_log(|| {
        log::warn!(
            "a sample is no {type_name} as its reader has it, and was dropped: have the writer's type the same members in \
             the same order"
        );
    });
}

impl UntypedReader {
    pub fn new(
        participant: &DomainParticipant,
        endpoint: Endpoint<DataReaderQos, SubscriberQos>,
    ) -> Result<UntypedReader> {
        endpoint.qos.check()?;
        check_readable(&endpoint.qos.representation)?;
        endpoint.group.check()?;
        let executor = Arc::clone(&participant.executor);
        let qos = endpoint.qos.clone();
        let (index, guid) = executor.create_reader(endpoint)?;
        let door = executor.door(index).expect("invariant: the reader was just created");
        Ok(UntypedReader { executor, index, door, guid, qos })
    }

    pub fn take(&self, selection: &Selection) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        self.executor.take(&self.door, selection, |sample| samples.push(sample))?;
        Ok(samples)
    }

    pub fn read(&self, selection: &Selection) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        self.executor.read(&self.door, selection, |sample| samples.push(sample))?;
        Ok(samples)
    }

    pub fn wait(&self, timeout: Duration) -> Result<()> {
        self.executor.may_wait()?;
        if self.executor.wait_unread(&self.door, ends(timeout)) {
            return Ok(());
        }
        if timeout >= TOLD {
            check_matched(&self.executor, self.guid, 1, |participant| self.matched(participant))?;
            self.check_filter()?;
        }
        Err(Error::Timeout(NOTHING))
    }

    /// *Errors*: [`Error::Timeout`] if a content filter may be why nothing is there.
    fn check_filter(&self) -> Result<()> {
        let filtered_out = self.side_status(|side| side.filtered_out);
        if filtered_out == 0 {
            return Ok(());
        }
        let text = format!(
            "no sample has come that was not read or taken; the content filter has kept out {filtered_out} that came"
        );
        Err(Error::Timeout(ErrorText::Kept(Arc::new(text))))
    }

    pub fn wait_matched_count(&self, count: usize, timeout: Duration) -> Result<()> {
        wait_matched(&self.executor, self.guid, (count, timeout), |participant| self.matched(participant))
    }

    fn matched(&self, participant: &taut_dcps::DomainParticipant) -> usize {
        participant.reader(self.index).map_or(0, |reader| reader.subscription_matched.current_count as usize)
    }

    pub fn set_listener(&self, listener: Listener) {
        let Ok(had) = self.executor.set_listener(Entity::Reader(self.index), Some(listener)) else { return };
        if !had {
            self.executor.watch(&self.door);
        }
        self.executor.tell_found(&self.door);
    }

    pub fn status<S: Default>(&self, take: impl FnOnce(&mut taut_dcps::DataReader) -> S) -> S {
        let status = self.executor.look(|participant, _| participant.reader_mut(self.index).map(take));
        status.ok().flatten().unwrap_or_default()
    }

    /// What has become of samples in lanes is known when these are emptied, which nobody may have done.
    pub fn side_status<S: Default>(&self, take: impl FnOnce(&mut ReaderSide) -> S) -> S {
        let look = |()| self.executor.look(|participant, _| participant.at_side(self.index, take));
        self.executor.empty_lanes(&self.door).and_then(look).ok().flatten().unwrap_or_default()
    }
}

impl Drop for UntypedReader {
    fn drop(&mut self) {
        if self.executor.ends_elsewhere() {
            return;
        }
        self.executor.remove_hooks(Entity::Reader(self.index));
        self.executor.delete_reader(self.index);
    }
}
