//! Messages to the kernel and from it: requests with their answers ([`Socket`]), and what it tells of changes
//! ([`Watch`]). netlink(7).
//!
//! Owns the form of messages and attributes, and the request for an interface, which many ask. What else a message means is
//! the business of who asks.
#![forbid(unsafe_code)]

mod attributes;
mod link;
mod message;
mod request;
mod watch;

pub use attributes::{Attributes, attribute, attributes, half, text, word};
pub use link::{link, link_names};
pub use request::{CREATE, DUMP, EXCLUSIVE, REPLACE, Socket};
pub use watch::{Heard, LINKS, NEIGHBOURS, ROUTES, Watch};

pub use nix::Result;
pub use nix::errno::Errno;

/// The family of addresses of IPv4, as messages have it.
pub const IPV4: u8 = libc::AF_INET as u8;
/// That of IPv6.
pub const IPV6: u8 = libc::AF_INET6 as u8;

/// What to do where a socket is refused, for people.
pub fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::EMFILE | Errno::ENFILE => "raise the limit of open files (`ulimit -n`)",
        _ => "use UDP where that is not allowed",
    }
}
