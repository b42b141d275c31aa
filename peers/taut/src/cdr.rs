//! The role `cdr`: what encoding and decoding cost, XCDR1 as on the wire.

use serde_json::Value;
use taut::Representation;
use taut::cdr::{CdrError, from_payload, to_payload};
use taut_perf_kit::{Control, Options, Stop, coding};

use crate::types::Type;

/// Encodes into a buffer that is kept; decodes into a new value.
pub fn cdr<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let encode = |value: &T, payload: &mut Vec<u8>| {
        payload.clear();
        to_payload(value, Representation::Xcdr1, payload).map_err(failed)
    };
    coding::cdr(options, control, encode, |payload| from_payload(payload).map_err(failed))
}

fn failed(error: CdrError) -> Stop {
    Stop::Failed(format!("{error:?}"))
}
