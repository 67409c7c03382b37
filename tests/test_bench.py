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
from bench.processes import CHECKOUT, Process, Silent
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


@pytest.mark.thorough
@pytest.mark.usefixtures("dynoxide")
def test_reads_are_measured_cold_and_warm():
    short = ("--seconds", "0.3", "--trees", "3", "--rounds", "2", "--delay-ms", "1", "--queries", "Q1", "Q3")
    rows = [row for row in rows_of(reads.main(short)) if row[0] == "Clade"]
    assert len(rows) == 4
    assert all(float(row[-2]) > 0 for row in rows)  # processor time
    calls, units, rounds = map(float, rows[2][1:4])  # of a nested query by a cold server
    assert (calls, units) > (20, 20)
    assert 1 <= rounds < calls / 2
    assert [row[1:4] for row in rows[1::2]] == [["1.00", "1.00", "1.00"]] * 2  # warm: the version of the tree


@pytest.mark.thorough
@pytest.mark.usefixtures("dynoxide")
def test_writes_are_measured_on_both_stores():
    rows = rows_of(writes.main(["--nodes", "300", "--single", "40"]))[1:]
    assert [row[0] for row in rows] == ["sqlite"] * 6 + ["dynamodb"] * 6
    assert all(float(row[-1]) > 0 for row in rows)


@pytest.mark.thorough
def test_small_queries_are_measured_beside_large_ones_and_writes():
    rows = rows_of(beside.main(["--nodes", "3000", "--seconds", "0.3"]))[1:]
    assert len(rows) == 8
    assert all(float(row[1].replace(",", "")) > 0 for row in rows)


@pytest.mark.thorough
@pytest.mark.usefixtures("dynoxide", "small")
def test_an_import_is_measured_beside_inserts_of_the_rows_that_result():
    rows = rows_of(importing.main(["--rounds", "2", "--engine-nodes", "300"]))
    names = ["Clade, import", "Clade, the same again", "INSERTs of the same rows", "Clade, into DynamoDB"]
    assert [row[0] for row in rows if len(row) == 4 and row[1] != "seconds"] == names * 2
    assert all(float(row[2]) > 0 for row in rows if row[0] in names)


@pytest.mark.thorough
@pytest.mark.usefixtures("small")
def test_searches_of_random_texts_are_measured():
    rows = rows_of(search.main(["--texts", "5"]))[1:]
    assert [row[1] for row in rows] == ["read units", "rounds", "CPU ms"]
    assert all(float(one) > 0 for row in rows for one in row[2:])


def test_the_error_of_a_process_that_ends_has_its_output():
    with pytest.raises(Silent, match="no such thing"), Process(("sh", "-c", "echo no such thing"), "tcp://127.0.0.1:1"):
        pass


def test_a_folder_without_code_is_rejected(tmp_path, capsys):
    with pytest.raises(SystemExit):
        checkouts.main(["--checkout", str(tmp_path)])
    assert "has no commands/main.py" in capsys.readouterr().err
