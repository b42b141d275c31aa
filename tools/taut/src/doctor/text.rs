//! The findings as a page for people: the worst first, no line wider than the terminal.

use std::fmt::Write;

use super::finding::{Finding, Lasts, Mend, State};
use super::fix::Change;
use crate::output::{self, escaped, wrapped};

/// The widest that lines get, for a page in a report. A narrower terminal is followed down to [`NARROW`].
const WIDE: usize = 100;
const NARROW: usize = 60;
/// The column behind the names.
const NAME: usize = 28;
/// The column behind the words of a finding that is not good.
const BODY: usize = 12;

/// How a page is to look.
#[derive(Clone, Copy)]
pub struct Look {
    pub width: usize,
    pub styled: bool,
}

impl Look {
    /// On a terminal its width and colours, unless NO_COLOR is set; elsewhere neither.
    pub fn of_stdout() -> Look {
        let width = output::width().map_or(WIDE, |width| width.clamp(NARROW, WIDE));
        Look { width, styled: taut_perf::terminal::has_style(&std::io::stdout()) }
    }

    fn heading(self, state: State, text: &str) -> String {
        if !self.styled {
            return text.to_owned();
        }
        let color = match state {
            State::Harmful => "31",
            State::WorthChanging => "33",
            State::NotLooked => "2",
            State::Good => "32",
        };
        format!("\x1b[1;{color}m{text}\x1b[0m")
    }
}

/// The page: what was looked at, then the findings in groups.
pub fn page(domain_id: u32, interfaces: &str, findings: &[(&'static str, Finding)], look: Look) -> String {
    let mut page = String::new();
    let of = |state: State| findings.iter().filter(move |(_, finding)| finding.state == state);
    let counts: Vec<String> =
        State::ALL.map(|state| format!("{} {}", of(state).count(), state.words())).into_iter().collect();
    for line in wrapped(&format!("Domain {domain_id} on {interfaces}: {}", counts.join(", ")), look.width, 0)
    {
        let _ = writeln!(page, "{}", line.trim_start());
    }
    for state in State::ALL {
        if of(state).next().is_none() {
            continue;
        }
        let mut heading = state.words().to_owned();
        heading[..1].make_ascii_uppercase();
        let _ = writeln!(page, "\n{}", look.heading(state, &heading));
        for (_, finding) in of(state) {
            write_finding(&mut page, finding, look.width);
        }
    }
    page
}

fn write_finding(page: &mut String, finding: &Finding, width: usize) {
    let name = escaped(&finding.name);
    let mut seen = wrapped(&escaped(&finding.seen), width, NAME).into_iter();
    let first = seen.next().unwrap_or_default();
    let _ = writeln!(page, "  {0:<1$} {2}", name, NAME - 3, first.trim_start());
    for line in seen {
        let _ = writeln!(page, "{line}");
    }
    let mut labelled = |label: &str, text: &str| {
        let mut lines = wrapped(text, width, BODY).into_iter();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(page, "      {0:<1$}{2}", label, BODY - 6, first.trim_start());
        for line in lines {
            let _ = writeln!(page, "{line}");
        }
    };
    if !finding.cost.is_empty() {
        labelled("costs", &finding.cost);
    }
    if let Some(mend) = &finding.mend {
        for (label, commands) in [("mend", mend.command.as_str()), ("undo", mend.undo())] {
            // Not wrapped: they are to be copied.
            for (n, command) in commands.lines().enumerate() {
                let label = if n == 0 { label } else { "" };
                let _ = writeln!(page, "      {:<1$}{2}", label, BODY - 6, escaped(command));
            }
        }
        for line in wrapped(&how(mend), width, BODY) {
            let _ = writeln!(page, "{line}");
        }
    }
}

/// Who does it, and how long it lasts.
fn how(mend: &Mend) -> String {
    let who = if mend.is_by_fix() { "`taut doctor --fix` does it" } else { "by hand" };
    let lasts = match mend.lasts {
        Lasts::UntilReboot => "until a reboot",
        Lasts::ForGood => "for good",
        Lasts::FromNextLogin => "for good, once you have logged in again",
    };
    // What is no change lasts no time.
    if mend.can_be_undone() { format!("{who}, {lasts}") } else { who.to_owned() }
}

/// A line for each value that was written or put back, and for what was added or taken away.
pub fn changes(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| {
        let path = escaped(&change.path);
        match &change.left {
            None => format!("{path}: {} -> {}", escaped(&change.from), escaped(&change.to)),
            Some(why) => format!("{path}: left as it is: {}", escaped(why)),
        }
    };
    changes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { width: 60, styled: false };

    fn findings() -> Vec<(&'static str, Finding)> {
        let cost = "a cost that is told in more words than there is room for in one line of sixty columns";
        let mend = Mend::sysctl("net.core.rmem_max", 4_194_304, false);
        vec![
            ("sockets", Finding::good("send buffer", "4 MiB")),
            (
                "sockets",
                Finding::worth_changing("receive buffer", "208 KiB of 4 MiB asked for", cost).mend(mend),
            ),
        ]
    }

    #[test]
    fn the_worst_first_and_no_line_too_wide() {
        let page = page(3, "lo (127.0.0.1)", &findings(), PLAIN);
        let wanted = "\
Domain 3 on lo (127.0.0.1): 0 harmful, 1 worth changing, 0
could not be looked at, 1 good

Worth changing
  receive buffer            208 KiB of 4 MiB asked for
      costs a cost that is told in more words than there is
            room for in one line of sixty columns
      mend  sysctl -w net.core.rmem_max=4194304
      undo  taut doctor --undo
            `taut doctor --fix` does it, until a reboot

Good
  send buffer               4 MiB
";
        assert_eq!(page, wanted);
    }

    #[test]
    fn each_command_has_a_line() {
        let mend = Mend::by_hand("one 0\ntwo 0", Lasts::UntilReboot, "two 1\none 1\x1b");
        let finding = Finding::worth_changing("throttle", "both", "time").mend(mend);
        let page = page(3, "lo", &[("scheduling", finding)], PLAIN);
        let wanted = "
      mend  one 0
            two 0
      undo  two 1
            one 1\\u{1b}
            by hand, until a reboot
";
        assert!(page.ends_with(wanted), "{page}");
    }

    #[test]
    fn colours_on_a_terminal_only() {
        assert!(!page(3, "lo", &findings(), PLAIN).contains('\x1b'));
        let styled = page(3, "lo", &findings(), Look { styled: true, ..PLAIN });
        assert!(styled.contains("\x1b[1;33mWorth changing\x1b[0m"), "{styled}");
    }

    #[test]
    fn what_was_changed() {
        let change = |left: Option<&str>| Change {
            path: "/proc/sys/a".to_owned(),
            from: "1".to_owned(),
            to: "2".to_owned(),
            left: left.map(str::to_owned),
            refused: false,
        };
        let lines = changes(&[change(None), change(Some("why"))]);
        assert_eq!(lines, ["/proc/sys/a: 1 -> 2", "/proc/sys/a: left as it is: why"]);
    }
}
