"""A short hash that names a vocabulary."""

import hashlib


def short_hash(*parts: bytes | str) -> str:
    """16 hexadecimal digits of SHA-256 over the parts.

    >>> short_hash("a", b"b") == short_hash("ab")
    True
    """
    state = hashlib.sha256()
    for part in parts:
        state.update(part.encode() if isinstance(part, str) else part)
    return state.hexdigest()[:16]
