"""Network namespaces and what they are connected by: made, given loss, captured, removed. Never the root one.

A namespace is named after the process that made it, so that those of a runner
that was killed can be told from those of one that runs.
"""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import cells

PREFIX = "taut-mx"
# What an RTPS datagram begins with.
RTPS_MAGIC = "0x52545053"

# Fast DDS wakes its own sockets with datagrams of one byte (length 9 with the header).
ANYONE = "udp and not udp[4:2]=9"
# What a lost fragment of IP costs at an end of a cable: its datagram, and no more. As the kernel has it, room for 23 of
# 64 kB that are not complete, each for 30 s, nothing that is cut arrives any more after a moment of loss.
FRAGMENTS = {"frag_high_thresh": 64 << 20, "frag_time": 1}

# What none of the others sent is Taut's, whatever it looks like: RTPS magic at UDP
# offset 8, vendor id 6 bytes later (eProsima 01.0f, Cyclone 01.10, RustDDS 01.12, Dust DDS 01.14).
OTHERS = " or ".join(f"udp[14:2]={vendor}" for vendor in ("0x010f", "0x0110", "0x0112", "0x0114"))
TAUT_ALONE = f"{ANYONE} and not (udp[8:4]={RTPS_MAGIC} and ({OTHERS}))"


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
    """One namespace."""

    def __init__(self, suffix):
        self.name = f"{PREFIX}_{os.getpid()}_{suffix}"
        run("ip", "netns", "add", self.name)

    def ip(self, *words):
        """Runs iproute2 inside."""
        run("ip", "-n", self.name, *words)

    def enter(self, *argv):
        """The command that runs `argv` inside; it dies with the runner, however that ends."""
        return ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", self.name, *argv]

    def nft(self, *words):
        """Runs nft inside."""
        return run(*self.enter("nft", *words))

    def remove(self):
        """Removes the namespace; safe to call twice."""
        # Refused for a moment while a process that was just ended is still inside.
        end = time.monotonic() + 2.0
        while (Path("/run/netns") / self.name).exists() and time.monotonic() < end:
            run("ip", "netns", "del", self.name, check=False)


@dataclass
class Side:
    """What a peer is told of where it is."""

    namespace: Namespace
    interface: str
    environment: dict = field(default_factory=dict)


class Place:
    """Where the peers of a cell meet; what is sent there is captured, and some of it lost if that is wanted."""

    taut_alone = TAUT_ALONE

    def __init__(self, number, capture_dir, everything):
        self.domains = 0
        self.capture = capture_dir / f"{number}.pcapng"
        self.dumpcap = None
        self.namespaces = []
        try:
            self.make(number)
            self.start_capture(ANYONE if everything else self.taut_alone)
        except BaseException:
            self.remove()
            raise

    def make(self, number):
        """Makes the namespaces. The last one is where it is captured, and where datagrams are lost."""
        raise NotImplementedError

    def side(self, vendor):
        """Where this vendor's peers are."""
        raise NotImplementedError

    def next_domain(self):
        """A domain of its own for each cell; below 100 no port is in the ephemeral range."""
        self.domains += 1
        return self.domains % 100

    def start_capture(self, packet_filter):
        """Starts dumpcap and waits until it captures."""
        interface = self.side(None).interface
        argv = ["dumpcap", "-q", "-i", interface, "-B", "128", "-f", packet_filter, "-w", str(self.capture)]
        self.dumpcap = subprocess.Popen(
            self.namespaces[-1].enter(*argv), stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        said = ""
        for line in self.dumpcap.stderr:
            said += line
            if line.startswith("File:"):
                return
        raise RuntimeError(f"dumpcap did not start: {said}")

    def losses(self):
        """What the kernels of both ends say they lost, by the names of their counters: for the eyes of a person."""
        lines = []
        for namespace in self.namespaces:
            names = ("IpReasm*", "Ip6Reasm*", "UdpRcvbufErrors", "Udp6RcvbufErrors")
            counted = run(*namespace.enter("nstat", "-asz", *names), check=False)
            links = json.loads(run("ip", "-n", namespace.name, "-s", "-j", "link", check=False) or "[]")
            words = [" ".join(line.split()[:2]) for line in counted.splitlines()[1:] if line.split()[1] != "0"]
            words += [
                f"{link['ifname']} {way} dropped {link['stats64'][way]['dropped']}"
                for link in links for way in ("rx", "tx") if link["stats64"][way]["dropped"]
            ]
            lines.append(f"{namespace.name}: {', '.join(words) or 'nothing'}")
        return lines

    def stop_capture(self):
        """Ends the capture; gives the reason why it cannot be judged, if there is one."""
        self.dumpcap.send_signal(signal.SIGINT)
        _, said = self.dumpcap.communicate(timeout=20)
        code, self.dumpcap = self.dumpcap.returncode, None
        # "Packets received/dropped on interface 'Loopback: lo': 812/0 (...)"
        counted = re.search(r"^Packets received/dropped on interface '.*': \d+/(\d+) ", said, re.MULTILINE)
        if code != 0 or not counted:
            return f"dumpcap ended with code {code}: {said.strip()}"
        lost = int(counted[1])
        return f"dumpcap lost {lost} packets" if lost else None

    # Where datagrams on their way to the others are lost, and if they meet on a cable, those from them.
    hooks = ("inet", "{ type filter hook input priority 0; }"),

    def lose(self, percent):
        """Drops that share of the RTPS datagrams, whatever ports they go to: Cyclone's are the kernel's choice."""
        nft = self.namespaces[-1].nft
        for family, hook in self.hooks:
            nft("add", "table", family, "loss")
            nft("add", "chain", family, "loss", "in", hook)
            nft(
                "add", "rule", family, "loss", "in", "meta", "l4proto", "udp", "@th,64,32", RTPS_MAGIC,
                "numgen", "random", "mod", "100", "<", str(percent), "counter", "drop",
            )

    def lose_nothing(self):
        """Removes the rules and gives the number of datagrams that they dropped."""
        nft = self.namespaces[-1].nft
        dropped = 0
        for family, _ in self.hooks:
            listing = json.loads(nft("-j", "list", "table", family, "loss"))
            nft("delete", "table", family, "loss")
            rules = [part for item in listing["nftables"] for part in item.get("rule", {}).get("expr", [])]
            dropped += sum(part["counter"]["packets"] for part in rules if "counter" in part)
        return dropped

    def remove(self):
        """Ends the capture and removes the namespaces; safe to call twice."""
        if self.dumpcap is not None:
            self.dumpcap.kill()
            self.dumpcap.wait()
            self.dumpcap = None
        for namespace in self.namespaces:
            namespace.remove()


class Loopback(Place):
    """One namespace with a loopback that carries multicast."""

    def make(self, number):
        here = Namespace(number)
        self.namespaces.append(here)
        here.ip("link", "set", "lo", "up")
        here.ip("link", "set", "lo", "multicast", "on")
        here.ip("route", "add", "224.0.0.0/4", "dev", "lo")

    def side(self, vendor):
        return Side(self.namespaces[0], "lo")


class Cable(Place):
    """Two namespaces with a cable, Taut at one end and the others at the other."""

    hooks = (*Place.hooks, ("netdev", '{ type filter hook egress device "mx1" priority 0; }'))
    # What the peers of Taut and those of the others are told besides.
    taut, others = {}, {}

    def make(self, number):
        for end in ("taut", "others"):
            self.namespaces.append(Namespace(f"{number}_{end}"))
        near, far = self.namespaces
        near.ip("link", "add", "mx0", "type", "veth", "peer", "name", "mx1", "netns", far.name)
        for number, end in enumerate((near, far)):
            end.ip("link", "set", "lo", "up")
            for name, value in FRAGMENTS.items():
                run(*end.enter("sysctl", "-q", "-w", f"net.ipv4.ip{name}={value}", f"net.ipv6.ip6{name}={value}"))
            # What one call sends is cut into packets before it is on the cable, as tshark wants to see it.
            end.ip("link", "set", f"mx{number}", "gso_max_segs", "1")
            self.connect(end, number)

    def connect(self, end, number):
        """Gives an end its address and sets it up."""
        raise NotImplementedError

    def side(self, vendor):
        near, far = self.namespaces
        return Side(near, "mx0", self.taut) if vendor == cells.TAUT else Side(far, "mx1", self.others)


class PastKernel(Cable):
    """Taut sends and receives past the kernel, the others do not."""

    # The others cut their datagrams into fragments, which show no vendor.
    taut_alone = f"{ANYONE} and src host 10.89.0.1"
    taut = {"TAUT_XDP_INTERFACE": "mx0"}

    def connect(self, end, number):
        end.ip("address", "add", f"10.89.0.{number + 1}/24", "dev", f"mx{number}")
        end.ip("link", "set", f"mx{number}", "up")
        end.ip("route", "add", "224.0.0.0/4", "dev", f"mx{number}")


class Critical(PastKernel):
    """Taut is reached at its critical port only: what comes to the ports of all samples, which are odd, is lost."""

    taut = {"TAUT_CRITICAL_PORT": "7402"}

    def connect(self, end, number):
        super().connect(end, number)
        if end is self.namespaces[0]:
            end.nft("add", "table", "netdev", "usual")
            hook = f'{{ type filter hook ingress device "mx{number}" priority 0; }}'
            end.nft("add", "chain", "netdev", "usual", "in", hook)
            # Of what is cut the first part has the port: without it the others are lost, too.
            first = ("ip", "frag-off", "&", "0x1fff", "==", "0")
            end.nft("add", "rule", "netdev", "usual", "in", *first, "udp", "dport", "&", "1", "==", "1", "drop")


class ByPeer(PastKernel):
    """Taut uses no multicast and is told where the others are, at ports that they have from their system."""

    taut = {"TAUT_MULTICAST": "false", "TAUT_PEER": "10.89.0.2"}


class IPv6(Cable):
    """There is no other address."""

    taut_alone = "udp and src host fd00:89::1"
    others = {"INTEROP_IPV6": "1"}

    def connect(self, end, number):
        end.ip("address", "add", f"fd00:89::{number + 1}/64", "dev", f"mx{number}", "nodad")
        # The address of the link is there at once, too.
        run(*end.enter("sysctl", "-q", "-w", f"net.ipv6.conf.mx{number}.accept_dad=0"))
        end.ip("link", "set", f"mx{number}", "up")


class PastKernelIPv6(IPv6):
    """The same, and Taut sends and receives past the kernel."""

    taut = PastKernel.taut


class OwnAddress(Cable):
    """The same by a driver of DPDK: Taut's end has an address that its kernel does not have."""

    # A device of packet sockets would put fragments of IP together, and cut off what is longer than a frame.
    device = {"TAUT_DPDK_DEVICE": "net_pcap0,iface=mx0"}

    def connect(self, end, number):
        super().connect(end, number)
        if end is self.namespaces[0]:
            end.ip("address", "flush", "dev", f"mx{number}")

    def side(self, vendor):
        side = super().side(vendor)
        return Side(side.namespace, "lo", side.environment) if vendor == cells.TAUT else side


class Dpdk(OwnAddress, PastKernel):
    """One of IPv4."""

    taut = {**OwnAddress.device, "TAUT_DPDK_ADDRESS": "10.89.0.1/24"}


class DpdkIPv6(OwnAddress, IPv6):
    """One of IPv6."""

    taut = {**OwnAddress.device, "TAUT_DPDK_ADDRESS": "fd00:89::1/64"}


class Moving(Cable):
    """Taut's end gets another address of the same network, and then loses the one before."""

    taut_alone = f"{ANYONE} and not src host 10.89.0.2"

    def make(self, number):
        self.host = 101
        super().make(number)

    def connect(self, end, number):
        end.ip("address", "add", f"10.89.0.{2 if number else self.host}/24", "dev", f"mx{number}")
        # The address that has come stays when the first one goes.
        run(*end.enter("sysctl", "-q", "-w", f"net.ipv4.conf.mx{number}.promote_secondaries=1"))
        end.ip("link", "set", f"mx{number}", "up")
        end.ip("route", "add", "224.0.0.0/4", "dev", f"mx{number}")

    def move(self):
        """Replaces the address."""
        near, before = self.namespaces[0], f"10.89.0.{self.host}/24"
        self.host += 1
        near.ip("address", "add", f"10.89.0.{self.host}/24", "dev", "mx0")
        near.ip("address", "del", before, "dev", "mx0")
