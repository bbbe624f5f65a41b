"""``align_batch`` inside Hugging Face datasets and Ray Data, as it is. Needs both: ``-m frameworks``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phaseguard import load_tokenizer
from phaseguard.batch import BatchAligner, align_batch
from tests.batch.rows import CHAT, KEY, TEXT, V41

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"
COLUMNS = {
    "id": list(range(24)),
    "prompt": ["" if n % 6 == 0 else f"Row {n}.\n\n{TEXT}" for n in range(24)],
    "key_passages": [None if n % 4 == 0 else [KEY] * (1 + n % 2) for n in range(24)],
}
ALIGNER = BatchAligner(profile=V41, report_columns=("verified", "tokens_added", "warnings", "report"))
CHATS = {"id": list(range(8)), "chat": [[{"role": "user", "content": ""}], CHAT] * 4}
FOR_CHATS = {"prompt_column": "chat", "key_column": None, "profile": V41}

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]  # warnings of theirs


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("processes", [None, 1, 2])
def test_datasets_map(processes):
    from datasets import Dataset

    load_tokenizer("deepseek-v4", fast=True).encode(TEXT)  # loaded before the processes are forked
    given = Dataset.from_dict(COLUMNS)
    done = given.map(ALIGNER, batched=True, batch_size=5, num_proc=processes, load_from_cache_file=False)
    assert done.to_list() == rows_of(ALIGNER(COLUMNS))
    assert {error == "" for error in done["phaseguard_error"]} == {True, False}


def test_datasets_map_the_plain_function_over_chats():
    from datasets import Dataset

    given = Dataset.from_dict(CHATS)
    # the first batch that is written holds nothing but errors: its columns must have their types all the same
    done = given.map(align_batch, batched=True, batch_size=1, writer_batch_size=1, fn_kwargs=FOR_CHATS)
    assert done.to_list() == rows_of(align_batch(CHATS, **FOR_CHATS))


def test_datasets_find_earlier_work_in_their_cache(tmp_path):
    code = (
        "from datasets.fingerprint import Hasher; from phaseguard.batch import BatchAligner; "
        "print(Hasher.hash(BatchAligner(strong={3, 2})))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "HF_HOME": str(tmp_path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


@pytest.fixture(scope="module")
def data():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield ray.data
    ray.shutdown()


@pytest.mark.parametrize("function", [ALIGNER, align_batch])
def test_ray_map_batches(data, function):
    options = {} if function is ALIGNER else {"fn_kwargs": {"profile": V41, "report_columns": ["report"]}}
    aligner = ALIGNER if function is ALIGNER else BatchAligner(**options["fn_kwargs"])
    given = data.from_items(rows_of(COLUMNS), override_num_blocks=4)
    done = given.map_batches(function, batch_size=5, **options)
    assert done.take_all() == rows_of(aligner(COLUMNS))


def test_ray_writes_lists_as_arrow_lists(data, tmp_path):
    import pyarrow.dataset

    given = data.from_items(rows_of(COLUMNS), override_num_blocks=2)
    given.map_batches(ALIGNER).write_parquet(str(tmp_path))
    written = pyarrow.dataset.dataset(tmp_path).to_table().sort_by("id")
    assert str(written.schema.field("key_passages").type).startswith("list<")
    assert written.to_pylist() == rows_of(ALIGNER(COLUMNS))


def test_ray_maps_chats_and_blocks_without_rows(data):
    given = data.from_items(rows_of(CHATS), override_num_blocks=4).filter(lambda row: row["id"] > 4)
    done = given.map_batches(align_batch, batch_size=2, fn_kwargs=FOR_CHATS).take_all()
    expected = rows_of(align_batch(CHATS, **FOR_CHATS))[5:]
    for row, wanted in zip(done, expected, strict=True):
        for name in ("id", "phaseguard_error", "phaseguard_verified"):
            assert row[name] == wanted[name]
        assert list(row["aligned_prompt"]) == wanted["aligned_prompt"]


def test_ray_with_another_batch_format_says_what_to_do(data):
    given = data.from_items(rows_of(COLUMNS)).map_batches(ALIGNER, batch_format="pandas")
    with pytest.raises(Exception, match="leave batch_format at 'numpy'"):
        given.take_all()


@pytest.mark.parametrize("name", ["hf_batch.py", "ray_batch.py"])
def test_example_runs_and_says(name, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "HF_HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    for number, line in enumerate(lines):
        assert line.startswith(f"row {number}: PROVOCATIVE-8417: phase ")
        assert line.endswith(" -> 1, verified: True")


def test_every_example_is_tested_and_short():
    found = {path.name: len(path.read_text("utf-8").splitlines()) for path in EXAMPLES.glob("*_batch.py")}
    assert found.keys() == {"hf_batch.py", "ray_batch.py"}
    assert max(found.values()) < 60
