"""The table, the failures and matrix.json."""

import json

MARKS = {True: "ok", False: "FAIL"}


def table(outcomes, excused):
    """Cells down, pairs across."""
    marks = {o.task.ident: f"{MARKS[o.passed]} {o.seconds:.1f}" for o in outcomes}
    marks.update({ident: "-" for ident in excused})
    pairs, names = [], []
    for ident in marks:
        pair, name = ident.split(":")
        if pair not in pairs:
            pairs.append(pair)
        if name not in names:
            names.append(name)
    ros = [p for p in pairs if "rclpy" in p]
    for group in ([p for p in pairs if p not in ros], ros):
        rows = [n for n in names if any(f"{p}:{n}" in marks for p in group)]
        if not rows:
            continue
        width = max(len(n) for n in rows) + 2
        print(" " * width + "  ".join(f"{p:>{max(9, len(p))}}" for p in group))
        for name in rows:
            cells = (f"{marks.get(f'{p}:{name}', ''):>{max(9, len(p))}}" for p in group)
            print(f"{name:<{width}}" + "  ".join(cells))
        print()


def failure(outcome):
    """Why a cell failed and how to see it again."""
    ident = outcome.task.ident
    print(f"\nFAIL {ident}")
    for problem in outcome.problems:
        print(f"  {problem}")
    print(f"  again: interop/run.py --keep-captures --only '{ident}'")
    for command in outcome.commands:
        print(f"  command: {command}")
    for role, lines in outcome.output.items():
        print(f"  last words of {role}:")
        for line in lines:
            print(f"    {line}")


def write_json(path, outcomes, excused, verdicts, passed, seconds):
    """The same for machines."""
    document = {
        "passed": passed,
        "seconds": round(seconds, 1),
        "cells": [
            {
                "cell": o.task.cell.name,
                "publisher": o.task.publisher,
                "subscriber": o.task.subscriber,
                "passed": o.passed,
                "seconds": round(o.seconds, 2),
                "received": o.received,
                "datagrams_dropped": o.dropped,
                "problems": o.problems,
                "commands": o.commands,
            }
            for o in outcomes
        ],
        "excused": excused,
        "tshark": {
            "frames": sum(v.frames for v in verdicts),
            "errors": [e for v in verdicts for e in v.errors],
            "warnings": [{"message": m, "count": c} for v in verdicts for m, c in v.warnings.items()],
        },
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
