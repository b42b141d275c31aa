//! From a file and the environment to a [`Config`]: who wins, and what is refused.
//!
//! The only place of the public API that reads a file or the environment.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use taut_base::{Error, Result};
use taut_exec::{DeadlineScheduling, longest_look};

use super::ranges::RANGES;
use super::settings::{Row, Set, TABLE, closest};
use super::{Config, Driver, Netd, XdpLayer, XdpMode};

/// What every variable of ours begins with.
const PREFIX: &str = "TAUT_";
/// The variable that names the file.
const CONFIG: &str = "TAUT_CONFIG";
/// Variables with our prefix that are no settings: the file, the `taut` command's own, and those of
/// the repository's scripts.
const NO_SETTINGS: [&str; 8] = [
    CONFIG,
    "TAUT_LOG",
    "TAUT_DEMO_PEERS",
    "TAUT_PERF_PEERS",
    "TAUT_PERF_INSIDE",
    "TAUT_REPOSITORY",
    "TAUT_TEST",
    "TAUT_ALONE",
];
/// The longest file that is read. Lower refuses a table of many comments, higher takes the memory for what is no file of
/// settings. *Units*: bytes.
const LONGEST: u64 = 1 << 20;
/// The most characters of a value that a refusal shows. Lower and a list is not recognized, higher and the remedy is
/// not found behind it.
const MAX_SHOWN: usize = 80;
/// The name of a file in the working directory and in the user's configuration.
const FILE: &str = "taut.toml";

/// The defaults, changed by a file, changed by the environment.
pub(super) fn load(file: Option<&Path>, environment: &[(OsString, OsString)]) -> Result<Config> {
    let mut config = Config::default();
    let path = file.map(Path::to_path_buf).or_else(|| find(environment));
    if let Some(path) = path {
        apply_file(&mut config, &path)?;
    }
    apply_environment(&mut config, environment)?;
    check(&config)?;
    Ok(config)
}

/// Is it what the settings take, whoever has set it?
///
/// *Errors*: [`Error::BadParameter`] with what it takes.
pub(super) fn check(config: &Config) -> Result<()> {
    taut_exec::check_peers(&config.initial_peers)?;
    for (name, is_in_range) in RANGES {
        let row = TABLE.iter().find(|row| row.name == name).filter(|_| !is_in_range(config));
        if let Some(row) = row {
            return Err(bad(name, &(row.get)(config), row));
        }
    }
    if config.announcement_period >= config.lease_duration {
        return Err(Error::BadParameter(format!(
            "announcement_period is {} and lease_duration {}: make the lease longer or the period shorter; three periods \
             is usual",
            config.announcement_period, config.lease_duration
        )));
    }
    check_driver(config)?;
    check_frames(config)?;
    // What the ports of the domain have, and marks.
    config.udp().check()
}

/// How the driver's thread is scheduled. The system would refuse it too, and would name a privilege that does not help.
fn check_driver(config: &Config) -> Result<()> {
    let Some(DeadlineScheduling { runtime, .. }) = config.driver_deadline else { return Ok(()) };
    let look = longest_look(config.wake_ahead);
    // It would be stopped just before what it looks for comes.
    if runtime <= look {
        return Err(Error::BadParameter(format!(
            "driver_deadline and wake_ahead: a look for a sample lasts up to {look}, and the driver's thread has {runtime} of \
             each period; give it more than both it and its steps take, or leave wake_ahead off"
        )));
    }
    // Nor does it end its share of a period by itself.
    let (why, instead) = match (config.driver, config.dpdk_device.is_empty()) {
        // Its device wakes nobody.
        (_, false) => ("dpdk_device", "leave driver_deadline out"),
        (Driver::Polling, true) => ("driver = polling", "use driver = threaded"),
        _ => ("", ""),
    };
    if !why.is_empty() {
        return Err(Error::BadParameter(format!(
            "driver_deadline and {why}: a driver that never sleeps uses up the {runtime} of each period, and is stopped for the \
             rest of it whatever comes; {instead}, or use driver_priority"
        )));
    }
    if config.driver_priority > 0 {
        return Err(Error::BadParameter(format!(
            "driver_deadline and driver_priority = {}: a thread has either a priority or a deadline; leave one of them out",
            config.driver_priority
        )));
    }
    if !config.driver_cpus.is_empty() {
        return Err(Error::BadParameter(format!(
            "driver_deadline and driver_cpus = {:?}: a thread with a deadline runs on all processors of its partition; \
             leave driver_cpus out, and start the program in a partition (cpuset) of these processors",
            config.driver_cpus
        )));
    }
    Ok(())
}

/// What is said of frames past the kernel.
fn check_frames(config: &Config) -> Result<()> {
    if config.dpdk_device.is_empty() && (config.dpdk_vlan.is_some() || !config.dpdk_priority_pcp.is_empty()) {
        return Err(Error::BadParameter(
            "dpdk_vlan and dpdk_priority_pcp say what frames of dpdk_device carry, and there is none: name one, or leave \
             them out"
                .into(),
        ));
    }
    if config.dpdk_critical_queue && (config.dpdk_device.is_empty() || config.critical_port == 0) {
        return Err(Error::BadParameter(
            "dpdk_critical_queue is a queue of dpdk_device for what comes to critical_port: set both".into(),
        ));
    }
    if config.xdp_only_critical && (config.critical_port == 0 || config.xdp_layer == XdpLayer::Bare) {
        return Err(Error::BadParameter(
            "xdp_only_critical tells by critical_port what goes past the kernel, and over IP only: set that, and \
             xdp_layer to 3"
                .into(),
        ));
    }
    let says_how = config.xdp_layer != XdpLayer::Ip
        || config.xdp_mode != XdpMode::Auto
        // Without an interface none is asked anyway.
        || !matches!(config.xdp_netd, Netd::Auto | Netd::Never)
        || config.xdp_only_critical
        || config.xdp_pcp.is_some()
        || !config.xdp_queues.is_empty();
    if config.xdp_interface.is_empty() && says_how {
        return Err(Error::BadParameter(
            "xdp_layer, xdp_mode, xdp_netd, xdp_only_critical, xdp_pcp and xdp_queues say what goes past the kernel on \
             xdp_interface, and how, and there is none: name one, or leave them out"
                .into(),
        ));
    }
    config.frames().map(drop)
}

/// The name of a setting in the environment.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase())
}

/// The file that `TAUT_CONFIG` names, else the one of the working directory, else the user's.
fn find(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let value_of = |name: &str| {
        let found = environment.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value).filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    if let Some(path) = value_of(CONFIG) {
        return Some(path);
    }
    let home = || value_of("HOME").map(|home| home.join(".config"));
    let user = value_of("XDG_CONFIG_HOME").or_else(home).map(|dir| dir.join("taut").join(FILE));
    [Some(PathBuf::from(FILE)), user].into_iter().flatten().find(|path| path.is_file())
}

fn apply_file(config: &mut Config, path: &Path) -> Result<()> {
    let shown = path.display();
    let unread = |error: &dyn Display| {
        let remedy = "correct its name or its rights";
        Error::BadParameter(format!("configuration file {shown} cannot be read: {error}; {remedy}"))
    };
    let mut bytes = Vec::new();
    let len = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    let len = len.map_err(|error| unread(&error))?;
    if len as u64 > LONGEST {
        return Err(Error::BadParameter(format!(
            "configuration file {shown} is longer than {} MiB: it is another file than is meant",
            LONGEST >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| unread(&error))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map_or(1, |span| 1 + text.as_bytes().iter().take(span.start).filter(|b| **b == b'\n').count());
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        Error::BadParameter(format!(
            "configuration file {shown} line {line} is no TOML: {what}; write lines as `domain = 3`"
        ))
    })?;
    for (key, value) in &table {
        let setting = TABLE.iter().find(|setting| setting.name == key).ok_or_else(|| {
            unknown(
                &format!("{key} in {shown}"),
                closest(key, TABLE.iter().map(|s| s.name)).map(str::to_owned),
            )
        })?;
        let refused = || bad(&format!("{key} in {shown}"), &value.to_string(), setting);
        apply(config, setting, &words(value).ok_or_else(refused)?).ok_or_else(refused)?;
    }
    Ok(())
}

/// The texts of a value: one of a scalar, each of an array.
fn words(value: &toml::Value) -> Option<Value> {
    let scalar = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    };
    match value {
        toml::Value::Array(array) => {
            let list = array.iter().map(scalar).collect::<Option<_>>()?;
            let texts = array.iter().all(toml::Value::is_str);
            Some(if texts { Value::List(list) } else { Value::Numbers(list) })
        }
        other => scalar(other).map(Value::One),
    }
}

/// A value as its source has it.
enum Value {
    One(String),
    List(Vec<String>),
    /// Not all of them are texts.
    Numbers(Vec<String>),
}

fn apply_environment(config: &mut Config, environment: &[(OsString, OsString)]) -> Result<()> {
    // In the order of a file, as an interface that is empty undoes what was said before.
    let mut environment: Vec<_> = environment.iter().collect();
    environment.sort();
    for (key, value) in environment {
        let Some(key) = key.to_str().filter(|key| key.starts_with(PREFIX) && !NO_SETTINGS.contains(key))
        else {
            continue;
        };
        let name = key.strip_prefix(PREFIX).unwrap_or(key);
        let setting = TABLE.iter().find(|setting| setting.name.to_uppercase() == name).ok_or_else(|| {
            let meant = closest(&name.to_lowercase(), TABLE.iter().map(|s| s.name));
            unknown(&format!("{key} in the environment"), meant.map(variable))
        })?;
        let refused = || bad(&format!("{key} in the environment"), &format!("{value:?}"), setting);
        let text = value.to_str().ok_or_else(refused)?.to_owned();
        apply(config, setting, &Value::One(text)).ok_or_else(refused)?;
    }
    Ok(())
}

fn apply(config: &mut Config, setting: &Row, value: &Value) -> Option<()> {
    match (&setting.set, value) {
        (Set::One(set), Value::One(text)) => set(config, text),
        (Set::One(_), Value::List(_) | Value::Numbers(_)) | (Set::List(_), Value::Numbers(_)) => None,
        (Set::List(set) | Set::Numbers(set), Value::One(text)) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            set(config, words.map(str::to_owned).collect())
        }
        (Set::List(set) | Set::Numbers(set), Value::List(list))
        | (Set::Numbers(set), Value::Numbers(list)) => set(config, list.clone()),
    }
}

fn unknown(what: &str, meant: Option<String>) -> Error {
    let remedy = match meant {
        Some(name) => format!("did you mean {name}?"),
        None => {
            let names: Vec<&str> = TABLE.iter().map(|setting| setting.name).collect();
            format!("take it out; there are {}", names.join(", "))
        }
    };
    Error::BadParameter(format!("{what} is no setting of Taut: {remedy}"))
}

fn bad(what: &str, value: &str, setting: &Row) -> Error {
    // Of a long one the beginning tells which it is.
    let (shown, rest) =
        value.char_indices().nth(MAX_SHOWN).map_or((value, ""), |(end, _)| (&value[..end], "…"));
    Error::BadParameter(format!("{what} is {shown}{rest}: it takes {}", setting.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(key, value)| (OsString::from(key), OsString::from(value))).collect()
    }

    /// A file that goes with the test.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("taut-{}-{name}.toml", std::process::id()));
            std::fs::write(&path, text).unwrap();
            File(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn refusal(file: &str, text: &str, pairs: &[(&str, &str)]) -> String {
        let file = File::new(file, text);
        match load(Some(&file.0), &environment(pairs)) {
            Err(Error::BadParameter(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let file = File::new(
            "wins",
            "domain = 3\ninterface = [\"lo\", \"eth0\"]\nmulticast = false\nlease_duration = \"20s\"\npeer = \"a, b\"\n\
             local_groups = \"20, 1000\"\n",
        );
        let config =
            load(Some(&file.0), &environment(&[("TAUT_DOMAIN", "7"), ("TAUT_LOG", "debug")])).unwrap();
        assert_eq!(config.domain_id, 7);
        assert_eq!(config.interfaces, ["lo", "eth0"]);
        assert_eq!(config.initial_peers, ["a", "b"]);
        assert!(!config.multicast);
        assert_eq!(config.local_groups, [20, 1_000]);
        assert_eq!(config.lease_duration, taut_base::Duration::from_secs(20));
    }

    #[test]
    fn a_deadline_that_cannot_be() {
        let text = refusal("deadline", "driver_deadline = \"5ms/1ms/1ms\"\n", &[]);
        assert!(text.contains("no part above the next"), "{text}");
    }

    /// Each is in its range, and no participant can be made with both.
    #[test]
    fn settings_that_do_not_go_together() {
        let deadline = ("TAUT_DRIVER_DEADLINE", "200us/1ms/1ms");
        let refused = |pairs: &[(&str, &str)]| refusal("together", "", pairs);
        let text = refused(&[deadline, ("TAUT_DRIVER_PRIORITY", "4")]);
        assert!(text.contains("driver_priority = 4: a thread has either a priority or a deadline"), "{text}");
        let text = refused(&[deadline, ("TAUT_DRIVER_CPUS", "0")]);
        assert!(text.contains("driver_cpus = [0]: a thread with a deadline runs on all"), "{text}");
        let text = refused(&[("TAUT_DRIVER_DEADLINE", "400us/1ms/1ms"), ("TAUT_WAKE_AHEAD", "100us")]);
        assert!(text.contains("a look for a sample lasts up to 400"), "{text}");
        let text = refused(&[deadline, ("TAUT_DRIVER", "polling")]);
        assert!(text.contains("driver = polling: a driver that never sleeps"), "{text}");
        let text = refused(&[deadline, ("TAUT_DPDK_DEVICE", "net_null0")]);
        assert!(text.contains("dpdk_device: a driver that never sleeps"), "{text}");
        let enough = [("TAUT_DRIVER_DEADLINE", "401us/1ms/1ms"), ("TAUT_WAKE_AHEAD", "100us")];
        let file = File::new("enough", "");
        load(Some(&file.0), &environment(&enough)).unwrap();
        let text = refused(&[("TAUT_CRITICAL_PORT", "7410"), ("TAUT_DOMAIN", "2")]);
        assert!(text.contains("of domain 0 have by the standard: choose another, as 7902"), "{text}");
        let text = refused(&[("TAUT_DPDK_ADDRESS", "10.0.0.2/24")]);
        assert!(text.contains("there is no dpdk_device to have it: name one"), "{text}");
        let text = refused(&[("TAUT_DPDK_GATEWAY", "10.0.0.1")]);
        assert!(text.contains("there is no dpdk_address"), "{text}");
        let text = refused(&[("TAUT_DPDK_DEVICE", "net_null0"), ("TAUT_XDP_INTERFACE", "eth0")]);
        assert!(text.contains("frames go by one of them"), "{text}");
        for said in [
            ("TAUT_XDP_LAYER", "2"),
            ("TAUT_XDP_MODE", "native"),
            ("TAUT_XDP_NETD", "/run/netd.sock"),
            ("TAUT_XDP_ONLY_CRITICAL", "true"),
            ("TAUT_XDP_PCP", "6"),
            ("TAUT_XDP_QUEUES", "1"),
        ] {
            let text = refused(&[("TAUT_CRITICAL_PORT", "7402"), said]);
            assert!(text.contains("xdp_interface, and how, and there is none: name one"), "{said:?}: {text}");
            let text = refused(&[("TAUT_CRITICAL_PORT", "7402"), said, ("TAUT_XDP_INTERFACE", "")]);
            assert!(text.contains("there is none"), "in the same place: {text}");
        }
        for alone in [deadline, ("TAUT_DRIVER_PRIORITY", "4"), ("TAUT_DRIVER_CPUS", "0")] {
            let file = File::new("alone", "critical_port = 7402\n");
            load(Some(&file.0), &environment(&[alone])).unwrap();
        }
    }

    #[test]
    fn who_does_without_the_interface_of_the_file_does_without_the_rest_of_it() {
        let ip = "xdp_queues = [1]\nxdp_pcp = 6\nxdp_only_critical = true\ncritical_port = 7402\n";
        for rest in [ip, "xdp_layer = 2\nxdp_mode = \"generic\"\nxdp_netd = \"off\"\n"] {
            let file = File::new("without", &format!("xdp_interface = \"eth0\"\n{rest}"));
            let of = |interface| {
                let config = load(Some(&file.0), &environment(&[("TAUT_XDP_INTERFACE", interface)])).unwrap();
                let settings = config.settings().into_iter();
                settings.filter(|of| of.name.starts_with("xdp_")).map(|of| of.value).collect::<Vec<_>>()
            };
            let by_default = Config::default().settings().into_iter();
            let by_default = by_default.filter(|of| of.name.starts_with("xdp_")).map(|of| of.value);
            assert_eq!(of(""), by_default.collect::<Vec<_>>());
            assert_eq!(of("eth1")[1..], of("eth0")[1..]);
            assert_ne!(of("eth1")[1..], of("")[1..]);
        }
    }

    #[test]
    fn lists_of_numbers() {
        let queues = "xdp_interface = \"eth0\"\nxdp_queues = [2, 3]\n";
        let file = File::new("numbers", &format!("{queues}driver_cpus = [\"1\", 4]\nlocal_groups = []\n"));
        let config = load(Some(&file.0), &environment(&[("TAUT_LOCAL_GROUPS", "5, 6")])).unwrap();
        assert_eq!((config.xdp_queues, config.driver_cpus), (vec![2, 3], vec![1, 4]));
        assert_eq!(config.local_groups, [5, 6]);
    }

    #[test]
    fn the_file_that_the_environment_names() {
        let file = File::new("named", "domain = 9\n");
        let pairs = [(OsString::from(CONFIG), file.0.clone().into_os_string())];
        assert_eq!(load(None, &pairs).unwrap().domain_id, 9);
        let gone = environment(&[(CONFIG, "/nowhere/taut.toml")]);
        assert!(load(None, &gone).unwrap_err().to_string().contains("/nowhere/taut.toml cannot be read"));
        let endless = environment(&[(CONFIG, "/dev/zero")]);
        assert!(load(None, &endless).unwrap_err().to_string().contains("/dev/zero is longer than 1 MiB"));
    }

    #[test]
    fn a_program_that_taut_perf_has_started_needs_no_care() {
        let inside = environment(&[("TAUT_PERF_INSIDE", "7"), ("TAUT_DOMAIN", "3")]);
        let file = File::new("inside", "");
        assert_eq!(load(Some(&file.0), &inside).unwrap().domain_id, 3);
    }

    #[test]
    fn what_is_shown_can_be_read() {
        let millis = taut_base::Duration::from_millis;
        let config = Config {
            name: "e\u{301}, \u{200b}\"\\ \u{7}\n".into(),
            user_data: "\u{85}\u{1f600}\u{e000}".into(),
            interfaces: vec!["\u{feff}lo".into()],
            initial_peers: vec!["a\tb".into(), String::new()],
            dpdk_device: "net_memif0,socket=/\u{ad}.sock".into(),
            dpdk_arguments: vec!["--\u{300}".into(), "-\u{7f}".into()],
            local_directory: Some("/\u{1b}".into()),
            lease_duration: millis(150_500),
            announcement_period: millis(90_001),
            spin: taut_base::Duration::from_micros(1_250),
            ..Config::default()
        };
        let lines: String = config.settings().iter().map(|s| format!("{} = {}\n", s.name, s.value)).collect();
        assert!(!lines.contains('\u{1b}') && lines.lines().count() == config.settings().len(), "{lines}");
        let file = File::new("shown", &lines);
        let read = load(Some(&file.0), &[]).unwrap();
        assert_eq!(read.settings(), config.settings());
        assert_eq!((read.name, read.spin), (config.name, config.spin));
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        let text = refusal("unknown", "domian = 1\n", &[]);
        assert!(text.ends_with("is no setting of Taut: did you mean domain?"), "{text}");
        let text = refusal("table", "[network]\ninterface = \"lo\"\n", &[]);
        assert!(text.contains("network in "), "{text}");
        let text = refusal("variable", "", &[("TAUT_PEERS", "a")]);
        assert_eq!(text, "TAUT_PEERS in the environment is no setting of Taut: did you mean TAUT_PEER?");
    }

    #[test]
    fn bad_values_name_key_value_and_what_is_allowed() {
        let text = refusal("value", "", &[("TAUT_DOMAIN", "233")]);
        assert_eq!(text, "TAUT_DOMAIN in the environment is \"233\": it takes a number from 0 to 232");
        for line in [
            "domain = -1",
            "domain = 1.5",
            "domain = [\"1\"]",
            "interface = 1979-05-27",
            "peer = [1]",
            "driver_cpus = [-1]",
            "driver_cpus = [true]",
            "multicast = 1",
        ] {
            let text = refusal("values", line, &[]);
            assert!(text.contains("it takes"), "{line}: {text}");
        }
        let text = refusal("syntax", "domain = 1\ndomain\n", &[]);
        assert!(text.contains("line 2 is no TOML") && !text.contains('\n'), "{text}");
        for line in ["name = \"a\\u0000b\"", &format!("name = \"{}\"", "n".repeat(257))] {
            let text = refusal("name", line, &[]);
            assert!(text.ends_with("it takes a text of at most 256 bytes without NUL"), "{text}");
            assert!(text.len() < 300, "{text}");
        }
        let text = refusal("user_data", &format!("user_data = \"{}\"", "u".repeat(60_001)), &[]);
        assert!(text.ends_with("it takes a text of at most 60000 bytes") && text.len() < 300, "{text}");
        let text = refusal("flood", "", &[("TAUT_ANNOUNCEMENT_PERIOD", "1us")]);
        assert!(text.contains("\"1us\": it takes a time of `10ms` or more"), "{text}");
        let text = refusal("spin", "spin = \"2s\"\n", &[]);
        assert!(text.contains("it takes a time up to `1s`"), "{text}");
        let text = refusal("lease", "lease_duration = \"1s\"\n", &[]);
        assert!(text.contains("make the lease longer"), "{text}");
        // A third of it would be less than the shortest period.
        let text = refusal("short", "lease_duration = \"29ms\"\nannouncement_period = \"10ms\"\n", &[]);
        assert!(text.contains("it takes a time of `30ms` or more and above"), "{text}");
        let file = File::new("shortest", "lease_duration = \"30ms\"\nannouncement_period = \"10ms\"\n");
        load(Some(&file.0), &[]).unwrap();
    }
}
