"""Items of a foreign table that an import leaves out: deleted but still stored, expired, or skipped by an option."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from store.errors import BadInput, quantity, shorten
from store.transfer.formats.source import Doubt, Guess

DELETED = "_deleted"
KEEP = "--keep-deleted imports such items."
USUAL_EXPIRY = ("_ttl", "ttl", "expires", "expires_at", "expiresAt", "expireAt")
FIVE_YEARS = 5 * 366 * 86_400

JsonItem = Mapping[str, Any]  # in DynamoDB JSON


@dataclass
class LeftOut:
    """Decides which items an import leaves out, and counts them.

    Left out are items of DataStore of AWS Amplify that are deleted (`_deleted`), those that are past their time in the
    attribute `expiry` at the time `at`, in epoch seconds, and those with one of the values of `skip`, pairs of an
    attribute and its value as text. With `keep_deleted` only the last. Where `expiry` is None, nobody knows it. Some
    item must have each of the attributes that are `required`, as a number that of expiry.
    """

    skip: Sequence[tuple[str, str]] = ()
    expiry: str | None = ""
    at: float = 0.0
    keep_deleted: bool = False
    required: Collection[str] = ()

    def __post_init__(self) -> None:
        self._times: Sequence[str] = USUAL_EXPIRY if self.expiry is None else (self.expiry,)
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, before items are read again."""
        self._deleted = 0
        self._expired: Counter[str] = Counter()
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._absent = {*self.required}

    def keep_unknown(self) -> None:
        """Keep all items where nobody knows which attribute is that of expiry."""
        if self.expiry is None:
            self.expiry, self._times = "", ()

    def skips(self, item: JsonItem) -> bool:
        """Whether an item is skipped by an option."""
        if self._absent:
            self._absent -= {name for name, value in item.items() if name != self.expiry or _number(value)}
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
        past = [name for name in self._times if name in item and _is_past(item[name], self.at)]
        self._expired.update(past)
        return bool(past) and self.expiry is not None

    def ask(self) -> None:
        """Raise Doubt if nobody knows the time of expiry, and items are past one in an attribute with a usual name."""
        for name, count in self._expired.items() if self.expiry is None else ():
            seen = f'{quantity(count, "item")} may have expired by "{name}"; the time to live of the table is unknown'
            raise Doubt(Guess.EXPIRY, f"{seen}. --ttl {name} leaves them out, --keep-deleted imports them")

    def check(self) -> None:
        """Raise BadInput for a required attribute that no item had."""
        for name in sorted(self._absent):
            what, option = ("a number in", "--ttl") if name == self.expiry else ("the attribute", "--skip")
            raise BadInput(f'No item has {what} "{shorten(name)}" of {option}.')

    def sentences(self) -> list[str]:
        """What was left out, and the option that imports it."""
        found: list[str] = []
        if self._deleted:
            found.append(f"{_items(self._deleted)} deleted ({DELETED}): left out; {KEEP}")
        if self.expiry and self._expired:
            name, time = shorten(self.expiry), datetime.fromtimestamp(self.at, UTC)
            past = f'{_items(self._expired[self.expiry])} past the time of expiry in "{name}"'
            found.append(f"{past}, as of {time:%Y-%m-%d %H:%M} UTC: left out; {KEEP}")
        for name, value in self.skip:
            pair, count = f"{shorten(name)}={shorten(value)}", self._skipped[name, value]
            is_left_out = f"{quantity(count, 'item')} with {pair}: left out by --skip."
            found.append(is_left_out if count else f"No item has {pair} of --skip.")
        return found


def _is_past(value: Any, at: float) -> bool:
    """Whether an item with this value in the attribute of its time to live is expired at a time in epoch seconds.

    DynamoDB may keep such items for some days. It expires numbers of epoch seconds only, and none that is older than
    five years, as "Time to Live" of its Developer Guide says.
    """
    number = _number(value)
    return number is not None and at - FIVE_YEARS < number < at


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
