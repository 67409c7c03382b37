"""`_entities` over plain HTTP: by id, by path and by interface, with every mistake that there can be."""

import pytest

from tests.federation.places import CATEGORIES, CITIES, id_of

ENTITIES = """
query ($of: [_Any!]!) {
  _entities(representations: $of) {
    __typename
    ... on Location { path name }
    ... on CategoryNode { id }
  }
}
"""
GONE = "location:nobody"


def city(path):
    return {"__typename": "City", "path": path}


def told(path):
    return {"__typename": "City", "path": path, "name": path.rpartition("/")[2]}


UNKNOWN = [
    city("US/NE/Nowhere"), city("XX"), {"__typename": "Location", "id": GONE},
    *(
        {"__typename": "City", "id": one}
        for one in (GONE, "5", 5, "", "location:" + "9" * 500, id_of(CATEGORIES[0]))
    ),
]  # fmt: skip


def test_an_unknown_entity_is_null_without_an_error(clade):
    answer = clade.ask(ENTITIES, of=[city(CITIES[0]), *UNKNOWN, city(CITIES[1])])
    assert answer["data"]["_entities"] == [told(CITIES[0]), *[None] * len(UNKNOWN), told(CITIES[1])]
    assert "errors" not in answer


@pytest.mark.parametrize(
    ("representation", "code", "words"),
    [
        ({"__typename": "Planet", "id": "1"}, "BAD_USER_INPUT", '"Planet" is not an entity'),
        ({"__typename": "Node", "id": id_of("US")}, "BAD_USER_INPUT", '"Node" is not an entity'),
        ({"__typename": "x" * 5_000, "id": "1"}, "BAD_USER_INPUT", "is not an entity"),
        ({"__typename": 5, "id": "1"}, "BAD_USER_INPUT", "__typename"),
        ("City", "BAD_USER_INPUT", "__typename"),
        ({"__typename": "City"}, "BAD_USER_INPUT", "needs an id or a path"),
        ({"__typename": "City", "id": None, "path": None}, "BAD_USER_INPUT", "needs an id or a path"),
        ({"__typename": "City", "id": {"is": "5"}}, "BAD_USER_INPUT", "neither a string nor an integer"),
        (city(5), "BAD_USER_INPUT", "is not a string"),
        (city("US//NE"), "BAD_PATH", "empty key"),
        (city(""), "BAD_PATH", ""),
        (city("US/NE/100%"), "BAD_PATH", "lone %"),
        (city("US/" + "x" * 3_000), "BAD_PATH", "at most 1024"),
        (city("US/NE"), "WRONG_LEVEL", "US/NE has the level STATE, not CITY."),
        ({"__typename": "City", "id": id_of("US")}, "WRONG_LEVEL", "US has the level COUNTRY, not CITY."),
    ],
)
def test_a_wrong_representation_is_an_error_for_that_entity_alone(clade, representation, code, words):
    answer = clade.ask(ENTITIES, of=[city(CITIES[0]), representation, city(CITIES[1])])
    assert answer["data"]["_entities"] == [told(CITIES[0]), None, told(CITIES[1])]
    (error,) = answer["errors"]
    assert error["path"] == ["_entities", 1]
    assert error["extensions"] == {"code": code}
    assert words in error["message"]
    assert len(error["message"]) < 200


def test_an_id_takes_precedence_over_a_path_and_null_is_none(clade):
    of = [{"id": id_of(CITIES[5]), "path": "US//an old path"}, {"id": None, "path": CITIES[6]}]
    answer = clade.ask(ENTITIES, of=[{"__typename": "City", **one} for one in of])
    assert answer["data"]["_entities"] == [told(CITIES[5]), told(CITIES[6])]


def test_no_representations_are_no_entities_and_no_read(clade):
    answer = clade.ask(ENTITIES, of=[])
    assert answer["data"] == {"_entities": []}
    assert answer["extensions"]["reads"]["requests"] == 0


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "requests"), [(1, 2), (50, 2), (1_000, 10 + 11)])
def test_entities_by_id_are_read_as_nodes_by_id(clade, count, requests):
    """A record of the id and the node itself each, by hundreds, and the stamp of one tree."""
    ids = [id_of(path) for path in CITIES[:count]]
    of = [{"__typename": "City", "id": one} for one in ids]
    entities = clade.ask(ENTITIES, of=of)["extensions"]["reads"]
    nodes = clade.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=ids)["extensions"]["reads"]
    assert entities == nodes
    assert (entities["requests"], entities["rounds"], entities["items"]) == (requests, 2, 2 * count + 1)


@pytest.mark.parametrize(("count", "requests"), [(1, 1), (50, 1), (1_000, 11)])
def test_entities_by_path_spare_the_records_of_ids(clade, count, requests):
    reads = clade.ask(ENTITIES, of=[city(path) for path in CITIES[:count]])["extensions"]["reads"]
    assert (reads["requests"], reads["rounds"], reads["items"]) == (requests, 1, count + 1)


def test_an_entity_that_is_requested_several_times_is_read_once(clade):
    of = [city(CITIES[0]), {"__typename": "Location", "path": CITIES[0]}] * 100
    answer = clade.ask(ENTITIES, of=of)
    assert answer["data"]["_entities"] == [told(CITIES[0])] * 200
    assert (answer["extensions"]["reads"]["requests"], answer["extensions"]["reads"]["items"]) == (1, 2)


def test_entities_of_several_aliases_are_read_together_with_what_lies_above_them(clade):
    query = """query ($cities: [_Any!]!, $goods: [_Any!]!) {
        a: _entities(representations: $cities) { ... on City { name ancestors { name } } }
        b: _entities(representations: $goods) { ... on Category { name parent { name } } }
    }"""
    goods = [{"__typename": "Category", "path": path} for path in CATEGORIES[:40]]
    answer = clade.ask(query, cities=[city(path) for path in CITIES[480:520]], goods=goods)
    assert answer["data"]["a"][39] == {"name": "City 19", "ancestors": [{"name": "US"}, {"name": "NY"}]}
    assert answer["data"]["b"][39] == {"name": "Shelf 39", "parent": {"name": "Goods"}}
    # 80 nodes, US, NE, NY and Goods above them, and the stamps of two trees.
    reads = answer["extensions"]["reads"]
    assert (reads["requests"], reads["rounds"], reads["items"]) == (1, 1, 80 + 4 + 2)


def test_lists_below_entities_are_read_together(clade):
    query = """query ($of: [_Any!]!) {
        _entities(representations: $of) { ... on State { children { totalCount nodes { name } } } }
    }"""
    answer = clade.ask(query, of=[{"__typename": "State", "path": f"US/{key}"} for key in ("NE", "NY")])
    assert [len(one["children"]["nodes"]) for one in answer["data"]["_entities"]] == [500, 500]
    assert answer["extensions"]["reads"]["requests"] == 2  # both states; all their cities in one slice
