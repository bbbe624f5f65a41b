"""Looking at the data before they are complete without more false alarms: alpha spending.

The plan fixes the numbers of items at which the data are judged. The alpha spent by the time a fraction t of
the items is in follows O'Brien and Fleming's shape (Lan and DeMets, Biometrika 70, 1983): little at first,
nearly all at the end. A look is judged at what was spent since the look before. Every look's p-value is valid
by itself, so the chance that any of them is below its share is at most the sum of the shares, which is alpha:
that holds whatever the dependence between looks, and for p-values by permutation as for normal ones. Lan and
DeMets' boundary uses the dependence too and gains a little; a bound that needs no model was preferred.
The same shares serve the interval that excludes an effect. The numbers of items must not be chosen by
looking at answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

from phaseguard.errors import InputError


def spending(looks: Sequence[int], alpha: float = 0.05) -> tuple[float, ...]:
    """The level of each look; they add up to alpha.

    Args:
        looks: planned numbers of items, ascending, at least one.
        alpha: chance of a false alarm over all looks, between 0 and 1.

    Raises:
        InputError: for looks that do not ascend from at least 1, or an alpha that is no probability.

    >>> [round(level, 4) for level in spending([20, 40, 60])]
    [0.0007, 0.0157, 0.0336]
    """
    if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
        raise InputError(f"looks are {tuple(looks)}: give ascending numbers of items, such as (20, 40, 60).")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}: give a probability between 0 and 1, such as 0.05.")
    normal = NormalDist()
    bound = normal.inv_cdf(1 - alpha / 2)
    spent = [2 * normal.cdf(-bound / math.sqrt(look / looks[-1])) for look in looks]
    return tuple(now - before for now, before in zip(spent, [0.0, *spent[:-1]], strict=True))
