//! Who uses which queue: queueing disciplines, XPS, interrupts.

use super::{Able, Step, Wanted};
use crate::change::{Change, Classes, Gate, Qdisc, shown_qdiscs, xps_item};
use crate::facts::{Interrupt, Qdiscs, counted};

/// Drivers whose NIC keeps the time of taprio itself.
const TAPRIO_OFFLOAD: [&str; 1] = ["igc"];

/// What queueing disciplines gain.
const GAINS: &str = "others that wait to be sent do not hold up what is critical";
/// What is lost without them.
const LOST: &str = "critical frames wait behind others in the kernel";

impl Wanted<'_> {
    /// The discipline that serves critical frames best of those that the kernel has, and what those before it lack.
    pub(super) fn qdiscs(&self) -> Vec<Step> {
        let found = match &self.facts.qdiscs {
            Ok(found) => found,
            Err(why) => return vec![Step::cannot("qdisc", "mqprio, else mq with pfifo", GAINS, why, LOST)],
        };
        let has = |kind: &str| self.facts.kinds.iter().any(|known| known == kind) || found.root == kind;
        let classes = self.classes();
        let mut steps = Vec::new();
        let timed = !self.config.schedule.is_empty();
        let taprio = timed && has("taprio") && classes.is_ok();
        if timed && !taprio {
            let gains = "each class has its time on the wire";
            let why = classes.as_ref().err().copied().unwrap_or("this kernel has no taprio");
            let lost = "frames leave when they are there, not in their slot";
            steps.push(Step::cannot("schedule", "taprio", gains, why, lost));
        }
        let mut lost = "";
        let qdisc = match classes {
            Ok(classes) if taprio => Qdisc::Taprio {
                classes,
                schedule: self.config.schedule.iter().map(Gate::from).collect(),
                offload: TAPRIO_OFFLOAD.contains(&self.facts.driver.as_str()),
            },
            Ok(classes) if has("mqprio") => {
                lost = "in which order the NIC itself serves its queues is up to its driver";
                Qdisc::Mqprio(classes)
            }
            _ if self.queues > 1 => {
                lost = "a frame's priority does not choose its queue: the processor that sends does, by XPS";
                Qdisc::Mq(self.queues)
            }
            _ => {
                steps.push(self.one_queue(found));
                return steps;
            }
        };
        let now = shown_qdiscs(found);
        let step = Step::to("qdisc", now, Change::Qdisc(qdisc), self.facts, GAINS);
        steps.push(Step { lost: lost.to_owned(), ..step });
        steps
    }

    /// What is there of one queue stays: nothing that every kernel has serves it better.
    fn one_queue(&self, found: &Qdiscs) -> Step {
        let now = shown_qdiscs(found);
        // The first of its three bands is for these priorities.
        let first_band = self.config.priorities.iter().all(|priority| [6, 7].contains(priority));
        let lost = match found.root.as_str() {
            "noqueue" => "",
            "pfifo_fast" if first_band => "",
            _ => LOST,
        };
        Step {
            item: "qdisc".to_owned(),
            then: now.clone(),
            now,
            gains: GAINS.to_owned(),
            able: Able::AsPlanned,
            lost: lost.to_owned(),
        }
    }

    /// Which queues are whose; each class has a row of queues without a gap.
    fn classes(&self) -> Result<Classes, &'static str> {
        let mut critical = self.critical.clone();
        critical.sort_unstable();
        critical.dedup();
        let first = critical.first().copied().unwrap_or(0);
        let count = u32::try_from(critical.len()).unwrap_or(u32::MAX);
        if critical.last().is_none_or(|last| last + 1 - first != count) {
            return Err("the critical queues are no row: name neighbours");
        }
        let behind = self.queues.saturating_sub(first + count);
        let others = if first >= behind { (0, first) } else { (first + count, behind) };
        if others.1 == 0 {
            return Err("no queue is left for all others: ask for more queues");
        }
        let narrow =
            |(first, count): (u32, u32)| Some((u16::try_from(first).ok()?, u16::try_from(count).ok()?));
        match (narrow(others), narrow((first, count))) {
            (Some(others), Some(critical)) => {
                Ok(Classes { priorities: self.config.priorities.clone(), queues: [others, critical] })
            }
            _ => Err("there are too many queues: ask for fewer"),
        }
    }

    fn is_critical(&self, queue: u32) -> bool {
        self.critical.contains(&queue)
    }

    fn cpus_of(&self, queue: u32) -> &[u32] {
        if self.is_critical(queue) { &self.config.cpus } else { &self.others }
    }

    /// Does a frame's priority choose its queue?
    fn by_priority(&self) -> bool {
        let has = |kind: &str| self.facts.kinds.iter().any(|known| known == kind);
        self.classes().is_ok() && (has("mqprio") || has("taprio") && !self.config.schedule.is_empty())
    }

    /// The processors that send by each queue.
    pub(super) fn xps(&self) -> Vec<Step> {
        let gains = |queue| match (self.by_priority(), self.is_critical(queue)) {
            (true, _) => "of the queues of a frame's priority, it takes that of its processor",
            (false, true) => "what the critical processors send goes by the critical queue",
            (false, false) => "what other processors send stays out of the critical queue",
        };
        let queues = match &self.facts.xps {
            Ok(queues) => queues,
            Err(why) => {
                let lost = "the kernel's hash chooses the transmit queue, critical or not";
                let critical = self.critical.first().copied().unwrap_or(0);
                let then = counted("processor", &self.config.cpus);
                return vec![Step::cannot("XPS", then, gains(critical), why, lost)];
            }
        };
        let step = |queue: u32| {
            let item = xps_item(queue);
            let cpus = self.cpus_of(queue).to_vec();
            let change = Change::Xps { queue, cpus };
            match queues.get(queue as usize) {
                Some(now) => {
                    let now = Change::Xps { queue, cpus: now.clone() }.shown();
                    Step::to(item, now, change, self.facts, gains(queue))
                }
                None => after_channels(item, &change, gains(queue)),
            }
        };
        (0..self.queues).map(step).collect()
    }

    /// The processors that handle each queue's interrupt.
    pub(super) fn interrupts(&self) -> Vec<Step> {
        let gains = |queue| match self.is_critical(queue) {
            true => "what is critical is handled where it is used, and nothing else there",
            false => "it does not interrupt the critical processors",
        };
        let of_queue = |queue: u32| self.facts.interrupts.iter().find(move |one| one.queue == Some(queue));
        if (0..self.queues).all(|queue| of_queue(queue).is_none()) {
            let why = if self.facts.interrupts.is_empty() {
                "it has no interrupts of its own"
            } else {
                "the kernel does not say which of its interrupts is whose queue's"
            };
            let lost = "frames are handled on whatever processor they come to";
            let critical = self.critical.first().copied().unwrap_or(0);
            let then = counted("processor", &self.config.cpus);
            return vec![Step::cannot("interrupts", then, gains(critical), why, lost)];
        }
        let step = |queue: u32| {
            let item = format!("interrupt of queue {queue}");
            let cpus = self.cpus_of(queue).to_vec();
            match of_queue(queue) {
                Some(Interrupt { number, cpus: now, .. }) => {
                    let change = Change::Interrupt { number: *number, cpus };
                    let now = counted("processor", now);
                    let step = Step::to(item, now, change, self.facts, gains(queue));
                    Step { then: format!("{} (interrupt {number})", step.then), ..step }
                }
                None => after_channels(item, &Change::Interrupt { number: 0, cpus }, gains(queue)),
            }
        };
        (0..self.queues).map(step).collect()
    }
}

/// A step about a queue that is not there yet.
pub(super) fn after_channels(item: String, change: &Change, gains: &str) -> Step {
    Step {
        item,
        now: String::new(),
        then: change.shown(),
        gains: gains.to_owned(),
        able: Able::After("channels".to_owned()),
        lost: String::new(),
    }
}
