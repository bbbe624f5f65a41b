"""A LlamaIndex query engine over the language reference: where the answer stands on the wire.

pip install 'phaseguard[testing]' 'llama-index-postprocessor-phaseguard[openai-like]'
python examples/llama_index_query.py
"""

from pydoc_data.topics import topics
from zlib import crc32

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import PhaseGuardPostprocessor, guard_llm

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server, phases_on_wire

MODEL = "deepseek-v4.1-flash"
QUERY = "Which exception is raised by the import statement if the attribute is not found?"


class Words(BaseEmbedding):
    """Counts the words of a text, hashed: enough to find passages, and nothing to download."""

    def _get_text_embedding(self, text: str) -> list[float]:
        counts = [0.0] * 512
        for word in text.lower().split():
            if len(word) > 3:
                counts[crc32(word.strip('".,:()').encode()) % 512] += 1
        return counts

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def main() -> None:
    """Ask the same question without and with phaseguard."""
    texts = [part for name in sorted(topics) for part in topics[name].split("\n\n") if len(part) > 50]
    index = VectorStoreIndex([TextNode(text=text) for text in dict.fromkeys(texts)], embed_model=Words())
    guard = PhaseGuard(MODEL)
    with Server(ScriptedEngine("ImportError"), models=(MODEL,)) as server:
        llm = OpenAILike(model=MODEL, api_base=server.url, api_key="none", is_chat_model=True)
        ways = {
            "as it is": (llm, []),
            "phaseguard": (guard_llm(llm, guard), [PhaseGuardPostprocessor(guard)]),
        }
        for name, (way, postprocessors) in ways.items():
            engine = index.as_query_engine(llm=way, similarity_top_k=5, node_postprocessors=postprocessors)
            engine.query(QUERY)
            for place in phases_on_wire(server.calls[-1], "ImportError", MODEL):
                print(f"{name}: {place.text} at token {place.index}, phase {place.phase}")


if __name__ == "__main__":
    main()
