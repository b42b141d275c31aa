//! When a change was written, queued and sent: a parameter of Taut's own in the inline QoS.
//!
//! Owns the layout of [`pid::vendor::TAUT_ANATOMY`]. Whether the sender is one who means it so is for the caller to
//! know. `rtps` calls it for changes of participants that announce it.

use taut_base::Time;

use crate::{Endian, ParameterList, ParameterListWriter, WireError, pid};

/// Three points on the monotonic clock of the writer's host.
///
/// *Shape*: three signed 64-bit numbers in the byte order of the submessage, 24 bytes. *Units*: ns.
/// *Range*: above 0, none before the one in front of it.
///
/// ```
/// use taut_base::Time;
/// use taut_wire::{Endian, ParameterList, Stamps};
/// let stamps = Stamps { written: Time(1), queued: Time(2), sent: Time(3) };
/// let mut bytes = Vec::new();
/// stamps.append(&mut bytes, Endian::Little);
/// assert_eq!(bytes.len(), Stamps::LEN + 4);
/// assert_eq!(Stamps::find(ParameterList::new(&bytes, Endian::Little)), Ok(Some(stamps)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps {
    /// `write` was called.
    pub written: Time,
    /// The protocol had the change.
    pub queued: Time,
    /// The change was put into the datagram that carries it.
    pub sent: Time,
}

impl Stamps {
    /// Bytes of the parameter with its header.
    pub const LEN: usize = 28;

    /// Those of a change. *Errors*: [`WireError::BadParameter`] if the value is too short, or the points are out of
    /// range or order; what a broken list has.
    pub fn find(list: ParameterList<'_>) -> Result<Option<Stamps>, WireError> {
        let Some(parameter) = list.get(pid::vendor::TAUT_ANATOMY)? else { return Ok(None) };
        let mut value = parameter.cursor();
        let mut time = || value.i64().map(Time).map_err(|_| WireError::BadParameter);
        let stamps = Stamps { written: time()?, queued: time()?, sent: time()? };
        let in_order =
            Time(0) < stamps.written && stamps.written <= stamps.queued && stamps.queued <= stamps.sent;
        if in_order { Ok(Some(stamps)) } else { Err(WireError::BadParameter) }
    }

    /// Appends them to an encoded parameter list, or begins one if `list` is empty.
    pub fn append(&self, list: &mut Vec<u8>, endian: Endian) {
        // The sentinel comes behind them.
        list.truncate(list.len().saturating_sub(4));
        let mut writer = ParameterListWriter::new(list, endian);
        writer.put(pid::vendor::TAUT_ANATOMY, |out| {
            out.put_i64(self.written.0);
            out.put_i64(self.queued.0);
            out.put_i64(self.sent.0);
        });
        writer.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InlineQos, ParameterId, StatusInfo};

    const STAMPS: Stamps = Stamps { written: Time(5), queued: Time(5), sent: Time(1 << 60) };

    fn list(bytes: &[u8]) -> ParameterList<'_> {
        ParameterList::new(bytes, Endian::Big)
    }

    #[test]
    fn they_stand_behind_what_else_there_is() {
        let others = InlineQos { status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
        let mut bytes = Vec::new();
        others.write(&mut bytes, Endian::Big);
        let before = bytes.len();
        STAMPS.append(&mut bytes, Endian::Big);
        assert_eq!(bytes.len(), before + Stamps::LEN);
        assert_eq!(Stamps::find(list(&bytes)), Ok(Some(STAMPS)));
        // Who does not know the parameter passes it over.
        assert_eq!(InlineQos::parse(list(&bytes)), Ok(others));
    }

    #[test]
    fn the_bytes_are_those_of_the_manual() {
        let mut bytes = Vec::new();
        Stamps { written: Time(1), queued: Time(2), sent: Time(0x0102_0304_0506_0708) }
            .append(&mut bytes, Endian::Little);
        let parts: [&[u8]; 5] = [
            &[0x01, 0xa7, 24, 0],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0, 0, 0, 0, 0],
            &[8, 7, 6, 5, 4, 3, 2, 1],
            &[1, 0, 0, 0],
        ];
        assert_eq!(bytes, parts.concat());
    }

    #[test]
    fn what_is_short_or_out_of_order_is_refused() {
        let bad = Err(WireError::BadParameter);
        for length in 0..6 {
            let mut bytes = Vec::new();
            let mut writer = ParameterListWriter::new(&mut bytes, Endian::Big);
            writer.put_bytes(pid::vendor::TAUT_ANATOMY, &[1; 24][..length * 4]);
            writer.finish();
            assert_eq!(Stamps::find(list(&bytes)), bad, "{length} words");
        }
        for (written, queued, sent) in [(0, 1, 2), (-1, 1, 2), (2, 1, 3), (1, 3, 2), (i64::MAX, i64::MIN, 0)]
        {
            let mut bytes = Vec::new();
            let stamps = Stamps { written: Time(written), queued: Time(queued), sent: Time(sent) };
            stamps.append(&mut bytes, Endian::Big);
            assert_eq!(Stamps::find(list(&bytes)), bad, "{stamps:?}");
        }
        assert_eq!(Stamps::find(list(&[0, 1, 0, 0])), Ok(None));
    }

    #[test]
    fn nobody_has_to_understand_it() {
        let ParameterId(number) = pid::vendor::TAUT_ANATOMY;
        assert_eq!(number & 0xc000, 0x8000, "a vendor's, and may be passed over");
    }
}
