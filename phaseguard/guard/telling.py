"""How a guard tells what it did: warnings once, the log, and the application's callback."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from typing import Literal

from phaseguard.align import Report
from phaseguard.errors import InputError, PhaseGuardWarning, did_you_mean

LOG = logging.getLogger("phaseguard")
_MOST = 1024  # different warnings; the log has the rest
_CHOICES = ("warn", "ignore", "raise")
UnknownModel = Literal["warn", "ignore", "raise"]


class Telling:
    """Says each thing once.

    Args:
        choice: whether to warn, or only to log.
        on_report: the application's callback.

    Raises:
        InputError: when the choice is none.
    """

    def __init__(self, choice: UnknownModel, on_report: Callable[[Report], object] | None) -> None:
        if choice not in _CHOICES:
            raise InputError(f"unknown_model={choice!r}. {did_you_mean(str(choice), _CHOICES)}")
        self._choice = choice
        self._on_report = on_report
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def warn(self, why: str) -> None:
        """Warn of something, and log it, the first time."""
        with self._lock:
            if why in self._said or len(self._said) >= _MOST:
                return
            self._said.add(why)
        LOG.log(logging.INFO if self._choice == "ignore" else logging.WARNING, "%s", why)
        if self._choice != "ignore":
            warnings.warn(why, PhaseGuardWarning, stacklevel=2)

    def report(self, report: Report) -> None:
        """Hand a report to the application; what it raises is logged."""
        if self._on_report is None:
            return
        try:
            self._on_report(report)
        except Exception:
            LOG.exception("on_report raised")
