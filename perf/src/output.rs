//! What goes to stdout and stderr: at once, so that whoever reads has it.
//!
//! A pipe that nobody reads, or a terminal that is halted, holds up a write for as long as it likes. So there is a look
//! whether there is room before each, and meanwhile whether the process is to end. The command line program writes by this, too.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use crate::{Failure, Stop};

/// What a pipe takes without a wait if it has room at all: Linux's PIPE_BUF. Lower takes more calls, and lines of others
/// come between; with more a write would wait inside of the call. *Units*: bytes.
pub const PIECE: usize = 4_096;
/// How long a wait for room goes on before it looks at other things, in ms. Ctrl-C ends it at once.
const LOOK_MS: u8 = 100;
/// How long a process that is to end goes on with what it prints while nobody takes it, or with a list without end. Lower
/// cuts off who reads slowly, higher is taken for a process that does not end.
const GRACE: Duration = Duration::from_secs(1);

/// What is left of that time; it begins when it is first looked at and the process is to end.
#[derive(Default)]
pub struct Grace(Option<Instant>);

impl Grace {
    /// Is it time to give up?
    pub fn is_over(&mut self, is_to_end: bool) -> bool {
        if !is_to_end {
            return false;
        }
        let now = Instant::now();
        now >= *self.0.get_or_insert(now + GRACE)
    }
}

/// Writes all of it, in as many pieces as it takes.
///
/// *Errors*: those of the system, and [`ErrorKind::WouldBlock`] if nobody takes it and the process is to end.
pub fn write(to: &impl AsFd, mut bytes: &[u8], is_to_end: impl Fn() -> bool) -> io::Result<()> {
    while !bytes.is_empty() {
        await_room(to.as_fd(), &is_to_end)?;
        match nix::unistd::write(to, &bytes[..bytes.len().min(PIECE)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = &bytes[taken..],
            // Who has started this process may have set the descriptor so that it does not wait.
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn await_room(to: BorrowedFd<'_>, is_to_end: impl Fn() -> bool) -> io::Result<()> {
    let mut grace = Grace::default();
    loop {
        match poll(&mut [PollFd::new(to, PollFlags::POLLOUT)], LOOK_MS) {
            Ok(0) | Err(Errno::EINTR) => {}
            // What is wrong with it, the write says.
            _ => return Ok(()),
        }
        if grace.is_over(is_to_end()) {
            return Err(ErrorKind::WouldBlock.into());
        }
    }
}

/// Prints to stdout.
pub(crate) fn print(text: &str, stop: Stop) -> Result<(), Failure> {
    write(&io::stdout().lock(), text.as_bytes(), stop.requested).map_err(Failure::Output)
}

/// A remark for people on stderr. That it cannot be written is no reason to stop: then nobody is left to tell.
pub(crate) fn note(text: &str, stop: Stop) {
    let _ = write(&io::stderr().lock(), format!("taut perf: {text}\n").as_bytes(), stop.requested);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_text_of_any_length_is_written_whole() {
        let (mut reader, writer) = io::pipe().unwrap();
        let text = "0123456789".repeat(1 << 16);
        std::thread::scope(|scope| {
            let read = scope.spawn(move || {
                let mut read = String::new();
                reader.read_to_string(&mut read).map(|_| read)
            });
            write(&writer, text.as_bytes(), || false).unwrap();
            drop(writer);
            assert!(read.join().unwrap().unwrap() == text);
        });
    }

    #[test]
    fn what_nobody_takes_is_given_up_when_the_process_is_to_end() {
        let (reader, writer) = io::pipe().unwrap();
        let text = "x".repeat(1 << 20);
        let given_up = write(&writer, text.as_bytes(), || true).unwrap_err();
        assert_eq!(given_up.kind(), ErrorKind::WouldBlock);
        drop(reader);
        let left = write(&writer, text.as_bytes(), || false).unwrap_err();
        assert_eq!(left.kind(), ErrorKind::BrokenPipe);
    }
}
