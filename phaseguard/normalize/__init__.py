r"""Normalizing: what is decoration in a prompt goes, everything else stays byte for byte.

>>> normalize("One.  \n\n\nTwo.\n").text
'One.\n\nTwo.\n'
"""

from phaseguard.normalize.core import LEVELS, Level, Normalized, normalize
from phaseguard.normalize.zones import BlockMap, Break

__all__ = ["LEVELS", "BlockMap", "Break", "Level", "Normalized", "normalize"]
