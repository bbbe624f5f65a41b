"""Statistics of answers by phase: intervals, gaps, strong phases, and the test for a period. Pure numpy.

Answers come in clusters (the questions of one sequence, the phases of one item); everything here keeps them
together, so that ten equal answers of one cluster do not count as ten.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> positions, clusters = rng.integers(0, 100, 4000), np.repeat(np.arange(250), 16)
>>> right = rng.random(4000) < np.array([0.9, 0.6, 0.9, 0.9])[positions % 4]
>>> scan_periods(right, positions, clusters).period
4
>>> compare_phases(right, positions, clusters, 4).strong
(0, 2, 3)
"""

from phaseguard.stats.accuracy import Accuracy, clustered, clustered_by, wilson
from phaseguard.stats.labelled import LabelledScan, scan_labelled
from phaseguard.stats.paired import compare_paired, largest_gap
from phaseguard.stats.period import PeriodScan, PeriodTest, scan_periods
from phaseguard.stats.phases import PhaseComparison, compare_phases

__all__ = [
    "Accuracy",
    "LabelledScan",
    "PeriodScan",
    "PeriodTest",
    "PhaseComparison",
    "clustered",
    "clustered_by",
    "compare_paired",
    "compare_phases",
    "largest_gap",
    "scan_labelled",
    "scan_periods",
    "wilson",
]
