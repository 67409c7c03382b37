"""What is kept of requests stays small, whatever they send."""

from itertools import product

from graph.cache import Cache
from graph.context import Context
from graph.execution import Execution
from graph.plans import Plans
from resolvers.kept import Kept
from resolvers.request import Request
from resolvers.window import Order, encode_cursor
from store.stores import open_store
from tests.graph.test_cache import GROUND, SCHEMA, TYPES, plant

QUERY = 'query($path: Path!) { area(path: "a") { isDescendantOf(path: $path) } }'
SIZE = 100_000


async def test_variables_of_any_length_leave_nothing_behind_in_plans_or_the_cache():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a")
        plans = Plans(SCHEMA._schema, TYPES)
        cache = Cache(1_000_000, settle_seconds=0)
        execution = Execution(
            SCHEMA, lambda: Context(Request(store, {"ground": GROUND}), TYPES), plans=plans, cache=cache
        )
        for number in range(5):
            await execution.execute(QUERY, {"path": f"a/{number}", "x": "y" * SIZE}, allow_mutations=False)
            await execution.execute(QUERY, {"path": f"{number}" * SIZE}, allow_mutations=False)
        assert execution.planned == 5
        assert 0 < len(str(list(execution._documents.get(QUERY).plans))) < SIZE
        assert 0 < len(str(list(cache._entries))) < SIZE


async def test_cursors_of_any_length_leave_nothing_behind_in_what_is_kept_of_lists():
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, "a", "a/b")
        kept = Kept(10_000_000)
        execution = Execution(SCHEMA, lambda: Context(Request(store, {"ground": GROUND}, kept=kept), TYPES))
        found = await execution.execute('{ area(path: "a") { id } }', allow_mutations=False)
        children = 'query($after: String) { area(path: "a") { children(after: $after) { nodes { id } } } }'
        roots = "query($after: String) { grounds(after: $after) { nodes { id } } }"
        lists = [(children, Order.CHILDREN, found.body["data"]["area"]["id"]), (roots, Order.ROOTS, "ground")]
        for (query, order, owner), length in product(lists, (0, SIZE)):
            after = encode_cursor(order, owner, "A" + "x" * length)
            found = await execution.execute(query, {"after": after}, allow_mutations=False)
            assert ("errors" in found.body) == (length > 0), found.body
        assert 0 < len(str(list(kept._answers))) < SIZE


async def test_fields_share_the_ids_that_a_request_may_look_up():
    query = "query($ids: [ID!]!) { a: nodes(ids: $ids) { id } b: nodes(ids: $ids) { id } }"
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        for plans in (None, Plans(SCHEMA._schema, TYPES)):
            execution = Execution(
                SCHEMA, lambda: Context(Request(store, {"ground": GROUND}, nodes_left=10), TYPES), plans=plans
            )
            fine = await execution.execute(query, {"ids": ["nothing:1"] * 5}, allow_mutations=False)
            assert "errors" not in fine.body
            refused = await execution.execute(query, {"ids": ["nothing:1"] * 6}, allow_mutations=False)
            (error,) = refused.body["errors"]
            assert error["extensions"]["code"] == "BUDGET_EXCEEDED"
