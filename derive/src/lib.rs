//! derive(DdsType) for Taut.
