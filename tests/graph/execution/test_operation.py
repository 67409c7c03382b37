"""Operations without HTTP: cached documents and errors."""

import logging

import pytest
from graphql import GraphQLError

from graph.errors import format_error, format_errors
from graph.execution.operation import Execution, MutationNotAllowed
from graph.operation import document_cache
from graph.operation.document_cache import DocumentCache, InvalidDocument
from graph.operation.graphql_request import GraphQLRequest
from store.errors import BudgetExceeded
from tests.graph.small_app import Context, schema


def test_a_cached_document_is_parsed_once():
    kept = DocumentCache(schema)
    first = kept.get("{ hello }")
    assert kept.get("{ hello }") is first


def test_the_least_recently_used_document_is_dropped_first(monkeypatch):
    monkeypatch.setattr(document_cache, "MAX_DOCUMENTS", 2)
    kept = DocumentCache(schema)
    first, second = kept.get("{ hello }"), kept.get("{ a: hello }")
    kept.get("{ hello }")
    kept.get("{ b: hello }")
    assert kept.get("{ hello }") is first
    assert kept.get("{ a: hello }") is not second


def test_cached_documents_are_bounded_by_length_too(monkeypatch):
    monkeypatch.setattr(document_cache, "KEPT_CHARACTERS", 30)
    kept = DocumentCache(schema)
    first = kept.get("{ hello }")
    kept.get("{ " + "a" * 12 + ": hello }")
    assert kept.get("{ hello }") is not first
    longer_than_all = "{ " + "a" * 40 + ": hello }"
    assert kept.get(longer_than_all) is not kept.get(longer_than_all)


def test_an_invalid_document_is_not_cached():
    kept = DocumentCache(schema)
    for _ in range(2):
        with pytest.raises(InvalidDocument) as caught:
            kept.get("{ nothing other }")
        assert len(caught.value.errors) == 2


async def test_a_request_that_may_only_read_runs_no_mutation():
    execution = Execution(schema, Context)
    with pytest.raises(MutationNotAllowed):
        await execution.answer(GraphQLRequest("mutation { change }"), allow_mutations=False)
    answer = await execution.answer(GraphQLRequest("mutation { change }"), allow_mutations=True)
    assert (answer.body, answer.executed) == ({"data": {"change": 1}}, True)


async def test_each_operation_has_a_context_of_its_own():
    made = []

    def make_context():
        made.append(Context())
        return made[-1]

    execution = Execution(schema, make_context)
    await execution.answer(GraphQLRequest("{ hello }"), allow_mutations=False)
    await execution.answer(GraphQLRequest("{ hello }"), allow_mutations=False)
    await execution.answer(GraphQLRequest("{"), allow_mutations=False)
    assert len(made) == 2


def test_a_wrapped_error_keeps_its_code():
    error = BudgetExceeded("More than 10 nodes; ask for fewer with first.")
    wrapped = GraphQLError(str(error), original_error=GraphQLError(str(error), original_error=error))
    assert format_error(wrapped) == {
        "message": "More than 10 nodes; ask for fewer with first.",
        "extensions": {"code": "BUDGET_EXCEEDED"},
    }


def test_one_cause_of_many_errors_is_logged_once(caplog):
    cause = KeyError("once only")
    errors = [GraphQLError(str(cause), path=["hello", number], original_error=cause) for number in range(50)]
    with caplog.at_level(logging.ERROR, logger="clade"):
        told = format_errors(errors)
    assert len(told) == 50
    assert len(caplog.records) == 1
    assert "once only" not in str(told)
