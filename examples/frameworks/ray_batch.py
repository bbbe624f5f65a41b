"""Align rows with Ray Data: function tasks, each process loads its tokenizer once.

pip install 'phaseguard[ray]'
python examples/frameworks/ray_batch.py
"""

import json
from pathlib import Path

import ray

from phaseguard.batch import align_batch

document = (Path(__file__).parents[1] / "rag_prompt.md").read_text(encoding="utf-8")
phrase = "The release phrase for the cache cluster in eu-north-4 is PROVOCATIVE-8417"
rows = [
    {"id": n, "prompt": f"Note {n}.\n\n{document}", "key_passages": [phrase], "answer": "PROVOCATIVE-8417"}
    for n in range(8)
]

ray.init(num_cpus=2, include_dashboard=False)
context = ray.data.DataContext.get_current()
context.execution_options.preserve_order = True  # without it, blocks come in the order they are done
context.enable_progress_bars = False

# a function, not a class: a pool of actors that holds every CPU starves the tasks that feed it
aligned = ray.data.from_items(rows, override_num_blocks=4).map_batches(
    align_batch,
    batch_size=2,
    fn_kwargs={
        "profile": "deepseek-v4.1-flash",
        "answer_column": "answer",
        "report_columns": ["verified", "report"],
    },
)
done = aligned.take_all()
assert [row["id"] for row in done] == [row["id"] for row in rows]
for row in done:
    assert not row["phaseguard_error"], row["phaseguard_error"]
    (passage,) = json.loads(row["phaseguard_report"])["passages"]
    for span in passage["spans"]:
        phases = f"phase {span['phase_before']} -> {span['phase_after']}"
        print(f"row {row['id']}: {span['text']}: {phases}, verified: {row['phaseguard_verified']}")
