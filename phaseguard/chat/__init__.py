"""Renderers: the exact request text, its special tokens, and where each message's content stands in it."""

from phaseguard.chat.base import Message, Piece, Rendered, Renderer
from phaseguard.chat.deepseek import DeepSeekRenderer
from phaseguard.chat.jinja import JinjaRenderer
from phaseguard.chat.load import RENDERER_NAMES, jinja_renderer, load_renderer
from phaseguard.chat.plain import PlainRenderer
from phaseguard.chat.stability import unstable_by_rendering, unstable_messages

__all__ = [
    "RENDERER_NAMES",
    "DeepSeekRenderer",
    "JinjaRenderer",
    "Message",
    "Piece",
    "PlainRenderer",
    "Rendered",
    "Renderer",
    "jinja_renderer",
    "load_renderer",
    "unstable_by_rendering",
    "unstable_messages",
]
