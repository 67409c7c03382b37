"""Command line: help, version, errors and progress."""

import os
import pty
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from commands import common, main
from tests.conftest import CLADE


def commands_of(group: typer.main.TyperGroup, prefix: str = "") -> dict[str, typer.core.TyperCommand]:
    """All commands of a group by their words on the command line."""
    found = {}
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            found |= commands_of(command, f"{prefix}{name} ")
        else:
            found[prefix + name] = command
    return found


ALL = commands_of(typer.main.get_command(main.app_of()))


def invoke(*arguments: str):
    return CliRunner().invoke(main.app_of(), arguments, env={"COLUMNS": "200"})


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_a_summary_and_an_example_and_describes_its_options(name):
    shown = invoke(*name.split(), "--help")
    assert shown.exit_code == 0
    first, *_, last = (paragraph.strip() for paragraph in ALL[name].help.strip().split("\n\n"))
    assert first.endswith(".")
    assert last.startswith("Example: ")
    assert f"clade {name}" in last
    assert f"clade {name}" in shown.output
    assert [one.name for one in ALL[name].params if not getattr(one, "help", None)] == []
    has_store = "--store" in {option for one in ALL[name].params for option in one.opts}
    assert has_store != (name in ("schema", "copy", "table template"))


@pytest.mark.parametrize("name", main.NAMES)
def test_the_list_of_commands_has_the_summary_of_each(name):
    """The list is made without importing the commands, so their summaries stand there as well."""
    ((target, summary, _),) = [commands[name] for commands in main.COMMANDS.values() if name in commands]
    first = main.load_command(target).info.help if name in ("table", "key") else ALL[name].help
    words = re.findall(r"\w+", summary.lower())
    assert target.startswith("commands.")
    assert summary.endswith(".")
    assert words[0] == re.findall(r"\w+", first.lower())[0]


@pytest.mark.parametrize(
    "name", [None, "serve", *(pytest.param(one, marks=pytest.mark.thorough) for one in main.NAMES if one != "serve")]
)
def test_a_command_starts_without_the_libraries_of_others(name):
    """Each of them takes a tenth of a second or more."""
    code = "import sys; from commands import main; main.app_of(sys.argv[1:]); print(*sys.modules)"
    started = subprocess.run(
        [sys.executable, "-c", code, *([name] if name else [])], capture_output=True, text=True, timeout=60, check=True
    )
    heavy = {
        "aiobotocore", "aiohttp", "graphql", "opentelemetry", "prometheus_client", "pydantic", "rich", "starlette",
        "strawberry", "uvicorn",
    }  # fmt: skip
    if name in (None, "import", "schema", "serve"):
        heavy |= {"asyncio", "msgspec", "store.engine", "store.model", "store.transfer"}
    if name == "table":  # which is about DynamoDB
        heavy -= {"aiobotocore", "aiohttp", "rich"}
    assert heavy & set(started.stdout.split()) == set()


def test_help_lists_every_command_and_names_the_store_setting():
    shown = invoke("--help").output
    for name in ALL:
        assert f" {name.split()[0]} " in shown
    assert "CLADE_STORE" in shown
    assert invoke().output.strip() == shown.strip()


def test_the_version_is_that_of_the_distribution():
    assert invoke("--version").output == f"clade {version('clade-graphql')}\n"


def test_an_internal_error_keeps_its_traceback(monkeypatch):
    def fail() -> None:
        raise OSError("a socket that nobody named")

    monkeypatch.setattr(main, "app_of", lambda *_: fail)
    with pytest.raises(OSError, match="a socket that nobody named"):
        main.run()


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["tree"], "location: "), (["--", "tree"], "location: "), (["--version"], "clade "),
        (["table", "policy", "--help"], "clade table policy [OPTIONS]"),
    ],
)  # fmt: skip
def test_a_command_is_run_wherever_it_stands_and_help_and_version_beside_unknown_variables(
    monkeypatch, capsys, words, printed
):
    if "tree" not in words:
        monkeypatch.setenv("CLADE_TIMEOUT", "5")
    monkeypatch.setattr(sys, "argv", ["clade", *words])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 0
    assert printed in capsys.readouterr().out


# -- progress where there is no terminal ------------------------------------------------------------------------------


@pytest.fixture
def seconds(monkeypatch) -> list[float]:
    """The present time, which the test sets."""
    now = [100.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(common.sys.stderr, "isatty", lambda: False, raising=False)
    return now


def test_the_first_estimate_leaves_out_what_comes_before_the_first_step(seconds, capsys):
    with common.progress("Writing", "nodes", 100_000) as meter:
        seconds[0] += 60  # such as comparing a large tree
        meter(1_000)
        for _ in range(5):
            seconds[0] += 1
            meter(2_000)
    assert capsys.readouterr().err.splitlines() == [
        "Writing: 1,000 of 100,000 nodes",
        "Writing: 11,000 of 100,000 nodes, 2,000 a second, 44 s left",
    ]


# -- completion and colours -------------------------------------------------------------------------------------------

COMPLETIONS = r"""
source <(clade --show-completion)
complete -p clade
for line in "clade import loc" "clade import location sto"; do
    COMP_WORDS=($line) COMP_CWORD=$(($(wc -w <<< "$line") - 1)) COMPREPLY=()
    _clade_completion clade
    echo "$line: ${COMPREPLY[*]}"
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_hierarchies_and_files() -> None:
    environment = {**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETIONS], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "complete -o default -F _clade_completion clade",  # without a reply it completes names of files
            "clade import loc: location", "clade import location sto: ",
        ], "",
    )  # fmt: skip


@pytest.mark.parametrize(("setting", "is_colored"), [("", True), ("1", False)])
def test_only_a_terminal_has_colors_and_none_with_no_color(
    monkeypatch: pytest.MonkeyPatch, setting: str, is_colored: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", setting)
    assert "\x1b" not in CliRunner().invoke(main.app_of(["tree"]), ["tree"]).output
    parent, child = pty.openpty()
    with os.fdopen(parent, "rb", buffering=0) as terminal, os.fdopen(child, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        typer.main.get_command(main.app_of(["tree"])).main(["tree"], standalone_mode=False)
        output.flush()
        assert (b"\x1b[1mlocation" in terminal.read(1 << 16)) == is_colored
