//! Alone in a process: the limit of open files is one of all of it.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut_ethernet::Reached;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, with_pair};

#[test]
fn whatever_the_limit_meets_it_is_told() {
    with_pair("whatever_the_limit_meets_it_is_told", ["", ""], |pair| {
        pair.enter(End::A);
        let end: SocketAddr = (End::A.ipv4(), 7_411).into();
        let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
        let free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let refused: Vec<String> = (0..)
            .map_while(|more| {
                setrlimit(Resource::RLIMIT_NOFILE, free + more, hard).unwrap();
                let opened = XdpPort::open(&config, Reached::Ip(vec![end]), &[]);
                setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
                opened.err().map(|error| error.to_string())
            })
            .collect();
        assert!(refused.len() > 4, "there is one for each descriptor: {refused:?}");
        for told in refused {
            assert!(told.ends_with("raise the limit of open files (`ulimit -n`)"), "{told}");
        }
    });
}
