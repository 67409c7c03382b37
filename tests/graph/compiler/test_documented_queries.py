"""The queries of README, docs, GraphiQL and the greeting are answered as graphql-core answers them."""

from collections.abc import Iterator

import pytest
from graphql import OperationType, get_operation_ast, parse, print_ast, separate_operations, validate

from graph.compiler.plan_cache import PlanCache
from graph.hierarchies.example_queries import Sample, example_queries
from graph.hierarchies.registry import served
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from graph.settings import Settings
from resolvers.session.request import Request
from store.connect import open_store
from tests.graph.compiler.test_operation_plan import compare
from tests.graphql_core import executing
from tests.readme import README, blocks

ROOT = README.parent
CLASSES = served(Settings.model_fields["hierarchies"].default)
SCHEMA, TYPES = build_schema(CLASSES)
DEFINITIONS = {cls.name: cls.definition() for cls in CLASSES}
SAMPLES = {"location": Sample("US", "US/NE", "STATE", "CITY")}


def texts() -> Iterator[str]:
    for page in [README, *sorted((ROOT / "docs").glob("*.md"))]:
        yield from blocks("graphql", page.read_text("utf-8"))
    yield from (example.one_line() for example in example_queries(CLASSES, SAMPLES))


def documented() -> dict[str, str]:
    """Each query by itself that is one of this schema; pages show those of neighbouring subgraphs as well."""
    found = {}
    for text in texts():
        for name, document in separate_operations(parse(text)).items():
            operation = get_operation_ast(document)
            is_query = operation is not None and operation.operation is OperationType.QUERY
            if is_query and not operation.variable_definitions and not validate(core_schema(SCHEMA), document):
                found[f"{name or 'unnamed'}-{len(found)}"] = print_ast(document)
    return found


DOCUMENTED = documented()


def test_the_pages_show_queries():
    assert len(DOCUMENTED) >= 12


@pytest.mark.parametrize("name", DOCUMENTED)
async def test_documented_queries_have_equal_responses_compiled_and_interpreted(demo_store, name):
    async with open_store(demo_store) as store:

        def context() -> Context:
            return Context(Request(store, DEFINITIONS), TYPES)

        planning = executing(SCHEMA, context, plans=PlanCache(core_schema(SCHEMA), TYPES))
        body = await compare(planning, executing(SCHEMA, context), DOCUMENTED[name])
        assert body["data"]
