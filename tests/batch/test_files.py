"""align_file: one row out for each row in, nothing lost to a kill, nothing mixed up."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phaseguard import PhaseGuardError, align_prompt
from phaseguard.batch import BatchAligner, align_file
from phaseguard.batch.lines import read_lines
from phaseguard.batch.plan import SHARD_ROWS, plan_shards
from phaseguard.batch.shards import ShardFolder
from phaseguard.errors import InputError
from tests.batch.rows import CHAT, KEY, NO_PHASE, TEXT, V41, read_rows, write_rows

QUICK = BatchAligner(profile=NO_PHASE, key_column=None)
ALIGNING = BatchAligner(profile=V41)
UNTIDY = "One line. \n\n\n\nAnother."


def many(count: int) -> list[dict]:
    return [{"id": number, "prompt": f"Row {number}. {UNTIDY}"} for number in range(count)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_rows_are_what_align_prompt_gives(tmp_path, out):
    prompts = [TEXT, CHAT, {"messages": CHAT, "model": "m"}]
    source = write_rows(
        tmp_path / "in.jsonl", [{"n": n, "prompt": p, "key_passages": [KEY]} for n, p in enumerate(prompts)]
    )
    report = align_file(source, out, ALIGNING)
    assert [row["aligned_prompt"] for row in read_rows(out)] == [
        align_prompt(prompt, key_passages=[KEY], profile=V41).prompt for prompt in prompts
    ]
    assert [row["n"] for row in read_rows(out)] == [0, 1, 2]
    assert (report.counts.rows, report.counts.verified, report.counts.errors, report.resumed) == (3, 3, 0, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_what_stands_in_a_row_is_kept_to_the_byte(tmp_path, out):
    odd = b'{"f": 1.10, "e": 1E5, "u": "\\u00e9\xc3\xa9", "f": 2 ,"prompt":"a", "s": "\\ud800"  }'
    align_file(write_rows(tmp_path / "in.jsonl", [b"  " + odd + b" \r"]), out, QUICK)
    assert out.read_bytes().startswith(odd[:-1].rstrip() + b', "aligned_prompt": "a", "phaseguard_error": ""')
    assert json.loads(out.read_bytes())["aligned_prompt"] == "a"


def test_a_lone_surrogate_in_a_prompt_is_an_error_that_can_be_written(tmp_path, out):
    align_file(
        write_rows(tmp_path / "in.jsonl", [b'{"prompt": "a \\ud800 b", "key_passages": ["b"]}']),
        out,
        ALIGNING,
    )
    (row,) = read_rows(out)
    assert row["aligned_prompt"] == "a \ud800 b"
    assert "lone surrogate" in row["phaseguard_error"]


BAD = [
    (b"{oops", "line 3: not JSON: Expecting property name enclosed in double quotes at column 2"),
    (b'["prompt"]', "line 3: list, not an object with fields"),
    (b'{"prompt": "\xff"}', "line 3: not UTF-8: byte 0xff at offset 12"),
    (b'{"n": ' + b"9" * 5000 + b"}", "line 3: JSON that cannot be read: "),
    (b"[" * 100_000, "line 3: JSON that cannot be read: "),
    (b'{"text": "a"}', "line 3: no field 'prompt'. Known names: text."),
    (b"{}", "line 3: no field 'prompt'."),
    (b'{"prompt": null}', "line 3: A prompt is a string, a list of messages or a payload, not NoneType."),
    (b'{"prompt": ""}', "line 3: The prompt is empty"),
    (b'{"prompt": "a", "aligned_prompt": "mine"}', "line 3: it already has a field 'aligned_prompt'"),
]


@pytest.mark.parametrize(("bad", "error"), BAD, ids=[error[8:40] for _, error in BAD])
def test_a_bad_line_is_a_row_with_an_error_that_names_the_line(tmp_path, out, bad, error):
    good = {"prompt": UNTIDY, "id": 1}
    source = write_rows(tmp_path / "in.jsonl", [good, b" \t", bad, good])
    report = align_file(source, out, QUICK)
    first, row, last = read_rows(out)
    assert first == last
    assert first["phaseguard_error"] == ""
    assert row["phaseguard_error"].startswith(error)
    assert row["phaseguard_verified"] is False
    assert (report.counts.rows, report.counts.verified, report.counts.errors) == (3, 2, 1)
    assert report.counts.first_errors == (row["phaseguard_error"],)
    if b"mine" in bad:
        assert row["aligned_prompt"] == "mine"


def test_a_byte_order_mark_and_a_last_line_without_end_are_read(tmp_path, out):
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'\xef\xbb\xbf{"prompt": "a"}\r\n{"prompt": "b\xe2\x80\xa8c"}')
    align_file(source, out, QUICK)
    rows = [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]
    assert [row["aligned_prompt"] for row in rows] == ["a", "b\u2028c"]


def test_the_prompt_field_may_be_replaced_and_errors_alone_be_told(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", [{"body": UNTIDY, "id": 1}, {"body": "", "id": 2}])
    aligner = BatchAligner(
        profile=NO_PHASE, prompt_column="body", output_column="body", key_column=None, report_columns=()
    )
    report = align_file(source, out, aligner)
    tidy, bad = read_rows(out)
    assert tidy == {"body": "One line.\n\nAnother.", "id": 1}
    assert bad.keys() == {"body", "id", "phaseguard_error"}
    assert (report.counts.verified, report.counts.errors) == (1, 1)


def test_a_failed_proof_is_counted(tmp_path, out, monkeypatch):
    def unproven(prompt, **options):
        made = align_prompt(prompt, **options)
        object.__setattr__(made.report, "verified", prompt != "b")
        return made

    monkeypatch.setattr("phaseguard.batch.aligner.align_prompt", unproven)
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "a"}, {"prompt": "b"}])
    counts = align_file(source, out, QUICK).counts
    assert (counts.rows, counts.verified, counts.unverified, counts.errors) == (2, 1, 1, 0)


def test_an_empty_file_is_an_empty_file(tmp_path, out):
    assert align_file(write_rows(tmp_path / "in.jsonl", [b"", b"  "]), out, QUICK).counts.rows == 0
    assert out.read_bytes() == b""


def test_shards_hold_every_line_once(tmp_path, monkeypatch):
    monkeypatch.setattr("phaseguard.batch.plan.SHARD_BYTES", 4000)
    lines = [b"", *(json.dumps(row).encode() for row in many(2 * SHARD_ROWS + 3)), b"x" * 9000, b"", b"y"]
    source = write_rows(tmp_path / "in.jsonl", lines)
    plan = plan_shards(source)
    found = [line for shard in plan.shards for line in read_lines(source, shard)]
    assert [line.number for line in found] == [n for n, line in enumerate(lines, 1) if line]
    assert plan.rows == len(found) == sum(shard.rows for shard in plan.shards)
    assert [shard.start for shard in plan.shards[1:]] == [shard.stop for shard in plan.shards[:-1]]
    assert all(shard.stop - shard.start <= 4000 or shard.rows == 1 for shard in plan.shards)
    assert all(shard.rows <= SHARD_ROWS for shard in plan.shards)


@pytest.mark.parametrize("jobs", [1, 3])
def test_rows_keep_their_order_whatever_the_jobs(tmp_path, out, jobs):
    source = write_rows(tmp_path / "in.jsonl", many(5 * SHARD_ROWS))
    steps = []
    report = align_file(
        source, out, QUICK, jobs=jobs, progress=lambda done, total: steps.append((done, total))
    )
    assert [row["id"] for row in read_rows(out)] == list(range(5 * SHARD_ROWS))
    assert all(row["aligned_prompt"].endswith("One line.\n\nAnother.") for row in read_rows(out))
    assert report.counts.rows == 5 * SHARD_ROWS
    assert steps == [(SHARD_ROWS * n, 5 * SHARD_ROWS) for n in range(6)]


@pytest.mark.parametrize("much", [False, True])
def test_the_fast_reader_is_loaded_at_once_where_there_is_much_to_read(tmp_path, out, monkeypatch, much):
    loaded = []

    def warm_up(aligner):
        loaded.append(aligner)

    monkeypatch.setattr(BatchAligner, "warm_up", warm_up)
    monkeypatch.setattr("phaseguard.batch.files._MUCH", 10 if much else 1000)
    align_file(write_rows(tmp_path / "in.jsonl", many(3)), out, QUICK)
    assert loaded == [QUICK] * much


# resume


def stop_after(shards: int):
    def progress(done: int, total: int) -> None:
        if done >= shards * SHARD_ROWS:
            raise KeyboardInterrupt

    return progress


@pytest.fixture
def stopped(tmp_path: Path, out: Path) -> Path:
    """An input of four shards, two of which were done when the run was stopped."""
    source = write_rows(tmp_path / "in.jsonl", many(4 * SHARD_ROWS))
    with pytest.raises(KeyboardInterrupt):
        align_file(source, out, QUICK, progress=stop_after(2))
    assert not out.exists()
    return source


def test_a_stopped_run_goes_on_from_what_is_finished(stopped, tmp_path, out):
    kept = {path.name: path.stat().st_mtime_ns for path in ShardFolder(out).path.glob("*.jsonl")}
    assert len(kept) == 2
    calls = []
    report = align_file(stopped, out, QUICK, progress=lambda done, total: calls.append(done))
    assert report.resumed == 2 * SHARD_ROWS
    assert calls[0] == 2 * SHARD_ROWS
    assert report.counts.rows == report.counts.verified == 4 * SHARD_ROWS
    align_file(stopped, tmp_path / "whole.jsonl", QUICK)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not ShardFolder(out).path.exists()


def test_a_finished_shard_is_not_done_again_and_a_cut_one_is(stopped, out):
    shards = ShardFolder(out).path
    first, second = sorted(shards.glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b"Row 7.", b"Was 7."))  # of the same size: it is believed
    second.write_bytes(second.read_bytes()[:-1])
    (shards / "00000002.jsonl.123.tmp").write_bytes(b"half")
    report = align_file(stopped, out, QUICK)
    assert report.resumed == SHARD_ROWS
    rows = read_rows(out)
    assert rows[7]["aligned_prompt"].startswith("Was 7.")
    assert [row["id"] for row in rows] == list(range(4 * SHARD_ROWS))


@pytest.mark.parametrize(
    ("aligner", "words"),
    [
        (BatchAligner(profile=NO_PHASE, key_column=None, level="off"), "with another level"),
        (BatchAligner(profile="deepseek-v3", key_column=None), "with another profile"),
        (BatchAligner(profile=NO_PHASE, key_column=None, tokenizer="gpt2"), "with another tokenizer"),
    ],
)
def test_shards_of_other_options_are_refused(stopped, out, aligner, words):
    with pytest.raises(InputError, match=words):
        align_file(stopped, out, aligner)
    assert align_file(stopped, out, QUICK).resumed == 2 * SHARD_ROWS


def test_shards_of_another_input_are_refused_unless_restarted(stopped, out):
    write_rows(stopped, [*many(4 * SHARD_ROWS - 1), {"prompt": "another"}])
    with pytest.raises(InputError, match="with another input: repeat that run to end it, restart"):
        align_file(stopped, out, QUICK)
    assert align_file(stopped, out, QUICK, restart=True).resumed == 0
    assert read_rows(out)[-1]["aligned_prompt"] == "another"


def test_a_run_without_finished_shards_binds_nobody(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", many(1))
    with pytest.raises(PhaseGuardError, match="no such tokenizer"):
        align_file(source, out, BatchAligner(profile=V41, key_column=None, tokenizer="no such tokenizer"))
    assert align_file(source, out, QUICK).counts.rows == 1


def test_a_folder_of_something_else_is_left_alone(tmp_path, out):
    folder = ShardFolder(out).path
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    for restart in (False, True):
        with pytest.raises(InputError, match=r"holds 'thesis\.txt'"):
            align_file(write_rows(tmp_path / "in.jsonl", many(1)), out, QUICK, restart=restart)
    assert (folder / "thesis.txt").read_text() == "mine"


def test_two_runs_at_once_are_refused(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", many(1))
    with ShardFolder(out).opened({"input": "x"}), pytest.raises(InputError, match="Another process"):
        align_file(source, out, QUICK)


def test_an_input_that_changes_meanwhile_is_noticed(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", many(2))

    def edit(done: int, total: int) -> None:
        os.utime(source, ns=(1, 1))

    with pytest.raises(InputError, match="was changed while it was read"):
        align_file(source, out, QUICK, progress=edit)
    assert not out.exists()


def test_an_output_that_is_there_is_untouched_until_the_end(tmp_path, out):
    source, link = write_rows(tmp_path / "in.jsonl", many(2)), tmp_path / "link.jsonl"
    out.write_text("old\n")
    out.chmod(0o640)
    link.symlink_to(out)
    seen = []
    align_file(source, link, QUICK, progress=lambda done, total: seen.append(out.read_text()))
    assert set(seen) == {"old\n"}
    assert len(read_rows(out)) == 2
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("missing.jsonl", "out.jsonl"), "missing.jsonl cannot be read"),
        (("in.jsonl", "in.jsonl"), "is the input"),
        (("in.jsonl", "nowhere/out.jsonl"), "in a folder that exists"),
        (("in.jsonl", "."), "cannot be written"),
    ],
)
def test_files_that_cannot_be_used_say_what_to_do(tmp_path, names, words):
    write_rows(tmp_path / "in.jsonl", many(1))
    with pytest.raises(InputError, match=words):
        align_file(*(tmp_path / name for name in names), QUICK)


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_jobs_are_counted_from_one(tmp_path, out, jobs):
    with pytest.raises(InputError, match="from 1"):
        align_file(tmp_path / "in.jsonl", out, QUICK, jobs=jobs)


def test_a_field_that_the_first_row_lacks_is_found_before_the_work(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", [b"junk", {"promt": "a"}, *many(1)])
    with pytest.raises(InputError, match=r"line 2: no field 'prompt'\. Did you mean 'promt'"):
        align_file(source, out, QUICK)
    assert not out.exists()


def test_a_tokenizer_object_cannot_be_recognized_later(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", many(1))
    with pytest.raises(InputError, match="by name or path"):
        align_file(source, out, BatchAligner(profile=V41, key_column=None, tokenizer=object()))


# what only real processes show

BIG = """
import resource, sys
from pathlib import Path
from phaseguard.batch import BatchAligner, align_file
source, out, room = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
aligner = BatchAligner(profile="llama-3", key_column=None)
align_file(Path(sys.argv[4]), out, aligner)  # loads all that is loaded once
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
if sys.argv[5] == "whole":
    source.read_bytes()
print(align_file(source, out, aligner).counts.rows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set by what /proc tells")
@pytest.mark.parametrize(("how", "code"), [("streamed", 0), ("whole", 1)])
def test_memory_does_not_grow_with_the_file(tmp_path, out, how, code):
    room, blob = 64 << 20, "x" * (1 << 20)
    small = write_rows(tmp_path / "small.jsonl", [{"prompt": UNTIDY, "blob": blob}] * 9)
    big = write_rows(tmp_path / "big.jsonl", ({"prompt": UNTIDY, "blob": blob} for _ in range(100)))
    assert big.stat().st_size > 1.5 * room
    done = subprocess.run(
        [sys.executable, "-c", BIG, big, out, str(room), small, how],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "MemoryError" in done.stderr) == (code, bool(code)), done.stderr
    assert code or done.stdout == "100\n"


def test_a_worker_that_is_killed_is_told_and_what_is_finished_is_kept(tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", many(12 * SHARD_ROWS))
    killed = []

    def kill(done: int, total: int) -> None:
        if done and not killed:
            import multiprocessing

            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    with pytest.raises(PhaseGuardError, match=r"worker process was killed.*fewer jobs"):
        align_file(source, out, QUICK, jobs=2, progress=kill)
    assert align_file(source, out, QUICK).resumed >= SHARD_ROWS
    assert len(read_rows(out)) == 12 * SHARD_ROWS


def wait_for_shards(out: Path, count: int, process: subprocess.Popen) -> None:
    while len(list(ShardFolder(out).path.glob("*.json"))) <= count:  # the manifest is one
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.002)


def start(source: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "phaseguard", "batch", source, out, "--find", "-p", NO_PHASE, "-j", "2"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # a shell that runs tests in the background lets them ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_after_a_real_kill_the_same_command_goes_on(tmp_path, out, how):
    source = write_rows(tmp_path / "in.jsonl", many(24 * SHARD_ROWS))
    with start(source, out) as process:
        wait_for_shards(out, 1, process)
        if how == "kill":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        said, _ = process.communicate(timeout=60)  # ends when the workers are gone, whose output this is
    if how == "interrupt":
        assert process.returncode == 130
        assert said == b"phaseguard: interrupted; the same command goes on from what is finished.\n"
    assert not out.exists()
    with start(source, out) as again:
        said, _ = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert b" of them in an earlier run" in said
    rows = read_rows(out)
    assert [row["id"] for row in rows] == list(range(24 * SHARD_ROWS))
    assert all(row["aligned_prompt"] == f"Row {row['id']}. One line.\n\nAnother." for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
