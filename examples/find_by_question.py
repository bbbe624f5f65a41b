"""Let the question find the key passages, and read in the report why each was chosen.

python examples/find_by_question.py
"""

from pathlib import Path

from phaseguard import align_prompt

text = (Path(__file__).parent / "rag_prompt.md").read_text(encoding="utf-8")
question = "Which release phrase lets leader-2 take writes again in eu-north-4?"

out = align_prompt(text, query=question, profile="deepseek-v4.1-flash")

for passage in out.report.passages:
    print(f"{' '.join(passage.text.split())[:70]}... chosen: {passage.why}")
    for span in passage.spans:
        print(f"  {span.text} ({span.kind}): phase {span.phase_before} -> {span.phase_after}")
print(f"verified: {out.report.verified}, {len(out.report.pads)} pads, {out.report.tokens_added} tokens")
