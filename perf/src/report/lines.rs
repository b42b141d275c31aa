//! Lines over an axis: latency and throughput against size, fan-out, tails, memory over time.

use maud::{Markup, html};

use crate::report::peers;
use crate::report::scale::{Kind, Scale, log_ends};
use crate::report::svg::{
    Anchor, Area, Frame, LINE, fitting, line, mark, n, path, sheet, spread, text, width, x_axis, y_axis,
};

/// A place on a line.
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// What lies beside it: median to 99th percentile, or an interval.
    pub(crate) band: Option<(f64, f64)>,
    pub(crate) title: String,
}

/// One peer's line.
pub(crate) struct Line {
    pub(crate) peer: String,
    pub(crate) label: String,
    pub(crate) points: Vec<Point>,
}

/// A chart of lines.
pub(crate) struct LineChart<'a> {
    pub(crate) says: String,
    pub(crate) subject: &'a str,
    pub(crate) x: Kind,
    pub(crate) y: Kind,
    /// What is along the axis, with its unit.
    pub(crate) x_title: &'a str,
    pub(crate) y_title: &'a str,
    pub(crate) x_label: &'a dyn Fn(f64) -> String,
    pub(crate) y_label: &'a dyn Fn(f64) -> String,
    /// Ticks at the values that were measured instead of round ones.
    pub(crate) x_measured: bool,
    /// Are the points measured ones, that deserve a mark.
    pub(crate) marks: bool,
    /// Of the vertical axis, where charts beside each other share it.
    pub(crate) ends: Option<(f64, f64)>,
    pub(crate) lines: Vec<Line>,
}

impl LineChart<'_> {
    pub(crate) fn draw(&self, frame: Frame) -> Markup {
        let height = frame.pick(430.0, 310.0);
        let room = self
            .lines
            .iter()
            .map(|line| width(&line.label))
            .fold(0.0, f64::max)
            .min(frame.pick(170.0, 106.0));
        let area = Area {
            left: frame.pick(58.0, 50.0),
            right: frame.width() - room - frame.pick(26.0, 16.0),
            top: 30.0,
            bottom: height - 44.0,
        };
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let Some(y_ends) = self.y_ends() else {
            return html! { p.soft { "Nothing was measured." } };
        };
        let xs = points().map(|point| point.x).fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let x = Scale::new(self.x, xs, (area.left + 6.0, area.right - 4.0));
        let y = Scale::new(self.y, y_ends, (area.bottom, area.top));
        let ticks = self.x_ticks(&x, frame);
        let content = html! {
            (text(0.0, 12.0, Anchor::Start, "", self.y_title))
            (y_axis(area, &y, self.y_label))
            (x_axis(area, &x, &ticks, self.x_label))
            (text(area.right, height - 6.0, Anchor::End, "", self.x_title))
            (self.curves(frame, area, &x, &y))
        };
        sheet(frame, height, &self.says, &content)
    }

    fn y_ends(&self) -> Option<(f64, f64)> {
        if self.ends.is_some() {
            return self.ends;
        }
        let points = self.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)));
        let seen = points.flat_map(|(line, point)| {
            let band = point.band.filter(|_| self.is_hero(line));
            [Some(point.y), band.map(|band| band.0), band.map(|band| band.1)]
        });
        let ends = log_ends(seen.flatten())?;
        Some(if self.y == Kind::Linear { (0.0, ends.1) } else { ends })
    }

    fn x_ticks(&self, x: &Scale, frame: Frame) -> Vec<f64> {
        if !self.x_measured {
            return x.ticks(frame.pick(70.0, 60.0));
        }
        let mut ticks: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.x)).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        ticks
    }

    fn is_hero(&self, line: &Line) -> bool {
        peers::adapter(&line.peer) == self.subject
    }

    /// The lines with their labels; the subject last, so that it lies above the others.
    fn curves(&self, frame: Frame, area: Area, x: &Scale, y: &Scale) -> Markup {
        let drawn: Vec<&Line> = self.lines.iter().filter(|line| !line.points.is_empty()).collect();
        let end =
            |line: &&Line| line.points.last().map_or((0.0, 0.0), |point| (x.at(point.x), y.at(point.y)));
        let ends: Vec<(f64, f64)> = drawn.iter().map(end).collect();
        let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
        let heights = spread(&wanted, area.top, area.bottom + LINE / 2.0);
        let mut order: Vec<usize> = (0..drawn.len()).collect();
        order.sort_by_key(|at| self.is_hero(drawn[*at]));
        let names_from = area.right + frame.pick(18.0, 10.0);
        html! {
            @for at in order {
                @let (line, end, label_y) = (drawn[at], ends[at], heights[at]);
                g.one.hero[self.is_hero(line)].(peers::class(&line.peer)) {
                    @if let Some(band) = band(line, x, y) { path.band d=(band) {} }
                    (lead(end, (names_from - 3.0, label_y)))
                    path.line d=(path(line.points.iter().map(|point| (x.at(point.x), y.at(point.y))))) {
                        title { (line.label) }
                    }
                    @if self.marks {
                        @for point in &line.points {
                            (mark(peers::mark(&line.peer), x.at(point.x), y.at(point.y), &point.title))
                        }
                    }
                    (text(names_from, label_y + 4.0, Anchor::Start, "name", &fitting(&line.label, frame.width() - names_from + 6.0)))
                }
            }
        }
    }
}

/// From the end of a line to its name.
fn lead(from: (f64, f64), to: (f64, f64)) -> Markup {
    let from = (from.0 + 5.0, from.1);
    if to.0 - from.0 > 30.0 {
        // It ended early: across to the edge at its own height, then to the name.
        let bend = to.0 - 12.0;
        let d = format!("M{} {}H{}L{} {}", n(from.0), n(from.1), n(bend), n(to.0), n(to.1));
        return html! { path.lead d=(d) {} };
    }
    line("lead", from, to)
}

fn band(line: &Line, x: &Scale, y: &Scale) -> Option<String> {
    let sides: Vec<(f64, f64, f64)> = line
        .points
        .iter()
        .filter_map(|point| point.band.map(|(low, high)| (x.at(point.x), y.at(low), y.at(high))))
        .collect();
    let around =
        sides.iter().map(|side| (side.0, side.1)).chain(sides.iter().rev().map(|side| (side.0, side.2)));
    (sides.len() > 1).then(|| path(around) + "z")
}
