//! The role `cdr`: what encoding and decoding cost, XCDR1 as on the wire.

use serde_json::Value;
use taut::Representation;
use taut::cdr::{CdrError, fill_payload, from_payload_into};
use taut_perf_kit::{Control, Options, Stop, coding};

use crate::types::Type;

/// Encodes into a buffer that is kept; decodes into a value that is kept, as `DataReader::take_into` does.
pub fn cdr<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let encode = |value: &T, payload: &mut Vec<u8>| {
        let fill = |payload: &mut Vec<u8>| fill_payload(value, Representation::Xcdr1, payload);
        let mut len = fill(payload).map_err(failed)?;
        if len > payload.len() {
            payload.resize(len, 0);
            len = fill(payload).map_err(failed)?;
        }
        payload.truncate(len);
        Ok(())
    };
    coding::cdr_into(options, control, encode, |payload, into| {
        from_payload_into(payload, into).map_err(failed)
    })
}

fn failed(error: CdrError) -> Stop {
    Stop::Failed(format!("{error:?}"))
}
