//! What becomes of lines that were kept: a page, the pages of the documentation, a comparison.

use std::path::Path;

use crate::args::{CompareArguments, ReportArguments};
use crate::output::{note, print};
use crate::record::Record;
use crate::{Failure, Stop, Wrong, compare, performance, report, run_file};

/// Writes the page, or the pages of the documentation.
pub(crate) fn report(options: &ReportArguments, stop: Stop) -> Result<u8, Failure> {
    let records = read(&options.runs, stop)?;
    if let Some(docs) = &options.docs {
        let written = performance::write(&records, docs).map_err(|error| cannot_write(docs, &error))?;
        for path in written {
            print(&format!("{}\n", path.display()), stop)?;
        }
        return Ok(0);
    }
    std::fs::write(&options.out, report::page(&records))
        .map_err(|error| cannot_write(&options.out, &error))?;
    print(&format!("{}\n", options.out.display()), stop)?;
    Ok(0)
}

/// Prints what has changed; 1 if that is worse, see [`compare::Comparison::is_worse`].
///
/// *Errors*: nothing could be compared, which says nothing of what has changed.
pub(crate) fn compare(options: &CompareArguments, stop: Stop) -> Result<u8, Failure> {
    let (old, new) = (read(&[&options.old], stop)?, read(&[&options.new], stop)?);
    let comparison = compare::compare(&old, &new);
    print(&comparison.to_string(), stop)?;
    if comparison.is_empty() {
        let (old, new) = (options.old.display(), options.new.display());
        let text = if comparison.without_figure.is_empty() {
            format!(
                "no line has run both in {old} and in {new}: compare runs of the same workload, peers and options"
            )
        } else {
            format!(
                "no line has a figure both in {old} and in {new}: run those again that have none, as said above"
            )
        };
        return Err(Wrong::new(text).into());
    }
    Ok(u8::from(comparison.is_worse()))
}

fn read<P: AsRef<Path>>(paths: &[P], stop: Stop) -> Result<Vec<Record>, Wrong> {
    let lines = run_file::read(paths).map_err(|error| Wrong::new(error.to_string()))?;
    for warning in lines.warnings {
        note(&warning, stop);
    }
    Ok(lines.records)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Wrong {
    Wrong::new(format!("{} cannot be written: {error}; choose another place", path.display()))
}
