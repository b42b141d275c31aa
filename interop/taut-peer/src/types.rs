//! The types of `../types.idl`, and what a sample of each looks like.

use std::time::{SystemTime, UNIX_EPOCH};

use taut::DdsType;

use crate::options::Options;

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

/// What a sample says of itself.
pub struct Content {
    /// Its number; `None` if it is none.
    pub seq: Option<u32>,
    /// Bytes of its payload, 0 if it has none.
    pub size: usize,
    /// Is the rest as it should be?
    pub right: bool,
}

/// A type of the matrix.
pub trait Sample: DdsType {
    /// Sample `seq`.
    fn make(options: &Options, seq: u32) -> Self;
    /// Its instance; `None` if its key is none of ours.
    fn id(&self) -> Option<u32>;
    /// What is in it.
    fn content(&self, options: &Options) -> Content;
}

/// Byte i of sample `seq` is the low byte of `seq + i`.
fn octets(size: u32, seq: u32) -> impl Iterator<Item = u8> {
    (0..size).map(move |i| seq.wrapping_add(i).to_le_bytes()[0])
}

fn octets_content(options: &Options, seq: u32, payload: &[u8]) -> Content {
    let right =
        payload.len() == options.size as usize && payload.iter().copied().eq(octets(options.size, seq));
    Content { seq: Some(seq), size: payload.len(), right }
}

/// The number in a key such as `COLOR-3`.
fn number_in(key: &str) -> Option<u32> {
    key.rsplit_once('-')?.1.parse().ok()
}

impl Sample for Plain {
    fn make(options: &Options, seq: u32) -> Plain {
        Plain { seq, payload: octets(options.size, seq).collect() }
    }

    fn id(&self) -> Option<u32> {
        Some(0)
    }

    fn content(&self, options: &Options) -> Content {
        octets_content(options, self.seq, &self.payload)
    }
}

impl Sample for Keyed {
    fn make(options: &Options, seq: u32) -> Keyed {
        Keyed { id: options.id(seq), seq, payload: octets(options.size, seq).collect() }
    }

    fn id(&self) -> Option<u32> {
        Some(self.id)
    }

    fn content(&self, options: &Options) -> Content {
        octets_content(options, self.seq, &self.payload)
    }
}

impl Sample for Shape {
    fn make(options: &Options, seq: u32) -> Shape {
        let id = options.id(seq);
        let [x, y] = [seq, id].map(u32::cast_signed);
        Shape { color: format!("COLOR-{id}"), x, y, shapesize: x.wrapping_add(y) }
    }

    fn id(&self) -> Option<u32> {
        number_in(&self.color)
    }

    fn content(&self, _: &Options) -> Content {
        let right = self.id() == u32::try_from(self.y).ok() && self.shapesize == self.x.wrapping_add(self.y);
        Content { seq: u32::try_from(self.x).ok(), size: 0, right }
    }
}

impl Sample for Metric {
    fn make(options: &Options, seq: u32) -> Metric {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Metric {
            name: format!("metric-{}", options.id(seq)),
            seq: u64::from(seq),
            sent_unix_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            value: f64::from(seq) * 0.5,
            unit: "unit".into(),
        }
    }

    fn id(&self) -> Option<u32> {
        number_in(&self.name)
    }

    fn content(&self, _: &Options) -> Content {
        let seq = u32::try_from(self.seq).ok();
        let value = seq.map_or(f64::NAN, |seq| f64::from(seq) * 0.5);
        Content { seq, size: 0, right: (self.value - value).abs() < 1e-9 && self.unit == "unit" }
    }
}
