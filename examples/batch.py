"""Align a batch of prompts: columns in, columns out, and a row that cannot be aligned stops nothing.

python examples/batch.py
"""

import json
from pathlib import Path

from phaseguard.batch import BatchAligner

document = (Path(__file__).parent / "rag_prompt.md").read_text(encoding="utf-8")
phrase = "The release phrase for the cache cluster in eu-north-4 is PROVOCATIVE-8417"
columns = {
    "id": [1, 2, 3],
    "prompt": [document, f"Note 2.\n\n{document}", "No such phrase in here."],
    "key_passages": [[phrase], [phrase], [phrase]],
    "answer": ["PROVOCATIVE-8417"] * 3,
}

# the object is picklable: map(batched=True) of datasets and map_batches of Ray Data take it as it is
align = BatchAligner(
    profile="deepseek-v4.1-flash", answer_column="answer", report_columns=["verified", "report"]
)
rows = align(columns)

assert rows["id"] == columns["id"]
assert rows["prompt"] is columns["prompt"]
for row, error in enumerate(rows["phaseguard_error"]):
    if error:  # its prompt is passed on as it was given
        assert rows["aligned_prompt"][row] == columns["prompt"][row]
        print(f"row {rows['id'][row]}: {error}")
        continue
    verified = rows["phaseguard_verified"][row]
    for passage in json.loads(rows["phaseguard_report"][row])["passages"]:
        for span in passage["spans"]:
            phases = f"phase {span['phase_before']} -> {span['phase_after']}"
            print(f"row {rows['id'][row]}: {span['text']}: {phases}, verified: {verified}")
