//! Why the subject is behind where it is: what a profile or a pair of measurements has shown, in a sentence.
//!
//! The page has them below its first table. Rows without one are named there, too: nobody has looked.

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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
