//! The UDP port: sockets, multicast, interfaces.
