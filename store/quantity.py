"""A number of things, as a sentence tells it."""


def quantity(number: int, thing: str, things: str = "") -> str:
    """`1 node`, `2,500 nodes`; `things` where that is not the singular with an s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
