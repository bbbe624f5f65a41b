"""Guard an openai client: retrieval marks, the client aligns; a server shows where the answer stands.

The server is a loopback one that records what it received; put the base URL of your own in its place.

pip install 'phaseguard[testing]' openai && python examples/openai_client.py
"""

from pathlib import Path

from openai import OpenAI

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server, phases_on_wire

MODEL = "deepseek-v4-flash"
QUESTION = "Which release phrase lets leader-2 take writes again in eu-north-4?"
ANSWER = "PROVOCATIVE-8417"
# which phases are strong on a deployment is measured; here they are stated
guard = PhaseGuard(profile=MODEL, strong={1})


def retrieve(query: str) -> str:
    """Stands for a retriever: normalizes what it found, and marks the passage that matters."""
    text = guard.normalize((Path(__file__).parent / "rag_prompt.md").read_text(encoding="utf-8"))
    passage = next(line for line in text.split("\n\n") if ANSWER in line)
    guard.mark([passage], query=query)
    return text


def ask(client: OpenAI) -> str:
    """An application's own code: it knows nothing of phases."""
    messages = [{"role": "user", "content": f"{retrieve(QUESTION)}\n\n{QUESTION}"}]
    with client.chat.completions.create(model=MODEL, messages=messages, stream=True) as chunks:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


with (
    Server(ScriptedEngine(ANSWER), models=[MODEL]) as server,
    OpenAI(base_url=server.url, api_key="any") as client,
):
    for name, asked in (("before", client), ("after", guard.wrap(client))):
        print(f"{name}: answer {ask(asked)}")
        for place in phases_on_wire(server.calls[-1], ANSWER, MODEL):
            print(f"  {place.text} was received at token {place.index}, phase {place.phase}")
