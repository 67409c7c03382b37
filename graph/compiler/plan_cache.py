"""The plans of operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from graphql import GraphQLSchema, OperationDefinitionNode
from graphql.execution.values import VariableValues, get_variable_values

from graph.compiler.interpreted_fields import has_field, interpreted_fields
from graph.compiler.leaf_codegen import UnsupportedByPlan
from graph.compiler.operation_plan import FoundRoot, OperationPlan, Relations
from graph.compiler.plan_variables import arguments_of, deciding_variables
from graph.operation.document_cache import ParsedDocument
from graph.operation.graphql_request import GraphQLRequest
from graph.operation.lookahead import Types
from graph.types.root_fields import Target
from resolvers.lookup import Lookup
from resolvers.planning.relations import Selection
from store.bounded_cache import BoundedCache

MAX_SEVERAL_CHARACTERS = 300_000
"""Of the documents that have several plans, once for each, with the values that decide: 40 MB in all."""

CHARACTER_BYTES = 130
"""Of memory that a plan takes for each character of its document."""

MAX_BOUND_CHARACTERS = 500
"""Of a document whose lists have variables, if its plan is to be kept with them. Measured were 25 bytes a character for
each question.
"""


_NONE = VariableValues({}, {})


@dataclass(frozen=True, eq=False, slots=True)
class RootLookup:
    """What one field of Query looks up: its arguments, and what they mean."""

    root: FoundRoot
    arguments: Mapping[str, Any]
    targets: Sequence[Target]

    @classmethod
    def of(cls, root: FoundRoot, variables: VariableValues) -> "RootLookup":
        arguments = arguments_of(root.definition, root.details[0].node, variables)
        return cls(root, arguments, root.resolve.targets(arguments))


class BoundPlan:
    """A plan with the variables of one question: the relations that these make, and all that is to be looked up."""

    def __init__(self, plan: OperationPlan, variables: VariableValues) -> None:
        """Raises GraphQLError where the variables do not fit, BadInput where what they say means nothing."""
        self.plan = plan
        self.relations = plan.relations or Relations(variables)
        self.wanted = [RootLookup.of(root, variables) for root in plan.found]
        self.lookups: list[tuple[Lookup, Selection]] = []
        for wanted in self.wanted:
            selection = self.relations.selection(wanted.root.place)
            self.lookups += [
                (one, selection.expecting(field.level)) for field, one in wanted.targets if one is not None
            ]


def _is_small(bound: BoundPlan, question: GraphQLRequest) -> bool:
    """Whether it takes little beside the plan, also where a thousand questions have one each."""
    return bound.plan.relations is not None or len(question.query) <= MAX_BOUND_CHARACTERS


class PlanCache:
    """Plans by operation, and by the values of those variables that decide what a plan is; kept with the document."""

    def __init__(self, schema: GraphQLSchema, types: Types, *, keep: int = 16) -> None:
        """At most `keep` plans of one document."""
        self._schema = schema
        self._types = types
        self._keep = keep
        self._interpreted = interpreted_fields(schema, types)
        self._several: WeakSet[ParsedDocument] = WeakSet()
        self._characters = 0

    def get(
        self, prepared: ParsedDocument, operation: OperationDefinitionNode, question: GraphQLRequest
    ) -> BoundPlan | None:
        """The plan of an operation with its coerced variables; None where Strawberry has to answer."""
        found = prepared.bound.get(question)
        if found is None:
            found = self._bind(prepared, operation, question)
            # Where variables decide what a plan is, more than `keep` plans would be held.
            if found is not None and not prepared.deciding and _is_small(found, question):
                prepared.bound[question] = found
        return found

    def _bind(
        self, prepared: ParsedDocument, operation: OperationDefinitionNode, question: GraphQLRequest
    ) -> BoundPlan | None:
        variables = _NONE
        if operation.variable_definitions:
            coerced = get_variable_values(self._schema, operation.variable_definitions, question.variables or {})
            if isinstance(coerced, list):
                return None
            variables = coerced
        if prepared.deciding is None:
            prepared.deciding = deciding_variables(prepared.document)
        values = [repr(variables.coerced.get(name)) for name in prepared.deciding]
        key = (operation.name.value if operation.name else "", *values)
        plans = prepared.plans
        if plans is None:
            size = CHARACTER_BYTES * len(question.query)
            plans = prepared.plans = BoundedCache("plans", self._keep, bytes_each=size)
        if key in plans:
            plan = plans.get(key)
        else:
            plan = self._plan(prepared, operation, variables)
            plans.put(key, plan)
            self._limit_several(prepared, sum(map(len, key)) + len(question.query))
        return None if plan is None else BoundPlan(plan, variables)

    def _plan(
        self, prepared: ParsedDocument, operation: OperationDefinitionNode, variables: VariableValues
    ) -> OperationPlan | None:
        if has_field(prepared.document, operation, variables, self._interpreted):
            return None
        try:
            return OperationPlan(self._schema, self._types, prepared.document, operation, variables)
        except UnsupportedByPlan:
            return None

    def _limit_several(self, prepared: ParsedDocument, characters: int) -> None:
        """Count a plan of a document that can have several; past the limit the plans of all these are dropped."""
        if prepared.deciding:
            self._several.add(prepared)
            self._characters += characters
        if self._characters > MAX_SEVERAL_CHARACTERS:
            for one in self._several:
                if one.plans is not None:
                    one.plans.clear()
            self._several.clear()
            self._characters = 0
