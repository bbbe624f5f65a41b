"""Align a RAG prompt: the answer moves to a strong phase, and the original can be had back.

python examples/align_rag_prompt.py
"""

from pathlib import Path

from phaseguard import align_prompt

text = (Path(__file__).parent / "rag_prompt.md").read_text(encoding="utf-8")

out = align_prompt(
    text,
    key_passages=["The release phrase for the cache cluster in eu-north-4 is PROVOCATIVE-8417"],
    answer="PROVOCATIVE-8417",
    profile="deepseek-v4.1-flash",
)
report = out.report

print(f"{report.tokens_before} tokens as given, {report.tokens_after} as sent")
for passage in report.passages:
    for span in passage.spans:
        print(f"{span.text}: token {span.index_before} -> {span.index_after}")
        print(f"  phase {span.phase_before} (strong: {span.strong_before})", end=" -> ")
        print(f"phase {span.phase_after} (strong: {span.strong_after})")
for pad in report.pads:
    print(f"line {pad.line}: {pad.original!r} became {pad.text!r}, {pad.tokens} token")
print(f"evidence: {report.provenance.kind}, {report.provenance.source}")

# verified: the padded request was encoded again as a whole, and each answer stands where planned
assert report.verified
assert out.restore() == text
print("verified, and restored byte for byte")
