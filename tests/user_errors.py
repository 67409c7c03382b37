"""User errors of mutations in tests that ask for something else: each payload is asked for them as well."""

from typing import Any

from graphql import FieldNode, GraphQLSyntaxError, OperationDefinitionNode, OperationType, parse

ALIAS = "allFaults"
FAULTS = f" {ALIAS}: userErrors {{ code message field rule edit }} "


def with_user_errors(document: str) -> str:
    """The document, whose mutations ask for their user errors, under an alias; any other one as it is."""
    if "mutation" not in document:
        return document
    try:
        definitions = parse(document).definitions
    except GraphQLSyntaxError:
        return document
    ends = [
        field.selection_set.loc.end - 1
        for operation in definitions
        if isinstance(operation, OperationDefinitionNode) and operation.operation is OperationType.MUTATION
        for field in operation.selection_set.selections
        if isinstance(field, FieldNode) and field.selection_set is not None and field.selection_set.loc is not None
    ]
    for end in sorted(ends, reverse=True):
        document = document[:end] + FAULTS + document[end:]
    return document


def take_user_errors(data: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The user errors in the data of a response, which are removed from it."""
    payloads = [payload for payload in (data or {}).values() if isinstance(payload, dict)]
    return [fault for payload in payloads for fault in payload.pop(ALIAS, [])]
