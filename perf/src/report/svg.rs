//! What all charts share: the sheet, numbers in paths, axes, labels that keep off each other, marks.
//!
//! Colours and fonts are the style sheet's (`chart.css`): a chart only names classes.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};

use crate::report::peers::Mark;
use crate::report::scale::Scale;

/// Height of a line of text, and how far apart labels are kept.
pub(crate) const LINE: f64 = 15.0;

/// The place for a chart: wide beside text on a desk, narrow on a phone or in a row of small ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Frame {
    Wide,
    Narrow,
}

impl Frame {
    /// Of the sheet, in CSS pixels: it is shown at this size, so that all text has the page's sizes.
    pub(crate) fn width(self) -> f64 {
        match self {
            Frame::Wide => 780.0,
            Frame::Narrow => 358.0,
        }
    }

    pub(crate) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Frame::Wide => wide,
            Frame::Narrow => narrow,
        }
    }
}

/// The sheet around a chart; `says` is what it shows, for those who do not see it.
pub(crate) fn sheet(frame: Frame, height: f64, says: &str, content: &Markup) -> Markup {
    let view = format!("0 0 {} {}", n(frame.width()), n(height));
    html! {
        svg.chart xmlns="http://www.w3.org/2000/svg" viewBox=(view) role="img" aria-label=(says)
            style=(format!("max-width:{}px", n(frame.width()))) { (content) }
    }
}

/// A number of a path: a tenth of a pixel is finer than any screen.
pub(crate) fn n(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    let text = if rounded == 0.0 { "0".to_string() } else { rounded.to_string() };
    match text.strip_prefix("0.").map(|rest| format!(".{rest}")) {
        Some(short) => short,
        None => text.strip_prefix("-0.").map(|rest| format!("-.{rest}")).unwrap_or(text),
    }
}

/// A path through the points. Steps are relative and rounded together, so that errors do not add up.
pub(crate) fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    let mut last: Option<(i64, i64)> = None;
    for (x, y) in points {
        let here = ((x * 10.0).round() as i64, (y * 10.0).round() as i64);
        match last {
            None => text.push('M'),
            Some(_) if text.ends_with(|c: char| c != 'l') && !text.contains('l') => text.push('l'),
            Some(_) => {}
        }
        let from = last.unwrap_or((0, 0));
        for step in [here.0 - from.0, here.1 - from.1] {
            let number = n(step as f64 / 10.0);
            if !number.starts_with('-') && !text.ends_with(['M', 'l']) {
                text.push(' ');
            }
            let _ = write!(text, "{number}");
        }
        last = Some(here);
    }
    text
}

/// Where text begins, ends or is centred.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Text at a place; `class` may be empty.
pub(crate) fn text(x: f64, y: f64, anchor: Anchor, class: &str, words: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    let class = (!class.is_empty()).then_some(class);
    html! { text x=(n(x)) y=(n(y)) text-anchor=[anchor] class=[class] { (words) } }
}

/// A straight line.
pub(crate) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! { path class=(class) d=(format!("M{} {}L{} {}", n(from.0), n(from.1), n(to.0), n(to.1))) {} }
}

/// The sides of the area in which values are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// Horizontal grid lines with their labels on the left.
pub(crate) fn y_axis(area: Area, scale: &Scale, label: &dyn Fn(f64) -> String) -> Markup {
    html! {
        @for tick in scale.ticks(34.0) {
            (line("grid", (area.left, scale.at(tick)), (area.right, scale.at(tick))))
            (text(area.left - 8.0, scale.at(tick) + 4.0, Anchor::End, "tick", &label(tick)))
        }
    }
}

/// Ticks below the area; those that would touch a neighbour are left out.
pub(crate) fn x_axis(area: Area, scale: &Scale, ticks: &[f64], label: &dyn Fn(f64) -> String) -> Markup {
    let mut free_from = f64::MIN;
    let mut shown = Vec::new();
    for tick in ticks {
        let (x, words) = (scale.at(*tick), label(*tick));
        let half = width(&words) / 2.0;
        let is_last = ticks.last() == Some(tick);
        if x - half <= free_from && is_last && shown.len() > 1 {
            // The end of an axis says more than what is just before it.
            shown.pop();
            free_from = f64::MIN;
        }
        if x - half > free_from {
            shown.push((x, words));
            free_from = x + half + 8.0;
        }
    }
    html! {
        (line("axis", (area.left, area.bottom), (area.right, area.bottom)))
        @for (x, words) in &shown {
            (line("axis", (*x, area.bottom), (*x, area.bottom + 4.0)))
            (text(*x, area.bottom + 18.0, Anchor::Middle, "tick", words))
        }
    }
}

/// About how wide text of 12 pixels is; fonts differ, so generous.
pub(crate) fn width(words: &str) -> f64 {
    7.0 * words.chars().count() as f64
}

/// Words that fit into this width: cut, if they must be.
pub(crate) fn fitting(words: &str, room: f64) -> String {
    let most = (room / 6.6) as usize;
    if words.chars().count() <= most {
        return words.to_string();
    }
    let cut: String = words.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// A mark of about 7 pixels, around its point.
pub(crate) fn mark(mark: Mark, x: f64, y: f64, title: &str) -> Markup {
    let d = match mark {
        Mark::Disc => format!("M{} {}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", n(x - 3.5), n(y)),
        Mark::Square => format!("M{} {}h6v6h-6z", n(x - 3.0), n(y - 3.0)),
        Mark::Diamond => format!("M{} {}l4.2 4.2-4.2 4.2-4.2-4.2z", n(x), n(y - 4.2)),
        Mark::Up => format!("M{} {}l4 7h-8z", n(x), n(y - 4.2)),
        Mark::Down => format!("M{} {}l4-7h-8z", n(x), n(y + 4.2)),
    };
    html! { path.mark d=(d) { title { (title) } } }
}

/// Moves labels apart: `wanted` heights to heights that are [`LINE`] apart and within the ends, in the
/// order of their heights. With more labels than room they overlap evenly.
pub(crate) fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let gap = LINE.min((bottom - top) / (wanted.len().max(2) - 1) as f64);
    let mut placed = vec![0.0; wanted.len()];
    let mut above = f64::MIN;
    for at in &order {
        placed[*at] = wanted[*at].max(above + gap).max(top);
        above = placed[*at];
    }
    let mut below = bottom + gap;
    for at in order.iter().rev() {
        placed[*at] = placed[*at].min(below - gap);
        below = placed[*at];
    }
    placed
}

/// The same chart for desks and for phones; the style sheet shows one of them.
pub(crate) fn both(draw: impl Fn(Frame) -> Markup) -> Markup {
    html! {
        div.wide { (draw(Frame::Wide)) }
        div.narrow { (draw(Frame::Narrow)) }
    }
}

/// A picture for pages that are not ours: with its own colours and ground, light and dark.
pub(crate) fn standalone(chart: &str, height: f64) -> String {
    let style = format!("{}{}", include_str!("chart.css"), crate::report::peers::style());
    let ground = html! {
        rect.ground x="0.5" y="0.5" rx="8" width=(n(Frame::Wide.width() - 1.0)) height=(n(height - 1.0)) {}
    };
    let content = html! { style { (PreEscaped(style)) } (ground) };
    let open = chart.find('>').map_or(0, |at| at + 1);
    format!("{}{}{}\n", &chart[..open], content.into_string(), &chart[open..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0.0, -0.04, 0.5, -0.5, 12.0, 12.34].map(n);
        assert_eq!(all, ["0", "0", ".5", "-.5", "12", "12.3"]);
    }

    #[test]
    fn a_path_returns_to_where_it_began() {
        assert_eq!(path([(10.0, 20.0), (10.04, 19.0), (10.08, 21.0), (10.0, 20.0)]), "M10 20l0-1 .1 2-.1-1");
    }

    #[test]
    fn labels_keep_apart_and_inside() {
        let placed = spread(&[50.0, 51.0, 52.0, 98.0], 0.0, 100.0);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9), "{placed:?}");
        assert!(placed.iter().all(|y| (0.0..=100.0).contains(y)), "{placed:?}");
        let crowded = spread(&[5.0; 20], 0.0, 100.0);
        assert!(crowded.iter().all(|y| (-1e-9..=100.0 + 1e-9).contains(y)), "{crowded:?}");
    }
}
