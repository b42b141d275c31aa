//! What the peers in Rust have in common: the command line, the samples, the loops of a publisher and of a
//! subscriber, and the JSON lines.
//!
//! `interop/README.md` is the contract. A program, Taut's or another vendor's, implements [`Publisher`] and
//! [`Subscriber`] for its ends, and hands them to [`publish`] and [`subscribe`] within [`run`]. Nothing here
//! knows a DDS implementation.

mod options;
mod publish;
mod samples;
mod subscribe;
mod tally;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub use options::{Durability, Final, Kept, Options, Reliability, Role, SampleType};
pub use publish::publish;
pub use samples::{Sample, number_in};
pub use subscribe::subscribe;

/// All went as it should.
const COMPLETE: u8 = 0;
/// The implementation refused something.
const BROKEN: u8 = 1;
/// What was waited for did not come in time.
const TIMED_OUT: u8 = 3;

/// What an implementation refused, in words.
pub type Refusal = Box<dyn Error + Send + Sync>;

/// What an implementation gives, if it does not refuse.
pub type Result<T> = std::result::Result<T, Refusal>;

/// How long a reliable write waits for slow readers, as in the other peers.
pub const MAX_BLOCKING: Duration = Duration::from_secs(10);

/// Between two looks at an end, as not every vendor tells by itself that something has come: longer ones make
/// a sample late, shorter ones take the processor from the peer.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// As good as for ever.
const FAR: Duration = Duration::from_secs(86_400);

/// How an instance has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was disposed of.
    Disposed,
    /// All its writers have unregistered it, or are gone.
    NoWriters,
}

/// What a reader gives.
#[derive(Clone, Debug)]
pub enum Event {
    /// A sample.
    Data(Sample),
    /// An instance, if its key is one of the matrix, and how it has ended.
    State(Option<u32>, Ended),
}

/// A writer.
pub trait Publisher {
    /// How many readers are matched.
    fn matched(&mut self) -> usize;
    /// Writes a sample.
    fn write(&mut self, sample: Sample) -> Result<()>;
    /// Disposes of the sample's instance.
    fn dispose(&mut self, sample: Sample) -> Result<()>;
    /// Unregisters the sample's instance.
    fn unregister(&mut self, sample: Sample) -> Result<()>;
    /// Waits until all readers have acknowledged everything; true if they have.
    fn wait_for_acknowledgments(&mut self, at_most: Duration) -> Result<bool>;
}

/// A reader.
pub trait Subscriber {
    /// How many writers are matched.
    fn matched(&mut self) -> usize;
    /// Some of the samples and ends of instances that have come, in their order; none if none has come.
    fn take(&mut self) -> Result<Vec<Event>>;
}

/// Reads the command line, lets `run` do what it asks for, and says how that went. A refusal is printed with
/// the name of the program.
pub fn run(program: &str, run: impl FnOnce(&Options) -> Result<u8>) -> ExitCode {
    let options = match Options::from_command_line() {
        Ok(options) => options,
        Err(wrong) => wrong.exit(),
    };
    run(&options).map_or_else(
        |error| {
            eprintln!("{program}: {error}");
            ExitCode::from(BROKEN)
        },
        ExitCode::from,
    )
}

/// Waits for ends that tell nothing by themselves: a moment, whatever the time that it may take.
pub fn look_again(_: Instant) {
    std::thread::sleep(LOOK_AGAIN);
}

/// So many seconds from now.
fn after(seconds: f64) -> Instant {
    Instant::now() + Duration::try_from_secs_f64(seconds).unwrap_or(FAR)
}
