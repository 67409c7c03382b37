"""Items of a foreign table that an import leaves out: deleted but still stored, expired, or skipped by an option."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from store.errors import BadInput, quantity, shorten

DELETED = "_deleted"
USUAL_EXPIRY = ("_ttl", "ttl", "expires", "expires_at", "expiresAt", "expireAt")
SECONDS = range(946_684_800, 4_102_444_800)  # epoch seconds from 2000 to 2100
FIVE_YEARS = 5 * 366 * 86_400

JsonItem = Mapping[str, Any]  # in DynamoDB JSON


@dataclass
class LeftOut:
    """Decides which items an import leaves out, and counts them.

    Left out are items of DataStore of AWS Amplify that are deleted (`_deleted`), those that are past their time in an
    attribute of `expiry` at the time `at`, in epoch seconds, and those with one of the values of `skip`, pairs of an
    attribute and its value as text. With `keep_deleted` only the last. `required` are attributes of which some item
    must have a value, those of expiry a number, each with the option that names it.
    """

    skip: Sequence[tuple[str, str]] = ()
    expiry: Collection[str] = ()
    at: float = 0.0
    keep_deleted: bool = False
    required: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, before items are read again."""
        self._deleted = 0
        self._expired: Counter[str] = Counter()
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._absent = {*self.required}

    def skips(self, item: JsonItem) -> bool:
        """Whether an item is skipped by an option."""
        if self._absent:
            self._absent -= {name for name, value in item.items() if name not in self.expiry or _number(value)}
        for pair in self.skip:
            if _text(item.get(pair[0])) == pair[1]:
                self._skipped[pair] += 1
                return True
        return False

    def is_gone(self, item: JsonItem) -> bool:
        """Whether an item is deleted or expired, so that its node is no more."""
        if self.keep_deleted:
            return False
        if DELETED in item and _text(item[DELETED]) in ("true", "1"):
            self._deleted += 1
            return True
        for name in self.expiry:
            if name in item and is_past(item[name], self.at):
                self._expired[name] += 1
                return True
        return False

    def check(self) -> None:
        """Raise BadInput for a required attribute that no item had."""
        for name in sorted(self._absent):
            what = "a number in" if name in self.expiry else "the attribute"
            raise BadInput(f'No item has {what} "{shorten(name)}" of {self.required[name]}.')

    def sentences(self) -> list[str]:
        """What was left out, and the option that imports it."""
        found = [f"{_items(self._deleted)} deleted ({DELETED}): left out"] if self._deleted else []
        time = datetime.fromtimestamp(self.at, UTC)
        found += [
            f'{_items(count)} past the time of expiry in "{shorten(name)}", as of {time:%Y-%m-%d %H:%M} UTC: left out'
            for name, count in self._expired.items()
        ]
        return [
            *(f"{sentence}; --keep-deleted imports such items." for sentence in found),
            *(
                f"{quantity(count, 'item')} with {shorten(name)}={shorten(value)}: left out by --skip."
                if (count := self._skipped[name, value])
                else f"No item has {shorten(name)}={shorten(value)} of --skip."
                for name, value in self.skip
            ),
        ]


def is_past(value: Any, at: float) -> bool:
    """Whether an item with this value in the attribute of its time to live is expired at a time in epoch seconds.

    DynamoDB may keep such items for some days. It expires numbers of epoch seconds only, and none that is older than
    five years, as "Time to Live" of its Developer Guide says.
    """
    number = _number(value)
    return number is not None and at - FIVE_YEARS < number < at


def is_time(value: Any) -> bool:
    """Whether a value is a number that may be a time in epoch seconds."""
    number = _number(value)
    return number is not None and SECONDS.start <= number < SECONDS.stop


def _number(value: Any) -> float | None:
    content = value.get("N") if isinstance(value, dict) else None
    try:
        return float(content) if isinstance(content, str) else None
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    """A text, a number or a truth value as text, None for any other value."""
    for kind in ("S", "N", "BOOL"):
        if isinstance(value, dict) and kind in value:
            return str(value[kind]).lower() if kind == "BOOL" else value[kind]
    return None


def _items(count: int) -> str:
    return f"{quantity(count, 'item')} {'is' if count == 1 else 'are'}"
