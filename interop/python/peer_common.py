"""What the Python peers share: the command line, the JSON lines and the tally.

The same contract as common/ has for C and C++; ../README.md is its text.
"""

import argparse
import json
import socket
import sys
import time

EXIT_COMPLETE, EXIT_BROKEN, EXIT_USAGE, EXIT_TIMED_OUT = 0, 1, 2, 3


def emit(event, **fields):
    """Prints one JSON line and flushes it."""
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), flush=True)


def history(text):
    """0 for keep-all, else the depth of keep-last."""
    if text == "keep-all":
        return 0
    kind, _, depth = text.partition(":")
    if kind != "keep-last" or not depth.isdigit() or int(depth) == 0:
        raise argparse.ArgumentTypeError(f"keep-all or keep-last:N, not {text!r}")
    return int(depth)


def positive(text):
    """A whole number of at least 1."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)


def domain(text):
    """A domain: above 232 the RTPS ports exceed 65535."""
    if not text.isdigit() or int(text) > 232:
        raise argparse.ArgumentTypeError(f"a whole number from 0 to 232, not {text!r}")
    return int(text)


def interface(text):
    """The name of an interface that is there."""
    try:
        socket.if_nametoindex(text)
    except OSError:
        raise argparse.ArgumentTypeError(f"there is no interface {text}") from None
    return text


def parse(argv, types):
    """Reads the command line; argparse ends the process with code 2 when it is wrong."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("role", choices=("pub", "sub"))
    parser.add_argument("--domain", type=domain, default=0)
    parser.add_argument("--topic", default="interop")
    parser.add_argument("--type", default=types[0], choices=types)
    parser.add_argument("--reliability", default="best-effort", choices=("best-effort", "reliable"))
    parser.add_argument("--durability", default="volatile", choices=("volatile", "transient-local"))
    parser.add_argument("--history", default=0, type=history)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--count", type=positive, default=100)
    parser.add_argument("--instances", type=positive, default=1)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--partition")
    finals = ("none", "dispose", "unregister")
    parser.add_argument("--final", default="none", choices=finals)
    parser.add_argument("--expect-final", default="none", choices=finals)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--wait-matched", type=int, default=1)
    parser.add_argument("--linger", type=float, default=0.0)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--interface", default="lo", type=interface)
    options = parser.parse_args(argv)
    options.reliable = options.reliability == "reliable"
    options.transient_local = options.durability == "transient-local"
    if options.type in ("plain", "string"):
        if options.final != "none" or options.expect_final != "none":
            parser.error(f"--type {options.type} has no key, so it has no instances to end")
        options.instances = 1
    return options


class Pacer:
    """Sleeps so that the writes come at the rate asked for."""

    def __init__(self, rate):
        self.period = 1.0 / rate if rate > 0 else 0.0
        self.next = time.monotonic()

    def wait(self):
        """Returns when the next write is due."""
        if self.period:
            time.sleep(max(0.0, self.next - time.monotonic()))
            self.next += self.period


class Matched:
    """Prints `matched` and `unmatched` when the count changes."""

    def __init__(self):
        self.count = 0
        self.left = False

    def update(self, count):
        """Takes the current count."""
        if count != self.count:
            self.left = self.left or count < self.count
            emit("matched" if count > self.count else "unmatched", count=count)
            self.count = count


class Octets:
    """Payloads of one size, cut from one pattern: byte i of sample seq is seq + i."""

    def __init__(self, size):
        self.size = size
        self.pattern = bytes(range(256)) * (size // 256 + 2)

    def of(self, seq):
        """The payload of a sample."""
        return self.pattern[seq & 255 : (seq & 255) + self.size]


class Tally:
    """What arrived and in which order."""

    def __init__(self, options):
        self.options = options
        self.seen = set()
        self.last = {}
        self.ended = {"disposed": set(), "no_writers": set()}
        self.received = self.out_of_order = self.duplicates = self.corrupt = 0

    def sample(self, ident, seq, size, right):
        """A sample with valid data; `right` says that its content is as it should be."""
        self.received += 1
        right = right and ident == seq % self.options.instances
        if not self.options.quiet:
            emit("sample", seq=seq, id=ident, size=size, valid=True, ok=right)
        if not right:
            self.corrupt += 1
        elif seq in self.seen:
            self.duplicates += 1
        else:
            self.seen.add(seq)
            self.out_of_order += seq < self.last.get(ident, -1)
            self.last[ident] = seq

    def state(self, ident, state):
        """An instance that is no longer alive: `disposed` or `no_writers`."""
        if not self.options.quiet:
            emit("instance", id=ident, state=state)
        if ident >= self.options.instances:
            self.corrupt += 1
        else:
            self.ended[state].add(ident)

    def complete(self):
        """True when everything asked for has come."""
        waited = {"dispose": "disposed", "unregister": "no_writers"}.get(self.options.expect_final)
        return len(self.seen) >= self.options.count and (
            waited is None or len(self.ended[waited]) == self.options.instances
        )

    def finish(self):
        """Prints the summary and gives the exit code."""
        emit(
            "summary",
            received=self.received,
            distinct=len(self.seen),
            out_of_order=self.out_of_order,
            duplicates=self.duplicates,
            corrupt=self.corrupt,
            disposed=len(self.ended["disposed"]),
            no_writers=len(self.ended["no_writers"]),
        )
        return EXIT_COMPLETE if self.complete() else EXIT_TIMED_OUT


def hold():
    """Waits for the line on stdin that `--hold` and `--late` ask for."""
    sys.stdin.readline()
