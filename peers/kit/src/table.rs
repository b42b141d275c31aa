//! The times of all samples, kept in memory until the run is over.

use std::io::Write;
use std::path::Path;

/// One record per sample: three times in nanoseconds, 0 where there is none.
pub struct Table(Vec<[u64; 3]>);

impl Table {
    /// Room for so many, touched page by page, so that no measured sample pays for a page fault.
    pub fn new(records: u64) -> Table {
        // Filling with zeros alone may map untouched pages.
        let mut table = vec![[1; 3]; records as usize];
        table.fill([0; 3]);
        Table(table)
    }

    /// The record of a sample, if there is room for it.
    pub fn get_mut(&mut self, seq: u64) -> Option<&mut [u64; 3]> {
        self.0.get_mut(usize::try_from(seq).ok()?)
    }

    /// The record of a sample; zeros if there is no room for it.
    pub fn get(&self, seq: u64) -> [u64; 3] {
        usize::try_from(seq).ok().and_then(|seq| self.0.get(seq)).copied().unwrap_or_default()
    }

    /// Writes the first so many records as little-endian bytes; nothing if no file is asked for.
    pub fn write(&self, path: &Path, records: u64) -> std::io::Result<()> {
        Table::write_in_turns(std::slice::from_ref(self), path, records.min(self.0.len() as u64))
    }

    /// The same of threads that have taken turns with the numbers.
    pub fn write_in_turns(tables: &[Table], path: &Path, records: u64) -> std::io::Result<()> {
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        let threads = tables.len().max(1) as u64;
        for seq in 0..records {
            for time_ns in tables[(seq % threads) as usize].get(seq / threads) {
                file.write_all(&time_ns.to_le_bytes())?;
            }
        }
        file.flush()
    }
}
