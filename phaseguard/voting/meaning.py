"""Groups of free text by meaning: an embedding or a judge says which answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import InputError
from phaseguard.voting.ballots import Ballot, Group, Grouping, group, in_order
from phaseguard.voting.forms import Form

_AUTO = Form()


def group_by_embedding(
    ballots: Iterable[Ballot],
    embed: Callable[[Sequence[str]], ArrayLike],
    *,
    threshold: float = 0.9,
    form: Callable[[str], Hashable] = _AUTO,
) -> Grouping:
    """Group answers whose embeddings point the same way.

    Answers of one form are the same without asking. Sameness is transitive: when A is near B and B near C,
    all three are one group, even if A is far from C. So a further ballot can join two groups
    (``may_merge``), which the stopping rules take into account.

    Args:
        ballots: in any order.
        embed: gives one vector for each text, shape ``[texts, dimensions]``; called once, or not at all when
            there is nothing to compare. What threshold suits depends on the model: try it on known pairs.
        threshold: least cosine of two answers that are the same, above -1 and at most 1.
        form: as in :func:`phaseguard.voting.group`.

    Raises:
        InputError: when the threshold is out of range, or the vectors have another shape or are not finite.

    >>> vectors = {"a cat": [1, 0.1], "one cat": [1, 0], "a dog": [0, 1]}
    >>> ballots = [Ballot(0, "a cat"), Ballot(1, "a dog"), Ballot(2, "one cat")]
    >>> found = group_by_embedding(ballots, lambda texts: [vectors[text] for text in texts])
    >>> [one.answer for one in found.groups]
    ['a cat', 'a dog']
    """
    if not -1 < threshold <= 1:
        raise InputError(f"threshold={threshold}: a cosine above -1 and at most 1 is needed.")
    exact = group(ballots, form)
    if len(exact.groups) < 2:
        return Grouping(exact.groups, exact.missing, may_merge=True)
    near = _cosines(embed([one.answer for one in exact.groups]), len(exact.groups)) >= threshold
    return _merged(exact, lambda one, other: bool(near[one, other]))


def group_by_judge(
    ballots: Iterable[Ballot],
    same: Callable[[str, str], bool],
    *,
    form: Callable[[str], Hashable] = _AUTO,
) -> Grouping:
    """Group answers that a judge calls the same.

    Sameness is transitive, as in :func:`group_by_embedding`, and symmetric: each pair is asked about at most
    once, the stronger layout's answer first, and not at all when others already joined the two.

    Args:
        ballots: in any order.
        same: whether two answers say the same, for example a model's verdict.
        form: as in :func:`phaseguard.voting.group`; answers of one form are the same without asking.

    Raises:
        InputError: when two ballots have the same layout.

    >>> ballots = [Ballot(0, "in 1999"), Ballot(1, "1999"), Ballot(2, "1998")]
    >>> found = group_by_judge(ballots, lambda one, other: one[-4:] == other[-4:])
    >>> [len(one.ballots) for one in found.groups]
    [2, 1]
    """
    exact = group(ballots, form)
    answers = [one.answer for one in exact.groups]
    return _merged(exact, lambda one, other: same(answers[one], answers[other]))


def _cosines(vectors: ArrayLike, texts: int) -> np.ndarray:
    array = np.asarray(vectors, dtype=np.float64)
    if array.ndim != 2 or len(array) != texts:
        raise InputError(
            f"embed() gave an array of shape {array.shape} for {texts} texts: give one row a text."
        )
    if not np.isfinite(array).all():
        raise InputError("embed() gave numbers that are not finite.")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    unit = array / np.where(lengths > 0, lengths, 1)  # a vector of zeros is near nothing
    return unit @ unit.T


def _merged(exact: Grouping, same: Callable[[int, int], bool]) -> Grouping:
    """Join groups along every pair that is the same, and whatever hangs together through them."""
    root = list(range(len(exact.groups)))
    for one, other in combinations(range(len(root)), 2):
        if root[one] != root[other] and same(one, other):
            low, high = sorted((root[one], root[other]))
            root = [low if at == high else at for at in root]
    groups = []
    for first in dict.fromkeys(root):
        members = [exact.groups[at] for at in range(len(root)) if root[at] == first]
        ballots = in_order(ballot for member in members for ballot in member.ballots)
        groups.append(Group(members[0].key, tuple(ballots)))
    return Grouping(tuple(groups), exact.missing, may_merge=True)
