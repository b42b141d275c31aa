//! Files that a user writes: read whole, within a bound.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest of such files. *Units*: bytes. Lower, and the facts of a NIC with all queues that there can be are
/// refused; higher, and a device that has no end takes so much more memory.
const LONGEST: u64 = 4 << 20;

/// The text of a file.
///
/// *Errors*: one sentence with the remedy.
pub fn text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unread =
        |error: &dyn Display| format!("{shown} cannot be read: {error}; correct its name or its rights");
    let mut bytes = Vec::new();
    let len = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    if len.map_err(|error| unread(&error))? as u64 > LONGEST {
        return Err(format!(
            "{shown} is longer than {} MiB: it is another file than is meant",
            LONGEST >> 20
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{shown} line {line}: what stands there is no UTF-8: save it as text in UTF-8")
    })
}
