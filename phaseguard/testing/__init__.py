"""A loopback OpenAI-compatible server for tests, backed by canned answers or an on-device model."""

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
