//! Alone in a process: the limit is one of all of it, and who is beyond it is killed if nobody looks before.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut_xdp::{ChunkSize, Error, Umem};

#[test]
fn a_limit_of_file_sizes_is_told_and_kills_nobody() {
    const LIMIT: u64 = 4 * 4_096;
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, LIMIT, hard).unwrap();
    let (within, refused) = [4, 5].map(|chunks| Umem::create(chunks, ChunkSize::B4096).err()).into();
    // What the test says may go to a long file.
    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    assert_eq!(within, None);
    assert_eq!(refused, Some(Error::FileLimit { bytes: 5 * 4_096, limit: LIMIT }));
    assert!(refused.is_some_and(|error| error.to_string().contains("ulimit -f")));
}
