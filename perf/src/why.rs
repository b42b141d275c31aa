//! Why the subject is behind where it is, and why a figure that it is built for is missed: what a profile or a pair of
//! measurements has shown, in a sentence.
//!
//! The page has them below its tables. Rows without one are named there, too: nobody has looked.

use crate::report::peers;

/// What is explained, and by what.
pub struct Reason {
    workload: &'static str,
    /// Adapters; none: all.
    against: &'static [&'static str],
    /// Words that the case has; none: any case.
    words: &'static [&'static str],
    text: &'static str,
}

const REASONS: [Reason; 10] = [
    Reason {
        workload: "write",
        against: &["rustdds", "zenoh", "zeromq", "mqtt", "grpc"],
        words: &[],
        text: "their write leaves the sample to another thread, which sends it later; Taut's returns when the kernel has it. \
               By profile 70 % of the time of its two processes is the kernel's, in sendto and receiving; \
               bare sendto of the same bytes takes four fifths of Taut's write",
    },
    Reason {
        workload: "write",
        against: &["fastdds"],
        words: &[],
        text: "both send within the call. Taut's reader is woken by each sample, on the writer's way through the kernel: bare \
               sendto whose reader waits in epoll, as Taut's does, takes 0.9 us longer than one whose reader is in recvfrom",
    },
    Reason {
        workload: "write",
        against: &["hdds"],
        words: &[],
        text: "HDDS sends within the call, too. Its reader is not asleep: it begins a thread for each sample, which takes \
               more than one processor at ten thousand samples a second. So the kernel has nobody to wake on the writer's \
               way, as it has for bare sendto, which takes longer than HDDS's write",
    },
    Reason {
        workload: "local",
        against: &["iceoryx2"],
        words: &["copy"],
        text: "what is too long for a cell of the ring lies in a slot that its reader holds and lets go of. Loans, which copy nothing, show \
               what that takes: 170 ns of 64 B, 234 ns of 1 KiB and of 4 KiB (iceoryx2: 230, 230, 233 ns)",
    },
    Reason {
        workload: "cdr",
        against: &["hdds", "rustdds"],
        words: &["complex", "encode"],
        text: "both write a string as it is, and numbers in a byte order that the compiler knows. Taut looks for a NUL within a \
               string, which would end it for its reader, and asks for the order at each number: 3,100 and 2,800 of the 18,800 \
               instructions that 256 structures take, where HDDS's cursor takes 11,600",
    },
    Reason {
        workload: "cdr",
        against: &["hdds"],
        words: &["plain", "encode"],
        text: "1 to 2 ns. Taut's encode of 64 B is 14 instructions, four moves of 16 bytes among them, and the payload's header, \
               which HDDS's adapter leaves out, puts them at an odd place, which takes 0.15 ns by itself. Compiled into its caller \
               it takes as long. What else takes the time is not known",
    },
    Reason {
        workload: "latency",
        against: &["zeromq"],
        words: &["intra"],
        text: "within a process ZeroMQ hands a message on by reference, also from who answers with what it got: a round trip copies \
               a sample once. Taut's take copies no octets either, but each of its two writes does, to where its readers look: \
               11 us for 1 MiB, by profile 55 % of the time of both threads, where ZeroMQ's one copy is 45 % of a shorter one. \
               Taut's loans, which copy nothing, are under `local`",
    },
    Reason {
        workload: "latency",
        against: &["zenoh"],
        words: &["intra"],
        text: "a round trip copies a sample twice with either, at each write: by profile 55 % of Taut's time. Which of the two is \
               ahead differs with the size and the machine",
    },
    Reason {
        workload: "interference",
        against: &["cyclonedds"],
        words: &["fifo"],
        text: "not so in each run, and near the bare program in each: in four rounds beside it Taut took 50.8 us, Cyclone DDS \
               52.9 and bare sockets 45.5; without a thread 45.2, 42.8 and 40.0. No look before a sleep made no difference",
    },
    Reason {
        workload: "types",
        against: &["zeromq"],
        words: &["complex"],
        text: "ZeroMQ's adapter sends the structures packed, as they lie in memory. By profile most of Taut's own time is the \
               thousand strings: their lengths are written and read, and each is allocated and freed",
    },
];

/// The reason for being behind this peer there.
pub fn of(workload: &str, case: &str, against: &str) -> Option<&'static str> {
    let adapter = peers::adapter(against);
    let names = |names: &[&str]| names.is_empty() || names.iter().any(|name| adapter.starts_with(name));
    let has = |words: &[&str]| words.iter().all(|word| case.split([' ', '·']).any(|of| of == *word));
    let is = |of: &&Reason| of.workload == workload && names(of.against) && has(of.words);
    REASONS.iter().find(is).map(|of| of.text)
}

/// Why a figure is missed that has these words in its name.
struct Missed(&'static [&'static str], &'static str);

const MISSED: [Missed; 12] = [
    Missed(
        &["1,000/s by", "polling: maximum"],
        "a maximum is the longest time for which the machine held up one of the two programs, and of one run. In the two \
         seconds of that one the bare programs had 2.5 ms by AF_XDP and by UDP, 0.3 by layer 2 and 3.4 by memif, Cyclone DDS \
         0.4 ms asleep and 4.2 polling; in the 100 s of the soak the bare program had 11.4 ms, and 3.6 of another run (Taut 4.0)",
    ),
    Missed(
        &["1,000/s by", "polling: mean"],
        "behind a pause of a millisecond a round trip takes longer than back to back, of any program: by AF_XDP 13 us by the \
         median where it takes 4.9 (the bare program 7.1 and 4.2), by memif 14.5 (5.9); what the machine holds up adds 4 to \
         10 us to the mean of 2,000. A tenth of Cyclone DDS asleep is 5 us",
    ),
    Missed(
        &["beside a flood, SCHED_FIFO"],
        "the flood is taken off the interface in interrupts, which come before whoever has a priority: by profile they take \
         15 % of both processors. Bare sockets miss it by 3.9, too. Against itself without a flood, which is what the \
         priority is for, Taut holds",
    ),
    Missed(
        &["DPDK's memif beside a flood"],
        "the worst of 10,000 is how long the machine held up the one processor that both programs share: in three runs 0.8, 2.8 \
         and 4.2 ms without a flood and 0.5, 3.6 and 5.6 with it, 0.66, 1.30 and 1.34 times as long. The median is 8.2 to 9.3 us \
         and 8.4 to 12.6 us, p99.9 0.1 to 0.4 ms both ways",
    ),
    Missed(
        &["a burst of 100 by UDP: system"],
        "who writes sends at once while nobody else does, so that the first samples of a burst have left before there is one. \
         `suspend_publications` and LATENCY_BUDGET say that more will follow",
    ),
    Missed(
        &["within suspend_publications"],
        "each burst leaves by one call. Of a hundred bursts one or two other calls are an announcement and the last heartbeat",
    ),
    Missed(
        &["reliable by AF_XDP", "to UDP"],
        "over a pair of virtual interfaces each frame of 1,500 B is a packet to the kernel, allocated, queued and copied twice, \
         where UDP hands it up to 64 kB at a time: by profile the kernel takes 190 ns of a sample of 32 B by AF_XDP and 60 by \
         UDP, Taut itself 220 and 250. Of 1 KiB each is a packet",
    ),
    Missed(
        &["both on one core"],
        "by profile 89 % of the round trip is the kernel's, which wakes and changes between two processes: 11.2 of 12.6 us. \
         Taut itself takes 1.3 us of it. Bare sockets take 9.7 us, 0.69 of Cyclone DDS",
    ),
    Missed(
        &["DPDK's memif, 64 B"],
        "1.2 of the bare program leaves 160 ns to each end for all that it does: to encode, to write, to keep, to lay out and to \
         read a message, to take and to decode, 3,270 instructions by the gate's counts. The bare program sends 64 B as they are",
    ),
    Missed(
        &["1,000/s by UDP, SCHED_FIFO, inline", "maximum"],
        "a maximum is the longest time for which the machine held up one of the two programs. That of bare sockets with the same \
         priority is 0.50 of what Cyclone DDS has without",
    ),
    Missed(
        &["1,000/s by UDP: processor time"],
        "both ends sleep and are woken for each sample, which is the kernel's: bare sockets take 0.81 of Cyclone DDS's time",
    ),
    Missed(
        &["write and take in one thread"],
        "by the gate's counts a sample of 64 B takes 1,072 instructions, of which 420 are its take, 250 its write and 110 its cell \
         of the ring: no call of the kernel, no allocation and no lock that anybody else has. HDDS takes 2.6 times as long, and was \
         to take 3",
    ),
];

/// The reason for missing the figure of this name.
pub fn of_missed(name: &str) -> Option<&'static str> {
    MISSED.iter().find(|missed| missed.is_of(name)).map(|missed| missed.1)
}

impl Missed {
    fn is_of(&self, name: &str) -> bool {
        self.0.iter().all(|words| name.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_missed_is_a_figure() {
        let names = crate::aims::names();
        for missed in &MISSED {
            assert!(names.iter().any(|name| missed.is_of(name)), "{:?}", missed.0);
        }
    }

    #[test]
    fn the_first_reason_that_fits() {
        assert!(of("write", "", "zenoh:express").unwrap().contains("another thread"));
        assert!(of("write", "", "fastdds").unwrap().contains("within the call"));
        assert!(of("interference", "flood fifo", "cyclonedds11").is_some());
        assert_eq!(of("interference", "flood", "cyclonedds"), None);
        assert!(of("cdr", "complex encode", "hdds").unwrap().contains("NUL"));
        assert!(of("cdr", "plain encode", "hdds").unwrap().contains("14 instructions"));
        assert_eq!(of("cdr", "complex decode", "hdds"), None);
        assert!(of("latency", "intra · every 1 ms", "zeromq").unwrap().contains("by reference"));
        assert!(of("latency", "intra", "zenoh:express").unwrap().contains("twice"));
        assert_eq!(of("soak", "", "cyclonedds"), None);
        let of_flood = of_missed("64 B by UDP beside a flood, SCHED_FIFO, inline, awake ahead: p99.9");
        assert!(of_flood.unwrap().contains("interrupts"));
        assert!(of_missed("32 B, 1,000/s by UDP: mean").is_none());
    }
}
