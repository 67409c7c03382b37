"""Execution of one operation: a query by the response cache or a plan, anything else by graphql-core."""

import asyncio
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphql import ExecutionResult, GraphQLError, OperationDefinitionNode, OperationType, execute
from orjson import dumps
from strawberry import Schema
from strawberry.execution import optimized_is_awaitable

from graph.auth.authentication import MissingCredential, needs_credential
from graph.compiler.plan_cache import BoundPlan, InvalidVariables, PlanCache
from graph.compiler.plan_runner import PlanRun, Written
from graph.errors import BAD_USER_INPUT, codes_of, format_errors, log_unexpected, request_error
from graph.execution.executor import EagerCoroutine, Executor
from graph.execution.response import (
    OperationResponse,
    failed_unexpectedly,
    interpreted,
    moved_meanwhile,
    no_operation,
    rejected,
    timed_out,
    too_large,
)
from graph.execution.response_cache import CACHED_ERRORS, Entry, ResponseCache, apollo_cache_tags
from graph.observability.request_info import RequestInfo
from graph.operation.document_cache import DocumentCache, InvalidDocument, ParsedDocument
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from resolvers.access.grants import ANYONE, Caller
from resolvers.past.change_follower import ChangeListener
from resolvers.session.budget import ResponseTooLarge
from store.errors import CladeError

TRACED = 2  # of `report_reads`: with the calls of the store
ATTEMPTS = 3  # at a consistent read beside moves, each of which commits once


class MutationNotAllowed(Exception):
    """The operation is not a query, and the request may only read."""


class SubscriptionNotAllowed(Exception):
    """The operation is a subscription, and its events cannot be sent."""


class MoveCommitted(Exception):
    """A running move committed while its nodes were read, so the response may mix both states."""


@dataclass(slots=True)
class Call:
    """One operation to execute, as a client requested it; `key` is that of its response in the cache, None where
    nothing is cached.
    """

    request: GraphQLRequest
    document: ParsedDocument
    operation: OperationDefinitionNode
    is_query: bool
    key: Hashable | None
    report_reads: int
    cache_tags: bool
    listener: ChangeListener | None = None

    @property
    def name(self) -> str | None:
        return self.operation.name.value if self.operation.name else None


class Execution:
    """Executes operations on a schema, each with a context of its own.

    Strawberry's schema extensions are not run: they cost more than a small query does, and Clade has none.
    """

    def __init__(
        self,
        schema: Schema,
        make_context: Callable[[], Any],
        plans: PlanCache,
        *,
        cache: ResponseCache = ResponseCache(0),
        limits: DocumentLimits = DocumentLimits(),
        span: Callable[[str], AbstractContextManager[Any]] | None = None,
    ) -> None:
        """`plans` compiles queries; `span` makes the context manager, by its name, in which a plan runs."""
        self._span = span
        self._schema = core_schema(schema)
        self._plans = plans
        self._cache = cache
        self._limits = limits
        self._documents = DocumentCache(schema, limits)
        self._make_context = make_context

    async def execute(
        self,
        query: str,
        variables: dict[str, Any] | None = None,
        *,
        caller: Caller = ANYONE,
        allow_mutations: bool,
        report_reads: int = 0,
    ) -> OperationResponse:
        """The response to a request of this query."""
        request = GraphQLRequest(query, variables)
        return await self.answer(request, caller=caller, allow_mutations=allow_mutations, report_reads=report_reads)

    def is_subscription(self, request: GraphQLRequest) -> bool:
        """Whether the operation of a request is a valid subscription."""
        try:
            operation = self._documents.get(request.query).operation(request.operation_name)
        except InvalidDocument:
            return False
        return operation is not None and operation.operation is OperationType.SUBSCRIPTION

    async def answer(
        self,
        request: GraphQLRequest,
        *,
        caller: Caller = ANYONE,
        allow_mutations: bool,
        report_reads: int = 0,
        cache_tags: bool = False,
        observed: RequestInfo | None = None,
        waited: float = 0.0,
        listener: ChangeListener | None = None,
    ) -> OperationResponse:
        """The response to a request of this caller, `waited` seconds after it came; `observed` receives the operation.

        `report_reads` adds `extensions.reads`, with 2 also its calls; `cache_tags` adds tags for Apollo's router to a
        response that trees prove. Callers with grants get neither. The response to a subscription is the next event of
        `listener`. Raises MissingCredential, and MutationNotAllowed and SubscriptionNotAllowed for the other two.
        """
        try:
            document = self._documents.get(request.query)
        except InvalidDocument as invalid:
            return rejected(invalid.errors)
        operation = document.accepted.get(request) or document.operation(request.operation_name)
        if operation is None:
            return no_operation(request.operation_name)
        is_query, reads_all = operation.operation is OperationType.QUERY, caller.reads is None
        if not is_query or not reads_all:
            _check(operation, caller, allow_mutations=allow_mutations, allow_subscriptions=listener is not None)
        if request not in document.accepted:
            if (error := self._input_error(document, operation, request)) is not None:
                return rejected([error])
            document.accepted[request] = operation
        # Callers who see a part share no responses, and to them the reads would reveal hidden nodes.
        key = request.digest if is_query and reads_all and self._cache else None
        report_reads, cache_tags = report_reads * reads_all, cache_tags and reads_all
        call = Call(request, document, operation, is_query, key, report_reads, cache_tags, listener)
        context = self._context(call, caller, observed)
        if key is not None and (entry := self._cache.at_once(key, context.request.state)) is not None:
            return _cached(entry, call, context)
        try:
            work = EagerCoroutine(self._answer(call, context))
            if not work.is_done:
                context.has_waited = True
                async with asyncio.timeout(self._limits.request_seconds - waited):
                    await work
            return work.result
        except TimeoutError:
            return timed_out(operation, self._limits.request_seconds)
        finally:  # also if the client has disconnected
            context.stop()

    def _input_error(
        self, document: ParsedDocument, operation: OperationDefinitionNode, request: GraphQLRequest
    ) -> GraphQLError | None:
        """The error for more input values than the limit allows; they are counted before any is coerced."""
        try:
            inputs = document.inputs_of(operation)
            self._limits.check_inputs(self._schema, operation, inputs, request.variables or {})
        except GraphQLError as error:
            return error
        return None

    def _context(self, call: Call, caller: Caller, observed: RequestInfo | None) -> Any:
        context = self._make_context()
        context.listener = call.listener
        if caller is not ANYONE:
            context.act_for(caller)
        if call.report_reads == TRACED:
            context.trace_reads()
        if observed is not None:
            observed.kind, observed.operation = call.operation.operation.value, call.name
            observed.document, observed.context = call.request.query, context
        return context

    async def _answer(self, call: Call, context: Any) -> OperationResponse:
        """The response, made again if a move committed between the reads, and from a snapshot if the store changed."""
        for _ in range(ATTEMPTS):
            try:
                response = await (self._query(call, context) if call.is_query else self._operate(call, context))
                break
            except MoveCommitted:
                await context.forget()
        else:
            response = moved_meanwhile()
        if call.is_query and (snapshot := context.snapshot_if_torn()):
            async with snapshot:
                context.begin_in(snapshot)
                return await self._answer(call, context)
        return response

    async def _operate(self, call: Call, context: Any) -> OperationResponse:
        """The response of a mutation, or of an event of a subscription."""
        context.how = "interpreted"
        return self._interpreted(await self._executed(call, context), call, context)

    async def _executed(self, call: Call, context: Any) -> ExecutionResult:
        result = execute(
            self._schema,
            call.document.document,
            context_value=context,
            variable_values=call.request.variables,
            operation_name=call.name,
            executor_class=Executor,
            is_awaitable=optimized_is_awaitable,  # type: ignore[arg-type]  # annotated as bool, not as TypeGuard
            hide_suggestions=not self._limits.introspection,
            operation_extensions=call.request.extensions,
        )
        return result if isinstance(result, ExecutionResult) else await result

    def _interpreted(self, result: ExecutionResult, call: Call, context: Any) -> OperationResponse:
        if context.budget.refusal is not None:
            return too_large(context.budget.refusal, call.operation, _extensions(call, context))
        response = interpreted(result, context, _extensions(call, context))
        try:
            response.measure(context.budget)
        except ResponseTooLarge as error:
            return too_large(error, call.operation, _extensions(call, context))
        return response

    async def _query(self, call: Call, context: Any) -> OperationResponse:
        """The cached response of a query, or that of its plan."""
        context.how = "compiled"
        if call.key is not None and (entry := await self._current_entry(call.key, context)):
            return _cached(entry, call, context)
        try:
            bound = self._plans.get(call.document, call.operation, call.request)
            context.request.state.accepts_stale &= bound.plan.accepts_stale
            context.fields = bound.plan.fields
            run = PlanRun(bound, context, partial(self._in_place, call, bound, context))
            if self._span is None:
                written = await run.written()
            else:
                with self._span("plan"):
                    written = await run.written()
        except InvalidVariables as invalid:
            return rejected(request_error(error, BAD_USER_INPUT) for error in invalid.errors)
        except Exception as error:
            if context.budget.refusal is not None:
                return too_large(context.budget.refusal, call.operation, _extensions(call, context))
            log_unexpected(error)
            return failed_unexpectedly(error, _extensions(call, context))
        if context.request.state.moves is not None and not await context.is_steady():
            raise MoveCommitted
        try:
            return self._written(written, call, context)
        except ResponseTooLarge as error:
            return too_large(error, call.operation, _extensions(call, context))

    def _in_place(self, call: Call, bound: BoundPlan, context: Any) -> Executor:
        return Executor.of_query(
            self._schema, call.document.document, call.operation, bound.variables, context,
            hide_suggestions=not self._limits.introspection, operation_extensions=call.request.extensions,
        )  # fmt: skip

    def _written(self, written: Written, call: Call, context: Any) -> OperationResponse:
        """The response of a plan, which is cached if it is proven and has no errors but those of the request.

        Raises ResponseTooLarge.
        """
        is_cacheable = written.is_proven and context.request.state.is_cacheable
        errors: list[Any] = []
        codes: Sequence[str] = ()
        json = b'{"data":' + written.data + b"}"
        if written.errors:
            context.errors_left_out.update(written.left_out)
            errors = format_errors(written.errors, context.errors_left_out)
            json = b'{"errors":' + dumps(errors) + b"," + json[1:]
            codes = codes_of(errors)
        context.budget.check_size(len(json))
        if call.key is not None and is_cacheable and CACHED_ERRORS.issuperset(codes):
            state = context.request.state
            self._cache.put(call.key, json, state, codes, is_current=not state.accepts_stale)
        partitions = context.request.state.tagged if is_cacheable and not errors else ()
        extensions = _extensions(call, context, partitions) if call.report_reads or call.cache_tags else {}
        return OperationResponse(extensions, True, json, partitions=partitions, codes=codes)

    async def _current_entry(self, key: Hashable, context: Any) -> Entry | None:
        """The cached response if it is current; None also if that cannot be read."""
        try:
            return await self._cache.get(key, context.request.state)
        except CladeError:
            context.request.discard_reads()
            return None


def _check(
    operation: OperationDefinitionNode, caller: Caller, *, allow_mutations: bool, allow_subscriptions: bool
) -> None:
    """Raise MutationNotAllowed, SubscriptionNotAllowed or MissingCredential for an operation that is not executed."""
    if operation.operation is OperationType.MUTATION and not allow_mutations:
        raise MutationNotAllowed
    if operation.operation is OperationType.SUBSCRIPTION and not allow_subscriptions:
        raise SubscriptionNotAllowed
    if caller.reads is not None and needs_credential(caller, operation):
        raise MissingCredential


def _extensions(call: Call, context: Any, partitions: Collection[str] = ()) -> dict[str, Any]:
    """The member `extensions` that the request asks for; `partitions` prove the response, if any do."""
    extensions: dict[str, Any] = {}
    if call.report_reads:
        extensions["reads"] = context.reads_report()
        if call.report_reads == TRACED:
            extensions["reads"] |= context.calls_report()
    if call.cache_tags:
        extensions |= apollo_cache_tags(partitions, call.operation, call.request.variables)
    return {"extensions": extensions} if extensions else {}


def _cached(entry: Entry, call: Call, context: Any) -> OperationResponse:
    context.how = "cached"
    partitions = () if entry.codes else entry.partitions
    extensions = _extensions(call, context, partitions)
    return OperationResponse(extensions, True, entry.body, entry.etag, partitions, entry.codes)
