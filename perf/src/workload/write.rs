//! What a write costs the writer: paced, with one matched subscriber, best effort; by one thread, and by several that write at
//! one participant at the same time, each with a writer of its own.

use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::samples;
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::{self, delivered, exchange};
use crate::workload::{Figure, Round, Work, or, transports};

/// HDDS's sizes.
const SIZES: [u64; 3] = [64, 256, 1_024];

/// Slow enough for every queue to be empty at each write, fast enough for warm caches.
pub(super) const PERIOD_NS: u64 = 100_000;

/// Each size, and each number of threads.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for (at, size) in or(&options.sizes, &SIZES).into_iter().enumerate() {
            for threads in traffic::threads(at == 0) {
                let work = Box::new(Write { threads });
                let mut case = Case::new("write", Some(transport), size, work).amount(1_000, 10_000, 2_000);
                if threads > 1 {
                    case = case.label(traffic::of_threads(threads));
                }
                (case.reliable, case.period_ns, case.history) = (false, PERIOD_NS, "keep-all");
                cases.push(case.with(options, scale));
            }
        }
    }
    cases
}

struct Write {
    threads: u32,
}

impl Work for Write {
    fn roles(&self) -> &'static [&'static str] {
        traffic::one_way(self.threads)
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        let file = session.samples_file(0);
        let publisher = Start::near(self.roles()[0]).with("samples", file.display());
        // Its reader has to be matched with each of the writers, and to know in whose order what comes is.
        let publisher = publisher.with("threads", self.threads);
        let subscriber = Start::far("sub").with("samples", "").with("threads", self.threads);
        let ran = exchange(session, case, publisher, vec![subscriber], &mut |_| {})?;
        let records = samples::read(&file).map_err(Trouble::Failed)?;
        let _ = std::fs::remove_file(&file);
        let writes = samples::spans(&records, case.warmup).map_err(Trouble::Failed)?;
        if writes.is_empty() {
            return Err(Trouble::failed("nothing was written"));
        }
        Ok(Round {
            samples: writes.len() as u64,
            cpu_samples: records.len() as u64,
            times: vec![(Figure::Write, writes)],
            usage: ran.usage,
            wait: ran.wait,
            flaw: ran.flaw,
            ..delivered(&ran.sender, &ran.servers[0])
        })
    }
}
