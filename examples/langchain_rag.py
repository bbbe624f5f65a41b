"""RAG in LangChain: one guard for the retriever and the model; a loopback server says what reached it.

pip install langchain-openai langchain-phaseguard 'phaseguard[testing]'
"""

import re
import zlib
from pydoc_data.topics import topics

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langchain_phaseguard import ChatPhaseGuard, PhaseGuardRetriever

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server, phases_on_wire

MODEL = "deepseek-v4.1-flash"
QUESTION = "Which error is raised by a from import statement when the attribute is not found?"
ANSWER = "ImportError"


class HashedWords(Embeddings):
    """Which words stand in a text: enough to find paragraphs offline."""

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        vector = np.zeros(4096)
        for word in set(re.findall(r"\w{3,}", text.lower())):
            vector[zlib.crc32(word.encode()) % len(vector)] = 1
        return (vector / max(1, np.linalg.norm(vector))).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed many."""
        return [self.embed_query(text) for text in texts]


parts = [part.strip() for name in ("import", "exceptions", "assert") for part in topics[name].split("\n\n")]
store = InMemoryVectorStore.from_documents([Document(part) for part in parts if part], HashedWords())
prompt = ChatPromptTemplate.from_messages(
    [("system", "Answer briefly from these notes:\n\n{context}"), ("human", "{question}")]
)
guard = PhaseGuard(MODEL)

with Server(ScriptedEngine("ImportError", profile=MODEL), models=[MODEL]) as server:
    plain = store.as_retriever(search_kwargs={"k": 4})
    model = ChatOpenAI(model=MODEL, base_url=server.url, api_key="none")
    guarded = PhaseGuardRetriever(plain, guard, top=1), ChatPhaseGuard(model, guard)
    for retriever, chat in ((plain, model), guarded):
        context = retriever | (lambda found: "\n\n".join(document.page_content for document in found))
        chain = {"context": context, "question": RunnablePassthrough()} | prompt | chat
        print("answer:", chain.invoke(QUESTION).content)
    before, after = (phases_on_wire(call, ANSWER, MODEL) for call in server.calls)
    for old, new in zip(before, after, strict=True):
        print(f"{ANSWER}: token {old.index}, phase {old.phase} -> token {new.index}, phase {new.phase}")
