"""Edits outside of GraphQL: JSON values in the form of the inputs of several edits. graphql-core coerces them as it
does variables, so that names, scalars, enums and defaults are those of the API.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import strawberry
from graphql import GraphQLError, GraphQLObjectType
from graphql.utilities import coerce_input_value, validate_input_value
from strawberry.schema.config import StrawberryConfig

from graph.hierarchies.node import Node
from graph.hierarchies.registry import camel
from graph.operation.selection import core_schema
from graph.types.fields import SCALARS, argument, field, object_type
from graph.types.mutation_inputs import MutationInputs, asked_json
from graph.types.user_errors import user_errors
from store.errors import BadInput, CladeError, Fault, Faults
from store.writing.edit import Edit
from store.writing.edit_many import MAX_EDITS, EditMany

MAX_TOLD = 10  # faults of one value


class ReadEdit(NamedTuple):
    """One or several edits, their inputs as JSON, which are the same for the same request, and for each the field of
    `attributes` that it gives.
    """

    edit: Edit | EditMany
    asked: Any
    members: Sequence[str | None]


class EditReader:
    """Reads the edits of one hierarchy."""

    def __init__(self, cls: type[Node]) -> None:
        self._inputs = MutationInputs(cls, cls.definition().labelled(camel))
        one = argument("edit", self._inputs.edit, "An edit.")
        query = object_type("Query", "What a schema needs.", {"edit": field(None, bool, "An edit.", one)})
        core = core_schema(strawberry.Schema(query=query, config=StrawberryConfig(scalar_map=SCALARS)))
        self._type: Any = cast(GraphQLObjectType, core.query_type).fields["edit"].args["edit"].type

    def read(self, value: Any) -> ReadEdit:
        """The edit that a value is, or the several that a list is. Raises BadInput with all that is wrong with it."""
        is_list = isinstance(value, list)
        edits = value if is_list else [value]
        if len(edits) > MAX_EDITS:  # of which none is read
            return ReadEdit(self._inputs.parse_many(edits), None, [])
        faults: list[str] = []
        edits = [self._coerced(one, place if is_list else None, faults) for place, one in enumerate(edits)]
        if faults:
            raise BadInput(_joined(faults))
        parse = self._inputs.parse_many if is_list else self._inputs.parse
        return ReadEdit(parse(edits), [is_list, asked_json(edits)], [self._inputs.member_of(one) for one in edits])

    def told(self, error: CladeError, read: ReadEdit) -> str:
        """The sentences of the faults of an edit, each with its place; or of another error, which has none."""
        if not isinstance(error, Fault | Faults):
            return str(error)
        return _joined([_placed(one.edit, one.field or (), one.message) for one in user_errors(error, read.members)])

    def _coerced(self, value: Any, edit: int | None, faults: list[str]) -> Any:
        """The value as an edit; with faults it is none."""
        try:
            validate_input_value(value, self._type, partial(_note, faults, edit))
            return None if faults else coerce_input_value(value, self._type)
        except GraphQLError as error:  # of @oneOf, which only the coercion knows
            _note(faults, edit, error, [])
        return None


def _note(faults: list[str], edit: int | None, error: GraphQLError, path: Sequence[str | int]) -> None:
    """Add a fault of a value, without the verb in its path; beyond those that are told the value is read no further."""
    faults.append(_placed(edit, map(str, path[1:]), error.message))
    if len(faults) > MAX_TOLD:
        raise BadInput(_joined(faults))


def _placed(edit: int | None, path: Iterable[str], message: str) -> str:
    places = [*([] if edit is None else [f"edit {edit}"]), *filter(None, [".".join(path)])]
    end = "" if message.endswith((".", "?")) else "."
    return f"{', '.join(places)}: {message}{end}" if places else f"{message}{end}"


def _joined(faults: Sequence[str]) -> str:
    more = ["There are more faults."] if len(faults) > MAX_TOLD else []
    return " ".join([*faults[:MAX_TOLD], *more])
