"""An agent with two tools over six turns: what was sent once is sent again as it was, and stays cacheable."""

import json
from itertools import pairwise
from pydoc_data.topics import topics

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_phaseguard import PhaseGuardMiddleware

from phaseguard import PhaseGuard
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall, phases_on_wire

MODEL = "deepseek-v4.1-flash"
KEYS = {"del": "NameError", "raise": "RuntimeError", "in": "IndexError", "unary": "TypeError"}
KEYS |= {"power": "ZeroDivisionError", "strings": "SyntaxError"}


@tool(response_format="content_and_artifact")
def find(topic: str) -> tuple[str, list[Document]]:
    """Find the first paragraph of a topic that names an error."""
    found = next(part.strip() for part in topics[topic].split("\n\n") if KEYS[topic] in part)
    return found, [Document(found)]


@tool
def count(topic: str) -> str:
    """Count the words of a topic of the language reference."""
    return f"{len(topics[topic].split())} words"


def model_says(body: dict) -> Completion | str:
    """Stands for the model."""
    topic = [m["content"] for m in body["messages"] if m["role"] == "user"][-1].split()[-1].rstrip("?")
    calls = tuple(ToolCall(name, json.dumps({"topic": topic})) for name in ("find", "count"))
    return KEYS[topic] if body["messages"][-1]["role"] == "tool" else Completion(None, calls)


def talk(middleware: list) -> list:
    """Six questions in one conversation: every second request, which holds what the tools found."""
    with Server(ScriptedEngine(model_says, profile=MODEL), models=[MODEL]) as server:
        model, messages = ChatOpenAI(model=MODEL, base_url=server.url, api_key="none"), []
        agent = create_agent(model, [find, count], middleware=middleware)
        for topic in KEYS:
            messages.append(("user", f"Which error does the reference name first under {topic}?"))
            messages = agent.invoke({"messages": messages})["messages"]
        return server.calls[1::2]


before, after = talk([]), talk([PhaseGuardMiddleware(PhaseGuard(MODEL))])
for number, (topic, key) in enumerate(KEYS.items()):
    old, new = (phases_on_wire(calls[number], key, MODEL)[0] for calls in (before, after))
    print(f"{topic}: {key}: token {old.index}, phase {old.phase} -> token {new.index}, phase {new.phase}")
same = [b.body["messages"][: len(a.body["messages"])] == a.body["messages"] for a, b in pairwise(after)]
print(f"what stood before was sent again byte for byte in {sum(same)} of {len(same)} turns")
