#!/usr/bin/env python3
"""Runs what the documentation shows.

A block of shell in README.md, ARCHITECTURE.md, CONTRIBUTING.md or docs/ is one of

    ```sh test            it is run, with the built programs in PATH; it must end with 0
    ```sh norun: reason   it is not, for the reason given

and a block that follows a `sh test` block as ```text output``` must appear in what was printed: line
by line in this order, other lines may stand between, `...` stands for any text. A page with ```rust
blocks must be included by the crate taut, so that they are run as its documentation tests.

    scripts/test-docs.py              run; call it through scripts/in-netns.sh
    scripts/test-docs.py --self-test  check this program itself
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# A page is read, not waited for; what runs longer than this is no example.
LIMIT_S = 60


class Block(NamedTuple):
    line: int
    info: str
    text: str


def blocks_of(page):
    """All fenced blocks of a page."""
    found, start, info, lines = [], None, "", []
    for number, line in enumerate(page.splitlines(), 1):
        if start is None and line.startswith("```"):
            start, info, lines = number, line[3:].strip(), []
        elif start is not None and line.rstrip() == "```":
            found.append(Block(start, info, "\n".join(lines)))
            start = None
        elif start is not None:
            lines.append(line)
    if start is not None:
        found.append(Block(start, "unclosed", ""))
    return found


def first_missing(shown, printed):
    """The first line of `shown` that is not in `printed`, in order; None if all are."""
    remaining = iter(printed.splitlines())
    for line in shown.splitlines():
        pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
        if line.strip() and not any(re.fullmatch(pattern, other.strip()) for other in remaining):
            return line
    return None


def run_block(text, directory, environment):
    """Exit code and output of a shell block. What it leaves running ends with it."""
    command = ["bash", "-euo", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT\n{text}"]
    try:
        done = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return 1, f"stopped after {LIMIT_S} s"
    return done.returncode, done.stdout.decode(errors="replace")


def check_page(name, page, included, environment):
    """Faults of one page, and how many blocks were run."""
    faults, runs, printed = [], 0, None
    for block in blocks_of(page):
        where = f"{name}:{block.line}"
        language, _, rest = block.info.partition(" ")
        if block.info == "unclosed":
            faults.append(f"{where}: the block is not closed")
        elif language in ("sh", "bash", "shell", "console"):
            printed = None
            if block.info == "sh test":
                with tempfile.TemporaryDirectory() as directory:
                    code, printed = run_block(block.text, directory, environment)
                runs += 1
                if code != 0:
                    faults.append(f"{where}: exit code {code}\n{printed}")
            elif not re.fullmatch(r"norun: \S.*", rest):
                faults.append(f"{where}: neither `sh test` nor `sh norun: reason`")
        elif block.info == "text output":
            if printed is None:
                faults.append(f"{where}: follows no `sh test` block")
            elif (line := first_missing(block.text, printed)) is not None:
                faults.append(f"{where}: not printed: {line}\n{printed}")
        elif language.split(",")[0] == "rust" and not included:
            faults.append(f"{where}: the crate taut does not include this page, so the code is not run")
    return faults, runs


def pages():
    """All pages, with whether the crate taut includes them."""
    sources = "".join(path.read_text() for path in (ROOT / "crates/taut/src").rglob("*.rs"))
    names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
    names += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    for name in names:
        included = re.search(r'include_str!\(\s*"[./]*' + re.escape(name) + '"', sources) is not None
        yield name, (ROOT / name).read_text(), included


def main():
    environment = dict(os.environ)
    target = Path(environment.get("CARGO_TARGET_DIR", ROOT / "target"))
    environment["PATH"] = f"{target / 'release'}:{environment['PATH']}"
    environment["TAUT_REPOSITORY"] = str(ROOT)
    all_faults, all_runs = [], 0
    for name, page, included in pages():
        faults, runs = check_page(name, page, included, environment)
        all_faults += faults
        all_runs += runs
    for fault in all_faults:
        print(fault)
    print(f"test-docs: {all_runs} blocks run, {len(all_faults)} faults")
    return 1 if all_faults else 0


def self_test():
    """Each rule is seen to pass and to fail."""
    def faults(*blocks, included=False):
        page = "\n".join(f"text\n```{info}\n{text}\n```" for info, text in blocks)
        return [fault.splitlines()[0] for fault in check_page("p", page, included, dict(os.environ))[0]]

    cases = [
        ([], faults(("sh test", "true"))),
        (["p:2: exit code 1"], faults(("sh test", "false\ntrue"))),
        (["p:2: exit code 1"], faults(("sh test", "false | cat"))),
        ([], faults(("sh test", "sleep 100 &\necho a"), ("text output", "a"))),
        (["p:2: exit code 7"], faults(("sh test", "sleep 100 &\nexit 7"))),
        (["p:2: neither `sh test` nor `sh norun: reason`"], faults(("sh", "true"))),
        (["p:2: neither `sh test` nor `sh norun: reason`"], faults(("bash", "true"))),
        ([], faults(("sh norun: it takes long", "false"))),
        ([], faults(("sh test", "echo a; echo b 12 c"), ("text output", "a\nb ... c"))),
        (["p:6: not printed: a"], faults(("sh test", "echo b; echo x a"), ("text output", "a"))),
        (["p:6: not printed: a"], faults(("sh test", "echo a; echo b"), ("text output", "b\na"))),
        (["p:2: follows no `sh test` block"], faults(("text output", "a"))),
        (["p:2: the crate taut does not include this page, so the code is not run"], faults(("rust", "x"))),
        ([], faults(("rust,no_run", "x"), included=True)),
        ([], faults(("text", "anything"))),
        (["p:1: the block is not closed"], check_page("p", "```sh test\ntrue", False, {})[0]),
    ]
    wrong = [(number, *case) for number, case in enumerate(cases) if case[0] != case[1]]
    for number, wanted, found in wrong:
        print(f"case {number}: wanted {wanted}, found {found}")
    print(f"test-docs: {len(cases)} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else main())
