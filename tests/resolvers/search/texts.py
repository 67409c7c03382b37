"""Random searches for names that exist: words, beginnings, cases, accents, languages, levels and scopes."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from store.errors import BadInput
from store.model.keys import Path
from store.model.records import Record
from store.search.folding import SearchText
from tests.brute_search import begins_inside

_ACCENTS = "\u0301\u0308\u0327\u030a"


@dataclass(frozen=True)
class Asked:
    """One search: `under` is where it begins, `first` how many nodes are asked for."""

    text: str
    under: Path | None = None
    levels: frozenset[str] | None = None
    languages: tuple[str, ...] | None = None
    first: int = 10

    @property
    def scope(self) -> dict[str, Any]:
        """The arguments of `Brute.find` beside the text."""
        top = self.under or ()
        return {
            "shown": lambda path: len(path) > len(top) and path[: len(top)] == top,
            "levels": self.levels, "languages": self.languages, "first": self.first,
        }  # fmt: skip


@dataclass
class Searches:
    """Makes random searches for these nodes; those with names in scripts other than Latin come up as often."""

    seed: int
    records: Sequence[Record]
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - no secret
        self._foreign = [one for one in self.records if not (one.name.isascii() and not one.names)]

    def one(self) -> Asked:
        random = self.random
        record = random.choice(self._foreign if self._foreign and random.random() < 0.5 else self.records)
        text = self.text(record)
        while not _is_searched(text):
            record = random.choice(self.records)
            text = self.text(record)
        return Asked(
            text,
            self.under(record),
            self.levels(record),
            self.languages(record),
            random.choice([10, 10, 10, 1, 3, 100]),
        )

    def text(self, record: Record) -> str:
        random = self.random
        name = random.choice([record.name, record.name, *record.names.values(), record.path[-1]])
        words = name.split()
        match random.choice(["name", "word", "words", "beginning", "beginning", "beginnings", "inside"]):
            case "name":
                text = name[: random.choice([len(name), random.randint(1, len(name))])]
            case "word":
                text = random.choice(words or [name])
            case "words":
                text = " ".join(random.sample(words, min(2, len(words))))
            case "beginning":
                text = random.choice(words or [name])[: random.choice([1, 2, 3, 3, 4, 5])]
            case "beginnings":
                text = " ".join(
                    word[: random.choice([1, 2, 3, 4])] for word in random.sample(words, min(2, len(words)))
                )
            case _:
                text = name[random.randrange(len(name)) :][: random.choice([1, 2, 3, 5])]
        return self.written(text)

    def written(self, text: str) -> str:
        """The text in another case, with other accents, or with signs between its words."""
        match self.random.choice(["as it is", "as it is", "upper", "lower", "plain", "accents", "signs", "composed"]):
            case "upper":
                return text.upper()
            case "lower":
                return text.lower()
            case "plain":
                return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
            case "accents":
                return "".join(
                    c + self.random.choice(_ACCENTS) if c.isalpha() and not begins_inside(c) else c for c in text
                )
            case "signs":
                return "(" + text.replace(" ", self.random.choice([", ", "-", " / ", "  "])) + ")."
            case "composed":
                return unicodedata.normalize(self.random.choice(["NFC", "NFD", "NFKC", "NFKD"]), text)
        return text

    def under(self, record: Record) -> Path | None:
        if self.random.random() < 0.5:
            return None
        near = record.path[: self.random.randint(1, len(record.path))]
        return self.random.choice([near, near, self.random.choice(self.records).path])

    def levels(self, record: Record) -> frozenset[str] | None:
        if self.random.random() < 0.7:
            return None
        return frozenset([self.random.choice([record.level, self.random.choice(self.records).level])])

    def languages(self, record: Record) -> tuple[str, ...] | None:
        if self.random.random() < 0.7:
            return None
        tags = [*record.names, "de-AT", "zh-Hant-TW", "fr", "sw"]
        return tuple(self.random.choice([tag, tag.upper()]) for tag in self.random.sample(tags, min(2, len(tags))))


def _is_searched(text: str) -> bool:
    try:
        return bool(SearchText.of(text).words)
    except BadInput:
        return False
