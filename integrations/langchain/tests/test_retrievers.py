"""The retriever: what the wrapped one sees, what comes back, and what stays as it was."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda
from langchain_phaseguard import PhaseGuardRetriever, guard_documents

from phaseguard import PhaseGuard

from .case import QUERY, Store, asked, both_ways, documents

UNTIDY = "The code is A-17. \n\n\n\nEnd."
TIDY = "The code is A-17.\n\nEnd."


class Both(Store):
    """Has an async method of its own."""

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, **kwargs: Any
    ) -> list[Document]:
        self.seen.append(("async", kwargs))
        return self.found[: kwargs.get("k", len(self.found))]


@both_ways
async def test_documents_come_back_tidy_with_ids_metadata_and_order(way: str) -> None:
    given = [Document(UNTIDY, id="a", metadata={"score": 0.7, "of": {"page": 1}}), *documents()]
    before = deepcopy(given)
    found = await asked(PhaseGuardRetriever(Store(found=given), PhaseGuard()), way, QUERY)
    assert [one.page_content for one in found] == [TIDY, *(one.page_content for one in documents())]
    assert [(one.id, one.metadata) for one in found] == [(one.id, one.metadata) for one in before]
    found[0].metadata["of"]["page"] = 99
    assert given == before


@both_ways
async def test_nothing_found_is_nothing(way: str) -> None:
    assert await asked(PhaseGuardRetriever(Store(found=[]), PhaseGuard()), way, QUERY) == []


@both_ways
@pytest.mark.parametrize("kind", [Store, Both])
async def test_keywords_reach_the_wrapped_retriever(kind: type[Store], way: str) -> None:
    inner = kind(found=documents())
    found = await asked(PhaseGuardRetriever(inner, PhaseGuard()), way, QUERY, k=2)
    assert len(found) == 2
    assert inner.seen == [("async" if way == "async" and kind is Both else QUERY, {"k": 2})]


@both_ways
async def test_an_async_retriever_is_awaited(way: str) -> None:
    inner = Both(found=documents())
    await asked(PhaseGuardRetriever(inner, PhaseGuard()), way, QUERY)
    assert inner.seen == [("async" if way == "async" else QUERY, {})]


@both_ways
async def test_what_config_configures_reaches_the_wrapped_retriever(way: str) -> None:
    class Few(BaseRetriever):
        k: int = 1

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return documents()[: self.k]

    inner = Few().configurable_fields(k=ConfigurableField(id="k"))
    retriever = PhaseGuardRetriever(inner, PhaseGuard())
    assert len(await asked(retriever, way, QUERY)) == 1
    assert len(await asked(retriever, way, QUERY, {"configurable": {"k": 3}})) == 3
    assert len(await asked(retriever, way, QUERY)) == 1


@both_ways
async def test_any_runnable_is_a_retriever(way: str) -> None:
    def find(query: str, config: RunnableConfig) -> list[Document]:
        return [Document(f"{query} {config['configurable']['user']}")]

    config: RunnableConfig = {"configurable": {"user": "u1"}}
    (found,) = await asked(PhaseGuardRetriever(RunnableLambda(find), PhaseGuard()), way, QUERY, config)
    assert found.page_content == f"{QUERY} u1"


@both_ways
async def test_runs_are_children_and_are_told_once(way: str) -> None:
    seen: list[tuple[str, Any, Any, Any]] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_start(self, serialized: Any, query: str, **more: Any) -> None:
            seen.append((more["name"], more["run_id"], more["parent_run_id"], more["tags"]))

    config: RunnableConfig = {"callbacks": [Handler()], "tags": ["mine"]}
    await asked(PhaseGuardRetriever(Store(found=documents()), PhaseGuard()), way, QUERY, config)
    (outer, inner) = seen
    assert (outer[0], inner[0]) == ("PhaseGuardRetriever", "Store")
    assert (outer[2], inner[2]) == (None, outer[1])
    assert "mine" in outer[3]
    assert "mine" in inner[3]


@both_ways
async def test_errors_pass_through_as_they_are(way: str) -> None:
    fault = ConnectionError("no index")

    class Broken(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise fault

    with pytest.raises(ConnectionError) as told:
        await asked(PhaseGuardRetriever(Broken(), PhaseGuard()), way, QUERY)
    assert told.value is fault


@both_ways
async def test_a_step_of_a_chain_does_the_same(way: str) -> None:
    given = [Document(UNTIDY, id="a"), *documents()]
    inner = Store(found=given)
    chain = inner | guard_documents(PhaseGuard())
    assert await asked(chain, way, QUERY) == await asked(PhaseGuardRetriever(inner, PhaseGuard()), way, QUERY)


def test_a_guard_is_left_out_of_what_is_serialized() -> None:
    retriever = PhaseGuardRetriever(Store(found=[]), PhaseGuard())
    assert "guard" not in retriever.model_dump()
    assert retriever.model_copy().guard is retriever.guard
