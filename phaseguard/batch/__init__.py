"""Aligning many prompts: columns in and out for any framework, and JSONL files with resume."""

from phaseguard.batch.aligner import BatchAligner, align_batch

__all__ = ["BatchAligner", "align_batch"]
