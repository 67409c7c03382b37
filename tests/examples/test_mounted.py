"""Clade in another application: mounted with its lifespan, two in one process, and nothing else is changed by them."""

import gc
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from clade import Settings, create_app
from examples.mounted import make_app
from store.connect import opened
from store.errors import BadInput
from tests.readme import DOCS, blocks
from tests.serving import serving

SHELVES = '''
from clade import Node


class Shelf(Node, hierarchy="shelf", many="shelves"):
    """A shelf."""


class {level}(Shelf, under=None):
    """A shelf for something."""
'''
CREATE = (
    'mutation {{ createShelf(input: {{ key: "{0}", name: "{0}", attributes: {{ {0}: {{}} }} }}) '
    "{{ node {{ path }} }} }}"
)
SHOWN = "{ shelves { nodes { path level } } }"


@pytest.fixture
async def store(tmp_path):
    """The address of a store with an empty table."""
    url = f"sqlite:///{tmp_path / 'one.db'}"
    async with opened(url, make=True):
        return url


def ask(url: str, query: str) -> dict:
    answer = httpx.post(url, json={"query": query}, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def app_of_the_page(store):
    """The application of docs/mounting.md."""
    (program,) = blocks("py", (DOCS / "mounting.md").read_text("utf-8"))
    names = {}
    exec(program.replace("sqlite:///drives.db", store), names)  # noqa: S102  # of our own page
    return names["app"]


@pytest.mark.parametrize("make", [make_app, app_of_the_page])
def test_a_mounted_application_answers_beside_the_pages_of_its_host(store, make):
    with serving(make(store)) as url:
        assert httpx.get(url).text == "The drives are at /drives/graphql."
        assert ask(f"{url}/drives/graphql", "{ drives { nodes { path } } }") == {"data": {"drives": {"nodes": []}}}
        explorer = httpx.get(f"{url}/drives/")
        links = [part.partition('"')[0] for part in explorer.text.split('href="')[1:]]
        assert {httpx.get(f"{url}/drives/{link}").status_code for link in links} == {200}
        assert len(links) > 5
        assert httpx.get(f"{url}/drives/readyz").json() == {"ready": True}
        page = httpx.get(f"{url}/drives/graphql", headers={"accept": "text/html"})
        scripts = [part.partition('"')[0] for part in page.text.split('src="')[1:]]
        assert [httpx.get(f"{url}/drives/{script}").status_code for script in scripts] == [200] * 4
        assert httpx.get(f"{url}/drives/graphql/examples.json").json()[0]["name"] == "Drives"


def test_without_its_lifespan_a_mounted_application_says_what_is_missing(store, caplog):
    drives = create_app(Settings(store=store, hierarchies="examples.drive"))
    missing = "runs without its lifespan"
    with serving(Starlette(routes=[Mount("/drives", drives)])) as host:
        url = f"{host}/drives"
        for _ in range(3):
            answer = httpx.post(f"{url}/graphql", json={"query": "{ drives { nodes { path } } }"})
            (error,) = answer.json()["errors"]
            assert (answer.status_code, error["extensions"]["code"]) == (503, "UNAVAILABLE")
            assert missing in error["message"]
            assert "docs/mounting.md" in error["message"]
        assert missing in httpx.get(f"{url}/graphql", headers={"accept": "text/html"}).text
        ready = httpx.get(f"{url}/readyz")
        assert (ready.status_code, missing in ready.json()["reason"]) == (503, True)
    assert [missing in one for one in caplog.messages].count(True) == 1


@pytest.fixture
async def two_shops(tmp_path):
    """An application with two shops, whose hierarchies are different files of the same name."""
    shops = {}
    for name in ("books", "shoes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "store.py").write_text(SHELVES.format(level=name.title()))
        url = f"sqlite:///{tmp_path / name}.db"
        async with opened(url, make=True):
            hierarchies = str(tmp_path / name / "store.py")
            shops[name] = create_app(Settings(store=url, hierarchies=hierarchies, writes="on"))

    @asynccontextmanager
    async def lifespan(app):
        async with AsyncExitStack() as stack:
            for shop in shops.values():
                await stack.enter_async_context(shop.lifespan(app))
            yield

    return Starlette(routes=[Mount(f"/{name}", shop) for name, shop in shops.items()], lifespan=lifespan)


def test_two_applications_in_one_process_have_hierarchies_and_stores_of_their_own(two_shops):
    with serving(two_shops) as url:
        for name in ("books", "shoes"):
            made = ask(f"{url}/{name}/graphql", CREATE.format(name))
            assert made == {"data": {"createShelf": {"node": {"path": name}}}}
        for name in ("books", "shoes"):
            shelves = ask(f"{url}/{name}/graphql", SHOWN)["data"]["shelves"]["nodes"]
            assert shelves == [{"path": name, "level": name.upper()}]


def test_making_an_application_leaves_the_garbage_collector_alone(store):
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    create_app(Settings(store=store))
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() <= frozen  # fewer, where frozen objects were freed meanwhile


def test_a_setting_that_there_is_not_is_refused_by_its_name():
    with pytest.raises(BadInput, match=r"^Settings has no hierarchy=; use hierarchies=\.$"):
        Settings(hierarchy="shop.py")
    with pytest.raises(BadInput, match=r"^Settings has no colour=; all settings are in docs/reference/settings.md\.$"):
        Settings(colour="red")
