//! A look from elsewhere whether frames have come.

use std::sync::Arc;

use crate::ring::{Descriptor, Window};
use crate::umem::Umem;

/// Tells whether frames have come, without the ring's consumer and while that works. It keeps the memory of both.
#[derive(Clone)]
pub struct Glance {
    ring: Window<Descriptor>,
    umem: Arc<Umem>,
}

impl Glance {
    pub(crate) fn new(ring: Window<Descriptor>, umem: Arc<Umem>) -> Glance {
        Glance { ring, umem }
    }

    /// Are there frames that were not released yet? The first one is fetched then, as it is read soon: another processor
    /// has written it, and the way to who reads it takes longer than that. *Cost*: two loads; some more if there are.
    #[inline]
    pub fn is_any(&self) -> bool {
        let first = self.ring.first();
        first.inspect(|first| self.umem.prefetch(first.address, first.len)).is_some()
    }
}
