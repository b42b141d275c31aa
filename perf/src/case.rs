//! A case: one line of the result for each peer, and what its processes are told.

use crate::args::{Options, Pin, Reliability, Transport, Wait, name};
use crate::catalog::{NEAR, Peer, not_asked};
use crate::workload::{Work, rate_hz};

/// What a trial is, the same for each peer.
pub struct Case {
    /// The workload's name.
    pub workload: &'static str,
    /// What sets it apart from its neighbours.
    pub label: String,
    /// How samples go; `None` for what has no samples on their way.
    pub transport: Option<Transport>,
    /// The type: `bytes`, `plain`, `simple`, `complex`.
    pub kind: &'static str,
    /// The size of a sample; 0 where there is none.
    pub size: u64,
    /// Are samples borrowed?
    pub loan: bool,
    /// RELIABILITY.
    pub reliable: bool,
    /// HISTORY.
    pub history: &'static str,
    /// Does data go by multicast?
    pub multicast: bool,
    /// How a process waits for data.
    pub wait: Wait,
    /// Where processes run.
    pub pin: Pin,
    /// Their priority in SCHED_FIFO.
    pub fifo: Option<u8>,
    /// Where the generators of a flood run.
    pub flood_cpu: Option<usize>,
    /// Does it need a link between two networks, whatever the transport?
    pub link: bool,
    /// How many queues each end of that link has.
    pub queues: u32,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// How many of 1,000 packets that link loses.
    pub loss_permille: u32,
    /// The open loop's period; 0 is a closed loop.
    pub period_ns: u64,
    /// Samples before measuring.
    pub warmup: u64,
    /// Measured samples of a round, at most; of a closed loop what has a place in its table, see [`closed_count`].
    pub count: u64,
    /// Time of a round, at most; 0 is none. A closed loop ends by it, the same for each peer.
    pub duration_ms: u64,
    /// No plan makes its rounds shorter than this, but `--quick`.
    pub least_ms: u64,
    /// How often.
    pub rounds: u32,
    /// Do its rounds take turns with those of the case before, so that a machine that drifts hits both alike?
    pub in_turns: bool,
    /// Are only [`NEAR`] asked?
    pub is_near: bool,
    /// What is left of it where time is short.
    pub need: Need,
    /// What happens in a round.
    pub work: Box<dyn Work>,
}

/// What a plan that lacks time may leave of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// As many rounds as all.
    Full,
    /// One round.
    Brief,
    /// Nothing; the run says so.
    Spare,
    /// The same, but if there is time for any of it, all of its rounds: its worth is the number of its samples.
    Whole,
}

/// A round that has a count and no duration ends by this and so much for each sample: twice what the
/// slowest peer needs for the largest sample, where a broken one loses each for a second.
const COUNTED_MS: u64 = 10_000;
const COUNTED_EACH_MS: u64 = 30;

/// A round that has a duration and no count has at most this many samples, for each has a place in a
/// table of 24 bytes: 240 MB.
pub const COUNT_MOST: u64 = 10_000_000;

/// The usual MTU in bytes.
pub const ETHERNET_MTU: u32 = 1_500;

/// From this size on a warm-up of 200 samples would take longer than what is measured.
pub const LARGE: u64 = 256 << 10;

/// A round of a closed loop lasts so long, for each peer: who is slow meets no more of the machine's stalls than who
/// is fast. Shorter, a stall of each 100 ms is met by some rounds and not by others; longer, `all` has no room for three
/// rounds.
pub const CLOSED_MS: u64 = 500;

/// The same of large samples, of which the slowest peers bring 100 a second.
const CLOSED_LARGE_MS: u64 = 2_000;

/// The same of an open loop that the user makes of a closed one by a rate.
const OPEN_MS: u64 = 2_000;

/// No plan makes a round shorter than this, unless the case asks for more: two of such stalls.
const LEAST_MS: u64 = 200;

/// No exchange takes less: within a thread, between threads or processes, over a network. The floor's own take 90 ns,
/// 210 ns and 4 us. Higher, a fast peer's round would end by its count; lower, its table would be larger for nothing.
const THREAD_LEAST_NS: u64 = 80;
const MEMORY_LEAST_NS: u64 = 200;
const NETWORK_LEAST_NS: u64 = 2_000;

/// More samples than a closed loop brings in this time: it ends by its time.
fn closed_count(transport: Option<Transport>, duration_ms: u64) -> u64 {
    let least_ns = match transport {
        Some(Transport::Thread) => THREAD_LEAST_NS,
        Some(Transport::Intra | Transport::Shm) => MEMORY_LEAST_NS,
        _ => NETWORK_LEAST_NS,
    };
    (duration_ms * 1_000_000 / least_ns).min(COUNT_MOST)
}

impl Case {
    /// Reliable, KEEP_LAST 1, `bytes`, closed loop, in 3 rounds that end by their time; then what the user wants
    /// otherwise.
    pub fn new(workload: &'static str, transport: Option<Transport>, size: u64, work: Box<dyn Work>) -> Case {
        Case {
            workload,
            label: String::new(),
            transport,
            kind: "bytes",
            size,
            loan: false,
            reliable: true,
            history: "keep-last:1",
            multicast: false,
            wait: Wait::Block,
            pin: Pin::None,
            fifo: None,
            flood_cpu: None,
            link: false,
            queues: 1,
            mtu: ETHERNET_MTU,
            loss_permille: 0,
            period_ns: 0,
            warmup: if size < LARGE { 200 } else { 20 },
            count: 0,
            duration_ms: if size < LARGE { CLOSED_MS } else { CLOSED_LARGE_MS },
            least_ms: LEAST_MS,
            rounds: 3,
            in_turns: false,
            is_near: false,
            need: Need::Full,
            work,
        }
    }

    /// The amount of a round.
    pub fn amount(mut self, warmup: u64, count: u64, duration_ms: u64) -> Case {
        (self.warmup, self.count, self.duration_ms) = (warmup, count, duration_ms);
        self
    }

    /// What the user said, over what the workload has by itself; `scale` shortens the latter.
    pub fn with(mut self, options: &Options, scale: f64) -> Case {
        // It has no count of its own.
        let mut closed = self.count == 0;
        if let Some(rate_hz) = options.rate {
            self.period_ns = if rate_hz > 0.0 { (1e9 / rate_hz) as u64 } else { 0 };
            if rate_hz > 0.0 {
                // As in every open loop: a replaced sample would hide the stall that it waited for.
                self.history = "keep-all";
                if std::mem::take(&mut closed) {
                    (self.count, self.duration_ms) = (COUNT_MOST, OPEN_MS);
                }
            }
        }
        self.shorten(options, scale);
        match (options.count, options.duration) {
            (Some(count), None) => {
                let each_ms = COUNTED_EACH_MS.max(self.period_ns / 1_000_000);
                (self.count, self.duration_ms) = (count, COUNTED_MS + count * each_ms);
            }
            (None, Some(seconds)) => {
                self.duration_ms = (seconds * 1e3) as u64;
                self.count = if closed { closed_count(self.transport, self.duration_ms) } else { COUNT_MOST };
            }
            (Some(count), Some(seconds)) => (self.count, self.duration_ms) = (count, (seconds * 1e3) as u64),
            (None, None) if closed => self.count = closed_count(self.transport, self.duration_ms),
            (None, None) => {}
        }
        if let Some(period_count) = (self.duration_ms * 1_000_000).checked_div(self.period_ns) {
            self.count = self.count.min(period_count.max(1));
        }
        self.rounds = options.rounds.unwrap_or(self.rounds);
        self.wait = options.wait.unwrap_or(self.wait);
        if self.pin == Pin::None {
            self.pin = options.pin;
        }
        self.fifo = options.fifo.or(self.fifo);
        // What no column of a line says: lines that differ by it only would be taken for one.
        if options.fifo.is_some() {
            self.add_label("fifo");
        }
        if options.wait == Some(Wait::Inline) {
            self.add_label("inline");
        }
        // What crosses no network is the same beside it: no line says of it that it did.
        if self.work.has_ends() && self.transport.is_some_and(Transport::has_network) {
            self.set_link(options);
        }
        self.reliable = options.reliability.map_or(self.reliable, |kind| kind == Reliability::Reliable);
        self
    }

    /// The link that the user wants, which the line says.
    fn set_link(&mut self, options: &Options) {
        self.link |= options.link || options.mtu.is_some() || options.loss.is_some();
        if let Some(mtu) = options.mtu.filter(|mtu| *mtu != ETHERNET_MTU) {
            self.mtu = mtu;
            self.add_label(&format!("link mtu {mtu}"));
        }
        if let Some(percent) = options.loss.filter(|_| self.transport.is_some_and(Transport::is_lossy)) {
            self.loss_permille = (percent * 10.0).round() as u32;
            self.add_label(&format!("loss {percent} %"));
        } else if self.mtu == ETHERNET_MTU && (options.link || options.mtu.is_some()) {
            self.add_label("link");
        }
    }

    /// Leaves this share of what the workload has by itself.
    fn shorten(&mut self, options: &Options, scale: f64) {
        if scale >= 1.0 {
            return;
        }
        let scaled = |number: u64, least: u64| ((number as f64 * scale) as u64).max(least.min(number));
        let least_ms = if options.quick { LEAST_MS } else { self.least_ms };
        self.count = scaled(self.count, 200);
        self.duration_ms = scaled(self.duration_ms, least_ms);
        self.warmup = scaled(self.warmup, 50);
        self.rounds = scaled(u64::from(self.rounds), 3) as u32;
    }

    /// With a label.
    pub fn label(mut self, label: impl Into<String>) -> Case {
        self.label = label.into();
        self
    }

    fn add_label(&mut self, label: &str) {
        if self.label.split(' ').any(|word| word == label) {
            return;
        }
        if !self.label.is_empty() {
            self.label.push(' ');
        }
        self.label.push_str(label);
    }

    /// Samples per second that are asked for; 0 is as fast as possible.
    pub fn rate_hz(&self) -> f64 {
        rate_hz(self.period_ns)
    }

    /// Does it end by its time, however many samples that are?
    pub fn is_timed(&self) -> bool {
        self.period_ns == 0 && self.count >= closed_count(self.transport, self.duration_ms)
    }

    /// The QoS in words; empty where there is no sample on its way.
    pub fn qos(&self) -> String {
        if self.transport.is_none() {
            return String::new();
        }
        format!("{} {} volatile", self.reliability(), self.history)
    }

    fn reliability(&self) -> &'static str {
        if self.reliable { "reliable" } else { "best-effort" }
    }

    /// The name of its transport.
    pub fn transport_name(&self) -> String {
        name(&self.transport.unwrap_or(Transport::Thread))
    }

    /// Is this its line of the table? Where all lines are over a link the name goes without saying so.
    pub fn is_called(&self, line: &str) -> bool {
        self.label.trim_end_matches(" link") == line.trim_end_matches(" link")
    }

    /// Is it between two networks?
    pub fn needs_link(&self) -> bool {
        let by_device = [Transport::Xdp, Transport::XdpL2, Transport::Dpdk];
        self.link || self.transport.is_some_and(|transport| by_device.contains(&transport))
    }

    /// What all of its processes are told.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let yes = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        vec![
            ("transport", self.transport_name()),
            ("reliability", self.reliability().to_string()),
            ("history", self.history.to_string()),
            ("multicast", yes(self.multicast)),
            ("wait", name(&self.wait)),
            ("type", self.kind.to_string()),
            // Where there is no sample, entities have a type all the same.
            ("size", if self.size == 0 { 64 } else { self.size }.to_string()),
            ("loan", yes(self.loan)),
            ("warmup", self.warmup.to_string()),
            ("count", self.count.to_string()),
            ("duration-ms", self.duration_ms.to_string()),
            ("period-ns", self.period_ns.to_string()),
        ]
    }

    /// How a peer is told to wait: a mode that only some have is compared with what the others have instead.
    pub fn wait_of(&self, peer: &Peer) -> Wait {
        let has_inline = peer.info.waits.iter().any(|wait| *wait == name(&Wait::Inline));
        if self.wait == Wait::Inline && !has_inline { Wait::Block } else { self.wait }
    }

    /// Why this peer has no such line, by what it says of itself.
    pub fn obstacle(&self, peer: &Peer) -> Option<String> {
        let info = &peer.info;
        let lacks = |list: &[String], wanted: &str| !list.iter().any(|item| item == wanted);
        if self.is_near && !NEAR.contains(&peer.name.as_str()) {
            return Some(not_asked());
        }
        if let Some(transport) = self.transport.map(|transport| name(&transport))
            && lacks(&info.transports, &transport)
        {
            return Some(format!("no transport {transport}"));
        }
        if let Some(role) = self.work.roles().iter().find(|role| lacks(&info.roles, role)) {
            return Some(format!("no role {role}"));
        }
        if self.work.weighs() && !info.built_with.is_empty() {
            let more = info.built_with.join(" and ");
            return Some(format!(
                "built with {more}, which would be weighed as its own: build the adapter without"
            ));
        }
        if self.work.has_type() && lacks(&info.types, self.kind) {
            return Some(format!("no type {}", self.kind));
        }
        let wait = self.wait_of(peer);
        if wait != Wait::Block && self.transport.is_some() && lacks(&info.waits, &name(&wait)) {
            return Some(format!("no {}", name(&wait)));
        }
        if self.loan && !info.loan {
            return Some("no loans".to_string());
        }
        (self.multicast && !info.multicast).then(|| "no multicast".to_string())
    }

    /// The time that a round of one peer takes, roughly.
    pub fn estimate_s(&self) -> f64 {
        self.work.estimate_s(self)
    }
}
