//! A seeded network with virtual time around Taut's core.
