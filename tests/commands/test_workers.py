"""`clade serve --workers`: forks of one process, which share what it has made and nothing that has to differ."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.commands.test_metrics import until
from tests.conftest import CLADE
from tests.ports import free_port
from tests.servers import served
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Other systems spawn workers.")

CITY = '{ city(path: "US/NE/Omaha") { name children(first: 10) { nodes { name } } } }'
OWN_BYTES = 32_000_000  # of a worker, which has 17 MB of its own; 51 MB if it shares nothing
SECONDS = 60


def fields(pid, file):
    """The numbers of a file of /proc, by name."""
    found = re.findall(r"^(\w+):\s+(\d+)", Path(f"/proc/{pid}/{file}").read_text(), re.MULTILINE)
    return {name: int(number) for name, number in found}


def children(pid, command=""):
    """The processes that this one has started, of a command line that has these words."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and fields(folder.name, "status")["PPid"] == pid:
                found += [int(folder.name)] * (command in (folder / "cmdline").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def descendants(pid):
    found = [pid]
    for one in found:
        found += children(one)
    return found[1:]


def test_workers_are_forks_that_share_memory_but_no_ids_and_no_counts(tmp_path, demo_store):
    address = f"127.0.0.1:{free_port()}"
    with served(tmp_path, demo_store, "--workers", "2", CLADE_METRICS=address) as (url, process):
        (origin,) = children(process.pid, "forkserver")
        assert fields(origin, "status")["Threads"] == 1
        workers = eventually(lambda: children(origin) if len(children(origin)) == 2 else None)
        eventually(lambda: httpx.get(f"{url}/readyz").is_success)
        ids = set()
        for stopped in workers:  # so that the other one answers
            os.kill(stopped, signal.SIGSTOP)
            ids |= {httpx.post(f"{url}/graphql", json={"query": CITY}).headers["x-request-id"] for _ in range(2)}
            os.kill(stopped, signal.SIGCONT)
        assert len(ids) == 4
        counted = until(address, (2.0).__eq__, "clade_requests_total", "200", "cached", "query")
        assert counted["clade_requests_total", "200", "compiled", "query"] == 2
        gauges = re.findall(r'clade_memory_bytes\{pid="(\d+)"\}', httpx.get(f"http://{address}/metrics").text)
        assert {*map(int, gauges)} == {*workers}
        own = {one: 1024 * fields(one, "smaps_rollup")["Private_Dirty"] for one in workers}
        assert max(own.values()) < OWN_BYTES, own


@pytest.mark.thorough
def test_a_killed_worker_is_replaced_and_a_killed_parent_leaves_no_process(tmp_path, demo_store):
    with served(tmp_path, demo_store, "--workers", "2", CLADE_DRAIN_SECONDS="0") as (url, process):
        (origin,) = children(process.pid, "forkserver")
        os.kill(origin, signal.SIGTERM)  # as whoever stops a whole group does, while requests are still answered
        first, second = eventually(lambda: children(origin) if len(children(origin)) == 2 else None)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: {second} < {*children(origin)} and first not in children(origin))
        assert httpx.post(f"{url}/graphql", json={"query": CITY}).json()["data"]["city"]["name"] == "Omaha"

        os.kill(origin, signal.SIGKILL)
        (again,) = eventually(lambda: [one for one in children(process.pid, "forkserver") if one != origin])
        eventually(lambda: len(children(again)) == 2 and not Path(f"/proc/{second}").exists())

        left = descendants(process.pid)
        assert len(left) >= 3
        process.kill()
        process.wait(SECONDS)
        eventually(lambda: not any(Path(f"/proc/{one}").exists() for one in left))


@pytest.mark.thorough
def test_an_application_that_cannot_be_made_ends_the_server_with_one_sentence(tmp_path, demo_store):
    (tmp_path / "once.py").write_text('''"""Menus."""
from pathlib import Path

from clade import Node

Path("imported").touch(exist_ok=False)


class Menu(Node, hierarchy="menu"):
    """A menu."""


class Dish(Menu, under=None):
    """A dish."""
''')
    environment = {**os.environ, "CLADE_STORE": demo_store, "CLADE_HIERARCHIES": "once.py"}
    command = [CLADE, "serve", "--port", str(free_port()), "--workers", "2"]
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 1
    assert re.fullmatch(r"clade: once\.py:6: FileExistsError: .+; correct this line\.\n", ended.stderr)
