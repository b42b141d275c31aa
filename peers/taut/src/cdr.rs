//! The role `cdr`: what encoding and decoding cost, XCDR1 as on the wire.

use serde_json::Value;
use taut::Representation;
use taut::cdr::{CdrError, from_payload_into, to_payload};
use taut_perf_kit::{Control, Options, Stop, coding};

use crate::types::Type;

/// Encodes into a buffer that is kept; decodes into a value that is kept, as `DataReader::take_into` does.
pub fn cdr<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let encode = |value: &T, payload: &mut Vec<u8>| {
        payload.clear();
        to_payload(value, Representation::Xcdr1, payload).map_err(failed)
    };
    coding::cdr_into(options, control, encode, |payload, into| {
        from_payload_into(payload, into).map_err(failed)
    })
}

fn failed(error: CdrError) -> Stop {
    Stop::Failed(format!("{error:?}"))
}
