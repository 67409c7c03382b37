"""How Clade's fields are made for Strawberry, which usually reads them from annotations in a class body.

Here types differ from hierarchy to hierarchy, so a field is given its types as values.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import strawberry
from strawberry.types.field import StrawberryField

REQUIRED = inspect.Parameter.empty


def argument(name: str, kind: Any, description: str, *, default: Any = strawberry.UNSET) -> inspect.Parameter:
    """One argument of a field, by its name in the schema; it is optional unless `default` is REQUIRED."""
    return inspect.Parameter(
        f"{name}_",
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, strawberry.argument(name=name, description=description)],
    )


def field(
    resolve: Callable[..., Any],
    returns: Any,
    description: str,
    *arguments: inspect.Parameter,
    name: str | None = None,
    planned: bool = True,
) -> StrawberryField:
    """A field that `resolve(root, info, **arguments)` answers; argument names end in `_` there.

    Plans know only leaves and the relations between nodes; whatever else leads to nodes is not `planned`.
    """

    def answer(root: Any, info: Any, **given: Any) -> Any:
        return resolve(root, info, **given)

    if planned:
        answer.resolve = resolve  # type: ignore[attr-defined]  # plans find it here
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [inspect.Parameter("root", plain), inspect.Parameter("info", plain, annotation=strawberry.Info)]
    answer.__signature__ = inspect.Signature([*taken, *arguments], return_annotation=returns)  # type: ignore[attr-defined]
    made: StrawberryField = strawberry.field(resolver=answer, description=description, name=name)
    return made


def class_of(name: str, fields: dict[str, StrawberryField], *bases: type) -> type:
    """A class with these fields, ready to become a Strawberry type."""
    return type(name, bases, dict(fields))
