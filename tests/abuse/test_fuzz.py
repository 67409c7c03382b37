"""Operations that a machine makes of the schema, of any shape and with any values: schemathesis asks a running server.

The long form: pytest --examples 5000 tests/abuse/test_fuzz.py
"""

import asyncio

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import graphql

from graph.app import create_app
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.server.graphql_over_http import GRAPHQL
from store.checking.check import Check
from store.connect import open_store
from tests.rights.asking import codes
from tests.selection import examples
from tests.serving import serving
from tests.systems.asking import plant

PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/MO", "STATE"), ("US/MO/St. Louis", "CITY"), ("FR", "COUNTRY"), ("FR/a\u0301", "CITY"),
]  # fmt: skip
GOODS = [
    ("Books", "CATEGORY"),
    ("Books/Maps", "CATEGORY"),
    ("Books/Maps/Atlas", "PRODUCT"),
    ("Books/Maps/Atlas/1", "VARIANT"),
]
PATHS = [path for path, _ in PLACES + GOODS]

texts = st.text(max_size=20) | st.sampled_from(
    ["", "\x00", "\ud7ff", "%", "%2F", "a/b", "#", "$", "!", "é", "x" * 2_000]
)
paths = st.sampled_from(PATHS) | st.builds("{}/{}".format, st.sampled_from(PATHS), texts) | texts
numbers = st.integers() | st.sampled_from([0, -1, 2**31, 2**53, 2**63, 10**40])
days = st.dates().map(str) | st.sampled_from(["2026-02-30", "0000-01-01", "2026-10"])
times = st.datetimes().map(lambda time: time.isoformat() + "Z") | st.sampled_from(["now", "2026-01-01T25:00:00Z"])
amounts = st.decimals().map(str) | st.sampled_from(["1e999999", "-0", "NaN", "0." + "1" * 50])


@pytest.fixture
def url(tmp_path):
    """The address of a store with some nodes of two hierarchies."""
    address = f"sqlite:///{tmp_path / 'clade.db'}"

    async def fill():
        async with open_store(address) as store:
            await store.create()
            for cls, rows in ((Location, PLACES), (CategoryNode, GOODS)):
                await plant(store, cls, [(tuple(path.split("/")), level) for path, level in rows])

    asyncio.run(fill())
    return address


@pytest.fixture
def server(url, monkeypatch):
    monkeypatch.setenv("CLADE_STORE", url)
    monkeypatch.setenv("CLADE_WRITES", "on")
    with serving(create_app()) as address:
        yield f"{address}/graphql"


def operations(server):
    """Any operation on any field of Query or Mutation."""
    kinds = {"Path": paths, "Date": days, "DateTime": times, "Decimal": amounts}
    for name, values in kinds.items():
        graphql.scalar(name, values.map(graphql.nodes.String))
    graphql.scalar("Long", numbers.map(graphql.nodes.Int))
    schema = graphql.from_url(server)
    return st.one_of([result.ok().as_strategy() for result in schema.get_all_operations()])


def findings(url):
    """What is wrong with the table, as `clade check` finds it."""
    hierarchies = {cls.name: cls.definition() for cls in (Location, CategoryNode)}

    async def look():
        async with open_store(url) as store:
            return [str(one) async for one in Check(store, hierarchies, "2999-01-01T00:00:00.000Z").findings()]

    return asyncio.run(look())


def test_no_operation_breaks_the_server_or_the_table(server, url):
    with httpx.Client(headers={"accept": GRAPHQL}, timeout=30) as client:

        @settings(max_examples=examples(20, 200), phases=[Phase.explicit, Phase.generate], database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(operations(server))
        def ask(case):
            query = case.body if isinstance(case.body, str) else case.body["query"]
            answer = client.post(server, json={"query": query})
            assert answer.status_code < 500, (query, answer.text)
            body = answer.json()
            assert not {"INTERNAL_SERVER_ERROR", "UNAVAILABLE", "BAD_DATA"} & set(codes(body)), (query, body)

        ask()
    assert findings(url) == []
