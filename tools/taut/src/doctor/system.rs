//! The files in which the kernel shows and takes its settings.
//!
//! All reading and writing of them goes through [`System`], which tests give a directory of their own.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use taut_nic::Host;

/// A root directory with `proc` and `sys` in it.
pub struct System {
    root: PathBuf,
    /// Are the network interfaces in /sys those of this process? Otherwise why not.
    interfaces: Result<(), String>,
}

/// Why a file could not be looked at.
#[derive(Debug)]
pub struct Unseen {
    path: String,
    error: io::Error,
}

impl Unseen {
    /// Has this kernel no such file?
    pub fn is_absent(&self) -> bool {
        self.error.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.kind() {
            io::ErrorKind::NotFound => write!(f, "there is no {} here", self.path),
            io::ErrorKind::PermissionDenied => {
                write!(f, "open {}: {}; root may: `sudo taut doctor`", self.path, self.error)
            }
            _ => write!(f, "read {}: {}", self.path, self.error),
        }
    }
}

impl System {
    /// This machine.
    pub fn host() -> System {
        System { interfaces: Host::shows_interfaces(), ..System::at("/") }
    }

    /// What lies in a directory.
    pub fn at(root: impl Into<PathBuf>) -> System {
        System { root: root.into(), interfaces: Ok(()) }
    }

    /// Is what /sys shows under this name the interface of this index? It may be that of another network namespace.
    ///
    /// *Errors*: a sentence that says why not.
    pub fn shows_interface(&self, name: &str, index: u32) -> Result<(), String> {
        self.interfaces.clone()?;
        let path = format!("/sys/class/net/{name}/ifindex");
        let shown: u32 = self.number(&path).map_err(|unseen| unseen.to_string())?;
        if shown == index {
            return Ok(());
        }
        Err(format!(
            "{path} is {shown}, and {name} has {index} here: /sys is that of another network namespace"
        ))
    }

    /// Where a file of the kernel is, `path` beginning with a slash.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path)))
    }

    fn unseen(path: &str) -> impl Fn(io::Error) -> Unseen {
        move |error| Unseen { path: path.to_owned(), error }
    }

    /// Looks whether `taut netd` listens at a socket of that name.
    pub fn look_for_netd(&self, path: &str) -> io::Result<()> {
        taut_netd::look_for(&self.place(path))
    }

    /// What is in a file, without white space at its ends.
    pub fn text(&self, path: &str) -> Result<String, Unseen> {
        let text = std::fs::read_to_string(self.place(path)).map_err(Self::unseen(path))?;
        Ok(text.trim().to_owned())
    }

    /// The number in a file.
    pub fn number<N: FromStr>(&self, path: &str) -> Result<N, Unseen> {
        let text = self.text(path)?;
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, format!("{text:?} is not the number it should be"));
        text.parse().map_err(|_| Self::unseen(path)(wrong()))
    }

    /// The value in a file; of a list of words the one in brackets.
    pub fn value(&self, path: &str) -> Result<String, Unseen> {
        let text = self.text(path)?;
        let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(bracketed.map_or_else(|| text.clone(), |(word, _)| word.to_owned()))
    }

    /// The names in a directory, sorted by their text.
    pub fn names(&self, path: &str) -> Result<Vec<String>, Unseen> {
        let entries = std::fs::read_dir(self.place(path)).map_err(Self::unseen(path))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    /// The processors that are there, as `cpu0`, by their numbers.
    pub fn cpus(&self) -> Result<Vec<String>, Unseen> {
        let number = |name: &String| name.strip_prefix("cpu").and_then(|rest| rest.parse::<u32>().ok());
        let mut cpus = self.names("/sys/devices/system/cpu")?;
        cpus.retain(|name| number(name).is_some());
        cpus.sort_by_key(number);
        Ok(cpus)
    }

    /// Gives a file its value, in one write as the kernel wants it.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(self.place(path))?;
        io::Write::write_all(&mut file, value.as_bytes())
    }
}

/// The numbers of a list as the kernel writes it: `0-3,8`.
pub fn cpu_list(text: &str) -> Vec<usize> {
    /// The most that one range is believed to hold: above what any kernel is built for.
    const MOST: usize = 65_536;
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus.extend((first..=last).take(MOST));
        }
    }
    cpus
}

/// The other way round: ascending processors in the form in which the kernel tells them, so that a list that was
/// written is the one that is read.
pub fn cpu_ranges(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|one, next| one + 1 == *next);
    let range = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    };
    runs.map(range).collect::<Vec<_>>().join(",")
}

/// A number of bytes with its unit, for people.
pub fn bytes(count: u64) -> String {
    const STEPS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut rest = count as f64;
    let mut unit = "B";
    for step in STEPS {
        if rest < 1024.0 {
            break;
        }
        rest /= 1024.0;
        unit = step;
    }
    let digits = usize::from(rest.fract() > 0.0);
    format!("{rest:.digits$} {unit}")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A directory with these files, which goes with the test.
    pub fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let directory = tempfile::tempdir().unwrap();
        let system = System::at(directory.path());
        for (path, text) in files {
            let place = system.place(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
        }
        (directory, system)
    }

    #[test]
    fn an_interface_of_another_network() {
        let (_directory, mut system) = tree(&[("/sys/class/net/eth0/ifindex", "2\n")]);
        assert_eq!(system.shows_interface("eth0", 2), Ok(()));
        let other = system.shows_interface("eth0", 7).unwrap_err();
        assert!(other.contains("ifindex is 2, and eth0 has 7 here"), "{other}");
        assert!(system.shows_interface("eth1", 3).unwrap_err().contains("there is no /sys/class/net/eth1"));
        // The same name and number, and others that differ.
        system.interfaces = Err("/sys is foreign".to_owned());
        assert_eq!(system.shows_interface("eth0", 2), Err("/sys is foreign".to_owned()));
    }

    #[test]
    fn values() {
        let (_directory, system) = tree(&[("/sys/thp", "always [madvise] never\n"), ("/proc/sys/a", "17\n")]);
        assert_eq!(system.value("/sys/thp").unwrap(), "madvise");
        assert_eq!(system.value("/proc/sys/a").unwrap(), "17");
        assert_eq!(system.number::<u32>("/proc/sys/a").unwrap(), 17);
        let wrong = system.number::<u32>("/sys/thp").unwrap_err();
        assert!(!wrong.is_absent() && wrong.to_string().contains("is not the number"), "{wrong}");
        let absent = system.text("/sys/none").unwrap_err();
        assert!(absent.is_absent() && absent.to_string() == "there is no /sys/none here", "{absent}");
        system.write("/proc/sys/a", "4").unwrap();
        assert_eq!(system.text("/proc/sys/a").unwrap(), "4");
        assert!(system.write("/proc/sys/b", "4").is_err(), "no file is made");
    }

    #[test]
    fn processors() {
        let base = "/sys/devices/system/cpu";
        let files = ["cpu10/a", "cpu2/a", "cpufreq/a", "cpuidle/a"].map(|name| format!("{base}/{name}"));
        let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "")).collect();
        let (_directory, system) = tree(&files);
        assert_eq!(system.cpus().unwrap(), ["cpu2", "cpu10"]);
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert!(cpu_list("").is_empty());
        for text in ["0", "0-1", "0-2,8", "1,3,5-6"] {
            assert_eq!(cpu_ranges(&cpu_list(text)), text);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(
            [0, 1023, 212_992, 4 << 20, 3 << 29].map(bytes),
            ["0 B", "1023 B", "208 KiB", "4 MiB", "1.5 GiB"]
        );
    }
}
