"""A question set through LangChain and an on-device model: accuracy at every initial offset of the prompt.

pip install langchain-openai langchain-phaseguard 'phaseguard[testing]'
python examples/langchain_accuracy.py [questions, 200 unless given]
"""

import re
import sys
from itertools import pairwise

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_openai import ChatOpenAI
from langchain_phaseguard import PhaseGuardChatOpenAI, PhaseGuardRetriever

from phaseguard import PhaseGuard
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.padded import calibrated
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task
from phaseguard.lab.words import WordTokenizer
from phaseguard.testing import LabEngine, Server

NAME, TASK, N = "csa4-s0", Task("records", records=24), int((sys.argv[1:] or ["200"])[0])
profile = calibrated(load_model(NAME), NAME, (TASK,), n=200, seed=11)
guard = PhaseGuard(profile, tokenizer=WordTokenizer())
prompt = ChatPromptTemplate.from_messages([("user", "{context}\n\n{question}")])


def retriever(case: Case) -> RunnableLambda:
    """Over a text's records and what stands between them: all, those that name what is asked for first."""
    edges = {0, len(case.context), case.start, case.end, *(at for place in case.others for at in place)}
    starts = sorted(edges)
    texts = [case.text(a, b).strip() for a, b in pairwise(starts)]
    ranked = lambda query: sorted(texts, key=lambda text: query not in text.split())  # noqa: E731
    return RunnableLambda(lambda query: [Document(text) for text in ranked(query)])


def answers(cases: tuple[Case, ...], offset: int, model, *, guarded: bool) -> float:
    """Share of right answers with so many blank lines in front of the prompt."""
    right = 0
    for case in cases:
        found = PhaseGuardRetriever(retriever(case), guard, top=1) if guarded else retriever(case)
        packed = found | (lambda docs: "\n" * offset + "\n\n".join(one.page_content for one in docs))
        chain = {"context": packed, "question": RunnablePassthrough()} | prompt | model
        right += chain.invoke(re.split(r"\n+", case.prompt)[-1]).content == case.answer_text
    return right / len(cases)


cases = draw_cases(TASK, N, period=profile.period, window=8, seed=12)
with Server(LabEngine(NAME), models=[NAME]) as server:
    own = {"model": NAME, "base_url": server.url, "api_key": "none"}
    models = {"without": ChatOpenAI(**own), "with": PhaseGuardChatOpenAI(guard=guard, **own)}
    print(f"{NAME}: {N} questions at each of {profile.period} initial offsets")
    for name, model in models.items():
        by_offset = [answers(cases, o, model, guarded=name == "with") for o in range(profile.period)]
        shares = " ".join(f"{share:.3f}" for share in by_offset)
        print(f"{name:>7} phaseguard: {min(by_offset):.3f} at the worst offset; {shares}")
