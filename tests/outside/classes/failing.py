"""Failing: computed fields that raise for some nodes, and return what is not of their type for others."""

from enum import Enum

from clade import Decimal, Money, Node, attribute, computed


class Kind(Enum):
    """Kind of a part."""

    MADE = "made"
    BOUGHT = "bought"


class Part(Node, hierarchy="part", many="parts", search="hierarchy"):
    """A part of a machine."""

    note: str | None = attribute("Text on every level.", search=True)

    @computed("Length of the note; raises where there is none.")
    def note_length(self) -> int | None:
        return len(self.note)


class Unit(Part, under=[None, "self"]):
    """A part with parts."""

    size: int | None = attribute("Its size.")
    tags: list[str] | None = attribute("Its tags.")
    price: Money | None = attribute("Its price.")
    kind: Kind | None = attribute("Whether it is made or bought.")

    @computed("One by its size; raises for 0 and where there is none.")
    def share(self) -> float | None:
        return 1 / self.size

    @computed("The size; a text where it is 3.")
    def odd(self) -> int | None:
        return "three" if self.size == 3 else self.size

    @computed("The tags; a number is among them where the size is 2.")
    def labels(self) -> list[str] | None:
        return [self.name, self.size] if self.size == 2 else self.tags


class Screw(Part, under=[Unit, None]):
    """A screw."""

    length: Decimal | None = attribute("Its length.")

    @computed("The key; raises where it begins with x.")
    def share(self) -> str | None:
        if self.key.startswith("x"):
            raise ValueError(self.key)
        return self.key
