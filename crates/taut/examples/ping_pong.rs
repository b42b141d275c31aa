//! Round trips between two processes: `ping_pong pong &` and `ping_pong ping [SIZE] [COUNT]`.
//! Both on the interface of `TAUT_INTERFACE`, or loopback.

use std::time::Instant;

use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

#[derive(DdsType)]
#[dds(final)]
struct Payload {
    bytes: Vec<u8>,
}

fn main() -> taut::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let ping = args.get(1).is_some_and(|role| role == "ping");
    let number = |at: usize, default: usize| args.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (size, count) = (number(2, 64), number(3, 10_000));
    let interface = std::env::var("TAUT_INTERFACE").unwrap_or("lo".into());
    let config = Config { domain_id: 42, interfaces: vec![interface], ..Config::default() };
    let participant = DomainParticipant::with_config(&config)?;
    let qos = || Qos::default().reliable();
    let (out, back) = if ping { ("Ping", "Pong") } else { ("Pong", "Ping") };
    let writer = participant.topic::<Payload>(out)?.writer(qos())?;
    let reader = participant.topic::<Payload>(back)?.reader(qos())?;
    writer.wait_matched(Duration::from_secs(10))?;
    reader.wait_matched(Duration::from_secs(10))?;
    if !ping {
        while reader.wait(Duration::from_secs(5)).is_ok() {
            while let Some(sample) = reader.take_next()? {
                if let Some(data) = sample.data {
                    writer.write(&data)?;
                }
            }
        }
        return Ok(());
    }
    let mut times = Vec::with_capacity(count);
    let payload = Payload { bytes: vec![1; size] };
    let warm_up = count / 10;
    let mut before = participant.stats();
    for n in 0..count + warm_up {
        if n == warm_up {
            before = participant.stats();
        }
        let start = Instant::now();
        writer.write(&payload)?;
        while reader.take_next()?.is_none() {
            reader.wait(Duration::from_secs(5))?;
        }
        if n >= warm_up {
            times.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    let after = participant.stats();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let per = |now: u64, then: u64| (now - then) as f64 / count as f64;
    println!(
        "{size} B: p50 {:.1} p99 {:.1} max {:.1} us; per round trip: tokens {:.2}, sends {:.2}, receives {:.2}, kicks {:.3}",
        at(0.5),
        at(0.99),
        at(1.0),
        per(after.tokens, before.tokens),
        per(after.port.send_calls, before.port.send_calls),
        per(after.port.receive_calls, before.port.receive_calls),
        per(after.kicks, before.kicks),
    );
    Ok(())
}
