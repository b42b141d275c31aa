//! DCPS entities without I/O: reader caches, instances, sample states, statuses.
