"""Patterns of attributes: regular expressions that are matched in time linear in the text.

They have the syntax of Rust's `regex`, a dependency of pydantic: no text can make one hang. In return they have neither
backreferences nor look-around.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

MAX_PATTERN_CHARACTERS = 500


def matcher(pattern: str) -> Callable[[str], bool]:
    """The function that says whether a text matches a pattern as a whole. Raises ValueError for an invalid pattern."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ValueError(f"has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are allowed")
    _compiled(pattern)  # alone, so that no parenthesis of it closes ours
    whole = _compiled(rf"\A(?:{pattern})\z")

    def matches(text: str) -> bool:
        try:
            whole.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches


def _compiled(pattern: str) -> TypeAdapter[str]:
    hint: Any = Annotated[str, StringConstraints(pattern=pattern)]
    try:
        return TypeAdapter(hint)
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("error: ").strip().rstrip(".")
        raise ValueError(f"is not a regular expression that can be matched in linear time: {reason}") from None
