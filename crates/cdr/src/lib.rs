//! XCDR1 and XCDR2: the serialized form of DDS samples and keys.
