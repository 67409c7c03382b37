"""docs/changing-a-hierarchy.md: the classes that are shown are served, and the sentences of the check are given."""

import re

from graph.hierarchies.registry import served
from store.model.undefined_values import Undefined
from tests.readme import DOCS, blocks

PAGE = (DOCS / "changing-a-hierarchy.md").read_text("utf-8")
HEAD = '''"""Places."""

from clade import Long, Node, attribute, computed


class Location(Node, hierarchy="location"):
    """A place."""


class Country(Location, under=None):
    """A country."""


class State(Location, under=[Country]):
    """A state."""


class County(Location, under=[State]):
    """A county."""


class Store(Location, under=["City"]):
    """A store."""

    owner: str | None = attribute("Owner.", required=True)


'''


def test_the_classes_of_the_page_are_served_and_its_sentences_are_given(tmp_path):
    attribute, method, city = blocks("py", PAGE)
    body = "".join(f"    {line}\n" for line in f"{attribute}\n{method}".splitlines())
    (tmp_path / "places.py").write_text(f"{HEAD}{city}\n{body}")
    (hierarchy,) = served(str(tmp_path / "places.py"))
    seen = Undefined(hierarchy.definition())
    for _ in range(14):
        seen.see("TOWN", {"people": 1})
    for _ in range(2):
        seen.see("STATE", {"lakes": 1})
    seen.see_rules("STORE", {}, "US/NE/Omaha/68118/1")
    (shown,) = blocks("text", PAGE)
    assert sorted(shown.splitlines()) == sorted(seen.sentences())
    assert re.findall(r"^clade rewrite-names location", PAGE, re.MULTILINE)
