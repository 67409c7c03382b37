"""Execution of one operation: answered by the cache, by a compiled plan, or by graphql-core around plans.

It runs at once until it first waits (`EagerCoroutine`): most responses need no wait, because their data is cached. A
time limit and a check for disconnects, which only a waiting coroutine needs, cost more than a small response does.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from graphql import GraphQLError
from orjson import dumps
from strawberry import Schema

from graph.auth.authentication import NO_GRANTS, MissingCredential
from graph.errors import BAD_USER_INPUT, UNAVAILABLE, format_errors, request_error
from graph.execution.plan_cache import BoundPlan, PlanCache
from graph.execution.response import (
    Entry,
    OperationResponse,
    ResponseCache,
    apollo_cache_tags,
    executed,
    failed,
    rejected,
    timed_out,
    too_large,
)
from graph.execution.run import Run
from graph.execution.shell import Shell, position
from graph.observability.logs import RequestInfo
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from graph.operation.prepared import Prepared, RequestCache
from graph.operation.selection import Types, core_schema
from resolvers.access.callers import ANYONE, Caller
from resolvers.changes import ChangeListener
from store.concurrency import in_task, within
from store.errors import BadPath, BudgetExceeded, CladeError, WrongLevel

TRACED = 2  # of `report_reads`: with the calls of the store
KEPT_CODES = frozenset((BAD_USER_INPUT, BadPath.code, WrongLevel.code))
"""The codes of errors that depend on nothing but the request and what was read: responses with them are cached."""
ATTEMPTS = 3  # at a consistent read concurrently with moves, each of which commits once


class MutationNotAllowed(Exception):
    """The operation is not a query, and the request may only read."""


class SubscriptionNotAllowed(Exception):
    """The operation is a subscription, and its events cannot be sent."""


class MoveCommitted(Exception):
    """A running move committed while its nodes were read, so the response may mix both states."""


class CachedContext:
    """In place of the Context of an operation whose response was cached, and for which nothing was read."""

    how = "cached"
    _reads: Mapping[str, Any] = {"requests": 0, "rounds": 0, "items": 0, "units": 0, "cached": True}

    def reads_report(self) -> Mapping[str, Any]:
        """As that of a Context."""
        return self._reads


CACHED = CachedContext()


@dataclass(slots=True)
class Call:
    """One operation to execute, as a caller requested it.

    `key` is that of its response in the cache, with what the caller may read; None where nothing is cached.
    """

    prepared: Prepared
    key: Hashable | None
    report_reads: int
    cache_tags: bool


class Execution:
    """Executes operations on a schema, each with a context of its own.

    Strawberry's schema extensions are not run: they cost more than a small query does, and Clade has none.
    """

    def __init__(
        self,
        schema: Schema,
        types: Types,
        make_context: Callable[[], Any],
        *,
        cache: ResponseCache = ResponseCache(0),
        limits: DocumentLimits = DocumentLimits(),
    ) -> None:
        self._schema = core_schema(schema)
        self._plans = PlanCache(self._schema, types, hide_suggestions=not limits.introspection)
        self._cache, self._caches = cache, bool(cache)
        self._limits = limits
        self.requests = RequestCache(self._schema, limits)
        self._make_context = make_context

    async def answer(
        self,
        prepared: Prepared,
        *,
        caller: Caller = ANYONE,
        allow_mutations: bool,
        report_reads: int = 0,
        cache_tags: bool = False,
        observed: RequestInfo | None = None,
        listener: ChangeListener | None = None,
    ) -> OperationResponse:
        """The response to a request of this caller; `observed` receives the operation.

        `report_reads` adds `extensions.reads`, with 2 also its calls; `cache_tags` adds tags for Apollo's router to a
        response that trees validate. Callers with grants get neither. The response to a subscription is the next event
        of `listener`. Raises MissingCredential, MutationNotAllowed unless `allow_mutations`, and SubscriptionNotAllowed
        without `listener`.
        """
        if prepared.is_mutation and not allow_mutations:
            raise MutationNotAllowed
        if prepared.is_subscription and listener is None:
            raise SubscriptionNotAllowed
        if caller.reads is NO_GRANTS and not prepared.is_public:
            raise MissingCredential
        if prepared.errors:
            return rejected(prepared.errors)
        key = prepared.digest if self._caches else None
        if caller.reads is not None:
            report_reads, cache_tags = 0, False  # the reads would reveal hidden nodes
            key = None if key is None else key + caller.reads.digest
        call = Call(prepared, key, report_reads, cache_tags)
        if observed is not None:
            observed.kind, observed.operation = prepared.kind, prepared.name
            observed.document, observed.context = prepared.request.query, CACHED
        if key is not None and report_reads != TRACED and (entry := self._cache.at_store_version(key)) is not None:
            return _cached(entry, call, CACHED)
        context = self._make_context()
        context.listener = listener
        if caller is not ANYONE:
            context.request.act_for(caller)
        if report_reads == TRACED:
            context.request.trace_reads()
        if observed is not None:
            observed.context = context
        try:
            return await within(self._limits.request_seconds, self._answer_consistently(call, context))
        except TimeoutError:
            return timed_out(self._limits.request_seconds, may_be_made=context.request.may_have_written)
        finally:  # also if the client has disconnected
            context.request.stop()

    async def _answer_consistently(self, call: Call, context: Any) -> OperationResponse:
        """The response, made again from a snapshot if the store changed between the reads."""
        response = await self._answer_despite_moves(call, context)
        if call.prepared.is_query and (snapshot := context.snapshot_if_torn()):
            async with snapshot:
                context.begin_in(snapshot)
                return await self._answer_despite_moves(call, context)
        return response

    async def _answer_despite_moves(self, call: Call, context: Any) -> OperationResponse:
        """The response, made again if a move committed between the reads."""
        for _ in range(ATTEMPTS):
            try:
                return await self._attempt(call, context)
            except MoveCommitted:
                await context.forget()
        return failed("Concurrent moves prevented a consistent read; retry.", UNAVAILABLE)

    async def _attempt(self, call: Call, context: Context) -> OperationResponse:
        """The response from the cache, from a plan, or of what graphql-core executes."""
        prepared, request = call.prepared, context.request
        if call.key is not None:
            try:
                entry = await self._cache.get(call.key, request.state)
            except CladeError:  # its versions cannot be read
                request.discard_reads()
                entry = None
            if entry is not None:
                context.how = "cached"
                return _cached(entry, call, context)
        bound = prepared.bound or self._plans.bind(prepared)
        if isinstance(bound, list):
            return rejected(prepared.located(bound))
        try:
            response = await (self._query if prepared.is_query else self._execute)(call, bound, context)
            request.budget.check_size(len(response.json or b""))
        except BudgetExceeded as error:
            return too_large(error, _extensions(call, context), may_be_made=request.may_have_written)
        return response

    async def _execute(self, call: Call, bound: BoundPlan, context: Context) -> OperationResponse:
        """The response to a mutation or subscription. Raises BudgetExceeded."""
        context.how = "executed"
        await in_task()
        shell = self._shell(bound, context)
        result = await shell.execute()
        if (refusal := context.request.budget.refusal) is not None:
            raise refusal
        errors = sorted(result.errors or [], key=lambda error: position(error.path or (), result.data))
        if result.data is None and all(error.path is None for error in errors):  # the condition of a field is null
            return rejected(call.prepared.located([request_error(error, BAD_USER_INPUT) for error in errors]))
        formatted = self._format(call.prepared.located(errors), context, shell.left_out) if errors else []
        return executed(dumps({"data": result.data}), formatted, _extensions(call, context))

    async def _query(self, call: Call, bound: BoundPlan, context: Context) -> OperationResponse:
        """The response to a query. Raises BudgetExceeded, and MoveCommitted."""
        request, plan, context.how = context.request, bound.plan, "compiled"
        if plan.is_current:
            request.state.accepts_stale = False
        others: dict[str, bytes] | None = {}
        errors: list[GraphQLError] = []
        if plan.query is not None and plan.query.others:
            context.how = "executed"
            await in_task()
            shell = self._shell(bound, context)
            others = await shell.others()
            errors += shell.collected_errors.errors
        run, json = Run(bound.look_ahead, context), b'{"data":null}'
        if others is not None:
            json = await run.query(bound, others)
        if not await request.state.are_moves_unchanged():
            raise MoveCommitted
        if run.faults.kept or errors:
            if request.budget.refusal is not None:
                raise request.budget.refusal
            errors += await run.faults.errors()
        formatted = self._format(call.prepared.located(errors), context, run.faults.left_out) if errors else []
        partitions = frozenset[str]()
        if bound.is_cached and plan.query is not None and not plan.query.others:
            partitions = request.state.validating_partitions
            is_kept = call.key is not None and not request.depends_on_caller
            if is_kept and KEPT_CODES.issuperset([one["extensions"]["code"] for one in formatted]):
                self._cache.put(call.key, json, formatted, request.state)
        if formatted:
            partitions = frozenset()  # no shared cache keeps errors
        return executed(json, formatted, _extensions(call, context, partitions), partitions)

    def _shell(self, bound: BoundPlan, context: Context) -> Shell:
        return Shell(bound, context, hide_suggestions=not self._limits.introspection)

    @staticmethod
    def _format(
        errors: Sequence[GraphQLError], context: Context, left_out: Mapping[str, int] = MappingProxyType({})
    ) -> list[Any]:
        return format_errors(errors, left_out, is_restricted=context.request.grants is not None)


def _extensions(call: Call, context: Any, partitions: Collection[str] = ()) -> dict[str, Any]:
    """The member `extensions` that the request asks for; `partitions` validate the response, if any do."""
    extensions: dict[str, Any] = {}
    if call.report_reads:
        extensions["reads"] = {**context.reads_report()}
        if call.report_reads == TRACED:
            extensions["reads"] |= context.calls_report()
    if call.cache_tags:
        extensions |= apollo_cache_tags(partitions, call.prepared.operation, call.prepared.request.variables)
    return {"extensions": extensions} if extensions else {}


def _cached(entry: Entry, call: Call, context: Any) -> OperationResponse:
    partitions = () if entry.errors else entry.partitions
    extensions = _extensions(call, context, partitions) if call.report_reads or call.cache_tags else {}
    return executed(entry.body, entry.errors, extensions, partitions, entry.etag)
