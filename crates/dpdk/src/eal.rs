//! DPDK in this process: its start, and what it says.
//!
//! Owns the arguments that it is started with, and the lock under which all is done that DPDK does not lock itself:
//! its lists of devices, and what it said last. It is never ended, as it cannot be started again; the operating system
//! takes back what it has.

use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::one_line;
use crate::{Error, ffi};

/// Above it memory of ordinary pages is likely a mistake, and its argument a number too large for DPDK.
const MOST_MIB: u32 = 1 << 20;
/// Arguments of the user's. DPDK has some fifty.
const MOST_ARGUMENTS: usize = 64;
/// As much as the shim keeps.
const SAID: usize = 1_024;

/// Where DPDK has the memory of its frames and rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// In ordinary pages, so much in MiB. Works everywhere; a card needs an IOMMU with it.
    Ordinary {
        /// As much as DPDK ever has. The kernel gives each page when it is first used. *Range*: 16 to 1,048,576.
        mib: u32,
    },
    /// In huge pages, as many as are needed and reserved; in files that no other process opens.
    Huge,
}

/// What of DPDK's log goes to the standard error stream. Whatever it is, errors tell what they are about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loudness {
    /// Nothing but why it ends the process, if it must.
    Silent = 0,
    /// What failed.
    Errors = 4,
    /// What may go wrong, too.
    Warnings = 5,
    /// What it does, too.
    Information = 7,
    /// Everything.
    Debug = 8,
}

/// What DPDK is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EalConfig {
    /// Where its memory is.
    pub memory: Memory,
    /// The cards that it may take, by their addresses on the PCI bus. None named: it does not look at the bus. If it does,
    /// others can be opened later.
    pub devices: Vec<String>,
    /// The core that it takes for its own; `None`: the first that the thread may run on. Its threads, which do nothing
    /// but set up connections, keep off it if they can.
    pub core: Option<u32>,
    /// What goes to the standard error stream.
    pub loudness: Loudness,
    /// Further arguments, as DPDK documents them.
    pub arguments: Vec<String>,
}

impl Default for EalConfig {
    /// 256 MiB of ordinary memory, no cards, silent: enough for some devices at an MTU of 1,500.
    fn default() -> EalConfig {
        EalConfig {
            memory: Memory::Ordinary { mib: 256 },
            devices: Vec::new(),
            core: None,
            loudness: Loudness::Silent,
            arguments: Vec::new(),
        }
    }
}

/// DPDK runs.
#[derive(Clone, Copy, Debug)]
pub struct Eal(());

/// Whether it does.
pub(crate) enum State {
    NotStarted,
    Runs(EalConfig),
    Failed,
}

/// Held while anything is set up, closed or started, and until what DPDK said of it was taken.
static CONTROL: Mutex<State> = Mutex::new(State::NotStarted);

/// A panic under the lock leaves DPDK as it is.
pub(crate) fn control() -> MutexGuard<'static, State> {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Eal {
    /// Starts DPDK in this process, or finds that it runs so already. The thread stays on the cores that it was on.
    ///
    /// *Errors*: [`Error::OtherSettings`], [`Error::FailedBefore`]; [`Error::BadParameter`] and
    /// [`Error::BadArguments`]; [`Error::NoHugePages`]; [`Error::NotStarted`]. *Cost*: a quarter of a second, as it
    /// loads all of its drivers; two threads, which sleep.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), taut_dpdk::Error> {
    /// use taut_dpdk::{Eal, EalConfig, Memory};
    ///
    /// let settings = EalConfig { memory: Memory::Huge, ..EalConfig::default() };
    /// let eal = Eal::start(&settings)?;
    /// # let _ = eal;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(config: &EalConfig) -> Result<Eal, Error> {
        let mut state = control();
        match &*state {
            State::Runs(with) if serves(with, config) => return Ok(Eal(())),
            State::Runs(_) => return Err(Error::OtherSettings),
            State::Failed => return Err(Error::FailedBefore),
            State::NotStarted => {}
        }
        let arguments = arguments(config)?;
        let mut pointers: Vec<*mut c_char> = Vec::with_capacity(arguments.len() + 1);
        let mut words: Vec<Vec<u8>> =
            arguments.iter().map(|word| word.as_bytes_with_nul().to_vec()).collect();
        pointers.extend(words.iter_mut().map(|word| word.as_mut_ptr().cast::<c_char>()));
        pointers.push(std::ptr::null_mut());
        // SAFETY: as many strings as are said, each ending in a zero, that DPDK may write and that live until it is
        // done; the state, which is locked, says that this is the only call.
        let result = unsafe {
            ffi::taut_dpdk_start(arguments.len() as c_int, pointers.as_mut_ptr(), config.loudness as u32)
        };
        if result < 0 {
            *state = State::Failed;
            return Err(refused(config, &arguments, -result));
        }
        said();
        *state = State::Runs(config.clone());
        Ok(Eal(()))
    }
}

/// Does DPDK that was started so do for this, too? Another card is looked for when it is opened, if the bus is looked at.
fn serves(with: &EalConfig, wanted: &EalConfig) -> bool {
    let has_bus = wanted.devices.is_empty() || !with.devices.is_empty();
    has_bus && *with == EalConfig { devices: with.devices.clone(), ..wanted.clone() }
}

/// The command line of DPDK.
fn arguments(config: &EalConfig) -> Result<Vec<CString>, Error> {
    // SAFETY: needs nothing.
    let core = config.core.unwrap_or_else(|| unsafe { ffi::taut_dpdk_first_core() });
    let log = (config.loudness as u32).max(Loudness::Errors as u32);
    let mut words: Vec<String> = ["taut", "--no-telemetry"].map(str::to_string).into();
    // A core by a number of its own: DPDK counts to 128 only.
    words.push(format!("--lcores=0@{core}"));
    words.push(format!("--log-level={log}"));
    match config.memory {
        Memory::Ordinary { mib: mib @ 16..=MOST_MIB } => {
            words.extend(["--no-huge".to_string(), "--no-shconf".to_string(), format!("-m{mib}")]);
        }
        Memory::Ordinary { mib } => {
            let text = format!("{mib} MiB of memory are out of range: choose 256, or from 16 to {MOST_MIB}");
            return Err(Error::BadParameter(text));
        }
        // In one file, drivers can pass it on as one.
        Memory::Huge => words.extend(["--in-memory", "--single-file-segments"].map(str::to_string)),
    }
    match config.devices.as_slice() {
        [] => words.push("--no-pci".to_string()),
        devices => words.extend(devices.iter().map(|device| format!("--allow={device}"))),
    }
    if config.arguments.len() > MOST_ARGUMENTS {
        return Err(Error::BadParameter(format!(
            "DPDK gets at most {MOST_ARGUMENTS} arguments: leave some out"
        )));
    }
    if let Some(word) = config.arguments.iter().find(|word| ends_the_process(word)) {
        let text = format!("the argument {word} would end this process: leave it out, and read DPDK's guide");
        return Err(Error::BadParameter(text));
    }
    if let Some(word) = config.arguments.iter().find(|word| waits_for_ever(word)) {
        let text = format!(
            "with the argument {word} DPDK would wait for ever for a process that it shares memory with: leave it out, \
             as each has its own"
        );
        return Err(Error::BadParameter(text));
    }
    if let Some(word) = of_no_option(&config.arguments) {
        let text = format!(
            "the argument {word:?} belongs to no option, and DPDK would leave it out without a word: put its option \
             before it; an argument that has commas itself stands in an array of the configuration's file"
        );
        return Err(Error::BadParameter(text));
    }
    words.extend(config.arguments.iter().cloned());
    words.into_iter().map(c_string).collect()
}

/// The first word that is neither an option nor the value of the one before it.
fn of_no_option(arguments: &[String]) -> Option<&String> {
    let before = std::iter::once("").chain(arguments.iter().map(String::as_str));
    let takes_value = |before: &str| before.starts_with('-') && !before.contains('=');
    let mut pairs = before.zip(arguments);
    pairs.find(|(before, word)| !word.starts_with('-') && !takes_value(before)).map(|(_, word)| word)
}

/// Does DPDK print and exit on it? It takes beginnings of long options, and several short ones in a word.
fn ends_the_process(word: &str) -> bool {
    let is_help = word.len() > 2 && "--help".starts_with(word);
    // That is the only one before it that takes no value.
    let has_short =
        word.strip_prefix('-').is_some_and(|short| short.trim_start_matches('v').starts_with('h'));
    is_help || has_short || word == "help" || word.ends_with("log-level=help")
}

/// Does DPDK wait on it for the first process of those that share a configuration, of which we have none?
fn waits_for_ever(word: &str) -> bool {
    word == "secondary" || word.starts_with("--p") && word.ends_with("=secondary")
}

/// What DPDK takes, with a zero at its end.
pub(crate) fn c_string(word: String) -> Result<CString, Error> {
    CString::new(word).map_err(|error| {
        let word = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\\0");
        Error::BadParameter(format!("`{word}` has a zero in it: leave it out"))
    })
}

fn refused(config: &EalConfig, arguments: &[CString], errno: i32) -> Error {
    const EACCES: i32 = 13;
    const ENOMEM: i32 = 12;
    const EINVAL: i32 = 22;
    let said = said();
    match (errno, config.memory) {
        (EINVAL, _) => {
            let words: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy()).collect();
            Error::BadArguments { arguments: words.join(" "), said }
        }
        (EACCES | ENOMEM, Memory::Huge) => Error::NoHugePages { said },
        _ => Error::NotStarted { said, errno },
    }
}

/// What DPDK has said since the last call, in one line. The lock is held, or it may be about another's doings.
pub(crate) fn said() -> String {
    let mut bytes = [0_u8; SAID];
    // SAFETY: there is as much room as is said.
    let len = unsafe { ffi::taut_dpdk_said(bytes.as_mut_ptr().cast(), bytes.len()) };
    one_line(&String::from_utf8_lossy(bytes.get(..len).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(config: &EalConfig) -> Vec<String> {
        let words = arguments(config).unwrap();
        words.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_command_line() {
        let config = EalConfig { core: Some(130), ..EalConfig::default() };
        let expected = [
            "taut",
            "--no-telemetry",
            "--lcores=0@130",
            "--log-level=4",
            "--no-huge",
            "--no-shconf",
            "-m256",
            "--no-pci",
        ];
        assert_eq!(words(&config), expected);
        let config = EalConfig {
            memory: Memory::Huge,
            devices: vec!["0000:01:00.0".into()],
            core: Some(1),
            loudness: Loudness::Debug,
            arguments: vec!["-n4".into()],
        };
        let expected = [
            "taut",
            "--no-telemetry",
            "--lcores=0@1",
            "--log-level=8",
            "--in-memory",
            "--single-file-segments",
            "--allow=0000:01:00.0",
            "-n4",
        ];
        assert_eq!(words(&config), expected);
    }

    /// A text that was cut at its commas; DPDK takes it for the program's own and says nothing.
    #[test]
    fn what_belongs_to_no_option_is_refused() {
        let told = |list: &[&str]| {
            let arguments = list.iter().map(|word| (*word).to_string()).collect();
            super::arguments(&EalConfig { arguments, ..EalConfig::default() })
                .err()
                .map(|error| error.to_string())
        };
        for list in [&["--vdev=net_null0", "size=64"][..], &["size=64"], &["-n", "4", "8"]] {
            let told = told(list).unwrap();
            assert!(told.contains("belongs to no option") && told.contains("in an array"), "{told}");
        }
        for list in
            [&["-m", "512"][..], &["--vdev", "net_null0,size=64"], &["--vdev=net_null0,size=64", "-n4"]]
        {
            assert_eq!(told(list), None);
        }
    }

    #[test]
    fn what_cannot_be_an_argument() {
        let refused = |word: &str| {
            let config = EalConfig { arguments: vec![word.to_string()], ..EalConfig::default() };
            let error = arguments(&config).unwrap_err().to_string();
            assert!(error.contains("leave"), "{error}");
        };
        ["-h", "-vh", "--help", "--he", "--log-level=help", "a\0b"].into_iter().for_each(refused);
        ["--proc-type=secondary", "--p=secondary", "secondary"].into_iter().for_each(refused);
        let many = EalConfig { arguments: vec!["-v".into(); 65], ..EalConfig::default() };
        assert!(arguments(&many).unwrap_err().to_string().contains("at most 64"));
        let small = EalConfig { memory: Memory::Ordinary { mib: 15 }, ..EalConfig::default() };
        assert!(arguments(&small).unwrap_err().to_string().contains("choose 256"));
    }
}
