"""A loopback OpenAI-compatible server for tests, backed by canned answers or an on-device model."""

from phaseguard.testing.calls import Call
from phaseguard.testing.completion import Completion, Echo, Engine, ToolCall
from phaseguard.testing.faults import Fault
from phaseguard.testing.labmodel import LabEngine, lab_ask
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
    "lab_ask",
]
