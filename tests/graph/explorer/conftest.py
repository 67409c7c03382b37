"""Fixtures of the tests of the explorer: a server, and pages that complain of nothing and ask no other server."""

import itertools

import pytest

from clade import Settings, create_app
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from resolvers.session.budget import COMPARED_A_UNIT
from tests.browser import Visit
from tests.classes.shops import Place
from tests.graph.explorer.extremes import BEYOND, CATEGORIES, LOCATIONS, MAX_NODES, PLACES, THINGS, Thing
from tests.graph.explorer.steps import DEVICES, SECRET, planted, write
from tests.serving import serving

HIERARCHIES = (
    "graph.hierarchies.categories,graph.hierarchies.locations,tests.classes.shops,tests.graph.explorer.extremes"
)
keys = (f"C{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    """The settings of a server that takes writes and reads for each request, of nodes of four hierarchies."""
    file = tmp_path_factory.mktemp("explorer") / "clade.db"
    rows = {CategoryNode: CATEGORIES, Location: LOCATIONS, Place: PLACES, Thing: THINGS}
    for hierarchy, nodes in rows.items():
        store = planted(file, hierarchy, nodes, BEYOND if hierarchy is Location else {})
    options = {"hierarchies": HIERARCHIES, "max_nodes": MAX_NODES, "cache_mb": 0, "jwt_secret": SECRET}
    return {"store": store, "writes": "on", **options}


@pytest.fixture(scope="session")
def url(settings):
    with serving(create_app(Settings(**settings))) as url:
        yield url


@pytest.fixture(scope="session")
def poor_url(settings):
    """A server of the same nodes whose read units are too few to sort the longest list."""
    with serving(create_app(Settings(**settings, max_read_units=MAX_NODES / COMPARED_A_UNIT))) as url:
        yield url


@pytest.fixture
def country(url):
    """The path of a new country with a state, which has a city."""
    root = next(keys)
    write(url, "createLocation", key=root, name="Country", attributes={"country": {}})
    write(url, "createLocation", parent=root, key="S", name="State", attributes={"state": {"population": 5}})
    write(url, "createLocation", parent=f"{root}/S", key="City", name="City", attributes={"city": {}})
    return root


@pytest.fixture
def visit(browser):
    """Opens pages of a server; at the end nothing was asked of another one, and nothing was refused by the policy.

    With `is_live` the page is opened when it is told of changes. Complaints that begin with a text in `expected` are
    left out.

    Tests name the fixture of their server first: it ends last, for it waits for the event streams of pages.
    """
    visit, servers = Visit(browser), []

    def open_page(url, address="", device="light", prepare=lambda page: None, is_live=False):
        page = visit.page(**DEVICES[device], locale="en-GB", timezone_id="UTC")
        prepare(page)
        if is_live:
            with page.expect_response(lambda answer: "event-stream" in answer.headers.get("content-type", "")):
                page.goto(f"{url}/{address}")
        else:
            page.goto(f"{url}/{address}")
        servers.append(url)
        return page

    open_page.expected = []
    yield open_page
    visit.close()
    assert [one for one in visit.asked if not one.startswith(tuple(f"{url}/" for url in servers))] == []
    assert [one for one in visit.complaints if not one.startswith(tuple(open_page.expected))] == []
