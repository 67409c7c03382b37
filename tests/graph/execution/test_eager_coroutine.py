"""Eager coroutines: started at once, and continued as if they had been awaited from the start."""

import asyncio

import pytest

from graph.execution.executor import EagerCoroutine


async def test_a_coroutine_that_does_not_wait_is_done_at_once():
    async def work() -> int:
        return 7

    started = EagerCoroutine(work())
    assert (started.is_done, started.result, await started) == (True, 7, 7)


async def test_a_coroutine_that_waits_is_continued():
    steps = []

    async def work() -> str:
        steps.append("begun")
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        steps.append("ended")
        return "done"

    started = EagerCoroutine(work())
    assert (started.is_done, steps) == (False, ["begun"])
    assert await started == "done"
    assert (await started, steps) == ("done", ["begun", "ended"])


async def test_errors_before_and_after_a_wait_are_raised():
    async def work(pauses: int) -> None:
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise KeyError(pauses)

    with pytest.raises(KeyError):
        EagerCoroutine(work(0))
    started = EagerCoroutine(work(2))
    with pytest.raises(KeyError):
        await started


async def test_results_and_errors_reach_the_coroutine():
    waited_for: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            await waited_for
        except ValueError:
            await asyncio.sleep(0)
            return "caught"
        return "nothing"

    started = EagerCoroutine(work())
    waited_for.set_exception(ValueError())
    assert await started == "caught"


async def test_a_cancelled_task_cancels_the_coroutine_which_may_clean_up():
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def whole() -> None:
        await EagerCoroutine(work())

    task = asyncio.create_task(whole())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]
