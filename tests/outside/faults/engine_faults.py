"""Faults of a DynamoDB engine in the middle of mutations: each has the outcome that its response says."""

import random
import time
from collections import Counter

from aiohttp import web

from tests.outside.failures import Wrong
from tests.outside.faults.engine_proxy import EngineProxy, faults
from tests.outside.faults.writers import Writer, prepare, settle
from tests.outside.processes import EXTREMES, Place, command
from tests.proxy import Call, Forward

PROMISES = (
    ("writing.md", "`uncertain` is set when DynamoDB did not report the result of a transaction"),
    ("writing.md", "for 24 hours it is made only once, and every repetition returns the same payload"),
    ("operation.md", "Throttled calls, 5xx and lost connections are retried, also for writes"),
    ("operation.md", "Nothing has to be restarted."),
)
SETTLE_SECONDS = 3.0


class Weather:
    """What happens to calls: nothing, one in some of them has a fault, or all have."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.share = 0.0
        self.kinds = [*faults(0)]
        self.made: Counter[str] = Counter()

    def change(self) -> None:
        self.share = self._chance.choice((0.0, 0.05, 0.2, 0.5, 1.0))
        self.kinds = self._chance.sample([*faults(0)], self._chance.choice((1, 1, 3, len(faults(0)))))

    async def handle(self, call: Call, forward: Forward) -> web.Response:
        if self._chance.random() >= self.share:
            return await forward(call.body)
        kind = self._chance.choice(self.kinds)
        self.made[f"faults: {kind}"] += 1
        return await faults(self._chance.choice((0.2, 1.0, 3.0, 5.0)))[kind](call, forward)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Writers on two servers whose engine fails in changing ways."""
    if place.engine is None or not place.engine.command:
        return Counter()
    chance = random.Random(seed)
    weather = Weather(chance.randrange(2**31))
    with EngineProxy(place.engine.url, weather.handle) as proxy:
        direct = place.new_store()
        store = direct.replace(place.engine.url, proxy.url)
        servers = [place.server(store, request_seconds="3") for _ in range(2)]
        names = [f"w{number}" for number in range(4)]
        prepare(servers[0], names)
        writers = [Writer(name, chance.randrange(2**31), lambda: servers) for name in names]
        for writer in writers:
            writer.begin()
        try:
            while not weather.made or time.monotonic() < until - 12:
                weather.change()
                time.sleep(chance.choice((0.5, 1, 2)))
        finally:
            weather.share = 0.0
            for writer in writers:
                writer.end()
            for writer in writers:
                writer.join()
        _wait_until_quiet(proxy)
        _expect_recovery(writers[0])
        counts = settle(writers, servers[0], ["an engine that fails"], SETTLE_SECONDS) + weather.made
        checked = command("check", store=direct, status=None, hierarchies=str(EXTREMES))
        if checked.returncode:
            raise Wrong("each mutation is made or not", ["an engine that fails", "clade check"], "", checked.stdout)
        return counts


def _wait_until_quiet(proxy: EngineProxy) -> None:
    """Until no delayed call is on its way, so that what is unknown will not be made later."""
    quiet = 0
    while quiet < 10:
        quiet = quiet + 1 if proxy.running == 0 else 0
        time.sleep(0.1)


def _expect_recovery(writer: Writer) -> None:
    """The first response of the engine closes the circuit breaker, so a mutation is made soon."""
    end = time.monotonic() + 20
    made = writer.counts["mutations made"]
    while writer.counts["mutations made"] == made:
        if time.monotonic() > end:
            answers = writer.account.sent[-1].answers
            raise Wrong(PROMISES[3][1], ["an engine that failed and is well"], "made", answers)
        writer.write()
