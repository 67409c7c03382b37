"""What a hierarchy is: its levels, which level may stand under which, and the attributes that each has."""

import re
from dataclasses import dataclass, field

from store.errors import BadInput
from store.model.attributes import Attribute
from store.text import shorten

MAX_NAME_CHARACTERS = 64  # of a hierarchy and of a level, which stand in keys
LEVEL_NAME = re.compile(r"[A-Z][A-Z0-9_]*")

# The attributes that every item may have for Clade's own use, the fields that every node has, and those of files.
RESERVED = frozenset(
    "pk sk parent rank tier expires id path key name level depth above kids below revision updated_at changed_by "
    "changed_at root ancestors children descendants siblings child_count descendant_count history at_revision "
    "is_descendant_of path_of undefined".split()
)


@dataclass(frozen=True)
class Level:
    """One level. `name` is as in GraphQL's enum (`POSTAL_CODE`), `title` its type's name (`PostalCode`).

    `under` holds the names of the levels that it may stand under; None among them means that it may be a root.
    """

    name: str
    title: str
    description: str
    under: frozenset[str | None]
    attributes: dict[str, Attribute] = field(default_factory=dict)

    @property
    def may_be_root(self) -> bool:
        return None in self.under


@dataclass(frozen=True)
class Hierarchy:
    """A kind of tree: `name` stands in keys and ids (`location`), `levels` are by name in the order of their making."""

    name: str
    levels: dict[str, Level]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name) or len(self.name) > MAX_NAME_CHARACTERS:
            raise ValueError(f'A hierarchy is named with small letters, digits and _, not "{self.name}".')
        for level in self.levels.values():
            _check_level(self, level)
        if not any(level.may_be_root for level in self.levels.values()):
            raise ValueError(f"No level of {self.name} may be a root: give one under=None.")
        possible = self._possible()
        for level in self.levels.values():
            if level.name not in possible:
                raise ValueError(
                    f"No node of {self.name} can be of the level {level.title}: give the class under=, "
                    "with levels that lie below a root themselves, or under=None for a root."
                )

    def level(self, name: str) -> Level:
        """The level of this name in any case, or BadInput that lists what there is."""
        try:
            return self.levels[name.upper()]
        except KeyError:
            wrong = f'{self.name} has no level "{shorten(name)}"; it' if name else f"The level is missing; {self.name}"
            raise BadInput(f"{wrong} has {', '.join(self.levels)}.") from None

    def _possible(self) -> set[str]:
        """The levels that nodes can be of, from the roots down."""
        found: set[str] = set()
        ahead = {level.name for level in self.levels.values() if level.may_be_root}
        while ahead:
            found |= ahead
            ahead = {level.name for level in self.levels.values() if level.under & found} - found
        return found

    def may_stand(self, level: str, under: str | None) -> bool:
        return under in self.levels[level].under


def _check_level(hierarchy: Hierarchy, level: Level) -> None:
    if not LEVEL_NAME.fullmatch(level.name) or len(level.name) > MAX_NAME_CHARACTERS:
        raise ValueError(f'A level is named with capitals, digits and _, not "{level.name}".')
    if unknown := level.under - {None} - hierarchy.levels.keys():
        raise ValueError(f"{level.title} stands under {', '.join(map(str, unknown))}, which {hierarchy.name} has not.")
    if reserved := RESERVED & level.attributes.keys():
        raise ValueError(f"{level.title} has an attribute {', '.join(reserved)}, a name that every node has already.")


def may_stand(hierarchy: Hierarchy, level: str, under: str | None) -> bool:
    """Whether a level may stand under another, None as a root; of undefined ones nothing is known against it."""
    known = hierarchy.levels.get(level)
    return known is None or under in known.under or (under is not None and under not in hierarchy.levels)


def misplaced(level: Level, under: str | None) -> str:
    """The sentence for a level that may not stand under another, or not as a root."""
    places = [f"under {name}" for name in level.under if name is not None]
    may = ", ".join([*(["as a root"] if level.may_be_root else []), *sorted(places)])
    return f"{level.name} may not stand {f'under {under}' if under else 'as a root'}, only {may}."
