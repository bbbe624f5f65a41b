"""Accuracy of a LlamaIndex query engine at every initial offset, as it is and with phaseguard.

pip install 'phaseguard[testing]' 'llama-index-postprocessor-phaseguard[openai-like]'
python examples/frameworks/llama_index_accuracy.py [questions]

The endpoint is an on-device model whose cache is compressed in chunks of 4 tokens. Each question asks for one
of the 24 records of a document, which come in pairs between lines of filler; the whole document is retrieved,
and the best match is marked. Nothing but the number of words in front of the context changes.
"""

import random
import sys

import numpy as np
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import PhaseGuardPostprocessor, guard_llm

from phaseguard import PhaseGuard
from phaseguard.lab.padded import calibrated
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import FIRST_FORM, FIRST_VALUE, VOCABULARY, Task
from phaseguard.lab.words import END, WordTokenizer, write
from phaseguard.stats import clustered
from phaseguard.testing import LabEngine, Server

MODEL, RECORDS, OFFSETS = "csa4-s0", 24, range(4)
FILLER = range(FIRST_FORM + 5, VOCABULARY - 1)
TOKENIZER = WordTokenizer()


def text(*words: int) -> str:
    """Words as a node holds them."""
    return write(words).removesuffix(END)


class Words(BaseEmbedding):
    """Counts words: a query finds the record of its key first."""

    def _get_text_embedding(self, text: str) -> list[float]:
        ids = TOKENIZER.encode(text).ids.tolist()
        return [float(ids.count(word)) for word in range(VOCABULARY)]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class InOrder(BaseNodePostprocessor):
    """Puts what was found into the order of the document."""

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002
    ) -> list[NodeWithScore]:
        return sorted(nodes, key=lambda one: one.node.node_id)


def draw(rng: random.Random) -> tuple[VectorStoreIndex, dict[str, str]]:
    """An index, and the answer to each question."""
    keys, values = (
        rng.sample(range(128), RECORDS),
        rng.choices(range(FIRST_VALUE, FIRST_VALUE + 128), k=RECORDS),
    )
    texts = [text(*pair) for pair in zip(keys, values, strict=True)]
    for place in range(RECORDS, 0, -2):
        texts.insert(place, text(*rng.choices(FILLER, k=4)))
    nodes = [TextNode(text=one, id_=f"{number:02}") for number, one in enumerate(texts)]
    index = VectorStoreIndex(nodes, embed_model=Words())
    return index, {text(key): text(value) for key, value in zip(keys, values, strict=True)}


def main(wanted: int) -> None:
    """Ask everything at every offset, both ways."""
    task = Task("records", records=RECORDS)
    guard = PhaseGuard(
        calibrated(load_model(MODEL), MODEL, (task,), n=300), tokenizer=TOKENIZER, isolate=True
    )
    drawn = [draw(random.Random(seed)) for seed in range(-(-wanted // RECORDS))]  # noqa: S311
    with Server(LabEngine(MODEL), models=(MODEL,)) as server:
        plain = OpenAILike(model=MODEL, api_base=server.url, api_key="none", is_chat_model=True)
        ways = {
            "as it is": (plain, [InOrder()]),
            "phaseguard": (guard_llm(plain, guard), [PhaseGuardPostprocessor(guard, top=1), InOrder()]),
        }
        print(f"{MODEL}, {RECORDS * len(drawn)} questions at each offset; accuracy with 95% intervals")
        for name, (llm, postprocessors) in ways.items():
            by_offset = []
            for offset in OFFSETS:
                template = PromptTemplate(write([FILLER[0]] * offset) + "{context_str}\n\n{query_str}")
                right = []
                for index, answers in drawn:
                    engine = index.as_query_engine(
                        llm=llm, text_qa_template=template, similarity_top_k=2 * RECORDS,
                        node_postprocessors=postprocessors,
                    )  # fmt: skip
                    right += [str(engine.query(question)) == answer for question, answer in answers.items()]
                by_offset.append(clustered(np.array(right), np.arange(len(right))))
            shown = "  ".join(f"{one.mean:.3f}" for one in by_offset)
            worst = min(by_offset, key=lambda one: one.mean)
            print(f"{name:>10}: {shown}   worst {worst.mean:.3f} [{worst.low:.3f} {worst.high:.3f}]")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
