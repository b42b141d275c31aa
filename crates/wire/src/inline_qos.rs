//! What a reader needs of the inline QoS of a change. RTPS 2.5 §8.7, §9.6.4.
//!
//! Must never read a vendor's parameter: those are for who knows the sender. `rtps` calls it for
//! every DATA and DATA_FRAG with inline QoS.

use taut_base::{Guid, InstanceHandle, SequenceNumber};

use crate::{ParameterList, ParameterListWriter, WireError, pid};

/// What happened to the instance. *Source*: RTPS 2.5 §9.6.4.9.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusInfo(pub u32);

impl StatusInfo {
    /// The instance was disposed.
    pub const DISPOSED: StatusInfo = StatusInfo(1);
    /// The writer has unregistered the instance.
    pub const UNREGISTERED: StatusInfo = StatusInfo(2);
    /// The change does not pass the reader's filter; only the key counts.
    pub const FILTERED: StatusInfo = StatusInfo(4);

    /// Are all bits of `other` set?
    pub const fn contains(self, other: StatusInfo) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is that it did not pass all that is said of the change? An end of its instance stands even so.
    pub const fn is_filtered(self) -> bool {
        self.contains(StatusInfo::FILTERED)
            && self.0 & StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED).0 == 0
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: StatusInfo) -> StatusInfo {
        StatusInfo(self.0 | other.0)
    }
}

/// The standard inline parameters, read in one walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InlineQos {
    /// PID_KEY_HASH.
    pub key_hash: Option<InstanceHandle>,
    /// PID_STATUS_INFO; no bits if absent.
    pub status_info: StatusInfo,
    /// PID_COHERENT_SET: the first change of the set, SEQUENCENUMBER_UNKNOWN at its end.
    pub coherent_set: Option<SequenceNumber>,
    /// PID_GROUP_COHERENT_SET.
    pub group_coherent_set: Option<SequenceNumber>,
    /// PID_GROUP_SEQ_NUM.
    pub group_sequence_number: Option<SequenceNumber>,
    /// PID_ORIGINAL_WRITER_INFO: who wrote the change first, and as which number. A claim of the
    /// sender, not proof.
    pub original_writer: Option<(Guid, SequenceNumber)>,
    /// Not every reader gets the change: [`InlineQos::is_for`] tells which do. It is not written.
    pub is_for_some: bool,
}

impl InlineQos {
    /// *Errors*: [`WireError::BadParameter`] for a value that is too short,
    /// [`WireError::NotUnderstood`] for a must-understand parameter that is unknown: the change is
    /// then to be ignored (RTPS 2.5 §9.6.2.2.1).
    pub fn parse(list: ParameterList<'_>) -> Result<InlineQos, WireError> {
        let mut qos = InlineQos::default();
        for parameter in list {
            let parameter = parameter?;
            let mut value = parameter.cursor();
            let bad = |_| WireError::BadParameter;
            match parameter.pid.without_must_understand() {
                pid::KEY_HASH => qos.key_hash = Some(InstanceHandle(value.array().map_err(bad)?)),
                // RTPS 2.5 §9.6.4.9: octets in a fixed order, whatever the E flag says.
                pid::STATUS_INFO => {
                    qos.status_info = StatusInfo(u32::from_be_bytes(value.array().map_err(bad)?));
                }
                pid::COHERENT_SET => qos.coherent_set = Some(value.sequence_number().map_err(bad)?),
                pid::GROUP_COHERENT_SET => {
                    qos.group_coherent_set = Some(value.sequence_number().map_err(bad)?);
                }
                pid::GROUP_SEQ_NUM => {
                    qos.group_sequence_number = Some(value.sequence_number().map_err(bad)?);
                }
                pid::ORIGINAL_WRITER_INFO => {
                    let guid = value.guid().map_err(bad)?;
                    qos.original_writer = Some((guid, value.sequence_number().map_err(bad)?));
                }
                pid::DIRECTED_WRITE => {
                    value.guid().map_err(bad)?;
                    qos.is_for_some = true;
                }
                known if parameter.pid.must_understand() && !pid::is_standard(known) => {
                    return Err(WireError::NotUnderstood);
                }
                _ => {}
            }
        }
        qos.is_for_some |= qos.status_info.is_filtered();
        Ok(qos)
    }

    /// Is a change that is for some readers, as this was read from the list, for this one? Of one that did not pass a filter
    /// nobody gets anything; one that is directed has a PID_DIRECTED_WRITE for each reader that it is for.
    /// *Source*: RTPS 2.5 §8.7.7, §9.6.4.9.
    pub fn is_for(&self, list: ParameterList<'_>, reader: Guid) -> bool {
        if self.status_info.is_filtered() {
            return false;
        }
        let all = list.into_iter().flatten();
        let mut directed = all.filter(|one| one.pid.without_must_understand() == pid::DIRECTED_WRITE);
        directed.any(|one| one.cursor().guid() == Ok(reader))
    }

    /// Appends key hash, status and original writer, those that there are, with the sentinel.
    ///
    /// *Cost*: grows `out` by 4 to 60 bytes; nothing at all if there is nothing to say.
    pub fn write(&self, out: &mut Vec<u8>, endian: crate::Endian) {
        if *self == InlineQos::default() {
            return;
        }
        let mut list = ParameterListWriter::new(out, endian);
        if let Some(InstanceHandle(hash)) = &self.key_hash {
            list.put_bytes(pid::KEY_HASH, hash);
        }
        if self.status_info != StatusInfo::default() {
            list.put_bytes(pid::STATUS_INFO, &self.status_info.0.to_be_bytes());
        }
        for (pid, number) in [
            (pid::COHERENT_SET, self.coherent_set),
            (pid::GROUP_COHERENT_SET, self.group_coherent_set),
            (pid::GROUP_SEQ_NUM, self.group_sequence_number),
        ] {
            if let Some(number) = number {
                list.put(pid, |out| out.put_sequence_number(number));
            }
        }
        if let Some((guid, number)) = self.original_writer {
            list.put(pid::ORIGINAL_WRITER_INFO, |out| {
                out.put_guid(guid);
                out.put_sequence_number(number);
            });
        }
        list.finish();
    }
}
