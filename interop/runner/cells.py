"""What is tested: the vendors, the cells and the pairs they are run on.

Pure data: nothing here starts a process.
"""

import itertools
import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BUILD = HERE / "build"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "release"

TAUT = "taut"
ROS = "rclpy"
VENDORS = {
    TAUT: [str(TARGET / "taut-interop-peer")],
    "cyclone-0.10": [str(BUILD / "peer-cyclone")],
    "cyclone-11": [str(BUILD / "venv-cyclone/bin/python"), str(HERE / "python/peer_cyclone11.py")],
    "fastdds-2.9": [str(BUILD / "peer-fastdds")],
    ROS: [str(BUILD / "venv-ros/bin/python"), str(HERE / "python/peer_rclpy.py")],
    "rustdds": [str(BUILD / "peer-rustdds")],
    "dust_dds": [str(BUILD / "peer-dust_dds")],
}
OTHERS = ("cyclone-0.10", "cyclone-11", "fastdds-2.9")
# Those of --rust, whose programs build for minutes.
IN_RUST = ("rustdds", "dust_dds")
TAUT_CLI = str(TARGET / "taut")
ROS_TYPE = ["--topic", "rt/chatter", "--type", "std_msgs::msg::dds_::String_"]

# What the other vendors cannot do with each other. Only --self-test reads it: a
# cell with Taut in it is never excused. (publisher, subscriber, cell) patterns.
BETWEEN_OTHERS = {
    ("cyclone-*", "fastdds-2.9", "dispose*"): "Fast DDS 2.9 needs PID_KEY_HASH to know a disposed instance",
    ("cyclone-*", "fastdds-2.9", "unregister*"): "Fast DDS 2.9 needs PID_KEY_HASH to know an unregistered instance",
    ("fastdds-2.9", "cyclone-*", "*-md5"): "Fast DDS 2.9 sends the MD5 key hash alone, Cyclone needs the key",
    ("fastdds-2.9", "cyclone-*", "twins-64K"): "Fast DDS 2.9 multicasts fragments faster than Cyclone takes them and leaves early",
    ("fastdds-2.9", "cyclone-11", "dispose"): "Cyclone 11 in Python takes every key hash for an MD5 one",
    **{
        ("fastdds-2.9", "cyclone-*", f"reliable-*-volatile-{size}"):
            "Fast DDS 2.9 sends its first heartbeat before its endpoint, so Cyclone joins in the middle of the first burst"
        for size in ("64K", "1M")
    },
    **{
        (a, b, pattern): "Cyclone 0.10 crashes on the type information that Cyclone 11 sends for octet sequences"
        for a, b in (("cyclone-0.10", "cyclone-11"), ("cyclone-11", "cyclone-0.10"))
        for pattern in ("*-keyed-*", "*-plain-*", "loss-*", "dispose", "unregister", "partition*", "tl-*", "qos-*", "twins-*")
    },
}


# Cells with Taut that --rust leaves out for the other vendor's own reasons: rustdds is RustDDS 0.15.1, dust_dds is Dust DDS 0.16.0.
# (publisher, subscriber, cell) patterns. The matrix without --rust leaves out nothing.
NOT_IN_RUST = {
    **{
        (publisher, subscriber, pattern): reason
        for publisher, subscriber in (("rustdds", "*"), ("*", "rustdds"))
        for pattern, reason in (
            ("unregister*", "RustDDS neither unregisters an instance nor tells that one has no writers"),
            ("partition*", "RustDDS has no PARTITION"),
        )
    },
    **{
        ("rustdds", "*", pattern): "RustDDS repairs 8 fragments a round: 1 MiB is not whole in time, with Cyclone and Fast DDS as with Taut"
        for pattern in ("reliable-*-volatile-1M", "loss-1M")
    },
    ("rustdds", "*", "tl-keep-last"): "RustDDS replays all samples to a late joiner, not the last one of each instance",
    ("*", "dust_dds", "best-effort-*-1M"): "Dust DDS overruns its socket buffer, which has the size that the system gives",
}


@dataclass
class Cell:
    """One combination to test on a pair; the options are those of the peers."""

    name: str
    both: dict = field(default_factory=dict)
    pub: dict = field(default_factory=dict)
    sub: dict = field(default_factory=dict)
    # A second publisher, which must find no reader.
    decoy: dict | None = None
    late_joiner: bool = False
    # Two subscribers, so that multicast pays.
    twins: bool = False
    loss_percent: int = 0
    # The least share of samples that must arrive.
    share: float = 1.0
    # What the subscriber must count, 0 for as many as are written.
    expect: int = 0
    # The address of Taut's end is replaced while samples flow, and endpoints are made after that.
    moves: bool = False
    # The share of the machine it takes: large samples crowd out the others.
    weight: int = 1
    timeout_s: float = 8.0


@dataclass
class Task:
    """A cell on a pair of vendors."""

    cell: Cell
    publisher: str
    subscriber: str

    @property
    def ident(self):
        """The name for --only and for the table."""
        return f"{self.publisher}>{self.subscriber}:{self.cell.name}"


SIZES = {"64": 64, "1K": 1024, "64K": 65536, "1M": 1 << 20}


def volume(size, reliable):
    """How many samples of a size, and how fast: best effort gets time to drain."""
    if size >= 1 << 20:
        return {"size": size, "count": 20, "rate": 0 if reliable else 25}
    if size >= 1 << 16:
        return {"size": size, "count": 100, "rate": 0 if reliable else 250}
    return {"size": size, "count": 100, "rate": 0 if reliable else 500}


def keyed(size=64, reliable=True):
    """The options of a keyed cell."""
    common = {"type": "keyed", "instances": 4, "reliability": "reliable" if reliable else "best-effort"}
    return {**common, **volume(size, reliable)}


def product_cells():
    """Reliability x key x durability x size; best effort has no replay to test."""
    kinds = (("best-effort", "volatile"), ("reliable", "volatile"), ("reliable", "transient-local"))
    for (reliability, durability), kind, size in itertools.product(kinds, ("plain", "keyed"), SIZES):
        reliable = reliability == "reliable"
        both = {"type": kind, "reliability": reliability, "durability": durability, **volume(SIZES[size], reliable)}
        if kind == "keyed":
            both["instances"] = 4
        yield Cell(
            f"{reliability}-{kind}-{durability}-{size}",
            both,
            late_joiner=durability == "transient-local",
            share=1.0 if reliable else 0.9,
            weight=3 if size == "1M" and not reliable else 1,
            timeout_s=15.0 if size == "1M" else 8.0,
        )


def special_cells():
    """Everything that is not a product."""
    shape = {"type": "shape", "instances": 4, "reliability": "reliable", "rate": 0}
    for final in ("dispose", "unregister"):
        yield Cell(final, keyed(), pub={"final": final}, sub={"expect-final": final})
        yield Cell(f"{final}-md5", shape, pub={"final": final}, sub={"expect-final": final})
    yield Cell("shape", shape)
    yield Cell("metric", {**shape, "type": "metric"})
    for name, offered in (("partition", "alpha"), ("partition-wildcard", "alp*")):
        yield Cell(name, keyed(), {"partition": "alpha"}, {"partition": offered}, decoy={"partition": "beta"})
    yield Cell("qos-mismatch", keyed(), decoy={"reliability": "best-effort"})
    for size in ("64", "64K"):
        yield Cell(f"twins-{size}", keyed(SIZES[size]), pub={"wait-matched": 2}, twins=True, timeout_s=15.0)
    kept = {**keyed(), "count": 20, "history": "keep-last:1", "durability": "transient-local"}
    replayed = {"count": 4, "history": "keep-all"}
    yield Cell("tl-keep-last", kept, sub=replayed, late_joiner=True, expect=4)
    for size, count in (("64", 400), ("64K", 200), ("1M", 20)):
        # Transient local, for a volatile reader may rightly start late when the first heartbeat is lost.
        both = {**keyed(SIZES[size]), "durability": "transient-local", "count": count, "rate": 200}
        yield Cell(f"loss-{size}", both, loss_percent=5, timeout_s=30.0)


def taut_cells():
    """What Taut alone does and others have to understand: samples of several writers in one datagram."""
    both = {**keyed(), "count": 200, "history": "keep-last:200"}
    yield Cell("together", both, pub={"writers": 4})


def moved_cells():
    """What is written stays for who finds its writer anew."""
    both = {**keyed(), "durability": "transient-local", "count": 300, "rate": 100}
    yield Cell("moved", both, moves=True, timeout_s=14.0)


def ros_cells():
    """std_msgs/String; the listener takes part of what is said, for talkers do not wait."""
    for reliability in ("reliable", "best-effort"):
        yield Cell(f"string-{reliability}", {"reliability": reliability, "count": 10, "rate": 20})


def stays(task):
    """Where no address can be replaced."""
    return not task.cell.moves


def moves(task):
    """Where one can, nothing else is tested."""
    return task.cell.moves


def is_past_kernel(task):
    """One participant has the interface, so only one process of Taut can be at its end."""
    alone = task.cell.twins and task.subscriber == TAUT or task.cell.decoy and task.publisher == TAUT
    return not alone and ROS not in (task.publisher, task.subscriber)


def is_ipv6(task):
    """What does not depend on addresses is tested over IPv4."""
    some = ("*-keyed-volatile-*", "dispose", "twins-*", "loss-64", "loss-64K")
    return any(fnmatchcase(task.cell.name, pattern) for pattern in some)


def is_critical(task):
    """What does not depend on ports is tested at those of all samples."""
    some = ("*-keyed-volatile-*", "loss-64", "loss-64K")
    return any(fnmatchcase(task.cell.name, pattern) for pattern in some)


def is_by_peer(task):
    """What does not depend on how the two find each other is tested by multicast."""
    return fnmatchcase(task.cell.name, "*-keyed-volatile-1K")


def tasks(self_test, in_rust, where, only):
    """The whole matrix, or that of the vendors in Rust: what `where` takes and `only` matches, and what is excused."""
    cells = [*product_cells(), *special_cells(), *moved_cells()]
    others = IN_RUST if in_rust else OTHERS
    if self_test:
        pairs = [*itertools.permutations(others, 2)]
        ros = [(ROS, ROS)]
    else:
        pairs = [pair for vendor in others for pair in ((TAUT, vendor), (vendor, TAUT))]
        ros = [(ROS, TAUT), (TAUT, ROS)]
    if in_rust:
        ros = []
    every = [Task(cell, *pair) for pair in pairs for cell in cells]
    if not self_test:
        every += [Task(cell, TAUT, vendor) for vendor in others for cell in taut_cells()]
    # `taut sub string` asks for reliable delivery, so only a listener can ask for less.
    every += [Task(cell, *pair) for pair in ros for cell in ros_cells()
              if pair[1] != TAUT or cell.name == "string-reliable"]
    every = [task for task in every if where(task)]
    wanted = [t for t in every if not only or only in t.ident or fnmatchcase(t.ident, only)]
    known = NOT_IN_RUST if in_rust else BETWEEN_OTHERS if self_test else {}
    excused = {t.ident: reason for t in wanted if (reason := excuse(t, known))}
    return [t for t in wanted if t.ident not in excused], excused


def excuse(task, known):
    """The reason in a table of those why two vendors cannot do this with each other, or None."""
    for (publisher, subscriber, pattern), reason in known.items():
        if (
            fnmatchcase(task.publisher, publisher)
            and fnmatchcase(task.subscriber, subscriber)
            and fnmatchcase(task.cell.name, pattern)
        ):
            return reason
    return None
