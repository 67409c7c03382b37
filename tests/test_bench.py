"""Each benchmark once, on a small store: it starts its servers, checks their responses and prints its table."""

import importlib
import platform
import re
import shlex
import sysconfig

import pytest

from bench import __main__ as bench
from bench import beside, checkouts, importing, places, processes, search, servers, writes
from bench.dynamodb import reads
from bench.measurement import Schedule, WrongResponse
from bench.places import COUNTRY_NODES
from bench.processes import CHECKOUT, Silent
from tests.readme import DOCS

TREE = list(places.made(COUNTRY_NODES))
COUNTRY = TREE[0].path[0]
SORTED = f'{{ location(path: "{COUNTRY}") {{ children(orderBy: {{field: NAME}}) {{ nodes {{ name }} }} }} }}'


def rows_of(written: str) -> list[list[str]]:
    """The cells of the lines of all tables, with their heads."""
    rows = [line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] != "---"]


@pytest.fixture
def dynoxide() -> None:
    try:
        processes.engine()
    except Silent as missing:
        pytest.skip(str(missing))


@pytest.fixture
def small(monkeypatch) -> None:
    """Generated places instead of the real ones, which take a minute to import."""
    monkeypatch.setattr(places, "real", lambda min_population: TREE)


def test_the_commands_of_the_documentation_exist_with_their_options(monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    pages = [*DOCS.rglob("*.md"), CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md"]
    commands = [
        shlex.split(command, comments=True)
        for page in pages
        for command in re.findall(r"python -m (bench\b[^`\n]*)", page.read_text("utf-8"))
    ]
    assert len(commands) > 10
    for program, *options in commands:
        module = importlib.import_module("bench.__main__" if program == "bench" else program)
        module._options([one.replace("../before", ".") for one in options])  # which ends the process for unknown ones


@pytest.mark.thorough
@pytest.mark.usefixtures("dynoxide")
def test_servers_are_compared_with_the_same_data(tmp_path):
    written = bench.compare("Made up", TREE, COUNTRY, tmp_path, Schedule(0.3, 1))
    for name in (servers.SQLITE, servers.NO_CACHE, servers.HITS, servers.STATIC, servers.DYNAMODB):
        assert sum(row[0] == name for row in rows_of(written)) == 6, name  # a table for each query, and one of memory
    assert "hits, requests/s against static bytes" in written
    optimized = "--enable-optimizations" in sysconfig.get_config_var("CONFIG_ARGS")
    assert f"\nPython {platform.python_version()}, configured {'with' if optimized else 'without'} --en" in written


@pytest.mark.thorough
def test_checkouts_are_compared_by_any_query():
    given = ("--checkout", str(CHECKOUT)) * 2
    short = ("--gzip", "--rounds", "2", "--seconds", "0.2", "--queries", "Q3", "--query", SORTED)
    (head, *rows), name = rows_of(checkouts.main([*given, *short])), CHECKOUT.name
    first, *others = names = [f"{number}, {name}{ending}" for ending in ("", checkouts.GZIP) for number in (1, 2)]
    assert head == ["CPU ms a request", "way", *names, *(f"{other} / {first}" for other in others)]
    assert [row[1] for row in rows] == ["warm", "warm", "no-cache", "no-cache", "hits", "hits"]
    assert all(float(one) > 0 for row in rows for one in row[2:6])


@pytest.mark.thorough
def test_a_query_with_an_error_is_not_measured():
    with pytest.raises(WrongResponse, match="nothing"):
        checkouts.main(["--queries", "--query", "{ nothing }", "--ways", "warm"])


READS = ["--seconds", "0.3", "--trees", "3", "--rounds", "2", "--delay-ms", "1", "--queries", "Q1", "Q3"]
IMPORTS = ["Clade, import", "Clade, the same again", "INSERTs of the same rows", "Clade, into DynamoDB"]


@pytest.mark.thorough
@pytest.mark.usefixtures("dynoxide", "small")
@pytest.mark.parametrize(
    ("measure", "options", "column", "names", "figure"),
    [
        (reads, READS, 0, ["Clade"] * 4, -2),
        (writes, ["--nodes", "300", "--single", "40"], 0, ["sqlite"] * 6 + ["dynamodb"] * 6, -1),
        (importing, ["--rounds", "2", "--engine-nodes", "300"], 0, IMPORTS * 2, 2),
        (search, ["--texts", "5"], 1, ["read units", "rounds", "CPU ms"], 2),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_benchmark_prints_its_figures(measure, options, column, names, figure):
    rows = [row for row in rows_of(measure.main(options)) if row[column] in names and row[1] != "seconds"]
    assert [row[column] for row in rows] == names
    assert all(float(row[figure]) > 0 for row in rows)


@pytest.mark.thorough
def test_small_queries_are_measured_beside_large_ones_and_writes():
    rows = rows_of(beside.main(["--nodes", "3000", "--seconds", "0.3"]))[1:]
    assert len(rows) == 8
    assert all(float(row[1].replace(",", "")) > 0 for row in rows)
