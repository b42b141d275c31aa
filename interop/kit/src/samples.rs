//! Samples of the types of `interop/types.idl`: how the one of a number is made, and whether one that came is
//! right.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::options::{Options, SampleType};

/// A sample of any type of the matrix.
#[derive(Clone, PartialEq, Debug)]
pub enum Sample {
    /// `interop::Plain`.
    Plain {
        /// Its number.
        seq: u32,
        /// Octets that follow from the number.
        payload: Vec<u8>,
    },
    /// `interop::Keyed`.
    Keyed {
        /// The key.
        id: u32,
        /// Its number.
        seq: u32,
        /// Octets that follow from the number.
        payload: Vec<u8>,
    },
    /// `ShapeType`.
    Shape {
        /// The key.
        color: String,
        /// Its number.
        x: i32,
        /// Its instance.
        y: i32,
        /// The sum of both.
        shapesize: i32,
    },
    /// `telemetry::Metric`.
    Metric {
        /// The key.
        name: String,
        /// Its number.
        seq: u64,
        /// When it was made, nanoseconds since 1970.
        sent_unix_ns: i64,
        /// Half of its number.
        value: f64,
        /// Always `unit`.
        unit: String,
    },
}

/// Makes of a structure the [`Sample`] of the same name and members, and the other way around; `TryFrom` refuses a
/// sample of another type, which the loops never hand it.
#[macro_export]
macro_rules! convert_samples {
    ($($name:ident { $($member:ident),* })*) => {$(
        impl From<$name> for $crate::Sample {
            fn from($name { $($member),* }: $name) -> $crate::Sample {
                $crate::Sample::$name { $($member),* }
            }
        }

        impl TryFrom<$crate::Sample> for $name {
            type Error = &'static str;

            fn try_from(sample: $crate::Sample) -> Result<$name, &'static str> {
                match sample {
                    $crate::Sample::$name { $($member),* } => Ok($name { $($member),* }),
                    _ => Err("the sample is of another type than the writer"),
                }
            }
        }
    )*};
}

/// What a sample says of itself.
pub(crate) struct Content {
    /// Its number; `None` if it is none.
    pub seq: Option<u32>,
    /// Bytes of its payload, 0 if it has none.
    pub size: usize,
    /// Is the rest as it should be?
    pub right: bool,
}

/// Byte i of sample `seq` is the low byte of `seq + i`.
fn octets(size: u32, seq: u32) -> impl Iterator<Item = u8> {
    (0..size).map(move |i| seq.wrapping_add(i).to_le_bytes()[0])
}

/// The number in a key such as `COLOR-3`.
pub fn number_in(key: &str) -> Option<u32> {
    key.rsplit_once('-')?.1.parse().ok()
}

impl Sample {
    /// Sample `seq` of the type that the options name.
    pub fn make(options: &Options, seq: u32) -> Sample {
        let id = options.id(seq);
        let payload = || octets(options.size, seq).collect();
        match options.r#type {
            SampleType::Plain => Sample::Plain { seq, payload: payload() },
            SampleType::Keyed => Sample::Keyed { id, seq, payload: payload() },
            SampleType::Shape => {
                let [x, y] = [seq, id].map(u32::cast_signed);
                Sample::Shape { color: format!("COLOR-{id}"), x, y, shapesize: x.wrapping_add(y) }
            }
            SampleType::Metric => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Sample::Metric {
                    name: format!("metric-{id}"),
                    seq: u64::from(seq),
                    sent_unix_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
                    value: f64::from(seq) * 0.5,
                    unit: "unit".into(),
                }
            }
        }
    }

    /// Its instance; `None` if its key is none of the matrix.
    pub fn id(&self) -> Option<u32> {
        match self {
            Sample::Plain { .. } => Some(0),
            Sample::Keyed { id, .. } => Some(*id),
            Sample::Shape { color, .. } => number_in(color),
            Sample::Metric { name, .. } => number_in(name),
        }
    }

    /// What is in it.
    pub(crate) fn content(&self, options: &Options) -> Content {
        match self {
            Sample::Plain { seq, payload } | Sample::Keyed { seq, payload, .. } => {
                let right = payload.len() == options.size as usize
                    && payload.iter().copied().eq(octets(options.size, *seq));
                Content { seq: Some(*seq), size: payload.len(), right }
            }
            Sample::Shape { x, y, shapesize, .. } => {
                let right = self.id() == u32::try_from(*y).ok() && *shapesize == x.wrapping_add(*y);
                Content { seq: u32::try_from(*x).ok(), size: 0, right }
            }
            Sample::Metric { seq, value, unit, .. } => {
                let seq = u32::try_from(*seq).ok();
                let wanted = seq.map_or(f64::NAN, |seq| f64::from(seq) * 0.5);
                Content { seq, size: 0, right: (value - wanted).abs() < 1e-9 && unit == "unit" }
            }
        }
    }
}
