"""Network namespaces: made, given loss, captured, removed. Never the root one.

A namespace is named after the process that made it, so that those of a runner
that was killed can be told from those of one that runs.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

PREFIX = "taut-mx"
# What an RTPS datagram begins with.
RTPS_MAGIC = "0x52545053"

# Fast DDS wakes its own sockets with datagrams of one byte (length 9 with the header).
ANYONE = "udp and not udp[4:2]=9"
# What none of the others sent is Taut's, whatever it looks like: RTPS magic at UDP
# offset 8, vendor id 6 bytes later (eProsima 01.0f, Cyclone 01.10).
TAUT_ALONE = f"{ANYONE} and not (udp[8:4]={RTPS_MAGIC} and (udp[14:2]=0x010f or udp[14:2]=0x0110))"


def run(*argv, check=True):
    """Runs a command to its end and gives its output."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def remove_stale():
    """Removes the namespaces of runners that are no more."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        parts = name.split("_")
        if parts[0] == PREFIX and not Path(f"/proc/{parts[1]}").exists():
            run("ip", "netns", "del", name, check=False)


class Namespace:
    """One namespace with a loopback that carries multicast, and its capture."""

    def __init__(self, number, capture_dir, everything):
        self.name = f"{PREFIX}_{os.getpid()}_{number}"
        self.domains = 0
        self.capture = capture_dir / f"{number}.pcapng"
        self.dumpcap = None
        run("ip", "netns", "add", self.name)
        try:
            for words in (
                ("link", "set", "lo", "up"),
                ("link", "set", "lo", "multicast", "on"),
                ("route", "add", "224.0.0.0/4", "dev", "lo"),
            ):
                run("ip", "-n", self.name, *words)
            self.start_capture(ANYONE if everything else TAUT_ALONE)
        except BaseException:
            self.remove()
            raise

    def enter(self, *argv):
        """The command that runs `argv` inside; it dies with the runner, however that ends."""
        return ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", self.name, *argv]

    def next_domain(self):
        """A domain of its own for each cell; below 100 no port is in the ephemeral range."""
        self.domains += 1
        return self.domains % 100

    def start_capture(self, packet_filter):
        """Starts dumpcap and waits until it captures."""
        argv = ["dumpcap", "-q", "-i", "lo", "-B", "128", "-f", packet_filter, "-w", str(self.capture)]
        self.dumpcap = subprocess.Popen(
            self.enter(*argv), stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        said = ""
        for line in self.dumpcap.stderr:
            said += line
            if line.startswith("File:"):
                return
        raise RuntimeError(f"dumpcap did not start: {said}")

    def stop_capture(self):
        """Ends the capture and gives the number of packets that it lost."""
        if self.dumpcap is None:
            return 0
        self.dumpcap.send_signal(signal.SIGINT)
        _, said = self.dumpcap.communicate(timeout=20)
        self.dumpcap = None
        for line in said.splitlines():
            # "Packets received/dropped on interface 'Loopback: lo': 812/0 (...)"
            if line.startswith("Packets received/dropped"):
                return int(line.split("': ")[1].split()[0].split("/")[1])
        return 0

    def lose(self, percent):
        """Drops that share of the RTPS datagrams, whatever ports they go to: Cyclone's are the kernel's choice."""
        self.nft("add", "table", "inet", "loss")
        self.nft("add", "chain", "inet", "loss", "in", "{ type filter hook input priority 0; }")
        self.nft(
            "add", "rule", "inet", "loss", "in", "meta", "l4proto", "udp", "@th,64,32", RTPS_MAGIC,
            "numgen", "random", "mod", "100", "<", str(percent), "counter", "drop",
        )

    def lose_nothing(self):
        """Removes the rule and gives the number of datagrams that it dropped."""
        listing = json.loads(self.nft("-j", "list", "table", "inet", "loss"))
        self.nft("delete", "table", "inet", "loss")
        for item in listing["nftables"]:
            for part in item.get("rule", {}).get("expr", []):
                if "counter" in part:
                    return part["counter"]["packets"]
        return 0

    def nft(self, *words):
        """Runs nft inside."""
        return run(*self.enter("nft", *words))

    def remove(self):
        """Ends the capture and removes the namespace; safe to call twice."""
        if self.dumpcap is not None:
            self.dumpcap.kill()
            self.dumpcap.wait()
            self.dumpcap = None
        # Refused for a moment while a process that was just ended is still inside.
        end = time.monotonic() + 2.0
        while (Path("/run/netns") / self.name).exists() and time.monotonic() < end:
            run("ip", "netns", "del", self.name, check=False)
