//! Charts with a row for each peer or case: bars of medians, gains with whiskers, spans from the median
//! to the bound.

use maud::{Markup, html};

use crate::report::peers;
use crate::report::scale::{Kind, Scale, log_ends};
use crate::report::svg::{Anchor, Frame, fitting, line, n, sheet, text, width};
use crate::report::units;

/// Height of a row, and of its bar.
const ROW: f64 = 22.0;
const BAR: f64 = 13.0;

/// What a row shows.
pub(crate) enum Value {
    /// A bar, and a thin line on to the 99th percentile if there is one.
    Bar { value: f64, tail: Option<f64> },
    /// A factor around 1 with its interval.
    Gain { value: f64, interval: Option<(f64, f64)> },
    /// From the median over the 99th percentile to the most.
    Span { p50: f64, p99: f64, max: f64 },
    /// No result, and why.
    Nothing(String),
}

/// A row.
pub(crate) struct Row {
    pub(crate) peer: String,
    pub(crate) label: String,
    pub(crate) value: Value,
    /// Figures at the right edge, one a column.
    pub(crate) figures: Vec<String>,
    pub(crate) title: String,
}

/// A chart of rows.
pub(crate) struct RowChart<'a> {
    /// Above the chart; empty for none.
    pub(crate) title: String,
    pub(crate) says: String,
    pub(crate) subject: &'a str,
    /// Heads of the columns of figures.
    pub(crate) heads: Vec<&'a str>,
    pub(crate) rows: Vec<Row>,
    /// Of the axis of spans, where charts beside each other share it.
    pub(crate) ends: Option<(f64, f64)>,
}

impl RowChart<'_> {
    /// How high the chart will be.
    pub(crate) fn height(&self) -> f64 {
        self.top() + self.rows.len() as f64 * ROW + 8.0
    }

    fn top(&self) -> f64 {
        let titles = if self.title.is_empty() { 0.0 } else { 36.0 };
        titles + if self.heads.is_empty() { 4.0 } else { 20.0 }
    }

    /// `margin` is kept free at both sides.
    pub(crate) fn draw(&self, frame: Frame, margin: f64) -> Markup {
        let labels =
            self.rows.iter().map(|row| width(&row.label)).fold(0.0, f64::max).min(frame.pick(190.0, 140.0));
        let column = frame.pick(82.0, 62.0);
        let left = margin + labels + 10.0;
        let edge = frame.width() - margin;
        let right = edge - column * self.heads.len() as f64 - frame.pick(12.0, 4.0);
        let top = self.top();
        let scale = self.scale(left, right);
        let bottom = top + self.rows.len() as f64 * ROW;
        let at_column = |at: usize| edge - column * (self.heads.len() - 1 - at) as f64;
        let content = html! {
            @if !self.title.is_empty() { (text(margin, 12.0 + margin, Anchor::Start, "title", &self.title)) }
            @for (at, head) in self.heads.iter().enumerate() {
                (text(at_column(at), top - 8.0, Anchor::End, "", head))
            }
            (self.ground(&scale, top, bottom))
            @for (at, row) in self.rows.iter().enumerate() {
                @let y = top + (at as f64 + 0.5) * ROW;
                g.one.hero[peers::adapter(&row.peer) == self.subject].(peers::class(&row.peer)) {
                    title { (row.title) }
                    (text(left - 10.0, y + 4.0, Anchor::End, "ink", &fitting(&row.label, left - 10.0)))
                    (self.value(row, &scale, y, (left, right, edge)))
                    @for (at, figure) in row.figures.iter().enumerate() {
                        (text(at_column(at), y + 4.0, Anchor::End, if at == 0 { "ink" } else { "" }, figure))
                    }
                }
            }
        };
        sheet(frame, self.height() + margin / 2.0, &self.says, &content)
    }

    /// Bars begin at 0. Their axis ends a little beyond the longest of them: a tail that goes further
    /// leaves the picture with an arrow, for otherwise one bad tail would hide all that is near.
    fn scale(&self, left: f64, right: f64) -> Scale {
        let places = (left, right);
        let spans = self.rows.iter().filter_map(|row| match row.value {
            Value::Span { p50, max, .. } => Some([p50, max]),
            _ => None,
        });
        if let Some(ends) = log_ends(spans.flatten()).map(|own| self.ends.unwrap_or(own)) {
            return Scale::new(Kind::Log, ends, places);
        }
        let gains = self.rows.iter().filter_map(|row| match row.value {
            Value::Gain { value, interval } => {
                let (low, high) = interval.unwrap_or((value, value));
                Some([value, low.max(value / 2.0), high.min(value * 2.0)])
            }
            _ => None,
        });
        if let Some((low, high)) = log_ends(gains.flatten()) {
            return Scale::new(Kind::Log, (low.min(0.8), high.max(1.25)), places);
        }
        let bars = self.rows.iter().map(|row| match row.value {
            Value::Bar { value, .. } => value,
            _ => 0.0,
        });
        let longest = bars.fold(0.0, f64::max);
        let tails = self.rows.iter().filter_map(|row| match row.value {
            Value::Bar { tail, .. } => tail,
            _ => None,
        });
        let farthest = tails.fold(longest, f64::max);
        Scale::new(Kind::Linear, (0.0, farthest.min(longest * 1.35)), places)
    }

    /// What lies behind the rows: the 1 of gains, the powers of ten of spans.
    fn ground(&self, scale: &Scale, top: f64, bottom: f64) -> Markup {
        let is = |pick: fn(&Value) -> bool| self.rows.iter().any(|row| pick(&row.value));
        html! {
            @if is(|value| matches!(value, Value::Gain { .. })) {
                (line("axis", (scale.at(1.0), top), (scale.at(1.0), bottom)))
            } @else if is(|value| matches!(value, Value::Span { .. })) {
                @for tick in scale.ticks(48.0) {
                    (line("grid", (scale.at(tick), top), (scale.at(tick), bottom)))
                    (text(scale.at(tick), top - 8.0, Anchor::Middle, "tick", &units::time(tick)))
                }
            }
        }
    }

    fn value(&self, row: &Row, scale: &Scale, y: f64, (left, right, edge): (f64, f64, f64)) -> Markup {
        let box_from = |from: f64, to: f64| {
            html! {
                rect.bar x=(n(from.min(to))) y=(n(y - BAR / 2.0)) width=(n((to - from).abs().max(1.0)))
                    height=(n(BAR)) rx="2" {}
            }
        };
        match &row.value {
            Value::Bar { value, tail } => html! {
                (box_from(left, scale.at(*value)))
                @if let Some(tail) = tail {
                    @let end = scale.at(*tail);
                    (line("tail", (scale.at(*value), y), (end, y)))
                    @if end < right - 0.5 || scale.at(*tail * 0.999) < right - 0.5 {
                        (line("tail", (end, y - 4.0), (end, y + 4.0)))
                    } @else {
                        path.tail d=(format!("M{} {}l5 4-5 4", n(end - 5.0), n(y - 4.0))) {}
                    }
                }
            },
            Value::Gain { value, interval } => html! {
                (box_from(scale.at(1.0), scale.at(*value)))
                @if let Some((low, high)) = interval {
                    @let (low, high) = (scale.at(*low), scale.at(*high));
                    path.whisk d=(format!("M{} {y}H{}m0-3.5v7M{} {}v7", n(low), n(high), n(low), n(y - 3.5))) {}
                }
            },
            Value::Span { p50, p99, max } => html! {
                (line("tail", (scale.at(*p50), y), (scale.at(*max), y)))
                circle.dot cx=(n(scale.at(*p50))) cy=(n(y)) r="3" {}
                (line("tail", (scale.at(*p99), y - 4.5), (scale.at(*p99), y + 4.5)))
                rect.dot x=(n(scale.at(*max) - 1.5)) y=(n(y - 5.5)) width="3" height="11" {}
            },
            Value::Nothing(reason) => {
                html! { (text(left, y + 4.0, Anchor::Start, "", &fitting(reason, edge - left))) }
            }
        }
    }
}
