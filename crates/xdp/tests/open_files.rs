//! Alone in a process: the limit is one of all of it.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut_testbed::left_out;
use taut_xdp::{Error, Mode, Program};

#[test]
fn a_limit_of_open_files_is_told() {
    if let Some(error @ Error::NotAllowed { .. }) = Program::load(Mode::L3, 1_500).err() {
        return left_out("a_limit_of_open_files_is_told", error);
    }
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    // There is room for neither map, for one, for both and not the program.
    let refused = [0, 1, 2].map(|more| {
        setrlimit(Resource::RLIMIT_NOFILE, free + more, hard).unwrap();
        Program::load(Mode::L3, 1_500).err().map(|error| error.to_string())
    });
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    for told in refused {
        let told = told.expect("there is no room");
        assert!(told.ends_with("raise the limit of open files (`ulimit -n`)"), "{told}");
    }
}
