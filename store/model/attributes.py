"""Attributes of a level: parsing, validation and rules of their values.

A stored value is JSON in the canonical form of its kind, see `store/model/values.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Self, cast

import orjson

from store.errors import MAX_FAULTS, BadInput, BadValue, FaultList, Rule, shorten, shown
from store.model.names import checked_names
from store.model.values import CODES as CODES
from store.model.values import COMPOUND as COMPOUND
from store.model.values import (
    CURRENCIES,
    INT64_BOUND,
    IS_CANONICAL,
    MAX_DECIMAL_DIGITS,
    MAX_URL_CHARACTERS,
    NO_RULES,
    PARSE,
    VALID,
    Rules,
    added,
    is_money,
    is_numeral,
    is_rounded,
    parse_money,
)
from store.model.values import EXACT_NUMBERS as EXACT_NUMBERS
from store.model.values import MAX_TEXT_CHARACTERS as MAX_TEXT_CHARACTERS
from store.model.values import NUMBERS as NUMBERS
from store.model.values import Kind as Kind
from store.model.values import Value as Value

MAX_JSON_CHARACTERS = 400_000  # of an object or a list of objects in a cell; no item holds more
_REFUSED = {
    Kind.TEXT: "is not a text",
    Kind.INT: "is not a whole number; write one like 12",
    Kind.LONG: "is not a whole number; write one like 12",
    Kind.FLOAT: "is not a number; write one like 12.5",
    Kind.DECIMAL: "is not a number; write one like 12.50",
    Kind.BOOLEAN: "is neither true nor false",
    Kind.DATE: "is not a date; write one like 2026-10-05",
    Kind.DATETIME: "is not a time with date and offset; write one like 2026-10-05T12:30:00Z",
    Kind.URL: "is not a web address; write one like https://example.com/a",
    Kind.MONEY: "is not an amount of money; write one like 12.50 EUR",
    Kind.LOCALIZED: 'is not texts by language; write them like {"de": "Guten Tag"}',
}
"""The ends of sentences about values that are none of their kind."""

_OUT_OF_RANGE = {
    Kind.INT: f"is out of range; write {-(2**31)} to {2**31 - 1}",
    Kind.LONG: f"is out of range; write {-INT64_BOUND} to {INT64_BOUND - 1}",
    Kind.FLOAT: "is out of range; write 0, or 1e-130 to below 1e126 with either sign",
    Kind.DECIMAL: f"is out of range; write at most {MAX_DECIMAL_DIGITS} digits",
}
"""The same about numbers."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a level, beside those that every node has.

    `name` is snake_case, as in Python, files and the table. `many` makes it a list. `members` and `enum` are the values
    and the name of an enum, `parts` and `enum` the attributes and the name of a nested value. `max_length` is the
    maximum number of characters of a text, or of each in a list, when it is written; stored texts may be longer, and
    break the other `rules`. `default` is the value of a new node without one, in canonical form. `was` are its former
    names, under which values may be stored. With `search` its words are found by search, with `sortable` lists are
    ordered by it. `deprecated` says what to use instead; `tags`, `shareable` and `inaccessible` are directives of
    Federation. Each value of a `unique` one belongs to one node; where it is `disclosed`, all writers may learn
    that it is taken, and with `federation_key` other subgraphs name nodes by it. `renamed` is its name in messages,
    where that is another one.
    """

    name: str
    kind: Kind
    description: str
    many: bool = False
    members: frozenset[str] = frozenset()
    enum: str = ""
    max_length: int = MAX_TEXT_CHARACTERS
    search: bool = False
    rules: Rules = NO_RULES
    parts: "tuple[Attribute, ...]" = ()
    default: Value = field(default=None, hash=False)
    was: tuple[str, ...] = ()
    sortable: bool = True
    deprecated: str = ""
    tags: tuple[str, ...] = ()
    shareable: bool = False
    inaccessible: bool = False
    unique: bool = False
    disclosed: bool = False
    federation_key: bool = False
    renamed: str = ""

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.renamed or self.name

    def labelled(self, label: Callable[[str], str]) -> Self:
        """This attribute, whose messages name it and its parts so."""
        return replace(self, renamed=label(self.name), parts=tuple([one.labelled(label) for one in self.parts]))

    def without_rules(self) -> Self:
        """This attribute, for values that may be stored although they break its rules."""
        return replace(self, rules=NO_RULES, max_length=MAX_TEXT_CHARACTERS)

    def value_in(self, stored: Mapping[str, Value]) -> Value:
        """The value in stored attributes, under its name or else a former one; None without one."""
        if self.name in stored or not self.was:
            return stored.get(self.name)
        return next((stored[name] for name in self.was if name in stored), None)

    def change(self, value: object) -> Value:
        """A value from outside in canonical form, None to clear the attribute.

        Raises BadValue or Faults, with the attribute, the value and the rule in the message.
        """
        if self._is_canonical is not None and self._is_canonical(value, self.max_length):
            return cast(Value, value)
        if value is not None:
            return self.parse(value)
        if self.rules.required:
            raise self.lacking()
        return None

    @cached_property
    def _is_canonical(self) -> Callable[[object, int], bool] | None:
        """The function that recognizes canonical values, for attributes without other rules."""
        return None if self.many or self.rules != NO_RULES else IS_CANONICAL.get(self.kind)

    def parse(self, value: object) -> Value:
        """A value of a file or an argument in canonical form; text is parsed as the attribute's kind.

        Raises BadValue or Faults, with the attribute, the value and the rule in the message.
        """
        if not self.many:
            return self._parse_one(value)
        if isinstance(value, str):
            is_json = self.kind in COMPOUND and value.lstrip().startswith("[")
            value = self._json(value) if is_json else [part.strip() for part in value.split(";") if part.strip()]
        if not isinstance(value, list):
            raise BadValue(f"{self.label}: {shown(value)} is not a list.", Rule.TYPE)
        try:
            return [self._parse_one(element) for element in value]
        except BadInput:
            faults = FaultList()
            for place, element in enumerate(value):
                if len(faults.errors) <= MAX_FAULTS:  # one more, which says that these are not all
                    with faults.below(str(place)):
                        self._parse_one(element)
            raise faults.error() from None

    @property
    def takes_amounts(self) -> bool:
        """Whether an amount can be added to its value."""
        return self.kind in EXACT_NUMBERS and not self.many and not self.unique

    def plus(self, value: Value, amount: str) -> Value:
        """A stored value, of which None counts as 0, after an amount is added; the same one for an amount of 0.

        Raises BadValue where the amount or the sum is no value of this attribute, or breaks a rule.
        """
        number = Decimal(amount)
        if self.kind is not Kind.DECIMAL and number != number.to_integral_value():
            raise self._mistyped(amount)
        if not number:
            return value
        if value is not None and not self._is_valid_one(value):
            raise BadValue(f"{self.label} is {shown(value)}, which takes no amount; set it instead.", Rule.TYPE)
        total = added(self.kind, value or 0, number)
        if total is None or not self._is_valid_one(total):
            raise BadValue(f"{self.label} plus {amount} {_OUT_OF_RANGE[self.kind]}.", Rule.TYPE)
        rules = self.rules
        if broken := rules.broken(self.kind, total):
            side, bound = ("below", rules.minimum) if broken.rule is Rule.MINIMUM else ("above", rules.maximum)
            text = f"{self.label} would be {total}, {side} the {broken.rule} {bound}; add another amount."
            raise BadValue(text, broken.rule)
        return total

    def lacking(self) -> BadValue:
        """The fault of a node without a value that it has to have."""
        return BadValue(f"{self.label} is required; give it a value.", Rule.REQUIRED)

    def is_valid(self, value: Value) -> bool:
        """Whether a stored value has this attribute's type, so that it can be returned."""
        if self.many:
            return isinstance(value, list) and all(map(self._is_valid_one, value))
        return self._is_valid_one(value)

    def broken_rule(self, value: Value) -> str | None:
        """The rule that a stored value of this type breaks, as the end of a sentence; None where it breaks none."""
        for one in cast(list[Value], value) if self.many else [value]:
            if isinstance(one, str) and len(one) > self.max_length:
                return f"has more than {self.max_length:,} characters"
            if broken := self.rules.broken(self.kind, one):
                return broken.words
            for part in self.parts:
                inner = cast(dict[str, Value], one).get(part.name)
                if inner is None and part.rules.required:
                    return f"has no {part.name}, which is required"
                if inner is not None and (words := part.broken_rule(inner)):
                    return f"has {part.name} that {words}"
        return None

    def _parse_one(self, value: object) -> Value:
        limit = min(self.max_length, MAX_URL_CHARACTERS) if self.kind is Kind.URL else self.max_length
        if isinstance(value, str) and self.kind not in COMPOUND and len(value) > limit:
            text = f"{self.label} has {len(value):,} characters; at most {limit:,} are allowed."
            faults = FaultList([BadValue(text, Rule.MAX_LENGTH)])
            if self.rules.matches is not None and (broken := self.rules.broken(self.kind, value)):
                faults.add(BadValue(f"{self.label}: {shown(value)} {broken.words}.", broken.rule))
            raise faults.error()
        try:
            parsed = self._parsed(value)
        except (ValueError, TypeError, ArithmeticError):
            parsed = None
        if parsed is None or not self._is_valid_one(parsed):
            if self.kind is Kind.MONEY:
                self._check_money(value)
            raise self._mistyped(value)
        if broken := self.rules.broken(self.kind, parsed):
            raise BadValue(f"{self.label}: {shown(value)} {broken.words}.", broken.rule)
        return parsed

    def _parsed(self, value: object) -> Value:
        if self.kind not in COMPOUND:
            return PARSE[self.kind](value)
        is_json = isinstance(value, str) and (self.kind is not Kind.MONEY or value.lstrip().startswith("{"))
        fields = self._json(cast(str, value)) if is_json else value
        if self.kind is Kind.MONEY:
            return parse_money(fields)
        return self._localized(fields) if self.kind is Kind.LOCALIZED else self._nested(fields)

    def _json(self, text: str) -> object:
        """The value of a text that holds JSON, as in a cell of a CSV file."""
        if len(text) > MAX_JSON_CHARACTERS:
            limit = f"at most {MAX_JSON_CHARACTERS:,} are allowed"
            raise BadValue(f"{self.label} has {len(text):,} characters; {limit}.", Rule.MAX_LENGTH)
        return orjson.loads(text)

    def _localized(self, texts: object) -> Value:
        """Changes of the texts by canonical language tag; None for a language to clear."""
        return checked_names({} if texts == [] else texts, self.label, self.max_length)

    def _check_money(self, value: object) -> None:
        """Raise the faults of the parts of an amount of money that is an object."""
        if not isinstance(value, Mapping) or value.keys() != {"amount", "currency"}:
            return
        faults, amount, currency = FaultList(), value["amount"], value["currency"]
        with faults.below("amount"):
            Attribute(self.label, Kind.DECIMAL, "").parse(amount)
        if not isinstance(currency, str) or currency not in CURRENCIES:
            text = f"{self.label}: {shown(currency)} is not the code of a currency; write one like EUR."
            faults.add(BadValue(text, Rule.TYPE).at("currency"))
        faults.check()

    def _nested(self, fields: object) -> Value:
        """The parts of a nested value; those that are null or left out are not stored."""
        if not isinstance(fields, Mapping):
            raise TypeError
        parts = {part.name: part for part in self.parts}
        if unknown := fields.keys() - parts.keys():
            text = f'{self.label} has no "{shorten(str(min(unknown)))}"; it has {", ".join(parts)}.'
            raise BadValue(text, Rule.TYPE)
        found, faults = dict[str, Value](), FaultList()
        for part in self.parts:
            value = fields.get(part.name)
            if value is None and part.default is None and part.rules.required:
                faults.add(part.lacking().of(self.label).at(part.name))
            if value is not None or part.default is not None:
                with faults.below(part.name):
                    found[part.name] = part.default if value is None else part.parse(value)
        faults.check()
        return found

    def _is_valid_one(self, value: Value) -> bool:
        match self.kind:
            case Kind.ENUM:
                return isinstance(value, str) and value in self.members
            case Kind.MONEY:
                return is_money(value)
            case Kind.LOCALIZED:
                return isinstance(value, dict) and all(one is None or isinstance(one, str) for one in value.values())
            case Kind.NESTED:
                return isinstance(value, dict) and all(
                    value.get(part.name) is None or part.is_valid(value[part.name]) for part in self.parts
                )
            case kind:
                return VALID[kind](value)

    def _mistyped(self, value: object) -> BadValue:
        """The fault of a value that is none of this attribute's type."""
        rule = Rule.TYPE
        match self.kind:
            case Kind.ENUM:
                words = f"is none of {', '.join(sorted(self.members))}"
            case Kind.NESTED:
                words = f"is not an object with {', '.join(part.label for part in self.parts)}"
            case Kind.TEXT if isinstance(value, str):
                words, rule = "has characters that are no text; leave them out", Rule.CHARACTERS
            case Kind.DECIMAL if is_rounded(value):
                words = "may have been rounded on its way here; write so large a number as a text"
            case kind:
                words = (_OUT_OF_RANGE if is_numeral(kind, value) else _REFUSED)[kind]
                if not isinstance(value, str | int | float | list | dict | None):
                    words = words.partition(";")[0]  # a number in a file that says itself how it is to be written
        return BadValue(f"{self.label}: {shown(value)} {words}.", rule)
