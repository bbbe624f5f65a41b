"""``PhaseGuard``: one configured object for an application. Retrieval marks, the layer that calls the model aligns."""

from phaseguard.guard.core import PhaseGuard

__all__ = ["PhaseGuard"]
