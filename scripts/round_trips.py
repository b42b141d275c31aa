#!/usr/bin/env python3
"""Round trips over loopback: Taut beside Cyclone DDS and bare sockets, in one run.

    scripts/in-netns.sh python3 scripts/round_trips.py [--rounds N] [--write]

The three take turns (A B C A B C ...), so that a machine that drifts hits all alike; each figure is the
median over the rounds. Pinned: both processes on CPU 0, which measures the length of the path. Free: as
the scheduler places them. With --write the figures go to docs/results/round_trips.json and .svg.
Needs `cargo build --release -p taut -p taut-port-udp --examples` and Debian's cyclonedds-tools.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples"
SIZE, COUNT, SECONDS = 64, 20_000, 3
CYCLONE = ('<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo" multicast="true"/>'
           "</Interfaces></General></Domain></CycloneDDS>")
PINNED = ["taskset", "-c", "0"]


def pair(pong, ping, pin, env=None):
    """Runs two programs at once; returns what the second printed."""
    env = {**os.environ, **(env or {})}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    far = subprocess.Popen(pin + pong, env=env, **quiet)
    try:
        run = subprocess.run(pin + ping, env=env, capture_output=True, text=True, timeout=60)
        return run.stdout
    finally:
        far.terminate()
        far.wait()


def taut(pin):
    program = str(EXAMPLES / "ping_pong")
    text = pair([program, "pong"], [program, "ping", str(SIZE), str(COUNT)], pin)
    p50, p99, most = re.search(r"p50 ([\d.]+) p99 ([\d.]+) max ([\d.]+)", text).groups()
    return float(p50), float(p99), float(most)


def cyclone(pin):
    """ddsperf prints half of a round trip, once a second; the first second warms up."""
    text = pair(["ddsperf", "-D", str(SECONDS + 3), "pong"],
                ["ddsperf", "-D", str(SECONDS), "ping", "size", str(SIZE)], pin, {"CYCLONEDDS_URI": CYCLONE})
    rows = re.findall(r"size \d+ mean .*? 50% ([\d.]+)us .*?99% ([\d.]+)us max ([\d.]+)us", text)[1:]
    if not rows:
        sys.exit(f"ddsperf printed no figures:\n{text}")
    p50, p99, most = zip(*((2 * float(a), 2 * float(b), 2 * float(c)) for a, b, c in rows))
    return statistics.median(p50), statistics.median(p99), max(most)


def sockets(pin):
    program = str(EXAMPLES / "socket_floor")
    text = pair([program, "pong"], [program, "ping", str(SIZE), str(COUNT)], pin)
    p50, p99, most = re.search(r"p50 ([\d.]+) p99 ([\d.]+) max ([\d.]+)", text).groups()
    return float(p50), float(p99), float(most)


CONTENDERS = {"bare sockets": sockets, "Taut": taut, "Cyclone DDS 0.10.2": cyclone}


def measure(rounds):
    figures = {}
    for placement, pin in [("one CPU", PINNED), ("two CPUs, free", [])]:
        runs = {name: [] for name in CONTENDERS}
        for _ in range(rounds):
            for name, run in CONTENDERS.items():
                runs[name].append(run(pin))
        figures[placement] = {
            name: {
                "p50_us": statistics.median(one[0] for one in all_runs),
                "p99_us": statistics.median(one[1] for one in all_runs),
                "max_us": max(one[2] for one in all_runs),
            }
            for name, all_runs in runs.items()
        }
    return figures


def picture(figures):
    """Bars for p50, a thin line to p99."""
    colours = {"bare sockets": "#9aa5b1", "Taut": "#d6336c", "Cyclone DDS 0.10.2": "#4263eb"}
    most = max(one["p99_us"] for placement in figures.values() for one in placement.values())
    scale, row, left = 420 / most, 26, 190
    out, y = [], 34
    for placement, contenders in figures.items():
        out.append(f'<text x="10" y="{y + 4}" class="h">{placement}</text>')
        y += 14
        for name, one in contenders.items():
            wide, tail = one["p50_us"] * scale, one["p99_us"] * scale
            out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>'
                       f'<rect x="{left}" y="{y + 3}" width="{wide:.1f}" height="15" rx="2" fill="{colours[name]}"/>'
                       f'<path d="M{left + wide:.1f} {y + 10.5}H{left + tail:.1f}m0-4v8" stroke="{colours[name]}"/>'
                       f'<text x="{left + tail + 8:.1f}" y="{y + 14}">{one["p50_us"]:.1f} µs, p99 {one["p99_us"]:.1f}</text>')
            y += row
        y += 18
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {y}" font-family="sans-serif" '
            'font-size="13" fill="#343a40"><style>.h{font-weight:bold}path{fill:none;stroke-width:1.5}</style>'
            f'<rect width="780" height="{y}" fill="#fff"/><text x="10" y="18">'
            f'Round trip of {SIZE} B, reliable, two processes over loopback: median (bar) and 99 % (line)</text>'
            + "".join(out) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/results/round_trips.json and .svg")
    options = parser.parse_args()
    figures = measure(options.rounds)
    for placement, contenders in figures.items():
        print(f"{placement}: round trip of {SIZE} B, median over {options.rounds} rounds")
        for name, one in contenders.items():
            ratio = one["p50_us"] / contenders["Cyclone DDS 0.10.2"]["p50_us"]
            print(f"  {name:20} p50 {one['p50_us']:7.1f}  p99 {one['p99_us']:7.1f}  max {one['max_us']:8.1f} us"
                  f"   {ratio:.2f} of Cyclone DDS")
    if options.write:
        results = ROOT / "docs" / "results"
        results.mkdir(parents=True, exist_ok=True)
        (results / "round_trips.json").write_text(json.dumps(figures, indent=1) + "\n")
        (results / "round_trips.svg").write_text(picture(figures))


if __name__ == "__main__":
    main()
