"""Align a column of a Hugging Face dataset in two processes.

pip install 'phaseguard[datasets]'
python examples/frameworks/hf_batch.py
"""

import json
from pathlib import Path

from datasets import Dataset

from phaseguard.batch import BatchAligner


def main() -> None:
    """Align, then show the phases of each answer."""
    document = (Path(__file__).parents[1] / "rag_prompt.md").read_text(encoding="utf-8")
    phrase = "The release phrase for the cache cluster in eu-north-4 is PROVOCATIVE-8417"
    given = Dataset.from_list(
        [
            {
                "id": n,
                "prompt": f"Note {n}.\n\n{document}",
                "key_passages": [phrase],
                "answer": "PROVOCATIVE-8417",
            }
            for n in range(8)
        ]
    )
    align = BatchAligner(
        profile="deepseek-v4.1-flash", answer_column="answer", report_columns=["verified", "report"]
    )
    # its pickle is the same in every process, so that a second run comes from the cache of datasets
    aligned = given.map(align, batched=True, batch_size=2, num_proc=2)
    assert aligned["id"] == given["id"]
    for row in aligned:
        assert not row["phaseguard_error"], row["phaseguard_error"]
        (passage,) = json.loads(row["phaseguard_report"])["passages"]
        for span in passage["spans"]:
            phases = f"phase {span['phase_before']} -> {span['phase_after']}"
            print(f"row {row['id']}: {span['text']}: {phases}, verified: {row['phaseguard_verified']}")


if __name__ == "__main__":  # workers that are spawned import this file
    main()
