"""Searches as docs/find-nodes.md says: which nodes match a text, and in which order.

Of names and texts with signs or scripts that one may divide in several ways it is open what their words are.
"""

import random
from typing import Any

from tests.outside.model import folding
from tests.outside.model.trees import Node, Trees

Given = dict[str, Any]  # `text` and `languages` of a search


class Open(Exception):
    """What an answer has to be is not known."""


def some_text(chance: random.Random, nodes: list[Node]) -> str:
    """The beginnings of words of a node, with capitals or accents as they come."""
    texts = [text for node in nodes for text in (node["name"], node["key"], *node["names"].values())]
    words = [word for text in texts for word in text.split() if folding.clear_words(word)] or ["x"]
    chosen = [chance.choice(words) for _ in range(chance.choice((1, 1, 1, 2)))]
    cut = [_signed(chance, word)[: chance.choice((1, 2, 3, 5, 50))] for word in chosen]
    return " ".join(word.upper() if chance.random() < 0.2 else word for word in cut)


def _signed(chance: random.Random, word: str) -> str:
    """A word with the signs inside as they are, as another one, as a blank or left out."""
    to = chance.choice(("same", "", " ", *folding.SIGNS))
    return "".join(to if c in folding.SIGNS and to != "same" else c for c in word)


def matches(trees: Trees, node: Node, given: Given) -> bool:
    """Whether a node matches by its words, or by its first one and those of its ancestors; raises Open."""
    words = folding.clear_words(given["text"])
    if len(words) < len(given["text"].split()):
        raise Open
    own = [_has(node, word, given) for word in words]
    if all(own) or own[:1] == [False]:
        return bool(words) and all(own)
    above = [_any([_has(one, word, given) for one in trees.ancestors(node)]) for word in words[1:]]
    found = [own[0], *map(_any, zip(own[1:], above, strict=True))]
    if False in found:
        return False
    if None in found:
        raise Open
    return True


def _any(outcomes: Any) -> bool | None:
    return True if True in outcomes else None if None in outcomes else False


def _has(node: Node, word: list[str], given: Given) -> bool | None:
    """Whether a word begins one of a node; None where it is somewhere in its texts, and open whether as a word."""
    return True if begins(node, word, given) else None if contains(node, word) else False


def _names(node: Node, given: Given) -> list[str]:
    """ "Search only names in these languages (tags of BCP 47) and default names" (schema)."""
    languages = given.get("languages")
    return [node["name"], *(text for tag, text in node["names"].items() if languages is None or tag in languages)]


def begins(node: Node, word: list[str], given: Given) -> bool:
    texts = [*(name[:100] for name in _names(node, given)), node["key"], (node["values"].get("note") or "")[:100]]
    return folding.begins(word, [each for text in texts for each in folding.clear_words(text)])


def contains(node: Node, word: list[str]) -> bool:
    texts = (node["name"], node["key"], node["values"].get("note") or "", *node["names"].values())
    known = [folding.squashed(text) for text in texts]
    return any(all(any(part in one for one in known) for part in way) for way in (word, ["".join(word)]))


def rank(node: Node, given: Given) -> int:
    """Of names, what begins with the text and what equals it, by their letters and digits alone; last come nodes that
    have not all the words themselves. Raises Open.

    "A key is one more name" (find-nodes.md).
    """
    words = folding.clear_words(given["text"])
    if not all(begins(node, word, given) for word in words):
        if all(contains(node, word) for word in words):
            raise Open
        return 3
    text = folding.squashed(given["text"])
    names = [folding.squashed(name) for name in (*_names(node, given), node["key"])]
    return 0 if text in names else 1 if any(name.startswith(text) for name in names) else 2


def by_relevance(trees: Trees, nodes: list[Node], given: Given) -> list[Node]:
    """ "Within each group nodes with a greater weight come first, then those nearer to the root, then by name", and by
    id; raises Open where it is open how names compare.
    """

    def order(name: Any) -> list[Node]:
        return sorted(nodes, key=lambda one: (rank(one, given), len(trees.keys(one)), name(one["name"]), one["id"]))

    if order(folding.folded) != order(folding.squashed):
        raise Open
    return order(folding.folded)
