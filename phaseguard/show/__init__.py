"""Showing results: pure functions from reports and inspections to rich text, plain lines and HTML.

Nothing is imported here, so that a command loads only what it shows.
"""
