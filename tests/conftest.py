"""What holds for every test: no profile of the user's own is seen; hypothesis is seeded and not timed.

``PHASEGUARD_EXPLORE=1`` lets hypothesis try new examples on every run.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("phaseguard", deadline=None, derandomize="PHASEGUARD_EXPLORE" not in os.environ)
settings.load_profile("phaseguard")


@pytest.fixture(scope="session", autouse=True)
def _no_profiles_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHASEGUARD_PROFILES", str(tmp_path_factory.mktemp("profiles")))
        yield
