//! Alone in a process: the limit is one of all of it, and who is beyond it is killed if nobody looks before.

use nix::sys::resource::{Resource, setrlimit};
use taut_xdp::{ChunkSize, Error, Umem};

#[test]
fn a_limit_of_file_sizes_is_told_and_kills_nobody() {
    const LIMIT: u64 = 4 * 4_096;
    setrlimit(Resource::RLIMIT_FSIZE, LIMIT, LIMIT).unwrap();
    assert!(Umem::create(4, ChunkSize::B4096).is_ok(), "within the limit");
    let refused = Umem::create(5, ChunkSize::B4096).err();
    assert_eq!(refused, Some(Error::FileLimit { bytes: 5 * 4_096, limit: LIMIT }));
    assert!(refused.is_some_and(|error| error.to_string().contains("ulimit -f")));
}
