"""Literals: documents that differ in nothing but the values that are written into them share one parsed document.

The *skeleton* of a document is its text without the values of its strings and numbers; it tells which of them are
equal, since fields are merged whose arguments are. When a second document has the skeleton of a first one, the first
becomes a template: literals in the arguments of fields become variables, which clients cannot name. The values of each
further document are coerced as the literals that they are, and go beside its variables. So whatever holds of the
template holds of the document: it is valid, within the limits, and its plan is compiled already.

Other literals have to be those of the template: in directives, in defaults of variables, in a scalar's lists and
objects, in arguments of leaf fields, since the JSON of these fields is cached without variables.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FloatValueNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    NameNode,
    ObjectValueNode,
    Source,
    StringValueNode,
    Undefined,
    VariableNode,
    Visitor,
    get_location,
    get_named_type,
    get_nullable_type,
    is_input_object_type,
    is_list_type,
    visit,
)
from graphql.language import Lexer
from graphql.utilities import coerce_input_literal

from graph.operation.document import Key, ParsedDocument
from store.cache import BoundedCache, SieveCache

MAX_CHARACTERS = 2_000  # of a document whose literals are lifted; those that programs build are shorter
MAX_ONCE = 1_000  # documents that are known to have come; as many as are cached
SKELETON_BYTES, ONCE_BYTES = 600, 200  # of memory for each

BLOCK = '"""'
MARK = "\0"  # around the number of a literal in a skeleton
LITERAL = re.compile(
    r"""
    ( \#[^\n\r]*                                                       # a comment, which is no literal
    | \"\"\" (?> [^"\\\ud800-\udfff]++ | \\\"\"\" | \\ | "{1,2}(?!") )*+ \"\"\"
    | "(?!"") (?> [^"\\\n\r\ud800-\udfff]++ | \\[^\n\r\ud800-\udfff] )*+ "
    | (?<![0-9A-Za-z_.\-]) -? (?:0|[1-9][0-9]*+) (?:\.[0-9]++)? (?:[eE][+\-]?[0-9]++)? (?![0-9A-Za-z_.])
    | " [\s\S]* )                                                      # a string that does not end
    """,
    re.VERBOSE,
)
Values = Mapping[str, Any]


class Scanned(NamedTuple):
    """A document's skeleton, and its literals as they are written."""

    skeleton: str
    literals: Sequence[str]


@dataclass(eq=False)
class Template(ParsedDocument):
    """A document with variables in place of literals: of each the number of the literal, the name and the type."""

    lifted: Sequence[tuple[int, str, Any]] = field(default=(), kw_only=True)

    def values(self, literals: Sequence[str]) -> Values | None:
        """The coerced values of these variables; None where one is invalid."""
        values = {}
        for number, name, kind in self.lifted:
            node = _node(literals[number])
            value = Undefined if node is None else coerce_input_literal(node, kind)
            if value is Undefined:
                return None
            values[name] = value
        return values


class Templates:
    """The templates among the documents of a cache, and what becomes one when another document needs it."""

    def __init__(self, schema: GraphQLSchema, documents: SieveCache[Key, ParsedDocument]) -> None:
        self._schema, self._documents = schema, documents
        self._constant: BoundedCache[str, Sequence[int]] = BoundedCache(
            "skeletons", MAX_ONCE, bytes_each=SKELETON_BYTES
        )
        """The numbers of the literals that are not lifted, by skeleton."""
        self._first: BoundedCache[Key, ParsedDocument] = BoundedCache("skeletons", MAX_ONCE, bytes_each=SKELETON_BYTES)
        """The first document of each skeleton and these literals."""
        self._once: BoundedCache[int, bool] = BoundedCache("skeletons", MAX_ONCE, bytes_each=ONCE_BYTES)

    def find(self, query: str, found: Scanned) -> tuple[Template, Values] | None:
        """The template of a document, and its values. It has none when it comes again: its own plan is the cheaper."""
        constant = self._constant.get(found.skeleton)
        if constant is None or self._once.get(hash(query)):
            return None
        key = _key(found, constant)
        template = self._documents.get(key)
        if template is None:
            first = self._first.get(key)
            if first is None:
                return None
            template = _template(self._schema, first, key)
            template.put_into(self._documents)
        assert isinstance(template, Template)  # noqa: S101 - it has the key of one
        values = template.values(found.literals)
        if values is None:
            return None
        self._once.put(hash(query), True)
        return template, values

    def remember(self, found: Scanned, document: ParsedDocument) -> None:
        """Let a document be the first of its skeleton, unless there is one or nothing can be lifted."""
        lifted = _liftable(self._schema, document.document)
        offsets = _offsets(_source(document))
        constant = [number for number, offset in enumerate(offsets) if offset not in lifted]
        key = _key(found, constant)
        is_known = found.skeleton in self._constant and key in self._first
        if len(constant) < len(offsets) and not document.deciding and not is_known:
            document.hold(self._constant, found.skeleton, tuple(constant))
            document.hold(self._first, key, document)


def scan(query: str) -> Scanned | None:
    """The skeleton and the literals of a document; None if it is long, has no literals or is not understood."""
    if len(query) > MAX_CHARACTERS or MARK in query:
        return None
    parts = LITERAL.split(query)
    if len(parts) > 1 and not parts[-1] and parts[-2][0] == '"':  # which no document ends with
        return None
    literals: list[str] = []
    numbers: dict[str, int] = {}
    for place in range(1, len(parts), 2):
        text = parts[place]
        if text[0] == "#":
            continue
        literals.append(text)
        value = _text(text) if text[0] == '"' else text
        if value is None:
            return None
        kind = BLOCK if text.startswith(BLOCK) else ""
        parts[place] = f"{MARK}{kind}{numbers.setdefault(value, len(numbers))}{MARK}"
    return Scanned("".join(parts), literals) if literals else None


def relocate(errors: Iterable[GraphQLError], template: ParsedDocument, query: str) -> None:
    """Give errors at places of a template the locations of these places in a document."""
    template_query, source = _source(template), Source(query)
    before, after = _spans(template_query), _spans(query)
    for error in errors:
        if not error.positions:
            continue
        error.locations = []
        for position in error.positions:
            number = bisect_right([start for start, _ in before], position) - 1
            if number >= 0:  # the start of the literal itself, or what stands behind it
                start, end = before[number]
                position = after[number][0] if position == start else position - end + after[number][1]
            error.locations.append(get_location(source, position))


def _key(found: Scanned, constant: Iterable[int]) -> Key:
    return (found.skeleton, *[found.literals[number] for number in constant])


def _source(document: ParsedDocument) -> str:
    loc = document.document.loc
    assert loc is not None  # noqa: S101 - documents are parsed with their locations
    return loc.source.body


def _spans(query: str) -> list[tuple[int, int]]:
    """Where the literals of a document begin and end."""
    return [found.span() for found in LITERAL.finditer(query) if found[0][0] != "#"]


def _offsets(query: str) -> list[int]:
    return [start for start, _ in _spans(query)]


def _text(text: str) -> str | None:
    """The value of a string behind a quote, so that it equals no number; None where an escape is invalid."""
    if "\\" not in text and not text.startswith(BLOCK):
        return text[:-1]
    try:
        token = Lexer(Source(text)).advance()
    except GraphQLSyntaxError:
        return None
    return f'"{token.value}' if token.end == len(text) else None


def _node(text: str) -> Any:
    """A literal as it is in a parsed document."""
    if text[0] != '"':
        return IntValueNode(value=text) if text.lstrip("-").isdigit() else FloatValueNode(value=text)
    value = _text(text)
    return None if value is None else StringValueNode(value=value[1:], block=text.startswith(BLOCK))


def _liftable(schema: GraphQLSchema, document: DocumentNode) -> dict[int, Any]:
    """The input types of the literals that can be lifted, by where they begin."""
    found: dict[int, Any] = {}
    ahead: list[tuple[Any, Any]] = []
    for one in document.definitions:
        condition = getattr(one, "type_condition", None)
        operation: Any = getattr(one, "operation", None)
        kind: Any = schema.get_root_type(operation) if condition is None else schema.get_type(condition.name.value)
        ahead.append((kind, one))
    while ahead:
        parent, above = ahead.pop()
        for node in above.selection_set.selections:
            if isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                ahead.append((parent if condition is None else schema.get_type(condition.name.value), node))
            elif isinstance(node, FieldNode) and node.selection_set is not None:
                definition = parent.fields.get(node.name.value)
                if definition is None:  # introspection
                    continue
                for argument in node.arguments or ():
                    _lift(argument.value, definition.args[argument.name.value].type, found)
                ahead.append((get_named_type(definition.type), node))
    return found


def _lift(node: Any, kind: Any, found: dict[int, Any]) -> None:
    inner = get_nullable_type(kind)
    if isinstance(node, StringValueNode | IntValueNode | FloatValueNode):
        found[node.loc.start] = kind  # type: ignore[union-attr]
    elif isinstance(node, ListValueNode) and is_list_type(inner):
        for one in node.values:
            _lift(one, inner.of_type, found)
    elif isinstance(node, ObjectValueNode) and is_input_object_type(inner):
        for member in node.fields:
            _lift(member.value, inner.fields[member.name.value].type, found)


def _template(schema: GraphQLSchema, first: ParsedDocument, key: Key) -> Template:
    types = _liftable(schema, first.document)
    numbers = {offset: number for number, offset in enumerate(_offsets(_source(first))) if offset in types}
    lifted = [(number, str(number), types[offset]) for offset, number in numbers.items()]
    document = visit(first.document, _Lifting(numbers))
    return Template(document, first.inputs, first.characters, key, lifted=lifted)


class _Lifting(Visitor):
    """Variables, named by numbers, in place of the literals at some offsets."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        super().__init__()
        self._numbers = numbers

    def _variable(self, node: Any, *_: Any) -> VariableNode | None:
        number = self._numbers.get(node.loc.start)
        return None if number is None else VariableNode(name=NameNode(value=str(number)), loc=node.loc)

    enter_string_value = enter_int_value = enter_float_value = _variable
