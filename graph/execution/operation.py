"""One operation, from its text to its answer: what lies between HTTP and the resolvers."""

import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from graphql import (
    ExecutionResult,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    execute,
)
from orjson import dumps
from strawberry import Schema
from strawberry.execution import optimized_is_awaitable

from graph.auth.authentication import Missing, needs_credential
from graph.compiler.leaf_codegen import UnsupportedByPlan
from graph.compiler.plan_cache import PlanCache
from graph.compiler.plan_runner import run
from graph.errors import (
    BAD_USER_INPUT,
    NO_OPERATION,
    TIMEOUT,
    UNCERTAIN,
    format_errors,
    log_fault,
    request_error,
    without_frames,
)
from graph.execution.eager import within
from graph.execution.executor import Executor
from graph.execution.response_cache import Entry, ResponseCache, sight_of
from graph.observability.request_info import RequestInfo
from graph.operation.document_cache import DocumentCache, InvalidDocument, ParsedDocument
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_request import GraphQLRequest
from resolvers.access.caller import ANYONE, Caller
from resolvers.session.budget import Budget, ResponseTooLarge
from store.errors import NOT_KNOWN, BudgetExceeded, CladeError, Unavailable

ATTEMPTS = 3  # at an answer while moves flip; each flips once


class QueriesOnly(Exception):
    """The operation changes something, and came in a way that may only read."""


class Flipped(Exception):
    """A running move has flipped since it was met, so an answer may hold parts of before and of after."""


@dataclass(slots=True)
class Answer:
    """What a client gets for an operation."""

    body: dict[str, Any]
    """GraphQL's response: `errors` where there are some, `data` where it was executed, `extensions` where asked for."""
    executed: bool
    """Whether the operation ran at all; false for a request error, which has no `data`."""
    told: bytes | None = None
    """The response as JSON, where a plan has told it; only what stands beside its data is in `body` then."""
    etag: str = ""
    """The entity tag of what is told, where it is known already."""
    _content: bytes | None = None

    def measure(self, budget: Budget) -> None:
        """Write the response as JSON, once; raises ResponseTooLarge where that is longer than it may be."""
        self._content = dumps(self.body)
        budget.check_size(len(self._content))

    def content(self) -> bytes:
        """The response as JSON."""
        if self.told is None:
            return dumps(self.body) if self._content is None else self._content
        return self.told[:-1] + b"," + dumps(self.body)[1:] if self.body else self.told


@dataclass(slots=True)
class Call:
    """One operation that may run, as a client asks for it."""

    question: GraphQLRequest
    prepared: ParsedDocument
    operation: OperationDefinitionNode
    tell_reads: bool

    @property
    def is_query(self) -> bool:
        return self.operation.operation is OperationType.QUERY

    @property
    def name(self) -> str | None:
        return self.operation.name.value if self.operation.name else None


class Execution:
    """Runs operations on a schema, each with a context of its own.

    Strawberry's schema extensions are not run: they cost more than a small query does, and Clade has none.
    """

    def __init__(
        self,
        schema: Schema,
        make_context: Callable[[], Any],
        *,
        plans: PlanCache | None = None,
        cache: ResponseCache | None = None,
        keep_documents: int = 1_000,
        limits: DocumentLimits = DocumentLimits(),
        suggestions: bool = True,
        span: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """`span` is what each run of a plan happens in, by its name."""
        self._span = span
        self._schema = schema
        self._plans = plans
        self._cache = cache or None
        self._limits = limits
        self._suggestions = suggestions
        self._documents = DocumentCache(schema, keep=keep_documents, limits=limits, suggestions=suggestions)
        self._make_context = make_context
        self.planned = self.surprised = self.failed = self.unplanned = 0
        """How many queries plans have answered, have handed over when they met an error, have handed over by a mistake
        of ours, and did not cover.
        """

    async def execute(
        self,
        query: str,
        variables: dict[str, Any] | None = None,
        *,
        caller: Caller = ANYONE,
        allow_mutations: bool,
        tell_reads: bool = False,
    ) -> Answer:
        """The answer to a question that is nothing but this query."""
        question = GraphQLRequest(query, variables)
        return await self.answer(question, caller=caller, allow_mutations=allow_mutations, tell_reads=tell_reads)

    async def answer(
        self,
        question: GraphQLRequest,
        *,
        caller: Caller = ANYONE,
        allow_mutations: bool,
        tell_reads: bool = False,
        observed: RequestInfo | None = None,
    ) -> Answer:
        """The answer of one operation, for a caller; whatever goes wrong in it is among the answer's errors.

        `tell_reads` adds what the context reports of its reads as `extensions.reads`; `observed` is told what ran.
        Raises QueriesOnly for anything but a query unless `allow_mutations`, and Missing where a credential is needed.
        """
        try:
            prepared = self._documents.get(question.query)
        except InvalidDocument as invalid:
            return refused(invalid.errors)
        operation = prepared.operation(question.operation_name)
        if operation is None:
            return refused([no_operation(question.operation_name)])
        if operation.operation is not OperationType.QUERY and not allow_mutations:
            raise QueriesOnly
        if caller.reads is not None and needs_credential(caller, operation):
            raise Missing
        context = self._make_context()
        if caller is not ANYONE:
            context.act_for(caller)
            tell_reads = tell_reads and caller.reads is None  # else they would tell of what is hidden that it is there
        call = Call(question, prepared, operation, tell_reads)
        if observed is not None:
            observed.kind, observed.operation = operation.operation.value, call.name
            observed.document, observed.context = question.query, context
        if self._cache is not None and (
            entry := self._cache.proven(_key(call, context), context.request.state.store_version)
        ):
            return kept_answer(entry, call, context)
        try:
            return await within(self._limits.request_seconds, self._consistent(call, context))
        except TimeoutError:
            return timed_out(operation, self._limits.request_seconds)
        finally:  # also where the client is gone
            context.stop()

    async def _consistent(self, call: Call, context: Any) -> Answer:
        """The answer of an operation that may run, made anew where its reads were of before and of after a change."""
        answer = await self._run(call, context)
        if call.is_query and (snapshot := context.snapshot_if_torn()):
            async with snapshot:
                context.begin_in(snapshot)
                return await self._run(call, context)
        return answer

    async def _run(self, call: Call, context: Any) -> Answer:
        """The answer of an operation that may run, made anew where a move has flipped while it was read."""
        for _ in range(ATTEMPTS):
            try:
                return await self._once(call, context)
            except Flipped:
                context.forget()
        return overtaken()

    async def _once(self, call: Call, context: Any) -> Answer:
        """The answer of an operation that may run: a kept one, one that a plan tells, or Strawberry's."""
        context.how = "resolved"
        if call.is_query and (whole := await self._whole(call, context)) is not None:
            return whole
        result = execute(
            self._schema._schema,
            call.prepared.document,
            context_value=context,
            variable_values=call.question.variables,
            operation_name=call.name,
            executor_class=Executor,
            is_awaitable=optimized_is_awaitable,  # type: ignore[arg-type]  # it says bool where TypeGuard is meant
            hide_suggestions=not self._suggestions,
            operation_extensions=call.question.extensions,
        )
        if not isinstance(result, ExecutionResult):
            result = await result
        if context.budget.refusal is not None:
            return too_large(context.budget.refusal, call, context)
        if call.is_query and not await context.is_steady():
            raise Flipped
        answer = answer_of(result, call, context)
        try:
            answer.measure(context.budget)
        except ResponseTooLarge as error:
            return too_large(error, call, context)
        return answer

    async def _whole(self, call: Call, context: Any) -> Answer | None:
        """A kept answer, or one that a plan tells; None where there is neither, or Strawberry has to tell errors."""
        key = _key(call, context) if self._cache is not None else None
        if self._cache is not None and key and (entry := await self._kept(self._cache, key, context)):
            return kept_answer(entry, call, context)
        began = time.monotonic()
        try:
            bound = self._plans.get(call.prepared, call.operation, call.question) if self._plans else None
            if bound is None:
                self.unplanned += 1
                return None
            with self._span("plan"):
                told = await run(bound, context)
        except Exception as error:  # whatever it was, Strawberry meets it again and tells it at its place
            if context.budget.refusal is not None:
                return too_large(context.budget.refusal, call, context)
            self._hand_over(error, context)
            without_frames(error, unforeseen=True)  # it may be kept with the plan
            return None
        if not await context.is_steady():
            raise Flipped
        self.planned += 1
        context.how = "planned"
        if self._cache and key:
            with suppress(CladeError):  # without its proof it is not kept, but it is the answer
                await self._cache.put(key, told, context.request, began)
        return Answer(_extensions(call, context), True, told)

    def _hand_over(self, error: Exception, context: Any) -> None:
        """Leave to Strawberry what a plan has begun; of what no client and no store can cause we want to know."""
        if isinstance(error, CladeError | GraphQLError | RecursionError | UnsupportedByPlan):
            self.surprised += 1
            context.how = "surprised"
        else:
            log_fault(error)
            self.failed += 1
            context.how = "failed"
        context.begin_again()

    async def _kept(self, cache: ResponseCache, key: Hashable, context: Any) -> Entry | None:
        """The kept answer to a question; where its proof cannot be read, the question is answered anew."""
        try:
            return await cache.get(key, context.request)
        except CladeError:
            context.request.discard_reads()
            return None


def _key(call: Call, context: Any) -> Hashable | None:
    """What an answer is kept under: the same question of callers who may see other things is another one."""
    digest = call.question.digest
    return digest and (digest, sight_of(context.request.grants))


def _extensions(call: Call, context: Any) -> dict[str, Any]:
    """What stands beside an answer's data, if its client asked for that."""
    return {"extensions": {"reads": context.reads_report()}} if call.tell_reads else {}


def kept_answer(entry: Entry, call: Call, context: Any) -> Answer:
    """The answer that was told before."""
    context.how = "kept"
    return Answer(_extensions(call, context), True, entry.told, entry.etag)


def answer_of(result: ExecutionResult, call: Call, context: Any) -> Answer:
    """What graphql-core found, as clients get it."""
    errors = result.errors or []
    # Only errors of variables have no path: those of fields have one, also where `data` became null by them.
    if result.data is None and all(error.path is None for error in errors):
        return refused(request_error(error, BAD_USER_INPUT) for error in errors)
    body: dict[str, Any] = {"errors": format_errors(errors, context.errors_left_out)} if errors else {}
    return Answer({**body, "data": result.data, **_extensions(call, context)}, executed=True)


def refused(errors: Iterable[GraphQLError]) -> Answer:
    """The answer of an operation that did not run."""
    return Answer({"errors": format_errors(errors)}, executed=False)


def timed_out(operation: OperationDefinitionNode, seconds: float) -> Answer:
    """The answer of an operation that was ended before it was done."""
    message = f"The request took longer than {seconds:g} seconds and was ended"
    if operation.operation is OperationType.QUERY:
        message += "; ask for less in each, or raise CLADE_REQUEST_SECONDS."
        error = GraphQLError(message, extensions={"code": TIMEOUT})
    else:
        error = GraphQLError(f"{message}. {NOT_KNOWN}", extensions={"code": TIMEOUT, **UNCERTAIN})
    return Answer({"errors": format_errors([error]), "data": None}, executed=True)


def too_large(error: BudgetExceeded, call: Call, context: Any) -> Answer:
    """The answer of an operation whose response would be larger than it may be, or takes more reads."""
    message = str(error)
    extensions: dict[str, object] = {"code": error.code}
    if not call.is_query:
        message, extensions = f"{message} {NOT_KNOWN}", {**extensions, **UNCERTAIN}
    told = GraphQLError(message, extensions=extensions)
    return Answer({"errors": format_errors([told]), "data": None, **_extensions(call, context)}, executed=True)


def overtaken() -> Answer:
    """The answer where moves flipped during each attempt at one."""
    message = "Nodes were moved each time that they were read, so nothing is answered; ask again."
    error = GraphQLError(message, extensions={"code": Unavailable.code})
    return Answer({"errors": format_errors([error]), "data": None}, executed=True)


def no_operation(name: str | None) -> GraphQLError:
    message = (
        "The query holds more than one operation, or none; say which to run in operationName."
        if name is None
        else f'The query holds no operation named "{name}".'
    )
    return GraphQLError(message, extensions={"code": NO_OPERATION})
