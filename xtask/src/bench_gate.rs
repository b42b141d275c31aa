//! The gate of instruction counts: `cargo xtask bench-gate`.
//!
//! Owns what is compared with what and what is printed. The counts are callgrind's, of the program
//! `perf/gate`: they are the same on a busy machine as on a quiet one, so a small bound holds. What an
//! instruction costs, and the kernel's part, they do not tell: that is for `taut perf`.

mod baseline;
mod compare;
mod measure;

use std::collections::BTreeMap;
use std::path::Path;

use baseline::{Baselines, FILE, Record};
use compare::{Row, Verdict, compare};
use measure::{Counts, Gate};

/// Measurements of one path by two runs of `--write` may differ by this much. Counts without a clock are
/// equal to the instruction; seven of eight of the round trip differ by 0.1 %, one by 0.7 %, with five busy threads a
/// processor as without, as what the clock makes due may fall into a round that is held up.
/// Higher stores a baseline of its kind, lower refuses a quiet one.
const REPEATABLE_PERCENT: f64 = 1.0;

/// What looks too dear is measured so often again. Less lets a busy machine close the gate, more makes a
/// change that is too dear known later.
const AGAIN: usize = 3;

const REMEDY: &str = "cargo xtask bench-gate --write";

/// Measures and compares; true if nothing is above its bound.
pub fn run(root: &Path) -> Result<bool, String> {
    let gate = Gate::build(root)?;
    let target = gate.target()?;
    let stored = Baselines::load(root)?;
    let Some(old) = stored.of(&target) else {
        return Err(format!(
            "bench-gate: {FILE} has no counts for {target}: nothing was compared. Store them with `{REMEDY}`"
        ));
    };
    let differences = old.differences(&gate.tools()?);
    let bound = compare::bound(&differences);
    let mut now = gate.measure()?;
    measure_again(&gate, old, &mut now, bound)?;
    let rows = compare(&old.counts, &now, bound);
    print!("{}", compare::table(&rows));
    print!("{}", summary(&rows, bound, &differences));
    let beside = compare::told_beside(&now);
    beside.iter().for_each(|text| println!("{text}"));
    Ok(beside.is_none() && !rows.iter().any(|row| row.verdict.is_red()))
}

/// What looks too dear is measured again, and the lowest count stands: only the clock can make two runs
/// differ, and it only adds.
fn measure_again(gate: &Gate, old: &Record, now: &mut Counts, bound: f64) -> Result<(), String> {
    for _ in 0..AGAIN {
        let rows = compare(&old.counts, now, bound);
        let beside = compare::dearer_beside(now);
        let dear = |name: &str| {
            rows.iter().any(|row| row.name == name && row.verdict == Verdict::More)
                || beside.iter().any(|(other, _)| *other == name)
        };
        let again = gate.measure_some(dear)?;
        for (name, count) in now.iter_mut() {
            if let Some((_, second)) = again.iter().find(|(other, _)| other == name) {
                *count = count.min(*second);
            }
        }
    }
    Ok(())
}

/// Measures twice and stores the lower counts.
pub fn write(root: &Path) -> Result<bool, String> {
    let gate = Gate::build(root)?;
    let (first, second) = (gate.measure()?, gate.measure()?);
    let odd = compare::unrepeatable(&first, &second, REPEATABLE_PERCENT);
    if !odd.is_empty() {
        return Err(format!(
            "bench-gate: not stored, as two runs differ by more than {REPEATABLE_PERCENT} %: {}. Try again on \
             a quieter machine; if it stays so, the path does something that is not the same each time",
            odd.join(", ")
        ));
    }
    let counts = first.iter().zip(&second).map(|((name, a), (_, b))| (name.clone(), a.min(*b)));
    let counts = to_store(counts.collect())?;
    let mut stored = Baselines::load(root)?;
    stored.put(&gate.target()?, Record { tools: gate.tools()?, counts });
    stored.store(root)?;
    println!("bench-gate: {} counts stored in {FILE}", first.len());
    Ok(true)
}

/// What becomes a baseline, if it may: what a path costs beside others is no question of what it did before.
fn to_store(counts: Counts) -> Result<BTreeMap<String, f64>, String> {
    match compare::told_beside(&counts) {
        None => Ok(counts.into_iter().collect()),
        Some(text) => Err(format!("{text}. Nothing was stored")),
    }
}

fn summary(rows: &[Row], bound: f64, differences: &[String]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (more, fewer) = (count(Verdict::More), count(Verdict::Fewer));
    let (new, gone) = (count(Verdict::New), count(Verdict::Gone));
    let mut text = format!(
        "bench-gate: {} paths, bound {bound} %: {more} above, {fewer} below, {new} without a baseline, {gone} gone\n",
        rows.len()
    );
    if !differences.is_empty() {
        text += &format!(
            "bench-gate: NOT held to {} %: the baselines come from other tools ({}), and counts move with them.\n\
             Once this is the set of tools to stay with, store its counts: {REMEDY}\n",
            compare::BOUND_PERCENT,
            differences.join("; ")
        );
    }
    if more > 0 {
        let dear = rows.iter().filter(|row| row.verdict == Verdict::More);
        let each: Vec<String> = dear.map(|row| format!("{} ({})", row.name, row.change())).collect();
        text += &format!(
            "Make what is above its bound cheaper again, {}; if it is worth its price, say why in the commit that \
             stores it: {REMEDY}\n",
            each.join(", ")
        );
    }
    if new + gone > 0 || (fewer > 0 && differences.is_empty()) {
        text += &format!("Store the counts, so that the next change is compared with them: {REMEDY}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(old: f64, now: f64, bound: f64) -> Vec<Row> {
        compare(&[("a".to_string(), old)].into(), &vec![("a".to_string(), now)], bound)
    }

    #[test]
    fn what_is_dearer_beside_others_is_no_baseline() {
        let counts = |beside| vec![("a".to_string(), 1_000.0), ("a-beside-100-peers".to_string(), beside)];
        assert_eq!(to_store(counts(1_005.0)).map(|stored| stored.len()), Ok(2));
        assert!(to_store(counts(1_006.0)).is_err_and(|text| text.contains("Nothing was stored")));
    }

    #[test]
    fn what_is_stored_is_no_dearer_beside_others() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let stored = Baselines::load(&root).unwrap();
        let mut counts = 0;
        for record in stored.all() {
            let stored: Counts = record.counts.clone().into_iter().collect();
            assert_eq!(compare::told_beside(&stored), None);
            counts += stored.iter().filter(|(name, _)| name.contains("-beside-")).count();
        }
        assert!(counts > 0, "there are such");
    }

    #[test]
    fn the_summary_says_what_to_do() {
        let quiet = summary(&rows(100.0, 101.0, 2.0), 2.0, &[]);
        assert_eq!(quiet.lines().count(), 1, "{quiet}");
        assert!(summary(&rows(100.0, 110.0, 2.0), 2.0, &[]).contains("cheaper again, a (+10.0 %);"));
        assert!(summary(&rows(100.0, 90.0, 2.0), 2.0, &[]).contains("Store the counts"));
        let other = summary(&rows(100.0, 109.0, 10.0), 10.0, &["rustc: 1, now 2".to_string()]);
        assert!(other.contains("NOT held to 2 %") && other.contains("rustc: 1, now 2"), "{other}");
    }
}
