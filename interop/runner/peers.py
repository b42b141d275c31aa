"""Peers as processes: started in a namespace, listened to, ended.

Waiting is always for a line or for the end of a process, never for a time alone.
"""

import json
import os
import shlex
import signal
import subprocess
import threading
import time

ROS_ENVIRONMENT = {
    "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp",
    "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
    "RCUTILS_COLORIZED_OUTPUT": "0",
}


class Peer:
    """One process and what it has said."""

    def __init__(self, role, argv, side, scratch):
        self.role = role
        self.argv = argv
        self.lines = []
        self.heard = threading.Condition()
        self.killed = False
        self.process = subprocess.Popen(
            side.namespace.enter(*argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env={
                **os.environ,
                **ROS_ENVIRONMENT,
                **side.environment,
                "ROS_LOG_DIR": str(scratch),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        self.ears = threading.Thread(target=self.listen, daemon=True)
        self.ears.start()

    def listen(self):
        """Collects the output, line by line."""
        for line in self.process.stdout:
            with self.heard:
                self.lines.append(line.rstrip())
                self.heard.notify_all()
        with self.heard:
            self.lines.append(None)
            self.heard.notify_all()

    def events(self):
        """What it has said so far, as far as it is JSON."""
        with self.heard:
            lines = list(self.lines)
        found = []
        for line in lines:
            if line and line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found

    def wait_for(self, event, end):
        """Waits for an event; false when the process or the time ended first."""
        def has_said():
            return any(e.get("event") == event for e in self.events())

        # What is said between a look and the wait is not heard twice: both are done under the lock.
        with self.heard:
            self.heard.wait_for(lambda: has_said() or self.lines[-1:] == [None], end - time.monotonic())
            return has_said()

    def release(self):
        """Gives the line that `--hold` waits for."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def wait(self, end):
        """The exit code, or None after killing it because the time ended first."""
        try:
            self.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self.ears.join(2)
        return self.process.returncode

    def kill(self):
        """Ends the process and whatever it started."""
        self.killed = True
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.ears.join(2)

    def summary(self):
        """Its summary event, or an empty one."""
        return next((e for e in reversed(self.events()) if e.get("event") == "summary"), {})

    def command(self):
        """The command line, without the namespace."""
        return shlex.join(self.argv)

    def last_lines(self, count=12):
        """The end of what it said."""
        with self.heard:
            return [line for line in self.lines if line is not None][-count:]
