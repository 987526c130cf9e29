"""Builds the MiniLM graph: a BERT encoder in ONNX, int8, from plain weights.

Method. The encoder is BERT (Devlin et al. 2019) as distilled in MiniLM (Wang et al. 2020), pooled as in Sentence-BERT
(Reimers and Gurevych 2019): the mean of the last hidden states, then the L2 norm. The graph takes texts of one length
and no mask: one text a run costs nothing here (int8 spends the same time a token at 12 tokens as at 200), needs no
padding, and makes a text's vector independent of the texts beside it, which a scale shared by a batch would not.

Quantisation. Weights: symmetric, a scale per output channel, 7 bits, so that the 16-bit sums of CPUs without VNNI
can't saturate and every machine gets the same vectors. Activations: 8 bits, asymmetric, a scale per run. The [CLS]
token's activations before and inside the feed-forward block are some eight times all others ("massive activations",
Sun et al. 2024) and would cost the others three bits, so there each token is divided by its own maximum first. Word
embeddings: 8 bits, a scale per word.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from onrecord.errors import ModelError
from onrecord.models.files import WEIGHTS, verified
from onrecord.models.weights import LOCK_SECONDS, require
from onrecord.ports import Floats

if TYPE_CHECKING:
    import onnx

BUILD = 1  # raise it with every change that moves a vector: it is part of the embedder's name
HEADS = 12
LEVELS = 63  # of a 7-bit weight: 255 * 63 * 2 fits 16 bits
EPSILON = 1e-12
CONTRIB = "com.microsoft"


def ensure(*, afresh: bool = False) -> Path:
    """The built graph, beside the weights; built under a file lock by the first who needs it (a second).

    `afresh` builds it again, for one that turned out damaged. Raises ModelMissing without weights, ModelError where
    they are damaged or the folder can't be written.
    """
    path = require() / f"minilm-{BUILD}.onnx"
    if path.is_file() and not afresh:
        return path
    from safetensors.numpy import load

    try:
        with FileLock(path.with_name(".build.lock"), timeout=LOCK_SECONDS):
            if afresh or not path.is_file():
                data = verified(path.with_name(WEIGHTS.name), WEIGHTS)
                _write(path, build(load(data)).SerializeToString())
    except (OSError, TimeoutError) as error:
        raise ModelError(
            f"The embedding model can't be prepared in {path.parent}: {error}.",
            "Make the folder writable, or point ONRECORD_MODELS at one that is.",
        ) from error
    return path


def _write(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".build-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def build(weights: Mapping[str, NDArray[Any]], *, heads: int = HEADS, quantised: bool = True) -> onnx.ModelProto:
    """The graph of a BERT encoder whose tensors bear Hugging Face's names; layers and widths are read off them.

    Input `ids` (batch, tokens) int64, all of one length, [CLS] and [SEP] included. Outputs, float32, unit length:
    `sentence` (batch, hidden), the pooled vector, and `tokens` (batch, tokens, hidden), the last hidden states.
    """
    draft = _Draft(weights, heads, quantised)
    x = draft.embed("ids")
    for number in range(sum(1 for name in weights if name.endswith("intermediate.dense.weight"))):
        x = draft.layer(x, f"encoder.layer.{number}.")
    mean = draft.add("ReduceMean", [x, draft.const("axis1", np.array([1]))], keepdims=0)
    draft.unit(mean, "sentence")
    draft.unit(x, "tokens")
    return draft.model()


@dataclass
class _Draft:
    """A graph in the making. Methods append nodes and return the name of the value they made."""

    weights: Mapping[str, NDArray[Any]]
    heads: int
    quantised: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def const(self, name: str, value: NDArray[Any]) -> str:
        self.constants.setdefault(name, value)
        return name

    def add(self, op: str, inputs: list[str], output: str = "", domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = output or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def unit(self, x: str, output: str) -> str:
        length = self.add("ReduceL2", [x, self.const("last", np.array([-1]))], keepdims=1)
        return self.add("Div", [x, length], output)

    def norm(self, x: str, name: str) -> str:
        # Not SkipLayerNormalization, which also adds: its CPU kernel takes five times as long.
        scale, bias = (self.const(name + end, self.weights[name + end]) for end in (".weight", ".bias"))
        return self.add("LayerNormalization", [x, scale, bias], axis=-1, epsilon=EPSILON)

    def embed(self, ids: str) -> str:
        prefix = "embeddings."
        words: Floats = self.weights[prefix + "word_embeddings.weight"]
        places = self.weights[prefix + "position_embeddings.weight"]
        kinds = self.weights[prefix + "token_type_embeddings.weight"]
        if self.quantised:
            scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), 1e-12) / 127
            whole = self.const("words", np.round(words / scales).astype(np.int8))
            rows = self.add("Cast", [self.add("Gather", [whole, ids])], to=_FLOAT)
            x = self.add("Mul", [rows, self.add("Gather", [self.const("word_scales", scales), ids])])
        else:
            x = self.add("Gather", [self.const("words", words), ids])
        length = self.add("Shape", [ids], start=1, end=2)
        bounds = [self.const("from", np.array([0])), length, self.const("axis0", np.array([0]))]
        place = self.add("Slice", [self.const("places", places + kinds[0]), *bounds])
        return self.norm(self.add("Add", [x, place]), prefix + "LayerNorm")

    def linear(self, x: str, name: str, *, level: bool = False) -> str:
        """`x @ W.T + b`. `level`: each row of `x` is divided by its largest magnitude meanwhile."""
        kernel: Floats = np.ascontiguousarray(self.weights[name + ".weight"].T)
        bias = self.const(name + ".bias", self.weights[name + ".bias"])
        if not self.quantised:
            return self.add("Add", [self.add("MatMul", [x, self.const(name, kernel)]), bias])
        scales = (np.maximum(np.abs(kernel).max(axis=0), 1e-12) / LEVELS).astype(np.float32)
        packed = self.const(name, np.round(kernel / scales).astype(np.int8))
        inputs = [packed, self.const(name + ".scales", scales), ""]
        if not level:
            return self.add("DynamicQuantizeMatMul", [x, *inputs, bias], domain=CONTRIB)
        peak = self.add("ReduceMax", [self.add("Abs", [x]), self.const("last", np.array([-1]))], keepdims=1)
        peak = self.add("Max", [peak, self.const("least", np.array([1e-6], np.float32))])
        product = self.add("DynamicQuantizeMatMul", [self.add("Div", [x, peak]), *inputs], domain=CONTRIB)
        return self.add("Add", [self.add("Mul", [product, peak]), bias])

    def layer(self, x: str, prefix: str) -> str:
        inputs = [self.linear(x, f"{prefix}attention.self.{part}") for part in ("query", "key", "value")]
        mixed = self.add("MultiHeadAttention", inputs, domain=CONTRIB, num_heads=self.heads)
        mixed = self.linear(mixed, prefix + "attention.output.dense")
        x = self.norm(self.add("Add", [mixed, x]), prefix + "attention.output.LayerNorm")
        wide = self.linear(x, prefix + "intermediate.dense", level=True)
        narrow = self.linear(self.add("Gelu", [wide]), prefix + "output.dense", level=True)
        return self.norm(self.add("Add", [narrow, x]), prefix + "output.LayerNorm")

    def model(self) -> onnx.ModelProto:
        from onnx import helper, numpy_helper

        hidden = self.weights["embeddings.LayerNorm.weight"].shape[0]
        shape: list[int | str] = ["batch", "tokens"]
        graph = helper.make_graph(
            self.nodes,
            "minilm",
            [helper.make_tensor_value_info("ids", _INT64, shape)],
            [
                helper.make_tensor_value_info("sentence", _FLOAT, ["batch", hidden]),
                helper.make_tensor_value_info("tokens", _FLOAT, [*shape, hidden]),
            ],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


_FLOAT, _INT64 = 1, 7  # onnx.TensorProto's numbers, here so that this module loads without onnx
