//! Alone in a process: the limit of open files is one of all of it.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use taut_ethernet::Reached;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, with_pair};

/// Has the process open files with numbers below this only. Returns what the limit was.
fn limit_files(below: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes the structure.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, below);
    // SAFETY: the call reads the structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    before
}

#[test]
fn whatever_the_limit_meets_it_is_told() {
    with_pair("whatever_the_limit_meets_it_is_told", ["", ""], |pair| {
        pair.enter(End::A);
        let end: SocketAddr = (End::A.ipv4(), 7_411).into();
        let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
        let free = File::open("/dev/null").unwrap().as_raw_fd() as libc::rlim_t;
        let refused: Vec<String> = (0..)
            .map_while(|more| {
                let before = limit_files(free + more);
                let opened = XdpPort::open(&config, Reached::Ip(vec![end]), &[]);
                limit_files(before);
                opened.err().map(|error| error.to_string())
            })
            .collect();
        assert!(refused.len() > 4, "there is one for each descriptor: {refused:?}");
        for told in refused {
            assert!(told.ends_with("raise the limit of open files (`ulimit -n`)"), "{told}");
        }
    });
}
