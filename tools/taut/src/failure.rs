//! How the command ends: exit codes, and one sentence for each failure.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Arguments;
use crate::output;

/// The exit code for what is wrong in the arguments, the configuration or the machine's set-up.
const WRONG: u8 = 2;

/// How a command that worked has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It did what it was asked.
    Done,
    /// The time was up first.
    TimedOut,
    /// With the exit code of a part that has its own.
    Code(u8),
}

/// Why a command did not work.
#[derive(Debug)]
pub enum Failure {
    /// What it was asked is wrong; the text has the remedy.
    Wrong(String),
    /// The system failed it while it ran.
    System(String),
    /// Another process of the command has said it already.
    Told,
    /// What it prints cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Has whoever reads our output seen enough of it: left, or not taken more when the process was to end?
    pub fn is_unread(&self) -> bool {
        let Failure::Output(error) = self else { return false };
        matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::WouldBlock)
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Wrong(_) => ExitCode::from(WRONG),
            Failure::System(_) | Failure::Told | Failure::Output(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong(text) | Failure::System(text) => f.write_str(text),
            Failure::Told => Ok(()),
            Failure::Output(error) => {
                write!(f, "the output cannot be written: {error}; make room or redirect it")
            }
        }
    }
}

/// The library refuses what the user has to change: arguments, interfaces, ports in use.
impl From<taut::Error> for Failure {
    fn from(error: taut::Error) -> Self {
        Failure::Wrong(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Help goes to stdout; a wrong argument becomes one sentence.
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return printed(error.print());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(WRONG);
    }
    let told = if error.kind() == ErrorKind::InvalidUtf8 { no_text() } else { unknown_word(error) };
    let text = told.unwrap_or_else(|| sentence(&error.render().to_string()));
    output::note(&text);
    ExitCode::from(WRONG)
}

/// Whoever read it may have seen enough of it.
fn printed(done: io::Result<()>) -> ExitCode {
    match done.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::Output(error);
            output::note(&failure.to_string());
            failure.exit_code()
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The first argument that is no text, which the parser does not name.
fn no_text() -> Option<String> {
    let found = std::env::args_os().skip(1).find(|argument| argument.to_str().is_none())?;
    Some(format!(
        "argument {:?} is no UTF-8: only the name of a file may be any bytes",
        found.to_string_lossy()
    ))
}

/// A command or a topic type that there is not, or that is missing, with those that there are.
fn unknown_word(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // Of one that is missing the parser names the one before.
    let is_missing = error.kind() == ErrorKind::MissingSubcommand;
    let command = Arguments::command();
    // Not all of them have to be text; the parser replaces what is not, too.
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let before = arguments.take_while(|argument| is_missing || argument != word);
    let parent = without_values(&command, before).find_map(|argument| command.find_subcommand(argument));
    let known: Vec<&str> =
        parent.unwrap_or(&command).get_subcommands().map(clap::Command::get_name).collect();
    let (what, known) = (
        match parent.map(clap::Command::get_name) {
            None => "command",
            Some("perf") => "workload",
            Some("nic") => "action",
            Some(_) => "topic type",
        },
        known.join(", "),
    );
    Some(if is_missing {
        format!("which {what}? Use {known}")
    } else {
        format!("unknown {what} {word:?}: use {known}")
    })
}

/// The words but those that are the value of an option before them: a file may be called as a command is.
fn without_values(
    command: &clap::Command,
    words: impl Iterator<Item = String>,
) -> impl Iterator<Item = String> {
    let takes_value = |word: &str| {
        let mut options = command.get_arguments().filter(|option| option.get_action().takes_values());
        word.strip_prefix("--").is_some_and(|word| options.any(|option| option.get_long() == Some(word)))
    };
    let mut is_value = false;
    words.filter(move |word| !std::mem::replace(&mut is_value, takes_value(word)))
}

/// The parser's paragraphs without its synopsis, on one line.
fn sentence(text: &str) -> String {
    let told = text.split("\nUsage:").next().unwrap_or(text);
    let told = told.split("\nFor more information").next().unwrap_or(told);
    let mut lines = told.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut sentence = lines.next().unwrap_or("wrong arguments").trim_start_matches("error: ").to_owned();
    for line in lines {
        sentence.push_str(if sentence.ends_with(':') { " " } else { "; " });
        sentence.push_str(line.trim_start_matches("tip: "));
    }
    sentence.push_str("; try --help");
    sentence
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn one_sentence() {
        let text = "error: unexpected argument '--colour' found\n\n  tip: a similar argument exists: '--color'\n\n\
                    Usage: taut pub shapes [OPTIONS]\n\nFor more information, try '--help'.\n";
        assert_eq!(
            sentence(text),
            "unexpected argument '--colour' found; a similar argument exists: '--color'; try --help"
        );
    }
}
