"""Makes prompts safe for models that compress their KV cache over fixed chunks.

Importing loads nothing but this file; each public name loads its module when it is first used.
Normalizing alone is ``from phaseguard.normalize import normalize``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaseguard.align import AlignedPrompt, PassageSpan, Report, align_prompt, inspect_prompt
    from phaseguard.errors import PhaseGuardError
    from phaseguard.profiles import PhaseProfile, list_profiles, load_profile
    from phaseguard.text import Edit, Span
    from phaseguard.tokens import load_tokenizer

__version__ = "0.1.0"

__all__ = [
    "AlignedPrompt",
    "Edit",
    "PassageSpan",
    "PhaseGuardError",
    "PhaseProfile",
    "Report",
    "Span",
    "align_prompt",
    "inspect_prompt",
    "list_profiles",
    "load_profile",
    "load_tokenizer",
]

_HOMES = {
    "AlignedPrompt": "align",
    "Edit": "text",
    "PassageSpan": "align",
    "PhaseGuardError": "errors",
    "PhaseProfile": "profiles",
    "Report": "align",
    "Span": "text",
    "align_prompt": "align",
    "inspect_prompt": "align",
    "list_profiles": "profiles",
    "load_profile": "profiles",
    "load_tokenizer": "tokens",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'phaseguard' has no attribute {name!r}")
    return getattr(import_module(f"phaseguard.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
