"""Words: texts folded so that they compare without regard to case, accents and punctuation, and the items by which
nodes are found by them, written in the transactions of their nodes.

Folded text has plain letters (`store/model/letters.py`) without other marks; its words, runs of letters and digits, are
joined by `+`. So `+` before a word marks its beginning. Scripts that are written without spaces (Chinese, Japanese,
Korean, Thai and their like) are runs of their own, and a word begins with each of their characters.

A single apostrophe, hyphen or full stop between two letters or digits of one word divides it into parts, between which
is `-`. Each part begins a word, and is also read together with the parts after it: `coeur+d-alene` has the words
`coeur`, `d`, `alene` and `dalene`. Since `d` begins `dalene`, an item's text needs only the parts together
(`coeur+dalene`, `dalene`, `alene`), so that these signs add no item. A word of a text to search for is read as its
parts apart, or as all of them together.

A node has an item for each beginning of a word of its name, of its names in other languages, of its key, which is one
more name, and of its attributes with `search=True`. An item is in two orders, so that a search for `oma` is two ranges:

| index | partition key | sort key | order |
| --- | --- | --- | --- |
| the table | `words/location#o` | `omaha#0<weight>#<id>` | by text, and where that is a whole name, by weight |
| `by_parent` | `words/location#oma` | `0<weight><depth><name>#<id>` | names that begin so first, then by weight |

What they are made of says the marker (`store/kinds/marker.py`). Words that are no names are in an item by the stored
name of their attribute, so that a class which searches fewer attributes finds what it would find by its own items.

The partition key has the first character of the word, or its first three (of Han its first one). Where each tree is
searched by itself, the hash of its root's id stands before: `words/drive#Xy12aB#o`. The first digit of a sort key is 0
where the text is a whole name (table) or the beginning of a name (`by_parent`), else 1. Items have no revision, since a
search verifies what it finds by reading the nodes.
"""

import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple, cast

from msgspec import Struct

from store.errors import BadInput, quantity
from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import STEP, Line, Lineage, Moves, Place
from store.kinds.recipe import LevelRecipe, Names, Recipe, number_names
from store.model.attributes import Value
from store.model.decoding import damaged, decoded
from store.model.hierarchy import Hierarchy, Level, SearchScope
from store.model.keys import Index, Key, KeyRange, decode_segment, depth_of, hierarchy_of, last_segment
from store.model.letters import plain_letters
from store.model.names import NAMES, are_names, lookup
from store.model.records import Item, Record

MAX_TEXT_CHARACTERS = 200  # of a text to search for
MAX_WORDS = 8  # of it
MAX_FOLDED_CHARACTERS = 100  # of a name; what follows is not searched
MAX_READ_CHARACTERS = 4_000  # of a text, before it is folded: more than all words that are searched
MAX_ITEMS = 40  # of one node; further words are not found
KEY = "#"  # under which a node's key is among its names; no language tag
_LAST = "\U0010ffff"  # sorts after all that a folded text can hold
WEIGHT = r"(?:1|0\d{3}\d+:|2\d{3}\d+!)"
"""The pattern of an encoded weight."""
WEIGHT_PART = "weight"  # of a recipe
_NINES = str.maketrans("0123456789", "9876543210")
_ZERO = "1"
_RANK = re.compile(rf"([01])({WEIGHT})(\d\d)(.*)#(.*)", re.DOTALL)
# Signs that stand for a character of Han; Thai and Lao, Myanmar, Hangul's letters, Khmer, Kana, Bopomofo and Han.
_UNSPACED = (
    "\u3005-\u3007\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Apostrophes, hyphens and dots inside words, as they are after NFKD: for some of them Unicode has letters (the okina).
_SIGN_LETTERS = "\u02b9-\u02bf\ua78c"
_SIGN = rf"['`.\-\u00b7{_SIGN_LETTERS}\u05be\u05f3\u2010\u2011\u2018\u2019\u201b\u2032]"
_LETTER, _OTHER = rf"[^\W_{_SIGN_LETTERS}]", rf"(?![{_UNSPACED}])[^\W_{_SIGN_LETTERS}]"
_WORD = re.compile("|".join(rf"(?:{one})+(?:{_SIGN}(?:{one})+)*" for one in (rf"(?={_LETTER})[{_UNSPACED}]", _OTHER)))
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:['`.-][a-z0-9]+)*")
_SIGNS = re.compile(_SIGN)
# The acute accent, which NFKD makes a space, and what divides a word unseen: the soft hyphen, the space and the
# non-joiner of no width.
_SIGNS_LOST = str.maketrans("\u00b4\u00ad\u200b\u200c", "'---")
# A syllable of Hangul is two or three letters in NFKD, of which only the first begins it.
_BEGINNING = re.compile(rf"(?<![^+-])[^+-]|(?![\u1160-\u11ff])[{_UNSPACED}]")
_INNER = re.compile(rf"(?![\u1160-\u11ff])[{_UNSPACED}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# What of a text to search for stands for, in a name: signs of either may be read as a space or left out.
_READINGS = {"+": "[+-]", "-": "[+-]?", "": "-?"}


def fold(text: str) -> str:
    """A text as its folded words: `São Paulo (SP)` becomes `sao+paulo+sp`, `Coeur d'Alene` `coeur+d-alene`.

    What follows after 4,000 characters is left out.
    """
    return _folded(text) if len(text) <= MAX_FOLDED_CHARACTERS else _fold(text[:MAX_READ_CHARACTERS])


def _fold(text: str) -> str:
    if text.isascii():
        return _SIGNS.sub("-", "+".join(_ASCII_WORD.findall(text.lower())))
    plain = plain_letters(text.translate(_SIGNS_LOST))
    if not plain.isascii():
        plain = "".join([c for c in plain if unicodedata.category(c)[0] != "M"])
    return _SIGNS.sub("-", "+".join(_WORD.findall(plain)))


_folded = lru_cache(4_096)(_fold)


def beginnings(folded: str) -> list[str]:
    """The rest of a folded text from each beginning of a word on, with the parts of words together: `sao+paulo` and
    `paulo`.
    """
    return [folded[start:].replace("-", "") for start in _starts(folded)]


def _starts(folded: str) -> list[int]:
    """Where words begin in a folded text."""
    if not folded.isascii() or "-" in folded:
        return [match.start() for match in _BEGINNING.finditer(folded)]
    found = [0] if folded else []
    while place := folded.find("+", found[-1] if found else 0) + 1:
        found.append(place)
    return found


def _together(text: str) -> str:
    """Folded words with the parts of each apart, and from each part on together: of `d-alene` `d+alene+dalene`."""
    found = [text.replace("-", "+")]
    for word in text.split("+"):
        while "-" in word:
            found.append(word.replace("-", ""))
            word = word.partition("-")[2]
    return "+".join(found)


@lru_cache(256)
def _readings(folded: str) -> re.Pattern[str]:
    """A pattern of the folded names that a folded text is, or is the beginning of."""
    return re.compile(re.sub(r"[+-]|(?<=[^+-])(?=[^+-])", lambda match: _READINGS[match[0]], folded))


def group(folded: str) -> str:
    """The first three characters of a word, or its first one of Han, by which its items are ordered."""
    word = folded[:3].partition("+")[0]
    return word[:1] if _HAN.match(word) else word


def is_group(word: str) -> bool:
    """Whether a word is as long as a group, so that all words that it begins are in its group."""
    return len(word) >= 3 or _HAN.match(word) is not None


class SearchText(NamedTuple):
    """A text to search for: folded as a whole, and its different words; each must begin a word of a node.

    `patterns` are what is searched for these words in folded texts after a `+`: for each the whole word, and its parts
    if it has several.
    """

    folded: str
    words: tuple[str, ...]
    patterns: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, text: str) -> "SearchText":
        """Raises BadInput for a text that is too long or has too many words. One without a word matches nothing."""
        if len(text) > MAX_TEXT_CHARACTERS:
            raise BadInput(f"text has {len(text):,} characters; at most {MAX_TEXT_CHARACTERS} are allowed.")
        folded = fold(text)
        words = tuple(dict.fromkeys(folded.split("+"))) if folded else ()
        count = max(len(words), len({part for word in words for part in word.split("-")}))
        if count > MAX_WORDS:
            raise BadInput(f"text has {quantity(count, 'word')}; at most {MAX_WORDS} are allowed.")
        patterns = []
        for word in words:
            # In scripts without spaces a word begins with any character inside of another one.
            before = "" if _INNER.match(word) else "+"
            parts = tuple([f"{before}{part}" for part in word.split("-")]) if "-" in word else ()
            patterns.append((before + word.replace("-", ""), parts))
        return cls(folded, words, tuple(patterns))

    @property
    def is_word(self) -> bool:
        """Whether the text is one word without parts, and not the same one twice."""
        return self.words == (self.folded,) and "-" not in self.folded

    @property
    def ranges(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The beginnings of items to read, that of the whole text first; and pairs of them, of which each leads to all
        nodes that match: a part of a word, and the whole word.
        """
        pairs = [(part, word.replace("-", "")) for word in self.words for part in word.split("-")]
        long, whole = [pair for pair in pairs if is_group(pair[0])], self.folded.replace("-", "")
        chosen = long or [max(pairs, key=lambda pair: len(pair[0]))]
        # Texts of short words alone, such as `wi fi`, are in too many items; their words may be the parts of one.
        texts = [whole, *[text for pair in chosen for text in pair], *([] if long else [whole.replace("+", "")])]
        return list(dict.fromkeys(texts)), chosen

    @property
    def first_pair(self) -> list[str]:
        """One of these pairs of the first word; of a word without parts they are one."""
        word = self.words[0]
        return list(dict.fromkeys([max(word.split("-"), key=len), word.replace("-", "")]))

    def unmet(self, names: Sequence[str], words: str) -> list[int]:
        """The numbers of its words that begin no word of folded names and of further folded words."""
        text = "+" + "+".join([*names, words])
        if "-" in text:
            text = _together(text)
        return [
            number
            for number, (whole, parts) in enumerate(self.patterns)
            if whole not in text and not (parts and all(part in text for part in parts))
        ]

    def rank(self, names: Sequence[str]) -> int:
        """How well it matches folded names: 0 where one is the text, 1 where one begins with it, else 2."""
        if "-" in self.folded or any("-" in name for name in names):
            found = [match for name in names if (match := _readings(self.folded).match(name))]
            return 2 if not found else int(all(match.end() < len(match.string) for match in found))
        if self.folded in names:
            return 0
        return 1 if any(name.startswith(self.folded) for name in names) else 2

    def match(self, names: Sequence[str], words: str) -> int | None:
        """How well folded names, and further folded words, match: as `rank`, None where not all words are met."""
        return None if self.unmet(names, words) else self.rank(names)


class Words(NamedTuple):
    """The folded words of a node: its names by language, the default name under "", the key under KEY unless the
    default name is equal but for signs, as of `hand-saws`; and those that are no name, by the stored name of their
    attribute.
    """

    names: dict[str, str]
    others: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, hierarchy: Hierarchy, record: Record) -> "Words":
        """The words of a node that its class searches."""
        level = hierarchy.levels.get(record.level)
        searched: list[str] = []
        for name in level.searched if level else ():
            names = (name, *level.attributes[name].was) if level else ()
            searched += [one for one in names if one in record.attributes][:1]
        return cls.made(record, searched)

    @classmethod
    def made(cls, record: Record, searched: Iterable[str]) -> "Words":
        """The words of a node, with those of these stored attributes."""
        names = {"": fold(record.name)}
        stored = record.attributes.get(NAMES)
        if stored is not None and are_names(stored):
            # In one order, since what is beyond MAX_ITEMS depends on it: DynamoDB's maps have none.
            names |= {language: fold(text) for language, text in sorted(cast(dict[str, str], stored).items())}
        key = decode_segment(last_segment(record.pk, record.sk))
        # A name in another language may be equal, too, but is not searched with all `languages`.
        if key != record.name and (key := fold(key)).replace("-", "+") != names[""].replace("-", "+"):
            names[KEY] = key
        found: dict[str, list[str]] = {}
        for name in sorted(searched):
            value = record.attributes.get(name)
            texts = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
            if words := dict.fromkeys(word for text in texts for word in fold(text).split("+")):
                found[name] = [*words]
        if not found and len(names) == 1 and names[""] and len(names[""]) <= MAX_ITEMS:
            return cls(names, {})  # as most nodes have
        # Attributes are searched with any `languages`, so that names in other languages do not stand for their words.
        always = f"{names['']}+{names.get(KEY, '')}"
        left, in_names = MAX_ITEMS, set(always.split("+"))
        for language, name in list(names.items()):
            names[language], left = _cut(name, left)
        kept: dict[str, str] = {}
        for word in [word for words in found.values() for word in words]:
            if word and word not in in_names and word not in kept and left:
                kept[word], left = _cut(word, left)
        others = {name: tuple([kept[word] for word in words if word in kept]) for name, words in found.items()}
        return cls(
            {language: name for language, name in names.items() if name},
            {name: words for name, words in others.items() if words},
        )

    @property
    def other_words(self) -> list[str]:
        """The different words that are no name."""
        return list(dict.fromkeys([word for words in self.others.values() for word in words]))

    def searched(self, languages: Sequence[str] | None) -> tuple[list[str], str]:
        """The folded names and the further words that are searched: with `languages` only the default name, the key and
        names in these.
        """
        names = self.names
        if languages is not None and len(names) > 1:
            taken = {"", KEY, *[found for one in languages if (found := lookup(names, [one])) is not None]}
            names = {language: name for language, name in names.items() if language in taken}
        return list(names.values()), "+".join(self.other_words)

    def beginnings(self) -> dict[str, tuple[bool, bool]]:
        """The beginnings of words, each with whether it is a whole name, and whether a name begins with it."""
        found: dict[str, tuple[bool, bool]] = {}
        for name in self.names.values():
            for place, text in enumerate(beginnings(name)):
                is_name = place == 0 or found.get(text, (False, False))[0]
                found[text] = (is_name, is_name)
        for word in self.other_words:
            for text in beginnings(word):
                found.setdefault(text, (False, False))
        return found


def _cut(folded: str, items: int) -> tuple[str, int]:
    """A folded text with at most so many beginnings of words, and how many more there may be."""
    starts = _starts(folded := folded[:MAX_FOLDED_CHARACTERS].rstrip("+-"))
    if len(starts) > items:
        folded = folded[: starts[items]].rstrip("+-")
    return folded, max(0, items - len(starts))


class _StoredWord(Struct, gc=False):
    sk: str
    rank: str
    level: str
    at: Place
    line: Line
    names: dict[str, str] = {}
    others: dict[str, str] = {}


class WordItem(NamedTuple):
    """A word item as it is read: what it says of its node, as of when it was written.

    `sort` is its sort key in the table, `rank` that in `by_parent`; `begins` is whether a name begins with its text.
    """

    sort: str
    rank: str
    begins: bool
    weight: str
    depth: int
    name: str
    id: str
    level: str
    at: str
    line: Lineage
    names: dict[str, str]
    others: dict[str, str]

    @classmethod
    def of(cls, hierarchy: str, item: Item) -> "WordItem":
        """The word item in an item; raises DamagedItem."""
        found = decoded(item, _StoredWord)
        match = _RANK.fullmatch(found.rank)
        if match is None:
            raise damaged(item, "Expected another `rank`")
        zone, weight, depth, name, bare_id = match.groups()
        return cls(
            found.sk, found.rank, zone == "0", weight, int(depth), name, f"{hierarchy}:{bare_id}", found.level,
            found.at, found.line, found.names, found.others,
        )  # fmt: skip

    @property
    def key(self) -> Key:
        root, divider, rest = self.at.partition("#")
        return Key(f"{self.id.partition(':')[0]}#{root}", divider + rest)

    def words(self, searched: Container[str]) -> Words:
        """The words of the node, with those of these stored attributes."""
        others = {name: tuple(text.split("+")) for name, text in self.others.items() if name in searched}
        return Words({"": self.name, **self.names}, others)


def word_items(recipe: Recipe, record: Record, line: Lineage) -> list[Item]:
    """The word items of a node; `line` is its lineage."""
    level = recipe.level(record.level)
    if level.attributes is None:
        return []
    words = Words.made(record, level.attributes)
    weight = descending(_number(record, level.number(WEIGHT_PART)))
    name, bare_id = words.names.get("", ""), record.id.partition(":")[2]
    place = f"{weight}{depth_of(record.sk):02d}{name}#{bare_id}"
    others = {language: text for language, text in words.names.items() if language}
    shared: Item = {
        "at": f"{record.pk[len(hierarchy_of(record.pk)) + 1 :]}{record.sk}", "line": line, "level": record.level,
        "names": cast(Value, others) or None,
        "others": {name: "+".join(found) for name, found in words.others.items()} or None,
    }  # fmt: skip
    shared = {attribute: value for attribute, value in shared.items() if value is not None}
    base = partition(recipe.hierarchy, recipe.tree(line[:STEP]))
    return [
        {
            "pk": f"{base}{text[0]}", "sk": f"{text}#{int(not is_name)}{weight}#{bare_id}",
            "parent": f"{base}{group(text)}", "rank": f"{int(not begins)}{place}", **shared,
        }
        for text, (is_name, begins) in words.beginnings().items()
    ]  # fmt: skip


class SearchKind(NodeKind):
    """A kind of items by which search finds nodes: their partitions begin with its name, and their sort keys end in the
    bare id. Each tree has partitions of its own where it is searched by itself.
    """

    has_lineage = True

    def owner(self, item: Item) -> str | None:
        kind, _, rest = str(item["pk"]).partition("/")
        return (
            f"{rest.partition('#')[0]}:{str(item['sk']).rpartition('#')[2]}"
            if kind == self.name and "#" in rest
            else None
        )

    def is_by_tree(self, hierarchy: Hierarchy) -> bool:
        return is_by_tree(hierarchy)


class WordKind(SearchKind):
    """Word items, by which search finds nodes."""

    name = "words"
    version = 2

    def is_asked(self, hierarchy: Hierarchy) -> bool:
        return hierarchy.search is not None

    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        """Of a level that the class does not define the names of nodes, and their weights."""
        if hierarchy.search is None:
            return LevelRecipe()
        own = hierarchy.any_level(level)
        searched = [own.attributes[one] for one in own.searched]
        weight = number_names(hierarchy, level, hierarchy.search.weight)
        return LevelRecipe(
            frozenset([name for one in searched for name in (one.name, *one.was)]),
            {WEIGHT_PART: weight} if weight else {},
        )

    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        if made.attributes is None:
            return [f"the words of {level.label}"]
        if not made.agrees(self.asked(hierarchy, level.name)):
            return [f"the words of {level.label} by their weight"]
        attributes = [level.attributes[name] for name in level.searched]
        return [
            f"{one.label} of {level.label}" for one in attributes if made.attributes.isdisjoint((one.name, *one.was))
        ]

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        return word_items(recipe, node.record, node.line)

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        if found.get("parent") != item.get("parent") or not leads(found, item, moves):
            return False
        one, other = WordItem.of("", found), WordItem.of("", item)
        return one._replace(at=other.at, line=other.line, depth=other.depth, rank=other.rank) == other


def weight_of(hierarchy: Hierarchy, record: Record) -> str:
    """The weight of a node by its class, encoded; its attribute may be stored under a former name."""
    name = hierarchy.search.weight if hierarchy.search else None
    return descending(_number(record, number_names(hierarchy, record.level, name)))


def _number(record: Record, names: Names) -> Value:
    """The value of an attribute under the first of its names that is stored."""
    return next((record.attributes[name] for name in names if name in record.attributes), None)


def descending(number: object) -> str:
    """A stored number as text that sorts before that of any smaller number; what is no number counts as 0.

    A positive number is `0`, its exponent and its digits, all subtracted from the greatest possible; the digits end in
    `:`, which sorts after all of them. A negative one is `2`, its exponent and its digits, which end in `!`.
    """
    if type(number) is int and 0 < number < 10**18:  # as most are
        digits = str(number)
        return f"0{501 - len(digits):03d}{digits.rstrip('0').translate(_NINES)}:"
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        return _ZERO
    value = _decimal(str(number))
    if not value:
        return _ZERO
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    if value > 0:
        return f"0{500 - value.adjusted():03d}{digits.translate(_NINES)}:"
    return f"2{500 + value.adjusted():03d}{digits}!"


def _decimal(number: str) -> Decimal:
    try:
        value = Decimal(number)
    except InvalidOperation:
        return Decimal(0)
    return value if value.is_finite() and -400 < value.adjusted() < 400 else Decimal(0)


def partition(hierarchy: str, tree: str, kind: str = "words") -> str:
    """The part that all partition keys of the word items of a hierarchy begin with; `tree` is the hash of a root's id
    where each tree is searched by itself, else empty.

    Items of another kind begin with its name instead.
    """
    return f"{kind}/{hierarchy}#{tree}#" if tree else f"{kind}/{hierarchy}#"


def leads(found: Item, item: Item, moves: Moves | None) -> bool:
    """Whether an item that was found has the attributes of another one, and the moves lead from its lineage to that."""
    line, present = str(found.get("line")), str(item["line"])
    return found.keys() == item.keys() and (line == present or (moves is not None and moves.present(line) == present))


def is_by_tree(hierarchy: Hierarchy) -> bool:
    """Whether each tree is searched by itself."""
    return hierarchy.search is not None and hierarchy.search.scope is SearchScope.TREE


def by_text(base: str, text: str) -> KeyRange:
    """The items whose folded text begins with `text`, in the order of the texts."""
    text = text[:MAX_FOLDED_CHARACTERS]
    return KeyRange(Index.TABLE, base + text[0], text, f"{text}{_LAST}")


def by_weight(base: str, word: str) -> KeyRange:
    """The items of the group of a word, those with which names begin first, then the heavier first."""
    return KeyRange(Index.BY_PARENT, base + group(word), "0", "2")
