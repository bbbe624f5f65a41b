"""``Server``: an OpenAI-compatible endpoint on the loopback interface, for tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Self

from phaseguard.errors import InputError
from phaseguard.testing.calls import Call, CallLog
from phaseguard.testing.checks import Rules
from phaseguard.testing.completion import Engine
from phaseguard.testing.faults import Fault


@dataclass(frozen=True, slots=True)
class Started:
    """A running server: its port, and what ends it."""

    port: int
    stop: Callable[[], object]


class Server:
    """Serves an engine over HTTP while its ``with`` block runs.

    It serves ``POST /v1/chat/completions`` and ``/v1/completions``, plain and as streams, and
    ``GET /v1/models``, with errors in OpenAI's form. One event loop in a thread of its own takes all
    requests, so thousands may be open at once.

    Args:
        engine: makes the answers, such as :class:`phaseguard.testing.LabEngine`.
        faults: called with every request; what it returns goes wrong with it, None for nothing.
        models: names that may be asked for; any other is answered 404.
        key: an API key that requests must send, else they are answered 401; None takes any.
        context: most tokens of a prompt with the answer that it asks for, else it is answered 400, where the
            engine counts tokens; None for no limit.

    Raises:
        InputError: for an engine without ``reply``, or arguments that cannot be used.
        MissingExtraError: on entering, when aiohttp is not installed (extra ``testing``).

    >>> import json, urllib.request
    >>> from phaseguard.testing import ScriptedEngine, Server
    >>> body = {"model": "test-model", "messages": [{"role": "user", "content": "Which code?"}]}
    >>> with Server(ScriptedEngine("A-17")) as server:
    ...     sent = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode())
    ...     with urllib.request.urlopen(sent) as response:
    ...         reply = json.load(response)
    >>> reply["choices"][0]["message"]["content"], server.calls[0].texts
    ('A-17', ('Which code?',))
    """

    def __init__(
        self,
        engine: Engine,
        *,
        faults: Callable[[Call], Fault | None] | None = None,
        models: Sequence[str] = ("test-model",),
        key: str | None = None,
        context: int | None = None,
    ) -> None:
        if not callable(getattr(engine, "reply", None)):
            raise InputError(f"{type(engine).__name__} has no reply(body, path): give an engine.")
        if isinstance(models, str) or not models:
            raise InputError(f"models={models!r}: give a list of at least one name.")
        if context is not None and context < 1:
            raise InputError(f"context={context!r}: give a number of tokens from 1, or None.")
        self._engine, self._faults = engine, faults
        self._rules = Rules(tuple(models), key, context)
        self._log = CallLog()
        self._thread: threading.Thread | None = None
        self._started: Started | None = None

    def __enter__(self) -> Self:
        from phaseguard.testing.app import Service  # noqa: PLC0415 - it needs aiohttp

        if self._thread is not None:
            raise InputError("This server is running: take another one.")
        service = Service(self._engine, self._rules, self._faults, self._log)
        ready: Future[Started] = Future()
        self._thread = threading.Thread(
            target=_run, args=(service.run, ready), name="phaseguard-server", daemon=True
        )
        self._thread.start()
        try:
            self._started = ready.result()
        except Exception:
            self._thread = None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None and self._started is not None:
            self._started.stop()
            self._thread.join()
            self._thread = None

    @property
    def url(self) -> str:
        """The base URL that clients take, such as ``http://127.0.0.1:54321/v1``.

        Raises:
            InputError: when the server was never started.
        """
        if self._started is None:
            raise InputError("The server is not running: use it in a with block.")
        return f"http://127.0.0.1:{self._started.port}/v1"

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every request so far, in order of arrival, those that were refused too."""
        return self._log.calls

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of the calls whose client went away before it had its answer."""
        return self._log.dropped

    @property
    def most_open(self) -> int:
        """Most requests that were being answered at once."""
        return self._log.most_open

    def wait_idle(self, timeout: float = 10.0) -> None:
        """Wait until no request is being answered: a client that leaves is seen a little later.

        Raises:
            TimeoutError: when one still is after ``timeout`` seconds.
        """
        self._log.wait_idle(timeout)

    def reset(self, timeout: float = 10.0) -> None:
        """Forget all calls once none is being answered; numbers start at 0 again.

        Raises:
            TimeoutError: as :meth:`wait_idle`.
        """
        self._log.reset(timeout)


def _run(
    serve: Callable[[Callable[[int], None], asyncio.Event], Coroutine[None, None, None]],
    ready: Future[Started],
) -> None:
    """The thread: an event loop that tells its port and how to stop it."""

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        await serve(
            lambda port: ready.set_result(Started(port, lambda: loop.call_soon_threadsafe(stop.set))), stop
        )

    try:
        asyncio.run(main())
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)
