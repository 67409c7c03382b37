"""Shell: what graphql-core executes of an operation, which is introspection, and of mutations and subscriptions all but
the nodes in their payloads. These are read and written as those of queries.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import isawaitable
from typing import Any, cast

from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLObjectType,
    default_field_resolver,
    default_type_resolver,
    get_named_type,
    is_composite_type,
)
from graphql.execution import Executor
from graphql.pyutils import Path
from orjson import Fragment, dumps

from graph.execution.plan import CompiledType, ReadField
from graph.execution.plan_cache import BoundPlan
from graph.execution.run import Run
from graph.operation.context import Context
from graph.types.fields import resolver_of
from graph.types.written import WrittenRecord, present
from store.model.records import Record

_introspection = ThreadPoolExecutor(1, "introspection")  # its own thread, not one of those that read


class Shell(Executor[Any]):
    """The execution of one operation, whose objects spend the budget of fields."""

    def __init__(self, bound: BoundPlan, context: Context, *, hide_suggestions: bool) -> None:
        fields = bound.plan.fields
        definitions = {name: one.definition for name, one in fields.fragments.items()}
        resolvers = default_field_resolver, default_type_resolver, default_field_resolver
        super().__init__(
            fields.schema, definitions, fields.fragments, None, context, fields.operation, bound.variables, *resolvers,
            hide_suggestions=hide_suggestions,
        )  # fmt: skip
        self._bound, self._is_stopped = bound, False
        self.left_out: Counter[str] = Counter()
        """The numbers of the errors of each code, below nodes in payloads, that are not among those of the result."""

    async def execute(self) -> ExecutionResult:
        """The result of the whole operation."""
        result: Any = self.execute_operation()
        return cast(ExecutionResult, await result if isawaitable(result) else result)

    async def others(self) -> dict[str, bytes] | None:
        """The fields of Query that no plan compiles, as JSON; None where one has failed that may not be null."""
        fields, query = self._bound.plan.fields, self._bound.plan.query
        assert query is not None  # noqa: S101 - a query has fields
        execute = partial(self.execute_fields, fields.query_type, None, None, query.others, None)
        try:
            found: Any = await asyncio.get_running_loop().run_in_executor(_introspection, execute)
            values = await found if isawaitable(found) else found
        except asyncio.CancelledError:
            self._is_stopped = True
            raise
        except GraphQLError as error:
            self.collected_errors.add(error, None)
            return None
        return {key: dumps(value) for key, value in values.items()}

    def execute_fields(self, parent_type: GraphQLObjectType, source_value: Any, path: Path | None, *others: Any) -> Any:
        if self._is_stopped:
            raise asyncio.CancelledError
        self.context_value.request.budget.spend_fields(len(others[0]))
        return super().execute_fields(parent_type, source_value, path, *others)

    def execute_field(
        self, parent_type: GraphQLObjectType, source: Any, field_details_list: Any, path: Path, *others: Any
    ) -> Any:
        definition = parent_type.fields.get(field_details_list[0].node.name.value)
        resolve = None if definition is None else resolver_of(definition)
        if (
            resolve is not None
            and parent_type is not self.schema.mutation_type
            and is_composite_type(get_named_type(definition.type))
        ):
            field = ReadField(self._bound.plan, parent_type, str(path.key), field_details_list)
            if field.position is not None and field.position.holds_nodes:
                return self._node(field, parent_type, source, field_details_list, path)
        return super().execute_field(parent_type, source, field_details_list, path, *others)

    async def _node(
        self, field: ReadField, parent_type: GraphQLObjectType, source: Any, details: Any, path: Path
    ) -> Fragment | None:
        """The JSON of a node in a payload, or of its nodes."""
        info = self.build_resolve_info(field.definition, field.nodes, parent_type, path)
        run = Run(self._bound.look_ahead, self.context_value)
        try:
            value: Any = field.reading(source, info)
            value = await value if isawaitable(value) else value
            if value is None:
                return None
            nodes = value if field.many else [value]
            json = await run.field(field, nodes, await self._present(field, nodes, info))
        except Exception as error:
            self.handle_field_error(error, field.definition.type, details, path)
            return None
        above = path.prev.as_list() if path.prev else []
        for found in await run.faults.errors():
            whole = [*above, *(found.path or ())]
            located = GraphQLError(found.message, found.nodes, path=whole, original_error=found.original_error)
            self.collected_errors.errors.append(located)
        self.left_out.update(run.faults.left_out)
        return Fragment(json)

    async def _present(self, field: ReadField, nodes: Sequence[Record], info: Any) -> dict[str, Record | None]:
        """By id the nodes of which fields are read, None for one that is gone, for those that may be elsewhere now."""
        written = [one for one in nodes if isinstance(one, WrittenRecord) and self._is_read(field, one)]
        found = await asyncio.gather(*[present(one, info) for one in written])
        return {one.id: there for one, there in zip(written, found, strict=True)}

    def _is_read(self, field: ReadField, record: Record) -> bool:
        """Whether a field of the node is read."""
        compiled = None if field.position is None else field.position[record.hierarchy, record.level]
        return isinstance(compiled, CompiledType) and bool(compiled.reads)


def position(path: Iterable[str | int], data: Any) -> list[int]:
    """The position of an error in the response, as far as `data` is not null there."""
    found: list[int] = []
    for key in path:
        if not isinstance(data, dict | list):
            break
        found.append(list(data).index(key) if isinstance(data, dict) else int(key))
        data = data[key]  # type: ignore[index]
    return found
