# ruff: noqa: RUF009
"""A hierarchy with enums of every kind: most values are not the names of their members, and some are alike."""

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum, auto

from clade import Node, attribute, computed


class Status(Enum):
    OPEN = "open"
    CLOSED = "closed"


class Phase(Enum):
    FIRST = auto()
    SECOND = auto()


class Risk(IntEnum):
    LOW = 0
    HIGH = 10


class Tone(StrEnum):
    WARM = auto()
    COLD = "COOL"


class Swapped(Enum):
    LEFT = "RIGHT"
    RIGHT = "LEFT"


class Alike(Enum):
    ONE = "same"
    OTHER = "same"


class Odd(Enum):
    LIST = (1, 2)
    NOTHING = None


@dataclass
class Step:
    """A step of a task."""

    status: Status | None = attribute("Status of the step.", default=Status.OPEN)
    phases: list[Phase] | None = attribute("Phases of the step.")


class Task(Node, hierarchy="task", many="tasks", search="hierarchy"):
    """A task or a part of one."""

    status: Status | None = attribute("Status.", default=Status.OPEN, search=True)


class Job(Task, under=[None, "self"]):
    """A job."""

    phase: Phase | None = attribute("Phase.")
    risk: Risk | None = attribute("Risk.")
    tone: Tone | None = attribute("Tone.")
    swapped: Swapped | None = attribute("Swapped.")
    alike: Alike | None = attribute("Alike.")
    odd: Odd | None = attribute("Odd.")
    phases: list[Phase] | None = attribute("Phases.", default=[Phase.FIRST])
    steps: list[Step] | None = attribute("Steps.")

    @computed("The status, as a member.")
    def member(self) -> Status | None:
        return None if self.status is None else Status[self.status]

    @computed("The phases, as members.")
    def members(self) -> list[Phase] | None:
        return self.phases and [Phase[one] for one in self.phases]
