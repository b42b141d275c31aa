//! The types of `interop/types.idl`, as those of Dust DDS.

use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use taut_interop_kit::Sample;

/// `interop::Plain`.
#[derive(Clone, DdsType)]
#[dust_dds(name = "interop::Plain")]
pub struct Plain {
    seq: u32,
    payload: Vec<u8>,
}

/// `interop::Keyed`.
#[derive(Clone, DdsType)]
#[dust_dds(name = "interop::Keyed")]
pub struct Keyed {
    #[dust_dds(key)]
    id: u32,
    seq: u32,
    payload: Vec<u8>,
}

/// `ShapeType`.
#[derive(Clone, DdsType)]
#[dust_dds(name = "ShapeType")]
pub struct Shape {
    #[dust_dds(key)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

/// `telemetry::Metric`.
#[derive(Clone, DdsType)]
#[dust_dds(name = "telemetry::Metric")]
pub struct Metric {
    #[dust_dds(key)]
    name: String,
    seq: u64,
    sent_unix_ns: i64,
    value: f64,
    unit: String,
}

/// A type of the matrix.
pub trait Data:
    TypeSupport + Clone + Send + Into<Sample> + TryFrom<Sample, Error = &'static str> + 'static
{
}

impl<T: TypeSupport + Clone + Send + Into<Sample> + TryFrom<Sample, Error = &'static str> + 'static> Data
    for T
{
}

taut_interop_kit::convert_samples! {
    Plain { seq, payload }
    Keyed { id, seq, payload }
    Shape { color, x, y, shapesize }
    Metric { name, seq, sent_unix_ns, value, unit }
}
