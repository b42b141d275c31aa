//! The file of times that an adapter leaves: read, checked, and cut into what is measured.

use std::fmt::Display;
use std::path::Path;

/// A file this large is 40 million samples: more than a run asks for, and still bounded.
const FILE_MOST: u64 = 1 << 30;

/// The bytes of a record: three times.
const RECORD: usize = 24;

/// Times of a ping or of a local round trip.
#[derive(Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// `(sent, round trip)` of each answered sample.
    pub rtt: Vec<(u64, u64)>,
    /// `(sent, first way)` of each sample whose arrival on the other side is known.
    pub one_way: Vec<(u64, u64)>,
    /// Sent and never answered.
    pub lost: u64,
    /// Answered after a later one.
    pub out_of_order: u64,
}

/// Times of a stream in bursts.
#[derive(Debug, Default, PartialEq)]
pub struct Bursts {
    /// `(sent, until it was taken)` of each sample.
    pub samples: Vec<(u64, u64)>,
    /// `(its first sample sent, until all of it was taken)` of each burst that arrived whole.
    pub whole: Vec<(u64, u64)>,
}

/// Reads the records; what is no such file is an error in words.
pub fn read(path: &Path) -> Result<Vec<[u64; 3]>, String> {
    let length = std::fs::metadata(path).map_err(|error| format!("no file of samples: {error}"))?.len();
    if length > FILE_MOST {
        return Err(format!("a file of samples of {length} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("no file of samples: {error}"))?;
    if bytes.len() % RECORD != 0 {
        return Err(format!("a file of samples of {length} bytes, which is no multiple of {RECORD}"));
    }
    let time = |record: &[u8], at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(word)
    };
    Ok(bytes.chunks_exact(RECORD).map(|r| [time(r, 0), time(r, 8), time(r, 16)]).collect())
}

/// The round trips of a ping's records, without the warm-up.
pub fn round_trips(records: &[[u64; 3]], warmup: u64) -> Result<RoundTrips, String> {
    let mut trips = RoundTrips::default();
    let mut newest_ns = 0;
    for (seq, &[sent_ns, seen_ns, taken_ns]) in records.iter().enumerate().skip(warmup as usize) {
        if sent_ns == 0 {
            return Err(format!("sample {seq} was never sent"));
        }
        if taken_ns == 0 {
            trips.lost += 1;
            continue;
        }
        trips.rtt.push((sent_ns, after(seq, sent_ns, taken_ns)?));
        if seen_ns != 0 {
            trips.one_way.push((sent_ns, after(seq, sent_ns, seen_ns)?));
        }
        trips.out_of_order += u64::from(taken_ns < newest_ns);
        newest_ns = newest_ns.max(taken_ns);
    }
    Ok(trips)
}

/// `(counts from, how long after it was due)` of each sample of an open loop, without the warm-up.
pub fn overslept(
    records: &[[u64; 3]],
    warmup: u64,
    start_ns: u64,
    period_ns: u64,
) -> Result<Vec<(u64, u64)>, String> {
    let measured = records.iter().enumerate().skip(warmup as usize);
    let late = |(seq, &[counts_from_ns, ..]): (usize, &[u64; 3])| {
        let due_ns = start_ns + seq as u64 * period_ns;
        let late_ns = counts_from_ns.checked_sub(due_ns);
        Ok((counts_from_ns, late_ns.ok_or_else(|| format!("sample {seq} counts from before it was due"))?))
    };
    measured.map(late).collect()
}

/// `(start, time)` from the first to the third time of each record, without the warm-up.
pub fn spans(records: &[[u64; 3]], warmup: u64) -> Result<Vec<(u64, u64)>, String> {
    let measured = records.iter().enumerate().skip(warmup as usize);
    measured.map(|(seq, &[start, _, end])| Ok((start, after(seq, start, end)?))).collect()
}

/// The times of a subscriber's records, where each burst has so many samples.
pub fn bursts(records: &[[u64; 3]], demand: u64) -> Result<Bursts, String> {
    let mut records = records.to_vec();
    records.sort_unstable_by_key(|[_, seq, _]| *seq);
    let mut times = Bursts::default();
    for burst in records.chunk_by(|[_, a, _], [_, b, _]| a / demand == b / demand) {
        for &[sent_ns, seq, taken_ns] in burst {
            if sent_ns == 0 {
                return Err(format!("sample {seq} was never sent"));
            }
            times.samples.push((sent_ns, after(seq, sent_ns, taken_ns)?));
        }
        if burst.len() as u64 == demand {
            let (begin_ns, end_ns) = (burst[0][0], burst.iter().map(|record| record[2]).max());
            times.whole.push((begin_ns, after(burst[0][1], begin_ns, end_ns.unwrap_or(0))?));
        }
    }
    Ok(times)
}

fn after(seq: impl Display, start_ns: u64, end_ns: u64) -> Result<u64, String> {
    end_ns.checked_sub(start_ns).ok_or_else(|| format!("sample {seq} ends before it starts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_cut_loss_and_order_are_seen() {
        let records = [[100, 150, 900], [200, 250, 300], [400, 0, 0], [500, 0, 800], [600, 650, 700]];
        let trips = round_trips(&records, 1).unwrap();
        assert_eq!(trips.rtt, [(200, 100), (500, 300), (600, 100)]);
        assert_eq!(trips.one_way, [(200, 50), (600, 50)]);
        assert_eq!((trips.lost, trips.out_of_order), (1, 1));
        assert_eq!(round_trips(&records, 9).unwrap(), RoundTrips::default());
    }

    #[test]
    fn what_was_overslept_is_from_due_to_where_a_sample_counts_from() {
        let records = [[1_000, 0, 0], [1_130, 0, 0], [1_200, 0, 0]];
        assert_eq!(overslept(&records, 1, 1_000, 100), Ok(vec![(1_130, 30), (1_200, 0)]));
        assert!(overslept(&records, 1, 1_001, 100).is_err(), "the last one counts from before it was due");
    }

    #[test]
    fn a_burst_is_there_with_its_latest_sample() {
        // Its second overtakes its first; of the next the second is lost; of the last the first.
        let records =
            [[110, 5, 150], [100, 4, 170], [120, 6, 130], [205, 8, 225], [300, 10, 301], [310, 11, 390]];
        let records = [&records[..], &[[130, 7, 160], [400, 13, 500]]].concat();
        let times = bursts(&records, 2).unwrap();
        assert_eq!(times.whole, [(100, 70), (120, 40), (300, 90)]);
        let of_samples = [70, 40, 10, 30, 20, 1, 80, 100];
        assert!(times.samples.iter().map(|(_, ns)| *ns).eq(of_samples), "{times:?}");
        assert!(times.samples.is_sorted(), "a distribution is of times that ascend: {times:?}");
        assert_eq!(bursts(&[], 2).unwrap(), Bursts::default());
        assert!(bursts(&[[200, 4, 100]], 1).is_err() && bursts(&[[0, 4, 100]], 1).is_err());
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        assert!(round_trips(&[[200, 0, 100]], 0).is_err());
        assert!(round_trips(&[[0, 0, 100]], 0).is_err());
        assert!(spans(&[[200, 0, 100]], 0).is_err());
        assert_eq!(spans(&[[9, 0, 9], [200, 0, 300]], 1), Ok(vec![(200, 100)]));
    }

    #[test]
    fn a_file_has_whole_records() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples");
        assert!(read(&path).is_err());
        std::fs::write(&path, [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            .unwrap();
        assert_eq!(read(&path), Ok(vec![[1, 2, 256]]));
        std::fs::write(&path, [0; 25]).unwrap();
        assert!(read(&path).is_err());
    }
}
