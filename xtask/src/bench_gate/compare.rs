//! Counts against their baselines: a pure function of both, and its table.

use std::collections::BTreeMap;

use super::measure::Counts;
use crate::report;

/// How much more a path may take. Counts repeat to the instruction, but for up to 0.7 % where the clock
/// is read; the rest is room for code that moves because its neighbour changed. Higher lets a path get
/// dearer unseen, bit by bit; lower stops changes that mean nothing.
pub const BOUND_PERCENT: f64 = 2.0;
/// The same with another compiler, C library or Valgrind than the baselines were made with: two releases
/// of the compiler (1.95 and 1.97) moved single paths by up to 6 %. Higher sees nothing any more, lower
/// makes a new compiler look like a mistake of whoever comes first.
pub const OTHER_TOOLS_PERCENT: f64 = 10.0;
/// And never less than this many instructions: one more in a path of fifty is no regression.
const LEAST_INSTRUCTIONS: f64 = 4.0;

/// How much more a path may take beside topics or peers that it has nothing to do with, whatever its baseline. Counts repeat
/// to the instruction; the rest is room for a few more where a table is deeper. Higher lets a look at each of them in that is
/// short, lower stops what nobody notices.
const BESIDE_PERCENT: f64 = 0.5;
/// What comes behind the name of a path for those.
const BESIDE: &str = "-beside-";
/// Paths whose own work depends on what is there, and how much more they may take.
const DEEPER: [(&str, f64); 1] = [
    // It enters a writer into the tables of endpoints and of topics, which with a thousand of each are trees of more floors.
    ("core/on-frame/publication-beside-1000-topics", 10.0),
];

/// The bound that holds when the tools differ so.
pub fn bound(differences: &[String]) -> f64 {
    if differences.is_empty() { BOUND_PERCENT } else { OTHER_TOOLS_PERCENT }
}

/// What became of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Within the bound.
    Same,
    /// Dearer than the bound allows.
    More,
    /// Cheaper by more than the bound.
    Fewer,
    /// Has no baseline.
    New,
    /// Has only a baseline.
    Gone,
}

impl Verdict {
    /// Does the gate close?
    pub fn is_red(self) -> bool {
        matches!(self, Verdict::More | Verdict::New | Verdict::Gone)
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Same => "",
            Verdict::More => "MORE",
            Verdict::Fewer => "fewer",
            Verdict::New => "NEW",
            Verdict::Gone => "GONE",
        }
    }
}

/// One line of the table. *Units*: instructions per operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The path.
    pub name: String,
    /// What it took.
    pub baseline: Option<f64>,
    /// What it takes.
    pub now: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
}

impl Row {
    /// How much more or less it takes.
    pub fn change(&self) -> String {
        match (self.baseline, self.now) {
            // Adding 0 makes a 0 of -0.
            (Some(old), Some(now)) => format!("{:+.1} %", ((now - old) / old * 1_000.0).round() / 10.0 + 0.0),
            _ => "-".to_string(),
        }
    }
}

/// All paths in the order in which they were measured, then those that are gone.
pub fn compare(baselines: &BTreeMap<String, f64>, now: &Counts, percent: f64) -> Vec<Row> {
    let measured = now.iter().map(|(name, count)| {
        let baseline = baselines.get(name).copied();
        let verdict = baseline.map_or(Verdict::New, |baseline| judge(baseline, *count, percent));
        Row { name: name.clone(), baseline, now: Some(*count), verdict }
    });
    let gone = baselines.iter().filter(|(name, _)| !now.iter().any(|(other, _)| other == *name));
    let gone = gone.map(|(name, count)| Row {
        name: name.clone(),
        baseline: Some(*count),
        now: None,
        verdict: Verdict::Gone,
    });
    measured.chain(gone).collect()
}

fn judge(baseline: f64, now: f64, percent: f64) -> Verdict {
    let allowed = (baseline * percent / 100.0).max(LEAST_INSTRUCTIONS);
    match now - baseline {
        change if change > allowed => Verdict::More,
        change if change < -allowed => Verdict::Fewer,
        _ => Verdict::Same,
    }
}

/// Paths that take more beside others than by themselves, and how much more. *Units*: percent.
pub fn dearer_beside(counts: &Counts) -> Vec<(&str, f64)> {
    let alone = |name: &str| {
        let (alone, _) = name.split_once(BESIDE)?;
        counts.iter().find_map(|(other, count)| (other == alone).then_some(*count))
    };
    let more = counts.iter().filter_map(|(name, count)| {
        let alone = alone(name)?;
        let own = DEEPER.iter().find_map(|(deeper, percent)| (deeper == name).then_some(*percent));
        let is_dearer = count - alone > alone * own.unwrap_or(BESIDE_PERCENT) / 100.0;
        is_dearer.then_some((name.as_str(), (count / alone - 1.0) * 100.0))
    });
    more.collect()
}

/// Those for a person; nothing if there are none.
pub fn told_beside(counts: &Counts) -> Option<String> {
    let dearer = dearer_beside(counts);
    let each: Vec<String> = dearer.iter().map(|(name, more)| format!("{name} ({more:+.1} %)")).collect();
    (!each.is_empty()).then(|| {
        format!(
            "bench-gate: dearer beside what does not concern them than without: {}. Have each look at no more than \
             concerns it",
            each.join(", ")
        )
    })
}

/// Paths of which two measurements differ by more than `percent` and the least that counts.
pub fn unrepeatable(first: &Counts, second: &Counts, percent: f64) -> Vec<String> {
    let pairs = first.iter().zip(second);
    let odd = pairs.filter(|((_, a), (_, b))| judge(a.min(*b), a.max(*b), percent) != Verdict::Same);
    odd.map(|((name, a), (_, b))| format!("{name} ({a:.1} and {b:.1})")).collect()
}

/// The rows for a terminal.
pub fn table(rows: &[Row]) -> String {
    let mut cells = vec![["instructions", "baseline", "now", "change", ""].map(str::to_string).to_vec()];
    cells.extend(rows.iter().map(|row| {
        let number = |value: Option<f64>| value.map_or("-".to_string(), grouped);
        let word = row.verdict.word().to_string();
        vec![row.name.clone(), number(row.baseline), number(row.now), row.change(), word]
    }));
    report::table(&cells)
}

/// One decimal, and commas between thousands.
fn grouped(value: f64) -> String {
    let text = format!("{value:.1}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, "0"));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{out}.{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(baseline: f64, now: f64, percent: f64) -> Verdict {
        let rows = compare(&[("a".to_string(), baseline)].into(), &vec![("a".to_string(), now)], percent);
        rows[0].verdict
    }

    #[test]
    fn the_bound_holds_both_ways() {
        assert_eq!(verdict(1_000.0, 1_020.0, 2.0), Verdict::Same, "the bound itself is allowed");
        assert_eq!(verdict(1_000.0, 1_020.1, 2.0), Verdict::More);
        assert_eq!(verdict(1_000.0, 980.0, 2.0), Verdict::Same);
        assert_eq!(verdict(1_000.0, 979.9, 2.0), Verdict::Fewer);
        assert!(Verdict::More.is_red() && !Verdict::Fewer.is_red() && !Verdict::Same.is_red());
    }

    #[test]
    fn a_short_path_has_a_few_instructions_of_room() {
        assert_eq!(verdict(50.0, 54.0, 2.0), Verdict::Same);
        assert_eq!(verdict(50.0, 54.1, 2.0), Verdict::More);
    }

    #[test]
    fn other_tools_have_the_wider_bound() {
        assert_eq!(bound(&[]), BOUND_PERCENT);
        let wider = bound(&["rustc: 1, now 2".to_string()]);
        assert_eq!(wider, OTHER_TOOLS_PERCENT);
        assert_eq!(verdict(1_000.0, 1_099.0, wider), Verdict::Same);
        assert_eq!(verdict(1_000.0, 1_101.0, wider), Verdict::More);
    }

    #[test]
    fn what_has_no_partner_is_red() {
        let baselines = [("old".to_string(), 1.0), ("both".to_string(), 2.0)].into();
        let now = vec![("both".to_string(), 2.0), ("new".to_string(), 3.0)];
        let rows = compare(&baselines, &now, 2.0);
        let verdicts: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.verdict)).collect();
        assert_eq!(verdicts, [("both", Verdict::Same), ("new", Verdict::New), ("old", Verdict::Gone)]);
        assert!(Verdict::New.is_red() && Verdict::Gone.is_red());
    }

    #[test]
    fn what_does_not_concern_a_path_costs_it_nothing() {
        let beside = |name: &str, alone: f64, beside: f64| {
            let counts = vec![(name.to_string(), alone), (format!("{name}-beside-1000-topics"), beside)];
            dearer_beside(&counts).iter().map(|(name, _)| (*name).to_string()).collect::<Vec<_>>()
        };
        assert!(beside("core/write", 1_000.0, 1_005.0).is_empty(), "the bound itself is allowed");
        assert_eq!(beside("core/write", 1_000.0, 1_005.1), ["core/write-beside-1000-topics"]);
        assert!(beside("core/write", 1_000.0, 900.0).is_empty());
        assert!(beside("core/on-frame/publication", 1_000.0, 1_100.0).is_empty(), "its tables are deeper");
        assert_eq!(beside("core/on-frame/publication", 1_000.0, 1_101.0).len(), 1);
        let unpaired = vec![("core/read-beside-100-peers".to_string(), 9.0), ("core".to_string(), 1.0)];
        assert_eq!(told_beside(&unpaired), None);
        let dearer = vec![("a-beside-100-peers".to_string(), 110.0), ("a".to_string(), 100.0)];
        let told = told_beside(&dearer).unwrap();
        assert!(told.contains("than without: a-beside-100-peers (+10.0 %)"), "{told}");
    }

    #[test]
    fn what_does_not_repeat_is_named() {
        let counts = |round_trip| vec![("cdr".to_string(), 1_000.0), ("round-trip".to_string(), round_trip)];
        assert!(unrepeatable(&counts(18_000.0), &counts(18_050.0), 0.5).is_empty());
        assert_eq!(unrepeatable(&counts(18_200.0), &counts(18_000.0), 0.5).len(), 1);
    }

    #[test]
    fn a_table_for_a_terminal() {
        let baselines = [("core/write".to_string(), 2_778.3)].into();
        let now = vec![("core/write".to_string(), 2_889.4), ("wire/new".to_string(), 1_234_567.0)];
        assert!(
            table(&compare(&baselines, &vec![("core/write".to_string(), 2_778.2)], 2.0)).contains(" +0.0 %")
        );
        assert_eq!(
            table(&compare(&baselines, &now, 2.0)),
            "instructions  baseline          now  change\n\
             core/write     2,778.3      2,889.4  +4.0 %  MORE\n\
             wire/new             -  1,234,567.0       -   NEW\n"
        );
    }
}
