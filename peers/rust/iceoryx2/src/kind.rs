//! How a sample stands in shared memory: as a type of fixed size, or as a slice of bytes.

use std::fmt::Debug;
use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::Service;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use taut_perf_kit::Stop;
use taut_perf_kit::packed::{self, Layout};

use crate::place::wrong;

/// `Plain64` and its like.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plain<const N: usize> {
    seq: u64,
    sent_ns: i64,
    seen_ns: i64,
    data: [u8; N],
}

// SAFETY: all bytes may be zero.
unsafe impl<const N: usize> Zeroable for Plain<N> {}
// SAFETY: any bits are valid in each field, and since N is a multiple of 8 nothing is between or after them.
unsafe impl<const N: usize> Pod for Plain<N> {}
// SAFETY: it has no pointers, and the layout of C.
unsafe impl<const N: usize> ZeroCopySend for Plain<N> {}

/// The type without `seen_ns`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, ZeroCopySend)]
pub struct Plain16 {
    seq: u64,
    sent_ns: i64,
}

/// One of both ways.
pub trait Kind: 'static {
    /// What the service is of.
    type Payload: Debug + IceoryxSend + ?Sized + 'static;
    /// Where the fields are in its bytes.
    type Layout: Layout;

    /// Opens the service, or creates it.
    fn service<S: Service>(node: &Node<S>, name: &ServiceName) -> Result<Factory<S, Self>, Stop>;

    /// A publisher of samples of so many bytes.
    fn publisher<S: Service>(factory: &Factory<S, Self>, size: usize) -> Result<Writer<S, Self>, Stop>;

    /// Borrows a sample of so many bytes, lets it be filled, and sends it.
    fn write<S: Service>(
        writer: &Writer<S, Self>,
        size: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Stop>;

    /// Looks at the next sample, if there is one, and gives it back.
    fn take<S: Service, R>(
        reader: &Reader<S, Self>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Stop>;
}

/// Makes ports of a service.
pub type Factory<S, K> = PortFactory<S, <K as Kind>::Payload, ()>;
/// Writes to a service.
pub type Writer<S, K> = Publisher<S, <K as Kind>::Payload, ()>;
/// Reads from a service.
pub type Reader<S, K> = Subscriber<S, <K as Kind>::Payload, ()>;

/// Samples of a fixed type.
pub struct Typed<T>(PhantomData<T>);

impl<T: Pod + Debug + ZeroCopySend> Kind for Typed<T> {
    type Payload = T;
    type Layout = packed::Plain;

    fn service<S: Service>(node: &Node<S>, name: &ServiceName) -> Result<Factory<S, Self>, Stop> {
        node.service_builder(name).publish_subscribe::<T>().open_or_create().map_err(wrong)
    }

    fn publisher<S: Service>(factory: &Factory<S, Self>, _: usize) -> Result<Writer<S, Self>, Stop> {
        factory.publisher_builder().create().map_err(wrong)
    }

    fn write<S: Service>(
        writer: &Writer<S, Self>,
        _: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Stop> {
        let sample = writer.loan_uninit().map_err(wrong)?;
        // SAFETY: the sample lies in mapped memory, which the system hands out as zeros; any bits are a T.
        let mut sample = unsafe { sample.assume_init() };
        fill(bytemuck::bytes_of_mut(sample.payload_mut()));
        sample.send().map(drop).map_err(wrong)
    }

    fn take<S: Service, R>(
        reader: &Reader<S, Self>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Stop> {
        let sample = reader.receive().map_err(wrong)?;
        Ok(sample.map(|sample| look(bytemuck::bytes_of(sample.payload()))))
    }
}

/// Samples of any length.
pub struct Slices;

impl Kind for Slices {
    type Payload = [u8];
    type Layout = packed::Bytes;

    fn service<S: Service>(node: &Node<S>, name: &ServiceName) -> Result<Factory<S, Self>, Stop> {
        node.service_builder(name).publish_subscribe::<[u8]>().open_or_create().map_err(wrong)
    }

    fn publisher<S: Service>(factory: &Factory<S, Self>, size: usize) -> Result<Writer<S, Self>, Stop> {
        factory.publisher_builder().initial_max_slice_len(size).create().map_err(wrong)
    }

    fn write<S: Service>(
        writer: &Writer<S, Self>,
        size: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Stop> {
        let sample = writer.loan_slice_uninit(size).map_err(wrong)?;
        // SAFETY: the sample lies in mapped memory, which the system hands out as zeros; any bits are bytes.
        let mut sample = unsafe { sample.assume_init() };
        fill(sample.payload_mut());
        sample.send().map(drop).map_err(wrong)
    }

    fn take<S: Service, R>(
        reader: &Reader<S, Self>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Stop> {
        let sample = reader.receive().map_err(wrong)?;
        Ok(sample.map(|sample| look(sample.payload())))
    }
}
