//! From a user's type to what the floors below know of it, and back from their bytes.

use taut_base::{Error, InstanceHandle, Result};
use taut_cdr::{CdrError, DdsType, Representation};
use taut_dcps::{TypeSupport, instance_handle};
use taut_qos::{DataRepresentationId, offered_representation};

/// The version in which the hash of an instance's key is its handle: the one that writers use unless told otherwise, so
/// that writers of both have one instance. In their changes its name is the hash in their own.
pub(crate) const HANDLES: Representation = Representation::Xcdr1;

/// A type's table of functions, under the name that it is registered with.
pub(crate) fn type_support<T: DdsType>(type_name: &str) -> TypeSupport {
    let varies = T::HAS_KEY && T::KEY_UNIT == 0;
    TypeSupport {
        type_name: type_name.to_owned(),
        key_hash: if T::HAS_KEY { Some(handle_of::<T>) } else { None },
        other_key_hash: if varies { Some(other_hash_of::<T>) } else { None },
        key_of: if T::HAS_KEY { Some(|payload| key_of::<T>(payload).ok()) } else { None },
        filter: None,
    }
}

/// The handle of the instance of a sample, or of a key.
pub(crate) fn handle_of<T: DdsType>(payload: &[u8], key_only: bool) -> Option<InstanceHandle> {
    taut_cdr::key_hash_of_payload_in::<T>(payload, key_only, HANDLES).ok().map(instance_handle)
}

fn other_hash_of<T: DdsType>(payload: &[u8], key_only: bool) -> Option<InstanceHandle> {
    taut_cdr::key_hash_of_payload_in::<T>(payload, key_only, Representation::Xcdr2).ok().map(instance_handle)
}

/// The serialized key of a serialized sample, whatever else is in that.
pub(crate) fn key_of<T: DdsType>(payload: &[u8]) -> taut_cdr::Result<Vec<u8>> {
    let mut key = Vec::new();
    taut_cdr::key_payload_of::<T>(payload, &mut key)?;
    Ok(key)
}

/// The encoding that a writer uses: the first of its DATA_REPRESENTATION.
pub(crate) fn representation(list: &[DataRepresentationId]) -> Result<Representation> {
    match offered_representation(list) {
        DataRepresentationId::XCDR1 => Ok(Representation::Xcdr1),
        DataRepresentationId::XCDR2 => Ok(Representation::Xcdr2),
        other => Err(Error::Unsupported(format!(
            "data representation {other}: Taut writes XCDR1 and XCDR2; put one of them first"
        ))),
    }
}

/// Is all read that a reader of this DATA_REPRESENTATION asks for?
pub(crate) fn check_readable(list: &[DataRepresentationId]) -> Result<()> {
    let is_read =
        |id: &&DataRepresentationId| [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2].contains(id);
    match list.iter().find(|id| !is_read(id)) {
        None => Ok(()),
        Some(other) => Err(Error::Unsupported(format!(
            "data representation {other}: Taut reads XCDR1 and XCDR2; leave it out"
        ))),
    }
}

/// A value that its type forbids.
pub(crate) fn refused<T: DdsType>(error: CdrError) -> Error {
    Error::BadParameter(format!("a {} cannot be written: {error}", T::TYPE_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_representation_that_is_not_written_is_called_by_its_name() {
        let text = representation(&[DataRepresentationId::XML]).unwrap_err().to_string();
        assert!(text.contains("data representation XML"), "{text}");
        let text = representation(&[DataRepresentationId(7)]).unwrap_err().to_string();
        assert!(text.contains('7'), "{text}");
        let read = [DataRepresentationId::XCDR2, DataRepresentationId::XCDR1];
        assert_eq!((check_readable(&[]), check_readable(&read)), (Ok(()), Ok(())));
        let text = check_readable(&[read[0], DataRepresentationId::XML]).unwrap_err().to_string();
        assert!(text.contains("data representation XML"), "{text}");
    }
}
