//! What is refused: one sentence each, with the remedy.
//!
//! Owns the words, and how what DPDK says becomes part of a sentence. What an error number means is decided where the
//! call is made.

use std::fmt;

/// Why something was refused. No device stays open after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// DPDK runs in this process with other settings.
    OtherSettings,
    /// DPDK has refused to start in this process before, and cannot be started again.
    FailedBefore,
    /// DPDK does not take its arguments.
    BadArguments {
        /// All of them.
        arguments: String,
        /// What it says.
        said: String,
    },
    /// There are not as many huge pages as are wanted.
    NoHugePages {
        /// What DPDK says.
        said: String,
    },
    /// DPDK does not start, for another reason.
    NotStarted {
        /// What it says.
        said: String,
        /// The error number.
        errno: i32,
    },
    /// No driver knows a device of such a name.
    NoDriver {
        /// The device, as it was asked for.
        device: String,
    },
    /// There is no such device, or it may not be used: no driver for DPDK has it, or it is not among
    /// [`crate::EalConfig::devices`].
    NoDevice {
        /// The device, as it was asked for.
        device: String,
    },
    /// The driver does not take the device with these arguments.
    DeviceRefused {
        /// The device, as it was asked for.
        device: String,
        /// What DPDK and its driver say.
        said: String,
        /// The error number.
        errno: i32,
    },
    /// The device is there and does not start: mostly because its other end is not there.
    DeviceNotStarted {
        /// Its name.
        device: String,
        /// What DPDK and its driver say.
        said: String,
        /// The error number.
        errno: i32,
    },
    /// The device is open already.
    DeviceTaken {
        /// Its name.
        device: String,
    },
    /// The device has fewer queues.
    TooFewQueues {
        /// Its name.
        device: String,
        /// How many queues to receive by, and to send by, it has.
        most: (u16, u16),
    },
    /// The driver has no such rule.
    NotSteered {
        /// The device's name.
        device: String,
        /// What a frame was to be known by.
        flow: String,
        /// What DPDK and its driver say.
        said: String,
        /// The error number.
        errno: i32,
    },
    /// The device does not take frames of that length.
    BadMtu {
        /// Its name.
        device: String,
        /// The MTU that was asked for, in bytes.
        mtu: u16,
        /// What DPDK says.
        said: String,
    },
    /// There is not enough memory for the frames.
    NoMemory {
        /// For how many frames.
        frames: u32,
        /// How many bytes they are.
        bytes: u64,
    },
    /// An argument is out of its range.
    BadParameter(String),
    /// DPDK or its driver refused for another reason.
    Refused {
        /// The call, and what it was for.
        call: String,
        /// What DPDK and its driver say.
        said: String,
        /// The error number.
        errno: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OtherSettings => f.write_str(
                "DPDK runs in this process with other settings: it starts once in a process, so give all that use it \
                 the same settings",
            ),
            Error::FailedBefore => f.write_str(
                "DPDK refused to start in this process before: mend what it said then, and start the process again",
            ),
            Error::BadArguments { arguments, said } => {
                write!(f, "DPDK does not take the arguments `{arguments}`{}: correct those that are yours", Said(said))
            }
            Error::NoHugePages { said } => write!(
                f,
                "there are not enough huge pages{}: reserve more (`sysctl vm.nr_hugepages=512`), or choose ordinary \
                 memory",
                Said(said)
            ),
            Error::NotStarted { said, errno } => {
                write!(f, "DPDK does not start{}: use UDP as long as this lasts", Why(*errno, said))
            }
            Error::NoDriver { device } => write!(
                f,
                "no driver of DPDK knows the device {device}: name it as its driver does (`net_memif0`, \
                 `0000:01:00.0`), and install the driver if it is a package of its own"
            ),
            Error::NoDevice { device } => write!(
                f,
                "there is no device {device} that DPDK may use: choose one that `dpdk-devbind.py --status` lists with a \
                 driver for DPDK (`dpdk-devbind.py -b vfio-pci ADDRESS`)"
            ),
            Error::DeviceRefused { device, said, errno } => write!(
                f,
                "the driver refuses {device}{}: correct its arguments, give the program the privileges that it needs \
                 (CAP_NET_RAW and CAP_NET_ADMIN for an interface of the kernel's), or choose another device",
                Why(*errno, said)
            ),
            Error::DeviceNotStarted { device, said, errno } => write!(
                f,
                "{device} does not start{}: start its other end first, or correct its arguments",
                Why(*errno, said)
            ),
            Error::DeviceTaken { device } => write!(
                f,
                "{device} is open in this process already: close it first, or choose another name or number"
            ),
            Error::TooFewQueues { device, most: (rx, tx) } => write!(
                f,
                "{device} has {rx} queues to receive by and {tx} to send by: choose no more, and at least one of each"
            ),
            Error::NotSteered { device, flow, said, errno } => write!(
                f,
                "{device} has no rule for {flow}{}: choose what its driver can tell frames by",
                Why(*errno, said)
            ),
            Error::BadMtu { device, mtu, said } => {
                write!(f, "{device} does not take an MTU of {mtu} B{}: choose another", Said(said))
            }
            Error::NoMemory { frames, bytes } => write!(
                f,
                "DPDK has no memory for {frames} frames, which are {bytes} B: give it more, or choose fewer \
                 descriptors and frames"
            ),
            Error::BadParameter(text) => f.write_str(text),
            Error::Refused { call, said, errno } => {
                write!(f, "{call} is refused{}: use UDP as long as this lasts", Why(*errno, said))
            }
        }
    }
}

impl std::error::Error for Error {}

/// What was said, as a part of a sentence; nothing if nothing was.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", as it says \"{}\"", self.0) }
    }
}

/// An error number and what was said.
struct Why<'a>(i32, &'a str);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Why(errno, said) = *self;
        // Drivers have -1 for all that they say in words.
        if errno != 1 || said.is_empty() {
            write!(f, " ({})", std::io::Error::from_raw_os_error(errno))?;
        }
        write!(f, "{}", Said(said))
    }
}

/// Lines of a log, in one: each said once.
pub(crate) fn one_line(log: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_one_line() {
        assert_eq!(one_line("EAL: a\n\nEAL: b \nEAL: a\n"), "EAL: a; EAL: b");
        assert_eq!(one_line("\n"), "");
    }

    #[test]
    fn nothing_said_leaves_no_trace() {
        let text = |said: &str| Error::NoHugePages { said: said.into() }.to_string();
        assert!(text("").starts_with("there are not enough huge pages: reserve"), "{}", text(""));
        assert!(
            text("no").starts_with("there are not enough huge pages, as it says \"no\": "),
            "{}",
            text("no")
        );
    }
}
