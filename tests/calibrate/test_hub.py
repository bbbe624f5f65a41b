"""Weights from a hub: ranges alone are asked for, the token stays with the hub, refusals are told apart."""

import struct

import numpy as np
import pytest

from phaseguard.calibrate.ranges import Fetcher
from phaseguard.calibrate.weights import read_weights
from phaseguard.errors import InputError
from tests.calibrate.checkpoints import biased, save, serving

TOKEN = "hf_secret_of_the_test"
REPO = "someone/some-model"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("HF_TOKEN", "HF_ENDPOINT", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("phaseguard.calibrate.ranges.sleep", lambda _: None)


@pytest.fixture
def folder(tmp_path):
    bias = np.zeros((4, 12), np.float32)
    bias[3] = 1
    tensors = biased(bias, layer=1, width=6) | {"ballast": np.zeros(1_000_000, np.float32)}
    return save(tmp_path / "repo", tensors, {"compress_ratios": [0, 4], "sliding_window": 128})


@pytest.fixture
def hub(folder):
    with serving(folder) as running:
        yield running


def test_only_headers_and_biases_are_asked_for(hub, folder):
    report = read_weights(REPO, hub_url=hub.url)
    assert report.layers == read_weights(folder).layers
    assert report.source == REPO
    (size,) = struct.unpack("<Q", (folder / "model.safetensors").read_bytes()[:8])
    spans = hub.spans("model.safetensors")
    assert spans[:3] == [(0, 1), (0, 8), (8, size)]
    assert [length for _, length in spans[3:]] == [4 * 12 * 4]
    assert hub.sent < 2000
    assert {a.path for a in hub.asked} == {
        f"/{REPO}/resolve/main/{file}"
        for file in ("config.json", "model.safetensors.index.json", "model.safetensors")
    }


def test_the_hub_of_the_environment_and_a_revision(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/")
    report = read_weights(REPO, revision="refs/pr/1")
    assert report.source == f"{REPO}@refs/pr/1"
    profile = report.to_profile("mine", tokenizer="deepseek-v4", chat="plain")
    assert (profile.model, profile.provenance.source) == (REPO, f"{REPO}@refs/pr/1")
    assert all(a.path.startswith(f"/{REPO}/resolve/refs%2Fpr%2F1/") for a in hub.asked)


def test_the_token_goes_to_the_hub_and_not_to_its_cdn(hub, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with serving(folder) as cdn:
        hub.to_cdn = cdn.url
        assert read_weights(REPO, hub_url=hub.url).strides == (4,)
        assert {a.authorization for a in hub.asked} == {f"Bearer {TOKEN}"}
        assert {a.authorization for a in cdn.asked} == {None}
        assert [a.span for a in cdn.asked if a.span] == [a.span for a in hub.asked if a.span]


def test_the_token_follows_a_redirect_within_the_hub(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.renamed = True
    assert read_weights(REPO, hub_url=hub.url).strides == (4,)
    moved = [a for a in hub.asked if a.path.startswith("/renamed/")]
    assert moved
    assert {a.authorization for a in moved} == {f"Bearer {TOKEN}"}


def test_a_hub_without_tls_elsewhere_gets_no_token():
    sent = [
        Fetcher(base, token=TOKEN).sends_token
        for base in ("http://hub.example", "https://hub.example", "http://127.0.0.2", "http://localhost:1")
    ]
    assert sent == [False, True, True, True]


def test_a_server_that_ignores_ranges_is_not_read(hub, folder):
    hub.ignores_ranges = True
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(1 << 28)
    with pytest.raises(InputError, match=r"ignores byte ranges .* local copy"):
        read_weights(REPO, hub_url=hub.url)
    assert hub.sent < 1000


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_names_the_variable_and_never_the_token(hub, monkeypatch, status):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.statuses = [status]
    with pytest.raises(InputError, match=f"status {status}.*HF_TOKEN") as caught:
        read_weights(REPO, hub_url=hub.url)
    assert TOKEN not in str(caught.value)


def test_no_such_repository(hub, folder):
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(InputError, match=f"{REPO} has neither"):
        read_weights(REPO, hub_url=hub.url)


def test_a_missing_shard(hub, folder):
    index = '{"weight_map": {"layers.1.attn.compressor.ape": "gone.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match=r"gone\.safetensors: the hub has no such file"):
        read_weights(REPO, hub_url=hub.url)


@pytest.mark.parametrize("keep", [4, 40, 200])
def test_a_truncated_file(hub, folder, keep):
    save(folder, biased(np.ones((4, 6), np.float32), layer=1), None)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match="truncated"):
        read_weights(REPO, hub_url=hub.url)


def test_a_broken_header(hub, folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"oops" + bytes(64))
    with pytest.raises(InputError, match="not JSON"):
        read_weights(REPO, hub_url=hub.url)


def test_busy_hubs_are_asked_again(hub):
    hub.statuses = [503, 429]
    assert read_weights(REPO, hub_url=hub.url).strides == (4,)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_answers_that_end_early_are_asked_for_again(hub, file):
    hub.cut, hub.cuts = 1, file
    assert read_weights(REPO, hub_url=hub.url).strides == (4,)
    assert hub.cut == 0


def test_a_hub_that_stays_busy(hub):
    hub.statuses = [503] * 3
    with pytest.raises(InputError, match="status 503, 3 times"):
        read_weights(REPO, hub_url=hub.url)
    assert len(hub.asked) == 3


def test_answers_that_always_end_early(hub):
    hub.cut = 99
    with pytest.raises(InputError, match=r"bytes came, 3 times"):
        read_weights(REPO, hub_url=hub.url)


def test_another_range_than_asked_for(hub):
    hub.wrong_start = True
    with pytest.raises(InputError, match=r"instead of the bytes from 0 on"):
        read_weights(REPO, hub_url=hub.url)


def test_other_statuses(hub):
    hub.statuses = [418]
    with pytest.raises(InputError, match="status 418"):
        read_weights(REPO, hub_url=hub.url)


def test_nobody_answers(hub, folder):
    with serving(folder) as gone:
        url = gone.url
    with pytest.raises(InputError, match="Check the URL"):
        read_weights(REPO, hub_url=url)


@pytest.mark.parametrize(
    "url", ["ftp://hub.example", "hub.example", "https://", "https://me:secret@hub.example"]
)
def test_urls_that_are_no_hub(url):
    with pytest.raises(InputError, match="must be http") as caught:
        read_weights(REPO, hub_url=url)
    assert "secret" not in str(caught.value)


def test_an_index_without_end(hub, folder, monkeypatch):
    monkeypatch.setattr("phaseguard.calibrate.sources._TEXT_LIMIT", 10)
    with pytest.raises(InputError, match="larger than 10 bytes"):
        read_weights(REPO, hub_url=hub.url)
