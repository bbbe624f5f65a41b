"""The caller's choices, checked, with the tokenizer and renderer that they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from phaseguard.align.evidence import Evidence, evidence_for
from phaseguard.align.grid import Grid, grid_for
from phaseguard.align.pads import PadAlphabet, custom_alphabet, pad_alphabet
from phaseguard.align.request import Request, encode_request
from phaseguard.chat import Renderer, load_renderer
from phaseguard.errors import InputError
from phaseguard.normalize import Level
from phaseguard.profiles import PhaseProfile, load_profile
from phaseguard.tokens import Tokenizer, TokenizerLike, load_tokenizer

MOST_PAD_TOKENS = 31  # of a longer period some phases take pads at several sites
_KINDS = {"auto": ("invisible", "visible"), "invisible": ("invisible",), "visible": ("visible",)}


@dataclass(frozen=True)
class Setting:
    """What to align to and how; the tokenizer and the renderer are loaded when they are first needed.

    Attributes:
        profile: the profile; ``evidence``: what is known of its phases.
        pads: ``auto``, ``invisible``, ``visible`` or the caller's own strings.
        level: normalizing level.
        inside: whether blank lines inside passages are sites.
        budget: most tokens to add, or None.
        grid: the chunks that answers are isolated in, or None.
        repeat: whether key passages are repeated in front of the question.
        given_tokenizer: what reads the request in place of the profile's tokenizer, or None.
    """

    profile: PhaseProfile
    evidence: Evidence
    pads: str | tuple[str, ...]
    level: Level
    inside: bool
    budget: int | None
    grid: Grid | None = None
    repeat: bool = False
    given_tokenizer: Tokenizer | None = None

    @classmethod
    def read(
        cls,
        profile: Any,
        *,
        strong: Iterable[int] | None = None,
        pads: str | Sequence[str] = "auto",
        level: Level = "off",
        inside: bool = False,
        budget: int | None = None,
        isolate: bool | Literal["auto"] = False,
        repeat: bool = False,
        tokenizer: TokenizerLike | None = None,
    ) -> Setting:
        """Check the caller's arguments.

        Raises:
            InputError: when one cannot be used.
            ProfileError: when the profile is unknown or broken.
            TokenizerError: when ``tokenizer`` is no tokenizer.
        """
        if pads not in _KINDS if isinstance(pads, str) else not isinstance(pads, Sequence):
            raise InputError(f"pads={pads!r}: give 'auto', 'invisible', 'visible' or a list of strings.")
        if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
            raise InputError(f"max_added_tokens={budget!r}: give a number of tokens from 0, or None.")
        loaded = load_profile(profile)
        chosen = pads if isinstance(pads, str) else tuple(pads)
        own = None if tokenizer is None else load_tokenizer(tokenizer)
        evidence = evidence_for(loaded, strong)
        grid = grid_for(loaded, isolate, known=evidence.usable)
        if not isinstance(repeat, bool):
            raise InputError(f"repeat={repeat!r}: give True or False.")
        if repeat and not (loaded.window and loaded.period > 1):
            raise InputError(f"repeat=True: profile {loaded.name} names no raw window and chunks behind it.")
        return cls(loaded, evidence, chosen, level, inside, budget, grid, repeat, own)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that was given, else the profile's."""
        given = self.given_tokenizer
        return load_tokenizer(self.profile.tokenizer) if given is None else given

    @property
    def tokenizer_name(self) -> str:
        """Its name, without loading it."""
        return self.profile.tokenizer if self.given_tokenizer is None else self.given_tokenizer.name

    @cached_property
    def renderer(self) -> Renderer:
        """The profile's chat encoding."""
        return load_renderer(self.profile.chat, reasoning=self.profile.reasoning)

    @cached_property
    def alphabets(self) -> tuple[PadAlphabet, ...]:
        """The pads to try, the preferred alphabet first."""
        most = min(max(self.evidence.period - 1, self.grid.most_pads if self.grid else 0), MOST_PAD_TOKENS)
        if isinstance(self.pads, str):
            return tuple(pad_alphabet(self.tokenizer, most, kind) for kind in _KINDS[self.pads])
        return (custom_alphabet(self.tokenizer, self.pads, most, joined=self.grid is not None),)

    def encode(self, messages: Sequence[Any], options: Mapping[str, Any]) -> Request:
        """Render and encode a whole request."""
        rendered = self.renderer.render(messages, options)
        return encode_request(rendered, self.tokenizer, prefix_offset=self.profile.prefix_offset)
