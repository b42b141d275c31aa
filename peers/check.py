#!/usr/bin/env python3
"""Plays the contract of README.md with one adapter: what a developer of adapters runs.

    peers/check.py build/perf-peer-zeromq                       all it says it can, 64 bytes
    peers/check.py perf-peer-zeromq udp 1024 --roles ping,pub   a part of it

Names without a slash are looked for in build/. Everything runs in a network
namespace of its own (scripts/in-netns.sh). Prints one line a check, with the figures
seen on the way; exit code 1 if one failed. The figures are to see that an adapter
works: one unpinned run on whatever else the machine does proves no speed.
"""
import argparse
import array
import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
READY_S, RUN_S, EOF_S = 30.0, 60.0, 1.0
# How soon a pub is ready that waits for nobody. The slowest looks for others for half a second before.
ALONE_S = 2.0
# So many participants that one by one is dearer than to the group for each product; and which of them sends to each
# all the same, by its default: the avoid_builtin_multicast of Fast DDS.
NODES, SEDP_TO_EACH = 10, ("fastdds",)


class Broken(Exception):
    """The adapter does not keep the contract."""


class Absent(Exception):
    """The adapter says that it has no such thing."""


class Adapter:
    """One process of the adapter in one role."""

    def __init__(self, program, role, options):
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        self.role = role
        self.stderr = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen([program, role, *words, "--key-of-the-future", "x"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def broken(self, what):
        self.stderr.seek(0)
        tail = self.stderr.read().strip().splitlines()[-5:]
        return Broken(f"{self.role}: {what}" + "".join(f"\n        | {line}" for line in tail))

    def expect(self, event, limit_s=RUN_S):
        try:
            line = self.lines.get(timeout=limit_s)
        except queue.Empty:
            raise self.broken(f"no {event} within {limit_s:.0f} s") from None
        if line is None:
            raise self.broken(f"ended with {self.process.wait(5)} instead of saying {event}")
        try:
            said = json.loads(line)
        except ValueError:
            raise self.broken(f"not JSON: {line!r}") from None
        if said.get("event") == "absent":
            if self.process.wait(5) != 0:
                raise self.broken("absent is to exit with 0")
            raise Absent(said["reason"])
        if said.get("event") != event:
            raise self.broken(f"{line!r} instead of {event}")
        return said

    def say(self, word):
        try:
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()
        except OSError:
            raise self.broken("is gone") from None

    def done(self, *keys):
        said = self.expect("done")
        missing = [key for key in keys if not isinstance(said.get(key), int)]
        if missing:
            raise self.broken(f"done without {missing}")
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            raise self.broken("still runs 5 s after done") from None
        if code != 0:
            raise self.broken(f"exit code {code} after done")
        return said

    def children(self):
        with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]
        return []

    def close_stdin(self):
        """The end of file that means: exit at once."""
        children, start = self.children(), time.monotonic()
        self.process.stdin.close()
        try:
            self.process.wait(EOF_S)
        except subprocess.TimeoutExpired:
            raise self.broken(f"still runs {EOF_S:.0f} s after stdin closed") from None
        alive = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
        if alive:
            raise self.broken(f"left children behind: {alive}")
        return time.monotonic() - start

    def kill(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.stderr.close()


class Announcements:
    """Datagrams on lo with data of SEDP, RTPS' discovery of writers and readers: to the group, to one."""

    ETH_P_ALL, IP_AT, SO_RCVBUFFORCE = 3, 14, 33
    DATA, SEDP_WRITERS = 0x15, (0x3c2, 0x4c2)  # RTPS 2.5, 9.4.5.4 and 9.3.1.5

    def __enter__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(self.ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, self.SO_RCVBUFFORCE, 64 << 20)
        self.socket.bind(("lo", self.ETH_P_ALL))
        self.socket.setblocking(False)
        return self

    def __exit__(self, *_):
        self.socket.close()

    def announces(self, message):
        """Is there a DATA of one of SEDP's writers in this message?"""
        at = 20
        while message[:4] == b"RTPS" and at + 16 <= len(message):
            order = "<" if message[at + 1] & 1 else ">"
            length, = struct.unpack_from(order + "H", message, at + 2)
            writer, = struct.unpack_from(">I", message, at + 12)
            if message[at] == self.DATA and writer in self.SEDP_WRITERS:
                return True
            at += 4 + length if length else len(message)
        return False

    def counted(self):
        """(to the group, to one) since it began."""
        counts = [0, 0]
        while True:
            try:
                frame, address = self.socket.recvfrom(1 << 16)
            except BlockingIOError:
                return tuple(counts)
            ip = frame[self.IP_AT:]
            # lo shows each twice. IPv4 and UDP only, whose header is of 8 bytes.
            if address[2] != socket.PACKET_OUTGOING or len(ip) < 28 or ip[0] >> 4 != 4 or ip[9] != socket.IPPROTO_UDP:
                continue
            if self.announces(ip[4 * (ip[0] & 15) + 8:]):
                counts[ip[16] >> 4 != 14] += 1


class Check:
    def __init__(self, program, info, args):
        self.program, self.info, self.args = program, info, args
        self.domain = 0
        self.failed = 0
        self.directory = tempfile.mkdtemp(prefix="perf-check-")

    def options(self, **more):
        args = self.args
        options = {
            "transport": args.transport, "variant": args.variant, "domain": self.domain, "interface": "lo",
            "address": "127.0.0.1", "remote": "127.0.0.1", "reliability": args.reliability,
            "history": args.history, "multicast": "yes", "wait": args.wait, "type": args.type, "size": args.size,
            "loan": args.loan, "warmup": 100, "count": args.count, "duration-ms": 20000, "period-ns": 0,
            "burst": 0, "interval-ns": 0, "remotes": 1, "index": 0, "nodes": 2, "endpoints": 5, "samples": "",
        }
        options.update({key.replace("_", "-"): value for key, value in more.items()})
        return options

    @contextlib.contextmanager
    def play(self, *roles):
        """Starts adapters in (role, options) and the daemon before them; ends all."""
        self.domain = self.domain % 200 + 1
        with contextlib.ExitStack() as stack:
            def start(role, options):
                adapter = Adapter(self.program, role, options)
                stack.callback(adapter.kill)
                return adapter
            if self.info.get("daemon") and all(role != "daemon" for role, _ in roles):
                daemon = start("daemon", self.options())
                daemon.expect("ready", READY_S)
                stack.callback(lambda: (daemon.say("end"), daemon.done()))
            yield [start(role, self.options(**more)) for role, more in roles]

    def file(self, name):
        return os.path.join(self.directory, name)

    def rows(self, name, want):
        numbers = array.array("Q")
        with open(self.file(name), "rb") as file:
            data = file.read()
        os.unlink(self.file(name))
        if len(data) % 24 != 0:
            raise Broken(f"the file of samples has {len(data)} bytes, which is no multiple of 24")
        numbers.frombytes(data)
        rows = [tuple(numbers[i:i + 3]) for i in range(0, len(numbers), 3)]
        if want is not None and len(rows) != want:
            raise Broken(f"the file of samples has {len(rows)} rows, not {want}")
        return rows

    def round_trips(self, rows, middle):
        """Checks the order of times, and gives the figures."""
        times = []
        for first, second, third in rows:
            if first == 0 or abs(first - time.monotonic_ns()) > 600e9:
                raise Broken(f"{first} is no time of CLOCK_MONOTONIC")
            if third != 0 and not first < third:
                raise Broken(f"taken at {third}, sent at {first}")
            if third != 0 and middle and not first < second <= third:
                raise Broken(f"{second} is not between {first} and {third}")
            if third != 0:
                times.append(third - first)
        if not times:
            raise Broken("no sample came back")
        times.sort()
        at = lambda share: times[min(len(times) - 1, int(len(times) * share))] / 1000
        return f"p50 {at(0.5):.1f} us, p99 {at(0.99):.1f} us, max {times[-1] / 1000:.0f} us"

    def measured(self, adapter, name, keys):
        adapter.say("go")
        adapter.expect("stop")
        adapter.say("go")
        done = adapter.done(*keys)
        return done, self.rows(name, None)

    def ping(self, period_ns=0):
        more = {"samples": self.file("ping"), "period_ns": period_ns}
        if period_ns:
            more["count"] = min(self.args.count, 1000)
        with self.play(("pong", {}), ("ping", more)) as (pong, ping):
            pong.expect("ready", READY_S)
            ready = ping.expect("ready", READY_S)
            done, rows = self.measured(
                ping, "ping", ("sent", "received", "corrupt", "duplicates", "late", "behind_ns", "start_ns"))
            pong.say("end")
            answered = pong.done("received", "corrupt")
        if len(rows) != done["sent"]:
            raise Broken(f"{done['sent']} sent, {len(rows)} rows")
        if done["corrupt"] or answered["corrupt"]:
            raise Broken(f"corrupt: {done}, {answered}")
        middle = self.args.type == "bytes" or (self.args.type == "plain" and self.args.size > 16)
        figures = self.round_trips(rows[100:], middle)
        if period_ns:
            self.paced(rows, period_ns, done)
        return (f"{ready['wait']}: {figures}, lost {done['sent'] - done['received']}, late {done['late']}, "
                f"behind {done['behind_ns'] / 1000:.1f} us")

    def paced(self, rows, period_ns, done):
        """No sample of an open loop counts from before it was due, or from after its write."""
        overslept = [row[0] - done["start_ns"] - seq * period_ns for seq, row in enumerate(rows)][100:]
        if min(overslept) < 0:
            raise Broken(f"a sample counts from {-min(overslept)} ns before it was due")
        if sum(overslept) // len(overslept) > done["behind_ns"]:
            raise Broken(f"samples count from after their write: {done}")

    def pub(self, subs=1):
        names = [(f"sub{i}", {"samples": self.file(f"sub{i}"), "index": i}) for i in range(subs)]
        roles = [("sub", more) for _, more in names] + [
            ("pub", {"samples": self.file("pub"), "remotes": subs, "burst": self.args.burst, "interval_ns": 2000000})]
        with self.play(*roles) as adapters:
            for adapter in adapters:
                ready = adapter.expect("ready", READY_S)
            sent, rows = self.measured(adapters[-1], "pub", ("sent", "refused", "start_ns", "stop_ns"))
            got = []
            for adapter in adapters[:-1]:
                adapter.say("end")
                got.append(adapter.done("received", "lost", "out_of_order", "duplicates", "corrupt", "bytes",
                                        "first_ns", "last_ns"))
        if len(rows) != sent["sent"] + 100:
            raise Broken(f"{sent['sent']} sent after 100 of warm-up, {len(rows)} rows")
        self.round_trips(rows, False)
        for (name, _), done in zip(names, got):
            taken = self.rows(name, done["received"])
            if self.args.type in ("bytes", "plain") and done["received"]:
                self.round_trips(taken, False)
            if len({row[1] for row in taken if 100 <= row[1] < len(rows)}) != len(taken):
                raise Broken(f"{name}: its records have not the numbers of samples")
            if done["corrupt"]:
                raise Broken(f"{name}: {done}")
            if self.args.reliability == "reliable" and done["received"] != sent["sent"] and self.args.strict:
                raise Broken(f"reliable, sent {sent['sent']}, and {name}: {done}")
        seconds = (sent["stop_ns"] - sent["start_ns"]) / 1e9
        missing = [sent["sent"] - done["received"] for done in got]
        return (f"{ready['wait']}: {sent['sent'] / seconds / 1000:.1f} k/s in bursts of {self.args.burst}, "
                f"refused {sent['refused']}, not received {missing}, lost {[d['lost'] for d in got]}, "
                f"out of order {[d['out_of_order'] for d in got]}")

    def crowd(self, threads=2):
        more = {"samples": self.file("crowd"), "threads": threads}
        with self.play(("sub", {"samples": "", "threads": threads}), ("crowd", more)) as (sub, crowd):
            sub.expect("ready", READY_S)
            crowd.expect("ready", READY_S)
            sent, rows = self.measured(crowd, "crowd", ("sent", "refused", "start_ns", "stop_ns"))
            sub.say("end")
            got = sub.done("received", "lost", "out_of_order", "duplicates", "corrupt")
        if len(rows) != (sent["sent"] + 100) // threads * threads:
            raise Broken(f"{sent['sent']} sent after 100 of warm-up, {len(rows)} rows")
        figures = self.round_trips(rows, False)
        for first in range(threads):
            if sorted(rows[first::threads]) != rows[first::threads]:
                raise Broken(f"the rows of thread {first} are not in its order")
        if got["corrupt"] or got["duplicates"] or got["out_of_order"]:
            raise Broken(f"{got}")
        return f"{figures}, refused {sent['refused']}, not received {sent['sent'] - got['received']}"

    def local(self):
        with self.play(("local", {"samples": self.file("local")})) as (local,):
            ready = local.expect("ready", READY_S)
            done, rows = self.measured(local, "local", ("sent", "received", "corrupt", "duplicates", "late"))
        if done["corrupt"] or len(rows) != done["sent"]:
            raise Broken(f"{done}, {len(rows)} rows")
        lost = done["sent"] - done["received"]
        return f"{ready['wait']}: {self.round_trips(rows[100:], False)}, lost {lost}"

    def cdr(self):
        with self.play(("cdr", {"samples": self.file("cdr"), "count": 50})) as (cdr,):
            cdr.expect("ready", READY_S)
            _, rows = self.measured(cdr, "cdr", ())
        if len(rows) != 50:
            raise Broken(f"{len(rows)} batches, not 50")
        self.cdr_by_time()
        middle = lambda column: sorted(row[column] for row in rows)[25] / 1000
        return f"encode {middle(0):.0f} ns, decode {middle(1):.0f} ns"

    def cdr_by_time(self):
        limit_ms, most = 300, 100000
        with self.play(("cdr", {"samples": self.file("cdr"), "count": most, "duration_ms": limit_ms})) as (cdr,):
            cdr.expect("ready", READY_S)
            _, rows = self.measured(cdr, "cdr", ())
        took_ms = sum(row[0] + row[1] for row in rows) / 1e6
        if len(rows) == most or took_ms < 0.8 * limit_ms:
            raise Broken(f"{len(rows)} batches of {took_ms:.0f} ms instead of those of {limit_ms} ms")

    def entities(self):
        steps = []
        with self.play(("entities", {})) as (adapter,):
            adapter.expect("ready", READY_S)
            while True:
                adapter.say("go")
                line = adapter.lines.get(timeout=READY_S)
                if line is None:
                    raise adapter.broken("ended between its steps")
                said = json.loads(line)
                if said["event"] == "done":
                    break
                if said["event"] != "step":
                    raise adapter.broken(f"{said} instead of a step")
                with open(f"/proc/{adapter.process.pid}/statm") as file:
                    resident = int(file.read().split()[1]) * 4
                steps.append(f"{said['name']} {said['count']}: {resident} kB")
            if adapter.process.wait(5) != 0:
                raise adapter.broken("exit code after done")
        return ", ".join(steps)

    def node(self, count=2):
        more = {"nodes": count, "remotes": count - 1, "multicast": "no"}
        with Announcements() as sedp, self.play(*(("node", {"index": i, **more}) for i in range(count))) as nodes:
            for node in nodes:
                node.expect("ready", READY_S)
            start = time.monotonic_ns()
            for node in nodes:
                node.say("go")
            matched = [node.expect("matched", READY_S)["ns"] - start for node in nodes]
            to_group, to_one = sedp.counted()
            for node in nodes:
                node.say("end")
            for node in nodes:
                node.done()
        # `--multicast no` is for data. Who can have that by the group can have what is for all of them, too.
        if count > 2 and not to_group:
            raise Broken(f"SEDP goes to each of {count} participants and not to the group: {to_one} datagrams")
        return (f"{count} nodes of 5 matched after {max(matched) / 1e6:.1f} ms, "
                f"datagrams of SEDP: {to_group} to the group, {to_one} to one")

    def pub_alone(self):
        """Who is to wait for nobody begins without a match."""
        with self.play(("pub", {"remotes": 0, "duration_ms": 300})) as (pub,):
            start = time.monotonic()
            pub.expect("ready", ALONE_S)
            took_s = time.monotonic() - start
            pub.say("go")
            pub.expect("stop")
            pub.say("go")
            sent = pub.done("sent", "refused", "start_ns", "stop_ns")["sent"]
        if not sent:
            raise Broken("nothing was sent to nobody")
        return f"ready after {took_s * 1000:.0f} ms, sent {sent}"

    def end_of_file(self):
        """Closes stdin of each role that it has, idle and in full traffic."""
        slowest, slow_role = 0.0, ""
        pairs = {"ping": "pong", "pub": "sub"}
        for role in self.info["roles"]:
            if role not in self.roles() and role != "daemon":
                continue
            with self.play((role, {"count": 0 if role in ("ping", "pub", "crowd", "local") else 10})) as (adapter,):
                with contextlib.suppress(Absent):
                    if role not in (*pairs, "crowd"):
                        adapter.expect("ready", READY_S)
                    took = adapter.close_stdin()
                    slowest, slow_role = max((slowest, slow_role), (took, role))
        for role, other in pairs.items():
            if role not in self.roles():
                continue
            with self.play((other, {"count": 0}), (role, {"count": 0})) as (quiet, busy):
                quiet.expect("ready", READY_S)
                busy.expect("ready", READY_S)
                busy.say("go")
                time.sleep(0.3)  # the traffic is what is to be interrupted
                for adapter in (busy, quiet):
                    took = adapter.close_stdin()
                    slowest, slow_role = max((slowest, slow_role), (took, adapter.role + " in traffic"))
        return f"slowest {slow_role}: {slowest * 1000:.0f} ms"

    def roles(self):
        here = ("thread", "intra")
        on_transport = {"local"} if self.args.transport in here else {"ping", "pong", "pub", "sub", "crowd"}
        return [role for role in self.info["roles"]
                if (role in on_transport or role in ("cdr", "entities", "node"))
                and (not self.args.roles or role in self.args.roles)]

    def run(self, name, check):
        try:
            print(f"  ok     {name}: {check()}")
        except Absent as absent:
            print(f"  absent {name}: {absent}")
        except (Broken, OSError, ValueError, KeyError, queue.Empty, subprocess.TimeoutExpired) as error:
            self.failed += 1
            print(f"  FAILED {name}: {error!s}")
        sys.stdout.flush()

    def all(self):
        roles = self.roles()
        if "ping" in roles:
            self.run("ping", self.ping)
            self.run("ping, open loop", lambda: self.ping(1000000))
        if "pub" in roles:
            self.run("pub", self.pub)
            self.run("pub to 2", lambda: self.pub(2))
            self.run("pub alone", self.pub_alone)
        if "crowd" in roles:
            self.run("crowd of 2", self.crowd)
            self.run("crowd of 4", lambda: self.crowd(4))
        for role in ("local", "cdr", "entities", "node"):
            if role in roles:
                self.run(role, getattr(self, role))
        if "node" in roles and self.info["multicast"] and self.info["peer"] not in SEDP_TO_EACH:
            self.run(f"node of {NODES}", lambda: self.node(NODES))
        self.run("end of file", self.end_of_file)
        shutil.rmtree(self.directory, ignore_errors=True)


def info_of(program):
    answer = subprocess.run([program, "info"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
    lines = answer.stdout.splitlines()
    if answer.returncode != 0 or len(lines) != 1:
        raise Broken(f"info: exit code {answer.returncode}, {len(lines)} lines")
    info = json.loads(lines[0])
    kinds = {"peer": str, "version": str, "note": str, "transports": list, "roles": list, "types": list,
             "waits": list, "variants": list, "multicast": bool, "loan": bool, "daemon": bool}
    wrong = [key for key, kind in kinds.items() if not isinstance(info.get(key), kind)]
    if wrong:
        raise Broken(f"info: missing or of a wrong kind: {wrong}")
    return info


def main():
    parser = argparse.ArgumentParser(description="plays the contract with one adapter")
    parser.add_argument("program")
    parser.add_argument("transport", nargs="?", default="", help="default: each one of info")
    parser.add_argument("size", nargs="?", type=int, default=64)
    parser.add_argument("--roles", default="", help="only these, separated by commas")
    for key, default in (("type", "bytes"), ("wait", "block"), ("variant", ""), ("reliability", "reliable"),
                         ("history", "keep-all"), ("loan", "no")):
        parser.add_argument(f"--{key}", default=default)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--burst", type=int, default=100, help="of pub, every 2 ms; 0: no pause")
    parser.add_argument("--strict", action="store_true", help="a reliable stream that loses samples fails")
    args = parser.parse_args()
    args.roles = args.roles.split(",") if args.roles else []
    program = args.program if "/" in args.program else os.path.join(HERE, "build", args.program)

    if "PERF_CHECK_INSIDE" not in os.environ:
        os.environ["PERF_CHECK_INSIDE"] = "1"
        in_netns = os.path.join(HERE, "..", "scripts", "in-netns.sh")
        os.execv(in_netns, [in_netns, sys.executable, *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        info = info_of(program)
    except (Broken, ValueError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"  FAILED {error}")
    print(f"{info['peer']} {info['version']}: {info['note']}")
    failed = 0
    for transport in [args.transport] if args.transport else info["transports"]:
        args.transport = transport
        print(f"{transport}, {args.type} of {args.size} bytes")
        check = Check(program, info, args)
        check.all()
        failed += check.failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
