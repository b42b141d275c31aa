//! `taut perf report`: a run as one page of HTML.
//!
//! The page needs nothing else: no network, no file, no script. Charts are drawn twice where a phone needs
//! another shape; media queries choose. Pure: records in, text out.

mod beside;
mod charts;
mod choice;
pub(crate) mod current;
pub(crate) mod gains;
mod lines;
pub(crate) mod model;
pub(crate) mod peers;
mod rows;
mod scale;
pub(crate) mod sections;
mod series;
pub(crate) mod svg;
pub(crate) mod tables;
pub(crate) mod units;

pub(crate) use charts::{headline, rate_by_size, time_by_size};

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::record::{Outcome, Record, Run};
use crate::report::current::current;
use crate::report::gains::{Standing, gains, marked};
use crate::report::model::Model;
use crate::rules;

/// A larger page is no pleasure on a phone. Charts over time, the heaviest part, give way.
const PAGE_MOST: usize = 2_000_000;

/// The whole page.
pub fn page(records: &[Record]) -> String {
    let shown = current(records);
    let mut model = Model::new(&shown);
    model.left_out = records.len() - shown.len();
    loop {
        let page = draw(&model, &shown);
        if page.len() <= PAGE_MOST || model.series_most == 0 {
            return page;
        }
        model.series_most /= 2;
    }
}

fn draw(model: &Model, records: &[Record]) -> String {
    let sections = sections::all(model);
    let style =
        format!("{}{}{}", include_str!("report/chart.css"), include_str!("report/page.css"), peers::style());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title(model)) }
                style { (PreEscaped(style)) }
            }
            body {
                header.top {
                    h1 { (title(model)) }
                    (machines(records))
                    (summary(model))
                    @if let Some(warning) = rules::mixed(records) { p.soft { "Beware: " (warning) "." } }
                    @if let Some((title, chart)) = headline(model) {
                        figure.first { figcaption { (title) ": median and p99" } (svg::both(|frame| chart.draw(frame, 0.0))) }
                    }
                    nav aria-label="Sections" {
                        @for section in &sections { a href=(format!("#{}", section.id)) { (section.title) } }
                    }
                }
                main { @for section in &sections {
                    section id=(section.id) {
                        header { h2 { (section.title) } @if !section.says.is_empty() { p { (section.says) } } }
                        div { (section.content) }
                    }
                } }
                footer { "Made by " code { "taut perf report" } ". Times are of one clock; percentiles are those of all rounds together." }
            }
        }
    };
    page.into_string()
}

fn title(model: &Model) -> String {
    let subject = peers::name(&model.subject);
    match rivals(model) {
        0 => format!("{subject} on this machine"),
        1 => format!("{subject} beside one other"),
        count => format!("{subject} beside {count} others"),
    }
}

fn rivals(model: &Model) -> usize {
    let lines = model.groups.iter().flat_map(|group| group.lines.iter());
    let ran = lines.filter(|line| line.outcome == Outcome::Ok && !model.is_subject(line));
    let mut names: Vec<&str> = ran.map(|line| line.peer.as_str()).filter(|peer| *peer != "floor").collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// Each on which lines were measured, with the day.
fn machines(records: &[Record]) -> Markup {
    let machine = |run: &Run| {
        let day = run.started.get(..10).unwrap_or(&run.started);
        format!("{}, {} cores, Linux {} · {day}", run.cpu, run.cores, run.kernel)
    };
    let all: BTreeSet<String> = records.iter().map(|record| machine(&record.run)).collect();
    html! { @for machine in all { p.soft { (machine) } } }
}

/// How many comparisons there are and how they went; the floor is no rival.
fn summary(model: &Model) -> Markup {
    let all = model.groups.iter().flat_map(|group| gains(model, group)).filter(|gain| !gain.is_floor());
    let standings: Vec<Standing> = all.map(|gain| gain.standing()).collect();
    let count = |wanted: Standing| standings.iter().filter(|standing| **standing == wanted).count();
    let lines = || model.groups.iter().flat_map(|group| group.lines.iter());
    let failed = lines().filter(|line| matches!(line.outcome, Outcome::Failed(_))).count();
    let samples: u64 = lines().map(|line| line.samples).sum();
    let figures = [
        (count(Standing::Ahead), "ahead"),
        (count(Standing::Tail), "ahead, but not at p99"),
        (count(Standing::Lossy), "ahead, but losing more"),
        (count(Standing::Even), "cannot tell"),
        (count(Standing::Behind), "behind"),
        (failed, "lines failed"),
    ];
    html! {
        @if !standings.is_empty() {
            ul.sum { @for (count, word) in figures { li { b { (count) } span { (word) } } } }
        }
        p.soft style="margin-top:12px" {
            (units::thousands(samples)) " samples. Each comparison is one line of one workload against one other peer, by its rounds, with 95 % confidence; of coding encode and decode are two. " (marked(model))
            @if model.left_out > 0 { (model.left_out) " lines are not shown, as a run with more peers or sizes, or a later one, has measured the same." }
        }
    }
}
