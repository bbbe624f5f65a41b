"""Which setting a model's name stands for: said by the guard, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaseguard.align.setting import Setting
from phaseguard.errors import InputError, did_you_mean
from phaseguard.normalize import LEVELS


@dataclass(frozen=True, slots=True)
class Models:
    """The guard's own setting, and those of other models by the name that a payload gives."""

    own: Setting
    others: Mapping[str, Setting]

    @classmethod
    def read(
        cls, profile: Any, others: Mapping[str, Any] | None, own: Mapping[str, Any], **choices: Any
    ) -> Models:
        """Check a guard's choices, so that none is first told of when a prompt is on its way.

        Args:
            profile: the guard's own.
            others: profiles by the name that payloads give.
            own: what :meth:`Setting.read` is told for the guard's own profile alone.
            choices: what it is told for all of them.

        Raises:
            InputError, ProfileError, TokenizerError: when one cannot be used.
        """
        if others is not None and not isinstance(others, Mapping):
            raise InputError("models: give a dict from a payload's model name to a profile.")
        if choices["level"] not in LEVELS:
            hint = did_you_mean(str(choices["level"]), LEVELS)
            raise InputError(f"There is no level {choices['level']!r}. {hint}")
        made = cls(
            Setting.read(profile, **own, **choices),
            {name: Setting.read(other, **choices) for name, other in (others or {}).items()},
        )
        for setting in (made.own, *made.others.values()):
            if not isinstance(setting.pads, str) and setting.evidence.period > 1:
                len(setting.alphabets)  # tries the caller's own pads
        return made

    def setting_of(self, model: object) -> Setting | None:
        """The setting of a payload's model; its own without a name, None for a model that it does not know.

        A name stands for the guard's profile when it is, whatever its case and the path in front of it, the
        profile's name or that of its model.

        >>> models = Models(Setting.read("deepseek-v4-flash"), {"chat": Setting.read("deepseek-v4.1-flash")})
        >>> [models.setting_of(name).profile.name for name in ("vllm/DeepSeek-V4-Flash", "chat")]
        ['deepseek-v4-flash', 'deepseek-v4.1-flash']
        >>> models.setting_of("gpt-5") is None
        True
        """
        if model is None:
            return self.own
        if not isinstance(model, str):
            return None
        if model in self.others:
            return self.others[model]
        profile = self.own.profile
        return (
            self.own if _last(model) in {_last(profile.name), _last(profile.model or profile.name)} else None
        )

    def explain(self, model: object) -> str:
        """Why a model's prompts are only normalized, and what to do."""
        profile = self.own.profile
        stands = profile.name if profile.model is None else f"{profile.name} ({profile.model})"
        return (
            f"Model {model!r} is none that profile {stands} stands for, so its prompts are only normalized. "
            f"Give models={{{str(model)!r}: PROFILE}} to say which profile it has, or unknown_model='ignore'."
        )


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1].casefold()
