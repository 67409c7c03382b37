"""The benchmark on small stores: it starts servers, checks responses and reads CPU times."""

import subprocess
from dataclasses import replace

import httpx
import pytest

from bench import clients, importing, measurement, million, places, servers, sorting
from bench.measurement import MAIN, ExpectedData, Figures, Schedule, Workload, WrongResponse, measure
from bench.places import COUNTRY_NODES, Place
from bench.processes import Process, ask
from bench.queries import BREADCRUMB, CHILDREN, MENU, PLACES, body, peer_id, plain, written
from bench.report import Report
from bench.start import first_answer_seconds
from bench.stores import Stores
from bench.tree import Tree, menu

pytestmark = pytest.mark.thorough

SHORT = Schedule(seconds=1.0, rounds=1)
COUNTRY = "L0000"


@pytest.fixture(scope="module")
def expected() -> ExpectedData:
    return ExpectedData(Tree(list(places.made(COUNTRY_NODES))), COUNTRY)


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


def test_every_query_is_checked_and_measured(clade, expected, tmp_path):
    lines: list[str] = []
    results = measure([clade], PLACES, expected, SHORT, lines.append)
    assert {(name, query) for name, query, _ in results} == {(servers.SQLITE, one.name) for one in PLACES}
    assert all(one.cpu > 0 and one.requests_a_second > 0 and one.p99 >= one.p50 > 0 for one in results.values())
    assert clade.process.peak_mb() > 10
    report = Report("made-up", results, {servers.SQLITE: 1.0}, 0.5)
    report.write(tmp_path / "results.json")
    assert Report.read(tmp_path / "results.json") == report
    assert "**Q3, country, regions, first 20 cities of each**" in report.markdown()


@pytest.mark.parametrize("responses", [False, True])
def test_responses_are_cached_only_where_that_is_measured(store, expected, responses):
    server = servers.clade(servers.HITS, store, responses=responses)
    with server.process:
        url, sent = server.url(CHILDREN), expected.bodies(CHILDREN)[0]
        headers = {"content-type": "application/json", "clade-reads": "1"}
        answers = [httpx.post(url, content=sent, headers=headers).json() for _ in range(3)]
    assert [answer["extensions"]["reads"]["cached"] for answer in answers] == [False, responses, responses]


def test_stock_strawberry_returns_the_expected_data(store, expected):
    server = servers.stock(store, PLACES)
    with server.process:
        for query in PLACES:
            expected.check(expected.workload(server, query))


def test_the_static_server_serves_its_files(tmp_path, expected):
    (tmp_path / BREADCRUMB.name).write_bytes(b'{"data": 1}')
    server = servers.static(tmp_path)
    with server.process:
        assert ask(server.url(BREADCRUMB), expected.bodies(BREADCRUMB)[0]) == b'{"data": 1}'
        assert expected.workload(server, BREADCRUMB).run(2, 1.0).requests_a_second > 0


def test_a_wrong_response_ends_the_measurement(clade, expected):
    tree = list(places.made(COUNTRY_NODES))
    tree[1] = replace(tree[1], population=-1)
    with pytest.raises(WrongResponse, match="Clade, SQLite, Q2"):
        replace(expected, tree=Tree(tree)).check(expected.workload(clade, CHILDREN))


@pytest.mark.usefixtures("without_wrk")
def test_without_wrk_our_own_client_sends_the_requests(clade, expected):
    figures = expected.workload(clade, CHILDREN).run(MAIN, 0.5)
    assert figures.requests_a_second > 0
    assert figures.cpu > 0


@pytest.mark.usefixtures("without_wrk")
def test_failed_requests_end_the_measurement(clade, expected):
    missing = replace(clade, process=replace(clade.process, url=clade.process.url.replace("/graphql", "/nothing")))
    with pytest.raises(WrongResponse, match="requests failed"):
        Workload(missing, CHILDREN, expected.bodies(CHILDREN)).run(1, 0.2)


def test_the_start_is_timed_until_the_first_response(store):
    assert first_answer_seconds(store, next(places.made(1))) > 0


def test_the_error_of_a_process_that_ends_has_its_output():
    with (
        pytest.raises(Exception, match="no such thing"),
        Process(("sh", "-c", "echo no such thing"), "tcp://127.0.0.1:1"),
    ):
        pass


def test_no_process_is_left_running(store):
    server = servers.clade(servers.SQLITE, store)
    with server.process:
        pid = server.process.pid
    assert subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 1


def test_the_median_is_taken_for_each_figure():
    runs = [Figures(1, 9, 5, 4), Figures(2, 8, 6, 5), Figures(3, 7, 7, 9)]
    assert measurement.middle(runs) == Figures(2, 8, 6, 5)


def test_the_expected_menu_is_read_from_a_taxonomy(tmp_path):
    file = tmp_path / "taxonomy.txt"
    file.write_text("# a title\nA\nA > B/C\nD\n", "utf-8")
    categories = menu(file)
    assert [(one["name"], one["path"]) for one in categories] == [("A", "A"), ("D", "D")]
    assert [one["path"] for one in categories[0]["children"]] == ["A/B%2FC"]


def test_other_servers_get_the_query_for_their_schema():
    place = Place(("US", "US-NE"), "REGION", "Nebraska", "US-NE")
    assert peer_id(place) == "US#US-NE"
    assert b'"variables":{"id":"US#US-NE"}' in body(CHILDREN, place, is_peer=True)
    assert b'"variables":{"path":"US/US-NE"}' in body(CHILDREN, place, is_peer=False)
    assert written(["a/b", "100%"]) == "a%2Fb/100%25"
    assert body(MENU, None, is_peer=False).endswith(b'"variables":{}}')
    assert plain({"children": {"nodes": [{"id": "1"}]}}) == {"children": [{"id": "1"}]}


def test_a_large_store_has_ten_equal_trees():
    nodes = list(million.made(20_000))
    assert len(nodes) == 10 * (2 + 100 * 20)
    assert {place.path[0] for place in nodes} == {f"C{number}" for number in range(10)}
    assert len({place.path for place in nodes}) == len({place.id for place in nodes}) == len(nodes)


async def test_sorting_is_measured_beside_serializing(monkeypatch, capsys):
    monkeypatch.setattr(sorting, "NODES", 50)
    monkeypatch.setattr(sorting, "RUNS", 1)
    await sorting.main()
    assert len(capsys.readouterr().out.splitlines()) == 3 + len(sorting.WAYS)


def test_an_import_is_measured_beside_inserts_of_the_rows_that_result(tmp_path):
    file, target = tmp_path / "places.jsonl", tmp_path / "imported.db"
    places.write(places.made(COUNTRY_NODES), file)
    costs = importing.compared(file, tmp_path, importing.HIERARCHIES["with search"])
    assert len(costs) == 3
    assert all(cost.seconds > 0 and cost.cpu > 0 for cost in costs)
    rows = importing.rows_of(target)
    assert sum(row[0] == "location#L0000" and row[1].startswith("#") for row in rows) == COUNTRY_NODES
    assert {importing.tree_of(row)[0] for row in rows} == {"location", "location#L0000", "search/location"}
    assert importing.least([costs, costs]) == costs
