"""Served hierarchies: those that the modules and files named by the settings declare, and their names in the schema.

A mistake in one is a BadInput of one sentence. Each type and field of Query comes from only one class, else the
hierarchies are rejected.
"""

import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_origin

from graph.hierarchies import attribute, node
from graph.hierarchies.attribute import WrongClass, value_attributes
from graph.hierarchies.node import Node, declared_in
from graph.settings import Settings
from resolvers.sorting.values import NodeValue
from store.errors import BadInput, suggestion
from store.model.attributes import COMPOUND, Attribute, Kind
from store.model.hierarchy import RESERVED, Hierarchy

SETTING = "CLADE_HIERARCHIES"
_UNDEFINED = (
    'The store has nodes of the hierarchy "{}", which no class defines. Was it renamed? Its name stays: '
    f'hierarchy="{{}}", whatever the classes are called. Else add its classes to {SETTING}.'
)
OWN_MODULES = ("graph.hierarchies.locations", "graph.hierarchies.categories")
_OUR_FRAMES = frozenset(module.__file__ for module in (attribute, node)) | {__file__}

OWN_TYPES = frozenset(
    "Query Mutation Subscription Node NodeRevision NodeRevisionConnection NodeRevisionEdge PageInfo DeletedNode "
    "StringCondition IntCondition LongCondition FloatCondition DecimalCondition BooleanCondition DateCondition "
    "DateTimeCondition StringListCondition IntListCondition LongListCondition FloatListCondition "
    "DecimalListCondition BooleanListCondition DateListCondition DateTimeListCondition OrderDirection "
    "KeyCondition PathCondition NameCondition NearCondition SearchCondition "
    "Localized LocalizedText LocalizedTextInput Money MoneyInput Url ListFacet ListFacetValue "
    "HierarchyInfo HierarchyName HierarchyLevel HierarchyAttribute NodeLevel TreeNode TreeChangeEvent "
    "TreeChange TreeChangeFeed SubtreeMove SubtreeMoveState WritePlan DeletePolicy UserError UserErrorCode "
    "Path Long Decimal Date DateTime ID Int Float String Boolean _Any _Entity _Service".split()
)
"""The types that a schema has, or may have, whatever hierarchies are served."""

LATER_TYPES = frozenset("ReferenceCondition TreeRelease TreeDifference".split())
"""The types that schemas will have: a class that has such a name today would have to be renamed then."""

OWN_FIELDS = frozenset("node nodes move moves deletedNode changes hierarchies _entities _service".split())
"""The fields of Query that every schema has."""

TYPE, FIELD = "type", "field of Query"
LATER = "keeps for later"

_NAME = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_OF_LISTS = "Level Connection Edge OrderBy OrderField Condition ChildrenCondition FacetField".split()
_OF_EDITS = "Attributes By Destination Position Edit".split()
_OF_TITLE = ("", *_OF_LISTS, *_OF_EDITS, *"Revision RevisionConnection RevisionEdge".split())
_OF_LEVEL = ("", "Attributes")
_VERBS, _LATER_VERBS = "Create Update Move Delete Restore".split(), "Copy Merge Release".split()


def served(names: str | None = None) -> list[type[Node]]:
    """The hierarchy classes of these modules and files (divided by commas), else of those that the settings name.

    A name that ends in `.py` or holds a `/` is the path of a file. A module is looked for in the working directory too.
    Each is loaded once in a process. Raises BadInput where one is missing, cannot be loaded, declares no hierarchy or
    one that another declares, has levels that do not fit together, and where names clash.
    """
    found: dict[str, type[Node]] = {}
    for name in dict.fromkeys((names or Settings().hierarchies).split(",")):
        name = name.strip()
        module = _from_file(name) if name.endswith(".py") or "/" in name else _from_module(name)
        for cls in _declared_by(module):
            other = found.setdefault(cls.name, cls)
            if other is not cls:
                fact = f'{cls.title} has hierarchy="{cls.name}", as {other.title} in {location(other)} has'
                raise BadInput(f"{location(cls)}: {fact}; rename one of them, or serve only one.")
            _check_levels(cls)
    check_names(list(found.values()))
    return list(found.values())


def undefined_text(name: str) -> str:
    """What is wrong where the store has nodes of a hierarchy that is not served, and the ways out."""
    return _UNDEFINED.format(name, name)


def hierarchies(names: str | None = None) -> dict[str, Hierarchy]:
    """The same as the store's schemas, by name."""
    return {cls.name: cls.definition() for cls in served(names)}


def _declared_by(module: ModuleType) -> Sequence[type[Node]]:
    if classes := declared_in(module.__name__):
        return classes
    file = shown(module.__file__ or module.__name__)
    mine = Path(f"{module.__name__.replace('.', '/')}.py")
    if mine.is_file() and mine.resolve() != Path(file).resolve():
        fact = f'{SETTING} names the module "{module.__name__}", which is {file} and declares no hierarchy'
        raise BadInput(f"{fact}; for the file here write {SETTING}={mine}.")
    raise BadInput(f'{file} declares no hierarchy; it needs a class like Location(Node, hierarchy="location").')


def _check_levels(cls: type[Node]) -> None:
    """Raise BadInput where the levels do not fit together, with the line of the level that the sentence names."""
    try:
        definition = cls.definition()
        for one in definition.levels.values():
            if one.searched and definition.search is None:
                fact = f"{one.title}.{one.searched[0]} has search=True, and {cls.title} has no search="
                raise ValueError(f'{fact}; write search="hierarchy" in the class {cls.title}, or leave it out.')
    except ValueError as error:
        words = set(re.findall(r"\w+", str(error)))
        level = next((level for level in cls.levels.values() if level.title in words), cls)
        raise BadInput(f"{location(level)}: {error}") from None


def _from_file(name: str) -> ModuleType:
    """The module of a file. Its name is made from its path, so that it is no other module's and the same in workers."""
    file = Path(name).resolve()
    if not file.is_file():
        raise BadInput(f'{SETTING} names the file "{name}", which does not exist; paths are relative to {Path.cwd()}.')
    stem = re.sub(r"\W", "_", file.stem)
    module_name = f"clade_hierarchies_{stem}_{sha256(str(file).encode()).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise BadInput(f'{SETTING} names the file "{name}", which is not a Python file; its name must end in .py.')
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    try:
        with _importable(file.parent), _explained(shown(file)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _from_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        way_out = "write modules like graph.hierarchies.locations, and files like shop.py"
        raise BadInput(f'{SETTING} names the module "{name}"; {way_out}.')
    with _importable(Path.cwd()), _explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    file = f"shop/{name}.py" if "." not in name else "shop/store.py, with its folder and .py"
    fact = f'{SETTING} names the module "{name}", which cannot be found'
    raise BadInput(f"{fact}; name a file as in {file}.{suggestion(name, OWN_MODULES)}")


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules of this folder can be imported inside the block, after all others."""
    new = {str(folder)} - set(sys.path)
    sys.path += new
    try:
        yield
    finally:
        for path in new:
            sys.path.remove(path)


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Errors of the code that is loaded inside the block become BadInput, with the file and line where it happened."""
    try:
        yield
    except SyntaxError as error:
        where = f"{shown(error.filename)}:{error.lineno}" if error.filename else name
        raise BadInput(f"{where}: syntax error: {error.msg}; correct this line.") from None
    except WrongClass as error:
        raise BadInput(f"{_line_of(error) or name}: {error}") from None
    except ModuleNotFoundError as error:
        sentence = f'it imports the module "{error.name}", which cannot be found; install it, or correct the import.'
        raise BadInput(f"{_line_of(error) or name}: {sentence}") from None
    except Exception as error:
        text = " ".join(str(error).split())
        raise BadInput(f"{_line_of(error) or name}: {type(error).__name__}: {text}; correct this line.") from None


def _line_of(error: Exception) -> str:
    """Where an error happened in the files that are loaded, as file:line; empty where it came through none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and frame.filename not in _OUR_FRAMES
    ]
    if not frames:
        return ""
    folder = Path(frames[0].filename).parent
    last = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)][-1]
    return f"{shown(last.filename)}:{last.lineno}"


def shown(file: str | Path) -> str:
    """A file as messages name it: relative to the working directory where it lies below that."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def location(cls: type[Node]) -> str:
    """File and line of a class as messages name them."""
    file, line = cls.declared_at
    return f"{shown(file)}:{line}"


@dataclass(frozen=True)
class Use:
    """A name that a class makes in the schema, of a type or of a field of Query.

    `made_by`, `way_out` and `takes` are parts of the sentence that refuses it, or another use of its name.
    """

    kind: str
    name: str
    source: object
    made_by: str
    way_out: str
    takes: str = "makes already"


def check_names(classes: Sequence[type[Node]]) -> None:
    """Raise BadInput for a name that GraphQL cannot have, or that two of the classes or Clade itself make."""
    own = [Use(TYPE, name, None, "Clade itself", "") for name in OWN_TYPES]
    own += [Use(TYPE, name, None, "Clade itself", "", LATER) for name in LATER_TYPES]
    own += [Use(FIELD, name, None, "Clade itself", "") for name in OWN_FIELDS]
    taken = {(use.kind, use.name): use for use in own}
    for cls in classes:
        for use in names_of(cls):
            _take(cls, taken, use)
        for level in (cls, *cls.levels.values()):
            _check_attributes(cls, level)
        _check_revision(cls)


def names_of(cls: type[Node]) -> Iterator[Use]:
    """The types of a hierarchy, and its fields of Query."""
    classes = (cls, *cls.levels.values())
    rename = f'rename the class, or give {cls.title} {"another" if cls.prefix else "a"} prefix=, as in prefix="My"'
    title = cls.prefix + cls.title
    later = [f"{verb}{title}{ending}" for verb in _LATER_VERBS for ending in ("Input", "Payload")]
    for name in later:
        yield Use(TYPE, name, cls, _described(cls, cls), rename, LATER)
    made = [f"{verb}{title}{ending}" for verb in _VERBS for ending in ("Input", "Payload")]
    if any(one.takes_amounts for level in cls.levels.values() for _, one in level.attributes.values()):
        made += [f"{title}Addition", f"{title}NumberField"]
    for name in (*made, f"Edit{title}Payload"):
        yield Use(TYPE, name, cls, _described(cls, cls), rename)
    for one in classes:
        for ending in _OF_TITLE if one is cls else _OF_LEVEL:
            yield Use(TYPE, f"{cls.prefix}{one.title}{ending}", one, _described(cls, one), rename)
    for one in classes:
        for enum in _enums_of(one):
            made_by = f"the enum {enum.__name__} of {_described(cls, one)}"
            for name in (enum.__name__, *_conditions_of(one, enum)):
                yield Use(TYPE, name, enum, made_by, "rename the enum")
        for value in filter(is_dataclass, types_of(one)):
            made_by = f"the class {value.__name__} of {_described(cls, one)}"
            for ending in ("", "Input"):
                yield Use(TYPE, value.__name__ + ending, value, made_by, "rename the class")
    for one in classes:
        yield Use(FIELD, field_of(cls.prefix + one.title), one, _described(cls, one), rename)
    way_out = f'give {cls.title} another many=, as in many="all{cls.title}"'
    for name in (list_field_of(cls), paths_field_of(cls)):
        yield Use(FIELD, name, None, f'many="{cls.many}" of {_described(cls, cls)}', way_out)
    if cls.search is not None:
        yield Use(FIELD, search_field_of(cls), None, f"search= of {_described(cls, cls)}", way_out)
        yield Use(TYPE, f"{cls.prefix}{cls.title}Search", None, f"search= of {_described(cls, cls)}", rename)


def _take(cls: type[Node], taken: dict[tuple[str, str], Use], use: Use) -> None:
    other = taken.setdefault((use.kind, use.name), use)
    is_name = _NAME.fullmatch(use.name)
    if is_name and (other is use or (use.source is not None and other.source is use.source)):
        return
    source = use.source if isinstance(use.source, type) and issubclass(use.source, Node) else cls
    where = f"{location(source)}: {use.made_by} makes the {use.kind}"
    if not is_name:
        raise BadInput(f'{where} "{use.name}", which is not a valid GraphQL name; {use.way_out}.')
    raise BadInput(f"{where} {use.name}, which {other.made_by} {other.takes}; {use.way_out}.")


def _check_attributes(cls: type[Node], level: type[Node]) -> None:
    """Refuse an attribute whose field would take the place of another one, and an enum that GraphQL cannot have."""
    taken = {camel(name): "every node" for name in RESERVED}
    if cls.search is not None:
        taken |= dict.fromkeys(("search", "relevance"), "a list of a hierarchy with search=")
    if cls.location is not None:
        taken |= dict.fromkeys(("near", "distance"), "a list of a hierarchy with location=")
    for name in (*level.attributes, *level.computed):
        field = camel(name)
        reason = ""
        if not _NAME.fullmatch(field):
            reason = f'"{field}", which is not a valid GraphQL name'
        elif field.endswith("InheritedFrom"):
            reason = f"{field}; names with this ending are kept for later"
        elif field in taken:
            reason = f"{field}, which {taken[field]} has already"
        if reason:
            where = f"{location(level)}: the attribute {name} of {_described(cls, level)} makes the field"
            raise BadInput(f"{where} {reason}; rename the attribute.")
        taken[field] = f"the attribute {name}"
    if len({name.upper() for name in level.attributes}) < len(level.attributes):
        fact = f"{_described(cls, level)} has attributes that differ in capitals alone"
        raise BadInput(f"{location(level)}: {fact}, and orderBy has one name for them; rename one.")
    for enum in _enums_of(level):
        for member in enum.__members__ or [""]:
            if not _NAME.fullmatch(member) or member in ("true", "false", "null"):
                where = f'{location(level)}: the enum {enum.__name__} has the member "{member}"'
                raise BadInput(f"{where}, which is not a valid GraphQL enum value; rename the member.")


def _check_revision(cls: type[Node]) -> None:
    """Refuse an attribute whose field of revisions would take the place of another one, as cityCode may."""
    taken = {camel(name): name for name in RESERVED}
    for one in revision_fields(cls):
        other = taken.setdefault(one.field, one.name)
        if other != one.name:
            level = cls.levels[one.levels[0]]
            fact = f"the attribute {one.name} of {_described(cls, level)} makes the field {one.field} of revisions"
            raise BadInput(f"{location(level)}: {fact}, which {other} makes already; rename one of them.")


def _described(cls: type[Node], level: type[Node]) -> str:
    """A class as messages name it."""
    return f"the {'class' if level is cls else 'level'} {level.title} of the hierarchy {cls.name}"


def _enums_of(cls: type[Node]) -> Iterator[type[Enum]]:
    """The enums among the types of a class's attributes."""
    return (kind for kind in types_of(cls) if issubclass(kind, Enum))


def _conditions_of(cls: type[Node], enum: type[Enum]) -> set[str]:
    """The names of the inputs of conditions on attributes of an enum, or of lists of it."""
    own = [attribute for hint, attribute in cls.attributes.values() if enum_of(hint) is enum]
    return {f"{enum.__name__}{'List' if one.many else ''}Condition" for one in own if is_listed(one)}


def types_of(cls: type[Node]) -> Iterator[type]:
    """The types of a class's attributes, which may be optional, in lists and in nested values."""
    ahead: list[Any] = [hint for hint, _ in cls.attributes.values()] + [one.hint for one in cls.computed.values()]
    while ahead:
        hint = ahead.pop()
        ahead += get_args(hint)
        if isinstance(hint, type) and get_origin(hint) is None:
            yield hint
            ahead += [inner for inner, _ in value_attributes(hint).values()] if is_dataclass(hint) else []


def field_of(title: str) -> str:
    """The field of Query that finds a node of the type of this title."""
    return title[:1].lower() + title[1:]


def input_field_of(title: str) -> str:
    """The attribute of a mutation's input that holds the attributes of a level: postal_code for PostalCode."""
    return "".join(f"_{c.lower()}" if c.isupper() and place else c.lower() for place, c in enumerate(title))


def list_field_of(cls: type[Node]) -> str:
    """The field of Query that lists the roots of a hierarchy."""
    return field_of(cls.prefix + cls.many[:1].upper() + cls.many[1:] if cls.prefix else cls.many)


def search_field_of(cls: type[Node]) -> str:
    """The field of Query that searches a hierarchy."""
    listing = list_field_of(cls)
    return f"search{listing[:1].upper()}{listing[1:]}"


def paths_field_of(cls: type[Node]) -> str:
    """The field of Query that finds nodes of a hierarchy by their paths."""
    return f"{list_field_of(cls)}ByPath"


def camel(name: str) -> str:
    """A Python name in camel case, as Strawberry writes it in the schema."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() or "_" for word in rest)


def list_values(cls: type[Node]) -> dict[str, NodeValue]:
    """The values that every node has, and the attributes of all levels.

    Left out are attributes that two levels have with different types, since their values do not compare, and those
    that one level has without being sorted by it.
    """
    found = {
        "name": NodeValue("name", Kind.TEXT),
        "level": NodeValue("level", Kind.ENUM, members=tuple(cls.levels)),
        "child_count": NodeValue("child_count", Kind.INT),
        "updated_at": NodeValue("updated_at", Kind.DATETIME),
    }
    types: dict[str, set[Any]] = {}
    for level in (cls, *cls.levels.values()):
        for name, (hint, described) in level.attributes.items():
            types.setdefault(name, set()).add(hint)
            if not is_listed(described):
                types[name] |= {None, hint}
                continue
            kind = Kind.TEXT if described.kind is Kind.URL else described.kind
            renamed = found[name].renamed if name in found else ()
            renamed += ((level.level, described),) if described.was and level is not cls else ()
            having = [one.level for one in cls.levels.values() if name in one.attributes]
            levels = frozenset() if name in cls.attributes else frozenset(having)
            found[name] = NodeValue(
                name, kind, described.many, enum_members(hint), renamed=renamed, levels=levels, label=camel(name)
            )
    return {name: value for name, value in found.items() if len(types.get(name, ())) <= 1}


def values_of(level: type[Node]) -> dict[str, tuple[Any, Attribute]]:
    """The attributes of a level and its computed fields, by name, each with its type."""
    return level.attributes | {name: (one.hint, one.attribute) for name, one in level.computed.items()}


class RevisionField(NamedTuple):
    """A field of a hierarchy's revisions: its name in the schema, that of the attribute, and the levels with it."""

    field: str
    name: str
    levels: Sequence[str]


def revision_fields(cls: type[Node]) -> list[RevisionField]:
    """The fields of a hierarchy's revisions for the attributes of all levels. Where levels declare one name with
    different types, each has a field with the level's name in front: cityCode.
    """
    levels: dict[str, list[str]] = {name: list(cls.levels) for name in values_of(cls)}
    shared = [*levels]
    hints: dict[str, list[Any]] = {}
    for level in cls.levels.values():
        for name, (hint, _) in values_of(level).items():
            if name not in shared:
                levels.setdefault(name, []).append(level.level)
                hints.setdefault(name, []).append(hint)
    found = []
    for name, having in levels.items():
        if name in shared or hints[name].count(hints[name][0]) == len(having):
            found.append(RevisionField(camel(name), name, having))
            continue
        ending = camel(name)[:1].upper() + camel(name)[1:]
        fields = {level: camel(input_field_of(cls.levels[level].title)) + ending for level in having}
        found += [RevisionField(field, name, [level]) for level, field in fields.items()]
    return found


def is_listed(attribute: Attribute) -> bool:
    """Whether lists are sorted and filtered by an attribute: not by one whose values are objects."""
    return attribute.sortable and attribute.kind not in COMPOUND


def enum_of(hint: Any) -> type[Enum] | None:
    """The enum of an attribute's type, which may be optional and in a list; None where it is another type."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return next((found for one in get_args(hint) if (found := enum_of(one)) is not None), None)


def enum_members(hint: Any) -> tuple[str, ...]:
    """The names of the members of the enum of an attribute's type, in their order."""
    enum = enum_of(hint)
    return () if enum is None else tuple(enum.__members__)
