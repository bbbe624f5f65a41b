"""HTTP clients that are closed when the tests of a file are through."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from .server import Clients


@pytest_asyncio.fixture(scope="module")
async def clients() -> AsyncIterator[Clients]:
    with DefaultHttpxClient() as sync:
        async with DefaultAsyncHttpxClient() as asynchronous:
            yield Clients(sync, asynchronous)
