"""Calling the caller's function, plain or async, so that whatever it does becomes a reply."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from phaseguard.ensemble.layouts import Layout
from phaseguard.ensemble.votes import Answer, Reply
from phaseguard.errors import InputError

Ask: TypeAlias = Callable[[Any], "str | Answer | Awaitable[str | Answer]"]


@dataclass
class Caller:
    """Makes the calls of one question.

    Attributes:
        function: the caller's own; ``timeout``: most seconds a call may take, or None.
        clock: gives seconds; ``began``: what it gave at the start.
    """

    function: Ask
    timeout: float | None
    clock: Callable[[], float]
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def call(self, layout: Layout) -> Reply:
        """Call a plain function."""
        start = self.clock()
        result: Answer | Exception
        try:
            result = Answer.read(_plain(self.function(layout.prompt)))
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a missing ballot
            result = error
        return self._reply(layout, result, start)

    async def acall(self, layout: Layout) -> Reply:
        """Call a plain function in a thread, or an async one, for as long as the timeout allows."""
        start = self.clock()
        result: Answer | Exception
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                given: Any
                if is_async(self.function):
                    given = self.function(layout.prompt)
                else:
                    given = await _in_thread(self.function, layout.prompt)
                result = Answer.read(await given if inspect.isawaitable(given) else given)
        except Exception as error:  # noqa: BLE001 - likewise
            result = TimeoutError(f"no answer within {self.timeout} s") if limit.expired() else error
        return self._reply(layout, result, start)

    def _reply(self, layout: Layout, result: Answer | Exception, start: float) -> Reply:
        now = self.clock()
        return Reply(layout, result, now - start, now - self.began)


async def _in_thread(function: Ask, prompt: Any) -> Any:
    """As ``asyncio.to_thread``; a coroutine that comes back after the call was called off is closed."""
    within = contextvars.copy_context()
    running = asyncio.get_running_loop().run_in_executor(None, within.run, function, prompt)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.add_done_callback(_drop)
        raise


def _drop(done: asyncio.Future[Any]) -> None:
    if not done.cancelled() and done.exception() is None and inspect.iscoroutine(done.result()):
        done.result().close()


def is_async(function: Any) -> bool:
    """Whether calling it gives something to await: an async function, or an object with an async call.

    >>> is_async(print)
    False
    """
    inner = getattr(function, "__call__", None)  # noqa: B004 - its kind is asked for, not whether it is there
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner)


def opinion(given: Any) -> Answer | None:
    """What ``on_disagreement`` said; None keeps the vote.

    Raises:
        InputError: when it is no answer.
    """
    return None if given is None else Answer.read(_plain(given))


def _plain(given: Any) -> Any:
    """What a plain function returned.

    Raises:
        InputError: when it has to be awaited.
    """
    if inspect.isawaitable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise InputError("The function returned something to await: define it with async def, or use aask.")
    return given
