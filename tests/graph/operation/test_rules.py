"""Rules of validation: each is asked for its methods for the kinds of nodes for which it has some, and no others."""

from typing import Any

import pytest
from graphql import TypeInfo, ValidationContext, parse
from graphql.language.ast import QUERY_DOCUMENT_KEYS

from graph.operation.document import RULES
from tests.docs.test_queries import SCHEMA


def methods(rule: Any, kind: str) -> list[str | None]:
    context = ValidationContext(SCHEMA, parse("{ a }"), TypeInfo(SCHEMA), lambda error: None)
    return [one and one.__name__ for one in rule(context).get_enter_leave_for_kind(kind)]


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_a_rule_has_the_methods_that_it_has_by_itself(rule: Any) -> None:
    original = rule.__mro__[1] if rule.__name__ == rule.__mro__[1].__name__ else rule
    found = [methods(rule, kind) for kind in QUERY_DOCUMENT_KEYS]
    assert found == [methods(original, kind) for kind in QUERY_DOCUMENT_KEYS]
    assert any(map(any, found))
