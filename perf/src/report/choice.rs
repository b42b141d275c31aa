//! Panels of which one is seen: chosen by buttons, without a script.
//!
//! The style sheet shows the panel whose buttons are all pressed. Browsers that cannot see them all.

use maud::{Markup, PreEscaped, html};

/// A panel, by what is chosen of each list.
pub(crate) struct Panel {
    /// Words, one of each list.
    pub(crate) choice: Vec<String>,
    pub(crate) content: Markup,
}

/// The lists of buttons above their panels. The first panel is the one that is seen first.
pub(crate) fn choice(id: &str, lists: &[&str], panels: &[Panel]) -> Markup {
    let options = |list: usize| {
        let mut words: Vec<&str> = Vec::new();
        for panel in panels {
            let word = panel.choice[list].as_str();
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    };
    let all: Vec<Vec<&str>> = (0..lists.len()).map(options).collect();
    let button = |list: usize, word: &str| {
        let at = all[list].iter().position(|other| *other == word).unwrap_or(0);
        format!("{id}{list}-{at}")
    };
    let pressed = |panel: &Panel| -> String {
        let words = panel.choice.iter().enumerate();
        words.map(|(list, word)| format!(":has(#{}:checked)", button(list, word))).collect()
    };
    let rules: String = panels
        .iter()
        .enumerate()
        .map(|(at, panel)| {
            let chosen = format!("#{id}{}", pressed(panel));
            format!("{chosen} .p{at}{{display:block}}{chosen} .none{{display:none}}")
        })
        .collect();
    html! {
        div id=(id) {
            style { (PreEscaped(rules)) }
            @for (list, title) in lists.iter().enumerate() {
                @if all[list].len() > 1 {
                    fieldset.pick { legend { (title) } @for word in &all[list] {
                        label { input type="radio" name=(format!("{id}{list}")) id=(button(list, word)) checked[panels[0].choice[list] == *word]; (word) }
                    } }
                } @else {
                    input type="radio" hidden name=(format!("{id}{list}")) id=(button(list, all[list][0])) checked;
                }
            }
            @for (at, panel) in panels.iter().enumerate() {
                div class=(format!("panel p{at}")) { (panel.content) }
            }
            p.none { "There is no such line." }
        }
    }
}
