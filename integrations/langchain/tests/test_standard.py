"""LangChain's own standard tests, on the guarded classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    ChatPhaseGuard,
    PhaseGuardChatDeepSeek,
    PhaseGuardChatOpenAI,
    PhaseGuardRetriever,
)
from langchain_tests.integration_tests import ChatModelIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from phaseguard import PhaseGuard
from phaseguard.testing import Server

from .server import MODEL, Clients, engine

# the suites pass classes of pydantic 1, which langchain-openai warns of
pytestmark = [
    pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1 schema"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),  # langchain-openai, of parsed answers
]

GUARD = PhaseGuard(profile=MODEL)


@pytest.fixture(scope="module", autouse=True)
def endpoint(clients: Clients) -> Iterator[Server]:
    with Server(engine(), models=(MODEL,)) as server:
        _Endpoint.url, _Endpoint.clients = server.url, clients
        yield server


class _Endpoint:
    """The address is known only once the server runs."""

    url: str
    clients: Clients


class _Store(BaseRetriever):
    k: int = 3

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None, **_: Any
    ) -> list[Document]:
        return [Document(f"Text {number} of {query}.  ") for number in range(k or self.k)]


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> Any:
        def make(k: int = 3) -> PhaseGuardRetriever:
            return PhaseGuardRetriever(_Store(k=k), GUARD)

        return make

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return "codes"


class _Model:
    """The OpenAI class behind a loopback address: what both suites are told."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": MODEL,
            "base_url": _Endpoint.url,
            "api_key": "none",
            "guard": GUARD,
            "stream_usage": True,
            **_Endpoint.clients.arguments,
        }


class TestChatOpenAIUnits(_Model, ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return PhaseGuardChatOpenAI


class TestChatOpenAI(_Model, ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return PhaseGuardChatOpenAI


class TestChatDeepSeek(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return PhaseGuardChatDeepSeek

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": MODEL,
            "api_base": _Endpoint.url,
            "api_key": "none",
            "guard": GUARD,
            "stream_usage": True,
            **_Endpoint.clients.arguments,
        }


class _Wrapped(ChatPhaseGuard):
    """Takes the parameters of the model inside, as the suites give them."""

    def __init__(self, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in list(kwargs) if name in ChatPhaseGuard.model_fields}
        inner = own.pop("model") if isinstance(own.get("model"), BaseChatModel) else None
        if inner is None:
            inner = ChatOpenAI(model=own.pop("model"), **kwargs)
        super().__init__(inner, own.pop("guard", GUARD), **own)


class TestChatPhaseGuardUnits(_Model, ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return _Wrapped


class TestChatPhaseGuard(_Model, ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return _Wrapped
