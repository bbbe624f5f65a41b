"""``PhaseGuard``: one object for an application. Retrieval marks, the layer that calls the model aligns."""

from phaseguard.guard.core import PhaseGuard
from phaseguard.guard.survival import MovedSpan, Survival

__all__ = ["MovedSpan", "PhaseGuard", "Survival"]
