"""What a command says when an optional dependency is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phaseguard.errors import MissingExtraError


@contextmanager
def for_training() -> Iterator[None]:
    """Import what trains models inside: without torch this names the extra that has it.

    Raises:
        MissingExtraError: when torch is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("Training needs torch: pip install 'phaseguard[lab]'.") from error
