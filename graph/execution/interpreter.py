"""Interpreter: graphql-core's executor as Strawberry sets it up, with budgets, and yielding to the event loop.

It executes what is not compiled: mutations, the fields of Query that a plan leaves out, and queries in which a plan met
an error. Leaves are written by the functions that plans use, which take a fifth of the time of a resolver call. The
arguments of a field of nodes are coerced once for all of its parents, since each may have long lists.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Self, cast

from graphql import (
    GraphQLError,
    GraphQLObjectType,
    default_field_resolver,
    default_type_resolver,
    get_named_type,
    is_leaf_type,
    is_non_null_type,
    is_object_type,
)
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.values import VariableValues, get_argument_values
from graphql.pyutils import Path
from graphql.pyutils.gather_with_cancel import gather_with_cancel
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from graph.errors import MAX_ERRORS_PER_CODE, code_of, without_frames
from graph.execution.json_writers import LeafField
from graph.operation.selection import Grouped, SelectedFields
from graph.types.fields import Resolver, resolver_of
from graph.types.search import SearchField
from resolvers.lists.arguments import RelationKind
from resolvers.session.budget import RELATION_FIELDS, Budget
from store.concurrency import is_slice_over, yield_to_loop

ABOVE = frozenset((RelationKind.PARENT.value, RelationKind.ANCESTORS.value))
OBJECTS = 16  # completed between two looks at the clock

Leaf = Callable[[Any], Any]


@dataclass(frozen=True)
class Resolution:
    """How a field is resolved without Strawberry: its definition, its resolver, and its arguments or their error."""

    definition: Any
    resolve: Resolver
    arguments: Mapping[str, Any] | GraphQLError


class Executor(StrawberryGraphQLCoreExecutionContext):
    """One execution. Of the `Context` it uses the budget of the request, and the counter `errors_left_out` and the set
    `unfinished`, which it fills.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._budget: Budget = self.context_value.request.budget
        self._roots = {self.schema.query_type, self.schema.mutation_type, self.schema.subscription_type}
        self._writing = {self.schema.mutation_type, self.schema.subscription_type}
        self._fields: dict[tuple[GraphQLObjectType, int], tuple[Grouped, int, dict[str, Leaf]]] = {}
        self._resolutions: dict[tuple[GraphQLObjectType, int], Resolution | None] = {}
        self._errors: Counter[str] = Counter()
        self._objects = 0
        self.is_over = False  # the time slice, when it was looked at last

    @classmethod
    def of_query(cls, fields: SelectedFields, variables: VariableValues, context: Any, **options: Any) -> Self:
        """The execution of some fields of Query, with variables that are coerced already."""
        definitions = {name: one.definition for name, one in fields.fragments.items()}
        resolvers = default_field_resolver, default_type_resolver, default_field_resolver
        document = fields.schema, definitions, fields.fragments
        return cls(*document, None, context, fields.operation, variables, *resolvers, **options)

    async def execute_root(self, grouped: Grouped) -> dict[str, Any] | None:
        """The values of fields of Query; None where one that may not be null has failed. `collected_errors` has their
        errors. Raises ResponseTooLarge.
        """
        try:
            found = self.execute_fields(cast(GraphQLObjectType, self.schema.query_type), None, None, grouped, None)
            values: dict[str, Any] = await found if self.is_awaitable(found) else found
        except GraphQLError as error:
            self.collected_errors.add(error, None)
            return None
        if (refusal := self._budget.refusal) is not None:
            raise refusal
        return values

    # -- objects -------------------------------------------------------------------------------------------------------

    def execute_fields(
        self, parent_type: GraphQLObjectType, source_value: Any, path: Path | None, grouped_field_set: Any, context: Any
    ) -> Any:
        """The values of an object's fields: leaves at once, the others by graphql-core."""
        _, count, leaves = self._fields_of(parent_type, grouped_field_set)
        self._budget.spend_fields(count)
        self._objects += 1
        if not leaves:
            return super().execute_fields(parent_type, source_value, path, grouped_field_set, context)
        values: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, details in grouped_field_set.items():
            values[name] = None
            if (leaf := leaves.get(name)) is not None:
                try:
                    values[name] = leaf(source_value)
                    continue
                except Exception:  # noqa: S110 - graphql-core resolves the field again, and locates its error
                    pass
            others[name] = details
        self._budget.spend_bytes(sum([len(value) for value in values.values() if type(value) is str]))
        if not others:
            return values
        found = super().execute_fields(parent_type, source_value, path, others, context)
        if self.is_awaitable(found):
            return _merged(values, found)
        values.update(cast(dict[str, Any], found))
        return values

    def _fields_of(self, parent_type: GraphQLObjectType, grouped: Grouped) -> tuple[Grouped, int, dict[str, Leaf]]:
        """The selected fields of an object, what they count as in the budget, and the functions of the leaves."""
        key = parent_type, id(grouped)
        found = self._fields.get(key)
        if found is None:
            leaves: dict[str, Leaf] = {}
            count = 0
            for name, details in grouped.items():
                field_name = details[0].node.name.value
                definition = self.schema.get_field(parent_type, field_name)
                leaf = None if parent_type in self._roots else self._leaf(name, definition, details[0])
                count += _weight(field_name, definition) if leaf is None else 1
                if leaf is not None:
                    leaves[name] = leaf
            found = self._fields[key] = grouped, count, leaves  # it keeps `grouped` alive, so that its id stays unique
        return found

    def _leaf(self, name: str, definition: Any, details: FieldDetails) -> Leaf | None:
        """The function of a leaf's value; None for other fields, and for those that graphql-core has to resolve."""
        if definition is None or not is_leaf_type(get_named_type(definition.type)):
            return None
        resolve = resolver_of(definition)
        if resolve is None or iscoroutinefunction(resolve):
            return None
        arguments = self._arguments(definition, details)
        if isinstance(arguments, GraphQLError):
            return None
        leaf = LeafField(name, definition.type, resolve)
        return lambda record: leaf.resolved(record, arguments)

    # -- fields --------------------------------------------------------------------------------------------------------

    def execute_field(
        self, parent_type: GraphQLObjectType, source: Any, details: Any, path: Path, position_context: Any
    ) -> Any:
        """The value of a field as graphql-core completes it; the resolver of a field of nodes is called directly."""
        found = self._resolution(parent_type, details[0])
        if found is None:
            return super().execute_field(parent_type, source, details, path, position_context)
        kind = found.definition.type
        info = self.build_resolve_info(found.definition, [one.node for one in details], parent_type, path)
        try:
            if isinstance(found.arguments, GraphQLError):
                raise found.arguments
            result = found.resolve(source, info, **found.arguments)
            if self.is_awaitable(result):
                return self.complete_awaitable_value(kind, details, info, path, result, position_context)
            value = self.complete_value(kind, details, info, path, result, position_context)
        except Exception as error:
            self.handle_field_error(error, kind, details, path)
            return None
        return self._located(value, kind, details, path) if self.is_awaitable(value) else value

    async def _located(self, value: Awaitable[Any], kind: Any, details: Any, path: Path) -> Any:
        try:
            return await value
        except Exception as error:
            self.handle_field_error(error, kind, details, path)
            return None

    def _resolution(self, parent_type: GraphQLObjectType, details: FieldDetails) -> Resolution | None:
        """How a field is resolved; None for one that graphql-core has to resolve, such as a mutation: Strawberry makes
        its inputs.
        """
        key = parent_type, id(details.node)  # the document outlives the execution
        if key not in self._resolutions:
            definition = self.schema.get_field(parent_type, details.node.name.value)
            resolve = None if definition is None or parent_type in self._writing else resolver_of(definition)
            self._resolutions[key] = resolve and Resolution(definition, resolve, self._arguments(definition, details))
        return self._resolutions[key]

    def _arguments(self, definition: Any, details: FieldDetails) -> Mapping[str, Any] | GraphQLError:
        try:
            return get_argument_values(definition, details.node, self.variable_values) if definition.args else {}
        except GraphQLError as error:
            return error.with_traceback(None)

    # -- lists ---------------------------------------------------------------------------------------------------------

    def complete_iterable_value(
        self, item_type: Any, field_details_list: Any, info: Any, path: Path, items: Any, position_context: Any
    ) -> Any:
        """The values of a list's items, or a coroutine for them where the time slice is used up."""
        position = item_type, field_details_list, info
        listing = _ListCompletion(self, position, path, enumerate(items), position_context)
        if self.is_over or not listing.advance():
            self.context_value.unfinished.add(listing)
            return listing.rest()
        return listing.gathered() if listing.waiting else listing.values

    def complete_awaitable_value(
        self, return_type: Any, field_details_list: Any, info: Any, path: Path, result: Any, position_context: Any
    ) -> Any:
        # Where many wait for one batch, all of them resume in the same iteration of the event loop.
        result = self._awaited(result)
        return super().complete_awaitable_value(return_type, field_details_list, info, path, result, position_context)

    async def _awaited(self, result: Any) -> Any:
        value = await result
        if self.is_due():
            waiting = _WaitingValue()
            self.context_value.unfinished.add(waiting)
            await yield_to_loop()
            self.is_over = False
        return value

    def is_due(self) -> bool:
        """Whether to yield to the event loop; the clock is read once in some objects."""
        if self._objects < OBJECTS:
            return False
        self._objects = 0
        self.is_over = is_slice_over()
        return self.is_over

    @property
    def is_refused(self) -> bool:
        """Whether a budget is exceeded, so that nothing else has to be completed."""
        return self._budget.refusal is not None

    # -- errors --------------------------------------------------------------------------------------------------------

    def handle_field_error(self, raw_error: Exception, return_type: Any, field_details_list: Any, path: Path) -> None:
        """Report an error with its path, the first ones of each code; the others are counted."""
        without_frames(raw_error)
        if self.is_refused:  # whatever is null: there will be no response
            return
        if not is_non_null_type(return_type):
            code = code_of(raw_error)
            self._errors[code] += 1
            if self._errors[code] > MAX_ERRORS_PER_CODE:
                self.context_value.errors_left_out[code] += 1
                return
        super().handle_field_error(raw_error, return_type, field_details_list, path)


class _WaitingValue:
    """A value that waits for the event loop; it is unfinished as long as this object lives."""


@dataclass(eq=False)
class _ListCompletion:
    """A list whose items are being completed: `values` so far, and `waiting`, the indices of awaitable ones."""

    executor: Executor
    position: tuple[Any, Any, Any]
    """The type of the items, the merged fields and the resolve info."""
    path: Path
    items: Iterator[Any]
    context: Any
    values: list[Any] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def advance(self) -> bool:
        """Complete items until the time slice is used up; returns whether all are complete."""
        executor, path, context = self.executor, self.path, self.context
        try:
            for index, item in self.items:
                if executor.is_refused:
                    break
                item_path = path.add_key(index, None)
                if executor.complete_list_item_value(item, self.values, *self.position, item_path, context):
                    self.waiting.append(index)
                if executor.is_due():
                    return False
        except Exception:  # awaitables that were started have to end, as in graphql-core
            executor.settle_in_background([self.values[index] for index in self.waiting])
            raise
        return True

    async def rest(self) -> list[Any]:
        is_done = False
        while not is_done:
            await yield_to_loop()
            self.executor.is_over = False
            is_done = self.advance()
        self.executor.context_value.unfinished.discard(self)
        return await self.gathered()

    async def gathered(self) -> list[Any]:
        found = await gather_with_cancel(*[self.values[index] for index in self.waiting])
        for index, value in zip(self.waiting, found, strict=True):
            self.values[index] = value
        return self.values


def _weight(name: str, definition: Any) -> int:
    """The count of a field in the budget: RELATION_FIELDS for one that leads to nodes or lists them, else 1."""
    kind = None if definition is None else get_named_type(definition.type)
    is_list = is_object_type(kind) and kind.name.endswith("Connection")
    leads_on = name in ABOVE or is_list or (definition is not None and isinstance(resolver_of(definition), SearchField))
    return RELATION_FIELDS if leads_on else 1


async def _merged(values: dict[str, Any], others: Any) -> dict[str, Any]:
    values.update(await others)
    return values
