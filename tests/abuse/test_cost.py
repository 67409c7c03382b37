"""No request that a server accepts by default costs more than the bounds: known ones, and some that a machine makes.

A plain run counts what known ones read and return; time and memory, and what is made after them, depend on the machine.
The long form searches for as long as it is told, with narrower bounds of time: python -m bench.cost --seconds 3600
"""

import asyncio
import time
from dataclasses import replace

import pytest
from graphql import GraphQLError, parse, validate

from bench.cost.examples import examples, reading_examples
from bench.cost.generator import Generator
from bench.cost.measured import CROWDED, DEFAULT, Measured, crowded
from bench.cost.meter import Meter, Sent
from bench.cost.nodes import Sizes
from bench.cost.parser import parsed
from bench.cost.probe import TICK_SECONDS, Probe
from bench.cost.report import figures, shown, table
from bench.cost.search import Found, Search
from bench.cost.stage import filled, measuring
from graph.hierarchies.registry import served
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from graph.settings import Settings
from store.connect import open_store
from tests import selection

MADE = selection.examples(15, 40)  # requests on each store
SHOWN = 3  # of those past a bound, after which no others are looked for
CLIENT_SECONDS = 15.0
SMALLER = Sizes(nodes=4_400)  # an engine on this machine takes its time to be filled
REFUSED = dict.fromkeys([
    "representations that are lists", "many unknown fields", "many directives", "long number", "deep braces",
    "deep lists", "large node many times", "large nodes many times", "ids of no nodes", "unknown value in every list",
    "more orders of many lists", "more alternatives", "nested conditions", "more paths",
], 400) | {"long text": 413}  # fmt: skip
ORDINARY = Measured(
    cpu=0.01, blocked=0.01, stalled=0.01, health=0.01, seconds=0.01, peak_mb=1.0, left_mb=0.0, answer_bytes=100,
    requests=1, units=0.5, status=200,
)  # fmt: skip


@pytest.fixture(scope="module")
def schema():
    return core_schema(build_schema(served(Settings().hierarchies))[0])


class Stage:
    """A running meter, asked from tests that are no coroutines: it outlives each of them."""

    def __init__(self, runner, meter):
        self._runner = runner
        self._meter = meter

    def count(self, sent):
        return self._runner.run(self._meter.count(sent))

    def measure(self, sent):
        return self._runner.run(self._meter.measure(sent))

    def over(self, sent, measured):
        """The bounds that do not hold. Times are measured twice: others use the machine as well."""
        found = CROWDED.over(measured)
        if found and not DEFAULT.over(replace(measured, cpu=0.0, blocked=0.0)):
            self._runner.run(self._meter.restart())  # nothing is kept of the first time
            found = crowded().over(self.measure(sent))
        return found


def staged(folder, sizes=Sizes(), engine=None):
    with asyncio.Runner() as runner:
        store = runner.run(filled(folder, sizes, engine))
        whole = {} if selection.thorough() else {"request_seconds": "600"}  # what is counted is counted to its end
        running = measuring(folder, store, CLIENT_SECONDS, **whole)
        yield Stage(runner, runner.run(running.__aenter__()))
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    yield from staged(tmp_path_factory.mktemp("cost"))


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory, engine):
    if not engine.exact:
        pytest.skip(f"{engine.name} tells no read units")
    yield from staged(tmp_path_factory.mktemp("cost"), SMALLER, engine)


@pytest.mark.parametrize("name", examples())
def test_known_requests_keep_the_bounds_of_what_is_counted(sqlite, name):
    counted = sqlite.count(examples()[name])
    assert DEFAULT.over(counted) == []
    assert counted.status == REFUSED.get(name, 200)
    assert counted.requests == 0 or name not in REFUSED


@pytest.mark.thorough
@pytest.mark.parametrize("name", examples())
def test_known_requests_keep_the_bounds_on_sqlite(sqlite, name):
    sent = examples()[name]
    for _ in range(2):  # the second time with what was cached, whose keys are compared
        measured = sqlite.measure(sent)
        assert sqlite.over(sent, measured) == [], measured


@pytest.mark.thorough
@pytest.mark.parametrize("name", reading_examples())
def test_known_requests_keep_the_bounds_on_dynamodb(dynamodb, name):
    sent = reading_examples()[name]
    measured = dynamodb.measure(sent)
    assert dynamodb.over(sent, measured) == [], measured


@pytest.mark.thorough
@pytest.mark.parametrize(("store", "seed"), [("sqlite", 1), ("dynamodb", 2)])
def test_made_requests_keep_the_bounds(request, schema, store, seed):
    known = [operation for sent in examples().values() if (operation := parsed(schema, sent))]
    stage, search = request.getfixturevalue(store), Search(Generator(schema, seed), known)
    dear = []
    for number, (operation, sent) in zip(range(MADE), search.proposals(), strict=False):
        measured = stage.measure(sent)
        search.learn(operation, measured)
        if over := stage.over(sent, measured):
            dear.append(f"made {seed}-{number + 1}: {', '.join(over)}\n  {shown(sent)}")
        if len(dear) == SHOWN:
            break
    assert not dear, "\n".join(dear)


@pytest.mark.thorough
@pytest.mark.parametrize("literal", [False, True], ids=["variables", "literals"])
def test_lists_in_arguments_keep_the_bounds_at_any_depth(sqlite, schema, literal):
    asked = [operation.sent() for operation in Generator(schema, 3).with_lists(literal=literal)]
    assert not [sent.query for sent in asked if validate(schema, parse(sent.query))]
    dear = {sent.query: over for sent in asked if (over := sqlite.over(sent, sqlite.measure(sent)))}
    assert not dear


# -- the harness itself ------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_same_seed_makes_the_same_requests_and_most_are_accepted(schema):
    def made(seed):
        search = Search(Generator(schema, seed))
        for _, (operation, sent) in zip(range(60), search.proposals(), strict=False):
            search.learn(operation, replace(ORDINARY, answer_bytes=len(sent.query)))
            yield sent

    def is_accepted(sent):
        try:
            return not validate(schema, DocumentLimits().parse(sent.query).document)
        except (GraphQLError, RecursionError):
            return False

    sents = list(made(7))
    assert [one.body() for one in sents] == [one.body() for one in made(7)]
    assert sum(map(is_accepted, sents)) >= 45


@pytest.mark.thorough
def test_all_fields_and_arguments_are_asked_for(schema):
    generator = Generator(schema, 1)
    text = " ".join(generator.operation().sent().query for _ in range(1_500))
    kinds = [kind for name, kind in schema.type_map.items() if not name.startswith("__") and hasattr(kind, "fields")]
    outputs = [kind for kind in kinds if not kind.name.endswith(("Attributes", "Condition", "OrderBy"))]
    names = {name for kind in outputs for name in kind.fields} | {
        argument for kind in outputs for one in kind.fields.values() for argument in getattr(one, "args", ())
    }
    assert [name for name in sorted(names) if name not in text] == []


@pytest.mark.thorough
def test_known_requests_that_are_read_and_written_again_stay_within_the_limits(schema):
    """What the search changes is what was sent, in other words."""
    limits = DocumentLimits()
    for name, sent in examples().items():
        if (operation := parsed(schema, sent)) is not None and name != "long number":
            again = operation.sent()
            errors = [validate(schema, limits.parse(one.query).document) for one in (sent, again)]
            assert bool(errors[0]) == bool(errors[1]), name


@pytest.fixture
async def small(tmp_path):
    """A meter on a table without nodes."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(url) as store:
        await store.create()
    meter = Meter(tmp_path, url)
    await meter.start()
    yield meter
    await meter.close()


@pytest.mark.thorough
async def test_a_request_that_takes_too_long_is_ended_with_its_server(small):
    sent = Sent("{ locations { nodes { id } } }")
    assert CROWDED.over(await small.measure(sent)) == []
    small._client_seconds = 0.0
    ended = await small.measure(sent)
    assert (ended.ended, ended.status, small.starts) == (True, None, 2)
    small._client_seconds = CLIENT_SECONDS
    measured = await small.measure(sent)
    assert (measured.ended, measured.status, measured.requests) == (False, 200, 2)  # the list and its version


@pytest.mark.thorough
async def test_a_server_that_is_gone_is_started_again(small):
    small._server.kill()
    assert (await small.measure(Sent("{ nothing }"))).status == 400
    assert small.starts == 2


@pytest.mark.thorough
async def test_the_probe_sees_a_blocked_loop_by_its_time_and_by_its_cpu():
    probe = Probe(app=None)
    probe.start()
    await asyncio.sleep(4 * TICK_SECONDS)
    probe.told()
    time.sleep(0.2)  # noqa: ASYNC251 - which is what is to be seen
    await asyncio.sleep(4 * TICK_SECONDS)
    slept = probe.told()
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    await asyncio.sleep(4 * TICK_SECONDS)
    computed = probe.told()
    assert slept["stalled"] > 0.15
    assert slept["blocked"] < 0.15 < computed["blocked"]


@pytest.mark.parametrize("name", ["cpu", "blocked", "peak_mb", "left_mb", "answer_bytes", "units", "requests"])
def test_what_is_past_a_bound_is_named(name):
    assert DEFAULT.over(ORDINARY) == []
    assert DEFAULT.over(replace(ORDINARY, **{name: 2 * getattr(DEFAULT, name)})) == [f"{name} 2.0 times its bound"]


def test_refusals_have_a_bound_of_their_own_and_no_answer_is_past_all():
    assert DEFAULT.over(replace(ORDINARY, status=400, cpu=0.04)) == ["refusal 2.0 times its bound"]
    assert DEFAULT.over(replace(ORDINARY, status=None)) == ["no answer"]
    assert DEFAULT.over(replace(ORDINARY, status=None, ended=True)) == ["ended by the client"]


def test_the_dearest_come_first_in_the_table():
    found = [Found(f"n{units}", Sent(), replace(ORDINARY, units=units)) for units in (10, 900, 500)]
    rows = table(found).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| n900", "| n500", "| n10"]
    assert figures(ORDINARY) == "10 | 10 | 1 | 0 | 0 | 1 | 0"
