//! The options for QoS.

use clap::{Args, ValueEnum};
use taut::{DataRepresentationId, DurabilityKind, History, Qos};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reliability {
    Reliable,
    BestEffort,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    Volatile,
    TransientLocal,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Representation {
    Xcdr1,
    Xcdr2,
}

/// QoS of the writer or the reader.
#[derive(Args)]
#[command(next_help_heading = "QoS")]
pub struct QosArguments {
    /// Are lost samples sent again?
    #[arg(long, value_enum, default_value_t = Reliability::Reliable, value_name = "reliable|best-effort",
          hide_possible_values = true)]
    reliability: Reliability,
    /// Do late readers get what was published before?
    #[arg(long, value_enum, default_value_t = Durability::Volatile, value_name = "volatile|transient-local",
          hide_possible_values = true)]
    durability: Durability,
    /// How many samples of an instance are kept [default: keep-all; for a transient-local writer
    /// keep-last:1]
    #[arg(long, value_parser = history, value_name = "keep-all|keep-last:N")]
    history: Option<History>,
    /// A partition to be in (again for more)
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// The encoding [default: a writer uses xcdr1, a reader understands both]
    #[arg(long, value_enum, value_name = "xcdr1|xcdr2", hide_possible_values = true)]
    representation: Option<Representation>,
}

/// How long a writer waits for room in one go; it is asked again until the user ends it.
const MAX_BLOCKING_TIME: std::time::Duration = std::time::Duration::from_millis(200);

impl QosArguments {
    fn qos(&self, history: History, representation: &[DataRepresentationId]) -> Qos {
        let representation = match self.representation {
            Some(Representation::Xcdr1) => &[DataRepresentationId::XCDR1],
            Some(Representation::Xcdr2) => &[DataRepresentationId::XCDR2],
            None => representation,
        };
        let qos = match self.reliability {
            Reliability::Reliable => Qos::default().reliable().max_blocking_time(MAX_BLOCKING_TIME),
            Reliability::BestEffort => Qos::default().best_effort(),
        };
        let durability = match self.durability {
            Durability::Volatile => DurabilityKind::Volatile,
            Durability::TransientLocal => DurabilityKind::TransientLocal,
        };
        qos.durability(durability)
            .history(self.history.unwrap_or(history))
            .partition(self.partition.iter().cloned())
            .representation(representation.iter().copied())
    }

    pub fn writer(&self) -> Qos {
        // All that a transient-local writer ever wrote would be kept, and sent to each new reader.
        let history = match self.durability {
            Durability::Volatile => History::KeepAll,
            Durability::TransientLocal => History::KeepLast(1),
        };
        self.qos(history, &[DataRepresentationId::XCDR1])
    }

    pub fn reader(&self) -> Qos {
        self.qos(History::KeepAll, &[DataRepresentationId::XCDR1, DataRepresentationId::XCDR2])
    }
}

fn history(text: &str) -> Result<History, String> {
    match text.split_once(':') {
        None if text == "keep-all" => Some(History::KeepAll),
        Some(("keep-last", depth)) => depth.parse().ok().filter(|depth| *depth >= 1).map(History::KeepLast),
        _ => None,
    }
    .ok_or_else(|| "use keep-all or keep-last:N with N from 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories() {
        assert_eq!(history("keep-all"), Ok(History::KeepAll));
        assert_eq!(history("keep-last:7"), Ok(History::KeepLast(7)));
        for bad in ["", "keep-last", "keep-last:", "keep-last:0", "keep-last:-1", "keep-all:3"] {
            assert!(history(bad).is_err(), "{bad}");
        }
    }
}
