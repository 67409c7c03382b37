"""Execution of one operation: parsed, then answered by the cache, a compiled query, the interpreter, or both of these.

It runs at once until it first waits (`EagerCoroutine`): most responses need no wait, because their data is cached. A
time limit and a check for disconnects, which only a waiting coroutine needs, cost more than a small response does.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult, GraphQLError, execute
from strawberry import Schema
from strawberry.execution import optimized_is_awaitable

from graph.auth.authentication import NO_GRANTS, MissingCredential
from graph.errors import UNAVAILABLE, UnsupportedByPlan, log_fault, without_frames
from graph.execution.interpreter import Executor
from graph.execution.plan_cache import PlanCache
from graph.execution.response import (
    Entry,
    OperationResponse,
    ResponseCache,
    apollo_cache_tags,
    failed,
    interpreted,
    rejected,
    timed_out,
    too_large,
)
from graph.execution.run import run, run_beside
from graph.observability.logs import RequestInfo
from graph.operation.limits import DocumentLimits
from graph.operation.prepared import Prepared, RequestCache
from graph.operation.selection import core_schema
from resolvers.access.callers import ANYONE, Caller
from resolvers.changes import ChangeListener
from resolvers.session.budget import ResponseTooLarge
from store.concurrency import in_task, within, yield_to_loop
from store.errors import BudgetExceeded, CladeError

TRACED = 2  # of `report_reads`: with the calls of the store
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
        make_context: Callable[[], Any],
        *,
        plans: PlanCache | None = None,
        cache: ResponseCache = ResponseCache(0),
        limits: DocumentLimits = DocumentLimits(),
    ) -> None:
        self._schema = core_schema(schema)
        self._plans = plans
        self._cache, self._caches = cache, bool(cache)
        self._limits = limits
        self.requests = RequestCache(self._schema, limits)
        self._make_context = make_context
        self.compiled = self.interpreted = self.fallbacks = self.compiler_errors = 0
        """Queries by how they were answered: compiled, interpreted in whole or part because there is no plan,
        interpreted because of an error in a plan, and after an internal error in a plan.
        """

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
            return timed_out(self._limits.request_seconds, is_mutation=prepared.is_mutation)
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

    async def _attempt(self, call: Call, context: Any) -> OperationResponse:
        """The cached, compiled or interpreted response."""
        prepared, context.how = call.prepared, "interpreted"
        result = await self._cached_or_planned(call, context) if prepared.is_query else None
        if isinstance(result, OperationResponse):
            return result
        if result is None:
            await in_task()
            if prepared.is_query and prepared.request.variables:  # coercing them again takes as long as before
                await yield_to_loop()
            executed = execute(
                self._schema,
                prepared.document.document,
                context_value=context,
                variable_values=prepared.request.variables,
                operation_name=prepared.request.operation_name,
                executor_class=Executor,
                **self._options(call),
            )
            result = executed if isinstance(executed, ExecutionResult) else await executed
        if context.request.budget.refusal is not None:
            return _too_large(context.request.budget.refusal, call, context)
        if prepared.is_query and not await context.request.state.are_moves_unchanged():
            raise MoveCommitted
        response = interpreted(result, context, _extensions(call, context))
        try:
            response.measure(context.request.budget)
        except ResponseTooLarge as error:
            return _too_large(error, call, context)
        return response

    def _options(self, call: Call) -> dict[str, Any]:
        """The options of the interpreter."""
        return {
            "is_awaitable": optimized_is_awaitable,
            "hide_suggestions": not self._limits.introspection,
            "operation_extensions": call.prepared.request.extensions,
        }

    async def _cached_or_planned(self, call: Call, context: Any) -> OperationResponse | ExecutionResult | None:
        """The cached or compiled response, or the result of a plan some of whose fields are interpreted; None if there
        is none, or if the interpreter has to report errors.
        """
        if call.key is not None:
            try:
                entry = await self._cache.get(call.key, context.request.state)
            except CladeError:  # its versions cannot be read
                context.request.discard_reads()
                entry = None
            if entry is not None:
                context.how = "cached"
                return _cached(entry, call, context)
        try:
            bound = call.prepared.bound or (self._plans.bind(call.prepared) if self._plans else None)
            if bound is None:
                self.interpreted += 1
                return None
            context.fields = bound.plan.fields
            if bound.plan.is_current:
                context.request.state.accepts_stale = False
            if bound.interpreted:
                await in_task()
                executor = Executor.of_query(bound.plan.fields, bound.variables, context, **self._options(call))
                result = await run_beside(bound, context, executor)
                if bound.plan.is_current:
                    self.interpreted += 1
                else:  # the arguments of a compiled field are invalid
                    self.fallbacks += 1
                    context.how = "fallback"
                return result
            json = await run(bound, context)
        except Exception as error:  # the interpreter meets it again, and reports it with its path
            if context.request.budget.refusal is not None:
                return _too_large(context.request.budget.refusal, call, context)
            context.how = "fallback"
            if isinstance(error, CladeError | GraphQLError | RecursionError | UnsupportedByPlan):
                self.fallbacks += 1
            else:  # neither clients nor stores cause it
                log_fault(error)
                self.compiler_errors += 1
            context.begin_again()
            without_frames(error, unexpected=True)  # the plan may be cached with it
            return None
        if not await context.request.state.are_moves_unchanged():
            raise MoveCommitted
        self.compiled += 1
        context.how = "compiled"
        if call.key is not None and not context.request.depends_on_caller:
            self._cache.put(call.key, json, context.request.state)
        partitions = context.request.state.validating_partitions
        return OperationResponse(_extensions(call, context, partitions), True, json, partitions=partitions)


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


def _too_large(error: BudgetExceeded, call: Call, context: Any) -> OperationResponse:
    return too_large(error, _extensions(call, context), is_mutation=call.prepared.is_mutation)


def _cached(entry: Entry, call: Call, context: Any) -> OperationResponse:
    extensions = _extensions(call, context, entry.partitions) if call.report_reads or call.cache_tags else {}
    return OperationResponse(extensions, True, entry.body, entry.etag, entry.partitions)
