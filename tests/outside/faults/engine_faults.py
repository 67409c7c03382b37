"""Faults of a DynamoDB engine in the middle of mutations: each has the outcome that its response says."""

import asyncio
import contextlib
import random
import time
from collections import Counter

from aiohttp import web

from tests.outside.failures import SETTLE_SECONDS, Wrong
from tests.outside.faults.writers import Writer, settle, writing
from tests.outside.processes import Place, expect_no_findings
from tests.proxy import (
    Call,
    Fault,
    Forward,
    Proxy,
    answer_dropped,
    cancelled,
    cut,
    delayed,
    dropped,
    garbled,
    in_thread,
    passed,
    refused,
    status,
    throttled,
)
from tests.waiting import eventually

PROMISES = (
    ("writing.md", "`uncertain` is set when DynamoDB did not report the result of a transaction"),
    ("writing.md", "for 24 hours it is made only once, and every repetition returns the same payload"),
    ("operation.md", "Throttled calls, 5xx and lost connections are retried, also for writes"),
    ("operation.md", "Nothing has to be restarted."),
)
WEATHER_SECONDS, QUIET_SECONDS = 2.0, 1.0


class Weather(Proxy):
    """Injects nothing, a fault into one in some calls, or into all."""

    def __init__(self, target: str, seed: int) -> None:
        super().__init__(target, usual=self._fault)
        self._chance = random.Random(seed)
        self.share = 0.0
        self.kinds = [*faults(0)]
        self.made: Counter[str] = Counter()

    def change(self) -> None:
        """Other weather, for some calls, or for some time where few are made."""
        self.share = self._chance.choice((0.0, 0.05, 0.2, 0.5, 1.0))
        self.kinds = self._chance.sample([*faults(0)], self._chance.choice((1, 1, 3, len(faults(0)))))
        until = len(self.calls) + self._chance.choice((20, 50, 100))
        with contextlib.suppress(AssertionError):
            eventually(lambda: len(self.calls) > until, WEATHER_SECONDS)

    async def _fault(self, call: Call, forward: Forward) -> web.Response:
        if self._chance.random() >= self.share:
            return await passed(call, forward)
        kind = self._chance.choice(self.kinds)
        self.made[f"faults: {kind}"] += 1
        return await faults(self._chance.choice((0.2, 1.0, 3.0, 5.0)))[kind](call, forward)

    def await_quiet(self) -> None:
        """Wait until no call is on its way, so that what is unknown will not be made later."""
        since = time.monotonic()

        def is_quiet() -> bool:
            nonlocal since
            since = time.monotonic() if self.running else since
            return time.monotonic() > since + QUIET_SECONDS

        eventually(is_quiet)


async def _throttle(call: Call, forward: Forward) -> web.Response:
    """Throttle the call, a transaction by its first change."""
    if call.operation != "TransactWriteItems":
        return await throttled(call, forward)
    others = len(call.body["TransactItems"]) - 1
    return await cancelled("ThrottlingError", *["None"] * others)(call, forward)


def _after(fault: Fault) -> Fault:
    """The fault, but the engine has got the call."""

    async def after(call: Call, forward: Forward) -> web.Response:
        await forward(call.body)
        return await fault(call, forward)

    return after


def faults(seconds: float) -> dict[str, Fault]:
    """The faults by their names; those that delay a call or its response do so for as long."""

    async def late(call: Call, forward: Forward) -> web.Response:
        answer = await forward(call.body)
        await asyncio.sleep(seconds)
        return answer

    return {
        "throttle": _throttle,
        "drop before": dropped,
        "drop after": answer_dropped,
        "cut": cut,
        "late": late,
        "slow": delayed(seconds),
        "garble": garbled,
        "error before": refused("InternalServerError", 500),
        "error after": _after(refused("ServiceUnavailable", 503)),
        "page of a load balancer": _after(status(502)),
    }


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Writers on two servers whose engine fails in changing ways."""
    direct = place.new_store()  # starts the engine
    if place.engine is None or not place.engine.command:
        return Counter()
    chance = random.Random(seed)
    with in_thread(Weather(place.engine.url, chance.randrange(2**31))) as weather:
        store = direct.replace(place.engine.url, weather.url)
        servers = [place.server(store, request_seconds="3") for _ in range(2)]
        with writing(lambda: servers, 4, chance) as writers:
            try:
                while not weather.made or time.monotonic() < until - 12:
                    weather.change()
            finally:
                weather.share = 0.0
        weather.await_quiet()
        _expect_recovery(writers[0])
        script = ["an engine that fails"]
        counts = settle(writers, servers[0], script, SETTLE_SECONDS[place.kind]) + weather.made
        expect_no_findings(direct, "each mutation is made or not", script)
        return counts


def _expect_recovery(writer: Writer) -> None:
    """The first response of the engine closes the circuit breaker, so a mutation is made soon."""
    made = writer.counts["mutations made"]

    def is_made() -> bool:
        writer.write()
        return writer.counts["mutations made"] > made

    def problem() -> Wrong:
        return Wrong(PROMISES[3][1], ["an engine that failed and is well"], "made", writer.account.sent[-1].answers)

    eventually(is_made, 20, problem)
