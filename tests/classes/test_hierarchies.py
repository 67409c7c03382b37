"""The root field `hierarchies`, which describes classes to tools, and what other root fields say of renamed levels."""

from clade import Node
from graph.hierarchies.locations import Location
from graph.operation.selection import core_schema
from graph.schema import build_schema
from store.model.attributes import MAX_TEXT_CHARACTERS
from tests.classes.land_after import Land
from tests.classes.shops import Place
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

QUERY = """{ hierarchies { name title description field listField searchField searchNeedsUnder latitudeField
    longitudeField mayWrite levels { name title description under mayBeRoot inputField
    attributes { name type selection values orderField facetField required minimum maximum maxLength pattern computed
      deprecated }
    } } }"""


class Album(Node, hierarchy="album", search="tree"):
    """An album or a picture, found in its own tree."""


class TitlePage(Album, under=[None, "self"]):
    """A page, of other pages."""


async def test_hierarchies_have_their_levels_and_attributes_under_their_present_names(store):
    (land,) = (await Server(store, Land).data(caller("read:land"), QUERY))["hierarchies"]
    assert {name: land[name] for name in ("name", "title", "description", "field", "listField")} == {
        "name": "LAND", "title": "Land", "description": "Land.", "field": "land", "listField": "lands",
    }  # fmt: skip
    assert [(one["name"], one["title"], one["under"], one["mayBeRoot"]) for one in land["levels"]] == [
        ("COUNTRY", "Country", [], True), ("CITY", "City", ["COUNTRY"], False),
        ("FARM", "Farm", ["CITY", "COUNTRY"], False),
    ]  # fmt: skip
    assert [one["name"] for one in land["levels"][1]["attributes"]] == ["population", "major"]


TEXT = {"maxLength": MAX_TEXT_CHARACTERS}
MONEY = {"selection": "{ amount currency }"}
ATTRIBUTES = {
    "site": TEXT, "greeting": {"selection": "{ texts { language text } }", "maxLength": 20},
    "owner": {"required": True, "pattern": "[A-Z][a-z]+", **TEXT},
    "address": {"selection": "{ street postcode hours { day opens } }"}, "rent": MONEY, "secret": TEXT, "fees": MONEY,
    "area": {"minimum": "0.5", "maximum": "1000"}, "opened": {"minimum": "1990-01-01"},
    "checked": {"maximum": "2030-01-01T00:00:00.500000Z"}, "codes": {"maxLength": 3, "pattern": "[a-z]+"},
    "weekday": {"values": ["MONDAY", "SUNDAY"], "deprecated": "Use `address`."}, "shout": {"computed": True},
    "yearlyRent": {"computed": True, "deprecated": "Use `rent`.", **MONEY}, "streets": {"computed": True},
    "square": {"computed": True},
}  # fmt: skip
"""What is said of each attribute of a shop, beside its name and type."""


async def test_attributes_have_types_selections_values_orders_facets_and_rules(store):
    server = Server(store, Place)
    (place,) = (await server.data(caller("read:place"), QUERY))["hierarchies"]
    mall, shop = ({one.pop("name"): one for one in level["attributes"]} for level in place["levels"])
    assert (mall["floors"]["minimum"], mall["floors"]["maximum"]) == ("1", "9")
    kinds = core_schema(server.schema).type_map
    fields = kinds["Shop"].fields
    assert {name: one.pop("type") for name, one in shop.items()} == {name: str(fields[name].type) for name in shop}
    orders = {name: one.pop("orderField") for name, one in shop.items()}
    common = {"NAME", "KEY", "PATH", "POSITION", "LEVEL", "CHILD_COUNT", "UPDATED_AT"}
    assert set(filter(None, orders.values())) == set(kinds["PlaceOrderField"].values) - common - {"FLOORS"}
    facets = {one.pop("facetField") for one in shop.values()} - {None}
    assert facets == set(kinds["PlaceFacetField"].values) - {"LEVEL", "FLOORS"}
    assert {name: {key: value for key, value in one.items() if value} for name, one in shop.items()} == ATTRIBUTES
    names = " ".join(f"{name} {one['selection'] or ''}" for name, one in shop.items())
    await server.data(caller("read:place"), f'{{ shop(path: "a/b") {{ {names} }} }}')


async def test_hierarchies_name_the_fields_that_search_them_and_the_inputs_of_their_levels(store):
    server = Server(store, Place, Location, Album)
    found = (await server.data(caller("read:place", "read:location", "read:album"), QUERY))["hierarchies"]
    named = "searchField searchNeedsUnder latitudeField longitudeField".split()
    assert [[one[name] for name in named] for one in found] == [
        [None, False, None, None],
        ["searchLocations", False, "latitude", "longitude"],
        ["searchAlbums", True, None, None],
    ]
    fields = core_schema(server.schema).query_type.fields
    assert all(one["searchField"] in fields for one in found if one["searchField"])
    for one in found:
        inputs = core_schema(server.schema).type_map[f"{one['title']}Attributes"].fields
        assert [level["inputField"] for level in one["levels"]] == list(inputs)


async def test_a_caller_learns_which_hierarchies_it_may_read_or_write_in_part(store):
    server = Server(store, Land, Place)
    for grants, wanted in (
        ([], []), (["read:land/DE"], [("LAND", False)]), (["write:place"], [("PLACE", True)]),
        (["read:land", "write:place/a"], [("LAND", False), ("PLACE", True)]),
    ):  # fmt: skip
        found = (await server.data(caller(*grants), "{ hierarchies { name mayWrite } }"))["hierarchies"]
        assert [(one["name"], one["mayWrite"]) for one in found] == wanted
    everybody = await server.data(caller(reads=False), "{ hierarchies { name } }")
    assert [one["name"] for one in everybody["hierarchies"]] == ["LAND", "PLACE"]


async def test_changes_and_deleted_nodes_have_the_present_level(store):
    await plant(store, Land, [(["DE"], "COUNTRY"), (["DE", "Ulm"], "TOWN")])
    server = Server(store, Land)
    query = '{ changes(hierarchy: LAND, tree: "DE") { changes { event level path } } }'
    assert (await server.data(caller("read:land"), query))["changes"]["changes"] == [
        {"event": "CREATED", "level": "COUNTRY", "path": "DE"}, {"event": "CREATED", "level": "CITY", "path": "DE/Ulm"},
    ]  # fmt: skip
    gone = await server.write(
        caller("write:land"), 'mutation { deleteLand(input: {node: {path: "DE/Ulm"}}) { node { id } } }'
    )
    node_id = gone["data"]["deleteLand"]["node"]["id"]
    query = "query($id: ID!) { deletedNode(id: $id) { level path } }"
    found = await server.data(caller("read:land"), query, id=node_id)
    assert found["deletedNode"] == {"level": "CITY", "path": "DE/Ulm"}


def test_scalars_name_their_specifications():
    kinds = core_schema(build_schema([Place])[0]).type_map
    for name in ("Path", "Url", "Date", "DateTime", "Decimal"):
        assert kinds[name].specified_by_url.startswith("https://")
