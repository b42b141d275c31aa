"""What tshark says about the captures: an opinion from outside on our bytes."""

import subprocess
from collections import Counter
from dataclasses import dataclass, field

# Domains choose the ports, and some of them belong to other protocols.
TSHARK = ["tshark", "-n", "-o", "udp.try_heuristic_first:TRUE"]
FIELDS = [
    "frame.number", "udp.srcport", "udp.dstport", "rtps.vendorId", "_ws.expert.severity", "_ws.expert.message",
    "_ws.malformed", "rtps", "frame.time_epoch", "rtps.sm.id", "rtps.sm.wrEntityId",
]
# The severities of tshark's expert information that matter here.
WARNING, ERROR = 0x600000, 0x800000
SHOWN = 5
# RTPS 2.5 §9.4.5: DATA, and all submessages that name a writer; §9.3.1.2: the kinds of writers that are not built in.
DATA = 0x15
NAME_WRITER = {0x06, 0x07, 0x08, 0x12, 0x13, DATA, 0x16}
USERS_WRITER = {0x02, 0x03}


@dataclass
class Verdict:
    """What was found in one capture."""

    capture: str
    frames: int = 0
    errors: list = field(default_factory=list)
    warnings: Counter = field(default_factory=Counter)
    # When datagrams with samples of more than one writer came.
    together_s: list = field(default_factory=list)


def tshark(capture, display_filter, fields):
    """The fields of the frames that match, one list per frame."""
    words = [word for name in fields for word in ("-e", name)]
    argv = [*TSHARK, "-r", str(capture), "-Y", display_filter, "-T", "fields", "-E", "aggregator=;", *words]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"tshark on {capture}: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def dissect(capture):
    """Reads a capture once; every frame must be RTPS without a fault."""
    verdict = Verdict(str(capture))
    rows = tshark(capture, "frame", FIELDS)
    for number, source, target, vendor, severities, messages, malformed, rtps, time_s, kinds, writers in rows:
        verdict.frames += 1
        if len(writers_of_samples(kinds, writers)) > 1:
            verdict.together_s.append(float(time_s))
        where = f"frame {number} of {capture} (port {source} to {target}, vendor {vendor or '?'})"
        if not rtps:
            verdict.errors.append(f"{where}: not recognized as RTPS")
        if malformed:
            verdict.errors.append(f"{where}: malformed")
        said = messages.split(";") if messages else []
        for severity, message in zip((int(s, 0) for s in severities.split(";") if s), said, strict=False):
            if severity >= ERROR and not malformed:
                verdict.errors.append(f"{where}: {message}")
            elif severity >= WARNING:
                verdict.warnings[message] += 1
    return verdict


def writers_of_samples(kinds, writers):
    """Of which of the users' writers a datagram has samples, by its submessages and the writers that they name."""
    naming = [kind for word in kinds.split(";") if word and (kind := int(word, 0)) in NAME_WRITER]
    named = [int(word, 0) for word in writers.split(";") if word]
    pairs = zip(naming, named, strict=False)
    return {writer for kind, writer in pairs if kind == DATA and writer & 0xFF in USERS_WRITER}


def check_together(outcomes, verdicts):
    """Several writers must have shared a datagram in the cells that are about that."""
    together_s = {v.capture: v.together_s for v in verdicts}
    for outcome in outcomes:
        end_s = outcome.began_s + outcome.seconds
        shared = any(outcome.began_s <= at_s <= end_s for at_s in together_s.get(outcome.capture, ()))
        if outcome.task.cell.pub.get("writers", 1) > 1 and not shared:
            outcome.problems.append("no datagram had samples of more than one writer")


def judge(verdicts):
    """Prints what was found; true when no frame has a fault and each capture has frames."""
    frames = sum(v.frames for v in verdicts)
    errors = [error for v in verdicts for error in (v.errors if v.frames else [f"{v.capture} is empty"])]
    warnings = sum((v.warnings for v in verdicts), Counter())
    print(f"tshark: {frames} frames, {len(errors)} errors, {sum(warnings.values())} warnings")
    for error in errors[:SHOWN]:
        print(f"  error: {error}")
    for message, count in warnings.most_common():
        print(f"  warning, {count} times: {message}")
    return bool(verdicts) and not errors
