//! The fixed-priority executor: the only clock and the only threads of Taut.
