//! A plan as a page for people.

use std::fmt::Write;

use crate::apply::{Outcome, Taken};
use crate::plan::{Able, Plan, Step};

/// The columns behind what is done with a step, and behind what it is about.
const WORD: usize = 10;
const ITEM: usize = 24;

impl Plan {
    /// The title, and for each step what it is, what it would be, why, and what stands in the way.
    ///
    /// ```
    /// let config = taut_nic::NicConfig::of_interface("enp3s0", 0, &[0, 1]);
    /// let facts = serde_json::from_str(include_str!("../facts/i210.json")).unwrap();
    /// assert!(taut_nic::plan(&config, &facts).unwrap().page().starts_with("enp3s0 (igb): critical queue 3 of 4"));
    /// ```
    pub fn page(&self) -> String {
        let mut page = format!("{}\n", self.title);
        for step in &self.steps {
            page += &step.text(step.word());
        }
        page
    }

    /// How many steps are to be done.
    ///
    /// ```
    /// # let plan = taut_nic::Plan { title: String::new(), steps: Vec::new() };
    /// assert_eq!(plan.changes(), 0);
    /// ```
    pub fn changes(&self) -> usize {
        let done = |step: &&Step| matches!(step.able, Able::Change(_) | Able::After(_));
        self.steps.iter().filter(done).count()
    }
}

impl Step {
    fn word(&self) -> &'static str {
        match self.able {
            Able::Change(_) => "change",
            Able::AsPlanned => "as it is",
            Able::After(_) => "later",
            Able::Cannot(_) => "cannot",
            Able::Told => "told",
        }
    }

    /// The step with what has become of it.
    ///
    /// ```
    /// let config = taut_nic::NicConfig::of_interface("enp3s0", 0, &[0, 1]);
    /// let facts = serde_json::from_str(include_str!("../facts/i210.json")).unwrap();
    /// let step = &taut_nic::plan(&config, &facts).unwrap().steps[1];
    /// assert!(step.done(&taut_nic::Outcome::Done).starts_with("  done      receive ring"));
    /// ```
    pub fn done(&self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Done => self.text("done"),
            Outcome::Left => self.text(self.word()),
            Outcome::Failed(why) => self.text("failed") + &line("because", why),
        }
    }

    fn text(&self, word: &str) -> String {
        let what = match &self.able {
            Able::Change(_) if !self.now.is_empty() => format!("{} -> {}", self.now, self.then),
            _ => self.then.clone(),
        };
        let mut text = format!("  {word:<WORD$}{:<ITEM$}  {what}\n", self.item);
        text += &line("gains", &self.gains);
        match &self.able {
            Able::Cannot(why) => text += &line("because", why),
            Able::After(first) => text += &line("after", first),
            Able::Change(_) | Able::AsPlanned | Able::Told => {}
        }
        text += &line("lost", &self.lost);
        text
    }
}

impl Taken {
    /// What became of it, on a line.
    ///
    /// ```
    /// # let (item, from, to) = ("receive ring".to_owned(), "512 frames".to_owned(), "256 frames".to_owned());
    /// let taken = taut_nic::Taken { item, from, to, left: None, refused: false };
    /// assert_eq!(taken.line(), "receive ring: 512 frames -> 256 frames");
    /// ```
    pub fn line(&self) -> String {
        match &self.left {
            None => format!("{}: {} -> {}", self.item, self.from, self.to),
            Some(why) => format!("{}: left as it is: {why}", self.item),
        }
    }
}

/// A line below a step; none for nothing.
fn line(label: &str, text: &str) -> String {
    let mut line = String::new();
    if !text.is_empty() {
        let _ = writeln!(line, "            {label:<8}{text}");
    }
    line
}
