//! Cores that do not sleep deeply: a mitigation, and what keeps one who may not ask for it.

use std::fs::File;
use std::io::{Error, ErrorKind, Write as _};

use crate::session::Trouble;

/// What is written here limits, in microseconds, how long a core may take to wake, while the file is open.
const LIMIT: &str = "/dev/cpu_dma_latency";

/// Keeps the cores out of deep sleep while it lives.
pub struct Awake {
    /// The open file is the request.
    _request: File,
}

impl Awake {
    /// Asks the kernel for it.
    pub fn keep() -> Result<Awake, Trouble> {
        let open = || -> std::io::Result<File> {
            let mut file = File::options().write(true).open(LIMIT)?;
            file.write_all(&0i32.to_ne_bytes())?;
            Ok(file)
        };
        let file = open().map_err(|error| Trouble::Absent(refused(&error)))?;
        Ok(Awake { _request: file })
    }
}

/// Why the cores may sleep deeply, and what mends it.
fn refused(error: &Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "run it as root, who may write there",
        ErrorKind::NotFound => "this kernel holds no core awake, name --lines that do without",
        _ => return format!("{LIMIT}: {error}"),
    };
    format!("{LIMIT}: {error}: {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_hold_cores_awake_is_told_who_may() {
        let told = |kind| refused(&Error::from(kind));
        assert_eq!(
            told(ErrorKind::PermissionDenied),
            "/dev/cpu_dma_latency: permission denied: run it as root, who may write there"
        );
        assert!(told(ErrorKind::NotFound).ends_with(", name --lines that do without"));
    }
}
