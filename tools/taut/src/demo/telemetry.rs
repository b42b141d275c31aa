//! This machine's telemetry: what `/proc` says, as metrics.

use std::collections::VecDeque;

use procfs::{Current, CurrentSI, KernelStats, LoadAverage, Meminfo};

use crate::failure::Failure;
use crate::types::Metric;

/// CPU use is that of the last so many ticks: at 100 Hz a second. The kernel counts in hundredths of a
/// second, so fewer make the values jump, more make them late.
const WINDOW: usize = 100;

/// One CPU's time so far, in the kernel's ticks.
#[derive(Clone, Copy)]
struct CpuTicks {
    busy: u64,
    all: u64,
}

impl From<&procfs::CpuTime> for CpuTicks {
    fn from(time: &procfs::CpuTime) -> Self {
        let idle = time.idle + time.iowait.unwrap_or(0);
        let interrupts = time.irq.unwrap_or(0) + time.softirq.unwrap_or(0) + time.steal.unwrap_or(0);
        let busy = time.user + time.nice + time.system + interrupts;
        CpuTicks { busy, all: busy + idle }
    }
}

/// Reads the machine and counts the samples of each name.
pub struct Telemetry {
    /// All CPUs together, then each of them; the oldest reading first.
    readings: VecDeque<Vec<CpuTicks>>,
    /// The number of the next samples.
    seq: u64,
}

impl Telemetry {
    /// Reads once, so that the first sample has something to compare with.
    pub fn new() -> Result<Telemetry, Failure> {
        let mut telemetry = Telemetry { readings: VecDeque::with_capacity(WINDOW + 1), seq: 0 };
        telemetry.read_cpus().map_err(unreadable)?;
        Ok(telemetry)
    }

    /// One sample of each metric, as of now; who sends it enters the time.
    pub fn next(&mut self) -> Result<Vec<Metric>, Failure> {
        let values = self.values().map_err(unreadable)?;
        let seq = self.seq;
        self.seq += 1;
        let metric = |(name, value, unit): (String, f64, &str)| Metric {
            name,
            seq,
            sent_unix_ns: 0,
            value,
            unit: unit.to_owned(),
        };
        Ok(values.into_iter().map(metric).collect())
    }

    fn read_cpus(&mut self) -> procfs::ProcResult<()> {
        let stats = KernelStats::current()?;
        let cpus = std::iter::once(&stats.total).chain(&stats.cpu_time).map(CpuTicks::from).collect();
        if self.readings.len() > WINDOW {
            self.readings.pop_front();
        }
        self.readings.push_back(cpus);
        Ok(())
    }

    fn values(&mut self) -> procfs::ProcResult<Vec<(String, f64, &'static str)>> {
        self.read_cpus()?;
        let mut values = Vec::new();
        if let (Some(old), Some(new)) = (self.readings.front(), self.readings.back()) {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                let name = if index == 0 { "cpu/total".to_owned() } else { format!("cpu/{}", index - 1) };
                let all = new.all.saturating_sub(old.all).max(1);
                values.push((name, 100.0 * new.busy.saturating_sub(old.busy) as f64 / all as f64, "%"));
            }
        }
        let memory = Meminfo::current()?;
        let available = memory.mem_available.unwrap_or(memory.mem_free);
        values.push(("memory/used".to_owned(), memory.mem_total.saturating_sub(available) as f64, "B"));
        values.push(("memory/available".to_owned(), available as f64, "B"));
        values.push(("load/1min".to_owned(), f64::from(LoadAverage::current()?.one), ""));
        let (mut received, mut sent) = (0, 0);
        for device in procfs::net::dev_status()?.values() {
            received += device.recv_bytes;
            sent += device.sent_bytes;
        }
        values.push(("net/received".to_owned(), received as f64, "B"));
        values.push(("net/sent".to_owned(), sent as f64, "B"));
        Ok(values)
    }
}

fn unreadable(error: procfs::ProcError) -> Failure {
    Failure::System(format!("the machine's telemetry cannot be read: {error}; is /proc mounted?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_cpus_memory_and_load() {
        let mut telemetry = Telemetry::new().unwrap();
        for seq in 0..3 {
            let metrics = telemetry.next().unwrap();
            let value =
                |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value);
            assert!((0.0..=100.0).contains(&value("cpu/0").unwrap()));
            assert!(value("memory/used").unwrap() > 0.0);
            assert!(value("load/1min").is_some() && value("net/sent").is_some());
            assert!(metrics.iter().all(|metric| metric.seq == seq && metric.name.len() <= 64));
        }
    }
}
