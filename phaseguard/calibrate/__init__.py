"""Calibration: which phases are strong on a deployment, with honest statistics."""
