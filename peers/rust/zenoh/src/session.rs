//! A session of a domain, and how it finds the others.
//!
//! Zenoh knows only whether a publisher has any subscriber. So who serves announces itself with a
//! liveliness token once its own ends are matched; who starts traffic counts tokens.

use std::time::{Duration, Instant};

use taut_perf_kit::{Options, Stop};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Config, Session, Wait};

/// The others have as long to come as the driver would wait for them.
const MATCH_WITHIN: Duration = Duration::from_secs(30);

/// What a subscriber's channel holds, as its own default; a full one stops the thread that reads the link.
const CHANNEL: usize = 256;

/// A session.
pub struct Domain {
    session: Session,
}

impl Domain {
    /// Opens a session of the domain.
    pub fn open(options: &Options) -> Result<Domain, Stop> {
        let session = zenoh::open(config(options)?).wait().map_err(wrong)?;
        Ok(Domain { session })
    }

    /// The session itself.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Calls back for each sample.
    pub fn listen(
        &self,
        topic: &str,
        called: impl Fn(Sample) + Send + Sync + 'static,
    ) -> Result<Subscriber<()>, Stop> {
        self.session.declare_subscriber(topic.to_string()).callback(called).wait().map_err(wrong)
    }

    /// Keeps samples until they are taken.
    pub fn channel(&self, topic: &str) -> Result<Subscriber<FifoChannelHandler<Sample>>, Stop> {
        self.session
            .declare_subscriber(topic.to_string())
            .with(FifoChannel::new(CHANNEL))
            .wait()
            .map_err(wrong)
    }

    /// Says that this session's ends are there; whoever hears of it has heard of them before.
    pub fn announce(&self, options: &Options) -> Result<LivelinessToken, Stop> {
        self.session.liveliness().declare_token(format!("perf_ready/{}", options.index)).wait().map_err(wrong)
    }

    /// Says so when somebody takes what this publisher writes.
    pub fn announce_when_matched(
        &self,
        publisher: &Publisher<'static>,
        options: &Options,
    ) -> Result<(), Stop> {
        let listener = publisher.matching_listener().wait().map_err(wrong)?;
        let mut matching = publisher.matching_status().wait().map_err(wrong)?.matching();
        let (session, index) = (self.session.clone(), options.index);
        // It ends with the process; without the token the other side says what it waits for.
        std::thread::spawn(move || {
            while !matching {
                let Ok(status) = listener.recv() else { return };
                matching = status.matching();
            }
            if let Ok(token) = session.liveliness().declare_token(format!("perf_ready/{index}")).wait() {
                // Taken back at its end, so it has none.
                std::mem::forget(token);
            }
        });
        Ok(())
    }

    /// Waits until so many others have announced themselves and take what this publisher writes; for none, not at all.
    pub fn wait_for(&self, others: usize, publisher: &Publisher<'static>) -> Result<(), Stop> {
        if others == 0 {
            return Ok(());
        }
        let end = Instant::now() + MATCH_WITHIN;
        self.wait_announced(others, end)?;
        let matching = publisher.matching_listener().wait().map_err(wrong)?;
        while !publisher.matching_status().wait().map_err(wrong)?.matching() {
            if matching.recv_deadline(end).map_err(wrong)?.is_none() {
                return Err(Stop::Failed(format!("nobody takes what is written within {MATCH_WITHIN:?}")));
            }
        }
        Ok(())
    }

    /// Waits until so many have announced themselves, this session too if it has.
    pub fn wait_announced(&self, count: usize, end: Instant) -> Result<(), Stop> {
        let tokens = self.session.liveliness().declare_subscriber("perf_ready/*").history(true);
        let tokens = tokens.with(FifoChannel::new(CHANNEL)).wait().map_err(wrong)?;
        let mut found = std::collections::HashSet::new();
        while found.len() < count {
            let Some(token) = tokens.recv_deadline(end).map_err(wrong)? else {
                return Err(Stop::Failed(format!("{} of {count} within {MATCH_WITHIN:?}", found.len())));
            };
            match token.kind() {
                SampleKind::Put => found.insert(token.key_expr().to_string()),
                SampleKind::Delete => found.remove(token.key_expr().as_str()),
            };
        }
        Ok(())
    }

    /// When whoever waits for others gives up.
    pub fn end_of_wait() -> Instant {
        Instant::now() + MATCH_WITHIN
    }
}

fn config(options: &Options) -> Result<Config, Stop> {
    let link = if options.variant == "udp" { "udp" } else { "tcp" };
    let port = 20_000 + 50 * options.domain;
    let (address, interface) = (&options.address, &options.interface);
    let shm = options.transport == "shm";
    let alone = ["thread", "intra"].contains(&options.transport.as_str());
    let mut config = Config::default();
    for (key, value) in [
        ("mode", "\"peer\"".to_string()),
        // Else it would be found on each interface except loopback, where these runs are.
        ("listen/endpoints", if alone { "[]".into() } else { format!("[\"{link}/{address}:0\"]") }),
        ("scouting/multicast/enabled", (!alone).to_string()),
        ("scouting/multicast/address", format!("\"224.0.0.224:{port}\"")),
        ("scouting/multicast/interface", format!("\"{interface}\"")),
        ("transport/shared_memory/enabled", shm.to_string()),
    ] {
        config.insert_json5(key, &value).map_err(wrong)?;
    }
    Ok(config)
}

/// Its errors are boxed, which is no error type of its own.
pub fn wrong(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(error.to_string())
}
