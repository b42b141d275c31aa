//! The tables: where the subject is not ahead, all ratios, all figures, what is missing, cdr, memory.

use maud::{Markup, html};

use crate::half::Half;
use crate::record::{Outcome, Record};
use crate::report::gains::{Gain, Standing, gaps};
use crate::report::model::{Group, Model, failed_rounds, main_times, remark};
use crate::report::peers;
use crate::report::units::{bytes, percent, rate, size, thousands, time, times};

/// A line of a run in words: what was measured.
pub(crate) fn what(group: &Group, record: &Record) -> String {
    what_of(group, record, None)
}

/// The same of a half of it.
pub(crate) fn what_of(group: &Group, record: &Record, half: Option<Half>) -> String {
    let half = half.map_or_else(String::new, |half| format!(" {}", half.word()));
    let mut words = vec![format!("{}{half}", record.workload)];
    if record.size_bytes > 0 {
        words.push(size(record.size_bytes));
    }
    words.push(group.title.clone());
    let rest: Vec<&str> =
        record.case.split_whitespace().filter(|word| !group.key.case.contains(word)).collect();
    if !rest.is_empty() {
        words.push(rest.join(" "));
    }
    words.join(" · ")
}

fn interval(gain: &Gain) -> String {
    let shown = |(low, high)| format!("{}{} to {}", gain.mark(), times(low), times(high));
    gain.interval.map_or("one round".into(), shown)
}

fn factor(value: Option<f64>) -> Markup {
    html! { @match value {
        Some(value) => { span.bad[value < 1.0] { (times(value)) } }
        None => "",
    } }
}

/// Rows of gains: against whom, in what.
pub(crate) fn gain_rows(rows: &[(String, Gain)]) -> Markup {
    html! {
        div.scroll { table.gains {
            thead { tr {
                th { "against, in" } th.n { "gain" } th.n { "95 % interval" } th.n { "p99" } th.n { "max" } th { "" }
            } }
            tbody { @for (what, gain) in rows {
                tr {
                    th { span.dot.(peers::class(gain.to)) {} (peers::name(gain.to)) " " span.soft { (what) } }
                    td.n.strong { (factor(Some(gain.median))) }
                    td.n.soft { (interval(gain)) }
                    td.n { (factor(gain.p99)) }
                    td.n { (factor(gain.max)) }
                    td.soft { (gain.says()) }
                }
            } }
        } }
    }
}

/// The same, one block for each line of the subject.
pub(crate) fn gain_blocks(all: &[(String, Vec<Gain>)]) -> Markup {
    html! {
        div.scroll { table.blocks {
            thead { tr { th { "against" } th { "gain" } th { "95 % interval" } th { "p99" } th { "max" } } }
            @for (what, gains) in all {
                tbody {
                    tr { th colspan="5" { (what) } }
                    @for gain in gains { tr {
                        td { (peers::name(gain.to)) @if !gain.losses().is_empty() { span.soft { " " (gain.losses()) } } }
                        td { (factor(Some(gain.median))) } td { (interval(gain)) }
                        td { (factor(gain.p99)) } td { (factor(gain.max)) }
                    } }
                }
            }
        } }
    }
}

/// Peers along, lines down: the gain in each cell. All there is to a cell is in its tooltip and below.
pub(crate) fn gain_matrix(model: &Model, all: &[(String, Vec<Gain>)]) -> Markup {
    let mut names: Vec<&str> = all.iter().flat_map(|(_, gains)| gains.iter().map(|gain| gain.to)).collect();
    names.sort_by_key(|name| peers::order(name));
    names.dedup();
    html! {
        div.scroll { table.matrix {
            thead { tr { th { (peers::name(&model.subject)) " against" } @for name in &names { th.n { (peers::name(name)) } } } }
            tbody { @for (what, gains) in all {
                tr {
                    th { (what) }
                    @for name in &names {
                        @match gains.iter().find(|gain| gain.to == *name) {
                            Some(gain) => { td.n.(shade(gain)) title=(tooltip(gain)) { (times(gain.median)) @if gain.loss.0 + gain.loss.1 > 0.0 { " *" } } }
                            None => { td.n.soft { "–" } }
                        }
                    }
                }
            } }
        } }
    }
}

fn shade(gain: &Gain) -> &'static str {
    match gain.standing() {
        _ if gain.is_limit() => "limit",
        Standing::Behind => "behind",
        Standing::Even => "even",
        Standing::Tail | Standing::Lossy => "tailed",
        Standing::Ahead => "ahead",
    }
}

/// Everything about a gain, in a line.
pub(crate) fn tooltip(gain: &Gain) -> String {
    let mut text = format!(
        "{} against {}: {} ({})",
        gain.says(),
        peers::name(gain.to),
        times(gain.median),
        interval(gain)
    );
    for (name, value) in [("p99", gain.p99), ("max", gain.max)] {
        if let Some(value) = value {
            text += &format!(", {name} {}", times(value));
        }
    }
    text
}

/// Every figure of a group's lines.
pub(crate) fn figures(group: &Group) -> Markup {
    let ran: Vec<&&Record> = group.lines.iter().filter(|line| line.outcome == Outcome::Ok).collect();
    let heads = [
        "samples",
        "lost",
        "share",
        "late",
        "behind",
        "flood",
        "rate",
        "min",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "1 in 10⁶",
        "max",
        "max at",
        "std dev",
        "PDV",
        "CPU/sample",
        "switches",
        "allocs",
    ];
    html! {
        div.scroll { table.figures {
            thead { tr { th { "peer" } th.n { "size" } @for head in heads { th.n { (head) } } } }
            tbody { @for line in ran {
                tr {
                    th { (peers::name(&line.peer)) span.soft { " " (line.wait) " " (extra(group, line)) (remark(line)) } }
                    td { (size(line.size_bytes)) }
                    @for cell in cells(line) { td { (cell) } }
                }
            } }
        } }
    }
}

pub(crate) fn extra(group: &Group, line: &Record) -> String {
    let rest = line.case.split_whitespace().filter(|word| !group.key.case.contains(word));
    rest.collect::<Vec<_>>().join(" ")
}

fn cells(line: &Record) -> Vec<String> {
    let mut cells = vec![thousands(line.samples), thousands(line.lost), lost_share(line)];
    cells.push(if line.late > 0 { thousands(line.late) } else { String::new() });
    cells.push(line.behind_ns.map(time).unwrap_or_default());
    cells.push(line.flood_per_s.map(rate).unwrap_or_default());
    cells.push(line.samples_per_s.map(rate).unwrap_or_default());
    match main_times(line) {
        Some(t) => {
            let all = [
                t.min,
                t.mean,
                t.p50,
                t.p90,
                t.p99,
                t.p999,
                t.p9999,
                t.p999999,
                t.max,
                t.max_at_ns,
                t.stddev,
                t.pdv,
            ];
            cells.extend(all.map(|ns| time(ns as f64)));
        }
        None => cells.extend(std::iter::repeat_n(String::new(), 12)),
    }
    cells.push(line.cpu_ns_per_sample.map(time).unwrap_or_default());
    cells.push(line.context_switches.map(thousands).unwrap_or_default());
    cells.push(line.allocations_per_sample.map(|count| format!("{count:.2}")).unwrap_or_default());
    cells
}

/// Which share of the samples got lost; empty for none.
pub(crate) fn lost_share(line: &Record) -> String {
    if line.lost == 0 { String::new() } else { percent(line.loss()) }
}

/// Time of one encode and one decode: lines down, peers along.
pub(crate) fn cdr(groups: &[&Group]) -> Markup {
    let names = coding_peers(groups);
    html! {
        div.scroll { table {
            thead { tr { th { "encode / decode" } @for name in &names { th.n { (peers::name(name)) } } } }
            tbody { @for group in groups { @for bytes in group.sizes() {
                tr {
                    th { (group.key.case) " " (size(bytes)) }
                    @for name in &names {
                        @let line = group.lines.iter().find(|line| line.size_bytes == bytes && line.peer == *name);
                        @let both = line.and_then(|line| line.encode_ns.zip(line.decode_ns));
                        @match both {
                            Some((encode, decode)) => {
                                td.n title=(format!("p99 {} / {}", time(encode.p99 as f64), time(decode.p99 as f64))) {
                                    (time(encode.p50 as f64)) " / " (time(decode.p50 as f64))
                                }
                            }
                            None => { td.n.soft { "–" } }
                        }
                    }
                }
            } } }
        } }
    }
}

/// How many whole bursts there were, and of any sample and of those the median, the tail and the bound: a block for each
/// kind of burst.
pub(crate) fn bursts(groups: &[&Group]) -> Markup {
    let ran = |line: &&&Record| line.outcome == Outcome::Ok;
    html! {
        div.scroll { table.blocks {
            thead { tr {
                th { "latency of" } th { "bursts" } @for of in ["a sample", "a burst"] { th { (of) } th { "p99" } th { "max" } }
            } }
            @for group in groups { @for bytes in group.sizes() {
                tbody {
                    tr { th colspan="8" { (size(bytes)) " · " (group.title) } }
                    @for line in group.lines.iter().filter(ran).filter(|line| line.size_bytes == bytes) { tr {
                        td { (peers::name(&line.peer)) (remark(line)) }
                        td { (line.whole_bursts().map_or("–".to_string(), thousands)) }
                        @for times in [line.one_way_ns, line.burst_ns] {
                            @for ns in times.map_or([None; 3], |t| [t.p50, t.p99, t.max].map(Some)) {
                                td { (ns.map_or("–".to_string(), |ns| time(ns as f64))) }
                            }
                        }
                    } }
                }
            } }
        } }
    }
}

/// Who has a result.
fn coding_peers<'a>(groups: &[&Group<'a>]) -> Vec<&'a str> {
    let lines = groups.iter().flat_map(|group| group.lines.iter()).filter(|line| line.decode_ns.is_some());
    let mut names: Vec<&str> = lines.map(|line| line.peer.as_str()).collect();
    names.sort_by_key(|name| peers::order(name));
    names.dedup();
    names
}

/// What each entity adds: peers down, entities along.
pub(crate) fn memory(groups: &[&Group]) -> Markup {
    let lines: Vec<&Record> = groups.iter().flat_map(|group| group.lines.iter().copied()).collect();
    let ran: Vec<&Record> = lines.into_iter().filter(|line| !line.memory.is_empty()).collect();
    let mut entities: Vec<&str> = Vec::new();
    for step in ran.iter().flat_map(|line| line.memory.iter()) {
        if !entities.contains(&step.entity.as_str()) {
            entities.push(&step.entity);
        }
    }
    html! {
        div.scroll { table {
            thead { tr { th { "each adds" } @for entity in &entities { th.n { (entity) } } th.n { "threads" } th.n { "descriptors" } } }
            tbody { @for line in ran {
                tr {
                    th { span.dot.(peers::class(&line.peer)) {} (peers::name(&line.peer)) }
                    @for entity in &entities {
                        @match line.memory.iter().find(|step| step.entity == *entity) {
                            Some(step) => { td.n title=(format!("of {} made", step.count)) { (bytes(step.bytes_each as f64)) } }
                            None => { td.n.soft { "–" } }
                        }
                    }
                    @let last = line.memory.last();
                    td.n { (last.map(|step| step.threads.to_string()).unwrap_or_default()) }
                    td.n { (last.map(|step| step.descriptors.to_string()).unwrap_or_default()) }
                }
            } }
        } }
    }
}

/// The subject's own gaps, where others have a result.
pub(crate) fn own_gaps(model: &Model) -> Markup {
    let gaps = gaps(model);
    html! {
        @if !gaps.is_empty() {
            h3 { "No result, where others have one" }
            ul.plain { @for gap in &gaps {
                li { strong { (gap.reason) } ". " span.soft { "Others ran: " (gap.others.join(", ")) ". " }
                    (lines_shut(&gap.lines.iter().map(|(group, line)| what(group, line)).collect::<Vec<_>>()))
                }
            } }
        }
    }
}

/// A few lines at once, many on demand.
fn lines_shut(lines: &[String]) -> Markup {
    html! {
        @if lines.len() > 2 {
            details { summary { (lines.len()) " lines" } (lines.join("; ")) }
        } @else { span.soft { (lines.join("; ")) } }
    }
}

fn reason(record: &Record) -> String {
    match &record.outcome {
        Outcome::Ok => String::new(),
        Outcome::Absent(reason) => format!("absent: {reason}."),
        Outcome::Failed(reason) => format!("failed: {reason}."),
    }
}

/// One kind of missing result of a peer: its lines joined by their reason.
struct Missing<'a> {
    peer: &'a str,
    reason: String,
    lines: Vec<String>,
}

fn missing<'a>(model: &Model<'a>, wanted: fn(&Outcome) -> bool) -> Vec<Missing<'a>> {
    let mut all: Vec<Missing> = Vec::new();
    for group in &model.groups {
        for line in group.lines.iter().filter(|line| wanted(&line.outcome)) {
            let reason = reason(line);
            match all.iter_mut().find(|other| other.peer == line.peer && other.reason == reason) {
                Some(other) => other.lines.push(what(group, line)),
                None => all.push(Missing { peer: &line.peer, reason, lines: vec![what(group, line)] }),
            }
        }
    }
    all.sort_by_key(|missing| peers::order(missing.peer));
    all
}

/// What failed and what is absent, and why.
pub(crate) fn outcomes(model: &Model) -> Markup {
    let list = |all: &[Missing]| {
        html! {
            ul.plain { @for missing in all {
                li { span.dot.(peers::class(missing.peer)) {} strong { (peers::name(missing.peer)) } " " (missing.reason) " "
                    (lines_shut(&missing.lines))
                }
            } }
        }
    };
    let failed = missing(model, |outcome| matches!(outcome, Outcome::Failed(_)));
    let absent = missing(model, |outcome| matches!(outcome, Outcome::Absent(_)));
    html! {
        @if failed.is_empty() { p { "Nothing failed." } } @else { h3 { "Failed" } (list(&failed)) }
        (failed_of_many(model))
        @if !absent.is_empty() { h3 { "Absent" } (list(&absent)) }
    }
}

/// Lines that ran, with rounds that did not.
fn failed_of_many(model: &Model) -> Markup {
    let lines = model.groups.iter().flat_map(|group| group.lines.iter().map(move |line| (group, *line)));
    let some: Vec<(&Group, &Record)> =
        lines.filter(|(_, line)| line.outcome == Outcome::Ok && line.failed_rounds > 0).collect();
    html! {
        @if !some.is_empty() {
            h3 { "Rounds that failed, of lines that ran" }
            ul.plain { @for (group, line) in &some {
                li { span.dot.(peers::class(&line.peer)) {} strong { (peers::name(&line.peer)) } " "
                    (failed_rounds(line)) ": " (line.failure.as_deref().unwrap_or_default()) ". "
                    span.soft { (what(group, line)) }
                }
            } }
        }
    }
}

/// Samples that did not arrive once, whole and in order.
pub(crate) fn errors(model: &Model) -> Markup {
    let bad = |line: &&&Record| line.lost + line.out_of_order + line.duplicates + line.corrupt > 0;
    let rows: Vec<(String, &Record)> = model
        .groups
        .iter()
        .flat_map(|group| group.lines.iter().filter(bad).map(|line| (what(group, line), *line)))
        .collect();
    html! {
        @if rows.is_empty() { p { "Every sample arrived once, whole and in order." } } @else {
            div.scroll { table {
                thead { tr { th { "measured" } th { "peer" } th.n { "received" } th.n { "lost" } th.n { "share" } th.n { "out of order" } th.n { "again" } th.n { "corrupt" } } }
                tbody { @for (what, line) in &rows {
                    tr {
                        th { (what) } td { (peers::name(&line.peer)) }
                        td.n { (thousands(line.samples)) } td.n { (thousands(line.lost)) } td.n { (format!("{:.2} %", 100.0 * line.loss())) }
                        td.n { (thousands(line.out_of_order)) } td.n { (thousands(line.duplicates)) } td.n { (thousands(line.corrupt)) }
                    }
                } }
            } }
        }
    }
}
