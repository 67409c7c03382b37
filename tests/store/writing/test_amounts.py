"""Amounts that are added to numbers: exact, by the value at that moment, and judged by the sum."""

import asyncio
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, FaultList
from store.metadata.history import revisions
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Level
from store.model.values import Rules
from store.writing.create_update import Addition, Create, Update
from store.writing.edit_many import EditMany
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import hierarchy
from tests.selection import examples
from tests.stores import CountingStore

pytestmark = pytest.mark.both_stores

NUMBERS = {
    "stock": Attribute("stock", Kind.INT, "Stock.", rules=Rules(minimum=0, maximum=2**31 - 5)),
    "sold": Attribute("sold", Kind.LONG, "Sold.", was=("sales",)),
    "price": Attribute("price", Kind.DECIMAL, "Price.", rules=Rules(minimum="-9" + "0" * 36)),
}
THING = hierarchy("thing", Level("THING", "Thing", "A thing.", frozenset({None}), NUMBERS))
BOUNDS = {"stock": (0, 2**31 - 5), "sold": (-(2**63), 2**63 - 1), "price": (Decimal("-9e36"), Decimal("1e39"))}
AMOUNTS = (
    "1", "-1", "7.00", "-0", "0.5", "-0.50", "0.0", "2147483647", "-2147483648", "2147483642", "9223372036854775807",
    "-9223372036854775808", f"{Decimal('1e-37'):f}", f"{Decimal('-1.5e-37'):f}", "9" * 38, f"-{'9' * 38}",
    f"1{'0' * 37}", "0.1", "-0.25", "0.100",
)  # fmt: skip


def made(path: str = "t", **values: Any) -> Create:
    return Create(THING, (path,), "THING", path, values)


def adding(path: str = "t", expected: int | None = None, **amounts: str) -> Update:
    adds = [Addition(place, name, name, amount) for place, (name, amount) in enumerate(amounts.items())]
    return Update(THING, (path,), None, None, {}, expected, adds)


def total(name: str, value: Any, amount: str) -> tuple[Any, str | None]:
    """The sum and the rule that it breaks, by arithmetic of fractions."""
    added = Fraction(amount)
    if name != "price" and added.denominator != 1:
        return value, "type"
    found = Fraction(value or 0) + added
    if added == 0:
        return value, None
    if name == "price":
        places = max(len(one.partition(".")[2]) for one in (value or "0", amount))
        digits = str(abs(found * 10**places).numerator)
        while places and digits.endswith("0") and len(digits) > 38:
            places, digits = places - 1, digits[:-1]
        if len(digits) > 38 or (found and not Fraction(1, 10**37) <= abs(found)):
            return value, "type"
        text = digits.zfill(places + 1)
        sum_: Any = "-" * (found < 0) + (f"{text[:-places]}.{text[-places:]}" if places else text)
    else:
        sum_ = int(found)
    least, most = BOUNDS[name]
    if name == "sold" and not least <= found <= most:
        return value, "type"
    if name == "stock" and not -(2**31) <= found < 2**31:
        return value, "type"
    return (value, "minimum") if found < least else (value, "maximum") if found > most else (sum_, None)


def some_update(chance: Random) -> Update:
    if chance.random() < 0.3:
        name, given = chance.choice((("stock", 3), ("stock", None), ("price", "10.00"), ("sold", None)))
        return Update(THING, ("t",), None, None, {name: given})
    return adding(**{name: chance.choice(AMOUNTS) for name in chance.sample([*NUMBERS], chance.randint(1, 3))})


def after(values: dict[str, Any], edit: Update) -> tuple[dict[str, Any], list[str]]:
    """The values after an edit, and the rules that it breaks; then the values stay."""
    sums = {one.name: total(one.name, values.get(one.name), one.amount) for one in edit.adds}
    if rules := [rule for _, rule in sums.values() if rule]:
        return values, rules
    new = {**values, **edit.values, **{name: value for name, (value, _) in sums.items()}}
    return {name: value for name, value in new.items() if value is not None}, []


async def follow(store: Store, chance: Random) -> None:
    """Updates of one node, at once or as several edits or none, against the same ones in turn by arithmetic."""
    writer, values, number = Writer(store), dict[str, Any](), 1
    await writer.write(made(), ReadUsage())
    for _ in range(8):
        edits, expected = [some_update(chance) for _ in range(chance.choice((1, 3, 30)))], list[Any]()
        now, revision = values, number
        for edit in edits:
            new, rules = after(now, edit)
            revision, now = revision + (new != now), new
            expected.append(rules or (revision, now))
        if chance.random() < 0.4:
            edits = [replace(edit, expected=number) for edit in edits]
            calls: list[Any] = [writer.write(EditMany(THING, edits), ReadUsage())]
            faults = [one for one in expected if isinstance(one, list)]
            expected = faults[:1] or expected[-1:]  # what comes after a fault at the same place may follow from it
            values, number = (values, number) if faults else (now, revision)
        else:
            calls, values, number = [writer.write(edit, ReadUsage()) for edit in edits], now, revision
        assert [told(one) for one in await asyncio.gather(*calls, return_exceptions=True)] == expected, edits
    past = await store.range(revisions((await writer.write(adding(), ReadUsage())).record.id, 9_999), ReadUsage())
    assert len(past) == number - 1
    await invariants.check(store)


def told(outcome: Any) -> Any:
    """The rules that an edit breaks, or the revision and values that it leaves."""
    if isinstance(outcome, CladeError):
        faults = FaultList()
        faults.add(outcome)  # type: ignore[arg-type]
        return [one.rule.value for one in faults.errors]
    record = outcome.nodes[-1].record
    return record.revision, record.attributes


@pytest.mark.parametrize("seed", range(examples(3, 100)))
async def test_random_amounts_and_values_written_together_are_as_if_one_by_one(store: Store, seed: int) -> None:
    await follow(store, Random(seed))  # noqa: S311


async def test_forty_amounts_added_at_once_are_few_commits_and_all_of_them(store: Store) -> None:
    counted: Any = CountingStore(store)
    await Writer(store).write(made(stock=5), ReadUsage())
    writer, reads = Writer(counted), ReadUsage()
    amounts = [adding(stock=str(number)) for number in range(1, 41)]
    outcomes = await asyncio.gather(*[writer.write(one, reads) for one in amounts])
    assert [one.record.revision for one in outcomes] == [*range(2, 42)]
    assert outcomes[-1].record.attributes == {"stock": 5 + sum(range(41))}
    assert (len(counted.commits), reads.requests) == (2, 4)
    await invariants.check(store)


async def test_of_more_pieces_than_there_are_as_many_are_taken_as_there_are(store: Store, store_url: str) -> None:
    async with open_store(store_url) as other:
        writers = [Writer(store), Writer(other)]
        await writers[0].write(made(stock=25, sold=0), ReadUsage())
        calls = [writers[number % 2].write(adding(stock="-1", sold="1"), ReadUsage()) for number in range(40)]
        outcomes = [told(one) for one in await asyncio.gather(*calls, return_exceptions=True)]
    assert Counter(map(str, outcomes))["['minimum']"] == 15
    left = (await Writer(store).write(adding(), ReadUsage())).record
    assert (left.revision, left.attributes) == (26, {"stock": 0, "sold": 25})
    await invariants.check(store)


async def test_an_amount_costs_the_reads_of_an_update_and_one_that_changes_nothing_no_write(store: Store) -> None:
    counted: Any = CountingStore(store)
    await Writer(store).write(made(price="1.50"), ReadUsage())
    for amount, commits in (("2", 1), ("0", 1), ("-0.000", 1), ("0.5", 2)):
        reads = ReadUsage()
        await Writer(counted).write(adding(price=amount), reads)
        assert (reads.requests, len(counted.commits)) == (2, commits)
    assert (await Writer(store).write(adding(price="0"), ReadUsage())).record.attributes == {"price": "4.00"}


async def test_a_value_under_a_former_name_is_the_one_that_is_added_to(store: Store) -> None:
    former = replace(THING, levels={"THING": replace(THING.levels["THING"], attributes={})})
    await Writer(store).write(Create(former, ("t",), "THING", "t", {"sales": 2**53 + 1}), ReadUsage())
    left = await Writer(store).write(adding(sold="1"), ReadUsage())
    assert left.record.attributes == {"sold": 2**53 + 2}
