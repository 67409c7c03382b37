"""Documents: random valid ones, of fields, arguments, fragments, variables and directives of the schema."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLField,
    GraphQLID,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    parse,
    validate,
)

from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.snapshot import Snapshot
from tests.outside.fuzzer.values import Name, Values

REPRESENTED = {"id": GraphQLID, "path": GraphQLString}  # in a representation, which has no input type
RELATIONS = ("parent", "ancestors", "children", "descendants")
COUNTS = ("childCount", "descendantCount", "revision", "totalCount", "depth")
Scope = dict[str, str]
ROOT_WEIGHTS = {
    "_entities": 3,
    "hierarchies": 2,
    "_service": 0,
    "move": 1,
    "moves": 1.5,
    "changes": 3,
    "deletedNode": 4,
}


@dataclass
class Budget:
    """What is left of a document's size; small enough for the limits of requests."""

    fields: int
    depth: int
    aliases: int = 28
    directives: int = 20
    variables: int = 16


@dataclass
class Fragment:
    name: str
    on: str
    text: str
    scope: Scope


@dataclass(frozen=True)
class Variable:
    """A variable: what it is for, and whether it may be null or left out."""

    name: str
    argument: str
    kind: Any
    path: tuple[str, ...]
    nullable: bool
    optional: bool


@dataclass
class Draft:
    """A document while it is made."""

    budget: Budget
    variables: dict[str, Any] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    made: list[Variable] = field(default_factory=list)


class Maker:
    """Maker of documents about a snapshot; the same seed makes the same documents."""

    def __init__(self, random_: random.Random, snapshot: Snapshot, cursors: list[str]) -> None:
        self.random, self.schema = random_, snapshot.schema
        self.values = Values(random_, snapshot, cursors)
        self.draft = Draft(Budget(0, 0))

    def make(self) -> Document:
        """A document that is valid, but for selections that cannot be merged now and then."""
        size = self.random.choice((4, 8, 8, 15, 15, 30, 60))
        self.draft = Draft(Budget(size, self.random.choice((3, 5, 7, 9))))
        assert self.schema.query_type
        scope: Scope = {}
        roots = [self._root(scope) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        return self._document("query", " ".join(roots))

    def payload(self, interface: str) -> tuple[str, str, dict[str, Any]]:
        """A selection of a node of a hierarchy, which can be merged, with the definitions of its fragments and no
        variables.
        """
        while True:
            self.draft = Draft(Budget(self.random.choice((5, 10, 20)), 4, variables=0))
            text = self._selection(self.schema.type_map[interface], {}, 1)
            fragments = " ".join(fragment.text for fragment in self.draft.fragments)
            query = f'{{ node(id: "") {{ ... on {interface} {{ {text} }} }} }} {fragments}'
            if not validate(self.schema, parse(query)):
                return text, fragments, {}

    def _document(self, operation: str, roots: str) -> Document:
        declared = ", ".join(self.draft.declared)
        head = f"{operation} Q({declared})" if declared else self.random.choice((operation, f"{operation} Q"))
        text = f"{head} {{ {roots} }} {' '.join(fragment.text for fragment in self.draft.fragments)}"
        others = tuple(self._others() for _ in range(self.random.choice((1, 1, 2)))) if self.draft.made else ()
        return Document(text.strip(), self.draft.variables, others)

    def _others(self) -> dict[str, Any]:
        """Other values of the variables: most valid, some the same, null, left out, or an error."""
        values = dict(self.draft.variables)
        for one in self.draft.made:
            roll = self.random.random()
            if roll < 0.12 and one.nullable:
                values[one.name] = None
            elif roll < 0.16 and one.optional:
                values.pop(one.name, None)
            elif roll < 0.26:
                values[one.name] = self.values.wrong(one.argument, one.kind, one.path)
            elif roll < 0.9:
                values[one.name] = self.values.of(one.argument, one.kind, one.path)
        return values

    def _root(self, scope: Scope) -> str:
        assert self.schema.query_type
        fields = self.schema.query_type.fields
        if self._chance(0.02):
            name = self.random.choice([name for name in self.schema.type_map if not name.startswith("__")])
            return self._merged(
                scope,
                f'__type(name: "{name}") {{ kind name enumValues {{ name }} }}',
                "__type",
            )
        weights = [ROOT_WEIGHTS.get(name, 1 if _is_level(one) else 3) for name, one in fields.items()]
        name = self.random.choices(list(fields), weights)[0]
        return self._field(self.schema.query_type, name, fields[name], scope, 0)

    def _merged(self, scope: Scope, text: str, name: str) -> str:
        if name in scope:
            return "__typename"
        scope[name] = text
        return text

    def _selection(self, kind: Any, scope: Scope, depth: int) -> str:
        """The inside of braces for a composite type."""
        parts: list[str] = []
        for _ in range(self.random.choice((1, 2, 2, 3, 4, 6))):
            parts.append(self._part(kind, scope, depth))
            if self.draft.budget.fields <= 0:
                break
        return " ".join(part for part in parts if part) or "__typename"

    def _part(self, kind: Any, scope: Scope, depth: int) -> str:
        roll = self.random.random()
        if roll < 0.08:
            return f"__typename{self._directives()}" if self._claim(scope, "__typename", "") else ""
        if isinstance(kind, GraphQLUnionType) or roll < 0.2 or (isinstance(kind, GraphQLInterfaceType) and roll < 0.4):
            return self._fragment(kind, scope, depth)
        if roll < 0.26 and not isinstance(kind, GraphQLUnionType):
            return f"... {self._directives()} {{ {self._selection(kind, scope, depth)} }}"
        fields = self._fields(kind, depth)
        if not fields:
            return "__typename"
        name = self.random.choice(fields)
        return self._field(kind, name, kind.fields[name], scope, depth)

    def _fields(self, kind: Any, depth: int) -> list[str]:
        names = []
        is_deep = depth >= self.draft.budget.depth or self.draft.budget.fields <= 1
        for name, one in kind.fields.items():
            inner = get_named_type(one.type)
            if not is_composite_type(inner):
                names += [name] * (5 if name in COUNTS or one.args else 1)
            elif not is_deep:
                weight = 5 if name in RELATIONS else 4 if name in ("nodes", "edges", "facets") else 1
                names += [name] * (3 if _is_past(name, inner) else weight)
            elif not (name in RELATIONS or (depth > self.draft.budget.depth and _is_past(name, inner))):
                names += [name] * (2 if _is_past(name, inner) else 1)
        return names

    def _fragment(self, kind: Any, scope: Scope, depth: int) -> str:
        on = self.random.choice(self._overlapping(kind))
        self.draft.budget.fields -= 1
        known = [one for one in self.draft.fragments if one.on == on.name and _agree(one.scope, scope)]
        if known and self._chance(0.3):
            chosen = self.random.choice(known)
            scope.update(chosen.scope)
            return f"...{chosen.name}{self._directives()}"
        if self._chance(0.3) and len(self.draft.fragments) < 6:
            inner: Scope = {}
            name = f"F{len(self.draft.fragments)}"
            made = Fragment(name, on.name, "", inner)
            selection = self._selection(on, inner, depth)
            if _agree(inner, scope):
                made.name = f"F{len(self.draft.fragments)}"
                made.text = f"fragment {made.name} on {on.name} {{ {selection} }}"
                self.draft.fragments.append(made)
                scope.update(inner)
                return f"...{made.name}{self._directives()}"
            return ""
        return f"... on {on.name}{self._directives()} {{ {self._selection(on, scope, depth)} }}"

    def _overlapping(self, kind: Any) -> list[Any]:
        """The types on which a fragment inside of a type may be."""
        if isinstance(kind, GraphQLObjectType):
            return [kind, *kind.interfaces]
        possible = list(self.schema.get_possible_types(kind))
        interfaces = [face for one in possible for face in one.interfaces]
        own = [kind] if isinstance(kind, GraphQLInterfaceType) else []
        return [*own, *{one.name: one for one in (*possible, *interfaces)}.values()]

    def _field(
        self, parent: Any, name: str, field_: GraphQLField, scope: Scope, depth: int, *, again: bool = False
    ) -> str:
        """A field, and now and then the same one `again` under another key, with other arguments and selections."""
        budget = self.draft.budget
        budget.fields -= 1
        arguments = self._arguments(name, field_, depth)
        alias = ""
        if self._chance(0.06) and budget.aliases > 0:
            alias = self.random.choice(("a", "b", "name", "nodes", "x1", "_"))
        signature = f"{name}{arguments} {field_.type}"
        if again or not self._claim(scope, alias or name, signature):
            alias = next((f"k{n}" for n in range(30) if f"k{n}" not in scope), "")
            if budget.aliases <= 0 or not alias:
                return ""
            scope[alias] = signature
        budget.aliases -= bool(alias)
        text = f"{f'{alias}: ' if alias else ''}{name}{arguments}{self._directives()}"
        inner = get_named_type(field_.type)
        if is_composite_type(inner):
            below = depth + (name not in ("nodes", "edges", "node"))
            text += f" {{ {self._selection(inner, {}, below)} }}"
        if not again and depth and budget.fields > 0 and self._chance(0.12 if is_composite_type(inner) else 0.04):
            text += f" {self._field(parent, name, field_, scope, depth, again=True)}"
        return text

    def _claim(self, scope: Scope, name: str, signature: str) -> bool:
        return scope.setdefault(name, signature) == signature

    def _arguments(self, name: str, field_: GraphQLField, depth: int) -> str:
        given = []
        lookup = set(field_.args) == {"path", "id"} and self.random.random() < 0.95
        known = "deletedNode" if name == "deletedNode" else ""
        chosen = self.random.choice(("path", "path", "id")) if lookup else None
        for argument, one in field_.args.items():
            must = isinstance(one.type, GraphQLNonNull) and one.default_value.__class__.__name__ == "UndefinedType"
            share = (
                0.6 if argument == "first" and depth > 1 else 0.12 if argument in ("after", "before", "last") else 0.2
            )
            if must or argument == chosen or (not lookup and self._chance(share)):
                value = self.values.lookup(argument, get_named_type(field_.type).name) if argument == chosen else None
                given.append(f"{argument}: {self._value(known or argument, one.type, value)}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, name: str, kind: Any, chosen: Any = None) -> str:
        is_needed = isinstance(kind, GraphQLNonNull)
        if not is_needed and self._chance(0.04):
            return self._variable(name, kind, None) if self._chance(0.5) else "null"
        value = self.values.of(name, kind) if chosen is None else chosen
        return self._variable(name, kind, value) if self._chance(0.4) else self._literal(value, kind, name)

    def _variable(self, argument: str, kind: Any, value: Any, path: tuple[str, ...] = ()) -> str:
        """A new variable with this value, for an argument or for what is at a path in it."""
        draft = self.draft
        if draft.budget.variables <= 0:
            return self._literal(value, kind, argument, path) if value is not None else "null"
        draft.budget.variables -= 1
        name = f"v{len(draft.declared)}"
        text = str(kind)
        roll = self.random.random()
        default = f" = {self._literal(value, kind)}" if value is not None and roll < 0.4 else ""
        if value is None or default:
            text = text.removesuffix("!") + ("!" if value is not None and roll > 0.3 else "")
        elif roll < 0.6 and not text.endswith("!"):
            text += "!"
        draft.declared.append(f"${name}: {text}{default}")
        nullable = not text.endswith("!")
        draft.made.append(Variable(name, argument, kind, path, nullable, nullable or bool(default)))
        if not (roll < 0.3 if default else value is None and roll >= 0.5):
            draft.variables[name] = value
        return f"${name}"

    def _literal(self, value: Any, kind: Any, argument: str = "", path: tuple[str, ...] = ()) -> str:
        """A literal, with variables inside of it if it is one for an argument."""
        kind = get_nullable_type(kind) if kind is not None else None
        if isinstance(value, list):
            inner = kind.of_type if isinstance(kind, GraphQLList) else None
            return f"[{', '.join(self._inner(one, inner, argument, (*path, '[]')) for one in value)}]"
        if isinstance(value, dict):
            fields = kind.fields if isinstance(kind, GraphQLInputObjectType) else {}
            types = {key: fields[key].type if key in fields else REPRESENTED.get(key) for key in value}
            inside = [f"{key}: {self._inner(one, types[key], argument, (*path, key))}" for key, one in value.items()]
            return f"{{{', '.join(inside)}}}"
        return str(value) if isinstance(value, Name) else json.dumps(value, ensure_ascii=False)

    def _inner(self, value: Any, kind: Any, argument: str, path: tuple[str, ...]) -> str:
        if argument and kind is not None and value is not None and self._chance(0.15):
            keys = [part for part in path if part != "[]"]
            named = keys[-1] if argument in ("where", "orderBy", "representations") and keys else argument
            return self._variable(named, kind, value, path)
        return self._literal(value, kind, argument, path)

    def _directives(self) -> str:
        if not self._chance(0.05) or self.draft.budget.directives <= 0:
            return ""
        self.draft.budget.directives -= 1
        kind = GraphQLNonNull(GraphQLBoolean)
        value = self._chance(0.5)
        if self._chance(0.1) and self.draft.budget.variables > 0:  # a condition that is null is an error of the object
            condition = self._variable("if", kind, value)
            self.draft.declared[-1] = f"{condition}: Boolean = true"
            self.draft.variables[condition[1:]] = None
            return f" @{self.random.choice(('skip', 'include'))}(if: {condition})"
        condition = self._variable("if", kind, value) if self._chance(0.7) else self._literal(value, kind)
        return f" @{self.random.choice(('skip', 'include'))}(if: {condition})"

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


def _agree(one: Scope, other: Scope) -> bool:
    return all(other.get(name, signature) == signature for name, signature in one.items())


def _is_past(name: str, kind: Any) -> bool:
    return name in ("history", "atRevision") or "Revision" in kind.name


def _is_level(field_: GraphQLField) -> bool:
    """Whether a field of the root looks up nodes of one level, of which there are many."""
    return isinstance(get_named_type(field_.type), GraphQLObjectType) and "id" in field_.args
