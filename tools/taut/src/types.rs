//! The types that `pub` and `sub` speak, as every vendor's tools have them.

use serde::Serialize;
use taut::DdsType;

/// The bounds of the texts below, for the command line. *Units*: bytes.
pub const MAX_COLOR: usize = 128;
pub const MAX_NAME: usize = 64;
pub const MAX_UNIT: usize = 16;

/// The type of every vendor's shapes demo.
#[derive(DdsType, Serialize, Clone, PartialEq, Debug)]
#[dds(final, name = "ShapeType")]
pub struct ShapeType {
    /// BLUE, RED, GREEN and so on.
    #[dds(key, bound = 128)]
    pub color: String,
    /// From the left.
    pub x: i32,
    /// From the top.
    pub y: i32,
    /// Width and height.
    pub shapesize: i32,
}

/// One text, in the layout of `std_msgs/String` of ROS 2.
#[derive(DdsType, Serialize, Clone, PartialEq, Debug)]
#[dds(final, name = "std_msgs::msg::dds_::String_")]
pub struct Text {
    /// The text.
    pub data: String,
}

/// One value of the telemetry demo; `interop/types.idl` has it for the other vendors.
#[derive(DdsType, Serialize, Clone, PartialEq, Debug)]
#[dds(final, name = "telemetry::Metric")]
pub struct Metric {
    /// What is measured.
    #[dds(key, bound = 64)]
    pub name: String,
    /// Counts the samples of this name, from 0.
    pub seq: u64,
    /// The sender's wall clock.
    pub sent_unix_ns: i64,
    /// The value.
    pub value: f64,
    /// The unit of the value.
    #[dds(bound = 16)]
    pub unit: String,
}

/// A type that the command line speaks.
pub trait Spoken: DdsType + Serialize + 'static {
    /// One line for people.
    fn line(&self) -> String;
    /// The key for people; empty if there is none.
    fn key(&self) -> &str;
}

impl Spoken for ShapeType {
    fn line(&self) -> String {
        format!("{:<8} x {:>4}  y {:>4}  size {:>3}", self.color, self.x, self.y, self.shapesize)
    }

    fn key(&self) -> &str {
        &self.color
    }
}

impl Spoken for Text {
    fn line(&self) -> String {
        self.data.clone()
    }

    fn key(&self) -> &str {
        ""
    }
}

impl Spoken for Metric {
    fn line(&self) -> String {
        format!("{:<20} {:>14.3} {:<8} #{}", self.name, self.value, self.unit, self.seq)
    }

    fn key(&self) -> &str {
        &self.name
    }
}
