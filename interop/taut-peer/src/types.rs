//! The types of `../types.idl`, as those of Taut.

use taut::DdsType;
use taut_interop_kit::Sample;

/// `interop::Plain`.
#[derive(Clone, Debug, DdsType)]
#[dds(final, name = "interop::Plain")]
pub struct Plain {
    pub seq: u32,
    pub payload: Vec<u8>,
}

/// `interop::Keyed`.
#[derive(Clone, Debug, DdsType)]
#[dds(final, name = "interop::Keyed")]
pub struct Keyed {
    #[dds(key)]
    pub id: u32,
    pub seq: u32,
    pub payload: Vec<u8>,
}

/// `telemetry::Metric`.
#[derive(Clone, Debug, DdsType)]
#[dds(final, name = "telemetry::Metric")]
pub struct Metric {
    #[dds(key, bound = 64)]
    pub name: String,
    pub seq: u64,
    pub sent_unix_ns: i64,
    pub value: f64,
    #[dds(bound = 16)]
    pub unit: String,
}

/// `ShapeType`, of every vendor's shapes demo.
#[derive(Clone, Debug, DdsType)]
#[dds(final, name = "ShapeType")]
pub struct Shape {
    #[dds(key, bound = 128)]
    pub color: String,
    pub x: i32,
    pub y: i32,
    pub shapesize: i32,
}

taut_interop_kit::convert_samples! {
    Plain { seq, payload }
    Keyed { id, seq, payload }
    Shape { color, x, y, shapesize }
    Metric { name, seq, sent_unix_ns, value, unit }
}

/// A type of the matrix.
pub trait Data: DdsType + Into<Sample> + TryFrom<Sample, Error = &'static str> {}

impl<T: DdsType + Into<Sample> + TryFrom<Sample, Error = &'static str>> Data for T {}
