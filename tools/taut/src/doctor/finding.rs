//! What a check has to say: one finding for each thing that it looked at.

use super::addition::Addition;

/// How a thing is, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Participants are not found, samples do not arrive, or what the configuration asks for is refused.
    Harmful,
    /// It works, and the bound on latency suffers.
    WorthChanging,
    /// `seen` says why.
    NotLooked,
    Good,
}

impl State {
    pub const ALL: [State; 4] = [State::Harmful, State::WorthChanging, State::NotLooked, State::Good];

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            State::Harmful => "harmful",
            State::WorthChanging => "worth_changing",
            State::NotLooked => "not_looked",
            State::Good => "good",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            State::Harmful => "harmful",
            State::WorthChanging => "worth changing",
            State::NotLooked => "could not be looked at",
            State::Good => "good",
        }
    }
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub name: String,
    pub state: State,
    /// What was seen, with its unit; why nothing was, for [`State::NotLooked`].
    pub seen: String,
    /// What it costs a user of DDS; empty where it costs nothing.
    pub cost: String,
    pub mend: Option<Mend>,
}

/// How to mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mend {
    /// What a person types, as root unless it says otherwise; a line for each command.
    pub command: String,
    /// What `--fix` writes and adds; nothing if it cannot or should not.
    pub writes: Vec<Write>,
    pub adds: Option<Addition>,
    pub lasts: Lasts,
    /// How it is taken back by hand, in as many lines; empty where it cannot.
    pub undo: String,
}

/// How long it helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lasts {
    UntilReboot,
    /// From now on.
    ForGood,
    /// For good, once the user has logged in again.
    FromNextLogin,
}

/// A file of the kernel and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Below /proc/sys, /proc/irq or /sys.
    pub path: String,
    pub value: String,
    /// Does the value belong to the network namespace, and not to the machine?
    pub of_namespace: bool,
}

impl Finding {
    fn new(name: &str, state: State, seen: String) -> Finding {
        Finding { name: name.to_owned(), state, seen, cost: String::new(), mend: None }
    }

    pub fn good(name: &str, seen: impl Into<String>) -> Finding {
        Finding::new(name, State::Good, seen.into())
    }

    /// `why` it could not be looked at.
    pub fn not_looked(name: &str, why: impl ToString) -> Finding {
        Finding::new(name, State::NotLooked, why.to_string())
    }

    pub fn worth_changing(name: &str, seen: impl Into<String>, cost: impl Into<String>) -> Finding {
        Finding { cost: cost.into(), ..Finding::new(name, State::WorthChanging, seen.into()) }
    }

    pub fn harmful(name: &str, seen: impl Into<String>, cost: impl Into<String>) -> Finding {
        Finding { cost: cost.into(), ..Finding::new(name, State::Harmful, seen.into()) }
    }

    pub fn mend(self, mend: Mend) -> Finding {
        Finding { mend: Some(mend), ..self }
    }
}

impl Mend {
    /// A sysctl, as `net.core.rmem_max`, which `--fix` sets as well.
    pub fn sysctl(key: &str, value: impl ToString, of_namespace: bool) -> Mend {
        let value = value.to_string();
        let path = sysctl_path(key);
        Mend {
            command: format!("sysctl -w {key}={value}"),
            writes: vec![Write { path, value, of_namespace }],
            adds: None,
            lasts: Lasts::UntilReboot,
            undo: String::new(),
        }
    }

    /// Files that `--fix` writes as well.
    pub fn writes(command: impl Into<String>, writes: Vec<Write>) -> Mend {
        Mend { writes, ..Mend::by_hand(command, Lasts::UntilReboot, "") }
    }

    /// What `--fix` adds as well.
    pub fn adds(command: impl Into<String>, addition: Addition) -> Mend {
        Mend { adds: Some(addition), ..Mend::by_hand(command, Lasts::UntilReboot, "") }
    }

    /// What a person does; `undo` takes it back.
    pub fn by_hand(command: impl Into<String>, lasts: Lasts, undo: impl Into<String>) -> Mend {
        Mend { command: command.into(), writes: Vec::new(), adds: None, lasts, undo: undo.into() }
    }

    /// Does `--fix` do it?
    pub fn is_by_fix(&self) -> bool {
        !self.writes.is_empty() || self.adds.is_some()
    }

    /// How it is taken back.
    pub fn undo(&self) -> &str {
        if self.is_by_fix() { "taut doctor --undo" } else { &self.undo }
    }

    /// Can `--undo` take back what `--fix` did, or a person what he did?
    pub fn can_be_undone(&self) -> bool {
        !self.undo().is_empty()
    }
}

/// The file of a sysctl. An interface's name may have dots: in the key they are slashes, as sysctl has it.
pub fn sysctl_path(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    format!("/proc/sys/{}", key.chars().map(swap).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_and_its_file() {
        let mend = Mend::sysctl("net.ipv4.conf.eth0/7.rp_filter", 2, true);
        assert_eq!(mend.command, "sysctl -w net.ipv4.conf.eth0/7.rp_filter=2");
        assert_eq!(mend.writes[0].path, "/proc/sys/net/ipv4/conf/eth0.7/rp_filter");
    }
}
