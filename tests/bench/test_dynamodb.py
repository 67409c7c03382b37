"""Short runs of the benchmarks of DynamoDB, and the peers that are installed."""

import subprocess
import sys

import pytest

from bench import peer_servers, places
from bench.dynamodb import hot_tree, many_trees, reads
from bench.measurement import ExpectedData
from bench.peer_servers import PEERS
from bench.places import COUNTRY_NODES
from bench.processes import CHECKOUT
from bench.queries import PLACES
from bench.tree import Tree

pytestmark = pytest.mark.thorough

SHORT = ("--seconds", "0.3")


def rows_of(written: str) -> list[list[str]]:
    """The cells of the tables without their heads."""
    rows = [line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("| ")]
    return [row for row in rows if row[0] not in ("---", "server")]


@pytest.mark.usefixtures("exact")
def test_reads_are_measured_cold_and_warm():
    short = ("--trees", "3", "--rounds", "1", "--delay-ms", "1", "--queries", "Q1", "Q3")
    rows = rows_of(reads.main([*SHORT, *short]))
    assert [row[0] for row in rows] == ["Clade"] * 4
    for _, calls, units, rounds, *_, cpu, ratio in rows:
        assert float(calls) >= float(rounds) >= 1
        assert float(units) > 0
        assert float(cpu) > 0
        assert ratio == "1.00 ×"


@pytest.mark.usefixtures("exact")
def test_a_hot_tree_is_measured_with_and_without_the_limit():
    short = ("--processes", "1", "2", "--connections", "4", "--limit", "20", "--checkout", str(CHECKOUT))
    rows = rows_of(hot_tree.main([*SHORT, *short]))
    assert [row[1:3] for row in rows] == [["1", "none"], ["1", "20"], ["2", "none"], ["2", "20"]]
    assert all(float(row[3].replace(",", "")) > 0 for row in rows)


@pytest.mark.usefixtures("exact")
def test_writes_in_many_trees_are_measured_with_and_without_the_limit():
    rows = rows_of(many_trees.main([*SHORT, "--trees", "20", "--connections", "4", "--limit", "20"]))
    runs = [row for row in rows if row[2].replace(",", "").replace(".", "").isdigit()]
    partitions = [row for row in rows if row not in runs]
    assert [row[1] for row in runs] == ["none", "20"]
    assert float(runs[0][3].replace(",", "")) > 0
    assert {"clade-0", "by_parent", "by_level"} <= {row[2] for row in partitions}


@pytest.mark.parametrize("name", ["reads", "hot_tree", "many_trees", "proxy"])
def test_every_program_has_help(name):
    command = [sys.executable, "-m", f"bench.dynamodb.{name}", "--help"]
    written = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert f"python -m bench.dynamodb.{name}" in written


def test_a_folder_without_code_is_rejected(tmp_path, capsys):
    with pytest.raises(SystemExit):
        reads.main(["--checkout", str(tmp_path)])
    assert "has no commands/main.py" in capsys.readouterr().err


def test_installed_peers_return_the_expected_data(request, tmp_path):
    """Nothing is checked where none is installed: they are no part of the tests' packages."""
    tree = list(places.made(COUNTRY_NODES))
    lines, expected = tmp_path / "places.jsonl", ExpectedData(Tree(tree), tree[0].path[0])
    places.write_for_peers(tree, lines)
    peers = [peer for peer in PEERS if not peer.missing()]
    if peers:
        engine = request.getfixturevalue("engine")
        peer_servers.fill_dynamodb(engine.url, lines)
        for server in [*(peer.in_memory(lines) for peer in peers), *(peer.on_dynamodb(engine.url) for peer in peers)]:
            with server.process:
                for query in PLACES:
                    expected.check(expected.workload(server, query))
