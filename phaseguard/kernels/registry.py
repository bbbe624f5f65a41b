"""All schemes under their names, with what a caller must know to feed them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from phaseguard.errors import KernelError, did_you_mean
from phaseguard.kernels import chunk_gate, chunkkv, csa, dynamic, full, hca, mean, minference, pair, snapkv
from phaseguard.kernels.entries import Entries

Scores: TypeAlias = Literal["gates", "attention", "queries", "keys", "none"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One compression scheme.

    Attributes:
        name: its key in :data:`SCHEMES`.
        compress: ``compress(kv, scores, positions=None, **settings) -> Entries``.
        scores: what it takes as scores: "gates" ``[..., T, blocks * d]``; "attention" ``[..., O, T]`` of the
            last queries; "queries" or "keys" ``[..., T, e]``; or "none".
        period: tokens of its grid with default settings; None where it has none.
        grid: the setting that changes the period, if there is one.
        blocks: blocks of d channels that a token of kv carries.
        source: paper or model code.
    """

    name: str
    compress: Callable[..., Entries]
    scores: Scores
    period: int | None
    grid: str | None
    blocks: int
    source: str

    @property
    def pools(self) -> bool:
        """Whether an entry mixes the tokens of a chunk of fixed length."""
        return self.grid == "stride" or self.name == "pair"


_PAPER = "arXiv:2609.36322"
_V4 = "DeepSeek-V4, transformers models/deepseek_v4"

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("full", full.compress, "none", None, None, 1, "full attention"),
        Scheme("csa", csa.compress, "gates", csa.STRIDE, "stride", 2, _V4),
        Scheme("hca", hca.compress, "gates", hca.STRIDE, "stride", 1, _V4),
        Scheme("pair", pair.compress, "gates", 2, None, 1, "DeepSeek-V4.1, ratio-2 layers"),
        Scheme("chunk-gate", chunk_gate.compress, "gates", 4, "stride", 1, _PAPER),
        Scheme("mean", mean.compress, "none", 4, "stride", 1, _PAPER),
        Scheme("chunkkv", chunkkv.compress, "attention", 10, "chunk", 1, "arXiv:2502.00299"),
        Scheme("snapkv", snapkv.compress, "attention", None, None, 1, "arXiv:2404.14469"),
        Scheme("a-shape", minference.a_shape, "none", None, None, 1, "arXiv:2407.02490"),
        Scheme("vertical-slash", minference.vertical_slash, "attention", None, None, 1, "arXiv:2407.02490"),
        Scheme("block-sparse", minference.block_sparse, "queries", 64, "block", 1, "arXiv:2407.02490"),
        Scheme("dynamic", dynamic.compress, "keys", None, None, 1, "arXiv:2507.07955"),
    )
}
"""Every scheme by name."""


def find_scheme(name: str) -> Scheme:
    """The scheme of that name.

    Raises:
        KernelError: for a name that is unknown; the message lists near ones.

    >>> find_scheme("csa").period
    4
    """
    if name not in SCHEMES:
        raise KernelError(f"No scheme is called {name!r}. {did_you_mean(str(name), SCHEMES)}")
    return SCHEMES[name]
