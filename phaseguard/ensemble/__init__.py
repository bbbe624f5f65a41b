"""Ensembles: several layouts of one prompt, one answer. Off unless asked for: nothing else calls them."""

from phaseguard.ensemble.forecast import Forecast, Prices, Range
from phaseguard.ensemble.layouts import Layout, LayoutSet, make_layouts
from phaseguard.ensemble.runner import Ensemble
from phaseguard.ensemble.verdict import Confidence, Verdict
from phaseguard.ensemble.votes import Answer, Vote

__all__ = [
    "Answer",
    "Confidence",
    "Ensemble",
    "Forecast",
    "Layout",
    "LayoutSet",
    "Prices",
    "Range",
    "Verdict",
    "Vote",
    "make_layouts",
]
