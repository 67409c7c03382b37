"""The parts of the suite, by name. Each is a function of a place, a seed and a time; it returns what it did."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

Run = Callable[..., Counter[str]]


@dataclass(frozen=True)
class Part:
    """A part: `run(place, seed, until)` works until `until` (of time.monotonic) and raises Wrong.

    It returns how many operations of each kind were made and compared, for `docs/proven.md`; at least one round is
    made, however short the time, and of the fuzzer so many documents as a fourth argument says. `promises` are the
    sentences of the docs that it tries, each as (page, sentence).
    """

    name: str
    run: Run
    promises: tuple[tuple[str, str], ...]


def all_parts() -> tuple[Part, ...]:
    """Every part, in the order in which the runner takes them."""
    from tests.outside import cost, exports, faults, fuzzer, rights
    from tests.outside.model.part import MODEL

    return (MODEL, fuzzer.PART, cost.PART, *faults.PARTS, exports.EXPORTS, rights.RIGHTS)
