#!/usr/bin/env python3
"""Runs the interoperability matrix: Taut against the other vendors, both ways.

Everything happens in network namespaces of its own, which are removed at the
end. README.md says what the cells are and how to add a vendor.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import cells, dissect, netns, play, report

JSON = cells.BUILD / "matrix.json"
# How often a cell of best effort is played at most. Nobody sends again what comes while the system keeps its reader from
# running: one time in which enough comes shows that it can. Fewer and a busy machine fails the run.
BEST_EFFORTS = 3
# Where the peers meet, by the options that say so, and which cells make sense there.
PLACES = {
    (): (netns.Loopback, (cells.stays,)),
    ("xdp",): (netns.PastKernel, (cells.stays, cells.is_past_kernel)),
    ("ipv6",): (netns.IPv6, (cells.stays, cells.is_ipv6)),
    ("xdp", "ipv6"): (netns.PastKernelIPv6, (cells.stays, cells.is_past_kernel, cells.is_ipv6)),
    ("dpdk",): (netns.Dpdk, (cells.stays, cells.is_past_kernel)),
    ("dpdk", "ipv6"): (netns.DpdkIPv6, (cells.stays, cells.is_past_kernel, cells.is_ipv6)),
    ("critical",): (netns.Critical, (cells.stays, cells.is_past_kernel, cells.is_critical)),
    ("peers",): (netns.ByPeer, (cells.stays, cells.is_past_kernel, cells.is_by_peer)),
    ("move",): (netns.Moving, (cells.moves,)),
}


def parse(argv):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--self-test", action="store_true", help="the other vendors with each other, without Taut")
    parser.add_argument("--rust", action="store_true", help="Taut with vendors in Rust instead: RustDDS and Dust DDS")
    parser.add_argument("--ipv6", action="store_true", help="by a cable without addresses of IPv4")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--xdp", action="store_true", help="Taut past the kernel, at its end of a cable")
    where.add_argument("--dpdk", action="store_true", help="Taut by DPDK, with an address of its own, at its end of a cable")
    where.add_argument("--critical", action="store_true", help="Taut is reached at its critical port and at no other")
    where.add_argument("--peers", action="store_true", help="Taut without multicast, and with the others as its peers")
    where.add_argument("--move", action="store_true", help="Taut's end of a cable gets another address while samples flow")
    parser.add_argument("--only", metavar="PATTERN", help="cells whose PUBLISHER>SUBSCRIBER:CELL contains or matches it")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and end")
    parser.add_argument("--jobs", type=int, default=4, help="cells at a time (default 4)")
    parser.add_argument("--keep-captures", action="store_true", help="keep build/captures also when all went well")
    options = parser.parse_args(argv)
    if options.rust and (options.self_test or options.ipv6 or options.xdp or options.dpdk):
        parser.error("--rust: Taut with vendors in Rust over loopback only, without --self-test, --ipv6, --xdp and --dpdk")
    for name in ("move", "critical", "peers"):
        if getattr(options, name) and (options.self_test or options.ipv6 or options.rust):
            parser.error(f"--{name}: something is done to Taut's end of IPv4, so not with --self-test, --ipv6 and --rust")
    return options


def place_of(options):
    """Where the peers meet, and which cells that takes."""
    return PLACES[tuple(option for option in ("xdp", "dpdk", "critical", "peers", "move", "ipv6") if getattr(options, option))]


def missing(tasks):
    """What has to be there before anything can run, and is not."""
    vendors = {v for t in tasks for v in (t.publisher, t.subscriber)}
    files = {word for v in vendors for word in cells.VENDORS[v]}
    if any(cells.ROS in (t.publisher, t.subscriber) and cells.TAUT in (t.publisher, t.subscriber) for t in tasks):
        files.add(cells.TAUT_CLI)
    tools = [t for t in ("ip", "nft", "setpriv", "dumpcap", "tshark") if shutil.which(t) is None]
    return [f for f in sorted(files) if not Path(f).exists()] + tools


class Places:
    """Where cells run, and how much of the machine those that run may take."""

    def __init__(self, places):
        self.free = list(places)
        self.capacity = self.room = len(places)
        self.changed = threading.Condition()

    def take(self, weight):
        """A place, when one is free and there is room for the weight."""
        weight = min(weight, self.capacity)
        with self.changed:
            self.changed.wait_for(lambda: self.free and self.room >= weight)
            self.room -= weight
            return self.free.pop(), weight

    def give(self, place, weight):
        """Gives it back."""
        with self.changed:
            self.free.append(place)
            self.room += weight
            self.changed.notify_all()


def run_all(tasks, all_places, scratch, running, stopped):
    """Every task, as many at a time as there are places."""
    places = Places(all_places)

    def one(task):
        if stopped.is_set():
            return None
        place, weight = places.take(task.cell.weight)
        try:
            for _ in range(BEST_EFFORTS):
                outcome = play.play(task, place, scratch, running, stopped)
                if stopped.is_set() or not outcome.only_lacks:
                    break
        finally:
            places.give(place, weight)
        if not stopped.is_set() and (sys.stderr.isatty() or not outcome.passed):
            print(f"{report.MARKS[outcome.passed]:4} {outcome.seconds:5.1f} s  {task.ident}", file=sys.stderr)
        return outcome

    # Heavy cells first: at the end they would run alone.
    order = sorted(tasks, key=lambda t: (-t.cell.weight, -t.cell.timeout_s))
    with ThreadPoolExecutor(len(all_places)) as pool:
        try:
            done = {id(t): f for t, f in ((t, pool.submit(one, t)) for t in order)}
            return [done[id(t)].result() for t in tasks]
        except BaseException:
            stopped.set()
            for peer in list(running):
                peer.kill()
            raise


def stop_captures(places):
    """Ends the captures; gives the reasons why they cannot be judged, if there are any."""
    reasons = [place.stop_capture() for place in places]
    return "; ".join(reason for reason in reasons if reason)


def run_matrix(options, tasks, excused):
    """The run itself: namespaces, cells, captures, report."""
    begin = time.monotonic()
    captures, scratch = cells.BUILD / "captures", cells.BUILD / "log"
    shutil.rmtree(captures, ignore_errors=True)
    for directory in (captures, scratch):
        directory.mkdir(parents=True, exist_ok=True)
    netns.remove_stale()
    make, _ = place_of(options)
    places, running, stopped = [], [], threading.Event()
    try:
        for number in range(min(options.jobs, len(tasks))):
            places.append(make(number, captures, options.self_test))
        outcomes = run_all(tasks, places, scratch, running, stopped)
        lost = stop_captures(places)
    finally:
        for place in places:
            place.remove()
    with ThreadPoolExecutor(2) as pool:
        # Cells that take much of the machine leave a place without any.
        verdicts = list(pool.map(dissect.dissect, [place.capture for place in places if place.domains]))
    dissect.check_together(outcomes, verdicts)

    report.table(outcomes, excused)
    for ident_reason in sorted(set(excused.values())):
        print(f"-: {ident_reason}")
    clean = dissect.judge(verdicts)
    if lost:
        print(f"tshark: {lost}, so the captures prove nothing")
    failed = [o for o in outcomes if not o.passed]
    # What the other vendors send to each other is theirs to answer for.
    passed = not failed and (options.self_test or (clean and not lost))
    for outcome in failed:
        report.failure(outcome)
    seconds = time.monotonic() - begin
    report.write_json(JSON, outcomes, excused, verdicts, passed, seconds)
    if passed and not options.keep_captures:
        shutil.rmtree(captures)
    if not passed and not failed:
        print("\nFAIL: every cell passed, but what Taut sent did not stand up to tshark")
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} cells passed in {seconds:.0f} s"
          f"{f', {len(excused)} excused' if excused else ''}; {JSON.relative_to(cells.HERE.parent)}")
    return 0 if passed else 1


def main():
    """Checks that it can run at all, then runs."""
    options = parse(sys.argv[1:])
    _, takes = place_of(options)
    tasks, excused = cells.tasks(options.self_test, options.rust, lambda task: all(take(task) for take in takes), options.only)
    if options.list:
        print("\n".join(t.ident for t in tasks))
        return 0
    problem = None
    if not tasks:
        problem = f"no cell matches {options.only}; --list shows them all"
    elif options.jobs < 1:
        problem = "--jobs is at least 1"
    elif os.geteuid() != 0:
        problem = "network namespaces need root; run it as root"
    elif absent := missing(tasks):
        build = "interop/build.sh rust" if options.rust else "interop/build.sh"
        problem = f"not there: {', '.join(absent)}; {build} builds the peers of the others, cargo Taut's"
    if problem:
        print(f"interop: {problem}", file=sys.stderr)
        return 2

    def stop(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    return run_matrix(options, tasks, excused)


if __name__ == "__main__":
    sys.exit(main())
