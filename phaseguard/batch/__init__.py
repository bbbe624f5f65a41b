"""Aligning many prompts: columns in and out for any framework, and JSON Lines files with resume."""

from phaseguard.batch.aligner import BatchAligner, align_batch
from phaseguard.batch.files import FileReport, align_file
from phaseguard.batch.lines import Counts

__all__ = ["BatchAligner", "Counts", "FileReport", "align_batch", "align_file"]
