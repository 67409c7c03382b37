"""Errors in responses: their codes, and what of them is logged."""

import logging

from graphql import GraphQLError

from graph.errors import format_error, format_errors
from store.errors import BudgetExceeded


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
