//! DDS QoS policies: defaults, consistency, request/offer matching, as pure functions.
