//! Reads what `--save` has written: JSON lines, one [`Record`] each; or the same packed, as the documentation
//! keeps its run.
//!
//! Says which line of which file is wrong. A run that was ended may have left half a line: the last line
//! of a file is left out with a warning if its end is missing, any other broken line is an error.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::record::{Outcome, Record};
use crate::report::peers;

/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file that is larger, packed or not, is refused: more than any run has, and less than a machine's memory.
const LARGEST: u64 = 1 << 30;

/// A line that counts more was made up, or broken: no run has a thousandth of it, and the counts of all lines that there
/// is room for can be added.
const MOST: u64 = 1 << 48;

/// What to do about a file that is none.
const REMEDY: &str = "name a file that `taut perf ... --save FILE` has written";

/// The lines of some files.
#[derive(Debug, Default)]
pub struct Lines {
    /// In the order of the files.
    pub records: Vec<Record>,
    /// What was left out, for the user.
    pub warnings: Vec<String>,
}

/// Why a file was not read.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    line: Option<usize>,
    reason: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(out, "{path}, line {line}: {}; {REMEDY}", self.reason),
            None => write!(out, "{path}: {}; {REMEDY}", self.reason),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads all files.
///
/// *Errors*: a file that cannot be read, is not text, holds a line that is no record, or holds none.
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Lines, ReadError> {
    let mut all = Lines::default();
    for path in paths {
        let path = path.as_ref();
        let failed = |reason: String| ReadError { path: path.to_path_buf(), line: None, reason };
        let bytes = File::open(path).and_then(|file| bounded(file, LARGEST)).and_then(unpacked);
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("not text in UTF-8".to_string()))?;
        let lines = parse(path, &text)?;
        if lines.records.is_empty() {
            return Err(failed("holds no line of a run".into()));
        }
        all.records.extend(lines.records);
        all.warnings.extend(lines.warnings);
    }
    Ok(all)
}

fn unpacked(bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    bounded(MultiGzDecoder::new(&bytes[..]), LARGEST)
}

/// All bytes, of a source that may have no end.
fn bounded(source: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let len = source.take(most + 1).read_to_end(&mut all)?;
    if len as u64 > most {
        return Err(std::io::Error::other(format!("larger than {} MiB", most >> 20)));
    }
    Ok(all)
}

/// The lines without their distributions and series, with the ratios of one adapter only, and without what a
/// process that failed had written last: what tables and pictures of the documentation are made from, small
/// enough to be kept, and free of the machine's paths. The same lines give the same bytes.
pub fn packed(records: &[Record], subject: &str) -> std::io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    for record in records {
        let mut short = Record { histogram: Vec::new(), series: Vec::new(), ..record.clone() };
        if peers::adapter(&short.peer) != subject {
            short.ratio.clear();
        }
        if let Outcome::Failed(reason) = &mut short.outcome {
            reason.truncate(without_tail(reason).len());
        }
        if let Some(failure) = &mut short.failure {
            failure.truncate(without_tail(failure).len());
        }
        serde_json::to_writer(&mut out, &short)?;
        out.write_all(b"\n")?;
    }
    out.finish()
}

/// Why something failed, without the last lines of its stderr that the driver has put behind it.
pub(crate) fn without_tail(reason: &str) -> &str {
    reason.split_once(" [").map_or(reason, |(reason, _)| reason)
}

fn parse(path: &Path, text: &str) -> Result<Lines, ReadError> {
    let mut lines = Lines::default();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(record) if !counts_are_possible(&record) => {
                let reason = format!("not a line of a run: it counts more than {MOST}");
                return Err(ReadError { path: path.to_path_buf(), line: Some(at + 1), reason });
            }
            Ok(record) => lines.records.push(record),
            // Whoever writes ends each line: without an end it is the last one, cut off.
            Err(_) if !line.ends_with('\n') => lines.warnings.push(format!(
                "{}, line {}: ends in the middle, left out; the run was ended while it wrote",
                path.display(),
                at + 1
            )),
            Err(error) => {
                let reason = format!("not a line of a run: {}", without_position(&error));
                return Err(ReadError { path: path.to_path_buf(), line: Some(at + 1), reason });
            }
        }
    }
    Ok(lines)
}

/// Can what is added and multiplied of a line be that of a run?
fn counts_are_possible(record: &Record) -> bool {
    let Record { samples, lost, refused, late, out_of_order, duplicates, corrupt, .. } = *record;
    let mut counts = vec![samples, lost, refused, late, out_of_order, duplicates, corrupt];
    counts.extend(record.expected);
    counts.extend(record.paces.iter().flat_map(|pace| [pace.demand, pace.expected, pace.lost]));
    counts.extend(record.histogram.iter().map(|(_, samples)| *samples));
    counts.extend(record.memory.iter().map(|of| of.count.saturating_mul(of.bytes_each.unsigned_abs())));
    counts.into_iter().all(|count| count <= MOST)
}

/// The parser counts lines from the text it was given, which is one line: only the column says something.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    format!("{message} (column {})", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"workload":"latency","peer":"taut","version":"0.1.0","transport":"udp","wait":"listener","pin":"same","size_bytes":64,"rate_hz":0.0,"qos":"","case":"","status":"absent","reason":"not built","rounds":0,"samples":0,"lost":0,"out_of_order":0,"duplicates":0,"corrupt":0,"round_values":[],"run":{"id":"","started":"","command":"","taut":"","cpu":"","cores":1,"kernel":"","governor":"","notes":[]}}"#;

    fn of(text: &str) -> Result<Lines, ReadError> {
        parse(Path::new("old.jsonl"), text)
    }

    #[test]
    fn a_packed_run_is_read_again_without_its_distributions() {
        let mut record = of(&format!("{GOOD}\n")).unwrap().records.remove(0);
        record.histogram = vec![(7, 1)];
        record.outcome = Outcome::Failed("it broke [thread at /a/path/of/this/machine]".into());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.gz");
        std::fs::write(&file, packed(&[record.clone(), record], "taut").unwrap()).unwrap();
        let records = read(&[&file]).unwrap().records;
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| record.peer == "taut" && record.histogram.is_empty()));
        assert!(records.iter().all(|record| record.outcome == Outcome::Failed("it broke".into())));
    }

    #[test]
    fn packed_runs_behind_each_other_are_all_read() {
        let record = of(GOOD).unwrap().records.remove(0);
        let other = Record { peer: "floor".into(), ..record.clone() };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("both.gz");
        let both = [packed(&[record], "taut").unwrap(), packed(&[other], "taut").unwrap()].concat();
        std::fs::write(&file, both).unwrap();
        let peers: Vec<String> =
            read(&[&file]).unwrap().records.into_iter().map(|record| record.peer).collect();
        assert_eq!(peers, ["taut", "floor"]);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = of(&format!("{GOOD}\n\n{{\"workload\":1}}\n{GOOD}\n")).unwrap_err().to_string();
        assert!(error.starts_with("old.jsonl, line 3: not a line of a run: invalid type"), "{error}");
        assert!(!error.contains("at line 1"), "{error}");
        let error = of(&format!("{GOOD}\n{}\n", &GOOD[..40])).unwrap_err().to_string();
        assert!(error.contains("line 2"), "a whole line that is broken is no cut: {error}");
    }

    #[test]
    fn half_a_last_line_is_a_warning() {
        let lines = of(&format!("{GOOD}\n{}", &GOOD[..120])).unwrap();
        assert_eq!((lines.records.len(), lines.warnings.len()), (1, 1));
        assert!(lines.warnings[0].starts_with("old.jsonl, line 2: ends in the middle"));
        assert_eq!(of(GOOD).unwrap().records.len(), 1, "only its end is missing");
    }

    #[test]
    fn counts_that_no_run_has_are_refused() {
        let memory = r#""memory":[{"entity":"writer","count":4294967295,"bytes_each":4294967295,"threads":1,"descriptors":1}]"#;
        for made_up in ["\"samples\":18446744073709551615", "\"lost\":281474976710657", memory] {
            let key = made_up.split_once(':').unwrap().0;
            let line = match GOOD.contains(key) {
                true => GOOD.replacen(&format!("{key}:0"), made_up, 1),
                false => GOOD.replacen('{', &format!("{{{made_up},"), 1),
            };
            let error = of(&format!("{GOOD}\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("old.jsonl, line 2: not a line of a run: it counts more"), "{error}");
        }
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let zeros = |most| bounded(std::io::repeat(0).take(most), 2 << 20);
        assert_eq!(zeros(2 << 20).unwrap().len(), 2 << 20);
        assert_eq!(zeros(u64::MAX).unwrap_err().to_string(), "larger than 2 MiB");
    }

    #[test]
    fn a_file_that_says_nothing_is_an_error() {
        let file = std::env::temp_dir().join(format!("taut-perf-empty-{}.jsonl", std::process::id()));
        std::fs::write(&file, "\n").unwrap();
        let error = read(std::slice::from_ref(&file)).unwrap_err().to_string();
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        let no_text = read(std::slice::from_ref(&file)).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains("holds no line") && no_text.contains("not text"), "{error}; {no_text}");
        assert!(read(&[&file]).unwrap_err().to_string().contains("No such file"));
    }
}
