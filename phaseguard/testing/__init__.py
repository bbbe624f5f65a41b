r"""A loopback OpenAI-compatible server for tests, and checks of what reached it (extra ``testing``).

The server answers over real HTTP, from a script or with an on-device model whose retrieval depends on phase;
it records every request and commits faults on purpose. So a pipeline is tested as it is, with its own client.

>>> from openai import OpenAI
>>> from phaseguard import align_prompt
>>> from phaseguard.testing import Fault, ScriptedEngine, Server, assert_phases
>>> text = "The door code is A-17.\n\nThe vault code is B-8417.\n\nWhich is the vault code?"
>>> aligned = align_prompt(text, key_passages=["B-8417"], strong={2, 3})
>>> messages = [{"role": "user", "content": aligned.prompt}]
>>> def first_is_refused(call):
...     return Fault.rate_limited(retry_after=0.01) if call.number == 0 else None
>>> with Server(ScriptedEngine("B-8417"), faults=first_is_refused, models=["deepseek-v4-flash"]) as server:
...     with OpenAI(base_url=server.url, api_key="any") as client:
...         reply = client.chat.completions.create(model="deepseek-v4-flash", messages=messages)
>>> reply.choices[0].message.content, len(server.calls)
('B-8417', 2)
>>> assert_phases(server.calls[-1], "B-8417", {2, 3}, "deepseek-v4-flash")

Asking an on-device model without HTTP, as an ensemble does: :func:`lab_ask`.
"""

from phaseguard.testing.calls import Call
from phaseguard.testing.completion import Completion, Echo, Engine, ToolCall
from phaseguard.testing.faults import Fault
from phaseguard.testing.labmodel import LabEngine, lab_ask
from phaseguard.testing.phases import WirePassage, assert_phases, phases_on_wire
from phaseguard.testing.scripted import ScriptedEngine
from phaseguard.testing.server import Server

__all__ = [
    "Call",
    "Completion",
    "Echo",
    "Engine",
    "Fault",
    "LabEngine",
    "ScriptedEngine",
    "Server",
    "ToolCall",
    "WirePassage",
    "assert_phases",
    "lab_ask",
    "phases_on_wire",
]
