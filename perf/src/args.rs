//! The command line of `taut perf`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::values::{percent, rate, seconds, size, whole};

/// Measure any DDS against the physical limit of this machine.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The workload, or what to do with lines that were kept.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure.
    #[command(flatten)]
    Measure(Box<Workload>),
    /// Make a page to look at of one run or several
    Report(ReportArguments),
    /// Say what is better, worse or noise between two runs; exit code 1 if more is worse than by chance, or one
    /// line by more than half, or fails, 2 if nothing has run in both
    Compare(CompareArguments),
}

/// Which runs become a page.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// Files that --save wrote
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The page to write; it needs no other file and no network
    #[arg(long, value_name = "FILE", default_value = "perf-report.html")]
    pub out: PathBuf,
    /// Write performance.md, performance-lines.md, results/*.svg and the run itself as results/run.jsonl.gz into this
    /// directory instead of a page; it is made if it is not there
    #[arg(long, value_name = "DIRECTORY")]
    pub docs: Option<PathBuf>,
}

/// Which runs are compared.
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// The file of the run before
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The file of the run after
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
}

/// What to measure.
#[derive(Subcommand, Debug)]
pub enum Workload {
    /// Round trips between two processes: closed loop, 1,000 a second, and every 500 us
    Latency(Options),
    /// Samples per second from one publisher to one subscriber, each checked
    Throughput(Options),
    /// The latency of bursts: of any sample, and until all of a burst is there
    Bursts(Options),
    /// One publisher to many subscribers, unicast and multicast, listener and waitset
    Fanout(Options),
    /// Round trips of sequences of octets and of structures, answered by four bytes
    Types(Options),
    /// Round trips beside a UDP flood, with each mitigation alone and all together
    Interference(Options),
    /// Write and take in one thread, between two threads, and by shared memory
    Local(Options),
    /// What a write costs the writer
    Write(Options),
    /// Encoding and decoding, without a network
    Cdr(Options),
    /// What each entity takes
    Memory(Options),
    /// What a burst asks of the kernel: the system calls of each side
    Calls(Options),
    /// The time and the bytes until all participants know each other
    Discovery(Options),
    /// Round trips for a long time, with memory, threads and descriptors of each second
    Soak(Options),
    /// Round trips, rates and a flood past the kernel's stack and through it, over one link
    Bypass(Options),
    /// Every workload, within an hour
    All(Options),
    /// A little of every workload, within four minutes
    Smoke(Options),
    /// List the adapters that are found
    Peers(Options),
}

impl Workload {
    /// Its name and its options.
    pub fn parts(&self) -> (&'static str, &Options) {
        match self {
            Workload::Latency(options) => ("latency", options),
            Workload::Throughput(options) => ("throughput", options),
            Workload::Bursts(options) => ("bursts", options),
            Workload::Fanout(options) => ("fanout", options),
            Workload::Types(options) => ("types", options),
            Workload::Interference(options) => ("interference", options),
            Workload::Local(options) => ("local", options),
            Workload::Write(options) => ("write", options),
            Workload::Cdr(options) => ("cdr", options),
            Workload::Memory(options) => ("memory", options),
            Workload::Calls(options) => ("calls", options),
            Workload::Discovery(options) => ("discovery", options),
            Workload::Soak(options) => ("soak", options),
            Workload::Bypass(options) => ("bypass", options),
            Workload::All(options) => ("all", options),
            Workload::Smoke(options) => ("smoke", options),
            Workload::Peers(options) => ("peers", options),
        }
    }
}

/// What every workload takes; what is not given is the workload's own.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Who is measured, as taut,floor,fastdds:data-sharing; `all` is everyone with every variant
    /// [default: taut, floor, cyclonedds and fastdds, if they are built]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub peers: Vec<String>,
    /// The ways that samples take (cdr has none; interference and bypass take those with a network)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub transport: Vec<Transport>,
    /// Sizes in bytes, as 64,1K,1M, up to 64M [default: the workload's own]
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = size)]
    pub sizes: Vec<u64>,
    /// Measured samples of each round [default: the workload's own]
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000_000_u64))]
    pub count: Option<u64>,
    /// Time of each round [default: the workload's own]
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0.01..=1e6))]
    pub duration: Option<f64>,
    /// Samples per second, answered or not; 0 sends the next as soon as the last is done
    #[arg(long, value_name = "HZ", value_parser = rate(0.01..=1e7))]
    pub rate: Option<f64>,
    /// How often each peer is measured, in turns with the others [default: the workload's own]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000_u32))]
    pub rounds: Option<u32>,
    /// How a process waits for data; block is the best of its blocking ways, inline has no thread but the one
    /// that waits (who has no such mode takes block)
    #[arg(long, value_name = "HOW")]
    pub wait: Option<Wait>,
    /// Both processes on one core, each on its own, or wherever the system puts them
    #[arg(long, value_name = "WHERE", default_value = "none")]
    pub pin: Pin,
    /// Run the processes with SCHED_FIFO of this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = whole(1..=99_u8))]
    pub fifo: Option<u8>,
    /// Only these lines of the table, as "quiet all,flood all"
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub lines: Vec<String>,
    /// Between two networks over a link with Ethernet's MTU, rather than over loopback; what uses no network, as shm,
    /// is measured without it
    #[arg(long)]
    pub link: bool,
    /// Such a link with another MTU, 1280 to 65535: 9000 is that of jumbo frames
    #[arg(long, value_name = "BYTES", value_parser = whole(1_280..=65_535_u32))]
    pub mtu: Option<u32>,
    /// Such a link that loses so many of its packets of UDP at each end, 0.1 to 50; what goes past the kernel is measured
    /// without loss
    #[arg(long, value_name = "PERCENT", value_parser = percent(0.1..=50.0))]
    pub loss: Option<f64>,
    /// RELIABILITY, where the workload does not prescribe it
    #[arg(long, value_name = "KIND")]
    pub reliability: Option<Reliability>,
    /// Numbers of subscribers (fanout) or of participants (discovery), up to 64
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = whole(1..=64_u32))]
    pub nodes: Vec<u32>,
    /// Numbers of writers and readers of each participant (discovery)
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = whole(1..=1_000_u32))]
    pub endpoints: Vec<u32>,
    /// About a tenth of the time
    #[arg(long)]
    pub quick: bool,
    /// Every demand at every burst interval of the throughput method instead of a few: 50 s a peer and size
    #[arg(long)]
    pub full: bool,
    /// Fit the run into this time by fewer and shorter rounds
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0.01..=1e6))]
    pub budget: Option<f64>,
    /// Print one JSON object for each line of the table, as soon as it is known
    #[arg(long)]
    pub json: bool,
    /// Write these objects into a file, for `report` and `compare`
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Look for adapters here first (again for more)
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Vec<PathBuf>,
    /// The first domain that is used; each trial takes the next, up to 200
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=200_u32))]
    pub domain_base: u32,
    /// Where the traffic goes: a network of the run's own, or the host's loopback interface
    #[arg(long, value_name = "WHERE", default_value = "private")]
    pub net: Net,
}

impl Options {
    /// The same, with each value of a list where it is first named: nothing is measured twice.
    pub(crate) fn once(&self) -> Options {
        let mut all = self.clone();
        once(&mut all.transport);
        once(&mut all.sizes);
        once(&mut all.nodes);
        once(&mut all.endpoints);
        all
    }
}

fn once<T: PartialEq>(list: &mut Vec<T>) {
    let named = std::mem::take(list);
    for value in named {
        if !list.contains(&value) {
            list.push(value);
        }
    }
}

/// The way that samples take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the names are those of peers/README.md")]
pub enum Transport {
    Thread,
    Intra,
    Shm,
    Udp,
    Xdp,
    XdpL2,
    Dpdk,
}

impl Transport {
    /// Does the kernel's stack see its packets, which loses them where they come in?
    pub(crate) fn is_lossy(self) -> bool {
        self == Transport::Udp
    }

    /// Do samples cross a network? Else both ends are on one machine, and no link can be between them.
    pub(crate) fn has_network(self) -> bool {
        match self {
            Transport::Thread | Transport::Intra | Transport::Shm => false,
            Transport::Udp | Transport::Xdp | Transport::XdpL2 | Transport::Dpdk => true,
        }
    }
}

/// How a process waits for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the names are those of peers/README.md")]
pub enum Wait {
    Block,
    Listener,
    Waitset,
    Spin,
    Inline,
}

/// Where processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pin {
    /// All on CPU 0.
    Same,
    /// The first on CPU 0, the others on those after it; two threads of one process on the first two.
    Split,
    /// The system decides.
    None,
}

/// RELIABILITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum Reliability {
    Reliable,
    BestEffort,
}

/// Where the traffic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Net {
    /// A network namespace that goes with the run.
    Private,
    /// The loopback interface of the host.
    Host,
}

/// The name of a choice on the command line and in the results.
pub fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// The options that a user's words mean.
#[cfg(test)]
pub(crate) fn options(words: &str) -> Options {
    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        options: Options,
    }
    let words = std::iter::once("perf").chain(words.split_whitespace());
    <Program as clap::Parser>::parse_from(words).options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_twice_is_measured_once() {
        let all = options("--sizes 64,1K,64 --transport udp,shm,udp --nodes 2,2 --endpoints 1,3,1").once();
        assert_eq!((all.sizes, all.nodes, all.endpoints), (vec![64, 1_024], vec![2], vec![1, 3]));
        assert_eq!(all.transport, [Transport::Udp, Transport::Shm]);
    }
}
