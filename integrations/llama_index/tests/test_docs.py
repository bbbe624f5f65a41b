"""The examples in docstrings run."""

import doctest
from importlib import import_module

import pytest

NAMES = ("ensembles", "llms", "messages", "nodes", "openai", "prompts")


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name: str) -> None:
    result = doctest.testmod(import_module(f"llama_index.postprocessor.phaseguard.{name}"))
    assert result.attempted
    assert not result.failed
