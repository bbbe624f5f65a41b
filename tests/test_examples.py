"""Every example runs as a user would run it, and says what the documentation promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "align_rag_prompt.py": ("phase 0 (strong: False) -> phase 1 (strong: True)", "restored byte for byte"),
    "chat_messages.py": ("6 messages", "4 earlier messages unchanged"),
    "phase_on_device.py": (
        "csa4-s0: 600 questions",
        "answer moved to phase 3, the strongest",
        "as many pads as for phase 3",
    ),
    "late_chunking.py": (
        '3. if the attribute is not found, "ImportError" is raised.',
        "ImportError: token ",
        "phase 0 -> 1 (strong: True)",
        "verified: True",
    ),
    "batch.py": ("row 2: PROVOCATIVE-8417: phase 0 -> 1, verified: True", "row 3: key_passages[0] does not"),
    "openai_client.py": ("received at token 2840, phase 0\nafter", "received at token 2841, phase 1"),
    "calibrate_and_align.py": ("effect: By margin, period 4", "prefix_offset 5", "aligned: 14"),
    "find_by_question.py": ("PROVOCATIVE-8417 (identifier): phase 0 -> 1", "verified: True"),
}


def run(*command: str | Path, **kwargs) -> subprocess.CompletedProcess:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(  # noqa: PLW1510 - the callers say it
        command, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PATH": path}, **kwargs
    )


def test_every_example_is_tested():
    theirs = ("langchain_", "llama_index_")  # the integrations test their own
    own = [path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith(theirs)]
    assert set(own) == SAYS.keys()


@pytest.mark.parametrize("name", SAYS)
def test_example_runs_and_says(name, tmp_path):
    done = run(sys.executable, EXAMPLES / name, check=True, cwd=tmp_path)
    for words in SAYS[name]:
        assert words in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", SAYS)
def test_example_is_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 60


def test_prompt_is_long_and_has_something_to_normalize():
    from phaseguard import load_tokenizer
    from phaseguard.normalize import normalize

    text = (EXAMPLES / "rag_prompt.md").read_text(encoding="utf-8")
    assert len(load_tokenizer("deepseek-v4").encode(text)) > 4_000
    assert text.index("PROVOCATIVE-8417") > len(text) // 2
    assert {edit.reason for edit in normalize(text).edits} >= {"trailing-blanks", "lone-rule"}


@pytest.mark.skipif(
    not Path(sys.executable).with_name("phaseguard").exists(), reason="phaseguard is not installed here"
)
def test_ci_script_fails_on_untidy_prompts_and_shows_the_diff(tmp_path):
    tidy, untidy = tmp_path / "tidy.md", tmp_path / "untidy.md"
    tidy.write_text("Tidy.\n")
    untidy.write_text("Untidy. \n\n\n\nVery.\n")
    script = EXAMPLES / "normalize_in_ci.sh"
    assert run("sh", script, tidy, check=True).stdout == "prompts are tidy\n"
    failed = run("sh", script, tidy, untidy, check=False)
    assert failed.returncode == 1
    assert "-Untidy. " in failed.stdout
    assert run("sh", script, tmp_path / "missing.md", check=False).returncode == 2


def test_moving_an_answer_to_the_strongest_phase_does_more_than_its_pads():
    printed = run(sys.executable, EXAMPLES / "phase_on_device.py", check=True).stdout
    rows = [re.search(r"(.*\S) +\d\.\d+ +\[(\S+) (\S+)\]", line) for line in printed.splitlines()[1:]]
    ends = {row[1]: (float(row[2]), float(row[3])) for row in rows}
    (strongest,) = (low for name, (low, _) in ends.items() if name.endswith("the strongest"))
    (control,) = (high for name, (_, high) in ends.items() if name.endswith("anywhere"))
    assert strongest > max(control, ends["as it stands"][1])
