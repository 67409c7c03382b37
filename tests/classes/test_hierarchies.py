"""The root field `hierarchies`, the enums of all hierarchies, and the specifications of scalars."""

from clade import Node
from graph.hierarchies.locations import Location
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from store.model.attributes import MAX_TEXT_CHARACTERS
from tests.classes.land_after import Land
from tests.classes.shops import Place
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

QUERY = """{ hierarchies { name title description field listField searchField searchNeedsUnder nearField latitudeField
    longitudeField mayWrite levels { name title description under mayBeRoot inputField
    attributes { name type selection values orderField required minimum maximum maxLength pattern computed deprecated }
    } } }"""


class Album(Node, hierarchy="album", search="tree"):
    """An album or a picture, found in its own tree."""


class TitlePage(Album, under=[None, "self"]):
    """A page, of other pages."""


async def test_hierarchies_have_their_levels_and_attributes_under_their_present_names(store):
    server = Server(store, Land, Place)
    found = (await server.data(caller("read:land", "read:place"), QUERY))["hierarchies"]
    land, place = found
    assert {name: land[name] for name in ("name", "title", "description", "field", "listField")} == {
        "name": "LAND", "title": "Land", "description": "Land.", "field": "land", "listField": "lands",
    }  # fmt: skip
    assert [(one["name"], one["title"], one["under"], one["mayBeRoot"]) for one in land["levels"]] == [
        ("COUNTRY", "Country", [], True), ("CITY", "City", ["COUNTRY"], False),
        ("FARM", "Farm", ["CITY", "COUNTRY"], False),
    ]  # fmt: skip
    fields = core_schema(server.schema).type_map
    for level in (*land["levels"], *place["levels"]):
        own = fields[level["title"]].fields
        assert {one["name"]: one["type"] for one in level["attributes"]} == {
            one["name"]: str(own[one["name"]].type) for one in level["attributes"]
        }
        assert {one["name"] for one in level["attributes"] if one["deprecated"]} == {
            one["name"] for one in level["attributes"] if own[one["name"]].deprecation_reason
        }
    shop = {one["name"]: one for one in place["levels"][1]["attributes"]}
    assert [name for name, one in shop.items() if one["required"]] == ["owner"]
    assert sorted(name for name, one in shop.items() if one["computed"]) == ["shout", "square", "streets", "yearlyRent"]


async def test_a_caller_learns_of_the_hierarchies_that_it_may_read_in_part(store):
    server = Server(store, Land, Place)
    for grants, names in (([], []), (["read:land/DE"], ["LAND"]), (["write:place"], ["PLACE"])):
        found = (await server.data(caller(*grants), "{ hierarchies { name } }"))["hierarchies"]
        assert [one["name"] for one in found] == names
    everybody = await server.data(caller(reads=False), "{ hierarchies { name } }")
    assert [one["name"] for one in everybody["hierarchies"]] == ["LAND", "PLACE"]


async def test_attributes_name_the_fields_of_objects_the_values_of_enums_and_their_order(store):
    server = Server(store, Place)
    (place,) = (await server.data(caller("read:place"), QUERY))["hierarchies"]
    shop = {one["name"]: one for one in place["levels"][1]["attributes"]}
    assert {name: one["selection"] for name, one in shop.items() if one["selection"]} == {
        "greeting": "{ texts { language text } }", "address": "{ street postcode hours { day opens } }",
        "rent": "{ amount currency }", "fees": "{ amount currency }", "yearlyRent": "{ amount currency }",
    }  # fmt: skip
    assert {name: one["values"] for name, one in shop.items() if one["values"]} == {"weekday": ["MONDAY", "SUNDAY"]}
    order = {one["orderField"] for one in shop.values() if one["orderField"]}
    common = {"NAME", "KEY", "PATH", "POSITION", "LEVEL", "CHILD_COUNT", "UPDATED_AT"}
    assert order == set(core_schema(server.schema).type_map["PlaceOrderField"].values) - common - {"FLOORS"}
    names = " ".join(f"{name} {one['selection'] or ''}" for name, one in shop.items())
    await server.data(caller("read:place"), f'{{ shop(path: "a/b") {{ {names} }} }}')


async def test_attributes_have_the_rules_of_what_is_written(store):
    server = Server(store, Place)
    (place,) = (await server.data(caller("read:place"), QUERY))["hierarchies"]
    mall, shop = ({one["name"]: one for one in level["attributes"]} for level in place["levels"])
    rules = "minimum", "maximum", "maxLength", "pattern"
    listed = {name: tuple(one[rule] for rule in rules) for name, one in {**mall, **shop}.items()}
    assert {name: one for name, one in listed.items() if any(one)} == {
        "site": (None, None, MAX_TEXT_CHARACTERS, None), "greeting": (None, None, 20, None),
        "floors": ("1", "9", None, None), "owner": (None, None, MAX_TEXT_CHARACTERS, "[A-Z][a-z]+"),
        "secret": (None, None, MAX_TEXT_CHARACTERS, None), "area": ("0.5", "1000", None, None),
        "opened": ("1990-01-01", None, None, None),
        "checked": (None, "2030-01-01T00:00:00.500000Z", None, None), "codes": (None, None, 3, "[a-z]+"),
    }  # fmt: skip


async def test_hierarchies_name_the_fields_that_search_them(store):
    server = Server(store, Place, Location, Album)
    found = (await server.data(caller("read:place", "read:location", "read:album"), QUERY))["hierarchies"]
    named = "searchField searchNeedsUnder nearField latitudeField longitudeField".split()
    assert [[one[name] for name in named] for one in found] == [
        [None, False, None, None, None],
        ["searchLocations", False, "locationsNear", "latitude", "longitude"],
        ["searchAlbums", True, None, None, None],
    ]
    fields = core_schema(server.schema).query_type.fields
    assert all(one[name] in fields for one in found for name in ("searchField", "nearField") if one[name])
    for one in found:
        inputs = getattr(core_schema(server.schema).type_map.get(f"{one['title']}Attributes"), "fields", {})
        assert [level["inputField"] for level in one["levels"] if level["inputField"]] == list(inputs)


async def test_a_caller_learns_which_hierarchies_it_may_write_in_part(store):
    server = Server(store, Land, Place)
    query = "{ hierarchies { name mayWrite } }"
    found = (await server.data(caller("read:land", "write:place/a"), query))["hierarchies"]
    assert [one["mayWrite"] for one in found] == [False, True]


async def test_changes_and_deleted_nodes_have_the_present_level_or_none(store):
    await plant(store, Land, [(["DE"], "COUNTRY"), (["DE", "Ulm"], "TOWN")])
    server = Server(store, Land)
    query = '{ changes(hierarchy: LAND, tree: "DE") { changes { event level path } } }'
    assert (await server.data(caller("read:land"), query))["changes"]["changes"] == [
        {"event": "CREATED", "level": "COUNTRY", "path": "DE"}, {"event": "CREATED", "level": "CITY", "path": "DE/Ulm"},
    ]  # fmt: skip
    gone = await server.write(
        caller("write:land"), 'mutation { deleteLand(input: {node: {path: "DE/Ulm"}}) { node { id } } }'
    )
    found = await server.data(
        caller("read:land"),
        "query($id: ID!) { deletedNode(id: $id) { level path } }",
        id=gone["data"]["deleteLand"]["node"]["id"],
    )
    assert found["deletedNode"] == {"level": "CITY", "path": "DE/Ulm"}


def test_scalars_name_their_specifications():
    kinds = core_schema(build_schema([Place])[0]).type_map
    for name in ("Path", "Url", "Date", "DateTime", "Decimal"):
        assert kinds[name].specified_by_url.startswith("https://")
