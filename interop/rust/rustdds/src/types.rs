//! The types of `interop/types.idl`, as serde's. Sequences of octets go by `serde_bytes`: without it RustDDS
//! encodes them octet by octet.

use rustdds::{Key, Keyed as HasKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use taut_interop_kit::{Sample, number_in};

/// `interop::Plain`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Plain {
    seq: u32,
    #[serde(with = "serde_bytes")]
    payload: Vec<u8>,
}

/// `interop::Keyed`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Keyed {
    id: u32,
    seq: u32,
    #[serde(with = "serde_bytes")]
    payload: Vec<u8>,
}

/// `ShapeType`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Shape {
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

/// `telemetry::Metric`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Metric {
    name: String,
    seq: u64,
    sent_unix_ns: i64,
    value: f64,
    unit: String,
}

/// A type of the matrix that has a key.
pub trait Data:
    HasKey<K: Key + Serialize + DeserializeOwned>
    + Serialize
    + DeserializeOwned
    + Send
    + Into<Sample>
    + TryFrom<Sample, Error = &'static str>
    + 'static
{
    /// The name of the type.
    const NAME: &str;

    /// The instance of a key; `None` if it is none of the matrix.
    fn id(key: &Self::K) -> Option<u32>;
}

impl HasKey for Keyed {
    type K = u32;

    fn key(&self) -> u32 {
        self.id
    }
}

impl Data for Keyed {
    const NAME: &str = "interop::Keyed";

    fn id(key: &u32) -> Option<u32> {
        Some(*key)
    }
}

impl HasKey for Shape {
    type K = String;

    fn key(&self) -> String {
        self.color.clone()
    }
}

impl Data for Shape {
    const NAME: &str = "ShapeType";

    fn id(key: &String) -> Option<u32> {
        number_in(key)
    }
}

impl HasKey for Metric {
    type K = String;

    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Data for Metric {
    const NAME: &str = "telemetry::Metric";

    fn id(key: &String) -> Option<u32> {
        number_in(key)
    }
}

taut_interop_kit::convert_samples! {
    Plain { seq, payload }
    Keyed { id, seq, payload }
    Shape { color, x, y, shapesize }
    Metric { name, seq, sent_unix_ns, value, unit }
}
