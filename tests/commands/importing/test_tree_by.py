"""`--tree-by`: its parts, and trees by parent ids and by codes as files and tables have them."""

import pytest

from commands.importing.files import tree_by
from store.errors import BadInput
from store.transfer.formats.columns import TreeBy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id=ID,parent=PARENT", TreeBy(id="ID", parent="PARENT")),
        (" parent = p:q , id = a=b ", TreeBy(id="a=b", parent="p:q")),
        ('id=i d,"parent=Parent, if ""any""",key=dc:id=1,level=Ü', TreeBy(
            id="i d", parent='Parent, if "any"', key="dc:id=1", level="Ü")),
        ("prefix=code", TreeBy(prefix="code")),
        ("indent", TreeBy(indent="")),
        ("indent=Name", TreeBy(indent="Name")),
        ("depth=d,name=n", TreeBy(depth="d", name="n")),
        ("children=subs | kids,key=k,name=n,id=i", TreeBy(children=("subs", "kids"), key="k", name="n", id="i")),
        *((text, None) for text in (
            "", ",", "id=ID", "parent=P", "id=,parent=P", "id=a,parent=b,id=c", "id=a,parent=b,prefix=c", "prefix",
            "prefix=a,name=b", "indent=", "indent=a,depth=b", "children=", "children= | ", "children=a,parent=b",
            "key=a", "ID=a,PARENT=b", 'id=a,"parent=b', "level=a,key=b", "id=a,parent=b,name=c",
        )),
    ],
)  # fmt: skip
def test_how_the_tree_is_written_is_said_by_parts(text: str, expected: TreeBy | None) -> None:
    if expected is not None:
        assert tree_by(text) == expected
    else:
        with pytest.raises(BadInput, match="--tree-by"):
            tree_by(text)
