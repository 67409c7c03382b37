"""scripts/serve and scripts/test on a new copy of the checkout."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
import pytest
import yaml

from tests.engines import Engine
from tests.ports import free_port
from tests.processes import Process, send

ROOT = Path(__file__).parents[1]
TOOLS = "cat cksum dirname env grep sh".split()  # what the scripts need beside Python
START_SECONDS = 60
QUERY = b'{"query": "{ city(path: \\"US/NE/Omaha\\") { name } }"}'
PINS = ("pyproject.toml", "constraints.txt")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CLADE_")}


@pytest.fixture
def checkout():
    """The scripts and what they read, in a directory that every user may read."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield copied(Path(directory) / "clade", "scripts", *PINS)


def copied(to: Path, *names: str) -> Path:
    """A copy of these files of the checkout, or of all."""
    listed = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *names], cwd=ROOT
    )
    for name in filter(None, listed.decode().split("\0")):
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


def start(checkout: Path, path: Path, script="serve", *options: str, **environment: str) -> tuple[int, str]:
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


@pytest.mark.parametrize("script", ["serve", "test"])
@pytest.mark.parametrize(
    ("pythons", "here"),
    [
        ({"python3": old("3.9.2")}, "only 3.9.2"),
        ({"python3.13": "exit 127"}, "none"),  # a name of a version manager with nothing behind it
    ],
)
def test_an_old_or_missing_python_gets_one_message(checkout, path, script, pythons, here):
    for name, text in pythons.items():
        interpreter(path, name, text)
    assert start(checkout, path, script) == (
        1,
        f"Clade needs Python 3.11 or newer and {here} is here: install one and start this again.\n",
    )
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        ({"python3": old("3.9.2"), "python3.12": OWN}, "python3.12"),
        ({f"python3.{minor}": OWN for minor in (11, 12, 13, 14)}, "python3.14"),
        ({"python3": OWN}, "python3"),
    ],
)
def test_the_newest_python_is_taken_and_debian_names_the_package_of_venv(checkout, path, pythons, taken):
    for name, text in pythons.items():
        interpreter(path, name, text)
    assert start(checkout, path) == (
        1,
        f"{taken} has no venv module: on Debian and Ubuntu install the package python3-venv and start this again.\n",
    )


@pytest.mark.thorough
def test_without_a_network_one_message_names_the_log_of_pip(checkout, path):
    (path / "python3").symlink_to(sys.executable)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    status, output = start(checkout, path, **nowhere)
    assert (status, output.splitlines()[1:]) == (
        1,
        [
            "What Clade needs could not be installed (is there a network?); "
            f"pip's own words are in {checkout}/.venv/install.log."
        ],
    )
    assert "127.0.0.1" in (checkout / ".venv/install.log").read_text()
    assert not (checkout / ".venv/installed-demo").exists(), "the next start tries again"


def test_a_read_only_directory_gets_one_message(checkout):
    somebody = 65534 if os.geteuid() == 0 else None  # nothing stops root
    checkout.chmod(0o555)
    ended = subprocess.run([checkout / "scripts/serve"], user=somebody, capture_output=True, text=True, timeout=60)
    checkout.chmod(0o755)
    assert (ended.returncode, ended.stderr) == (
        1,
        f"{checkout} cannot be written to, and .venv and clade.db are kept there: use a checkout of your own.\n",
    )


@pytest.mark.thorough
@pytest.mark.parametrize("broken", ["moved", "without pip", "on another Python"])
def test_an_unusable_environment_is_recreated(checkout, path, broken):
    programs = checkout / ".venv/bin"
    programs.mkdir(parents=True)
    made_in = "/elsewhere" if broken == "moved" else checkout
    (checkout / ".venv/pyvenv.cfg").write_text(f"command = python3 -m venv {made_in}/.venv\n")
    interpreter(programs, "python", old("3.10.1") if broken == "on another Python" else f'exec {sys.executable} "$@"')
    if broken != "without pip":
        interpreter(programs, "pip", "exit 0")
    interpreter(path, "python3", f'case "$*" in *"-m venv"*) echo made anew; exit 1;; esac; exec {sys.executable} "$@"')
    status, output = start(checkout, path)
    assert (status, output.splitlines()[0]) == (1, "made anew")


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


ALLOWED = "Mutations are allowed (CLADE_WRITES=on).\n"
OURS = {"CLADE_STORE": "dynamodb://ours"}


def test_the_demo_data_is_loaded_only_into_the_default_store(prepared, path):
    assert start(prepared, path) == (0, f"{ALLOWED}clade serve writes on demo\n")
    assert start(prepared, path, **OURS) == (0, f"{ALLOWED}clade serve writes on\n")
    for named in (["--store", "sqlite:///x.db"], ["--store=sqlite:///x.db"]):
        words = " ".join(named)
        assert start(prepared, path, "serve", *named) == (0, f"{ALLOWED}clade serve {words} writes on\n")


def test_help_is_shown_and_nothing_else_is_done(checkout, path):
    before = {*checkout.rglob("*")}
    status, output = start(checkout, path, "serve", "--port", "1", "--help")  # without Python, nor an environment
    assert (status, output.partition(" ")[0]) == (0, "scripts/serve")
    assert {*checkout.rglob("*")} == before


def test_help_has_the_options_of_the_server_once_it_is_installed(prepared, path):
    assert start(prepared, path, "serve", "-h")[1].endswith("\nclade serve --help\n")


@pytest.mark.parametrize("options", [("--port", "1", "--host=localhost"), ("--host", "127.0.0.1"), ("--host", "::1")])
def test_on_a_loopback_address_mutations_are_allowed(prepared, path, options):
    said = f"{ALLOWED}clade serve {' '.join(options)} writes on\n"
    assert start(prepared, path, "serve", *options, **OURS) == (0, said)


@pytest.mark.parametrize("options", [("--host=10.0.0.1",), ("--host", "0.0.0.0"), ("--host", "::")])  # noqa: S104
def test_on_other_addresses_mutations_need_the_setting(prepared, path, options):
    said = f"clade serve {' '.join(options)}"
    assert start(prepared, path, "serve", *options, **OURS) == (0, f"{said}\n")
    allowed = start(prepared, path, "serve", *options, **OURS, CLADE_WRITES="on")
    assert allowed == (0, f"{ALLOWED}{said} writes on\n")


# -- the first start and the second -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the checkout on which scripts/serve was started once."""
    checkout = copied(tmp_path_factory.mktemp("clone") / "clade")
    output = served(checkout, "scripts/serve")
    assert "Installing into .venv" in output
    assert "Loaded 39," in output
    return checkout


def served(checkout: Path, *command: str, cwd: Path | None = None, **environment: str) -> str:
    """Start a server, query Omaha, stop it as Ctrl-C does; its output."""
    port = free_port()
    command = (str(checkout / command[0]), *command[1:], "--port", str(port))
    how = {"folder": cwd or Path("/"), "environment": {**ENVIRONMENT, **environment}}
    process = Process(*command, url=f"http://127.0.0.1:{port}", **how)
    process.start(10 * START_SECONDS)
    answer = send(f"{process.url}/graphql", QUERY, {"content-type": "application/json"})
    process.stop(signal.SIGINT)
    assert answer.data["city"]["name"] == "Omaha", process.said()
    return process.said()


@pytest.mark.thorough
def test_the_second_start_installs_and_loads_nothing_and_passes_options(installed):
    output = served(installed, "scripts/serve", "--host", "127.0.0.1")
    assert "Installing" not in output
    assert "Loaded" not in output
    assert "/graphql" in output


@pytest.mark.thorough
def test_the_commands_of_the_image_run_in_a_clean_environment(installed, request, tmp_path):
    """The wheel alone, without the checkout, so that it has to be complete. The demo data is loaded into a file.

    The long form loads it into a DynamoDB engine, which takes minutes: CLADE_TEST_IMAGE_ON_DYNAMODB=1.
    """
    store = f"sqlite:///{tmp_path / 'image.db'}"
    if os.environ.get("CLADE_TEST_IMAGE_ON_DYNAMODB"):
        engine: Engine = request.getfixturevalue("engine")
        store = engine.address("image")
    pip = [installed / ".venv/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]
    subprocess.run([*pip, f"{installed}[demo]"], check=True, cwd=tmp_path)
    serve = image_command()
    assert serve[0] == "clade"
    settings = compose_settings() | {"CLADE_STORE": store}
    output = served(installed, ".venv/bin/clade", *serve[1:], cwd=tmp_path, **settings)
    assert "Loaded 39," in output
    assert "/graphql" in output
    again = served(installed, ".venv/bin/clade", *serve[1:], cwd=tmp_path, **settings)
    assert "demo data" not in again


def image_command() -> list[str]:
    last = next(line for line in reversed((ROOT / "Dockerfile").read_text().splitlines()) if line.startswith("CMD"))
    return orjson.loads(last.removeprefix("CMD"))


def compose_settings() -> dict[str, str]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["clade"]["environment"]
