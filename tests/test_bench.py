"""The benchmark, small: that it starts what it measures, checks what it is told, and counts what the kernel counts."""

import subprocess
from dataclasses import replace

import pytest

from bench import clients, measurement, million, places, servers
from bench.measurement import MAIN, Asked, Figures, Right, Schedule, Wrong, measure
from bench.places import COUNTRY_NODES, Place
from bench.processes import Process, ask
from bench.questions import BREADCRUMB, CHILDREN, MENU, PLACES, body, peer_id, plain, written
from bench.report import Report
from bench.start import first_answer_seconds
from bench.stores import Stores
from bench.tree import Tree, menu

SHORT = Schedule(seconds=1.0, rounds=1)
COUNTRY = "L0000"


@pytest.fixture(scope="module")
def right() -> Right:
    return Right(Tree(list(places.made(COUNTRY_NODES))), COUNTRY)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    return Stores(tmp_path_factory.mktemp("bench")).sqlite("made", lambda: places.made(COUNTRY_NODES))


@pytest.fixture(scope="module")
def clade(store):
    """A running server."""
    server = servers.clade(servers.SQLITE, store)
    with server.process:
        yield server


@pytest.fixture
def without_wrk(monkeypatch):
    monkeypatch.setattr(clients.shutil, "which", lambda name: None)


def test_every_question_is_answered_rightly_and_measured(clade, right, tmp_path):
    told: list[str] = []
    results = measure([clade], PLACES, right, SHORT, told.append)
    assert {(name, question) for name, question, _ in results} == {(servers.SQLITE, one.name) for one in PLACES}
    assert all(one.cpu > 0 and one.requests_a_second > 0 and one.p99 >= one.p50 > 0 for one in results.values())
    assert clade.process.peak_mb() > 10
    report = Report("made-up", results, {servers.SQLITE: 1.0}, 0.5)
    report.write(tmp_path / "results.json")
    assert Report.read(tmp_path / "results.json") == report
    assert "**Q3, country, regions, first 20 cities of each**" in report.markdown()


def test_stock_strawberry_answers_the_same(store, right):
    server = servers.stock(store, PLACES)
    with server.process:
        for question in PLACES:
            right.check(right.asked(server, question))


def test_the_floor_serves_its_files(tmp_path, right):
    (tmp_path / BREADCRUMB.name).write_bytes(b'{"data": 1}')
    server = servers.static(tmp_path)
    with server.process:
        assert ask(server.url(BREADCRUMB), right.bodies(BREADCRUMB)[0]) == b'{"data": 1}'
        assert right.asked(server, BREADCRUMB).run(2, 1.0).requests_a_second > 0


def test_a_wrong_answer_ends_the_measurement(clade, right):
    tree = list(places.made(COUNTRY_NODES))
    tree[1] = replace(tree[1], population=-1)
    with pytest.raises(Wrong, match="Clade, SQLite, Q2"):
        replace(right, tree=Tree(tree)).check(right.asked(clade, CHILDREN))


@pytest.mark.usefixtures("without_wrk")
def test_without_wrk_our_own_client_sends_the_requests(clade, right):
    figures = right.asked(clade, CHILDREN).run(MAIN, 0.5)
    assert figures.requests_a_second > 0
    assert figures.cpu > 0


@pytest.mark.usefixtures("without_wrk")
def test_failed_requests_end_the_measurement(clade, right):
    missing = replace(clade, process=replace(clade.process, url=clade.process.url.replace("/graphql", "/nothing")))
    with pytest.raises(Wrong, match="requests failed"):
        Asked(missing, CHILDREN, right.bodies(CHILDREN)).run(1, 0.2)


def test_a_start_is_timed_until_the_first_answer(store):
    assert first_answer_seconds(store, next(places.made(1))) > 0


def test_a_process_that_ends_says_what_it_wrote():
    with (
        pytest.raises(Exception, match="no such thing"),
        Process(("sh", "-c", "echo no such thing"), "tcp://127.0.0.1:1"),
    ):
        pass


def test_no_process_is_left(store):
    server = servers.clade(servers.SQLITE, store)
    with server.process:
        pid = server.process.pid
    assert subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 1


def test_the_middle_of_runs_is_taken_figure_by_figure():
    runs = [Figures(1, 9, 5, 4), Figures(2, 8, 6, 5), Figures(3, 7, 7, 9)]
    assert measurement.middle(runs) == Figures(2, 8, 6, 5)


def test_the_right_menu_is_told_from_a_taxonomy(tmp_path):
    file = tmp_path / "taxonomy.txt"
    file.write_text("# a title\nA\nA > B/C\nD\n", "utf-8")
    told = menu(file)
    assert [(one["name"], one["path"]) for one in told] == [("A", "A"), ("D", "D")]
    assert [one["path"] for one in told[0]["children"]] == ["A/B%2FC"]


def test_other_servers_get_the_same_question_in_their_words():
    place = Place(("US", "US-NE"), "REGION", "Nebraska", "US-NE")
    assert peer_id(place) == "US#US-NE"
    assert b'"variables":{"id":"US#US-NE"}' in body(CHILDREN, place, is_peer=True)
    assert b'"variables":{"path":"US/US-NE"}' in body(CHILDREN, place, is_peer=False)
    assert written(["a/b", "100%"]) == "a%2Fb/100%25"
    assert body(MENU, None, is_peer=False).endswith(b'"variables":{}}')
    assert plain({"children": {"nodes": [{"id": "1"}]}}) == {"children": [{"id": "1"}]}


def test_a_large_store_has_about_as_many_nodes_as_asked_for_in_ten_trees_alike():
    nodes = list(million.made(20_000))
    assert len(nodes) == 10 * (2 + 100 * 20)
    assert {place.path[0] for place in nodes} == {f"C{number}" for number in range(10)}
    assert len({place.path for place in nodes}) == len({place.id for place in nodes}) == len(nodes)
