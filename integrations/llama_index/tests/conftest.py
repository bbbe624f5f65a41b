"""A guard, a loopback server, and HTTP clients that are closed when a file's tests are through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server

from .support import MODEL, STRONG, Clients


@pytest.fixture(scope="session", autouse=True)
def _no_profiles_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHASEGUARD_PROFILES", str(tmp_path_factory.mktemp("profiles")))
        yield


@pytest_asyncio.fixture(scope="module")
async def clients() -> AsyncIterator[Clients]:
    with httpx.Client() as sync:
        async with httpx.AsyncClient() as asynchronous:
            yield Clients(sync, asynchronous)


@pytest.fixture
def guard() -> PhaseGuard:
    return PhaseGuard(MODEL, strong={STRONG})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(ScriptedEngine("It is found.", profile=MODEL), models=(MODEL,)) as made:
        yield made
