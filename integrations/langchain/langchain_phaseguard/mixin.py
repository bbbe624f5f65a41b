"""Aligning the very payload that a chat model of the OpenAI family sends."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from langchain_phaseguard.payloads import as_sent
from langchain_phaseguard.requests import current_request, is_as_is
from phaseguard import PhaseGuard


class PhaseGuardMixin:
    """Put in front of a chat model class with ``_get_request_payload``: aligns what goes over the wire.

    Messages, tools, response format and the provider's own conversions are all in that payload, so indices
    are exact. A payload without ``messages`` (the Responses API) is sent as it is, and the guard warns.

    Attributes:
        guard: the application's guard; left out of serialized forms.
    """

    guard: PhaseGuard = Field(exclude=True)

    def _get_request_payload(
        self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)  # type: ignore[misc]
        if is_as_is():
            return payload
        sent = {**payload, "response_format": as_sent(payload.get("response_format"))}
        aligned = self.guard.align_payload(sent, request=current_request()).prompt
        return {**payload, "messages": aligned["messages"]} if "messages" in payload else payload

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """No: a guard is an object of the application."""
        return False

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**super()._identifying_params, "phaseguard": repr(self.guard)}  # type: ignore[misc]

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        return f"{super()._get_llm_string(stop=stop, **kwargs)}---{self.guard!r}"  # type: ignore[misc]
