"""The chunks of a model's cache: which tokens share a compressed entry with an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile

MOST_STRIDE = 16  # isolating at HCA's 128 would add hundreds of tokens a record


@dataclass(frozen=True, slots=True)
class Grid:
    """Chunks of ``stride`` tokens; with ``overlap`` an entry also pools the chunk before its own.

    An answer's window is the chunks that its tokens fall in and, with overlap, the chunk before the first.

    >>> grid = Grid(4, overlap=True)
    >>> grid.before(7), grid.behind(8), grid.behind(9)  # answer at index 7; the token behind it at 8, or 9
    (7, 0, 3)
    >>> grid.most_before, grid.most_behind, grid.most_pads
    (7, 3, 11)
    """

    stride: int
    overlap: bool

    def before(self, first: int) -> int:
        """Slots of the window in front of an answer whose first token has this index."""
        return first % self.stride + self.stride * self.overlap

    def behind(self, stop: int) -> int:
        """Slots of the window behind an answer, the token behind it having this index."""
        return -stop % self.stride

    @property
    def most_before(self) -> int:
        """Largest number of slots in front of an answer."""
        return self.before(self.stride - 1)

    @property
    def most_behind(self) -> int:
        """Largest number of slots behind one."""
        return self.stride - 1

    @property
    def most_pads(self) -> int:
        """Most tokens worth adding at one site: a stride fewer fills the same slots at the same phase.

        One of them may be the strange half of a token that the pads cut in two.
        """
        return self.most_before + self.stride

    def preference(self, period: int) -> tuple[int, ...]:
        """Values of the phases where no strength is known: they break ties and outweigh no pad.

        With overlap the last slot of a chunk was best or tied in every setting tried on on-device models;
        without, no slot was.
        """
        last = period - 1 if self.overlap and period == self.stride else -1
        return tuple(int(phase == last) for phase in range(period))


NO_CHUNKS = Grid(1, overlap=False)


def grid_for(profile: PhaseProfile, isolate: bool | Literal["auto"], *, known: bool) -> Grid | None:
    """The chunks to isolate answers in, or None.

    Args:
        profile: its first stride counts, or its period where it names none. Where it does not say whether
            entries overlap, they are taken to.
        isolate: whether to isolate; ``"auto"`` where no phase is ``known`` to be strong.
        known: whether some phase is.

    Raises:
        InputError: when ``isolate`` is something else, or True where the profile's chunks do not allow it.

    >>> from phaseguard.profiles import load_profile
    >>> grid_for(load_profile("deepseek-v4-flash"), "auto", known=False)
    Grid(stride=4, overlap=True)
    """
    if isolate != "auto" and not isinstance(isolate, bool):
        raise InputError(f"isolate={isolate!r}: give True, False or 'auto'.")
    if not isolate or (isolate == "auto" and known):
        return None
    stride = stride_of(profile)
    if profile.period > 1 and 2 <= stride <= MOST_STRIDE:
        return Grid(stride, overlap=profile.overlap is not False)
    if isolate == "auto":
        return None
    if profile.period < 2 or stride < 2:
        raise InputError(f"isolate=True: profile {profile.name} has no phase, so nothing shares a chunk.")
    raise InputError(
        f"isolate=True: profile {profile.name} has a stride of {stride}; isolating is for strides up to "
        f"{MOST_STRIDE}, since it adds about two strides of pads a record. Give isolate=False."
    )


def stride_of(profile: PhaseProfile) -> int:
    """Tokens a chunk: the first stride, or the period where none is named."""
    return profile.strides[0] if profile.strides else profile.period
