"""What a command says when an optional dependency is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phaseguard.errors import MissingExtraError


@contextmanager
def for_asking() -> Iterator[None]:
    """Import what asks endpoints inside: without ``openai`` this names the extra that has it.

    Raises:
        MissingExtraError: when openai is not installed.
    """
    with _naming("openai", "Asking an endpoint needs openai: pip install 'phaseguard[openai]'."):
        yield


@contextmanager
def for_training() -> Iterator[None]:
    """Import what trains models inside: without torch this names the extra that has it.

    Raises:
        MissingExtraError: when torch is not installed.
    """
    with _naming("torch", "Training needs torch: pip install 'phaseguard[lab]'."):
        yield


@contextmanager
def _naming(module: str, message: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingExtraError(message) from error
