//! The command line of a peer, as `interop/README.md` has it.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};

/// Publishes or subscribes as the interoperability matrix asks.
#[derive(Parser, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Options {
    /// What to be.
    pub role: Role,
    /// The domain.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub domain: u32,
    /// The topic.
    #[arg(long, default_value = "interop")]
    pub topic: String,
    /// The type, of types.idl.
    #[arg(long, default_value = "plain")]
    pub r#type: SampleType,
    /// RELIABILITY.
    #[arg(long, default_value = "best-effort")]
    pub reliability: Reliability,
    /// DURABILITY.
    #[arg(long, default_value = "volatile")]
    pub durability: Durability,
    /// HISTORY: keep-all or keep-last:N.
    #[arg(long, default_value = "keep-all", value_parser = history)]
    pub history: Kept,
    /// Bytes of payload of plain and keyed.
    #[arg(long, default_value_t = 64)]
    pub size: u32,
    /// Samples to write or to wait for.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Instances, written in turn.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub instances: u32,
    /// pub: writers, each of its instances, which write in turns.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub writers: u32,
    /// Samples per second; 0: as fast as it can.
    #[arg(long, default_value_t = 100.0, value_parser = at_least_zero)]
    pub rate: f64,
    /// Then the same again with this topic, of the same participant; Taut's peer alone.
    #[arg(long)]
    pub then: Option<String>,
    /// PARTITION; none: the default one.
    #[arg(long)]
    pub partition: Option<String>,
    /// pub: how to end each instance.
    #[arg(long, default_value = "none")]
    pub r#final: Final,
    /// sub: the end of each instance to wait for.
    #[arg(long, default_value = "none")]
    pub expect_final: Final,
    /// Seconds until it gives up.
    #[arg(long, default_value_t = 10.0, value_parser = at_least_zero)]
    pub timeout: f64,
    /// pub: readers to wait for before the first write; 0: write, then wait for one.
    #[arg(long, default_value_t = 1)]
    pub wait_matched: usize,
    /// Seconds to stay after the work is done.
    #[arg(long, default_value_t = 0.0, value_parser = at_least_zero)]
    pub linger: f64,
    /// pub: wait for a line on stdin before the first write.
    #[arg(long)]
    pub hold: bool,
    /// No line for each sample.
    #[arg(long)]
    pub quiet: bool,
    /// The interface, by name or address.
    #[arg(long, default_value = "lo")]
    pub interface: String,
}

/// The role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// A publisher.
    Pub,
    /// A subscriber.
    Sub,
}

/// The type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SampleType {
    /// `interop::Plain`.
    Plain,
    /// `interop::Keyed`.
    Keyed,
    /// `ShapeType`.
    Shape,
    /// `telemetry::Metric`.
    Metric,
}

/// RELIABILITY.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Reliability {
    /// BEST_EFFORT.
    BestEffort,
    /// RELIABLE.
    Reliable,
}

/// DURABILITY.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Durability {
    /// VOLATILE.
    Volatile,
    /// TRANSIENT_LOCAL.
    TransientLocal,
}

/// How instances end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Final {
    /// They stay.
    None,
    /// Disposed of.
    Dispose,
    /// Unregistered, not disposed of.
    Unregister,
}

/// HISTORY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Every sample.
    All,
    /// So many of each instance.
    Last(u32),
}

fn history(text: &str) -> Result<Kept, String> {
    if text == "keep-all" {
        return Ok(Kept::All);
    }
    let depth = text.strip_prefix("keep-last:").and_then(|depth| depth.parse().ok());
    match depth {
        Some(depth @ 1..) => Ok(Kept::Last(depth)),
        _ => Err("it is keep-all or keep-last:N with N at least 1".into()),
    }
}

fn at_least_zero(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| *number >= 0.0).ok_or_else(|| "it is a number of at least 0".into())
}

impl Options {
    /// The options of this process, or what is wrong with them.
    pub fn from_command_line() -> Result<Options, clap::Error> {
        Options::try_parse().and_then(Options::checked)
    }

    /// The options, or what is wrong with them together.
    fn checked(mut self) -> Result<Options, clap::Error> {
        if self.r#type == SampleType::Plain {
            if (self.r#final, self.expect_final) != (Final::None, Final::None) {
                let text = "--type plain has no key, so it has no instances to end";
                return Err(Options::command().error(ErrorKind::ArgumentConflict, text));
            }
            self.instances = 1;
        }
        Ok(self)
    }

    /// The defaults, for tests.
    #[cfg(test)]
    pub(crate) fn of(role: &str) -> Options {
        Options::parse_from(["peer", role])
    }

    /// Is RELIABILITY RELIABLE?
    pub fn is_reliable(&self) -> bool {
        self.reliability == Reliability::Reliable
    }

    /// Is DURABILITY TRANSIENT_LOCAL?
    pub fn is_transient_local(&self) -> bool {
        self.durability == Durability::TransientLocal
    }

    /// The instance of sample `seq`.
    pub fn id(&self, seq: u32) -> u32 {
        seq % self.instances
    }

    /// The writer of an instance.
    pub(crate) fn writer_of(&self, id: u32) -> usize {
        (id % self.writers) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(std::iter::once("peer").chain(words.split(' '))).and_then(Options::checked)
    }

    #[test]
    fn what_is_wrong_is_a_usage_error() {
        let wrong = [
            "both",
            "sub --history keep-last:0",
            "sub --domain 233",
            "pub --rate -1",
            "pub --count 0",
            "pub --final dispose",
            "pub --colour red",
        ];
        for words in wrong {
            assert_eq!(parsed(words).err().map(|error| error.exit_code()), Some(2), "{words}");
        }
        let options = parsed("pub --instances 4 --type shape --final dispose").unwrap();
        assert_eq!((options.id(6), options.r#final), (2, Final::Dispose));
        assert_eq!(parsed("pub --instances 4").unwrap().instances, 1, "plain has no instances");
        assert_eq!(parsed("pub --count 4 --count 5").unwrap().count, 5, "the last one counts");
    }
}
