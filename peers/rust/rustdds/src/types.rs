//! The types of `peers/types.idl`, as serde's. Sequences of bytes go by `serde_bytes`: without it RustDDS
//! encodes them byte by byte, many times slower.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use taut_perf_kit::fields::Exchange;
use taut_perf_kit::payload;

/// What RustDDS can send. Its `write` takes the sample, so each is a copy of the one that is sent again.
pub trait Data: Serialize + DeserializeOwned + Clone + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + 'static> Data for T {}

/// What can be sent by ping.
pub trait Type: Data + Exchange<Answer: Data> {}

impl<T: Data + Exchange<Answer: Data>> Type for T {}

/// A sample with a sequence of bytes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Sample {
    seq: u64,
    sent_ns: i64,
    seen_ns: i64,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

payload!(bytes Sample);

/// D's simple type.
#[derive(Clone, Serialize, Deserialize)]
pub struct Simple {
    index: i32,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

payload!(simple Simple, Ack);

/// An item of [`Complex`].
#[derive(Clone, Serialize, Deserialize)]
pub struct Item {
    info: String,
    index: i32,
}

/// D's complex type.
#[derive(Clone, Serialize, Deserialize)]
pub struct Complex {
    length: i32,
    items: Vec<Item>,
}

payload!(complex Complex of Item, Ack);

/// What answers [`Simple`] and [`Complex`].
#[derive(Clone, Serialize, Deserialize)]
pub struct Ack {
    index: i32,
}

payload!(ack Ack);
