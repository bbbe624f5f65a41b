"""Aligning: pads that put answer spans on strong phases, solved exactly and proven."""
