"""Plan cache: compiled plans by operation and deciding variables, kept with the parsed document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from graphql import GraphQLSchema, OperationDefinitionNode
from graphql.execution.values import VariableValues, get_variable_values

from graph.compiler.interpreted_fields import has_field, interpreted_fields
from graph.compiler.leaf_codegen import UnsupportedByPlan
from graph.compiler.operation_plan import FoundRoot, OperationPlan
from graph.compiler.plan_variables import deciding_variables, varying_fields
from graph.operation.arguments import resolver_arguments
from graph.operation.document_cache import ParsedDocument
from graph.operation.graphql_request import GraphQLRequest
from graph.operation.lookahead import LookAhead
from graph.operation.selected_fields import SelectedFields, Types
from graph.types.root_fields import Target
from resolvers.lookup import Lookup
from resolvers.planning.relations import Selection
from store.bounded_cache import BoundedCache

MAX_SEVERAL_CHARACTERS = 300_000
"""Maximum characters of the documents that have several plans, counted once for each plan, with the deciding values:
40 MB in all.
"""

CHARACTER_BYTES = 130
"""Memory of a plan for each character of its document."""

MAX_BOUND_CHARACTERS = 500
"""Maximum characters of a document with variables in its lists, for its bound plan to be cached. Measured were 25 bytes
a character for each request.
"""


_NO_VARIABLES = VariableValues({}, {})


@dataclass(frozen=True, eq=False, slots=True)
class RootLookup:
    """The lookups of one field of Query: its arguments, and the targets that they name."""

    root: FoundRoot
    arguments: Mapping[str, Any]
    targets: Sequence[Target]

    @classmethod
    def of(cls, root: FoundRoot, variables: VariableValues) -> "RootLookup":
        arguments = resolver_arguments(root.definition, root.node, variables)
        return cls(root, arguments, root.resolve.targets(arguments))


class BoundPlan:
    """A plan with the variables of one request: its look-ahead, and all that it looks up."""

    def __init__(self, plan: OperationPlan, variables: VariableValues) -> None:
        """Raises GraphQLError where the variables do not fit, BadInput for invalid arguments."""
        self.plan = plan
        self.look_ahead = plan.look_ahead or LookAhead(plan.fields, variables)
        self.roots = [RootLookup.of(root, variables) for root in plan.found]
        self.lookups: list[tuple[Lookup, Selection]] = []
        for lookup in self.roots:
            selection = self.look_ahead.selection(lookup.root.position.selected)
            self.lookups += [
                (target, selection.expecting(field.level)) for field, target in lookup.targets if target is not None
            ]


def _is_small(bound: BoundPlan, request: GraphQLRequest) -> bool:
    """Whether it takes little memory beside the plan, also with a thousand requests of one each."""
    return bound.plan.look_ahead is not None or len(request.query) <= MAX_BOUND_CHARACTERS


class PlanCache:
    """Plans by operation and by the values of the variables in directives, kept with the document."""

    def __init__(self, schema: GraphQLSchema, types: Types, *, keep: int = 16) -> None:
        """At most `keep` plans of one document."""
        self._schema = schema
        self._types = types
        self._keep = keep
        self._interpreted = interpreted_fields(schema, types)
        self._several: WeakSet[ParsedDocument] = WeakSet()
        self._characters = 0

    def get(
        self, document: ParsedDocument, operation: OperationDefinitionNode, request: GraphQLRequest
    ) -> BoundPlan | None:
        """The plan of an operation with its coerced variables; None where the operation has to be interpreted."""
        found = document.bound.get(request)
        if found is None:
            found = self._bind(document, operation, request)
            # Where variables decide which plan it is, more than `keep` plans would be held.
            if found is not None and not document.deciding and _is_small(found, request):
                document.bound[request] = found
        return found

    def _bind(
        self, document: ParsedDocument, operation: OperationDefinitionNode, request: GraphQLRequest
    ) -> BoundPlan | None:
        variables = _NO_VARIABLES
        if operation.variable_definitions:
            coerced = get_variable_values(self._schema, operation.variable_definitions, request.variables or {})
            if isinstance(coerced, list):
                return None
            variables = coerced
        if document.deciding is None:
            document.deciding = deciding_variables(document.document)
        values = [repr(variables.coerced.get(name)) for name in document.deciding]
        key = (operation.name.value if operation.name else "", *values)
        plans = document.plans
        if plans is None:
            size = CHARACTER_BYTES * len(request.query)
            plans = document.plans = BoundedCache("plans", self._keep, bytes_each=size)
        if key in plans:
            plan = plans.get(key)
        else:
            plan = self._compile(document, operation, variables)
            plans.put(key, plan)
            self._limit_several(document, sum(map(len, key)) + len(request.query))
        return None if plan is None else BoundPlan(plan, variables)

    def _compile(
        self, document: ParsedDocument, operation: OperationDefinitionNode, variables: VariableValues
    ) -> OperationPlan | None:
        if has_field(document.document, operation, variables, self._interpreted):
            return None
        fields = SelectedFields(self._schema, self._types, document.document.definitions, operation, variables)
        try:
            return OperationPlan(fields, variables, varying_fields(document.document))
        except UnsupportedByPlan:
            return None

    def _limit_several(self, document: ParsedDocument, characters: int) -> None:
        """Count a plan of a document that can have several; past the limit the plans of all these are dropped."""
        if document.deciding:
            self._several.add(document)
            self._characters += characters
        if self._characters > MAX_SEVERAL_CHARACTERS:
            for several in self._several:
                if several.plans is not None:
                    several.plans.clear()
            self._several.clear()
            self._characters = 0
