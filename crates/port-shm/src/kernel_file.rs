//! The small texts in which the kernel tells about itself, under /proc and /sys.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

/// What is read of one file at most. The longest is a list of mounts: some hundred bytes each, and a host
/// of containers has some hundred. Less cuts them off, more is never needed.
const LONGEST: usize = 256 * 1024;

/// The text of a file. *Cost*: three system calls for a short one.
pub(crate) fn text(path: &str) -> Result<String, Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.len() < LONGEST {
        let count = read(&file, &mut chunk[..])?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number that follows `key` in lines of a key and a number.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix([' ', ':', '\t']))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_their_key() {
        let text = "MemTotal:       24683 kB\nfile 7\nfile_mapped 8\n";
        assert_eq!(
            (number(text, "MemTotal"), number(text, "file"), number(text, "map")),
            (Some(24683), Some(7), None)
        );
    }

    #[test]
    fn what_is_not_there() {
        assert_eq!(text("/proc/no such thing").err(), Some(Errno::NOENT));
    }
}
