"""The package as a whole: light to import, complete when built, consistent in what it says of itself."""

import importlib
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import phaseguard

ROOT = Path(__file__).parents[1]
META = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEAVY = {
    "torch",
    "transformers",
    "tokenizers",
    "tiktoken",
    "numpy",
    "pydantic",
    "rich",
    "typer",
    "markdown_it",
    "langchain_core",
    "llama_index",
    "jinja2",
}


def loaded_after(statement: str) -> set[str]:
    code = (
        f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy():
    assert not loaded_after("import phaseguard") & HEAVY


@pytest.mark.parametrize("adapter", ["openai", "langchain", "llama_index", "transformers"])
def test_an_adapter_loads_no_framework(adapter):
    frameworks = {"openai", "langchain_core", "llama_index", "transformers", "torch"}
    loaded = loaded_after(f"import phaseguard.ensemble.{adapter}")
    assert "phaseguard" in loaded
    assert not loaded & frameworks


def test_the_check_for_heavy_modules_can_fail():
    assert loaded_after("import phaseguard, numpy") & HEAVY == {"numpy"}


def test_command_line_loads_no_model_library_to_print_its_version():
    loaded = loaded_after("import phaseguard.cli\nphaseguard.cli.main(['--version'])")
    assert not loaded & {"torch", "transformers", "tokenizers", "tiktoken", "numpy", "markdown_it"}


def test_aligning_loads_no_framework():
    statement = "import phaseguard; phaseguard.align_prompt('Is it 5?', key_passages='5')"
    assert not loaded_after(statement) & {
        "torch",
        "transformers",
        "langchain_core",
        "llama_index",
        "tiktoken",
    }


@pytest.mark.parametrize("name", phaseguard.__all__)
def test_public_names_can_be_had(name):
    value = getattr(phaseguard, name)
    assert value.__doc__
    assert name in dir(phaseguard)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = phaseguard.nope


def test_versions_agree():
    assert META["project"]["version"] == phaseguard.__version__
    assert f"## [{phaseguard.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["langchain", "llama_index"])
def test_each_distribution_carries_the_license(folder):
    own = ROOT / "integrations" / folder / "LICENSE"
    assert own.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_script_points_at_the_command_line():
    module, _, name = META["project"]["scripts"]["phaseguard"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_modules_and_their_order_are_small():
    for path in (ROOT / "phaseguard").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, path


def shell_blocks(text: str) -> list[str]:
    return [part.split("\n", 1)[1] for part in text.split("```")[1::2] if part.startswith("sh\n")]


def test_readme_begins_with_the_two_commands():
    first, second = shell_blocks((ROOT / "README.md").read_text(encoding="utf-8"))[:2]
    assert "python3 -m venv" in first
    assert "pip install" in first
    assert "phaseguard align examples/rag_prompt.md" in first
    assert "python -m pytest" in second


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [part.split("\n", 1)[1] for part in text.split("```")[1::2] if part.startswith(f"{language}\n")]


def test_readme_shows_what_its_first_block_prints(tmp_path):
    command = shell_blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0].splitlines()[-1]
    args = command.replace("aligned.md", str(tmp_path / "aligned.md")).split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "phaseguard", *args],
        check=True,
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "COLUMNS"},
    )
    assert done.stderr == blocks("text")[0]
    assert done.stdout == ""
    assert "PROVOCATIVE-8417" in (tmp_path / "aligned.md").read_text(encoding="utf-8")


def test_readme_profile_is_one_that_aligns():
    profile = json.loads(blocks("json")[0])
    text = "The vault code is PROVOCATIVE-8417.\n\n" + "More words.\n" * 80
    span = phaseguard.align_prompt(text, key_passages="8417", profile=profile).report.passages[0].spans[0]
    assert span.strong_after is True
    assert span.phase_after in {2, 3}


def test_readme_names_every_shipped_profile():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for entry in phaseguard.list_profiles():
        if entry.origin == "shipped":
            assert f"`{entry.name}`" in text


def test_links_inside_the_documents_lead_somewhere():
    import re

    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"):
        path = ROOT / name
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{name} links to {target}"


def test_wheel_holds_profiles_page_and_typing_marker(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {f"phaseguard/profiles/shipped/{p.name}" for p in (ROOT / "phaseguard").rglob("shipped/*.json")}
    assert len(shipped) >= 7
    weights = {f"phaseguard/lab/weights/{p.name}" for p in (ROOT / "phaseguard/lab/weights").iterdir()}
    assert len(weights) >= 6
    assert names >= {
        *shipped,
        *weights,
        "phaseguard/py.typed",
        "phaseguard/show/page.html",
        "phaseguard/cli.py",
    }
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]
    assert [name for name in names if name.endswith("licenses/LICENSE")]
