"""Type of revisions: it has the attributes of all levels of a hierarchy, also where one name has two types."""

from graphql import parse

from clade import Decimal, Node, attribute, computed
from graph.federation import subgraph_sdl
from graph.operation.selection import core_schema
from graph.settings import exposed
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

ALL = caller("write:stand")


class Stand(Node, hierarchy="stand"):
    """A stand of timber."""

    note: str | None = attribute("Note.")


class Forest(Stand, under=None):
    """A forest."""

    code: str | None = attribute("Letters.", tags=["a"], shareable=True)
    size: int | None = attribute("Hectares.", deprecated="Count them.", tags=["b"], shareable=True)

    @computed("Its note, twice.")
    def age(self) -> str | None:
        return self.note and self.note * 2


class OldTree(Stand, under=[Forest]):
    """A tree."""

    code: int | None = attribute("Number.", inaccessible=True)
    size: int | None = attribute("Centimetres.", tags=["c"], inaccessible=True)
    age: int | None = attribute("Years.")


class Leaf(Stand, under=[OldTree]):
    """A leaf."""

    code: Decimal | None = attribute("Ratio.")


FIELDS = "revision level note forestCode oldTreeCode leafCode size forestAge oldTreeAge"
ROWS = [
    (["F"], "FOREST", "F", {"code": "AB", "size": 7, "note": "x"}),
    (["F", "T"], "OLD_TREE", "T", {"code": 12, "size": 30, "age": 99}),
    (["F", "T", "L"], "LEAF", "L", {"code": "1.50", "note": "green"}),
]
EXPECTED = {
    "F": ["FOREST", "x", "AB", None, None, 7, "xx", None],
    "F/T": ["OLD_TREE", None, None, 12, None, 30, None, 99],
    "F/T/L": ["LEAF", "green", None, None, "1.50", None, None, None],
}


async def test_a_revision_has_the_values_of_its_level_and_null_for_all_others(store):
    await plant(store, Stand, ROWS)
    server = Server(store, Stand)
    for path, expected in EXPECTED.items():
        await server.write(
            ALL, f'mutation {{ updateStand(input: {{node: {{path: "{path}"}}, name: "N"}}) {{ __typename }} }}'
        )
        found = await server.data(ALL, f'{{ stand(path: "{path}") {{ history {{ nodes {{ {FIELDS} }} }} }} }}')
        revisions = [list(one.values()) for one in found["stand"]["history"]["nodes"]]
        assert revisions == [[2, *expected], [1, *expected]]


async def test_the_schema_says_whose_value_a_field_of_two_types_is(store):
    fields = core_schema(Server(store, Stand).schema).type_map["StandRevision"].fields
    assert {name: (str(one.type), one.description) for name, one in fields.items() if "Code" in name} == {
        "forestCode": ("String", "`code` of level FOREST: Letters."),
        "oldTreeCode": ("Int", "`code` of level OLD_TREE: Number."),
        "leafCode": ("Decimal", "`code` of level LEAF: Ratio."),
    }  # fmt: skip
    size = fields["size"]
    assert (size.description, size.deprecation_reason) == ("Hectares. Centimetres.", None)


def test_a_field_of_revisions_is_hidden_from_a_graph_where_that_of_a_level_is(store):
    server = Server(store, Stand)
    sdl = subgraph_sdl(server.schema, [Stand], exposed("history"))
    (kind,) = [
        one for one in parse(sdl).definitions if getattr(one, "name", None) and one.name.value == "StandRevision"
    ]
    found = {
        one.name.value: {directive.name.value for directive in one.directives or ()} - {"cost", "listSize"}
        for one in kind.fields
    }
    assert found["forestCode"] == {"tag", "shareable"}
    assert found["oldTreeCode"] == {"inaccessible"}
    assert found["size"] == {"tag", "inaccessible"}
