//! `taut demo`: this machine's telemetry between two processes, and with other vendors' if they are here.
//!
//! The first process publishes and owns the others: a second `taut` that subscribes and shows, and the
//! publishers of other vendors. The second owns the other vendors' subscribers. Each owner ends what it
//! has started; the second ends when its stdin does, so that nothing stays when the first is killed.

mod children;
mod peers;
mod publisher;
mod subscriber;
mod table;
mod tally;
mod telemetry;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use taut::{Config, Qos};
use taut_perf::values::whole;

use crate::args::Network;
use crate::failure::{End, Failure};

/// The topic of the demo.
const TOPIC: &str = "taut/telemetry";
/// Samples of each metric in a second.
const RATE_HZ: u64 = 100;
/// The longest demo: a day.
const MAX_SECONDS: u64 = 86_400;
/// The exit code by which the second process tells the first that nobody reads what it shows: that of a process that SIGPIPE
/// ends, as a shell has it. With 0 it would say that it had shown all.
const UNREAD: u8 = 141;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Publisher,
    Subscriber,
}

/// What `demo` takes.
#[derive(Args)]
pub struct DemoArguments {
    /// How long it lasts
    #[arg(long, env = "DEMO_SECONDS", value_name = "SECONDS", default_value_t = 15,
          value_parser = whole(1..=MAX_SECONDS))]
    seconds: u64,
    /// Which of the two processes this is; the publisher starts the subscriber.
    #[arg(long, value_enum, default_value_t = Role::Publisher, hide = true)]
    role: Role,
    /// The GUID prefix of the publisher whose samples are counted.
    #[arg(long, hide = true, default_value = "")]
    publisher: String,
}

/// What the publisher tells the subscriber when all is sent.
#[derive(Serialize, Deserialize)]
struct Sent {
    /// Samples of our own publisher.
    taut: u64,
    /// Samples of the publishers of other vendors that ended as they should.
    others: Vec<(String, u64)>,
}

/// Runs the command.
pub fn run(network: &Network, arguments: &DemoArguments) -> Result<End, Failure> {
    let mut config = network.config()?;
    if config.interfaces.is_empty() {
        // Everything is on this machine; nobody else has to hear it.
        config.interfaces = vec!["lo".to_owned()];
    }
    match arguments.role {
        Role::Publisher => publisher::run(network, config, arguments.seconds),
        Role::Subscriber => match subscriber::run(config, arguments.seconds, &arguments.publisher) {
            Err(failure) if failure.is_unread() => Ok(End::Code(UNREAD)),
            ended => ended,
        },
    }
}

/// Nothing is lost, however fast the other side is.
fn qos() -> Qos {
    Qos::default().reliable().max_blocking_time(std::time::Duration::from_millis(200)).keep_all()
}

fn named(mut config: Config, name: &str) -> Config {
    if config.name.is_empty() {
        name.clone_into(&mut config.name);
    }
    config
}
