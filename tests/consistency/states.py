"""The states that a node has had, and which of them a read may tell that began and ended at some moments."""

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

NEVER = math.inf


@dataclass
class State:
    """What a node is from a write on that began and was acknowledged at these moments; no path where there is none."""

    begun: float
    acknowledged: float
    path: str | None
    name: str = ""
    revision: int = 0
    event: str = ""

    @property
    def told(self) -> tuple[str, str, int] | None:
        return None if self.path is None else (self.path, self.name, self.revision)


@dataclass
class Node:
    """A node of which one write is made at a time; it is not there before the first."""

    key: str
    id: str = ""
    states: list[State] = field(default_factory=lambda: [State(-NEVER, -NEVER, None)])
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def last(self) -> State:
        return self.states[-1]

    @contextmanager
    def writing(self, event: str, path: str | None, name: str, revision: int) -> Iterator[None]:
        """Have a state from now on, which is acknowledged at the end of the block."""
        state = State(time.monotonic(), NEVER, path, name, revision, event)
        self.states.append(state)
        yield
        state.acknowledged = time.monotonic()

    def seen(self, since: float, until: float) -> list[State]:
        """What a read may tell that has to know of all that was acknowledged by a moment, and ended at another."""
        oldest = max(number for number, state in enumerate(self.states) if state.acknowledged < since)
        return [state for state in self.states[oldest:] if state.begun < until]

    def told(self, since: float, until: float) -> set[tuple[str, str, int] | None]:
        return {state.told for state in self.seen(since, until)}

    def in_place(self, place: str, since: float, until: float) -> set[bool]:
        """Whether it may be, and may not be, right below a path."""
        return {f"{place}/{self.key}" == state.path for state in self.seen(since, until)}
