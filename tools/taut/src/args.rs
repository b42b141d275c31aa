//! The command line.

mod qos;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use taut::{Config, DomainParticipant};
use taut_perf::values::{NO_END, count, number, rate, seconds, text, whole};

use crate::demo::DemoArguments;
use crate::failure::Failure;
use crate::netd::NetdArguments;
use crate::nic::NicArguments;
use crate::top::TopArguments;
use crate::types::{MAX_COLOR, MAX_NAME, MAX_UNIT};

pub use qos::QosArguments;

/// A day: what is longer is written by mistake, and a list that never comes is taken for one that found nobody.
/// *Units*: seconds.
const LONGEST_LOOK: f64 = 86_400.0;

/// The `taut` command.
#[derive(Parser)]
#[command(
    name = "taut",
    version,
    about = "Publish, subscribe and look around in a DDS domain.",
    after_help = "Settings come from the options, else from TAUT_* variables, else from taut.toml.\n\
                  TAUT_LOG=info (debug, trace) says more on stderr.\n\
                  Exit codes: 0 done, 1 the system failed, 2 wrong use or set-up, 3 the time was up first.",
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(flatten)]
    pub network: Network,
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// What the user has typed.
    ///
    /// *Errors*: what the parser says of it.
    pub fn of_process() -> Result<Arguments, clap::Error> {
        let mut command = Arguments::parser();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// The parser as it is derived, but for what goes for more than one command.
    fn parser() -> clap::Command {
        let mut command = with_negative_numbers(Arguments::command());
        let hidden = command.get_arguments().filter(|option| option.is_global_set());
        let hidden: Vec<_> = hidden.map(|option| option.clone().hide(true)).collect();
        for name in WITHOUT_NETWORK {
            command = command.mut_subcommand(name, |command| command.args(&hidden));
        }
        command
    }
}

/// Has the options take what looks like an option and is a number, so that it is refused for what it is.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|option| {
        let takes_value = !option.is_positional() && option.get_action().takes_values();
        option.allow_negative_numbers(takes_value)
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The commands that have no use for [`Network`]; their help has none of it, and what is given all the same is refused.
const WITHOUT_NETWORK: [&str; 2] = ["perf", "netd"];

#[derive(Subcommand)]
pub enum Command {
    /// Publish samples on a topic
    Pub(PublishArguments),
    /// Print the samples of a topic
    Sub(SubscribeArguments),
    /// List the participants, topics and endpoints of a domain, and who talks with whom
    Ls {
        /// How long to look
        #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds(0.0..=LONGEST_LOOK))]
        seconds: f64,
        /// Print a JSON object for each participant, topic, endpoint and match
        #[arg(long)]
        json: bool,
    },
    /// Show the response times of every Taut participant of a domain, second by second
    Top(TopArguments),
    /// Show this machine's telemetry on its way between two processes
    ///
    /// One process publishes CPU, memory, load and network counters at 100 Hz, a second one subscribes and
    /// shows them, and says in the end what has arrived and how fast. Programs built with Cyclone DDS and
    /// Fast DDS join if they are in interop/build of the repository or in the directory that
    /// TAUT_DEMO_PEERS names. All stays on the loopback interface unless --interface says otherwise.
    Demo(DemoArguments),
    /// Measure any DDS against the physical limit of this machine, and show it
    Perf(taut_perf::Arguments),
    /// Say what of this machine keeps a DDS from its bound on latency or from being found, and how to mend it
    ///
    /// Looks at scheduling, power saving, interrupts, memory, sockets, multicast and the firewall, and sends
    /// itself a datagram on each interface in use; none leaves the machine. Some checks need root. Ends with 2 if
    /// something is harmful, with 1 if the system refused a change.
    Doctor(DoctorArguments),
    /// Set up a NIC so that critical traffic comes first, and take that back
    ///
    /// Queues, steering, coalescing, rings, queueing disciplines, XPS and interrupts, from a file that says what is
    /// wanted. Says of each step what it gains and whether this NIC and kernel can do it. Ends with 1 if the system
    /// refused a step, with 2 if the file is wrong, or if `status` finds something to do.
    Nic(NicArguments),
    /// Open queues of network interfaces for participants without privileges, as a policy allows
    ///
    /// Run it as root, or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK, in the
    /// network namespace of the participants. Needs Linux 6.4. Samples do not pass through it.
    /// The policy has rules as
    ///
    ///   [[allow]]
    ///   user = "robot"         # or a number, or group = "dds"
    ///   interface = "eth0"
    ///   queues = [0, 1]
    ///   domains = [0]
    ///   participants = 2       # at most; as many as there are queues if it is left out
    ///
    /// and what no rule allows is refused. Ctrl-C ends it; what it has opened goes with it, and
    /// participants go on by their sockets. TAUT_LOG=info tells who has got what.
    #[command(verbatim_doc_comment)]
    Netd(NetdArguments),
    /// Print the settings that are in force
    Config {
        /// Print each setting as a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// What `doctor` is to do besides looking.
#[derive(Args)]
pub struct DoctorArguments {
    /// Print each finding and each change as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Measure the real-time throttle and whether a processor stands still too: a thread spins under SCHED_FIFO for 1.1 s
    /// and for 0.5 s
    #[arg(long)]
    pub measure: bool,
    /// Mend until the next reboot what is safe to: values in /proc/sys, /proc/irq and /sys, a route, rules of nftables
    #[arg(long)]
    pub fix: bool,
    /// Put back what --fix has changed
    #[arg(long, conflicts_with_all = ["fix", "measure"])]
    pub undo: bool,
    /// Before that, forget what is recorded of a network namespace that is gone, as --undo names it
    #[arg(long, value_name = "NAMESPACE", requires = "undo")]
    pub forget: Option<String>,
}

/// Where the domain is.
#[derive(Args)]
#[command(next_help_heading = "Network (nic takes only the domain and the file, perf and netd nothing)")]
pub struct Network {
    /// The domain, 0 to 232
    #[arg(long, global = true, value_name = "N", value_parser = whole(0..=232_u32))]
    domain: Option<u32>,
    /// A host to announce to besides multicast, as 192.168.1.7 (again for more)
    #[arg(long, global = true, value_name = "HOST[:PORT]")]
    peer: Vec<String>,
    /// A network interface to use, by name or address (again for more)
    #[arg(long, global = true, value_name = "NAME")]
    interface: Vec<String>,
    /// The configuration file to read
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Network {
    /// The settings: options, else environment, else file.
    ///
    /// *Errors*: [`Failure::Wrong`] for what no participant takes.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(file) => Config::load_from(file)?,
            None => Config::load()?,
        };
        if let Some(domain_id) = self.domain {
            config.domain_id = domain_id;
        }
        if !self.peer.is_empty() {
            config.initial_peers.clone_from(&self.peer);
        }
        if !self.interface.is_empty() {
            config.interfaces.clone_from(&self.interface);
        }
        config.check()?;
        Ok(config)
    }

    /// Does the command have a use for what was given? What is silently left out would be taken for done.
    ///
    /// *Errors*: [`Failure::Wrong`], with what to write instead.
    pub fn is_used(&self, command: &Command) -> Result<(), Failure> {
        let (name, used, instead): (_, &[&str], _) = match command {
            Command::Perf(_) => (
                "perf",
                &[],
                "its traffic stays in a network of its own; see --net, --link and --domain-base",
            ),
            Command::Netd(_) => ("netd", &[], "the rules of its policy name interfaces and domains"),
            Command::Nic(_) => (
                "nic",
                &["--domain", "--config"],
                "its file names the interface, as `taut nic plan INTERFACE` and its like do",
            ),
            _ => return Ok(()),
        };
        let given = [
            ("--domain", self.domain.is_some()),
            ("--peer", !self.peer.is_empty()),
            ("--interface", !self.interface.is_empty()),
            ("--config", self.config.is_some()),
        ];
        match given.iter().find(|(option, is_given)| *is_given && !used.contains(option)) {
            Some((option, _)) => Err(Failure::Wrong(format!("{name} takes no {option}: {instead}"))),
            None => Ok(()),
        }
    }

    /// Adds what another process of this program needs to have the same settings, except for the domain
    /// and the interfaces.
    pub fn hand_on(&self, command: &mut std::process::Command) {
        for peer in &self.peer {
            command.arg("--peer").arg(peer);
        }
        if let Some(file) = &self.config {
            command.arg("--config").arg(file);
        }
    }

    /// Joins the domain; `role` is its name for people, unless the user gave one.
    pub fn join(&self, role: &str) -> Result<DomainParticipant, Failure> {
        Ok(DomainParticipant::with_config(&self.config_as(role)?)?)
    }

    /// The settings of a participant with this name for people, unless the user gave one.
    pub fn config_as(&self, role: &str) -> Result<Config, Failure> {
        let mut config = self.config()?;
        if config.name.is_empty() {
            config.name = format!("taut {role}");
        }
        Ok(config)
    }
}

/// What `pub` takes for every type.
#[derive(Args)]
pub struct PublishOptions {
    /// How many samples [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,
    /// Samples in a second; 0 for as fast as it goes
    #[arg(long, value_name = "HZ", default_value = "10", value_parser = rate(0.0..=NO_END))]
    pub rate: f64,
    /// Start at once, whether or not there is a reader
    #[arg(long)]
    pub no_wait: bool,
    /// Start after this time without a reader
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds(0.0..=NO_END))]
    pub wait: f64,
    /// Print each sample as a JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub qos: QosArguments,
}

#[derive(Args)]
pub struct PublishArguments {
    #[command(subcommand)]
    pub kind: PublishKind,
}

#[derive(Subcommand)]
pub enum PublishKind {
    /// A shape that moves around, as in every vendor's shapes demo
    #[command(visible_alias = "shape")]
    Shapes {
        /// The topic: Square, Circle, Triangle
        #[arg(long, default_value = "Square")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "ShapeType")]
        type_name: String,
        /// The color, which is the key
        #[arg(long, default_value = "BLUE", value_parser = text(MAX_COLOR))]
        color: String,
        #[command(flatten)]
        options: PublishOptions,
    },
    /// A text, as std_msgs/String of ROS 2
    String {
        /// The topic; ROS 2 puts rt/ in front of its topics' names
        #[arg(long, default_value = "rt/chatter")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "std_msgs::msg::dds_::String_")]
        type_name: String,
        /// The text
        #[arg(long, default_value = "hello, world")]
        text: String,
        #[command(flatten)]
        options: PublishOptions,
    },
    /// A measured value with its name, as in taut demo
    Metric {
        /// The topic
        #[arg(long, default_value = "taut/telemetry")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "telemetry::Metric")]
        type_name: String,
        /// What is measured, which is the key
        #[arg(long, default_value = "metric", value_parser = text(MAX_NAME))]
        name: String,
        /// The value
        #[arg(long, default_value_t = 0.0, value_parser = number)]
        value: f64,
        /// The unit of the value
        #[arg(long, default_value = "", value_parser = text(MAX_UNIT))]
        unit: String,
        #[command(flatten)]
        options: PublishOptions,
    },
}

#[derive(Args)]
pub struct SubscribeArguments {
    #[command(subcommand)]
    pub kind: SubscribeKind,
}

/// What `sub` takes for every type.
#[derive(Args)]
pub struct SubscribeOptions {
    /// End after so many samples [default: Ctrl-C ends it]
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,
    /// End after this time, with exit code 3 if the count was not reached
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0.0..=NO_END))]
    pub timeout: Option<f64>,
    /// Print each sample as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Print below each sample where its latency went; writers with the setting anatomy tell what they know of it
    #[arg(long)]
    pub anatomy: bool,
    #[command(flatten)]
    pub qos: QosArguments,
}

#[derive(Subcommand)]
pub enum SubscribeKind {
    /// Shapes, as in every vendor's shapes demo
    #[command(visible_alias = "shape")]
    Shapes {
        /// The topic: Square, Circle, Triangle
        #[arg(long, default_value = "Square")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "ShapeType")]
        type_name: String,
        #[command(flatten)]
        options: SubscribeOptions,
    },
    /// Texts, as std_msgs/String of ROS 2
    String {
        /// The topic; ROS 2 puts rt/ in front of its topics' names
        #[arg(long, default_value = "rt/chatter")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "std_msgs::msg::dds_::String_")]
        type_name: String,
        #[command(flatten)]
        options: SubscribeOptions,
    },
    /// Measured values, as in taut demo
    Metric {
        /// The topic
        #[arg(long, default_value = "taut/telemetry")]
        topic: String,
        /// The name that the type is registered under
        #[arg(long = "type", value_name = "NAME", default_value = "telemetry::Metric")]
        type_name: String,
        #[command(flatten)]
        options: SubscribeOptions,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_agrees_with_itself() {
        Arguments::parser().debug_assert();
    }
}
