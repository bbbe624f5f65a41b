"""What a payload says besides its messages, as every adapter passes it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOT_PASSED_ON = ("messages", "stream", "stream_options")  # a ballot is read whole


def options_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a payload beside its messages; a ballot is never streamed, whatever the payload says.

    >>> options_of({"messages": [], "stream": True, "seed": 7})
    {'seed': 7}
    """
    return {name: value for name, value in payload.items() if name not in _NOT_PASSED_ON}
