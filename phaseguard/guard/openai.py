"""Chat completions of an ``openai`` client, aligned where the client hands over what it is about to send."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from phaseguard.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from phaseguard.guard.core import PhaseGuard

_PATH = "/chat/completions"


def wrap(guard: PhaseGuard, client: Any) -> Any:
    """The same client with aligned chat completions.

    ``create`` (streamed too), ``stream`` and ``parse``, also under ``beta``, ``with_raw_response``,
    ``with_streaming_response`` and ``with_options``, send the aligned messages, with the formats and tools as
    the client writes them. Everything else is the client's own. An asynchronous client aligns in a thread.

    The result is a copy of the client, an instance of a subclass of its class, so ``isinstance`` holds; the
    connections are shared, and closing one closes both. The client that was given is not changed.

    Args:
        guard: aligns.
        client: an ``OpenAI`` or ``AsyncOpenAI`` client of version 2 or 3, or of a subclass such as
            ``AzureOpenAI``.

    Raises:
        InputError: for anything else.
        MissingExtraError: when openai is not installed.

    >>> from openai import OpenAI
    >>> from phaseguard import PhaseGuard
    >>> client = PhaseGuard().wrap(OpenAI(api_key="sk", base_url="http://127.0.0.1:9/v1"))
    >>> isinstance(client, OpenAI), str(client.with_options(timeout=5).base_url)
    (True, 'http://127.0.0.1:9/v1/')
    """
    try:
        from openai import AsyncOpenAI, OpenAI  # noqa: PLC0415 - loaded by those who have a client of it
    except ImportError as fault:
        raise MissingExtraError("guard.wrap() needs the openai client: pip install openai.") from fault
    if isinstance(client, AsyncOpenAI):
        guarded = _async_class(type(client), guard)
    elif isinstance(client, OpenAI):
        guarded = _sync_class(type(client), guard)
    else:
        raise InputError(
            f"guard.wrap() takes an openai.OpenAI or AsyncOpenAI client, not {type(client).__name__}: for "
            "another client call guard.align_payload() on what it is about to send."
        )
    made = copy(client)  # client.copy() calls the class anew, which one with other arguments does not take
    for name in [name for name in vars(made) if _is_cached(client, name)]:
        del vars(made)[name]  # its resources call the client that was given
    made.__class__ = guarded
    return made


def _is_cached(client: Any, name: str) -> bool:
    return isinstance(getattr(type(client), name, None), cached_property)


def _sync_class(base: Any, guard: PhaseGuard) -> type:
    class Guarded(base):  # type: ignore[misc]
        def post(self, path: str, **kwargs: Any) -> Any:
            if path == _PATH:
                kwargs = _aligned(guard, kwargs)
            return super().post(path, **kwargs)

    return _named(Guarded, base)


def _async_class(base: Any, guard: PhaseGuard) -> type:
    class Guarded(base):  # type: ignore[misc]
        async def post(self, path: str, **kwargs: Any) -> Any:
            if path == _PATH:
                from anyio import to_thread  # noqa: PLC0415 - comes with openai

                kwargs = await to_thread.run_sync(partial(_aligned, guard, kwargs))
            return await super().post(path, **kwargs)

    return _named(Guarded, base)


def _named(guarded: type, base: type) -> type:
    guarded.__name__, guarded.__qualname__ = base.__name__, base.__qualname__
    return guarded


def _aligned(guard: PhaseGuard, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a post with an aligned body; ``extra_body`` is read as it will be sent."""
    body = kwargs.get("body")
    extra = (kwargs.get("options") or {}).get("extra_json")
    if not isinstance(body, Mapping) or "messages" in (extra or {}):
        return kwargs
    made = guard.align_payload({**body, "extra_body": extra} if extra else body).prompt
    return {**kwargs, "body": {**body, "messages": made["messages"]}}
