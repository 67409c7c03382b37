"""Documents: random valid ones, of fields, arguments, fragments, variables and directives of the schema."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
)

from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.snapshot import Snapshot
from tests.outside.fuzzer.values import Name, Values

RELATIONS = ("parent", "ancestors", "children", "descendants")
COUNTS = ("childCount", "descendantCount", "revision", "totalCount", "depth")
Scope = dict[str, str]
ROOT_WEIGHTS = {
    "_entities": 3,
    "hierarchies": 1,
    "_service": 0,
    "move": 0.5,
    "moves": 0.5,
    "changes": 1,
    "deletedNode": 1,
}


@dataclass
class Budget:
    """What is left of a document's size; small enough for the limits of requests."""

    fields: int
    depth: int
    aliases: int = 28
    directives: int = 20
    variables: int = 12


@dataclass
class Fragment:
    name: str
    on: str
    text: str
    scope: Scope


@dataclass
class Draft:
    """A document while it is made."""

    budget: Budget
    variables: dict[str, Any] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)


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
        """A selection of a node of a hierarchy, with the definitions of its fragments and no variables."""
        self.draft = Draft(Budget(self.random.choice((5, 10, 20)), 4, variables=0))
        kind = self.schema.type_map[interface]
        text = self._selection(kind, {}, 1)
        return text, " ".join(fragment.text for fragment in self.draft.fragments), {}

    def _document(self, operation: str, roots: str) -> Document:
        declared = ", ".join(self.draft.declared)
        head = f"{operation} Q({declared})" if declared else self.random.choice((operation, f"{operation} Q"))
        text = f"{head} {{ {roots} }} {' '.join(fragment.text for fragment in self.draft.fragments)}"
        return Document(text.strip(), self.draft.variables)

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
                names += [name] * (5 if name in RELATIONS else 4 if name in ("nodes", "edges") else 1)
            elif not (name in RELATIONS or "history" in name or "Revision" in inner.name):
                names.append(name)
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

    def _field(self, parent: Any, name: str, field_: GraphQLField, scope: Scope, depth: int) -> str:
        budget = self.draft.budget
        budget.fields -= 1
        arguments = self._arguments(name, field_, depth)
        alias = ""
        if self._chance(0.06) and budget.aliases > 0:
            alias = self.random.choice(("a", "b", "name", "nodes", "x1", "_"))
        signature = f"{name}{arguments} {field_.type}"
        if not self._claim(scope, alias or name, signature):
            alias = next((f"k{n}" for n in range(30) if self._claim(scope, f"k{n}", signature)), "")
            if budget.aliases <= 0 or not alias:
                return ""
        budget.aliases -= bool(alias)
        text = f"{f'{alias}: ' if alias else ''}{name}{arguments}{self._directives()}"
        inner = get_named_type(field_.type)
        if is_composite_type(inner):
            below = depth + (name not in ("nodes", "edges", "node"))
            text += f" {{ {self._selection(inner, {}, below)} }}"
        return text

    def _claim(self, scope: Scope, name: str, signature: str) -> bool:
        return scope.setdefault(name, signature) == signature

    def _arguments(self, name: str, field_: GraphQLField, depth: int) -> str:
        given = []
        lookup = set(field_.args) == {"path", "id"} and self.random.random() < 0.95
        chosen = self.random.choice(("path", "path", "id")) if lookup else None
        for argument, one in field_.args.items():
            must = isinstance(one.type, GraphQLNonNull) and one.default_value.__class__.__name__ == "UndefinedType"
            share = (
                0.6 if argument == "first" and depth > 1 else 0.12 if argument in ("after", "before", "last") else 0.2
            )
            if must or argument == chosen or (not lookup and self._chance(share)):
                value = self.values.lookup(argument, get_named_type(field_.type).name) if argument == chosen else None
                given.append(f"{argument}: {self._value(argument, one.type, value)}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, name: str, kind: Any, chosen: Any = None) -> str:
        is_needed = isinstance(kind, GraphQLNonNull)
        if not is_needed and self._chance(0.04):
            return self._variable(kind, None) if self._chance(0.5) else "null"
        value = self.values.of(name, kind) if chosen is None else chosen
        return self._variable(kind, value) if self._chance(0.25) else self._literal(value, kind)

    def _variable(self, kind: Any, value: Any) -> str:
        draft = self.draft
        if draft.budget.variables <= 0:
            return self._literal(value, kind) if value is not None else "null"
        draft.budget.variables -= 1
        name = f"v{len(draft.declared)}"
        text = str(kind)
        roll = self.random.random()
        if value is None:
            draft.declared.append(f"${name}: {text}")
            if roll < 0.5:
                draft.variables[name] = None
        elif roll < 0.3:
            draft.declared.append(f"${name}: {text.rstrip('!')} = {self._literal(value, kind, variables=False)}")
        elif roll < 0.4:
            draft.declared.append(f"${name}: {text.rstrip('!')}! = {self._literal(value, kind, variables=False)}")
            draft.variables[name] = value
        else:
            draft.declared.append(f"${name}: {text}{'!' if roll < 0.6 and not text.endswith('!') else ''}")
            draft.variables[name] = value
        return f"${name}"

    def _literal(self, value: Any, kind: Any, *, variables: bool = True) -> str:
        kind = get_nullable_type(kind) if kind is not None else None
        if isinstance(value, list):
            inner = kind.of_type if isinstance(kind, GraphQLList) else None
            return f"[{', '.join(self._inner(one, inner, variables) for one in value)}]"
        if isinstance(value, dict):
            fields = kind.fields if isinstance(kind, GraphQLInputObjectType) else {}
            types = {key: fields[key].type if key in fields else None for key in value}
            return f"{{{', '.join(f'{key}: {self._inner(one, types[key], variables)}' for key, one in value.items())}}}"
        return str(value) if isinstance(value, Name) else json.dumps(value, ensure_ascii=False)

    def _inner(self, value: Any, kind: Any, variables: bool) -> str:
        if variables and kind is not None and value is not None and self._chance(0.08):
            return self._variable(kind, value)
        return self._literal(value, kind, variables=variables)

    def _directives(self) -> str:
        if not self._chance(0.05) or self.draft.budget.directives <= 0:
            return ""
        self.draft.budget.directives -= 1
        kind = GraphQLNonNull(GraphQLBoolean)
        value = self._chance(0.5)
        if self._chance(0.1) and self.draft.budget.variables > 0:  # a condition that is null is an error of the object
            condition = self._variable(kind, value)
            self.draft.declared[-1] = f"{condition}: Boolean = true"
            self.draft.variables[condition[1:]] = None
            return f" @{self.random.choice(('skip', 'include'))}(if: {condition})"
        condition = self._variable(kind, value) if self._chance(0.6) else self._literal(value, kind)
        return f" @{self.random.choice(('skip', 'include'))}(if: {condition})"

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


def _agree(one: Scope, other: Scope) -> bool:
    return all(other.get(name, signature) == signature for name, signature in one.items())


def _is_level(field_: GraphQLField) -> bool:
    """Whether a field of the root looks up nodes of one level, of which there are many."""
    return isinstance(get_named_type(field_.type), GraphQLObjectType) and "id" in field_.args
