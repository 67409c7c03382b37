"""scripts/serve and scripts/test on a new copy of the checkout."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.processes import Process, send
from tests.readme import ROOT

TOOLS = "cat cksum dirname env grep sh".split()  # what the scripts need beside Python
START_SECONDS = 60
INSTALL_SECONDS = 600
QUERY = b'{"query": "{ city(path: \\"US/NE/Omaha\\") { name } }"}'
PINS = ("pyproject.toml", "constraints.txt")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CLADE_")}


@pytest.fixture
def checkout(tmp_path):
    """The scripts and what they read."""
    return copied(tmp_path / "clade", "scripts", *PINS)


def copied(to: Path, *names: str) -> Path:
    """A copy of these files of the checkout, or of all."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *names]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


@pytest.fixture
def path(tmp_path):
    """A PATH with the tools that the scripts need and no Python; tests add an interpreter."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for tool in TOOLS:
        (directory / tool).symlink_to(shutil.which(tool))
    return directory


def interpreter(path: Path, name: str, script: str) -> None:
    (path / name).write_text(f"#!/bin/sh\n{script}\n")
    (path / name).chmod(0o755)


def start(checkout: Path, path: Path, *options: str, script="serve", **environment: str) -> tuple[int, str]:
    """Run a script that ends by itself; its status and its output."""
    ended = subprocess.run(
        [checkout / "scripts" / script, *options],
        env={"PATH": str(path), "HOME": str(path), **environment},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=START_SECONDS,
    )
    return ended.returncode, ended.stdout


# -- what can be missing ----------------------------------------------------------------------------------------------


def old(version: str) -> str:
    """The script of an interpreter that is too old."""
    return f'case "$2" in *platform*) echo {version};; *) exit 1;; esac'


OWN = f'case "$*" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'
"""The script of an interpreter that is new enough and has no venv module."""
TOO_OLD = "Clade needs Python 3.11 or newer and %s here: install one and start this again.\n"
NO_VENV = "%s has no venv module: on Debian and Ubuntu install the package python3-venv and start this again.\n"


@pytest.mark.parametrize(
    ("script", "pythons", "message"),
    [
        ("serve", {"python3": old("3.9.2")}, TOO_OLD % "only 3.9.2 is"),
        ("test", {"python3.13": "exit 127"}, TOO_OLD % "none is"),  # of a version manager, with nothing behind it
        ("serve", {"python3": old("3.9.2"), "python3.12": OWN}, NO_VENV % "python3.12"),
        ("serve", {f"python3.{minor}": OWN for minor in (11, 12, 13, 14)}, NO_VENV % "python3.14"),
    ],
)
def test_the_newest_python_is_taken_and_what_is_missing_gets_one_message(checkout, path, script, pythons, message):
    for name, text in pythons.items():
        interpreter(path, name, text)
    assert start(checkout, path, script=script) == (1, message)
    assert not (checkout / ".venv").exists()


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def prepared(checkout, path):
    """A checkout that looks installed; its `clade` prints its arguments."""
    programs = checkout / ".venv/bin"
    programs.mkdir(parents=True)
    (checkout / ".venv/pyvenv.cfg").write_text(f"command = python3 -m venv {checkout}/.venv\n")
    clade = 'echo "clade $*${CLADE_WRITES:+ writes $CLADE_WRITES}${CLADE_DEMO:+ demo}"'
    python = f'case "$*" in *"-m pip"*) exit 1;; esac; exec {sys.executable} "$@"'  # not into this environment
    for name, script in {"python": python, "pip": "exit 0", "clade": clade}.items():
        interpreter(programs, name, script)
    checksum = subprocess.check_output(["cksum"], input=b"".join((checkout / name).read_bytes() for name in PINS))
    (checkout / ".venv/installed-demo").write_bytes(checksum)
    return checkout


def test_the_demo_data_and_mutations_are_only_for_a_store_and_an_address_of_ones_own(prepared, path):
    ours = {"CLADE_STORE": "dynamodb://ours"}
    for options, environment, said in (
        ("", {}, "writes on demo"),
        ("", ours, "writes on"),
        ("--store sqlite:///x.db", {}, "writes on"),
        ("--store=sqlite:///x.db", {}, "writes on"),
        ("--port 1 --host=localhost", ours, "writes on"),
        ("--host 127.0.0.1", ours, "writes on"),
        ("--host ::1", ours, "writes on"),
        ("--host=10.0.0.1", ours, ""),
        ("--host 0.0.0.0", ours, ""),
        ("--host ::", ours, ""),
        ("--host ::", ours | {"CLADE_WRITES": "on"}, "writes on"),
    ):
        words = " ".join(filter(None, ("clade serve", options, said)))
        allowed = "Mutations are allowed (CLADE_WRITES=on).\n" if said else ""
        assert start(prepared, path, *options.split(), **environment) == (0, f"{allowed}{words}\n"), options


def test_help_is_shown_and_nothing_else_is_done(checkout, path):
    before = {*checkout.rglob("*")}
    status, output = start(checkout, path, "--port", "1", "--help")  # without Python, nor an environment
    assert (status, output.partition(" ")[0]) == (0, "scripts/serve")
    assert {*checkout.rglob("*")} == before


# -- the first start and the second -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_first_start_installs_and_loads_and_the_second_does_neither(tmp_path):
    checkout = copied(tmp_path / "clade")
    first = served(checkout)
    assert "Installing into .venv" in first
    assert "Loaded 39," in first
    second = served(checkout, "--host", "127.0.0.1")
    assert "/graphql" in second
    assert [word for word in ("Installing", "Loaded") if word in second] == []


def served(checkout: Path, *options: str) -> str:
    """Start a server, query Omaha, stop it as Ctrl-C does; its output."""
    port = free_port()
    command = [str(checkout / "scripts" / "serve"), *options, "--port", str(port)]
    process = Process(*command, url=f"http://127.0.0.1:{port}", folder=Path("/"), environment=ENVIRONMENT)
    process.start(INSTALL_SECONDS)
    answer = send(f"{process.url}/graphql", QUERY, {"content-type": "application/json"})
    process.stop(signal.SIGINT)
    assert answer.data["city"]["name"] == "Omaha", process.said()
    return process.said()
