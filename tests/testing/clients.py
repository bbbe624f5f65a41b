"""Requests, and openai clients that close behind themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import openai

from phaseguard.testing import Call, Fault, Server

MODEL = "test-model"
ASKED: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Which code?"}]}


@contextmanager
def client(server: Server, *, key: str = "any", retries: int = 0, **more: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key=key, max_retries=retries, **more) as made:
        yield made


@asynccontextmanager
async def async_client(server: Server, retries: int = 0, **more: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="any", max_retries=retries, **more) as made:
        yield made


def by_number(faults: Mapping[int, Fault]) -> Callable[[Call], Fault | None]:
    return lambda call: faults.get(call.number)
