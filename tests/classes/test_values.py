"""Values of attributes: objects, enums, rules and computed fields, in mutations, imports, queries and checks, on both
stores.
"""

import csv
import json
from enum import Enum, auto

import pytest

from clade import Money, Node, attribute, computed
from graph.operation.selection import core_schema
from store.checking.check import Check
from store.engine import ReadUsage
from store.model.keys import node_key
from store.model.records import Put, key_of
from store.transfer.export import export
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from store.transfer.shapes.paths import PathCells, path_header, path_line, row_of
from tests import invariants
from tests.classes.shops import Place
from tests.model import Word, literal, plain
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import Client, plant

ALL = caller("write:place")
KIND = Place.definition()
ADDRESS = {"street": "Main 1", "postcode": "68118", "hours": [{"day": "SUNDAY"}, {"day": "MONDAY", "opens": 0}]}
SHOP = {
    "owner": "Ann",
    "site": "https://example.com/a?b=c",
    "greeting": {"de-at": "Servus", "EN": "Hello"},
    "address": ADDRESS,
    "rent": "12.50 EUR",
    "fees": [{"amount": 1, "currency": "JPY"}, "2.0 USD"],
    "area": "0.5",
    "codes": ["abc", "d"],
}
FIELDS = """site shout owner address { street postcode hours { day opens __typename } } streets square
    rent { amount currency } yearlyRent { a: amount } fees { amount __typename } weekday codes
    greeting { text(languages: $some) fixed: text(languages: ["de"]) language(languages: ["de-AT-1996"])
    texts { language text } }"""
QUERY = f"""query($path: Path!, $some: [String!] = ["en-GB"]) {{
    place(path: $path) {{ ... on Shop {{ {FIELDS} }} }} }}"""
CREATE = """mutation($key: String!, $shop: ShopAttributes!) {
    createPlace(input: {parent: {path: "M"}, key: $key, name: $key, attributes: {shop: $shop}}) { node {
      revision } } }"""
UPDATE = """mutation($shop: ShopAttributes!) {
    updatePlace(input: {node: {path: "M/S"}, attributes: {shop: $shop}}) { node { revision ... on Shop {
    owner greeting { texts { language text } } address { street postcode hours { opens } } rent { amount } } } } }"""


@pytest.fixture
async def server(store):
    await plant(store, Place, [(["M"], "MALL"), (["M", "S"], "SHOP", "Stall", SHOP)])
    yield Server(store, Place)
    await invariants.check(store)


async def stored(store, *path):
    (item,) = await store.get([node_key("place", path)], ReadUsage(), strong=True)
    return item


async def imported(store, *lines):
    plan, outcome = ImportPlan(KIND), LoadResult()
    for number, line in enumerate(lines):
        plan.take(row_of(number, line))
    await load(store, plan, outcome)
    return outcome


async def test_objects_are_read_alike_by_path_and_in_lists(server):
    found = (await server.data(ALL, QUERY, path="M/S"))["place"]
    assert found == {
        "site": SHOP["site"], "shout": "STALL", "owner": "Ann", "square": 0.25, "weekday": "SUNDAY",
        "address": {
            **ADDRESS, "hours": [{"day": "SUNDAY", "opens": 480, "__typename": "Hours"},
                                 {"day": "MONDAY", "opens": 0, "__typename": "Hours"}],
        },
        "streets": ["Main 1", "S"], "rent": {"amount": "12.50", "currency": "EUR"}, "yearlyRent": {"a": "150"},
        "codes": ["abc", "d"],
        "fees": [{"amount": "1", "__typename": "Money"}, {"amount": "2.0", "__typename": "Money"}],
        "greeting": {
            "text": "Hello", "fixed": None, "language": "de-AT",
            "texts": [{"language": "de-AT", "text": "Servus"}, {"language": "en", "text": "Hello"}],
        },
    }  # fmt: skip
    listed = (
        f'query($some: [String!]!) {{ mall(path: "M") {{ children {{ nodes {{ ... on Shop {{ {FIELDS} }} }} }} }} }}'
    )
    reply = await Client(server.store, Place).ask(listed, some=["de-AT"])
    assert reply.data["mall"]["children"]["nodes"] == [{**found, "greeting": {**found["greeting"], "text": "Servus"}}]


class Fault(Node, hierarchy="fault"):
    """A node with computed fields that fail."""

    right: str | None = attribute("A text.", default="yes")

    @computed("An exception.")
    def raised(self) -> int | None:
        raise ValueError("of the class")

    @computed("A lone surrogate, with which a response cannot be written as UTF-8.")
    def texts(self) -> list[str] | None:
        return ["a", "\udfff"]

    @computed("Another.")
    def money(self) -> Money | None:
        return {"amount": "\ud800", "currency": "EUR"}

    @computed("A value of another type.")
    def number(self) -> int | None:
        return "many"


class Failing(Fault, under=None):
    """Its only level."""


async def test_a_computed_field_that_fails_is_an_error_of_this_field_alone(store):
    await plant(store, Fault, [(["F"], "FAILING")])
    server = Server(store, Fault)
    for field, code in (
        ("raised", "INTERNAL_SERVER_ERROR"), ("texts", "BAD_DATA"), ("money { amount }", "BAD_DATA"),
        ("number", "BAD_DATA"),
    ):  # fmt: skip
        answer = await server.ask(caller("read:fault"), f'{{ fault(path: "F") {{ right {field} }} }}')
        assert answer["data"]["fault"] == {"right": "yes", field.partition(" ")[0]: None}
        assert codes(answer) == [code]


async def test_a_mutation_creates_changes_and_clears_objects(server):
    money, texts = {"amount": "3", "currency": "CHF"}, [{"language": "FR", "text": "Salut"}]
    shop = {"owner": "Bob", "rent": money, "greeting": texts, "address": {"street": "Side 2", "hours": []}}
    made = await server.write(ALL, CREATE, key="T", shop=shop)
    assert "errors" not in made
    item = await stored(server.store, "M", "T")
    assert (item["rent"], item["greeting"], item["weekday"]) == (money, {"fr": "Salut"}, "SUNDAY")
    assert item["address"] == {"street": "Side 2", "hours": []}
    texts = [{"language": "en"}, {"language": "it", "text": "Ciao"}]
    changed = await server.write(ALL, UPDATE, shop={"greeting": texts, "rent": None, "address": {"street": "Side 2"}})
    assert changed["data"]["updatePlace"]["node"] == {
        "revision": 2, "owner": "Ann", "rent": None,
        "greeting": {"texts": [{"language": "de-AT", "text": "Servus"}, {"language": "it", "text": "Ciao"}]},
        "address": {"street": "Side 2", "postcode": None, "hours": None},
    }  # fmt: skip
    again = await server.write(ALL, UPDATE, shop={"greeting": texts})
    assert again["data"]["updatePlace"]["node"]["revision"] == 2, "nothing changes"
    again = await server.write(ALL, UPDATE, shop={"greeting": []})
    assert again["data"]["updatePlace"]["node"]["revision"] == 2, "nothing changes"
    past = await server.data(ALL, '{ shop(path: "M/S") { atRevision(n: 1) { rent { amount } shout streets } } }')
    assert past["shop"]["atRevision"] == {"rent": {"amount": "12.50"}, "shout": "STALL", "streets": ["Main 1", "S"]}


BROKEN = [
    ({"owner": "ann"}, 'owner: "ann" does not match the pattern [A-Z][a-z]+'),
    ({"owner": "Ann "}, 'owner: "Ann " does not match the pattern'),
    ({"owner": "X" + "a" * 20_000}, "owner has 20,001 characters; at most 16,384"),
    ({"owner": None}, "owner is required; give it a value"),
    ({"area": "0.4"}, 'area: "0.4" is less than the minimum 0.5'),
    ({"area": "1000.01"}, 'area: "1000.01" is more than the maximum 1000'),
    ({"opened": "1989-12-31"}, 'opened: "1989-12-31" is less than the minimum 1990-01-01'),
    ({"checked": "2030-01-01T01:00:01+01:00"}, "is more than the maximum 2030-01-01T00:00:00.500000Z"),
    ({"codes": ["ab", "abcd"]}, "codes has 4 characters; at most 3 are allowed"),
    ({"codes": ["ab", "A"]}, 'codes: "A" does not match the pattern [a-z]+'),
    ({"site": "javascript:alert(1)"}, '"javascript:alert(1)" is not a web address'),
    ({"site": "https://a b"}, '"https://a b" is not a web address'),
    ({"site": "http://example.com:99999999/"}, "is not a web address; write one like https://example.com/a"),
    ({"rent": {"amount": "1", "currency": "eur"}}, 'rent: "eur" is not the code of a currency; write one like EUR'),
    ({"rent": {"amount": "1e99", "currency": "EUR"}}, "at most 38 digits"),
    ({"area": "1e38"}, "is out of range; write at most 38 digits"),
    ({"fees": [{"amount": "1", "currency": "XYZ"}]}, 'fees: "XYZ" is not the code of a currency'),
    ({"address": {"postcode": "68118"}}, "address: street is required; give it a value"),
    ({"address": {"street": "x" * 31}}, "street has 31 characters; at most 30 are allowed"),
    ({"address": {"street": "x", "postcode": "1"}}, 'postcode: "1" does not match the pattern [0-9]{4,5}'),
    ({"address": {"street": "x", "hours": [{"day": "MONDAY", "opens": 1440}]}}, "1440 is more than the maximum 1439"),
    ({"address": {"street": "x", "hours": [{"opens": 1}]}}, "hours: day is required"),
    ({"greeting": [{"language": "de", "text": "x" * 21}]}, "greeting in de has 21 characters; at most 20 are allowed"),
    ({"greeting": [{"language": "d", "text": "x"}]}, "is not a language tag"),
]


SEVERAL = [
    (
        {"codes": ["ab", "abcd", "A", "cd", "1"]},
        [(["codes", "1"], "maxLength"), (["codes", "2"], "pattern"), (["codes", "4"], "pattern")],
    ),
    (
        {"rent": {"amount": "1e99", "currency": "eur"}, "fees": [
            {"amount": "1", "currency": "EUR"}, {"amount": "1,5", "currency": "EUR"}, {"amount": "1", "currency": ""}]},
        [(["rent", "amount"], "type"), (["rent", "currency"], "type"), (["fees", "1", "amount"], "type"),
         (["fees", "2", "currency"], "type")],
    ),
    (
        {"address": {"postcode": "1", "hours": [
            {"opens": -1}, {"day": Word("MONDAY")}, {"day": Word("SUNDAY"), "opens": 1440}, {"day": None}]}},
        [(["address", "street"], "required"), (["address", "postcode"], "pattern"),
         (["address", "hours", "0", "day"], "required"), (["address", "hours", "0", "opens"], "minimum"),
         (["address", "hours", "2", "opens"], "maximum"), (["address", "hours", "3", "day"], "required")],
    ),
    (
        {"greeting": [
            {"language": "d", "text": "x" * 21}, {"language": "en", "text": "x"}, {"language": "de", "text": ""},
            {"language": "EN", "text": "y"}, {"language": "fr", "text": "x" * 17_000}, {"language": "it"}]},
        [(["greeting", "0", "language"], "type"), (["greeting", "0", "text"], "maxLength"),
         (["greeting", "2", "text"], "empty"), (["greeting", "3", "language"], "duplicate"),
         (["greeting", "4", "text"], "maxLength")],
    ),
    (
        {"owner": "ann", "site": "no", "area": "0.1", "opened": "1989-12-31", "checked": "2031-01-01T00:00:00Z"},
        [(["site"], "type"), (["owner"], "pattern"), (["area"], "minimum"), (["opened"], "minimum"),
         (["checked"], "maximum")],
    ),
]  # fmt: skip
CREATE_AND_UPDATE = """
    made: createPlace(input: {parent: {path: "none"}, key: "N", name: "n", attributes: {shop: %s}}) { ...Told }
    changed: updatePlace(input: {node: {path: "M/S"}, name: "", attributes: {shop: %s}}) { ...More } }
    fragment Told on CreatePlacePayload { node { id } userErrors { code message field rule } }
    fragment More on UpdatePlacePayload { node { id } userErrors { code message field rule } }"""


@pytest.mark.both_stores
async def test_all_faults_in_elements_and_parts_of_values_have_their_places(server):
    before = sorted(await invariants.all_items(server.store), key=key_of)
    for shop, expected in SEVERAL:
        given = {"owner": "Eve", **shop}
        places = [(["attributes", "shop", *field], rule) for field, rule in expected]
        by_literal = CREATE_AND_UPDATE.replace("%s", literal(given))
        by_variable = CREATE_AND_UPDATE.replace("%s", "$shop")
        for answer in (
            await server.write(ALL, f"mutation {{ {by_literal}"),
            await server.write(ALL, f"mutation($shop: ShopAttributes!) {{ {by_variable}", shop=plain(given)),
        ):
            made, changed = answer["data"]["made"], answer["data"]["changed"]
            assert [(one["field"], one["rule"]) for one in made["userErrors"]] == [*places, (["parent"], "missing")]
            assert [(one["field"], one["rule"]) for one in changed["userErrors"]] == [(["name"], "empty"), *places]
            assert (made["node"], changed["node"]) == (None, None)
            assert all(one["message"].endswith(".") for one in made["userErrors"])
    assert sorted(await invariants.all_items(server.store), key=key_of) == before


async def refusal(server, mutation, **variables):
    """The sentence of the only fault of a mutation."""
    code, message = await server.refusal(ALL, mutation, **variables)
    assert code == "BAD_USER_INPUT"
    return message


async def test_a_broken_rule_is_refused_by_create_update_and_import_alike(server):
    before = await stored(server.store, "M", "S")
    for shop, message in BROKEN:
        if shop.get("owner", "") is not None:
            assert message in await refusal(server, CREATE, key="N", shop={"owner": "Eve", **shop})
        assert message in await refusal(server, UPDATE, shop=shop)
        if isinstance(texts := shop.get("greeting"), list):
            shop = {"greeting": {one["language"]: one["text"] for one in texts}}
        rows = [{"path": "M/S", "level": "SHOP", **shop}, {"path": "M/N", "level": "SHOP", "owner": "Eve", **shop}]
        outcome = await imported(server.store, *rows)
        assert message in outcome.rejections[0].reason
        assert [one.number for one in outcome.rejections] == [0, 1]
    assert await stored(server.store, "M", "S") == before
    assert await stored(server.store, "M", "N") is None


async def test_stored_values_that_break_rules_can_be_read_and_are_listed_by_check(server):
    item = await stored(server.store, "M", "S")
    old = {name: value for name, value in item.items() if name != "owner"}
    old |= {"area": "0.1", "codes": ["ABCDE"], "address": {"postcode": "x"}, "rent": {"amount": "1", "currency": "DEM"}}
    await server.store.commit([Put(old)])
    found = (await server.data(ALL, QUERY, path="M/S"))["place"]
    assert (found["owner"], found["codes"], found["rent"]["currency"]) == (None, ["ABCDE"], "DEM")
    assert found["address"] == {"street": None, "postcode": "x", "hours": None}
    check = Check(server.store, {"place": KIND}, "2026-01-01T00:00:00.000Z")
    assert [str(one) async for one in check.findings()] == []
    assert check.undefined["place"].sentences() == [
        "place: 1 node of SHOP has a value of address that has no street, which is required, such as M/S.",
        "place: 1 node of SHOP has a value of area that is less than the minimum 0.5, such as M/S.",
        "place: 1 node of SHOP has a value of codes that has more than 3 characters, such as M/S.",
        "place: 1 node of SHOP has no owner, which is required, such as M/S.",
    ]
    changed = await server.write(ALL, UPDATE, shop={"rent": {"amount": "2", "currency": "EUR"}})
    assert changed["data"]["updatePlace"]["node"]["revision"] == 2


async def test_an_export_is_imported_without_a_change_as_lines_and_as_a_table(server):
    lines = [json.loads(line) async for page in export(server.store, KIND) for line in page.splitlines()]
    outcome = await imported(server.store, *lines)
    assert (outcome.rejections, outcome.written, outcome.unchanged) == ([], 0, 2)
    header, plan, outcome = path_header(KIND), ImportPlan(KIND), LoadResult()
    reader = PathCells(KIND, header)
    for number, cells in enumerate(csv.reader([path_line(header, line) for line in lines])):
        plan.take(reader.row(number, cells))
    await load(server.store, plan, outcome)
    assert (outcome.rejections, outcome.written, outcome.unchanged) == ([], 0, 2)


def test_lists_are_filtered_by_what_compares_such_as_addresses_of_sites(server):
    fields = core_schema(server.schema).type_map["PlaceCondition"].fields
    compared = {"site", "floors", "owner", "secret", "area", "opened", "checked", "weekday"}
    own = {"name", "key", "path", "childCount", "updatedAt", "and", "or", "not", "children"}
    assert fields.keys() == own | compared
    assert str(fields["site"].type) == "StringCondition"


def test_the_schema_says_what_is_deprecated_and_which_rules_hold(server):
    kinds = core_schema(server.schema).type_map
    assert kinds["Shop"].fields["weekday"].deprecation_reason == "Use `address`."
    assert kinds["Shop"].fields["yearlyRent"].deprecation_reason == "Use `rent`."
    assert kinds["Address"].fields["postcode"].deprecation_reason == "Use `code`."
    inputs = kinds["ShopAttributes"].fields
    assert inputs["weekday"].deprecation_reason == "Use `address`."
    assert inputs["owner"].description == "Owner. Required for a new node. Matches [A-Z][a-z]+"
    assert inputs["weekday"].description == "Day off. Default for a new node: SUNDAY."
    assert str(inputs["greeting"].type) == "[LocalizedTextInput!]"
    assert "shout" not in inputs


# -- Enums whose values are not the names of their members -------------------------------------------------------------


class Phase(Enum):
    FIRST = auto()
    SECOND = auto()


class Swapped(Enum):
    LEFT = "RIGHT"
    RIGHT = "LEFT"


class Alike(Enum):
    ONE = "same"
    OTHER = "same"


class Odd(Enum):
    LIST = (1, 2)
    NOTHING = None


class Task(Node, hierarchy="task", many="tasks", search="hierarchy"):
    """A task."""

    swapped: Swapped | None = attribute("A direction.", default=Swapped.LEFT, search=True)


class Job(Task, under=None):
    """A job."""

    phase: Phase | None = attribute("Phase.")
    alike: Alike | None = attribute("Alike.")
    odd: Odd | None = attribute("Odd.")
    phases: list[Phase] | None = attribute("Phases.", default=[Phase.FIRST])

    @computed("The phases, as members.")
    def members(self) -> list[Phase] | None:
        return self.phases and [Phase[one] for one in self.phases]


JOB = "phase swapped alike odd phases members"
NEW = f"""mutation($job: JobAttributes!) {{
    createTask(input: {{key: "a", name: "a", attributes: {{job: $job}}}}) {{ node {{ ... on Job {{ {JOB} }} }} }} }}"""


async def test_every_value_of_an_enum_is_written_read_and_found_by_its_name(store):
    tasks, everything = Server(store, Task), caller("write:task")
    made = await tasks.write(everything, NEW, job={})
    defaults = {"swapped": "LEFT", "phases": ["FIRST"], "members": ["FIRST"], "phase": None, "alike": None, "odd": None}
    assert made["data"]["createTask"]["node"] == defaults
    change = (
        'mutation($job: JobAttributes!) { updateTask(input: {node: {path: "a"}, attributes: '
        "{job: $job}}) { node { id } } }"
    )
    for enum, name in ((Phase, "phase"), (Swapped, "swapped"), (Alike, "alike"), (Odd, "odd")):
        assert list(core_schema(tasks.schema).type_map[enum.__name__].values) == list(enum.__members__)
        for member in enum.__members__:
            await tasks.write(everything, change, job={name: member, "phases": ["SECOND", "FIRST"]})
            for operator, count in (("eq", 1), ("ne", 0)):
                query = (
                    f"{{ tasks(where: {{{name}: {{{operator}: {member}}}}}) {{ nodes {{ ... on Job {{ {JOB} }} }} }} }}"
                )
                nodes = (await tasks.data(everything, query))["tasks"]["nodes"]
                assert [(node[name], node["members"]) for node in nodes] == [(member, ["SECOND", "FIRST"])] * count
    found = await tasks.data(everything, '{ searchTasks(text: "right") { nodes { key } } }')
    assert found["searchTasks"]["nodes"] == [{"key": "a"}]
