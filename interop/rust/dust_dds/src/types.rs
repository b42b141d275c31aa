//! The types of `interop/types.idl`, as those of Dust DDS.

use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use taut_interop_common::{NOT_OF_THIS_TYPE, Sample};

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
    TypeSupport + Clone + Send + Into<Sample> + TryFrom<Sample, Error = String> + 'static
{
}

impl<T: TypeSupport + Clone + Send + Into<Sample> + TryFrom<Sample, Error = String> + 'static> Data for T {}

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
