//! The pictures of the page: charts of the report, each by itself and with its own colours.

use crate::record::Record;
use crate::report::current::current;
use crate::report::model::{Group, Model};
use crate::report::svg::{Frame, standalone};
use crate::report::{headline, rate_by_size, time_by_size};

use super::ran;

/// The picture of the README.
pub const ROUND_TRIPS: &str = "round_trips.svg";

/// Free around a picture, in pixels.
const MARGIN: f64 = 14.0;

/// A file for docs/results/.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// What it shows, for who does not see it.
    pub says: String,
    /// The SVG, with its own colours for light and dark.
    pub svg: String,
}

/// The pictures of a run; what was not measured has none.
pub fn pictures(records: &[Record]) -> Vec<Picture> {
    let shown = current(records);
    let model = Model::new(&shown);
    let mut pictures = Vec::new();
    if let Some(picture) = round_trips(&model) {
        pictures.push(picture);
    }
    type Draw = fn(&Model, &Group, Frame) -> maud::Markup;
    let against_size: [(&str, &str, Draw); 2] = [
        ("latency", "Median round trip against size", time_by_size),
        ("throughput", "Throughput against size", rate_by_size),
    ];
    for (workload, says, draw) in against_size {
        let groups = model.of(workload);
        let Some(group) = groups.iter().filter(|group| ran(group)).max_by_key(|group| {
            (group.key.transport == "udp", group.key.case.is_empty(), group.sizes().len())
        }) else {
            continue;
        };
        let says = format!("{says}: {} ({})", group.conditions(), group.label());
        let svg = titled(&says, &draw(&model, group, Frame::Wide).into_string());
        pictures.push(Picture { name: format!("{workload}_by_size.svg"), says, svg });
    }
    pictures
}

fn round_trips(model: &Model) -> Option<Picture> {
    let (title, mut chart) = headline(model)?;
    chart.title = format!("{title}: median (bar) and 99 % (line)");
    let drawn = chart.draw(Frame::Wide, MARGIN).into_string();
    let says = format!("{title}: median and 99th percentile of each peer");
    Some(Picture {
        name: ROUND_TRIPS.to_string(),
        says,
        svg: standalone(&drawn, chart.height() + MARGIN / 2.0),
    })
}

/// A chart of the page as a picture: moved down and in, below its title.
fn titled(title: &str, chart: &str) -> String {
    /// The title's height.
    const HEAD: f64 = 34.0;
    let open = chart.find('>').map_or(0, |at| at + 1);
    let close = chart.rfind("</svg>").unwrap_or(chart.len());
    let height = view_height(chart) + HEAD + MARGIN;
    let width = Frame::Wide.width();
    let scale = (width - 2.0 * MARGIN) / width;
    let text = maud::html! { text.title x=(MARGIN) y="24" { (title) } }.into_string();
    let moved = format!(
        r#"<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{text}<g transform="translate({MARGIN} {HEAD}) scale({scale:.4})">{}</g></svg>"#,
        &chart[open..close]
    );
    standalone(&moved, height)
}

fn view_height(chart: &str) -> f64 {
    let view = chart.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    view.split(' ').nth(3).and_then(|number| number.parse().ok()).unwrap_or(400.0)
}
