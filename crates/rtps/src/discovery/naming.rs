//! What people know the owner of an endpoint by: the name of its participant, its process and its host, as that
//! participant says. For texts only: nothing is decided by it.

use std::fmt;

use taut_base::Guid;

use crate::Participant;

/// Under which names the vendors tell of the program, its process id and its host: Taut, Cyclone DDS, Fast DDS, Connext.
const PROGRAM: &[&str] = &["taut.process", "__ProcessName", "dds.sys_info.executable_filepath"];
const PROCESS: &[&str] = &["taut.pid", "__Pid", "fastdds.physical_data.process", "dds.sys_info.process_id"];
const HOST: &[&str] = &["taut.host", "__Hostname", "fastdds.physical_data.host", "dds.sys_info.hostname"];

/// What a peer says may be long, and is written into lines of a log. Lower cuts names of programs, higher lets a peer fill
/// the log.
const SHOWN: usize = 64;

fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

/// The program, its process id and its host, by the properties of its participant.
pub fn process(properties: &[(String, String)]) -> [Option<&str>; 3] {
    let find = |name: &&str| properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    [PROGRAM, PROCESS, HOST].map(|names| names.iter().find_map(find).filter(|value| !value.is_empty()))
}

/// Adds a text as `planner, process 4242 on robot7`, unescaped.
pub fn push_process(to: &mut String, properties: &[(String, String)]) {
    for (before, value) in ["", "process ", "on "].into_iter().zip(process(properties)) {
        let Some(value) = value else { continue };
        if !to.is_empty() {
            to.push_str(if before == "on " { " " } else { ", " });
        }
        to.push_str(before);
        to.push_str(shown(value));
    }
}

/// An endpoint, and whose it is, as far as its participant says.
pub struct Named<'p> {
    guid: Guid,
    name: &'p str,
    properties: &'p [(String, String)],
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.guid)?;
        if !self.name.is_empty() {
            // What a peer says of itself comes escaped.
            write!(f, " of {:?}", shown(self.name))?;
        }
        let mut process = String::new();
        push_process(&mut process, self.properties);
        if process.is_empty() { Ok(()) } else { write!(f, " ({})", process.escape_debug()) }
    }
}

impl Participant {
    /// An endpoint for people, as `….00000107 of "nav" (planner, process 4242 on robot7)`.
    ///
    /// *Cost*: allocates when it is written; not for the data path.
    pub fn named(&self, guid: Guid) -> Named<'_> {
        let peer = self.database().peer(guid.prefix).map(|peer| &peer.data);
        let (name, properties) = match peer {
            Some(peer) => (peer.entity_name.as_str(), peer.properties.as_slice()),
            None if guid.prefix == self.guid().prefix => {
                (self.config().entity_name.as_str(), self.config().properties.as_slice())
            }
            None => ("", [].as_slice()),
        };
        Named { guid, name, properties }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Refusal;

    fn named(name: &str, properties: &[(&str, &str)]) -> String {
        let properties: Vec<_> = properties.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Named { guid: Guid::UNKNOWN, name, properties: &properties }.to_string()
    }

    #[test]
    fn every_vendor_is_named_as_far_as_it_says() {
        let own = [("taut.host", "robot7"), ("taut.process", "planner"), ("taut.pid", "42")];
        let cyclone = [("__Hostname", "robot7"), ("__ProcessName", "planner"), ("__Pid", "42")];
        let fast = [("fastdds.physical_data.host", "robot7"), ("fastdds.physical_data.process", "42")];
        let guid = Guid::UNKNOWN;
        assert_eq!(named("nav", &own), format!("{guid} of \"nav\" (planner, process 42 on robot7)"));
        assert_eq!(named("", &cyclone), format!("{guid} (planner, process 42 on robot7)"));
        assert_eq!(named("nav", &fast), format!("{guid} of \"nav\" (process 42 on robot7)"));
        assert_eq!(named("", &[]), guid.to_string());
        assert_eq!(
            named("a\u{1b}", &[("taut.host", "b\u{1b}")]),
            format!("{guid} of \"a\\u{{1b}}\" (on b\\u{{1b}})")
        );
    }

    #[test]
    fn no_peer_fills_a_line() {
        let (long, cut) = ("\u{1b}".repeat(4_096), "\\u{1b}".repeat(SHOWN));
        let properties = ["taut.process", "taut.pid", "taut.host"].map(|name| (name, long.as_str()));
        assert_eq!(
            named(&long, &properties),
            format!("{} of \"{cut}\" ({cut}, process {cut} on {cut})", Guid::UNKNOWN)
        );
    }

    #[test]
    fn what_a_peer_calls_its_type_reaches_no_terminal() {
        let refusal = Refusal::Type { local: "Square".into(), remote: "Square\u{1b}[2J".into() };
        assert_eq!(refusal.to_string(), "type: here Square, there Square\\u{1b}[2J");
    }
}
