"""No profile of the user's own is seen; HTTP clients are closed when the tests of a file are through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from .server import Clients


@pytest.fixture(scope="session", autouse=True)
def _no_profiles_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHASEGUARD_PROFILES", str(tmp_path_factory.mktemp("profiles")))
        yield


@pytest_asyncio.fixture(scope="module")
async def clients() -> AsyncIterator[Clients]:
    with DefaultHttpxClient() as sync:
        async with DefaultAsyncHttpxClient() as asynchronous:
            yield Clients(sync, asynchronous)
