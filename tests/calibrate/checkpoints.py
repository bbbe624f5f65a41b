"""Small checkpoints with planted biases, and a hub on this machine that serves them by byte range."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

RATIOS = (0, 0, 4, 128, 4)
STRIDES = {2: 4, 3: 128, 4: 4}
WIDTH = 16


def planted(layer: int) -> np.ndarray:
    """A bias that favours one phase; exact in bfloat16. ``[4, 2 * 16]`` for CSA, ``[128, 16]`` for HCA."""
    stride = STRIDES[layer]
    bias = np.zeros((stride, WIDTH * (2 if stride == 4 else 1)))
    bias[layer % stride, -WIDTH:] = 2.0
    bias[0, : WIDTH // 2] = -1.5
    return bias


def v4_model(dtype: str = "float32"):
    """A tiny model of transformers' own classes, its schedule like V4's, its biases planted."""
    import torch
    from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

    config = DeepseekV4Config(
        vocab_size=64,
        hidden_size=32,
        moe_intermediate_size=16,
        num_hidden_layers=len(RATIOS),
        num_attention_heads=2,
        head_dim=WIDTH,
        q_lora_rank=16,
        num_experts_per_tok=1,
        n_routed_experts=2,
        o_groups=2,
        o_lora_rank=8,
        index_n_heads=2,
        index_head_dim=8,
        index_topk=4,
        hc_mult=2,
        compress_ratios=list(RATIOS),
        sliding_window=32,
        qk_rope_head_dim=8,
    )
    torch.manual_seed(0)
    model = DeepseekV4ForCausalLM(config)
    with torch.no_grad():
        for layer in STRIDES:
            bias = model.model.layers[layer].self_attn.compressor.position_bias
            bias.copy_(torch.from_numpy(planted(layer)))
    return model.to(getattr(torch, dtype))


def save(folder: Path, tensors: dict[str, np.ndarray], config: dict | None) -> Path:
    """One model.safetensors, and a config.json when there is one."""
    folder.mkdir(exist_ok=True, parents=True)
    save_file(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()}, folder / "model.safetensors"
    )
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def v41(folder: Path, *, config: bool = True) -> Path:
    """Like V4.1: layer 2 pools pairs without a bias, layer 3 reads its entries, layer 4 pools nothing."""
    rng = np.random.default_rng(0)
    name = "layers.{}.attn.compressor.{}.weight"
    tensors = {
        name.format(2, "wkv"): rng.normal(size=(8, 32)),
        name.format(2, "wgate"): rng.normal(size=(8, 32)),
        name.format(2, "norm"): np.ones(8),
        name.format(4, "wkv"): rng.normal(size=(8, 32)),
        name.format(4, "norm"): np.ones(8),
        "layers.2.attn.indexer.wk.weight": rng.normal(size=(8, 32)),
    }
    text = {"compress_ratios": [0, 0, 2, 2, 1], "num_hidden_layers": 5, "sliding_window": 128}
    told = {"model_type": "deepseek_v41", "text_config": text}
    return save(
        folder, {key: value.astype(np.float32) for key, value in tensors.items()}, told if config else None
    )


def biased(bias: np.ndarray, *, layer: int = 0, width: int | None = None) -> dict[str, np.ndarray]:
    """The tensors of one compressor under DeepSeek's names."""
    stem = f"model.layers.{layer}.attn.compressor"
    return {f"{stem}.ape": bias, f"{stem}.norm.weight": np.ones(width or bias.shape[1], np.float32)}


@dataclass
class Asked:
    """One request as it came."""

    path: str
    span: str | None
    authorization: str | None


@dataclass
class Hub:
    """What the server does, and what it was asked."""

    url: str
    folder: Path
    asked: list[Asked] = field(default_factory=list)
    to_cdn: str | None = None
    renamed: bool = False
    ignores_ranges: bool = False
    statuses: list[int] = field(default_factory=list)
    cut: int = 0
    cuts: str = ""
    wrong_start: bool = False
    sent: int = 0

    def spans(self, file: str) -> list[tuple[int, int]]:
        """First byte and length of what was asked of a file, in order."""
        found = [a.span for a in self.asked if a.path.endswith(f"/{file}") and a.span]
        pairs = [span.removeprefix("bytes=").split("-") for span in found]
        return sorted((int(low), int(high) - int(low) + 1) for low, high in pairs)


def _answer(handler: BaseHTTPRequestHandler, hub: Hub) -> None:
    span = handler.headers.get("Range")
    hub.asked.append(Asked(handler.path, span, handler.headers.get("Authorization")))
    file = hub.folder / handler.path.rsplit("/", 1)[-1]
    if hub.statuses or not file.is_file():
        handler.send_response(hub.statuses.pop(0) if hub.statuses else 404)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    moved = None if hub.to_cdn is None else f"{hub.to_cdn}/blob/{file.name}"
    if hub.renamed and not handler.path.startswith("/renamed/"):
        moved = f"/renamed/{file.name}"
    if moved is not None:
        handler.send_response(307)
        handler.send_header("Location", moved)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    data, low = file.read_bytes(), 0
    total = len(data)
    if span and not hub.ignores_ranges:
        low, high = map(int, span.removeprefix("bytes=").split("-"))
        if low >= total:
            handler.send_response(416)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        data = data[low : high + 1]
        low += hub.wrong_start
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {low}-{low + len(data) - 1}/{total}")
    else:
        handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    if hub.cut and file.name.endswith(hub.cuts):
        data, hub.cut = data[: len(data) // 2], hub.cut - 1
        handler.close_connection = True
    try:
        handler.wfile.write(data)
        hub.sent += len(data)
    except OSError:  # who asked has hung up
        return


@contextmanager
def serving(folder: Path, host: str = "127.0.0.1"):
    """A hub on this machine that serves one repository's folder under any name."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, hub)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer((host, 0), Handler)
    hub = Hub(f"http://{host}:{server.server_address[1]}", folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
