"""What tshark says about the captures: an opinion from outside on our bytes."""

import subprocess
from collections import Counter
from dataclasses import dataclass, field

# Domains choose the ports, and some of them belong to other protocols.
TSHARK = ["tshark", "-n", "-o", "udp.try_heuristic_first:TRUE"]
FIELDS = ["frame.number", "udp.srcport", "udp.dstport", "rtps.vendorId", "_ws.expert.severity", "_ws.expert.message"]
# The severities of tshark's expert information that matter here.
WARNING, ERROR = 0x600000, 0x800000
SHOWN = 5


@dataclass
class Verdict:
    """What was found in one capture."""

    capture: str
    frames: int = 0
    errors: list = field(default_factory=list)
    warnings: Counter = field(default_factory=Counter)


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
    rows = tshark(capture, "frame", [*FIELDS, "_ws.malformed", "rtps", "rtps.sm.id"])
    for number, source, target, vendor, severities, messages, malformed, rtps, _ in rows:
        verdict.frames += 1
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


def judge(verdicts):
    """Prints what was found; true when no frame has a fault and there are frames."""
    frames = sum(v.frames for v in verdicts)
    errors = [error for v in verdicts for error in v.errors]
    warnings = sum((v.warnings for v in verdicts), Counter())
    print(f"tshark: {frames} frames, {len(errors)} errors, {sum(warnings.values())} warnings")
    if not frames:
        print("  error: nothing was captured")
    for error in errors[:SHOWN]:
        print(f"  error: {error}")
    for message, count in warnings.most_common():
        print(f"  warning, {count} times: {message}")
    return not errors and frames > 0
