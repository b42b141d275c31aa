//! What the announcements of participants and endpoints share: the encapsulation, names, locators, keys.
//! RTPS 2.5 §8.5.3-4, §9.6.2-3.
//!
//! Must never take memory for a length that is only claimed, nor believe a locator that can be nobody's.

use taut_base::{Guid, Locator};
use taut_qos::MAX_NAME;
use taut_wire::{Cursor, EncapsulationId, Endian, Parameter, ParameterId, ParameterList};
use taut_wire::{ParameterListWriter, WireError, pid};

use crate::limits::LOCATORS;

/// The parameter list behind an encapsulation header.
///
/// *Errors*: [`WireError::BadEncapsulation`] for anything but PL_CDR_BE and PL_CDR_LE.
pub(super) fn read_list(payload: &[u8]) -> Result<ParameterList<'_>, WireError> {
    let (id, body) = EncapsulationId::parse(payload)?;
    match id {
        EncapsulationId::PL_CDR_BE | EncapsulationId::PL_CDR_LE => Ok(ParameterList::new(body, id.endian())),
        _ => Err(WireError::BadEncapsulation),
    }
}

/// Appends the encapsulation header and starts a list; what Taut sends is little-endian.
pub(super) fn write_list(out: &mut Vec<u8>) -> ParameterListWriter<'_> {
    out.extend_from_slice(&EncapsulationId::PL_CDR_LE.header());
    ParameterListWriter::new(out, Endian::Little)
}

/// RTPS 2.5 §9.6.2.2.1: an unknown parameter is passed over, unless it must be understood.
pub(super) fn check_unknown(parameter: &Parameter<'_>) -> Result<(), WireError> {
    let unknown = !pid::is_standard(parameter.pid);
    if unknown && parameter.pid.must_understand() { Err(WireError::NotUnderstood) } else { Ok(()) }
}

/// A name of at most 256 bytes (DCPS 1.4 §2.3.3 bounds them so).
pub(super) fn read_name(value: &mut Cursor<'_>) -> Result<String, WireError> {
    let text = value.string()?;
    if text.len() > MAX_NAME { Err(WireError::LimitExceeded) } else { Ok(text.to_owned()) }
}

/// The first `most` bytes, without its NUL, of a string that nothing is matched by, and whether that is all of it. What is not
/// UTF-8 in it, as an application may name itself in another character set, is replaced. Neither keeps anybody out.
pub(super) fn read_label(value: &mut Cursor<'_>, most: usize) -> Result<(String, bool), WireError> {
    let text = value.characters()?;
    // Not in the midst of a character.
    let most = (0..=most)
        .rev()
        .take(4)
        .find(|end| std::str::from_utf8(text.get(..*end).unwrap_or(text)).is_ok())
        .unwrap_or(most);
    let kept = text.get(..most).unwrap_or(text);
    Ok((String::from_utf8_lossy(kept).into_owned(), kept.len() == text.len()))
}

/// ENTITY_NAME: what is too long of it is cut off, which counts.
pub(super) fn read_entity_name(value: &mut Cursor<'_>, too_long: &mut u64) -> Result<String, WireError> {
    let (name, is_whole) = read_label(value, MAX_NAME)?;
    *too_long = too_long.saturating_add(u64::from(!is_whole));
    Ok(name)
}

/// Adds a locator if it is [plausible](Locator::is_plausible); more than the cap are not heard.
pub(super) fn read_locator(
    list: &mut Vec<Locator>,
    parameter: &Parameter<'_>,
    multicast: bool,
) -> Result<(), WireError> {
    let locator = parameter.cursor().locator()?;
    if list.len() < LOCATORS && locator.is_plausible(multicast) && !list.contains(&locator) {
        list.push(locator);
    }
    Ok(())
}

/// Appends one parameter for each locator.
pub(super) fn put_locators(list: &mut ParameterListWriter<'_>, pid: ParameterId, locators: &[Locator]) {
    for locator in locators {
        list.put_locator(pid, locator);
    }
}

/// The GUID in a payload that is a key: the parameter `pid`, or a key hash, which is the GUID as well
/// (RTPS 2.5 §9.6.4.8: 16 bytes of key are their own hash).
pub(super) fn read_key(payload: &[u8], pid: ParameterId) -> Result<Guid, WireError> {
    let (id, body) = EncapsulationId::parse(payload)?;
    if matches!(id, EncapsulationId::CDR_BE | EncapsulationId::CDR_LE) {
        return Cursor::new(body, id.endian()).guid();
    }
    let (mut guid, mut hash) = (None, None);
    for parameter in read_list(payload)? {
        let parameter = parameter?;
        match pid::canonical(parameter.pid) {
            found if found == pid => guid = Some(parameter.cursor().guid()?),
            pid::KEY_HASH => hash = Some(parameter.cursor().guid()?),
            _ => check_unknown(&parameter)?,
        }
    }
    guid.or(hash).ok_or(WireError::MissingParameter)
}

/// Appends a payload that is a key.
pub(super) fn write_key(guid: Guid, pid: ParameterId, out: &mut Vec<u8>) {
    let mut list = write_list(out);
    list.put_guid(pid, guid);
    list.finish();
}
