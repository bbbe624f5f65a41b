"""Makes prompts safe for models that compress their KV cache over fixed chunks.

Importing loads nothing but this file; each public name loads its module when it is first used.
Normalizing alone is ``from phaseguard.normalize import normalize``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaseguard.align import AlignedPrompt, PassageSpan, Report, align_prompt, inspect_prompt
    from phaseguard.ensemble import Ensemble, Verdict
    from phaseguard.errors import PhaseGuardError
    from phaseguard.guard import PhaseGuard
    from phaseguard.profiles import PhaseProfile, list_profiles, load_profile
    from phaseguard.text import Edit, Span
    from phaseguard.tokens import load_tokenizer

__version__ = "0.1.0"

__all__ = [
    "AlignedPrompt",
    "Edit",
    "Ensemble",
    "PassageSpan",
    "PhaseGuard",
    "PhaseGuardError",
    "PhaseProfile",
    "Report",
    "Span",
    "Verdict",
    "align_prompt",
    "inspect_prompt",
    "list_profiles",
    "load_profile",
    "load_tokenizer",
]

_MODULES = {
    "align": ("AlignedPrompt", "PassageSpan", "Report", "align_prompt", "inspect_prompt"),
    "ensemble": ("Ensemble", "Verdict"),
    "errors": ("PhaseGuardError",),
    "guard": ("PhaseGuard",),
    "profiles": ("PhaseProfile", "list_profiles", "load_profile"),
    "text": ("Edit", "Span"),
    "tokens": ("load_tokenizer",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'phaseguard' has no attribute {name!r}")
    return getattr(import_module(f"phaseguard.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
