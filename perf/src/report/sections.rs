//! The sections of the page, in the order in which they are read; one without lines is left out.

use maud::{Markup, html};

use crate::record::{Outcome, Record, Run};
use crate::report::beside;
use crate::report::charts;
use crate::report::choice::{Panel, choice};
use crate::report::gains::{Gain, Standing, gains};
use crate::report::model::{Group, Model, main_times};
use crate::report::peers;
use crate::report::scale::log_ends;
use crate::report::series;
use crate::report::svg::{Frame, both};
use crate::report::tables;
use crate::report::units::{percent, size};

/// Tails weigh 20 kB.
const TAILS_MOST: usize = 20;
/// Rows that are seen without asking for more.
const ROWS_SEEN: usize = 12;
/// Panels of gains: the headline of each group. More are read in the table.
const GAINS_MOST: usize = 8;

/// A section.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) says: String,
    pub(crate) content: Markup,
}

/// Id, title, what to know of it, and its content if there is any.
type Plan = (&'static str, &'static str, &'static str, fn(&Model) -> Option<Markup>);

const PLAN: [Plan; 22] = [
    ("aims", "What Taut is built for", "", beside::aims),
    (
        "behind",
        "Not ahead",
        "Where the subject is behind, where the rounds cannot tell, and where it leads by the \
         median but not by p99. Worst first.",
        not_ahead,
    ),
    ("published", "Beside what others have published", "", beside::draw),
    (
        "latency",
        "Latency",
        "Round trips between two processes. The floor is the same exchange without a middleware: \
         bare sockets or bare memory. It sleeps at once where it blocks: who looks for a while before it sleeps, as \
         Taut does, can be faster.",
        |model| by_size(model, "latency"),
    ),
    ("tails", "Tails", "How rare is how slow. To the right, each step is ten times rarer.", tails),
    (
        "time",
        "Over time",
        "Each sample of the run, beside how often each time occurred. The bound is the longest \
         time that was seen.",
        over_time,
    ),
    (
        "throughput",
        "Throughput",
        "One publisher, one subscriber; each sample is checked for loss and order. The floor calls the kernel \
         for each sample and can be passed; over UDP the limit is the floor that hands it many at once (gso).",
        throughput,
    ),
    (
        "bursts",
        "Bursts",
        "As a control loop sends them: some samples without a pause, each period. The bars are of whole bursts, from \
         the write of the first sample until all of it is taken; samples count from their own write. The floor calls \
         the kernel for each sample and can be passed; over UDP the limit is the one with gso.",
        bursts,
    ),
    ("fanout", "Fan-out", "One publisher to many. The rate is the slowest subscriber's.", fanout),
    (
        "gains",
        "Gains",
        "How many times as good as each peer, at the smallest size: to the right of the line, \
         ahead. Whiskers are the 95 % interval.",
        gain_panels,
    ),
    (
        "interference",
        "Interference",
        "Round trips beside a flood of UDP on the same path, at a rate that the machine can keep up. The dot is \
         the median, the tick p99, the block the bound.",
        interference,
    ),
    ("types", "Types", "Sequences of octets and of structures, answered by four bytes.", |model| {
        by_size(model, "types")
    }),
    (
        "local",
        "Local",
        "Within the machine, without a network: in one thread, between threads, by shared memory; \
         copied and borrowed.",
        |model| by_size(model, "local"),
    ),
    ("write", "Write", "What a write costs the writer.", |model| by_size(model, "write")),
    ("cdr", "Encoding", "Median time of one encode and one decode.", |model| some(model, "cdr", tables::cdr)),
    (
        "discovery",
        "Discovery",
        "From the start until all endpoints of all participants are matched, and the bytes that \
         it took.",
        discovery,
    ),
    ("memory", "Memory", "What each entity adds to its process, as the kernel counts it.", |model| {
        some(model, "memory", tables::memory)
    }),
    ("soak", "Soak", "A long run: does memory stay where it is.", soak),
    (
        "missing",
        "Failed and absent",
        "What should have run and did not; what a peer does not have; what got lost on the way.",
        |model| Some(missing(model)),
    ),
    (
        "ratios",
        "All comparisons",
        "Above 1× is ahead: for times theirs over its own, for rates its own over theirs. Hover \
         for the interval, p99 and maximum; where a side has lost samples, *, for how many.",
        ratios,
    ),
    ("figures", "All figures", "Every line that ran.", |model| Some(figures(model))),
    ("run", "Machine and commands", "", |model| Some(runs(model))),
];

/// All of them.
pub(crate) fn all(model: &Model) -> Vec<Section> {
    let subject = peers::name(&model.subject);
    let section = |(id, title, says, draw): &Plan| {
        let content = draw(model)?;
        Some(Section { id, title, says: says.replace("the subject", &subject), content })
    };
    PLAN.iter().filter_map(section).collect()
}

fn some(model: &Model, workload: &str, draw: fn(&[&Group]) -> Markup) -> Option<Markup> {
    let groups = model.of(workload);
    let ran = groups.iter().any(|group| group.lines.iter().any(|line| line.outcome == Outcome::Ok));
    ran.then(|| draw(&groups))
}

/// All gains, worst first, that are not plainly ahead; the floor is no rival.
pub(crate) fn rows_not_ahead<'a>(model: &Model<'a>) -> Vec<(String, Gain<'a>)> {
    let mut rows: Vec<(String, Gain)> = Vec::new();
    for group in &model.groups {
        let rivals = gains(model, group).into_iter().filter(|gain| !gain.is_floor());
        let open = rivals.filter(|gain| gain.standing() != Standing::Ahead);
        rows.extend(open.map(|gain| (gain.what(group), gain)));
    }
    rows.sort_by(|a, b| {
        let key = |row: &(String, Gain)| (row.1.standing(), row.1.median);
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    rows
}

fn not_ahead(model: &Model) -> Option<Markup> {
    let rows = rows_not_ahead(model);
    let (seen, more) = rows.split_at(rows.len().min(ROWS_SEEN));
    Some(html! {
        @if seen.is_empty() { p { "Ahead of every other peer in every line." } } @else { (tables::gain_rows(seen)) }
        @if !more.is_empty() { details { summary { (more.len()) " more" } (tables::gain_rows(more)) } }
        (tables::own_gaps(model))
    })
}

fn has_times(group: &Group) -> bool {
    group.lines.iter().any(|line| line.outcome == Outcome::Ok && main_times(line).is_some())
}

/// A group with several sizes is lines over sizes, one with a single size is bars.
fn by_size(model: &Model, workload: &str) -> Option<Markup> {
    let groups: Vec<&Group> = model.of(workload).into_iter().filter(|group| has_times(group)).collect();
    let large = |group: &&&Group| workload == "latency" && group.sizes().len() > 3;
    let small = |group: &&&Group| !large(group);
    (!groups.is_empty()).then(|| html! {
        @for group in groups.iter().filter(large) {
            figure { figcaption { (group.title) } (both(|frame| charts::time_by_size(model, group, frame))) }
        }
        div.small { @for group in groups.iter().filter(small) {
            figure {
                @if let [only] = group.sizes()[..] {
                    figcaption { (size(only)) ", " (group.title) }
                    (charts::time_bars(model, group.title.clone(), &group.lines).draw(Frame::Narrow, 0.0))
                } @else {
                    figcaption { (group.title) }
                    (charts::time_by_size(model, group, Frame::Narrow))
                }
            }
        } }
    })
}

fn tails(model: &Model) -> Option<Markup> {
    let mut panels = Vec::new();
    // The open loops have the most samples and no pause after a slow one: they come first.
    let mut groups: Vec<&Group> = model.of("latency").into_iter().chain(model.of("soak")).collect();
    groups.sort_by_key(|group| group.key.rate_hz == 0.0);
    for group in groups {
        for bytes in group.sizes() {
            let draw = |frame| charts::tail(model, group, bytes, frame);
            if panels.len() < TAILS_MOST && draw(Frame::Wide).is_some() {
                let setting = match group.key.workload.as_str() {
                    "latency" => group.title.clone(),
                    other => format!("{other}, {}", group.title),
                };
                let content = both(|frame| draw(frame).unwrap_or_default());
                panels.push(Panel { choice: vec![setting, size(bytes)], content });
            }
        }
    }
    (!panels.is_empty()).then(|| choice("tail", &["setting", "size"], &panels))
}

/// Charts of a group's subject and floor, then of the others; of the smallest sizes first.
fn over_time(model: &Model) -> Option<Markup> {
    let mut lines: Vec<(&Group, &Record)> = Vec::new();
    let groups: Vec<&Group> = model.of("latency").into_iter().chain(model.of("soak")).collect();
    for group in &groups {
        let with = group.lines.iter().filter(|line| line.outcome == Outcome::Ok && !line.series.is_empty());
        lines.extend(with.map(|line| (*group, *line)));
    }
    let rank = |group: &Group, line: &Record| {
        group.sizes().iter().position(|bytes| *bytes == line.size_bytes).unwrap_or(0)
    };
    lines.sort_by_key(|(group, line)| rank(group, line));
    lines.truncate(model.series_most);
    lines.sort_by_key(|(group, line)| {
        let place = groups.iter().position(|other| std::ptr::eq(*other, *group));
        (group.key.rate_hz == 0.0, place, peers::order(&line.peer), line.size_bytes)
    });
    let panel = |(group, line): &(&Group, &Record)| {
        let draw = |frame| series::draw(line, &model.subject, frame).unwrap_or_default();
        let choice = vec![peers::name(&line.peer), group_name(group), size(line.size_bytes)];
        Panel { choice, content: both(draw) }
    };
    let panels: Vec<Panel> = lines.iter().map(panel).collect();
    (!panels.is_empty()).then(|| choice("series", &["peer", "setting", "size"], &panels))
}

fn group_name(group: &Group) -> String {
    match group.key.workload.as_str() {
        "latency" => group.title.clone(),
        other => other.to_string(),
    }
}

fn throughput(model: &Model) -> Option<Markup> {
    let groups = model.of("throughput");
    let ran =
        |group: &&&Group| group.lines.iter().any(|line| line.samples_per_s.is_some_and(|rate| rate > 0.0));
    let groups: Vec<&&Group> = groups.iter().filter(ran).collect();
    let large = |group: &&&&Group| group.sizes().len() > 2;
    let small = |group: &&&&Group| !large(group);
    (!groups.is_empty()).then(|| html! {
        @for group in groups.iter().filter(large) {
            figure { figcaption { (group.title) } (both(|frame| charts::rate_by_size(model, group, frame))) }
        }
        div.small { @for group in groups.iter().filter(small) {
            figure { figcaption { (group.title) } (charts::rate_by_size(model, group, Frame::Narrow)) }
        } }
    })
}

fn bursts(model: &Model) -> Option<Markup> {
    let bars = by_size(model, "bursts")?;
    Some(html! { (bars) (tables::bursts(&model.of("bursts"))) })
}

fn fanout(model: &Model) -> Option<Markup> {
    let groups = model.of("fanout");
    let slowest = |group: &&&Group| {
        !group.key.case.contains("median") && group.lines.iter().any(|line| line.samples_per_s.is_some())
    };
    let groups: Vec<&&Group> = groups.iter().filter(slowest).collect();
    // One axis for all, for they are to be compared.
    let lines = groups.iter().flat_map(|group| group.lines.iter());
    let ends = log_ends(lines.filter_map(|line| line.samples_per_s));
    (!groups.is_empty()).then(|| {
        html! {
            div.small { @for group in groups {
                figure { figcaption { (group.title) } (charts::fanout(model, group, ends)) }
            } }
        }
    })
}

fn gain_panels(model: &Model) -> Option<Markup> {
    let mut panels: Vec<(String, Markup)> = Vec::new();
    for workload in ["latency", "throughput", "local", "write", "discovery"] {
        for group in model.of(workload) {
            let all = gains(model, group);
            let Some(first) = all.first().map(|gain| (gain.record.size_bytes, gain.record.case.as_str()))
            else {
                continue;
            };
            let same = |gain: &&Gain| (gain.record.size_bytes, gain.record.case.as_str()) == first;
            let rivals: Vec<&Gain> = all.iter().filter(same).collect();
            let own = rivals[0].loss.0;
            let lost =
                if own > 0.0 { format!(" · {} of its own lost", percent(own)) } else { String::new() };
            panels.push((tables::what(group, rivals[0].record) + &lost, charts::gain_bars(model, &rivals)));
        }
    }
    panels.truncate(GAINS_MOST);
    (!panels.is_empty()).then(|| {
        html! {
            div.small { @for (title, chart) in &panels { figure { figcaption { (title) } (chart) } } }
        }
    })
}

fn interference(model: &Model) -> Option<Markup> {
    let mut panels: Vec<Panel> = Vec::new();
    for group in model.of("interference") {
        for bytes in group.sizes() {
            let of_size = |lines: &[&Record]| -> bool {
                lines.iter().any(|line| line.size_bytes == bytes && line.outcome == Outcome::Ok)
            };
            let mut all: Vec<(String, Vec<&Record>)> = Vec::new();
            for line in group.lines.iter().filter(|line| line.size_bytes == bytes) {
                match all.iter_mut().find(|(peer, _)| *peer == line.peer) {
                    Some((_, lines)) => lines.push(line),
                    None => all.push((line.peer.clone(), vec![line])),
                }
            }
            all.retain(|(_, lines)| of_size(lines));
            if all.is_empty() {
                continue;
            }
            // One axis for all, for they are to be compared.
            let seen = all.iter().flat_map(|(_, lines)| lines.iter()).filter_map(|line| main_times(line));
            let ends = log_ends(seen.flat_map(|t| [t.p50 as f64, t.max as f64]));
            let content = html! { div.small { @for (peer, lines) in &all {
                figure { figcaption { (peers::name(peer)) } (charts::interference(model, lines, ends)) }
            } } };
            panels.push(Panel { choice: vec![group.title.clone(), size(bytes)], content });
        }
    }
    (!panels.is_empty()).then(|| choice("flood", &["setting", "size"], &panels))
}

fn discovery(model: &Model) -> Option<Markup> {
    let groups: Vec<&Group> = model.of("discovery").into_iter().filter(|group| has_times(group)).collect();
    (!groups.is_empty()).then(|| {
        html! {
            div.small { @for group in &groups {
                figure {
                    figcaption { (group.title.replace('=', " ")) }
                    (charts::time_bars(model, group.title.clone(), &group.lines).draw(Frame::Narrow, 0.0))
                }
            } }
        }
    })
}

fn soak(model: &Model) -> Option<Markup> {
    let groups = model.of("soak");
    let ran = |group: &&&Group| group.lines.iter().any(|line| !line.memory.is_empty());
    let groups: Vec<&&Group> = groups.iter().filter(ran).collect();
    (!groups.is_empty()).then(|| html! {
        @for group in groups {
            figure { figcaption { (group.conditions()) } (both(|frame| charts::soak(model, group, frame))) }
        }
    })
}

fn missing(model: &Model) -> Markup {
    html! {
        (tables::outcomes(model))
        h3 { "Lost, late, again, corrupt" }
        (tables::errors(model))
    }
}

fn ratios(model: &Model) -> Option<Markup> {
    let mut all: Vec<(String, Vec<Gain>)> = Vec::new();
    for group in &model.groups {
        for gain in gains(model, group) {
            let what = gain.what(group);
            match all.iter_mut().find(|(other, _)| *other == what) {
                Some((_, gains)) => gains.push(gain),
                None => all.push((what, vec![gain])),
            }
        }
    }
    (!all.is_empty()).then(|| {
        html! {
            (tables::gain_matrix(model, &all))
            details { summary { "The same with intervals, p99 and maximum" } (tables::gain_blocks(&all)) }
        }
    })
}

fn figures(model: &Model) -> Markup {
    let ran = |group: &&Group| group.lines.iter().any(|line| line.outcome == Outcome::Ok);
    html! { @for group in model.groups.iter().filter(ran) {
        details { summary { (group.key.workload) " · " (group.conditions()) } (tables::figures(group)) }
    } }
}

/// Once for each run; notes of peers are those of any of its lines.
fn runs(model: &Model) -> Markup {
    let mut runs: Vec<(&Run, Vec<&str>)> = Vec::new();
    let mut versions: Vec<(&str, &str)> = Vec::new();
    for line in model.groups.iter().flat_map(|group| group.lines.iter()) {
        let at = runs.iter().position(|(run, _)| run.id == line.run.id).unwrap_or_else(|| {
            runs.push((&line.run, Vec::new()));
            runs.len() - 1
        });
        for note in &line.run.notes {
            if !runs[at].1.contains(&note.as_str()) {
                runs[at].1.push(note);
            }
        }
        let version = (line.peer.as_str(), line.version.as_str());
        if !version.1.is_empty() && !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions.sort_by_key(|version| peers::order(version.0));
    html! {
        @for (run, notes) in &runs {
            h3 { "Run " (run.id) }
            dl {
                dt { "command" } dd { code { (run.command) } }
                dt { "started" } dd { (run.started) }
                dt { "taut" } dd { (run.taut) }
                dt { "machine" } dd { (run.cpu) ", " (run.cores) " cores" }
                dt { "kernel" } dd { "Linux " (run.kernel) }
                dt { "governor" } dd { (run.governor) }
                @if !notes.is_empty() { dt { "notes" } dd { (notes.join("; ")) } }
            }
        }
        h3 { "Peers" }
        dl { @for (peer, version) in &versions { dt { span.dot.(peers::class(peer)) {} (peers::name(peer)) } dd { (version) } } }
    }
}
