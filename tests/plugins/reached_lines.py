"""Pytest plugin: which lines of the code the tests execute, also in the processes that they start.

`scripts/mutants` copies it into the environment of a checkout, next to `reached_lines.json`; every process imports it
there. It needs `sys.monitoring` of Python 3.12. Its files, in the folder that the JSON names:

- `lines`: one byte for each line of the code, 1 if a process executed it
- `reached`: a place of the code and a test that executed it, once for each process
- `tests`: of each test its seconds, and the memory in MB of its process after it
"""

import json
import mmap
import os
import sys
import time
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it would be slow in every process
    import pytest

SETTINGS = Path(__file__).with_suffix(".json")
TOOL, NAME = 4, "reached_lines"
NEW_LOCALS = 2  # the flag of functions, which modules and the bodies of classes do not have
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


class Recorder:
    """The record of one process: lines, and for some places the tests that execute them."""

    def __init__(self, root: str, out: str, offsets: dict[str, int], places: list[str]) -> None:
        self.root, self.offsets = root + "/", offsets
        self.places = {place: place for place in places}  # "FILE:LINE", and "FILE:*" for any function of a file
        self.test = os.environ.get("PYTEST_CURRENT_TEST", "")
        self.seen: set[tuple[str, str]] = set()
        with open(f"{out}/lines", "r+b") as file:
            self.lines = mmap.mmap(file.fileno(), 0)
        self.reached = os.open(f"{out}/reached", os.O_WRONLY | os.O_APPEND)
        self.tests = os.open(f"{out}/tests", os.O_WRONLY | os.O_APPEND)

    def begin(self) -> None:
        monitoring = sys.monitoring
        monitoring.use_tool_id(TOOL, NAME)
        monitoring.register_callback(TOOL, monitoring.events.PY_START, self.on_start)
        monitoring.register_callback(TOOL, monitoring.events.LINE, self.on_line)
        monitoring.set_events(TOOL, monitoring.events.PY_START)

    def on_start(self, code: CodeType, _: int) -> Any:
        file = code.co_filename.removeprefix(self.root)
        if file not in self.offsets:
            return sys.monitoring.DISABLE
        sys.monitoring.set_local_events(TOOL, code, sys.monitoring.events.LINE)
        if f"{file}:*" not in self.places or not code.co_flags & NEW_LOCALS:
            return sys.monitoring.DISABLE
        self.note(f"{file}:*")
        return None

    def on_line(self, code: CodeType, line: int) -> Any:
        file = code.co_filename.removeprefix(self.root)
        self.lines[self.offsets[file] + line] = 1
        place = f"{file}:{line}"
        if place not in self.places:
            return sys.monitoring.DISABLE
        self.note(place)
        return None

    def note(self, place: str) -> None:
        if self.test and (place, self.test) not in self.seen:
            self.seen.add((place, self.test))
            os.write(self.reached, f"{json.dumps([place, self.test])}\n".encode())


recorder: Recorder | None = None
_started: dict[str, float] = {}


def phase(item: "pytest.Item", name: str) -> None:
    """Tell the recorder what runs now, as PYTEST_CURRENT_TEST tells the processes that the test starts."""
    if recorder is not None:
        recorder.test = f"{item.nodeid} ({name})"


def pytest_runtest_setup(item: "pytest.Item") -> None:
    _started[item.nodeid] = time.perf_counter()
    phase(item, "setup")


def pytest_runtest_call(item: "pytest.Item") -> None:
    phase(item, "call")


def pytest_runtest_teardown(item: "pytest.Item") -> None:
    phase(item, "teardown")


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Note what the test took; the process that only collects the reports of others has not started it."""
    started = _started.pop(nodeid, None)
    if recorder is None or started is None:
        return
    recorder.test = ""
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MB
    line = json.dumps([nodeid, round(time.perf_counter() - started, 3), round(memory), os.getpid()])
    os.write(recorder.tests, f"{line}\n".encode())


if SETTINGS.exists() and hasattr(sys, "monitoring") and sys.monitoring.get_tool(TOOL) is None:
    recorder = Recorder(**json.loads(SETTINGS.read_text()))
    recorder.begin()
