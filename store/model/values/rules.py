"""Rules of attributes: conditions on values that are written. Stored values that break a rule can still be read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from store.model.values.kinds import Kind, Value, ordered
from store.text import shorten


class BrokenRule(NamedTuple):
    """A rule by its name, and how a value breaks it: the end of a sentence about the value."""

    rule: str
    words: str


@dataclass(frozen=True)
class Rules:
    """The rules of an attribute, for each value of a list; None and "" are none.

    `minimum` and `maximum` are inclusive and in canonical form. `pattern` is the text of a regular expression,
    `matches` says whether a text matches it as a whole, in time linear in the text.
    """

    required: bool = False
    minimum: Value = None
    maximum: Value = None
    pattern: str = ""
    matches: Callable[[str], bool] | None = field(default=None, compare=False)

    def broken(self, kind: Kind, value: Value) -> BrokenRule | None:
        """The rule that a valid value breaks; None where it breaks none."""
        if self.minimum is not None and ordered(kind, value) < ordered(kind, self.minimum):  # type: ignore[operator]
            return BrokenRule("minimum", f"is less than the minimum {self.minimum}")
        if self.maximum is not None and ordered(kind, value) > ordered(kind, self.maximum):  # type: ignore[operator]
            return BrokenRule("maximum", f"is more than the maximum {self.maximum}")
        if self.matches is not None and isinstance(value, str) and not self.matches(value):
            return BrokenRule("pattern", f"does not match the pattern {shorten(self.pattern, 200)}")
        return None

    def words(self) -> str:
        """The rules as sentences for a description, with a space before them; empty without rules."""
        parts = [
            " Required for a new node." if self.required else "",
            f" Minimum {self.minimum}." if self.minimum is not None else "",
            f" Maximum {self.maximum}." if self.maximum is not None else "",
            f" Matches {self.pattern}" if self.pattern else "",
        ]
        return "".join(parts)


NO_RULES = Rules()
