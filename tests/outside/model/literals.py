"""GraphQL literals of Python values."""

import json
from typing import Any

from tests.outside.model.conditions import Word


def literal(value: Any) -> str:
    """A value as it is written in a document."""
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())


def arguments(given: dict[str, Any]) -> str:
    """Arguments in brackets, or nothing."""
    return f"({', '.join(f'{name}: {literal(value)}' for name, value in given.items())})" if given else ""
