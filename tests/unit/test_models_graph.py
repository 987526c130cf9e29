"""The built graph against the same encoder written a second time, in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onrecord.models import files, graph, weights

Tensors = dict[str, NDArray[Any]]
Outputs = tuple[NDArray[Any], NDArray[Any]]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def encoder(w: Tensors, ids: list[int], heads: int) -> Outputs:
    """BERT in float64: the pooled vector and the last hidden states, unit length."""

    def linear(x: NDArray[Any], name: str) -> NDArray[Any]:
        return np.asarray(x @ w[name + ".weight"].astype(np.float64).T + w[name + ".bias"])

    def norm(x: NDArray[Any], name: str) -> NDArray[Any]:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * w[name + ".weight"] + w[name + ".bias"])

    e = "embeddings."
    x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][: len(ids)].astype(np.float64)
    x = norm(x + w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
    for number in range(sum("intermediate.dense.weight" in name for name in w)):
        p = f"encoder.layer.{number}."
        parts = [linear(x, f"{p}attention.self.{part}") for part in ("query", "key", "value")]
        q, k, v = (part.reshape(len(ids), heads, -1).transpose(1, 0, 2) for part in parts)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
        x = norm(linear(mixed, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        wide = linear(x, p + "intermediate.dense")
        wide = wide * (1 + _erf(wide / math.sqrt(2))) / 2
        x = norm(linear(wide, p + "output.dense") + x, p + "output.LayerNorm")
    pooled = x.mean(0)
    return pooled / np.linalg.norm(pooled), x / np.linalg.norm(x, axis=-1, keepdims=True)


def session(w: Tensors, heads: int, quantised: bool) -> Callable[[list[list[int]]], Outputs]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    content = graph.build(w, heads=heads, quantised=quantised).SerializeToString()
    made = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda ids: tuple(made.run(["sentence", "tokens"], {"ids": np.array(ids, dtype=np.int64)}))


def small(layers: int = 2, hidden: int = 48, inner: int = 96, words: int = 50, places: int = 20) -> Tensors:
    """A random encoder with one token far louder than the others, as the real one has it."""
    random = np.random.default_rng(7)

    def draw(*shape: int) -> NDArray[np.float32]:
        return random.normal(0, 0.3, shape).astype(np.float32)

    w = {f"embeddings.{n}_embeddings.weight": draw(s, hidden) for n, s in
         {"word": words, "position": places, "token_type": 2}.items()}  # fmt: skip
    w["embeddings.position_embeddings.weight"][0, 3] += 9
    shapes = {
        "attention.self.query": (hidden, hidden),
        "attention.self.key": (hidden, hidden),
        "attention.self.value": (hidden, hidden),
        "attention.output.dense": (hidden, hidden),
        "intermediate.dense": (inner, hidden),
        "output.dense": (hidden, inner),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(layers):
        p = f"encoder.layer.{number}."
        norms += [p + "attention.output.LayerNorm", p + "output.LayerNorm"]
        for name, shape in shapes.items():
            w |= {f"{p}{name}.weight": draw(*shape), f"{p}{name}.bias": draw(shape[0])}
    for name in norms:
        w |= {name + ".weight": 1 + draw(hidden), name + ".bias": draw(hidden)}
    return w


def cosines(got: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((got * wanted).sum(-1))


@pytest.mark.parametrize("heads", [1, 4, 12])
@pytest.mark.parametrize("length", [1, 2, 20])
def test_the_graph_computes_bert(heads: int, length: int) -> None:
    w = small()
    ids = [[(7 * place + row) % 50 for place in range(length)] for row in range(3)]
    sentence, tokens = session(w, heads, quantised=False)(ids)
    for row in range(3):
        pooled, hidden = encoder(w, ids[row], heads)
        assert np.allclose(sentence[row], pooled, atol=2e-6)
        assert np.allclose(tokens[row], hidden, atol=5e-6)


def test_int8_stays_close_and_a_loud_token_spoils_no_other() -> None:
    w = small()
    ids = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7]
    sentence, tokens = session(w, 4, quantised=True)([ids])
    pooled, hidden = encoder(w, ids, 4)
    assert cosines(sentence[0], pooled) > 0.999
    assert cosines(tokens[0], hidden).min() > 0.99
    assert np.allclose(np.linalg.norm(tokens[0], axis=-1), 1, atol=1e-5)


def test_weights_keep_to_seven_bits() -> None:
    """What CPUs without VNNI add up in 16 bits must not saturate."""
    from onnx import numpy_helper

    model = graph.build(small(), heads=4)
    products = [node.input[1] for node in model.graph.node if node.op_type == "DynamicQuantizeMatMul"]
    kernels = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name in products]
    assert len(kernels) == 12
    for kernel in kernels:
        assert kernel.dtype == np.int8
        assert (np.abs(kernel).max(axis=0) == 63).all()


@pytest.mark.models
def test_with_the_real_weights_int8_and_numpy_agree() -> None:
    if not weights.present():
        pytest.skip("the embedding model's weights are not here: run `onrecord models pull`")
    from safetensors.numpy import load

    w = load(files.verified(weights.folder() / files.WEIGHTS.name, files.WEIGHTS))
    # "[CLS] the audit log is kept for ninety days . [SEP]"
    ids = [101, 1996, 15727, 8833, 2003, 2921, 2005, 13568, 2420, 1012, 102]
    pooled, hidden = encoder(w, ids, graph.HEADS)
    sentence, tokens = session(w, graph.HEADS, quantised=False)([ids])
    assert np.allclose(sentence[0], pooled, atol=1e-5)
    assert np.allclose(tokens[0], hidden, atol=1e-4)
    sentence, tokens = session(w, graph.HEADS, quantised=True)([ids])
    assert cosines(sentence[0], pooled) > 0.99
    assert cosines(tokens[0], hidden).min() > 0.98
