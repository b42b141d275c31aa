//! What is aimed at and what others have published: the tables of the documentation, on the page of a run.

use maud::{Markup, html};

use crate::aims;
use crate::published::{self, Table};
use crate::report::model::Model;

/// The tables of the studies: the first is open, the others by their titles.
pub(crate) fn draw(model: &Model) -> Option<Markup> {
    let tables = published::tables(model.records, model.records);
    (!tables.is_empty()).then(|| {
        html! {
            p { (published::explained(model.records).replace('*', "")) }
            @for (at, table) in tables.iter().enumerate() {
                details open[at == 0] {
                    summary { (table.title) }
                    @if !table.says.is_empty() { p { (table.says) } }
                    (rows(table))
                    p.soft { @for command in &table.commands { code { (command) } " " } }
                }
            }
        }
    })
}

/// What Taut is built for, if it is the subject.
pub(crate) fn aims(model: &Model) -> Option<Markup> {
    let table = aims::table(model.records)?;
    Some(html! {
        p { (table.says) }
        (rows(&table))
    })
}

fn rows(table: &Table) -> Markup {
    let is_figure = |at: usize| table.heads.get(at).is_some_and(|head| head.is_figure);
    html! {
        div.scroll { table.beside {
            thead { tr { @for head in &table.heads { th.n[head.is_figure] { (head.text) } } } }
            tbody { @for row in &table.rows { tr { @for (at, cell) in row.iter().enumerate() {
                @match at {
                    0 => { th { (cell.replace('`', "")) } }
                    _ => { td.n[is_figure(at)] { (cell) } }
                }
            } } } }
        } }
    }
}
