//! The types of `peers/types.idl`, as Dust DDS's.

use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use taut_perf_kit::fields::Exchange;
use taut_perf_kit::payload;

/// What Dust DDS can send. Its `write` takes the sample, so each is a copy of the one that is sent again.
pub trait Data: TypeSupport + Clone + Send + 'static {}

impl<T: TypeSupport + Clone + Send + 'static> Data for T {}

/// What can be sent by ping.
pub trait Type: Data + Exchange<Answer: Data> {}

impl<T: Data + Exchange<Answer: Data>> Type for T {}

/// A sample with a sequence of bytes.
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Sample")]
pub struct Sample {
    seq: u64,
    sent_ns: i64,
    seen_ns: i64,
    data: Vec<u8>,
}

payload!(bytes Sample);

/// D's simple type.
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Simple")]
pub struct Simple {
    index: i32,
    data: Vec<u8>,
}

payload!(simple Simple, Ack);

/// An item of [`Complex`].
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Item", nested)]
pub struct Item {
    info: String,
    index: i32,
}

/// D's complex type.
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Complex")]
pub struct Complex {
    length: i32,
    items: Vec<Item>,
}

payload!(complex Complex of Item, Ack);

/// What answers [`Simple`] and [`Complex`].
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Ack")]
pub struct Ack {
    index: i32,
}

payload!(ack Ack);

/// The smallest: 16 bytes.
#[derive(Clone, DdsType)]
#[dust_dds(name = "perf::Plain16")]
pub struct Plain16 {
    seq: u64,
    sent_ns: i64,
}

payload!(plain16 Plain16);

macro_rules! plain {
    ($($name:ident: $wire_name:literal, $data:literal;)*) => {
        $(
            /// A sample whose size is in its name.
            #[derive(Clone, DdsType)]
            #[dust_dds(name = $wire_name)]
            pub struct $name {
                seq: u64,
                sent_ns: i64,
                seen_ns: i64,
                data: [u8; $data],
            }

            payload!(plain $name: $data);
        )*
    };
}

plain! {
    Plain64: "perf::Plain64", 40;
    Plain256: "perf::Plain256", 232;
    Plain512: "perf::Plain512", 488;
    Plain1024: "perf::Plain1024", 1_000;
    Plain4096: "perf::Plain4096", 4_072;
    Plain8192: "perf::Plain8192", 8_168;
    Plain16384: "perf::Plain16384", 16_360;
}
