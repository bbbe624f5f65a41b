"""What the tests of normalizing share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def prose() -> dict[str, str]:
    """Real documents: the language reference's topics, which pydoc ships."""
    from pydoc_data import topics

    return dict(topics.topics)
