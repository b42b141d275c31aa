"""One cell on one pair: who starts when, and whether it went as it should."""

import contextlib
import json
import time
from dataclasses import dataclass, field

from . import cells
from .peers import Peer

# A subscriber stays this long after its last sample, so that the publisher gets
# its acknowledgments and a sample too many is seen.
SUB_LINGER_S = 0.3
# A publisher stays until its readers have left, at most this long. It is not
# enough that it calls everything acknowledged: Cyclone does so before a late
# joiner has asked for anything, Fast DDS while fragments are being repaired.
PUB_LINGER_S = {"best-effort": 0.3, "reliable": 6.0}
# A volatile reader of Cyclone takes up the stream where the first heartbeat that it
# hears says it ends. It asks for one 10 ms after the match, and no peer can tell when
# it has come. Too short: samples are missing at the start under load. Who is no Cyclone
# takes up the stream at the match.
FIRST_HEARTBEAT_S = 0.5
AT_THE_MATCH_S = 0.15
# What is written between participants that have known each other since before Taut's moved.
LATE_TOPIC = "late"
# Samples flow for so long before Taut's end moves.
MOVED_AFTER_S = 0.5
# How long a subscriber that has been left finds its writer again: Taut tells it more often than once.
FOUND_AGAIN_S = 5.0
# How long a publisher that must find no reader looks for one.
DECOY_S = 2.0
# A sample on its way through the loss: beyond this the runner ends the peers.
GRACE_S = 5.0


@dataclass
class Outcome:
    """How a cell went: no problems means that it passed."""

    task: cells.Task
    capture: str = ""
    # By the wall clock, as captures are.
    began_s: float = 0.0
    seconds: float = 0.0
    problems: list = field(default_factory=list)
    received: int = 0
    # Of a cell of best effort: fewer samples came than must.
    lacks: bool = False
    dropped: int = 0
    commands: list = field(default_factory=list)
    output: dict = field(default_factory=dict)

    @property
    def passed(self):
        """True when nothing went wrong."""
        return not self.problems

    @property
    def only_lacks(self):
        """True when nothing went wrong but that too little came by best effort."""
        return self.lacks and len(self.problems) == 1


def arguments(options):
    """Options as a command line; a value of True stands for the bare option."""
    words = []
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def peer_command(vendor, role, task, domain, interface):
    """The command line of one side."""
    cell = task.cell
    own = cell.pub if role != "sub" else cell.sub
    options = {"domain": domain, "interface": interface, "timeout": cell.timeout_s, **cell.both, **own}
    if role == "decoy":
        options.update(cell.decoy, timeout=DECOY_S)
    if role == "sub":
        options.pop("rate", None)
        options.update({"linger": SUB_LINGER_S, **({} if cell.moves else {"quiet": True})})
    else:
        # A writer that leaves ends its instances as well: it stays for longer than its reader waits for their end.
        options["linger"] = cell.timeout_s if "final" in own else PUB_LINGER_S[cell.both["reliability"]]
        if cell.late_joiner:
            options["wait-matched"] = 0
        elif role == "pub":
            options["hold"] = True
    return [*cells.VENDORS[vendor], "sub" if role == "sub" else "pub", *arguments(options)]


def play(task, place, scratch, started, stopped):
    """Runs a cell at a place. Who must end the peers early sets `stopped`, then kills `started`."""
    begin = time.monotonic()
    domain = place.next_domain()
    outcome = Outcome(task, str(place.capture), time.time())
    if task.cell.loss_percent:
        place.lose(task.cell.loss_percent)
    peers = {}

    def start(role, vendor, argv):
        peers[role] = Peer(role, argv, place.side(vendor), scratch)
        started.append(peers[role])
        if stopped.is_set():
            raise InterruptedError("the run is being stopped")
        return peers[role]

    try:
        if cells.ROS in (task.publisher, task.subscriber):
            play_ros(task, domain, place, start, outcome)
        elif task.cell.moves:
            play_moved(task, domain, place, start, outcome)
        else:
            play_pair(task, domain, place, start, outcome)
    except OSError as error:
        outcome.problems.append(f"cannot start: {error}")
    finally:
        for peer in peers.values():
            if peer.process.poll() is None:
                peer.kill()
            started.remove(peer)
            for stream in (peer.process.stdin, peer.process.stdout):
                # The line of one that died before it could be released.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if task.cell.loss_percent:
            outcome.dropped = place.lose_nothing()
            if outcome.dropped == 0:
                outcome.problems.append("the loss rule dropped nothing")
    outcome.seconds = time.monotonic() - begin
    outcome.commands = [peer.command() for peer in peers.values()]
    outcome.output = {role: peer.last_lines() for role, peer in peers.items()}
    if not outcome.passed:
        outcome.output["the kernels, which count from the first cell on"] = place.losses()
    return outcome


def play_pair(task, domain, place, start, outcome):
    """Two peers with the same command line; a decoy or a second subscriber if the cell has one."""
    cell = task.cell
    end = time.monotonic() + cell.timeout_s + GRACE_S

    def begin(role, vendor, does):
        return start(role, vendor, peer_command(vendor, does, task, domain, place.side(vendor).interface))

    decoy = begin("decoy", task.publisher, "decoy") if cell.decoy else None
    pub = begin("pub", task.publisher, "pub")
    if cell.late_joiner:
        pub.wait_for("sent", end)
        sub = begin("sub", task.subscriber, "sub")
    else:
        sub = begin("sub", task.subscriber, "sub")
        twin = begin("twin", task.subscriber, "sub") if cell.twins else sub
        if sub.wait_for("matched", end) and twin.wait_for("matched", end):
            time.sleep(FIRST_HEARTBEAT_S if task.subscriber.startswith("cyclone") else AT_THE_MATCH_S)
            pub.release()
    codes = {"sub": sub.wait(end), "pub": pub.wait(end)}
    if cell.twins:
        judge(cell, {"sub": twin.wait(end), "pub": 0}, twin.summary(), outcome)
    judge(cell, codes, sub.summary(), outcome)
    if decoy:
        code = decoy.wait(end)
        if code != 3 or any(e.get("event") == "matched" for e in decoy.events()):
            outcome.problems.append(f"the decoy must find no reader, but ended with code {code}")


def play_moved(task, domain, place, start, outcome):
    """Taut's end moves while samples flow. Then its participant makes one more endpoint, and one that it knew before as well."""
    cell = task.cell
    end = time.monotonic() + 2 * cell.timeout_s + GRACE_S
    is_pub = task.publisher == cells.TAUT
    vendor, does, of_taut = (task.subscriber, "sub", "pub") if is_pub else (task.publisher, "pub", "sub")

    def begin(role, vendor, does, **options):
        argv = peer_command(vendor, does, task, domain, place.side(vendor).interface)
        return start(role, vendor, [*argv, *arguments(options)])

    # It believes that its writer has left, and finds it again.
    stays = {"linger": FOUND_AGAIN_S} if is_pub else {}
    late = begin("late", vendor, does, topic=LATE_TOPIC, late=True)
    other = begin("other", vendor, does, **stays)
    taut = begin("taut", cells.TAUT, of_taut, then=LATE_TOPIC)
    pub, sub = (taut, other) if is_pub else (other, taut)
    if sub.wait_for("matched", end) and pub.wait_for("matched", end):
        time.sleep(FIRST_HEARTBEAT_S)
        pub.release()
    if sub.wait_for("sample", end):
        time.sleep(MOVED_AFTER_S)
        place.move()
    # Now it makes its endpoint; the publisher of those may write at once.
    late.release()
    (taut if is_pub else late).release()
    codes = {"pub": 0, "sub": 0}
    codes[does], codes[of_taut] = late.wait(end), taut.wait(end)
    judge(cell, codes, (late if is_pub else taut).summary(), outcome)
    if is_pub:
        other.wait(end)
    first = next((e for e in sub.events() if e.get("event") == "summary"), {})
    wanted = cell.both["count"]
    if first.get("distinct", 0) != wanted:
        outcome.problems.append(f"{first.get('distinct', 0)} of {wanted} of those that were written while it moved")
    # One that finds its writer again is given anew what it has had.
    for what in ("corrupt",) if is_pub else ("corrupt", "duplicates", "out_of_order"):
        if first.get(what, 1) != 0:
            outcome.problems.append(f"while it moved, {what}: {first.get(what, 'no summary')}")


def judge(cell, codes, summary, outcome):
    """Compares what arrived with what should have."""
    problems = outcome.problems
    wanted = cell.expect or cell.both.get("count", 100)
    outcome.received = summary.get("received", 0)
    if codes["pub"] != 0:
        problems.append(f"publisher ended with code {codes['pub']}")
    if cell.share == 1.0:
        if codes["sub"] != 0:
            problems.append(f"subscriber ended with code {codes['sub']}")
        if outcome.received != wanted:
            problems.append(f"received {outcome.received} of {wanted}")
    else:
        if codes["sub"] not in (0, 3):
            problems.append(f"subscriber ended with code {codes['sub']}")
        outcome.lacks |= outcome.received < wanted * cell.share
        if not wanted * cell.share <= outcome.received <= wanted:
            problems.append(f"received {outcome.received} of {wanted}, at least {cell.share:.0%} must come")
    for what in ("corrupt", "duplicates", "out_of_order"):
        if summary.get(what, 1) != 0:
            problems.append(f"{what}: {summary.get(what, 'no summary')}")


def play_ros(task, domain, place, start, outcome):
    """A node of ROS 2 and the command line tool, or two nodes."""
    cell = task.cell
    end = time.monotonic() + cell.timeout_s + GRACE_S
    count, rate = cell.both["count"], cell.both["rate"]
    common = {"domain": domain, "reliability": cell.both["reliability"], "topic": "chatter", "timeout": cell.timeout_s}
    taut = ["--domain", str(domain), "--interface", place.side(cells.TAUT).interface, *cells.ROS_TYPE]

    if task.subscriber == cells.TAUT:
        sub = start("sub", task.subscriber, [cells.TAUT_CLI, "sub", "string", *taut, "--count", str(count), "--json"])
    else:
        sub = start("sub", task.subscriber, [*cells.VENDORS[cells.ROS], "sub", *arguments({**common, "count": count})])
        sub.wait_for("ready", end)
    # More than the listener asks for: what is said before it listens is lost.
    said = {"count": count * 3, "rate": rate}
    if task.publisher == cells.TAUT:
        pub = start("pub", task.publisher, [cells.TAUT_CLI, "pub", "string", *taut, "--text", "hello", *arguments(said)])
    else:
        pub = start("pub", task.publisher, [*cells.VENDORS[cells.ROS], "pub", *arguments({**common, **said})])
    code = sub.wait(end)
    outcome.received = heard(sub, "hello" if task.publisher == cells.TAUT else "Hello World: ")
    if code != 0:
        outcome.problems.append(f"subscriber ended with code {code}")
    if outcome.received < count:
        outcome.problems.append(f"{outcome.received} of {count} lines carry the text")
    code = pub.wait(end)
    if code != 0:
        outcome.problems.append(f"publisher ended with code {code}")


def heard(sub, text):
    """How many JSON lines carry the text that was said."""
    return sum(text in json.dumps(e) for e in sub.events() if e.get("event", "sample") == "sample")
