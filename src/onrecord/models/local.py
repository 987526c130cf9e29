"""The embedding model that runs here: all-MiniLM-L6-v2, int8, on onnxruntime.

Each text is one run of the graph on one thread, and the texts of a call are spread over the cores. So a text's vector
is the same to the last bit in any company, no time goes into padding, and two cores do twice the work of one.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from onrecord.errors import ModelError
from onrecord.models import graph
from onrecord.models.files import TOKENIZER, WEIGHTS, verified
from onrecord.models.weights import require
from onrecord.ports import Floats, TokenVectors, Use

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

NAME = f"minilm-l6-v2-int8-{graph.BUILD}-{WEIGHTS.sha256[:8]}"
DIM = 384
MAX_TOKENS = 254
FEW_TOKENS = 64  # below this a second thread costs more than it brings
SURROGATE = re.compile("[\ud800-\udfff]")  # has no UTF-8; one character for one keeps the offsets
SLICE = 256  # texts tokenised at a time, so that a long list doesn't lie in memory as encodings


class MiniLM:
    """Embedder and TokenEmbedder. Cheap to make: the weights are looked for, and loaded, at the first text.

    `threads` run texts at the same time; by default as many as there are cores. Safe to share between threads.
    """

    name = NAME
    dim = DIM
    max_tokens = MAX_TOKENS

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or _cores()
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self._session: Any = None

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of word pieces of each text. Raises ModelMissing, ModelError."""
        return [len(encoding.ids) for encoding in self._encode(texts, special=False)]

    def embed(self, texts: Sequence[str], use: Use) -> Floats:
        """(len(texts), 384) unit vectors; a text's first 254 tokens count. Raises ModelMissing, ModelError.

        The model makes no difference between a document and a query.
        """
        vectors = np.empty((len(texts), DIM), dtype=np.float32)
        for start in range(0, len(texts), SLICE):
            encodings = self._encode(texts[start : start + SLICE])
            for row, vector in enumerate(self._run("sentence", [_ids(e) for e in encodings]), start):
                vectors[row] = vector
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """A unit vector for each of a text's first 254 tokens, [CLS] and [SEP] left out. Raises as `embed` does.

        `spans` (tokens, 2) int32, `vectors` (tokens, 384): the last hidden states.
        """
        encodings = self._encode(texts, offsets=True)
        hidden = self._run("tokens", [_ids(e) for e in encodings])
        return [
            TokenVectors(np.array(e.offsets[1 : len(h) - 1], dtype=np.int32).reshape(-1, 2), h[1:-1])
            for e, h in zip(encodings, hidden, strict=True)
        ]

    def _encode(self, texts: Sequence[str], *, special: bool = True, offsets: bool = False) -> list[Encoding]:
        tokenizer = self._tokenizer or self._load_tokenizer()
        encode = tokenizer.encode_batch if offsets else tokenizer.encode_batch_fast
        return encode([SURROGATE.sub("\ufffd", text) for text in texts], add_special_tokens=special)

    def _run(self, output: str, texts: Sequence[list[int]]) -> list[Floats]:
        """The output of the graph for each text, without the batch dimension."""
        session = self._session or self._load_session()

        def run(ids: list[int]) -> Floats:
            result: Floats = session.run([output], {"ids": np.array([ids], dtype=np.int64)})[0][0]
            return result

        threads = min(self._threads, len(texts))
        if threads < 2 or sum(map(len, texts)) < FEW_TOKENS:
            return [run(ids) for ids in texts]
        # longest first, so that no thread is left with a long text at the end
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        with ThreadPoolExecutor(threads) as pool:
            done = dict(zip(order, pool.map(run, [texts[i] for i in order]), strict=True))
        return [done[i] for i in range(len(texts))]

    def _load_tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        with self._lock:
            if self._tokenizer is None:
                path = require() / TOKENIZER.name
                try:
                    tokenizer = Tokenizer.from_str(verified(path, TOKENIZER).decode())
                except OSError as error:
                    raise ModelError(f"{path} can't be read: {error}.", "Check its permissions.") from error
                tokenizer.no_padding()  # the file pads to 128 tokens
                tokenizer.no_truncation()  # and cuts there; `_ids` cuts instead, so that `count` needn't
                self._tokenizer = tokenizer
            return self._tokenizer

    def _load_session(self) -> Any:
        with self._lock:
            if self._session is None:
                try:
                    self._session = _session(str(graph.ensure()))
                except _Damaged:
                    self._session = _session(str(graph.ensure(afresh=True)))
            return self._session


class _Damaged(ModelError):
    """onnxruntime refuses the built graph."""


def _session(path: str) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # the graph is as fused as is good for it: more would bring back the slow SkipLayerNormalization
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_mem_pattern = False  # a plan per length would be kept for ever
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base of their own
        raise _Damaged(f"onnxruntime can't load {path}: {error}", "Update onnxruntime, or delete the file.") from error


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ids(encoding: Encoding) -> list[int]:
    """The tokens as the model takes them: at most 254 between [CLS] and [SEP]."""
    ids = encoding.ids
    return ids if len(ids) <= MAX_TOKENS + 2 else [*ids[: MAX_TOKENS + 1], ids[-1]]
