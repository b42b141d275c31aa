//! Queueing disciplines: rtnetlink(7), and the layouts of linux/pkt_sched.h.

use nix::errno::Errno;
use taut_netlink::{Attributes, CREATE, DUMP, REPLACE, Socket, attribute, text, word};

use super::refused;
use crate::change::{Classes, Gate, Qdisc};
use crate::facts::{Qdiscs, Seen};

const NEW: u16 = 36;
const DELETE: u16 = 37;
const GET: u16 = 38;
/// tcmsg: family, index of the interface, handle, parent, info.
const MESSAGE: usize = 20;
const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;

/// tc_mqprio_qopt has room for so many priorities and classes.
const PRIORITIES: usize = 16;
/// Frames that a pfifo holds: the kernel's own length of a transmit queue. Higher lets a flood wait for longer in
/// front of nobody; lower drops bursts.
const LIMIT: u32 = 1_000;
/// TCA_TAPRIO_ATTR_*: the classes, the slots with the one that each is, when the first cycle begins, clock, flags.
const PRIORITY_MAP: u16 = 1;
const SLOTS: u16 = 2;
const SLOT: u16 = 1;
const BASE_TIME: u16 = 3;
const CLOCK: u16 = 5;
const FLAGS: u16 = 10;
/// TCA_TAPRIO_SCHED_ENTRY_*: what is done, with which classes, for how long. The order gives the index.
const COMMAND: u16 = 2;
const GATES: u16 = 3;
const INTERVAL: u16 = 4;
/// The command: the gates of these classes are open, all others closed.
const SET_GATES: u8 = 0;
/// The clock of taprio where the kernel keeps the time: that of PTP.
const CLOCK_TAI: u32 = 11;
/// Its flag: the NIC keeps the time.
const FULL_OFFLOAD: u32 = 2;

/// What there is at an interface.
pub fn qdiscs(index: u32) -> Seen<Qdiscs> {
    let answers = open()?.request(GET, DUMP, &message(index, 0, 0, &Attributes::default()));
    let answers = answers.map_err(|error| refused("netlink RTM_GETQDISC", error))?;
    let mut found = Qdiscs { root: "none".to_owned(), handle: 0, leaves: Vec::new() };
    for answer in answers {
        let (Some(of), Some(handle), Some(parent)) = (word(&answer, 4), word(&answer, 8), word(&answer, 12))
        else {
            continue;
        };
        let kind = answer.get(MESSAGE..).and_then(|attributes| attribute(attributes, KIND)).map(text);
        let Some(kind) = kind.filter(|_| of == index && parent != INGRESS) else { continue };
        match parent {
            ROOT => (found.root, found.handle) = (kind, handle),
            _ => found.leaves.push(((parent & 0xffff).wrapping_sub(1), kind)),
        }
    }
    found.leaves.sort();
    Ok(found)
}

/// Puts a discipline at the root, with what is below it; wholly, or the kernel's own are there again.
pub fn set(index: u32, qdisc: &Qdisc) -> Result<(), String> {
    let mut socket = open()?;
    if *qdisc == Qdisc::Default {
        return remove(&mut socket, index).map_err(|error| refused("netlink RTM_DELQDISC", error));
    }
    let mut attributes = Attributes::default().with_text(KIND, qdisc.kind());
    if let Some(options) = options(qdisc) {
        attributes = attributes.with(OPTIONS, &options);
    }
    let handle = qdisc.handle();
    let mut made = Ok(());
    // The kernel does not change mqprio in place: what is there of ours goes first.
    if qdiscs(index).is_ok_and(|found| found.handle != 0) {
        made = remove(&mut socket, index);
    }
    let flags = CREATE | REPLACE;
    made =
        made.and_then(|()| socket.request(NEW, flags, &message(index, handle, ROOT, &attributes)).map(drop));
    made.map_err(|error| refused(&format!("netlink RTM_NEWQDISC {}", qdisc.kind()), error))?;
    for queue in 0..qdisc.leaves() {
        let leaf = Attributes::default().with_text(KIND, "pfifo").with(OPTIONS, &LIMIT.to_ne_bytes());
        let body = message(index, 0, handle | (queue + 1), &leaf);
        if let Err(error) = socket.request(NEW, flags, &body) {
            let why = refused(&format!("netlink RTM_NEWQDISC pfifo of queue {queue}"), error);
            return match remove(&mut socket, index) {
                Ok(()) => Err(why),
                Err(error) => Err(format!("{why}, and {}", refused("netlink RTM_DELQDISC", error))),
            };
        }
    }
    Ok(())
}

fn open() -> Result<Socket, String> {
    Socket::of_routes().map_err(|error| refused("socket NETLINK_ROUTE", error))
}

fn remove(socket: &mut Socket, index: u32) -> nix::Result<()> {
    match socket.request(DELETE, 0, &message(index, 0, ROOT, &Attributes::default())) {
        Ok(_) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

fn message(index: u32, handle: u32, parent: u32, attributes: &Attributes) -> Vec<u8> {
    let words = [0, index, handle, parent, 0].into_iter().flat_map(u32::to_ne_bytes);
    words.chain(attributes.0.iter().copied()).collect()
}

/// The value of TCA_OPTIONS.
fn options(qdisc: &Qdisc) -> Option<Vec<u8>> {
    match qdisc {
        Qdisc::Default | Qdisc::Mq(_) => None,
        Qdisc::Mqprio(classes) => Some(class_map(classes)),
        Qdisc::Taprio { classes, schedule, offload } => {
            let slot = |gate: &Gate| {
                let slot = Attributes::default().with(COMMAND, &[SET_GATES]).with_word(GATES, gate.classes);
                slot.with_word(INTERVAL, gate.length_ns)
            };
            let slots =
                schedule.iter().fold(Attributes::default(), |all, gate| all.with_nested(SLOT, &slot(gate)));
            let map =
                Attributes::default().with(PRIORITY_MAP, &class_map(classes)).with_nested(SLOTS, &slots);
            let base = map.with(BASE_TIME, &0_i64.to_ne_bytes());
            // The NIC has one clock; the kernel has to be told which.
            let timed =
                if *offload { base.with_word(FLAGS, FULL_OFFLOAD) } else { base.with_word(CLOCK, CLOCK_TAI) };
            Some(timed.0)
        }
    }
}

/// tc_mqprio_qopt: how many classes, the class of each priority, whether the NIC does it, and for each class how
/// many queues and the first of them.
fn class_map(classes: &Classes) -> Vec<u8> {
    let mut bytes = vec![2];
    let critical = |priority: usize| classes.priorities.iter().any(|one| usize::from(*one) == priority);
    bytes.extend((0..PRIORITIES).map(|priority| u8::from(critical(priority))));
    bytes.push(0);
    for of in [|(_, count): (u16, u16)| count, |(first, _): (u16, u16)| first] {
        let mut row = [0_u16; PRIORITIES];
        for (to, class) in row.iter_mut().zip(classes.queues) {
            *to = of(class);
        }
        bytes.extend(row.iter().flat_map(|number| number.to_ne_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Classes {
        Classes { priorities: vec![6], queues: [(0, 3), (3, 1)] }
    }

    #[test]
    fn the_layout_of_mqprio() {
        let bytes = options(&Qdisc::Mqprio(classes())).unwrap();
        assert_eq!(bytes.len(), 82, "the size of tc_mqprio_qopt");
        let set: Vec<(usize, u8)> =
            bytes.iter().copied().enumerate().filter(|(_, byte)| *byte != 0).collect();
        let first = 18 + 32;
        assert_eq!(set, [(0, 2), (7, 1), (18, 3), (20, 1), (first + 2, 3)]);
    }

    #[test]
    fn the_attributes_of_taprio() {
        let schedule = vec![Gate { classes: 2, length_ns: 300_000 }, Gate { classes: 1, length_ns: 700_000 }];
        let of = |offload| Qdisc::Taprio { classes: classes(), schedule: schedule.clone(), offload };
        let bytes = options(&of(true)).unwrap();
        assert_eq!(attribute(&bytes, 1).unwrap(), class_map(&classes()));
        let entry = attribute(attribute(&bytes, 2).unwrap(), 1).unwrap();
        let number = |kind| attribute(entry, kind).and_then(|value| word(value, 0));
        assert_eq!((number(3), number(4)), (Some(2), Some(300_000)));
        assert_eq!((attribute(&bytes, 10), attribute(&bytes, 5)), (Some([2, 0, 0, 0].as_slice()), None));
        let bytes = options(&of(false)).unwrap();
        assert_eq!((attribute(&bytes, 10), attribute(&bytes, 5)), (None, Some([11, 0, 0, 0].as_slice())));
    }
}
