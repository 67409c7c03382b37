"""Ctrl-C: every command ends with one sentence and the exit status 130, whenever it is pressed and however often.

The first press raises `Interrupted`, or cancels the coroutine of `run`; it leaves no moment in which a second one does.
Further presses are ignored: what must be closed is closed, and no traceback follows the sentence.
"""

import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

import typer

from commands.output import say
from store.errors import Uncertain

EXIT_INTERRUPTED = 130  # 128 and the number of SIGINT

T = TypeVar("T")


class Interrupted(BaseException):
    """Ctrl-C was pressed. Typer, prompts and event loops treat KeyboardInterrupt in ways of their own, but not this."""


def catch() -> None:
    """Let Ctrl-C raise Interrupted. A process that was started to ignore it, such as by nohup, goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise)


def ignore() -> None:
    """Ignore Ctrl-C from now on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _raise(signum: int, frame: FrameType | None) -> NoReturn:
    ignore()
    raise Interrupted


@contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """End the command on Ctrl-C within the block; `message` says how far it came and how to continue.

    It is printed as well where the store was lost while it made a change.
    """
    try:
        yield
    except Uncertain:
        say(message(), err=True)
        raise
    except Interrupted:
        say(message(), err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, as by `asyncio.run`. Raises Interrupted after Ctrl-C has cancelled it.

    Ctrl-C cancels it once, and is ignored from then on.
    """
    import asyncio  # which many commands do without

    task: asyncio.Task[T] | None = None
    is_interrupted = False

    async def main() -> T:
        nonlocal task
        task = asyncio.current_task()
        if is_interrupted:
            raise asyncio.CancelledError
        return await coroutine

    def cancel(signum: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        ignore()
        is_interrupted = True
        if task is not None:
            task.cancel()
            task.get_loop().call_soon_threadsafe(lambda: None)  # wakes the loop up

    handler = signal.getsignal(signal.SIGINT)
    if handler is not _raise:
        return asyncio.run(coroutine)
    signal.signal(signal.SIGINT, cancel)
    try:
        result = asyncio.run(main())
    except BaseException:
        if is_interrupted:
            raise Interrupted from None
        raise
    finally:
        coroutine.close()  # which has not begun where the loop could not
        if not is_interrupted:
            signal.signal(signal.SIGINT, handler)
    if is_interrupted:
        raise Interrupted
    return result
