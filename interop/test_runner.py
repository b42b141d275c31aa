"""The runner's own tests, which need no peers: `python3 -m unittest` in this directory."""

import contextlib
import io
import threading
import time
import unittest
from types import SimpleNamespace
from unittest import mock

import run
from runner import cells, dissect, netns, peers, play


class Silent(peers.Peer):
    """A peer without a process, which says one thing right after the first look at what it has said."""

    def __init__(self):
        self.lines = []
        self.heard = threading.Condition()
        self.says = threading.Thread(target=self.say)

    def say(self):
        with self.heard:
            self.lines.append('{"event":"matched"}')
            self.heard.notify_all()

    def events(self):
        found = super().events()
        if self.says.ident is None:
            self.says.start()
            # Under the lock it comes to nothing: it is said when the lock is given up, to who waits by then.
            self.says.join(0.1)
        return found


class Waiting(unittest.TestCase):
    def test_what_is_said_between_a_look_and_the_wait_is_heard(self):
        end = time.monotonic() + 20.0
        self.assertTrue(Silent().wait_for("matched", end))
        self.assertLess(time.monotonic(), end)


class Captures(unittest.TestCase):
    def reason(self, code, said):
        """Why what this dumpcap has written cannot be judged."""
        place = object.__new__(netns.Loopback)
        place.dumpcap = SimpleNamespace(
            send_signal=lambda _: None, communicate=lambda timeout: (None, said), returncode=code
        )
        return place.stop_capture()

    def test_a_capture_is_judged_if_dumpcap_says_that_it_lost_nothing(self):
        counted = "Packets captured: 812\nPackets received/dropped on interface 'Loopback: lo': 812/{} (pcap:0)\n"
        self.assertIsNone(self.reason(0, counted.format(0)))
        self.assertIn("lost 3", self.reason(0, counted.format(3)))
        self.assertIn("code 0", self.reason(0, ""))
        self.assertIn("code 1", self.reason(1, counted.format(0)))

    def test_each_capture_has_frames(self):
        def judge(*frames):
            with contextlib.redirect_stdout(io.StringIO()):
                return dissect.judge([dissect.Verdict(str(count), count) for count in frames])

        self.assertTrue(judge(7, 1))
        self.assertFalse(judge(7, 0))
        self.assertFalse(judge())


class Together(unittest.TestCase):
    def test_writers_share_a_datagram_if_each_has_a_sample_in_it(self):
        users = dissect.writers_of_samples
        self.assertEqual(users("0x09;0x15;0x15", "0x00000102;0x00000202"), {0x102, 0x202})
        self.assertEqual(users("0x15;0x07", "0x00000102;0x00000202"), {0x102}, "a heartbeat is no sample")
        self.assertEqual(users("0x15;0x0e;0x15", "0x000003c2;0x00000103"), {0x103}, "discovery is not the user's")
        self.assertEqual(users("", ""), set())

    def test_the_cell_fails_unless_they_did_while_it_ran(self):
        (cell,) = cells.taut_cells()
        for shared_s, passes in ([], False), ([9.0, 21.0], False), ([15.0], True):
            outcome = play.Outcome(cells.Task(cell, cells.TAUT, "other"), "0", began_s=10.0, seconds=10.0)
            elsewhere = dissect.Verdict("1", together_s=[15.0])
            dissect.check_together([outcome], [dissect.Verdict("0", together_s=shared_s), elsewhere])
            self.assertEqual(outcome.passed, passes, shared_s)


class BestEffort(unittest.TestCase):
    def played(self, name, *came):
        """The last outcome of a cell whose reader receives so many each time, and what is wrong with them; how often it was played."""
        cell = next(cell for cell in cells.product_cells() if cell.name == name)
        left = list(came)

        def play_once(task, *_):
            received, corrupt = left.pop(0)
            outcome = play.Outcome(task)
            summary = {"received": received, "corrupt": corrupt, "duplicates": 0, "out_of_order": 0}
            play.judge(cell, {"pub": 0, "sub": 3 if cell.share < 1.0 else 0}, summary, outcome)
            return outcome

        with mock.patch.object(play, "play", play_once), contextlib.redirect_stderr(io.StringIO()):
            (outcome,) = run.run_all([cells.Task(cell, cells.TAUT, "other")], ["0"], None, [], threading.Event())
        return outcome.passed, len(came) - len(left)

    def test_what_comes_once_is_enough(self):
        few, most = (40, 0), (95, 0)
        self.assertEqual(self.played("best-effort-plain-volatile-64K", most, few), (True, 1))
        self.assertEqual(self.played("best-effort-plain-volatile-64K", few, few, most), (True, 3))
        self.assertEqual(self.played("best-effort-plain-volatile-64K", few, few, few, most), (False, 3))

    def test_nothing_else_is_forgiven(self):
        for wrong in ((40, 1), (95, 1), (101, 0)):
            self.assertEqual(self.played("best-effort-plain-volatile-64K", wrong, (95, 0)), (False, 1), wrong)
        self.assertEqual(self.played("reliable-plain-volatile-64K", (95, 0), (100, 0)), (False, 1))


class Finals(unittest.TestCase):
    def test_a_writer_outlasts_the_reader_that_waits_for_the_end_of_its_instances(self):
        finals = [cell for cell in cells.special_cells() if "final" in cell.pub]
        self.assertTrue(finals)
        for cell in finals:
            words = play.peer_command(cells.TAUT, "pub", cells.Task(cell, cells.TAUT, "other"), 1, "lo")
            self.assertGreaterEqual(float(words[words.index("--linger") + 1]), cell.timeout_s)


if __name__ == "__main__":
    unittest.main()
