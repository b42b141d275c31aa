//! The types of `interop/types.idl`, as serde's. Sequences of octets go by `serde_bytes`: without it RustDDS
//! encodes them octet by octet.

use rustdds::{Key, Keyed as HasKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use taut_interop_common::{NOT_OF_THIS_TYPE, Sample, number_in};

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
    + Into<Sample>
    + TryFrom<Sample, Error = String>
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

impl From<Plain> for Sample {
    fn from(Plain { seq, payload }: Plain) -> Sample {
        Sample::Plain { seq, payload }
    }
}

impl TryFrom<Sample> for Plain {
    type Error = String;

    fn try_from(sample: Sample) -> Result<Plain, String> {
        let Sample::Plain { seq, payload } = sample else { return Err(NOT_OF_THIS_TYPE.into()) };
        Ok(Plain { seq, payload })
    }
}

impl From<Keyed> for Sample {
    fn from(Keyed { id, seq, payload }: Keyed) -> Sample {
        Sample::Keyed { id, seq, payload }
    }
}

impl TryFrom<Sample> for Keyed {
    type Error = String;

    fn try_from(sample: Sample) -> Result<Keyed, String> {
        let Sample::Keyed { id, seq, payload } = sample else { return Err(NOT_OF_THIS_TYPE.into()) };
        Ok(Keyed { id, seq, payload })
    }
}

impl From<Shape> for Sample {
    fn from(Shape { color, x, y, shapesize }: Shape) -> Sample {
        Sample::Shape { color, x, y, shapesize }
    }
}

impl TryFrom<Sample> for Shape {
    type Error = String;

    fn try_from(sample: Sample) -> Result<Shape, String> {
        let Sample::Shape { color, x, y, shapesize } = sample else { return Err(NOT_OF_THIS_TYPE.into()) };
        Ok(Shape { color, x, y, shapesize })
    }
}

impl From<Metric> for Sample {
    fn from(Metric { name, seq, sent_unix_ns, value, unit }: Metric) -> Sample {
        Sample::Metric { name, seq, sent_unix_ns, value, unit }
    }
}

impl TryFrom<Sample> for Metric {
    type Error = String;

    fn try_from(sample: Sample) -> Result<Metric, String> {
        let Sample::Metric { name, seq, sent_unix_ns, value, unit } = sample else {
            return Err(NOT_OF_THIS_TYPE.into());
        };
        Ok(Metric { name, seq, sent_unix_ns, value, unit })
    }
}
