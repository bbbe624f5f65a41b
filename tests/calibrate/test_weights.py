"""Weights: planted biases are found again, from few bytes; broken checkpoints say what is wrong."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phaseguard.calibrate.favour import Favour
from phaseguard.calibrate.schedule import Schedule
from phaseguard.calibrate.sources import FolderSource
from phaseguard.calibrate.weights import HYPOTHESIS, read_weights
from phaseguard.errors import InputError, ProfileError
from phaseguard.kernels import csa, hca
from tests.calibrate import checkpoints
from tests.calibrate.checkpoints import RATIOS, STRIDES, biased, planted, save, v41


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Sharded, float32, under DeepSeek's own names."""
    folder = tmp_path_factory.mktemp("released")
    checkpoints.v4_model().save_pretrained(folder, max_shard_size="20KB")
    return folder


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """One file, bfloat16, under transformers' names."""
    folder = tmp_path_factory.mktemp("converted")
    checkpoints.v4_model("bfloat16").save_pretrained(folder, save_original_format=False)
    return folder


def shares_by_kernel(bias, stride, *, overlap):
    """Share of each slot of the last entry, by pooling indicators of single tokens with the kernel."""
    kernel, blocks = (csa, 2) if overlap else (hca, 1)
    width, tokens = bias.shape[1] // blocks, 2 * stride
    found = []
    for half in range(blocks):
        # an overlapping entry reads first halves of the chunk before, second halves of its own
        for token in range(tokens)[slice(stride) if overlap and not half else slice(stride, None)]:
            kv = np.zeros((tokens, blocks * width))
            kv[token, half * width : (half + 1) * width] = 1
            pooled = kernel.compress(kv, np.zeros_like(kv), bias=bias, stride=stride)
            found.append(pooled.values[-1].mean())
    return found


class TestPlanted:
    @pytest.mark.parametrize("kind", ["released", "converted"])
    def test_found_again_in_either_naming(self, kind, request):
        report = read_weights(request.getfixturevalue(kind))
        entries = {row.layer: row for row in report.layers if row.part == "entries"}
        assert {layer: row.stride for layer, row in entries.items()} == STRIDES
        assert {layer: row.overlap for layer, row in entries.items()} == {2: True, 3: False, 4: True}
        assert report.schedule.strides == RATIOS
        for layer, row in entries.items():
            assert row.favour.favoured == (layer % STRIDES[layer],)
            want = shares_by_kernel(planted(layer), STRIDES[layer], overlap=row.overlap)
            assert [*row.favour.previous, *row.favour.own] == pytest.approx(want)
            assert row.gate_scale is None

    @pytest.mark.parametrize("kind", ["released", "converted"])
    def test_indexers_are_told_apart_and_flat(self, kind, request):
        report = read_weights(request.getfixturevalue(kind))
        indexers = [row for row in report.layers if row.part == "indexer"]
        assert [row.layer for row in indexers] == [2, 4]
        assert all(row.favour.favoured == () and row.favour.spread == 0 for row in indexers)

    def test_gate_scale_is_the_score_of_an_input_of_unit_scale(self, released):
        report = read_weights(released, gates=True)
        gate = checkpoints.v4_model().model.layers[2].self_attn.compressor.gate_proj.weight
        inputs = np.random.default_rng(1).normal(size=(4000, gate.shape[1]))
        scores = inputs @ gate.detach().numpy().T
        assert report.layers[0].gate_scale == pytest.approx(scores.std(), rel=0.02)

    def test_a_profile_has_the_stride_and_no_strengths(self, released):
        profile = read_weights(released).to_profile(
            "mine", tokenizer="deepseek-v4", chat="deepseek-v4", model="a/b", date="2026-01-02", command="x"
        )
        assert (profile.period, profile.strides, profile.overlap, profile.window) == (4, (4, 128), True, 32)
        assert profile.strengths is None
        assert profile.strong is None
        assert profile.model == "a/b"
        assert profile.provenance.model_dump() == {
            "kind": "weights",
            "source": str(released),
            "date": "2026-01-02",
            "command": "x",
        }

    @pytest.mark.parametrize(
        ("given", "missing"),
        [({}, "tokenizer and chat"), ({"tokenizer": "t"}, "the chat"), ({"chat": "plain"}, "the tokenizer")],
    )
    def test_a_profile_needs_tokenizer_and_chat(self, released, given, missing):
        with pytest.raises(ProfileError, match=missing):
            read_weights(released).to_profile("mine", **given)

    def test_the_report_is_json_and_says_hypothesis(self, released):
        told = json.loads(json.dumps(read_weights(released).to_dict()))
        assert told["statement"] == HYPOTHESIS
        assert told["layers"][0]["favour"]["favoured"] == [2]
        assert sum(told["layers"][0]["favour"]["phases"]) == pytest.approx(1)


class TestFavour:
    @given(
        st.integers(1, 4).flatmap(
            lambda width: arrays(np.float64, (4, 2 * width), elements=st.floats(-30, 30))
        )
    )
    def test_shares_are_those_of_the_overlapping_kernel(self, bias):
        favour = Favour.of(bias, overlap=True)
        assert [*favour.previous, *favour.own] == pytest.approx(shares_by_kernel(bias, 4, overlap=True))
        assert sum(favour.phases) == pytest.approx(1)
        assert favour.phases == pytest.approx(np.add(favour.own, favour.previous))

    @given(arrays(np.float64, (5, 3), elements=st.floats(-30, 30)), st.integers(0, 4))
    def test_rolling_the_bias_rolls_the_shares(self, bias, by):
        one, two = Favour.of(bias, overlap=False), Favour.of(np.roll(bias, by, axis=0), overlap=False)
        assert two.own == pytest.approx(np.roll(one.own, by))
        assert one.own == pytest.approx(shares_by_kernel(bias, 5, overlap=False))

    def test_large_biases_do_not_overflow(self):
        assert Favour.of(np.array([[1e4], [-1e4]]), overlap=False).own == (1.0, 0.0)

    def test_channels_that_disagree_show_in_the_deviation(self):
        favour = Favour.of(np.array([[9.0, -9.0], [-9.0, 9.0]]), overlap=False)
        assert favour.favoured == ()
        assert favour.deviation == pytest.approx(0.5, abs=1e-6)
        assert favour.bias_scale == pytest.approx(9)

    @pytest.mark.parametrize(("bias", "overlap"), [(np.zeros(4), False), (np.zeros((4, 3)), True)])
    def test_other_shapes_are_refused(self, bias, overlap):
        with pytest.raises(InputError, match="shape"):
            Favour.of(bias, overlap=overlap)


class TestFewBytes:
    def test_only_headers_and_biases_are_read(self, released, monkeypatch):
        read = []
        part = FolderSource.part

        def recording(self, file, start, length):
            read.append((file, start, length))
            return part(self, file, start, length)

        monkeypatch.setattr(FolderSource, "part", recording)
        read_weights(released)
        assert sorted(r for r in read if not r[0].endswith(".json")) == sorted(wanted_ranges(released))

    def test_shards_without_compressors_may_be_missing(self, released, tmp_path):
        kept = {file for file, _, _ in wanted_ranges(released)}
        assert kept < {path.name for path in released.glob("*.safetensors")}
        for name in (*kept, "model.safetensors.index.json", "config.json"):
            (tmp_path / name).symlink_to(released / name)
        assert read_weights(tmp_path).layers == read_weights(released).layers


def wanted_ranges(folder):
    """Ranges of the headers and biases, by the format's description alone."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    files = {file for name, file in index.items() if ".compressor." in name}
    for file in files:
        data = (folder / file).read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        yield from ((file, 0, 8), (file, 8, size))
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name.endswith("compressor.ape"):
                low, high = entry["data_offsets"]
                yield file, 8 + size + low, high - low


class TestOtherCheckpoints:
    def test_pairs_without_bias_take_their_stride_from_the_config(self, tmp_path):
        report = read_weights(v41(tmp_path), gates=True)
        assert [(row.layer, row.stride, row.overlap, row.favour) for row in report.layers] == [
            (2, 2, False, None),
            (4, 1, False, None),
        ]
        assert report.layers[0].gate_scale == pytest.approx(32**0.5, rel=0.2)
        assert report.layers[1].gate_scale is None
        profile = report.to_profile("mine", tokenizer="deepseek-v4", chat="deepseek-v4.1")
        assert (profile.strides, profile.period, profile.overlap, profile.window) == ((2,), 2, False, 128)
        assert profile.model is None

    def test_without_bias_and_config_no_stride_is_known(self, tmp_path):
        report = read_weights(v41(tmp_path, config=False))
        assert [row.stride for row in report.layers] == [None, None]
        assert report.strides == ()
        with pytest.raises(ProfileError, match=r"config\.json"):
            report.to_profile("mine", tokenizer="t", chat="plain")

    def test_without_config_a_bias_shows_its_stride(self, tmp_path):
        report = read_weights(save(tmp_path, biased(np.zeros((8, 6), np.float32)), None))
        assert (report.strides, report.overlap, report.schedule) == ((8,), False, Schedule())

    def test_without_compressors_there_is_none_found(self, tmp_path):
        tensors = {"model.layers.0.self_attn.k_proj.weight": np.zeros((4, 4), np.float32)}
        report = read_weights(save(tmp_path, tensors, {"model_type": "llama"}))
        assert report.layers == ()
        assert "No chunked compression found" in report.statement
        with pytest.raises(ProfileError, match="No chunked compression found"):
            report.to_profile("mine", tokenizer="t", chat="plain")

    def test_one_file_by_its_path(self, converted):
        path = converted / "model.safetensors"
        assert read_weights(path).layers == read_weights(converted).layers

    def test_quantized_gates_are_left_out(self, tmp_path):
        tensors = biased(np.zeros((4, 6), np.float32))
        tensors["model.layers.0.attn.compressor.wgate.weight"] = np.zeros((6, 3), np.int8)
        assert read_weights(save(tmp_path, tensors, None), gates=True).layers[0].gate_scale is None

    @pytest.mark.parametrize("dtype", [np.float16, np.float64])
    def test_other_floats(self, tmp_path, dtype):
        bias = np.log([[1], [2], [1], [1]]).astype(dtype)
        (row,) = read_weights(save(tmp_path, biased(bias), None)).layers
        assert row.favour.own == pytest.approx((0.2, 0.4, 0.2, 0.2), rel=1e-3)


def described(shape, offsets):
    """A header with one bias, its shape and offsets as given."""
    told = f'"dtype": "F32", "shape": {shape}, "data_offsets": {offsets}'
    return f'{{"layers.0.attn.compressor.ape": {{{told}}}}}'.encode()


class TestBroken:
    def test_no_such_folder(self):
        with pytest.raises(InputError, match="no folder 'not/a/checkpoint'"):
            read_weights("not/a/checkpoint")

    def test_no_such_file(self, tmp_path):
        with pytest.raises(InputError, match=r"gone\.safetensors cannot be read"):
            read_weights(tmp_path / "gone.safetensors")

    def test_another_kind_of_file(self, tmp_path):
        (tmp_path / "model.bin").touch()
        with pytest.raises(InputError, match=r"no \.safetensors file"):
            read_weights(tmp_path / "model.bin")

    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(InputError, match=r"neither model\.safetensors\.index\.json nor"):
            read_weights(tmp_path)

    def test_a_missing_shard(self, released, tmp_path):
        (tmp_path / "model.safetensors.index.json").symlink_to(released / "model.safetensors.index.json")
        with pytest.raises(InputError, match=r"-of-.*\.safetensors cannot be read"):
            read_weights(tmp_path)

    @pytest.mark.parametrize("keep", [0, 4, 20, -4 * 6 - 1])  # the last is within the bias, before the norm
    def test_a_truncated_file(self, tmp_path, keep):
        file = save(tmp_path, biased(np.ones((4, 6), np.float32)), None) / "model.safetensors"
        file.write_bytes(file.read_bytes()[:keep])
        with pytest.raises(InputError, match="truncated"):
            read_weights(tmp_path, gates=True)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_values_that_are_not_finite(self, tmp_path, value):
        bias = np.ones((4, 6), np.float32)
        bias[1, 2] = value
        with pytest.raises(InputError, match=r"compressor\.ape .* holds NaN or infinities"):
            read_weights(save(tmp_path, biased(bias), None))

    def test_a_bias_without_a_float_dtype(self, tmp_path):
        with pytest.raises(InputError, match="stored as I8"):
            read_weights(save(tmp_path, biased(np.ones((4, 6), np.int8)), None))

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            (b"{ ", "not JSON"),
            (b"[]", "holds a list"),
            (b'{"layers.0.attn.compressor.ape": 1}', "wrongly"),
            (described("[4]", "[0, 1]"), "wrongly"),
            (described("[-1]", "[9, 5]"), "wrongly"),
            (described('"x"', "[0.0, 4.0]"), "wrongly"),
        ],
    )
    def test_broken_headers(self, tmp_path, header, message):
        file = tmp_path / "model.safetensors"
        file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))
        with pytest.raises(InputError, match=message):
            read_weights(file)

    def test_another_format(self, tmp_path):
        file = tmp_path / "model.safetensors"
        file.write_bytes(b"GGUF\x03\0\0\0\xff\xff\xff\xff")
        with pytest.raises(InputError, match=r"claims .* bytes"):
            read_weights(file)

    @pytest.mark.parametrize(
        "index",
        [
            b"",
            b"{}",
            b'{"weight_map": {"a": "../x.safetensors"}}',
            b'{"weight_map": {"a": "/x.safetensors"}}',
            b'{"weight_map": {"a": 1}}',
            b'{"weight_map": ["a"]}',
        ],
    )
    def test_broken_indices(self, tmp_path, index):
        (tmp_path / "model.safetensors.index.json").write_bytes(index)
        with pytest.raises(InputError, match=r"model\.safetensors\.index\.json"):
            read_weights(tmp_path)

    def test_an_index_of_another_checkpoint(self, tmp_path):
        save(tmp_path, {"a": np.zeros(1, np.float32)}, None)
        names = {"layers.0.attn.compressor.ape": "model.safetensors"}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        with pytest.raises(InputError, match="not of the same checkpoint"):
            read_weights(tmp_path)

    @pytest.mark.parametrize("ratios", [[8], [0]])
    def test_a_config_of_another_model(self, tmp_path, ratios):
        folder = save(tmp_path, biased(np.zeros((4, 6), np.float32)), {"compress_ratios": ratios})
        with pytest.raises(InputError, match="not of the same model"):
            read_weights(folder)

    def test_two_models_in_one_file(self, tmp_path):
        tensors = biased(np.zeros((4, 6), np.float32))
        tensors |= {name.replace("model.", "draft.", 1): value for name, value in tensors.items()}
        with pytest.raises(InputError, match="two models"):
            read_weights(save(tmp_path, tensors, None))

    def test_channels_that_fit_no_entry(self, tmp_path):
        with pytest.raises(InputError, match=r"\[7\] channels for entries of 5"):
            read_weights(save(tmp_path, biased(np.zeros((4, 7), np.float32), width=5), None))

    def test_a_config_that_is_not_json(self, tmp_path):
        save(tmp_path, biased(np.zeros((4, 6), np.float32)), None)
        (tmp_path / "config.json").write_text("{")
        with pytest.raises(InputError, match=r"config\.json of .* is not JSON"):
            read_weights(tmp_path)


class TestSchedule:
    def test_layer_types_and_rates(self):
        types = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
        rates = {"compressed_sparse_attention": 6}
        assert Schedule.of({"layer_types": types, "compress_rates": rates}).strides == (0, 6, 128)

    def test_layers_that_draft_tokens_are_cut(self):
        assert Schedule.of({"compress_ratios": [4, 0], "num_hidden_layers": 1}).strides == (4,)

    @pytest.mark.parametrize("config", [{}, {"layer_types": ["full_attention"]}, {"head_dim": "x"}])
    def test_configs_without_compression(self, config):
        assert Schedule.of(config) == Schedule()

    @pytest.mark.parametrize("ratios", [4, [4, -1], ["4"], [True], [2.0]])
    def test_ratios_that_are_no_whole_numbers(self, ratios):
        with pytest.raises(InputError, match="whole numbers"):
            Schedule.of({"compress_ratios": ratios})

    def test_unknown_layer_types(self):
        with pytest.raises(InputError, match="novel"):
            Schedule.of({"layer_types": ["compressed_sparse_attention", "novel"]})
